"""Tasks: one question asked of a draw, its guidelines by version, and where what is in a language waits."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from annotate.core import stages
from annotate.core.aggregation import AGGREGATIONS
from corpora.models import Draw


class LanguageRoute(models.Model):
    """Where posts go that the detectors think are in a language. A language without a row has a queue of its own."""

    language = models.CharField(max_length=16, unique=True)
    queue = models.CharField(
        max_length=16, help_text="the queue that its posts wait in; languages that name one queue share it"
    )
    extra_candidates = models.JSONField(
        default=list,
        blank=True,
        help_text="languages to try after this one though no detector names them: hi-Latn after hi",
    )
    never_agree = models.BooleanField(
        default=False, help_text="in tasks opened from now on, the detectors' agreement on it counts for nothing"
    )

    class Meta:
        ordering = ["language"]

    def __str__(self) -> str:
        return f"{self.language} → {self.queue}"


KNOB = [MinValueValidator(1), MaxValueValidator(99)]
SHARE = [MinValueValidator(0.0), MaxValueValidator(1.0)]


class Task(models.Model):
    """One question asked of a draw, or of one draw a language, with its guidelines and its routing."""

    CONFLICTS = [(stages.ADJUDICATION, "send to adjudication"), (stages.DISCARDED, "discard")]

    name = models.SlugField(unique=True, max_length=64)
    title = models.CharField(max_length=200)
    task_type = models.CharField(max_length=32)
    draws = models.ManyToManyField("corpora.Draw", related_name="tasks", help_text="of one corpus and one design")
    labels = models.JSONField(help_text="what may be answered: codes of languages, besides und, or a record's labels")
    languages = models.JSONField(
        default=list, blank=True, help_text="of the records; empty where the labels are the languages"
    )
    is_open = models.BooleanField(default=True, help_text="a closed task hands out no more work")
    # the agreement policy, fixed when the task was opened
    least_letters = models.PositiveIntegerField(default=20, help_text="on shorter texts agreement counts for nothing")
    never_agree = models.JSONField(default=list, blank=True)
    # the audit of what the detectors agree on; what it chose stays chosen
    audit_share = models.FloatField(
        default=0.02, validators=SHARE, help_text="of the posts that the detectors agree on, how many people check"
    )
    audit_least = models.PositiveIntegerField(
        default=30, help_text="and how many in each language at least, if there are as many"
    )
    audit_recheck = models.FloatField(
        default=0.2, validators=SHARE, help_text="of those, how many an adjudicator checks though the reader confirms"
    )
    audit_limit = models.FloatField(
        default=0.1,
        validators=SHARE,
        help_text="where more than this may be wrong in a language (upper end of 95%), people label all of it",
    )
    decoy_share = models.FloatField(
        default=0.05, validators=SHARE, help_text="posts with a known answer, for each post that is verified"
    )
    overlap_share = models.FloatField(
        default=0.0, validators=SHARE, help_text="of the posts that one person reads, how many a second one reads too"
    )
    # routing knobs, for what happens from now on
    redundancy = models.PositiveSmallIntegerField(default=1, validators=KNOB)
    stop_early = models.BooleanField(
        default=False, help_text="ask only as many people as can settle it, and the others where they do not agree"
    )
    extra_answers = models.PositiveSmallIntegerField(
        default=0, validators=[MaxValueValidator(2)], help_text="answers asked for beyond that, where none prevails"
    )
    aggregation = models.CharField(
        max_length=16,
        choices=[(name, name) for name in AGGREGATIONS],
        default="majority",
        help_text="from answers to a label; the median is for grades",
    )
    rounds = models.PositiveSmallIntegerField(
        default=2, validators=KNOB, help_text="languages tried before adjudication"
    )
    skip_limit = models.PositiveSmallIntegerField(default=1, validators=KNOB, help_text="skips that end a unit's round")
    least_level = models.PositiveSmallIntegerField(
        default=4,
        validators=[MaxValueValidator(5)],
        help_text="who reads a language less well is not served it",
    )
    lease_minutes = models.PositiveSmallIntegerField(
        default=10,
        validators=[MinValueValidator(1), MaxValueValidator(1440)],
        help_text="how long a unit is kept for who has it open",
    )
    on_conflict = models.CharField(
        max_length=16,
        choices=CONFLICTS,
        default=stages.ADJUDICATION,
        help_text="when the answers give no label",
    )
    # who may work: proven by a test, and by the gold answers among the work
    test_items = models.PositiveSmallIntegerField(default=0, help_text="questions of the test; 0: nobody is tested")
    pass_mark = models.FloatField(default=0.8, validators=SHARE, help_text="share of them to be answered rightly")
    tries = models.PositiveSmallIntegerField(default=3, validators=KNOB, help_text="tests that one person may take")
    gold_share = models.FloatField(
        default=0.0,
        validators=[MinValueValidator(0.0), MaxValueValidator(0.5)],
        help_text="of what a person is given, how much has a known answer",
    )
    pause_below = models.FloatField(
        default=0.7, validators=SHARE, help_text="pause who answers less than this share of the known ones rightly"
    )
    pause_confidence = models.FloatField(
        default=0.95,
        validators=[MinValueValidator(0.5), MaxValueValidator(0.999)],
        help_text="once it is so certain",
    )
    pause_least = models.PositiveSmallIntegerField(
        default=8, validators=KNOB, help_text="and they have answered so many"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [models.CheckConstraint(condition=Q(redundancy__gte=1), name="task_asks_somebody")]

    def __str__(self) -> str:
        return f"{self.title} ({self.name})"  # several tasks may ask the same

    @property
    def read_in(self) -> list[str]:
        """The languages that people must read to work in it."""
        return self.languages or self.labels

    @property
    def draw(self) -> Draw:
        """The draw of a uniform task, or the first of one that has a draw a language."""
        return self.draws.select_related("corpus").earliest("pk")


class Guidelines(models.Model):
    """What the annotators of a task are told, in one language; a change is a new version, and what was read stays."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="guidelines")
    language = models.CharField(max_length=16)
    major = models.PositiveSmallIntegerField(
        default=1, help_text="a new one changes what is right: everybody takes the test again"
    )
    minor = models.PositiveSmallIntegerField(default=0, help_text="a new one says the same better")
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
