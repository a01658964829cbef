"""Guidelines as a text: what one may be, so that a page can show it whole and soon."""

import re

MOST_BYTES = 100_000
# A table has each of its rows filled up to its first: a row of a thousand columns makes a thousand cells of every line.
MOST_COLUMNS = 50
# For every opening bracket the rest of its paragraph is read in search of a closing one.
MOST_BRACKETS = 1_000
_BLANK = re.compile(r"(?<=\n)(?=[ \t]*\n)")
_RULE = re.compile(r"[ \t>|:-]*-[ \t>|:-]*")


def fault(text: str) -> str:
    """What is wrong with guidelines, as a sentence without its subject; empty if nothing is."""
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
