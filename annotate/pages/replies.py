"""The annotator's side of the channel: replies and notes to them, put away when they are read; and whether they take
what others found disturbing.
"""

from django.contrib import messages
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from annotate.core.refusals import InvalidAnswer
from annotate.pages.access import check_right
from annotate.work import flagging, notes


def told(permits) -> dict:
    """What _messages.html shows of one person's replies and notes on their first page."""
    return {"replies": list(flagging.replies(permits[0].annotator)), "notes": notes.to_read(permits)} if permits else {}


@require_POST
def put_reply_away(request, flag):
    flagging.put_away(check_right(request.user, "annotate"), flag)
    return redirect("home")


@require_POST
def put_note_away(request, note):
    """Field: queue, where it was read above the queue of its task."""
    found = notes.put_away(check_right(request.user, "annotate"), note)
    return redirect("queue", task=found.task.name) if "queue" in request.POST else redirect("home")


@require_POST
def take_disturbing(request):
    """Field: takes, yes or no: whether the person asks for what others found disturbing."""
    annotator, said = check_right(request.user, "annotate"), request.POST.get("takes")
    if said not in ("yes", "no"):
        raise InvalidAnswer(_("The form did not say what you choose. Reload the page."))
    takes = said == "yes"
    flagging.take_disturbing(annotator, takes=takes)
    messages.success(
        request,
        _("From now on you may be given what others found disturbing.")
        if takes
        else _("You are given nothing more that others found disturbing."),
    )
    return redirect("account")
