"""Rules for every response: no cache keeps it, writes take turns, a refusal becomes a page, a language is chosen."""

from contextlib import ExitStack, nullcontext, suppress
from threading import BoundedSemaphore, Lock

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import SuspiciousOperation
from django.http import UnreadablePostError
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers
from django.utils.translation import get_language, get_language_from_request, override
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST
from django.views.i18n import set_language

from annotate.core.refusals import EnoughToday, NotAgreed, NotAllowed, Paused, Refusal
from annotate.kinds.interface_language import ENGLISH
from annotate.pages.access import API, busy, may, status_of
from annotate.pages.account import nearest
from annotate.work.accounts import preferences_of

NOT_KEPT = "max-age=0, no-cache, no-store, must-revalidate, private"  # as Django's never_cache says it


class HeadersMiddleware:
    """Browsers and proxies keep no answer, unless the view says that they may: nearly each tells of a person, or of
    what a person is given to read.

    HEAD is answered wherever GET is, with the same headers and no body. Monitors of a site send it.
    """

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        is_head = request.method == "HEAD"
        if is_head:
            request.method = "GET"
        response = self.get_response(request)
        response.headers.setdefault("Cache-Control", NOT_KEPT)
        if is_head and response.streaming:
            response.streaming_content = []
        elif is_head:
            response.headers["Content-Length"] = str(len(response.content))
            response.content = b""
        return response


# Acts of annotators, which are short. What takes long, such as a manager's page, goes on beside them.
SHORT = ("/tasks/", "/api/")
METHOD_NOT_ALLOWED = 405
AT_ONCE = 60  # forms and acts that are under way or wait in a process; on SQLite it has threads for so many


class InTurnMiddleware:
    """A process does one act after the other. Only one of its threads runs Python at any moment, so acts begun at once
    would take the turn from each other at every statement, in the middle of their transactions. With 32 people at work,
    half as many would be answered in a second.

    What writes holds a thread as long as it waits, and is refused where too much does, so that pages are always read.
    """

    def __init__(self, get_response):
        self.get_response = get_response
        self.turn = Lock()
        self.places = BoundedSemaphore(AT_ONCE)

    def __call__(self, request):
        if request.method != "POST":
            return self.get_response(request)
        is_act = request.path_info.startswith(SHORT)
        if is_act:
            # Somebody whose line is slow does not keep the others waiting.
            with suppress(SuspiciousOperation, UnreadablePostError):
                _ = request.body
        if not self.places.acquire(blocking=False):
            return busy(request)
        try:
            with self.turn if is_act else nullcontext():
                return self.get_response(request)
        finally:
            self.places.release()


KEPT = "preferences"  # in the session


class PreferencesMiddleware:
    """Pages are as the person wants them: request.preferences for templates, times in their time zone, words in their
    language, unless the page is one that speaks English alone. The API's replies are the same for everybody.

    What they want is kept in the session, so that no request reads it but the first after the log-in. In another
    browser a change shows after the next log-in there.
    """

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        request.preferences = kept = self._kept(request)
        with ExitStack() as stack:
            if zone := kept.get("time_zone"):
                stack.enter_context(timezone.override(zone))
            language = kept.get("language")
            if not language or is_english(request.path_info):
                return self.get_response(request)
            stack.enter_context(translation.override(language))
            request.LANGUAGE_CODE = language
            response = self.get_response(request)
            response.headers.setdefault("Content-Language", language)
            return response

    @staticmethod
    def _kept(request) -> dict:
        # Whoever has no session is asked for none, so that what is for everybody may be kept by browsers.
        if request.path_info.startswith(API) or settings.SESSION_COOKIE_NAME not in request.COOKIES:
            return {}
        if request.user.is_authenticated and KEPT not in request.session:
            request.session[KEPT] = preferences_of(request.user)
        return request.session.get(KEPT, {})


