"""Permits: what a person may do in a task now, read once per request in a few statements.

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
from annotate.quality.guideline_versions import standing_in_tests
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
    """The languages and queues that an annotator reads in a task. They depend on nothing but levels, routes and task.

    levels: reading level of each language, best first.
    reads: languages of the task that the annotator reads well enough.
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

    majors: major version of the guidelines in force in each language; empty if the task has no test.
    passed: languages whose test the annotator has passed under these versions; empty if the task has no test.
    has_agreed: whether the annotator has consented to the work; True if the work is not sensitive.
    read_today: number of units of a sensitive task that the annotator has answered, skipped or decided since midnight.
        A unit counts even if the judgment was voided.
    role: the annotator's role as a member of the task, None if they are not a member.
    quota: maximum number of answers in the task, None for no limit.
    answered: number of valid answers in the task, if there is a quota.
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
        """Whether the task is for its members only and the annotator is not one of them."""
        return self.task.members_only and self.role is None

    @property
    def adjudicates(self) -> bool:
        return adjudicates(self.annotator, self.task, self.role)

    @property
    def left(self) -> int | None:
        """The number of answers until the quota is reached, None for no limit."""
        return None if self.quota is None else max(0, self.quota - self.answered)

    @cached_property
    def stopped(self) -> NotAllowed | None:
        """The reason why the annotator gets no units of the task now, None if there is no such reason."""
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
        """The queues in which the annotator may work, because they have passed the test.

        If the task has no test, they may work in all queues that they read. While they are stopped, the list is empty.
        """
        if self.stopped:
            return []
        if not self.task.test_items:
            return self.read_queues
        able = {self.routes.queue_in(language) for language in self.passed}
        return [queue for queue in self.read_queues if queue in able]

    def after_reading(self, number: int, *, answers: int = 0, is_paused: bool = False) -> "Permit":
        """Return the permit after the annotator has read `number` more units and may have been paused.

        answers: number of answers among the judgments of these units.
        """
        return replace(
            self,
            is_paused=is_paused or self.is_paused,
            read_today=self.read_today + number,
            answered=self.answered + answers,
        )

    def to_revise(self) -> "Permit":
        """Return a permit for revising earlier answers, without a quota."""
        return replace(self, quota=None)


def permit_of(annotator: Annotator, task: Task) -> Permit:
    """Return a permit for code that only reads. Code that changes something uses the permit from `acting`."""
    [permit] = permits(annotator, [task])
    return permit


def permits(annotator: Annotator, tasks: Iterable[Task]) -> list[Permit]:
    """Return an annotator's permits for several tasks, with as many statements as for one task.

    tasks: the tasks. Tasks from Tasks.for_work already contain the annotator's standing, which saves a statement.
    """
    listed = list(tasks)
    standing, issued = _standing(annotator, listed), []
    for task in listed:
        is_paused, role, quota, levels, routes = standing[task.pk]
        reading = _reading(task, role, levels, routes)
        issued.append(Permit(annotator, task, reading, is_paused, role=role, quota=quota))
    return _limited(annotator, issued)


def _limited(annotator: Annotator, issued: list[Permit]) -> list[Permit]:
    """Return an annotator's permits with what quotas, tests and sensitive work require."""
    counted = [permit.task.pk for permit in issued if permit.quota is not None]
    tested = [permit.task for permit in issued if permit.task.test_items]
    sensitive = [permit.task for permit in issued if permit.task.kind.sensitive]
    if not (counted or tested or sensitive):
        return issued
    answered = _answered(annotator, counted) if counted else {}
    majors, passed = standing_in_tests(annotator, tested) if tested else ({}, {})
    read = _read_today(annotator, sensitive) if sensitive else {}
    return [
        replace(
            permit,
            majors=majors.get(permit.task.pk, {}),
            passed=frozenset(passed.get(permit.task.pk, ())),
            has_agreed=permit.task not in sensitive or permit.task.pk in read,
            read_today=read.get(permit.task.pk, 0),
            answered=answered.get(permit.task.pk, 0),
        )
        for permit in issued
    ]


_STANDING = ("is_paused", "role", "quota", "levels", "routes")
Standing = tuple[bool, str | None, int | None, str | None, str | None]  # see Tasks.for_work


