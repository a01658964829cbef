"""Pages for login, lockout, passwords and API tokens."""

import re
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from math import ceil
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from axes.helpers import get_client_ip_address, get_client_username
from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import authenticate, login, update_session_auth_hash
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import (
    AuthenticationForm,
    PasswordChangeForm,
    PasswordResetForm,
    SetPasswordForm,
    UserCreationForm,
)
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import get_default_password_validators, password_validators_help_text_html
from django.contrib.auth.views import LoginView, PasswordResetConfirmView
from django.core.cache import cache
from django.core.signing import BadSignature, Signer, dumps, loads
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import Resolver404, resolve, reverse, reverse_lazy
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import get_language, gettext_lazy, override
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST
from django.views.i18n import set_language
from knox.models import AuthToken
from knox.settings import knox_settings

from annotate.core.refusals import Refusal
from annotate.pages.access import UserRequest, status_of
from annotate.pages.item_view import render_markdown
from annotate.work import accounts
from annotate.work.accounts import locked_until, preferences_of

BACKEND = "annotate.pages.access.PasswordBackend"
MAIL_INTERVAL = 300  # minimum time between two password mails to the same account, in seconds
TOO_MANY = 429


# --- Forgotten passwords


class ForgottenForm(PasswordResetForm):
    """A form that mails a link for resetting the password.

    Only active accounts with a password and a mail address get the mail. The response doesn't reveal whether the
    account exists.
    """

    email = forms.CharField(
        label=gettext_lazy("Username or mail address"),
        max_length=254,
        widget=forms.TextInput({"autocomplete": "username"}),
    )

    def get_users(self, email: str) -> Iterable[User]:
        typed = unicodedata.normalize("NFKC", email)
        users = User.objects.filter(Q(username=typed) | Q(email__iexact=typed), is_active=True).exclude(email="")
        return [
            user
            for user in users
            if user.has_usable_password() and cache.add(f"password-mail-{user.pk}", True, MAIL_INTERVAL)
        ]

    def send_mail(self, *arguments: Any, **options: Any) -> None:
        # Send the mail in a thread. Otherwise, the response time would reveal whether the account exists. Threads don't
        # inherit the request's language.
        send = override(get_language())(super().send_mail)
        Thread(target=send, args=arguments, kwargs=options).start()


