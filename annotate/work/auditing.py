"""Reading more of what the detectors agree on: posts that a manager adds to a task's audit."""

from collections.abc import Collection

from django.db import transaction

from annotate.core import stages
from annotate.core.refusals import NotFound, WrongStage
from annotate.models import Task
from annotate.quality.audits import choose_more, labels_of, of_audit, unread
from annotate.work.closing import how_to_go_on
from annotate.work.contesting import locked
from annotate.work.moving import save_all, send_to_people
from annotate.work.routes import Routes


@transaction.atomic
def add_audits(task: Task, number: int, languages: Collection[str] = ()) -> dict[str, int]:
    """Add `number` posts that nobody was asked about to the audit, or all there are. Returns how many by language.

    languages: labels on which the detectors agree, among which they are shared out (core/audits.allotted); empty for
    all. A text whose other posts have been read is not read again. by: the manager who asks for it. NotFound for a
    language in which the detectors agree on nothing, WrongStage for a closed task or where nothing is left.
    """
    # An answer locks its unit first and then the task. So the units that are with people because a copy of theirs was
    # chosen, and that may be chosen now themselves, are locked before the task here too.
    with_people = unread(task).exclude(stage__in=(stages.AGREED, stages.COPIED)).order_by("pk")
    list(with_people.select_for_update(of=("self",), no_key=True))
    task = locked(task)
    if not task.is_open:
        raise WrongStage(f"Task {task.name} is closed, so nobody would read them. {how_to_go_on(task)}")
    agreed = labels_of(task.units.all())
    if strange := [label for label in languages if label not in agreed]:
        raise NotFound(
            f"The detectors agree on no post of task {task.name} in {', '.join(strange)}; they do in: "
            f"{', '.join(sorted(agreed)) or 'no language'}."
        )
    found = choose_more(task, number, languages)
    if not found:
        where = f" in {', '.join(languages)}" if languages else ""
        raise WrongStage(
            f"Nothing can be added to the audit of task {task.name}: people read every post{where} on which the "
            "detectors agree, or have read it."
        )
    units = list(task.units.in_bulk([unit for units in found.values() for unit in units]).values())
    for unit in units:
        unit.audited = True
    save_all(units, [], ["audited"])
    # Those that had been chosen before have left the detectors' stage.
    send_to_people(task.units.filter(of_audit()), "audited", Routes.load(task))
    return {label: len(units) for label, units in found.items()}
