"""Limits on the text of guidelines, so that a page can render them completely and quickly."""

import re

MOST_BYTES = 100_000
# Markdown pads each table row to the width of the header, so a header of a thousand columns makes a thousand cells per
# row.
MOST_COLUMNS = 50
# The parser scans the rest of the paragraph for a closing bracket after each opening one.
MOST_BRACKETS = 1_000
_BLANK = re.compile(r"(?<=\n)(?=[ \t]*\n)")
_RULE = re.compile(r"[ \t>|:-]*-[ \t>|:-]*")


def fault(text: str) -> str:
    """Return what is wrong with the guidelines, as a sentence without its subject; empty if they are valid."""
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
