"""The files of a set of message-reply pairs in the format of MRS (Zhang et al. 2021; github.com/microsoft/MRS).

    {train,valid,test}/<language>/pairs.tsv
                                            message, reply, language, certainty; no header, no quoting
    gmr_valid/<language>/pairs.tsv          copy of valid, in the folder that the retrieval reader opens
    rsp_set/<language>/response_lm_cluster.txt
                                            logarithm of the share of pairs with the reply, the reply, its rank
    rsp_map/<language>/response.mapping.txt reply, reply
    random_set/<language>/replies.txt       random replies, one per line; systems rank the reference among them
    pairs.jsonl, pairs.{train,valid,test}.parquet
                                            all pairs, with their texts as in the corpus
    left_out.jsonl                          replies that are in no pair of the set, with the reason
    struck.tsv                              replies that were removed from the response set, with the reason
    added.tsv                               replies that were added to the response set, with their origin

The pairs are exported directly from a corpus, without a task. The folder also has a manifest and a dataset card.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
from django.template.loader import render_to_string

from annotate.controls import sample_audits
from annotate.goldsets.card import head_of
from annotate.goldsets.exporter import parquet_files
from annotate.goldsets.formats import Format, register
from annotate.goldsets.set_folder import FORMAT, SUMS, VERSIONS, replacing, write_with_card
from annotate.models import Task
from annotate.reports.plots import bars_in_text
from annotate.reports.table_formats import parts
from annotate.reports.tables import LANGUAGE, Cell, Column, Table, many, numbers, ratio, table
from corpora.core.languages import code_of, unknown_code
from corpora.core.values import word_count
from corpora.draws.part_draws import SIDES
from corpora.engines import Store
from corpora.storage.layout import Manifest, digest_of, manifest_of
from corpora.threads.messages import NO_PAIR, REASONS, cell
from corpora.threads.pair_sets import (
    SMALL,
    SPLITS,
    VALID,
    Plan,
    Responses,
    ResponseSet,
    added_facts,
    pair_set,
    response_set,
)
from corpora.threads.scorers import RESPONSE, filter_counts, filter_digest, rejected_replies
from corpora.threads.thread_import import thread_facts

# --- Tables and sentences about threads and message-reply pairs, and the dataset card of an exported set of pairs.


# A step of the derivation: its description, and its number of messages, replies or pairs.
Step = tuple[str, int]


def steps_of(threads: Mapping[str, Any]) -> list[Step]:
    """Return the steps from a corpus's messages to its pairs.

    threads: result of `corpora.threads.thread_import.thread_facts`.
    """
    replies, left_out = threads["replies"], threads["left_out"]
    unpaired = [(f"{REASONS[reason]}, and so is no pair", left_out[reason]) for reason in NO_PAIR if reason in left_out]
    pairs = replies - sum(number for _, number in unpaired)
    others = [(REASONS[reason], number) for reason, number in left_out.items() if reason not in NO_PAIR]
    return [
        ("messages", threads["messages"]),
        ("begins a thread", threads["messages"] - replies),
        *unpaired,
        ("pairs", pairs),
        *others,
        ("pairs of the corpus", pairs - sum(number for _, number in others)),
    ]


def filter_steps(manifest: Mapping[str, Any]) -> list[Step]:
    """Return the steps from a corpus's pairs to the pairs of an exported set.

    manifest: the set's manifest, as returned by `write`.
    """
    counts = manifest["filter"]
    dropped_steps = [
        (f"{scorer['name']} has a score above {scorer['threshold']:g}", scorer["dropped"])
        for scorer in counts["scorers"]
    ]
    # Several scorers can drop the same pair, so their counts are shown within one step.
    each_alone = [(f"of these: {step}", number) for step, number in dropped_steps]
    dropped = (
        dropped_steps
        if len(dropped_steps) < 2
        else [("a scorer has a score above its threshold", counts["dropped"]), *each_alone]
    )
    small = manifest["small_languages"]
    least, largest = manifest["least_pairs"], manifest["most_languages"]
    bounds = [f"in none of the {largest:,} largest languages"] if largest else []
    bounds += [f"in a language with fewer than {least:,} pairs"] if least > 1 else []
    few = [(" or ".join(bounds), small)] if small else []
    return [*dropped, *few, ("pairs of this set", counts["pairs"] - counts["dropped"] - small)]


def steps_table(steps: Iterable[Step]) -> Table:
    count = Column("count", "count", "number", lambda row: Cell(f"{row[1]:,}", row[1]))
    return table("Steps", (Column("step", "step", says=lambda row: row[0]), count), steps)


def disagreement_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """Return the table that compares declared with detected languages.

    rows: `corpora.threads.thread_import.Disagreement` as mappings.
    """
    heads = (
        *LANGUAGE,
        *numbers({"pairs": "pairs", "agreed": "detected"}),
        Column("share", "share", "number", lambda row: ratio(row["agreed"], row["pairs"])),
        Column("most", "otherwise mostly", says=lambda row: "{} {:,}".format(*row["most"]) if row["most"][1] else ""),
    )
    return table("Declared languages", heads, rows)


def language_warnings(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a warning for each declared language that has no code, or whose pairs are mostly in other languages.

    rows: see `disagreement_table`.
    """
    sentences = []
    for row in rows:
        declared, pairs = row["language"], many(row["pairs"], "pair")
        others, (language, most) = row["pairs"] - row["agreed"], row["most"]
        if not code_of(declared):
            sentences.append(f"The language {declared[:40]!r} of {pairs} {unknown_code(declared)}")
        elif 2 * row["agreed"] < row["pairs"]:
            several = f"{others:,} are in other languages, {most:,} of them in {language}"
            single = f"1 is in another language, {language}"
            sentences.append(f"Of {pairs} that the files name as {declared}, {single if others == 1 else several}.")
    return sentences


