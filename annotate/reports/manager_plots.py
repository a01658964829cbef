"""How the figures of managing.py and agreeing.py are drawn."""

from django.utils.safestring import SafeString

from annotate.core.labels import label_name
from annotate.core.pausing import Rule
from annotate.pages.manager_tables import PARTS
from annotate.reports.numbers import percent
from annotate.reports.plots import Mark, Row, forest
from annotate.reports.work_plots import Moment, Parts, Span, columns, ranges, stacked

NONE = SafeString("")


def progress_plot(progress: dict) -> SafeString:
    rows = sorted(progress["languages"], key=lambda row: (-row["units"], row["language"]))
    parts = [
        Parts(row["language"] or "–", label_name(row["language"]), tuple(row[stage] for stage, _ in PARTS))
        for row in rows
        if any(row[stage] for stage, _ in PARTS)
    ]
    return stacked(parts, [words for _, words in PARTS], title="Units by language and stage") if parts else NONE


def last_day_plot(pace: dict) -> SafeString:
    moments = [
        Moment(f"{row['at']:%H}" if row["at"].hour % 3 == 0 else "", f"{row['at']:%A %H:%M}", row["answers"])
        for row in pace["last_day"]
    ]
    return columns(moments, title="Answers an hour in the last 24 hours")


SAID = {"hour": "%a %d %b, %H:%M", "day": "%a %d %b %Y", "week": "the week of %d %b %Y"}
TICKS = 6  # below a plot over time, at most


def since_plot(pace: dict) -> SafeString:
    rows = pace["since"]
    if not rows:
        return NONE
    every = -(-len(rows) // TICKS)
    form = "%d %b %H:00" if pace["cut"] == "hour" else "%d %b"
    moments = [
        # Not at the very ends, where words would be cut off.
        Moment(
            f"{row['at']:{form}}" if place % every == every // 2 else "",
            f"{row['at']:{SAID[pace['cut']]}}",
            row["answers"],
        )
        for place, row in enumerate(rows)
    ]
    return columns(moments, title=f"Answers {_a(pace['cut'])} since the beginning")


def _a(cut: str) -> str:
    return "an hour" if cut == "hour" else f"a {cut}"


def times_plot(rows: list[dict], title: str, names: dict[int, str]) -> SafeString:
    spans = [
        Span(*_code_and_name(row, names), *row["quartiles"], row["count"])
        for row in sorted(rows, key=lambda row: row["quartiles"][1])
    ]
    return ranges(spans, title=title) if spans else NONE


def _code_and_name(row: dict, names: dict[int, str]) -> tuple[str, str]:
    if "annotator" in row:
        return names.get(row["annotator"], "?"), ""
    return row["language"] or "–", label_name(row["language"])


def accuracy_plot(people: list[dict], rule: Rule) -> SafeString:
    """Who is right in how many gold answers, the worst first, with the line below which the task pauses."""
    found = [row for row in people if row["known"]]
    found.sort(key=lambda row: (row["known"]["accuracy"]["value"], row["name"]))
    rows = [
        Row(row["name"], "", (Mark(made["value"], made["low"], made["high"], row["known"]["asked"]),))
        for row in found
        if (made := row["known"]["accuracy"])
    ]
    bar = (rule.below, f"asked for: {percent(rule.below)}") if rule.below else None
    if not rows:
        return NONE
    return forest(rows, title="Right in gold answers", counted="asked", axis=(0, 100), limit=bar)


def agreement_plot(report: dict) -> SafeString:
    key = "ordinal" if report["ordered"] else "nominal"
    parts = {code: part[key] for code, part in report["languages"].items() if part[key]["value"] is not None}
    if len(parts) != 1:
        parts["all"] = report["all"][key]
    rows = [Row(code, label_name(code) if code != "all" else "", (_mark(made),)) for code, made in parts.items()]
    if report["all"][key]["value"] is None:
        return NONE
    title = f"Krippendorff’s alpha ({key})"
    return forest(rows, title=title, counted="units", axis=(0, 100), decimals=True)


def _mark(made: dict) -> Mark:
    low, high = (made["value"] if made[end] is None else made[end] for end in ("low", "high"))
    return Mark(made["value"], low, high, made["units"])


def against_rest_plot(report: dict, names: dict[int, str]) -> SafeString:
    rows = [
        Row(names.get(row["annotator"], row["pseudonym"]), "", (_mark(row["agreement"]),))
        for row in report["all"]["against_rest"]
        if row["agreement"]["value"] is not None
    ]
    if not rows:
        return NONE
    return forest(rows, title="Each annotator against the rest", counted="units", axis=(0, 100), decimals=True)
