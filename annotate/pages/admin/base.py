"""What the admin's pages have in common."""

from django import forms
from django.contrib import admin

from annotate.core.refusals import Refusal


class ReadOnly(admin.ModelAdmin):
    """Records that can be looked at but not changed."""

    # It would count all rows where some are searched for.
    show_full_result_count = False

    def has_add_permission(self, request):
        return False

    def has_change_permission(self, request, obj=None):
        return False

    def has_delete_permission(self, request, obj=None):
        return False


class Undeletable(admin.ModelAdmin):
    def has_delete_permission(self, request, obj=None):
        return False


def refused(check, *arguments) -> None:
    """Shows at the form what an operation would refuse."""
    try:
        check(*arguments)
    except Refusal as refusal:
        raise forms.ValidationError(str(refusal)) from refusal
