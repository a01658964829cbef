"""Languages: which queue serves which, and what is tried after it."""

from django import forms
from django.contrib import admin

from annotate.models import LanguageRoute, Task
from annotate.pages.admin.base import CodesField, check_language
from annotate.work.languages import learn_languages
from annotate.work.progress import queues_by_use
from corpora.core.languages import LANGUAGES, UND


class LanguageRouteForm(forms.ModelForm):
    extra_candidates = CodesField(label="Extra candidates")

    class Meta:
        model = LanguageRoute
        fields = ["language", "queue", "extra_candidates", "never_agree"]

    def clean_language(self):
        return check_language(self.cleaned_data["language"], also=[UND])

    def clean_queue(self):
        return check_language(self.cleaned_data["queue"])


@admin.register(LanguageRoute)
class LanguageRouteAdmin(admin.ModelAdmin):
    form = LanguageRouteForm
    list_display = ["language", "name", "queue", "tried_after", "never_agree"]
    search_fields = ["language", "queue"]
    change_list_template = "admin/annotate/languageroute/change_list.html"

    def changelist_view(self, request, extra_context=None):
        learn_languages()
        # The effect of a setting: the units that wait in each queue of the open tasks, beside the people who read it.
        tables = [(task, queues_by_use(task)) for task in Task.objects.filter(is_open=True)]
        return super().changelist_view(request, {**(extra_context or {}), "tables": tables})

    @admin.display
    def name(self, route):
        return LANGUAGES[route.language].name if route.language in LANGUAGES else "no language seen"

    @admin.display(description="tried after it")
    def tried_after(self, route):
        return " ".join(route.extra_candidates)
