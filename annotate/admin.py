"""The admin site: the history of changes, and forms for changes that aren't available on manager pages.

These are account rights, corrections of gold answers, and qualifications without a test. The forms don't write rows
themselves. They call functions of other packages, e.g. annotate/controls.
"""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import knox.admin  # noqa: F401 - registers models that are unregistered below
from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import Model
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from knox.models import AuthToken

from annotate.controls.gold_answers import answer_counts, check_correction, correct
from annotate.controls.qualification import check_grant, grant
from annotate.core.refusals import Refusal
from annotate.models import (
    Annotator,
    GoldAnswer,
    Qualification,
)
from annotate.quality.guideline_versions import majors
from annotate.work import accounts

admin.site.site_header = "Assay"
admin.site.site_title = "Assay"
admin.site.index_title = "Manage"
admin.site.site_url = "/"
# Users create and revoke API tokens on the account page. The admin site can't show a new token.
admin.site.unregister([AuthToken, User, Group])


if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Any]
    _ModelForm = forms.ModelForm[Any]
    _UserAdmin = UserAdmin[User]
else:
    _ModelAdmin, _ModelForm = admin.ModelAdmin, forms.ModelForm
    _UserAdmin = UserAdmin


class Undeletable(_ModelAdmin):
    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class ReadOnly(Undeletable):
    # Don't count all rows for filtered lists. Counting is slow.
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


def raise_in_form(check: Callable[..., object], *arguments: Any) -> None:
    """Call `check`, and convert a Refusal to a form error with the same message."""
    try:
        check(*arguments)
    except Refusal as refusal:
        raise forms.ValidationError(str(refusal)) from refusal


# --- People, and the changes that managers made


@admin.register(Annotator)
class AnnotatorAdmin(ReadOnly):
    list_display = ["user", "pseudonym", "adjudicates"]
    list_filter = ["adjudicates", "user__is_active"]
    search_fields = ["user__username", "user__first_name", "user__last_name", "=languages__language"]
    search_help_text = "name, user name, or the code of a language that they read"
    list_select_related = ["user"]


@admin.register(LogEntry)
class HistoryAdmin(ReadOnly):
    """The history of managers' changes on manager pages and in the admin site."""

    list_display = ["action_time", "user", "content_type", "object_repr", "change_message"]


# --- Gold answers

CORRECTION_HELP = (
    "Past and future answers in tests and queues are compared with the new label, so annotators' accuracies change. "
    "Finished tests keep their results, and pauses remain until you lift them."
)


