"""Tables, a plot and sentences about planned draws, expected interval widths and expected work.

The rows come from `draw_plan.py` and `finish_forecast.py`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import starmap
from typing import Any

from django.utils.safestring import SafeString

from annotate.controls.check_report import NO_SECOND
from annotate.figures.interval_width import AUDITS, CHECKS, DESIGNED, POSTS, SECONDS
from annotate.kinds.interface_language import label_name
from annotate.reports.numbers import NOT_MEASURED, hours_words, in_points, percent, rounded
from annotate.reports.square_plots import Spot, lines
from annotate.reports.tables import ALL, LANGUAGE, NOTE, NUMBER, Cell, Column, Table, many, numbers, percentage, table

WHY = {
    "few": "the corpus has too few posts for this interval width",
    "hidden": "too many of its posts may be hidden among unread posts in other languages",
}
MEASURE_NAMES = {"error": "error of the detectors' agreement"}


def measure_table(plan: Mapping[str, Any], measure: str) -> Table:
    """Return the table of languages where a uniform draw is sufficient. `missing` covers the other languages."""
    possible = [row for row in plan["rows"] if row["measure"] == measure and row["needs"]]
    rows = [row if row["language"] else row | {"language": ALL, "name": ALL} for row in possible]
    heads = (
        *LANGUAGE,
        percentage("share", "share"),
        _needed("size", "to draw"),
        Column("audited", "audited", NUMBER, lambda row: f"{row['needs']['audit_share']:.0%}"),
        _needed("posts", "posts"),
        *(_needed(key, key) for key in ("disputed", "audits", "checks", "hours")),
        _needed("reading", "total read"),
        *(numbers({"alone": "own set", "decoys": "decoys"}) if measure in DESIGNED else []),
    )
    return table(MEASURE_NAMES.get(measure, measure), heads, rows)


def missing(plan: Mapping[str, Any], measure: str) -> Iterator[str]:
    """Yield sentences about languages where a uniform draw is insufficient or expensive, with alternatives."""
    of_measure = [row for row in plan["rows"] if row["measure"] == measure]
    for why, reason in WHY.items():
        rows = [row for row in of_measure if row["why"] == why]
        if not rows:
            continue
        instead = "Use a larger corpus, or accept a wider interval."
        if measure in DESIGNED and why == "hidden":
            alone, decoys = rows[0]["alone"], rows[0]["decoys"]
            instead = f"Build {measure}-oriented sets of {many(alone, 'post')} and {many(decoys, 'decoy')} each."
        labels = " ".join(row["language"] or "all" for row in rows)
        yield f"No uniform draw is sufficient for {labels}: {reason}. {instead}"
    with_alternative = [row for row in of_measure if row["needs"] and row["alone"] is not None]
    expensive = [
        row["language"] for row in with_alternative if row["needs"]["reading"] >= 10 * (row["alone"] + row["decoys"])
    ]
    if expensive:
        yield f"For {' '.join(expensive)}, a {measure}-oriented set requires at most a tenth of this reading."


def without_decoys(plan: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence about the interval widths of sets for a single language without decoys."""
    widths_by_measure = {row["measure"]: row["without_decoys"] for row in plan["rows"] if row["without_decoys"]}
    widths = ", ".join(
        f"{measure} "
        + " or ".join(f"{100 * cell['width']:.1f} points ({cell['false_yes']:.0%})" for cell in measure_widths)
        for measure, measure_widths in widths_by_measure.items()
    )
    if widths:
        yield (
            "A corpus has no decoys until people have answered No for some posts. Without decoys, the share of false "
            f"Yes is unknown. The interval widths of these sets for a share of false Yes (in brackets) are: {widths}."
        )


def measure_name(measure: str) -> str:
    return MEASURE_NAMES.get(measure, measure).capitalize()


def _needed(key: str, heading: str) -> Column:
    return Column(key, heading, NUMBER, lambda row: rounded(row["needs"][key]))


def recall_table(plan: Mapping[str, Any]) -> Table:
    heads = (
        *LANGUAGE,
        *_rounded({"posts": "posts"}),
        Column("width", "points", NUMBER, lambda row: f"{100 * row['width']:.1f}"),
        *_rounded({"elsewhere": "other audits", "stated": "for any interval", "wished": "for this width"}),
    )
    return table("recall in that draw", heads, plan["recall"])


