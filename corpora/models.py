"""Models for corpora, draws, drawn items and vocabularies.

The posts of a corpus are stored in Parquet files on disk (corpora/storage/layout.py). Only drawn posts become rows in
the database.
"""

import json
from collections.abc import Mapping
from typing import Any

from django.db import models

from corpora.core.voters import Panel, Votes, agreed_vote
from corpora.database.statements import LoadedRow

DESIGNS = ("uniform", "recall", "precision", "triggers", "records", "balanced", "systems", "filtered", "compare")


class Corpus(models.Model):
    """An imported collection of posts or records. Its licence, sources and counts are in a file, the manifest."""

    name = models.SlugField(unique=True, max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "corpora"
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Draw(models.Model):
    """A random sample, with the seed and parameters of the draw.

    A draw is immutable. To enlarge it, a new draw is created that extends it.
    """

    corpus = models.ForeignKey(Corpus, on_delete=models.PROTECT, related_name="draws")
    design = models.CharField(max_length=16, choices=[(design, design) for design in DESIGNS])
    language = models.CharField(
        max_length=16, blank=True, default="", help_text="the draw's language; empty in uniform draws"
    )
    predictor = models.CharField(
        max_length=200,
        blank=True,
        default="",
        help_text="the predictor that the draw used: a name, or name@version",
    )
    parameters = models.JSONField(
        default=dict, help_text="the design's other options, and counts that the draw recorded"
    )
    seed = models.CharField(max_length=64)
    asked = models.PositiveBigIntegerField(default=0, help_text="number of posts requested")
    size = models.PositiveBigIntegerField(
        help_text="number of posts drawn; lower than requested if the frame is smaller"
    )
    parts = models.PositiveIntegerField(help_text="number of parts in the frame, from the first part of the corpus")
    frame_size = models.PositiveBigIntegerField(help_text="number of posts in the frame")
    frame_digest = models.CharField(max_length=64, help_text="SHA-256 of the digests of the frame's parts")
    detectors = models.JSONField(default=list, help_text="the versions of the voters that voted on the items")
    extends = models.OneToOneField("self", on_delete=models.PROTECT, null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.CheckConstraint(condition=models.Q(size__lte=models.F("frame_size")), name="draw_within_frame"),
        ]

    def __str__(self) -> str:
        purpose = f" for {self.language}" if self.language else ""
        return f"{self.design} draw of {self.size:,}{purpose} from {self.corpus}, seed {self.seed}"

    @property
    def chance(self) -> float:
        """The inclusion probability of each post in the frame, or 0 if the frame is empty.

        If records were drawn in groups, it is the inclusion probability of a group.
        """
        if groups := self.parameters.get("frame_groups"):
            drawn: int = self.parameters["groups"]
            return drawn / int(groups)
        return self.size / self.frame_size if self.frame_size else 0.0


class Item(LoadedRow):
    """A drawn post with the detectors' votes, or a drawn record, which has several fields and often no votes."""

    # The unique constraint below already provides an index.
    corpus = models.ForeignKey(Corpus, on_delete=models.PROTECT, related_name="items", db_index=False)
    key = models.CharField("id", max_length=200, help_text="the post's id in its source")
    text = models.TextField(help_text="the text that annotators see, with mentions replaced by @xzy")
    author = models.CharField(max_length=64, blank=True, help_text="hashed with the installation's key")
    posted_at = models.DateTimeField(null=True, blank=True)
    url = models.CharField(max_length=2000, blank=True)
    language = models.CharField(
        max_length=16,
        blank=True,
        default="",
        help_text="the language declared for a record; empty for a post",
    )
    # For example {"query": ..., "title": ...}. PostgreSQL does not preserve the order of keys, so the order of the
    # fields is taken from the manifest.
    fields = models.JSONField(default=dict, blank=True, help_text="a record's fields by name; empty for a post")
    declared = models.JSONField(
        default=list, blank=True, help_text="the labels that a record has in its source; annotators never see them"
    )
    # Ranked labels by voter: {"langid": [["de", 0.98], ...], "cld2": [...], "mine@1": [...]}, or {} without votes.
    # Tasks with different panels share the item, and each uses only its own voters' votes.
    votes = models.JSONField()
    letters = models.PositiveIntegerField(help_text="number of letters that the detectors read; 0 for a record")

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["corpus", "key"], name="item_once_in_corpus")]
        indexes = [
            # For the query that checks who has already seen a decoy's text. Whole texts are too long for an index, so
            # only their first characters are indexed.
            models.Index(models.Func("text", 1, 32, function="SUBSTR"), name="item_begins")
        ]

    def __str__(self) -> str:
        return self.key


def votes_of(item: Any) -> Votes:
    """Return the votes on an item or plain row. Plain rows (corpora/draws/samples.py) have them as JSON text."""
    votes: Votes = json.loads(item.votes) if isinstance(item.votes, str) else item.votes
    return votes


def agreed_on(item: Any, panel: Panel) -> str | None:
    """Return the label that enough voters of a panel rank first on an item or plain row, or None if there is none.

    panel: the voters; for a plain row, it must be the panel that the row was drawn with
    """
    label: str | None = item.agreed if isinstance(item.votes, str) else agreed_vote(item.votes, panel)
    return label


