"""Tasks as they stand: their options, where their units are, and what audit or decoys found."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe

from annotate.figures import overview_report, queue_states, task_overview
from annotate.figures.figure_cache import BeingCountedError, figures
from annotate.kinds.options import OPTIONS
from annotate.models import Task
from annotate.pages.access import may
from annotate.pages.admin.base import ReadOnly
from annotate.pages.dashboard import all_tasks, being_counted
from annotate.quality import audit_report, audits, checks, declared_audits, decoys, filter_audits
from annotate.quality.audit_report import (
    NO_SECOND,
    NONE,
    adjudicator_words,
    audit_plot,
    audit_table,
    audit_words,
    check_table,
    decoy_plot,
    decoy_table,
    decoy_words,
    reader_words,
)
from annotate.reports.tables import Table

# --- What a task's page shows of the checks on its numbers: its audit or its decoys, and those of people.


FEW = 30  # languages up to which the picture is shown at once


@dataclass(frozen=True)
class Checks:
    """What a task's page shows of its audit, of its decoys, or of its checks. empty: what it says if there is none;
    explained: the page of the documentation that says what is measured, if there is one.
    """

    title: str
    words: list[str]
    table: Table
    plot: SafeString
    over_limit: list[str]
    empty: str
    explained: str = ""

    @property
    def unfold(self) -> bool:
        return len(self.table.rows) <= FEW


def _audit(task: Task) -> Checks:
    found = audits.report(task)
    empty = "Nobody checks what the detectors agree on: no post was chosen for an audit when the task was opened."
    title, words, table, plot = "The audit of agreement", audit_words(found), audit_table(found), audit_plot(found)
    over_limit = sorted(row["language"] for row in found["languages"] if row["over_limit"])
    return Checks(title, words, table, plot, over_limit, empty, "explanation/audit")


def _decoys(task: Task) -> Checks:
    found = decoys.report(task)
    empty = "No decoys are hidden among its posts: when the task was opened, no labelled post could be one."
    return Checks("Decoys", decoy_words(found), decoy_table(found), decoy_plot(found), [], empty)


def _checks(task: Task) -> Checks:
    found = checks.report(task)
    alone = [NO_SECOND] if checks.unseconded(task, checks.adjudicators().count()) else []
    words = [*reader_words(found), *adjudicator_words(found), *alone]
    return Checks("Checks of people who decide alone", words, check_table(found), NONE, [], "", "explanation/checks")


def _declared(task: Task) -> Checks:
    found = declared_audits.report(task)
    title = "The audit of declared labels"
    if not found:
        return Checks(title, [], audit_report.EMPTY, NONE, [], audit_report.NONE_CHOSEN)
    return Checks(
        title, audit_report.declared_words(found), audit_report.class_table(found), NONE, [], "", "how-to/balanced-sets"
    )


def _filter(task: Task) -> Checks:
    found = filter_audits.report(task)
    title = "The audit of the filter"
    if not found:
        return Checks(title, [], audit_report.EMPTY, NONE, [], filter_audits.NOT_DRAWN)
    return Checks(
        title,
        filter_audits.filter_words(found),
        filter_audits.figures_table(found),
        NONE,
        [],
        "",
        "how-to/audit-a-filter",
    )


# The protections of a kind that a task's page shows; the others have their own pages for managers.
SHOWN = {
    "audit": _audit,
    "audit of declared labels": _declared,
    "audit of a filter": _filter,
    "decoys": _decoys,
    "checks": _checks,
}


def checks_of(task: Task) -> list[Checks]:
    return [show(task) for name, show in SHOWN.items() if name in task.kind.controls]


def _number(counted: int | None) -> str:
    return "–" if counted is None else f"{counted:,}"


def _by_group(task: Task) -> dict[str, list[str]]:
    """The options of the task's kind, by their headings."""
    groups: dict[str, list[str]] = {}
    for name in task.kind.options:
        groups.setdefault(OPTIONS[name].group, []).append(name)
    return groups


class TaskList(ChangeList):
    """The tasks of a page with where their units are, as the first page of managers tells it; nothing of those that are
    still to be counted.
    """

    def get_results(self, request):
        super().get_results(request)
        try:
            (rows, states), _ = all_tasks(Task.objects.filter(is_open=True))
        except BeingCountedError:
            rows, states = [], {}
        counts = {row["name"]: row for row in rows}
        for task in self.result_list:
            task.counts = counts.get(task.name, {})
            queues = states[task.pk]["queues"] if task.pk in states else []
            lacking = [row for row in queues if row["lacking"]]
            task.lacking = sorted(lacking, key=lambda row: (-row["waiting"], row["queue"]))


def _stands(task: Task) -> dict[str, Any]:
    return {
        "queues": queue_states.queues_by_use(task),
        "stages": task_overview.stage_counts(task),
        "checks": checks_of(task),
        "undecidable": overview_report.undecidable(task_overview.undecidable(task)),
    }


@admin.register(Task)
class TaskAdmin(ReadOnly):
    """Where a task's units are, and what its checks found. What is done with a task has pages of its own."""

    list_display = ["name", "title", "is_open", "posts", "queued", "adjudication", "unread"]
    change_form_template = "admin/annotate/task/change_form.html"

    def get_changelist(self, request, **kwargs):
        return TaskList

    def get_fieldsets(self, request, obj=None):
        first = ["name", "title", "is_open", "kind_slug", "asks_about", "draws_made", "created_at"]
        return [
            (None, {"fields": first}),
            *((group, {"fields": names}) for group, names in (_by_group(obj) if obj else {}).items()),
        ]

    def get_readonly_fields(self, request, obj=None):
        return [name for _, options in self.get_fieldsets(request, obj) for name in options["fields"]]

    @admin.display
    def posts(self, task):
        return _number(task.counts.get("units"))

    @admin.display
    def queued(self, task):
        return _number(task.counts.get("queued"))

    @admin.display
    def adjudication(self, task):
        return _number(task.counts.get("adjudication"))

    @admin.display(description="queues that lack readers")
    def unread(self, task):
        return ", ".join(f"{row['queue']} ({row['lacking']:,})" for row in task.lacking) or "–"

    @admin.display(description="draws")
    def draws_made(self, task):
        draws = task.draws.select_related("corpus").order_by("language", "pk")
        lines = ((reverse("admin:corpora_draw_change", args=[draw.pk]), draw) for draw in draws)
        return format_html_join(mark_safe("<br>"), '<a href="{}">{}</a>', lines)

    @admin.display
    def asks_about(self, task):
        return " ".join(task.labels)

    def change_view(self, request, object_id, form_url="", extra_context=None):
        task = get_object_or_404(Task, pk=object_id)
        if not self.has_view_permission(request, task):
            raise PermissionDenied
        try:
            stands, _ = figures("stands", task, partial(_stands, task))
        except BeingCountedError:
            return being_counted(request, task)
        context = {**stands, "reroutes": not task.kind.routing.waits, "decides": may(request.user, "decide")}
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **context})
