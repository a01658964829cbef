"""A strict reader for kinds defined by TOML files. Each error states the line and the fault.

A file can define its own fields, form and answers. Alternatively, it can name `language` or `verify` as its `base`, and
change that kind's languages, labels, options, guidelines or title. file_sections.py reads the tables that need special
checks.
"""

import re
from collections import ChainMap
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from annotate.kinds import concept_kind, file_sections, language, preference_kind, record_kind, span_kind, text_kind
from annotate.kinds.control import CONTROLS, QualityControl
from annotate.kinds.file_sections import FORMATS
from annotate.kinds.forms import FORMS, Form
from annotate.kinds.interface_language import ENGLISH
from annotate.kinds.kind import STYLES, VEIL, Block, Kind, Records, Sensitive
from annotate.kinds.toml_tables import KindError, Table, nearest, read_tables
from corpora.core.languages import LANGUAGES, UND, Language, add_names, code_of, in_its_case
from corpora.core.records import FIELD_NAME, RESERVED

__all__ = ["KindError", "kind_from_text", "kind_of", "read_kind", "read_text"]

MODULES: dict[str, Kind] = {kind.slug: kind for kind in (language.KIND, language.VERIFY)}
HERE = Path(__file__).parent
# Sensitive units per annotator and day: the default limit, and the highest limit that a file can set.
A_DAY, MOST_A_DAY = 50, 1_000
MOST_SECONDS = 3_600
BLOCK_KEYS = ("style", "fields")
# Help texts for the keys of the `[sensitive]` table, shown in the documentation.
SENSITIVE_KEYS: Mapping[str, str] = {
    "warning": "the warning that annotators must accept first, in English or by language",
    "a_day": f"the maximum number of a task's items per annotator and day (default {A_DAY})",
}
# Help texts for the keys of a file, shown in the documentation.
KEY_HELP: Mapping[str, str] = {
    "title": "the question, in one sentence, in English or by language",
    "form": "the type of answer: `choice`; `grades`, best first, which have a median; `labels`, several concepts of a "
    "vocabulary; `pair`, the better of two systems, or neither; `spans`, labelled ranges of a text; or `text`, which "
    "one annotator writes and others review",
    "together": "a field, such as `query`. All records with the same value are drawn together",
    "apart": "fields, such as `product`. Records with the same value go to the same split, so that train and test "
    "never share a value",
    "kept": "fields that exported sets contain, but annotators don't see",
    "split": "the field with each record's split (train, dev or test), instead of random splits",
    "layout": "tables `[[layout]]`, one for each block of fields, from top to bottom",
    "fields": "a table `[fields]` with the display names of fields, in English or by language. Other fields keep the "
    "names of their columns",
    "answers": "tables `[[answers]]`, one for each possible answer",
    "answers_from": '`"draw"`: the answers are those in `--labels` of `open_task`, followed by those of `[[answers]]`',
    "filtered": "for a kind that audits a filter: the answer for items that the filter should drop. The draw contains "
    "both kept and dropped items",
    "vocabulary": 'with `form = "labels"`: a table `[vocabulary]` with the name of the vocabulary and the size of '
    "answers",
    "spans": 'with `form = "spans"`: a table `[spans]` with the field to mark spans in, and the rules for spans',
    "text": 'with `form = "text"`: a table `[text]` with the length of texts and the number of reviewers',
    "sensitive": "a table `[sensitive]` for texts that may distress readers: annotators must accept a warning, each "
    "text is veiled until they ask for it, and there is a daily limit",
    "seconds": f"expected seconds per answer, for forecasts before there are any answers (default {Kind.seconds})",
    "controls": "names of further quality controls, from plug-ins",
    "options": "defaults of options of `open_task`, with `_` instead of `-`",
    "guidelines": "for each language a Markdown file in the same folder, or the text itself",
    "publishes": '`xglue = "qadsm"`, `"qam"`, `"wpr"`, `"qg"`, `"nc"`, `"ntg"`, `"xnli"` or `"pawsx"`, for kinds that '
    'have their fields; `mldoc = "documents"`, for classes that the draw names; `eurlex57k = "acts"`, for concepts '
    "of acts",
    "languages": "a table `[languages.CODE]` for each language that Assay does not know, or calls by another name",
    "base": "the built-in kind to change, `language` or `verify`. It replaces `form`, `layout` and `answers`",
    "labels": 'with `base = "language"`: the codes of the possible answers',
}
# The keys of a file with a base, and of a file without a base.
KEYS_WITH_BASE = ("base", "title", "labels", "sensitive", "seconds", "controls", "options", "guidelines", "languages")
KEYS = tuple(key for key in KEY_HELP if key not in ("base", "labels"))
# Names of columns in exported sets, which fields must not have.
EXPORT_COLUMNS = frozenset(
    {
        *RESERVED,
        *record_kind.COLUMNS,
        *record_kind.OF_SETS,
        *concept_kind.COLUMNS,
        *preference_kind.COLUMNS,
        *span_kind.COLUMNS,
        *text_kind.COLUMNS,
        "left_out",
        "left_out_why",
    }
)
MOST_WARNING = 1_000  # maximum length of a warning (characters)
MOST_TITLE = 200  # maximum length of a title (characters), as in the database
SLUG = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


