"""Lists of corpora and predictors, access to the declared labels of records, and deletion."""

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
    """Return a dict for each corpus, sorted by name. It has these keys:

    corpus: the name
    holds: posts, records, judged items (imported without their texts), or unknown if the manifest cannot be read
    rows, files, fields, licence, text_may_leave, source, draws, created_at: as in the manifest and the database
    voted: the number of posts with votes
    agreed: the number of posts on which all detectors rank the same language first
    predictors: the names of the imported predictors
    fault: what is wrong with the corpus, or ""
    """
    return [_row(found) for found in _entries()]


@dataclass(frozen=True)
class _Entry:
    """A corpus with its row in the database, its manifest on disk, and its fault.

    If the row or the manifest is missing, it is None.
    """

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
    # A corpus that was created by an import of judgments has draws but no manifest.
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
    """Return a dict for each predictor, sorted by corpus.

    name: the name of a corpus, or "" for all corpora

    Each dict has these keys:

    corpus, predictor: the names of the corpus and the predictor
    posts: the number of posts that the predictor has labelled
    of: the number of posts in the corpus
    complete: whether the predictor covers all posts
    ranked: whether the predictor ranks labels
    classes: the predictor's coarse classes
    source: the imported file, or "" for a built-in predictor

    Raise CorpusError if there is no such corpus.
    """
    there = {found.name: found for found in _entries()}
    if name and name not in there:
        raise CorpusError(f"There is no corpus {name!r}; available: {', '.join(there) or 'none'}.")
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


# --- Declared labels, which the records already have in their source.


class Declared(NamedTuple):
    """Counts of the declared labels in a corpus.

    by_label: the number of records that have only this label
    several: the number of records with several labels
    none: the number of records without labels
    by_language: the same counts as in `by_label`, for each language
    """

    by_label: Counter[str]
    several: int
    none: int
    by_language: dict[str, Counter[str]]


def declared_counts(corpus_name: str) -> Declared:
    """Count the declared labels of the records in a corpus.

    Raise CorpusError if the corpus cannot be read.
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
    """Check that the records of a corpus have declared labels.

    Raise CorpusError if they do not.
    """
    if not manifest_of(corpus_name).declared:
        raise CorpusError(
            f"Corpus {corpus_name} has no labels that came with its records; import it with --labels COLUMN, or have "
            "people label what a --predictor finds."
        )


def declared_records(
    corpus_name: str, languages: Collection[str] | None, fields: Iterable[str]
) -> Iterator[dict[str, Any]]:
    """Yield the records with their declared labels as dicts (id, language, fields, declared), sorted by id.

    languages: the codes of the wanted languages, or None for all
    fields: the fields that the corpus must have

    Raise CorpusError if the corpus holds posts, lacks a field, or has no records in a wanted language.
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


# --- Deletion of corpora and of predictions. Those that a draw has used cannot be deleted.
#
# A corpus is first deleted from the database. Then its manifest is deleted, and finally its other files. If the
# deletion is interrupted, it can be repeated.


def corpus_to_delete(name: str) -> dict[str, Any]:
    """Return what delete_corpus would delete: the corpus, and its rows, files and predictors.

    Raise CorpusError if the corpus must not be deleted.
    """
    corpus = Corpus.objects.filter(name=name).first()
    if corpus is None and not corpus_dir(name).exists():
        known = Corpus.objects.order_by("name").values_list("name", flat=True)
        raise CorpusError(f"There is no corpus {name!r}; available: {', '.join(known) or 'none'}.")
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
    """Delete a corpus from the database and from disk, and return what was deleted."""
    corpus_to_delete(name)  # If the corpus must not be deleted, fail before anything is written.
    with changing(name) as directory:
        with transaction.atomic():
            # Lock the row, so that concurrent draws must wait.
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
    """Return what delete_predictions would delete: the corpus, the predictor and the number of posts.

    Raise CorpusError if the predictions must not be deleted.
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
    """Delete a predictor from a corpus's manifest and from disk, and return what was deleted."""
    manifest_of(name)
    with changing(name):
        gone = predictions_to_delete(name, spelled)
        manifest = manifest_of(name)
        kept = tuple(each for each in manifest.predictions if str(each) != gone["predictor"])
        write_manifest(name, replace(manifest, predictions=kept))
    return gone
