"""The records of a corpus, with the labels that came with them."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from corpora.core.errors import CorpusError
from corpora.engines import asking
from corpora.manifest import check_records, manifest_of


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
