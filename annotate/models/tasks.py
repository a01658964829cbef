"""Models for tasks, guidelines, language queues, background jobs and webhooks."""

import json
import secrets
from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self

from django.apps import apps
from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q, Subquery, Value
from django.db.models.functions import Cast
from django.utils import timezone

from annotate.core.draws.hash_order import Lots, by_secret
from annotate.kinds import KINDS, Kind, kind_of, panel_kind_of
from annotate.kinds.control import DRAWING, QualityControl
from annotate.kinds.options import OPTIONS
from annotate.models.people import Annotator, AnnotatorLanguage
from corpora.core.languages import UND
from corpora.core.voters import DEFAULT, Panel
from corpora.database.statements import JsonRows, LoadedRow
from corpora.models import Draw
from corpora.vocabulary.concept_index import vocabulary_of


class LanguageRoute(models.Model):
    """The queue for items that detectors assign to a language. A language without a row has its own queue."""

    language = models.CharField(max_length=16, unique=True)
    queue = models.CharField(
        max_length=16, help_text="the queue for posts in the language; several languages can share one"
    )
    extra_candidates = models.JSONField(
        default=list,
        blank=True,
        help_text="languages to try after this one, even if no detector returned them, such as hi-Latn after hi",
    )
    never_agree = models.BooleanField(
        default=False, help_text="ignore the detectors' agreement on this language in tasks opened from now on"
    )

    class Meta:
        ordering = ["language"]

    def __str__(self) -> str:
        return f"{self.language} → {self.queue}"


def option(name: str, default: Any) -> property:
    """Return a property that gets and sets a value in Task.options.

    default: value for tasks that don't store the option
    """

    def get_value(task: "Task") -> Any:
        return task.options.get(name, default)

    def set_value(task: "Task", value: Any) -> None:
        task.options = {**task.options, name: value}

    return property(get_value, set_value)


class _Options:
    """Base class of Task with a property for each option in kinds/options.py, and for the following:

    never_agree: languages on which the detectors' agreement is ignored, copied from the routes when the task was opened
    keep_declared: whether documents keep the concepts they were imported with (`open_task --reuse`)
    suggest: predictors whose labels are suggested to annotators, as NAME@VERSION
    blind_share: share of (annotator, unit) pairs with hidden suggestions
    voters, agree: the panel, if it isn't the default; see Task.panel
    """

    stop_early: bool
    aggregation: str
    on_conflict: str
    rounds: int
    skip_limit: int
    least_level: int
    audit_share: float
    audit_least: int
    audit_recheck: float
    audit_limit: float
    check_share: float
    decoy_share: float | None
    test_items: int
    pass_mark: float
    tries: int
    gold_share: float
    pause_below: float
    never_agree: list[str]
    keep_declared: bool
    suggest: list[str]
    blind_share: float
    voters: list[str]
    agree: int


# Values stored with the options, but only if they were set when the task was opened.
_SET_AT_OPENING = {
    **{"never_agree": [], "keep_declared": False, "suggest": [], "blind_share": 0.0},
    **{"voters": [], "agree": 0},
}
for _name, _default in ({name: declared.off for name, declared in OPTIONS.items()} | _SET_AT_OPENING).items():
    setattr(_Options, _name, option(_name, _default))


def new_secret() -> str:
    """Return 256 random bits as 64 hex digits."""
    return secrets.token_hex(32)


class Tasks(models.QuerySet["Task"]):
    def for_work(self, annotator: Annotator) -> Self:
        """Annotate each task with its seed and with what decides the annotator's access, to save queries.

        is_paused: whether the annotator is paused in the task
        role, quota: role and quota of the annotator's membership; None if they aren't a member
        levels: the annotator's reading levels, as a JSON array of [language, level]; None if there are none
        routes: all routes, as a JSON array of [language, queue, extra candidates as JSON]; None if there are none
        """
        paused = apps.get_model("annotate", "Pause").objects.filter(
            task=OuterRef("pk"), annotator=annotator, lifted_at=None
        )
        first = Draw.objects.filter(tasks=OuterRef("pk")).order_by("pk")
        membership = Membership.objects.filter(task=OuterRef("pk"), annotator=annotator)
        levels = AnnotatorLanguage.objects.filter(annotator=annotator).order_by().values("annotator")
        routes = LanguageRoute.objects.order_by().annotate(every=Value(1)).values("every")
        extra = Cast("extra_candidates", models.TextField())
        return self.annotate(
            seed=Subquery(first.values("seed")[:1]),
            is_paused=Exists(paused),
            role=Subquery(membership.values("role")),
            quota=Subquery(membership.values("quota")),
            levels=Subquery(levels.annotate(rows=JsonRows("language", "level")).values("rows")),
            routes=Subquery(routes.annotate(rows=JsonRows("language", "queue", extra)).values("rows")),
        )


