"""The manager's desk: languages and routing, people, tasks. What people have said can be read here, never changed."""

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.safestring import mark_safe
from django.utils.translation import ngettext
from knox.models import AuthToken

from annotate.core.refusals import Refusal
from annotate.kinds import TASK_TYPES
from annotate.models import (
    Annotator,
    AnnotatorLanguage,
    Invite,
    Judgment,
    LanguageRoute,
    Task,
    Transition,
    Unit,
)
from annotate.pages import presenting
from annotate.pages.admin.qualification import ReadOnly
from annotate.quality import audits
from annotate.quality.gold_answers import GoldAnswerError, check_pool
from annotate.reports import checks
from annotate.work import accounts, progress, routing
from corpora.core.languages import LANGUAGES, UND
from corpora.models import Corpus, Draw
from corpora.store import read_manifest

admin.site.site_header = "Assay"
admin.site.site_title = "Assay"
admin.site.index_title = "Manage"
admin.site.site_url = "/"
# People make and revoke their own on their account's page; a token made here could not be shown to anybody.
admin.site.unregister(AuthToken)


def check_language(code: str, also=()) -> str:
    if code not in LANGUAGES and code not in also:
        raise forms.ValidationError(f"{code!r} is not a language code known here, such as de, zh-CN or hi-Latn.")
    return code


class CodesField(forms.CharField):
    """A JSON list of language codes, typed as words."""

    def __init__(self, **kwargs):
        super().__init__(required=False, help_text="language codes with spaces between", **kwargs)

    def prepare_value(self, value):
        return " ".join(value) if isinstance(value, list) else value

    def has_changed(self, initial, data):
        return super().has_changed(self.prepare_value(initial), data)

    def clean(self, value):
        return [check_language(code) for code in super().clean(value).replace(",", " ").split()]


# --- languages and routing


class LanguageRouteForm(forms.ModelForm):
    extra_candidates = CodesField(label="Extra candidates")

    class Meta:
        model = LanguageRoute
        fields = ["language", "queue", "extra_candidates", "never_agree"]

    def clean_language(self):
        return check_language(self.cleaned_data["language"], also=[UND])

    def clean_queue(self):
        return check_language(self.cleaned_data["queue"])


def queues_by_use(task: Task) -> dict[str, list[progress.QueueRow]]:
    """The queues in which something waits, and the others, which a page folds."""
    rows = progress.queue_table(task)
    return {"busy": [row for row in rows if row.waiting], "idle": [row for row in rows if not row.waiting]}


@admin.register(LanguageRoute)
class LanguageRouteAdmin(admin.ModelAdmin):
    form = LanguageRouteForm
    list_display = ["language", "name", "queue", "tried_after", "never_agree"]
    search_fields = ["language", "queue"]
    change_list_template = "admin/annotate/languageroute/change_list.html"

    def changelist_view(self, request, extra_context=None):
        # What a setting does: the units that wait in each queue of the open tasks, beside the people who read it.
        tables = [(task, queues_by_use(task)) for task in Task.objects.filter(is_open=True)]
        return super().changelist_view(request, {**(extra_context or {}), "tables": tables})

    @admin.display
    def name(self, route):
        return LANGUAGES[route.language].name if route.language in LANGUAGES else "no language seen"

    @admin.display(description="tried after it")
    def tried_after(self, route):
        return " ".join(route.extra_candidates)


# --- people


class AnnotatorLanguageForm(forms.ModelForm):
    class Meta:
        model = AnnotatorLanguage
        fields = ["language", "level"]

    def clean_language(self):
        return check_language(self.cleaned_data["language"])


class AnnotatorLanguageInline(admin.TabularInline):
    model = AnnotatorLanguage
    form = AnnotatorLanguageForm
    extra = 1


class InviteInline(admin.TabularInline):
    model = Invite
    extra = 0
    readonly_fields = ["created_at", "expires_at", "used_at", "revoked_at"]
    can_delete = False

    def has_add_permission(self, request, obj=None):
        return False


class TableForm(forms.Form):
    table = forms.FileField(label="CSV file", help_text="columns username, name, languages; languages as in: de:5 en:4")

    def clean_table(self):
        try:
            return accounts.read_table(self.cleaned_data["table"].read().decode())
        except UnicodeDecodeError:
            raise forms.ValidationError("The file is not UTF-8. Save it as “CSV UTF-8”.") from None
        except accounts.BadTable as error:
            raise forms.ValidationError([*error.args, "Nothing was changed."]) from error


