"""Text and tables in GitHub's Markdown and in LaTeX. Text from files is escaped."""

import json
import re
from typing import Any

from annotate.reports.tables import NOTE, NUMBER, Table


def marked_down(words: str) -> str:
    """Escape text for GitHub's Markdown, including tables."""
    # Escape no more than necessary: a bracket only if a link target could follow, marks of lists and headings only at
    # the start, and an underscore only at the edge of a word.
    escaped = re.sub(
        r"[\\`*|~$]|(?<![^\W_])_|_(?![^\W_])|\](?=[(\[:])|^(?:[#>-]|\+(?=\s|$)|\d+(?=[.)](?:\s|$)))",
        _escaped_mark,
        " ".join(words.split()),
    )
    return escaped.replace("&", "&amp;").replace("<", "&lt;")


def _escaped_mark(found: re.Match[str]) -> str:
    mark = found[0]
    return f"{mark}\\" if mark.isdigit() else f"\\{mark}"


def code(words: str) -> str:
    """Return text as inline code. If Markdown cannot show it as code everywhere, return it as escaped text."""
    shown = " ".join(words.split())
    return f"`{shown}`" if shown and not {"`", "|"} & set(shown) else marked_down(shown)


def in_yaml(words: str) -> str:
    """Return text as a YAML string, which is a JSON string with some additional escapes."""
    return re.sub(
        r"[^ -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]",
        lambda found: f"\\u{ord(found[0]):04x}",
        json.dumps(words, ensure_ascii=False),
    )


def parts(table: Table) -> dict[str, Any]:
    """Return the template context for a table."""
    return {
        "heads": [marked_down(column.heading) or " " for column in table.columns],
        "rules": ["---:" if column.kind == NUMBER else "---" for column in table.columns],
        "rows": [[marked_down(cell.shown) for cell in row] for row in table.rows],
    }


# --- Tables in LaTeX, with the rules of the package booktabs


_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "−": "$-$", "≈": r"$\approx$", "<": r"$<$",
    ">": r"$>$", "’": "'",
}  # fmt: skip


def escaped(words: str) -> str:
    return re.sub(r"[\\{}$&#_%~^–−≈<>’]", lambda found: _SPECIAL[found[0]], " ".join(words.split()))


def as_latex(table: Table, caption: str) -> str:
    """Return a LaTeX table environment. Columns of notes are omitted."""
    kept = [place for place, column in enumerate(table.columns) if column.kind != NOTE]
    columns = [table.columns[place] for place in kept]
    lines = [
        r"\begin{table}",
        r"\centering",
        f"\\caption{{{escaped(caption)}}}",
        f"\\begin{{tabular}}{{{''.join('r' if column.kind == NUMBER else 'l' for column in columns)}}}",
        r"\toprule",
        f"{' & '.join(escaped(column.heading) for column in columns)} \\\\",
        r"\midrule",
        *(f"{' & '.join(escaped(row[place].shown) for place in kept)} \\\\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"
