"""Random draws from the parts of a corpus, and draws of records.

A part is a subset of the corpus, such as all pairs that a filter kept. Its rows are drawn across languages in the order
of a hash of seed and id, so their inclusion probabilities are known. The same seed gives the same draw on any engine,
and a larger draw contains the smaller one. The sample_* functions only read files; samples.record writes to the
database.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import pyarrow as pa

from corpora.core import CorpusError
from corpora.core.languages import UND
from corpora.core.values import matching
from corpora.core.voters import DEFAULT, Panel
from corpora.draws.samples import (
    Rows,
    Sample,
    by_language,
    check_size_and_seed,
    in_memory,
    sample_chosen,
    sample_of,
    with_votes,
)
from corpora.engines import Store, explain_full_disk, open_store, texts
from corpora.models import Corpus
from corpora.predictions.panels import check_panel
from corpora.predictions.prediction_rows import coarse_by_label
from corpora.predictions.predictor_labels import Predictor, find_predictor, open_predictions, triggers
from corpora.storage.layout import check_posts, check_records, check_votes, manifest_of
from corpora.threads.scorers import filter_digest, open_filter

# Keys in a draw's parameters:
# - FRAME: number of rows in the frame by language and part, for all languages drawn at the same time
# - DRAWN: number of rows drawn from each part, in the draw's own language
# - IDS: ids drawn from each part, in the draw's own language
# - CHANCES: each part's inclusion probability
FRAME, DRAWN, IDS, CHANCES = "frame", "drawn", "part_ids", "chances"
Frame = Mapping[str, Mapping[str, int]]


def count_parts(
    store: Store,
    query: str,
    parts: Collection[str],
    languages: Collection[str] | None,
    leave_out: Collection[str],
    *,
    none: str,
) -> dict[str, dict[str, int]]:
    """Count the rows of each part by language.

    store: store with the `frame` view (columns `id` and `language`)
    query: name of a query with the columns `id`, `language` and `part`
    parts: names of the parts
    languages: codes of the requested languages; None for all
    leave_out: ids of rows to exclude from the frame
    none: start of the error message for a language without rows, such as "Corpus talk has no pairs"

    Raise CorpusError if the frame has no rows in a requested language.
    """
    present = [row["language"] for row in store.fetch("frame_languages")]
    codes = present if languages is None else sorted(set(languages))
    if unknown := [code for code in codes if code not in present]:
        raise CorpusError(f"{none} in {unknown[0]}. Available languages: {', '.join(present)}.")
    store.rows("wanted", texts(language=codes))
    store.rows("left_out", texts(id=sorted(leave_out)))
    store.define("parts", query)
    frame = {code: dict.fromkeys(parts, 0) for code in codes}
    for row in store.fetch("part_counts"):
        frame[row["language"]][row["part"]] = row["number"]
    return frame


def totals(frame: Frame) -> Counter[str]:
    """Return the number of rows in each part, summed over the languages."""
    return sum(map(Counter, frame.values()), Counter[str]())


def draw_parts(store: Store, sizes: Mapping[str, int], seed: str) -> list[dict[str, Any]]:
    """Draw rows from each part and return them as dicts (id, language, part) in shuffled order.

    sizes: number of rows to draw from each part; a part with fewer rows is drawn completely
    """
    sized = {"part": pa.array(sizes.keys(), pa.string()), "size": pa.array(sizes.values(), pa.int64())}
    store.rows("sizes", pa.table(sized))
    return store.fetch("draw_parts", seed, seed)


def samples_of_parts(
    corpus: Corpus, design: str, drawn: list[dict[str, Any]], frame: Frame, *, seed: str, parameters: Mapping[str, Any]
) -> list[Sample]:
    """Return a sample for each language where rows were drawn.

    drawn: rows returned by draw_parts
    frame: counts returned by count_parts
    parameters: parameters to store with each draw
    """
    part_totals, selected = totals(frame), dict[str, list[str]]()
    ids: dict[str, dict[str, list[str]]] = {}
    for row in drawn:
        code = row["language"]
        selected.setdefault(code, []).append(row["id"])
        ids.setdefault(code, {part: [] for part in frame[code]})[row["part"]].append(row["id"])
    chances = {part: sum(len(parts[part]) for parts in ids.values()) / number for part, number in part_totals.items()}
    common = {**parameters, FRAME: frame, CHANCES: chances}
    parameters_by_language = {
        code: common | {DRAWN: {part: len(keys) for part, keys in parts.items()}, IDS: parts}
        for code, parts in ids.items()
    }
    frames = {code: sum(frame[code].values()) for code in selected}
    return sample_chosen(corpus, design, selected, seed=seed, frames=frames, parameters=parameters_by_language)


def chances(parameters: Mapping[str, Any]) -> dict[str, float]:
    """Return the inclusion probability of each drawn id. The dict is empty unless rows were drawn from parts.

    parameters: the draw's parameters
    """
    return {key: parameters[CHANCES][part] for part, keys in parameters.get(IDS, {}).items() for key in keys}


# --- Draws from both sides of a filter: random pairs that were kept and random pairs that were dropped.
#
# Pairs are dropped by their scores (corpora/threads/scorers.py). If a side has fewer pairs than requested, all of its
# pairs are drawn.


KEPT, DROPPED = SIDES = ("kept", "dropped")
FILTER = "filter"  # the key of the filter's digest in a draw's parameters; see filter_digest in scorers.py


def sample_filtered(
    corpus: Corpus,
    languages: Collection[str] | None,
    *,
    kept: int,
    dropped: int,
    seed: str,
    leave_out: Collection[str] = frozenset(),
) -> list[Sample]:
    """Draw pairs that the corpus's filter kept and pairs that it dropped.

    Return a sample for each language where pairs were drawn, sorted by code. Each sample contains kept and dropped
    pairs in random order.

    languages: codes of the requested languages; None for all
    kept, dropped: number of pairs to draw from each side, over all languages
    leave_out: ids of pairs to exclude from the frame, such as pairs with gold answers

    Raise CorpusError if the corpus has no pairs or no scores, or if one side has no pairs in these languages.
    """
    check_size_and_seed(min(kept, dropped), seed, "pair")
    manifest = manifest_of(corpus.name)
    with open_filter(corpus.name, manifest) as store:
        if not manifest.pair_scores:
            raise CorpusError(
                f"Corpus {corpus.name} has no scores, which decide which pairs are dropped. Import scores with "
                "import_scores."
            )
        store.select("frame", "filtered", {"id": "id", "language": "language"})
        frame = count_parts(
            store, "filter_parts", SIDES, languages, leave_out, none=f"Corpus {corpus.name} has no pairs"
        )
        if empty := [part for part in SIDES if not totals(frame)[part]]:
            raise CorpusError(
                f"No pairs of corpus {corpus.name} in these languages are {empty[0]}, so the filter cannot be audited. "
                "Check the thresholds of the imported scores."
            )
        drawn = draw_parts(store, {KEPT: kept, DROPPED: dropped}, seed)
    parameters = {"kept": kept, "dropped": dropped, FILTER: filter_digest(manifest)}
    return samples_of_parts(corpus, "filtered", drawn, frame, seed=seed, parameters=parameters)


# --- Draws for the comparison of two systems. They mostly contain rows that the two systems label differently.
#
# If both systems assign the same label to a row, both are right or both are wrong, so the row does not affect the
# difference between their accuracies. The optimal inclusion probability of a row is proportional to the expected size
# of its contribution to that difference (Zrnic and Candès 2024, Active Statistical Inference, ICML, section 4). This
# size is constant for rows on which the systems differ, and 0 for rows on which they agree. Some rows on which they
# agree are still drawn, so that each system's accuracy can be estimated.


DIFFER, AGREE = CONTRASTS = ("differ", "agree")
AGREEING = 0.2  # share of drawn rows on which the systems agree, if both parts are large enough
SYSTEMS = "systems"  # the key of the two predictors in a draw's parameters


def sample_contrasted(
    corpus: Corpus,
    languages: Collection[str] | None,
    *,
    systems: Sequence[str],
    size: int,
    seed: str,
    labels: Collection[str],
    of_records: bool,
    leave_out: Collection[str] = frozenset(),
) -> list[Sample]:
    """Draw rows for a comparison of two systems.

    For records, return a sample for each language where records were drawn. For posts, return a single sample.

    systems: names of two predictors of the corpus, such as mine@1
    languages: for records, codes of the requested languages; None for all
    size: number of rows to draw, over all languages
    labels: labels that annotators can choose
    of_records: whether the corpus contains records rather than posts
    leave_out: ids of rows to exclude from the frame

    Raise CorpusError if `systems` does not name two predictors, if a row has no label, if the systems never differ, or,
    for records, if a predictor has a label that annotators cannot choose.
    """
    noun, check = ("record", check_records) if of_records else ("post", check_posts)
    check_size_and_seed(size, seed, noun)
    manifest = manifest_of(corpus.name)
    check(corpus.name, manifest)
    if len(systems) != 2:
        raise CorpusError(f"--systems has {len(systems)} predictors. Specify the two predictors to compare.")
    system, rival = (find_predictor(corpus.name, name) for name in systems)
    if system == rival:
        raise CorpusError(f"--systems contains {system} twice. Specify two different predictors.")
    folded = _label_table(corpus.name, (system, rival), labels if of_records else None)
    if not of_records:  # A post's item includes its votes.
        check_votes(corpus.name, manifest)
    with explain_full_disk("nothing was drawn"), open_predictions(corpus.name, system, manifest, other=rival) as store:
        store.rows("folded", folded)
        if of_records:
            store.select("frame", "posts", {"id": "id", "language": "language"})
        else:
            store.define("frame", "posts_without_language")
        none = f"Corpus {corpus.name} has no {noun}s"
        available = totals(frame := count_parts(store, "contrasted_parts", CONTRASTS, languages, leave_out, none=none))
        if not available[DIFFER]:
            raise CorpusError(
                f"{system} and {rival} assign the same labels to all {available[AGREE]:,} {noun}s, so they cannot "
                "be compared. Choose two systems that differ."
            )
        drawn = draw_parts(store, part_sizes(size, available), seed)
    return samples_of_parts(corpus, "compare", drawn, frame, seed=seed, parameters={SYSTEMS: [str(system), str(rival)]})


def _label_table(corpus_name: str, systems: Sequence[Predictor], labels: Collection[str] | None) -> pa.Table:
    """Return a table that maps each label of both systems to the label used in the comparison.

    labels: the task's labels for records; None for posts
    """
    folded = coarse_by_label([predictor.mapping for predictor in systems])
    if labels is not None:
        for predictor in systems:
            folded |= _spellings(str(predictor), triggers(corpus_name, predictor), labels)
    return texts(label=folded.keys(), coarse=folded.values())


def _spellings(predictor: str, predicted: Collection[str], labels: Collection[str]) -> dict[str, str]:
    """Map a predictor's labels to the task's labels. Their spelling may differ.

    Raise CorpusError if a label has no equivalent in the task.
    """
    spelled = {label: matching(label, labels) for label in predicted}
    if unknown := {*spelled.values()} - {*labels, UND}:
        folded = {label.casefold(): label for label in labels}
        near = {label: folded[match] for label in unknown for match in get_close_matches(label.casefold(), folded, 1)}
        label = min(unknown, key=lambda label: (label not in near, label))
        suggestion = f" (similar to {near[label]!r})" if label in near else ""
        remaining = f" and {len(unknown) - 1:,} more" if len(unknown) > 1 else ""
        raise CorpusError(
            f"{predictor} has labels that the task does not have: {label[:40]!r}{suggestion}{remaining}. Import the "
            f"predictions with the task's labels ({', '.join([*labels][:20])}) as another version."
        )
    return spelled


def part_sizes(size: int, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return how many rows to draw from each part. If one part is too small, more rows are drawn from the other.

    size: total number of rows to draw
    sizes: number of rows in each part
    """
    agreeing = min(sizes[AGREE], max(round(AGREEING * size), size - sizes[DIFFER]))
    return {AGREE: agreeing, DIFFER: min(sizes[DIFFER], size - agreeing)}


