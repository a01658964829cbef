"""Writes gold sets as files for other tools, with each item's label and its annotators' answers.

`import` can read the files for annotation tools again. In these files, an item's label is an answer by GOLD.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5
from xml.sax.saxutils import quoteattr

from annotate.exchange import prodigy
from annotate.exchange.doccano import AT, BY
from annotate.exchange.items import GOLD
from annotate.exchange.row_files import write_lines, write_table
from annotate.kinds.forms.spans import NOTHING, spans_in

Object = dict[str, Any]


@dataclass(frozen=True)
class GoldSet:
    """The part of an exported set that other tools can read.

    title: the question
    several: whether an answer is a set of labels
    fields: the fields that annotators see; for posts, only `text`
    marked: the field that spans mark; "" if answers are not spans
    answers: code of each answer -> English name
    rows: function that returns the set's rows, with id, language, label, judgments and the fields
    """

    title: str
    several: bool
    fields: tuple[str, ...]
    marked: str
    answers: Mapping[str, str]
    rows: Callable[[], Iterable[Object]]

    def text_of(self, row: Object) -> str:
        """Return the text that the row's spans mark. If answers are not spans, return all the row's texts."""
        return str(row[self.marked]) if self.marked else "\n\n".join(str(row[name]) for name in self.fields)

    def labels(self, text: str) -> list[Any]:
        """Convert an answer's canonical text to its labels or spans."""
        if self.marked:
            return list(spans_in(text))
        return [label for label in text.split() if label != NOTHING] if self.several else [text]

    def answers_of(self, row: Object, *, gold: bool) -> Iterator[tuple[str, str, str]]:
        """Yield (annotator, answer, time in ISO 8601) for each valid answer of a row.

        gold: whether to yield the row's label first, as an answer by GOLD with the time ""
        """
        if gold and row.get("label"):
            yield GOLD, row["label"], ""
        for judgment in row.get("judgments") or ():
            if judgment["kind"] == "answer" and judgment["label"] and not judgment["voided_at"]:
                yield judgment["annotator"], judgment["label"], judgment["answered_at"]


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _write_list(path: Path, values: Iterable[Object]) -> None:
    """Write a JSON list, one object at a time, because a set may not fit into memory."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for number, value in enumerate(values):
            file.write(f"{',' if number else '['}\n{json.dumps(value, ensure_ascii=False)}")
        file.write("\n]\n")


# --- Label Studio


def write_label_studio(folder: Path, gold: GoldSet) -> dict[str, str]:
    """Write tasks with annotations, and the labeling interface. Return a description of each file."""
    _write_list(folder / "tasks.json", (_task(row, gold) for row in gold.rows()))
    (folder / "label_config.xml").write_text(_interface(gold), encoding="utf-8")
    return {"tasks.json": "import it into a project", "label_config.xml": "the project's labeling interface"}


def _task(row: Object, gold: GoldSet) -> Object:
    annotations = []
    for person, answer, at in gold.answers_of(row, gold=True):
        # Label Studio rejects annotators without an account and overwrites times, so store both in the metadata.
        meta = {"annotator": [person], **({"answered_at": [at]} if at else {})}
        where = {"from_name": "answer", "to_name": gold.marked or gold.fields[0], "meta": meta}
        labels = gold.labels(answer)
        if gold.marked:
            text = gold.text_of(row)
            values = [
                {"start": start, "end": end, "text": text[start:end], "labels": [label]} for start, end, label in labels
            ]
            result = [{"type": "labels", "value": value} | where for value in values]
        else:
            result = [{"type": "choices", "value": {"choices": labels}} | where]
        annotations.append({"ground_truth": person == GOLD, "result": result})
    data = {"id": row["id"], "language": row["language"], **{name: row[name] for name in gold.fields}}
    return {"data": data, "annotations": annotations}


def _interface(gold: GoldSet) -> str:
    texts = "".join(f'  <Text name="{name}" value="${name}"/>\n' for name in gold.fields)
    tag, label = ("Labels", "Label") if gold.marked else ("Choices", "Choice")
    choice = f' choice="{"multiple" if gold.several else "single"}"' if tag == "Choices" else ""
    labels = "".join(f"    <{label} value={quoteattr(code)}/>\n" for code in gold.answers)
    return (
        f"<View>\n  <Header value={quoteattr(gold.title)}/>\n{texts}"
        f'  <{tag} name="answer" toName="{gold.marked or gold.fields[0]}"{choice}>\n{labels}  </{tag}>\n</View>\n'
    )


# --- doccano


def write_doccano(folder: Path, gold: GoldSet) -> dict[str, str]:
    """Write the gold labels, and a file of answers for each annotator."""
    people = dict.fromkeys(person for row in gold.rows() for person, *_ in gold.answers_of(row, gold=False))
    for by in (GOLD, *people):
        answers = (
            (row, *answer) for row in gold.rows() for answer in gold.answers_of(row, gold=True) if answer[0] == by
        )
        write_lines(folder / f"{by}.jsonl", (_line(row, answer, by, at, gold) for row, _, answer, at in answers))
    labels = [{"text": code, "suffix_key": None, "background_color": "#7F96FF"} for code in gold.answers]
    _write_json(folder / "label_config.json", labels)
    files = {"gold.jsonl": "the labels of the set", "label_config.json": "the labels of the project"}
    return files | {f"{person}.jsonl": "the answers of one annotator" for person in people}


def _line(row: Object, answer: str, person: str, at: str, gold: GoldSet) -> Object:
    labels = [list(label) if gold.marked else label for label in gold.labels(answer)]
    other_fields = {name: row[name] for name in gold.fields if gold.marked and name != gold.marked}
    return {
        "id": row["id"],
        "text": gold.text_of(row),
        "label": labels,
        "language": row["language"],
        **other_fields,
        BY: person,
        **({AT: at} if at else {}),
    }


# --- Prodigy


def write_prodigy(folder: Path, gold: GoldSet) -> dict[str, str]:
    """Write a line for each label and each answer, as `prodigy db-in` reads them."""
    write_lines(folder / "annotations.jsonl", _annotations(gold))
    return {"annotations.jsonl": "the labels and answers, for `prodigy db-in`"}


def _annotations(gold: GoldSet) -> Iterator[Object]:
    options = [{"id": code, "text": name} for code, name in gold.answers.items()]
    for row in gold.rows():
        for person, answer, at in gold.answers_of(row, gold=True):
            labels = gold.labels(answer)
            if gold.marked:
                spans = [{"start": start, "end": end, "label": label} for start, end, label in labels]
                annotation: Object = {"spans": spans, "_view_id": "spans_manual"}
            else:
                annotation = {"options": options, "accept": labels, "_view_id": "choice"}
            yield {
                "text": gold.text_of(row),
                "meta": {"id": row["id"], "language": row["language"]},
                **annotation,
                "answer": "accept",
                "_input_hash": zlib.crc32(row["id"].encode()),
                "_task_hash": zlib.crc32(f"{row['id']} {gold.title}".encode()),
                "_annotator_id": person,
                "_session_id": person,
                **({prodigy.AT: datetime.fromisoformat(at).timestamp()} if at else {}),
            }


# --- Argilla


def write_argilla(folder: Path, gold: GoldSet) -> dict[str, str]:
    """Write records and settings of version 2."""
    _write_list(folder / "records.json", (_record(row, gold) for row in gold.rows()))
    _write_json(folder / "settings.json", _settings(gold))
    return {"records.json": "the records", "settings.json": "the settings of their dataset"}


def _record(row: Object, gold: GoldSet) -> Object:
    # In Argilla, annotators are accounts with a UUID.
    responses = [
        {"user_id": person if person == GOLD else str(uuid5(NAMESPACE_URL, person)), "value": _value(answer, gold)}
        for person, answer, _ in gold.answers_of(row, gold=False)
    ]
    suggestion = {"value": _value(row["label"], gold), "score": None, "agent": GOLD} if row["label"] else None
    return {
        "id": row["id"],
        "fields": {name: row[name] for name in gold.fields},
        "metadata": {"language": row["language"]},
        "suggestions": {"answer": suggestion} if suggestion else {},
        "responses": {"answer": responses} if responses else {},
        "vectors": {},
        "status": "completed",
    }


def _value(answer: str, gold: GoldSet) -> Any:
    labels = gold.labels(answer)
    if gold.marked:
        return [{"start": start, "end": end, "label": label} for start, end, label in labels]
    return labels if gold.several else labels[0]


def _settings(gold: GoldSet) -> Object:
    options = [{"value": code, "text": name, "description": None} for code, name in gold.answers.items()]
    if gold.marked:
        settings: Object = {"type": "span", "allow_overlapping": True, "field": gold.marked, "options": options}
    else:
        settings = {"type": "multi_label_selection" if gold.several else "label_selection", "options": options}
    fields = [
        {"name": name, "title": name, "required": True, "settings": {"type": "text", "use_markdown": False}}
        for name in gold.fields
    ]
    question = {"name": "answer", "title": gold.title, "description": None, "required": True, "settings": settings}
    metadata = [{"name": "language", "title": "language", "settings": {"type": "terms", "values": None}}]
    return {
        "guidelines": None,
        "allow_extra_metadata": True,
        "fields": fields,
        "questions": [question],
        "metadata": metadata,
        "vectors": [],
    }


# --- Spreadsheets


def write_csv(folder: Path, gold: GoldSet) -> dict[str, str]:
    """Write a table of items, and a table of answers for import_judgments."""
    columns = ("id", "language", *gold.fields, "label")
    write_table(folder / "items.csv", columns, lambda: ([row[name] for name in columns] for row in gold.rows()))
    write_table(
        folder / "answers.csv",
        ("task", "worker", "label", "answered_at"),
        lambda: ((row["id"], *answer) for row in gold.rows() for answer in gold.answers_of(row, gold=False)),
    )
    return {"items.csv": "the items with their labels", "answers.csv": "the answers of each annotator"}


WRITERS: Mapping[str, Callable[[Path, GoldSet], dict[str, str]]] = {
    "label-studio": write_label_studio,
    "doccano": write_doccano,
    "prodigy": write_prodigy,
    "argilla": write_argilla,
    "csv": write_csv,
}
