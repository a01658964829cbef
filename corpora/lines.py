"""The lines of a file of text, plain or packed, and the object of JSON that a line holds."""

import codecs
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from corpora.core.errors import CorpusError
from corpora.files import Progress, first_line, looks_like_utf16, opened

MAX_LINE = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a row could not even be read, as one clear sentence."""

    reason: str


Line = tuple[int, bytes | Fault]  # its number, from 1


def _lines(file: BinaryIO, limit: int) -> Iterator[Line]:
    """The lines of a file; a Fault in place of a line that is longer than `limit` bytes."""
    number = 0
    while line := file.readline(limit + 1):
        number += 1
        if len(line) > limit:
            while line and not line.endswith(b"\n"):
                line = file.readline(limit)
            yield number, Fault(f"The line is longer than {limit:,} bytes.")
        else:
            yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line


def lines_of(path: Path, limit: int, progress: Progress) -> Iterator[Line]:
    """The lines of a file of text, unpacked; a Fault in place of one that is longer than `limit` bytes. CorpusError
    where it is UTF-16."""
    with opened(path, progress) as file:
        _check_encoding(path, file.peek(4096)[:4096])  # type: ignore[attr-defined]
        yield from _lines(file, limit)


def _check_encoding(path: Path, start: bytes) -> None:
    if looks_like_utf16(start):
        raise CorpusError(
            f"{path} is not UTF-8; it looks like UTF-16. Save it as UTF-8, for example with iconv -f UTF-16 -t UTF-8."
        )


class _Doubled(Exception):
    """A key that stands twice in an object of JSON: nobody can tell which is meant."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _Doubled(next(key for key in found if keys.count(key) > 1))
    return found


def object_of(content: bytes, keys: Iterable[str], what: str = "line") -> dict[str, Any] | Fault:
    """The object of JSON that a line, or `what` it is, holds. keys: some that are named where it is none."""
    try:
        value = json.loads(content.decode(), object_pairs_hook=_object)
    except _Doubled as error:
        return Fault(f"The {what} has the key {error.args[0]!r} twice.")
    except UnicodeDecodeError as error:
        return Fault(f"The {what} is not UTF-8 (byte {error.start + 1}).")
    except (ValueError, RecursionError) as error:
        return Fault(f"The {what} is not JSON: {first_line(error)}.")
    if not isinstance(value, dict):
        example = json.dumps(dict.fromkeys(keys, "..."))
        return Fault(f"The {what} is not a JSON object, such as {example}.")
    return value


def decoded(line: bytes) -> str:
    """Undecodable bytes become lone surrogates and are found again in _table, so that one bad row stays one."""
    return line.decode("utf-8", "surrogateescape")
