"""Guidelines by version and language, for the manager who writes them: a new version with a preview, and older ones.

How annotators are shown them is in qualification.py.
"""

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.contrib.admin.models import ADDITION
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from annotate.core.guidelines import fault
from annotate.core.refusals import InvalidAnswer, Refusal, WrongStage
from annotate.kinds.labels import label_name
from annotate.models import Guidelines, Task
from annotate.pages.access import may, with_task
from annotate.pages.around import manage_page as page
from annotate.pages.around import note
from annotate.pages.errors import status_of
from annotate.pages.showing import markdown, rendered
from annotate.quality.guidelines import ENGLISH, current, new_version, newest_of, versions
from annotate.reports.tables import many
from annotate.work.languages import is_language

MINOR, MAJOR = "minor", "major"


@require_GET
@with_task("manage")
def guidelines(request, _, task):
    """?language= says in which language."""
    return _page(request, task, request.GET.get("language", ""), {})


@require_POST
@with_task("guide")
def preview(request, _, task):
    """How annotators will see the text. Fields: those of `add`."""
    text, language = request.POST.get("text", ""), request.POST.get("language", "")
    wrong = fault(text)
    shown = {"refusal": f"The guidelines {wrong}."} if wrong else {"preview": rendered(text)}
    if request.htmx:
        return render(request, "annotate/manage/_preview.html", {"language": language, **shown})
    return _page(request, task, language, request.POST, previewed=True, after=request.POST.get("after", ""), **shown)


@require_POST
@with_task("guide")
def add(request, _, task):
    """Add a version. Fields: language, text, change (minor or major), after (the version with which the text began)."""
    posted = request.POST
    language, change, after = (posted.get(name, "") for name in ("language", "change", "after"))
    try:
        if change not in (MINOR, MAJOR):
            raise InvalidAnswer("Say what kind of change it is.")
        text = posted.get("text", "").replace("\r\n", "\n")
        began = int(after) if after.isdecimal() and len(after) < 19 else None
        made = new_version(task, language, text, major=change == MAJOR, after=began)
    except WrongStage as refusal:
        # Told of the version that was added meanwhile, its writer may add theirs after it.
        return _page(request, task, language, posted, refusal=str(refusal), status=status_of(refusal))
    except Refusal as refusal:
        return _page(request, task, language, posted, after=after, refusal=str(refusal), status=status_of(refusal))
    note(request, made, f"Added as a {change} version.", ADDITION)
    again = _who_must_again(task, made) if change == MAJOR else ""
    messages.success(
        request, f"Version {made.version} holds in {label_name(language) or language} now. {again}".strip()
    )
    return redirect(f"{reverse('manage-guidelines', args=[task.name])}?language={language}")


def _who_must_again(task: Task, made: Guidelines) -> str:
    passed = task.qualifications.filter(language=made.language, major=made.major - 1).count()
    if not (task.test_items and passed):
        return ""
    takes = "takes" if passed == 1 else "take"
    return f"{many(passed, 'annotator')} who had passed {takes} the test again before they go on."


def _page(request, task: Task, language: str, said: Mapping[str, str], *, status: int = 200, **context):
    newest = newest_of(task)
    # Where the labels are the languages, guidelines may be in any; where records have languages, in these.
    typed = {language} if not task.languages and is_language(language) else set()
    offered = sorted({*task.languages, *newest, ENGLISH, *typed})
    if language not in offered:
        language = ENGLISH if ENGLISH in newest or not newest else min(newest)
    held = current(task, language)
    # After a refusal the text is what was typed.
    text = said.get("text", held.text if held else "")
    begins = held is not None and text == held.text
    around: dict[str, Any] = {
        "language": language,
        "languages": [(code, label_name(code) or code, code in newest) for code in offered],
        "name": label_name(language) or language,
        "held": held,
        "after": held.pk if held else "",
        "own": held is not None and held.language == language,
        "versions": versions(task, language),
        "text": text,
        "change": said.get("change", ""),
        "preview": markdown(text) if begins else "" if fault(text) else rendered(text),
        "guides": may(request.user, "guide"),
    }
    return page(request, "guidelines", task, status=status, **{**around, **context})
