"""What comes before the work: guidelines by version, gold answers, tests and qualifications.

Each change goes through its operation: a label is corrected with all that counts by it.
"""

from functools import cache

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import Count, Exists, OuterRef, Q
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode

from annotate.models import GoldAnswer, Guidelines, Qualification, Trial, TrialAnswer
from annotate.pages.admin.base import ReadOnly, Undeletable, refused
from annotate.pages.admin.judged import Named
from annotate.quality.gold_answers import answered, check_correction, correct
from annotate.quality.guidelines import majors
from annotate.quality.qualification import check_grant, grant
from annotate.work.accounts import check_may_change

# --- guidelines


@admin.register(Guidelines)
class GuidelinesAdmin(ReadOnly):
    """All versions of all tasks; new ones are written on the page of their task (guidelines.py)."""

    list_display = ["task", "language", "version", "holds", "created_at", "anew"]
    list_filter = ["task", "language"]
    list_select_related = ["task"]
    fields = readonly_fields = ["task", "language", "version", "created_at", "as_shown", "text"]

    def get_queryset(self, request):
        others = Guidelines.objects.filter(task=OuterRef("task"), language=OuterRef("language"))
        newer = others.filter(Q(major__gt=OuterRef("major")) | Q(major=OuterRef("major"), minor__gt=OuterRef("minor")))
        return super().get_queryset(request).annotate(superseded=Exists(newer))

    @admin.display(boolean=True)
    def holds(self, guidelines):
        return not guidelines.superseded

    @admin.display(description="new version")
    def anew(self, guidelines):
        query = urlencode({"language": guidelines.language})
        address = reverse("manage-guidelines", args=[guidelines.task.name])
        return format_html('<a href="{}?{}">Write a new version</a>', address, query)

    @admin.display(description="page")
    def as_shown(self, guidelines):
        query = urlencode({"language": guidelines.language, "version": guidelines.version})
        address = reverse("guidelines", args=[guidelines.task.name])
        return format_html('<a href="{}?{}">As annotators see it</a>', address, query)


# --- gold answers


class GoldAnswerForm(forms.ModelForm):
    class Meta:
        model = GoldAnswer
        fields = ["label", "explanation"]
        widgets = {"explanation": forms.Textarea(attrs={"rows": 3, "dir": "auto"})}

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if "label" in self.fields:
            task = self.instance.task
            if task.kind.form.SEVERAL:
                help_text = f"{task.kind.name(self.instance.label)}. Write ids, separated by spaces. {CORRECTED}"
                self.fields["label"] = forms.CharField(widget=forms.Textarea({"rows": 2}), help_text=help_text)
            else:
                choices = [(label, task.kind.name(label)) for label in task.labels]
                self.fields["label"] = forms.ChoiceField(choices=choices, help_text=CORRECTED)

    def clean(self):
        given = super().clean()
        if "label" in given:
            refused(check_correction, self.instance.task, self.instance.purpose, given["label"], given["explanation"])
        return given


def _rightly(right: int, asked: int) -> str:
    return f"{right:,} of {asked:,} ({right / asked:.0%})" if asked else "not asked yet"


CORRECTED = (
    "What annotators answered to it, in the test and in the queue, counts by this label from now on, so their "
    "past accuracies change. Tests that are over keep their result, and pauses stay until you lift them."
)


