"""Exported sets of records, and checks of prediction files for all published formats.

xglue_tasks.py and language_pairs.py define the files of each format; measurement.py selects the format.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any

from annotate.evaluation.subjects import EvaluationError
from annotate.goldsets.formats.mrs import MADE_BY, TITLE
from annotate.goldsets.set_folder import GoldSetError, differing, manifest_of
from corpora.core.records import RecordError, read_id
from corpora.sources.readers import Columns, read_rows
from corpora.sources.text import Fault

SUFFIX = ".prediction"
RESTORE = "Restore it, or export the set again."


@dataclass(frozen=True)
class RecordSet:
    """An exported set that is measured unit by unit.

    size: number of units measured.
    """

    folder: Path
    name: str
    finished: bool
    digest: str
    manifest: Mapping[str, Any]
    size: int
    noun: str  # what a unit of the set is called: post or record

    def described(self) -> dict[str, Any]:
        """Return the set's description in a report."""
        return {
            "name": self.name,
            "folder_name": self.folder.resolve().name,
            "rows": self.size,
            "finished": self.finished,
            "digest": self.digest,
        }


@dataclass(frozen=True)
class PublishedSet(RecordSet):
    """A set of records or of message-reply pairs, exported in a published format.

    format: name of the format.
    files: mapping from each file of the format to its number of rows.
    """

    labels: list[str]
    format: str
    files: dict[str, int]

    @property
    def mark(self) -> str:
        return "" if self.finished else ".unfinished"


def check_set(
    folder: Path,
    name: str,
    files: dict[str, Any],
    needed: Iterable[str] = (),
    *,
    noun: str = "record",
    finished: bool,
    unfinished: bool,
) -> None:
    """Check that a set is finished and its files are unchanged.

    folder: folder of the set.
    name: name of the set.
    files: mapping from file name to digest, from the set's manifest.
    needed: names of files that the set must have.
    noun: what messages call a unit of the set.
    finished: whether the set is finished.
    unfinished: whether to accept an unfinished set.

    Raises EvaluationError for an unfinished set that is not accepted, GoldSetError for a missing or changed file.
    """
    if not (finished or unfinished):
        raise EvaluationError(
            f"The gold set {name} in {folder} is unfinished: some {noun}s have no label yet. Export it again when it "
            "is finished, or use --unfinished to measure anyway."
        )
    changed, missing = differing(folder, files)
    missing += [file for file in needed if file not in files]
    for names, problem in ((missing, "is missing"), (changed, "has changed since it was written")):
        if names:
            raise GoldSetError(f"{folder / names[0]} {problem}. {RESTORE}")


def read_published_sets(folders: Iterable[Path], *, unfinished: bool) -> list[PublishedSet]:
    """Read the sets in these folders.

    Raises GoldSetError or EvaluationError for a set that cannot be measured.
    """
    sets: list[PublishedSet] = []
    for folder in folders:
        try:
            gold = _read(folder, unfinished)
        except OSError as error:
            raise GoldSetError(f"Cannot read {error.filename or folder}: {error.strerror}.") from error
        except (KeyError, TypeError) as error:
            raise GoldSetError(f"{folder / 'manifest.json'} lacks a required entry: {error}. {RESTORE}") from error
        if sets and gold.format != sets[0].format:
            raise EvaluationError(
                f"{sets[0].folder} has the format {sets[0].format}, but {folder} has the format {gold.format}. Their "
                "predictions cannot be in one folder, so measure each set separately."
            )
        # A set of message-reply pairs may be empty too, but its size is unknown until its pairs are read.
        if gold.format != TITLE and not gold.size:
            raise EvaluationError(
                f"The gold set {gold.name} in {folder} has no labelled records. Remove it, or export it again after "
                "people have labelled some."
            )
        sets.append(gold)
    return sets


def _read(folder: Path, unfinished: bool) -> PublishedSet:
    manifest = manifest_of(folder)
    published: dict[str, Any]
    if manifest.get("made_by") == MADE_BY:
        name, finished, labels, size = manifest["corpus"]["name"], True, [], 0
        published = {"format": TITLE, "files": {}}
    else:
        task, size = manifest["task"], manifest["counts"]["labelled"]
        published = manifest["published"] or {"format": "", "files": {}}
        name, finished, labels = task["name"], manifest["finished"], list(task["labels"])
    check_set(folder, name, manifest["files"], published["files"], finished=finished, unfinished=unfinished)
    of_set = (folder, name, finished, manifest["digest"], manifest, size, "record")
    return PublishedSet(*of_set, labels, published["format"], dict(published["files"]))


def unfinished_ones(sets: Iterable[RecordSet]) -> list[str]:
    """Return the report's warnings on unfinished sets."""
    return [
        f"The gold set {gold.name} is unfinished: {gold.noun}s without a final label are missing."
        for gold in sets
        if not gold.finished
    ]


# --- files of predictions


def system_names(spelled: Sequence[str | Path], names: Sequence[str] = ()) -> list[str]:
    """Return the names under which a report shows one system, or two that it compares.

    spelled: systems as the user named them.
    names: preferred names. If they are missing or not distinct, the names of the files or folders are used. If these
        are not distinct either, `spelled` is used.
    """
    for candidates in (list(names), [Path(system).resolve().name for system in spelled]):
        if candidates and len(set(candidates)) == len(candidates):
            return candidates
    return list(map(str, spelled))


def described(name: str) -> dict[str, str]:
    """Return a system's description in a report."""
    return {"name": name, "version": "", "spelled": name}


def rows_of(path: Path, format: str, columns: Columns) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    """Yield the line number, the id and the cells of each row of a table.

    Raises EvaluationError for a row that cannot be read.
    """
    for line, raw in read_rows(path, format, columns):
        try:
            if isinstance(raw, Fault):
                raise RecordError(raw.reason)
            yield line, read_id(raw.get("id")), raw
        except RecordError as error:
            raise EvaluationError(f"{path}, line {line:,}: {error}") from error


def number_in(value: Any) -> float:
    """Return the number in a cell, or NaN if the cell does not contain a number."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return nan


def read_lines(path: Path, *, row_count: int, tested: str) -> list[str]:
    """Return the stripped lines of a file with one line per row of a test file. A final newline does not start a line.

    path: file to read.
    row_count: number of rows of the test file.
    tested: name of the test file, for the message.

    Raises EvaluationError if the file cannot be read, or if its number of lines differs from `row_count`.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise EvaluationError(f"Cannot read {path}: {error.strerror}.") from error
    except UnicodeDecodeError:
        raise EvaluationError(f"{path} is not UTF-8. Save it as UTF-8.") from None
    lines = text.split("\n")
    lines = [line.strip() for line in (lines[:-1] if lines[-1] == "" else lines)]
    if len(lines) != row_count:
        raise EvaluationError(
            f"{path} has {len(lines):,} lines, but {tested} has {row_count:,} rows. Write one prediction per row, in "
            "the same order."
        )
    return lines


def check_labels(path: Path, predicted: Iterable[str], labels: Collection[str]) -> None:
    """Check that each line is one of the labels.

    Raises EvaluationError for the first line that is not.
    """
    for number, value in enumerate(predicted, 1):
        if value not in labels:
            raise EvaluationError(
                f"{path}, line {number:,}: {value[:40]!r} is not a label of the task. The labels are "
                f"{', '.join(labels)}."
            )
