"""People: annotators, the languages they read, and the links by which they set their passwords."""

import secrets

from django.conf import settings
from django.core.validators import MaxValueValidator
from django.db import models
from django.db.models import Q


def new_pseudonym() -> str:
    """A name for exports that tells nothing about its person."""
    return f"annotator-{secrets.token_hex(4)}"


class Annotator(models.Model):
    """A person who answers, and who settles if they are an adjudicator. Managers are Django's staff users."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    pseudonym = models.CharField(max_length=40, unique=True, default=new_pseudonym, editable=False)
    adjudicates = models.BooleanField(
        default=False, help_text="may open the adjudication list, where votes and others' judgments are shown"
    )
    takes_disturbing = models.BooleanField(
        default=False, help_text="asked to be given what others found disturbing; nobody else is given it"
    )

    class Meta:
        ordering = ["user__username"]

    def __str__(self) -> str:
        return self.user.get_full_name() or self.user.username

    def one_at_a_time(self) -> None:
        """Make anything else that this person does, or a manager does to them, wait for the end of this transaction.

        no_key: otherwise an answer, which refers to the annotator and holds its unit's lock, would wait as well.
        """
        Annotator.objects.select_for_update(no_key=True).get(pk=self.pk)


class AnnotatorLanguage(models.Model):
    """A language that a person reads, and how well they read it."""

    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="languages")
    language = models.CharField(max_length=16)
    level = models.PositiveSmallIntegerField(
        default=5,
        validators=[MaxValueValidator(5)],
        help_text="0 (none) to 5 (native); a task serves those at its least level and above",
    )

    class Meta:
        ordering = ["-level", "language"]
        constraints = [
            models.UniqueConstraint(fields=["annotator", "language"], name="language_once_per_annotator"),
            models.CheckConstraint(condition=Q(level__lte=5), name="level_0_to_5"),
        ]

    def __str__(self) -> str:
        return f"{self.language}:{self.level}"


class Invite(models.Model):
    """A link by which a person sets their first password. Only its hash is kept."""

    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="invites")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"invite of {self.annotator}"