class RefusalMiddleware:
    """A refused act becomes a page that says why, and so does a method that the address does not take."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        response = self.get_response(request)
        is_for_people = request.method != "OPTIONS" and not request.path_info.startswith(API)
        if response.status_code != METHOD_NOT_ALLOWED or not is_for_people:
            return response
        page = render(request, "405.html", {"way": nearest(request.get_full_path())}, status=METHOD_NOT_ALLOWED)
        page.headers["Allow"] = response.headers["Allow"]
        return page

    def process_exception(self, request, error):
        return refused(request, error) if isinstance(error, Refusal) else None


def refused(request, error: Refusal):
    # htmx puts the sentence above the unit that is on the screen, where a typed comment still stands.
    template = "annotate/_refusal.html" if request.htmx else "annotate/refusal.html"
    # If the refused action belongs to a task, the way on is its queue, one by one or as a sheet, or its test.
    address = request.resolver_match
    on_sheet = (address.url_name or "").startswith("sheet")
    # What was typed must not be lost with the page on which it was typed.
    typed = "\n".join(
        filter(None, (request.POST.get(name, "").strip() for name in ("reason", "comment", "words", "reply", "text")))
    )
    context = {"refusal": error, "queue_of": address.kwargs.get("task"), "on_sheet": on_sheet, "typed": typed}
    # A person who is stopped is not sent on to something that would be refused again.
    context["paused"] = isinstance(error, Paused | EnoughToday)
    context["consent"] = isinstance(error, NotAgreed)
    # Shown again, this page says what comes next; but if it was refused itself, it would lead in a circle.
    if (address.url_name or "").startswith("qualification-"):
        context["qualification"] = reverse("qualification", args=[address.kwargs["task"], address.kwargs["language"]])
    if not request.htmx:
        context["way"] = _way_on(request, context)
    response = render(request, template, context, status=status_of(error))
    if request.htmx:
        response["HX-Retarget"] = "#notice"
        response["HX-Reswap"] = "innerHTML"
    return response


def _way_on(request, context) -> tuple[str, str]:
    """The address to which a refusal leads, and the words of its link; empty for the start page."""
    task, name = context["queue_of"], request.resolver_match.url_name or ""
    if "qualification" in context:
        return context["qualification"], _("To the test")
    if task and context["consent"]:
        return reverse("consent", args=[task]), _("Read the warning")
    if name.startswith("manage-question") and may(request.user, "manage"):
        return reverse("manage-questions"), "Back to the questions"
    if task and name.startswith("manage-") and may(request.user, "manage"):
        return reverse("manage-task", args=[task]), _("Back to the task")
    # Whoever has no queue would be refused there again.
    if not task or context["paused"] or not may(request.user, "annotate"):
        return "", ""
    if context["on_sheet"]:
        return reverse("sheet", args=[task]), _("Back to the sheet")
    return reverse("queue", args=[task]), _("Back to the task")


def csrf_failure(request, reason=""):
    """Django's own page speaks of cookies and DEBUG to people whose page is merely older than their session."""
    sentence = _("This page is older than your session, so nothing was done. Reload it and try again.")
    return refused(request, NotAllowed(sentence))


# --- The language of a page: the browser's, or the one chosen before the login. Pages of managers, the API and the
# documentation are English. Kinds translate their texts (kinds/interface_language.py); the rest is in locale/.

# Addresses of whose pages there is no other language.
IN_ENGLISH = ("/manage/", "/admin/", "/api/", "/docs/")


def is_english(path: str) -> bool:
    """Whether what stands at an address speaks English alone."""
    return path.startswith(IN_ENGLISH)


class TongueMiddleware:
    """Chooses by address, cookie and browser, in this order; without a statement of the database."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        spoken = ENGLISH if is_english(request.path_info) else get_language_from_request(request)
        with override(spoken):
            request.LANGUAGE_CODE = get_language()
            response = self.get_response(request)
        response.headers.setdefault("Content-Language", spoken)
        patch_vary_headers(response, ("Accept-Language",))
        return response


# Keeps the language in a cookie, and leads back to where the form stood.
choose = login_not_required(require_POST(set_language))
