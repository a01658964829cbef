"""Everybody's own pages: the password, its change, a forgotten one, and API tokens; and who must wait to log in."""

import unicodedata
from math import ceil
from threading import Thread

from axes.helpers import get_client_ip_address, get_client_username
from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import authenticate, login, update_session_auth_hash
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import PasswordChangeForm, PasswordResetForm, SetPasswordForm
from django.contrib.auth.models import User
from django.contrib.auth.views import PasswordResetConfirmView
from django.core.cache import cache
from django.db import transaction
from django.db.models import Q
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils import timezone
from django.utils.translation import get_language, gettext_lazy, override
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods
from knox.models import AuthToken
from knox.settings import knox_settings

from annotate.core.refusals import Refusal
from annotate.pages.errors import status_of
from annotate.work import accounts
from annotate.work.passwords import locked_until

BACKEND = "annotate.pages.sessions.PasswordBackend"
MAILS_APART = 300  # seconds between two mails to one account
TOO_MANY = 429


# --- a forgotten password


class ForgottenForm(PasswordResetForm):
    """Sends a link to whoever has the account and a mail address; of others it says and does the same."""

    email = forms.CharField(
        label=gettext_lazy("User name or mail address"),
        max_length=254,
        widget=forms.TextInput({"autocomplete": "username"}),
    )

    def get_users(self, email):
        typed = unicodedata.normalize("NFKC", email)
        found = User.objects.filter(Q(username=typed) | Q(email__iexact=typed), is_active=True).exclude(email="")
        return [
            user
            for user in found
            if user.has_usable_password() and cache.add(f"password-mail-{user.pk}", True, MAILS_APART)
        ]

    def send_mail(self, *arguments, **options):
        # Beside the answer: otherwise the time that it takes would tell who has an account. A thread of its own knows
        # nothing of the language in which the link was asked for.
        send = override(get_language())(super().send_mail)
        Thread(target=send, args=arguments, kwargs=options).start()


@login_not_required
@require_http_methods(["GET", "POST"])
def forgotten(request):
    """Where no mail can be sent the page says who helps."""
    form = ForgottenForm(request.POST if request.method == "POST" and settings.MAIL else None)
    sent = form.is_valid()
    if sent:
        form.save(
            # Not from the request: what it says of the host is its sender's to choose.
            domain_override=settings.SITE,
            subject_template_name="annotate/password_mail_subject.txt",
            email_template_name="annotate/password_mail.txt",
            extra_email_context={"minutes": settings.PASSWORD_RESET_TIMEOUT // 60},
        )
    return render(request, "annotate/forgotten.html", {"form": form, "mail": settings.MAIL, "sent": sent})


class Reset(PasswordResetConfirmView):
    """Behind the link of the mail."""

    template_name = "annotate/reset.html"
    success_url = reverse_lazy("home")
    post_reset_login = True
    post_reset_login_backend = BACKEND

    def get_user(self, uidb64):
        user = super().get_user(uidb64)
        return user if user and user.is_active else None

    def render_to_response(self, context, **options):
        return super().render_to_response(context, status=200 if self.validlink else 404, **options)


# --- setting a password


@login_not_required
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def accept_invite(request, token):
    try:
        user = accounts.find_invite(token).annotator.user
    except Refusal as refusal:
        return render(request, "annotate/refusal.html", {"refusal": refusal}, status=status_of(refusal))
    form = SetPasswordForm(user, request.POST or None)
    if form.is_valid():
        user = accounts.accept_invite(token, form.cleaned_data["new_password1"])
        login(request, user, backend=BACKEND)
        return redirect("home")
    shown = render(request, "annotate/invite.html", {"form": form, "invited": user})
    # Where the page came from has its token in it; browsers would tell it with all that the page needs.
    shown["Referrer-Policy"] = "strict-origin"
    return shown


class ChangeForm(PasswordChangeForm):
    """Asks for the old password as the log-in does, so that wrong ones count as there."""

    def __init__(self, request, *arguments):
        super().__init__(request.user, *arguments)
        self.request = request

    def clean_old_password(self):
        typed = self.cleaned_data["old_password"]
        if authenticate(self.request, username=self.user.username, password=typed) is None:
            raise forms.ValidationError(self.error_messages["password_incorrect"], code="password_incorrect")
        return typed


@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def change_password(request):
    form = ChangeForm(request, request.POST or None)
    if form.is_valid():
        with transaction.atomic():
            form.save()
        update_session_auth_hash(request, form.user)
        messages.success(request, _("Your password is changed. Elsewhere you are logged out, and API tokens are gone."))
        return redirect("account")
    return render(request, "annotate/password.html", {"form": form})


def locked_out(request, response, credentials):
    """What django-axes answers after too many wrong passwords, in place of the response."""
    name, address = get_client_username(request, credentials), get_client_ip_address(request)
    seconds = (locked_until(name, address) - timezone.now()).total_seconds()
    context = {"name": name, "minutes": max(1, ceil(seconds / 60)), "mail": settings.MAIL}
    shown = render(request, "annotate/locked_out.html", context, status=TOO_MANY)
    shown["Retry-After"] = max(1, ceil(seconds))
    return shown


# --- API tokens


@require_http_methods(["GET", "POST"])
def account(request):
    """The person's API tokens. A new token is shown once; only its hash is kept."""
    made = None
    now = timezone.now()
    if request.method == "POST":
        # Searched among the person's own, in Python: the database may not be able to compare what was sent.
        own = {token.token_key: token for token in AuthToken.objects.filter(user=request.user)}
        if "make" in request.POST:
            _, made = AuthToken.objects.create(request.user)
        elif token := own.get(request.POST.get("revoke")):
            token.delete()
        elif (token := own.get(request.POST.get("renew"))) and token.expiry > now:
            token.expiry = now + knox_settings.TOKEN_TTL
            token.save(update_fields=["expiry"])
    tokens = [(token, token.expiry > now) for token in AuthToken.objects.filter(user=request.user).order_by("created")]
    return render(
        request, "annotate/account.html", {"tokens": tokens, "made": made, "days": knox_settings.TOKEN_TTL.days}
    )