@admin.register(Annotator)
class AnnotatorAdmin(admin.ModelAdmin):
    list_display = ["username", "name", "reads", "adjudicates", "active", "judged", "invited"]
    list_filter = ["adjudicates", "user__is_active"]
    search_fields = ["user__username", "user__first_name", "user__last_name", "=languages__language"]
    search_help_text = "name, user name, or the code of a language that they read"
    readonly_fields = ["pseudonym"]
    autocomplete_fields = ["user"]
    inlines = [AnnotatorLanguageInline, InviteInline]
    actions = ["send_invites", "revoke_invites", "let_in", "lock_out"]
    change_list_template = "admin/annotate/annotator/change_list.html"

    def get_queryset(self, request):
        live = Count("judgments", filter=Q(judgments__voided_at=None), distinct=True)
        found = super().get_queryset(request).select_related("user").prefetch_related("languages", "invites")
        return found.annotate(live_judgments=live)

    def get_readonly_fields(self, request, obj=None):
        # What was judged under one account would become another's.
        return [*self.readonly_fields, *(["user"] if obj else [])]

    def has_delete_permission(self, request, obj=None):
        return False  # what they judged names them; lock them out instead

    @admin.display(ordering="user__username")
    def username(self, annotator):
        return annotator.user.username

    @admin.display(ordering="user__first_name")
    def name(self, annotator):
        return annotator.user.get_full_name()

    @admin.display
    def reads(self, annotator):
        return " ".join(map(str, annotator.languages.all()))

    @admin.display(boolean=True, ordering="user__is_active")
    def active(self, annotator):
        return annotator.user.is_active

    @admin.display(ordering="live_judgments")
    def judged(self, annotator):
        return f"{annotator.live_judgments:,}"

    @admin.display(description="invite")
    def invited(self, annotator):
        invite = next(iter(annotator.invites.all()), None)
        if invite is None:
            return "–"
        if invite.used_at:
            return "used"
        if invite.revoked_at:
            return "revoked"
        return "expired" if invite.expires_at <= timezone.now() else f"open until {invite.expires_at:%Y-%m-%d}"

    def get_urls(self):
        view = self.admin_site.admin_view(self.import_view)
        return [path("import/", view, name="annotate_annotator_import"), *super().get_urls()]

    def import_view(self, request):
        """Many annotators at once; the links are shown in the answer, and only there."""
        if not (self.has_add_permission(request) and self.has_change_permission(request)):
            raise PermissionDenied
        form = TableForm(request.POST or None, request.FILES or None)
        made = None
        if form.is_valid():
            made = self._links(request, accounts.add_annotators(form.cleaned_data["table"]))
        context = {**self.admin_site.each_context(request), "title": "Add annotators from a table"}
        context |= {"form": form, "made": made, "opts": self.opts, "days": accounts.INVITE_DAYS}
        return render(request, "admin/annotate/annotator/import.html", context)

    def _links(self, request, made):
        return [
            (annotator, request.build_absolute_uri(reverse("invite", args=[token])) if token else None)
            for annotator, token in made
        ]

    def _managers_among(self, request, queryset):
        """Whether to refuse, since with a link one could take a manager's account over, and their permissions."""
        if request.user.is_superuser or not queryset.filter(user__is_staff=True).exists():
            return False
        messages.error(request, "Only a superuser can do this to the account of a manager.")
        return True

    @admin.action(description="Make invite links (earlier links stop working)", permissions=["change"])
    def send_invites(self, request, queryset):
        if self._managers_among(request, queryset):
            return None
        made = self._links(request, [(annotator, accounts.invite(annotator)) for annotator in queryset])
        context = {**self.admin_site.each_context(request), "title": "Invite links", "made": made}
        context |= {"opts": self.opts, "days": accounts.INVITE_DAYS}
        return render(request, "admin/annotate/annotator/import.html", context)

    @admin.action(description="Revoke open invite links", permissions=["change"])
    def revoke_invites(self, request, queryset):
        count = accounts.revoke_invites(queryset)
        messages.success(request, ngettext("%d link revoked.", "%d links revoked.", count) % count)

    @admin.action(description="Lock out (what they answered stays)", permissions=["change"])
    def lock_out(self, request, queryset):
        if self._managers_among(request, queryset):
            return
        accounts.set_active(queryset, False)
        messages.success(request, "Locked out. Units of queues that now lack readers can be rerouted from their task.")

    @admin.action(description="Let in again", permissions=["change"])
    def let_in(self, request, queryset):
        if self._managers_among(request, queryset):
            return
        accounts.set_active(queryset, True)


