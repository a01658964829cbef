"""The log-in, and what is sent after a session has ended: it is carried through the log-in and can be sent again.

Drafts of what is typed are kept by drafts.js; without JavaScript the page of the log-in carries the form.
"""

import re
from urllib.parse import urlencode, urlsplit

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import LoginView, redirect_to_login
from django.core.signing import BadSignature, Signer, dumps, loads
from django.shortcuts import render
from django.urls import Resolver404, resolve, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import get_language, override

from annotate.pages.errors import API
from annotate.work.personal import preferences_of

FORM = "form"  # query of the log-in
CARRIED = "carried"  # field of the log-in, and salt of its signature
CARRIED_FOR = 24 * 3600  # seconds
CARRIED_MOST = 1 << 20  # characters of a form
NOT_CARRIED = re.compile("csrfmiddlewaretoken|.*password.*|next|carried")
PERSON = "person"  # cookie: who was logged in here last, signed
DRAFT, ACCEPTED = "draft", "accepted"  # field and cookie of drafts.js
NUMBER = re.compile(r"[0-9]{2,20}")
# Steps on the way to what is saved: what was typed is not accepted yet.
STEPS = ("preview", "choose")


class LogInMiddleware(LoginRequiredMiddleware):
    """Leads to the log-in and back to a page; notes for drafts.js what was accepted."""

    def handle_no_permission(self, request, view_func):
        if request.method != "POST" or request.path_info.startswith(API):
            return super().handle_no_permission(request, view_func)
        led = redirect_to_login(way_back(request))
        if not request.headers.get("HX-Request") and _carried(request, request.path):
            # With this status the browser sends the form to the log-in.
            led["Location"] += f"&{urlencode({FORM: request.get_full_path()})}"
            led.status_code = 307
        return led

    def process_response(self, request, response):
        user = getattr(request, "_cached_user", None)
        # What others may keep, such as the documentation, tells nothing of a person.
        if user is None or not user.is_authenticated or response.has_header("Cache-Control"):
            return response
        person = Signer(salt=PERSON).sign(str(user.pk))
        if request.COOKIES.get(PERSON) != person:
            response.set_cookie(PERSON, person, httponly=True, samesite="Lax", secure=request.is_secure())
        if request.method == "POST" and response.status_code < 400:
            number, address = request.POST.get(DRAFT, ""), request.resolver_match
            if NUMBER.fullmatch(number) and not (address and (address.url_name or "").endswith(STEPS)):
                response.set_cookie(ACCEPTED, number, samesite="Lax", secure=request.is_secure())
        return response


class LogIn(LoginView):
    """The log-in. A form that was sent after the session had ended is afterwards offered to the person who had sent it,
    and to nobody else. ?form=: the address for which it was meant.
    """

    template_name = "annotate/login.html"

    def post(self, request, *args, **kwargs):
        if FORM in request.GET:
            return self.get(request, *args, **kwargs)
        return super().post(request, *args, **kwargs)

    def get_redirect_url(self):
        asked = super().get_redirect_url()
        return nearest(asked) if asked else asked

    def get_form_kwargs(self):
        kwargs = super().get_form_kwargs()
        if FORM in self.request.GET:
            kwargs |= {"data": None, "files": None}
        return kwargs

    def get_context_data(self, **kwargs):
        posted, meant_for = self.request.POST, self.request.GET.get(FORM, "")
        carried = _carried(self.request, meant_for) if meant_for else posted.get(CARRIED, "")
        return super().get_context_data(**kwargs) | {CARRIED: carried, DRAFT: posted.get(DRAFT, "")}

    def form_valid(self, form):
        response = super().form_valid(form)
        form_sent = _read(self.request.POST.get(CARRIED, ""), form.get_user())
        if form_sent is None:
            return response
        fields = [(name, value) for name, values in form_sent["fields"] for value in values]
        context = {"action": form_sent["path"], "fields": fields, "back": self.get_success_url()}
        with override(preferences_of(form.get_user())["language"] or get_language()):
            return render(self.request, "annotate/carried.html", context)


def way_back(request) -> str:
    """The page on which a form stood: the one from which it came, else the nearest one above its address."""
    came_from = request.headers.get("Referer", "")
    if url_has_allowed_host_and_scheme(came_from, {request.get_host()}, require_https=request.is_secure()):
        parts = urlsplit(came_from)
        if _is_page(parts.path) and parts.path != reverse("login"):
            return f"{parts.path}?{parts.query}" if parts.query else parts.path
    return nearest(request.get_full_path())


def nearest(path: str) -> str:
    """The address itself, or the nearest one above it that shows a page."""
    while not _is_page(urlsplit(path).path):
        above = urlsplit(path).path.rstrip("/").rpartition("/")[0] + "/"
        if above == "/":
            return reverse("home")
        path = above
    return path


def _is_page(path: str) -> bool:
    """Whether an address shows a page when it is asked for."""
    try:
        view = resolve(path).func
    except Resolver404:
        return False
    return _takes_get(view)


def _takes_get(view) -> bool:
    """Django's require_POST and its sisters keep the methods in a closure, around what other decorators wrap."""
    if (of_class := getattr(view, "view_class", None)) is not None:
        return hasattr(of_class, "get") and "get" in of_class.http_method_names
    while view is not None:
        code = getattr(view, "__code__", None)
        if code is not None and "request_method_list" in code.co_freevars:
            return "GET" in view.__closure__[code.co_freevars.index("request_method_list")].cell_contents
        view = getattr(view, "__wrapped__", None)
    return True


def _carried(request, path: str) -> str:
    """The form as a signed text; empty if nobody is known to have sent it, or it is too large or has files. path: where
    it was meant to go.
    """
    try:
        person = Signer(salt=PERSON).unsign(request.COOKIES.get(PERSON, ""))
    except BadSignature:
        return ""
    fields = [(name, values) for name, values in request.POST.lists() if not NOT_CARRIED.fullmatch(name)]
    size = sum(len(name) + sum(map(len, values)) for name, values in fields)
    if not fields or request.FILES or size > CARRIED_MOST or not url_has_allowed_host_and_scheme(path, None):
        return ""
    return dumps({"person": person, "path": path, "fields": fields}, salt=CARRIED, compress=True)


def _read(carried: str, user) -> dict | None:
    """The form that was carried through the log-in, if it was this person's."""
    try:
        form = loads(carried, salt=CARRIED, max_age=CARRIED_FOR)
    except BadSignature:
        return None
    return form if form["person"] == str(user.pk) else None
