"""Lists of corpora and predictors, the labels that came with records, and deletion."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pyarrow as pa
from django.db import transaction
from django.db.models import Count, Sum

from corpora.core import CorpusError
from corpora.core.voters import VOTERS
from corpora.engines import asking
from corpora.models import Corpus, Draw
from corpora.predictions.predictor_labels import MAJORITY, find_imported
from corpora.storage.layout import (
    Manifest,
    check_records,
    corpora_dir,
    corpora_on_disk,
    corpus_dir,
    manifest_of,
    read_manifest,
    sync,
    write_manifest,
)
from corpora.storage.locks import changing

POSTS, RECORDS, JUDGMENTS, UNKNOWN = "posts", "records", "judged items", "unknown"


def corpora_there() -> list[dict[str, Any]]:
    """Return a dict for each corpus, sorted by name.

    corpus: name
    holds: posts, records, judged items (without texts), or unknown if the manifest cannot be read
    rows, files, fields, licence, text_may_leave, source, draws, created_at: as in the manifest and database
    voted: number of posts with votes
    agreed: number of posts on which all detectors rank the same language first
    predictors: names of imported predictors
    fault: what is wrong with the corpus, or ""
    """
    return [_row(found) for found in _entries()]


@dataclass(frozen=True)
class _Entry:
    """A corpus in the database and on disk, with None for what is missing, and its fault."""

    name: str
    row: Any
    manifest: Manifest | None
    fault: str

    @property
    def holds(self) -> str:
        if self.manifest is None:
            return UNKNOWN if self.fault else JUDGMENTS
        return RECORDS if self.manifest.fields else POSTS


def _entries() -> list[_Entry]:
    known = {
        corpus.name: corpus for corpus in Corpus.objects.annotate(draw_count=Count("draws"), drawn=Sum("draws__size"))
    }
    return [_entry(name, known.get(name)) for name in sorted({*known, *corpora_on_disk()})]


def _entry(name: str, row: Any) -> _Entry:
    try:
        manifest = read_manifest(name)
    except CorpusError as error:
        return _Entry(name, row, None, str(error))
    fault = ""
    if manifest and row is None:
        fault = "It is on disk and not in the database: import its files again, or delete it."
    # A corpus made by importing judgments has draws but no manifest.
    if manifest is None and not (row and row.draw_count):
        fault = "It is in the database and not on disk: restore its folder, or delete it."
    return _Entry(name, row, manifest, fault)


def _row(found: _Entry) -> dict[str, Any]:
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
    """Return a dict for each predictor, sorted by corpus: corpus, predictor and the keys below.

    posts: number of posts that it has labelled
    of: number of posts in the corpus
    complete: whether it covers all posts
    ranked: whether it ranks labels
    classes: its coarse classes
    source: the imported file, "" for built-in predictors

    name: the corpus, or "" for all
    CorpusError: there is no such corpus
    """
    there = {found.name: found for found in _entries()}
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
    return [*({**whole, "predictor": built, **built_in} for built in (*VOTERS, MAJORITY) if voted), *imported]


# --- Labels that came with records.


class Declared(NamedTuple):
    """Counts of the labels that came with a corpus.

    by_label: number of records by label, for records with one label
    several: number of records with several labels
    none: number of records without labels
    by_language: `by_label` for each language
    """

    by_label: Counter[str]
    several: int
    none: int
    by_language: dict[str, Counter[str]]


def declared_counts(corpus_name: str) -> Declared:
    """Count the labels that came with the records of a corpus.

    CorpusError: the corpus cannot be read
    """
    by_language: dict[str, Counter[str]] = {}
    numbers = Counter[int]()
    with asking(corpus_name) as store:
        for batch in store.query("declared_counts"):
            for row in batch.to_pylist():
                labels = row["declared"] or []
                numbers[min(2, len(labels))] += row["records"]
                if len(labels) == 1:
                    by_language.setdefault(row["language"], Counter())[labels[0]] += row["records"]
    by_label = sum(by_language.values(), Counter())
    return Declared(by_label, several=numbers[2], none=numbers[0], by_language=by_language)


def check_declared(corpus_name: str) -> None:
    """Check that labels came with a corpus.

    CorpusError: none did
    """
    if not manifest_of(corpus_name).declared:
        raise CorpusError(
            f"Corpus {corpus_name} has no labels that came with its records; import it with --labels COLUMN, or have "
            "people label what a --predictor finds."
        )


def declared_records(
    corpus_name: str, languages: Collection[str] | None, fields: Iterable[str]
) -> Iterator[dict[str, Any]]:
    """Yield the records with their labels, sorted by id, as dicts with id, language, fields and declared.

    languages: codes, or None for all
    fields: fields that the corpus must have
    CorpusError: the corpus has posts, lacks a field, or has no records in a language
    """
    manifest = manifest_of(corpus_name)
    check_records(corpus_name, manifest)
    if missing := [field for field in fields if field not in manifest.fields]:
        raise CorpusError(
            f"Corpus {corpus_name} has no field {missing[0]!r}; its fields are {', '.join(manifest.fields)}."
        )
    with asking(corpus_name, manifest=manifest) as store:
        there = {row["language"] for batch in store.query("declared_counts") for row in batch.to_pylist()}
        wanted = sorted(there if languages is None else languages)
        if strange := [language for language in wanted if language not in there]:
            raise CorpusError(
                f"Corpus {corpus_name} has no records in {strange[0]}; it has them in {', '.join(sorted(there))}."
            )
        store.rows("wanted", pa.table({"language": pa.array(wanted, pa.string())}))
        for batch in store.query("declared_records"):
            yield from batch.to_pylist()


# --- Deletion of corpora that were never drawn from, and of predictions that no draw used.
#
# A corpus is deleted from the database first, then its manifest is deleted; leftover files are swept up later. An
# interrupted deletion can be repeated.


def corpus_to_delete(name: str) -> dict[str, Any]:
    """Return the corpus, rows, files and predictors that delete_corpus would delete.

    CorpusError: the corpus may not be deleted
    """
    corpus = Corpus.objects.filter(name=name).first()
    if corpus is None and not corpus_dir(name).exists():
        known = Corpus.objects.order_by("name").values_list("name", flat=True)
        raise CorpusError(f"There is no corpus {name!r}; there is: {', '.join(known) or 'none'}.")
    if corpus and (draws := corpus.draws.count()):
        raise CorpusError(
            f"Corpus {name} cannot be deleted, since posts or records were drawn from it (draws: {draws:,}). "
            f"`assay draws {name}` lists them with the tasks that ask about them; without those tasks it can be."
        )
    manifest = read_manifest(name)
    return {
        "corpus": name,
        "rows": manifest.rows if manifest else 0,
        "files": len(manifest.sources) if manifest else 0,
        "predictors": [str(each) for each in manifest.predictions] if manifest else [],
    }


def delete_corpus(name: str) -> dict[str, Any]:
    """Delete a corpus's files and row, and return what was deleted."""
    corpus_to_delete(name)  # refuse before anything is written
    with changing(name) as directory:
        with transaction.atomic():
            # Lock the row, so that concurrent draws wait.
            found = list(Corpus.objects.select_for_update().filter(name=name))
            gone = corpus_to_delete(name)
            for corpus in found:
                corpus.items.all().delete()
                corpus.delete()
        (directory / "manifest.json").unlink(missing_ok=True)
        sync(directory)
        for path in (directory / "rejects").iterdir():
            path.unlink()
    if directory.exists():
        raise CorpusError(f"Corpus {name} is deleted, but for what could not be removed of {directory}; remove it.")
    sync(corpora_dir())
    return gone


def predictions_to_delete(name: str, spelled: str) -> dict[str, Any]:
    """Return the corpus, predictor and number of posts that delete_predictions would delete.

    CorpusError: the predictions may not be deleted
    """
    if spelled in (*VOTERS, MAJORITY):
        raise CorpusError(f"{spelled} is made of the detectors' votes, and posts are drawn with these: it stays.")
    predictor = find_imported(name, spelled)
    if draws := Draw.objects.filter(corpus__name=name, predictor=str(predictor)).count():
        raise CorpusError(
            f"{predictor} cannot be deleted, since posts of corpus {name} were drawn by it (draws: {draws:,}), and "
            "what is measured on them needs its labels."
        )
    return {"corpus": name, "predictor": str(predictor), "posts": predictor.rows}


def delete_predictions(name: str, spelled: str) -> dict[str, Any]:
    """Delete a predictor from a corpus's manifest and disk, and return what was deleted."""
    manifest_of(name)
    with changing(name):
        gone = predictions_to_delete(name, spelled)
        manifest = manifest_of(name)
        kept = tuple(each for each in manifest.predictions if str(each) != gone["predictor"])
        write_manifest(name, replace(manifest, predictions=kept))
    return gone
