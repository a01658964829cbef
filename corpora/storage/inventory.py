"""List corpora and predictors, read the declared labels of records, and delete corpora and predictions."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Sum

from corpora.core import CorpusError
from corpora.core.voters import VOTERS
from corpora.engines import open_store, texts
from corpora.models import Corpus, Draw
from corpora.predictions.predictor_labels import MAJORITY, find_imported
from corpora.storage import bucket, layout
from corpora.storage.layout import Manifest

POSTS, RECORDS, JUDGMENTS, UNKNOWN = "posts", "records", "judged items", "unknown"


def corpus_rows() -> list[dict[str, Any]]:
    """Return a dict for each corpus, sorted by name, with these keys:

    corpus: corpus name
    holds: posts, records, judged items (imported without their texts), or unknown if the manifest cannot be read
    rows, files, fields, licence, text_may_leave, source, draws, created_at: as in the manifest and the database
    voted: number of posts with votes
    agreed: number of posts with unanimous votes
    predictors: names of the imported predictors
    fault: what is wrong with the corpus; "" if nothing is
    """
    rows = {
        corpus.name: corpus for corpus in Corpus.objects.annotate(draw_count=Count("draws"), drawn=Sum("draws__size"))
    }
    return [_describe(name, rows.get(name)) for name in sorted({*rows, *layout.corpora_on_disk()})]


def _describe(name: str, row: Any) -> dict[str, Any]:
    """Return a corpus's entry in `corpus_rows`.

    row: the corpus in the database; None if there is none
    """
    manifest, fault, holds = None, "", UNKNOWN
    try:
        manifest = layout.read_manifest(name)
    except CorpusError as error:
        fault = str(error)
    else:
        if manifest:
            holds = RECORDS if manifest.fields else POSTS
            if row is None:
                fault = "The corpus is on disk but not in the database. Import its files again, or delete it."
        elif row and row.draw_count:  # created by an import of judgments
            holds = JUDGMENTS
        else:
            fault = "The corpus is in the database but not on disk. Restore its folder, or delete it."
    manifest = manifest or Manifest(licence="", text_may_leave=False, source="")
    return {
        "corpus": name,
        "holds": holds,
        "rows": row.drawn if holds == JUDGMENTS else manifest.rows,
        "files": len(manifest.sources),
        "fields": list(manifest.fields),
        "voted": sum(votes.rows for votes in manifest.votes),
        "agreed": sum(votes.unanimous for votes in manifest.votes),
        "predictors": [str(predictions) for predictions in manifest.predictions],
        "licence": manifest.licence,
        "text_may_leave": manifest.text_may_leave,
        "source": manifest.source,
        "draws": row.draw_count if row else 0,
        "created_at": row.created_at if row else None,
        "fault": fault,
    }


def predictor_rows(name: str = "") -> list[dict[str, Any]]:
    """Return a dict for each predictor, sorted by corpus.

    name: name of a corpus, or "" for all corpora

    Each dict has these keys:

    corpus, predictor: names of the corpus and the predictor
    posts: number of posts with a prediction
    of: number of posts in the corpus
    complete: whether the predictor covers all posts
    ranked: whether the predictor ranks labels
    classes: the predictor's coarse classes
    source: the imported file, or "" for a built-in predictor

    Raise CorpusError if there is no such corpus.
    """
    names = sorted({*Corpus.objects.values_list("name", flat=True), *layout.corpora_on_disk()})
    if name and name not in names:
        raise CorpusError(f"The corpus {name!r} does not exist. Available corpora: {', '.join(names) or 'none'}.")
    rows: list[dict[str, Any]] = []
    for corpus_name in [name] if name else names:
        with suppress(CorpusError):  # unreadable manifests are reported by corpus_rows
            if manifest := layout.read_manifest(corpus_name):
                rows += _predictors(corpus_name, manifest)
    return rows


def _predictors(name: str, manifest: Manifest) -> list[dict[str, Any]]:
    voted = sum(votes.rows for votes in manifest.votes)
    common = {"corpus": name, "of": manifest.rows}
    built_in = {"posts": voted, "complete": voted == manifest.rows, "ranked": False, "classes": [], "source": ""}
    imported = [
        {
            **common,
            "predictor": str(predictions),
            "posts": predictions.rows,
            "complete": predictions.posts_sha256 == manifest.posts_sha256,
            "ranked": predictions.ranked,
            "classes": sorted(predictions.mapping),
            "source": predictions.source,
        }
        for predictions in manifest.predictions
    ]
    return [*({**common, "predictor": voter, **built_in} for voter in (*manifest.voters, MAJORITY) if voted), *imported]


# --- Declared labels, which come from the records' source.


class Declared(NamedTuple):
    """Counts of the declared labels in a corpus.

    by_label: number of records with a single label, by label
    several: number of records with several labels
    none: number of records without labels
    by_language: the counts in `by_label`, by language
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
    with open_store(corpus_name) as store:
        for batch in store.query("declared_counts"):
            for row in batch.to_pylist():
                labels = row["declared"] or []
                numbers[min(2, len(labels))] += row["records"]
                if len(labels) == 1:
                    by_language.setdefault(row["language"], Counter())[labels[0]] += row["records"]
    by_label = sum(by_language.values(), Counter())
    return Declared(by_label, several=numbers[2], none=numbers[0], by_language=by_language)


