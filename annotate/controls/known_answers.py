"""Quality control with gold answers: their place in the queue, records of their draws, and items that repeat them."""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, product
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from annotate.controls.gold_answers import check_pool, store, without_twins
from annotate.controls.honeypots import Turn, in_order, is_due, rule, score, to_come, turn_in, turns
from annotate.core.draws.committed_draws import GOLD_PLACE, Line, gold_order
from annotate.core.pause_rule import pauses
from annotate.kinds.control import Place, QualityControl, register
from annotate.models import Annotator, Judgment, Lease, Task, Unit
from annotate.quality.commitments import READ, draw_line
from annotate.work.eligible import Seen, unjudged_by
from annotate.work.interventions import stop
from annotate.work.permit import Permit
from annotate.work.queue import PlaceOf, free_place
from annotate.work.task_creation import Entry
from annotate.work.unit_entry import add_units, shuffled
from corpora.database.statements import prepared
from corpora.draws.samples import items_of
from corpora.models import as_read, same


class GoldAnswers(QualityControl):
    """Gold answers as a share of each person's units. People who fail too many are paused."""

    name = "gold answers"
    switches = ("gold_share",)
    inputs = ("gold", "gold_column")
    hides = True

    def enter(self, entry: Entry) -> None:
        task = entry.task
        hidden = store(task, list(entry.gold), items_of(entry.corpus, [row.id for row in entry.gold]))
        for control in task.kind.quality_controls:
            control.gold_stored(task, entry.suggested)
        answers = {item.pk: label for item, label in hidden.items()}
        add_units(task, list(hidden), known_answers=answers, honeypots=True, suggested=entry.suggested)
        check_pool(task)
        entry.items = without_twins(task, shuffled(entry.items, entry.seed))

    def place(self, unit: Unit, permit: Permit) -> PlaceOf:
        annotator = permit.annotator
        pots_of = _pots[annotator.adjudicates, annotator.takes_disturbing]
        pots = pots_of(permit.task.pk, annotator.pk, unit.language, unit.pk)
        met = {pk: bool(number) for pk, *_, number in pots}
        hidden = in_order(permit, [pot for *pot, was_given, _ in pots if not was_given])
        # Prefer gold answers that were shown only to people who have answered the unit. A gold answer then has no more
        # readers than the unit, and a colleague can get it if it is returned.
        hidden.sort(key=met.__getitem__)
        turn = turn_in(permit, unit.language)
        due = hidden if is_due(permit, unit.language, turn) else []
        return partial(_what_comes, unit=unit, due=due, pots=[pk for pk, *_ in pots], turn=turn)

    def known(self, task: Task, units: Iterable[Any]) -> Mapping[int, str]:
        """Find units that repeat a gold answer of the task or an example in its guidelines.

        Items with gold answers are left out when a task is opened, but some may have been added since, and guidelines
        change.

        Returns the reason by unit.
        """
        answers = {same(answer.item) for answer in task.gold_answers.select_related("item")}
        texts = [f" {_words(text)} " for text in task.guidelines.order_by("pk").values_list("text", flat=True)]
        found = {}
        for some in units:
            columns = (some.own[name].to_pylist() for name in ("pk", "item__language", "item__text", "item__fields"))
            for pk, language, text, written in zip(*columns, strict=True):
                fields = json.loads(written)
                if as_read(language, text, fields) in answers:
                    found[pk] = GOLD_ANSWER
                elif _is_quoted(list(filter(None, map(_words, fields.values() or [text]))), texts):
                    found[pk] = EXAMPLE
        return found

    def draws(self, task: Task) -> Iterator[Line]:
        return _gold_places(task) if task.gold_share else iter(())

    def coming(self, permits: Sequence[Permit]) -> Callable[[Permit, Counter[str], Counter[str]], int]:
        return partial(to_come, turns(permits))

    def score(self, permit: Permit) -> tuple[int, int]:
        return score(permit)

    def pauses(self, permit: Permit) -> bool:
        """Pause an annotator who fails too many gold answers. Return whether they are paused now.

        Only answers since they began, or since their last pause was lifted, count.
        """
        right, asked = score(permit)
        if not permit.is_paused and pauses(right, asked, rule(permit.task)):
            stop(permit, right, asked)
            return True
        return permit.is_paused


