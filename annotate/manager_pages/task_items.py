"""Managers' pages for a task's items: the list with filters, an item's history, flags and notes.

The pages show votes, hidden gold answers and all annotators' answers, so annotators have no access to them.

The cost of a page of the list doesn't depend on the number of units: the list follows the index of queues, and a search
for words reads at most SCANNED units before it continues on the next page.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count, F, Q, QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode

from annotate.actions.user_accounts import FAILED, REFUSED, mail_reply
from annotate.core import stages
from annotate.core.refusals import InvalidAnswer
from annotate.figures.figure_cache import StatisticsPending, figures, forget
from annotate.figures.progress_report import PARTS
from annotate.kinds.interface_language import label_name
from annotate.manager_pages.dashboard import manage_page, redirect_with_message
from annotate.models import Flag, Judgment, Task, Unit
from annotate.pages.access import UserRequest, may, text_of, whole_number
from annotate.pages.adjudicators import DONE
from annotate.pages.item_view import record
from annotate.reports.numbers import percent
from annotate.work import answer_changes, flags
from corpora.core.voters import ballots
from corpora.models import Item

ON_A_PAGE = 30  # maximum number of units on a page
SCANNED = 2_000  # maximum number of units that a search reads for a page
MOST_LABELS = 12  # maximum number of labels in the distribution
MOST_CHOICES = 200  # maximum number of labels in the filter
STATES = {**dict(PARTS), stages.COPIED: "copies of other items", stages.NEW: "not sent yet"}


# --- Items of a task


class Place(NamedTuple):
    """The position of a unit in the list, which is sorted like the index of queues."""

    stage: str
    language: str
    position: int
    pk: int

    def __str__(self) -> str:
        return ".".join(map(str, self))


def parse_place(text: str) -> Place | None:
    """Parse a position from a URL. Return None if the text is not a position."""
    match = re.fullmatch(r"([A-Z]{1,16})\.([\w-]{0,16})\.(\d{1,18})\.(\d{1,18})", text, re.ASCII)
    return Place(match[1], match[2], int(match[3]), int(match[4])) if match else None


@dataclass(frozen=True)
class Filter:
    """A filter for the list of units. Empty fields match all units.

    state: stage of the unit
    language: the unit's current or last queue
    label: one of the unit's labels
    words: the item's id, or words of its text
    """

    state: str = ""
    language: str = ""
    label: str = ""
    words: str = ""


def page_of(task: Task, chosen: Filter, after: Place | None) -> tuple[list[tuple[Unit, int]], Place | None]:
    """Return a page as (unit, number of answers) tuples, and the position after which the next page begins.

    The position is None if no units follow. If the search terms are an item's id, its units come first.

    after: position after which the page begins; None for the first page
    """
    units = _filter_units(task, chosen)
    limit = SCANNED if chosen.words else ON_A_PAGE + 1
    places = list(_places(units, after, limit))
    rows = Unit.objects.order_by(*Place._fields).select_related("item", "task")
    matches, named = rows.filter(pk__in=[place.pk for place in places]), list[Unit]()
    if chosen.words:
        matches = matches.filter(item__text__icontains=chosen.words).exclude(item__key=chosen.words)
        named = list(rows.filter(pk__in=_find_by_id(task, units, chosen.words))) if after is None else []
    listed = list(matches[: ON_A_PAGE + 1])
    units_shown = [*named, *listed[:ON_A_PAGE]]
    answers = Judgment.objects.live().answers().filter(unit__in=units_shown).order_by()
    counts = dict(answers.values_list("unit").annotate(Count("pk")))
    shown = [(unit, counts.get(unit.pk, 0)) for unit in units_shown]
    if len(listed) > ON_A_PAGE:
        last = units_shown[-1]
        return shown, Place(last.stage, last.language, last.position, last.pk)
    return shown, places[-1] if chosen.words and len(places) == SCANNED else None


def _filter_units(task: Task, chosen: Filter) -> QuerySet[Unit]:
    units = task.units.work()
    if chosen.state:
        units = units.filter(stage=chosen.state)
    if chosen.language:
        units = units.filter(language=chosen.language)
    if chosen.label and task.kind.form.several:
        units = units.filter(
            stage=stages.LABELLED, label__regex=rf"(^| )([0-9]+:[0-9]+:)?{re.escape(chosen.label)}( |$)"
        )
    elif chosen.label:
        # There may be millions of auto-labelled units, so use the index of agreed labels for them.
        agreed = Q(stage=stages.AGREED, agreed_label=chosen.label)
        units = units.filter(agreed | Q(stage=stages.LABELLED), label=chosen.label)
    return units


def _places(units: QuerySet[Unit], after: Place | None, limit: int) -> Iterator[Place]:
    """Yield the positions of the first units after a position. Each query reads a range of the index."""
    keys, parts = Place._fields, [units]
    if after is not None:
        parts = [
            units.filter(**dict(zip(keys[:number], after, strict=False)), **{f"{keys[number]}__gt": after[number]})
            for number in reversed(range(len(keys)))
        ]
    for part in parts:
        rows = list(part.order_by(*keys).values_list(*keys)[:limit])
        limit -= len(rows)
        yield from map(Place._make, rows)
        if not limit:
            return


def _find_by_id(task: Task, units: QuerySet[Unit], key: str) -> list[int]:
    items = Item.objects.filter(corpus__in=task.draws.values("corpus"), key=key)
    return list(units.filter(item__in=items).values_list("pk", flat=True))


def composition(task: Task) -> dict[str, Any]:
    """Count the units by state, queue and label.

    The result has `states`, `languages` and `labels`, which map codes to unit counts, and `labelled`, the number
    of units with a label. A unit with several labels counts for each of them.
    """
    units, states, languages = task.units.work().order_by(), Counter[str](), Counter[str]()
    for stage, language, number in units.values_list("stage", "language").annotate(Count("pk")):
        states[stage] += number
        languages[language] += number
    del languages[""]
    labels = Counter[str]()
    for label, number in units.filter(stage__in=stages.WITH_LABEL).values_list("label").annotate(Count("pk")):
        labels.update(dict.fromkeys(task.kind.form.counted(label), number))
    labelled = sum(states[stage] for stage in stages.WITH_LABEL)
    return {"states": states, "languages": languages, "labels": labels, "labelled": labelled}


# --- Pages

FILTERS = tuple(field.name for field in fields(Filter))


def items(request: UserRequest, task: Task) -> HttpResponse:
    """List the items of a task.

    ?state=, ?language=, ?label=, ?words=: list only the items that match the filter
    ?after=: position after which the page begins
    """
    chosen = Filter(*(text_of(request.GET, name) for name in FILTERS))
    units, following = page_of(task, chosen, parse_place(request.GET.get("after", "")))
    try:
        counts, counted_at = figures("items", task, partial(composition, task))
    except StatisticsPending:
        counts, counted_at = None, None
    return manage_page(
        request,
        "items",
        task,
        counted_at=counted_at,
        chosen=chosen,
        rows=[_row(unit) | {"answers": answers} for unit, answers in units],
        next=_query(chosen, after=str(following)) if following else "",
        is_continued="after" in request.GET,
        **_choices(task, chosen, counts),
    )


def _row(unit: Unit) -> dict[str, Any]:
    kind = unit.task.kind
    return {
        "unit": unit,
        "state": STATES[unit.stage],
        "label": kind.in_words(unit.label, unit) if unit.label else "",
        "queue": label_name(unit.asked or unit.language) if unit.asked or unit.language else "",
        "veiled": unit.disturbing or kind.sensitive is not None,
    }


def _query(chosen: Filter, **more: str) -> str:
    return f"?{urlencode({name: value for name, value in (asdict(chosen) | more).items() if value})}"


def _choices(task: Task, chosen: Filter, counts: dict[str, Any] | None) -> dict[str, Any]:
    """Return the template context with the filter's choices and the distribution of labels.

    counts: result of `composition`; None if it is not ready yet
    """
    if counts is None:
        return {"is_counting": True}
    labels = counts["labels"].most_common(MOST_CHOICES)
    return {
        "states": [(code, words, counts["states"][code]) for code, words in STATES.items() if counts["states"][code]],
        "languages": sorted((label_name(code), code, number) for code, number in counts["languages"].items()),
        "labels": [(label, task.kind.name(label), number) for label, number in labels],
        "labelled": counts["labelled"],
        "distribution": [
            (
                task.kind.name(label),
                number,
                percent(number / counts["labelled"]),
                _query(Filter(label=label)),
                label == chosen.label,
            )
            for label, number in labels[:MOST_LABELS]
        ],
        "different": len(counts["labels"]),
    }


# --- One item


def item(request: UserRequest, task: Task, unit: int) -> HttpResponse:
    """Show an item with the detectors' votes and its complete history."""
    shown = task.units.select_related("item", "task", "comparison", "copy_of__item").filter(pk=unit).first()
    if shown is None:
        raise Http404("This item does not exist.")
    kind = task.kind
    return manage_page(
        request,
        "item",
        task,
        **(_row(shown) | record(shown.item, kind, may_hurt=shown.disturbing) | _replies(shown)),
        votes=[
            (voter, [(label_name(str(code)), score) for code, score in votes])
            for voter, votes in ballots(shown.item.votes, shown.task.panel).items()
        ],
        declared=[kind.name(label) for label in shown.item.declared],
        known_answer=kind.in_words(shown.known_answer, shown) if shown.known_answer else "",
        agreed=kind.in_words(shown.agreed_label, shown) if shown.agreed_label else "",
        copies=shown.copies.count(),
        history=sorted(_events(shown), key=lambda event: event["at"]),
        changes=[
            (change.judgment.annotator, kind.in_words(change.label, shown), change)
            for change in answer_changes.changes_of(shown)
        ],
        decides=True,
    )


