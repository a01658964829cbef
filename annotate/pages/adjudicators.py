"""The adjudicators' pages: the list of cases, and the page of one unit."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.core.cache import cache
from django.core.paginator import Paginator
from django.db.models import Count, QuerySet
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from annotate.controls.pair_order import reply_sets, sides_of
from annotate.core import stages
from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.kinds.interface_language import label_name
from annotate.models import Annotator, Judgment, Task, Transition, Unit
from annotate.pages import case_summary, concept_picker
from annotate.pages.access import CONFLICT, UserRequest, may, status_of, whole_number
from annotate.pages.item_view import record
from annotate.pages.keyboard_shortcuts import adjudication_keys
from annotate.work import adjudication, answer_changes
from annotate.work.adjudication import check_may_adjudicate
from annotate.work.moves import labels_as_seen
from annotate.work.routes import is_language

# --- Content of the pages

# Kind of judgment -> text on the page.
DONE = {
    Judgment.ANSWER: gettext_lazy("answered"),
    Judgment.REPEAT: gettext_lazy("answered again"),
    Judgment.SKIP: gettext_lazy("skipped"),
    Judgment.FLAG: gettext_lazy("found it disturbing"),
    Judgment.SETTLE: gettext_lazy("decided"),
    Judgment.DISCARD: gettext_lazy("discarded"),
}
# Kind of case -> text on the page.
CASES = {
    adjudication.BLIND: gettext_lazy("checked blind"),
    adjudication.UNANSWERED: gettext_lazy("skipped by all"),
    adjudication.AGREEING: gettext_lazy("all answered the same"),
    adjudication.DIFFERING: gettext_lazy("answers differ"),
}


def dossier(unit: Unit, annotator: Annotator, posted: QueryDict | None = None) -> dict[str, Any]:
    """Return the template context that shows a unit to an adjudicator.

    In a blind review, votes and judgments are hidden, because they would bias the adjudicator. They stay hidden after
    the decision, because it can still be undone. While the task is open, events after the adjudicator's own decision
    are hidden too.

    posted: submitted values of the unit's form if it is shown again
    """
    blind, kind = adjudication.is_blind(unit, annotator), unit.task.kind
    judgments: list[Any] = list(unit.judgments.select_related("annotator__user", "lease"))
    own_judgment = unit.judgments.live().filter(annotator=annotator).first()
    moves = unit.transitions.select_related("by", "judgment__annotator")
    decided = adjudication.own_decision(unit, annotator)
    if decided:
        judgments = [judgment for judgment in judgments if judgment.pk <= decided.pk]
        moves = moves.exclude(at__gte=decided.answered_at)
    if unit.stage == stages.ADJUDICATION and not own_judgment:
        check_may_adjudicate(annotator, unit.task, opens_unit=True)
    stored = [
        *(judgment.label for judgment in judgments),
        own_judgment.label if own_judgment else "",
        (decided or unit).label,
    ]
    *labels, own_label, label = labels_as_seen(annotator, ((unit, text) for text in stored))
    for judgment, as_seen in zip(judgments, labels, strict=True):
        judgment.seen = as_seen
    advice = kind.pages.advise(unit, case_summary.usual_languages(unit.task, annotator) if blind else None)
    compared_sets = reply_sets(sides_of(annotator, unit), unit.item, kind)
    return {
        "blind": blind,
        "decides": True,
        **({} if blind else _history(unit, annotator, judgments, moves)),
        "detectors_say": case_summary.describe_votes(advice.get("votes", ())),
        **record(unit.item, kind, may_hurt=unit.disturbing),
        **compared_sets,
        "shared": case_summary.shared_replies(compared_sets.get("sets", ())),
        **advice,
        **concept_picker.decision_panel(unit, annotator, blind, posted),
        "own_judgment": own_judgment,
        "own_answer": kind.in_words(own_label, unit),
        "taken_back": _withdrawn_label(judgments, annotator),
        "of_one_text": [] if blind else _cases_with_same_text(unit, annotator),
        "copies": 0 if blind else unit.copies.count(),
        "label": label,
        "came_to": kind.in_words(label, unit),
        "open": unit.stage == stages.ADJUDICATION and not decided,
    }


def _withdrawn_label(judgments: Iterable[Any], annotator: Annotator) -> str:
    """Return the label of the adjudicator's last decision if it was undone, as shown to the adjudicator; else ""."""
    decisions = [row for row in judgments if row.annotator_id == annotator.pk and row.kind == Judgment.SETTLE]
    last = decisions[-1] if decisions else None
    return last.seen if last and last.voided_at and not last.voided_by_id else ""


