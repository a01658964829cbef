"""Tables, a plot and sentences about planned draws, expected interval widths and expected work.

The rows come from `draw_plan.py` and `finish_forecast.py`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import starmap
from typing import Any

from django.utils.safestring import SafeString

from annotate.controls.checks import NO_SECOND
from annotate.figures.interval_width import AUDITS, CHECKS, DESIGNED, POSTS, SECONDS
from annotate.kinds.interface_language import label_name
from annotate.reports.numbers import NOT_MEASURED, in_points, percent, rounded
from annotate.reports.square_plots import Spot, lines
from annotate.reports.tables import LANGUAGE, NOTE, NUMBER, Cell, Column, Table, many, numbered, numbers, table

WHY = {
    "few": "the corpus has too few posts for so narrow an interval",
    "hidden": "too much may be hidden in what nobody reads in other languages",
}
CALLED = {"error": "error of the detectors' agreement"}


def measure_table(plan: Mapping[str, Any], measure: str) -> Table:
    """Return the table of languages for which a uniform draw is sufficient.

    `missing` explains the remaining languages.
    """
    possible = [row for row in plan["rows"] if row["measure"] == measure and row["needs"]]
    rows = [row | {"language": row["language"] or "all"} for row in possible]
    heads = (
        *LANGUAGE,
        Column("share", "share", NUMBER, lambda row: Cell(percent(row["share"]), row["share"])),
        _needed("size", "to draw"),
        Column("audited", "audited", NUMBER, lambda row: f"{row['needs']['audit_share']:.0%}"),
        _needed("posts", "its posts"),
        *(_needed(key, key) for key in ("disputed", "audits", "checks", "hours")),
        _needed("reading", "read in all"),
        *([numbered("alone", "own set"), numbered("decoys", "decoys")] if measure in DESIGNED else []),
    )
    return table(CALLED.get(measure, measure), heads, rows)


def missing(plan: Mapping[str, Any], measure: str) -> Iterator[str]:
    """Yield sentences about languages for which a uniform draw is insufficient or expensive. They name alternatives."""
    of_measure = [row for row in plan["rows"] if row["measure"] == measure]
    for why, because in WHY.items():
        rows = [row for row in of_measure if row["why"] == why]
        if not rows:
            continue
        instead = "Take a larger corpus, or be content with a wider interval."
        if measure in DESIGNED and why == "hidden":
            alone, decoys = rows[0]["alone"], rows[0]["decoys"]
            instead = f"Build {measure}-oriented sets of {many(alone, 'post')} and {many(decoys, 'decoy')} each."
        labels = " ".join(row["language"] or "all" for row in rows)
        yield f"No uniform draw suits {labels}: {because}. {instead}"
    both = [row for row in of_measure if row["needs"] and row["alone"] is not None]
    dear = [row["language"] for row in both if row["needs"]["reading"] >= 10 * (row["alone"] + row["decoys"])]
    if dear:
        yield f"For {' '.join(dear)}, a {measure}-oriented set takes a tenth of that reading or less."


def without_decoys(plan: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence about the interval widths that sets for one language have without decoys."""
    own = {row["measure"]: row["without_decoys"] for row in plan["rows"] if row["without_decoys"]}
    widths = ", ".join(
        f"{measure} " + " or ".join(f"{100 * each['width']:.1f} points ({each['false_yes']:.0%})" for each in found)
        for measure, found in own.items()
    )
    if widths:
        yield (
            "A corpus has no decoys until people have found posts not to be in a language. Without decoys false Yes is "
            f"unknown, and these sets' intervals are this wide for the share in brackets: {widths}."
        )


def called(measure: str) -> str:
    return CALLED.get(measure, measure).capitalize()


def _needed(key: str, heading: str) -> Column:
    return Column(key, heading, NUMBER, lambda row: rounded(row["needs"][key]))


