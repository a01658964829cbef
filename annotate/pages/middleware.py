"""Middleware for all pages: cache headers, serialized writes, login, preferences and refusals."""

import re
from collections.abc import Callable
from contextlib import nullcontext, suppress
from threading import BoundedSemaphore, Lock
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse, UnreadablePostError
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.utils.translation import get_language, get_language_from_request, override

from annotate.core.refusals import Refusal
from annotate.kinds.interface_language import ENGLISH
from annotate.pages.access import API, PageRequest, View
from annotate.pages.account import DRAFT, FORM, PERSON, carried_form, nearest_page, previous_page, signed_person
from annotate.pages.error_responses import LONG, busy, refusal_page
from annotate.work.accounts import preferences_of

NOT_KEPT = "max-age=0, no-cache, no-store, must-revalidate, private"  # Cache-Control of Django's never_cache

AnyResponse = HttpResponse | StreamingHttpResponse
GetResponse = Callable[[HttpRequest], AnyResponse]


class Middleware:
    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response


class HeadersMiddleware(Middleware):
    """Forbid caching unless a view allows it, because nearly every page contains personal or restricted data.

    Also forbid content from other sites, unless a view sets its own content security policy.

    Also answer HEAD requests, which monitoring services send, for every URL that allows GET. The response has the same
    headers but no body.
    """

    def __call__(self, request: HttpRequest) -> AnyResponse:
        is_head = request.method == "HEAD"
        if is_head:
            request.method = "GET"
        response = self.get_response(request)
        response.headers.setdefault("Cache-Control", NOT_KEPT)
        response.headers.setdefault("Content-Security-Policy", settings.CONTENT_SECURITY_POLICY)
        if not is_head:
            return response
        if isinstance(response, StreamingHttpResponse):
            response.streaming_content = []
        else:
            response.headers["Content-Length"] = str(len(response.content))
            response.content = b""
        return response


# URL prefixes of annotators' requests, which are short. Managers' requests (LONG) can be slow, so they run in
# parallel.
SHORT = ("/tasks/", API)
# Maximum number of running or waiting POST requests in a process. On SQLite, each of them occupies a thread.
AT_ONCE = 60


class InTurnMiddleware(Middleware):
    """Run annotators' writes one at a time in each process.

    Only one thread runs Python at a time, so concurrent writes would interrupt each other at every statement of their
    transactions. With 32 active annotators, this would halve the number of answers per second.

    A waiting write occupies a thread. If too many writes are waiting, further writes are refused, so that users can
    still open pages.
    """

    def __init__(self, get_response: GetResponse) -> None:
        super().__init__(get_response)
        self.lock = Lock()
        self.slots = BoundedSemaphore(AT_ONCE)

    def __call__(self, request: HttpRequest) -> AnyResponse:
        if request.method != "POST":
            return self.get_response(request)
        is_annotator_write = request.path_info.startswith(SHORT) and not request.path_info.startswith(LONG)
        if is_annotator_write:
            # Read the body first, so that a slow connection doesn't block other requests.
            with suppress(SuspiciousOperation, UnreadablePostError):
                _ = request.body
        if not self.slots.acquire(blocking=False):
            return busy(request)
        try:
            with self.lock if is_annotator_write else nullcontext():
                return self.get_response(request)
        finally:
            self.slots.release()


KEPT = "preferences"  # session key


# URL prefixes of pages that exist only in English: managers' pages, the API and the documentation. On all other pages,
# kinds/interface_language.py translates the texts of kinds, and the catalogs in locale/ translate the rest.
IN_ENGLISH = ("/manage/", "/admin/", API, "/docs/")


