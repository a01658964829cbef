"""TOML that says where it is wrong: its tables, read key by key, and the line on which each key stands.

This module does not know the keys of a kind's file; files.py does.
"""

import difflib
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from corpora.core.language_codes import read_toml

Path = tuple[str | int, ...]  # keys of tables and places in lists of tables, from the top

_STRING = r'"""(?:\\.|[^\\])*?"{3,5}|' + r"'''.*?'{3,5}" + r'|"(?:\\.|[^"\\\n])*"|' + r"'[^'\n]*'"
_TOKEN = re.compile(rf"(?P<string>{_STRING})|(?P<comment>#[^\n]*)|(?P<plain>[^\"'#\n\[\]{{}}]+)|(?P<mark>.)", re.S)
_PART = r"""(?:[A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*')"""
_KEY = re.compile(rf"\s*({_PART}(?:\s*\.\s*{_PART})*)\s*")
_HEADER = re.compile(rf"\s*(\[\[?){_KEY.pattern}\]")
_AT = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)$")

WORDS = {str: "a text in quotes", list: "a list in brackets", dict: "a table", int: "a number", bool: "true or false"}


class KindError(ValueError):
    """A kind's file cannot be used; one sentence says where, why and what to do."""


@dataclass(frozen=True)
class Source:
    """A file's text under its name, and the line of each of its keys."""

    name: str
    text: str
    lines: Mapping[Path, int]

    def fault(self, at: Path, sentence: str) -> KindError:
        """The line is that of the key itself or, if that is inside a value, of the innermost key around it."""
        while at and at not in self.lines:
            at = at[:-1]
        return KindError(f"{self.name}, line {self.lines.get(at, 1)}: {sentence}")


@dataclass(frozen=True)
class Table:
    """A table of the file and its place; each value taken from it has the requested type."""

    source: Source
    raw: Mapping[str, Any]
    at: Path = ()

    def fault(self, key: str | int, sentence: str) -> KindError:
        return self.source.fault((*self.at, key), sentence)

    def check_keys(self, known: Collection[str], what: str) -> None:
        """KindError for the first unknown key. what: whose keys they are, in a sentence."""
        for key in self.raw:
            if key not in known:
                raise self.fault(key, f"{key!r} is not a key of {what}; {nearest(key, known)}.")

    def take(self, key: str, kind: type, default: Any = None) -> Any:
        """The value, which must have the type; the default if there is none."""
        value = self.raw.get(key, default)
        if key in self.raw and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            raise self.fault(key, f"{key} is {_shown(value)}; it must be {WORDS[kind]}.")
        return value

    def text(self, key: str, advice: str = "", most: int = 0) -> str:
        """Words on one line; advice: what to write if they are missing, empty if they may be missing."""
        value = self.take(key, str)
        if value is None:
            if advice:
                raise self.fault(key, f"there is no {key}; {advice}.")
            return ""
        self.check_words(key, key, value, most)
        return value.strip()

    def check_words(self, key: str | int, what: str, value: object, most: int = 0) -> None:
        """KindError if a value is not words on one line, or has more than `most` characters."""
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            raise self.fault(key, f"{what} is {_shown(value)}; write a word or a few in quotes, on one line.")
        if most and len(value.strip()) > most:
            raise self.fault(key, f"{what} has {len(value.strip()):,} characters; shorten it to {most} or fewer.")

    def words(self, key: str) -> list[str]:
        """A list of words without repeats; empty if there is none."""
        values = self.take(key, list, [])
        for value in values:
            self.check_words(key, f"an entry of {key}", value)
            if values.count(value) > 1:
                raise self.fault(key, f"{value!r} is in {key} twice; leave one out.")
        return list(values)

    def table(self, key: str) -> "Table":
        """A table in this table, empty if there is none."""
        return Table(self.source, self.take(key, dict, {}), (*self.at, key))

    def tables(self, key: str) -> list["Table"]:
        """A list of tables in this table, each written [[key]]; empty if there is none."""
        values = self.raw.get(key, [])
        if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
            raise self.fault(key, f"{key} is {_shown(values)}; write [[{key}]] above each, in doubled brackets.")
        return [Table(self.source, value, (*self.at, key, place)) for place, value in enumerate(values)]


def read_tables(name: str, text: str) -> Table:
    """The top of a TOML text. KindError, with the line, if it is not TOML."""
    try:
        raw = read_toml(text)
    except tomllib.TOMLDecodeError as error:
        found = _AT.search(str(error))
        line = found[1] if found and found[1] else 1 + text.rstrip("\n").count("\n")
        reason = _AT.sub("", str(error))
        raise KindError(
            f"{name}, line {line}: this is not TOML ({reason}); correct that line or the one above."
        ) from error
    except (ValueError, RecursionError) as error:
        # Faults that the TOML reader leaves to Python: numbers of thousands of digits, brackets in brackets.
        raise KindError(f"{name}: a number is too long, or brackets are nested too deeply.") from error
    lines: dict[Path, int] = {}
    for at, line in _keys(text):
        lines.setdefault(at, line)
    return Table(Source(name, text, lines), raw)


def nearest(given: str, known: Collection[str]) -> str:
    """What may have been meant, in words; if nothing is near, all the known names."""
    folded = {each.casefold(): each for each in known}
    near = difflib.get_close_matches(given.casefold(), folded, n=1, cutoff=0.5)
    return f"the nearest is {folded[near[0]]}" if near else f"there is {', '.join(known) or 'none'}"


def _shown(value: object) -> str:
    shown = repr(value) if not isinstance(value, bool) else str(value).lower()
    return shown if len(shown) <= 40 else f"{shown[:39]}…"


# --- on which line a key stands: tomllib does not say


def _keys(text: str) -> Iterator[tuple[Path, int]]:
    """Each key of a valid TOML text, with its line; keys inside values are left out."""
    at: Path = ()
    counts: dict[Path, int] = {}
    for line, written in _statements(text):
        if header := _HEADER.match(written):
            at = _within(_parts(header[2]), counts)
            if header[1] == "[[":
                counts[at] = counts.get(at, -1) + 1
                at = (*at, counts[at])
            yield at, line
            if isinstance(at[-1], int) and at[-1] == 0:
                yield at[:-1], line
        elif key := _KEY.match(written):
            parts = _parts(key[1])
            for length in range(1, len(parts) + 1):
                yield (*at, *parts[:length]), line


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Headers and pairs, each with the line on which it begins; a value may span several lines."""
    line, depth, begun, written = 1, 0, 1, ""
    for token in _TOKEN.finditer(text + "\n"):
        found = token[0]
        if token["mark"]:
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found, 0)
        if found == "\n" and not depth:
            if written.strip():
                yield begun, written
            written, begun = "", line + 1
        elif not token["comment"]:
            written += found
        line += found.count("\n")


def _parts(written: str) -> Path:
    """The keys of `a."b c".d`."""
    return tuple(part[1:-1] if part[0] in "\"'" else part for part in re.findall(_PART, written))


def _within(parts: Path, counts: Mapping[Path, int]) -> Path:
    """The path of a header: below a list of tables it means the last of them."""
    at: Path = ()
    for place, part in enumerate(parts):
        at = (*at, part)
        if at in counts and place < len(parts) - 1:
            at = (*at, counts[at])
    return at
