"""The part of a kind's TOML file that the question editor shows as a form.

`read` extracts this part from a file's text, and `write` updates the text. Everything else is kept, including comments.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT

from annotate.kinds.forms import FORMS
from annotate.kinds.interface_language import ENGLISH
from annotate.kinds.toml_tables import KindError, read_tables

Texts = dict[str, str]  # language -> text
TEMPLATES: Mapping[str, Path] = {
    path.stem: path for path in sorted((Path(__file__).parent / "templates").glob("*.toml"))
}

CODE = re.compile(r"[\w-]+")


@dataclass
class AnswerRow:
    """A possible answer. The form also shows an empty row, which is not written to the file."""

    code: str = ""
    key: str = ""
    names: Texts = field(default_factory=dict)
    meanings: Texts = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not (self.code or self.names or self.meanings)

    @property
    def stored_code(self) -> str:
        """The code. If it is empty, a code is derived from the English name."""
        return self.code or re.sub(r"\W+", "-", self.names.get(ENGLISH, "").lower()).strip("-")


@dataclass
class FieldRow:
    """A field that annotators see.

    style: style of the block that starts here; "" if the field belongs to the same block as the row above
    names: display names, by language
    was: name of the field in the file; "" for a new field
    """

    name: str = ""
    style: str = ""
    names: Texts = field(default_factory=dict)
    was: str = ""


@dataclass
class Draft:
    """The contents of the form.

    form: slug of the answer form
    redundancy: number of answers per item, as entered; "" for the default
    on_conflict: what happens to an item whose answers differ; "" for the default
    languages: languages of the texts, English first
    has_base: whether the kind modifies a built-in kind. Its form, fields and answers are then fixed.
    """

    titles: Texts = field(default_factory=dict)
    form: str = ""
    vocabulary: str = ""
    fields: list[FieldRow] = field(default_factory=list)
    answers: list[AnswerRow] = field(default_factory=list)
    redundancy: str = ""
    on_conflict: str = ""
    guidelines: Texts = field(default_factory=dict)
    languages: list[str] = field(default_factory=list)
    has_base: bool = False

    def texts(self) -> Iterator[Texts]:
        """Yield each text of the draft, as a mapping from language to text."""
        yield self.titles
        yield from (row.names for row in self.fields)
        for row in self.answers:
            yield from (row.names, row.meanings)
        yield self.guidelines

    @property
    def lists_answers(self) -> bool:
        """Whether the file lists the possible answers."""
        return not self.has_base and (self.form not in FORMS or FORMS[self.form].lists)

    @property
    def needs_vocabulary(self) -> bool:
        return not self.has_base and self.form in FORMS and "vocabulary" in FORMS[self.form].tables


# --- Reading. Values of a wrong type are ignored here, because files.py reports them.


def read(text: str) -> Draft:
    """Return the draft of a file's text. Raise KindError if the text is not TOML."""
    raw = read_tables("The file", text).raw
    field_names = _dict(raw.get("fields"))
    draft = Draft(
        titles=_texts(raw.get("title")),
        form=_string(raw.get("form")),
        vocabulary=_string(_dict(raw.get("vocabulary")).get("name")),
        fields=[
            FieldRow(name, _string(block.get("style")) if number == 0 else "", _texts(field_names.get(name)), name)
            for block in _tables(raw.get("layout"))
            for number, name in enumerate(_strings(block.get("fields")))
        ],
        answers=[
            AnswerRow(
                _string(row.get("code")),
                _string(row.get("key")),
                _texts(row.get("name")),
                _texts(row.get("meaning")),
            )
            for row in _tables(raw.get("answers"))
        ],
        redundancy=str(_dict(raw.get("options")).get("redundancy", "")),
        on_conflict=str(_dict(raw.get("options")).get("on_conflict", "")),
        guidelines={code: text.strip() for code, text in _texts(raw.get("guidelines")).items()},
        has_base="base" in raw,
    )
    draft.languages = [
        ENGLISH,
        *sorted({code for texts in draft.texts() for code in texts if CODE.fullmatch(code)} - {ENGLISH}),
    ]
    return draft


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _strings(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _dict(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _tables(value: object) -> list[Mapping[str, Any]]:
    return [table for table in value if isinstance(table, dict)] if isinstance(value, list) else []


def _texts(value: object) -> Texts:
    """Return the text by language. The value is either English text or a table by language."""
    if isinstance(value, str):
        return {ENGLISH: value}
    return {code: text for code, text in _dict(value).items() if isinstance(text, str)}


# Tables and their keys that name a field. If that field is no longer shown, `write` changes the key to the first field.
FIELD_KEYS = {"spans": "field", "text": "start"}


# --- Writing. We only change values that differ from the draft, to keep the rest of the file as its author wrote it.


def write(text: str, draft: Draft) -> str:
    """Return a file's text with the values of the draft. Raise KindError if the text is not TOML."""
    before = read(text)
    try:
        document = tomlkit.parse(text)
    except (TOMLKitError, RecursionError) as error:
        raise KindError(f"The editor cannot change this file ({error}). Change it as text.") from error
    _set(document, "title", draft.titles)
    if not draft.has_base:
        _set(document, "form", draft.form)
        _write_fields(document, draft.fields, [row.name for row in before.fields])
        _write_answers(document, draft.answers if draft.lists_answers else [])
        _set_in(document, "vocabulary", {"name": draft.vocabulary} if draft.needs_vocabulary else {}, ["name"])
        tables = FORMS[draft.form].tables if draft.form in FORMS else ()
        for key in {key for form in FORMS.values() for key in form.tables}.difference(tables):
            document.pop(key, None)
    answered = {"redundancy": _number(draft.redundancy), "on_conflict": draft.on_conflict}
    _set_in(document, "options", answered, list(answered))
    changed = {code: text for code, text in draft.guidelines.items() if before.guidelines.get(code) != text}
    _set_in(
        document,
        "guidelines",
        {code: _lines(text) for code, text in changed.items()},
        {code for code in before.guidelines if not draft.guidelines.get(code)},
    )
    return tomlkit.dumps(document)


def _set(table: MutableMapping[str, Any], key: str, value: Any) -> None:
    """Set a value, or remove its key if the value is empty. A dict holds the text by language."""
    current = table.get(key)
    if isinstance(value, dict):
        if _texts(current) == value:
            return
        if isinstance(current, dict) and value:
            for code in dict.fromkeys([*current, *value]):
                _set(current, code, value.get(code, ""))
            return
        value = value[ENGLISH] if value.keys() == {ENGLISH} else _inline(value) if value else ""
    if value in ("", []):
        table.pop(key, None)
    elif current != value:
        table[key] = value


def _table(document: MutableMapping[str, Any], key: str) -> MutableMapping[str, Any]:
    """Return a table of the document. If it is missing, return an empty table that isn't in the document yet."""
    if isinstance(table := document.get(key), dict):
        return table
    document.pop(key, None)
    return {}


def _inline(texts: Texts) -> Any:
    table = tomlkit.inline_table()
    table.update(texts)
    return table


def _set_in(document: MutableMapping[str, Any], key: str, values: Mapping[str, Any], names: Collection[str]) -> None:
    """Set values in a table of the document. Remove the table if it becomes empty.

    names: keys to remove if they are not in `values`
    """
    table = _table(document, key)
    for name in dict.fromkeys([*names, *values]):
        _set(table, name, values.get(name, ""))
    if table and key not in document:
        document[key] = table
    elif not table:
        document.pop(key, None)


def _write_fields(document: MutableMapping[str, Any], rows: Sequence[FieldRow], before: Sequence[str]) -> None:
    """Write the layout and the display names of fields.

    If a field was renamed, update the keys that name it: `apart`, `together`, and those in FIELD_KEYS.
    """
    blocks: list[dict[str, Any]] = []
    rows = [row for row in rows if row.name]
    for row in rows:
        if row.style or not blocks:
            blocks.append({"style": row.style, "fields": []})
        blocks[-1]["fields"].append(row.name)
    _set_tables(document, "layout", blocks)
    names = {row.was: row.name for row in rows if row.was}
    if isinstance(together := document.get("together"), str) and together in before:
        _set(document, "together", names.get(together, ""))
    if isinstance(apart := document.get("apart"), list):
        _set(document, "apart", [names.get(name, name) for name in apart if name in names or name not in before])
    for key, name in FIELD_KEYS.items():
        table = document.get(key)
        if isinstance(table, MutableMapping) and isinstance(used := table.get(name), str) and used in before:
            _set(table, name, names.get(used, rows[0].name if rows else used))
    _set_in(document, "fields", {row.name: row.names for row in rows}, before)


def _write_answers(document: MutableMapping[str, Any], rows: Iterable[AnswerRow]) -> None:
    written = [
        {"code": row.stored_code, "name": row.names, "meaning": row.meanings, "key": row.key}
        for row in rows
        if not row.is_empty
    ]
    _set_tables(document, "answers", written)


def _set_tables(document: MutableMapping[str, Any], key: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Set these values in a list of tables. Other values in the tables are kept."""
    if not rows:
        document.pop(key, None)
        return
    if not isinstance(document.get(key), AoT):
        document.pop(key, None)
        document[key] = tomlkit.aot()
    tables = document[key]
    for row in rows[len(tables) :]:
        table = tomlkit.table()
        for name, value in row.items():
            _set(table, name, value)
        tables.append(table.add(tomlkit.nl()))
    del tables[len(rows) :]
    for table, row in zip(tables, rows, strict=True):
        for name, value in row.items():
            _set(table, name, value)


def _lines(text: str) -> Any:
    """Return the text as a multi-line TOML string. Its line break distinguishes the text from the name of a file."""
    string = tomlkit.string(f"{text}\n", multiline=True).as_string()
    return tomlkit.value('"""\n' + string.removeprefix('"""')) if text else ""


def _number(written: str) -> int | float | str:
    for number in (int, float):
        try:
            return number(written)
        except ValueError:
            continue
    return written


# --- The location of an error in the form.


def form_location(path: Sequence[str | int], draft: Draft) -> str:
    """Return the part of the form for an error at a key, such as `title`, `answer-2` or `guidelines-de`.

    Return "" if the form doesn't show the key.

    path: path of the key in the text that `write` returned for the draft
    """
    match list(path):
        case ["slug" | "title" | "form" | "vocabulary" as key, *_]:
            return key
        case ["options", *rest] if rest in ([], ["redundancy"]):
            return "redundancy"
        case ["guidelines", str(code)] if code in draft.languages:
            return f"guidelines-{code}"
        case ["answers", int(index), *_]:
            written = [number for number, row in enumerate(draft.answers) if not row.is_empty]
            return f"answer-{written[index]}" if index < len(written) else ""
        case ["layout", int(index), *_]:
            begins = [number for number, row in enumerate(draft.fields) if row.name and (row.style or not number)]
            return f"field-{begins[index]}" if index < len(begins) else ""
        case ["fields", str(name), *_]:
            return next((f"field-{number}" for number, row in enumerate(draft.fields) if row.name == name), "")
        case ["answers" | "layout" as key, *_]:
            return key
    return ""
