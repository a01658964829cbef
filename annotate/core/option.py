"""Options of tasks, draws and actions: name, parser, bounds and help.

Each option is declared once. The command, the form on a page, the dataset card and the manifest are all generated from
its declaration. The declarations are in kinds/options.py, kinds/designs.py and actions/.
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

LARGEST = 2**31 - 1  # the largest value of an integer column
# Exponents have at most two digits: `Fraction` expands powers of ten, so 1e-30000000 would take minutes.
_SHARE = re.compile(r"[+-]?(\d{1,20}(\.\d{0,20})?|\.\d{1,20})(e[+-]?\d\d?|/\d{1,20})?%?", re.ASCII | re.IGNORECASE)
_MAX_QUOTED = 60  # maximum number of characters of a value that an error message repeats


class OptionError(ValueError):
    """An option's value is invalid. The message explains why, and what is allowed."""


def _quote(text: str) -> str:
    return repr(text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}…")


def whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise OptionError(f"{_quote(text)} is not a whole number.") from None


def fraction(text: str) -> Fraction:
    """Parse a share written as 0.1, 10% or 1/10 into an exact fraction.

    Raise OptionError if the text has none of these forms, or has more than 20 digits before or after the decimal point.
    """
    text = text.strip()
    try:
        if not _SHARE.fullmatch(text):
            raise ValueError
        return Fraction(text[:-1]) / 100 if text.endswith("%") else Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise OptionError(f"{_quote(text)} is not a share. Write it as 0.1, 10% or 1/10.") from None


def share(text: str) -> float:
    return float(fraction(text))


def points(text: str) -> float:
    """Parse percentage points such as 5 or 2.5, without a percent sign."""
    try:
        return float(text)
    except ValueError:
        raise OptionError(f"{_quote(text)} is not a number of points. Write it as 5 or 2.5.") from None


def number(text: str) -> float:
    """Parse a finite number such as 0.5 or -2."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise OptionError(f"{_quote(text)} is not a finite number. Write it as 0.5 or -2.")
    return value


def people(text: str) -> int | float:
    """Parse the number of annotators per unit, such as 2 or 2.5.

    With 2.5, two annotators label every unit, and a third labels half of the units.
    """
    return number(text)


def words(text: str) -> list[str]:
    return text.split()


def labels(text: str) -> list[str]:
    """Parse a list of labels, such as the value of `--labels` for a record.

    The labels are separated by semicolons or, if the text has none, by spaces.
    """
    return [label for part in text.split(";") if (label := part.strip())] if ";" in text else words(text)


def sizes(text: str) -> list[int]:
    """Parse integers separated by spaces."""
    return [whole_number(number) for number in words(text)]


def set_sizes(text: str) -> dict[str, list[Any]]:
    """Parse the sizes of sets, such as "test 4000 train 1000 2000", into a list of sizes for each set.

    The word `apart` is followed by field names instead of sizes. The names of the sets are not checked here, because
    each design has its own.
    """
    sizes: dict[str, list[Any]] = {}
    for word in words(text):
        if "apart" in sizes:
            sizes["apart"].append(word)
        elif not word.isdecimal():
            sizes[word] = []
        elif sizes and int(word):
            sizes[next(reversed(sizes))].append(int(word))
        else:
            raise OptionError(f"{_quote(text)} is not a list of sets with sizes, such as test 4000 train 1000 2000.")
    return sizes


def sets(text: str) -> str:
    """Validate the text with `set_sizes` and return it unchanged."""
    set_sizes(text)
    return text


def codes(text: str) -> list[str]:
    return words(text.replace(",", " "))


def named_file(text: str) -> str:
    """Return the text unchanged: a path, or NAME=PATH to name the file's content."""
    return text


def days(text: str) -> tuple[datetime, datetime]:
    """Parse a range of days, written START..END, into two datetimes in UTC. END is exclusive."""
    try:
        start, end = (datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC) for day in text.split(".."))
    except ValueError:
        raise OptionError(
            f"{_quote(text)} is not a range of days. Write it as 2014-07-01..2014-08-01; the last day is not included."
        ) from None
    return start, end


def flag(text: str) -> bool:
    value = {"yes": True, "true": True, "no": False, "false": False}.get(text.lower())
    if value is None:
        raise OptionError(f"{_quote(text)} is neither yes nor no.")
    return value


