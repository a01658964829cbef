"""Format text and tables in GitHub's Markdown, in LaTeX and for a terminal. Markdown and LaTeX are escaped."""

import json
import re
import textwrap
from typing import Any
from unicodedata import category, east_asian_width, normalize

from annotate.reports.numbers import distinct_ending, shorten
from annotate.reports.tables import NAME, NOTE, NUMBER, Table


def escape_markdown(string: str) -> str:
    """Escape text for GitHub's Markdown, including tables."""
    # Escape only where necessary: brackets if a link target could follow, list and heading markers at the start, and
    # underscores at the edge of a word.
    escaped = re.sub(
        r"[\\`*|~$]|(?<![^\W_])_|_(?![^\W_])|\](?=[(\[:])|^(?:[#>-]|\+(?=\s|$)|\d+(?=[.)](?:\s|$)))",
        _escaped_mark,
        " ".join(string.split()),
    )
    return escaped.replace("&", "&amp;").replace("<", "&lt;")


def _escaped_mark(match: re.Match[str]) -> str:
    mark = match[0]
    return f"{mark}\\" if mark.isdigit() else f"\\{mark}"


def code(string: str) -> str:
    """Return text as inline code, or as escaped text if it contains characters that break inline code."""
    line = " ".join(string.split())
    return f"`{line}`" if line and not {"`", "|"} & set(line) else escape_markdown(line)


def quote_yaml(string: str) -> str:
    """Quote text as a YAML string, which is a JSON string with some additional escapes."""
    return re.sub(
        r"[^ -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]",
        lambda match: f"\\u{ord(match[0]):04x}",
        json.dumps(string, ensure_ascii=False),
    )


def parts(table: Table) -> dict[str, Any]:
    """Return the template context for a table."""
    return {
        "heads": [escape_markdown(column.heading) or " " for column in table.columns],
        "rules": ["---:" if column.kind == NUMBER else "---" for column in table.columns],
        "rows": [[escape_markdown(cell.shown) for cell in row] for row in table.rows],
    }


# --- Tables in LaTeX, with the package booktabs


_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "−": "$-$", "≈": r"$\approx$", "<": r"$<$",
    ">": r"$>$", "’": "'", "|": r"\textbar{}", "«": "``", "»": "''", '"': "''",
    "`": "{`}",
}  # fmt: skip
# Characters that pdfLaTeX cannot print without additional packages.
_FOREIGN = re.compile("[^ -~¡-ª¬-º¼-ÏÑ-ÝßàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿĀ-ăĆ-ďĒ-ėĚ-ĥĨ-ĭİ-ķĹ-ľŁ-ňŌ-ťŨ-űŴ-ž‐-―‘-”†‡•…‰€™]+")


def escape_latex(text: object) -> str:
    """Escape text for LaTeX.

    XeLaTeX and LuaLaTeX print letters of all scripts supported by the font. pdfLaTeX prints dots in their place.
    """
    line = " ".join(normalize("NFC", str(text)).split())
    line = re.sub(r"[\\{}$&#_%~^–−≈<>’|«»\"`]", lambda match: _SPECIAL[match[0]], line)
    line = re.sub(r"(?<![\w.-])-(?=\d)", "$-$", line)
    # At the start of a row, LaTeX would parse these characters as arguments of the previous row's end.
    line = re.sub(r"^[\[*]", r"{\g<0>}", line)
    return _FOREIGN.sub(lambda match: f"\\ifdefined\\Umathcode {match[0]}\\else {_plain(match[0])}\\fi{{}}", line)


def _plain(letters: str) -> str:
    """Return Latin letters without their diacritics, and dots for other letters."""
    bare = "".join(letter for letter in normalize("NFD", letters) if category(letter) not in ("Mn", "Cf"))
    return bare if bare.isascii() else r"[\dots]"


def as_latex(table: Table, caption: str) -> str:
    """Return a LaTeX table environment. Columns of notes are omitted."""
    kept_columns = [index for index, column in enumerate(table.columns) if column.kind != NOTE]
    columns = [table.columns[index] for index in kept_columns]
    lines = [
        r"\begin{table}",
        r"\centering",
        f"\\caption{{{escape_latex(caption)}}}",
        f"\\begin{{tabular}}{{{''.join('r' if column.kind == NUMBER else 'l' for column in columns)}}}",
        r"\toprule",
        f"{' & '.join(escape_latex(column.heading) for column in columns)} \\\\",
        r"\midrule",
        *(f"{' & '.join(escape_latex(row[index].shown) for index in kept_columns)} \\\\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


# --- Text and tables for a terminal, at most 100 columns wide and without control characters


WIDTH = 100  # columns of a terminal
GAP = "  "
TIED = "\0"  # placeholder for a non-breaking space
LEAST = 12  # minimum width of a shortened cell


def printable(string: str) -> str:
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in " ".join(string.split())
    )


def wrap(string: str, first: str = "", rest: str = "") -> str:
    """Wrap text. Commands in backquotes stay on a single line, so that they can be copied.

    first, rest: indent of the first line, and of all other lines.
    """
    # If any character takes two columns, halve the width, because textwrap counts each character as one column.
    width = WIDTH if _wide(string) == len(string) else WIDTH // 2
    whole = re.sub(r"`[^`]+`", lambda command: command[0].replace(" ", TIED), string)
    filled = textwrap.fill(whole, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
    return filled.replace(TIED, " ")


def underline(string: str, line: str) -> str:
    return f"{string}\n{line * min(_wide(string), WIDTH)}"


def as_lines(table: Table) -> str:
    """Format a table as text, with its notes below.

    If the table is too wide, columns of names are omitted, and texts other than numbers are shortened.
    """
    cells = [[printable(cell.shown) for cell in row] for row in (*table.body, *table.total)]
    notes: dict[str, list[str]] = {}  # note -> first cells of the rows with this note
    for n, column in enumerate(table.columns):
        for row in cells if column.kind == NOTE else ():
            if row[n]:
                notes.setdefault(row[n], []).append(row[0])
    room = {
        n: max(map(_wide, (column.heading, *(row[n] for row in cells))))
        for n, column in enumerate(table.columns)
        if column.kind != NOTE
    }
    if sum(room.values()) + len(GAP) * (len(room) - 1) > WIDTH:
        room = {n: width for n, width in room.items() if table.columns[n].kind != NAME}
    wordy = [n for n in room if table.columns[n].kind != NUMBER]
    # Shorten the widest column until the table fits.
    while sum(room.values()) + len(GAP) * (len(room) - 1) > WIDTH and any(room[n] > LEAST for n in wordy):
        room[max(wordy, key=room.__getitem__)] -= 1
    long = [n for n in wordy if n in room and any(len(row[n]) > room[n] for row in cells)]
    ends = {n: distinct_ending({row[n] for row in cells}, room[n], 0) for n in long}
    lines = []
    for row in ([column.heading for column in table.columns], *cells):
        padded = []
        for n, width in room.items():
            string = row[n]
            if width < len(string) == _wide(string):
                string = shorten(string, width, ends.get(n, 0))
            if _wide(string) > width:
                while _wide(string) >= width:
                    string = string[:-1]
                string += "…"
            space = " " * (width - _wide(string))
            padded.append(space + string if table.columns[n].kind == NUMBER else string + space)
        lines.append(GAP.join(padded).rstrip())
    about = (f"{', '.join(dict.fromkeys(labels))}: {note}" for note, labels in notes.items())
    return "\n".join([*lines, *(wrap(line, "* ", "  ") for line in about)])


def _wide(string: str) -> int:
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in string)
