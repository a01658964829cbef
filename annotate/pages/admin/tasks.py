"""Tasks as they stand: their options, where their units are, and what audit or decoys found."""

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import Count, Q
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import mark_safe

from annotate.kinds.options import OPTIONS
from annotate.models import Task
from annotate.pages.access import may
from annotate.pages.admin.audits_and_decoys import checks_of
from annotate.pages.admin.base import ReadOnly
from annotate.reports import sentences
from annotate.work import progress
from annotate.work.queue_states import queue_states_of


def _by_group(task: Task) -> dict[str, list[str]]:
    """The options of the task's kind, by their headings."""
    groups: dict[str, list[str]] = {}
    for name in task.kind.options:
        groups.setdefault(OPTIONS[name].group, []).append(name)
    return groups


class TaskList(ChangeList):
    """The tasks of a page with their queues that lack readers, read for all of them together."""

    def get_results(self, request):
        super().get_results(request)
        states = queue_states_of(self.result_list)
        for task in self.result_list:
            lacking = [row for row in states[task.pk]["queues"] if row["lacking"]]
            task.lacking = sorted(lacking, key=lambda row: (-row["waiting"], row["queue"]))


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

    def get_queryset(self, request):
        def at(stage):
            return Count("units", filter=Q(units__stage=stage, units__honeypot=False))

        counts = {
            "unit_count": Count("units", filter=Q(units__honeypot=False)),
            "queued_count": at("QUEUED"),
            "waiting_count": at("ADJUDICATION"),
        }
        return super().get_queryset(request).annotate(**counts)

    @admin.display(ordering="unit_count")
    def posts(self, task):
        return f"{task.unit_count:,}"

    @admin.display(ordering="queued_count")
    def queued(self, task):
        return f"{task.queued_count:,}"

    @admin.display(ordering="waiting_count")
    def adjudication(self, task):
        return f"{task.waiting_count:,}"

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
        context = {
            "queues": progress.queues_by_use(task),
            "reroutes": not task.kind.waits,
            "stages": progress.stage_counts(task),
            "checks": checks_of(task),
            "decides": may(request.user, "decide"),
            "undecidable": sentences.undecidable(progress.undecidable(task)),
        }
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **context})
