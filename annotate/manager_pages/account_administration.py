"""Managers' pages for accounts: annotators, their languages, invitation links, new managers, and members of tasks.

Annotators' work in a task is shown on the task's own pages. Other rights are granted in the admin site.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.conf import settings
from django.contrib.admin.models import ADDITION
from django.contrib.auth.models import User
from django.core.paginator import Paginator
from django.db import transaction
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.debug import sensitive_variables

from annotate.actions.action import ActionError
from annotate.actions.task_management import members_action
from annotate.actions.user_accounts import add_manager_action, mail_invitations, mail_summary
from annotate.core import stages
from annotate.core.refusals import InvalidAnswer, Refusal
from annotate.figures import annotator_statistics, overview_report
from annotate.figures.figure_cache import forget
from annotate.figures.finish_forecast import expected
from annotate.figures.queue_states import queue_states
from annotate.kinds.interface_language import label_name
from annotate.manager_pages import inbox, setup_steps
from annotate.manager_pages.dashboard import log_change, manage_page, redirect_with_message
from annotate.models import Annotator, Judgment, LanguageRequest, Membership, Task
from annotate.pages.access import UserRequest, annotator_of, check_right, may, text_of, whole_number
from annotate.pages.self_service import LEVELS
from annotate.reports.tables import many
from annotate.work import accounts as work
from annotate.work import membership
from annotate.work.accounts import check_may_change, is_manager, managers
from annotate.work.adjudication import adjudicates_in
from annotate.work.membership import EVERYBODY, MEMBERS
from annotate.work.people_file import BadTable, Row, read_person, read_table
from annotate.work.routes import is_language, register_languages, to_language_code
from corpora.core import CorpusError
from corpora.core.languages import LANGUAGES

LARGEST = 4 << 20  # maximum size of a table, in bytes
OFFERED = 50  # maximum number of tasks to choose from; if there are more, the manager can enter a name
NOTHING_CHANGED = "Nothing was changed."


def languages(request: UserRequest) -> HttpResponse:
    """List annotators' requests for more languages, or decide a request.

    POST fields:
    grant, refuse: primary key of the request to grant or refuse
    level-ID: level to grant for the request with this primary key, if it differs from the requested level
    """
    if request.method == "GET":
        rows = [(row, label_name(row.language)) for row in work.pending_requests()]
        return render(request, "annotate/manage/languages.html", {"rows": rows, "levels": list(work.LEVELS)})
    check_right(request.user, "people")
    if (granted_pk := whole_number(request.POST.get("grant"))) is not None:
        decided = work.grant(granted_pk, request.user, whole_number(request.POST.get(f"level-{granted_pk}")))
    elif (refused_pk := whole_number(request.POST.get("refuse"))) is not None:
        decided = work.refuse(refused_pk, request.user)
    else:
        raise InvalidAnswer("The form does not identify the request. Reload the page.")
    outcome = "can now read" if decided.outcome == LanguageRequest.GRANTED else "was not granted"
    return redirect_with_message(
        request, f"{decided.annotator} {outcome} {label_name(decided.language)}.", "manage-languages"
    )


# --- New accounts


def new_accounts(request: UserRequest) -> HttpResponse:
    """Add annotators, and show their invitation links on the next page.

    ?task=: name of the task that the annotators are invited to; the page then shows the task's queued work

    POST fields:
    people: one person per line, with user name, name and mail address separated by commas
    language, level, groups, adjudicates: values that apply to all these people, with one level per language
    table, file: alternatively, a table of people as text or as an uploaded file
    task: name of a task to add the people to as members; people who adjudicate become its adjudicators
    """
    task = Task.objects.filter(name=text_of(request.GET, "task")).first()
    if request.method == "GET":
        return _invitation_form(request, request.GET, task)
    try:
        with transaction.atomic():
            created = work.add_annotators(_rows(request), request.user)
            people = [annotator for annotator, _token in created]
            for person in people:
                membership.set_groups(person, [*membership.groups_of(person), *_groups(request.POST)])
            joined = _add_to_task(request, people)
    except (BadTable, Refusal) as error:
        faults = [*error.args, NOTHING_CHANGED] if isinstance(error, BadTable) else [str(error)]
        return _invitation_form(request, request.POST, task, refusal=error, faults=faults)
    for annotator in people:
        log_change(request, annotator, "Added or updated.", ADDITION)
    return _send_links(request, created, joined or task)


def _invitation_form(request: UserRequest, values: QueryDict, task: Task | None, **context: Any) -> HttpResponse:
    tasks = Task.objects.filter(is_open=True).only("name", "title")
    newest = list(tasks[: OFFERED + 1]) if may(request.user, "decide") else []
    context |= {"open_tasks": newest[:OFFERED], "has_more_tasks": len(newest) > OFFERED}
    rows = _submitted_rows(values)
    if task:
        queues = queue_states(task)["queues"]
        waiting = [label_name(row["queue"]) for row in queues if row["waiting"]]
        rows = rows or [(name, str(work.LEVELS[-1])) for name in waiting if len(waiting) == 1]
        context |= {"table": overview_report.workload_table(queues), **_setup_context(task)}
    return manage_page(request, "new_accounts", entered=values, **_picker_context(rows), **context)


def _setup_context(task: Task | None) -> dict[str, Any]:
    """Return the context of the pages for inviting people. It has the set-up steps until the task has answers."""
    if task is None:
        return {}
    is_new = not Judgment.objects.filter(unit__task=task).exists()
    return {
        "invited_to": task,
        "steps": setup_steps.steps(setup_steps.PEOPLE, task.draw.corpus.name, task.name) if is_new else [],
        "unadjudicated": _expected_adjudication(task),
    }


def _expected_adjudication(task: Task) -> int:
    """Return the expected number of items that need an adjudicator; 0 if the task has adjudicators."""
    work = expected(task)
    if work["adjudicators"]:
        return 0
    audit, checks = work["audit"] or {}, work["checks"] or {}
    waiting = task.units.work().filter(stage=stages.ADJUDICATION).count()
    return int(waiting + audit.get("recheck", 0) + round(checks.get("chosen", 0)))


def _add_to_task(request: UserRequest, people: list[Annotator]) -> Task | None:
    """Make people members of the form's task. Return the task; None if the form has none.

    New members who adjudicate become the task's adjudicators. Existing members keep their role.
    """
    if not (name := text_of(request.POST, "task")):
        return None
    check_right(request.user, "decide")
    if (task := Task.objects.filter(name=name).first()) is None:
        raise InvalidAnswer(f"Task {name!r} does not exist. Choose another task.")
    membership.check_may_change_members(request.user, people, task)
    members = set(task.memberships.values_list("annotator", flat=True))
    adjudicators = [person for person in people if person.adjudicates and person.pk not in members]
    membership.add(task, adjudicators, role=Membership.ADJUDICATOR)
    membership.add(task, people)
    forget(task)
    return task


def _rows(request: UserRequest) -> list[Row]:
    """Parse the people in the form.

    Raise BadTable with a list of all errors if the form or the table is invalid. Raise InvalidAnswer if a person is
    already an annotator.
    """
    posted = request.POST
    inbox.check_size(request)
    if upload := request.FILES.get("file"):
        if (upload.size or 0) > LARGEST:
            raise BadTable(f"The file is larger than {LARGEST >> 20} MB, the maximum for a table of people.")
        return _parse_table(Path(upload.name or "").name, upload.read())
    if (pasted := posted.get("table", "")).strip():
        return _parse_table("", pasted.encode())
    people = [[part.strip() for part in line.split(",")] for line in posted.get("people", "").splitlines()]
    rows = [_parse_person(posted, *parts) for parts in people if any(parts)]
    if not rows:
        raise BadTable("Enter at least one person, or a table of people.")
    _check_are_new(rows)
    return rows


def _parse_table(name: str, content: bytes) -> list[Row]:
    """Parse a table of people. Raise BadTable if it can't be read.

    name: file name; "" if the table was pasted
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / (name or "table.csv")
        path.write_bytes(content)
        try:
            return read_table(path)
        except CorpusError as error:
            raise BadTable(str(error).replace(str(path), name or "The table")) from error