def recall_table(plan: Mapping[str, Any]) -> Table:
    heads = (
        *LANGUAGE,
        *_rounded({"posts": "its posts"}),
        Column("width", "points", NUMBER, lambda row: f"{100 * row['width']:.1f}"),
        *_rounded({"elsewhere": "audits elsewhere", "stated": "to state it", "wished": "to be as narrow"}),
    )
    return table("recall in that draw", heads, plan["recall"])


def columns_words() -> str:
    return (
        "audited: the share of the agreed posts. its posts, disputed, audits, checks "
        "(by an adjudicator) and hours (checks included): of that language alone. read in all: in all languages. own "
        "set, decoys: posts to draw for a recall- or precision-oriented set that does as well, and the decoys hidden "
        "among them: posts that people found not to be in the language in another task."
    )


def draw_words(plan: Mapping[str, Any], corpus: str, wished: float) -> Iterator[str]:
    draw, points = plan["draw"], in_points(wished)
    if draw is None:
        yield (
            f"No uniform draw of corpus {corpus} gives any of these an interval of {points}. Build sets of one "
            "language each (`assay open_task … --design recall` or `precision`), or take a larger corpus."
        )
        return
    contested = rounded(draw["contested"]) if draw["contested"] >= 1 else ""
    more = f"{contested} more on average where the audit fails by chance, " if contested else ""
    yield (
        f"The draw that suits most: {many(draw['size'], 'post')}. People read {rounded(draw['disputed'])} disputed "
        f"posts and {rounded(draw['audits'])} audits, {more}and an adjudicator {rounded(draw['checks'])} checks. "
        f"That is {rounded(draw['hours'])} hours, or {rounded(draw['weeks'])} weeks of one person. It gives "
        f"{points} or less to {draw['suits']} of {many(draw['of'], 'figure')}."
    )
    yield (
        f"`assay open_task TASK --corpus {corpus} --seed 1 --size {draw['size']} --audit-share "
        f"{draw['audit_share']:g} --audit-least {draw['audit_least']} --dry-run`"
    )


# --- Expected widths of a uniform draw, and the curve of width by reading


Widths = Mapping[str, Any]
ERROR_IN_ALL = "error of agreement"
NEEDED = {"audits": "audits", "read": "read in all", "hours": "hours"}
NEEDED_WORDS = (
    "recall, precision, error: in most of the languages of which 30 posts or more are drawn. A dash: not even reading "
    "every post is enough; draw more."
)


def points(width: float | None) -> Cell:
    return Cell(NOT_MEASURED if width is None else f"{100 * width:.1f}", width)


def language_table(found: Widths) -> Table:
    posts, widths = _rounded({"posts": "posts", "audits": "audits"}), ("recall", "precision", "error")
    heads = (*LANGUAGE, *posts, *_in_points(dict(zip(widths, widths, strict=True))))
    return table("expected width of the 95% interval, in points", heads, found["languages"])


def curve_table(found: Widths) -> Table:
    """Return the table of interval widths by audit share. An arrow marks the task's own audit share."""

    def share(row: Widths) -> Cell:
        own = row["share"] == found["share"]
        return Cell(f"{'→ ' if own else ''}{percent(row['share'])}", row["share"])

    heads = (Column("share", "audited", NUMBER, share), *_rounded(NEEDED), *_curve_widths(found))
    return table("width by audits", heads, found["curve"])


def next_words(found: Widths) -> str:
    best = found["next"][0]["work"] if found["next"] else ""
    return f"For as many more posts to read, {best} would narrow accuracy most:" if best else ""


def next_table(found: Widths) -> Table:
    heads = (Column("work", "more of"), *_rounded({"more": "posts read"}), *_curve_widths(found))
    return table("width by further work", heads, found["next"])


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


