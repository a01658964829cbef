"""Random draws that annotators and managers must not be able to predict, and the verification of their records.

A draw is verified by repeating it with the same functions and comparing the result with the record. All keys are
public: item ids, languages and pseudonyms. controls/ and work/ decide which units take part in each draw.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from math import ceil
from typing import Any, NamedTuple

from annotate.core.draws.hash_order import Lots, draw_sample, is_drawn, uniform_number

# --- Gold items in an annotator's work


def gold_places(lots: Lots, person: str, language: str, size: int) -> Callable[[int], bool]:
    """Return a function that decides whether a position in an annotator's work holds a gold item.

    The work is divided into blocks of `size` units. Each block has one gold item, at a random position.

    person: the annotator's pseudonym.
    language: language of the queue.
    size: number of units per block.

    The function takes a unit's position among the annotator's units in the language, starting at 0.
    """
    purpose = f"honeypot of {person} in {language}"

    @cache
    def place_in(block: int) -> int:
        return int(lots(purpose, str(block)), 16) % size

    return lambda position: place_in(position // size) == position % size


def gold_count(is_gold: Callable[[int], bool], places: int, size: int) -> int:
    """Return how many of an annotator's first `places` units are gold items.

    Each complete block has one gold item. The incomplete block at the end may have a gold item too.

    is_gold: result of `gold_places`.
    size: number of units per block.
    """
    whole, rest = divmod(places, size)
    return whole + any(is_gold(place) for place in range(places - rest, places))


def gold_order(lots: Lots, person: str, keys: Iterable[str]) -> list[str]:
    """Return gold items in the order that an annotator receives them."""
    listed = list(keys)
    return draw_sample(listed, len(listed), lots=lots, purpose=f"honeypots of {person}")


# --- Test questions and decoys


def test_questions(lots: Lots, test: Sequence[str], frequencies: Mapping[str, int], count: int) -> list[str]:
    """Draw a test's questions, in random order, from the questions that the annotator was asked least often.

    test: the annotator's pseudonym, the language and the number of the test.
    frequencies: for each question in the pool, how often the annotator has been asked it.
    count: number of questions.
    """
    purpose = f"test of {' '.join(test)}"
    taken = sorted(
        draw_sample(frequencies, len(frequencies), lots=lots, purpose=purpose), key=lambda key: frequencies[key]
    )[:count]
    return draw_sample(taken, len(taken), lots=lots, purpose=purpose)


def decoys(lots: Lots, language: str, keys: Iterable[str], count: int) -> list[str]:
    return draw_sample(keys, count, lots=lots, purpose=f"decoy {language}")


def decoy_position(lots: Lots, language: str, key: str, among: int) -> int:
    """Return the position of a decoy: the number of drawn posts that come before it.

    language: language that annotators are asked about.
    key: id of the decoy.
    among: number of drawn posts.
    """
    # The drawn posts are spread evenly over [0, 1), with midpoints 0.5 / among, 1.5 / among, and so on.
    return max(0, ceil(uniform_number(lots, f"place {language}", key) * among - 0.5))


# --- Order of two systems on the page


def first_of_two(lots: Lots, item: str, systems: Sequence[str], person: str) -> str:
    """Return which of two systems an annotator sees first on an item's page."""
    one, other = systems
    return one if uniform_number(lots, "sides", f"{item}:{one}:{other}:{person}") < 0.5 else other


# --- Verification of recorded draws


class Checked(NamedTuple):
    """The result of verifying one decision.

    what: name of the decision, for the report.
    differs: whether the recorded decision differs from the repeated draw.
    """

    what: str
    differs: bool


# A record of a draw, with the fields `lot` (the draw's purpose), `of` (its subject), `how` (its parameters), `frame`
# (the eligible ids) and `drawn` (its result). The docstrings below describe the fields of each purpose.
Line = Mapping[str, Any]


def _verify_independent(lots: Lots, line: Line) -> Iterator[Checked]:
    """Verify a draw that selects each id of the frame independently.

    how: the share, and optionally `in_vain`: ids that were drawn when no adjudicator was available for them.
    """
    chosen, share = {*line["drawn"], *line["how"].get("in_vain", ())}, line["how"]["share"]
    for key in line["frame"]:
        yield Checked(key, (key in chosen) != is_drawn(share, lots=lots, purpose=line["lot"], key=key))
    yield from _unknown_ids(line)


def _verify_count(lots: Lots, line: Line) -> Iterator[Checked]:
    """Verify a draw of a fixed number of ids.

    how: the number of ids.
    """
    return _compare(line, draw_sample(line["frame"], line["how"]["count"], lots=lots, purpose=line["lot"]))


def _compare(line: Line, expected: Iterable[str]) -> Iterator[Checked]:
    right, chosen = set(expected), set(line["drawn"])
    yield from (Checked(key, (key in right) != (key in chosen)) for key in line["frame"])
    yield from _unknown_ids(line)


def _unknown_ids(line: Line) -> Iterator[Checked]:
    """Report every drawn id that is not in the frame."""
    frame = set(line["frame"])
    yield from (Checked(key, True) for key in line["drawn"] if key not in frame)


def _verify_decoys(lots: Lots, line: Line) -> Iterator[Checked]:
    """Verify the draw of decoys.

    of: the language that annotators are asked about.
    how: the number of decoys.
    """
    [language] = line["of"]
    return _compare(line, decoys(lots, language, line["frame"], line["how"]["count"]))


