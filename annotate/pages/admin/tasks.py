"""Tasks: their options, where their units are, and what audit or decoys found."""

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q
from django.shortcuts import get_object_or_404, redirect
from django.urls import path, reverse
from django.utils.html import format_html_join
from django.utils.safestring import mark_safe

from annotate.core.option import Option, OptionError, flag, share, whole_number
from annotate.core.refusals import Refusal
from annotate.kinds.designs import DESIGNS
from annotate.kinds.options import OPTIONS
from annotate.models import Task
from annotate.pages.admin.audits_and_decoys import checks_of
from annotate.pages.admin.base import CodesField
from annotate.quality.gold_answers import GoldAnswerError, check_pool
from annotate.reports import audits_and_decoys, sentences
from annotate.work import contesting, progress, routing
from annotate.work.queue_states import queue_states_of


def _options(task: Task | None, *, fixed: bool) -> list[Option]:
    """The options of the task's kind, either those that may be changed or those that may not."""
    names = task.kind.options if task else ()
    return [OPTIONS[name] for name in names if OPTIONS[name].fixed is fixed]


def _by_group(options: list[Option]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for option in options:
        groups.setdefault(option.group, []).append(option.name)
    return groups


def _field(option: Option) -> forms.Field:
    """The form's field of an option, with its bounds and its help."""
    said = {"help_text": option.help, "label": option.name.replace("_", " ").capitalize()}
    bounds = {"min_value": option.least or 0, "max_value": option.most}
    if option.choices:
        return forms.ChoiceField(choices=[(choice, choice) for choice in option.choices], **said)
    if option.read is flag:
        return forms.BooleanField(required=False, **said)
    return {whole_number: forms.IntegerField, share: forms.FloatField}[option.read](**bounds, **said)


class TaskForm(forms.ModelForm):
    class Meta:
        model = Task
        fields = ["title", "is_open"]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        for name in OPTIONS.keys() & self.fields.keys():
            self.initial.setdefault(name, getattr(self.instance, name))

    def clean_labels(self):
        if not self.cleaned_data["labels"]:
            raise forms.ValidationError("Name at least one label.")
        for code in self.cleaned_data["labels"]:
            if not self.instance.kind.known(code):
                raise forms.ValidationError(f"The language {code} was added by the file of another task.")
        return sorted(set(self.cleaned_data["labels"]))

    def clean(self):
        """If the gold answers do not suffice for a test or another try, refuse it here, and not to the person who
        takes it.
        """
        task, given = self.instance, super().clean()
        changed = OPTIONS.keys() & given.keys()
        try:
            for name in changed:
                setattr(task, name, OPTIONS[name].check(given[name]))
            if "test" in task.kind.protections and {"test_items", "tries"} & set(self.changed_data):
                check_pool(task)
        except (OptionError, GoldAnswerError) as error:
            raise forms.ValidationError(str(error)) from error
        return given


class TaskList(ChangeList):
    """The tasks of a page with their queues that lack readers, read for all of them together."""

    def get_results(self, request):
        super().get_results(request)
        states = queue_states_of(self.result_list)
        for task in self.result_list:
            lacking = [row for row in states[task.pk]["queues"] if row["lacking"]]
            task.lacking = sorted(lacking, key=lambda row: (-row["waiting"], row["queue"]))


@admin.register(Task)
class TaskAdmin(admin.ModelAdmin):
    list_display = ["name", "title", "is_open", "posts", "queued", "adjudication", "unread"]
    change_form_template = "admin/annotate/task/change_form.html"

    def get_changelist(self, request, **kwargs):
        return TaskList

    def get_form(self, request, obj=None, **kwargs):
        changeable = {option.name: _field(option) for option in _options(obj, fixed=False)}
        if self._may_relabel(obj):
            changeable["labels"] = CodesField(label="Labels")
        return super().get_form(request, obj, form=type("TaskForm", (TaskForm,), changeable), **kwargs)

    def get_fieldsets(self, request, obj=None):
        open_now = _by_group(_options(obj, fixed=False))
        fixed = [option.name for option in _options(obj, fixed=True)]
        return [
            (None, {"fields": ["name", "title", "is_open", "kind_slug", "draws_made", "created_at"]}),
            ("Question", {"fields": ["labels" if self._may_relabel(obj) else "asks_about"]}),
            *((group, {"fields": names}) for group, names in open_now.items()),
            ("Fixed when it was opened", {"fields": fixed}),
        ]

    def get_readonly_fields(self, request, obj=None):
        fixed = [option.name for option in _options(obj, fixed=True)]
        labels = [] if self._may_relabel(obj) else ["asks_about"]
        return ["name", "kind_slug", "draws_made", "created_at", *fixed, *labels]

    def _may_relabel(self, task) -> bool:
        """Labels are fixed if each language has its own draw, and if they are a kind's answers."""
        return task is None or (task.kind.is_routed and not DESIGNS[task.draw.design].asks_each)

    def has_add_permission(self, request):
        return False  # open_task draws and opens in one go

    def has_delete_permission(self, request, obj=None):
        return False

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
            "undecidable": sentences.undecidable(progress.undecidable(task)),
        }
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **context})

    def get_urls(self):
        views = [("reroute", self.reroute_view), ("contest", self.contest_view)]
        paths = [
            path(f"<int:pk>/{name}/", self.admin_site.admin_view(view), name=f"annotate_task_{name}")
            for name, view in views
        ]
        return [*paths, *super().get_urls()]

    def reroute_view(self, request, pk):
        task = self._posted(request, pk)
        try:
            counts = routing.reroute(task, by=request.user)
        except Refusal as refusal:
            messages.warning(request, str(refusal))
        else:
            messages.success(request, sentences.rerouted(counts))
        return redirect("admin:annotate_task_change", pk)

    def contest_view(self, request, pk):
        task = self._posted(request, pk)
        sent = contesting.contest_all(task, by=request.user)
        messages.success(request, audits_and_decoys.contested(sent))
        return redirect("admin:annotate_task_change", pk)

    def _posted(self, request, pk):
        task = get_object_or_404(Task, pk=pk)
        if request.method != "POST" or not self.has_change_permission(request, task):
            raise PermissionDenied
        return task
