"""Models for annotators, their languages and language requests, invitations, and user preferences."""

import secrets
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.core.validators import MaxValueValidator
from django.db import models
from django.db.models import Q

from corpora.database.statements import LoadedRow


def new_pseudonym() -> str:
    """Return a random name that represents an annotator in exports without identifying them."""
    return f"annotator-{secrets.token_hex(4)}"


class Annotator(LoadedRow):
    """A person who labels units. Adjudicators also settle units, such as those with conflicting answers.

    Managers are not annotators: they are Django's staff users.
    """

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    pseudonym = models.CharField(max_length=40, unique=True, default=new_pseudonym, editable=False)
    adjudicates = models.BooleanField(
        default=False, help_text="may open the adjudication list, where votes and others' judgments are shown"
    )
    has_seen_answers = models.BooleanField(
        default=False,
        editable=False,
        help_text="has been an adjudicator or a task's manager, and may have seen other annotators' answers",
    )
    takes_disturbing = models.BooleanField(
        default=False,
        help_text="accepts disturbing units; other annotators never receive them",
    )

    class Meta:
        ordering = ["user__username"]

    def __str__(self) -> str:
        return self.user.get_full_name() or self.user.username

    def save(self, *args: Any, update_fields: Iterable[str] | None = None, **options: Any) -> None:
        """Save the annotator. Once they become an adjudicator, has_seen_answers stays true."""
        self.has_seen_answers |= self.adjudicates
        fields = update_fields and {*update_fields, "has_seen_answers"}
        super().save(*args, update_fields=fields, **options)

    def lock(self) -> None:
        """Lock the annotator's row until the transaction ends, so that their actions run one at a time.

        The lock is `no_key`, because a full lock would also block inserts of answers that refer to the annotator, in
        transactions that already hold a lock on the unit.
        """
        Annotator.objects.select_for_update(no_key=True).get(pk=self.pk)


class AnnotatorLanguage(models.Model):
    """A language that an annotator reads, with their reading level."""

    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="languages")
    language = models.CharField(max_length=16)
    level = models.PositiveSmallIntegerField(
        default=5,
        validators=[MaxValueValidator(5)],
        help_text="0 (none) to 5 (native); a task requires a minimum level",
    )

    class Meta:
        ordering = ["-level", "language"]
        constraints = [
            models.UniqueConstraint(fields=["annotator", "language"], name="language_once_per_annotator"),
            models.CheckConstraint(condition=Q(level__lte=5), name="level_0_to_5"),
        ]

    def __str__(self) -> str:
        return f"{self.language}:{self.level}"


class LanguageRequest(models.Model):
    """An annotator's request to work in another language. A manager grants or refuses it."""

    GRANTED, REFUSED = "granted", "refused"

    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="language_requests")
    language = models.CharField(max_length=16)
    level = models.PositiveSmallIntegerField(help_text="self-assessed level, 1 to 5 (native)")
    words = models.CharField(max_length=200, blank=True, help_text="how the annotator learned the language")
    asked_at = models.DateTimeField()
    outcome = models.CharField(max_length=8, blank=True, choices=[(o, o) for o in (GRANTED, REFUSED)])
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["annotator", "language"], condition=Q(outcome=""), name="language_asked_for_once"
            ),
            models.CheckConstraint(condition=Q(level__gte=1, level__lte=5), name="asked_for_level_1_to_5"),
            models.CheckConstraint(
                condition=Q(outcome="", decided_at__isnull=True, decided_by__isnull=True)
                | (~Q(outcome="") & Q(decided_at__isnull=False)),
                name="decided_by_an_outcome",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.language}:{self.level} for {self.annotator}"


class Preferences(models.Model):
    """A user's display settings. They are private, and no statistics depend on them."""

    TEXT_SIZES = ["", "large", "larger"]
    THEMES = ["", "light", "dark"]
    KEYS = ["", "left", "right"]
    MOST_A_DAY = 10_000

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="preferences")
    text_size = models.CharField(max_length=8, blank=True, help_text="empty: the browser's setting")
    theme = models.CharField(max_length=8, blank=True, help_text="empty: the system's setting")
    keys = models.CharField(max_length=8, blank=True, help_text="empty: digit keys; otherwise the hand for letter keys")
    time_zone = models.CharField(max_length=64, blank=True, help_text="empty: the installation's")
    language = models.CharField(max_length=8, blank=True, help_text="interface language; empty: the installation's")
    goal = models.PositiveSmallIntegerField(null=True, blank=True, help_text="the user's own goal (answers per day)")

    class Meta:
        verbose_name_plural = "preferences"
        constraints = [
            models.CheckConstraint(
                condition=Q(text_size__in=["", "large", "larger"])
                & Q(theme__in=["", "light", "dark"])
                & Q(keys__in=["", "left", "right"]),
                name="preferences_that_pages_have",
            ),
            models.CheckConstraint(
                condition=Q(goal__isnull=True) | Q(goal__gte=1, goal__lte=10_000), name="goal_of_a_day"
            ),
        ]

    def __str__(self) -> str:
        return f"preferences of {self.user}"


class Invite(models.Model):
    """A link for setting a new annotator's first password. Only a hash of the link is stored."""

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
