"""Readers for the tables of a kind's file that need special checks: answers, options, languages and guidelines."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotate.core.option import OptionError
from annotate.kinds.kind import ENGLISH, Kind, Named
from annotate.kinds.options import OPTIONS
from annotate.kinds.toml_tables import Table, nearest
from corpora.core.languages import ADDED_KEYS, LISTED, Language, add_names, read_added, unknown_code

# --- Limits on the size and structure of guidelines, to bound the time for rendering them.


LONGEST_GUIDELINES = 100_000
# The Markdown parser pads every table row to the width of the header.
MOST_COLUMNS = 50
# After each opening bracket, the parser scans the rest of the paragraph for a closing one.
MOST_BRACKETS = 1_000
_BLANK = re.compile(r"(?<=\n)(?=[ \t]*\n)")
_RULE = re.compile(r"[ \t>|:-]*-[ \t>|:-]*")


def guidelines_fault(text: str) -> str:
    """Return what is wrong with the guidelines; "" if they are valid.

    The result is a predicate that needs a subject, such as "have 120,000 bytes, but at most 100,000 are
    allowed".
    """
    if (size := len(text.encode(errors="replace"))) > LONGEST_GUIDELINES:
        allowed = f"at most {LONGEST_GUIDELINES:,} are allowed"
        return f"have {size:,} bytes, but {allowed}. Shorten them or link to long texts"
    for number, line in enumerate(text.splitlines(), 1):
        if line.count("|") > MOST_COLUMNS and _RULE.fullmatch(line):
            return f"have a table with more than {MOST_COLUMNS} columns in line {number:,}. Split the table"
    line_number = 1
    for paragraph in _BLANK.split(text):
        if paragraph.count("[") > MOST_BRACKETS:
            return (
                f"have more than {MOST_BRACKETS:,} opening brackets in the paragraph at line {line_number:,}. Split it"
            )
        line_number += paragraph.count("\n")
    return ""


MOST_BYTES = 1_000_000  # maximum size of a kind's file, in bytes
# Maximum lengths of an answer's texts (characters). The button shows its name and meaning.
MOST_CODE, MOST_NAME, MOST_MEANING = 64, 60, 200
# Help texts for the keys of an answer's table, shown in the documentation.
ANSWER_KEYS: Mapping[str, str] = {
    "code": "the code that is stored and exported",
    "name": "the text of the button, in English or by language",
    "meaning": "an explanation below the name, in English or by language (optional)",
    "key": "1 to 9 or a to z; by default, 1 to 9 by position",
}
# Physical keys (KeyboardEvent.code) by their label on an English keyboard.
PHYSICAL = {str(digit): f"Digit{digit}" for digit in range(1, 10)} | {
    letter: f"Key{letter.upper()}" for letter in "abcdefghijklmnopqrstuvwxyz"
}
# Keys that the page itself uses (queue.js), with their purposes.
PAGE_KEYS = {
    "q": "Undefined",
    "w": "the list of languages",
    "z": "Undo",
    "c": "the comment",
    "g": "the guidelines",
    "space": "Skip",
}


# --- Answers.


def answers(top: Table, language_codes: Collection[str], *, least: int = 2) -> dict[str, Named]:
    """Return the answers by code, in file order.

    language_codes: codes of known languages
    least: minimum number of answers, if the file lists any
    """
    answers_by_code: dict[str, Named] = {}
    keys: dict[str, str] = {}
    names: dict[tuple[str, str], str] = {}
    tables = top.tables("answers")
    for number, table in enumerate(tables, 1):
        table.check_keys(ANSWER_KEYS, "[[answers]]")
        code = _code(table, answers_by_code)
        key = _key(table)
        pressed = key or PHYSICAL.get(str(number), "")
        if pressed and (other := keys.setdefault(pressed, code)) != code:
            raise table.fault("key", f"{code} has the same key as {other}. Set key to another key for one of them.")
        answers_by_code[code] = Named(
            by_language(table, "name", MOST_NAME, language_codes),
            by_language(table, "meaning", MOST_MEANING, language_codes) if "meaning" in table.raw else {},
            key,
        )
        for language, name in answers_by_code[code].names.items():
            if (other := names.setdefault((language, name), code)) != code:
                raise table.fault("name", f"the name of {code} is {name}, like that of {other}. Rename one of them.")
    if 0 < len(answers_by_code) < least:
        raise top.fault("answers", "there is only one answer, so there is nothing to choose. Add another [[answers]].")
    return answers_by_code


def _code(table: Table, answers_by_code: Mapping[str, Named]) -> str:
    code = table.text("code", 'Write the code that is stored, such as code = "good"', MOST_CODE)
    if any(character.isspace() for character in code):
        raise table.fault("code", f"the code {code!r} contains a space. Write one word, and put the rest into name.")
    if code in answers_by_code:
        raise table.fault("code", f"two answers have the code {code}. Change one of them.")
    return code


def _key(table: Table) -> str:
    written = table.text("key")
    if not written:
        return ""
    key = written.lower()
    if key in PAGE_KEYS:
        raise table.fault("key", f"the page uses the key {key} for {PAGE_KEYS[key]}. Choose another key.")
    if key not in PHYSICAL:
        raise table.fault("key", f"{written!r} is not a valid key. Use 1 to 9 or a to z.")
    return PHYSICAL[key]


def by_language(table: Table, key: str, most: int, language_codes: Collection[str]) -> dict[str, str]:
    """Return the text by language. The value is either English text or a table such as { en = …, de = … }.

    most: maximum length of each text (characters)
    language_codes: codes of known languages
    """
    if key not in table.raw:
        raise table.fault(key, f'{key} is missing. Write the text that people read, such as "Good".')
    value = table.raw[key]
    if not isinstance(value, dict):
        table.check_words(key, key, value, most)
        return {ENGLISH: value.strip()}
    texts = table.table(key)
    for code, text in value.items():
        _check_language(texts, code, language_codes)
        texts.check_words(code, f"the {key} in {code}", text, most)
    if ENGLISH not in value:
        noun = key if key in ("name", "title", "meaning") else "text"
        raise table.fault(key, f"{key} has no English text. Write the English {noun} too.")
    return {code: text.strip() for code, text in value.items()}


# --- Options.


def options(table: Table, kind: Kind) -> dict[str, Any]:
    """Return the default values of a kind's options. Values in the file override the kind's own defaults."""
    file_values = {}
    for name, value in table.raw.items():
        if name not in OPTIONS:
            raise table.fault(name, f"{name!r} is not an option. {nearest(name, kind.options)}")
        if name not in kind.options:
            raise table.fault(name, f"{name} is not an option of this kind. Remove it.")
        option = OPTIONS[name]
        try:
            file_values[name] = option.check(value)
        except OptionError as error:
            message = str(error).replace(option.spelled, name, 1).replace("must be yes or no", "must be true or false")
            raise table.fault(name, message) from error
        for code in file_values[name] if isinstance(value, list) else ():
            if not kind.knows(code):
                raise table.fault(name, f"{name} contains {code!r}, which is not a known language.")
    values = {name: OPTIONS[name].default for name in kind.options} | dict(kind.defaults) | file_values
    if (aggregation := values.get("aggregation", "")) and aggregation not in kind.form.aggregations:
        raise table.fault(
            "aggregation",
            f"only grades can be aggregated by {aggregation}. Remove aggregation, or write form = 'grades'.",
        )
    if fault := kind.rules.faults(values):
        for name in kind.options:
            fault = fault.replace(OPTIONS[name].spelled, name)
        raise table.source.fault(table.at, _lower_first(fault))
    return {**kind.defaults, **file_values}


# --- Languages and guidelines.


def languages(table: Table, *, stored: bool) -> dict[str, Language]:
    """Return the languages that the file adds.

    stored: whether the file's text is from a task. Languages that Assay has added since then are skipped.
    """
    added: dict[str, Language] = {}
    for code in table.raw:
        if stored and code in LISTED:
            continue
        if isinstance(table.raw[code], dict):
            table.table(code).check_keys(ADDED_KEYS, f"[languages.{code}]")
        try:
            added |= read_added({code: table.raw[code]})
        except ValueError as error:
            raise table.fault(code, _lower_first(str(error))) from error
    return added


def add(table: Table, added: Mapping[str, Language]) -> None:
    """Register the languages of a file. Raise KindError if a language already has a different name."""
    for code, language in added.items():
        try:
            add_names({code: language})
        except ValueError as error:
            raise table.fault(code, _lower_first(str(error))) from error


def _check_language(table: Table, code: str, language_codes: Collection[str]) -> None:
    """Raise KindError if a key is not a language code."""
    if code not in language_codes:
        raise table.fault(code, f"{code!r} {unknown_code(code)}")


def check_guidelines(table: Table, language_codes: Collection[str]) -> None:
    """Raise KindError if the table doesn't map languages to texts or file names. The files are not read."""
    for code in table.raw:
        _check_language(table, code, language_codes)
        if not isinstance(table.raw[code], str) or not table.raw[code].strip():
            raise table.fault(
                code, f'the guidelines in {code} are not text. Enter the name of a file, such as {code} = "{code}.md".'
            )
        if "\0" in table.raw[code]:
            raise table.fault(
                code, f"the guidelines in {code} contain a NUL character, which databases cannot store. Remove it."
            )


