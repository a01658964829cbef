"""Which corpora there are, and what labels their posts: read from the manifests, a few statements for all of them.

A corpus that the disk and the database do not agree on, as after a crash, is listed with what is wrong with it.
"""

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Sum

from corpora.core.errors import CorpusError
from corpora.folders import corpora_on_disk
from corpora.manifest import Manifest, read_manifest
from corpora.models import Corpus
from corpora.predictors import BUILT_IN

POSTS, RECORDS, JUDGMENTS, UNKNOWN = "posts", "records", "judged items", "unknown"


def corpora_there() -> list[dict[str, Any]]:
    """By name. A row: corpus, holds (posts, records, or judged items, of which the corpus has no texts; unknown where
    its manifest cannot be read), rows, files, fields, voted (posts that have votes), agreed (on which all three
    detectors name one language), predictors (as they are spelled), licence, text_may_leave, source, draws, created_at,
    fault (empty where nothing is wrong).
    """
    return [_row(found) for found in _there()]


@dataclass(frozen=True)
class _Found:
    """A corpus as it stands in the database and on disk, None where it does not, and what is wrong with it."""

    name: str
    row: Any
    manifest: Manifest | None
    fault: str

    @property
    def holds(self) -> str:
        if self.manifest is None:
            return UNKNOWN if self.fault else JUDGMENTS
        return RECORDS if self.manifest.fields else POSTS


def _there() -> list[_Found]:
    known = {
        corpus.name: corpus for corpus in Corpus.objects.annotate(draw_count=Count("draws"), drawn=Sum("draws__size"))
    }
    return [_found(name, known.get(name)) for name in sorted({*known, *corpora_on_disk()})]


def _found(name: str, row: Any) -> _Found:
    try:
        manifest = read_manifest(name)
    except CorpusError as error:
        return _Found(name, row, None, str(error))
    fault = ""
    if manifest and row is None:
        fault = "It is on disk and not in the database: import its files again, or delete it."
    # What judgments were imported of has draws, and no manifest.
    if manifest is None and not (row and row.draw_count):
        fault = "It is in the database and not on disk: restore its folder, or delete it."
    return _Found(name, row, manifest, fault)


def _row(found: _Found) -> dict[str, Any]:
    row = found.row
    there = found.manifest or Manifest(licence="", text_may_leave=False, source="")
    return {
        "corpus": found.name,
        "holds": found.holds,
        "rows": row.drawn if found.holds == JUDGMENTS else there.rows,
        "files": len(there.sources),
        "fields": list(there.fields),
        "voted": sum(votes.rows for votes in there.votes),
        "agreed": sum(votes.unanimous for votes in there.votes),
        "predictors": [str(each) for each in there.predictions],
        "licence": there.licence,
        "text_may_leave": there.text_may_leave,
        "source": there.source,
        "draws": row.draw_count if row else 0,
        "created_at": row.created_at if row else None,
        "fault": found.fault,
    }


def predictors_there(name: str = "") -> list[dict[str, Any]]:
    """Of the corpus of that name, or of all, by corpus. A row: corpus, predictor, posts (that it has labelled), of,
    complete, ranked (whether it ranks labels), classes (that stand for several labels), source (empty for what is built
    in). CorpusError if there is no such corpus.
    """
    there = {found.name: found for found in _there()}
    if name and name not in there:
        raise CorpusError(f"There is no corpus {name!r}; there is: {', '.join(there) or 'none'}.")
    chosen = [there[name]] if name else there.values()
    return [
        row
        for found in chosen
        if found.manifest and found.holds != JUDGMENTS
        for row in _predictors(found.name, found.manifest)
    ]


def _predictors(name: str, manifest: Manifest) -> list[dict[str, Any]]:
    voted = sum(votes.rows for votes in manifest.votes)
    whole = {"corpus": name, "of": manifest.rows}
    built_in = {"posts": voted, "complete": voted == manifest.rows, "ranked": False, "classes": [], "source": ""}
    imported = [
        {
            **whole,
            "predictor": str(each),
            "posts": each.rows,
            "complete": each.posts_sha256 == manifest.posts_sha256,
            "ranked": each.ranked,
            "classes": sorted(each.mapping),
            "source": each.source,
        }
        for each in manifest.predictions
    ]
    return [*({**whole, "predictor": built, **built_in} for built in BUILT_IN if voted), *imported]