def _verify_decoy_places(lots: Lots, line: Line) -> Iterator[Checked]:
    """Verify the positions of decoys.

    of: the language that annotators are asked about.
    how: the number of drawn posts.
    drawn: for each decoy in the frame, how many of the drawn posts come before it.
    """
    [language] = line["of"]
    for key, before in zip(line["frame"], line["drawn"], strict=True):
        yield Checked(key, decoy_position(lots, language, key, line["how"]["among"]) != before)


def _verify_test(lots: Lots, line: Line) -> Iterator[Checked]:
    """Verify the questions of a test.

    of: the annotator's pseudonym, the language and the number of the test.
    how: the number of questions.
    frame: (question, how often the annotator had been asked it) pairs for the pool.
    drawn: the questions, in order.
    """
    expected = test_questions(lots, line["of"], dict(line["frame"]), line["how"]["count"])
    subject = " ".join(line["of"])
    for number in range(max(len(expected), len(line["drawn"]))):
        yield Checked(
            f"question {number + 1} of {subject}", expected[number : number + 1] != line["drawn"][number : number + 1]
        )


def _verify_gold_places(lots: Lots, line: Line) -> Iterator[Checked]:
    """Verify the positions and the order of an annotator's gold items.

    Until the annotator has seen all gold items, gold items must come at exactly the positions from `gold_places`. They
    must come in the annotator's order (`gold_order`), but some can be passed over. No position may be missing from the
    record.

    of: the annotator's pseudonym and the language.
    how: optional lists of gold items that this annotator does not receive in the usual order:
        disturbing: somebody found them disturbing, so nobody else receives them;
        seen_elsewhere: the annotator had seen their text elsewhere;
        passed_over: they were skipped for this annotator, because somebody else had seen them.
    frame: the gold items of the language.
    drawn: the annotator's work, in order. Each entry is a list of four values: the number of units already received
        under the draw, how many of those units were gold items, the block size, and either the id of a gold item or a
        number of consecutive ordinary units. An entry that is only an id is a gold item that somebody else had
        returned; the annotator received it outside the draw.
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
        *counts, size, shown = entry
        is_gold, is_gold_at = isinstance(shown, str), gold_places(lots, person, language, size)
        has_met_all, expected = met.issuperset(order), [shown_before, gold_before]
        for at in range(shown_before, shown_before + (1 if is_gold else shown)):
            due = gold_count(is_gold_at, at + 1, size) > gold_before
            in_turn = not is_gold or (shown in order and {*met, *passed_over}.issuperset(order[: order.index(shown)]))
            as_drawn = has_met_all or (due == is_gold and in_turn)
            yield Checked(f"unit {at + 1} of {person} in {language}", counts != expected or not as_drawn)
            shown_before += 1
        if is_gold:
            gold_before += 1
            met.add(shown)


# --- Outcomes of drawn units


def outcome(key: str, language: str, stage: str, label: str | None, answers: Iterable[Sequence[Any]]) -> str:
    """Return a drawn unit's outcome as it is published (JSON).

    key: item id.
    language: language that annotators were asked about, or empty.
    stage: final stage of the unit.
    label: final label, or None.
    answers: the unit's judgments, in order. Each has the annotator's pseudonym, the kind, label, queue and round as
        published, and whether the judgment was withdrawn or voided.
    """
    return json.dumps([key, language, stage, label, [list(answer) for answer in answers]], ensure_ascii=False)


def outcome_digest(lots: Lots, text: str) -> str:
    """Return the digest of an outcome (16 hex digits).

    The digest is keyed with the secret. Otherwise, anybody could find the label by hashing every possible outcome.
    """
    return lots("outcome", text)[:16]


def fixed_digest(lots: Lots, line: "Line", others: Iterable["Line"]) -> str:
    """Return the digest of all draws and their outcomes (64 hex digits).

    line: the record that commits to the outcomes.
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
# What each draw decides, and the function that verifies its records. Without a function, the draw is verified from the
# rows of a set (goldsets/verification.py).
PURPOSES: Mapping[str, tuple[str, Callable[[Lots, Line], Iterator[Checked]] | None]] = {
    AUDIT: ("which machine labels are audited", _verify_count),
    RECHECK: ("which confirmed labels an adjudicator decides again", _verify_independent),
    CHECK: ("which single-annotator labels an adjudicator decides again", _verify_count),
    SECOND: ("which decisions a second adjudicator repeats", _verify_independent),
    OVERLAP: ("which units two annotators answer", _verify_independent),
    DECOY: ("which posts are decoys", _verify_decoys),
    DECOY_PLACE: ("the positions of the decoys", _verify_decoy_places),
    TEST: ("the questions of a test", _verify_test),
    GOLD_PLACE: ("the positions and the order of gold answers", _verify_gold_places),
    OUTCOME: ("nothing; it commits to the outcomes of the drawn units", None),
    SIDE: ("which system is shown first", None),
    BLIND: ("who does not see suggestions", None),
}
# These draws are recorded when they are made. The records of all other draws are derived later from annotators' work.
# NOBODY records decisions that needed a second adjudicator when there was none.
NOBODY = "nobody"
RECORDED = (AUDIT, RECHECK, CHECK, OVERLAP, DECOY, DECOY_PLACE, TEST, NOBODY, OUTCOME)
# The records of these draws name units that have a row in the set. Decoys and gold items have no row.
OF_UNITS = (AUDIT, RECHECK, CHECK, OVERLAP, SECOND)


def verify(lots: Lots, line: Line) -> Iterator[Checked]:
    """Verify each decision in a record.

    Raise KeyError, TypeError or ValueError if the record is malformed, and ValueError if the draw cannot be verified
    from its record.
    """
    _, check = PURPOSES[line["lot"]]
    if check is None:
        raise ValueError(line["lot"])
    yield from check(lots, line)
