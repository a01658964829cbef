"""Everybody's own pages: the password that an invitation asks for, and API tokens."""

from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import SetPasswordForm
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods
from knox.models import AuthToken

from annotate.core.refusals import Refusal
from annotate.pages.errors import status_of
from annotate.work import accounts


@login_not_required
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
@never_cache
def accept_invite(request, token):
    try:
        user = accounts.find_invite(token).annotator.user
    except Refusal as refusal:
        return render(request, "annotate/refusal.html", {"refusal": refusal}, status=status_of(refusal))
    form = SetPasswordForm(user, request.POST or None)
    if form.is_valid():
        user = accounts.accept_invite(token, form.cleaned_data["new_password1"])
        login(request, user, backend="django.contrib.auth.backends.ModelBackend")
        return redirect("home")
    return render(request, "annotate/invite.html", {"form": form, "invited": user})


@require_http_methods(["GET", "POST"])
@never_cache
def account(request):
    """The person's API tokens. A new token is shown once; only its hash is kept."""
    token = None
    if request.method == "POST":
        if "make" in request.POST:
            _, token = AuthToken.objects.create(request.user)
        else:
            # Searched among the person's own, in Python: the database may not be able to compare what was sent.
            for own in AuthToken.objects.filter(user=request.user):
                if own.token_key == request.POST.get("revoke"):
                    own.delete()
    context = {"tokens": AuthToken.objects.filter(user=request.user).order_by("created"), "made": token}
    return render(request, "annotate/account.html", context)
