"""What units of some kinds ask about besides a text: two systems side by side, and concepts of a vocabulary."""

from django.db import models
from django.db.models import F, Q

from annotate.kinds.kind import WAYS
from annotate.models.people import Annotator
from annotate.models.quality import GoldAnswer
from annotate.models.work import Judgment, Unit


class Comparison(models.Model):
    """Two systems and their replies to the message of a unit, or of a gold answer for practice or test, which has none.

    Which of them is a and which is b says nothing: they are in the order of their names.
    """

    unit = models.OneToOneField(Unit, on_delete=models.CASCADE, null=True, blank=True, related_name="comparison")
    gold_answer = models.OneToOneField(
        GoldAnswer, on_delete=models.CASCADE, null=True, blank=True, related_name="comparison"
    )
    system_a = models.CharField(max_length=40)
    system_b = models.CharField(max_length=40)
    replies_a = models.JSONField(default=list, blank=True, help_text="as system a has them, the best first")
    replies_b = models.JSONField(default=list, blank=True)

    class Meta:
        constraints = [
            # Databases sort text each in its own way, so that which of two comes first is not for them to say.
            models.CheckConstraint(condition=~Q(system_a=F("system_b")), name="two_systems_compared"),
            models.CheckConstraint(
                condition=Q(unit__isnull=True, gold_answer__isnull=False)
                | Q(unit__isnull=False, gold_answer__isnull=True),
                name="compared_for_a_unit_or_a_gold_answer",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.system_a} and {self.system_b}"

    @property
    def systems(self) -> tuple[str, str]:
        return self.system_a, self.system_b


class Side(models.Model):
    """Which system stood first for a person, written when the unit was handed to them and never changed: a reload, a
    return and an undo show the same. Of questions in practice and test, TrialAnswer has it.
    """

    unit = models.ForeignKey(Unit, on_delete=models.CASCADE, related_name="sides")
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="sides")
    first = models.CharField(max_length=40, help_text="the system that stood first")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["unit", "annotator"], name="sides_drawn_once")]

    def __str__(self) -> str:
        return f"{self.first} first for {self.annotator}"


class ChosenConcept(models.Model):
    """A concept that somebody chose for a document, and what led them to it. Together the concepts of a judgment are
    its label.
    """

    judgment = models.ForeignKey(Judgment, on_delete=models.PROTECT, related_name="chosen")
    concept = models.ForeignKey("corpora.Concept", on_delete=models.PROTECT, related_name="+")
    way = models.CharField(
        max_length=9,
        blank=True,
        choices=[(way, way) for way in WAYS],
        help_text="empty where nobody told, as by the API and in files",
    )
    rank = models.PositiveSmallIntegerField(null=True, help_text="of a suggestion, in the list that was shown; from 1")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["judgment", "concept"], name="concept_chosen_once"),
            models.CheckConstraint(condition=Q(way__in=["", *WAYS]), name="known_way"),
            models.CheckConstraint(
                condition=Q(way="suggested", rank__isnull=False, rank__gte=1) | ~Q(way="suggested") & Q(rank=None),
                name="suggestion_has_a_rank",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.concept} {self.way} {self.rank or ''}".strip()


class Suggestion(models.Model):
    """What a system suggests for a unit: the ids of concepts, the best first. Hidden gold answers have suggestions too,
    or their lack would tell them from work.
    """

    unit = models.ForeignKey(Unit, on_delete=models.CASCADE, related_name="suggestions")
    system = models.CharField(max_length=200, help_text="the ranked predictor: NAME@VERSION")
    ranked = models.JSONField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["unit", "system"], name="one_list_of_a_system")]

    def __str__(self) -> str:
        return f"{self.system}: {', '.join(self.ranked)}"