def _history(unit: Unit, annotator: Annotator, judgments: Iterable[Any], moves: Iterable[Transition]) -> dict[str, Any]:
    """Return the template context with the history of a unit.

    judgments: judgments with the attribute `seen`, the label as the adjudicator sees it
    """
    kind, changes = unit.task.kind, list(answer_changes.changes_of(unit))
    labels = labels_as_seen(annotator, ((unit, change.label) for change in changes))
    judgment_list = list(judgments)
    return {
        "why": case_summary.summary(unit, judgment_list, moves),
        **case_summary.comparison(unit, judgment_list),
        "judgments": [
            (judgment, DONE[judgment.kind], kind.in_words(judgment.seen, unit)) for judgment in judgment_list
        ],
        "changes": [(change, kind.in_words(label, unit)) for change, label in zip(changes, labels, strict=True)],
        "history": [(move, case_summary.event_text(move)) for move in moves],
    }


def _cases_with_same_text(unit: Unit, annotator: Annotator) -> list[tuple[Unit, list[tuple[str, str]]]]:
    """Return the other cases with the same text, as (unit, cells) tuples.

    `cells` is the unit's row in the list of cases, as (heading, text) tuples.
    """
    cases = adjudication.with_same_text(unit, annotator, label_name)
    return [(other, list(zip(other.task.kind.pages.list_heads, cells, strict=True))) for other, cells in cases]


@dataclass(frozen=True)
class Row:
    """A unit in the list of cases.

    cells: texts in the columns that the kind defines; empty if the unit is reviewed blind
    agreed: the answer that all annotators gave, which a bulk decision can confirm; empty if the answers differ
    """

    unit: Unit
    cells: list[str]
    agreed: str = ""

    @property
    def text(self) -> str:
        return self.unit.one_line_text

    @property
    def mark(self) -> str:
        """The value of the row's checkbox: the unit's primary key and the answer that all annotators gave."""
        return f"{self.unit.pk} {self.agreed}"

    @property
    def answer(self) -> str:
        return self.unit.task.kind.in_words(self.agreed, self.unit)


def waiting_rows(units: Iterable[Unit], annotator: Annotator) -> list[Row]:
    unit_list = list(units)
    agreed = adjudication.agreed_labels(unit_list, annotator)
    return [
        Row(unit, cells, agreed.get(unit.pk, "")) for unit, cells in adjudication.rows(unit_list, annotator, label_name)
    ]


def decided_rows(judgments: Iterable[Judgment], annotator: Annotator, task: Task) -> list[tuple[Judgment, str, str]]:
    """Return an adjudicator's decisions as (decision, text of the unit, label) tuples."""
    decisions = list(judgments)
    labels = labels_as_seen(annotator, ((decision.unit, decision.label) for decision in decisions))
    return [
        (judgment, judgment.unit.one_line_text, task.kind.in_words(label, judgment.unit) if label else "")
        for judgment, label in zip(decisions, labels, strict=True)
    ]


def decision_text(judgment: Judgment, task: Task) -> str:
    if judgment.kind == Judgment.DISCARD:
        return _("Discarded.")
    [label] = labels_as_seen(judgment.annotator, [(judgment.unit, judgment.label)])
    return _("Decided: %(label)s.") % {"label": task.kind.in_words(label, judgment.unit)}