def columns_words() -> str:
    return (
        "audited: the share of agreed posts to audit. posts, disputed, audits, checks (by an adjudicator) and "
        "hours (including checks): only for this language. total read: for all languages. own set, decoys: the "
        "number of posts in a recall- or precision-oriented set with the same width, and the number of decoys among "
        "them, which are posts that people in another task found not to be in the language."
    )


def draw_words(plan: Mapping[str, Any], corpus: str, width: float) -> Iterator[str]:
    draw, points = plan["draw"], in_points(width)
    if draw is None:
        yield (
            f"No uniform draw of corpus {corpus} gives an interval of {points} for any of these measures. Build a set "
            "for each language (`assay open_task … --design recall` or `precision`), or use a larger corpus."
        )
        return
    contested = rounded(draw["contested"]) if draw["contested"] >= 1 else ""
    more = f"{contested} more on average because audits fail by chance, " if contested else ""
    yield (
        f"Recommended draw: {many(draw['size'], 'post')}. People read {rounded(draw['disputed'])} disputed posts and "
        f"{rounded(draw['audits'])} audits, {more}and an adjudicator reads {rounded(draw['checks'])} checks. This "
        f"takes {rounded(draw['hours'])} hours, or {rounded(draw['weeks'])} weeks for one person. The interval is "
        f"{points} or narrower for {draw['suits']} of {many(draw['of'], 'figure')}."
    )
    yield (
        f"`assay open_task TASK --corpus {corpus} --seed 1 --size {draw['size']} --audit-share "
        f"{draw['audit_share']:g} --audit-least {draw['audit_least']} --dry-run`"
    )


# --- Expected widths of a uniform draw, and the curve of width by reading


Widths = Mapping[str, Any]
ERROR_IN_ALL = "error of agreement"
NEEDED = {"audits": "audits", "read": "total read", "hours": "hours"}
NEEDED_WORDS = (
    "recall, precision, error: for most of the languages with at least 30 posts in the draw. A dash means that even "
    "reading every post is not sufficient. Draw more posts."
)


def points(width: float | None) -> Cell:
    return Cell(NOT_MEASURED if width is None else f"{100 * width:.1f}", width)


def language_table(result: Widths) -> Table:
    posts, widths = _rounded({"posts": "posts", "audits": "audits"}), ("recall", "precision", "error")
    heads = (*LANGUAGE, *posts, *_in_points(dict(zip(widths, widths, strict=True))))
    return table("expected width of the 95% interval, in points", heads, result["languages"])


def curve_table(result: Widths) -> Table:
    """Return the table of interval widths by audit share. An arrow marks the task's own audit share."""

    def share(row: Widths) -> Cell:
        arrow = "→ " if row["share"] == result["share"] else ""
        return Cell(f"{arrow}{percent(row['share'])}", row["share"])

    heads = (Column("share", "audited", NUMBER, share), *_rounded(NEEDED), *_curve_widths(result))
    return table("width by audits", heads, result["curve"])


def next_words(result: Widths) -> str:
    best = result["next"][0]["work"] if result["next"] else ""
    return (
        f"With the same amount of further reading, {best} would narrow the interval of accuracy most:" if best else ""
    )


def next_table(result: Widths) -> Table:
    heads = (Column("work", "further work"), *_rounded({"more": "posts read"}), *_curve_widths(result))
    return table("width by further work", heads, result["next"])


# How to do each kind of further work.
COMMANDS = {
    AUDITS: "assay audit {task} --add {amount}",
    CHECKS: "assay audit {task} --add {amount} --checks",
    POSTS: "assay extend_task {task} --size {amount}",
    SECONDS: "only in a new task: open_task --check-share",
}


def command(row: Widths, task: str) -> str:
    written = COMMANDS[row["work"]].format(task=task, amount=row["amount"])
    return f"{written} --languages {row['label']}" if row["label"] else written


def further_table(result: Widths, does: Callable[[Widths], Cell | str]) -> Table:
    """Return the table of further work that reaches the required width or comes closest to it.

    does: function that returns the command or link for a row's work.
    """

    def work(row: Widths) -> str:
        return f"{row['work']} of {row['label']}" if row["label"] else str(row["work"])

    heads = (
        Column("work", "more", says=work),
        *_rounded({"posts": "posts to read", "hours": "hours"}),
        Column("width", "width in points", NUMBER, lambda row: points(row["width"])),
        Column("gain", "points per hour", NUMBER, lambda row: Cell(f"{100 * row['gain']:,.2f}", row["gain"])),
        Column("does", "by", NOTE, does),
    )
    return table("width of accuracy by further work", heads, result["rows"])


