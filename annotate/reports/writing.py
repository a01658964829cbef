"""A report of `evaluate` written down: for a terminal, in Markdown, and as one HTML file that fetches nothing.

What it says is in report_sections.py, or in record_report.py where records were measured; here is how it looks, and
which plots go with it.
"""

import re
import textwrap
from unicodedata import east_asian_width

from django.template.loader import render_to_string

from annotate.reports import predictor_report, xglue_report
from annotate.reports.predictor_report import DIGEST, NAME, NOTE, NUMBER, Table
from annotate.reports.report_plots import PLOTS

WIDTH = 100  # of a terminal, in columns
GAP = "  "
SHORT_DIGEST = 12
LEAST = 12  # columns of a terminal that a shortened cell keeps
FOLDED = 12  # a table of more rows is folded in the HTML


def _says(report: dict):
    """The module that has the words of a report."""
    return xglue_report if report.get("kind") == "records" else predictor_report


def as_text(report: dict) -> str:
    """At most 100 columns wide; the warnings first."""
    says = _says(report)
    parts = [_underlined(_printable(says.title(report)), "=")]
    if warnings := report.get("warnings"):
        bar = "!" * WIDTH
        lines = [_wrapped(_printable(words), "!! ", "!!   ") for words in warnings]
        parts.append("\n".join([bar, f"!! {_warned(warnings).upper()}", *lines, bar]))
    if headlines := says.headlines(report):
        # Room for the longest name, and for an estimate.
        room = max(len(name) for name, _, _ in headlines) + len(GAP)
        lines = [(f"{name:<{room}}{number:<22}", _printable(words)) for name, number, words in headlines]
        parts.append("\n".join(_wrapped(words, start, " " * len(start)) for start, words in lines))
    for section in says.sections(report):
        written = [_underlined(_printable(section.title), "-")]
        if section.loud:
            written.append(_wrapped(section.loud, "!! ", "!! "))
        written += [_wrapped(_printable(words)) for words in section.words if words]
        parts.append("\n".join(written))
        parts += [text_table(table) for table in section.tables]
    parts.append("\n".join(_wrapped(words) for words in says.HOW_TO_READ))
    return "\n\n".join(parts) + "\n"


def as_markdown(report: dict) -> str:
    """GitHub's Markdown; whatever comes from a file is text there and no markup."""
    says = _says(report)
    found = [
        {
            "title": _marked_down(section.title),
            "words": [_marked_down(words) for words in section.words if words],
            "loud": _marked_down(section.loud),
            "tables": [
                {
                    "heads": [_marked_down(heading) or " " for heading, _ in table.columns],
                    "rules": ["---:" if kind == NUMBER else "---" for _, kind in table.columns],
                    "rows": [[_marked_down(cell) for cell in row] for row in table.rows],
                }
                for table in section.tables
            ],
        }
        for section in says.sections(report)
    ]
    warnings = report.get("warnings") or []
    context = {
        "title": _marked_down(says.title(report)),
        "warned": _warned(warnings),
        "warnings": [_marked_down(words) for words in warnings],
        "headlines": [[_marked_down(words) for words in line] for line in says.headlines(report)],
        "how_to_read": says.HOW_TO_READ,
        "sections": found,
    }
    return render_to_string("annotate/report.md", context)


def as_html(report: dict) -> str:
    """One file with its styles and plots inside: no script, nothing fetched."""
    says = _says(report)
    found = [
        {
            "section": section,
            "plots": PLOTS[section.slug](report) if section.slug in PLOTS else [],
            "tables": [
                {
                    "what": table.what,
                    "folded": len(table.rows) > FOLDED,
                    "columns": table.columns,
                    "rows": [
                        [(cell, kind) for cell, (_, kind) in zip(row, table.columns, strict=True)] for row in table.rows
                    ],
                }
                for table in section.tables
            ],
        }
        for section in says.sections(report)
    ]
    context = {
        "title": says.title(report),
        "warned": _warned(report.get("warnings") or []),
        "warnings": report.get("warnings") or [],
        "headlines": says.headlines(report),
        "how_to_read": says.HOW_TO_READ,
        "sections": found,
    }
    return render_to_string("annotate/report.html", context)


