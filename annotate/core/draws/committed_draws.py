"""The lots that decide about people or trust: how each is drawn, and how it is drawn again from what was written down.

The program draws by the same functions by which anybody checks it. All keys are published ones: ids of items, languages
and pseudonyms. Which units each of them is drawn among is decided in controls/ and work/.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from math import ceil
from typing import Any, NamedTuple

from annotate.core.draws.hash_order import Lots, drawn, hit, place

# --- gold answers among a person's work


def gold_places(lots: Lots, person: str, language: str, size: int) -> Callable[[int], bool]:
    """Whether the unit at a place among those of a person in a language, 0 for the first, has a known answer: one in
    each block of `size` units.
    """
    purpose = f"honeypot of {person} in {language}"

    @cache
    def place_in(number: int) -> int:
        return int(lots(purpose, str(number)), 16) % size

    return lambda place: place_in(place // size) == place % size


def scheduled(is_gold: Callable[[int], bool], places: int, size: int) -> int:
    """How many of the first units have a known answer: one in each whole block, and perhaps in the one begun."""
    whole, rest = divmod(places, size)
    return whole + any(is_gold(place) for place in range(places - rest, places))


def gold_order(lots: Lots, person: str, keys: Iterable[str]) -> list[str]:
    """Gold answers in the order in which a person is given them."""
    listed = list(keys)
    return drawn(listed, len(listed), lots=lots, purpose=f"honeypots of {person}")


# --- questions of a test, decoys


def test_questions(lots: Lots, of: Sequence[str], asked: Mapping[str, int], count: int) -> list[str]:
    """The questions of a test in their order: from those first that the person was asked least often.

    of: the person, the language and the number of the test. asked: id of each question of the pool -> how often.
    """
    purpose = f"test of {' '.join(of)}"
    taken = sorted(drawn(asked, len(asked), lots=lots, purpose=purpose), key=lambda key: asked[key])[:count]
    return drawn(taken, len(taken), lots=lots, purpose=purpose)


def decoys(lots: Lots, asked: str, keys: Iterable[str], count: int) -> list[str]:
    return drawn(keys, count, lots=lots, purpose=f"decoy {asked}")


def drawn_before(lots: Lots, asked: str, key: str, among: int) -> int:
    """How many of the drawn posts stand before a decoy that is put among so many."""
    # Of `among` posts the middles are at 0.5 / among, 1.5 / among and so on.
    return max(0, ceil(place(lots, f"place {asked}", key) * among - 0.5))


# --- sides


def first_of_two(lots: Lots, item: str, systems: Sequence[str], person: str) -> str:
    """Which of two systems stands first for a person."""
    one, other = systems
    return one if place(lots, "sides", f"{item}:{one}:{other}:{person}") < 0.5 else other


# --- what was written down, drawn again


class Checked(NamedTuple):
    """One decision of a lot. what: which it was, to be named where it differs from what the lot says."""

    what: str
    differs: bool


# A line of what was written down: lot (its purpose), of, how, frame, drawn. What these are is said at each check below.
Line = Mapping[str, Any]


def _each(lots: Lots, line: Line) -> Iterator[Checked]:
    """how: the share, and those that were drawn in vain, if any. Each of the frame by itself."""
    chosen, share = {*line["drawn"], *line["how"].get("in_vain", ())}, line["how"]["share"]
    for key in line["frame"]:
        yield Checked(key, (key in chosen) != hit(share, lots=lots, purpose=line["lot"], key=key))
    yield from _strangers(line)


def _count(lots: Lots, line: Line) -> Iterator[Checked]:
    """how: the count. So many of the frame."""
    return _sets(line, drawn(line["frame"], line["how"]["count"], lots=lots, purpose=line["lot"]))


def _sets(line: Line, expected: Iterable[str]) -> Iterator[Checked]:
    right, chosen = set(expected), set(line["drawn"])
    yield from (Checked(key, (key in right) != (key in chosen)) for key in line["frame"])
    yield from _strangers(line)


def _strangers(line: Line) -> Iterator[Checked]:
    """What was drawn and is not in the frame."""
    frame = set(line["frame"])
    yield from (Checked(key, True) for key in line["drawn"] if key not in frame)


def _decoy(lots: Lots, line: Line) -> Iterator[Checked]:
    """of: the language asked about; how: the count."""
    [asked] = line["of"]
    return _sets(line, decoys(lots, asked, line["frame"], line["how"]["count"]))


def _decoy_place(lots: Lots, line: Line) -> Iterator[Checked]:
    """of: the language asked about; how: among how many drawn posts; drawn: how many of these are before each decoy of
    the frame.
    """
    [asked] = line["of"]
    for key, before in zip(line["frame"], line["drawn"], strict=True):
        yield Checked(key, drawn_before(lots, asked, key, line["how"]["among"]) != before)


def _test(lots: Lots, line: Line) -> Iterator[Checked]:
    """of: person, language and number of the test; how: the count; frame: each question of the pool with how often the
    person had been asked it; drawn: the questions in their order.
    """
    expected = test_questions(lots, line["of"], dict(line["frame"]), line["how"]["count"])
    told = " ".join(line["of"])
    for number in range(max(len(expected), len(line["drawn"]))):
        yield Checked(
            f"question {number + 1} of {told}", expected[number : number + 1] != line["drawn"][number : number + 1]
        )


def _gold_place(lots: Lots, line: Line) -> Iterator[Checked]:
    """of: person and language; how: the gold answers that somebody found disturbing, if any, which others may never be
    given, those whose text the person had seen elsewhere, and those with which the person was passed over, since
    somebody else had met them; frame: the gold answers of the language; drawn: what the person was given, in order, in
    entries of four: how many units the lot had given them, how many gold answers among these, one gold answer in how
    many units, and the id of the gold answer, or how many units of work were given one after the other. An entry that
    is an id alone is a gold answer that came by no lot: somebody else had given it back.

    A gold answer comes when it is due, and work when none is, until the person has met them all; and none comes before
    those that stand before it in the person's order, unless they were passed over. No place is left out.
    """
    person, language = line["of"]
    order = gold_order(lots, person, line["frame"])
    met: set[str] = {*line["how"].get("disturbing", ()), *line["how"].get("seen_elsewhere", ())}
    passed_over = set(line["how"].get("passed_over", ()))
    given = known = 0
    for entry in line["drawn"]:
        if isinstance(entry, str):
            met.add(entry)
            continue
        *stood, size, shown = entry
        is_gold, is_gold_at = isinstance(shown, str), gold_places(lots, person, language, size)
        has_met_all, begun = met.issuperset(order), [given, known]
        for at in range(given, given + (1 if is_gold else shown)):
            due = scheduled(is_gold_at, at + 1, size) > known
            in_turn = not is_gold or (shown in order and {*met, *passed_over}.issuperset(order[: order.index(shown)]))
            as_drawn = has_met_all or (due == is_gold and in_turn)
            yield Checked(f"unit {at + 1} of {person} in {language}", stood != begun or not as_drawn)
            given += 1
        if is_gold:
            known += 1
            met.add(shown)


# --- what became of what was drawn


def outcome(key: str, asked: str, stage: str, label: str | None, said: Iterable[Sequence[Any]]) -> str:
    """What a set publishes of one drawn unit, as one text.

    key: id of its item. asked: the language that people were asked about, or empty. said: of each judgment in order
    the annotator's pseudonym, kind, label, queue and round, each as published, and whether it was taken back or voided.
    """
    return json.dumps([key, asked, stage, label, [list(each) for each in said]], ensure_ascii=False)


def outcome_digest(lots: Lots, text: str) -> str:
    """Of one unit, 16 hex digits, by the secret: a digest without it would tell the label to those who guess."""
    return lots("outcome", text)[:16]


def fixed_digest(lots: Lots, line: "Line", others: Iterable["Line"]) -> str:
    """Of all that was drawn and of what became of it, 64 hex digits. line: what was written down when it was fixed;
    others: the lines of all other draws.
    """
    content = [line["how"]["at"], line["frame"], line["drawn"], sorted(map(_as_text, others))]
    return lots("outcomes", sha256(_as_text(content).encode()).hexdigest())


def _as_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


OUTCOME = "outcome"
AUDIT, RECHECK, CHECK, OVERLAP = "audit", "recheck", "check", "overlap"
DECOY, DECOY_PLACE, TEST, SECOND, GOLD_PLACE = "decoy", "decoy place", "test", "second", "gold place"
SIDE, BLIND = "side", "blind"
# Purpose -> what is drawn, in words, and how what is written down of it is drawn again. Those without a check of lines
# are in the rows of a set (goldsets/verification.py).
PURPOSES: Mapping[str, tuple[str, Callable[[Lots, Line], Iterator[Checked]] | None]] = {
    AUDIT: ("which labels of machines people audit", _count),
    RECHECK: ("which confirmed ones an adjudicator decides again", _each),
    CHECK: ("which labels of one reader an adjudicator decides again", _count),
    SECOND: ("which decisions a second adjudicator makes too", _each),
    OVERLAP: ("which units two people are asked", _each),
    DECOY: ("which posts are decoys", _decoy),
    DECOY_PLACE: ("where the decoys stand", _decoy_place),
    TEST: ("which questions a test asks", _test),
    GOLD_PLACE: ("where and in which order people get gold answers", _gold_place),
    OUTCOME: ("nothing; it fixes what became of the drawn units", None),
    SIDE: ("which system stands first", None),
    BLIND: ("from whom suggestions are kept", None),
}
# What is written down when it is drawn; the rest is known from what people were given. NOBODY: a decision that a second
# adjudicator was to make too, where there was none.
NOBODY = "nobody"
RECORDED = (AUDIT, RECHECK, CHECK, OVERLAP, DECOY, DECOY_PLACE, TEST, NOBODY, OUTCOME)
# Whose lines name units that have a row in the set. Decoys and gold answers have none.
OF_UNITS = (AUDIT, RECHECK, CHECK, OVERLAP, SECOND)


def checked(lots: Lots, line: Line) -> Iterator[Checked]:
    """Each decision that a line has, drawn again. KeyError, TypeError or ValueError where it is no such line."""
    _, check = PURPOSES[line["lot"]]
    if check is None:
        raise ValueError(line["lot"])
    yield from check(lots, line)