_AllTasks = models.Manager.from_queryset(Tasks)


class _OpenedTasks(_AllTasks["Task"]):
    """A manager that hides tasks that are still being opened (`hidden` in work/closure.py)."""

    def get_queryset(self) -> models.QuerySet["Task"]:
        return super().get_queryset().filter(created_at__isnull=False)


class Task(_Options, LoadedRow):
    """A question about the items of a draw, with the labels, options and guidelines for answering it.

    Some tasks have a separate draw for each language.
    """

    name = models.SlugField(unique=True, max_length=64)
    title = models.CharField(max_length=200)
    kind_slug = models.CharField("kind", max_length=64)
    kind_file = models.TextField(
        blank=True,
        help_text="the content of the kind's TOML file when the task was opened; later edits have no effect",
    )
    draws = models.ManyToManyField(
        "corpora.Draw", related_name="tasks", help_text="draws from one corpus with one design"
    )
    labels = models.JSONField(
        blank=True,
        help_text="valid answers: language codes in addition to und, labels of records, or the names of "
        "systems and tie; empty if answers are concepts of a vocabulary",
    )
    vocabulary = models.ForeignKey(
        "corpora.Vocabulary",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="the version of the vocabulary that contains the valid answers; later versions have no effect",
    )
    languages = models.JSONField(
        default=list, blank=True, help_text="the records' languages; empty if the labels are the languages"
    )
    is_open = models.BooleanField(default=True, help_text="a closed task assigns no more units")
    members_only = models.BooleanField(
        default=False,
        help_text="only members can work on the task; otherwise, everyone who reads one of its languages can",
    )
    # The values of the options that the task's kind has, by name.
    options = models.JSONField(default=dict, blank=True)
    secret = models.CharField(
        max_length=64,
        default=new_secret,
        editable=False,
        help_text="the seed of all draws that affect annotators or quality control; its SHA-256 is published when the "
        "task is opened",
    )
    secret_told_at = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="when an export published the secret; draws are then predictable, so no more units are assigned",
    )
    created_at = models.DateTimeField(
        default=timezone.now, null=True, editable=False, help_text="null while the task is being opened"
    )

    objects = _OpenedTasks()
    all_objects = _AllTasks()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.title} ({self.name})"  # several tasks may have the same title

    @property
    def redundancy(self) -> int:
        """The number of annotators per unit, not counting the extra annotator for `overlap_share` of the units."""
        return int(self.options.get("redundancy", OPTIONS["redundancy"].off))

    @redundancy.setter
    def redundancy(self, annotators: float) -> None:
        self.options = {**self.options, "redundancy": annotators}

    @property
    def overlap_share(self) -> float:
        """The share of units that get one more annotator: the fractional part of the `redundancy` option."""
        redundancy: float = self.options.get("redundancy", 1)
        return round(redundancy % 1, 6)

    @property
    def policy(self) -> dict[str, Any]:
        """The values of all options that affect labels, for the manifest."""
        names = [*self.kind.options, *(name for name in _SET_AT_OPENING if name in self.options)]
        return {name: getattr(self, name) for name in names} | (
            {"overlap_share": self.overlap_share} if self.kind.routing.is_routed else {}
        )

    @property
    def kind(self) -> Kind:
        kind = kind_of(self.kind_slug, self.kind_file) if self.kind_file else KINDS[self.kind_slug]
        if "voters" in self.options:
            kind = panel_kind_of(self.kind_slug, self.kind_file)
        return kind.with_version(vocabulary_of(self.vocabulary_id)) if self.vocabulary_id else kind

    @cached_property
    def panel(self) -> Panel:
        """The voters whose agreement labels a unit automatically. Draw.detectors has their versions."""
        return Panel(tuple(self.voters), self.agree) if self.voters else DEFAULT

    @cached_property
    def hooks(self) -> Mapping[str, list[QualityControl]]:
        """The quality controls that the task's options enable, by the name of each hook they implement."""
        hooks: dict[str, list[QualityControl]] = defaultdict(list)
        has = self.options.get
        for control in self.kind.quality_controls:
            if not control.switches or any(map(has, control.switches)):
                draws = not control.draws_by or any(map(has, control.draws_by))
                for name in control.hooks if draws else control.hooks - DRAWING:
                    hooks[name].append(control)
        return hooks

    @property
    def reading_languages(self) -> list[str]:
        """The languages whose readers can work on the task.

        A coarse code such as zh is followed by the codes it covers. If items can be without a language (UND), the
        languages of their queue are included.
        """
        finer, codes = self.kind.finer, list(self.languages or self.labels)
        if UND in codes:
            route = LanguageRoute.objects.filter(language=UND)
            codes += [queue for queue in route.values_list("queue", flat=True) if queue not in codes]
        return [code for language in codes for code in (language, *finer(language))]

    @cached_property
    def seed(self) -> str:
        """The seed of all the task's draws. It doesn't change when a draw is enlarged."""
        return self.draw.seed

    @property
    def lots(self) -> Lots:
        """The random numbers for draws that affect annotators or quality control, derived from the task's secret.

        Items are drawn from a corpus with the seed instead.
        """
        return by_secret(self.secret)

    @property
    def draw(self) -> Draw:
        """The task's draw, or the first draw if each language has its own."""
        return self.draws.select_related("corpus").earliest("pk")


