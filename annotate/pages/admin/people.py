"""People: annotators, their languages, their invitations."""

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q
from django.shortcuts import render
from django.urls import path, reverse
from django.utils import timezone
from django.utils.translation import ngettext

from annotate.actions import mail
from annotate.core.refusals import Refusal
from annotate.models import Annotator, AnnotatorLanguage, Invite
from annotate.pages.admin.base import LabelledInline, check_language, refused
from annotate.work import accounts
from annotate.work.people_file import BadTable, read_table


class AnnotatorLanguageForm(forms.ModelForm):
    class Meta:
        model = AnnotatorLanguage
        fields = ["language", "level"]

    def clean_language(self):
        return check_language(self.cleaned_data["language"])


class AnnotatorLanguageInline(LabelledInline):
    model = AnnotatorLanguage
    form = AnnotatorLanguageForm
    extra = 1


class InviteInline(LabelledInline):
    model = Invite
    extra = 0
    readonly_fields = ["created_at", "expires_at", "used_at", "revoked_at"]
    can_delete = False

    def has_add_permission(self, request, obj=None):
        return False


class TableForm(forms.Form):
    table = forms.FileField(
        label="CSV file", help_text="columns username, name, languages; write languages like this: de:5 en:4"
    )

    def clean_table(self):
        try:
            return read_table(self.cleaned_data["table"].read().decode())
        except UnicodeDecodeError:
            raise forms.ValidationError("The file is not UTF-8. Save it as “CSV UTF-8”.") from None
        except BadTable as error:
            raise forms.ValidationError([*error.args, "Nothing was changed."]) from error


class AnnotatorForm(forms.ModelForm):
    """by: the manager who sends it."""

    by: User

    def clean_user(self):
        refused(accounts.check_may_change, self.by, [self.cleaned_data["user"]])
        return self.cleaned_data["user"]


def _check(request, annotators) -> None:
    accounts.check_may_change(request.user, [annotator.user for annotator in annotators])


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
        # What was judged under one account would become another person's work.
        return [*self.readonly_fields, *(["user"] if obj else [])]

    def get_form(self, request, obj=None, **options):
        form = type("AnnotatorForm", (AnnotatorForm,), {"by": request.user})
        return super().get_form(request, obj, form=form, **options)

    def has_change_permission(self, request, obj=None):
        return super().has_change_permission(request, obj) and (
            obj is None or accounts.may_change(request.user, obj.user)
        )

    def has_delete_permission(self, request, obj=None):
        return False  # their judgments refer to them; lock them out instead

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
        made, mailed = None, []
        if form.is_valid():
            try:
                made, mailed = self._links(request, accounts.add_annotators(form.cleaned_data["table"], request.user))
            except Refusal as refusal:
                form.add_error("table", str(refusal))
        context = {**self.admin_site.each_context(request), "title": "Add annotators from a table"}
        context |= {"form": form, "made": made, "mailed": mailed, "opts": self.opts, "days": accounts.INVITE_DAYS}
        return render(request, "admin/annotate/annotator/import.html", context)

    def _links(self, request, made):
        """Each annotator with their link, if they have a new one, and what became of its mail; and what to say of all
        mails.
        """
        links = [
            (annotator, request.build_absolute_uri(reverse("invite", args=[token])) if token else None)
            for annotator, token in made
        ]
        # Not from the request: what it says of the host is its sender's to choose.
        sent = mail.invitations(
            (annotator.user, f"{settings.SITE}{reverse('invite', args=[token])}") for annotator, token in made if token
        )
        return links, mail.told(sent)

    def response_action(self, request, queryset):
        """Says above the list what an action refuses."""
        try:
            return super().response_action(request, queryset)
        except Refusal as refusal:
            messages.error(request, str(refusal))
            return None

    @admin.action(description="Make invite links (earlier links stop working)", permissions=["change"])
    def send_invites(self, request, queryset):
        _check(request, queryset)
        made, mailed = self._links(request, [(annotator, accounts.invite(annotator)) for annotator in queryset])
        context = {**self.admin_site.each_context(request), "title": "Invite links", "made": made, "mailed": mailed}
        context |= {"opts": self.opts, "days": accounts.INVITE_DAYS}
        return render(request, "admin/annotate/annotator/import.html", context)

    @admin.action(description="Revoke open invite links", permissions=["change"])
    def revoke_invites(self, request, queryset):
        _check(request, queryset)
        count = accounts.revoke_invites(queryset)
        messages.success(request, ngettext("%d link revoked.", "%d links revoked.", count) % count)

    @admin.action(description="Lock out (their answers stay)", permissions=["change"])
    def lock_out(self, request, queryset):
        _check(request, queryset)
        accounts.set_active(queryset, False)
        messages.success(request, "Locked out. Units of queues that now lack readers can be rerouted from their task.")

    @admin.action(description="Let in again", permissions=["change"])
    def let_in(self, request, queryset):
        _check(request, queryset)
        accounts.set_active(queryset, True)
        messages.success(request, "Let in again.")


# --- accounts, which are Django's

admin.site.unregister([User, Group])


@admin.register(User)
class AccountAdmin(UserAdmin):
    """Rights are for superusers to give: whoever else may change accounts could give them to themselves."""

    RIGHTS = ("is_staff", "is_superuser", "groups", "user_permissions")

    def get_readonly_fields(self, request, obj=None):
        return [*super().get_readonly_fields(request, obj), *(() if request.user.is_superuser else self.RIGHTS)]

    def has_change_permission(self, request, obj=None):
        return super().has_change_permission(request, obj) and (obj is None or accounts.may_change(request.user, obj))

    def has_delete_permission(self, request, obj=None):
        return super().has_delete_permission(request, obj) and (obj is None or accounts.may_change(request.user, obj))

    def save_model(self, request, obj, form, change):
        super().save_model(request, obj, form, change)
        if {"is_staff", "is_superuser"} & set(form.changed_data):
            # A link made for an annotator is not to open a manager's account.
            accounts.revoke_invites(Annotator.objects.filter(user=obj))


@admin.register(Group)
class RightsAdmin(GroupAdmin):
    """Groups give rights, too."""

    def has_add_permission(self, request):
        return request.user.is_superuser

    def has_change_permission(self, request, obj=None):
        return request.user.is_superuser

    def has_delete_permission(self, request, obj=None):
        return request.user.is_superuser
