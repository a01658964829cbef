"""What an option of a task, a draw or an action is: its name, how it is read, its bounds, and its help.

Each is declared once, and the command, a page's form, the card and the manifest are made from that. The options are
declared in kinds/options.py, kinds/designs.py and actions/.
"""

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Any

LARGEST = 2**31 - 1  # of whole numbers, as databases have them
# `Fraction` computes every power of ten that it reads, so 1e-30000000 would keep a processor busy for minutes.
_SHARE = re.compile(r"[+-]?(\d{1,20}(\.\d{0,20})?|\.\d{1,20})(e[+-]?\d\d?|/\d{1,20})?%?", re.ASCII | re.IGNORECASE)
_QUOTED = 60  # letters of a value that a message repeats


class OptionError(ValueError):
    """A value that an option cannot have; the sentence says why, and what it can be."""


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…")


def whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise OptionError(f"{_quoted(text)} is not a whole number.") from None


def fraction(text: str) -> Fraction:
    """0.1, 10% or 1/10, exactly. OptionError for anything else, and for numbers of more than 20 digits."""
    text = text.strip()
    try:
        if not _SHARE.fullmatch(text):
            raise ValueError
        return Fraction(text[:-1]) / 100 if text.endswith("%") else Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise OptionError(f"{_quoted(text)} is not a share; write it as 0.1, 10% or 1/10.") from None


def share(text: str) -> float:
    return float(fraction(text))


def points(text: str) -> float:
    """5 or 2.5: points of percent, not 5%."""
    try:
        return float(text)
    except ValueError:
        raise OptionError(f"{_quoted(text)} is not a number of points; write it as 5 or 2.5.") from None


def number(text: str) -> float:
    """Any number, such as 0.5 or -2, but neither NaN nor infinity."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise OptionError(f"{_quoted(text)} is not a finite number; write it as 0.5 or -2.")
    return value


def people(text: str) -> int | float:
    """How many people: a whole number, or a decimal, whose fraction is the share of units for one more person."""
    return number(text)


def words(text: str) -> list[str]:
    return text.split()


def labels(text: str) -> list[str]:
    """Words, or, where a semicolon stands, what stands between semicolons; as `--labels` reads those of a record."""
    return [label for part in text.split(";") if (label := part.strip())] if ";" in text else words(text)


def sizes(text: str) -> list[int]:
    """Whole numbers, separated by spaces."""
    return [whole_number(number) for number in words(text)]


def set_sizes(text: str) -> dict[str, list[Any]]:
    """Name of a set -> its numbers, of text such as "test 4000 train 1000 2000"; a design checks the names. The words
    that follow `apart` are names of fields.
    """
    found: dict[str, list[Any]] = {}
    for word in words(text):
        if "apart" in found:
            found["apart"].append(word)
        elif not word.isdecimal():
            found[word] = []
        elif found and int(word):
            found[next(reversed(found))].append(int(word))
        else:
            raise OptionError(f"{_quoted(text)} is no list of sets with sizes, such as test 4000 train 1000 2000.")
    return found


def sets(text: str) -> str:
    """The same text, once it is known that `set_sizes` reads it."""
    set_sizes(text)
    return text


def codes(text: str) -> list[str]:
    return words(text.replace(",", " "))


def named_file(text: str) -> str:
    """A file, or NAME=FILE: the name of what the file holds."""
    return text


def days(text: str) -> tuple[datetime, datetime]:
    """A window: from the beginning of one day to that of another, in UTC."""
    try:
        start, end = (datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC) for day in text.split(".."))
    except ValueError:
        raise OptionError(
            f"{_quoted(text)} is not a window; write it as 2014-07-01..2014-08-01, the end left out."
        ) from None
    return start, end


def flag(text: str) -> bool:
    said = {"yes": True, "true": True, "no": False, "false": False}.get(text.lower())
    if said is None:
        raise OptionError(f"{_quoted(text)} is neither yes nor no.")
    return said


def written(value: Any) -> str:
    """A value as text that its option reads as the same value."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return "..".join(f"{day:%Y-%m-%d}" for day in value)
    return " ".join(value) if isinstance(value, list) else str(value)


