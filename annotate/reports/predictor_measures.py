"""The measures in a report on a predictor of languages: of each its words, its table and its plots."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from annotate.reports.numbers import p_value, percent
from annotate.reports.plots import Mark, Row, bars
from annotate.reports.sections import (
    Section,
    by_code,
    by_value,
    dense,
    estimate_columns,
    mark_of,
    pictures,
    rows_of,
    unmeasured,
)
from annotate.reports.tables import LANGUAGE, NOTE, NUMBER, Column, Table, beside, many, numbered, numbers, table

SIGNIFICANT = 0.05
REMARK = Column("note", "note", NOTE, lambda row: row.get("note") or "")


def accuracy(report: dict) -> Section:
    found = report["accuracy"]
    rows = [
        {"of": words, "estimate": found.get(key), "naive": found.get(f"naive_{key}")}
        for key, words in (("with_und", "with und"), ("without_und", "without und"))
    ]
    columns = (Column("of", "posts"), *estimate_columns("estimate", "accuracy"), estimate_columns("naive", "naive")[0])
    words = (
        "The share of all posts of the stream that the predictor labels right.",
        "The naive estimate takes the detectors’ agreement for the truth. A predictor that voted there, or a relative "
        "of one that did, is measured against itself: the naive number is here to show the gap, not to be quoted.",
    )
    return Section(
        "accuracy", "Accuracy", words, dense(table("2 rows", columns, rows)), plots=lambda: _accuracies(found)
    )


def _accuracies(found: dict) -> list:
    rows = [
        Row(words, "", (mark_of(found.get(key)), mark_of(found.get(f"naive_{key}"))))
        for key, words in (("with_und", "with und"), ("without_und", "without"))
    ]
    return pictures(rows, "Accuracy", ("estimated by stratum", "naive: agreement taken for the truth"))


def recall(report: dict) -> Section:
    found = report["recall"]
    words = (
        "Of the posts in a language, the share that the predictor finds.",
        _measured_on(found["source"]),
        _mean(found.get("macro")),
    )
    plots = partial(pictures, rows_of(found["languages"], "estimate"), "Recall by language")
    measured = Section("recall", "Recall by language", words, plots=plots)
    return _by_language(measured, (*estimate_columns("estimate", "recall"), REMARK), found["languages"], "estimate")


def precision(report: dict) -> Section:
    found = report["precision"]
    columns = (*estimate_columns("with_und", "with und"), *estimate_columns("without_und", "without und"), REMARK)
    words = (
        "Of the posts that the predictor labels with a language, the share that is in that language.",
        _measured_on(found["source"]),
        _mean(found.get("macro")),
    )
    rows = rows_of(found["languages"], "with_und", "without_und")
    plots = partial(pictures, rows, "Precision by language", ("with und", "without und"))
    measured = Section("precision", "Precision by language", words, plots=plots)
    return _by_language(measured, columns, found["languages"], "with_und", "without_und")


CHECK = (
    *LANGUAGE,
    *estimate_columns("recall_set", "recall set")[:2],
    *estimate_columns("uniform_set", "uniform set")[:2],
    Column("p", "p", NUMBER, lambda row: p_value(row["p"])),
    Column("p_holm", "Holm p", NUMBER, lambda row: p_value(row["p_holm"])),
    Column("differ", "", says=lambda row: "differ" if _significant(row) else ""),
)


def recall_check(report: dict) -> Section:
    found = report["recall_check"]
    differing = sum(map(_significant, found))
    words = (
        "The posts of a recall set come from authors whom a predictor had found to write the language, which might "
        "flatter it. Where the uniform set has posts of the language too, both recalls are tested for a difference; p "
        f"is corrected after Holm for {many(len(found), 'test')}.",
        f"Languages that differ at the 5% level: {differing} of {len(found)}. That no difference was found is no proof "
        "that there is none, least of all where posts are few.",
    )
    rows = rows_of(found, "recall_set", "uniform_set")
    plots = partial(pictures, rows, "Recall on two kinds of sets", ("recall set", "uniform set"))
    return Section("recall_check", "Is the recall set fair?", words, _languages(CHECK, found), plots=plots)


def _significant(row: dict) -> bool:
    return row["p_holm"] is not None and row["p_holm"] < SIGNIFICANT


UNSEEN = (
    *LANGUAGE,
    *numbers({"triggers": "labelled so", "never_shown": "never shown"}),
    Column("share", "share", NUMBER, lambda row: percent(row["share"])),
    numbered("outside", "outside the frame", lambda row: row.get("outside")),
)


def unseen(report: dict) -> Section:
    found = report["unseen"]
    words = (
        "The precision set was drawn from the posts that another predictor labels with the language. Of the posts "
        "that this predictor labels so, the share that was never shown to a person is counted here, over the "
        f"{found['over']}.",
    )
    loud = "On the posts that were never shown, precision is unknown, and no weighting brings it out."
    title, tables = "Labelled, and never shown to people", _languages(UNSEEN, found["languages"])
    return Section("unseen", title, words, tables, loud, plots=lambda: _shares(found["languages"]))


def _shares(languages: list[dict]) -> list:
    # A share counted to the last post has no interval.
    rows = [
        Row(
            row["language"],
            beside(row["language"], row["name"]),
            (Mark(None) if (share := row["share"]) is None else Mark(share, share, share, row["triggers"]),),
        )
        for row in languages
    ]
    return pictures(by_value(rows), "Share of labels never shown to people", counted="labelled so", draw=bars)


def balanced(report: dict) -> Section:
    languages = report["balanced"]["languages"]
    columns = (
        *estimate_columns("balanced", "balanced")[:2],
        estimate_columns("natural", "reweighted to natural shares")[0],
    )
    words = (
        "Precision on the recall set, whose languages have about as many posts each. In a stream, errors on a large "
        "language outweigh all that a small one has, so a predictor may look far better here, or far worse.",
        "Reweighted to natural shares, a single error in a large language stands for very many, and the interval "
        "that results is often too wide to say anything.",
    )
    loud = "HYPOTHETICAL: precision if every language had the same number of posts, which is true of no stream."
    rows = rows_of(languages, "balanced", "natural")
    plots = partial(pictures, rows, "Hypothetical precision", ("balanced", "reweighted to natural shares"))
    measured = Section("balanced", "Hypothetical: a balanced stream", words, loud=loud, plots=plots)
    return _by_language(measured, columns, languages, "balanced", "natural")


def _by_language(section: Section, columns: Sequence[Column], languages: list[dict], *keys: str) -> Section:
    """The section with a table; where nothing was measured under any of the keys, with a sentence instead."""
    if lacking := unmeasured(languages, *keys):
        return replace(section, words=(*section.words, f"Nothing was measured: {', '.join(lacking)}."))
    return replace(section, tables=_languages((*LANGUAGE, *columns), languages))


def _languages(columns: Sequence[Column], rows: list[dict]) -> tuple[Table, ...]:
    return dense(table(many(len(rows), "language"), columns, by_code(rows)))


def _measured_on(source: str) -> str:
    joined = " and ".join(f"{part} set" for part in source.split(" and "))
    return f"Measured on the {joined}{', a post of both counted once' if ' and ' in source else ''}."


def _mean(macro: dict | None) -> str:
    if not macro:
        return ""
    words = f"Mean over {many(macro.get('languages') or 0, 'language')}, each counted alike: {_means(macro)}."
    if well := macro.get("well_measured"):
        words += (
            f" Mean over the {many(well['languages'], 'language')} with at least {well['least_posts']} posts: "
            f"{_means(well)}."
        )
    return words


def _means(macro: dict) -> str:
    means = f"{percent(macro.get('without_und'))} without und"
    return means if macro.get("with_und") is None else f"{percent(macro['with_und'])} with und, {means}"
