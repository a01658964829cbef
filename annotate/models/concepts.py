"""Concepts of a vocabulary: those that people chose for a document, and those that systems suggested."""

from django.db import models
from django.db.models import Q

from annotate.kinds.kind import WAYS
from annotate.models.work import Judgment, Unit


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