def _replies(unit: Unit) -> dict[str, Any]:
    """Return the template context with the replies of two systems; empty if the unit doesn't compare systems."""
    comparison = getattr(unit, "comparison", None)
    if comparison is None:
        return {}
    systems = ((comparison.system_a, comparison.replies_a), (comparison.system_b, comparison.replies_b))
    sets = [({"label": number, "name": name}, replies) for number, (name, replies) in enumerate(systems)]
    return {"sets": sets, "set_language": unit.item.language}


def _events(unit: Unit) -> Iterator[dict[str, Any]]:
    """Yield a unit's moves, judgments and flags as dicts with at, who, what, label, notes and is_voided."""
    kind = unit.task.kind

    def event(at: datetime, who: object, what: object, label: str = "", *notes: str, **more: Any) -> dict[str, Any]:
        label_text = kind.in_words(label, unit) if label else ""
        return {"at": at, "who": who, "what": what, "label": label_text, "notes": list(filter(None, notes)), **more}

    for move in unit.transitions.select_related("by"):
        what = stages.describe_move(move.from_stage, move.event, move.to_stage)
        queue = f"{label_name(move.language)}, round {move.round}" if move.to_stage == stages.QUEUED else ""
        who = move.by if move.by_id and not move.judgment_id else ""
        yield event(move.at, who, what, move.label, queue, state=STATES[move.to_stage])
    for judgment in unit.judgments.select_related("annotator__user", "voided_by"):
        voided = "discarded by a manager" if judgment.voided_by_id else "withdrawn" if judgment.voided_at else ""
        seconds = f"{judgment.active_seconds:.1f} s" if judgment.active_seconds else ""
        notes = (judgment.reason, judgment.comment, seconds, voided)
        yield event(
            judgment.answered_at,
            judgment.annotator,
            DONE[judgment.kind],
            judgment.label,
            *notes,
            is_voided=bool(voided),
        )
    for flag in Flag.objects.filter(unit=unit).select_related("annotator__user"):
        yield event(flag.at, flag.annotator, f"Flag: {KIND_NAMES[flag.kind]}", "", flag.words, flag.reply)