@dataclass(frozen=True)
class Option:
    """read: from text; of a value that has its type already, see `check`. least, most: bounds, both within.

    off: what a task does if its kind does not have the option. group: the heading it stands under. fixed: whether it
    stays as it was when the task was opened. required: whether an action cannot do without it. argument: whether its
    place says what it is, as a task's name does, and not its own name. several: whether its value is a list, for which
    it is repeated; in_a_row: whether the values may follow one another as well. shown: what stands for a value in its
    help. opposite: of a flag that may be yes, no or unsaid, the name and the help of the option that says no.
    """

    name: str
    read: Callable[[str], Any] = str
    default: Any = None
    off: Any = None
    help: str = ""
    group: str = ""
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    fixed: bool = False
    required: bool = False
    argument: bool = False
    several: bool = False
    in_a_row: bool = False
    shown: str = ""
    opposite: tuple[str, str] | None = None

    @property
    def is_file(self) -> bool:
        """Whether its value names a file or a folder, which a page offers from the inbox and nowhere else."""
        return self.read in (Path, named_file)

    @property
    def spelled(self) -> str:
        return self.name if self.argument else f"--{self.name.replace('_', '-')}"

    def value(self, given: Any) -> Any:
        """The value of what was given, as text or as a value; the default if nothing was given. OptionError if the
        option cannot have it.
        """
        if given is None or (self.several and not given):
            if self.required:
                raise OptionError(f"{self.spelled} is needed.")
            return self.default
        if given == self.default:
            return self.default
        return [self._one(each) for each in given] if self.several else self._one(given)

    def _one(self, given: Any) -> Any:
        if not isinstance(given, str):
            return self.check(given)
        try:
            read = self.read(given)
        except OptionError as error:
            raise OptionError(f"{self.spelled}: {error}") from None
        return self.check(read)

    def check(self, value: Any) -> Any:
        """The value as it is stored. OptionError if the option cannot have it. None: decided later."""
        if value is None and self.default is None:
            return None
        kind, said = _TYPES.get(self.read, (object, ""))
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if self.read is people and isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, kind) or (kind in (int, int | float) and isinstance(value, bool)):
            raise OptionError(f"{self.spelled} is {value!r}; it must be {said}.")
        if self.choices and value not in self.choices:
            raise OptionError(f"{self.spelled} is {value!r}; it is one of {', '.join(self.choices)}.")
        largest = LARGEST if kind is int else sys.float_info.max
        least, most = self.least or 0, largest if self.most is None else self.most
        # So that NaN, which is neither below nor above anything, is refused too.
        if isinstance(value, int | float) and not least <= value <= most:
            if abs(value) > largest:
                raise OptionError(f"{self.spelled} is beyond {largest:,}, which nothing here can be.")
            raise OptionError(f"{self.spelled} is {value:g}; it must be {self.bounds}.")
        return value

    @property
    def bounds(self) -> str:
        """Of a number, in words."""
        return f"{self.least or 0:g} or more" if self.most is None else f"{self.least or 0:g} to {self.most:g}"

    def told(self, differing: Mapping[str, Any] = MappingProxyType({})) -> str:
        """Its help with its default. differing: kinds with another default -> that default."""
        unsaid = self.default in (None, "", ()) or self.default is False
        if unsaid and not differing:
            return self.help
        by_value: dict[str, list[str]] = {}
        for name, value in differing.items():
            by_value.setdefault(written(value) or "none", []).append(name)
        others = "".join(f"; {', '.join(names)}: {value}" for value, names in by_value.items())
        return f"{self.help} (default {written(self.default) or 'none'}{others})"


# How a value is read -> its type, and what it must be in words. Values of other readers have no type that could be
# wrong.
_TYPES: Mapping[Callable[[str], Any], tuple[Any, str]] = {
    whole_number: (int, "a whole number"),
    share: (float, "a share between 0 and 1"),
    points: (float, "a number of points"),
    number: (float, "a number"),
    people: (int | float, "a number of people"),
    codes: (list, "a list of codes"),
    words: (list, "a list of words"),
    labels: (list, "a list of labels"),
    flag: (bool, "yes or no"),
    Path: (Path, "the path of a file"),
    named_file: (str, "the path of a file"),
    str: (str, "a word"),
}
