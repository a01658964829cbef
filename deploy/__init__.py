"""Settings and server code for deploying Assay. This module masks secrets in logs.

Some links contain a secret in their path: invitations, password resets, the first manager's link, and shared reports.
Anyone who knows the secret can use the link, so logs omit it.
"""

import logging
import re
import string
from urllib.parse import quote, unquote

_SECRET_FOLLOWS = re.compile(r"/(?:invite|forgotten|shared|welcome)/")
_ADDRESS = re.compile(r'[^\s"]*/[^\s"]*')


def masked(line: str) -> str:
    """Cut off each URL in a log line before its secret. Percent-encoded URLs are recognized too."""
    return _ADDRESS.sub(lambda match: _cut(match[0]), line)


def _cut(address: str) -> str:
    decoded = unquote(address)
    match = _SECRET_FOLLOWS.search(decoded)
    if match is None or match.end() == len(decoded):
        return address
    # Quote the path again, because the decoded path may contain a newline.
    return f"{quote(decoded[: match.end()], safe=string.punctuation)}..."


class MaskingFormatter(logging.Formatter):
    """A log formatter that masks secrets in the output of another formatter.

    formatter: the other formatter; None for logging's default
    """

    def __init__(self, formatter: logging.Formatter | None = None) -> None:
        self.formatter = formatter or logging.Formatter()

    def format(self, record: logging.LogRecord) -> str:
        return masked(self.formatter.format(record))