def guidelines(table: Table, folder: Path) -> dict[str, str]:
    """Return the guidelines by language, as Markdown.

    An entry with several lines is the text itself. An entry with one line is the name of a file in the folder.
    """
    texts = {}
    for code, entry in table.raw.items():
        if "\n" in entry:
            if fault := guidelines_fault(entry):
                raise table.fault(code, f"the guidelines in {code} {fault}.")
            texts[code] = entry
            continue
        if Path(entry).is_absolute() or ".." in Path(entry).parts:
            raise table.fault(code, f"the guidelines {entry} are not in the folder of the kind. Move them there.")
        try:
            if (folder / entry).stat().st_size > LONGEST_GUIDELINES:
                raise table.fault(code, f"the guidelines {folder / entry} have more than {LONGEST_GUIDELINES:,} bytes.")
            texts[code] = (folder / entry).read_text(encoding="utf-8-sig")
        except OSError as error:
            reason = f"cannot be read: {error.strerror}"
            raise table.fault(
                code, f"the guidelines {folder / entry} {reason}. Create the file or correct its name."
            ) from error
        except UnicodeDecodeError as error:
            raise table.fault(code, f"the guidelines {folder / entry} are not UTF-8. Save them as UTF-8.") from error
        if fault := guidelines_fault(texts[code]):
            raise table.fault(code, f"the guidelines {folder / entry} {fault}.")
        if not texts[code].strip():
            raise table.fault(code, f"the guidelines {folder / entry} are empty. Write rules for people to follow.")
    return texts


