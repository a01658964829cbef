"""Reads an export of another tool, and writes it as files that Assay's commands import."""

import codecs
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

import tomlkit

from annotate.exchange.argilla import ARGILLA
from annotate.exchange.corpus_tools import ASSAY, INCEPTION, LIGHT_TAG, POTATO
from annotate.exchange.doccano import DOCCANO
from annotate.exchange.huggingface import HUGGING_FACE, decoder, files_of, is_dataset
from annotate.exchange.items import FILE_NAME, Object, ProjectError, Tool
from annotate.exchange.label_studio import LABEL_STUDIO
from annotate.exchange.platform_results import APPEN, LANGFUSE, LANGSMITH, MECHANICAL_TURK
from annotate.exchange.prodigy import PRODIGY
from annotate.exchange.project import LabelConfig, Project
from annotate.exchange.row_files import write_lines
from corpora.sources.columnar import XLSX
from corpora.sources.compression import FORMATS, SUFFIXES, check_file, entries_of, format_of
from corpora.sources.documents import XmlError, check_xml
from corpora.sources.readers import objects_of
from corpora.sources.recognition import LONGEST_NAME
from corpora.sources.text import Fault

# The first tool that recognizes an export reads it, so tools with distinctive exports come first.
TOOLS: tuple[Tool, ...] = (
    *(ASSAY, LABEL_STUDIO, PRODIGY, ARGILLA, MECHANICAL_TURK, APPEN, POTATO, INCEPTION, LIGHT_TAG, LANGSMITH, LANGFUSE),
    *(HUGGING_FACE, DOCCANO),
)
LARGEST_ENTRY = 256 << 20  # maximum size of a file in a ZIP file (bytes)
LONGEST_OBJECT = 64 << 20  # maximum size of an object in an export (bytes)
READ_FORMATS = "JSON, JSONL, CSV, TSV, Parquet, Arrow or Excel"
TITLE = "Which answer fits the text?"
RECORDS, JUDGMENTS, CONCEPTS = "records.jsonl", "judgments.jsonl", "labels.tsv"


# --- Reading


def recognize_tool(paths: Sequence[Path], faults: list[str]) -> tuple[Tool, Iterator[Object]]:
    """Return the tool that wrote an export, and the objects of all its files.

    paths: files and folders of the export
    faults: list that receives a sentence for each unreadable line

    Raise ProjectError if no tool recognizes the export, and CorpusError if a file cannot be read.
    """
    # If there are several files, as in doccano's ZIP files, each file is named after the annotator who answered.
    name_people = len(paths) > 1
    objects = chain.from_iterable(_read_objects(path, faults, name_people=name_people) for path in paths)
    if (first := next(objects, None)) is None:
        raise ProjectError(faults[0] if faults else f"{paths[0]} contains no rows.")
    for tool in TOOLS:
        if tool.recognizes(first):
            return tool, chain([first], objects)
    keys = ", ".join(name for name in first if name != FILE_NAME)
    raise ProjectError(
        f"{paths[0]} is not recognized as an export of {', '.join(tool.name for tool in TOOLS[:-1])} or "
        f"{TOOLS[-1].name}. Its columns are: {keys}. Import its texts with import_corpus and its answers with "
        "import_judgments."
    )


def _read_objects(path: Path, faults: list[str], *, name_people: bool) -> Iterator[Object]:
    if path.is_dir() and is_dataset(path):
        for file, decode in files_of(path):
            yield from _read_file(file, "", faults, decode)
    elif path.is_dir():
        files = sorted(
            file
            for file in path.rglob("*")
            if file.is_file() and format_of(file) in ("jsonl", "parquet") and file.name not in CONFIGURATIONS
        )
        if not files:
            raise ProjectError(f"{path} contains no JSON, JSONL or Parquet file. Name the files of the export.")
        yield from chain.from_iterable(_read_objects(file, faults, name_people=len(files) > 1) for file in files)
    elif zipfile.is_zipfile(path) and format_of(path) != XLSX:
        yield from _read_zip(path, faults)
    else:
        yield from _read_file(path, path.stem if name_people else "", faults, decoder(path))


def _read_zip(path: Path, faults: list[str]) -> Iterator[Object]:
    """Yield the objects of each file in a ZIP file."""
    with TemporaryDirectory() as folder:
        for name, content in entries_of(path, tuple(SUFFIXES), LARGEST_ENTRY):
            if content is None:
                raise ProjectError(f"{path} contains {name}, which is too large. Unpack it and name its files.")
            file = Path(folder) / name.name
            file.write_bytes(content)
            if content:
                yield from _read_file(file, name.stem, faults, decoder(file), place=f"{path}, {name}")
            file.unlink()


def _read_file(
    path: Path, name: str, faults: list[str], decode: Callable[[Object], Object], place: str = ""
) -> Iterator[Object]:
    """Yield the objects of a file.

    name: name of the file to add to each object; "" to add none
    place: name of the file in error messages; "" for the path
    """
    check_file(path, format := format_of(path) or "any")
    if format not in FORMATS:
        raise ProjectError(f"{path} is no {READ_FORMATS} file. Export the project in one of these formats.")
    for number, row in objects_of(path, format, LONGEST_OBJECT):
        yield from _check_row(row if isinstance(row, Fault) else decode(row), place or str(path), number, name, faults)


def _check_row(row: Object | Fault, place: str, line: int, name: str, faults: list[str]) -> Iterator[Object]:
    """Yield an object, and add the file name to it unless that is "". If the object is a fault, add it to the list."""
    if isinstance(row, Fault):
        faults.append(f"{place}, line {line:,}: {row.reason}")
    else:
        yield row | ({FILE_NAME: name} if name else {})