class PreferencesMiddleware(Middleware):
    """Apply the user's preferences: set the time zone, the language, and request.preferences for templates.

    Also set request.htmx: whether htmx sent the request.

    Without a preferred language, the cookie or the browser determines the language. The API ignores preferences. They
    are cached in the session, so that only the first request after login queries the database. A change made in
    another browser therefore takes effect at the next login.
    """

    def __call__(self, request: PageRequest) -> AnyResponse:
        request.htmx = request.META.get("HTTP_HX_REQUEST") == "true"
        preferences, path = {}, request.path_info
        # Don't create sessions for visitors, so that browsers can cache public pages.
        if settings.SESSION_COOKIE_NAME in request.COOKIES and not path.startswith(API):
            if KEPT not in request.session and request.user.is_authenticated:
                request.session[KEPT] = preferences_of(request.user)
            preferences = request.session.get(KEPT, {})
        request.preferences = preferences
        if path.startswith(IN_ENGLISH):
            language = ENGLISH
        else:
            language = preferences.get("language") or get_language_from_request(request)
        with timezone.override(preferences.get("time_zone") or None), override(language):
            request.LANGUAGE_CODE = get_language()
            response = self.get_response(request)
        response.headers.setdefault("Content-Language", language)
        patch_vary_headers(response, ("Accept-Language",))
        return response


ACCEPTED = "accepted"  # cookie with the number of a saved draft
NUMBER = re.compile(r"[0-9]{2,20}")
# Suffixes of the names of URLs that save nothing. After a request to such a URL, drafts.js must keep the draft.
STEPS = ("preview", "choose")


class LogInMiddleware(LoginRequiredMiddleware):
    """Redirect users without a session to the login page, and back to their page after login.

    Also set two cookies: one identifies the user who may see a carried form again, the other tells drafts.js the number
    of the saved draft.
    """

    def process_view(
        self, request: HttpRequest, view_func: View, view_args: tuple[Any, ...], view_kwargs: dict[str, Any]
    ) -> HttpResponseBase | None:
        response = super().process_view(request, view_func, view_args, view_kwargs)
        # Replace Django's lazy object with the user that it has loaded. The lazy object makes attribute access slow.
        request.user = getattr(request, "_cached_user", request.user)
        return response

    def handle_no_permission(self, request: HttpRequest, view_func: View) -> HttpResponseRedirect:
        if request.method != "POST" or request.path_info.startswith(API):
            return super().handle_no_permission(request, view_func)
        response = redirect_to_login(previous_page(request))
        if not request.headers.get("HX-Request") and carried_form(request, request.path):
            # Status 307 makes the browser submit the form again, now to the login page.
            response["Location"] += f"&{urlencode({FORM: request.get_full_path()})}"
            response.status_code = 307
        return response

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        user = getattr(request, "_cached_user", None)
        # Cacheable responses, such as the documentation, must not set personal cookies.
        if user is None or not user.is_authenticated or response.has_header("Cache-Control"):
            return response
        person = signed_person(user.pk)
        if request.COOKIES.get(PERSON) != person:
            response.set_cookie(PERSON, person, httponly=True, samesite="Lax", secure=request.is_secure())
        if request.method == "POST" and response.status_code < 400:
            number, address = request.POST.get(DRAFT, ""), request.resolver_match
            if NUMBER.fullmatch(number) and not (address and (address.url_name or "").endswith(STEPS)):
                response.set_cookie(ACCEPTED, number, samesite="Lax", secure=request.is_secure())
        return response


METHOD_NOT_ALLOWED = 405


class RefusalMiddleware(Middleware):
    """Show a page for refusals, and for requests with a method that the URL doesn't allow."""

    def __call__(self, request: HttpRequest) -> AnyResponse:
        response = self.get_response(request)
        is_for_people = request.method != "OPTIONS" and not request.path_info.startswith(API)
        if response.status_code != METHOD_NOT_ALLOWED or not is_for_people:
            return response
        page = render(request, "405.html", {"way": nearest_page(request.get_full_path())}, status=METHOD_NOT_ALLOWED)
        page.headers["Allow"] = response.headers["Allow"]
        return page

    def process_exception(self, request: PageRequest, error: Exception) -> HttpResponse | None:
        return refusal_page(request, error) if isinstance(error, Refusal) else None
