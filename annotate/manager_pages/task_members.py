"""The members section on a task's page People: who works on the task, with which role and quota.

Changes are made by the action in actions/task_management.py, which the command uses too.
"""

from collections.abc import Iterable
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode

from annotate.actions.action import ActionError
from annotate.actions.task_management import members_action
from annotate.core.refusals import InvalidAnswer
from annotate.figures import annotator_statistics
from annotate.kinds.interface_language import label_name
from annotate.manager_pages.dashboard import done, log_change
from annotate.models import Annotator, Membership, Task
from annotate.pages.access import UserRequest, annotator_of, may, text_of, whole_number
from annotate.work import membership
from annotate.work.accounts import check_may_change, is_manager, managers
from annotate.work.adjudication import adjudicates_in
from annotate.work.membership import EVERYBODY, MEMBERS

ON_A_PAGE = 25
BACK = ("manage-links", "manage-new-accounts")  # pages of the set-up with a button that lets the manager join
SEARCH = ("find", "language", "group")  # fields of the search for people to add


def context(request: UserRequest, task: Task) -> dict[str, Any]:
    """Return the context of _members.html.

    ?members=: page number in the list of members
    ?find=, ?language=, ?group=: search for people to add, by parts of the name, language and group
    """
    page = Paginator(task.memberships.order_by("pk"), ON_A_PAGE).get_page(request.GET.get("members"))
    search = {name: text_of(request.GET, name) for name in SEARCH}
    is_asked = request.GET.keys() & set(SEARCH)
    found = membership.candidates(task, search["find"], search["language"], search["group"]) if is_asked else None
    annotator = annotator_of(request.user)
    return {
        "members_page": page,
        "members": annotator_statistics.members(task, task.memberships.filter(pk__in=[each.pk for each in page])),
        "roles": Membership.ROLES,
        "search": search,
        "found": None if found is None else list(found.order_by("user__username")[:ON_A_PAGE]),
        "found_count": 0 if found is None else found.count(),
        "languages_read": sorted((label_name(code), code) for code in task.read_in),
        "groups": membership.groups(),
        "invites": may(request.user, "invite"),
        "manages_all": is_manager(request.user),
        "is_adjudicator": bool(annotator and adjudicates_in(annotator, task)),
        "without_account": [] if found is None else _managers_without_account(search["find"]),
    }


def members(request: UserRequest, task: Task) -> HttpResponse:
    """Change who works on a task.

    POST fields:
    do: open, add, change, remove, or join, which adds the manager who sends the form
    open_to: everybody or members, if `do` is open
    person: primary key of an annotator to add, change or remove; repeated to add several
    everybody: present to add all people that the search with find, language and group returns
    role, quota: new role and quota
    back: name of the page of the set-up from which the manager joined
    """
    posted = request.POST
    act = posted.get("do", "")
    if act == "open" and posted.get("open_to") in (EVERYBODY, MEMBERS):
        return _done(request, task, {"open_to": posted["open_to"]})
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
    membership.check_may_choose(request.user, people, task, role)
    if act == "remove":
        return _done(request, task, {"remove": _names(people)})
    options = {"add": _names(people), "quota": posted.get("quota", "").strip() or "none"}
    page = _done(request, task, options | ({"role": role} if role else {}))
    return redirect(f"{reverse(back)}?task={task.name}") if (back := posted.get("back")) in BACK else page


def _managers_without_account(words: str) -> list[str]:
    """Return the user names of managers with these words in their user name who have no annotator account."""
    found = managers().filter(annotator=None).order_by("username")
    for word in words.split():
        found = found.filter(username__icontains=word)
    return list(found.values_list("username", flat=True)[:ON_A_PAGE])


def _names(people: Iterable[Annotator]) -> list[str]:
    return [person.user.username for person in people]


def _done(request: UserRequest, task: Task, options: dict[str, Any]) -> HttpResponse:
    """Run the action, log it, and redirect to the page with the same search."""
    try:
        outcome = members_action.perform({"task": task.name, **options})
    except ActionError as error:
        raise InvalidAnswer(str(error)) from error
    sentence = outcome.said[0]
    names = options.get("add") or options.get("remove") or []
    log_change(request, task, f"{sentence} {', '.join(names[:ON_A_PAGE])}".strip())
    query = urlencode({name: request.POST[name] for name in SEARCH if request.POST.get(name)})
    return done(request, sentence, f"{reverse('manage-people', args=[task.name])}{'?' if query else ''}{query}#members")