# --- tasks and what came of them


class TaskForm(forms.ModelForm):
    labels = CodesField(label="Labels")

    def clean_labels(self):
        if not self.cleaned_data["labels"]:
            raise forms.ValidationError("Name at least one label.")
        return sorted(set(self.cleaned_data["labels"]))

    def clean(self):
        """A test, or another try, for which the gold answers do not suffice is refused here, not to who takes it."""
        task, given = self.instance, super().clean()
        for field in {"test_items", "tries"} & given.keys():
            setattr(task, field, given[field])
        if TASK_TYPES[task.task_type].records and {"test_items", "tries"} & set(self.changed_data):
            try:
                check_pool(task)
            except GoldAnswerError as error:
                raise forms.ValidationError(str(error)) from error
        return given


# Fixed when a task was opened; which of them say anything depends on its kind.
FIXED = {
    "language": [
        *("redundancy", "overlap_share", "least_letters", "never_agree"),
        *("audit_share", "audit_least", "audit_recheck"),
    ],
    "verify": ["redundancy", "decoy_share"],
}
FIXED_OF_RECORDS = ["redundancy", "stop_early", "extra_answers", "aggregation", "gold_share"]
TESTED = ["test_items", "pass_mark", "tries", "pause_below", "pause_confidence", "pause_least"]


@admin.register(Task)
class TaskAdmin(admin.ModelAdmin):
    form = TaskForm
    list_display = ["name", "title", "is_open", "posts", "queued", "adjudication", "unread"]
    readonly_fields = [
        *("name", "task_type", "draws_made", "created_at", "redundancy", "least_letters", "never_agree"),
        *("audit_share", "audit_least", "audit_recheck", "decoy_share", "overlap_share"),
        *FIXED_OF_RECORDS,
    ]
    change_form_template = "admin/annotate/task/change_form.html"

    def get_fieldsets(self, request, obj=None):
        verifies = obj.task_type == "verify"
        limit = ["audit_limit"] if obj.task_type == "language" else []
        return [
            (None, {"fields": ["name", "title", "is_open", "task_type", "draws_made", "created_at"]}),
            ("Question", {"fields": ["asks_about" if verifies else "labels"]}),
            ("Routing", {"fields": ["least_level", "rounds", "skip_limit", "lease_minutes", "on_conflict", *limit]}),
            *([("Test and gold answers", {"fields": TESTED})] if TASK_TYPES[obj.task_type].records else []),
            ("Fixed when it was opened", {"fields": FIXED.get(obj.task_type, FIXED_OF_RECORDS)}),
        ]

    def get_readonly_fields(self, request, obj=None):
        # What is asked about was drawn for, and a record's labels are its task type's.
        given = {"language": [], "verify": ["labels", "asks_about"]}
        return [*self.readonly_fields, *(given.get(obj.task_type, ["labels"]) if obj else [])]

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
        return ", ".join(f"{row.queue} ({row.lacking:,})" for row in progress.queue_table(task) if row.lacking) or "–"

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
            "queues": queues_by_use(task),
            "reroutes": not TASK_TYPES[task.task_type].records,
            "stages": progress.stage_counts(task),
            "checks": checks.checks(task),
            "undecidable": presenting.undecidable(progress.undecidable(task)),
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
            messages.success(request, presenting.rerouted(counts))
        return redirect("admin:annotate_task_change", pk)

    def contest_view(self, request, pk):
        task = self._posted(request, pk)
        sent = audits.contest_all(task, by=request.user)
        messages.success(request, checks.contested(sent))
        return redirect("admin:annotate_task_change", pk)

    def _posted(self, request, pk):
        task = get_object_or_404(Task, pk=pk)
        if request.method != "POST" or not self.has_change_permission(request, task):
            raise PermissionDenied
        return task