def _warned(warnings: list) -> str:
    return f"{len(warnings)} warning{'' if len(warnings) == 1 else 's'}"


def _marked_down(words: str) -> str:
    """Text that GitHub's Markdown shows as it is, in a table too."""
    # A bracket matters where a link's target could follow, a list's or heading's mark at the beginning alone.
    escaped = re.sub(r"[\\`*_|~$]|\](?=[(\[:])|^(?:[#+>-]|\d+(?=[.)](?:\s|$)))", _escaped_mark, " ".join(words.split()))
    return escaped.replace("&", "&amp;").replace("<", "&lt;")


def _escaped_mark(found: re.Match) -> str:
    mark = found[0]
    return f"{mark}\\" if mark.isdigit() else f"\\{mark}"


def _printable(words: str) -> str:
    """Without what a terminal takes for a command."""
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in " ".join(words.split())
    )


def _wrapped(words: str, first: str = "", rest: str = "") -> str:
    # textwrap counts letters, and some take two columns.
    width = WIDTH if _wide(words) == len(words) else WIDTH // 2
    return textwrap.fill(words, width, initial_indent=first, subsequent_indent=rest)


def _underlined(words: str, line: str) -> str:
    return f"{words}\n{line * min(_wide(words), WIDTH)}"


def _wide(words: str) -> int:
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in words)


def text_table(table: Table) -> str:
    cells = [[_printable(cell) for cell in row] for row in table.rows]
    notes = _notes(table, cells)
    for n, (_, kind) in enumerate(table.columns):
        if kind == DIGEST:
            cells = [[*row[:n], row[n][:SHORT_DIGEST], *row[n + 1 :]] for row in cells]
    kept = [n for n, (_, kind) in enumerate(table.columns) if kind != NOTE]
    if sum(_widths(table, cells, kept)) + len(GAP) * (len(kept) - 1) > WIDTH:
        kept = [n for n in kept if table.columns[n][1] != NAME]
    widths = _widths(table, cells, kept)
    # What is still too wide is shortened where it is widest; numbers never are.
    while sum(widths) + len(GAP) * (len(kept) - 1) > WIDTH:
        wordy = [i for i, n in enumerate(kept) if table.columns[n][1] != NUMBER and widths[i] > LEAST]
        if not wordy:
            break
        widths[max(wordy, key=lambda i: widths[i])] -= 1
    lines = []
    for row in ([heading for heading, _ in table.columns], *cells):
        padded = [_padded(row[n], width, table.columns[n][1]) for n, width in zip(kept, widths, strict=True)]
        lines.append(GAP.join(padded).rstrip())
    return "\n".join([*lines, *notes])


def _widths(table: Table, cells: list, kept: list[int]) -> list[int]:
    return [max(map(_wide, (table.columns[n][0], *(row[n] for row in cells)))) for n in kept]


def _padded(words: str, width: int, kind: str) -> str:
    if _wide(words) > width:
        while _wide(words) >= width:
            words = words[:-1]
        words += "…"
    room = " " * (width - _wide(words))
    return room + words if kind == NUMBER else words + room


def _notes(table: Table, cells: list) -> list[str]:
    """Each note once, behind the languages that it is about."""
    found: dict[str, list[str]] = {}
    for n, (_, kind) in enumerate(table.columns):
        for row in cells if kind == NOTE else ():
            if row[n]:
                found.setdefault(row[n], []).append(row[0])
    lines = (f"{', '.join(labels)}: {note}" for note, labels in found.items())
    return [_wrapped(line, "* ", "  ") for line in lines]