class GoldAnswerForm(_ModelForm):
    class Meta:
        model = GoldAnswer
        fields = ["label", "explanation"]
        widgets = {"explanation": forms.Textarea(attrs={"rows": 3, "dir": "auto"})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "label" not in self.fields:
            return
        task = self.instance.task
        if task.kind.form.several:
            help_text = f"{task.kind.name(self.instance.label)}. Enter ids, separated by spaces. {CORRECTION_HELP}"
            self.fields["label"] = forms.CharField(widget=forms.Textarea({"rows": 2}), help_text=help_text)
        else:
            choices = [(label, task.kind.name(label)) for label in task.labels]
            self.fields["label"] = forms.ChoiceField(choices=choices, help_text=CORRECTION_HELP)

    def clean(self) -> dict[str, Any]:
        sent = super().clean() or {}
        if "label" in sent:
            gold = self.instance
            raise_in_form(check_correction, gold.task, gold.purpose, sent["label"], sent["explanation"])
        return sent


@admin.register(GoldAnswer)
class GoldAnswerAdmin(Undeletable):
    form = GoldAnswerForm
    list_filter = ["task", "purpose", "item__language"]
    search_fields = ["item__key", "item__text"]
    list_select_related = ["task", "item"]
    fields = ["task", "purpose", "record", "label", "explanation"]
    readonly_fields = ["task", "purpose", "record"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False  # open_task imports gold answers from a file, and excludes their items from the draw

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        counts = cache(answer_counts)  # queries the database once for each task on the page

        @admin.display(description="right answers")
        def right(gold: GoldAnswer) -> str:
            right, total = counts(gold.task).get(gold.item_id, (0, 0))
            return f"{right:,} of {total:,} ({right / total:.0%})" if total else "no answers yet"

        return ["text", "task", "item__language", "purpose", "label_name", right]

    @admin.display(description="text", ordering="item__text")
    def text(self, gold: GoldAnswer) -> str:
        return str(gold.item.text[:80])

    @admin.display(description="label", ordering="label")
    def label_name(self, gold: GoldAnswer) -> str:
        return gold.task.kind.name(gold.label)

    def record(self, gold: GoldAnswer) -> SafeString:
        fields = ((name, gold.item.fields[name]) for name in gold.task.kind.fields)
        return format_html("<dl>{}</dl>", format_html_join("", "<dt>{}</dt><dd dir='auto'>{}</dd>", fields))

    def save_model(self, request: HttpRequest, obj: GoldAnswer, form: Any, change: bool) -> None:
        right, wrong = correct(GoldAnswer.objects.get(pk=obj.pk), obj.label, obj.explanation)
        if right or wrong:
            messages.warning(
                request,
                f"{right:,} of the existing answers are now right and {wrong:,} are wrong, so annotators' accuracies "
                "have changed. If these answers made annotators fail the test or caused pauses, exempt the annotators "
                "or lift the pauses.",
            )


# --- Qualifications


class QualificationForm(_ModelForm):
    """Grants a qualification without a test.

    by: the manager who submits the form
    """

    by: User

    class Meta:
        model = Qualification
        fields = ["annotator", "task", "language"]

    def clean_annotator(self) -> Annotator:
        annotator: Annotator = self.cleaned_data["annotator"]
        raise_in_form(accounts.check_may_change, self.by, [annotator.user])
        return annotator

    def clean(self) -> dict[str, Any]:
        sent = super().clean() or {}
        if {"task", "language"} <= sent.keys():
            raise_in_form(check_grant, sent["task"], sent["language"])
        return sent


@admin.register(Qualification)
class QualificationAdmin(Undeletable):
    """The qualifications that annotators have earned by a test or that managers have granted here."""

    list_filter = ["task", "language"]
    search_fields = ["annotator__user__username"]
    list_select_related = ["annotator__user", "task", "granted_by"]
    autocomplete_fields = ["annotator"]
    fields = ["annotator", "task", "language"]

    def get_form(self, request: HttpRequest, obj: Model | None = None, change: bool = False, **options: Any) -> Any:
        form = type("QualificationForm", (QualificationForm,), {"by": request.user})
        return super().get_form(request, obj, change, form=form, **options)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        majors_of = cache(majors)  # queries the database once for each task on the page

        @admin.display(boolean=True)
        def holds(qualification: Qualification) -> bool:
            return majors_of(qualification.task).get(qualification.language) == qualification.major

        return ["annotator", "task", "language", "major", holds, "by", "at"]

    def by(self, qualification: Qualification) -> str:
        return "test" if qualification.trial_id else f"exempted by {qualification.granted_by}"

    def save_model(self, request: HttpRequest, obj: Qualification, form: Any, change: bool) -> None:
        assert isinstance(request.user, User)
        qualification = grant(obj.annotator, obj.task, obj.language, by=request.user)
        obj.pk, obj.major, obj.at = qualification.pk, qualification.major, qualification.at


# --- Accounts and their rights


@admin.register(User)
class AccountAdmin(_UserAdmin):
    """Accounts. Only superusers may change rights, so that other managers can't grant themselves rights."""

    RIGHTS = ("is_staff", "is_superuser", "groups", "user_permissions")

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> list[str]:
        return [*super().get_readonly_fields(request, obj), *(() if request.user.is_superuser else self.RIGHTS)]

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return super().has_change_permission(request, obj) and (obj is None or accounts.may_change(request.user, obj))

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return super().has_delete_permission(request, obj) and (obj is None or accounts.may_change(request.user, obj))

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if {"is_staff", "is_superuser"} & set(form.changed_data):
            # When an annotator becomes a manager, revoke their invitation links, which must not give access to a
            # manager's account.
            accounts.revoke_invites(Annotator.objects.filter(user=obj))


@admin.register(Group)
class RightsAdmin(GroupAdmin):
    """Groups of users. Only superusers may change them, because groups grant rights."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.is_superuser

    has_change_permission = has_delete_permission = lambda self, request, obj=None: request.user.is_superuser
