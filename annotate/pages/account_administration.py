"""Accounts in the browser: who there is and what they read, the links that set a password, and new managers.

What people have done stands on the pages of tasks. Rights other than an adjudicator's and a superuser's are given in
the admin.
"""

from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.admin.models import ADDITION
from django.contrib.auth.models import User
from django.db.models import Q
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotate.actions.action import ActionError
from annotate.actions.user_accounts import add_manager_action, mail_invitations, mail_words
from annotate.core.refusals import InvalidAnswer, Refusal
from annotate.figures import overview_report
from annotate.models import Annotator
from annotate.pages import action_forms
from annotate.pages.access import may, status_of, with_right
from annotate.pages.dashboard import manage_page as page
from annotate.pages.dashboard import note
from annotate.reports.tables import many
from annotate.work import accounts as work
from annotate.work.accounts import unlock, wrong_passwords
from annotate.work.people_file import BadTable, Row, read_person, read_table
from annotate.work.routes import learn_languages
from corpora.core.languages import LANGUAGES

NOT_UTF8 = "The file is not UTF-8. Save it as “CSV UTF-8”."
LARGEST = 4 << 20  # bytes of a table
NOTHING_CHANGED = "Nothing was changed."


def _annotators():
    return Annotator.objects.select_related("user").prefetch_related("languages", "invites")


@require_GET
@with_right("manage")
def accounts(request, _):
    """?q= searches names, user names and codes of languages."""
    asked, sort = request.GET.get("q", "").strip(), request.GET.get("sort", "")
    found = _annotators()
    if asked:
        named = Q(user__username__icontains=asked) | Q(user__first_name__icontains=asked)
        found = found.filter(named | Q(user__last_name__icontains=asked) | Q(languages__language=asked)).distinct()
    address = lambda annotator: reverse("manage-account", args=[annotator])  # noqa: E731 - handed on
    return page(
        request,
        "accounts",
        asked=asked,
        table=overview_report.accounts_table(found, address, timezone.now(), sort),
        managers_table=overview_report.managers_table(work.managers().order_by("username"), sort),
        invites=may(request.user, "invite"),
        raises=may(request.user, "raise"),
    )


# --- new ones


@require_http_methods(["GET", "POST"])
@with_right("invite")
def new_accounts(request, _):
    """One person, or many by a table. Fields: username, name, email, languages, adjudicates; or table, or a file table.

    The links are shown in the answer, and only there.
    """
    if request.method == "GET":
        return _new(request, {})
    try:
        made = work.add_annotators(_rows(request), request.user)
    except BadTable as error:
        faults = [*error.args, NOTHING_CHANGED]
        return _new(request, request.POST, faults=faults, status=400)
    except Refusal as refusal:
        return _new(request, request.POST, faults=[str(refusal)], status=status_of(refusal))
    for annotator, _link in made:
        note(request, annotator, "Added or updated.", ADDITION)
    return _shown(request, made)


def _rows(request) -> list[Row]:
    """The people of the form. BadTable with all that is wrong; InvalidAnswer if there is an account already."""
    posted = request.POST
    action_forms.check_size(request)
    if "username" in posted:
        row = _person(posted, posted["username"])
        if there := Annotator.objects.filter(user__username=row.username).first():
            raise InvalidAnswer(f"There is an annotator {there.user.username} already; change them on their own page.")
        return [row]
    if arrived := request.FILES.get("file"):
        if arrived.size > LARGEST:
            raise BadTable(f"The file has more than {LARGEST >> 20} MB, so it is no table of people.")
        try:
            return read_table(arrived.read().decode())
        except UnicodeDecodeError:
            raise BadTable(NOT_UTF8) from None
    if not (pasted := posted.get("table", "")).strip():
        raise BadTable("Choose a file, or paste a table.")
    return read_table(pasted)


def _person(posted: Mapping[str, str], username: str) -> Row:
    said = [posted.get(name, "").strip() for name in ("name", "languages", "email")]
    return read_person(username, *said, adjudicates="adjudicates" in posted)


def _new(request, said: Mapping[str, str], *, status: int = 200, **context):
    return page(request, "new_accounts", status=status, said=said, codes=_codes(), **context)


def _codes() -> list[tuple[str, str]]:
    """The codes that may be written, with their names, for whoever does not know them by heart."""
    learn_languages()
    named = [(code, each.name) for code, each in LANGUAGES.items() if not each.labels]
    return sorted(named, key=lambda pair: pair[1])


