"""How Assay is served. Its logs leave out the secret in the path of an invite and of the link for a forgotten password,
since anybody who reads a log could set that person's password with it.
"""

import logging
import re
import string
from urllib.parse import quote, unquote

_SECRET_FOLLOWS = re.compile(r"/(?:invite|forgotten)/")
_ADDRESS = re.compile(r'[^\s"]*/[^\s"]*')


def masked(line: str) -> str:
    """The line, each of its addresses cut off where a secret follows; with %-escapes too, which a server reads."""
    return _ADDRESS.sub(lambda found: _cut(found[0]), line)


def _cut(address: str) -> str:
    read = unquote(address)
    before = _SECRET_FOLLOWS.search(read)
    if before is None or before.end() == len(read):
        return address
    # What was escaped may be the end of a line.
    return f"{quote(read[: before.end()], safe=string.punctuation)}..."


class Masking(logging.Formatter):
    """within: how a line is written before it is masked; as it is, if None."""

    def __init__(self, within: logging.Formatter | None = None) -> None:
        self.within = within or logging.Formatter()

    def format(self, record: logging.LogRecord) -> str:
        return masked(self.within.format(record))
