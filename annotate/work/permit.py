"""Permits: what an annotator may do in a task now, loaded once per request with a few queries.

Functions that receive a permit need not query routes, languages, pauses, qualifications or guideline versions again.
pages/access.py decides who may act as annotator, adjudicator or manager.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, lru_cache, partial
from operator import attrgetter
from typing import Any, cast

from django.contrib.auth.models import User
from django.contrib.humanize.templatetags.humanize import intcomma
from django.db import transaction
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from annotate.core.refusals import EnoughToday, NotAgreed, NotAllowed, NotFound, Paused, QuotaReached
from annotate.models import Annotator, Consent, Judgment, Membership, Pause, Task
from annotate.quality.guideline_versions import qualification_status
from annotate.work.routes import Route, Routes, may_annotate
from corpora.core.languages import UND
from corpora.database.statements import prepared

NO_ANNOTATOR = gettext_noop("You are not an annotator. The manager can make you one.")
NOT_AGREED = gettext_noop(
    "This task contains distressing content, and only people who have agreed to it receive items. First read the "
    "warning on the task's page Agreement."
)
NOT_A_MEMBER = gettext_noop("Only people chosen by the manager can work on this task. Ask the manager to add you.")
NO_ADJUDICATOR = gettext_noop("This is for adjudicators only.")


@dataclass(frozen=True)
class Reading:
    """The languages and queues that an annotator reads in a task, regardless of pauses, tests and quotas.

    levels: the annotator's level in each language, best first.
    reads: the task's languages that the annotator reads well enough.
    """

    routes: Routes
    levels: dict[str, int]
    reads: list[str]

    @cached_property
    def queues(self) -> list[str]:
        """The queues of the languages that the annotator reads, best-read language first."""
        task, read_by = self.routes.task, self.routes.task.kind.routing.read_by
        return list(dict.fromkeys(queue for code in self.reads for queue in read_by(code, task, self.routes)))


@dataclass(frozen=True)
class Permit:
    """What an annotator may do in a task.

    majors: current major version of the guidelines, by language; empty if the task has no test.
    passed: languages whose test the annotator has passed under these versions; empty if the task has no test.
    has_agreed: whether the annotator has consented to the work; True if the work is not sensitive.
    read_today: number of units that the annotator has judged since midnight, if the task is sensitive. Units whose
        judgments were voided count too.
    role: the annotator's role as a member of the task; None for a non-member.
    quota: maximum number of answers in the task; None for no limit.
    answered: number of the annotator's valid answers in the task, if there is a quota.
    """

    annotator: Annotator
    task: Task
    reading: Reading
    is_paused: bool
    majors: dict[str, int] = field(default_factory=dict)
    passed: frozenset[str] = frozenset()
    has_agreed: bool = True
    read_today: int = 0
    role: str | None = None
    quota: int | None = None
    answered: int = 0

    @property
    def is_outsider(self) -> bool:
        """Whether the task is for members only and the annotator isn't a member."""
        return self.task.members_only and self.role is None

    @property
    def adjudicates(self) -> bool:
        return adjudicates(self.annotator, self.task, self.role)

    @property
    def left(self) -> int | None:
        """The number of answers left until the quota is reached; None if there is no quota."""
        return None if self.quota is None else max(0, self.quota - self.answered)

    @cached_property
    def stopped(self) -> NotAllowed | None:
        """The reason why the annotator can't get units of the task now; None if they can."""
        sensitive = self.task.kind.sensitive
        if self.is_outsider:
            return NotAllowed(_(NOT_A_MEMBER))
        if self.is_paused:
            return Paused(_(PAUSED))
        if not self.has_agreed:
            return NotAgreed(_(NOT_AGREED))
        if sensitive and self.read_today >= sensitive.a_day:
            return EnoughToday(
                ngettext(
                    "That is enough for today: you have read %(number)s of these items, the daily limit. Thank you. "
                    "There will be more tomorrow.",
                    "That is enough for today: you have read %(number)s of these items, the daily limit. Thank you. "
                    "There will be more tomorrow.",
                    self.read_today,
                )
                % {"number": intcomma(self.read_today)}
            )
        if self.quota is not None and self.answered >= self.quota:
            return QuotaReached(
                ngettext(
                    "You have given the %(number)s answer that you were asked for in this task. Thank you.",
                    "You have given the %(number)s answers that you were asked for in this task. Thank you.",
                    self.answered,
                )
                % {"number": intcomma(self.answered)}
            )
        return None

    @property
    def routes(self) -> Routes:
        return self.reading.routes

    @property
    def levels(self) -> dict[str, int]:
        return self.reading.levels

    @property
    def reads(self) -> list[str]:
        return self.reading.reads

    @property
    def read_queues(self) -> list[str]:
        return self.reading.queues

    @cached_property
    def queues(self) -> list[str]:
        """The queues where the annotator can work now. The list is empty if the annotator is stopped.

        If the task has a test, these are only the queues of languages where they have passed it.
        """
        if self.stopped:
            return []
        if not self.task.test_items:
            return self.read_queues
        able = {self.routes.queue_in(language) for language in self.passed}
        return [queue for queue in self.read_queues if queue in able]

    def after_reading(self, number: int, *, answers: int = 0, is_paused: bool = False) -> "Permit":
        """Return the permit as it is after the annotator has judged `number` more units and may have been paused.

        answers: how many of these judgments are answers.
        """
        return replace(
            self,
            is_paused=is_paused or self.is_paused,
            read_today=self.read_today + number,
            answered=self.answered + answers,
        )

    def to_revise(self) -> "Permit":
        """Return the same permit without a quota, for revising earlier answers."""
        return replace(self, quota=None)