class Membership(models.Model):
    """An annotator's membership in a task. The role in the task overrides the role of the account.

    Annotators and adjudicators receive units in the languages they read. A task's managers see everything in it, so
    they neither label nor adjudicate units.
    """

    ANNOTATOR, ADJUDICATOR, MANAGER = ROLES = ("annotator", "adjudicator", "manager")

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="memberships")
    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=11, choices=[(role, role) for role in ROLES], default=ANNOTATOR)
    quota = models.PositiveIntegerField(
        null=True, blank=True, help_text="maximum number of answers in the task; empty for no limit"
    )

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["task", "annotator"], name="member_once_in_task"),
            models.CheckConstraint(
                condition=Q(role__in=["annotator", "adjudicator", "manager"]), name="known_role_of_member"
            ),
            models.CheckConstraint(condition=Q(quota__isnull=True) | Q(quota__gte=1), name="quota_above_zero"),
        ]

    def __str__(self) -> str:
        return f"{self.annotator} in {self.task.name}"


class Guidelines(models.Model):
    """Instructions for the annotators of a task, in one language.

    Rows are never changed. To revise guidelines, add a new version.
    """

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="guidelines")
    language = models.CharField(max_length=16)
    major = models.PositiveSmallIntegerField(
        default=1, help_text="a new major version changes which answers are right, so all annotators repeat the test"
    )
    minor = models.PositiveSmallIntegerField(default=0, help_text="a new minor version only improves the wording")
    text = models.TextField(help_text="Markdown")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "guidelines"
        ordering = ["language", "-major", "-minor"]
        constraints = [
            models.UniqueConstraint(
                fields=["task", "language", "major", "minor"], name="version_once_in_task_and_language"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.task.name} {self.language} {self.version}"

    @property
    def version(self) -> str:
        return f"{self.major}.{self.minor}"


NAME_A_TASK = ("open_task", "extend_task")  # actions whose option `name` is the name of a task


class Jobs(models.QuerySet["Job"]):
    def open(self) -> Self:
        """Return jobs that have not ended."""
        return self.filter(ended_at=None)

    def failed(self) -> Self:
        """Return failed jobs, unless the same action has since succeeded on the same corpus."""
        since = self.model.objects.filter(action=OuterRef("action"), corpus=OuterRef("corpus"), pk__gt=OuterRef("pk"))
        return self.filter(~Exists(since.filter(state=Job.DONE)), state=Job.FAILED)

    def of_task(self, name: str) -> Self:
        """Return the jobs of the task with this name."""
        return self.filter(Q(given__task=name) | Q(given__name=name, action__in=NAME_A_TASK))

    def contesting(self, task: Task | None = None) -> Self:
        """Return open audit jobs that queue the auto-labelled items of failed languages for annotators.

        task: task whose jobs to return; None for all tasks
        """
        jobs = self.filter(ended_at=None, action="audit", given__contest=True)
        return jobs.filter(given__task=task.name) if task else jobs


class Job(models.Model):
    """An action that runs in the background. Its progress is stored in files (work/job_store.py)."""

    WAITING, RUNNING, DONE, FAILED, CANCELLED = "waiting", "running", "done", "failed", "cancelled"
    STATES = (WAITING, RUNNING, DONE, FAILED, CANCELLED)

    action = models.CharField(max_length=40, help_text="the name of the action, which is also its command")
    given = models.JSONField(default=dict, help_text="option -> value (text, list of texts, or boolean)")
    corpus = models.CharField(
        max_length=64,
        blank=True,
        help_text="the corpus that the job changes; only one job per corpus runs at a time",
    )
    state = models.CharField(max_length=9, choices=[(state, state) for state in STATES], default=WAITING)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        null=True,
        blank=True,
        help_text="who started the job; empty if the system did, such as after a failed audit",
    )
    asked_at = models.DateTimeField(auto_now_add=True)
    began_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    said = models.JSONField(default=list, help_text="sentences and tables about the result")
    warned = models.JSONField(default=list, help_text="warnings, or the reason why the job failed")
    data = models.JSONField(default=dict, help_text="the outcome, in the same form as the command's JSON output")

    objects = Jobs.as_manager()

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["state"], name="jobs_by_state")]
        constraints = [
            models.UniqueConstraint(
                fields=["corpus"], condition=Q(state="running") & ~Q(corpus=""), name="one_running_job_of_a_corpus"
            ),
            models.CheckConstraint(
                condition=Q(state__in=["waiting", "running", "done", "failed", "cancelled"]), name="known_state_of_job"
            ),
            models.CheckConstraint(
                condition=Q(state="waiting", began_at__isnull=True, ended_at__isnull=True)
                | Q(state="running", began_at__isnull=False, ended_at__isnull=True)
                | Q(state__in=["done", "failed"], began_at__isnull=False, ended_at__isnull=False)
                | Q(state="cancelled", ended_at__isnull=False),
                name="times_of_job",
            ),
        ]

    def __str__(self) -> str:
        return f"job {self.pk}: {self.action}"

    @property
    def task_name(self) -> str:
        """The name of the job's task; "" if the job has none."""
        return str(self.given.get("task") or (self.action in NAME_A_TASK and self.given.get("name")) or "")

    @property
    def has_ended(self) -> bool:
        return self.ended_at is not None


