"""The `import_corpus` and `export_corpus` actions, for posts and for records with several fields."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from annotate.actions.action import (
    CORPUS,
    DELIMITER,
    ENCODING,
    FORMAT,
    LANGUAGES,
    LICENCE,
    LONGEST_LINE,
    MAX_REJECTS,
    SOURCE,
    TEXT_MAY_LEAVE,
    ActionError,
    Outcome,
    Progress,
    Values,
    action,
    column,
    import_arguments,
    register_languages,
)
from annotate.actions.job_worker import command_of
from annotate.actions.registry import action_named
from annotate.core.option import Option, flag, words
from annotate.goldsets.corpus_copy import COPIES, JSONL, check_copy, export_corpus
from annotate.goldsets.set_folder import ExportError
from annotate.kinds.files import EXPORT_COLUMNS
from annotate.reports.numbers import percent
from annotate.reports.table_formats import as_lines
from annotate.reports.tables import BEGINNING, NUMBER, Column, many, table
from corpora.core.languages import code_of
from corpora.core.records import DECLARED, FIELDS, FORMULA, RESERVED, columns_of
from corpora.core.values import is_free
from corpora.sources.compression import FORMATS, check_file
from corpora.sources.documents import DOCUMENTS, terms_of
from corpora.sources.readers import named_columns
from corpora.sources.recognition import Recognition, describe_format, name_from, recognize, unused_name
from corpora.sources.text import MAX_LINE, STANDARD, WESTERN
from corpora.storage.inventory import Declared, corpus_rows, declared_counts
from corpora.storage.layout import Source, digest_of, manifest_of, read_manifest
from corpora.storage.record_import import Outcome as Imported
from corpora.storage.record_import import Terms, check_import, import_files

SHOWN = 12  # maximum number of labels listed with their counts
SHOWN_BY_LANGUAGE = 6  # maximum number of labels with a separate column in the table of languages
RECORDS = "Records with several fields"
NOT_STATED = "not stated"  # recorded if the user states no licence; texts of the corpus are not exported then
_UNPUBLISHED = (
    "No licence was stated, so exports will not contain the texts. To publish them, add --licence and the name of "
    "another corpus."
)

OPTIONS = (
    replace(CORPUS, help="the corpus's name; or just a file, whose name and columns are then recognized and reported"),
    Option(
        "files",
        Path,
        required=True,
        argument=True,
        several=True,
        shown="FILE",
        help="the files to import; folders are accepted with --format eurlex",
    ),
    LICENCE,
    TEXT_MAY_LEAVE,
    SOURCE,
    Option(
        "fields",
        words,
        default=(),
        help='the fields of a record in the order in which annotators see them, such as "query title description". '
        "The file must have a column for each field, and the columns id and language",
        group=RECORDS,
    ),
    Option(
        "language",
        default="",
        shown="CODE",
        help="the language of all records, if the file has no language column",
        group=RECORDS,
    ),
    Option(
        "labels",
        default="",
        shown="COLUMN",
        help="the column of existing labels of the records: one label, or several as a list or separated by "
        "semicolons. Annotators never see them",
        group=RECORDS,
    ),
    Option(
        "may_be_empty",
        words,
        default=(),
        shown="FIELDS",
        help="the fields of a record that may be empty",
        group=RECORDS,
    ),
    column((*columns_of(()), "for records: language and their fields"), "text=body"),
    LANGUAGES,
    replace(
        FORMAT,
        choices=(*FORMATS, *DOCUMENTS),
        help="; ".join([FORMAT.help, *(f"{name}: {documents.help}" for name, documents in DOCUMENTS.items())]),
    ),
    ENCODING,
    DELIMITER,
    LONGEST_LINE,
    MAX_REJECTS,
    Option("prelabel", flag, False, help="then have the detectors label the language of each post, as `prelabel` does"),
)


@action(
    "import_corpus",
    "Import files of posts into a corpus: JSONL, CSV, TSV (without quoting), Parquet, Arrow or the first sheet of an "
    "Excel workbook, plain or compressed, of any size. The encoding and the delimiter are recognized and reported. "
    "Each post needs an id and a text; author, posted_at and url are optional. Mentions are masked and authors are "
    "hashed. With --fields, the rows are records with several fields and a declared language; records are stored "
    "unchanged. A file is imported completely or not at all. Run the command again after a crash, or to add files.",
    *OPTIONS,
    checks=lambda values: check(values),
    completes=lambda inputs: complete(inputs),
)
def import_corpus_action(values: Values, progress: Progress) -> Outcome:
    name = values["corpus"]
    terms = Terms(**import_arguments(values, progress, *NAMES, "max_rejects"), **_terms(values))
    imported = []
    for file in import_files(name, values["checked"], terms):
        imported.append(file)
        # Report each file immediately, because it stays imported even if the next file is refused.
        progress.say(_file_summary(file))
    outcome = _summary(name, imported, "record" if manifest_of(name).fields else "post")
    if not values["encoding"]:
        outcome = replace(outcome, warned=[*outcome.warned, *_encoding_warnings(imported)])
    return _prelabel(name, outcome, progress) if values["prelabel"] else outcome


def _prelabel(corpus: str, imported: Outcome, progress: Progress) -> Outcome:
    """Have the detectors label a newly imported corpus. Return the combined outcome of both actions."""
    votes = action_named("prelabel").perform({"corpus": corpus}, progress)
    warned = [*imported.warned, *votes.warned]
    return Outcome([*imported.said, *votes.said], warned, {**imported.data, "votes": votes.data})


NAMES = ("licence", "text_may_leave", "source", "format", "encoding", "delimiter")  # options passed on unchanged


def _terms(values: Values) -> dict[str, Any]:
    """Return the arguments of an import that depend on the format or the corpus, such as its fields and columns."""
    format, manifest = values["format"], read_manifest(values["corpus"])
    fields, language, labels = terms_of(format, manifest, tuple(values["fields"]), values["language"], values["labels"])
    _check_fields(fields if manifest is None and format not in DOCUMENTS else ())
    fields_or_posts = fields or (manifest.fields if manifest else ())
    if values["prelabel"] and fields_or_posts:
        raise ActionError("--prelabel applies only to posts, because records have a declared language. Remove it.")
    columns = named_columns(values["column"], columns_of(fields_or_posts))
    terms = {"fields": fields, "language": code_of(language) or language, "declared": labels, "columns": columns}
    return {**terms, "may_be_empty": tuple(values["may_be_empty"])}


def check(values: Values) -> Values:
    register_languages(values)
    terms = Terms(**{name: values[name] for name in NAMES}, **_terms(values))
    return {"checked": check_import(values["corpus"], values["files"], terms)}


def _check_fields(fields: Sequence[str]) -> None:
    """Raise ActionError if a field has the name of a column in exported sets.

    `split` is allowed, because this field determines the splits and annotators never see it.
    """
    for field in fields:
        if field in EXPORT_COLUMNS.difference(RESERVED, ["split"]):
            raise ActionError(
                f"A field cannot have the name {field}, because exported sets have a column with this name. Choose "
                f"another name and map the column to it, for example --fields body --column body={field}."
            )


def _file_summary(outcome: Imported) -> str:
    source = outcome.source
    if outcome.already:
        return f"{source.name}: already imported."
    listed = f", listed in {outcome.rejects}" if source.rejects else ""
    counts = f"{source.accepted:,} accepted, {many(source.duplicates, 'duplicate')}, {source.rejects:,} rejected"
    return f"{source.name}: {counts}{listed}."


def _warnings(outcome: Imported) -> tuple[str, str]:
    """Return two warnings: about ids that a spreadsheet would run as formulas, and about rows without an author.

    Each warning is "" if the file has no such rows.
    """
    (count, example), authors, name = outcome.counts.formulas, outcome.counts.authorless, outcome.source.name
    values_with_counts = ", ".join(f"{written or 'blank'} ({rows:,})" for written, rows in authors.most_common(SHOWN))
    total = authors.total()
    prefix = "1 row has no author" if total == 1 else f"{total:,} rows have no author"
    formulas = (
        f"{name}: {many(count, 'id')} {'begins' if count == 1 else 'begin'} with one of the characters "
        f"{' '.join(FORMULA)}, for example {example}. Spreadsheets run such ids as formulas, so open exported files as "
        "text."
    )
    return formulas if count else "", f"{name}: {prefix}; the column contains {values_with_counts}." if authors else ""


def _format_note(source: Source) -> str:
    """Return a sentence about a file's encoding and delimiter; "" if they are standard or it is not a text file."""
    return "" if source.text_format in STANDARD else f"{source.name} was read as {source.text_format}."


