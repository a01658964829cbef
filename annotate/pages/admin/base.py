"""What the admin's pages have in common."""

from django import forms
from django.contrib import admin

from annotate.core.refusals import Refusal
from annotate.work.languages import is_language, unknown_code


class ReadOnly(admin.ModelAdmin):
    """Records that can be looked at but not changed."""

    def has_add_permission(self, request):
        return False

    def has_change_permission(self, request, obj=None):
        return False

    def has_delete_permission(self, request, obj=None):
        return False


class LabelledInline(admin.TabularInline):
    """Rows whose fields say themselves what they are, since the head of their column is not read out with them."""

    def formfield_for_dbfield(self, db_field, request, **kwargs):
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field:
            field.widget.attrs.setdefault("aria-label", db_field.verbose_name)
        return field


class Undeletable(admin.ModelAdmin):
    def has_delete_permission(self, request, obj=None):
        return False


def refused(check, *arguments) -> None:
    """Shows at the form what an operation would refuse."""
    try:
        check(*arguments)
    except Refusal as refusal:
        raise forms.ValidationError(str(refusal)) from refusal


def check_language(code: str, also=()) -> str:
    if code not in also and not is_language(code):
        raise forms.ValidationError(unknown_code(code))
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
