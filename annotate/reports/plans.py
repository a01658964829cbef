"""A plan in tables and sentences; in the terms of work/plan.py."""

from collections.abc import Iterator, Mapping
from typing import Any

from annotate.core.planning import DESIGNED
from annotate.reports.numbers import percent, rounded
from annotate.reports.tables import LANGUAGE, NUMBER, Cell, Column, Table, many, numbered, table

WHY = {
    "few": "the corpus has too few posts for so narrow an interval",
    "hidden": "too much may be hidden in what nobody reads in other languages",
}
CALLED = {"error": "error of the detectors' agreement"}


def measure_table(plan: Mapping[str, Any], measure: str) -> Table:
    """What can be had by a uniform draw; what cannot is said in `missing`."""
    rows = [row | {"language": row["language"] or "all"} for row in _of(plan, measure) if row["needs"]]
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


def _of(plan: Mapping[str, Any], measure: str) -> list[Mapping[str, Any]]:
    return [row for row in plan["rows"] if row["measure"] == measure]


def missing(plan: Mapping[str, Any], measure: str) -> Iterator[str]:
    """Which languages no uniform draw of the corpus suits, why, and what does; and which it suits at a high price."""
    for why, because in WHY.items():
        rows = [row for row in _of(plan, measure) if row["why"] == why]
        if not rows:
            continue
        instead = "Take a larger corpus, or be content with a wider interval."
        if measure in DESIGNED and why == "hidden":
            alone, decoys = rows[0]["alone"], rows[0]["decoys"]
            instead = f"Build {measure}-oriented sets of {many(alone, 'post')} and {many(decoys, 'decoy')} each."
        labels = " ".join(row["language"] or "all" for row in rows)
        yield f"No uniform draw suits {labels}: {because}. {instead}"
    dear = [row["language"] for row in _of(plan, measure) if row["needs"] and _is_dear(row)]
    if dear:
        yield f"For {' '.join(dear)}, a {measure}-oriented set takes a tenth of that reading or less."


def without_decoys(plan: Mapping[str, Any]) -> Iterator[str]:
    """How wide the intervals of sets for one language are while there are no decoys for them."""
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


def _is_dear(row: Mapping[str, Any]) -> bool:
    return row["alone"] is not None and row["needs"]["reading"] >= 10 * (row["alone"] + row["decoys"])


def in_points(wished: float) -> str:
    points = f"{100 * wished:g}"
    return f"{points} point{'' if points == '1' else 's'}"


def called(measure: str) -> str:
    return CALLED.get(measure, measure).capitalize()


def _needed(key: str, heading: str) -> Column:
    return Column(key, heading, NUMBER, lambda row: rounded(row["needs"][key]))


def recall_table(plan: Mapping[str, Any]) -> Table:
    headings = {"elsewhere": "audits elsewhere", "stated": "to state it", "wished": "to be as narrow"}
    heads = (
        *LANGUAGE,
        Column("posts", "its posts", NUMBER, lambda row: rounded(row["posts"])),
        Column("width", "points", NUMBER, lambda row: f"{100 * row['width']:.1f}"),
        *(Column(key, heading, NUMBER, lambda row, key=key: rounded(row[key])) for key, heading in headings.items()),
    )
    return table("recall in that draw", heads, plan["recall"])


def columns_words() -> str:
    return (
        "audited: the share of the agreed posts. its posts, disputed, audits, checks "
        "(by an adjudicator) and hours (checks included): of that language alone. read in all: in all languages. own "
        "set, decoys: posts to draw for a recall- or precision-oriented set that does as well, and the decoys hidden "
        "among them: posts that people found not to be in the language in another task."
    )


def words(plan: Mapping[str, Any], corpus: str, wished: float) -> Iterator[str]:
    draw, points = plan["draw"], in_points(wished)
    if draw is None:
        yield (
            f"No uniform draw of corpus {corpus} gives any of these an interval of {points}. Build sets of one "
            "language each (`assay open_task … --design recall` or `precision`), or take a larger corpus."
        )
        return
    more = (
        f"{rounded(draw['contested'])} more on average where the audit fails by chance, "
        if draw["contested"] >= 1
        else ""
    )
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
