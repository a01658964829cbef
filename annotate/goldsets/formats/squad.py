"""The published format for extractive question answering: JSON as in SQuAD, with file names as in MLQA.

    <KIND>/<split>-context-<language>-question-<language>.json      MLQA/test-context-de-question-de.json

Each file has `data`, a list of entries with `title` and `paragraphs`. A paragraph has its text as `context`, and a list
`qas` of questions with `id`, `question` and `answers` (`text` and `answer_start`, counted in Unicode code points). If
the set has questions without an answer, each question has `is_impossible`, as in SQuAD 2.0.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from annotate.goldsets.formats import Format, register
from annotate.kinds.forms.spans import NOTHING, spans_in
from corpora.core.languages import published_code

if TYPE_CHECKING:
    from annotate.goldsets.export import Export

SQUAD = "SQuAD"
ABOUT = (
    "JSON files as in SQuAD and MLQA: `data` has entries with `paragraphs`, each with `context` and `qas`, and each of "
    "these has `id`, `question` and `answers`. `answer_start` counts Unicode code points."
)


def file_name(kind: str, language: str, split: str, mark: str = "") -> str:
    return f"{kind.upper()}/{split}-context-{language}-question-{language}{mark}.json"


def write_squad(folder: Path, export: "Export") -> dict[str, Any]:
    """Write a set's JSON files and return their manifest entry.

    refused: reason why no files are written; empty if they are.
    """
    entry: dict[str, Any] = {"format": SQUAD, "files": {}, "refused": "", "about": ABOUT}
    if not export.with_text:
        return entry | {"refused": "The texts must not be published, so JSON files are not written."}
    columns = ("id", "language", "split", "label", *export.kind.exported_fields)
    rows = list(export.written_rows(folder, columns))
    languages = {row["language"] for row in rows}
    files: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        code = published_code(row["language"], languages)
        files.setdefault(file_name(export.kind.slug, code, row["split"], export.mark), []).append(row)
    settings = export.kind.publication.formats["squad"]
    has_impossible = any(row["label"] == NOTHING for row in rows)
    for name, items in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        data = json.dumps({"version": "1.1", "data": _data(items, has_impossible=has_impossible, **settings)})
        (folder / name).write_text(data + "\n", encoding="utf-8", newline="\n")
    return entry | {"files": {name: len(files[name]) for name in sorted(files)}}


def _data(
    rows: Iterable[Mapping[str, Any]], *, context: str, question: str, has_impossible: bool
) -> list[dict[str, Any]]:
    """Return an entry for each text, with all questions about it.

    context, question: names of the fields with the text and the question
    has_impossible: whether to state for each question if it has no answer
    """
    by_text: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        text = row[context]
        answers = [{"text": text[start:end], "answer_start": start} for start, end, _ in spans_in(row["label"])]
        impossible = {"is_impossible": not answers} if has_impossible else {}
        by_text.setdefault(text, []).append(
            {"id": row["id"], "question": row[question], "answers": answers, **impossible}
        )
    return [{"title": "", "paragraphs": [{"context": text, "qas": qas}]} for text, qas in by_text.items()]


register(Format("squad", SQUAD, write_squad))
