"""Tasks as they stand: their options, where their units are, and what audit or decoys found."""

from functools import partial
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import mark_safe

from annotate.kinds.options import OPTIONS
from annotate.models import Task
from annotate.pages.access import may
from annotate.pages.admin.audits_and_decoys import checks_of
from annotate.pages.admin.base import ReadOnly
from annotate.pages.around import being_counted
from annotate.pages.desk import all_tasks
from annotate.pages.keeping import BeingCountedError, figures
from annotate.reports import sentences
from annotate.work import progress


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
        "queues": progress.queues_by_use(task),
        "stages": progress.stage_counts(task),
        "checks": checks_of(task),
        "undecidable": sentences.undecidable(progress.undecidable(task)),
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
        context = {**stands, "reroutes": not task.kind.waits, "decides": may(request.user, "decide")}
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **context})