@dataclass(frozen=True)
class CaseFilter:
    """A filter for the list of cases. An empty field matches all cases.

    language: language of a queue that the unit has been in
    case: kind of case (a key of CASES)
    """

    language: str = ""
    case: str = ""

    @classmethod
    def from_query(cls, sent: QueryDict) -> "CaseFilter":
        """Read the filter from the query string of a URL.

        Blind reviews can't be filtered by language, so a filter for them ignores the language.
        """
        language, case = sent.get("language", ""), sent.get("case", "")
        case_filter = cls(language if is_language(language) else "", case if case in adjudication.CASES else "")
        return replace(case_filter, language="") if case_filter.case == adjudication.BLIND else case_filter

    def query(self, **more: Any) -> str:
        """Return the filter as a query string with its question mark, or an empty string for an empty filter.

        more: other parameters
        """
        parameters = {"language": self.language, "case": self.case} | more
        encoded = urlencode({name: value for name, value in parameters.items() if value})
        return f"?{encoded}" if encoded else ""

    def units(self, task: Task, annotator: Annotator) -> QuerySet[Any]:
        return adjudication.to_adjudicate(task, annotator, self.language, self.case)

    def order(self, task: Task, annotator: Annotator) -> case_summary.Order:
        """Return the sort key and the primary key of each unit, in order."""
        if self == CaseFilter():
            return case_summary.order(task, annotator)
        return adjudication.sort_keys(self.units(task, annotator), annotator)


LONG = 1_000  # minimum number of cases for caching the filters' counts
KEPT = 30  # lifetime of cached counts, in seconds


def _counts(task: Task, annotator: Annotator, case: str) -> tuple[Counter[str], Counter[str]]:
    """Count an adjudicator's cases, first by kind of case, then by the language of their queues.

    case: the kind of case to count by language (a key of CASES); "" for all
    """
    key = f"cases-{task.pk}-{annotator.pk}-{case}"
    cached: tuple[Counter[str], Counter[str]] | None = cache.get(key)
    if cached:
        return cached
    everything = adjudication.to_adjudicate(task, annotator)
    cases = Counter(dict(everything.values_list("case").annotate(Count("pk")).order_by("case")))
    visible = CaseFilter(case=case).units(task, annotator).filter(blind=False).order_by().values("pk")
    visited = Transition.objects.filter(unit__in=visible, to_stage=stages.QUEUED).order_by("language")
    languages = Counter(dict(visited.values_list("language").annotate(Count("unit", distinct=True))))
    if cases.total() >= LONG:
        cache.set(key, (cases, languages), KEPT)
    return cases, languages


def filters(task: Task, annotator: Annotator, case_filter: CaseFilter) -> dict[str, Any]:
    """Return the template context with the filters by kind of case and by language.

    Each filter is a (text, number of units, query string, is_selected) tuple. Filters with more units come first. If a
    kind of case is selected, the languages' numbers include only cases of this kind.
    """
    cases, languages = _counts(task, annotator, case_filter.case)
    return {
        "waiting": cases.total(),
        "cases": [
            (CASES[case], number, CaseFilter("", case).query(), case == case_filter.case)
            for case, number in cases.most_common()
        ],
        "languages": [
            (label_name(code), number, replace(case_filter, language=code).query(), code == case_filter.language)
            for code, number in languages.most_common()
        ],
    }


