"""The page on which a person is warned of what they would read, agrees to it, declines it, or takes that back."""

from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from annotate.core.refusals import InvalidAnswer
from annotate.pages.access import with_task
from annotate.work import consenting
from annotate.work.permit import permit_of

DOES = {"agree": consenting.agree, "decline": consenting.withdraw}


@require_http_methods(["GET", "POST"])
@with_task("annotate")
def consent(request, annotator, task):
    """POST, field: do, agree or decline, which takes an agreement back."""
    consenting.check_sensitive(task)
    permit = permit_of(annotator, task)
    if request.method == "POST":
        act = DOES.get(request.POST.get("do", ""))
        if act is None:
            raise InvalidAnswer(_("The form did not say whether you agree. Reload the page."))
        act(annotator, task.name)
        # Who only adjudicates reads nothing in the queue.
        to_queue = act is consenting.agree and permit.reads
        return redirect("queue", task=task.name) if to_queue else redirect("home")
    language, warning = task.kind.sensitive.warning(permit.levels)
    context = {
        "task": task,
        "language": language,
        "warning": warning,
        "a_day": task.kind.sensitive.a_day,
        "agreed_at": consenting.agreed_at(annotator, task),
    }
    return render(request, "annotate/consent.html", context)
