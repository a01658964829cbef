"""Limits on the size and structure of guidelines, so that a page can render the whole text quickly."""

import re

MOST_BYTES = 100_000
# Markdown pads every table row to the width of the header, so a header with a thousand columns creates a thousand cells
# in each row.
MOST_COLUMNS = 50
# After each opening bracket, the parser scans the rest of the paragraph for a closing one. A paragraph with many
# opening brackets is therefore slow.
MOST_BRACKETS = 1_000
_BLANK = re.compile(r"(?<=\n)(?=[ \t]*\n)")
_RULE = re.compile(r"[ \t>|:-]*-[ \t>|:-]*")


def fault(text: str) -> str:
    """Return what is wrong with the guidelines, or an empty string if they are valid.

    The text has no subject, because the caller adds it. For example, it may be "have 120,000 bytes, and 100,000 are the
    most".
    """
    if (size := len(text.encode(errors="replace"))) > MOST_BYTES:
        return f"have {size:,} bytes, and {MOST_BYTES:,} are the most; shorten them, or link to what is long"
    for number, line in enumerate(text.splitlines(), 1):
        if line.count("|") > MOST_COLUMNS and _RULE.fullmatch(line):
            return f"have a table of more than {MOST_COLUMNS} columns in line {number:,}; part it"
    first = 1
    for paragraph in _BLANK.split(text):
        if paragraph.count("[") > MOST_BRACKETS:
            return f"have more than {MOST_BRACKETS:,} opening brackets in the paragraph at line {first:,}; split it"
        first += paragraph.count("\n")
    return ""
