"""Deployment of Assay, and log masking.

Logs omit the secret in the path of invite and password-reset links, because anyone who reads it could set the person's
password.
"""

import logging
import re
import string
from urllib.parse import quote, unquote

_SECRET_FOLLOWS = re.compile(r"/(?:invite|forgotten)/")
_ADDRESS = re.compile(r'[^\s"]*/[^\s"]*')


def masked(line: str) -> str:
    """Return a log line with each URL truncated before a secret. Percent-encoded paths are recognised."""
    return _ADDRESS.sub(lambda found: _cut(found[0]), line)


def _cut(address: str) -> str:
    read = unquote(address)
    before = _SECRET_FOLLOWS.search(read)
    if before is None or before.end() == len(read):
        return address
    # The decoded text may contain a newline.
    return f"{quote(read[: before.end()], safe=string.punctuation)}..."


class Masking(logging.Formatter):
    """A formatter that masks secrets.

    within: formatter that is applied first, None for the default
    """

    def __init__(self, within: logging.Formatter | None = None) -> None:
        self.within = within or logging.Formatter()

    def format(self, record: logging.LogRecord) -> str:
        return masked(self.within.format(record))
