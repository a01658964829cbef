"""The stages of a unit, and the table of moves between them.

work/moves.py carries out the moves. docs/reference/stages.md shows the table.
"""

NEW = "NEW"
COPIED = "COPIED"
AGREED = "AGREED"
QUEUED = "QUEUED"
ADJUDICATION = "ADJUDICATION"
LABELLED = "LABELLED"
DISCARDED = "DISCARDED"

STAGES: dict[str, str] = {
    NEW: "drawn, not yet routed",
    COPIED: "has the same text as another unit, and uses its label",
    AGREED: "labelled by the detectors, because they agree",
    QUEUED: "waits for readers of a language",
    ADJUDICATION: "waits for an adjudicator",
    LABELLED: "labelled by people",
    DISCARDED: "left out, because nobody could label it or people disagree",
}
# In these stages, a unit has its own label. A copy uses the label of the unit that it copies.
WITH_LABEL = (AGREED, LABELLED)
# In these stages, a unit needs no more work. A copy has no label until the unit that it copies has one.
FINISHED = (COPIED, AGREED, LABELLED, DISCARDED)
WAITING = tuple(stage for stage in STAGES if stage not in FINISHED)

# Each move is a (from, event, to, description) tuple.
MOVES: tuple[tuple[str, str, str, str], ...] = (
    (NEW, "copied", COPIED, "an identical text is already in the task"),
    (NEW, "agreed", AGREED, "the detectors agree, and the task's policy accepts their label"),
    (NEW, "reused", LABELLED, "people have labelled the post in another task, and this task uses their label"),
    (NEW, "disputed", QUEUED, "the detectors disagree: readers of the most likely language are asked"),
    (NEW, "asked", QUEUED, "a record: the people who label its language are asked"),
    (AGREED, "audited", QUEUED, "chosen at random: people check the detectors' label without knowing it"),
    (AGREED, "contested", QUEUED, "the audit found that too many labels of the language may be wrong: people label it"),
    (QUEUED, "skipped", QUEUED, "the readers of one language skipped it: readers of the next language are asked"),
    (
        QUEUED,
        "named",
        QUEUED,
        "a single reader chose another queue's language: a reader of that language is asked, without seeing the answer",
    ),
    (QUEUED, "named", ADJUDICATION, "a single reader chose another queue's language, which nobody else reads"),
    (QUEUED, "rerouted", QUEUED, "a queue has no readers left: readers of the next language are asked"),
    (QUEUED, "exhausted", ADJUDICATION, "no further language has a reader, or the rounds are used up"),
    (
        QUEUED,
        "exhausted",
        DISCARDED,
        "no further language has a reader, and the unit needs no label or the task drops such units",
    ),
    (
        QUEUED,
        "doubted",
        ADJUDICATION,
        "audited, but the reader does not confirm the label or is checked at random: an adjudicator decides, blind",
    ),
    (QUEUED, "checked", ADJUDICATION, "chosen at random: an adjudicator decides again, blind"),
    (
        LABELLED,
        "checked",
        ADJUDICATION,
        "a manager added checks, and the unit was chosen at random: an adjudicator decides again, blind",
    ),
    (QUEUED, "answered", LABELLED, "all answers are there, and they determine a label"),
    (
        QUEUED,
        "conflicted",
        ADJUDICATION,
        "the answers determine no label, and the task sends such units to an adjudicator",
    ),
    (QUEUED, "conflicted", DISCARDED, "the answers determine no label, and the task drops such units"),
    (
        QUEUED,
        "undone",
        QUEUED,
        "a skip or an answer with another language was undone: the unit returns to the previous round",
    ),
    (ADJUDICATION, "undone", QUEUED, "as above"),
    (LABELLED, "undone", QUEUED, "an answer was undone"),
    (DISCARDED, "undone", QUEUED, "as above"),
    (QUEUED, "changed", ADJUDICATION, "a reader changed the answer after others had read the unit"),
    (LABELLED, "changed", ADJUDICATION, "its reader changed the answer"),
    (DISCARDED, "changed", ADJUDICATION, "as above"),
    (ADJUDICATION, "seconded", ADJUDICATION, "chosen at random: another adjudicator also decides, blind"),
    (ADJUDICATION, "differed", ADJUDICATION, "two adjudicators differ: a third decides, blind"),
    (ADJUDICATION, "settled", LABELLED, "an adjudicator gave the label"),
    (ADJUDICATION, "discarded", DISCARDED, "an adjudicator could not label it either"),
    (QUEUED, "withdrawn", DISCARDED, "a manager removed it, because its text is broken or names a person"),
    (ADJUDICATION, "withdrawn", DISCARDED, "as above"),
    (LABELLED, "withdrawn", DISCARDED, "as above"),
    (DISCARDED, "withdrawn", DISCARDED, "as above, so that undoing an answer does not restore it"),
    (
        QUEUED,
        "unconfirmed",
        LABELLED,
        "the task was closed before a second person confirmed the answer in another language",
    ),
    (ADJUDICATION, "unconfirmed", LABELLED, "as above"),
    (QUEUED, "left_out", DISCARDED, "a manager closed the task and left out units without a label"),
    (ADJUDICATION, "left_out", DISCARDED, "as above"),
    (LABELLED, "resumed", QUEUED, "the task was reopened: the unit returns to its earlier stage"),
    (LABELLED, "resumed", ADJUDICATION, "as above"),
    (DISCARDED, "resumed", QUEUED, "as above"),
    (DISCARDED, "resumed", ADJUDICATION, "as above"),
    (LABELLED, "reopened", QUEUED, "a manager voided its answers: other people are asked"),
    (DISCARDED, "reopened", QUEUED, "as above"),
    (ADJUDICATION, "reopened", QUEUED, "as above"),
    (LABELLED, "unsettled", ADJUDICATION, "the adjudicator undid the decision"),
    (DISCARDED, "unsettled", ADJUDICATION, "as above"),
    (ADJUDICATION, "unsettled", ADJUDICATION, "as above"),
)
# After these events, adjudicators don't see the answers of detectors and annotators.
BLIND = ("audited", "checked", "seconded")
# These events happen when a task is closed. Reopening the task reverses them.
BY_CLOSING = ("unconfirmed", "left_out")
_ALLOWED = frozenset((start, event, end) for start, event, end, _ in MOVES)


def check_move(start: str, event: str, end: str) -> None:
    """Raise ValueError unless the event can move a unit from `start` to `end`."""
    if (start, event, end) not in _ALLOWED:
        raise ValueError(f"a unit cannot go from {start} to {end} by {event!r}")


def describe_move(start: str, event: str, end: str) -> str:
    """Return the description of a move, with "as above" replaced by the description it refers to.

    Raise ValueError if the table has no such move.
    """
    text = ""
    for *move, description in MOVES:
        text = text if description == "as above" else description
        if tuple(move) == (start, event, end):
            return text
    raise ValueError(f"no unit goes from {start} to {end} by {event!r}")


def arrows() -> dict[tuple[str, str], list[str]]:
    """Map each (from, to) pair of stages to the events that move a unit from one to the other."""
    events: dict[tuple[str, str], list[str]] = {}
    for start, event, end, _ in MOVES:
        events.setdefault((start, end), []).append(event)
    return events