def further_words(result: Widths) -> str:
    current_width = points(result["width"]).shown
    measured = (
        f"For a predictor with an accuracy of {percent(result['accuracy'])}, the 95% interval of accuracy will be "
        f"about {current_width} points wide after all selected posts have been read"
    )
    if not result["rows"]:
        narrow = result["width"] <= result["wished"]
        rest = "which is as narrow as desired" if narrow else "and further work would not narrow it"
        return f"{measured}, {rest}."
    pace = f"at {result['seconds']:,.1f} seconds per answer"
    is_reached = all(row["enough"] for row in result["rows"])
    short = "" if is_reached else " Rows with a larger width include all possible work of this kind."
    wished = in_points(result["wished"])
    return f"{measured}. Further work to reach {wished}, {pace}, sorted by gain per hour:{short}"


def _curve_widths(result: Widths) -> Iterator[Column]:
    typical = result["typical"]
    headings = {"recall": f"recall {typical}", "precision": f"precision {typical}"} if typical else {}
    return _in_points({"accuracy": "accuracy", "error": ERROR_IN_ALL, **headings})


def _rounded(headings: Mapping[str, str]) -> Iterator[Column]:
    return _columns(headings, lambda number: Cell(rounded(number), number))


def _in_points(headings: Mapping[str, str]) -> Iterator[Column]:
    return _columns(headings, points)


def _columns(headings: Mapping[str, str], cell: Callable[[float], Cell]) -> Iterator[Column]:
    def column(key: str, heading: str) -> Column:
        return Column(key, heading, NUMBER, lambda row: cell(row[key]))

    return starmap(column, headings.items())


def width_words(result: Widths) -> str:
    expected = result["expected"]
    voted = f"is {'' if expected['voted'] else 'not '}one of the detectors"
    accuracy, error = points(result["accuracy"]).shown, points(result["error"]).shown
    return (
        f"The 95% interval of accuracy will be about {accuracy} points wide, and the interval of the detectors' error "
        f"about {error} points. Assumptions: the predictor {voted} and has an accuracy of "
        f"{percent(expected['accuracy'])}; {percent(expected['wrong'])} of the labels on which the detectors agree "
        "are wrong."
    )


def curve_plot(result: Widths) -> SafeString:
    typical = label_name(result["typical"]) if result["typical"] else ""
    names = {"accuracy": "accuracy", "error": ERROR_IN_ALL}
    names |= {measure: f"{measure}, {typical}" for measure in ("recall", "precision")} if typical else {}
    series = {
        name: [
            Spot(row["read"], 100 * row[key], words=f"{name}: {row['audits']:,.0f} audits, {100 * row[key]:.1f} points")
            for row in result["curve"]
            if row[key] is not None
        ]
        for key, name in names.items()
    }
    return lines(
        series, title="Width of the 95% interval by reading", across="posts that people read", up="width in points"
    )


def needed_table(needed: Sequence[Widths]) -> Table:
    heads = (
        Column("measure", "measure"),
        percentage("share", "audited"),
        *_rounded(NEEDED),
    )
    return table("audits for a desired width", heads, needed)


# --- Expected work by queue and annotators, from figures/finish_forecast.py


SHOWN = 5  # maximum number of languages in a sentence, largest first


def work_table(work: Mapping[str, Any], *, tested: bool) -> Table:
    """Return the table of expected work.

    tested: whether annotators must pass a test before they may work.
    """
    headings = {"units": "items", "agreed": "for the audit", "known": "decoys", "answers": "answers"}
    # Omit columns that contain only zeros.
    some = {key: head for key, head in headings.items() if key in ("units", "answers") or _sum(work, key)}
    people = {"readers": "readers"} | ({"qualified": "passed the test"} if tested else {})
    if any(row["able"] < row["readers"] for row in work["queues"]):
        people |= {"able": "may work now"}
    rows = [{**row, "language": row["queue"]} for row in work["queues"]]
    total = {**dict.fromkeys(people), **{key: _sum(work, key) for key in headings}, "language": ALL, "name": ALL}
    heads = (*LANGUAGE, *numbers(some), *numbers(people), Column("note", "note", NOTE, _note))
    return table("Expected work", heads, rows, total=[{**total, "needs": 0}] if len(rows) > 1 else [])


def _sum(work: Mapping[str, Any], key: str) -> int:
    return sum(row[key] for row in work["queues"])