def _shown(request, made):
    """The page of the links, each with its person; they go by mail as well, where that can be sent."""
    links = [
        (annotator, request.build_absolute_uri(reverse("invite", args=[token])) if token else None)
        for annotator, token in made
    ]
    # Not from the request: what it says of the host is its sender's to choose.
    sent = mail_invitations(
        (annotator.user, f"{settings.SITE}{reverse('invite', args=[token])}") for annotator, token in made if token
    )
    return page(request, "invited", made=links, mailed=mail_words(sent), days=work.INVITE_DAYS)


# --- one of them


@require_GET
@with_right("manage")
def account(request, _, annotator):
    return _account(request, get_object_or_404(_annotators(), pk=annotator))


def _account(request, annotator: Annotator, said: Mapping[str, Any] | None = None, *, status: int = 200, **context):
    user = annotator.user
    known = {
        "name": user.get_full_name(),
        "email": user.email,
        "languages": " ".join(map(str, annotator.languages.all())),
        "adjudicates": annotator.adjudicates,
    }
    return page(
        request,
        "account",
        status=status,
        annotator=annotator,
        said=known if said is None else said,
        changes=may(request.user, "invite") and work.may_change(request.user, user),
        state=overview_report.account_state(annotator, timezone.now()),
        link_open=any(not (each.used_at or each.revoked_at) for each in annotator.invites.all()),
        wrong=wrong_passwords(user.username),
        codes=_codes(),
        **context,
    )


@require_POST
@with_right("invite")
def change_account(request, _, annotator):
    """Fields: name, email, languages, adjudicates."""
    found = get_object_or_404(_annotators(), pk=annotator)
    try:
        work.change_annotator(found, _person(request.POST, found.user.username), request.user)
    except BadTable as error:
        return _account(request, found, request.POST, faults=[*error.args, NOTHING_CHANGED], status=400)
    note(request, found, "Changed name, mail address, languages or whether they adjudicate.")
    messages.success(request, f"{found} is changed.")
    return redirect("manage-account", annotator)


@require_POST
@with_right("invite")
def act_on_account(request, _, annotator):
    """Field: do, one of ACTS."""
    found = get_object_or_404(_annotators(), pk=annotator)
    work.check_may_change(request.user, [found.user])
    if (act := ACTS.get(request.POST.get("do", ""))) is None:
        raise InvalidAnswer("There is no such thing to do with an account.")
    return act(request, found)


def _link(request, annotator):
    """A new link, which is shown in the answer, and only there."""
    note(request, annotator, "Made an invite link.")
    return _shown(request, [(annotator, work.invite(annotator))])


def _withdraw(request, annotator):
    number = work.revoke_invites([annotator])
    return _done(
        request, annotator, f"{many(number, 'link')} withdrawn." if number else "There was no link that works."
    )


def _lock_out(request, annotator):
    work.set_active([annotator], False)
    sentence = "is locked out. Units of queues that now lack readers can be rerouted from their task."
    return _done(request, annotator, f"{annotator} {sentence}")


def _let_in(request, annotator):
    work.set_active([annotator], True)
    return _done(request, annotator, f"{annotator} may log in again.")


def _unlock(request, annotator):
    wrong = unlock(annotator.user.username)
    return _done(request, annotator, f"{annotator} may log in at once; {many(wrong, 'wrong password')} forgotten.")


def _done(request, annotator, sentence):
    note(request, annotator, sentence)
    messages.success(request, sentence)
    return redirect("manage-account", annotator.pk)


ACTS: Mapping[str, Callable] = {
    "link": _link,
    "withdraw": _withdraw,
    "lock_out": _lock_out,
    "let_in": _let_in,
    "unlock": _unlock,
}


# --- managers


@sensitive_variables("outcome")
@require_http_methods(["GET", "POST"])
@with_right("raise")
def new_manager(request, _):
    """Fields: name; sure, the name again, where there is an account already. The password is shown
    in the answer, and only there.
    """
    if request.method == "GET":
        return page(request, "new_manager")
    given = {"name": User.normalize_username(request.POST.get("name", "").strip())}
    try:
        asked = [] if request.POST.get("sure") == given["name"] else add_manager_action.foretell(given)
        if asked:
            return page(request, "new_manager", name=given["name"], foretold=asked)
        outcome = add_manager_action.perform(given)
    except ActionError as error:
        return page(request, "new_manager", name=given["name"], refusal=str(error), status=400)
    note(request, User.objects.get(username=given["name"]), "Made a manager.", ADDITION)
    return page(request, "new_manager", said=outcome.said)
