"""Jobs: deeds of managers that take longer than a request, and what came of them."""

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q


class Jobs(models.QuerySet):
    def open(self):
        """Jobs that have not ended."""
        return self.filter(ended_at=None)

    def failed(self):
        """Jobs that failed, unless the same was done about the same corpus since."""
        since = self.model.objects.filter(action=OuterRef("action"), corpus=OuterRef("corpus"), pk__gt=OuterRef("pk"))
        return self.filter(~Exists(since.filter(state=Job.DONE)), state=Job.FAILED)

    def contesting(self, task=None):
        """Open jobs that send what the detectors agreed on in the task, or in any, to people."""
        found = self.open().filter(action="audit", given__contest=True)
        return found.filter(given__task=task.name) if task else found


class Job(models.Model):
    """An action that was asked for, and is done beside the server. How far it is stands in files: work/job_store.py."""

    WAITING, RUNNING, DONE, FAILED, CANCELLED = "waiting", "running", "done", "failed", "cancelled"
    STATES = (WAITING, RUNNING, DONE, FAILED, CANCELLED)

    action = models.CharField(max_length=40, help_text="the name of the action, as a command has it")
    given = models.JSONField(default=dict, help_text="option -> what was given for it, as text, texts, or yes or no")
    corpus = models.CharField(
        max_length=64, blank=True, help_text="the corpus that it is about; others about the same one wait for its end"
    )
    state = models.CharField(max_length=9, choices=[(state, state) for state in STATES], default=WAITING)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        help_text="who began it; empty if the program did, as where an audit failed",
    )
    asked_at = models.DateTimeField(auto_now_add=True)
    began_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    said = models.JSONField(default=list, help_text="sentences and tables: what was done")
    warned = models.JSONField(default=list, help_text="sentences: what needs attention, or why it failed")
    data = models.JSONField(default=dict, help_text="the outcome, as the command tells it as JSON")

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
    def has_ended(self) -> bool:
        return self.ended_at is not None
