"""Task memberships: who is allowed to work on a task, their role, and their quota of answers.

permit.py and routes.py enforce them.
"""

from collections.abc import Iterable
from math import ceil

from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import Q, QuerySet, Sum
from django.utils.translation import gettext as _

from annotate.core import stages
from annotate.core.refusals import InvalidAnswer, NotAllowed
from annotate.models import Annotator, Lease, Membership, Task
from annotate.work.accounts import check_may_change, is_manager
from annotate.work.permit import NOT_A_MEMBER
from annotate.work.queue import close_open

EVERYBODY, MEMBERS = OPEN_TO = ("everybody", "members")
MOST = 2_000_000_000  # largest quota that every supported database can store


@transaction.atomic
def set_members_only(task: Task, *, members_only: bool) -> bool:
    """Open a task to everyone who reads its languages, or to members only. Returns whether this is a change.

    If annotators can no longer work on the task, their open units are returned to their queues.
    """
    changed = Task.objects.filter(pk=task.pk).exclude(members_only=members_only).update(members_only=members_only)
    task.members_only = members_only
    if changed and members_only:
        leases = Lease.objects.filter(unit__task=task, closed_at=None)
        holders = Annotator.objects.filter(pk__in=leases.values("annotator")).exclude(memberships__task=task)
        _release(_lock_all(holders), task)
    return bool(changed)


def check_member(annotator: Annotator, task: Task) -> None:
    """Raise NotAllowed if a task is for members only and the annotator isn't a member."""
    if task.members_only and not task.memberships.filter(annotator=annotator).exists():
        raise NotAllowed(_(NOT_A_MEMBER))


def parse_quota(task: Task, text: str) -> int | None:
    """Parse a quota: a number of answers, or a share of the task's answers such as `25%`.

    Returns None for `none` or an empty text. Raise InvalidAnswer for any other text.
    """
    written = text.strip().replace(",", "")
    if written in ("", "none"):
        return None
    digits, is_share = written.removesuffix("%").strip().lstrip("0"), written.endswith("%")
    if not digits.isascii() or not digits.isdigit() or not 1 <= int(digits[:12]) <= (100 if is_share else MOST):
        raise InvalidAnswer(
            f"{text!r} is not a quota. Enter a number of answers such as 200, a share such as 25%, or none."
        )
    return max(1, ceil(answers_required(task) * int(digits) / 100)) if is_share else int(digits)


def answers_required(task: Task) -> int:
    """Return the total number of answers that a task requires. Answers that were already given count too."""
    units = task.units.work().filter(reused_from=None).exclude(stage__in=[stages.NEW, stages.AGREED, stages.COPIED])
    return units.aggregate(number=Sum("redundancy"))["number"] or 0


def check_may_change_members(by: User, people: Iterable[Annotator], task: Task, role: str = "") -> None:
    """Check that a user is allowed to add, change or remove these members of a task.

    by: the user, a manager of the site or of this task.
    role: the role to assign, if any.

    Raise NotAllowed if the user isn't allowed to change one of the accounts. A manager of only this task is not allowed
    to add or change another of its managers either.
    """
    listed = list(people)
    check_may_change(by, [person.user for person in listed])
    managers = task.memberships.filter(annotator__in=listed, role=Membership.MANAGER)
    if not is_manager(by) and (role == Membership.MANAGER or managers.exists()):
        raise NotAllowed("Only managers of all tasks can choose the managers of a task. Nothing was changed.")


@transaction.atomic
def add(
    task: Task,
    people: Iterable[Annotator],
    *,
    role: str | None = None,
    quota: int | None = None,
    keep_quota: bool = True,
) -> tuple[int, int]:
    """Make people members of a task, or change their role and quota in it.

    role: the role to assign. If None, members keep their roles, and new members become annotators.
    quota: the quota to assign; None for no limit.
    keep_quota: whether existing members keep their quota.

    Returns the number of new members and the number of changed members.
    """
    listed = _lock_all(people)
    if role in (Membership.ADJUDICATOR, Membership.MANAGER):
        Annotator.objects.filter(pk__in=[person.pk for person in listed]).update(has_seen_answers=True)
    members = {member.annotator_id: member for member in task.memberships.filter(annotator__in=listed)}
    added = changed = 0
    for person in listed:
        member = members.get(person.pk) or Membership(task=task, annotator=person)
        before = member.role, member.quota
        member.role = role or member.role
        if member.pk is None or not keep_quota:
            member.quota = quota
        is_changed = before != (member.role, member.quota)
        added, changed = added + (member.pk is None), changed + (member.pk is not None and is_changed)
        if member.pk is None or is_changed:
            members[person.pk] = member
            member.save()
    _release([person for person in listed if members[person.pk].role == Membership.MANAGER], task)
    return added, changed


@transaction.atomic
def remove(task: Task, people: Iterable[Annotator]) -> int:
    """End memberships, and return how many were ended. Answers are kept.

    If the task is for members only, the former members' open units are returned to their queues.
    """
    ended = task.memberships.filter(annotator__in=_lock_all(people))
    leaving = [member.annotator for member in ended.select_related("annotator")]
    ended.delete()
    if task.members_only:
        _release(leaving, task)
    return len(leaving)


def _lock_all(people: Iterable[Annotator]) -> list[Annotator]:
    """Lock annotators, always in the same order. This waits for answers that are being stored."""
    listed = sorted(people, key=lambda person: person.pk)
    for person in listed:
        person.lock()
    return listed


def _release(people: Iterable[Annotator], task: Task) -> None:
    """Return annotators' open units to their queues. Must be a transaction's last step (see assignment.close)."""
    for person in people:
        close_open(person, task)


# --- finding people


def groups() -> QuerySet[Group]:
    """Return the groups of annotators. Groups with permissions are excluded, because only the admin manages them."""
    return Group.objects.filter(permissions=None).order_by("name")


def groups_of(person: Annotator) -> list[str]:
    """Return the names of a person's groups, except for groups with permissions."""
    return list(groups().filter(user=person.user_id).values_list("name", flat=True))


@transaction.atomic
def set_groups(person: Annotator, names: Iterable[str]) -> None:
    """Replace a person's groups, except for groups with permissions. Groups that become empty are deleted.

    Raise InvalidAnswer if a name is too long or belongs to a group with permissions.
    """
    chosen, longest = [], Group._meta.get_field("name").max_length or 0
    for name in dict.fromkeys(names):
        if len(name) > longest:
            raise InvalidAnswer(f"The name of the group {name[:20]!r} is longer than {longest} characters.")
        group, _ = Group.objects.get_or_create(name=name)
        if group.permissions.exists():
            raise InvalidAnswer(f"The group {name!r} grants permissions. Only the admin can put people into it.")
        chosen.append(group)
    person.user.groups.set([*person.user.groups.exclude(permissions=None), *chosen])
    groups().filter(user=None).delete()


def candidates(task: Task, words: str = "", language: str = "", group: str = "") -> QuerySet[Annotator]:
    """Return the active annotators who are not yet members of a task.

    words: search terms, which must all occur in the user name or the name.
    language: only readers of this language, at the task's minimum level or better.
    group: only members of the group with this name.
    """
    people = Annotator.objects.filter(user__is_active=True).exclude(memberships__task=task).select_related("user")
    for word in words.split():
        has_word = Q(user__username__icontains=word) | Q(user__first_name__icontains=word)
        people = people.filter(has_word | Q(user__last_name__icontains=word))
    if language:
        people = people.filter(languages__language=language, languages__level__gte=task.least_level)
    if group:
        people = people.filter(user__groups__in=groups().filter(name=group))
    return people