def _note(row: Mapping[str, Any]) -> str:
    """Return a note for a queue with too few readers. Queues without readers are listed in a separate sentence."""
    if not row["readers"] or row["readers"] >= row["needs"]:
        return ""
    need = "each item needs" if row["several"] == row["units"] else f"{row['several']:,} of {row['units']:,} items need"
    return f"{need} {row['needs']} people, but the queue has fewer readers"


def work_words(work: Mapping[str, Any]) -> list[str]:
    return [*_people(work), *_audit_words(work["audit"]), *of_checks(work["checks"])]


def _people(work: Mapping[str, Any]) -> Iterator[str]:
    if not work["units"]:
        yield "People do not have to read any items."
        return
    yield (
        f"People must give at least {many(work['answers'], 'answer')} in {many(len(work['queues']), 'queue')}; skips "
        "and disagreements require more."
    )
    if work["unread"]:
        unread = sum(row["units"] for row in work["queues"] if not row["readers"])
        queues = many(len(work["unread"]), "queue")
        yield f"No active annotator reads {queues} with {many(unread, 'item')}: {' '.join(work['unread'])}."
    if not work["adjudicators"]:
        yield "There is no adjudicator for items on which readers disagree."


def _audit_words(audit: Mapping[str, Any] | None) -> Iterator[str]:
    if not audit or not audit["chosen"]:
        return
    is_partial = audit["chosen"] < audit["posts"]
    part = f"{audit['chosen']:,} of the" if is_partial else "all"
    yield (
        f"The audit includes {part} {audit['posts']:,} items on which the voters agree "
        f"({percent(audit['chosen'] / audit['posts'])}), in {_by_stratum(audit['languages'], 'posts')}. This takes "
        f"{hours_words(audit['hours'])} at the assumed pace. An adjudicator also reads {audit['recheck']:,} of "
        "these items."
    )
    mostly = ", ".join(label for label, of in audit["languages"].items() if 3 * of["chosen"] >= of["posts"])
    if mostly and is_partial:
        yield f"The audit includes a third or more of the items in: {mostly}."
    if audit["limit"] >= 1:
        return
    languages = audit["languages"]
    testable = sum(of["can_tell"] for of in languages.values())
    elsewhere = "Elsewhere" if testable else "So"
    yield (
        f"In {testable:,} of {_strata(len(languages), languages)}, the audit is large enough to show that at most "
        f"{percent(audit['limit'])} of the agreed labels are wrong. {elsewhere}, people read all items only if more "
        "are certainly wrong."
    )
    if chances := [of["chance"] for of in languages.values() if of["can_tell"] and of["chance"]]:
        between = " to ".join(dict.fromkeys(map(percent, (min(chances), max(chances)))))
        noun = "pair" if _are_pairs(languages) else "language"
        yield (
            f"A {noun} with 1% of its labels wrong fails the audit by chance in {between} of cases, depending on the "
            f"number of audits, and people then read all of its items: {audit['contested']:,.0f} more items in total, "
            "on average."
        )


def of_checks(checks: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield sentences about the number of checks and the adjudicators who make them."""
    if checks and checks["chosen"]:
        yield (
            f"A single reader decides {many(checks['units'], 'item')}. An adjudicator decides a random "
            f"{checks['chosen']:,} of these again, blind ({percent(checks['chosen'] / checks['units'])}), in "
            f"{_by_stratum(checks['languages'], 'units')}."
        )
    if checks and checks["seconds"]:
        yield (
            f"A second adjudicator decides {checks['seconds']:,} of the randomly selected cases again, and in "
            "addition some of the cases on which readers disagree."
        )
    if checks and checks["unseconded"]:
        yield NO_SECOND


def _strata(number: int, names: Iterable[str]) -> str:
    """Return a number of strata with the right noun: languages, or pairs of language and label, such as `en sports`."""
    return f"{many(number, 'pair')} of language and label" if _are_pairs(names) else many(number, "language")


def _are_pairs(names: Iterable[str]) -> bool:
    return any(" " in name for name in names)


def _by_stratum(languages: Mapping[str, Mapping[str, int]], whole: str) -> str:
    """Return the number of strata, and the strata with the most chosen units.

    whole: key of a stratum's total number of units.
    """
    largest = sorted(languages.items(), key=lambda of: (-of[1]["chosen"], of[0]))[:SHOWN]
    parts = ", ".join(f"{label} {of['chosen']:,} of {of[whole]:,}" for label, of in largest)
    return f"{_strata(len(languages), languages)}: {parts}{' …' if len(languages) > SHOWN else ''}"
