"""What a report of `evaluate` says: its words and tables, the same on a terminal, in Markdown and in HTML.

The report is the dict that `evaluate` writes as JSON. What was not measured is None there, and has no section here.
How sections are written down is no matter of this module, nor are the plots: see reporting.py.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from annotate.reports.numbers import count, estimate, p_value, percent
from annotate.reports.plots import top_confusions
from corpora.core.languages import LANGUAGES, UND

COMMONEST = 25  # confusions in the table
SIGNIFICANT = 0.05

# Kinds of columns: a terminal leaves `name` out where it lacks the room, shortens `digest` and lists `note` below.
TEXT, NAME, NUMBER, DIGEST, NOTE = "text", "name", "number", "digest", "note"
LANGUAGE = (("language", TEXT), ("name", NAME))


@dataclass(frozen=True)
class Table:
    """columns: (heading, kind); rows: as many words each. what: says what the rows are, as in "60 languages"."""

    what: str
    columns: tuple[tuple[str, str], ...]
    rows: list[tuple[str, ...]]


@dataclass(frozen=True)
class Section:
    """words: sentences for who publishes the numbers. loud: what nobody may overlook."""

    slug: str
    title: str
    words: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    loud: str = ""


def sections(report: dict) -> list[Section]:
    return [section(report) for key, section in SECTIONS.items() if report.get(key)]


def title(report: dict) -> str:
    sets = len(report["gold"])
    subject = report["predictor"]["spelled"]
    if comparison := report.get("comparison"):
        subject = f"{subject} against {comparison['other']['spelled']}"
    return f"{subject}, measured on {sets} gold set{'' if sets == 1 else 's'}"


def headlines(report: dict) -> list[tuple[str, str, str]]:
    """What was measured, the number, and what the number is; the first things that anybody asks for."""
    found = []
    if accuracy := report.get("accuracy"):
        without = estimate(accuracy.get("without_und"))
        found.append(("Accuracy", estimate(accuracy.get("with_und")), f"with und; {without} without"))
    for key in ("recall", "precision"):
        macro = (report.get(key) or {}).get("macro")
        if macro:
            found.append((key.capitalize(), *_headline(macro)))
            if well := macro.get("well_measured"):
                found.append((f"{key.capitalize()}, {well['least_posts']}+ posts", *_headline(well)))
    if report.get("comparison"):
        overall = report["comparison"]["overall"]
        number = f"{count(overall['only_first'])} to {count(overall['only_second'])}"
        found.append(("Comparison", number, _who_is_right(report)))
    return found


def _who_is_right(report: dict) -> str:
    """The comparison in a sentence."""
    overall = report["comparison"]["overall"]
    first, second = report["predictor"]["spelled"], report["comparison"]["other"]["spelled"]
    one, other = overall["only_first"], overall["only_second"]
    return (
        f"of {count(one + other)} posts on which only one is right, {first} is right on {count(one)} and {second} on "
        f"{count(other)} (p {p_value(overall['p'])})"
    )


def _headline(macro: dict) -> tuple[str, str]:
    mean = f"mean over {_many(macro.get('languages') or 0, 'language')}"
    without = percent(macro.get("without_und"))
    # Without a uniform set, nothing is known of posts that are undefined.
    if macro.get("with_und") is None:
        return without, f"without und, {mean}"
    return percent(macro["with_und"]), f"with und, {mean}; {without} without"


HOW_TO_READ = (
    "A number with two in brackets, x% [a, b], is an estimate with its 95% interval (Jeffreys). On a uniform set, "
    "estimates are made by stratum: posts that people labelled count as they are; posts on which the detectors "
    "merely agreed count through the ones among them that people audited. The interval then rests on an effective "
    "count, which may be far lower than the number of posts and need not be whole (≈).",
    "With und: posts that people called undefined count too, and a predictor is right on them only where it says und. "
    "Without und: these posts are left out.",
)


def _gold(report: dict) -> Section:
    predictor = report["predictor"]
    words = [f"Predictor: {predictor['spelled']}."]
    if report.get("comparison"):
        other = report["comparison"]["other"]["spelled"]
        words.append(
            f"Compared with: {other}. Over all languages, {_who_is_right(report)}. What {other} reaches by itself is "
            "not in this report; for that, run evaluate with it in the first place (a file with --file) on the same "
            "gold sets."
        )
    if mapping := predictor.get("mapping"):
        pairs = "; ".join(f"{coarse} stands for {', '.join(fine)}" for coarse, fine in sorted(mapping.items()))
        words.append(f"It knows coarser labels: {pairs}. A coarse label is right where people gave any of those.")
    if predictor.get("voted"):
        words.append("It voted on posts of a uniform set, so agreement there counts through audited posts alone.")
    rows = [
        (
            gold["name"],
            gold["design"],
            count(gold["posts"]),
            "yes" if gold["finished"] else "NO",
            gold.get("predictor") or "",
            gold.get("folder_name") or "",
            gold["digest"],
        )
        for gold in report["gold"]
    ]
    columns = (("gold set", TEXT), ("design", TEXT), ("posts", NUMBER), ("finished", TEXT), ("drawn by", TEXT))
    tables = [Table(_many(len(rows), "gold set"), (*columns, ("folder", NAME), ("SHA-256", DIGEST)), rows)]
    gone = {key: report.get(key) or {} for key in ("vanished", "erased")}
    if any(lost.get("posts") for lost in gone.values()):
        vanished, erased = (count(part.get("posts", 0)) for part in gone.values())
        words.append(
            f"Posts left out because they are listed as vanished: {vanished}. "
            f"Posts erased from the gold sets: {erased}. None of them counts below; if they are unlike the "
            "others, every number here is off by that."
        )
        lost = [Counter(part.get("by_label") or {}) for part in gone.values()]
        labels = sorted(lost[0].keys() | lost[1].keys(), key=lambda label: (label == UND, label))
        rows = [(label, name_of(label), *(count(part[label]) for part in lost)) for label in labels]
        heads = (("label", TEXT), ("name", NAME), ("vanished", NUMBER), ("erased", NUMBER))
        tables.append(Table(f"what is gone, by {_many(len(rows), 'label')}", heads, rows))
    return Section("gold", "What was measured against what", tuple(words), tuple(tables))


def _accuracy(report: dict) -> Section:
    found = report["accuracy"]
    rows = [
        (words, *_counted(found.get(key)), estimate(found.get(f"naive_{key}")))
        for key, words in (("with_und", "with und"), ("without_und", "without und"))
    ]
    columns = (("posts", TEXT), *_estimate_columns("accuracy"), ("naive", NUMBER))
    words = (
        "The share of all posts of the stream that the predictor labels right.",
        "The naive estimate takes the detectors’ agreement for the truth. A predictor that voted there, or a relative "
        "of one that did, is measured against itself: the naive number is here to show the gap, not to be quoted.",
    )
    return Section("accuracy", "Accuracy", words, _tables(rows, columns, "row"))


def _recall(report: dict) -> Section:
    found = report["recall"]
    rows = [(*_named(row), *_counted(row["estimate"]), row.get("note") or "") for row in _by_code(found)]
    columns = (*LANGUAGE, *_estimate_columns("recall"), ("note", NOTE))
    words = (
        "Of the posts in a language, the share that the predictor finds.",
        _measured_on(found["source"]),
        _mean(found.get("macro")),
    )
    return _by_language("recall", "Recall by language", words, rows, columns, _unmeasured(found, "estimate"))


def _precision(report: dict) -> Section:
    found = report["precision"]
    rows = [
        (*_named(row), *_counted(row["with_und"]), *_counted(row["without_und"]), row.get("note") or "")
        for row in _by_code(found)
    ]
    columns = (*LANGUAGE, *_estimate_columns("with und"), *_estimate_columns("without und"), ("note", NOTE))
    words = (
        "Of the posts that the predictor labels with a language, the share that is in that language.",
        _measured_on(found["source"]),
        _mean(found.get("macro")),
    )
    unmeasured = _unmeasured(found, "with_und", "without_und")
    return _by_language("precision", "Precision by language", words, rows, columns, unmeasured)


def _recall_check(report: dict) -> Section:
    found = report["recall_check"]
    rows = [
        (
            *_named(row),
            *(_counted(row["recall_set"])[:2]),
            *(_counted(row["uniform"])[:2]),
            p_value(row["p"]),
            p_value(row["p_holm"]),
            "differ" if _significant(row) else "",
        )
        for row in _by_code({"languages": found})
    ]
    columns = (
        *(*LANGUAGE, ("recall set", NUMBER), ("posts", NUMBER), ("uniform set", NUMBER), ("posts", NUMBER)),
        *(("p", NUMBER), ("Holm p", NUMBER), ("", TEXT)),
    )
    differing = sum(map(_significant, found))
    words = (
        "The posts of a recall set come from authors whom a predictor had found to write the language, which might "
        "flatter it. Where the uniform set has posts of the language too, both recalls are tested for a difference; p "
        f"is corrected after Holm for {_many(len(found), 'test')}.",
        f"Languages that differ at the 5% level: {differing} of {len(found)}. That no difference was found is no proof "
        "that there is none, least of all where posts are few.",
    )
    return Section("recall_check", "Is the recall set fair?", words, _tables(rows, columns))


def _unseen(report: dict) -> Section:
    found = report["unseen"]
    rows = [
        (
            *_named(row),
            *map(count, (row["triggers"], row["never_shown"])),
            percent(row["share"]),
            count(row.get("outside")),
        )
        for row in _by_code(found)
    ]
    columns = (
        *(
            *LANGUAGE,
            ("labelled so", NUMBER),
            ("never shown", NUMBER),
            ("share", NUMBER),
            ("outside the frame", NUMBER),
        ),
    )
    words = (
        "The precision set was drawn from the posts that another predictor labels with the language. Of the posts "
        "that this predictor labels so, the share that was never shown to a person is counted here, over the "
        f"{found['over']}.",
    )
    loud = "On the posts that were never shown, precision is unknown, and no weighting brings it out."
    return Section("unseen", "Labelled, and never shown to people", words, _tables(rows, columns), loud)


def _balanced(report: dict) -> Section:
    rows = [
        (*_named(row), *_counted(row["balanced"])[:2], estimate(row.get("natural")))
        for row in _by_code(report["balanced"])
    ]
    columns = (*LANGUAGE, ("balanced", NUMBER), ("posts", NUMBER), ("reweighted to natural shares", NUMBER))
    words = (
        "Precision on the recall set, whose languages have about as many posts each. In a stream, errors on a large "
        "language outweigh all that a small one has, so a predictor may look far better here, or far worse.",
        "Reweighted to natural shares, a single error in a large language stands for very many, and the interval "
        "that results is often too wide to say anything.",
    )
    loud = "HYPOTHETICAL: precision if every language had the same number of posts, which is true of no stream."
    unmeasured = _unmeasured(report["balanced"], "balanced", "natural")
    return _by_language("balanced", "Hypothetical: a balanced stream", words, rows, columns, unmeasured, loud)


def _comparison(report: dict) -> Section:
    found = report["comparison"]
    first, second = report["predictor"]["spelled"], found["other"]["spelled"]

    def row(pair: dict, p: float | None) -> tuple[str, ...]:
        numbers = map(count, (pair["items"], pair["only_first"], pair["only_second"]))
        return (*numbers, p_value(pair["p"]), *([p_value(p)] if pair is not overall else []), _better(pair, p))

    overall = found["overall"]
    rows = [(*_named(pair), *row(pair, pair["p_holm"])) for pair in _by_code(found)]
    numbers = (("posts", NUMBER), ("only A right", NUMBER), ("only B right", NUMBER), ("p", NUMBER))
    tables = (
        Table("all languages", (*numbers, ("better", TEXT)), [row(overall, overall["p"])]),
        *_tables(rows, (*LANGUAGE, *numbers, ("Holm p", NUMBER), ("better", TEXT))),
    )
    words = (
        f"A is {first}, B is {second}, on the same posts of the uniform and recall sets.",
        "Posts on which both are right, or both wrong, say nothing of which is better. p is McNemar’s, exact and "
        f"two-sided; by language it is corrected after Holm. The better one is named where p is below {SIGNIFICANT}.",
        *_classes(found.get("together") or {}),
    )
    return Section("comparison", f"{first} and {second} compared", words, tables)


def _classes(together: dict) -> tuple[str, ...]:
    if not together:
        return ()
    classes = "; ".join(f"{', '.join(fine)} as {coarse}" for coarse, fine in together.items())
    return (
        f"For this comparison alone, labels that either of the two does not tell apart are taken together: {classes}.",
    )


def _confusion(report: dict) -> Section:
    cells = [tuple(cell) for cell in report["confusion"]["cells"]]
    totals = Counter()
    for gold, _, weight in cells:
        totals[gold] += weight
    rows = [
        (gold, name_of(gold), said, name_of(said), count(weight), percent(weight / totals[gold]))
        for gold, said, weight in top_confusions(cells, COMMONEST)
    ]
    columns = (
        *(("people say", TEXT), ("name", NAME), ("predicted", TEXT), ("name", NAME), ("posts", NUMBER)),
        ("of the gold label", NUMBER),
    )
    words = (
        "Which label is taken for which. Numbers of posts are weighted by stratum like the estimates, so they need not "
        "be whole.",
    )
    table = Table(f"the {len(rows)} commonest confusions" if len(rows) > 1 else "confusions", columns, rows)
    return Section("confusion", "Confusions", words, (table,) if rows else ())


SECTIONS: dict[str, Callable[[dict], Section]] = {
    "gold": _gold,
    "accuracy": _accuracy,
    "recall": _recall,
    "precision": _precision,
    "recall_check": _recall_check,
    "unseen": _unseen,
    "balanced": _balanced,
    "comparison": _comparison,
    "confusion": _confusion,
}


def name_of(label: str) -> str:
    if label in LANGUAGES:
        return LANGUAGES[label].name
    return "undefined" if label == UND else ""


def _tables(rows: list, columns: tuple, noun: str = "language") -> tuple[Table, ...]:
    """The table without the columns that say the same in no row: no notes, no effective counts."""
    empty = set()
    for n, (heading, kind) in enumerate(columns):
        noteless = kind == NOTE and not any(row[n] for row in rows)
        if noteless or (heading == "counts as" and all(row[n] == row[n - 1] for row in rows)):
            empty.add(n)
    kept = [n for n in range(len(columns)) if n not in empty]
    rows = [tuple(row[n] for n in kept) for row in rows]
    return (Table(_many(len(rows), noun), tuple(columns[n] for n in kept), rows),) if rows else ()


def _unmeasured(found: dict, *keys: str) -> list[str]:
    """The languages, where nothing was measured in any of them: a table would have no number."""
    if any((row.get(key) or {}).get("value") is not None for row in found["languages"] for key in keys):
        return []
    return [f"{name} ({code})" if name else code for code, name in map(_named, _by_code(found))]


def _by_language(
    slug: str, title: str, words: tuple, rows: list, columns: tuple, unmeasured: list[str], loud: str = ""
) -> Section:
    if unmeasured:
        return Section(slug, title, (*words, f"Nothing was measured: {', '.join(unmeasured)}."), (), loud)
    return Section(slug, title, words, _tables(rows, columns), loud)


def _by_code(found: dict) -> list[dict]:
    return sorted(found["languages"], key=lambda row: row["language"])


def _named(row: dict) -> tuple[str, str]:
    return row["language"], row.get("name") or name_of(row["language"])


def _estimate_columns(name: str) -> tuple[tuple[str, str], ...]:
    return (name, NUMBER), ("posts", NUMBER), ("counts as", NUMBER)


def _counted(found: dict | None) -> tuple[str, str, str]:
    """An estimate, the posts that it rests on, and its effective count."""
    found = found or {"value": None, "low": 0, "high": 1}
    effective = found.get("count")
    return estimate(found), count(found.get("posts", effective)), count(effective)


def _measured_on(source: str) -> str:
    joined = " and ".join(f"{part} set" for part in source.split(" and "))
    return f"Measured on the {joined}{', a post of both counted once' if ' and ' in source else ''}."


def _mean(macro: dict | None) -> str:
    if not macro:
        return ""
    words = f"Mean over {_many(macro.get('languages') or 0, 'language')}, each counted alike: {_means(macro)}."
    if well := macro.get("well_measured"):
        words += (
            f" Mean over the {_many(well['languages'], 'language')} with at least {well['least_posts']} posts: "
            f"{_means(well)}."
        )
    return words


def _means(macro: dict) -> str:
    means = f"{percent(macro.get('without_und'))} without und"
    return means if macro.get("with_und") is None else f"{percent(macro['with_und'])} with und, {means}"


def _significant(row: dict) -> bool:
    return row["p_holm"] is not None and row["p_holm"] < SIGNIFICANT


def _better(pair: dict, p: float | None) -> str:
    if p is None or p >= SIGNIFICANT:
        return ""
    return "A" if pair["only_first"] > pair["only_second"] else "B"


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