# --- Draws of single records, or of groups of records, in each language.
#
# Rows are drawn in order of a hash of the seed, the language, and the record's id or the group's common value. The
# same seed gives the same draw on any engine, and a larger draw contains the smaller one.


def sample_records(
    corpus: Corpus,
    languages: Iterable[str] | None,
    *,
    size: int | None,
    seed: str,
    together: str = "",
    leave_out: Collection[str] = frozenset(),
    panel: Panel | None = None,
) -> list[Sample]:
    """Draw records in each language. A record's language is declared by its source.

    Return a sample for each language, sorted by code. If a language has fewer records or groups than requested, all of
    them are drawn.

    languages: codes of the requested languages; None for all languages in the corpus
    size: number of records to draw in each language, or of groups if `together` is set; None for all
    together: a field; records with the same value form a group, and all records of a group are drawn together
    leave_out: ids of records to exclude from the frame, such as records with gold answers
    panel: voters whose votes are loaded with the records; None for no votes

    Raise CorpusError if the corpus contains posts, or if it has no records in one of the languages.
    """
    check_size_and_seed(size, seed, "group" if together else "record")
    manifest = manifest_of(corpus.name)
    check_records(corpus.name, manifest)
    if together and together not in manifest.fields:
        raise CorpusError(
            f"Corpus {corpus.name} has no field {together!r} to group records by. "
            f"Its fields are: {', '.join(manifest.fields)}."
        )
    if panel:
        check_panel(corpus.name, manifest, panel)
    voting = panel or DEFAULT
    with explain_full_disk("nothing was drawn"), open_store(corpus.name, manifest=manifest, panel=voting) as store:
        store.select("grouped", "posts", {"id": "id", "language": "language", "value": together or "id"})
        store.rows("left_out", texts(id=sorted(leave_out)))
        counted = {row.pop("language"): row for row in store.fetch("record_counts")}
        codes = _languages_to_draw(corpus.name, languages, counted)
        store.rows("wanted", texts(language=codes))
        store.rows("design", pa.Table.from_pylist([{"seed": seed, "size": manifest.rows if size is None else size}]))
        drawn = store.query("draw_records").read_all()
        tables = by_language(with_votes(store, drawn) if panel else drawn, codes)
    rows = {language: in_memory(table, voting) for language, table in tables.items()}
    return [
        sample_of(
            corpus,
            "records",
            manifest,
            language,
            rows[language],
            seed=seed,
            requested=size,
            frame_size=counted[language]["records"] - counted[language]["left_out"],
            parameters=_parameters(together, counted[language], rows[language]),
            panel=voting,
        )
        for language in codes
    ]


def _parameters(together: str, counted: dict[str, int], rows: Rows) -> dict[str, Any]:
    parameters = {"together": together, "left_out": counted["left_out"]}
    if together:
        groups = len({row["fields"][together] for row in rows})
        parameters |= {"groups": groups, "frame_groups": counted["groups"]}
    return parameters


def _languages_to_draw(
    corpus_name: str, languages: Iterable[str] | None, counted: dict[str, dict[str, int]]
) -> list[str]:
    """Return the codes of the languages to draw from, sorted.

    languages: the requested codes; None for all
    counted: rows of engines/sql/record_counts.sql by language

    Raise CorpusError if no language is requested, or if a language has no records that can be drawn.
    """
    codes = sorted(counted if languages is None else set(languages))
    if not codes:
        raise CorpusError("No language is selected, so nothing can be drawn.")
    for language in codes:
        if language not in counted:
            raise CorpusError(
                f"Corpus {corpus_name} has no records in {language}. Available languages: {', '.join(counted)}."
            )
        if counted[language]["left_out"] == counted[language]["records"]:
            raise CorpusError(
                f"All records of corpus {corpus_name} in {language} are excluded from the draw, for example because "
                "they have gold answers. Import more, or draw from other languages."
            )
    return codes
