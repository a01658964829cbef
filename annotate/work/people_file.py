"""Parses tables of annotators to create many accounts at once. All errors are reported together."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from annotate.work.routes import to_language_code, unknown_code
from corpora.core.languages import LANGUAGES
from corpora.core.values import is_missing, is_respelled, tidy
from corpora.sources.compression import check_file, format_of
from corpora.sources.readers import Columns, header_of, read_rows
from corpora.sources.text import Fault

COLUMNS = ("username", "name", "languages")
ADJUDICATES, EMAIL = "adjudicates", "email"  # optional columns
NAMELESS = "a column without a name, between or after commas"
LEVELS = tuple("012345")
ANSWERS = {"": False, "no": False, "yes": True}
LONGEST = 150  # maximum length of a name in characters, as in Django's User


@dataclass(frozen=True)
class Row:
    """One annotator.

    levels: reading level in each language, from 0 to 5.
    adjudicates: whether the annotator is an adjudicator; None to leave this unchanged.
    email: address for password links; "" if not stated.
    converted: Assay's code for each language that the table gives by name or by a code of another standard.
    """

    username: str
    name: str
    levels: dict[str, int]
    adjudicates: bool | None = None
    email: str = ""
    converted: Mapping[str, str] = field(default_factory=dict)


class BadTable(ValueError):
    """Raised if a table of annotators is invalid, before anything is changed. `args` has one message per error."""


def read_table(path: Path) -> list[Row]:
    """Read a table with the columns `username`, `name` and `languages`, in any tabular format.

    Languages are written with levels, e.g. "de:5 en:4". `adjudicates` (yes or no) and `email` are optional columns.

    Raise BadTable with all faults, or CorpusError if the file cannot be read.
    """
    format = format_of(path) or "csv"
    check_file(path, format)
    columns = header_of(path, format)
    _check_columns(columns)
    rows: list[Row] = []
    faults, usernames = [], dict[str, str]()
    for line, cells in read_rows(path, format, Columns({name: name for name in columns}, needed=())):
        if isinstance(cells, Fault):
            advice = " Separate languages by spaces, or quote them." if "the header has" in cells.reason else ""
            faults.append(f"Line {line:,}: {cells.reason}{advice}")
            continue
        row, row_faults = _read_row({name: _cell(value) for name, value in cells.items()}, usernames)
        rows.append(row)
        usernames.setdefault(row.username.casefold(), row.username)
        faults += [f"Line {line:,}: {fault}" for fault in row_faults]
    if not rows and not faults:
        faults.append("The table has no rows.")
    if faults:
        raise BadTable(*faults)
    return rows


def _check_columns(columns: Sequence[str]) -> None:
    """Raise BadTable if a required column is missing or a column is unknown."""
    if any(column not in columns for column in COLUMNS):
        raise BadTable(
            f"The first line must contain the columns {', '.join(COLUMNS)}, but contains "
            f"{', '.join(columns) or 'none'}."
        )
    if unknown := [column for column in columns if column not in (*COLUMNS, ADJUDICATES, EMAIL)]:
        unknown_columns = ", ".join(repr(column) if column else NAMELESS for column in unknown)
        raise BadTable(
            f"Unknown columns: {unknown_columns}. The columns are {', '.join(COLUMNS)}, {ADJUDICATES} and {EMAIL}. "
            "Rename or remove the unknown columns."
        )


def _cell(value: object) -> str | None:
    """Convert a value to the text it would have in a CSV file. None is a missing value."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " ".join(map(str, value))
    return None if value is None else str(value)


def read_person(username: str, name: str, languages: str, email: str = "", *, adjudicates: bool = False) -> Row:
    """Parse an annotator from form fields.

    Raise BadTable with all faults.
    """
    cells = {"username": username, "name": name, "languages": languages, EMAIL: email}
    row, faults = _read_row({**cells, ADJUDICATES: "yes" if adjudicates else "no"}, {})
    if faults:
        raise BadTable(*(f"{fault[0].upper()}{fault[1:]}" for fault in faults))
    return row


def case_clash(username: str, other: str) -> str:
    """Return the error message for a user name that differs from another one only in case.

    Such names are refused, because people could log in to the wrong account.
    """
    return f"the user name {username} differs from {other} only in case. Use {other} if it is the same person."


def _read_row(cells: dict[str, Any], used_names: Mapping[str, str]) -> tuple[Row, list[str]]:
    """Parse an annotator. Returns the row and the messages of its faults.

    cells: the cells by column name.
    used_names: user names of earlier rows, by their case-folded form.
    """
    # Normalize the name like Django's login form.
    username = User.normalize_username((cells["username"] or "").strip())
    name = _clean(cells["name"])
    faults = []
    if username and is_missing(username):
        faults.append(f"the user name is {username}, which programs write for a missing value. Enter a user name.")
    elif is_respelled(username):
        faults.append(f"the user name {username} is a number that another program has rewritten. Save it as text.")
    elif (other := used_names.get(username.casefold(), username)) != username:
        faults.append(case_clash(username, other))
    elif len(username) > LONGEST:
        faults.append(f"the user name {username[:20]!r}… is longer than {LONGEST} characters.")
    elif not _is_valid(UnicodeUsernameValidator(), username) or username.casefold() in used_names:
        faults.append(f"{username!r} is not a valid user name (letters, digits and @.+-_), or occurs twice.")
    if len(name) > LONGEST or not name.isprintable():
        faults.append(f"the name is longer than {LONGEST} characters or contains invisible characters.")
    email = _clean(cells.get(EMAIL))
    if email and not _is_valid(validate_email, email):
        faults.append(f"{email!r} is not a valid mail address.")
    levels, converted, level_faults = _read_levels(_clean(cells["languages"]))
    faults += level_faults
    answer = cells.get(ADJUDICATES)
    adjudicates = None if answer is None else ANSWERS.get(_clean(answer).lower())
    if answer is not None and adjudicates is None:
        faults.append(f"adjudicates is {answer!r}, but must be yes or no.")
    elif not levels and not faults and not adjudicates:
        faults.append("the languages are missing. Write them as in de:5 en:4.")
    return Row(username, name, levels, adjudicates, email, converted), faults


def _clean(cell: str | None) -> str:
    return "" if is_missing(cell) else tidy(cell or "")


def _is_valid(validate: Callable[[str], None], text: str) -> bool:
    try:
        validate(text)
    except ValidationError:
        return False
    return len(text) <= LONGEST


def _read_levels(text: str) -> tuple[dict[str, int], dict[str, str], list[str]]:
    """Parse languages with levels. Returns the level of each language, the converted codes, and the faults."""
    levels, converted, faults = {}, {}, []
    for word in filter(None, re.split(r"[\s;,]+", text)):
        written, _, level = word.partition(":")
        code = to_language_code(written)
        if code not in LANGUAGES:
            faults.append(unknown_code(code))
        elif finer := LANGUAGES[code].labels:
            faults.append(
                f"{written!r} covers several languages. Enter the ones that the person reads: {', '.join(finer)}."
            )
        elif level not in LEVELS:
            faults.append(f"{word!r} has no level from 0 to 5. Write it as in {code}:5, where 5 is native.")
        elif code in levels:
            faults.append(f"{code!r} occurs twice.")
        else:
            levels[code] = int(level)
            if written != code:
                converted[written] = code
    return levels, converted, faults