@login_not_required
@require_http_methods(["GET", "POST"])
def forgotten(request: HttpRequest) -> HttpResponse:
    """Show the form that requests a reset link. If the site can't send mail, show whom to contact instead."""
    form = ForgottenForm(request.POST if request.method == "POST" and settings.MAIL else None)
    sent = form.is_valid()
    if sent:
        context: dict[str, Any] = {"minutes": settings.PASSWORD_RESET_TIMEOUT // 60}
        form.save(
            # Don't use the request's Host header, which the sender can forge.
            domain_override=settings.SITE,
            subject_template_name="annotate/password_mail_subject.txt",
            email_template_name="annotate/password_mail.txt",
            extra_email_context=context,
        )
    return render(request, "annotate/forgotten.html", {"form": form, "mail": settings.MAIL, "sent": sent})


class Reset(PasswordResetConfirmView):
    """The page that the mailed link opens, where the user sets a new password."""

    template_name = "annotate/reset.html"
    success_url = reverse_lazy("home")
    post_reset_login = True
    post_reset_login_backend = BACKEND

    def get_user(self, uidb64: str) -> User | None:
        user = super().get_user(uidb64)
        return user if user and user.is_active else None

    def render_to_response(self, context: dict[str, Any], **options: Any) -> HttpResponse:
        return super().render_to_response(context, status=200 if self.validlink else 404, **options)


# Sets the interface language before login. The view stores the language in a cookie and redirects back.
choose_language = login_not_required(require_POST(set_language))


# --- Setting a password


def _rules_for_new_account() -> str:
    """Return the help text for an account's first password.

    It omits the rule on ending sessions and API tokens, because a new account has none.
    """
    rules = [
        rule for rule in get_default_password_validators() if not isinstance(rule, accounts.RevokeOnPasswordChange)
    ]
    return str(password_validators_help_text_html(rules))


@login_not_required
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def accept_invite(request: HttpRequest, token: str) -> HttpResponse:
    try:
        user = accounts.find_invite(token).annotator.user
    except Refusal as refusal:
        return render(request, "annotate/refusal.html", {"refusal": refusal}, status=status_of(refusal))
    form = SetPasswordForm(user, request.POST or None)
    if not user.has_usable_password():
        form.fields["new_password1"].help_text = _rules_for_new_account()
    if form.is_valid():
        user = accounts.accept_invite(token, form.cleaned_data["new_password1"])
        login(request, user, backend=BACKEND)
        return redirect("home")
    page = render(request, "annotate/invite.html", {"form": form, "invited": user})
    # Keep the token in the URL out of the Referer header of requests for styles and scripts.
    page["Referrer-Policy"] = "strict-origin"
    return page


@login_not_required
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def first_manager(request: HttpRequest, token: str) -> HttpResponse:
    """Let the server's operator create the first manager's account."""
    form: UserCreationForm[User] = UserCreationForm(request.POST or None)
    form.fields["password1"].help_text = _rules_for_new_account()
    try:
        accounts.check_first_manager(token)
        if form.is_valid():
            user = accounts.create_first_manager(token, form.cleaned_data["username"], form.cleaned_data["password1"])
            login(request, user, backend=BACKEND)
            return redirect("manage")
    except Refusal as refusal:
        return render(request, "annotate/refusal.html", {"refusal": refusal}, status=status_of(refusal))
    page = render(request, "annotate/first_manager.html", {"form": form})
    page["Referrer-Policy"] = "strict-origin"  # as above
    return page


class ChangeForm(PasswordChangeForm):
    """A form that checks the old password as the login does, so that wrong passwords count towards the lockout."""

    def __init__(self, request: UserRequest, *arguments: Any) -> None:
        super().__init__(request.user, *arguments)
        self.request = request

    def clean_old_password(self) -> str:
        typed: str = self.cleaned_data["old_password"]
        if authenticate(self.request, username=self.user.username, password=typed) is None:
            raise forms.ValidationError(self.error_messages["password_incorrect"], code="password_incorrect")
        return typed


@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def change_password(request: UserRequest) -> HttpResponse:
    form = ChangeForm(request, request.POST or None)
    if form.is_valid():
        with transaction.atomic():
            form.save()
        update_session_auth_hash(request, form.user)
        messages.success(
            request,
            _("Your password has been changed. All other sessions have been logged out, and your API tokens deleted."),
        )
        return redirect("account")
    return render(request, "annotate/password.html", {"form": form})


def locked_out(request: HttpRequest, response: HttpResponse, credentials: dict[str, Any]) -> HttpResponse:
    """Return the page for users who have entered too many wrong passwords. django-axes calls this function."""
    name, address = get_client_username(request, credentials), get_client_ip_address(request)
    seconds = (locked_until(name, address) - timezone.now()).total_seconds()
    context = {"name": name, "minutes": max(1, ceil(seconds / 60)), "mail": settings.MAIL}
    page = render(request, "annotate/locked_out.html", context, status=TOO_MANY)
    page["Retry-After"] = max(1, ceil(seconds))
    return page


# --- API tokens


@require_http_methods(["GET", "POST"])
def account(request: UserRequest) -> HttpResponse:
    """Show the user's API tokens, or create, revoke or renew a token.

    A new token is shown only once, because only its hash is stored.

    POST fields:
    make: present to create a token
    revoke, renew: key of the token to revoke or renew
    """
    new_token = None
    current_time = timezone.now()
    if request.method == "POST":
        # Compare keys in Python, because arbitrary input can make a database query fail.
        by_key = {token.token_key: token for token in AuthToken.objects.filter(user=request.user)}
        if "make" in request.POST:
            _, new_token = AuthToken.objects.create(request.user)
        elif token := by_key.get(request.POST.get("revoke")):
            token.delete()
        elif (token := by_key.get(request.POST.get("renew"))) and token.expiry > current_time:
            token.expiry = current_time + knox_settings.TOKEN_TTL
            token.save(update_fields=["expiry"])
    tokens = [
        (token, token.expiry > current_time)
        for token in AuthToken.objects.filter(user=request.user).order_by("created")
    ]
    return render(
        request, "annotate/account.html", {"tokens": tokens, "made": new_token, "days": knox_settings.TOKEN_TTL.days}
    )


# --- Login. A form that is submitted after the session has ended isn't lost: drafts.js keeps a draft of the typed text
# and, without JavaScript, the login page carries the whole form in a hidden field and restores it after login.

FORM = "form"  # query parameter of the login page: the URL that the form was submitted to
CARRIED = "carried"  # name of the login form's field for the carried form, and salt of its signature
CARRIED_FOR = 24 * 3600  # lifetime of a carried form, in seconds
CARRIED_MOST = 1 << 20  # maximum length of a carried form, in characters
NOT_CARRIED = re.compile("csrfmiddlewaretoken|.*password.*|next|carried")
PERSON = "person"  # cookie with the last user's signed primary key
DRAFT = "draft"  # form field with the number of a draft


def welcome() -> str:
    """Return the installation's text for the login page, from welcome.md, as HTML; "" if there is none."""
    with suppress(FileNotFoundError):
        return render_markdown((settings.DATA_DIR / "welcome.md").read_text(encoding="utf-8"))
    return ""


class LogIn(LoginView):
    """The login page.

    A form that was submitted after the session ended is shown again after login, but only to the same user.

    ?form=: the URL that the form was submitted to
    """

    template_name = "annotate/login.html"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if FORM in request.GET:
            return self.get(request, *args, **kwargs)
        return super().post(request, *args, **kwargs)

    def get_redirect_url(self) -> str:  # type: ignore[override] # the stub has an additional parameter of Django 6
        target = super().get_redirect_url()
        return nearest_page(target) if target else target

    def get_form_kwargs(self) -> dict[str, Any]:
        kwargs = super().get_form_kwargs()
        if FORM in self.request.GET:
            kwargs |= {"data": None, "files": None}
        return kwargs

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        posted, form_url = self.request.POST, self.request.GET.get(FORM, "")
        carried = carried_form(self.request, form_url) if form_url else posted.get(CARRIED, "")
        return super().get_context_data(**kwargs) | {
            CARRIED: carried,
            DRAFT: posted.get(DRAFT, ""),
            "is_new": not accounts.managers().exists(),
            "welcome": welcome(),
        }

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_valid(form)
        form_sent = _load_carried_form(self.request.POST.get(CARRIED, ""), form.get_user())
        if form_sent is None:
            return response
        fields = [(name, value) for name, values in form_sent["fields"] for value in values]
        context = {"action": form_sent["path"], "fields": fields, "back": self.get_success_url()}
        with override(preferences_of(form.get_user())["language"] or get_language()):
            return render(self.request, "annotate/carried.html", context)


def previous_page(request: HttpRequest) -> str:
    """Return the URL of the page that a form was submitted from.

    This is the referrer if it is on this site, otherwise the nearest page above the form's URL.
    """
    came_from = request.headers.get("Referer", "")
    if url_has_allowed_host_and_scheme(came_from, {request.get_host()}, require_https=request.is_secure()):
        parts = urlsplit(came_from)
        if _is_page(parts.path) and parts.path != reverse("login"):
            return f"{parts.path}?{parts.query}" if parts.query else parts.path
    return nearest_page(request.get_full_path())


def nearest_page(path: str) -> str:
    """Return the path if it shows a page, otherwise its nearest parent that shows one."""
    while not _is_page(urlsplit(path).path):
        above = urlsplit(path).path.rstrip("/").rpartition("/")[0] + "/"
        if above == "/":
            return reverse("home")
        path = above
    return path


def _is_page(path: str) -> bool:
    """Return whether a GET request to this URL shows a page."""
    try:
        view = resolve(path).func
    except Resolver404:
        return False
    return _accepts_get(view)


def _accepts_get(view: Any) -> bool:
    """Return whether a view accepts GET.

    Decorators such as require_POST keep the allowed methods in a closure variable of a wrapper around the view.
    """
    if (view_class := getattr(view, "view_class", None)) is not None:
        return hasattr(view_class, "get") and "get" in view_class.http_method_names
    while view is not None:
        code = getattr(view, "__code__", None)
        if code is not None and "request_method_list" in code.co_freevars:
            return "GET" in view.__closure__[code.co_freevars.index("request_method_list")].cell_contents
        view = getattr(view, "__wrapped__", None)
    return True


@lru_cache
def signed_person(user: int) -> str:
    return Signer(salt=PERSON).sign(str(user))


def carried_form(request: HttpRequest, path: str) -> str:
    """Serialize the submitted form as signed text.

    Return "" if the user is unknown, or if the form is empty, is too large or contains files.

    path: the URL that the form was submitted to
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


def _load_carried_form(carried: str, user: User) -> dict[str, Any] | None:
    """Return the form that the login page carried; None if it is invalid, too old or another user's."""
    try:
        form = loads(carried, salt=CARRIED, max_age=CARRIED_FOR)
    except BadSignature:
        return None
    return form if form["person"] == str(user.pk) else None