class OfUnit(admin.TabularInline):
    """What happened to a unit, with its labels as they are called."""

    extra = 0
    can_delete = False
    readonly_fields = ["called"]

    @admin.display(description="label")
    def called(self, row):
        return presenting.code_or_name(row.label, row.unit.task)


class JudgmentInline(OfUnit):
    model = Judgment
    fields = ["annotator", "kind", "called", "reason", "comment", "answered_at", "active_seconds", "voided_at"]


class TransitionInline(OfUnit):
    model = Transition
    fk_name = "unit"
    fields = ["at", "event", "from_stage", "to_stage", "round", "language", "called", "by"]


class DecoyFilter(admin.SimpleListFilter):
    title, parameter_name = "decoy", "decoy"

    def lookups(self, request, model_admin):
        return [("yes", "Yes"), ("no", "No")]

    def queryset(self, request, queryset):
        if self.value() is None:
            return queryset
        return queryset.exclude(gold_answer="") if self.value() == "yes" else queryset.filter(gold_answer="")


@admin.register(Unit)
class UnitAdmin(ReadOnly):
    list_display = [
        "position",
        "task",
        "text",
        "asked",
        "stage",
        "round",
        "language",
        "called",
        "agreed_label",
        "decoy",
    ]
    list_filter = ["task", "stage", "asked", "audited", DecoyFilter, "language", "label"]
    search_fields = ["item__key", "item__text"]
    list_select_related = ["task", "item"]
    inlines = [JudgmentInline, TransitionInline]

    @admin.display
    def text(self, unit):
        return presenting.in_a_line(unit)[:80]

    @admin.display(description="label", ordering="label")
    def called(self, unit):
        return presenting.code_or_name(unit.label, unit.task)

    @admin.display(boolean=True, ordering="gold_answer")
    def decoy(self, unit):
        return bool(unit.gold_answer)


@admin.register(Judgment)
class JudgmentAdmin(ReadOnly):
    list_display = ["answered_at", "text", "annotator", "kind", "called", "reason", "active_seconds", "voided_at"]
    list_filter = ["unit__task", "kind", "annotator", "label"]
    search_fields = ["unit__item__key", "unit__item__text", "comment"]
    date_hierarchy = "answered_at"
    ordering = ["-pk"]
    list_select_related = ["annotator__user", "unit__item", "unit__task"]

    @admin.display
    def text(self, judgment):
        return presenting.in_a_line(judgment.unit)[:80]

    @admin.display(description="label", ordering="label")
    def called(self, judgment):
        return presenting.code_or_name(judgment.label, judgment.unit.task)


def told(corpus: Corpus, tell):
    """What the manifest says, which may have been lost with the data directory."""
    manifest = read_manifest(corpus.name)
    return tell(manifest) if manifest else "lost"


@admin.register(Corpus)
class CorpusAdmin(ReadOnly):
    list_display = ["name", "posts", "votes", "licence", "text_may_leave", "source", "created_at"]

    @admin.display
    def posts(self, corpus):
        return told(corpus, lambda manifest: f"{manifest.rows:,}")

    @admin.display
    def votes(self, corpus):
        return told(corpus, lambda manifest: f"{sum(part.rows for part in manifest.votes):,}")

    @admin.display
    def licence(self, corpus):
        return told(corpus, lambda manifest: manifest.licence)

    @admin.display
    def text_may_leave(self, corpus):
        return told(corpus, lambda manifest: "yes" if manifest.text_may_leave else "no")

    @admin.display
    def source(self, corpus):
        return told(corpus, lambda manifest: manifest.source)


@admin.register(Draw)
class DrawAdmin(ReadOnly):
    list_display = [
        *("corpus", "design", "language", "predictor", "seed", "asked", "size", "frame_size", "told", "extends"),
        "created_at",
    ]
    list_filter = ["corpus", "design", "predictor", "language"]

    @admin.display(description="parameters")
    def told(self, draw):
        return ", ".join(f"{name}: {value}" for name, value in draw.parameters.items())


@admin.register(LogEntry)
class LogEntryAdmin(ReadOnly):
    """Who changed which setting."""

    list_display = ["action_time", "user", "content_type", "object_repr", "change_message"]
    list_filter = ["user"]
