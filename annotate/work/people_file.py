"""The table from which many annotators are made at once: a row for each person, and all that is wrong with it."""

import csv
import io
import re
from collections.abc import Collection
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError

from annotate.work.languages import HOW, is_language
from corpora.core.languages import LANGUAGES

COLUMNS = ("username", "name", "languages")
ANSWERS = {"": False, "no": False, "yes": True}
LONGEST = 150  # characters of a name, as many as Django keeps


@dataclass(frozen=True)
class Row:
    """levels: language -> 0 to 5. adjudicates: None where the table does not say; then an adjudicator stays one."""

    username: str
    name: str
    levels: dict[str, int]
    adjudicates: bool | None = None


class BadTable(ValueError):
    """The table of annotators cannot be taken; args are its faults, a sentence each. Nothing was changed."""


def read_table(text: str) -> list[Row]:
    """Rows of a CSV with the columns username, name, languages, the last like "de:5 en:4" (no level: 5, native).

    A column adjudicates, yes or no, may be there besides. Raises BadTable with every fault at once.
    """
    csv.field_size_limit(131_072)  # the limit is the process's, and an import may have raised it
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    rows, faults, usernames = [], [], set()
    try:
        if any(column not in (reader.fieldnames or ()) for column in COLUMNS):
            named = ", ".join(reader.fieldnames or ()) or "none"
            raise BadTable(f"The first line must name the columns {', '.join(COLUMNS)}; it names {named}.")
        for cells in reader:
            row, wrong = _read_row(cells, usernames)
            rows.append(row)
            usernames.add(row.username)
            faults += [f"Line {reader.line_num}: {fault}" for fault in wrong]
    except csv.Error as error:
        raise BadTable(*faults, f"Line {reader.line_num + 1}: this is not CSV: {error}.") from error
    if not rows:
        faults.append("The table has no rows.")
    if faults:
        raise BadTable(*faults)
    return rows


def _read_row(cells: dict, taken: Collection[str]) -> tuple[Row, list[str]]:
    """One person, and what is wrong with the line."""
    # As Django's login form normalises what is typed there.
    username = User.normalize_username((cells["username"] or "").strip())
    name = (cells["name"] or "").strip()
    faults = []
    if not _is_username(username) or username in taken:
        faults.append(f"{username!r} is not a user name (letters, digits and @.+-_), or stands here twice.")
    if len(name) > LONGEST or not name.isprintable():
        faults.append(f"the name is longer than {LONGEST} characters, or has some that cannot be seen.")
    if None in cells:
        faults.append("there are more cells than columns; separate languages by spaces, or quote them.")
    levels, wrong = _read_levels(cells["languages"] or "")
    faults += wrong
    answer = cells.get("adjudicates")
    adjudicates = None if answer is None else ANSWERS.get(answer.strip().lower())
    if answer is not None and adjudicates is None:
        faults.append(f"adjudicates is {answer!r}; write yes or no.")
    elif not levels and not faults and not adjudicates:
        faults.append("no language is named; write them as in de:5 en:4.")
    return Row(username, name, levels, adjudicates), faults


def _is_username(text: str) -> bool:
    try:
        UnicodeUsernameValidator()(text)
    except ValidationError:
        return False
    return len(text) <= LONGEST


def _read_levels(text: str) -> tuple[dict[str, int], list[str]]:
    """Languages with their levels, and what is wrong with them."""
    levels, faults = {}, []
    for word in filter(None, re.split(r"[\s;,]+", text)):
        code, _, level = word.partition(":")
        if not is_language(code):
            faults.append(f"{code!r} {HOW}.")
        elif finer := LANGUAGES[code].labels:
            faults.append(f"{code!r} stands for several labels; name those that the person reads: {', '.join(finer)}.")
        elif level not in ("", "0", "1", "2", "3", "4", "5"):
            faults.append(f"{word!r} has no level from 0 to 5.")
        elif code in levels:
            faults.append(f"{code!r} is named twice.")
        else:
            levels[code] = int(level or 5)
    return levels, faults