def place(unit: Unit, annotator: Annotator, case_filter: CaseFilter) -> dict[str, Any]:
    """Return the position of a unit in the filtered list.

    Keys of the result:
    number: position of the unit, starting at 1; None if the unit is not in the list
    of: length of the list
    previous, next: primary keys of the units before and after it; None at the ends of the list
    first: primary key of the list's first unit, not counting this unit; None if there are no other units
    """
    positions, own_position = case_filter.order(unit.task, annotator), adjudication.sort_key(unit, annotator)
    index = bisect_left(positions, (own_position,))
    is_listed = index < len(positions) and positions[index][1] == unit.pk
    after = index + is_listed
    return {
        "number": index + 1 if is_listed else None,
        "of": len(positions),
        "previous": positions[index - 1][1] if index else None,
        "next": positions[after][1] if after < len(positions) else None,
        "first": next((key for _, key in positions if key != unit.pk), None),
    }


def next_to_adjudicate(task: Task, case_filter: CaseFilter, place: dict[str, Any], decided: Judgment) -> str:
    """Return the URL of the next unit in the filtered list. If it has no other units, return the list's own URL.

    After the last unit, the list starts again with the units that the adjudicator has skipped.

    place: result of `place` before the decision, because the decision can change the list
    """
    unit = place["next"] or place["first"]
    address = reverse("adjudicate", args=[task.name, unit]) if unit else reverse("adjudication", args=[task.name])
    return address + case_filter.query(decided=decided.unit_id)


def settled_text(count: int) -> str:
    sentence = ngettext("%(count)s case has been decided.", "%(count)s cases have been decided.", count)
    return sentence % {"count": f"{count:,}"}


def waiting_for_others(count: int) -> str:
    """Return a note about cases that only another adjudicator may decide; "" if there are none.

    count: number of such cases
    """
    if not count:
        return ""
    sentence = ngettext(
        "%(count)s case is waiting for another adjudicator, because you have judged it.",
        "%(count)s cases are waiting for another adjudicator, because you have judged them.",
        count,
    )
    return sentence % {"count": f"{count:,}"}


def settle_together(request: UserRequest, annotator: Annotator, task: Task) -> HttpResponse:
    """Settle each selected case with the answer that all its annotators gave.

    POST fields:
    case: value of a selected checkbox (Row.mark); repeated for each selected row
    reason: reason for the decisions
    """
    marks = (sent.partition(" ") for sent in request.POST.getlist("case"))
    labels = {unit: label for key, _, label in marks if (unit := whole_number(key)) is not None}
    try:
        outcome = adjudication.settle_together(annotator, task, labels, request.POST.get("reason", ""))
    except InvalidAnswer as error:
        return cases(request, annotator, task, refusal=error)
    if outcome.refused:
        return cases(request, annotator, task, outcome=outcome)
    case_filter = CaseFilter.from_query(request.GET)
    return redirect(reverse("adjudication", args=[task.name]) + case_filter.query(settled=len(outcome.settled)))


def cases(
    request: UserRequest,
    annotator: Annotator,
    task: Task,
    *,
    refusal: Exception | None = None,
    outcome: adjudication.BulkResult | None = None,
) -> HttpResponse:
    """Show the list of cases.

    refusal: error to show
    outcome: result of settling cases in bulk, if some were refused
    """
    case_filter = CaseFilter.from_query(request.GET)
    # Sort only keys. To sort whole rows, the database would have to read the texts of all cases.
    page = Paginator([key for _, key in case_filter.order(task, annotator)], 50).get_page(request.GET.get("page"))
    units = adjudication.units_in_order(page, annotator)
    rows = waiting_rows(units, annotator)
    number = len(outcome.settled) if outcome else whole_number(request.GET.get("settled"))
    context = {
        "task": task,
        "query": case_filter.query(),
        **filters(task, annotator, case_filter),
        "for_another": waiting_for_others(adjudication.visible_for_others(task, annotator)),
        "heads": () if all(unit.blind for unit in units) else task.kind.pages.list_heads,
        "page": page,
        "rows": rows,
        "some_agree": any(row.agreed for row in rows),
        "some_blind": any(unit.blind for unit in units),
        "manages": not rows and may(request.user, "manage", task.name),
        "decides": not rows and may(request.user, "decide", task.name),
        "own_reasons": adjudication.own_reasons(annotator, task),
        "posted": request.POST,
        "marked": request.POST.getlist("case"),
        "refusal": refusal,
        "settled": settled_text(number) if number else "",
        "refused": outcome.refused if outcome else [],
        "decided": decided_rows(adjudication.decisions(annotator, task)[:50], annotator, task),
        **_decision_context(request, annotator, task),
    }
    status = CONFLICT if outcome else status_of(refusal)
    return render(request, "annotate/adjudication.html", context, status=status)


