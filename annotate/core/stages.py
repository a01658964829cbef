"""The stages of a unit, and the table of moves that lead from one stage to another.

work/routing.py makes the moves. docs/reference/stages.md shows the table.
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
    COPIED: "has the text of another unit, and takes its label",
    AGREED: "labelled by the detectors, which agree",
    QUEUED: "waits for readers of a language",
    ADJUDICATION: "waits for an adjudicator",
    LABELLED: "labelled by people",
    DISCARDED: "left out: nobody could tell, or people disagree",
}
# In these stages, a unit has a label of its own. The label of a copy belongs to the unit that it copies.
WITH_LABEL = (AGREED, LABELLED)
# In these stages, a unit needs no more work. A copy has no label until the unit that it copies has one.
FINISHED = (COPIED, AGREED, LABELLED, DISCARDED)
WAITING = tuple(stage for stage in STAGES if stage not in FINISHED)

# Each move is a tuple: from, event, to, description.
MOVES: tuple[tuple[str, str, str, str], ...] = (
    (NEW, "copied", COPIED, "an identical text is already in the task"),
    (NEW, "agreed", AGREED, "the detectors agree, and the task's policy counts it"),
    (NEW, "reused", LABELLED, "people have labelled the post in another task, and this one takes their label"),
    (NEW, "disputed", QUEUED, "the detectors do not agree: to the readers of the most likely language"),
    (NEW, "asked", QUEUED, "a record: to the people who label its language"),
    (AGREED, "audited", QUEUED, "chosen at random: people check the detectors' label without knowing it"),
    (AGREED, "contested", QUEUED, "the audit found that too much of the language may be wrong: people label it"),
    (QUEUED, "skipped", QUEUED, "the readers of one language skipped it: to readers of the next language"),
    (
        QUEUED,
        "named",
        QUEUED,
        "only one reader gave another queue's language: to a reader of it, who does not know the answer",
    ),
    (QUEUED, "named", ADJUDICATION, "only one reader gave another queue's language, which nobody else reads"),
    (QUEUED, "rerouted", QUEUED, "a queue has no readers left: to the next language"),
    (QUEUED, "exhausted", ADJUDICATION, "no further language has a reader, or the rounds are used up"),
    (
        QUEUED,
        "exhausted",
        DISCARDED,
        "no further language has a reader, and it needs no label, or the task drops such units",
    ),
    (
        QUEUED,
        "doubted",
        ADJUDICATION,
        "audited, and the reader does not confirm it or is checked at random: an adjudicator decides it blind",
    ),
    (QUEUED, "checked", ADJUDICATION, "chosen by chance: an adjudicator decides it again, blind"),
    (
        LABELLED,
        "checked",
        ADJUDICATION,
        "a manager added checks, and it was chosen by chance: an adjudicator decides it again, blind",
    ),
    (QUEUED, "answered", LABELLED, "it has all its answers, and they give a label"),
    (QUEUED, "conflicted", ADJUDICATION, "the answers give no label, and the task sends such units on"),
    (QUEUED, "conflicted", DISCARDED, "the answers give no label, and the task drops such units"),
    (QUEUED, "undone", QUEUED, "a skip was taken back, or an answer that named another language: to the round before"),
    (ADJUDICATION, "undone", QUEUED, "as above"),
    (LABELLED, "undone", QUEUED, "an answer was taken back"),
    (DISCARDED, "undone", QUEUED, "as above"),
    (QUEUED, "changed", ADJUDICATION, "a reader changed the answer after others had read it"),
    (LABELLED, "changed", ADJUDICATION, "its reader changed the answer"),
    (DISCARDED, "changed", ADJUDICATION, "as above"),
    (ADJUDICATION, "seconded", ADJUDICATION, "chosen by chance: another adjudicator decides it too, blind"),
    (ADJUDICATION, "differed", ADJUDICATION, "two adjudicators differ: a third decides, blind"),
    (ADJUDICATION, "settled", LABELLED, "an adjudicator gave the label"),
    (ADJUDICATION, "discarded", DISCARDED, "an adjudicator could not tell either"),
    (QUEUED, "withdrawn", DISCARDED, "a manager left it out: its text is broken, or names a person"),
    (ADJUDICATION, "withdrawn", DISCARDED, "as above"),
    (LABELLED, "withdrawn", DISCARDED, "as above"),
    (DISCARDED, "withdrawn", DISCARDED, "as above, so that an answer that is taken back does not bring it back"),
    (
        QUEUED,
        "unconfirmed",
        LABELLED,
        "the task was closed before a second person confirmed the answer in another language",
    ),
    (ADJUDICATION, "unconfirmed", LABELLED, "as above"),
    (QUEUED, "left_out", DISCARDED, "a manager closed the task and left out what had no label yet"),
    (ADJUDICATION, "left_out", DISCARDED, "as above"),
    (LABELLED, "resumed", QUEUED, "the task was opened again: to where it was before the task was closed"),
    (LABELLED, "resumed", ADJUDICATION, "as above"),
    (DISCARDED, "resumed", QUEUED, "as above"),
    (DISCARDED, "resumed", ADJUDICATION, "as above"),
    (LABELLED, "reopened", QUEUED, "a manager voided answers on which it rests: others are asked"),
    (DISCARDED, "reopened", QUEUED, "as above"),
    (ADJUDICATION, "reopened", QUEUED, "as above"),
    (LABELLED, "unsettled", ADJUDICATION, "the adjudicator took the decision back"),
    (DISCARDED, "unsettled", ADJUDICATION, "as above"),
    (ADJUDICATION, "unsettled", ADJUDICATION, "as above"),
)
# After these events, adjudicators do not see what detectors and annotators answered.
BLIND = ("audited", "checked", "seconded")
# These events happen when a task is closed. Reopening the task reverses them.
BY_CLOSING = ("unconfirmed", "left_out")
_ALLOWED = frozenset((start, event, end) for start, event, end, _ in MOVES)


def check_move(start: str, event: str, end: str) -> None:
    """Raise ValueError unless the table allows a unit to go from `start` to `end` by this event."""
    if (start, event, end) not in _ALLOWED:
        raise ValueError(f"a unit cannot go from {start} to {end} by {event!r}")


def happened(start: str, event: str, end: str) -> str:
    """Return the description of a move.

    If the table has "as above", this is the description that it repeats. Raise ValueError if the table has no such
    move.
    """
    words = ""
    for *move, said in MOVES:
        words = words if said == "as above" else said
        if tuple(move) == (start, event, end):
            return words
    raise ValueError(f"no unit goes from {start} to {end} by {event!r}")


def arrows() -> dict[tuple[str, str], list[str]]:
    """Return a mapping from each (from, to) pair of stages to the events that lead from one to the other."""
    found: dict[tuple[str, str], list[str]] = {}
    for start, event, end, _ in MOVES:
        found.setdefault((start, end), []).append(event)
    return found