# --- Flags, questions and notes (work/flags.py)


FLAGS_ON_A_PAGE = 25
# Kind of flag -> its displayed name.
KIND_NAMES = {
    Flag.DISTURBING: "Disturbing",
    Flag.PERSONAL: "Personal data",
    Flag.BROKEN: "Broken text",
    Flag.QUESTION: "Question",
}


def questions(request: UserRequest) -> HttpResponse:
    """List the flags.

    ?kind=: list only flags of this kind
    ?task=: list only flags in the task with this name
    ?all=: also list resolved flags
    """
    kind, name, everything = (request.GET.get(name, "") for name in ("kind", "task", "all"))
    flags_shown = Flag.objects.active() if everything else Flag.objects.open()
    if kind in Flag.KINDS:
        flags_shown = flags_shown.filter(kind=kind)
    tasks = Task.objects.filter(units__flags__isnull=False).distinct()
    if task := next((task for task in tasks if task.name == name), None):
        flags_shown = flags_shown.filter(unit__task=task)
    listed = flags_shown.select_related("unit__item", "unit__task", "annotator__user", "settled_by", "example")
    page = Paginator(listed.order_by(F("settled_at").desc(nulls_first=True), "pk"), FLAGS_ON_A_PAGE).get_page(
        request.GET.get("page")
    )
    context: dict[str, Any] = {
        "page": page,
        "rows": _rows(page),
        "kind_names": KIND_NAMES,
        "kind": kind,
        "of": task,
        "tasks": tasks,
        "everything": everything,
        "decides": may(request.user, "decide"),
    }
    return manage_page(request, "questions", **context)


