"""Exports of Prodigy (`prodigy db-out`): JSONL with one line for each answer of a person.

The item is identified by `_input_hash`. `answer` is accept, reject or ignore; with `options`, `accept` lists the chosen
ones.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from annotate.exchange.items import GOLD, Answer, Item, Object, Tool, person_of
from annotate.kinds.forms.spans import Span

AT = "_timestamp"  # when the answer was given, in epoch seconds (since version 1.12)
_LEFT_OUT = (
    *("options", "accept", "answer", "spans", "tokens", "label", "meta", "config", "html", "image"),
    "relations",
)


def _is_export(first: Object) -> bool:
    return "answer" in first and ("_input_hash" in first or "_task_hash" in first)


def _items(objects: Iterable[Object], lost: Counter[str]) -> Iterator[Item]:
    by_key: dict[str, Item] = {}
    for number, row in enumerate(objects, 1):
        key = str(row.get("_input_hash", number))
        texts = {name: value for name, value in row.items() if name[0] != "_" and name not in _LEFT_OUT}
        if "text" not in texts and "html" in row:
            texts["text"] = row["html"]
        item = by_key.setdefault(key, Item(key, {**texts, **(row.get("meta") or {})}))
        by = person_of(row.get("_annotator_id") or row.get("_session_id"))
        lost["relations"] += len(row.get("relations") or ())
        if row["answer"] == "ignore":
            lost["skipped answers"] += 1
        elif isinstance(row.get("options"), list):
            _choose(row, by, item, lost)
        elif row.get("label") is not None and not row.get("spans"):
            item.answers.append(Answer(by, str(row["label"]), (row["answer"],), at=row.get(AT)))
        elif row["answer"] == "reject":
            lost["rejected marks"] += 1
        elif not isinstance(row.get("spans"), list):
            lost["answers without options, a label or spans"] += 1
        else:
            spans = (Span(int(mark["start"]), int(mark["end"]), str(mark["label"])) for mark in row.get("spans") or ())
            _answers_by(item, by).append(Answer(by, "", tuple(spans), "text", at=row.get(AT)))
    yield from by_key.values()


def _choose(row: Object, by: str, item: Item, lost: Counter[str]) -> None:
    """Add the options that a person chose, under the words that people saw."""
    names = {str(option["id"]): str(option.get("text", option["id"])) for option in row["options"]}
    item.offered = tuple(names.values())
    chosen = tuple(names.get(str(accepted), str(accepted)) for accepted in row.get("accept") or ())
    if row["answer"] == "accept" and chosen:
        _answers_by(item, by).append(Answer(by, "", chosen, at=row.get(AT)))
    else:
        lost["answers without a chosen option"] += 1


def _answers_by(item: Item, by: str) -> list[Answer]:
    return item.predictions if by == GOLD else item.answers


PRODIGY = Tool("Prodigy", _is_export, _items)
