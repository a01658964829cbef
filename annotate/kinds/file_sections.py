"""Readers for the tables of a kind's file that need special checks: answers, options, guidelines and languages."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotate.core.option import OptionError
from annotate.kinds.kind import ENGLISH, Kind, Named
from annotate.kinds.options import OPTIONS
from annotate.kinds.toml_tables import Table, nearest
from corpora.core.language_codes import ADDED_KEYS, add_names, code_of, read_added
from corpora.core.languages import LISTED, Language

# --- Limits on the size and structure of guidelines, so that a page can render the whole text quickly.


LONGEST_GUIDELINES = 100_000
# Markdown pads every table row to the width of the header, so a header with a thousand columns creates a thousand cells
# in each row.
MOST_COLUMNS = 50
# After each opening bracket, the parser scans the rest of the paragraph for a closing one. A paragraph with many
# opening brackets is therefore slow.
MOST_BRACKETS = 1_000
_BLANK = re.compile(r"(?<=\n)(?=[ \t]*\n)")
_RULE = re.compile(r"[ \t>|:-]*-[ \t>|:-]*")


def guidelines_fault(text: str) -> str:
    """Return what is wrong with the guidelines, or an empty string if they are valid.

    The text has no subject, because the caller adds it. For example, it may be "have 120,000 bytes, and 100,000 are the
    most".
    """
    if (size := len(text.encode(errors="replace"))) > LONGEST_GUIDELINES:
        allowed = f"at most {LONGEST_GUIDELINES:,} are allowed"
        return f"have {size:,} bytes, but {allowed}; shorten them, or link to what is long"
    for number, line in enumerate(text.splitlines(), 1):
        if line.count("|") > MOST_COLUMNS and _RULE.fullmatch(line):
            return f"have a table of more than {MOST_COLUMNS} columns in line {number:,}; part it"
    first = 1
    for paragraph in _BLANK.split(text):
        if paragraph.count("[") > MOST_BRACKETS:
            return f"have more than {MOST_BRACKETS:,} opening brackets in the paragraph at line {first:,}; split it"
        first += paragraph.count("\n")
    return ""


MOST_BYTES = 1_000_000  # maximum size of a kind's file, in bytes
# Maximum lengths of an answer's texts (characters). Its name and meaning are shown on a button.
MOST_CODE, MOST_NAME, MOST_MEANING = 64, 60, 200
# Help texts for the keys of an answer's table, shown in the documentation.
ANSWER_KEYS: Mapping[str, str] = {
    "code": "what is stored and exported",
    "name": "what the button says, in English or by language",
    "meaning": "what is said below the name, in English or by language; it may be left out",
    "key": "1 to 9 or a to z; without one, the answers have 1 to 9 by their place",
}
# Physical keys by their label on an English keyboard.
PHYSICAL = {str(digit): f"Digit{digit}" for digit in range(1, 10)} | {
    letter: f"Key{letter.upper()}" for letter in "abcdefghijklmnopqrstuvwxyz"
}
# Keys that the page itself uses (queue.js), with what they do.
OF_THE_PAGE = {
    "q": "Undefined",
    "w": "the list of languages",
    "z": "Undo",
    "c": "the comment",
    "g": "the guidelines",
    "space": "Skip",
}


# --- Answers.


def answers(top: Table, known: Collection[str], *, least: int = 2) -> dict[str, Named]:
    """Return the answers by code, in the order of the file.

    known: codes of known languages
    least: minimum number of answers, if the file lists any
    """
    found: dict[str, Named] = {}
    keys: dict[str, str] = {}
    names: dict[tuple[str, str], str] = {}
    tables = top.tables("answers")
    for place, table in enumerate(tables, 1):
        table.check_keys(ANSWER_KEYS, "[[answers]]")
        code = _code(table, found)
        key = _key(table)
        pressed = key or PHYSICAL.get(str(place), "")
        if pressed and (other := keys.setdefault(pressed, code)) != code:
            raise table.fault("key", f"{code} would have the same key as {other}; give it another with key.")
        found[code] = Named(
            by_language(table, "name", MOST_NAME, known),
            by_language(table, "meaning", MOST_MEANING, known) if "meaning" in table.raw else {},
            key,
        )
        for language, name in found[code].names.items():
            if (other := names.setdefault((language, name), code)) != code:
                raise table.fault(
                    "name", f"{code} would be called {name}, like {other}; give one of them another name."
                )
    if 0 < len(found) < least:
        raise top.fault("answers", "there is only one answer; add another [[answers]], since one alone asks nothing.")
    return found


def _code(table: Table, found: Mapping[str, Named]) -> str:
    code = table.text("code", 'write the code that is stored, such as code = "good"', MOST_CODE)
    if any(character.isspace() for character in code):
        raise table.fault(
            "code", f"the code {code!r} has a space in it; write one word, and put the rest into its name."
        )
    if code in found:
        raise table.fault("code", f"two answers have the code {code}; give one of them another code.")
    return code


def _key(table: Table) -> str:
    written = table.text("key")
    if not written:
        return ""
    key = written.lower()
    if key in OF_THE_PAGE:
        raise table.fault("key", f"the key {key} is that of {OF_THE_PAGE[key]} on the page; choose another.")
    if key not in PHYSICAL:
        raise table.fault("key", f"{written!r} is not a key that an answer can have; write one of 1 to 9 or a to z.")
    return PHYSICAL[key]


def by_language(table: Table, key: str, most: int, known: Collection[str]) -> dict[str, str]:
    """Return a text by language. The file has either an English text, or a table such as { en = …, de = … }.

    most: maximum length of a text (characters)
    known: codes of known languages
    """
    if key not in table.raw:
        raise table.fault(key, f'there is no {key}; write what people read, such as {key} = "Good".')
    value = table.raw[key]
    if not isinstance(value, dict):
        table.check_words(key, key, value, most)
        return {ENGLISH: value.strip()}
    words = table.table(key)
    for code, said in value.items():
        _check_language(words, code, known)
        words.check_words(code, f"the {key} in {code}", said, most)
    if ENGLISH not in value:
        raise table.fault(
            key, f"{key} has no English words, which all other languages fall back on; add {ENGLISH} to it."
        )
    return {code: said.strip() for code, said in value.items()}


# --- Options.


def options(table: Table, kind: Kind) -> dict[str, Any]:
    """Return the defaults of a kind's options, in which the file's values replace those of the kind."""
    given = {}
    for name, value in table.raw.items():
        if name not in OPTIONS:
            raise table.fault(name, f"{name!r} is not an option; {nearest(name, kind.options)}.")
        if name not in kind.options:
            raise table.fault(name, f"{name} is not an option of such a kind; leave it out.")
        option = OPTIONS[name]
        try:
            given[name] = option.check(value)
        except OptionError as error:
            said = str(error).replace(option.spelled, name, 1).replace("must be yes or no", "must be true or false")
            raise table.fault(name, said) from error
        for code in given[name] if isinstance(value, list) else ():
            if not kind.known(code):
                raise table.fault(name, f"{name} names {code!r}, which is not a language known here.")
    values = {name: OPTIONS[name].default for name in kind.options} | dict(kind.defaults) | given
    if (wanted := values.get("aggregation", "")) and wanted not in kind.form.aggregations:
        raise table.fault(
            "aggregation", f"answers that are not grades have no {wanted}; leave it out, or write form = 'grades'."
        )
    if fault := kind.rules.faults(values):
        raise table.source.fault(table.at, _lowered(fault))
    return {**kind.defaults, **given}


# --- Languages and guidelines.


def languages(table: Table, *, stored: bool) -> dict[str, Language]:
    """Return the languages that the file adds.

    stored: whether the file is stored with a task. Assay may list more languages now than when the task was opened,
        so languages of the file that are now listed are skipped.
    """
    found: dict[str, Language] = {}
    for code in table.raw:
        if stored and code in LISTED:
            continue
        if isinstance(table.raw[code], dict):
            table.table(code).check_keys(ADDED_KEYS, f"[languages.{code}]")
        try:
            found |= read_added({code: table.raw[code]})
        except ValueError as error:
            raise table.fault(code, _lowered(str(error))) from error
    return found


def add(table: Table, found: Mapping[str, Language]) -> None:
    """Add the languages of a file to those that the running program knows.

    Raise KindError if a language already exists under another name.
    """
    for code, language in found.items():
        try:
            add_names({code: language})
        except ValueError as error:
            raise table.fault(code, _lowered(str(error))) from error


def _check_language(table: Table, code: str, known: Collection[str]) -> None:
    """Raise KindError if a key is not a language code."""
    if code not in known:
        hint = f"the nearest is {near}" if (near := code_of(code)) else "write one such as de, zh-CN or hi-Latn"
        raise table.fault(code, f"{code!r} is not a code of a language; {hint}.")


def check_guidelines(table: Table, known: Collection[str]) -> None:
    """Raise KindError if guidelines are not texts or file names, by language. The files are not read."""
    for code in table.raw:
        _check_language(table, code, known)
        if not isinstance(table.raw[code], str) or not table.raw[code].strip():
            raise table.fault(
                code, f'the guidelines in {code} are not text; name a file, such as {code} = "{code}.md".'
            )
        if "\0" in table.raw[code]:
            raise table.fault(code, f"the guidelines in {code} hold a NUL, which no database keeps; remove it.")


def guidelines(table: Table, folder: Path) -> dict[str, str]:
    """Return the guidelines by language, as Markdown.

    An entry with several lines is the text itself. An entry with one line is the name of a file in the same folder.
    """
    texts = {}
    for code, written in table.raw.items():
        if "\n" in written:
            if wrong := guidelines_fault(written):
                raise table.fault(code, f"the guidelines in {code} {wrong}.")
            texts[code] = written
            continue
        if Path(written).is_absolute() or ".." in Path(written).parts:
            raise table.fault(code, f"the guidelines {written} are not beside the kind's file; put them there.")
        try:
            if (folder / written).stat().st_size > LONGEST_GUIDELINES:
                raise table.fault(
                    code, f"the guidelines {folder / written} have more than {LONGEST_GUIDELINES:,} bytes."
                )
            texts[code] = (folder / written).read_text(encoding="utf-8-sig")
        except OSError as error:
            why = f"cannot be read: {error.strerror}"
            raise table.fault(
                code, f"the guidelines {folder / written} {why}; write them, or correct the name."
            ) from error
        except UnicodeDecodeError as error:
            raise table.fault(code, f"the guidelines {folder / written} are not UTF-8; save them as UTF-8.") from error
        if wrong := guidelines_fault(texts[code]):
            raise table.fault(code, f"the guidelines {folder / written} {wrong}.")
        if not texts[code].strip():
            raise table.fault(code, f"the guidelines {folder / written} are empty; write what people should go by.")
    return texts


def _lowered(sentence: str) -> str:
    """Return a sentence with a lower-case first letter, so that it can follow a line number and a colon."""
    return sentence[0].lower() + sentence[1:]


# --- Published formats, and what they require of a kind. The modules of annotate/goldsets/formats/ write them.


@dataclass(frozen=True)
class Layout:
    """What a published format requires of a kind.

    fields: fields that the kind must have
    code: code of an answer that the kind must have, which means yes; "" if there is none
    numbers: whether the codes of all answers must be numbers, which rank the rows of a group
    several: whether an answer must consist of several labels
    """

    fields: tuple[str, ...]
    code: str = ""
    numbers: bool = False
    several: bool = False

    def misfit(self, fields: tuple[str, ...], codes: tuple[str, ...], several: bool) -> str:
        """Return why a kind with these fields and answers does not fit this layout; "" if it fits.

        codes: codes of the kind's answers
        several: whether an answer has several labels
        """
        if several and not self.several:
            return "has one label a line, and here an answer has several"
        if self.several and not several:
            return 'has several labels a document, and so needs form = "labels"'
        if missing := [name for name in self.fields if name not in fields]:
            return f"needs the fields {', '.join(self.fields)}, and there is no {', '.join(missing)}"
        if self.code and self.code not in codes:
            return f"needs an answer with the code {self.code!r}, which marks the pairs that fit"
        if self.numbers and not all(code.isdecimal() for code in codes):
            return "needs answers whose codes are numbers, such as 4 for the best of five"
        return ""


# Each format with its layouts by name.
FORMATS: dict[str, Mapping[str, Layout]] = {
    # XGLUE (Liang et al. 2020): tables with one pair per line.
    "xglue": {
        "qadsm": Layout(("query", "title", "description")),
        "qam": Layout(("question", "passage"), code="1"),
        "wpr": Layout(("query", "title", "snippet"), numbers=True),
    },
    # MLDoc (Schwenk and Li 2018): lists of ids, and files with one document per line.
    "mldoc": {"documents": Layout(())},
    # EURLEX57K (Chalkidis et al. 2019): one file per act, and a file with the descriptors of the concepts.
    "eurlex57k": {
        "acts": Layout(("title", "header", "recitals", "main_body", "attachments", "type"), several=True),
    },
}
