"""Operations of annotators for tests, which pass the person and the task. The permit is looked up."""

import html
import re

from django.test import Client

from annotate.controls import qualification
from annotate.figures import personal_progress
from annotate.kinds import KINDS, Answer
from annotate.kinds.options import OPTIONS
from annotate.models import Judgment, Unit
from annotate.work import adjudication, backlog, eligible, judgments, queue, task_creation
from annotate.work.permit import acting, permit_of

# By default, the answers of readers and adjudicators count immediately, without checks.
NO_CHECKS = {"check_share": 0.0}


def signed_in(user, **options):
    """Return a client that is logged in as a user or annotator."""
    client = Client(**options)
    client.force_login(getattr(user, "user", user))
    return client


def words(page):
    """Return the text of a page or of a response, without tags."""
    return re.sub(r"\s+", " ", html.unescape(re.sub("<[^>]*>", " ", getattr(page, "text", page))))


def begin(annotator, task, language, kind):
    with acting(annotator.user, task.name) as permit:
        return qualification.begin(permit, language, kind)


def answer(annotator, question, label):
    with acting(annotator.user, qualification.task_of(annotator, question)) as permit:
        return qualification.answer(permit, question, label)


def state(annotator, task, language):
    return qualification.state(permit_of(annotator, task), language)


def states(annotator, task):
    return qualification.states(permit_of(annotator, task))


def progress_of(annotator, task):
    """Return the progress of an annotator as a dict."""
    progress = backlog.progress_of(permit_of(annotator, task))
    return {name: getattr(progress, name) for name in ("answered_today", "skipped_today", "waiting")}


def behind_tests(annotator, task):
    return backlog.progress_of(permit_of(annotator, task)).behind_tests


def why_empty(annotator, task):
    return personal_progress.why_empty(permit_of(annotator, task))


def waiting(annotator, task):
    return eligible.waiting_units(permit_of(annotator, task))


def said_by(annotator):
    """Return the labels and skips of a person that were not undone, in the order of the units."""
    live = Judgment.objects.filter(annotator=annotator, voided_at=None).order_by("unit__position")
    return [judgment.label or judgment.kind for judgment in live]


def queues_of(annotator, task):
    """Return the queues in which a person can work, each with its languages."""
    permit = permit_of(annotator, task)
    return {queue: permit.routes.labels[queue] for queue in permit.queues}


def _sorted_out(fields):
    """Separate the options of a task from its other fields."""
    options = {name: value for name, value in fields.items() if name in OPTIONS}
    return {name: value for name, value in fields.items() if name not in OPTIONS} | {"options": options}


def open_task(name, corpus, size, seed, **fields):
    return task_creation.open_task(
        name, corpus, KINDS["language"], size=size, seed=seed, **_sorted_out(NO_CHECKS | fields)
    )


def open_records(name, corpus, kind, languages, *, size, seed, gold, **fields):
    drawn = {"languages": languages, "size": size, "seed": seed, "gold": gold}
    return task_creation.open_task(name, corpus, KINDS[kind], **drawn, **_sorted_out(fields))


def open_verification(name, corpus, design, languages, *, size, seed, options, reuse=False, **fields):
    chosen = options | {"predictor": str(options["predictor"])}
    drawn = {"design": design, "languages": languages, "size": size, "seed": seed, "chosen": chosen, "reuse": reuse}
    return task_creation.open_task(name, corpus, KINDS["verify"], **drawn, **_sorted_out(NO_CHECKS | fields))


def say(annotator, task, label):
    """Take the next unit, answer it, and return the updated unit."""
    lease = queue.take(annotator, task)
    judgments.judge(annotator, lease.pk, Answer(label))
    return Unit.objects.get(pk=lease.unit_id)


def work_through(annotator, task, label="de"):
    """Answer everything that waits for a person, and return the leases. label: the answer, or a function of a lease"""
    leases = []
    while lease := queue.take(annotator, task):
        judgments.judge(annotator, lease.pk, Answer(label(lease) if callable(label) else label))
        leases.append(lease)
    return leases


def settle(adjudicator, unit, label):
    """Decide a unit as an adjudicator, and reload it."""
    adjudication.settle(adjudicator, unit.pk, Answer(label, reason="I read the language"))
    unit.refresh_from_db()
    return unit
