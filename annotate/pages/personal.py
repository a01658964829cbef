"""What a person sets for themselves: how the pages look and which languages they read; and the managers' page of the
languages for which people ask.
"""

from zoneinfo import ZoneInfo, available_timezones

from django import forms
from django.conf import settings
from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.text import capfirst
from django.utils.translation import get_language_from_request, get_language_info, gettext_lazy, override
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from annotate.core.refusals import InvalidAnswer
from annotate.kinds.labels import label_name
from annotate.models import LanguageRequest, Preferences
from annotate.pages.access import check_right
from annotate.pages.errors import status_of
from annotate.pages.forms import whole_number
from annotate.pages.middleware import KEPT
from annotate.work import personal
from corpora.core.languages import LANGUAGES, UND

TEXT_SIZES = [
    ("", gettext_lazy("as the browser has it")),
    ("large", gettext_lazy("large")),
    ("larger", gettext_lazy("larger")),
]
THEMES = [("", gettext_lazy("as the system has it")), ("light", gettext_lazy("light")), ("dark", gettext_lazy("dark"))]
KEYS = [
    ("", gettext_lazy("digits only")),
    ("left", gettext_lazy("letters of the left hand too: A S D E R T X V B")),
    ("right", gettext_lazy("letters of the right hand too: J K L U I O P N M")),
]
LEVELS = {
    5: gettext_lazy("5, as a native"),
    4: gettext_lazy("4, nearly everything"),
    3: gettext_lazy("3, most of it"),
    2: gettext_lazy("2, plain texts"),
    1: gettext_lazy("1, a little"),
}
# The regions of the IANA time zone database; its other names are old ones, and offsets.
REGIONS = ["Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific"]


def zones() -> list[str]:
    """The time zones of places, for a list to choose from."""
    return sorted(name for name in available_timezones() if name.split("/")[0] in REGIONS)


def tongues() -> list[tuple[str, str]]:
    """The languages of the pages, each by its own name."""
    return [(code, capfirst(get_language_info(code)["name_local"])) for code, _name in settings.LANGUAGES]


class PreferencesForm(forms.ModelForm):
    text_size = forms.ChoiceField(label=gettext_lazy("Size of the text"), choices=TEXT_SIZES, required=False)
    theme = forms.ChoiceField(label=gettext_lazy("Colours"), choices=THEMES, required=False)
    keys = forms.ChoiceField(label=gettext_lazy("Keys that answer"), choices=KEYS, required=False)
    language = forms.ChoiceField(
        label=gettext_lazy("Language of the pages"),
        choices=lambda: [("", _("as the browser has it")), *tongues()],
        required=False,
        help_text=gettext_lazy("Texts that you read stay in theirs, and so does all that managers see."),
    )
    time_zone = forms.CharField(
        label=gettext_lazy("Time zone"),
        max_length=64,
        required=False,
        widget=forms.TextInput({"list": "zones", "autocomplete": "off", "placeholder": settings.TIME_ZONE}),
        help_text=gettext_lazy("For times on pages. What counts for a day goes by the time zone of this installation."),
    )
    goal = forms.IntegerField(
        label=gettext_lazy("Answers a day that you set yourself as a goal"),
        min_value=1,
        max_value=Preferences.MOST_A_DAY,
        required=False,
        help_text=gettext_lazy("Nobody else sees it. Leave it empty to have none."),
    )

    class Meta:
        model = Preferences
        fields = ("text_size", "theme", "keys", "language", "time_zone", "goal")

    def clean_time_zone(self):
        name = self.cleaned_data["time_zone"]
        if name and name not in available_timezones():
            raise forms.ValidationError(_("There is no such time zone; choose one such as Europe/Berlin."))
        return name and ZoneInfo(name).key


@require_http_methods(["GET", "POST"])
def preferences(request):
    kept = personal.preferences_of(request.user)
    posted = None
    if request.method == "POST":
        if not request.POST.keys() & kept.keys():
            raise InvalidAnswer(_("The form did not say what you choose. Reload the page."))
        posted = kept | request.POST.dict()  # what the form does not name stays as it is
    form = PreferencesForm(posted, initial=kept)
    if form.is_valid():
        kept = personal.set_preferences(request.user, form.cleaned_data)
        request.session[KEPT] = kept
        with override(kept["language"] or get_language_from_request(request)):
            messages.success(request, _("Your preferences are saved."))
        return redirect("preferences")
    return render(request, "annotate/preferences.html", {"form": form, "zones": zones()})


# --- languages


@require_http_methods(["GET", "POST"])
def languages(request):
    """The languages that an annotator reads, and those for which they ask. Fields: language, level, words."""
    annotator, refusal = check_right(request.user, "annotate"), None
    if request.method == "POST":
        said = request.POST.get("language", ""), whole_number(request.POST.get("level")), request.POST.get("words", "")
        try:
            personal.ask_for_language(annotator, *said)
        except InvalidAnswer as error:
            refusal = error
        else:
            messages.success(request, _("A manager will decide about it, and you find the answer here."))
            return redirect("languages")
    context = {
        "reads": [(label_name(row.language), LEVELS.get(row.level, row.level)) for row in annotator.languages.all()],
        "asked": [(label_name(row.language), row) for row in annotator.language_requests.order_by("-pk")[:20]],
        "choices": sorted((label_name(code), code) for code in LANGUAGES if code != UND),
        "levels": LEVELS.items(),
        "refusal": refusal,
        "posted": request.POST,
    }
    return render(request, "annotate/languages.html", context, status=status_of(refusal) if refusal else 200)


@require_http_methods(["GET", "POST"])
def requests(request):
    """For managers: the languages for which people ask. Fields: grant or refuse, a request; level, if another."""
    check_right(request.user, "people" if request.method == "POST" else "manage")
    if request.method == "POST":
        if (granted := whole_number(request.POST.get("grant"))) is not None:
            found = personal.grant(granted, request.user, whole_number(request.POST.get(f"level-{granted}")))
        elif (refused := whole_number(request.POST.get("refuse"))) is not None:
            found = personal.refuse(refused, request.user)
        else:
            raise InvalidAnswer("The form did not say which request it decides. Reload the page.")
        done = "reads" if found.outcome == LanguageRequest.GRANTED else "is not put down for"
        messages.success(request, f"{found.annotator} {done} {label_name(found.language)}.")
        return redirect("manage-languages")
    rows = [(row, label_name(row.language)) for row in personal.waiting_requests()]
    return render(request, "annotate/manage/languages.html", {"rows": rows, "levels": list(personal.LEVELS)})
