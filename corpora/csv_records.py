"""The records of a CSV file, of which a quote that is not closed spoils one and no more."""

import csv
from collections import deque
from collections.abc import Iterator
from typing import cast

from corpora.lines import Fault, Line, decoded

Cells = tuple[int, list[str] | Fault]
_ATTEMPTS = 8
_ANEW = "the lines after this one are read anew."


class _Feed:
    """Lines for a csv.reader, those of one record held until it is known whether they are one.

    A record ends the feed where it passes `limit` bytes. So does a line that has been in _ATTEMPTS failed records:
    else a file where every line closes one quote and opens another would be read anew for each of its lines.
    """

    def __init__(self, lines: Iterator[Line], limit: int) -> None:
        self.lines, self.limit = lines, limit
        self.taken: list[tuple[int, bytes | Fault, int]] = []  # with the failed records that the line was in
        self.again: deque[tuple[int, bytes | Fault, int]] = deque()
        self.size = 0
        self.ended = False

    def __iter__(self) -> "_Feed":
        return self

    def __next__(self) -> str:
        self.ended = True
        given = self.again.popleft() if self.again else (*next(self.lines), 0)
        line = given[1]
        if self.taken and (isinstance(line, Fault) or given[2] == _ATTEMPTS or self.size + len(line) > self.limit):
            self.again.appendleft(given)
            raise StopIteration
        self.taken.append(given)
        if isinstance(line, Fault):
            raise StopIteration
        self.ended = False
        self.size += len(line)
        return decoded(line)

    def begin(self) -> None:
        """Forget the lines taken so far."""
        self.taken.clear()
        self.size = 0

    def is_doubtful(self) -> bool:
        """Whether the record may be the tail of a failed one: it has an odd quote, and was read before."""
        if not self.taken[0][2]:
            return False
        return sum(line.count(b'"') for _, line, _ in self.taken if isinstance(line, bytes)) % 2 == 1

    def return_all_but_first(self) -> None:
        self.again.extendleft((number, line, failed + 1) for number, line, failed in reversed(self.taken[1:]))


def records(lines: Iterator[Line], limit: int) -> Iterator[Cells]:
    """The records of a CSV file, the header first, each of at most `limit` bytes. If one fails, only its first line is
    lost.

    Otherwise a quote that is not closed would swallow all rows up to the next quote, or up to the limit.
    """
    csv.field_size_limit(limit)
    feed = _Feed(lines, limit)
    reader = csv.reader(feed, strict=True)
    width = None
    while True:
        feed.begin()
        fault: Fault | None = None
        row: list[str] = []
        try:
            row = next(reader)
        except StopIteration:
            if not feed.taken:
                return
            fault = cast(Fault, feed.taken[0][1])
        except csv.Error as error:
            fault = _fault(feed, error)
        number, last = feed.taken[0][0], feed.taken[-1][0]
        if width is None:
            width = len(row)
        elif not fault and last > number and len(row) != width:
            found = f"which makes {fields_said(row)} where the header has {width:,}"
            fault = Fault(f"A quote is opened in this row and closed in line {last:,}, {found}; {_ANEW}")
        elif not fault and feed.is_doubtful():
            fault = Fault(
                "The row holds a quote that may be the end of one opened in a row before, which was rejected."
            )
        if fault:
            feed.return_all_but_first()
        yield number, fault or row


def _fault(feed: _Feed, error: csv.Error) -> Fault:
    if feed.ended:
        return Fault(f"A quote is opened in this row and not closed; {_ANEW}")
    if len(feed.taken) > 1:
        return Fault(f"A quote is opened in this row and not rightly closed by line {feed.taken[-1][0]:,}; {_ANEW}")
    return Fault(f"The row is not CSV: {error}.")


def fields_said(row: list[str]) -> str:
    return "1 field" if len(row) == 1 else f"{len(row):,} fields"
