"""Render evaluation reports as text, Markdown, LaTeX and self-contained HTML.

`evaluation_report.py` builds the content.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.template.loader import render_to_string
from django.utils.html import escape
from django.utils.safestring import mark_safe

from annotate.reports import evaluation_report, table_formats
from annotate.reports.evaluation_report import head_rows, name_of
from annotate.reports.plots import Row, axis_of, forest, intervals_in_text
from annotate.reports.slice_tables import MEASURES, capital, mark_of, noun_of
from annotate.reports.table_formats import as_lines, escape_markdown, parts, printable, underline, wrap
from annotate.reports.tables import many

NOT_IN_PAPERS = ("gold", "confusion", "reliability")  # slugs of sections that are omitted in LaTeX
PAPER_ROWS = 40  # maximum number of rows in a LaTeX table
LATEX_NEEDS = "% Requires \\usepackage{booktabs}. Labels in non-Latin scripts require XeLaTeX or LuaLaTeX.\n"
WHERE_METHODS = (
    "For each of these methods, a table on the page “Measuring” of Assay’s documentation (explanation/measuring.md) "
    "describes how figures are estimated, the assumptions, how often intervals cover the truth, and when the method "
    "fails."
)
FOLDED = 12  # maximum number of rows in a table that is not collapsed in HTML


def as_text(report: dict[str, Any]) -> str:
    """Render the report as text, at most 100 columns wide."""
    title, sentence, sections, how_to_read, notes = evaluation_report.contents(report)
    written = [underline(printable(title), "="), wrap(printable(sentence)), *_plot_in_text(report)]
    if warnings := report["warnings"]:
        lines = [wrap(printable(warning), "!! ", "!!   ") for warning in warnings]
        written.append("\n".join([f"!! {many(len(warnings), 'caveat').upper()}", *lines]))
    for section in sections:
        words = [underline(printable(section.title), "-")]
        if section.loud:
            words.append(wrap(section.loud, "! ", "  "))
        words += [wrap(printable(sentence)) for sentence in section.words if sentence]
        written.append("\n".join(words))
        if not section.paged:
            written += map(as_lines, section.tables)
    written.append("\n".join(wrap(sentence) for sentence in how_to_read))
    written.append("\n".join(wrap(printable(note)) for note in notes))
    return "\n\n".join(written) + "\n"


def as_markdown(report: dict[str, Any]) -> str:
    """Render the report in GitHub's Markdown. Text from files is escaped."""
    title, sentence, sections, how_to_read, notes = evaluation_report.contents(report)
    shown_sections = [
        {
            "title": escape_markdown(section.title),
            "words": [escape_markdown(sentence) for sentence in section.words if sentence],
            "loud": escape_markdown(section.loud),
            "tables": [parts(table) for table in section.tables],
        }
        for section in sections
    ]
    context = {
        "title": escape_markdown(title),
        "warned": many(len(report["warnings"]), "caveat"),
        "sentence": escape_markdown(sentence),
        "plot": "".join(_plot_in_text(report)),
        # The first sentence goes into an HTML block, so escape it as HTML. Everything else is Markdown.
        "caveats": [
            (escape(" ".join(first.split())), escape_markdown(rest), escape_markdown(first))
            for first, rest in caveats(report["warnings"])
        ],
        "how_to_read": how_to_read,
        "sections": shown_sections,
        "where_methods": escape_markdown(WHERE_METHODS),
        "methods": evaluation_report.methods(report),
        "notes": [escape_markdown(note).replace("\\`", "`") for note in notes],  # commands stay code
    }
    return render_to_string("annotate/report.md", context)


def as_latex(report: dict[str, Any]) -> str:
    """Render the report's tables in LaTeX, for use in a paper. Tables that are too long are omitted."""
    title, _, sections, _, _ = evaluation_report.contents(report)
    shown_sections = [section for section in sections if not section.paged and section.slug not in NOT_IN_PAPERS]
    return LATEX_NEEDS + "\n".join(
        table_formats.as_latex(table, f"{title}: {section.title}, with 95% intervals")
        for section in shown_sections
        for table in section.tables
        if len(table.rows) <= PAPER_ROWS
    )


def as_html(report: dict[str, Any]) -> str:
    """Render the report as a single HTML file with its styles and plots, without scripts or external resources.

    Figures link to a list of methods at the end of the file, because the URL of the documentation is unknown.
    """
    methods = {"method_page": "", "where_methods": WHERE_METHODS, "methods": evaluation_report.methods(report)}
    return render_to_string("annotate/report.html", as_context(report) | methods)


def as_context(report: dict[str, Any]) -> dict[str, Any]:
    """Return the template context for a report. Plots are drawn only when a template uses them."""
    title, sentence, sections, how_to_read, notes = evaluation_report.contents(report)
    rows, systems = _main_figures(report)
    shown_sections = [
        {
            "section": section,
            "plots": section.plots,
            "tables": [{"table": table, "folded": len(table.rows) > FOLDED} for table in section.tables],
        }
        for section in sections
    ]
    return {
        "title": title,
        "sentence": sentence,
        "plot": forest(rows, title="Main figures", counted=f"{noun_of(report)}s", series=systems) if rows else "",
        "warned": many(len(report["warnings"]), "caveat"),
        "caveats": list(caveats(report["warnings"])),
        "how_to_read": how_to_read,
        "notes": [
            mark_safe(re.sub("`([^`]+)`", r"<code>\1</code>", escape(note)))  # noqa: S308 - escaped before
            for note in notes
        ],
        "sections": shown_sections,
    }


# --- The plot of the main figures


def _main_figures(report: Mapping[str, Any]) -> tuple[list[Row], tuple[str, ...]]:
    """Return the rows of the plot, with a mark for each system, and the names of the systems."""
    comparison = report.get("comparison") or {}
    systems = {report["predictor"]["spelled"]: report["rows"]}
    if comparison.get("other_rows"):
        systems[comparison["other"]["spelled"]] = comparison["other_rows"]
    by_name = dict[str, Row]()
    for head in head_rows(report, report["rows"]):
        if MEASURES[head["measure"]].is_share and head["value"] is not None:
            # If a measure has figures for several sets of posts or labels, plot the first figure.
            name = capital(name_of(report, head, without=("posts", "labels")))
            key = head["measure"], head["of"]
            by_system = [
                next((row for row in rows if (row["measure"], row["of"]) == key), None) for rows in systems.values()
            ]
            by_name.setdefault(name, Row(name, "", tuple(map(mark_of, by_system))))
    # Where a measure lacks a figure for one system, show only the first system.
    rows = [row if all(row.marks) else row._replace(marks=row.marks[:1]) for row in by_name.values()]
    return rows, tuple(systems) if any(len(row.marks) > 1 for row in rows) else ()


def _plot_in_text(report: Mapping[str, Any]) -> list[str]:
    """Return the lines of the plot drawn with characters, for Markdown and terminals, or [] if there is none."""
    rows, systems = _main_figures(report)
    lines = [
        (f"{row.label}: {systems[index]}" if systems else row.label, mark)
        for row in rows
        for index, mark in enumerate(row.marks)
        if mark and mark.value is not None
    ]
    drawn = intervals_in_text(lines, axis_of(rows))
    return ["\n".join(drawn)] if drawn else []


# --- Caveats


def caveats(warnings: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Split each warning into its first sentence, which is always visible, and the rest, which is collapsed."""
    for warning in warnings:
        first, *rest = re.split(r"(?<=[.!?])\s+(?=[A-Z“])", warning, maxsplit=1)
        yield first, "".join(rest)