def permit_of(annotator: Annotator, task: Task) -> Permit:
    """Return an annotator's permit for read-only code. Code that changes something uses the permit from `acting`."""
    [permit] = permits(annotator, [task])
    return permit


def permits(annotator: Annotator, tasks: Iterable[Task]) -> list[Permit]:
    """Return an annotator's permits for several tasks. The number of queries does not depend on the number of tasks.

    tasks: the tasks; if they come from Tasks.for_work, one fewer query is needed.
    """
    listed = list(tasks)
    states, permit_list = _load_states(annotator, listed), []
    for task in listed:
        is_paused, role, quota, levels, routes = states[task.pk]
        reading = _get_reading(task, role, levels, routes)
        permit_list.append(Permit(annotator, task, reading, is_paused, role=role, quota=quota))
    return _add_limits(annotator, permit_list)


def _add_limits(annotator: Annotator, permit_list: list[Permit]) -> list[Permit]:
    """Return the permits with the fields for quotas, tests and sensitive work filled in."""
    counted = [permit.task.pk for permit in permit_list if permit.quota is not None]
    tested = [permit.task for permit in permit_list if permit.task.test_items]
    sensitive = [permit.task for permit in permit_list if permit.task.kind.sensitive]
    if not (counted or tested or sensitive):
        return permit_list
    answered = _count_answers(annotator, counted) if counted else {}
    majors, passed = qualification_status(annotator, tested) if tested else ({}, {})
    read = _count_today(annotator, sensitive) if sensitive else {}
    return [
        replace(
            permit,
            majors=majors.get(permit.task.pk, {}),
            passed=frozenset(passed.get(permit.task.pk, ())),
            has_agreed=permit.task not in sensitive or permit.task.pk in read,
            read_today=read.get(permit.task.pk, 0),
            answered=answered.get(permit.task.pk, 0),
        )
        for permit in permit_list
    ]


_STATE = ("is_paused", "role", "quota", "levels", "routes")
State = tuple[bool, str | None, int | None, str | None, str | None]  # see Tasks.for_work


def _get_reading(task: Task, role: str | None, levels: str | None, routes: str | None) -> Reading:
    """Return an annotator's Reading, cached on the task object, which is reused across requests.

    role, levels, routes: see Tasks.for_work.
    """
    values = role, levels, routes
    cached_for, reading = vars(task).get("reading", (None, None))
    if cached_for != values:
        least, read_in = task.least_level, set(task.reading_languages) if may_annotate(task, role) else set()
        levels_by_language = _parse_levels(levels or "[]")
        # Records without a language share a queue with posts without a language.
        is_routed = task.kind.routing.is_routed or UND in task.languages
        reads = [code for code, level in levels_by_language.items() if level >= least and code in read_in]
        reading = Reading(Routes(_parse_routes(routes or "[]") if is_routed else {}, task), levels_by_language, reads)
        vars(task)["reading"] = values, reading
    return cast(Reading, reading)


@lru_cache(maxsize=128)
def _parse_levels(levels: str) -> dict[str, int]:
    return dict(sorted(json.loads(levels), key=lambda row: (-row[1], row[0])))


@lru_cache(maxsize=8)
def _parse_routes(routes: str) -> dict[str, Route]:
    return {code: Route(queue, json.loads(extra)) for code, queue, extra in json.loads(routes)}