def _of_pots(adjudicates: bool, takes_disturbing: bool) -> Callable[..., list[Any]]:
    @prepared
    def pots(task, annotator, language, work) -> QuerySet[Unit]:
        """Return the gold answers of a language that a person can get.

        Each row has the unit, the id of its item, whether the person has or has returned it, and the number of other
        people who were shown it and have not answered the unit of work.
        """
        answered = Judgment.objects.filter(unit=work).order_by().values("annotator")
        met = Lease.objects.filter(unit=OuterRef("pk")).exclude(annotator=annotator).exclude(annotator__in=answered)
        given = Lease.objects.filter(unit=OuterRef("pk"), annotator=annotator, instead_of__isnull=False)
        given = given.filter(Q(closed_at=None) | Q(outcome__in=Lease.RETURNED))
        hidden = Unit.objects.filter(task=task, honeypot=True, language=language).order_by()
        left = unjudged_by(hidden, annotator, adjudicates=adjudicates, takes_disturbing=takes_disturbing)
        # Counted, because PostgreSQL would turn EXISTS into a join.
        number = met.order_by().values("unit").annotate(number=Count("pk")).values("number")
        left = left.annotate(given=Exists(given), met=Coalesce(Subquery(number), 0))
        return left.values_list("pk", "item__key", "given", "met")

    return pots


_pots = {own: _of_pots(*own) for own in product((False, True), repeat=2)}


def _what_comes(
    leases: list[Lease], own: list[Lease], *, unit: Unit, due: Sequence[int], pots: Collection[int], turn: Turn
) -> Place:
    """Return what the annotator is shown at the place of a unit of work.

    This is the first of the following: what the annotator returned there, without a draw; the gold answer that is due;
    a gold answer that someone else returned there, which replaces the unit and counts as work in the draw; the unit.

    leases: all leases of the unit.
    own: those of the annotator.
    unit: the unit of work.
    due: gold answers to choose from if one is due, in order.
    pots: all gold answers that the annotator can get.
    turn: state of the annotator's draw.
    """
    stood = {lease.unit_id for lease in leases}.intersection(pots)
    waiting = {pk for pk in stood if free_place(unit, leases, stand_in=pk) is not None}
    back = _last_returned(own)
    if back and (back.unit_id == unit.pk or back.unit_id in waiting):
        return Place(back.unit_id, {"turn": None, "in_place": back.in_place})
    if due:
        # Prefer one that has not replaced the unit before, because other people's answers to it would count.
        return Place(min(due, key=lambda pk: pk in stood), {"turn": turn})
    if theirs := _last_returned(each for each in leases if each.unit_id in waiting):
        return Place(theirs.unit_id, {"turn": turn, "in_place": True})
    return Place(unit.pk, {"turn": turn})


def _last_returned(leases: Iterable[Lease]) -> Lease | None:
    """Return the lease that was returned last; None if there is none."""
    return max((each for each in leases if each.outcome in Lease.RETURNED), key=lambda each: each.pk, default=None)


# --- Record of what each person was given, for verification of the draws


