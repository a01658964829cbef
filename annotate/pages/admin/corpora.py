"""Corpora and draws, and the log of changed settings."""

from django.contrib import admin
from django.contrib.admin.models import LogEntry

from annotate.pages.admin.base import ReadOnly
from corpora.models import Corpus, Draw
from corpora.storage.layout import read_manifest


def told(corpus: Corpus, tell):
    """What the manifest says; it may have been lost with the data directory."""
    manifest = read_manifest(corpus.name)
    return tell(manifest) if manifest else "lost"


@admin.register(Corpus)
class CorpusAdmin(ReadOnly):
    list_display = ["name", "posts", "votes", "licence", "text_may_leave", "source", "created_at"]

    @admin.display
    def posts(self, corpus):
        return told(corpus, lambda manifest: f"{manifest.rows:,}")

    @admin.display
    def votes(self, corpus):
        return told(corpus, lambda manifest: f"{sum(part.rows for part in manifest.votes):,}")

    @admin.display
    def licence(self, corpus):
        return told(corpus, lambda manifest: manifest.licence)

    @admin.display
    def text_may_leave(self, corpus):
        return told(corpus, lambda manifest: "yes" if manifest.text_may_leave else "no")

    @admin.display
    def source(self, corpus):
        return told(corpus, lambda manifest: manifest.source)


@admin.register(Draw)
class DrawAdmin(ReadOnly):
    list_display = [
        *("corpus", "design", "language", "predictor", "seed", "asked", "size", "frame_size", "told", "extends"),
        "created_at",
    ]
    list_filter = ["corpus", "design", "predictor", "language"]

    @admin.display(description="parameters")
    def told(self, draw):
        return ", ".join(f"{name}: {value}" for name, value in draw.parameters.items())


@admin.register(LogEntry)
class LogEntryAdmin(ReadOnly):
    """The log of changed settings, with the people who changed them."""

    list_display = ["action_time", "user", "content_type", "object_repr", "change_message"]
    list_filter = ["user"]