# --- An exported set


def pair_card(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the template context for the dataset card of a set of message-reply pairs."""
    corpus, languages, declared = manifest["corpus"], manifest["languages"], manifest["threads"]["declared"]
    total = sum(row[split] for row in languages for split in SPLITS)
    # A split without rows can't be loaded, so the card omits it.
    files = {split: f"pairs.{split}.parquet" for split in SPLITS if any(row[split] for row in languages)}
    rows = json.dumps([manifest["seed"], manifest["splits"], languages, manifest["filter"]])
    steps = [*steps_of(manifest["threads"]), *filter_steps(manifest)]
    heads = numbers({**{split: split for split in SPLITS}, "tokens": "tokens", "responses": "response set"})
    title, codes = f"{corpus['name']}: pairs of message and reply", [row["language"] for row in languages]
    return {
        **head_of(title, corpus["licence"], codes, total, [rows]),
        "manifest": manifest,
        "total": total,
        "plot": "\n".join(bars_in_text((row["language"], sum(row[split] for split in SPLITS)) for row in languages)),
        "splits": {"validation" if split == "valid" else split: file for split, file in files.items()},
        "steps": parts(steps_table(steps)),
        "by_language": parts(table("Languages", (*LANGUAGE, *heads), languages)),
        "declared": parts(disagreement_table(declared)) if declared else None,
        "called_out": language_warnings(declared),
        "responses": sum(row["responses"] for row in languages),
    }


def pair_sections(corpus_name: str) -> dict[str, Any]:
    """Return the manifest's section on audits of the filter; empty if there are none.

    A task's results are in the section if its units were drawn from both sides of the filter and any of them is
    labelled.
    """
    tasks = Task.objects.filter(draws__corpus__name=corpus_name, draws__design="filtered").distinct().order_by("pk")
    reports = {task.name: sample_audits.filter_report(task) for task in tasks}
    audits = {name: audit for name, audit in reports.items() if audit and any(audit[side]["read"] for side in SIDES)}
    if not audits:
        return {}
    entries = [
        {
            "words": f"Task {name}: {' '.join(sample_audits.filter_words(audit))}",
            "table": parts(sample_audits.figures_table(audit)),
        }
        for name, audit in audits.items()
    ]
    return {"filter_audits": {"heading": "Audits of the filter", "told": entries, "audits": audits}}


# --- The files of a set

TITLE, MADE_BY = "MRS", "export_pairs"
GMR_VALID = "gmr_valid"
LINES = "pairs.tsv"
RESPONSES, MAPPING = "response_lm_cluster.txt", "response.mapping.txt"
RANDOM_SET, REPLIES = "random_set", "replies.txt"
SCORER = ("name", "of", "threshold", "dropped", "lacking", "source")
_SCORE = pa.struct([("scorer", pa.string()), ("score", pa.float64())])
_IDS = [pa.field(name, pa.string()) for name in ("id", "message_id", "thread", "language", "split")]
_SCORES = [pa.field("certainty", pa.float64()), pa.field("scores", pa.list_(_SCORE))]
_TEXTS = [pa.field(name, pa.string()) for name in ("message", "reply")]


@dataclass(frozen=True)
class Pairs:
    """The pairs to export from a corpus, and how to split them."""

    corpus_name: str
    corpus: Manifest
    plan: Plan
    responses: Responses


def export_pairs(corpus_name: str, out: Path, plan: Plan, responses: Responses) -> dict[str, Any]:
    """Write a corpus's message-reply pairs and return the manifest. An earlier export in the folder is replaced.

    Raise ExportError if the folder contains anything but an earlier export of the corpus's pairs, and CorpusError if
    the corpus has no such pairs. In both cases, nothing is written.
    """
    pairs = Pairs(corpus_name, manifest_of(corpus_name), plan, responses)
    with replacing(out.resolve(), "export of pairs", corpus_name) as folder:
        manifest = write(folder, pairs)
        write_with_card(
            folder, manifest, lambda: {"README.md": render_to_string("annotate/card_pairs.md", pair_card(manifest))}
        )
    return manifest


def write(folder: Path, pairs: Pairs) -> dict[str, Any]:
    """Write the files of a set and return its manifest."""
    corpus, plan, responses = pairs.corpus, pairs.plan, pairs.responses
    languages, small, made = _write_files(folder, pairs)
    manifest = {
        **{"format": FORMAT, "made_by": MADE_BY, "pairs": {"name": pairs.corpus_name}},
        "corpus": {
            "name": pairs.corpus_name,
            **{name: getattr(corpus, name) for name in ("source", "licence", "text_may_leave")},
            "files": [source.name for source in corpus.sources],
        },
        "seed": plan.seed,
        "splits": dict(zip(SPLITS, plan.shares, strict=True)),
        **{"apart": plan.apart, "least_pairs": plan.least_pairs, "most_languages": plan.most_languages},
        "threads": thread_facts(pairs.corpus_name, corpus),
        # The scores that decided which pairs were dropped.
        "filter": {
            "digest": filter_digest(corpus),
            "scorers": [{name: getattr(scorer, name) for name in SCORER} for scorer in corpus.pair_scores],
            **filter_counts(pairs.corpus_name, corpus),
        },
        "small_languages": small,
        "languages": languages,
        "response_set": {
            **{name: getattr(responses, name) for name in ("least", "most", "of", "random")},
            "struck": len(made.removed),
            "scorers": [
                {name: getattr(scorer, name) for name in SCORER} for scorer in corpus.scores if scorer.of == RESPONSE
            ],
            "added": added_facts(responses.added, made.added),
            # Lines that had no effect, because the reply to remove was missing or the reply to add was present.
            "unseen": made.unseen,
        },
        "sections": pair_sections(pairs.corpus_name),
        "versions": VERSIONS,
        "files": {},
    }
    # Write the digests of all files so far, in the format of sha256sum.
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [f"{digest_of(path)}  {path.relative_to(folder).as_posix()}\n" for path in paths]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")
    return manifest


def _write_files(folder: Path, pairs: Pairs) -> tuple[list[dict[str, Any]], int, ResponseSet]:
    """Write the data files.

    Return the counts by language, the number of replies in languages with too few pairs, and the response set.
    """
    with_text, staged = pairs.corpus.text_may_leave, folder / "kept.parquet"
    with pair_set(pairs.corpus_name, pairs.corpus, pairs.plan, staged) as store:
        tokens = _write_pairs(store, folder, with_text)
        counts = store.fetch("split_counts")
        sizes = Counter[str]()
        for row in counts:
            if pairs.responses.of in ("all", row["split"]):
                sizes[row["language"]] += row["pairs"]
        judged = rejected_replies(pairs.corpus_name, pairs.corpus)
        made = response_set(store, replace(pairs.responses, judged=judged), sizes)
        if with_text:
            _write_responses(folder, made.replies, sizes)
            _write_table(folder / "struck.tsv", made.removed, ("language", "reply", "pairs", "reason"))
            for row in store.fetch("replies_drawn", pairs.responses.random):
                with _open(folder / RANDOM_SET / row["language"] / REPLIES, "a") as file:
                    file.write(f"{row['reply']}\n")
            _write_table(folder / "added.tsv", made.added, ("language", "reply", "origin"))
        small = _write_left_out(store, folder)
    staged.unlink()
    languages = [
        {
            "language": language,
            **dict.fromkeys(SPLITS, 0),
            **{row["split"]: row["pairs"] for row in rows},
            "tokens": tokens[language],
            "responses": len(made.replies.get(language, {})),
        }
        for language, rows in groupby(counts, lambda row: row["language"])
    ]
    return languages, small, made


# --- Files


def _write_pairs(store: Store, folder: Path, with_text: bool) -> Counter[str]:
    """Write the pairs. Return the number of words in the messages and replies of each language."""
    tokens = Counter[str]()
    schema = pa.schema([*_IDS, *(_TEXTS if with_text else ()), *_SCORES])
    paths = {split: folder / f"pairs.{split}.parquet" for split in SPLITS}
    with (
        (folder / "pairs.jsonl").open("w", encoding="utf-8", newline="\n") as jsonl,
        parquet_files(paths, schema) as into_parquet,
    ):
        for batch in store.query("pairs_in_order"):
            batch_rows = batch.to_pylist()
            for row in batch_rows:
                tokens[row["language"]] += word_count(row["message"]) + word_count(row["reply"])
            rows = (_row(row, with_text) for row in batch_rows)
            for (language, split), group in groupby(rows, itemgetter("language", "split")):
                pairs = list(group)
                into_parquet(split, pa.RecordBatch.from_pylist(pairs, schema=schema))
                for row in pairs:
                    scores = {score["scorer"]: score["score"] for score in row["scores"]}
                    jsonl.write(json.dumps(row | {"scores": scores}, ensure_ascii=False) + "\n")
                for part in ((split, GMR_VALID) if split == VALID else (split,)) if with_text else ():
                    with _open(folder / part / language / LINES, "a") as file:
                        for row in pairs:
                            cells = cell(row["message"]), cell(row["reply"]), language, f"{row['certainty']:.4f}"
                            file.write("\t".join(cells) + "\n")
    return tokens


def _row(row: dict[str, Any], with_text: bool) -> dict[str, Any]:
    """Return a row of the JSONL and Parquet files. A score is None if the scorer has no score for the pair."""
    pairs = sorted(zip(row["scorers"] or (), row["scores"] or (), strict=True))
    scores = [{"scorer": scorer, "score": None if score < 0 else score} for scorer, score in pairs]
    columns = [*_IDS, *(_TEXTS if with_text else ())]
    return {column.name: row[column.name] for column in columns} | {"certainty": row["certainty"], "scores": scores}


def _open(path: Path, mode: str = "w") -> Any:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open(mode, encoding="utf-8", newline="\n")


def _write_responses(folder: Path, responses: Mapping[str, Mapping[str, int]], sizes: Mapping[str, int]) -> None:
    """Write the response set.

    responses: number of pairs with each reply, by language; an added reply without pairs counts as one pair.
    sizes: number of pairs by language.
    """
    for language, replies in responses.items():
        with (
            _open(folder / "rsp_set" / language / RESPONSES) as file,
            _open(folder / "rsp_map" / language / MAPPING) as mapping,
        ):
            for rank, (reply, pairs) in enumerate(replies.items(), 1):
                file.write(f"{math.log(max(pairs, 1) / sizes[language]):.6f}\t{reply}\t{rank}\n")
                mapping.write(f"{reply}\t{reply}\n")


def _write_table(file: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Write rows as tab-separated columns. Without rows, write no file."""
    if lines := ["\t".join(str(row[column]) for column in columns) + "\n" for row in rows]:
        file.write_text("".join(lines), encoding="utf-8", newline="\n")


def _write_left_out(store: Store, folder: Path) -> int:
    """Write the replies that are in no pair of the set. Return how many of them are in languages with too few pairs."""
    small = 0
    with _open(folder / "left_out.jsonl") as file:
        for batch in store.query("left_out_before"):
            for row in batch.to_pylist():
                small += row["reason"] == SMALL
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
        rows = (row for batch in store.query("left_out_by_scores") for row in batch.to_pylist())
        for _, same in groupby(rows, lambda row: row["id"]):
            first, *others = same
            pair = {name: value for name, value in first.items() if name not in ("scorer", "score")}
            scores = {row["scorer"]: row["score"] for row in (first, *others)}
            file.write(json.dumps(pair | {"reason": "dropped", "dropped_by": scores}, ensure_ascii=False) + "\n")
    if not (folder / "left_out.jsonl").stat().st_size:
        (folder / "left_out.jsonl").unlink()
    return small


register(Format("mrs", TITLE, write, measured_by="annotate.evaluation.suggested_replies"))
