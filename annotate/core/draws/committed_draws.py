"""Random draws that affect people or trust in the results, and the verification of their records.

A draw is verified by repeating it with the same functions and comparing the result with the record. All keys are
public: ids of items, languages and pseudonyms. controls/ and work/ decide which units take part in each draw.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from math import ceil
from typing import Any, NamedTuple

from annotate.core.draws.hash_order import Lots, drawn, hit, place

# --- Gold answers in a person's work


def gold_places(lots: Lots, person: str, language: str, size: int) -> Callable[[int], bool]:
    """Return a function that decides at which positions in a person's work a gold item comes.

    The work is divided into blocks of `size` units. Each block has one gold item, at a random position.

    person: pseudonym.
    language: language of the queue.
    size: number of units per block.

    The function takes the position of a unit among the person's units in the language, counted from 0.
    """
    purpose = f"honeypot of {person} in {language}"

    @cache
    def place_in(number: int) -> int:
        return int(lots(purpose, str(number)), 16) % size

    return lambda place: place_in(place // size) == place % size


def scheduled(is_gold: Callable[[int], bool], places: int, size: int) -> int:
    """Return how many of the first `places` units are gold items.

    There is one in each complete block, and perhaps one in the incomplete block at the end.
    """
    whole, rest = divmod(places, size)
    return whole + any(is_gold(place) for place in range(places - rest, places))


def gold_order(lots: Lots, person: str, keys: Iterable[str]) -> list[str]:
    """Return gold items in the order in which a person gets them."""
    listed = list(keys)
    return drawn(listed, len(listed), lots=lots, purpose=f"honeypots of {person}")


# --- Test questions and decoys


def test_questions(lots: Lots, of: Sequence[str], frequencies: Mapping[str, int], count: int) -> list[str]:
    """Draw the questions of a test from those that the person was asked least often, and return them in random order.

    of: person, language and number of the test.
    frequencies: for each question of the pool, how often the person was asked it.
    count: number of questions.
    """
    purpose = f"test of {' '.join(of)}"
    taken = sorted(drawn(frequencies, len(frequencies), lots=lots, purpose=purpose), key=lambda key: frequencies[key])[
        :count
    ]
    return drawn(taken, len(taken), lots=lots, purpose=purpose)


def decoys(lots: Lots, item: str, keys: Iterable[str], count: int) -> list[str]:
    return drawn(keys, count, lots=lots, purpose=f"decoy {item}")


def drawn_before(lots: Lots, item: str, key: str, among: int) -> int:
    """Return the position of a decoy, as the number of drawn posts that come before it.

    item: the language that annotators are asked about.
    key: id of the decoy.
    among: number of drawn posts.
    """
    # If the posts are spread evenly between 0 and 1, their midpoints are 0.5 / among, 1.5 / among and so on.
    return max(0, ceil(place(lots, f"place {item}", key) * among - 0.5))


# --- Order of two systems on the page


def first_of_two(lots: Lots, item: str, systems: Sequence[str], person: str) -> str:
    """Return which of two systems a person sees first."""
    one, other = systems
    return one if place(lots, "sides", f"{item}:{one}:{other}:{person}") < 0.5 else other


# --- Verification of recorded draws


class Checked(NamedTuple):
    """The result of verifying one decision.

    what: name of the decision, which is reported if it differs.
    differs: whether the recorded decision differs from the repeated draw.
    """

    what: str
    differs: bool


# A record of a draw. Its fields are `lot` (the purpose of the draw), `of`, `how`, `frame` and `drawn`. The docstrings
# of the functions below describe the content of these fields.
Line = Mapping[str, Any]


def _independent(lots: Lots, line: Line) -> Iterator[Checked]:
    """Verify a draw that decides on each id of the frame independently.

    how: the share, and optionally `in_vain`, the ids that were drawn when there was no adjudicator for them.
    """
    chosen, share = {*line["drawn"], *line["how"].get("in_vain", ())}, line["how"]["share"]
    for key in line["frame"]:
        yield Checked(key, (key in chosen) != hit(share, lots=lots, purpose=line["lot"], key=key))
    yield from _strangers(line)


def _count(lots: Lots, line: Line) -> Iterator[Checked]:
    """Verify a draw of a fixed number of ids.

    how: the number of ids.
    """
    return _sets(line, drawn(line["frame"], line["how"]["count"], lots=lots, purpose=line["lot"]))


def _sets(line: Line, expected: Iterable[str]) -> Iterator[Checked]:
    right, chosen = set(expected), set(line["drawn"])
    yield from (Checked(key, (key in right) != (key in chosen)) for key in line["frame"])
    yield from _strangers(line)


def _strangers(line: Line) -> Iterator[Checked]:
    """Report every drawn id that is not in the frame."""
    frame = set(line["frame"])
    yield from (Checked(key, True) for key in line["drawn"] if key not in frame)


def _decoy(lots: Lots, line: Line) -> Iterator[Checked]:
    """Verify the draw of decoys.

    of: the language that annotators are asked about.
    how: the number of decoys.
    """
    [item] = line["of"]
    return _sets(line, decoys(lots, item, line["frame"], line["how"]["count"]))


def _decoy_place(lots: Lots, line: Line) -> Iterator[Checked]:
    """Verify the positions of decoys.

    of: the language that annotators are asked about.
    how: the number of drawn posts.
    drawn: for each decoy of the frame, how many of the drawn posts come before it.
    """
    [item] = line["of"]
    for key, before in zip(line["frame"], line["drawn"], strict=True):
        yield Checked(key, drawn_before(lots, item, key, line["how"]["among"]) != before)


def _test(lots: Lots, line: Line) -> Iterator[Checked]:
    """Verify the questions of a test.

    of: person, language and number of the test.
    how: the number of questions.
    frame: pairs of a question of the pool and how often the person had been asked it.
    drawn: the questions in order.
    """
    expected = test_questions(lots, line["of"], dict(line["frame"]), line["how"]["count"])
    subject = " ".join(line["of"])
    for number in range(max(len(expected), len(line["drawn"]))):
        yield Checked(
            f"question {number + 1} of {subject}", expected[number : number + 1] != line["drawn"][number : number + 1]
        )


def _gold_place(lots: Lots, line: Line) -> Iterator[Checked]:
    """Verify the positions and the order of a person's gold items.

    Until the person has seen all gold items, one must come exactly when it is due (`gold_places`). They must come in
    the person's order (`gold_order`), except that some may be passed over. No position may be missing from the record.

    of: person and language.
    how: optional lists of gold items that the person does not get in the usual order:
        disturbing: somebody found them disturbing, so nobody else gets them;
        seen_elsewhere: the person had seen their text elsewhere;
        passed_over: they were skipped for this person, because somebody else had seen them.
    frame: the gold items of the language.
    drawn: the work that the person received, in order. Each entry is a list of four values: the number of units that
        the draw had given before, the number of gold items among these, the block size, and either the id of a gold
        item or a number of consecutive units of work. An entry that is only an id is a gold item from outside the draw,
        which somebody else had returned.
    """
    person, language = line["of"]
    order = gold_order(lots, person, line["frame"])
    met: set[str] = {*line["how"].get("disturbing", ()), *line["how"].get("seen_elsewhere", ())}
    passed_over = set(line["how"].get("passed_over", ()))
    shown_before = gold_before = 0
    for entry in line["drawn"]:
        if isinstance(entry, str):
            met.add(entry)
            continue
        *stood, size, shown = entry
        is_gold, is_gold_at = isinstance(shown, str), gold_places(lots, person, language, size)
        has_met_all, begun = met.issuperset(order), [shown_before, gold_before]
        for at in range(shown_before, shown_before + (1 if is_gold else shown)):
            due = scheduled(is_gold_at, at + 1, size) > gold_before
            in_turn = not is_gold or (shown in order and {*met, *passed_over}.issuperset(order[: order.index(shown)]))
            as_drawn = has_met_all or (due == is_gold and in_turn)
            yield Checked(f"unit {at + 1} of {person} in {language}", stood != begun or not as_drawn)
            shown_before += 1
        if is_gold:
            gold_before += 1
            met.add(shown)


# --- Outcomes of drawn units


def outcome(key: str, language: str, stage: str, label: str | None, answers: Iterable[Sequence[Any]]) -> str:
    """Return the outcome of one drawn unit as text, in the form in which it is published.

    key: id of the item.
    language: the language that annotators were asked about, or empty.
    stage: final stage of the unit.
    label: final label, or None.
    answers: the judgments in order. Each has the annotator's pseudonym, the kind, label, queue and round as published,
        and whether the judgment was withdrawn or voided.
    """
    return json.dumps([key, language, stage, label, [list(answer) for answer in answers]], ensure_ascii=False)


def outcome_digest(lots: Lots, text: str) -> str:
    """Return the digest of one outcome (16 hex digits).

    It is keyed with the secret. Otherwise anybody could find the label by computing the digest of every possible
    outcome.
    """
    return lots("outcome", text)[:16]


def fixed_digest(lots: Lots, line: "Line", others: Iterable["Line"]) -> str:
    """Return one digest of all draws and their outcomes (64 hex digits).

    line: the record that fixes the outcomes.
    others: the records of all other draws.
    """
    content = [line["how"]["at"], line["frame"], line["drawn"], sorted(map(_as_text, others))]
    return lots("outcomes", sha256(_as_text(content).encode()).hexdigest())


def _as_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


OUTCOME = "outcome"
AUDIT, RECHECK, CHECK, OVERLAP = "audit", "recheck", "check", "overlap"
DECOY, DECOY_PLACE, TEST, SECOND, GOLD_PLACE = "decoy", "decoy place", "test", "second", "gold place"
SIDE, BLIND = "side", "blind"
# For each draw, a description of what it decides and the function that verifies its records. If there is no function,
# the draw is verified from the rows of a set (goldsets/verification.py).
PURPOSES: Mapping[str, tuple[str, Callable[[Lots, Line], Iterator[Checked]] | None]] = {
    AUDIT: ("which labels from machines people audit", _count),
    RECHECK: ("which confirmed labels an adjudicator decides again", _independent),
    CHECK: ("which labels from a single reader an adjudicator decides again", _count),
    SECOND: ("which decisions a second adjudicator also makes", _independent),
    OVERLAP: ("which units two people answer", _independent),
    DECOY: ("which posts are decoys", _decoy),
    DECOY_PLACE: ("the positions of the decoys", _decoy_place),
    TEST: ("the questions of a test", _test),
    GOLD_PLACE: ("the positions and the order of gold answers", _gold_place),
    OUTCOME: ("nothing; it commits to the outcomes of the drawn units", None),
    SIDE: ("which system is shown first", None),
    BLIND: ("who does not see suggestions", None),
}
# These draws are recorded when they are made. The records of all other draws are derived later from the work that
# people received. NOBODY is the purpose of a record of decisions that needed a second adjudicator when there was none.
NOBODY = "nobody"
RECORDED = (AUDIT, RECHECK, CHECK, OVERLAP, DECOY, DECOY_PLACE, TEST, NOBODY, OUTCOME)
# The records of these draws name units that have a row in the set. Decoys and gold items have no row.
OF_UNITS = (AUDIT, RECHECK, CHECK, OVERLAP, SECOND)


def checked(lots: Lots, line: Line) -> Iterator[Checked]:
    """Verify each decision in a record.

    Raise KeyError, TypeError or ValueError if the record is malformed. Also raise ValueError if the draw has no
    function that verifies its records.
    """
    _, check = PURPOSES[line["lot"]]
    if check is None:
        raise ValueError(line["lot"])
    yield from check(lots, line)