def adjudicate(request: UserRequest, annotator: Annotator, task: Task, unit: int) -> HttpResponse:
    """Show a unit to adjudicate, or settle or discard it and continue with the next one.

    Units that can still be assigned to annotators are not shown.
    """
    case = adjudication.visible_unit(task, annotator, unit)
    if request.method == "GET":
        return _case_page(request, annotator, case)
    if "do" in request.POST:
        return _update_picker(request, annotator, case)
    case_filter = CaseFilter.from_query(request.GET)
    place_before = place(case, annotator, case_filter)
    try:
        judgment = _decide(request, annotator, case)
    except InvalidAnswer as error:
        return _case_page(request, annotator, case, error)
    return redirect(next_to_adjudicate(task, case_filter, place_before, judgment))


def _decide(request: UserRequest, annotator: Annotator, unit: Unit) -> Judgment:
    discard = "discard" in request.POST
    sent = [] if discard else request.POST.getlist("answer") or [request.POST.get("label", "")]
    reason, comment = request.POST.get("reason", ""), request.POST.get("comment", "")
    details = unit.task.kind.form.details(request.POST)
    answer = adjudication.read_decision(unit.task.kind, sent, reason, comment, **details)
    if discard:
        return adjudication.discard(annotator, unit.pk, answer.reason, answer.comment)
    return adjudication.settle(annotator, unit.pk, answer)


def _case_page(
    request: UserRequest, annotator: Annotator, unit: Unit, refusal: Exception | None = None
) -> HttpResponse:
    task, posted = unit.task, request.POST if request.method == "POST" else None
    case_filter = CaseFilter.from_query(request.GET)
    context = {
        "task": task,
        "query": case_filter.query(),
        "place": place(unit, annotator, case_filter),
        "unit": unit,
        "refusal": refusal,
        "keys": adjudication_keys(task),
        "posted": request.POST,
        "own_reasons": adjudication.own_reasons(annotator, task),
        **dossier(unit, annotator, posted),
        **_decision_context(request, annotator, task),
    }
    return render(request, task.kind.pages.adjudication, context, status=status_of(refusal))


def _update_picker(request: UserRequest, annotator: Annotator, case: Unit) -> HttpResponse:
    """Run a command of the concept picker, such as a search, and show the picker again. Nothing is stored."""
    if case.task.vocabulary_id is None:
        raise NotFound(_("This task has a fixed list of labels, which cannot be searched."))
    if request.htmx:
        panel = concept_picker.decision_panel(case, annotator, adjudication.is_blind(case, annotator), request.POST)
        return render(request, "annotate/_chosen_and_found.html", panel)
    return _case_page(request, annotator, case)


def _decision_context(request: UserRequest, annotator: Annotator, task: Task) -> dict[str, Any]:
    """Return the template context with the adjudicator's latest decision, which can be undone."""
    unit = whole_number(request.GET.get("decided"))
    judgment = adjudication.decisions(annotator, task).filter(unit=unit).first() if unit is not None else None
    return {"latest_decision": judgment, "latest_decision_text": decision_text(judgment, task) if judgment else ""}


def unsettle(request: UserRequest, annotator: Annotator, task: Task, unit: int) -> HttpResponse:
    get_object_or_404(task.units, pk=unit)
    adjudication.unsettle(annotator, unit)
    return redirect("adjudicate", task=task.name, unit=unit)
