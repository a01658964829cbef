"""Code for the deployment of Assay. This module masks secrets in logs.

The paths of some links contain a secret: an invitation, a password reset, the link for the first manager, and a shared
report. Anyone with the secret could use the link, so logs omit it.
"""

import logging
import re
import string
from urllib.parse import quote, unquote

_SECRET_FOLLOWS = re.compile(r"/(?:invite|forgotten|shared|welcome)/")
_ADDRESS = re.compile(r'[^\s"]*/[^\s"]*')


def masked(line: str) -> str:
    """Return a log line in which each URL is cut off before its secret. Percent-encoded URLs are recognized too."""
    return _ADDRESS.sub(lambda match: _cut(match[0]), line)


def _cut(address: str) -> str:
    decoded = unquote(address)
    match = _SECRET_FOLLOWS.search(decoded)
    if match is None or match.end() == len(decoded):
        return address
    # The path is quoted again, because the decoded path may contain a newline.
    return f"{quote(decoded[: match.end()], safe=string.punctuation)}..."


class Masking(logging.Formatter):
    """A log formatter that masks secrets.

    within: the formatter that formats the record before it is masked; None for the default formatter
    """

    def __init__(self, within: logging.Formatter | None = None) -> None:
        self.within = within or logging.Formatter()

    def format(self, record: logging.LogRecord) -> str:
        return masked(self.within.format(record))