@lru_cache(maxsize=256)
def kind_of(slug: str, text: str) -> Kind:
    """Parse the kind's file that a task stores, and register the languages that the file adds.

    The kind has no guidelines, because the task stores them separately.
    """
    kind = _kind(slug, read_tables(f"{slug}.toml", text), stored=True)
    if unknown := {code: language for code, language in kind.languages.items() if code not in LANGUAGES.data}:
        add_names(unknown)
    return kind


def read_kind(path: Path) -> Kind:
    """Read a kind from a file, and its guidelines from files in the same folder.

    Raise KindError if a file is missing or invalid.
    """
    return kind_from_text(path, read_text(path))


def read_text(path: Path) -> str:
    """Return the text of a kind's file. Raise KindError if the file is missing, too long or not UTF-8."""
    try:
        if path.stat().st_size > file_sections.MOST_BYTES:
            raise KindError(f"{path} has more than {file_sections.MOST_BYTES:,} bytes, the maximum for a kind's file.")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise KindError(f"Cannot read {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        line = 1 + error.object[: error.start].count(b"\n")
        raise KindError(f"{path}, line {line}: this is not UTF-8. Save the file as UTF-8.") from error
    return text.replace("\r\n", "\n")


def kind_from_text(path: Path, text: str) -> Kind:
    """Return the kind defined by text that is not saved yet.

    path: file that will have the text; its name is the kind's name, and its folder contains the guidelines

    Raise KindError if the text, the name of the file or the guidelines are invalid.
    """
    _check_slug(path)
    top = read_tables(str(path), text)
    kind = _kind(path.stem, top, stored=False)
    texts = file_sections.guidelines(top.table("guidelines"), path.parent)
    file_sections.add(top.table("languages"), kind.languages)
    return replace(kind, guidelines={**kind.guidelines, **texts})


def _check_slug(path: Path) -> None:
    slug = path.stem
    if not SLUG.fullmatch(slug):
        advice = "Use up to 64 letters (a to z), digits, _ and -, as in my_kind.toml."
        sentence = f"{slug!r} is not a valid name for a kind. {advice}"
        raise KindError(f"{path}: {sentence}", sentence, ("slug",))
    is_own = path.resolve().parent != HERE.resolve()
    if is_own and slug in {*MODULES, *(file.stem for file in HERE.glob("*.toml"))}:
        sentence = f"{slug} is the name of a built-in kind. Rename the file."
        raise KindError(f"{path}: {sentence}", sentence, ("slug",))


def _kind(slug: str, top: Table, *, stored: bool) -> Kind:
    """Return the kind that a file describes.

    stored: whether the text is from a task. It was valid when the task was opened. It stays valid if a later version of
        Assay adds one of its languages, or an export column named like one of its fields.
    """
    has_base = "base" in top.raw
    if has_base and (extra_key := next((key for key in top.raw if key in KEYS and key not in KEYS_WITH_BASE), "")):
        raise top.fault(extra_key, f"a kind with a base cannot have {extra_key}. Remove {extra_key} or base.")
    if not has_base and "form" in top.raw:
        _form(top)  # first, because the keys of a form that isn't installed are unknown
    of_forms = (key for form in FORMS.values() for key in form.tables)
    keys = KEYS_WITH_BASE if has_base else [*dict.fromkeys((*KEYS, *of_forms))]
    top.check_keys(keys, "a kind with a base" if has_base else "a kind's file")
    added = file_sections.languages(top.table("languages"), stored=stored)
    language_codes = ChainMap(added, LANGUAGES)
    file_sections.check_guidelines(top.table("guidelines"), language_codes)
    sensitive = _sensitive(top, language_codes)
    kind = (
        _kind_with_base(slug, top, language_codes, added)
        if has_base
        else _kind_without_base(slug, top, language_codes, frozenset() if stored else EXPORT_COLUMNS)
    )
    if sensitive and (key := next((code for code, answer in kind.answers.items() if answer.key == VEIL.code), "")):
        raise top.fault(
            "sensitive", f"the answer {key} has the key {VEIL.cap}, which shows a veiled text. Choose another key."
        )
    controls = [_control(top, name) for name in top.words("controls")]
    kind = replace(
        kind,
        controls=(*kind.controls, *(control.name for control in controls)),
        options=(*kind.options, *(option.name for control in controls for option in control.options)),
    )
    if sensitive:
        # Don't show sensitive texts on sheets, which contain twenty texts.
        kind = kind.with_parts(pages={"sheet": ""})
    return replace(
        kind,
        defaults=file_sections.options(top.table("options"), kind),
        languages=added,
        seconds=top.number("seconds", kind.seconds, MOST_SECONDS),
        sensitive=sensitive,
        source=top.source.text,
    )


def _control(top: Table, name: str) -> QualityControl:
    if name not in CONTROLS:
        raise top.fault("controls", f"the quality control {name!r} is not installed. {nearest(name, CONTROLS)}")
    return CONTROLS[name]


def _titles(top: Table, language_codes: Collection[str], advice: str = "") -> dict[str, str]:
    """Return the question by language; empty if the file has none.

    advice: what the error advises to write if the question is missing; "" if the question is optional
    """
    if isinstance(top.raw.get("title"), dict):
        return file_sections.by_language(top, "title", MOST_TITLE, language_codes)
    title = top.text("title", advice, MOST_TITLE)
    return {ENGLISH: title} if title else {}


def _kind_with_base(slug: str, top: Table, language_codes: Collection[str], added: Mapping[str, Language]) -> Kind:
    base = top.text("base")
    if base not in MODULES:
        raise top.fault("base", f"{base!r} cannot be a base. {nearest(base, MODULES)}")
    kind = replace(MODULES[base], slug=slug, languages=added)
    if titles := _titles(top, language_codes):
        kind = replace(kind, title=titles[ENGLISH])
        kind = kind.with_parts(wording={"titles": titles, "about": None})
    return replace(kind, labels=_labels(top, kind))


def _labels(top: Table, kind: Kind) -> list[str]:
    """Return the labels that the file lists; otherwise the base's labels and the languages that the file adds.

    By default, a base label that covers several added languages is left out, because annotators can choose the exact
    language instead.
    """
    labels = top.words("labels")
    if "labels" in top.raw and kind.asks_each:
        raise top.fault("labels", f"{top.raw['base']} asks about the languages for which it is opened. Remove labels.")
    for code in labels:
        if code == UND:
            raise top.fault("labels", f"{UND} is among the labels, but is always a possible answer. Remove it.")
        if not kind.knows(code):
            near = in_its_case(code, kind.languages) or code_of(code)
            hint = f"Did you mean {near}?" if near else f"Add it in a table [languages.{code}]."
            raise top.fault("labels", f"the label {code!r} is not a known language. {hint}")
    if "labels" in top.raw and not labels:
        raise top.fault("labels", "labels is empty. Name two or more languages, or remove labels.")
    base_labels = [
        code
        for code in kind.labels
        if len([fine_code for fine_code in kind.finer(code) if fine_code in kind.languages]) < 2
    ]
    return labels or [*base_labels, *(code for code in kind.languages if code not in base_labels)]


def _kind_without_base(slug: str, top: Table, language_codes: Collection[str], reserved: Collection[str]) -> Kind:
    """Return the kind that a file without a base describes.

    language_codes: codes of known languages
    reserved: names that fields must not have
    """
    titles = _titles(top, language_codes, 'Write the question, such as title = "Is the ad relevant?"')
    form, layout, from_draw = _form(top), _layout(top, reserved), _from_draw(top)
    least = 1 if from_draw else form.least_answers
    file_answers = file_sections.answers(top, language_codes, least=least) if form.lists else {}
    answers = file_answers or form.answers(top)
    fields = tuple(name for block in layout for name in block.fields)
    kept_fields = _kept_fields(top, fields, reserved)
    records = Records(
        together=_field(top, "together", top.text("together"), fields) if "together" in top.raw else "",
        apart=tuple(_field(top, "apart", name, fields) for name in top.words("apart")),
        kept=kept_fields,
        split=_split(top, from_draw),
    )
    kind = record_kind.kind(slug, titles[ENGLISH], form, answers, layout, records)
    names = _field_names(top.table("fields"), fields, language_codes)
    formats = _formats(top.table("publishes"), (*fields, *kept_fields), tuple(answers), several=form.several)
    kind = kind.with_parts(wording={"titles": titles, "field_names": names}, publication={"formats": formats})
    if filtered := _filtered(top, answers):
        kind = record_kind.with_filter_audit(kind, filtered)
    kind = form.of_file(top, kind)
    if layout and form.lists and not (answers or from_draw):
        raise top.fault("answers", "there are no answers. Add two or more [[answers]], each with a code and a name.")
    if answers and not layout:
        raise top.fault("answers", "there are answers but nothing to show. Add a [[layout]] with a style and fields.")
    return record_kind.with_answers_from_draw(kind) if from_draw else kind


def _form(top: Table) -> Form:
    name = top.text("form", f'Write one, such as form = "{next(iter(FORMS))}". Available forms: {_enumerate(FORMS)}')
    if name not in FORMS:
        raise top.fault("form", f"the form of answers {name!r} is not installed. {nearest(name, FORMS)}")
    for other in FORMS.values():
        for key in set(other.tables).difference(FORMS[name].tables).intersection(top.raw):
            raise top.fault(key, f'the table [{key}] requires form = "{other.slug}". Write that, or remove {key}.')
    return FORMS[name]


def _enumerate(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}"


def _from_draw(top: Table) -> bool:
    """Return whether the draw determines the possible answers. Any answers in the file come after them."""
    if "answers_from" not in top.raw:
        return False
    if (value := top.text("answers_from")) != "draw":
        raise top.fault("answers_from", f'answers_from is {value!r}, but must be "draw".')
    return True


def _sensitive(top: Table, language_codes: Collection[str]) -> Sensitive | None:
    """Return the settings for sensitive texts; None if the file doesn't declare its texts as sensitive.

    language_codes: codes of known languages
    """
    if "sensitive" not in top.raw:
        return None
    table = top.table("sensitive")
    table.check_keys(SENSITIVE_KEYS, "[sensitive]")
    if "warning" not in table.raw:
        raise table.fault(
            "warning", 'warning is missing. Describe what may distress, such as warning = "Insults and threats."'
        )
    a_day = table.number("a_day", A_DAY, MOST_A_DAY)
    return Sensitive(file_sections.by_language(table, "warning", MOST_WARNING, language_codes), a_day)


def _layout(top: Table, reserved: Collection[str]) -> tuple[Block, ...]:
    blocks, seen = [], set[str]()
    for table in top.tables("layout"):
        table.check_keys(BLOCK_KEYS, "[[layout]]")
        style = table.text("style", f"Write one of {', '.join(STYLES)}")
        if style not in STYLES:
            raise table.fault("style", f"{style!r} is not a style. {nearest(style, STYLES)}")
        fields = table.words("fields")
        if not fields:
            raise table.fault("fields", 'the block has no fields. Name one or more, such as fields = ["query"].')
        for name in fields:
            if name in seen:
                raise table.fault("fields", f"the field {name} is shown twice. Show it in one block only.")
            _check_field(table, "fields", name, reserved)
            seen.add(name)
        blocks.append(Block(style, tuple(fields)))
    return tuple(blocks)


def _field_names(table: Table, fields: tuple[str, ...], language_codes: Collection[str]) -> dict[str, dict[str, str]]:
    """Return the fields' display names, as a mapping from field to language to name."""
    for name in table.raw:
        if name not in fields:
            raise table.fault(name, f"{name!r} is not a field of the layout. {nearest(name, fields)}")
    return {name: file_sections.by_language(table, name, file_sections.MOST_NAME, language_codes) for name in table.raw}


def _kept_fields(top: Table, fields: Collection[str], reserved: Collection[str]) -> tuple[str, ...]:
    kept_fields = top.words("kept")
    if kept_fields and not fields:
        raise top.fault("kept", "there is no layout, so there are no records with fields. Remove kept.")
    for name in kept_fields:
        if name in fields:
            raise top.fault(
                "kept", f"the field {name} is in the layout, so sets contain it anyway. Remove it from kept."
            )
        _check_field(top, "kept", name, reserved)
    return tuple(kept_fields)


def _filtered(top: Table, answers: Collection[str]) -> str:
    """Return the answer for items that a filter should drop; "" if the kind does not audit a filter."""
    code = top.text("filtered")
    if code and "answers_from" in top.raw:
        raise top.fault(
            "filtered", "the draw determines the answers, so the kind cannot audit a filter. Remove filtered."
        )
    if code and code not in answers:
        raise top.fault("filtered", f"filtered is {code!r}, which is not an answer. {nearest(code, answers)}")
    return code


def _split(top: Table, from_draw: bool) -> str:
    """Return the field with the name of each record's split; "" if there is none.

    Unlike other fields, the field can be named `split`, because it becomes the column with that name.
    """
    name = top.text("split")
    if name and from_draw:
        raise top.fault("split", "the draw makes the sets of this kind. Remove split.")
    if name:
        _check_field(top, "split", name, ())
    return name


def _check_field(table: Table, key: str, name: str, reserved: Collection[str]) -> None:
    if name in reserved:
        raise table.fault(key, f"a field cannot be called {name}, because exported sets have a column with that name.")
    if not FIELD_NAME.fullmatch(name):
        raise table.fault(
            key,
            f"{name!r} is not a valid name for a field. Use up to 30 letters a to z, digits and _, starting with a "
            "letter.",
        )


def _field(top: Table, key: str, name: str, fields: tuple[str, ...]) -> str:
    if name not in fields:
        raise top.fault(key, f"{key} contains {name!r}, which is not a field of the layout. {nearest(name, fields)}")
    return name


def _formats(table: Table, fields: tuple[str, ...], codes: tuple[str, ...], *, several: bool) -> dict[str, str]:
    """Return the name of the layout to publish in each format.

    fields: shown and kept fields of the kind
    codes: codes of the kind's answers
    several: whether an answer has several labels
    """
    layout_names = {}
    for format, layouts in FORMATS.items():
        table.check_keys(FORMATS, "[publishes]")
        if format in table.raw:
            name = layout_names[format] = table.text(format)
            if name not in layouts:
                raise table.fault(format, f"{format} has no layout {name!r}. {nearest(name, layouts)}")
            if misfit := layouts[name].misfit(fields, codes, several):
                raise table.fault(format, f"the {format} layout {name} {misfit}. Remove {format} or change the kind.")
    return layout_names
