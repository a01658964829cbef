"""What work waits in a task and who is there for it, as a manager asks before people are: by queue, and of the audit.

Asked when a task is opened or enlarged; why a queue stands still later is queue_states.py's matter. Reads only.
"""

from typing import Any

from django.db.models import Count, Max, Q

from annotate.core.audit_cost import contest_chance
from annotate.core.audits import can_tell
from annotate.models import Task
from annotate.quality import checks
from annotate.quality.audits import audit_counts
from annotate.work.queue_states import queue_states

HOURS_A_WEEK = 10  # of a reader who has other work besides; yours stand on the page Progress
# How much of the detectors' agreement is usually wrong in a language: "<1%" by the article.
USUALLY_WRONG = 0.01


def expected(task: Task) -> dict[str, Any]:
    """{"queues": [ROW, ...] the fullest first, "units", "answers": those of all rows, "unread": [queue, ...],
    "adjudicators", "audit", "checks"}.

    ROW: queue, name, units, answers (that they ask for at least), agreed (units on which the detectors agree and which
    people read all the same, for the audit or since it failed), known (units whose answer is known), needs (people for
    one unit, at most), several (units that ask for more than one), readers (who read the queue's languages well
    enough), qualified (of these, who may begin without a test) and able (of these, who are not paused). audit: posts on
    which the detectors agree, chosen (of these, for people to check), recheck (of these, for an adjudicator besides),
    limit, and the first two by language; hours (to read the chosen at the task's pace); where agreement errs in
    USUALLY_WRONG, contested (how many of the others are read on average, where the audit fails by chance), and the same
    by language with its chance and can_tell (whether it has the power to test the limit); None where there is none.
    checks: units that one person decides, chosen (of these, for an adjudicator to decide again) and both by language;
    seconds (how many of what comes to adjudicators by lot a second one decides); unseconded (whether there is nobody
    for that); None where the kind has none.
    """
    queued = task.units.work().queued().order_by().values("language")
    counted = queued.annotate(
        agreed=Count("pk", filter=~Q(agreed_label="")),
        known=Count("pk", filter=~Q(known_answer="")),
        needs=Max("redundancy"),
        several=Count("pk", filter=Q(redundancy__gt=1)),
    )
    of = {row.pop("language"): row for row in counted}
    rows = [
        {
            "queue": row["queue"],
            "name": row["name"],
            "units": row["waiting"],
            "answers": row["missing"],
            **of[row["queue"]],
            "readers": row["readers"],
            "qualified": row["passed"],
            "able": row["able"],
        }
        for row in queue_states(task)["queues"]
        if row["waiting"]
    ]
    rows.sort(key=lambda row: (-row["units"], row["queue"]))
    return {
        "queues": rows,
        "units": sum(row["units"] for row in rows),
        "answers": sum(row["answers"] for row in rows),
        "unread": [row["queue"] for row in rows if not row["readers"]],
        "adjudicators": checks.adjudicators().count(),
        "audit": _audit(task),
        "checks": _checks(task) if "checks" in task.kind.controls else None,
    }


def _audit(task: Task) -> dict[str, Any] | None:
    found = audit_counts(task) if "audit" in task.kind.controls else {}
    if not found:
        return None
    chosen = sum(chosen for _, chosen in found.values())
    languages = {label: _audit_of(task, *of) for (label,), of in sorted(found.items())}
    return {
        "posts": sum(posts for posts, _ in found.values()),
        "chosen": chosen,
        "recheck": task.units.filter(recheck=True, transitions__event="audited").count(),
        "limit": task.audit_limit,
        "hours": chosen * task.seconds / 3600,
        "contested": sum(of["contested"] for of in languages.values()),
        "languages": languages,
    }


def _audit_of(task: Task, posts: int, chosen: int) -> dict[str, Any]:
    chance = contest_chance(chosen, USUALLY_WRONG, task.audit_limit) if chosen < posts else 0.0
    return {
        "posts": posts,
        "chosen": chosen,
        "can_tell": can_tell(chosen, task.audit_limit),
        "chance": chance,
        "contested": chance * (posts - chosen),
    }


def _checks(task: Task) -> dict[str, Any]:
    found, able = checks.check_counts(task), checks.adjudicators().count()
    rechecked = task.units.filter(recheck=True).values_list("item__key", flat=True) if able > 1 else ()
    return {
        "units": sum(units for units, _ in found.values()),
        "chosen": sum(chosen for _, chosen in found.values()),
        "languages": {queue: {"units": units, "chosen": chosen} for queue, (units, chosen) in found.items()},
        "seconds": sum(checks.is_seconded(task, key) for key in rechecked),
        "unseconded": checks.unseconded(task, able),
    }