@admin.register(GoldAnswer)
class GoldAnswerAdmin(Undeletable):
    form = GoldAnswerForm
    list_filter = ["task", "purpose", ("item__language", Named)]
    search_fields = ["item__key", "item__text"]
    list_select_related = ["task", "item"]
    fields = ["task", "language", "purpose", "record", "label", "explanation", "right"]
    readonly_fields = ["task", "language", "purpose", "record", "right"]

    def has_add_permission(self, request):
        return False  # open_task takes them from a file, and draws the work without them

    def get_queryset(self, request):
        """The gold answers with how often each was answered, in tests or hidden in the queue."""
        return super().get_queryset(request).select_related("task", "item")

    def get_list_display(self, request):
        counts = {}

        @admin.display(description="answered rightly")
        def right(gold):
            # Read once for each task on a page.
            if gold.task_id not in counts:
                counts[gold.task_id] = answered(gold.task)
            return _rightly(*counts[gold.task_id].get(gold.item_id, (0, 0)))

        return ["text", "of", "language", "purpose", "called", right]

    @admin.display(ordering="item__text")
    def text(self, gold):
        return gold.item.text[:80]

    @admin.display(ordering="task__name", description="task")
    def of(self, gold):
        return gold.task.name

    @admin.display(ordering="item__language")
    def language(self, gold):
        return gold.item.language

    @admin.display(ordering="label", description="label")
    def called(self, gold):
        return gold.task.kind.name(gold.label)

    @admin.display(description="answered rightly")
    def right(self, gold):
        return _rightly(*answered(gold.task).get(gold.item_id, (0, 0)))

    @admin.display
    def record(self, gold):
        fields = gold.task.kind.fields
        rows = [format_html("<dt>{}</dt><dd dir='auto'>{}</dd>", name, gold.item.fields[name]) for name in fields]
        return format_html("<dl>{}</dl>", format_html("{}" * len(rows), *rows))

    def save_model(self, request, obj, form, change):
        right, wrong = correct(GoldAnswer.objects.get(pk=obj.pk), obj.label, obj.explanation)
        if right or wrong:
            messages.warning(
                request,
                f"Of the answers given to it {right:,} are right now and {wrong:,} wrong, and the accuracies of "
                "the people who gave them have changed. Check whether somebody failed or is paused because of them; "
                "you may "
                "let such a person go on.",
            )


# --- tests and qualifications


class TrialAnswerInline(admin.TabularInline):
    model = TrialAnswer
    extra = 0
    fields = ["position", "gold_answer", "called", "answered_at"]
    readonly_fields = ["called"]
    can_delete = False

    @admin.display(description="label")
    def called(self, answered):
        return answered.trial.task.kind.pages.short(answered.label)


@admin.register(Trial)
class TrialAdmin(ReadOnly):
    list_display = ["annotator", "task", "language", "kind", "number", "version", "score", "passed", "finished_at"]
    list_filter = ["task", "language", "kind", "passed"]
    search_fields = ["annotator__user__username"]
    list_select_related = ["annotator__user", "task", "guidelines"]
    ordering = ["-pk"]
    inlines = [TrialAnswerInline]

    def get_queryset(self, request):
        return super().get_queryset(request).annotate(asked=Count("answers"))

    @admin.display(description="guidelines")
    def version(self, trial):
        return trial.guidelines.version

    @admin.display(description="right")
    def score(self, trial):
        return "–" if trial.right is None else f"{trial.right} of {trial.asked}"


class QualificationForm(forms.ModelForm):
    """by: the manager who sends it."""

    by: User

    class Meta:
        model = Qualification
        fields = ["annotator", "task", "language"]

    def clean_annotator(self):
        refused(check_may_change, self.by, [self.cleaned_data["annotator"].user])
        return self.cleaned_data["annotator"]

    def clean(self):
        given = super().clean()
        if {"task", "language"} <= given.keys():
            refused(check_grant, given["task"], given["language"])
        return given


@admin.register(Qualification)
class QualificationAdmin(Undeletable):
    """Qualifications by a test, or added here, which lets a person work without one."""

    list_filter = ["task", "language"]
    search_fields = ["annotator__user__username"]
    list_select_related = ["annotator__user", "task", "granted_by"]
    autocomplete_fields = ["annotator"]
    fields = ["annotator", "task", "language"]

    def get_form(self, request, obj=None, **options):
        form = type("QualificationForm", (QualificationForm,), {"by": request.user})
        return super().get_form(request, obj, form=form, **options)

    def has_change_permission(self, request, obj=None):
        return False

    def get_list_display(self, request):
        majors_of = cache(majors)  # read once for each task on a page

        @admin.display(boolean=True)
        def holds(qualification):
            return majors_of(qualification.task).get(qualification.language) == qualification.major

        return ["annotator", "task", "language", "major", holds, "by", "at"]

    @admin.display
    def by(self, qualification):
        return "test" if qualification.trial_id else f"let in by {qualification.granted_by}"

    def save_model(self, request, obj, form, change):
        made = grant(obj.annotator, obj.task, obj.language, by=request.user)
        obj.pk, obj.major, obj.at = made.pk, made.major, made.at
