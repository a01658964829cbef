"""A TOML reader that checks the types of values and states the line of the key in each error.

The keys of a kind's file are defined in files.py.
"""

import difflib
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from corpora.core.languages import read_toml

Path = tuple[str | int, ...]  # path of a key from the top level: keys of tables, and indices in lists of tables

_STRING = r'"""(?:\\.|[^\\])*?"{3,5}|' + r"'''.*?'{3,5}" + r'|"(?:\\.|[^"\\\n])*"|' + r"'[^'\n]*'"
_TOKEN = re.compile(rf"(?P<string>{_STRING})|(?P<comment>#[^\n]*)|(?P<plain>[^\"'#\n\[\]{{}}]+)|(?P<mark>.)", re.S)
_PART = r"""(?:[A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*')"""
_KEY = re.compile(rf"\s*({_PART}(?:\s*\.\s*{_PART})*)\s*")
_HEADER = re.compile(rf"\s*(\[\[?){_KEY.pattern}\]")
_AT = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)$")

TYPE_NAMES: Mapping[type, str] = {
    str: "a text in quotes",
    list: "a list in brackets",
    dict: "a table",
    int: "a number",
    bool: "true or false",
}


class KindError(ValueError):
    """Raised if a kind's file is invalid. The message states where the problem is, what it is, and what to do.

    sentence: the message without the location
    path: path of the invalid key; empty if the problem does not concern a key
    """

    def __init__(self, message: str, sentence: str = "", path: Path = ()) -> None:
        super().__init__(message)
        self.sentence, self.path = sentence or message, path


@dataclass(frozen=True)
class Source:
    """A file's name and text, with the line of each key."""

    name: str
    text: str
    lines: Mapping[Path, int]

    def fault(self, path: Path, sentence: str) -> KindError:
        """Return an error that states the line of a key.

        We don't know the line of a key inside a value. In this case, state the line of the innermost enclosing key.
        """
        known_path = path
        while known_path and known_path not in self.lines:
            known_path = known_path[:-1]
        return KindError(f"{self.name}, line {self.lines.get(known_path, 1)}: {sentence}", sentence, path)


@dataclass(frozen=True)
class Table:
    """A table of the file, with methods that check the type of a value before they return it."""

    source: Source
    raw: Mapping[str, Any]
    at: Path = ()

    def fault(self, key: str | int, sentence: str) -> KindError:
        return self.source.fault((*self.at, key), sentence)

    def check_keys(self, valid_keys: Collection[str], table_name: str) -> None:
        """Raise KindError if the table has an unknown key.

        table_name: name of the table for the message, such as "a kind's file"
        """
        for key in self.raw:
            if key not in valid_keys:
                raise self.fault(key, f"{key!r} is not a key of {table_name}. {nearest(key, valid_keys)}")

    def take(self, key: str, kind: type, default: Any = None) -> Any:
        """Return the value of a key, or the default if the key is missing.

        Raise KindError if the value does not have the type `kind`.
        """
        value = self.raw.get(key, default)
        if key in self.raw and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            raise self.fault(key, f"{key} is {_shorten(value)}; it must be {TYPE_NAMES[kind]}.")
        return value

    def number(self, key: str, default: int, most: int) -> int:
        """Return a whole number from 1 to `most`, or the default if it is missing."""
        number: int = self.take(key, int, default)
        if not 1 <= number <= most:
            raise self.fault(key, f"{key} is {number}, but must be from 1 to {most:,}.")
        return number

    def text(self, key: str, advice: str = "", most: int = 0) -> str:
        """Return a single-line text; "" if it is missing.

        advice: what the error advises to write if the text is missing; "" if the text is optional
        most: maximum length (characters); 0 for no limit
        """
        value: str | None = self.take(key, str)
        if value is None:
            if advice:
                raise self.fault(key, f"{key} is missing. {advice}.")
            return ""
        self.check_words(key, key, value, most)
        return value.strip()

    def check_words(self, key: str | int, name: str, value: object, most: int = 0) -> None:
        """Raise KindError if a value is not a single-line text.

        name: name of the value for the message
        most: maximum length (characters); 0 for no limit
        """
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            raise self.fault(key, f"{name} is {_shorten(value)}, but must be a short text in quotes, on one line.")
        if most and len(value.strip()) > most:
            raise self.fault(key, f"{name} has {len(value.strip()):,} characters. Shorten it to {most} or fewer.")

    def share(self, key: str, default: float) -> float:
        """Return a number greater than 0 and at most 1, or the default if it is missing."""
        value = self.raw.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
            raise self.fault(key, f"{key} is {value!r}, but must be greater than 0 and at most 1.")
        return float(value)

    def check_layout(self, layout: Collection[object]) -> None:
        """Raise KindError if the layout is empty. Used by forms that must show the item."""
        if not layout:
            raise self.fault("form", "people would see nothing. Add a [[layout]] with a style and fields.")

    def words(self, key: str) -> list[str]:
        """Return a list of texts; empty if it is missing. Raise KindError if a text is repeated."""
        values = self.take(key, list, [])
        for value in values:
            self.check_words(key, f"an entry of {key}", value)
            if values.count(value) > 1:
                raise self.fault(key, f"{value!r} is listed twice in {key}. Remove one.")
        return list(values)

    def table(self, key: str) -> "Table":
        """Return a nested table; empty if it is missing."""
        return Table(self.source, self.take(key, dict, {}), (*self.at, key))

    def tables(self, key: str) -> list["Table"]:
        """Return the nested tables written as [[key]]; empty if there are none."""
        values = self.raw.get(key, [])
        if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
            raise self.fault(key, f"{key} is {_shorten(values)}. Write [[{key}]] above each table, in double brackets.")
        return [Table(self.source, value, (*self.at, key, index)) for index, value in enumerate(values)]


