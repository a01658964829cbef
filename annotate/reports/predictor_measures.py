"""The measures in a report on a predictor of languages: the words, table and plots of each."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from annotate.reports.numbers import NOT_MEASURED, estimate, p_value, percent
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
REMARK = Column("note", "note", NOTE, lambda row: "; ".join(filter(None, (row.get("note"), _lone(row)))))
# Of the language's posts, which part the recall-oriented set stands for; nothing where it stands alone.
REACH = Column("reach", "within reach", NOTE, lambda row: estimate(row["reach"]) if row.get("reach") else "")
FAR = 0.01  # bounds that are further apart are told


def accuracy(report: dict) -> Section:
    found = report["accuracy"]
    rows = [
        {"of": words, "estimate": found.get(key), "naive": found.get(f"naive_{key}")}
        for key, words in (("with_und", "with und"), ("without_und", "without und"))
    ]
    columns = (Column("of", "posts"), *estimate_columns("estimate", "accuracy"), estimate_columns("naive", "naive")[0])
    words = (
        "The share of posts that the predictor labels right, of the stream from which they come.",
        "The naive estimate takes the detectors’ agreement for the truth, on all posts of the set; the column of posts "
        "counts only those that people read, where the set tells which. A predictor that voted there, or a relative of "
        "one that did, is measured against itself: the naive number is here to show the gap, not to be quoted.",
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
        "The share of the posts in a language that the predictor finds.",
        _measured_on(found["source"]),
        _hiding(report),
        _mean(found.get("macro")),
    )
    plots = partial(pictures, rows_of(found["languages"], "estimate"), "Recall by language")
    measured = Section("recall", "Recall by language", words, plots=plots)
    columns = (*estimate_columns("estimate", "recall"), REACH, REMARK)
    return _by_language(measured, columns, found["languages"], "estimate")


def _hiding(report: dict) -> str:
    """Where more audits would narrow recall most; empty where nothing hides, or every interval is narrow."""
    found = report["recall"]
    wide = [row for row in found["languages"] if _is_wide(row["estimate"])]
    if not (wide and found.get("hiding")):
        return ""
    return (
        f"Of {many(len(wide), 'label')} the recall has no interval, or one of {100 * WIDE:.0f} points and more. "
        "Posts may hide where the detectors agree on another language and few were read, most of all on "
        f"{', '.join(found['hiding'])}: “assay audit TASK --add N” has more of these read, and “assay plan CORPUS” "
        "says how many it takes."
    )


WIDE = 0.2


def _is_wide(estimate: dict | None) -> bool:
    if estimate is None or estimate["value"] is None:
        return False
    return estimate["low"] is None or estimate["high"] - estimate["low"] >= WIDE


def precision(report: dict) -> Section:
    found = report["precision"]
    columns = (*estimate_columns("with_und", "with und"), *estimate_columns("without_und", "without und"), REMARK)
    words = (
        "The share of the posts that the predictor labels with a language that are in that language.",
        _measured_on(found["source"]),
        _mean(found.get("macro")),
    )
    rows = rows_of(found["languages"], "with_und", "without_und")
    plots = partial(pictures, rows, "Precision by language", ("with und", "without und"))
    measured = Section("precision", "Precision by language", words, plots=plots)
    return _by_language(measured, columns, found["languages"], "with_und", "without_und")


def _lone(row: dict) -> str:
    """What posts that nobody has read may make of a precision."""
    lone = row.get("lone")
    if not lone or lone["if_right"] - lone["if_wrong"] <= FAR:
        return ""
    wrong, right = percent(lone["if_wrong"]), percent(lone["if_right"])
    whose = f"{many(lone['posts'], 'post')} that it alone labels so, and that nobody has read"
    return f"{wrong} if it is wrong in all of the {whose}; {right} if right"


CHECK = (
    *LANGUAGE,
    *estimate_columns("recall_set", "recall set")[:2],
    *estimate_columns("uniform_set", "uniform set")[:2],
    Column("visible", "would see", NUMBER, lambda row: _points(row.get("visible"))),
    Column("p", "p", NUMBER, lambda row: p_value(row["p"])),
    Column("p_holm", "Holm p", NUMBER, lambda row: p_value(row["p_holm"])),
    Column("differ", "", says=lambda row: "differ" if _significant(row) else ""),
)


def recall_check(report: dict) -> Section:
    found = report["recall_check"]
    differing = sum(map(_significant, found))
    words = (
        "The posts of a recall set come from authors whom a predictor had found to write the language. Where the "
        "uniform set has posts of the language too, both recalls are tested for a difference: within the reach of "
        "these authors, if it is known which posts of the uniform set are; p is corrected after Holm for "
        f"{many(len(found), 'test')}.",
        f"Languages that differ at the 5% level: {differing} of {len(found)}. If no difference was found, that does "
        "not prove that there is none: a test finds a difference as large as under “would see”, in points, in four "
        "of five cases.",
    )
    rows = rows_of(found, "recall_set", "uniform_set")
    plots = partial(pictures, rows, "Recall on two kinds of sets", ("recall set", "uniform set"))
    return Section("recall_check", "Is the recall set fair?", words, _languages(CHECK, found), plots=plots)


def _points(share: float | None) -> str:
    return NOT_MEASURED if share is None else f"{100 * share:.1f}"


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
    loud = "On the posts that were never shown, precision is unknown, and no weighting can recover it."
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
    """The section with a table; if nothing was measured under any of the keys, with a sentence instead."""
    if lacking := unmeasured(languages, *keys):
        return replace(section, words=(*section.words, f"Nothing was measured: {', '.join(lacking)}."))
    return replace(section, tables=_languages((*LANGUAGE, *columns), languages))


def _languages(columns: Sequence[Column], rows: list[dict]) -> tuple[Table, ...]:
    return dense(table(many(len(rows), "language"), columns, by_code(rows)))


def _measured_on(source: str) -> str:
    joined = " and ".join(f"{part} set" for part in source.split(" and "))
    return f"Measured on the {joined}{', a post of both counted once' if ' and ' in source else ''}."


def _mean(macro: dict | None) -> str:
    """Empty if nothing was measured."""
    means = [("The mean, each class counted alike, is", macro)]
    if macro and (well := macro.get("well_measured")):
        means.append((f"Over those with at least {well['least_posts']} posts it is", well))
    return " ".join(f"{start} {' and '.join(words)}." for start, one in means if (words := _means(one)))


def _means(macro: dict | None) -> list[str]:
    return [f"{percent(mean)} {which} und (over {over})" for which, mean, over in means_of(macro)]


def means_of(macro: dict | None) -> list[tuple[str, float, str]]:
    """("with" or "without" und, the mean, what it is over) for each mean over one language at least."""
    if not macro:
        return []
    classes, languages = macro["with_und_over"], macro["languages"]
    both = f"{many(classes['languages'], 'language')}{' and und' if classes['classes'] > classes['languages'] else ''}"
    found = [
        ("with", macro["with_und"], both, classes["languages"]),
        ("without", macro["without_und"], many(languages, "language"), languages),
    ]
    return [(which, mean, over) for which, mean, over, number in found if mean is not None and number]