def _reading(task: Task, role: str | None, levels: str | None, routes: str | None) -> Reading:
    """Return what an annotator reads in a task. It is kept with the task, which is the same object for many answers.

    role, levels, routes: see Tasks.for_work.
    """
    values = role, levels, routes
    kept_for, reading = vars(task).get("reading", (None, None))
    if kept_for != values:
        least, read_in = task.least_level, set(task.reading_languages) if may_annotate(task, role) else set()
        ranked = _ranked(levels or "[]")
        # Records in no language wait in the same queue as posts in no language.
        is_routed = task.kind.routing.is_routed or UND in task.languages
        reads = [code for code, level in ranked.items() if level >= least and code in read_in]
        reading = Reading(Routes(_route_rows(routes or "[]") if is_routed else {}, task), ranked, reads)
        vars(task)["reading"] = values, reading
    return cast(Reading, reading)


@lru_cache(maxsize=128)
def _ranked(levels: str) -> dict[str, int]:
    return dict(sorted(json.loads(levels), key=lambda row: (-row[1], row[0])))


@lru_cache(maxsize=8)
def _route_rows(routes: str) -> dict[str, Route]:
    return {code: Route(queue, json.loads(extra)) for code, queue, extra in json.loads(routes)}


def _standing(annotator: Annotator, tasks: list[Task]) -> dict[int, Standing]:
    """Return an annotator's standing in each task, by the task's primary key."""
    if all("is_paused" in vars(task) for task in tasks):
        return {task.pk: attrgetter(*_STANDING)(task) for task in tasks}
    rows = Task.objects.for_work(annotator).filter(pk__in=[task.pk for task in tasks]).order_by()
    return {pk: standing for pk, *standing in rows.values_list("pk", *_STANDING)}


def _answered(annotator: Annotator, tasks: list[int]) -> dict[int, int]:
    """Return the number of an annotator's valid answers in each task, by the task's primary key."""
    answers = Judgment.objects.live().answers().filter(annotator=annotator, unit__task__in=tasks).order_by()
    return dict(answers.values_list("unit__task").annotate(Count("pk")))


def open_permits(annotator: Annotator, **annotations: Any) -> list[Permit]:
    """Return the annotator's permits for their own open tasks, newest first.

    Their own tasks are those in which they are a member or an adjudicator, and those that are open to everybody and
    contain one of their languages.

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
    if role is None:
        return annotator.adjudicates and not task.members_only
    return role == Membership.ADJUDICATOR


def midnight() -> datetime:
    """Return the most recent midnight in the installation's time zone.

    The annotator's own time zone is not used, because annotators could change it to get more units on the same day.
    """
    here = timezone.localtime(timezone=timezone.get_default_timezone())
    return here.replace(hour=0, minute=0, second=0, microsecond=0)


def _read_today(annotator: Annotator, sensitive: list[Task]) -> dict[int, int]:
    """Return the number of units in each task that the annotator answered, skipped or decided today.

    Only tasks to which they consented are included.
    """
    judgments = Judgment.objects.binding().filter(
        annotator=annotator, unit__task=OuterRef("task"), answered_at__gte=midnight()
    )
    counted = judgments.order_by().values("unit__task").annotate(number=Count("pk")).values("number")
    running = Consent.objects.filter(annotator=annotator, task__in=sensitive, withdrawn_at=None).order_by()
    return dict(running.values_list("task_id", Coalesce(Subquery(counted), 0)))


@contextmanager
def acting(user: User, task: str) -> Iterator[Permit]:
    """Open a transaction in which a user works on a task, and yield the permit.

    A second request by the same user waits until the transaction ends. Because of this, two tabs show the same unit,
    and no answer is overlooked when the annotator is paused or their answers are voided.

    user: the user.
    task: name of the task.

    Raise NotAllowed if the user is not an annotator, or not a member although the task is for members only. Raise
    NotFound if the task does not exist.
    """
    with transaction.atomic():
        rows = _locked(user.pk)
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
def _locked(user: int) -> QuerySet[Annotator]:
    """Lock the annotator's row.

    Without no_key, transactions that hold a lock on a unit and refer to the annotator would have to wait too.
    """
    return Annotator.objects.select_for_update(no_key=True).filter(user=user).order_by()


PAUSED = gettext_noop(
    "Your work in this task is paused, and the manager has been notified. Your earlier answers are kept."
)


def running(annotator: Annotator, task: Task) -> Pause | None:
    return Pause.objects.filter(annotator=annotator, task=task, lifted_at=None).first()
