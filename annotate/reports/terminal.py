"""Text and tables for a terminal. They are at most 100 columns wide and contain no control characters."""

import re
import textwrap
from unicodedata import east_asian_width

from annotate.reports.numbers import end_apart, shortened
from annotate.reports.tables import DIGEST, NAME, NOTE, NUMBER, Table

WIDTH = 100  # columns of a terminal
GAP = "  "
TIED = "\0"  # placeholder for a space at which a line must not break
SHORT_DIGEST = 12
LEAST = 12  # minimum width of a shortened cell


def printable(words: str) -> str:
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in " ".join(words.split())
    )


def wrapped(words: str, first: str = "", rest: str = "") -> str:
    """Wrap text. A command in backquotes stays on one line, so that it can be copied.

    first, rest: indent of the first line, and of all lines after it.
    """
    # Halve the width if any character takes two columns, because textwrap counts each character as one.
    width = WIDTH if _wide(words) == len(words) else WIDTH // 2
    whole = re.sub(r"`[^`]+`", lambda command: command[0].replace(" ", TIED), words)
    filled = textwrap.fill(whole, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
    return filled.replace(TIED, " ")


def underlined(words: str, line: str) -> str:
    return f"{words}\n{line * min(_wide(words), WIDTH)}"


def as_lines(table: Table) -> str:
    """Return a table as text, with its notes below.

    If the table is too wide, names are omitted and texts are shortened, but numbers are not.
    """
    cells = [[printable(cell.shown) for cell in row] for row in (*table.body, *table.total)]
    notes: dict[str, list[str]] = {}  # first cells of the rows that have each note
    for n, column in enumerate(table.columns):
        for row in cells if column.kind == NOTE else ():
            if row[n]:
                notes.setdefault(row[n], []).append(row[0])
        if column.kind == DIGEST:
            cells = [[*row[:n], row[n][:SHORT_DIGEST], *row[n + 1 :]] for row in cells]
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
    ends = {n: end_apart({row[n] for row in cells}, room[n], 0) for n in long}
    lines = []
    for row in ([column.heading for column in table.columns], *cells):
        padded = []
        for n, width in room.items():
            words = row[n]
            if width < len(words) == _wide(words):
                words = shortened(words, width, ends.get(n, 0))
            if _wide(words) > width:
                while _wide(words) >= width:
                    words = words[:-1]
                words += "…"
            space = " " * (width - _wide(words))
            padded.append(space + words if table.columns[n].kind == NUMBER else words + space)
        lines.append(GAP.join(padded).rstrip())
    about = (f"{', '.join(dict.fromkeys(labels))}: {note}" for note, labels in notes.items())
    return "\n".join([*lines, *(wrapped(line, "* ", "  ") for line in about)])


def _wide(words: str) -> int:
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in words)
