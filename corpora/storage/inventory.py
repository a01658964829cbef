"""Which corpora there are, what labels their posts and records have, and how they are deleted."""

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
    """By name. A row: corpus, holds (posts, records, or judged items, of which the corpus has no texts; unknown where
    its manifest cannot be read), rows, files, fields, voted (posts that have votes), agreed (on which all three
    detectors name one language), predictors (as they are spelled), licence, text_may_leave, source, draws, created_at,
    fault (empty where nothing is wrong).
    """
    return [_row(found) for found in _entries()]


@dataclass(frozen=True)
class _Entry:
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
    # What judgments were imported of has draws, and no manifest.
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
    """Of the corpus of that name, or of all, by corpus. A row: corpus, predictor, posts (that it has labelled), of,
    complete, ranked (whether it ranks labels), classes (that stand for several labels), source (empty for what is built
    in). CorpusError if there is no such corpus.
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


# --- The records of a corpus, with the labels that came with them.


class Declared(NamedTuple):
    """by_label: label -> how many records have it and no other; by_language: the same for each language that has such
    records; several, none: how many have several, or none."""

    by_label: Counter[str]
    several: int
    none: int
    by_language: dict[str, Counter[str]]


def declared_counts(corpus_name: str) -> Declared:
    """Of all records of a corpus. CorpusError if it cannot be read."""
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
    """CorpusError if no labels came with a corpus."""
    if not manifest_of(corpus_name).declared:
        raise CorpusError(
            f"Corpus {corpus_name} has no labels that came with its records; import it with --labels COLUMN, or have "
            "people label what a --predictor finds."
        )


def declared_records(
    corpus_name: str, languages: Collection[str] | None, fields: Iterable[str]
) -> Iterator[dict[str, Any]]:
    """The records of these languages, or of all, in order of their ids: id, language, fields, declared (their labels).

    fields: those that are needed. CorpusError if the corpus has posts, or not all of the fields, or nothing in a
    language.
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


# --- Deleting what nothing rests on: a corpus that was never drawn from, the predictions of one that was.
#
# A corpus goes from the database first, and then its manifest, which is what makes it one: whatever is left of it
# after that is swept like any leftover. Broken off in between, the deletion is run again and goes on.


def corpus_to_delete(name: str) -> dict[str, Any]:
    """{"corpus", "rows", "files", "predictors"} of one that may be deleted. CorpusError where it may not be."""
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
    """Delete its files and its row; returns what that was."""
    corpus_to_delete(name)  # refuses before anything is made on disk
    with changing(name) as directory:
        with transaction.atomic():
            # Locked, so that whoever draws from it at the same time waits.
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
    """{"corpus", "predictor", "posts"} of predictions that may be deleted. CorpusError where they may not be."""
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
    """Take a predictor out of the corpus's manifest, and so its file from the disk; returns what that was."""
    manifest_of(name)
    with changing(name):
        gone = predictions_to_delete(name, spelled)
        manifest = manifest_of(name)
        kept = tuple(each for each in manifest.predictions if str(each) != gone["predictor"])
        write_manifest(name, replace(manifest, predictions=kept))
    return gone
