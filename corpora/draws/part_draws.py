"""Draws of parts: some rows of each part of a corpus, such as what a filter kept and dropped, with known chances.

A hash of seed and id decides which rows of a part come first, of all languages together, so that the same seed draws
the same on any engine, and a larger draw contains the smaller.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import pyarrow as pa

from corpora.core import CorpusError
from corpora.core.languages import UND
from corpora.core.values import matching
from corpora.draws.samples import Rows, Sample, Taken, by_language, check_asked, in_memory, sample_chosen, sample_of
from corpora.engines import Store, asking, full_disk_explained
from corpora.models import Corpus
from corpora.predictions.prediction_rows import folding
from corpora.predictions.predictor_labels import Predictor, find_predictor, predicting, triggers
from corpora.storage.layout import Manifest, check_posts, check_records, check_votes, manifest_of
from corpora.threads.scorers import filter_digest, filtering

# Of a draw's parameters: language -> part -> rows there are, of the whole draw; part -> rows drawn in the draw's
# language; part -> their ids; and part -> the chance that a row had.
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
    """Language -> part -> rows, from a store that has the view `frame` (id, language).

    query: it has the columns id, language and part. languages: the wanted ones, None for all. leave_out: ids that are
    in no part. none: begins the refusal of a language in which there is nothing, as in "Corpus talk has no pairs".
    """
    there = [row["language"] for row in store.found("frame_languages")]
    wanted = there if languages is None else sorted(set(languages))
    if unknown := [code for code in wanted if code not in there]:
        raise CorpusError(f"{none} in {unknown[0]}; it has them in {', '.join(there)}.")
    store.rows("wanted", pa.table({"language": pa.array(wanted, pa.string())}))
    store.rows("left_out", pa.table({"id": pa.array(sorted(leave_out), pa.string())}))
    store.define("parts", query)
    frame = {code: dict.fromkeys(parts, 0) for code in wanted}
    for row in store.found("part_counts"):
        frame[row["language"]][row["part"]] = row["number"]
    return frame


def totals(frame: Frame) -> Counter[str]:
    """Part -> rows in all languages."""
    return sum(map(Counter, frame.values()), Counter[str]())


def draw_parts(store: Store, sizes: Mapping[str, int], seed: str) -> list[dict[str, Any]]:
    """The rows that are drawn, mixed: id, language and part. sizes: how many of each part, or all if it has fewer."""
    sized = {"part": pa.array(sizes.keys(), pa.string()), "size": pa.array(sizes.values(), pa.int64())}
    store.rows("sizes", pa.table(sized))
    return store.found("draw_parts", seed, seed)


def samples_of_parts(
    corpus: Corpus, design: str, drawn: list[dict[str, Any]], frame: Frame, *, seed: str, parameters: Mapping[str, Any]
) -> list[Sample]:
    """One sample for each language in which something was drawn. drawn: as draw_parts has it."""
    whole, chosen = totals(frame), dict[str, list[str]]()
    ids: dict[str, dict[str, list[str]]] = {}
    for row in drawn:
        code = row["language"]
        chosen.setdefault(code, []).append(row["id"])
        ids.setdefault(code, {part: [] for part in frame[code]})[row["part"]].append(row["id"])
    chances = {part: sum(len(of[part]) for of in ids.values()) / number for part, number in whole.items()}
    of_all = {**parameters, FRAME: frame, CHANCES: chances}
    of_each = {
        code: of_all | {DRAWN: {part: len(keys) for part, keys in parts.items()}, IDS: parts}
        for code, parts in ids.items()
    }
    frames = {code: sum(frame[code].values()) for code in chosen}
    return sample_chosen(corpus, design, chosen, seed=seed, frames=frames, parameters=of_each)


def chances(parameters: Mapping[str, Any]) -> dict[str, float]:
    """Id -> the chance of being drawn, by the parameters of a draw of parts; empty for other draws."""
    return {key: parameters[CHANCES][part] for part, keys in parameters.get(IDS, {}).items() for key in keys}


# --- Draws from both sides of a filter: of the pairs that it kept and of those that it dropped, by lot and mixed.
#
# The scores decide what is kept and what is dropped (threads/scorers.py). Where fewer were kept or dropped than asked
# for, all of them are drawn.


KEPT, DROPPED = SIDES = ("kept", "dropped")
FILTER = "filter"  # the digest of the filter (threads/scorers.py) among a draw's parameters


def sample_filtered(
    corpus: Corpus,
    languages: Collection[str] | None,
    *,
    kept: int,
    dropped: int,
    seed: str,
    leave_out: Collection[str] = frozenset(),
) -> list[Sample]:
    """Take `kept` of the pairs that the filter keeps and `dropped` of those that it drops. It only reads files.

    languages: None for all. leave_out: ids of pairs that are in no frame, such as those whose answer is known. One
    sample for each language in which something was drawn, in order of the codes, each with kept and dropped mixed.
    CorpusError if the corpus holds no pairs, has no scores, or nothing in these languages was kept, or dropped.
    """
    check_asked(min(kept, dropped), seed, "pair")
    manifest = manifest_of(corpus.name)
    with filtering(corpus.name, manifest) as store:
        if not manifest.scores:
            raise CorpusError(
                f"Corpus {corpus.name} has no scores by which pairs are dropped; import some with import_scores."
            )
        store.select("frame", "filtered", {"id": "id", "language": "language"})
        frame = count_parts(
            store, "filter_parts", SIDES, languages, leave_out, none=f"Corpus {corpus.name} has no pairs"
        )
        if empty := [part for part in SIDES if not totals(frame)[part]]:
            raise CorpusError(
                f"The scores of corpus {corpus.name} have {empty[0]} none of its pairs in these languages, so there is "
                "no filter to audit; look at the thresholds with which they were imported."
            )
        drawn = draw_parts(store, {KEPT: kept, DROPPED: dropped}, seed)
    parameters = {"kept": kept, "dropped": dropped, FILTER: filter_digest(manifest)}
    return samples_of_parts(corpus, "filtered", drawn, frame, seed=seed, parameters=parameters)


# --- The draw that tells two systems apart: most of what it takes are posts, or records, of which the two say different
# labels.
#
# Where both say the same, both are right or both are wrong, so the row adds nothing to the difference of their
# accuracies. The best chance of a row is in proportion to the size that its part of the difference is expected to
# have (Zrnic and Candès 2024, Active Statistical Inference, ICML, section 4). Here that is the same for all rows on
# which the two differ, and 0 for the others. Some of the others are drawn all the same, for each system's own
# accuracy.


DIFFER, AGREE = CONTRASTS = ("differ", "agree")
AGREEING = 0.2  # share of the drawn rows of which both systems say the same
SYSTEMS = "systems"  # the two predictors among a draw's parameters


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
    """One sample for each language in which records were drawn, or one of posts. It only reads files.

    systems: two predictors of the corpus, such as mine@1. languages: of records; None for all. size: rows of all
    languages together. labels: those that people can give. CorpusError unless there are two predictors that have labels
    for all rows and differ on some, and of records say these labels alone.
    """
    what, check = ("record", check_records) if of_records else ("post", check_posts)
    check_asked(size, seed, what)
    manifest = manifest_of(corpus.name)
    check(corpus.name, manifest)
    first, second = _predictors(corpus.name, systems)
    folded = _folded(corpus.name, (first, second), labels if of_records else None)
    if not of_records:  # items are made of posts and votes
        check_votes(corpus.name, manifest)
    with full_disk_explained("no draw was made"), predicting(corpus.name, first, manifest, other=second) as store:
        store.rows("folded", folded)
        if of_records:
            store.select("frame", "posts", {"id": "id", "language": "language"})
        else:
            store.define("frame", "posts_without_language")
        none = f"Corpus {corpus.name} has no {what}s"
        there = totals(frame := count_parts(store, "contrasted_parts", CONTRASTS, languages, leave_out, none=none))
        if not there[DIFFER]:
            raise CorpusError(
                f"{first} and {second} say the same of all {there[AGREE]:,} {what}s, so nothing tells them apart; name "
                "two that differ."
            )
        drawn = draw_parts(store, part_sizes(size, there), seed)
    return samples_of_parts(corpus, "compare", drawn, frame, seed=seed, parameters={SYSTEMS: [str(first), str(second)]})


def _folded(corpus_name: str, systems: Sequence[Predictor], labels: Collection[str] | None) -> pa.Table:
    """The labels of both systems, and the one that each counts as. labels: those of records; None for posts."""
    folded = folding([each.mapping for each in systems])
    if labels is not None:
        for each in systems:
            folded |= _spellings(str(each), triggers(corpus_name, each), labels)
    return pa.table({"label": pa.array(folded.keys(), pa.string()), "coarse": pa.array(folded.values(), pa.string())})


def _predictors(corpus_name: str, systems: Sequence[str]) -> tuple[Predictor, Predictor]:
    """The two predictors of these names. CorpusError if there are not two."""
    if len(systems) != 2:
        raise CorpusError(f"--systems names {len(systems)} predictors; name the two that are to be compared.")
    first, second = (find_predictor(corpus_name, each) for each in systems)
    if first == second:
        raise CorpusError(f"--systems names {first} twice; name the two predictors that are to be compared.")
    return first, second


def _spellings(predictor: str, said: Collection[str], labels: Collection[str]) -> dict[str, str]:
    """Label as a predictor says it -> the label of the task. CorpusError where people cannot give it."""
    spelled = {label: matching(label, labels) for label in said}
    if strange := {*spelled.values()} - {*labels, UND}:
        folded = {label.casefold(): label for label in labels}
        near = {label: folded[each] for label in strange for each in get_close_matches(label.casefold(), folded, 1)}
        label = min(strange, key=lambda label: (label not in near, label))
        meant = f" (near {near[label]!r})" if label in near else ""
        more = f" and {len(strange) - 1:,} more" if len(strange) > 1 else ""
        raise CorpusError(
            f"{predictor} has labels that the task does not have: {label[:40]!r}{meant}{more}. Its labels are "
            f"{', '.join([*labels][:20])}; import the predictions with these under another version."
        )
    return spelled


def part_sizes(size: int, there: Mapping[str, int]) -> dict[str, int]:
    """How many to draw of each part. What one part lacks the other makes up for."""
    agreeing = min(there[AGREE], max(round(AGREEING * size), size - there[DIFFER]))
    return {AGREE: agreeing, DIFFER: min(there[DIFFER], size - agreeing)}


# --- Draws of records: some of each language, singly or in groups.
#
# A hash of seed, language, and id or the group's common value decides which record or group comes first, so that the
# same seed draws the same on any engine, and a larger draw contains the smaller.


def sample_records(
    corpus: Corpus,
    languages: Iterable[str] | None,
    *,
    size: int | None,
    seed: str,
    together: str = "",
    leave_out: Collection[str] = frozenset(),
) -> list[Sample]:
    """For each language take `size` of the records declared to be in it; None is all. It only reads files.

    together: a field whose equal values keep records together; then `size` counts whole groups. leave_out: ids
    of records that are in no frame, such as those whose answer is known. languages: None for all of the corpus. One
    sample each, in order of the codes; all of the frame where that is smaller. CorpusError if the corpus holds posts,
    or has no records in a language.
    """
    check_asked(size, seed, "group" if together else "record")
    manifest = manifest_of(corpus.name)
    check_records(corpus.name, manifest)
    with full_disk_explained("no draw was made"), asking(corpus.name, manifest=manifest) as store:
        found = take_records(
            store, corpus.name, manifest, languages, size=size, seed=seed, together=together, leave_out=leave_out
        )
    return [sample_of(corpus, "records", manifest, taken, seed, size) for taken in found]


_SEED_AND_SIZE = pa.schema({"seed": pa.string(), "size": pa.int64()})


def take_records(
    store: Store,
    corpus_name: str,
    manifest: Manifest,
    languages: Iterable[str] | None,
    *,
    size: int | None,
    seed: str,
    together: str = "",
    leave_out: Collection[str] = frozenset(),
) -> list[Taken]:
    """Up to `size` records of each language, or all if it is None, in order of the codes; see draw.sample_records."""
    if together and together not in manifest.fields:
        raise CorpusError(
            f"Corpus {corpus_name} has no field {together!r} to keep records together by; "
            f"its fields are {', '.join(manifest.fields)}."
        )
    store.select("grouped", "posts", {"id": "id", "language": "language", "value": together or "id"})
    store.rows("left_out", pa.table({"id": pa.array(sorted(leave_out), pa.string())}))
    counted = {row.pop("language"): row for row in store.found("record_counts")}
    wanted = _wanted_of_records(corpus_name, languages, counted)
    store.rows("wanted", pa.table({"language": pa.array(wanted, pa.string())}))
    design = {"seed": seed, "size": manifest.rows if size is None else size}
    store.rows("design", pa.Table.from_pylist([design], schema=_SEED_AND_SIZE))
    drawn = by_language(store.query("draw_records").read_all(), wanted)
    rows = {language: in_memory(table) for language, table in drawn.items()}
    return [
        Taken(
            language=language,
            frame_size=counted[language]["records"] - counted[language]["left_out"],
            parameters=_parameters(together, counted[language], rows[language]),
            rows=rows[language],
        )
        for language in wanted
    ]


def _parameters(together: str, counted: dict[str, int], rows: Rows) -> dict[str, Any]:
    parameters = {"together": together, "left_out": counted["left_out"]}
    if together:
        groups = len({row["fields"][together] for row in rows})
        parameters |= {"groups": groups, "frame_groups": counted["groups"]}
    return parameters


def _wanted_of_records(
    corpus_name: str, languages: Iterable[str] | None, counted: dict[str, dict[str, int]]
) -> list[str]:
    """The languages to draw for, in order. counted: the rows of engines/sql/record_counts.sql by language."""
    wanted = sorted(counted if languages is None else set(languages))
    if not wanted:
        raise CorpusError("No language is named, so there is nothing to draw for.")
    for language in wanted:
        if language not in counted:
            raise CorpusError(
                f"Corpus {corpus_name} has no records in {language}; it has them in {', '.join(counted)}."
            )
        if counted[language]["left_out"] == counted[language]["records"]:
            raise CorpusError(
                f"All records of corpus {corpus_name} in {language} are left out of the draw (for example as gold "
                "answers), so "
                "none are left to draw; import more, or draw for the other languages."
            )
    return wanted