def _encoding_warnings(outcomes: Sequence[Imported]) -> list[str]:
    """Return a warning for each file whose encoding was only guessed."""
    return [
        f"{outcome.source.name} is not UTF-8, and its encoding can only be guessed. Check the accented letters. If "
        "they are wrong, delete the corpus and import the file again with another --encoding."
        for outcome in outcomes
        if outcome.source.encoding == WESTERN and not outcome.already
    ]


def _summary(corpus: str, outcomes: Sequence[Imported], noun: str) -> Outcome:
    new = [outcome.source for outcome in outcomes if not outcome.already]
    counts = {count: sum(getattr(source, count) for source in new) for count in ("accepted", "duplicates", "rejects")}
    summary = (
        f"Corpus {corpus}: {many(counts['accepted'], noun)} from {many(len(new), 'new file')}; "
        f"{many(counts['duplicates'], 'duplicate')} dropped, {many(counts['rejects'], 'row')} rejected."
    )
    if not new:
        summary = f"Corpus {corpus}: no new files; it contains {many(manifest_of(corpus).rows, noun)}."
    warnings = [sentence for kind in zip(*map(_warnings, outcomes), strict=True) for sentence in kind if sentence]
    for outcome in outcomes:
        seen = outcome.counts
        corrected = [*seen.languages.sentences("language", "converted"), *seen.authors.sentences("author")]
        corrected += seen.labels.sentences("label")
        warnings += [f"{outcome.source.name}: {sentence}" for sentence in corrected]
    files = [_file_data(outcome) for outcome in outcomes]
    data = {"corpus": corpus, **counts, "files": files}
    sentences = [summary, *filter(None, map(_format_note, new))]
    if not manifest_of(corpus).declared:
        return Outcome(sentences, warnings, data)
    declared = declared_counts(corpus)
    sentences += [_label_counts(declared), *_language_table(declared)]
    return Outcome(sentences, warnings, data | {"declared": declared._asdict()})