def check_declared(corpus_name: str) -> None:
    """Raise CorpusError if the records of a corpus have no declared labels."""
    if not layout.manifest_of(corpus_name).declared:
        raise CorpusError(
            f"The records of corpus {corpus_name} have no declared labels. Import them with --labels COLUMN, or select "
            "records with --predictor and have people label them."
        )


def declared_records(
    corpus_name: str, languages: Collection[str] | None, fields: Iterable[str]
) -> Iterator[dict[str, Any]]:
    """Yield the records with their declared labels as dicts (id, language, fields, declared), sorted by id.

    languages: codes of the requested languages; None for all
    fields: fields that the corpus must have

    Raise CorpusError if the corpus contains posts, lacks a field, or has no records in a requested language.
    """
    manifest = layout.manifest_of(corpus_name)
    layout.check_fields(corpus_name, manifest, fields)
    with open_store(corpus_name, manifest=manifest) as store:
        present = {row["language"] for batch in store.query("declared_counts") for row in batch.to_pylist()}
        selected = sorted(present if languages is None else languages)
        if absent := [language for language in selected if language not in present]:
            raise CorpusError(
                f"Corpus {corpus_name} has no records in {absent[0]}. Available languages: "
                f"{', '.join(sorted(present))}."
            )
        store.rows("wanted", texts(language=selected))
        for batch in store.query("declared_records"):
            yield from batch.to_pylist()


# --- Deletion of corpora and predictions that are not used by a draw.
#
# A corpus is first deleted from the database, then its manifest is deleted, and finally its other files. An interrupted
# deletion can be repeated.


def corpus_named(name: str) -> Corpus:
    """Return the corpus with this name. Raise CorpusError if there is none."""
    corpus = Corpus.objects.filter(name=name).first()
    if corpus is None:
        names = Corpus.objects.order_by("name").values_list("name", flat=True)
        raise CorpusError(
            f"The corpus {name!r} does not exist. Available corpora: {', '.join(names) or 'none'}. To import one, see "
            "`assay import_corpus --help`.",
            "corpus",
        )
    return corpus


def corpus_to_delete(name: str) -> dict[str, Any]:
    """Return what delete_corpus would delete: the name of the corpus, its number of rows and files, and its predictors.

    Raise CorpusError if the corpus must not be deleted.
    """
    # If a deletion was interrupted, only the files remain.
    has_files = layout.corpus_dir(name).exists() or name in layout.corpora_on_disk()
    is_partly_deleted = has_files and not Corpus.objects.filter(name=name).exists()
    corpus = None if is_partly_deleted else corpus_named(name)
    if corpus and (draws := corpus.draws.count()):
        raise CorpusError(
            f"Corpus {name} cannot be deleted because posts or records were drawn from it (draws: {draws:,}). Delete "
            f"the tasks that use these draws first. `assay draws {name}` lists them."
        )
    manifest = layout.read_manifest(name)
    return {
        "corpus": name,
        "rows": manifest.rows if manifest else 0,
        "files": len(manifest.sources) if manifest else 0,
        "predictors": [str(predictions) for predictions in manifest.predictions] if manifest else [],
    }


def delete_corpus(name: str) -> dict[str, Any]:
    """Delete a corpus from the database and from disk, and return what was deleted."""
    corpus_to_delete(name)  # fail before anything is written if the corpus must not be deleted
    with layout.lock_corpus(name, fetches=False) as directory:
        with transaction.atomic():
            # Lock the row to block concurrent draws.
            corpora = list(Corpus.objects.select_for_update().filter(name=name))
            deleted = corpus_to_delete(name)
            for corpus in corpora:
                corpus.items.all().delete()
                corpus.delete()
        if settings.CORPORA:
            bucket.delete(name)
        (directory / "manifest.json").unlink(missing_ok=True)
        layout.sync(directory)
        for path in (directory / "rejects").iterdir():
            path.unlink()
    if directory.exists():
        raise CorpusError(f"Corpus {name} was deleted, but files remain in {directory}. Remove that folder.")
    layout.sync(layout.corpora_dir())
    return deleted


def predictions_to_delete(name: str, spelled: str) -> dict[str, Any]:
    """Return what delete_predictions would delete: the names of corpus and predictor, and the number of posts.

    Raise CorpusError if the predictions must not be deleted.
    """
    if spelled in (*VOTERS, MAJORITY):
        raise CorpusError(f"{spelled} cannot be deleted because it consists of the detectors' votes, which draws need.")
    predictor = find_imported(name, spelled)
    drawn = Draw.objects.filter(corpus__name=name).values_list("predictor", "detectors")
    if draws := sum(str(predictor) in (drew, *chain.from_iterable(panels)) for drew, panels in drawn):
        raise CorpusError(
            f"{predictor} cannot be deleted because it was used to draw from corpus {name} (draws: {draws:,}). "
            "Measurements on these items need its labels."
        )
    return {"corpus": name, "predictor": str(predictor), "posts": predictor.rows}


def delete_predictions(name: str, spelled: str) -> dict[str, Any]:
    """Delete a predictor from a corpus's manifest and from disk, and return what was deleted."""
    layout.manifest_of(name)
    with layout.lock_corpus(name):
        deleted = predictions_to_delete(name, spelled)
        manifest = layout.manifest_of(name)
        rest = tuple(entry for entry in manifest.predictions if str(entry) != deleted["predictor"])
        layout.write_manifest(name, replace(manifest, predictions=rest))
    return deleted