def as_read(language: str, text: str, fields: Mapping[str, str]) -> tuple[Any, ...]:
    """Return a key for an item's content. Items that look the same to annotators have the same key."""
    return language, text, *sorted(fields.items())


class Vocabulary(models.Model):
    """A version of a thesaurus. It is immutable; a new edition of the thesaurus is imported as a new version."""

    name = models.SlugField(max_length=64)
    version = models.PositiveIntegerField(help_text="1, 2, ... in the order of import")
    source = models.CharField(max_length=200, help_text="the names of the imported files")
    sha256 = models.CharField(max_length=64, help_text="SHA-256 of the content, independent of format and order")
    languages = models.JSONField(default=list, help_text="the languages of the labels")
    imported_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "vocabularies"
        ordering = ["name", "version"]
        constraints = [
            models.UniqueConstraint(fields=["name", "version"], name="vocabulary_version_once"),
            models.UniqueConstraint(fields=["name", "sha256"], name="vocabulary_content_once"),
        ]

    def __str__(self) -> str:
        return f"{self.name}, version {self.version}"


class Scheme(models.Model):
    """A part of a vocabulary, such as a EuroVoc microthesaurus, or a domain that groups such parts."""

    vocabulary = models.ForeignKey(Vocabulary, on_delete=models.CASCADE, related_name="schemes")
    key = models.CharField("id", max_length=200)
    domain = models.ForeignKey("self", on_delete=models.CASCADE, null=True, related_name="parts")
    labels = models.JSONField(default=dict, help_text="language -> label")

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["vocabulary", "key"], name="scheme_once_in_vocabulary"),
            models.CheckConstraint(condition=~models.Q(domain=models.F("pk")), name="scheme_not_its_own_domain"),
        ]

    def __str__(self) -> str:
        return self.key


class Concept(models.Model):
    """A concept in one version of a vocabulary. Its id is the same in every version."""

    vocabulary = models.ForeignKey(Vocabulary, on_delete=models.CASCADE, related_name="concepts")
    key = models.CharField("id", max_length=200)
    is_deprecated = models.BooleanField(default=False, help_text="existing documents keep it, but it is not offered")
    replaced_by = models.TextField(blank=True, help_text="ids of the replacement concepts, separated by spaces")
    schemes = models.ManyToManyField(Scheme, related_name="concepts")
    broader = models.ManyToManyField("self", through="Broader", symmetrical=False, related_name="narrower")
    related = models.ManyToManyField("self", through="Related", symmetrical=False, related_name="+")

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["vocabulary", "key"], name="concept_once_in_vocabulary")]

    def __str__(self) -> str:
        return self.key


class Broader(models.Model):
    """A link from a concept to a broader concept."""

    concept = models.ForeignKey(Concept, on_delete=models.CASCADE, related_name="+")
    broader = models.ForeignKey(Concept, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["concept", "broader"], name="broader_once"),
            models.CheckConstraint(condition=~models.Q(concept=models.F("broader")), name="broader_is_another"),
        ]

    def __str__(self) -> str:
        return f"{self.concept} under {self.broader}"


class Related(models.Model):
    """A link between two related concepts. It is stored in both directions."""

    concept = models.ForeignKey(Concept, on_delete=models.CASCADE, related_name="+")
    related = models.ForeignKey(Concept, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["concept", "related"], name="related_once"),
            models.CheckConstraint(condition=~models.Q(concept=models.F("related")), name="related_is_another"),
        ]

    def __str__(self) -> str:
        return f"{self.concept} related to {self.related}"


class Label(models.Model):
    """A concept's label in one language, which is either its preferred label or an alternative used in searches."""

    concept = models.ForeignKey(Concept, on_delete=models.CASCADE, related_name="labels")
    language = models.CharField(max_length=16, blank=True, help_text="empty if the source does not specify it")
    text = models.CharField(max_length=500)
    is_preferred = models.BooleanField()
    # Stored as bytes, so that SQLite and PostgreSQL with any collation sort and compare labels in the same way.
    plain = models.BinaryField(help_text="the words from `words_of`, separated by spaces, in UTF-8")

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["concept", "language", "text"], name="label_once"),
            models.UniqueConstraint(
                fields=["concept", "language"],
                condition=models.Q(is_preferred=True),
                name="preferred_label_once",
            ),
        ]

    def __str__(self) -> str:
        return self.text


class LabelWord(models.Model):
    """A word in a label. Searches find labels by the prefixes of their words (corpora/vocabulary/concept_index.py)."""

    vocabulary = models.ForeignKey(Vocabulary, on_delete=models.CASCADE, related_name="+", db_index=False)
    label = models.ForeignKey(Label, on_delete=models.CASCADE, related_name="words", db_index=False)
    word = models.BinaryField(help_text="a word from `words_of` in UTF-8; stored as bytes like Label.plain")

    class Meta:
        indexes = [
            models.Index(fields=["vocabulary", "word", "label"], name="label_word_beginnings"),
            models.Index(fields=["label", "word"], name="label_word_of_label"),
        ]

    def __str__(self) -> str:
        return bytes(self.word).decode()
