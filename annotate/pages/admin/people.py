"""People: annotators as they stand, and accounts with their rights."""

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.utils import timezone

from annotate.figures.overview_report import account_state
from annotate.models import Annotator, AnnotatorLanguage, Invite
from annotate.pages.admin.base import ReadOnly
from annotate.work import accounts


class AnnotatorLanguageInline(admin.TabularInline):
    model = AnnotatorLanguage
    extra = 0


class InviteInline(admin.TabularInline):
    model = Invite
    extra = 0
    fields = readonly_fields = ["created_at", "expires_at", "used_at", "revoked_at"]


@admin.register(Annotator)
class AnnotatorAdmin(ReadOnly):
    """Who they are and what they read is changed on the pages of accounts.py; desk.py tells how much they have done."""

    list_display = ["username", "name", "reads", "adjudicates", "active", "invited"]
    list_filter = ["adjudicates", "user__is_active"]
    search_fields = ["user__username", "user__first_name", "user__last_name", "=languages__language"]
    search_help_text = "name, user name, or the code of a language that they read"
    readonly_fields = ["pseudonym"]
    inlines = [AnnotatorLanguageInline, InviteInline]

    def get_queryset(self, request):
        return super().get_queryset(request).select_related("user").prefetch_related("languages", "invites")

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

    @admin.display(description="account")
    def invited(self, annotator):
        return account_state(annotator, timezone.now())


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
