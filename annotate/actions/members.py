"""The action that shows and changes who works on a task. The task's page People runs it, too."""

from collections.abc import Iterable

from django.db import transaction

from annotate.actions.action import TASK, ActionError, Outcome, Progress, Values, action, task_named
from annotate.core.option import Option
from annotate.figures import annotator_statistics, people_report
from annotate.figures.figure_cache import forget
from annotate.models import Annotator, Membership, Task
from annotate.reports.table_formats import as_lines
from annotate.reports.tables import many
from annotate.work import membership
from annotate.work.membership import MEMBERS, OPEN_TO
from annotate.work.routes import is_language, language_named, unknown_code


@action(
    "members",
    "Show who works on a task, or change it. By default, everybody who reads one of its languages does; open it to "
    "members to choose the people yourself. Without options, the command lists the members.",
    TASK,
    Option("open_to", choices=OPEN_TO, help="who works on the task: everybody who reads its languages, or its members"),
    Option("add", default=(), several=True, in_a_row=True, shown="NAME", help="user names of people to add or change"),
    Option("add_group", default="", shown="GROUP", help="add everybody in this group"),
    Option("add_readers", default="", shown="LANGUAGE", help="add everybody who reads this language well enough"),
    Option(
        "role",
        choices=Membership.ROLES,
        help="the role of the added people in this task, whatever their role elsewhere; by default annotator, and for "
        "members the role that they have",
    ),
    Option(
        "quota",
        help="the most answers of each added person: a number, a share of the task's answers such as 25%, or none",
    ),
    Option("remove", default=(), several=True, in_a_row=True, shown="NAME", help="user names of members to remove"),
    checks=lambda values: _subjects(values),
)
def members_action(values: Values, progress: Progress) -> Outcome:
    task, added, removed, quota = _subjects(values)
    with transaction.atomic():
        said = []
        if values["open_to"]:
            membership.open_to(task, members_only=values["open_to"] == MEMBERS)
        if added:
            keep = values["quota"] is None
            new, changed = membership.add(task, added, role=values["role"], quota=quota, keep_quota=keep)
            said.append(f"{many(new, 'member')} added, {changed:,} changed.")
        if removed:
            said.append(f"{many(membership.remove(task, removed), 'member')} removed. Their answers are kept.")
    if values["open_to"] or added or removed:
        forget(task)
    whom = "its members only" if task.members_only else "everybody who reads one of its languages"
    rows = annotator_statistics.members(task)
    lines = as_lines(people_report.members_table(rows)) if rows and not said else ""
    data = {"task": task.name, "open_to": OPEN_TO[task.members_only], "members": rows}
    return Outcome(list(filter(None, [*said, f"Task {task.name} is open to {whom}.", lines])), data=data)


def _subjects(values: Values) -> tuple[Task, list[Annotator], list[Annotator], int | None]:
    """Return the task, the people to add, the people to remove, and the quota.

    Raise ActionError if one of them does not exist, or if the options do not fit together.
    """
    task = task_named(values["task"])
    added = _named(values["add"], "add")
    if name := values["add_group"]:
        if not membership.groups().filter(name=name).exists():
            known = ", ".join(membership.groups().values_list("name", flat=True)) or "none"
            raise ActionError(f"There is no group {name!r}; available: {known}.", option="add_group")
        added += membership.candidates(task, group=name)
    if written := values["add_readers"]:
        if not is_language(code := language_named(written)):
            raise ActionError(unknown_code(written), option="add_readers")
        added += membership.candidates(task, language=code)
    adds = values["add"] or values["add_group"] or values["add_readers"]
    if (values["role"] or values["quota"] is not None) and not adds:
        raise ActionError("Specify with --add whose role or quota to set.", option="add")
    quota = membership.quota_of(task, values["quota"] or "")
    return task, list(dict.fromkeys(added)), _named(values["remove"], "remove"), quota


def _named(names: Iterable[str], option: str) -> list[Annotator]:
    wanted = list(dict.fromkeys(names))
    people = {
        each.user.username: each for each in Annotator.objects.filter(user__username__in=wanted).select_related("user")
    }
    if missing := [name for name in wanted if name not in people]:
        raise ActionError(f"There is no annotator {', '.join(map(repr, missing))}. Nothing was changed.", option=option)
    return [people[name] for name in wanted]
