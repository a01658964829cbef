"""Tables in LaTeX, with the rules of the package booktabs; what comes from a file is shown as text."""

import re

from annotate.reports.tables import NOTE, NUMBER, Table

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "−": "$-$", "≈": r"$\approx$", "<": r"$<$",
    ">": r"$>$", "’": "'",
}  # fmt: skip


def escaped(words: str) -> str:
    return re.sub(r"[\\{}$&#_%~^–−≈<>’]", lambda found: _SPECIAL[found[0]], " ".join(words.split()))


def as_latex(table: Table, caption: str) -> str:
    """A table environment; columns of notes are left out."""
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