class Share(models.Model):
    """A public link to an output file of a job. Only a hash of the link is stored."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="shares")
    path = models.CharField(max_length=255, help_text="path of the file in the job's output folder")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"link to {self.path} of {self.job}"


# --- Webhooks


class Webhook(models.Model):
    """A URL that receives notifications of events (work/webhook_outbox.py)."""

    SETTLED, FINISHED, ASKED, ENDED = "item.settled", "task.finished", "question.asked", "job.ended"
    EVENTS = (SETTLED, FINISHED, ASKED, ENDED)

    url = models.URLField(max_length=500)
    secret = models.CharField(max_length=80, editable=False, help_text="the key of the signatures, shown only once")
    events = models.JSONField(default=list, help_text="names of the events that are sent; empty for all")
    task = models.ForeignKey(
        Task, models.CASCADE, null=True, blank=True, help_text="only events of this task are sent; empty for all"
    )
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT)
    created_at = models.DateTimeField(auto_now_add=True)
    seen = models.PositiveBigIntegerField(default=0, help_text="all transitions up to this one have been collected")
    collected_at = models.DateTimeField(
        default=timezone.now, help_text="all questions and jobs up to this time have been collected"
    )
    failures = models.PositiveSmallIntegerField(default=0, help_text="number of failed attempts since the last success")
    waits_until = models.DateTimeField(null=True, blank=True, help_text="nothing is sent before this time")

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"webhook {self.pk}: {self.url}"

    def wants(self, event: str) -> bool:
        return not self.events or event in self.events


class Deliveries(models.QuerySet["Delivery"]):
    def pending(self) -> Self:
        """Return the notifications that haven't been delivered or given up, oldest first."""
        return self.filter(delivered_at=None, given_up_at=None).order_by("pk")


class Delivery(models.Model):
    """A webhook notification of an event. It is kept for some weeks after delivery."""

    webhook = models.ForeignKey(Webhook, models.CASCADE, related_name="deliveries", db_index=False)
    event = models.CharField(max_length=16)
    key = models.CharField(max_length=60, help_text="unique key of the event, so that it is stored only once")
    body = models.TextField(help_text="JSON")
    at = models.DateTimeField(help_text="time of the event")
    tries = models.PositiveSmallIntegerField(default=0)
    status = models.PositiveSmallIntegerField(null=True, blank=True, help_text="HTTP status of the last response")
    fault = models.CharField(max_length=200, blank=True, help_text="why the last attempt failed")
    delivered_at = models.DateTimeField(null=True, blank=True)
    given_up_at = models.DateTimeField(null=True, blank=True)

    objects = Deliveries.as_manager()

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(
                fields=["webhook"], condition=Q(delivered_at=None, given_up_at=None), name="pending_deliveries"
            )
        ]
        constraints = [models.UniqueConstraint(fields=["webhook", "key"], name="notified_once")]

    def __str__(self) -> str:
        return f"{self.event} to {self.webhook}"

    @property
    def content(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.body)
        return content
