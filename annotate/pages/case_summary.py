"""Cases in the adjudication view: why they need a decision, how their answers differ, and their order.

Summaries must not be shown for units that are reviewed blind. Annotators appear under pseudonyms, so that decisions
don't depend on who gave an answer.
"""

from bisect import insort
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from django.db.models import Count, Max, QuerySet
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotate.core import stages
from annotate.kinds.interface_language import label_name
from annotate.models import Annotator, AnnotatorLanguage, Judgment, Task, Transition, Unit
from annotate.work.adjudication import SortKey, sort_keys

MOST_CHARACTERS = 80  # maximum length of an answer in the summary of a case
MOST_OFFERED = 9  # number of languages, one for each digit key
COMMON = 5  # minimum number of agreed units for offering a language, so that the offer reveals nothing about one unit
# Event that sends a unit to an adjudicator -> why the unit needs a decision.
REASONS = {
    "exhausted": gettext_lazy("No reader left."),
    "conflicted": gettext_lazy("Answers differ."),
    "named": gettext_lazy("No other reader for the named language."),
    "changed": gettext_lazy("An answer was changed."),
}
# Event -> its description in the history of a case.
EVENTS = {
    "disputed": gettext_lazy("Detectors disagree"),
    "asked": gettext_lazy("Opened"),
    "contested": gettext_lazy("Too many labels of the language may be wrong"),
    "skipped": gettext_lazy("Skipped"),
    "named": gettext_lazy("Another language was named"),
    "rerouted": gettext_lazy("No reader left in the queue"),
    "exhausted": gettext_lazy("No reader left"),
    "conflicted": gettext_lazy("Answers differ"),
    "changed": gettext_lazy("An answer was changed"),
    "undone": gettext_lazy("Answer undone"),
    "reopened": gettext_lazy("Answers voided by a manager"),
    "resumed": gettext_lazy("Task reopened"),
    "settled": gettext_lazy("Decided"),
    "discarded": gettext_lazy("Discarded"),
    "unsettled": gettext_lazy("Decision undone"),
}


def usual_languages(task: Task, annotator: Annotator) -> list[str]:
    """Return the languages that are offered first when an adjudicator reviews a unit blind.

    The languages that the adjudicator reads come first, best first, followed by the languages with the most readers
    and the languages that the detectors often agree on. The list must not reveal anything about the unit or its
    queue, votes and answers. Therefore, languages of only a few units are left out, and languages are not sorted by
    their number of units.
    """
    own_levels = dict(annotator.languages.values_list("language", "level"))
    readers = AnnotatorLanguage.objects.filter(language__in=task.labels).order_by()
    counts = dict(readers.values_list("language").annotate(Count("pk")))
    common = set()
    if len({*task.labels} & {*own_levels, *counts}) < MOST_OFFERED:
        agreed = task.units.exclude(agreed_label="").order_by().values_list("agreed_label")
        common = {code for code, number in agreed.annotate(Count("pk")) if number >= COMMON}

    def order(code: str) -> tuple[int, int, bool]:
        return -own_levels.get(code, 0), -counts.get(code, 0), code not in common

    return sorted(task.labels, key=order)[:MOST_OFFERED]


def event_text(move: Transition) -> str:
    """Describe a move. If the unit went to a queue, the text names the queue's language and the round."""
    event = EVENTS.get(move.event) or _(stages.describe_move(move.from_stage, move.event, move.to_stage))
    if move.to_stage != stages.QUEUED:
        return str(event)
    values = {"event": event, "language": label_name(move.language), "number": move.round}
    return _("%(event)s; sent to readers of %(language)s, round %(number)s") % values


def summary(unit: Unit, judgments: Iterable[Any], moves: Iterable[Transition]) -> list[str]:
    """Return sentences on why a unit needs a decision and who gave which answer.

    judgments: judgments with an attribute `seen`, the label as the adjudicator sees it
    """
    events = [move.event for move in moves if move.to_stage == stages.ADJUDICATION and move.event in REASONS]
    live = [judgment for judgment in judgments if judgment.voided_at is None]
    answered: dict[str, list[str]] = {}
    for judgment in live:
        if judgment.kind == Judgment.ANSWER:
            answered.setdefault(judgment.seen, []).append(_person(judgment))
    in_words = unit.task.kind.in_words
    sentences = [str(REASONS[events[-1]])] if events else []
    sentences += [f"{shorten(in_words(label, unit))}: {', '.join(people)}." for label, people in answered.items()]
    for kind, sentence in (
        (Judgment.SKIP, gettext_lazy("Skipped by %(people)s.")),
        (Judgment.FLAG, gettext_lazy("Found disturbing by %(people)s.")),
    ):
        if people := [_person(judgment) for judgment in live if judgment.kind == kind]:
            sentences.append(sentence % {"people": ", ".join(people)})
    return sentences