def _load_states(annotator: Annotator, tasks: list[Task]) -> dict[int, State]:
    """Return the annotator's values of _STATE in each task, by the task's primary key."""
    if all("is_paused" in vars(task) for task in tasks):
        return {task.pk: attrgetter(*_STATE)(task) for task in tasks}
    rows = Task.objects.for_work(annotator).filter(pk__in=[task.pk for task in tasks]).order_by()
    return {pk: state for pk, *state in rows.values_list("pk", *_STATE)}


def _count_answers(annotator: Annotator, tasks: list[int]) -> dict[int, int]:
    """Count an annotator's valid answers, by the task's primary key."""
    answers = Judgment.objects.live().answers().filter(annotator=annotator, unit__task__in=tasks).order_by()
    return dict(answers.values_list("unit__task").annotate(Count("pk")))


def open_permits(annotator: Annotator, **annotations: Any) -> list[Permit]:
    """Return the annotator's permits for their open tasks, newest first.

    These are tasks where they are a member or adjudicator, and tasks open to everyone in one of their languages.

    annotations: annotations to add to the tasks.
    """
    tasks = Task.objects.for_work(annotator).filter(Q(members_only=False) | Q(role__isnull=False), is_open=True)
    return [
        permit
        for permit in permits(annotator, tasks.annotate(**annotations))
        if permit.role
        or permit.adjudicates
        or permit.reads
        or not permit.levels.keys().isdisjoint(permit.task.reading_languages)
    ]


def adjudicates(annotator: Annotator, task: Task, role: str | None) -> bool:
    """Return whether an annotator is an adjudicator in a task.

    role: their role as a member of the task; None for a non-member.
    """
    if role is None:
        return annotator.adjudicates and not task.members_only
    return role == Membership.ADJUDICATOR


def midnight() -> datetime:
    """Return the most recent midnight in the installation's time zone.

    The annotator's own time zone isn't used, because annotators could change it to get more units on the same day.
    """
    here = timezone.localtime(timezone=timezone.get_default_timezone())
    return here.replace(hour=0, minute=0, second=0, microsecond=0)


def _count_today(annotator: Annotator, sensitive: list[Task]) -> dict[int, int]:
    """Count the units that the annotator has judged today in each task. Tasks without consent are left out."""
    judgments = Judgment.objects.binding().filter(
        annotator=annotator, unit__task=OuterRef("task"), answered_at__gte=midnight()
    )
    counted = judgments.order_by().values("unit__task").annotate(number=Count("pk")).values("number")
    consents = Consent.objects.filter(annotator=annotator, task__in=sensitive, withdrawn_at=None).order_by()
    return dict(consents.values_list("task_id", Coalesce(Subquery(counted), 0)))


@contextmanager
def acting(user: User, task: str) -> Iterator[Permit]:
    """Context manager that opens a transaction in which a user works on a task, and yields the user's permit.

    A second request by the same user waits until the transaction ends. As a result, two tabs show the same unit, and no
    answer is missed when the annotator is paused or their answers are voided.

    task: the task's name.

    Raise NotAllowed if the user is not an annotator, or not a member of a task for members only, and NotFound if the
    task does not exist.
    """
    with transaction.atomic():
        rows = _lock_annotator(user.pk)
        if not rows:
            raise NotAllowed(_(NO_ANNOTATOR))
        [annotator] = rows
        annotator.user = user
        tasks = task_for_work(annotator.pk, task)
        if not tasks:
            raise NotFound(_("This task does not exist."))
        [permit] = permits(annotator, tasks)
        if permit.is_outsider:
            raise NotAllowed(_(NOT_A_MEMBER))
        yield permit


@partial(prepared, cache_size=500)
def task_for_work(annotator: Any, name: str) -> QuerySet[Task]:
    return Task.objects.for_work(annotator).filter(name=name)


@prepared
def _lock_annotator(user: int) -> QuerySet[Annotator]:
    """Lock a user's annotator row.

    Without no_key, transactions that lock a unit and insert rows referring to the annotator would have to wait too.
    """
    return Annotator.objects.select_for_update(no_key=True).filter(user=user).order_by()


PAUSED = gettext_noop(
    "Your work in this task is paused, and the manager has been notified. Your earlier answers are kept."
)


def current_pause(annotator: Annotator, task: Task) -> Pause | None:
    """Return the annotator's current pause in a task, or None."""
    return Pause.objects.filter(annotator=annotator, task=task, lifted_at=None).first()