def read_tables(name: str, text: str) -> Table:
    """Return the top-level table of a TOML text.

    name: file name, for errors

    Raise KindError if the text is not TOML.
    """
    try:
        raw = read_toml(text)
    except tomllib.TOMLDecodeError as error:
        position = _AT.search(str(error))
        line = position[1] if position and position[1] else 1 + text.rstrip("\n").count("\n")
        reason = _AT.sub("", str(error))
        raise KindError(
            f"{name}, line {line}: this is not valid TOML ({reason}). Correct this line or the line above."
        ) from error
    except (ValueError, RecursionError) as error:
        # Very long numbers and deep nesting raise Python errors that the TOML parser does not catch.
        raise KindError(f"{name}: a number is too long, or brackets are nested too deeply.") from error
    lines: dict[Path, int] = {}
    for path, line in _keys(text):
        lines.setdefault(path, line)
    return Table(Source(name, text, lines), raw)


def nearest(name: str, names: Collection[str]) -> str:
    """Return a hint about an unknown name. It suggests the most similar known name, or else lists all known names."""
    folded = {known_name.casefold(): known_name for known_name in names}
    near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)
    return f"Did you mean {folded[near[0]]}?" if near else f"Possible values: {', '.join(names) or 'none'}."


def _shorten(value: object) -> str:
    text = repr(value) if not isinstance(value, bool) else str(value).lower()
    return text if len(text) <= 40 else f"{text[:39]}…"


# --- Line numbers of keys, which tomllib does not report.


def _keys(text: str) -> Iterator[tuple[Path, int]]:
    """Yield the path and line of each key in a valid TOML text, except keys inside values."""
    path: Path = ()
    counts: dict[Path, int] = {}
    for line, statement in _statements(text):
        if header := _HEADER.match(statement):
            path = _resolve(_parts(header[2]), counts)
            if header[1] == "[[":
                counts[path] = counts.get(path, -1) + 1
                path = (*path, counts[path])
            yield path, line
            if isinstance(path[-1], int) and path[-1] == 0:
                yield path[:-1], line
        elif key := _KEY.match(statement):
            parts = _parts(key[1])
            for length in range(1, len(parts) + 1):
                yield (*path, *parts[:length]), line


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield (first line, text) of each header and each key-value pair. A value can span several lines."""
    line, depth, first_line, statement = 1, 0, 1, ""
    for token in _TOKEN.finditer(text + "\n"):
        piece = token[0]
        if token["mark"]:
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(piece, 0)
        if piece == "\n" and not depth:
            if statement.strip():
                yield first_line, statement
            statement, first_line = "", line + 1
        elif not token["comment"]:
            statement += piece
        line += piece.count("\n")


def _parts(dotted_key: str) -> Path:
    """Return the keys of a dotted key such as `a."b c".d`."""
    return tuple(part[1:-1] if part[0] in "\"'" else part for part in re.findall(_PART, dotted_key))


def _resolve(parts: Path, counts: Mapping[Path, int]) -> Path:
    """Return the path of a header. If a key names a list of tables, it refers to the last table in the list."""
    path: Path = ()
    for index, part in enumerate(parts):
        path = (*path, part)
        if path in counts and index < len(parts) - 1:
            path = (*path, counts[path])
    return path