def _lower_first(sentence: str) -> str:
    """Return a sentence with a lower-case first letter, so that it can follow a line number and a colon."""
    return sentence[0].lower() + sentence[1:]


# --- What published formats require of a kind. The modules of annotate/goldsets/formats/ write the formats.


@dataclass(frozen=True)
class Layout:
    """What one layout of a published format requires of a kind.

    fields: fields that the kind must have
    codes: answer codes that the kind must have
    numbers: whether all answer codes must be numbers, to rank the rows in a group
    several: whether the kind's answers must be sets of labels
    """

    fields: tuple[str, ...]
    codes: tuple[str, ...] = ()
    numbers: bool = False
    several: bool = False

    def misfit(self, fields: tuple[str, ...], codes: tuple[str, ...], several: bool) -> str:
        """Return why a kind doesn't fit the layout; "" if it fits.

        fields: the kind's fields
        codes: the kind's answer codes
        several: whether the kind's answers are sets of labels
        """
        if several and not self.several:
            return "allows only one label per answer, but answers of this kind have several"
        if self.several and not several:
            return 'requires several labels per answer (form = "labels")'
        if missing := [name for name in self.fields if name not in fields]:
            return f"requires the fields {', '.join(self.fields)} (missing: {', '.join(missing)})"
        if missing := [code for code in self.codes if code not in codes]:
            return f"requires an answer with the code {missing[0]!r}"
        if self.numbers and not all(code.isdecimal() for code in codes):
            return "requires numbers as the codes of the answers, such as 4 for the best of five"
        return ""


@dataclass(frozen=True)
class TextLayout(Layout):
    """What a layout requires of a kind whose answers are free texts."""

    several: bool = True

    def misfit(self, fields: tuple[str, ...], codes: tuple[str, ...], several: bool) -> str:
        return 'requires texts as answers (form = "text")' if codes else super().misfit(fields, codes, several)


# Each format with its layouts by name.
FORMATS: dict[str, Mapping[str, Layout]] = {
    # XGLUE (Liang et al. 2020): tables with one record per line.
    "xglue": {
        "qadsm": Layout(("query", "title", "description")),
        "qam": Layout(("question", "passage"), codes=("1",)),
        "wpr": Layout(("query", "title", "snippet"), numbers=True),
        "qg": TextLayout(("passage",)),
        "nc": Layout(("title", "body")),
        "ntg": TextLayout(("body",)),
        "xnli": Layout(("premise", "hypothesis"), codes=("entailment", "neutral", "contradiction")),
        "pawsx": Layout(("sentence1", "sentence2"), codes=("0", "1")),
    },
    # MLDoc (Schwenk and Li 2018): lists of ids, and files with one document per line.
    "mldoc": {"documents": Layout(())},
    # EURLEX57K (Chalkidis et al. 2019): one file per act, and a file with the descriptors of the concepts.
    "eurlex57k": {"acts": Layout(("title", "header", "recitals", "main_body", "attachments", "type"), several=True)},
}