def _rows(flags: Iterable[Flag]) -> list[dict[str, Any]]:
    """Return a row for each flag. A row includes the unit's judgments as (annotator, action, answer) tuples."""
    listed = list(flags)
    live = Judgment.objects.live().filter(unit__in={flag.unit_id for flag in listed}).order_by("pk")
    by_unit = defaultdict(list)
    for judgment in live.select_related("annotator__user"):
        by_unit[judgment.unit_id].append(judgment)
    rows = []
    for flag in listed:
        item, kind = flag.unit.item, flag.unit.task.kind
        answers = [
            (answer.annotator, DONE[answer.kind], answer.label and kind.name(answer.label, item.language))
            for answer in by_unit[flag.unit_id]
        ]
        veiled = flag.kind == Flag.DISTURBING or flag.unit.disturbing or bool(kind.sensitive)
        rows.append({"flag": flag, "kind_name": KIND_NAMES[flag.kind], "answers": answers, "veiled": veiled})
    return rows


def decide(request: UserRequest, flag: int) -> HttpResponse:
    """Perform an action on a flag.

    POST fields:
    do: a key of ACTIONS
    reply: text of the reply, for the `reply` action
    """
    act = ACTIONS.get(request.POST.get("do", ""))
    if act is None:
        raise InvalidAnswer("The form does not contain an action. Reload the page.")
    act(request, flag)
    query = f"?{request.GET.urlencode()}" if request.GET else ""
    return redirect(f"{reverse('manage-questions')}{query}")


def _reply(request: UserRequest, flag: int) -> None:
    answered = flags.reply(flag, request.POST.get("reply", ""), by=request.user)
    messages.success(request, f"{answered.annotator} will see the reply on their start page.")
    if mail_reply(answered) in (FAILED, REFUSED):
        messages.warning(request, "The reply was saved, but the mail about it could not be sent.")


def _dismiss(request: UserRequest, flag: int) -> None:
    flags.dismiss(flag, by=request.user)
    messages.success(request, "The flag was dismissed.")


def _discard(request: UserRequest, flag: int) -> None:
    discarded = flags.discard(flag, by=request.user)
    forget(discarded.unit.task)
    messages.success(request, "The item was excluded from the gold set.")


def _make_example(request: UserRequest, flag: int) -> None:
    version = flags.make_example(flag, by=request.user)
    messages.success(
        request,
        f"The item was added as an example to the guidelines, in version {version.version} ({version.language}).",
    )


ACTIONS = {"reply": _reply, "dismiss": _dismiss, "discard": _discard, "example": _make_example}


# --- Notes


def list_notes(request: UserRequest, task: Task) -> HttpResponse:
    codes = sorted(set(task.reading_languages), key=label_name)
    languages = [(code, label_name(code)) for code in codes]
    listed = [(note, label_name(note.language) if note.language else "everybody") for note in flags.notes_of(task)]
    context: dict[str, Any] = {
        "notes": listed,
        "languages": languages,
        "longest": flags.MESSAGE_LENGTH,
        "decides": may(request.user, "decide", task.name),
    }
    return manage_page(request, "notes", task, **context)


def note(request: UserRequest, task: Task) -> HttpResponse:
    """Write or withdraw a note.

    POST fields:
    withdraw: primary key of a note to withdraw
    text: text of a new note
    language: code of the language whose readers see the new note; empty for all annotators
    """
    if "withdraw" in request.POST:
        flags.withdraw_note(task, whole_number(request.POST["withdraw"]) or 0)
        return redirect_with_message(request, "The note was withdrawn.", "manage-notes", task.name)
    flags.write_note(task, request.POST.get("text", ""), by=request.user, language=request.POST.get("language", ""))
    sentence = "The note is shown on the annotators' start page and above their queue until they dismiss it."
    return redirect_with_message(request, sentence, "manage-notes", task.name)