# --- Writing


def write(project: Project, folder: Path, name: str) -> None:
    """Write the project's records, kind, judgments, vocabulary and predictions to a folder.

    name: name of the kind's file and of the vocabulary
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_lines(folder / RECORDS, project.records)
    (folder / f"{name}.toml").write_text(tomlkit.dumps(_kind_tables(project, name)), "utf-8", "backslashreplace")
    names = ("task", "worker", "label", "answered_at")
    write_lines(folder / JUDGMENTS, (dict(zip(names, row, strict=True)) for row in project.judgments))
    if project.form == "labels":
        lines = ["id\tlabel", *(f"{code}\t{answer}" for code, answer in project.answers.items())]
        (folder / CONCEPTS).write_text("\n".join(lines) + "\n", "utf-8", "backslashreplace")
    for model, labels in project.predictions.items():
        rows = ({"id": key, "label": label} for key, label in labels.items())
        write_lines(folder / f"{predictor_name(model)}.jsonl", rows)


def predictor_name(model: str) -> str:
    name = "".join(character if character.isalnum() or character in "-_." else "-" for character in model)
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}-{zlib.crc32(model.encode()):x}"


def _kind_tables(project: Project, name: str) -> dict[str, Any]:
    """Return the tables of the kind's file."""
    named = f"Which {project.question} fits the text?" if project.question else TITLE
    title = project.title or (project.question if " " in project.question else named)
    hidden = [field for field in project.fields if field not in project.shown]
    kind: dict[str, Any] = {"title": title, "form": project.form, **({"kept": hidden} if hidden else {})}
    kind["layout"] = [{"style": "passage", "fields": [field]} for field in project.shown]
    kind["fields"] = {field: project.fields[field] for field in project.shown}
    if project.form == "labels":
        kind["vocabulary"] = {"name": name, "least": 1, "beside_broader": "allow"}
    else:
        kind["answers"] = [{"code": code, "name": answer} for code, answer in project.answers.items()]
    if project.form == "spans":
        kind["spans"] = {"field": project.marked, "overlap": True}
    conflicts = {"on_conflict": "ADJUDICATION", "redundancy": project.redundancy}
    kind["options"] = {**conflicts, "test_items": 0, "gold_share": 0.0}
    return kind | ({"guidelines": {"en": f"{project.guidelines}\n"}} if project.guidelines else {})


# --- A project's configuration: Label Studio's XML, doccano's label_config.json or Argilla's settings.json. It contains
# the guidelines, and the names and order of all labels, even if nobody has chosen a label yet. Exports don't contain
# the configuration.


CONFIGURATIONS = ("label_config.json", "settings.json")  # files in the folder of an export without rows
# Label Studio's tag of a question -> the tag of its labels.
_QUESTIONS = {"Choices": "Choice", "Labels": "Label", "HyperTextLabels": "Label", "Rating": ""}


def read_config(path: Path) -> list[LabelConfig]:
    """Return the questions in a configuration. Raise ProjectError if the file is not a known configuration."""
    try:
        content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
        if content.lstrip().startswith(b"<"):
            check_xml(content)
            return _label_studio_questions(ElementTree.fromstring(content))  # noqa: S314 - checked above
        value = json.loads(content)
    except OSError as error:
        raise ProjectError(f"Cannot read {path}: {error.strerror}.") from error
    except XmlError as error:
        raise ProjectError(f"{path}, line {error.line}: {error}.") from error
    except ValueError as error:
        raise ProjectError(f"{path} is neither XML nor JSON: {error}.") from error
    try:
        return _json_questions(path, value)
    except (AttributeError, KeyError, TypeError) as error:
        why = f"{type(error).__name__}: {error}"
        raise ProjectError(f"{path} is not structured like settings.json of Argilla ({why}). Correct it.") from error


def _json_questions(path: Path, value: Any) -> list[LabelConfig]:
    if isinstance(value, list) and all(isinstance(label, dict) and "text" in label for label in value):
        return [LabelConfig("", {str(label["text"]): str(label["text"]) for label in value})]
    if isinstance(value, dict) and isinstance(value.get("questions"), list):
        return [_argilla_question(question, str(value.get("guidelines") or "")) for question in value["questions"]]
    raise ProjectError(
        f"{path} is not a known configuration. Use the labeling interface of Label Studio as XML, label_config.json of "
        "doccano, or settings.json of Argilla."
    )


def _label_studio_questions(view: ElementTree.Element) -> list[LabelConfig]:
    header = next((element.get("value", "") for element in view.iter("Header")), "")
    configs = []
    for tag, label in _QUESTIONS.items():
        for element in view.iter(tag):
            labels = {option.get("value", ""): option.get("value", "") for option in element.iter(label or "none")}
            if tag == "Rating":
                highest = element.get("maxRating", "5")
                labels = {str(grade): str(grade) for grade in range(1, int(highest) + 1 if highest.isdecimal() else 1)}
            is_multiple = element.get("choice", "").startswith("multiple")
            configs.append(LabelConfig(element.get("name", ""), labels, header, is_multiple))
    return configs


def _argilla_question(question: dict[str, Any], guidelines: str) -> LabelConfig:
    settings = question.get("settings") or {}
    options = settings.get("options") or []
    labels = {str(option["value"]): str(option.get("text") or option["value"]) for option in options}
    title = str(question.get("title") or "")
    kind = str(settings.get("type", ""))
    return LabelConfig(str(question["name"]), labels, title, kind.startswith("multi"), guidelines)