def format_value(value: Any) -> str:
    """Format a value as text that the option's parser converts back to the value."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return "..".join(f"{day:%Y-%m-%d}" for day in value)
    return " ".join(value) if isinstance(value, list) else str(value)


@dataclass(frozen=True)
class Option:
    """An option of a task, a draw or an action.

    read: function that parses the text of a value. `check` validates the parsed value.
    off: value for tasks whose kind lacks the option.
    group: heading in forms and help.
    least, most: inclusive bounds.
    fixed: whether the value can no longer change once a task is open.
    required: whether an action needs a value.
    argument: whether it is a positional argument, such as the name of a task.
    several: whether the value is a list. The option is repeated for each item, as in `--label a --label b`.
    in_a_row: whether a list is instead written after a single option, as in `--files a b`.
    shown: placeholder for the value in the help.
    opposite: for a flag with three states (yes, no, unset), the name and the help of the option that means no.
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
        """Whether the value is the path of a file or folder. Pages only offer files and folders in the inbox."""
        return self.read in (Path, named_file)

    @property
    def spelled(self) -> str:
        return self.name if self.argument else f"--{self.name.replace('_', '-')}"

    @property
    def spellings(self) -> tuple[str, ...]:
        """All spellings of the option that can appear in messages."""
        return (self.spelled, f"--{self.opposite[0]}") if self.opposite else (self.spelled,)

    def value(self, value: Any) -> Any:
        """Parse and validate a value. Return the default if there is no value.

        value: text, or an already parsed value. None and an empty list mean that there is no value.

        Raise OptionError if the value is invalid, or if it is required but missing.
        """
        if value is None or (self.several and not value):
            if self.required:
                raise OptionError(f"{self.spelled} is required.")
            return self.default
        if value == self.default:
            return self.default
        items = value if self.several else [value]
        try:
            parsed = [self.read(item) if isinstance(item, str) else item for item in items]
        except OptionError as error:
            raise OptionError(f"{self.spelled}: {error}") from None
        checked = [self.check(item) for item in parsed]
        return checked if self.several else checked[0]

    def check(self, value: Any) -> Any:
        """Validate a parsed value, and return the value to store, such as 2 for 2.0 annotators.

        None is valid only as the default. It means that the value is decided later.

        Raise OptionError if the value is invalid.
        """
        if value is None and self.default is None:
            return None
        kind, expected = _TYPES.get(self.read, (object, ""))
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if self.read is people and isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, kind) or (kind in (int, int | float) and isinstance(value, bool)):
            raise OptionError(f"{self.spelled} is {value!r}. It must be {expected}.")
        if self.choices and value not in self.choices:
            raise OptionError(f"{self.spelled} is {value!r}. It must be one of {', '.join(self.choices)}.")
        largest = LARGEST if kind is int else sys.float_info.max
        least, most = self.least or 0, largest if self.most is None else self.most
        # NaN fails every comparison, so it is rejected here too.
        if isinstance(value, int | float) and not least <= value <= most:
            if abs(value) > largest:
                raise OptionError(f"{self.spelled} must not be larger than {largest:,}.")
            raise OptionError(f"{self.spelled} is {value:g}. It must be {self.bounds}.")
        return value

    @property
    def bounds(self) -> str:
        """The allowed range of a number as text, such as "0 to 1" or "0 or more"."""
        return f"{self.least or 0:g} or more" if self.most is None else f"{self.least or 0:g} to {self.most:g}"

    def help_text(self, differing: Mapping[str, Any] = MappingProxyType({})) -> str:
        """Return the help text followed by the default value.

        differing: default values by kind, for kinds that override the default declared here.
        """
        has_no_default = self.default in (None, "", ()) or self.default is False
        if has_no_default and not differing:
            return self.help
        by_value: dict[str, list[str]] = {}
        for name, value in differing.items():
            by_value.setdefault(format_value(value) or "none", []).append(name)
        others = "".join(f"; {', '.join(names)}: {value}" for value, names in by_value.items())
        return f"{self.help} (default {format_value(self.default) or 'none'}{others})"


# Maps each parser to the type of its values and the name of this type in error messages. Other parsers' values aren't
# type-checked.
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