def _label_counts(declared: Declared) -> str:
    label_counts = [f"{label} {number:,}" for label, number in declared.by_label.most_common(SHOWN)]
    more = f" and {len(declared.by_label) - SHOWN:,} more" if len(declared.by_label) > SHOWN else ""
    return (
        f"Records of the corpus with one label: {declared.by_label.total():,} "
        f"({', '.join(label_counts) or 'none'}{more}); with several labels: {declared.several:,}; without labels: "
        f"{declared.none:,}."
    )


def _language_table(declared: Declared) -> list[str]:
    """Return a table of each label's share by language, as text; an empty list if there is only one language.

    A classifier trained on one language's label shares performs worse in a language with other shares (MLDoc, Schwenk
    and Li 2018, table 1).
    """
    if len(declared.by_language) < 2:
        return []
    labels = [label for label, _ in declared.by_label.most_common(SHOWN_BY_LANGUAGE)]
    rest = ["others"] if len(declared.by_label) > len(labels) else []
    columns = [Column("language", "language"), Column("total", "records", NUMBER)]
    columns += [Column(str(place), heading, NUMBER) for place, heading in enumerate([*labels, *rest])]
    rows = []
    for language, counts in sorted(declared.by_language.items()):
        total, label_totals = counts.total(), [counts[label] for label in labels]
        shares = {
            str(place): percent(count / total) for place, count in enumerate([*label_totals, total - sum(label_totals)])
        }
        rows.append({"language": language, "total": f"{total:,}", **shares})
    return ["Records with one label, by language:", as_lines(table("languages", columns, rows))]


def _file_data(outcome: Imported) -> dict[str, Any]:
    """Return one file's results as JSON data.

    `rejects_file` is the path of the list of rejected rows, or None if no row was rejected.
    """
    source = outcome.source
    counts = ("rows", "accepted", "duplicates", "rejects")
    values = {name: getattr(source, name) for name in ("name", "sha256", "encoding", "delimiter", *counts)}
    return values | {"already": outcome.already, "rejects_file": outcome.rejects if source.rejects else None}


# --- Files without a corpus name: recognize their formats and columns, and fill in the options