def shorten(answer: str) -> str:
    """Truncate a long answer, such as one with many spans. Close the Unicode isolates that the cut leaves open."""
    beginning = Truncator(answer).chars(MOST_CHARACTERS)
    return beginning + "\u2069" * (beginning.count("\u2068") - beginning.count("\u2069"))


def _person(judgment: Judgment) -> str:
    pseudonym = judgment.annotator.pseudonym
    return f"{pseudonym} ({label_name(judgment.lease.queue)})" if judgment.lease else pseudonym


def describe_votes(votes: Iterable[tuple[str, Sequence[Any]]]) -> str:
    """Return a sentence with the detectors' first choices and their counts; "" if no detector voted."""
    first = Counter(label_name(ranked[0][0]) for _detector, ranked in votes if ranked)
    languages = ", ".join(f"{language} {count}" for language, count in first.most_common())
    return _("Detectors: %(languages)s.") % {"languages": languages} if languages else ""


def shared_replies(sets: Sequence[tuple[Any, list[str]]]) -> set[str]:
    """Return the replies that both sets contain.

    sets: the two compared sets as (answer, replies) tuples
    """
    return set.intersection(*(set(replies) for _option, replies in sets)) if sets else set()


@dataclass(frozen=True)
class ComparedLabel:
    """A row of the table that compares answers.

    name: name of a label
    contains: whether each answer contains the label
    """

    name: str
    contains: list[bool]

    @property
    def differs(self) -> bool:
        return not all(self.contains)

    @property
    def count(self) -> int:
        return sum(self.contains)


def comparison(unit: Unit, judgments: Iterable[Any]) -> dict[str, Any]:
    """Return the template context that compares a unit's answers side by side; empty for fewer than two answers.

    judgments: as in `summary`
    """
    answers = [judgment for judgment in judgments if judgment.voided_at is None and judgment.kind == Judgment.ANSWER]
    if len(answers) < 2:
        return {}
    kind = unit.task.kind
    labels_of = [kind.form.facets(answer.seen) for answer in answers]
    labels = dict.fromkeys(label for labels in labels_of for label in labels)
    rows = [ComparedLabel(kind.in_words(label, unit), [label in labels for labels in labels_of]) for label in labels]
    return {"compared_answers": answers, "compared": sorted(rows, key=lambda row: (not row.differs, -row.count))}


# --- The order of the cases that wait for an adjudicator.
#
# Sorting tens of thousands of cases takes longer than showing a case. Each process therefore caches the order of a few
# long lists. Before using a cached order, it finds the cases that have had a transition since then, and sorts only
# these cases again.


LONG = 1_000  # minimum number of cases in a cached list
KEPT = 4  # maximum number of cached lists

Order = list[tuple[SortKey, int]]  # the sort key and the primary key of each case, in order
# (task, adjudicator) -> the last transition when the list was read, and the list.
_cached_orders: OrderedDict[tuple[int, int], tuple[int, Order]] = OrderedDict()
_lock = Lock()


def order(task: Task, annotator: Annotator) -> Order:
    """Return all cases that an adjudicator may decide, sorted as by `to_adjudicate`."""
    key, waiting = (task.pk, annotator.pk), task.units.filter(stage=stages.ADJUDICATION)
    last = Transition.objects.aggregate(last=Max("pk"))["last"] or 0
    read_until, cases = _cached_orders.get(key, (last + 1, []))
    if read_until <= last:
        cases = _update_order(cases, waiting, annotator, read_until)
    # A transition that was committed late can have a smaller key than `last` had, so that it was missed.
    if read_until > last or len(cases) != waiting.count():
        cases = sort_keys(waiting, annotator)
    with _lock:
        if len(cases) >= LONG:
            _cached_orders[key] = last, cases
            _cached_orders.move_to_end(key)
        while len(_cached_orders) > KEPT:
            _cached_orders.popitem(last=False)
    judgments = Judgment.objects.binding().filter(annotator=annotator, unit__task=task, unit__stage=stages.ADJUDICATION)
    judged = set(judgments.order_by().values_list("unit_id", flat=True))
    return [case for case in cases if case[1] not in judged] if judged else cases


def _update_order(cases: Order, waiting: QuerySet[Unit], annotator: Annotator, read_until: int) -> Order:
    """Move cases with new transitions to their new positions. Remove cases that no longer wait.

    read_until: last transition that the list reflects
    """
    recent = Transition.objects.filter(pk__gt=read_until).order_by()
    moved = set(recent.values_list("unit_id", flat=True))
    cases = [case for case in cases if case[1] not in moved] if moved else cases
    for case in sort_keys(waiting.filter(pk__in=moved), annotator):
        insort(cases, case)
    return cases