def further_table(found: Widths, does: Callable[[Widths], Cell | str]) -> Table:
    """Return the table of further work that reaches the required width or comes closest to it.

    does: function that returns how to do the work in a row.
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
    return table("width of accuracy by further work", heads, found["rows"])


def further_words(found: Widths) -> str:
    now = points(found["width"]).shown
    measured = (
        f"For a predictor that is right in {percent(found['accuracy'])} of the posts, the 95% interval of accuracy "
        f"will be about {now} points wide when all that is chosen has been read"
    )
    if not found["rows"]:
        narrow = found["width"] <= found["wished"]
        rest = "which is as narrow as wished" if narrow else "and no further work would make it narrower"
        return f"{measured}, {rest}."
    pace = f"at {found['seconds']:,.1f} seconds an answer"
    all_there_is = " Rows with a larger width are all the work there is of that kind."
    short = "" if all(row["enough"] for row in found["rows"]) else all_there_is
    wished = in_points(found["wished"])
    return f"{measured}. Further work for {wished}, {pace}; what narrows most per hour comes first.{short}"


def _curve_widths(found: Widths) -> Iterator[Column]:
    typical = found["typical"]
    of = {"recall": f"recall {typical}", "precision": f"precision {typical}"} if typical else {}
    return _in_points({"accuracy": "accuracy", "error": ERROR_IN_ALL, **of})


def _rounded(headings: Mapping[str, str]) -> Iterator[Column]:
    def column(key: str, heading: str) -> Column:
        return Column(key, heading, NUMBER, lambda row: Cell(rounded(row[key]), row[key]))

    return starmap(column, headings.items())


def _in_points(headings: Mapping[str, str]) -> Iterator[Column]:
    def column(key: str, heading: str) -> Column:
        return Column(key, heading, NUMBER, lambda row: points(row[key]))

    return starmap(column, headings.items())


def width_words(found: Widths) -> str:
    expected = found["expected"]
    voted = "voted" if expected["voted"] else "did not vote"
    accuracy, error = points(found["accuracy"]).shown, points(found["error"]).shown
    return (
        f"The 95% interval of accuracy will be about {accuracy} points wide, and that of the error of agreement "
        f"{error}. This expects a predictor that {voted} and is right in "
        f"{percent(expected['accuracy'])} of the posts, and agreement that is wrong in {percent(expected['wrong'])}."
    )


def curve_plot(found: Widths) -> SafeString:
    typical = label_name(found["typical"]) if found["typical"] else ""
    names = {"accuracy": "accuracy", "error": ERROR_IN_ALL}
    names |= {measure: f"{measure}, {typical}" for measure in ("recall", "precision")} if typical else {}
    series = {
        name: [
            Spot(row["read"], 100 * row[key], words=f"{name}: {row['audits']:,.0f} audits, {100 * row[key]:.1f} points")
            for row in found["curve"]
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
        Column("share", "audited", NUMBER, lambda row: Cell(percent(row["share"]), row["share"])),
        *_rounded(NEEDED),
    )
    return table("audits for a wished width", heads, needed)


# --- Expected work by queue and annotators, from figures/finish_forecast.py


SHOWN = 5  # maximum number of languages in a sentence; those with the largest numbers are named


def work_table(work: Mapping[str, Any], *, tested: bool) -> Table:
    """Return the table of expected work.

    tested: whether people must pass a test before they may work.
    """
    headings = {"units": "units", "agreed": "for the audit", "known": "decoys", "answers": "answers"}
    # Omit columns that contain only zeros.
    some = {key: head for key, head in headings.items() if key in ("units", "answers") or _sum(work, key)}
    people = {"readers": "readers"} | ({"qualified": "passed the test"} if tested else {})
    if any(row["able"] < row["readers"] for row in work["queues"]):
        people |= {"able": "may work now"}
    rows = [{**row, "language": row["queue"]} for row in work["queues"]]
    total = {**dict.fromkeys(people), **{key: _sum(work, key) for key in headings}, "language": "all", "name": ""}
    heads = (*LANGUAGE, *numbers(some), *numbers(people), Column("note", "note", NOTE, _note))
    return table("Expected work", heads, rows, total=[{**total, "needs": 0}] if len(rows) > 1 else [])


def _sum(work: Mapping[str, Any], key: str) -> int:
    return sum(row[key] for row in work["queues"])


def _note(row: Mapping[str, Any]) -> str:
    """Return a note for a queue with too few readers.

    A queue without readers gets no note, because one sentence names all such queues.
    """
    if not row["readers"] or row["readers"] >= row["needs"]:
        return ""
    asking = "each unit asks" if row["several"] == row["units"] else f"{row['several']:,} of {row['units']:,} units ask"
    return f"{asking} for {row['needs']} people, and fewer read it"


def work_words(work: Mapping[str, Any]) -> list[str]:
    return [*_people(work), *_audit_words(work["audit"]), *of_checks(work["checks"])]


def _people(work: Mapping[str, Any]) -> Iterator[str]:
    if not work["units"]:
        yield "No unit goes to people."
        return
    yield (
        f"People are asked for {many(work['answers'], 'answer')} at least, in {many(len(work['queues']), 'queue')}; "
        "what they skip or differ on asks for more."
    )
    if work["unread"]:
        unread = sum(row["units"] for row in work["queues"] if not row["readers"])
        queues = many(len(work["unread"]), "queue")
        yield f"Nobody who may log in reads {queues} with {many(unread, 'unit')}: {' '.join(work['unread'])}."
    if not work["adjudicators"]:
        yield "There is no adjudicator for what readers cannot settle."


def _audit_words(audit: Mapping[str, Any] | None) -> Iterator[str]:
    if not audit or not audit["chosen"]:
        return
    yield (
        f"The audit takes {audit['chosen']:,} of the {audit['posts']:,} posts on which the detectors agree "
        f"({percent(audit['chosen'] / audit['posts'])}), in {_by_language(audit['languages'], 'posts')}. "
        f"That is {rounded(audit['hours'])} hours at the supposed pace. An adjudicator reads {audit['recheck']:,} of "
        "them besides."
    )
    if mostly := " ".join(label for label, of in audit["languages"].items() if 3 * of["chosen"] >= of["posts"]):
        yield f"It takes a third or more of the posts in: {mostly}."
    if audit["limit"] >= 1:
        return
    languages = audit["languages"]
    able = sum(of["can_tell"] for of in languages.values())
    yield (
        f"The audit can test the limit of {percent(audit['limit'])} in {able:,} of {many(len(languages), 'language')}; "
        "another language goes to people only if certainly more of it is wrong."
    )
    if chances := [of["chance"] for of in languages.values() if of["can_tell"] and of["chance"]]:
        between = " to ".join(dict.fromkeys(map(percent, (min(chances), max(chances)))))
        yield (
            f"A language in which 1% of the agreement is wrong fails the audit by chance, and is read in full, in "
            f"{between} of cases, by how many are audited: {audit['contested']:,.0f} more posts on average in all."
        )


def of_checks(checks: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield sentences about the number of checks and who makes them."""
    if checks and checks["chosen"]:
        yield (
            f"One reader decides {many(checks['units'], 'unit')}. Of these an adjudicator decides "
            f"{checks['chosen']:,} again, by lot and blind ({percent(checks['chosen'] / checks['units'])}), in "
            f"{_by_language(checks['languages'], 'units')}."
        )
    if checks and checks["seconds"]:
        yield (
            f"Of what is adjudicated by lot, a second adjudicator decides {checks['seconds']:,} again; what readers "
            "cannot settle adds to that."
        )
    if checks and checks["unseconded"]:
        yield NO_SECOND


def _by_language(languages: Mapping[str, Mapping[str, int]], whole: str) -> str:
    """Return the number of languages, and the languages with the most chosen units.

    whole: key of the number of units from which they were chosen.
    """
    most = sorted(languages.items(), key=lambda of: (-of[1]["chosen"], of[0]))[:SHOWN]
    named = ", ".join(f"{label} {of['chosen']:,} of {of[whole]:,}" for label, of in most)
    return f"{many(len(languages), 'language')}: {named}{' …' if len(languages) > SHOWN else ''}"