def complete(inputs: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Fill in the inputs of a command line that lists only files. Also return notes on what was recognized in them.

    If the inputs name a corpus, they are returned unchanged. Raise ActionError if a file's columns are ambiguous.
    """
    corpus, files = inputs["corpus"], list(inputs["files"] or [])
    is_name = re.fullmatch(r"[\w-]+", corpus)
    # A single argument that can't be a name is a file. If it doesn't exist, the import reports the error.
    if not Path(corpus).is_file() and (is_name or files):
        return inputs, []
    if is_name and files:
        return inputs, []
    paths = [Path(corpus), *map(Path, files)]
    name = _name_for(paths[0])
    inputs = {**inputs, "corpus": name, "files": list(map(str, paths))}
    notes = []
    if not inputs["licence"]:
        manifest = read_manifest(name)
        inputs["licence"] = manifest.licence if manifest else NOT_STATED
        inputs["text_may_leave"] = manifest.text_may_leave if manifest else False
        notes = [] if manifest else [_UNPUBLISHED]
    if inputs["fields"] or inputs["format"] in DOCUMENTS:
        return inputs, notes
    choices = inputs["format"], inputs["encoding"] or "", inputs["delimiter"] or ""
    recognized_files = [recognize(path, *choices) for path in paths]
    chosen = named_columns(inputs["column"] or (), FIELDS)
    reports = list(map(_report, recognized_files))
    if questions := _questions(recognized_files[0], chosen):
        raise ActionError("\n".join([*reports, *questions]), option="column")
    guessed = {field: column for field, column in recognized_files[0].columns.items() if field not in (column, *chosen)}
    columns = [f"{field}={column}" for field, column in (guessed | chosen).items()]
    formats = {file.format for file in recognized_files}
    return {**inputs, "column": columns, "format": formats.pop() if len(formats) == 1 else None}, [*reports, *notes]


def _name_for(path: Path) -> str:
    """Return the name of the corpus that already contains the file; otherwise an unused name."""
    check_file(path, "any")
    stem, names = name_from(path), [row["corpus"] for row in corpus_rows()]
    alike = [name for name in names if name.startswith(stem)]
    digest = digest_of(path) if alike else ""
    for name in alike:
        manifest = read_manifest(name)
        if manifest and digest in {source.sha256 for source in manifest.sources}:
            return str(name)
    return unused_name(stem, names)


def _questions(file: Recognition, chosen: Mapping[str, str]) -> list[str]:
    """Return a sentence for each field whose column the user must specify."""
    questions = [
        f"The {field} may be in {many(len(columns), 'column')}. Add "
        f"{' or '.join(f'--column {field}={column}' for column in columns)}."
        for field, columns in file.doubtful.items()
        if field not in chosen
    ]
    for field in file.missing:
        if field not in chosen:
            fields = ', or --fields "…" for records with several fields' if field == "text" else ""
            questions.append(f"No column seems to contain the {field}. Add --column {field}=COLUMN{fields}.")
    return questions


def _report(file: Recognition) -> str:
    """Return a file's recognized format and encoding, and a table of its columns with sample values, as text."""
    rows = [
        {"column": column, "field": file.field_of(column) or "–", "samples": _sample_text(file, column)}
        for column in file.sample.columns
    ]
    headings = [Column("column", "column"), Column("field", "read as"), Column("samples", "first values")]
    description = describe_format(file.format, file.text_format)
    return f"{file.path.name}: {description}\n{as_lines(table('columns', headings, rows))}"


def _sample_text(file: Recognition, column: str) -> str:
    samples = (" ".join(value.split()) for value in file.samples(column))
    return " | ".join(value if len(value) <= BEGINNING // 4 else f"{value[: BEGINNING // 4]}…" for value in samples)


# --- Export


@action(
    "export_corpus",
    "Write the rows of a corpus as files, which import_corpus reads again without loss. The texts are as annotators "
    "see them, and authors are hashed. Corpora whose texts must not be published are refused.",
    CORPUS,
    Option(
        "out",
        Path,
        required=True,
        shown="FOLDER",
        help="the output folder. An earlier export of the corpus in it is replaced",
    ),
    Option(
        "as",
        default=(),
        choices=COPIES,
        several=True,
        in_a_row=True,
        help="the formats, by default jsonl; csv is for spreadsheets, and huggingface is a folder that "
        "datasets.load_dataset reads",
    ),
    Option(
        "predictions",
        flag,
        False,
        help="also write the labels of each imported predictor and of each detector, in files for import_predictions",
    ),
    refuses=(ExportError,),
    checks=lambda values: _check_export(values["corpus"]),
)
def export_corpus_action(values: Values, progress: Progress) -> Outcome:
    name, out = values["corpus"], values["out"]
    formats = tuple(dict.fromkeys(values["as"])) or (JSONL,)
    progress.begin(None, "row")
    manifest = export_corpus(name, out, formats, predictions=values["predictions"], progress=progress.advance)
    copy = manifest["copy"]
    written = f"{many(copy['rows'], 'record' if copy['fields'] else 'post')} of corpus {name} written to {out}."
    return Outcome([written, "To import them again:", *_commands(out, copy)], data=manifest)


def _check_export(name: str) -> None:
    check_copy(name)


def _commands(out: Path, copy: Mapping[str, Any]) -> list[str]:
    """Return the commands that import the first exported file, and the exported predictions, again."""
    file = next(iter(copy["files"].values()))
    # In JSON, a control character takes six bytes.
    longest = 6 * copy["longest_row"] + 1000
    options = {
        **{"corpus": copy["name"], "files": [out / file]},
        **{name: copy[name] for name in ("licence", "source")},
        "text_may_leave": True if copy["text_may_leave"] and not is_free(copy["licence"]) else None,
        **{name: " ".join(copy[name]) for name in ("fields", "may_be_empty")},
        "labels": DECLARED if copy["declared"] else "",
        "longest_line": longest if longest > MAX_LINE else None,
    }
    commands = [command_of(import_corpus_action, options)]
    for entry in copy["predictions"]:
        if entry.get("version"):
            options = {name: entry[name] for name in ("name", "version", "ranked", "map")}
            options |= {"corpus": copy["name"], "file": out / entry["files"][0]}
            commands.append(command_of(action_named("import_predictions"), options))
    return commands