def _check_are_new(rows: Iterable[Row]) -> None:
    """Raise InvalidAnswer if a person is already an annotator, because the form would replace their languages."""
    people = Annotator.objects.filter(user__username__in=[row.username for row in rows]).select_related("user")
    if existing := people.first():
        raise InvalidAnswer(
            f"The annotator {existing.user.username} already exists. Change the account on its own page."
        )


def _parse_person(posted: QueryDict, username: str, name: str = "", email: str = "", *more: str) -> Row:
    """Return a person with the languages in the form. Raise BadTable if the languages or the texts are invalid.

    more: excess parts of the person's line, which make it invalid
    """
    languages, adjudicates = _languages(posted), "adjudicates" in posted
    if more:
        raise BadTable(f"The line of {username} has too many parts. Enter only a user name, a name and a mail address.")
    if not languages and not adjudicates:
        raise BadTable("Choose at least one language. Only adjudicators need none.")
    return read_person(username, name, languages, email, adjudicates=adjudicates)


def _groups(posted: QueryDict) -> list[str]:
    """Parse the comma-separated names of groups in the form."""
    return [name for text in text_of(posted, "groups").split(",") if (name := text.strip())]


MORE_LANGUAGES = 3  # number of empty rows at the end of the language picker


def _picker_context(rows: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the context of the language picker.

    rows: the rows already filled in, as (name of a language, level) pairs
    """
    filled = [row for row in rows if row[0]]
    return {
        "language_rows": [*filled, *[("", "")] * MORE_LANGUAGES],
        "languages": sorted(_language_names().values()),
        "all_groups": membership.groups(),
        "levels": [*((str(level), words) for level, words in LEVELS.items()), ("0", "0, nothing")],
    }


def _submitted_rows(posted: Mapping[str, str]) -> list[tuple[str, str]]:
    if not isinstance(posted, QueryDict):
        return []
    return list(zip_longest(posted.getlist("language"), posted.getlist("level"), fillvalue=""))


def _language_names() -> dict[str, str]:
    """Return the names of the languages to choose from, by code."""
    register_languages()
    return {code: language.name for code, language in LANGUAGES.items() if not language.labels}


def _languages(posted: QueryDict) -> str:
    """Convert the languages in the picker to the notation of a table of people, such as "de:5 en:4".

    Each row of the picker contains names or codes of languages, separated by commas. Raise BadTable if a language is
    not on the list or has no level.
    """
    written, faults = [], []
    for row, level in _submitted_rows(posted):
        for text in filter(None, map(str.strip, row.split(","))):
            if not is_language(code := to_language_code(text)):
                faults.append(f"{text!r} is not a language on the list. Type the beginning of a name and choose.")
            elif not level:
                faults.append(f"Choose how well the person reads {label_name(code)}.")
            written.append(f"{code}:{level}")
    if faults:
        raise BadTable(*faults)
    return " ".join(written)


LINKS = "links"  # session key of the links that the manager has not confirmed as sent
KEEP_LINKS = 3600  # lifetime of the links in the session, in seconds
NO_LINKS: dict[str, Any] = {"paths": [], "mailed": [], "task": "", "until": 0}


def _load_links(request: UserRequest) -> dict[str, Any]:
    """Return the links in the session. Expired links are removed from it."""
    links: dict[str, Any] = request.session.get(LINKS, NO_LINKS)
    if links["until"] >= time.time():
        return links
    request.session.pop(LINKS, None)
    return NO_LINKS


def _send_links(
    request: UserRequest, created: Iterable[tuple[Annotator, str | None]], task: Task | None = None
) -> HttpResponse:
    """Mail the invitation links if possible, and redirect to the page that shows them.

    created: (annotator, token) tuples; the token is None if the annotator doesn't need a link
    """
    unsent = _load_links(request)
    paths = [(annotator, reverse("invite", args=[token]) if token else "") for annotator, token in created]
    new = {annotator.pk for annotator, _path in paths}
    # Don't use the request's Host header, which the sender can forge.
    sent = mail_invitations((annotator.user, f"{settings.SITE}{path}") for annotator, path in paths if path)
    request.session[LINKS] = {
        "paths": [
            *((annotator.pk, path) for annotator, path in paths),
            *((person, path) for person, path in unsent["paths"] if person not in new),
        ],
        "mailed": [*mail_summary(sent), *unsent["mailed"]],
        "task": task.name if task else unsent["task"],
        "until": time.time() + KEEP_LINKS,
    }
    return redirect("manage-links")


def links(request: UserRequest) -> HttpResponse:
    """Show the new invitation links for an hour, or until the manager confirms by POST that they were sent."""
    shown = _load_links(request)
    if request.method == "POST":
        request.session.pop(LINKS, None)
        return redirect("manage-task", shown["task"]) if shown["task"] else redirect("manage-everybody")
    people = Annotator.objects.select_related("user").in_bulk([person for person, _path in shown["paths"]])
    made = [
        (people[person], request.build_absolute_uri(path) if path else "")
        for person, path in shown["paths"]
        if person in people
    ]
    setup = _setup_context(Task.objects.filter(name=shown["task"]).first())
    return manage_page(request, "invited", made=made, mailed=shown["mailed"], days=work.INVITE_DAYS, **setup)


# --- One account


def account(
    request: UserRequest, person: Annotator, values: Mapping[str, Any] | None = None, **context: Any
) -> HttpResponse:
    user, names = person.user, _language_names()
    invites = person.invites.values_list("used_at", "revoked_at", "expires_at")
    values_stored = {
        "name": user.get_full_name(),
        "email": user.email,
        "adjudicates": person.adjudicates,
        "groups": ", ".join(membership.groups_of(person)),
    }
    return manage_page(
        request,
        "account",
        annotator=person,
        entered=values_stored if values is None else values,
        reads=[(label_name(row.language), LEVELS.get(row.level, row.level)) for row in person.languages.all()],
        **_picker_context(
            _submitted_rows(values)
            if values is not None
            else [(names.get(row.language, row.language), str(row.level)) for row in person.languages.all()]
        ),
        changes=may(request.user, "invite") and work.may_change(request.user, user),
        state=overview_report.account_state(user.password, invites.first(), timezone.now(), active=user.is_active),
        link_open=invites.filter(used_at=None, revoked_at=None).exists(),
        wrong=work.count_failed_logins(user.username),
        **context,
    )


def change_account(request: UserRequest, person: Annotator) -> HttpResponse:
    """Change an account. POST fields: name, email, language, level, groups, adjudicates."""
    name, email = (text_of(request.POST, field) for field in ("name", "email"))
    try:
        row = _parse_person(request.POST, person.user.username, name, email)
        with transaction.atomic():
            work.change_annotator(person, row, request.user)
            membership.set_groups(person, _groups(request.POST))
    except (BadTable, InvalidAnswer) as error:
        return account(request, person, request.POST, refusal=error, faults=[*error.args, NOTHING_CHANGED])
    log_change(request, person, "Changed name, mail address, languages, groups or the right to adjudicate.")
    return redirect_with_message(request, f"{person} was changed.", "manage-account", person.pk)


def act_on_account(request: UserRequest, person: Annotator) -> HttpResponse:
    """Perform an action on an account.

    POST field:
    do: a key of ACTS, or `link` to create an invitation link, which is shown once
    """
    work.check_may_change(request.user, [person.user])
    action = request.POST.get("do", "")
    if action == "link":
        log_change(request, person, "Created an invitation link.")
        return _send_links(request, [(person, work.invite(person))])
    if action not in ACTS:
        raise InvalidAnswer("The form contains an unknown action. Reload the page.")
    sentence = ACTS[action](person)
    log_change(request, person, sentence)
    return redirect_with_message(request, sentence, "manage-account", person.pk)


def _revoke_links(annotator: Annotator) -> str:
    number = work.revoke_invites([annotator])
    return f"{many(number, 'link')} revoked." if number else "There was no valid link."


def _lock_out(annotator: Annotator) -> str:
    work.set_active([annotator], False)
    return f"{annotator} is locked out. If queues now lack readers, reroute their items in the task’s settings."


def _let_in(annotator: Annotator) -> str:
    work.set_active([annotator], True)
    return f"{annotator} can log in again."


def _unlock(annotator: Annotator) -> str:
    wrong_count = work.unlock(annotator.user.username)
    return f"{annotator} can log in again; {many(wrong_count, 'wrong password')} cleared."


# Name of an action -> function that performs the action on an account and returns a sentence about the result.
ACTS: Mapping[str, Callable[[Annotator], str]] = {
    "withdraw": _revoke_links,
    "lock_out": _lock_out,
    "let_in": _let_in,
    "unlock": _unlock,
}


# --- Managers


@sensitive_variables("outcome")
def new_manager(request: UserRequest) -> HttpResponse:
    """Create a manager. The password is shown only in the response to this request.

    POST fields:
    name: user name
    sure: the user name again, to confirm that an existing account will become a manager's
    """
    if request.method == "GET":
        return manage_page(request, "new_manager")
    options: dict[str, Any] = {"name": User.normalize_username(request.POST.get("name", "").strip())}
    try:
        consequences = (
            [] if request.POST.get("sure") == options["name"] else add_manager_action.describe_consequences(options)
        )
        if consequences:
            return manage_page(request, "new_manager", foretold=consequences, **options)
        outcome = add_manager_action.perform(options)
    except ActionError as error:
        return manage_page(request, "new_manager", refusal=error, **options)
    log_change(request, User.objects.get(username=options["name"]), "Made this account a manager's.", ADDITION)
    return manage_page(request, "new_manager", sentences=outcome.said)


# --- Members of a task, with their roles and quotas. The action that changes them is in actions/task_management.py.


ON_A_PAGE = 25
BACK = ("manage-links", "manage-new-accounts")  # set-up pages with a button for the manager to join the task
SEARCH = ("find", "language", "group")  # fields of the search for people to add


def members_context(request: UserRequest, task: Task) -> dict[str, Any]:
    """Return the context of _members.html.

    ?members=: page number in the list of members
    ?find=, ?language=, ?group=: search for people to add, by parts of the name, language and group
    """
    page = Paginator(task.memberships.order_by("pk"), ON_A_PAGE).get_page(request.GET.get("members"))
    search = {name: text_of(request.GET, name) for name in SEARCH}
    is_asked = request.GET.keys() & set(SEARCH)
    people = membership.candidates(task, search["find"], search["language"], search["group"]) if is_asked else None
    annotator = annotator_of(request.user)
    return {
        "members_page": page,
        "members": annotator_statistics.members(task, task.memberships.filter(pk__in=[member.pk for member in page])),
        "roles": Membership.ROLES,
        "search": search,
        "candidates": None if people is None else list(people.order_by("user__username")[:ON_A_PAGE]),
        "candidate_count": 0 if people is None else people.count(),
        "languages_read": sorted((label_name(code), code) for code in task.reading_languages),
        "groups": membership.groups(),
        "invites": may(request.user, "invite"),
        "manages_all": is_manager(request.user),
        "is_adjudicator": bool(annotator and adjudicates_in(annotator, task)),
        "without_account": [] if people is None else _managers_without_account(search["find"]),
    }


def members(request: UserRequest, task: Task) -> HttpResponse:
    """Change who works on a task.

    POST fields:
    do: `open`, `add`, `change`, `remove`, or `join`, which adds the manager who submits the form
    open_to: `everybody` or `members`; only if `do` is `open`
    person: primary key of an annotator to add, change or remove; repeated to add several
    everybody: present to add all results of the search with `find`, `language` and `group`
    role, quota: new role and quota
    back: name of the set-up page that the manager joined from
    """
    posted = request.POST
    act = posted.get("do", "")
    if act == "open" and posted.get("open_to") in (EVERYBODY, MEMBERS):
        return _run_members_action(request, task, {"open_to": posted["open_to"]})
    if act not in ("add", "change", "remove", "join"):
        raise InvalidAnswer("The action is missing from the form. Reload the page and try again.")
    if act == "join":
        check_may_change(request.user, [request.user])
        people = [Annotator.objects.get_or_create(user=request.user)[0]]
    elif act == "add" and "everybody" in posted:
        people = list(membership.candidates(task, *(text_of(posted, name) for name in SEARCH)))
    else:
        keys = [key for text in posted.getlist("person") if (key := whole_number(text)) is not None]
        people = list(Annotator.objects.filter(pk__in=keys).select_related("user"))
    if not people:
        raise InvalidAnswer("Select at least one person.")
    role = posted.get("role", "")
    membership.check_may_change_members(request.user, people, task, role)
    if act == "remove":
        return _run_members_action(request, task, {"remove": _names(people)})
    options = {"add": _names(people), "quota": posted.get("quota", "").strip() or "none"}
    page = _run_members_action(request, task, options | ({"role": role} if role else {}))
    return redirect(f"{reverse(back)}?task={task.name}") if (back := posted.get("back")) in BACK else page


def _managers_without_account(words: str) -> list[str]:
    """Return the user names that contain these words, of managers without an annotator account."""
    users = managers().filter(annotator=None).order_by("username")
    for word in words.split():
        users = users.filter(username__icontains=word)
    return list(users.values_list("username", flat=True)[:ON_A_PAGE])


def _names(people: Iterable[Annotator]) -> list[str]:
    return [person.user.username for person in people]


def _run_members_action(request: UserRequest, task: Task, options: dict[str, Any]) -> HttpResponse:
    """Run the `members` action, log it, and redirect to the page with the same search."""
    try:
        outcome = members_action.perform({"task": task.name, **options})
    except ActionError as error:
        raise InvalidAnswer(str(error)) from error
    sentence = outcome.said[0]
    names = options.get("add") or options.get("remove") or []
    log_change(request, task, f"{sentence} {', '.join(names[:ON_A_PAGE])}".strip())
    query = urlencode({name: request.POST[name] for name in SEARCH if request.POST.get(name)})
    return redirect_with_message(
        request, sentence, f"{reverse('manage-people', args=[task.name])}{'?' if query else ''}{query}#members"
    )
