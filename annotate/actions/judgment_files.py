"""Files of judgments and of true labels: which rows can be taken, and where those that cannot are listed.

import_judgments.py and quality/agreement.py decide what becomes of the rows.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from annotate.controls.gold_answers import text_of
from annotate.kinds.forms.pair import TIE
from annotate.kinds.preference_kind import between
from annotate.work.judgment_import import Rejects, Row, systems_of
from corpora.core.languages import LANGUAGES
from corpora.core.records import RecordError, read_id, read_language, read_text
from corpora.core.values import Respelled, is_missing
from corpora.sources.compression import check_file, format_of
from corpora.sources.headers import Columns
from corpora.sources.readers import read_rows
from corpora.sources.rejects import Rejected, RejectLog
from corpora.sources.text import MAX_LINE, Fault

COLUMNS = ("task", "worker", "label", "language")
NEEDED = COLUMNS[:3]
GOLD_COLUMNS = ("task", "label")
LONGEST = {"worker": 70, "label": 64}
# What labels say of an item MESSAGE|SYSTEM|SYSTEM: the first of the two is preferred, or the second; or TIE.
FIRST, SECOND = "A", "B"
LONGEST_SET = 10_000  # characters of several true labels

Progress = Callable[[int], object]


class JudgmentFileError(Exception):
    """A file cannot be used; the sentence says why and what to do. Nothing was changed."""


def read_judgments(
    path: Path,
    columns: Mapping[str, str],
    format: str,
    rejects: Rejects,
    progress: Progress,
    known: Collection[str] = (),
    respelled: Respelled | None = None,
) -> Iterator[Row]:
    """The rows that are judgments; the others are added to the rejects.

    known: the task's labels, if there are any yet. respelled: collects the labels that are not taken as they stand.
    """
    wanted = Columns({column: column for column in COLUMNS} | dict(columns), NEEDED)
    for line, raw in read_rows(path, format, wanted, MAX_LINE, progress):
        if isinstance(raw, Fault):
            rejects[line] = raw.reason
            continue
        try:
            label = _value(raw, "label", known=known)
            values = {"task": read_id(raw.get("task"), "task"), "worker": _value(raw, "worker"), "label": label}
            language = "" if _is_none(raw.get("language")) else read_language(raw["language"])
        except RecordError as error:
            rejects[line] = str(error)
        else:
            if respelled is not None:
                respelled.note(raw["label"], label)
            yield Row(line, **values, language=language)


def _is_none(language: object) -> bool:
    """`nan` is a language where a file has added it."""
    return is_missing(language) and language not in LANGUAGES


def read_truth(path: Path, columns: Mapping[str, str], known: Collection[str] = ()) -> dict[str, str]:
    """Item -> true label, from a file with the columns task and label; of several labels their ids, in a list or
    separated by spaces. known: the task's labels. JudgmentFileError or CorpusError.
    """
    check_file(path, None)
    wanted = Columns({column: column for column in GOLD_COLUMNS} | dict(columns), GOLD_COLUMNS)
    gold: dict[str, str] = {}
    for line, raw in read_rows(path, format_of(path) or "", wanted):
        if isinstance(raw, Fault):
            raise JudgmentFileError(f"{path}, line {line:,}: {raw.reason}")
        try:
            key = read_id(raw.get("task"), "task")
            several = isinstance(raw.get("label"), list)
            label = _value({"label": text_of(raw["label"])} if several else raw, "label", LONGEST_SET, known)
        except RecordError as error:
            raise JudgmentFileError(f"{path}, line {line:,}: {error}") from error
        if gold.setdefault(key, label) != label:
            raise JudgmentFileError(f"{path}, line {line:,}: {key} is {label} here and {gold[key]} before; keep one.")
    return gold


def _value(raw: Mapping[str, object], column: str, most: int = 0, known: Collection[str] = ()) -> str:
    """most: the characters that it may have, if not those of LONGEST. known: what is right as it stands."""
    value = raw.get(column)
    if value is None:
        raise RecordError(f"The {column} is missing.")
    text = read_text(column, value, known)
    if not text:
        written = value.strip() if isinstance(value, str) else str(value)
        is_what = f"is {written}, which another program writes where there is none" if written else "is empty"
        raise RecordError(f"The {column} {is_what}.")
    most = most or LONGEST[column]
    if len(text) > most:
        raise RecordError(f"The {column} has {len(text):,} characters; {most:,} are the most.")
    if not text.isprintable():
        raise RecordError(f"The {column} holds a tab, a newline or another character that cannot be seen.")
    return text


def of_pairs(rows: Iterable[Row], rejects: Rejects) -> list[Row]:
    """The rows of MESSAGE|SYSTEM|SYSTEM with the label A, B or tie, labelled by the name of the system instead, and
    with the systems by the alphabet, whichever the file names first; the others are added to the rejects."""
    found = []
    for row in rows:
        try:
            a, b = systems_of(row.task)
            if row.label not in (FIRST, SECOND, TIE):
                raise ValueError(f"The label {row.label!r} is not {FIRST}, {SECOND} or {TIE}.")
        except ValueError as error:
            rejects[row.line] = str(error)
        else:
            task = row.task.removesuffix(between(a, b)) + between(*sorted((a, b)))
            found.append(replace(row, task=task, label={FIRST: a, SECOND: b}.get(row.label, TIE)))
    return found


def in_order(labels: Iterable[str]) -> list[str]:
    """Sorts numbers by their size, and words after them."""
    return sorted(labels, key=lambda label: (0, int(label), label) if label.isdecimal() else (1, 0, label))


def of_labels(rows: Iterable[Row], labels: list[str], rejects: Rejects) -> list[Row]:
    """The rows whose label is one of these; the others are added to the rejects."""
    known = set(labels)
    rejects |= {
        row.line: f"The label {row.label!r} is not one of the task's: {' '.join(labels)}."
        for row in rows
        if row.label not in known
    }
    return [row for row in rows if row.label in known]


def list_rejects(rejects: Rejects, path: Path, listed: Path) -> None:
    """Write the list of rejects, or remove that of an earlier run."""
    if not rejects:
        listed.unlink(missing_ok=True)
        return
    listed.parent.mkdir(parents=True, exist_ok=True)
    draft = listed.with_suffix(".new")
    with draft.open("w", encoding="utf-8") as file:
        log = RejectLog(path, "", listed, file=file)
        for line, reason in sorted(rejects.items()):
            log.add(line, reason)
    os.replace(draft, listed)


def nothing_accepted(path: Path, format: str, rejects: Rejects, listed: Path) -> Exception:
    if not rejects:
        return JudgmentFileError(f"{path} holds no rows.")
    return Rejected(path, format, listed, len(rejects), len(rejects), min(rejects.items())).nothing_accepted()
