"""A TOML reader with typed access to tables and the line of each key, for errors.

files.py knows the keys of a kind's file.
"""

import difflib
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from corpora.core.language_codes import read_toml

Path = tuple[str | int, ...]  # keys of tables and indices in lists of tables, from the top

_STRING = r'"""(?:\\.|[^\\])*?"{3,5}|' + r"'''.*?'{3,5}" + r'|"(?:\\.|[^"\\\n])*"|' + r"'[^'\n]*'"
_TOKEN = re.compile(rf"(?P<string>{_STRING})|(?P<comment>#[^\n]*)|(?P<plain>[^\"'#\n\[\]{{}}]+)|(?P<mark>.)", re.S)
_PART = r"""(?:[A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*')"""
_KEY = re.compile(rf"\s*({_PART}(?:\s*\.\s*{_PART})*)\s*")
_HEADER = re.compile(rf"\s*(\[\[?){_KEY.pattern}\]")
_AT = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)$")

WORDS = {str: "a text in quotes", list: "a list in brackets", dict: "a table", int: "a number", bool: "true or false"}


class KindError(ValueError):
    """A kind's file is not valid. The message states where, why and what to do."""


@dataclass(frozen=True)
class Source:
    """A file's name and text, and the line of each key."""

    name: str
    text: str
    lines: Mapping[Path, int]

    def fault(self, at: Path, sentence: str) -> KindError:
        """Return an error with the line of a key, or of the innermost enclosing key if it is inside a value."""
        while at and at not in self.lines:
            at = at[:-1]
        return KindError(f"{self.name}, line {self.lines.get(at, 1)}: {sentence}")


@dataclass(frozen=True)
class Table:
    """A table of the file, with typed access to its values."""

    source: Source
    raw: Mapping[str, Any]
    at: Path = ()

    def fault(self, key: str | int, sentence: str) -> KindError:
        return self.source.fault((*self.at, key), sentence)

    def check_keys(self, known: Collection[str], what: str) -> None:
        """Check that all keys are known.

        what: the owner of the keys, in a sentence
        KindError: the first unknown key
        """
        for key in self.raw:
            if key not in known:
                raise self.fault(key, f"{key!r} is not a key of {what}; {nearest(key, known)}.")

    def take(self, key: str, kind: type, default: Any = None) -> Any:
        """Return a value, or the default if it is missing.

        KindError: the value has another type
        """
        value = self.raw.get(key, default)
        if key in self.raw and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            raise self.fault(key, f"{key} is {_shown(value)}; it must be {WORDS[kind]}.")
        return value

    def text(self, key: str, advice: str = "", most: int = 0) -> str:
        """Return a text on one line, "" if it is missing.

        advice: what to write if it is missing; "" if it is optional
        most: maximum length (characters), 0 for no limit
        """
        value = self.take(key, str)
        if value is None:
            if advice:
                raise self.fault(key, f"there is no {key}; {advice}.")
            return ""
        self.check_words(key, key, value, most)
        return value.strip()

    def check_words(self, key: str | int, what: str, value: object, most: int = 0) -> None:
        """Check that a value is a text on one line.

        most: maximum length (characters), 0 for no limit
        KindError: it is not
        """
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            raise self.fault(key, f"{what} is {_shown(value)}; write a word or a few in quotes, on one line.")
        if most and len(value.strip()) > most:
            raise self.fault(key, f"{what} has {len(value.strip()):,} characters; shorten it to {most} or fewer.")

    def words(self, key: str) -> list[str]:
        """Return a list of texts without repeats, empty if it is missing."""
        values = self.take(key, list, [])
        for value in values:
            self.check_words(key, f"an entry of {key}", value)
            if values.count(value) > 1:
                raise self.fault(key, f"{value!r} is in {key} twice; leave one out.")
        return list(values)

    def table(self, key: str) -> "Table":
        """Return a nested table, empty if it is missing."""
        return Table(self.source, self.take(key, dict, {}), (*self.at, key))

    def tables(self, key: str) -> list["Table"]:
        """Return a list of nested tables, each written [[key]], empty if it is missing."""
        values = self.raw.get(key, [])
        if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
            raise self.fault(key, f"{key} is {_shown(values)}; write [[{key}]] above each, in doubled brackets.")
        return [Table(self.source, value, (*self.at, key, place)) for place, value in enumerate(values)]


def read_tables(name: str, text: str) -> Table:
    """Return the top-level table of a TOML text.

    KindError: the text is not TOML
    """
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
        # Python errors that the TOML parser does not catch: very long numbers and deep nesting.
        raise KindError(f"{name}: a number is too long, or brackets are nested too deeply.") from error
    lines: dict[Path, int] = {}
    for at, line in _keys(text):
        lines.setdefault(at, line)
    return Table(Source(name, text, lines), raw)


def nearest(given: str, known: Collection[str]) -> str:
    """Return the closest known name in words, or all known names."""
    folded = {each.casefold(): each for each in known}
    near = difflib.get_close_matches(given.casefold(), folded, n=1, cutoff=0.5)
    return f"the nearest is {folded[near[0]]}" if near else f"there is {', '.join(known) or 'none'}"


def _shown(value: object) -> str:
    shown = repr(value) if not isinstance(value, bool) else str(value).lower()
    return shown if len(shown) <= 40 else f"{shown[:39]}…"


# --- Line numbers of keys, which tomllib does not report.


def _keys(text: str) -> Iterator[tuple[Path, int]]:
    """Yield each key of a valid TOML text with its line, except keys inside values."""
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
    """Yield headers and key-value pairs with their first lines; a value may span several lines."""
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
    """Return the keys of a dotted key such as `a."b c".d`."""
    return tuple(part[1:-1] if part[0] in "\"'" else part for part in re.findall(_PART, written))


def _within(parts: Path, counts: Mapping[Path, int]) -> Path:
    """Return the path of a header, which refers to the last element of any list of tables."""
    at: Path = ()
    for place, part in enumerate(parts):
        at = (*at, part)
        if at in counts and place < len(parts) - 1:
            at = (*at, counts[at])
    return at