def _gold_places(task: Task) -> Iterator[Line]:
    """Yield what each person was given in each language, in order."""
    pools: dict[str, list[str]] = {}
    for language, key in task.units.filter(honeypot=True).order_by("pk").values_list("language", "item__key"):
        pools.setdefault(language, []).append(key)
    flagged = Judgment.objects.filter(unit__task=task, unit__honeypot=True, kind=Judgment.FLAG).order_by("unit")
    disturbing = list(flagged.values_list("unit__item__key", flat=True).distinct())
    by_person = ("annotator__pseudonym", "queue")
    leases = Lease.objects.filter(unit__task=task).order_by(*by_person, "pk")
    rows = leases.values_list(*by_person, "turn", "in_place", "unit__honeypot", "unit__item__key")
    for (person, language), given in groupby(rows.iterator(READ), key=lambda row: row[:2]):
        entries = _entries((turn, in_place, key if honeypot else "") for *_, turn, in_place, honeypot, key in given)
        if entries and language in pools:
            own = [key for key in disturbing if key in pools[language]]
            how = {"disturbing": own} if own else {}
            annotator = Annotator.objects.values_list("pk", flat=True).get(pseudonym=person)
            elsewhere = task.units.hidden().filter(Seen("pk", annotator)).order_by("pk")
            if seen := [key for key in elsewhere.values_list("item__key", flat=True) if key in pools[language]]:
                how["seen_elsewhere"] = seen
            if passed_over := _passed_over(gold_order(task.lots, person, pools[language]), entries, [*own, *seen]):
                how["passed_over"] = passed_over
            yield draw_line(GOLD_PLACE, [person, language], how, pools[language], entries)


def _passed_over(order: list[str], entries: list[Any], never: list[str]) -> list[str]:
    """Return the gold answers that were skipped in the person's order, because other people had been shown them.

    order: gold answers in the order of the person's draw.
    entries: what the person was given, from `_entries`.
    never: gold answers that the person must not get.
    """
    met, found = set(never), dict[str, None]()
    for entry in entries:
        key = entry if isinstance(entry, str) else entry[3]
        if isinstance(key, str):
            found |= dict.fromkeys(each for each in order[: order.index(key)] if each not in met and key is not entry)
            met.add(key)
    return list(found)


def _entries(given) -> list[Any]:
    """Return what a person was given as entries of a draw.

    Consecutive units of work are one entry. A gold answer that replaced work is an entry of its own, and counts as work
    in the draw. Where there was no draw, only gold answers that are new to the person are listed.

    given: state of the draw, whether a gold answer replaced work, and id of the gold answer (empty for work).
    """
    found: list[Any] = []
    met: set[str] = set()
    for turn, in_place, key in given:
        if turn is None or in_place:
            found += [key] if key and key not in met else []
        if turn is None:
            pass
        elif key and not in_place:
            found.append([*turn, key])
        elif found and _goes_on(found[-1], turn):
            found[-1][3] += 1
        else:
            found.append([*turn, 1])
        met.add(key)
    return found


def _goes_on(entry: Any, turn: list[int]) -> bool:
    """Return whether a unit of work directly follows those of an entry."""
    if isinstance(entry, str) or isinstance(entry[3], str):
        return False
    given, known, size, number = entry
    return [given + number, known, size] == turn


# --- Items quoted in guidelines


EXAMPLE, GOLD_ANSWER = "guidelines", "gold_answer"
# Minimum number of letters and digits that identify an item in guidelines. They may contain "cheap flights" without
# quoting an item.
LEAST_LETTERS = 20
# Scripts without spaces between words: Thai and Lao, Myanmar, Khmer, Kana, Han.
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


def _is_quoted(values: list[str], texts: list[str]) -> bool:
    """Return whether one of the texts contains all values of an item, and these are long enough to identify it."""
    letters = sum(len(value) - value.count(" ") for value in values)
    return letters >= LEAST_LETTERS and any(all(f" {value} " in text for value in values) for text in texts)


def _words(text: str) -> str:
    """Reduce a text to letters and digits. Markdown, quotes and line breaks are not part of an example.

    Single spaces separate words, or characters if the script has no spaces.
    """
    return " ".join(re.sub(r"[\W_]+", " ", UNSPACED.sub(r" \g<0> ", text.casefold())).split())


register(GoldAnswers())
