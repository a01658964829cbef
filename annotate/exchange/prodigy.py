"""Exports of Prodigy (`prodigy db-out`): JSONL with one line per answer.

`_input_hash` identifies the item. `answer` is `accept`, `reject` or `ignore`. If there are `options`, `accept` lists
the chosen options.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from annotate.exchange.items import GOLD, Answer, Item, Object, Tool, person_name
from annotate.kinds.forms.spans import Span

AT = "_timestamp"  # time of the answer, in epoch seconds (since version 1.12)
_IGNORED = (
    *("options", "accept", "answer", "spans", "tokens", "label", "meta", "config", "html", "image"),
    "relations",
)


def _is_export(first: Object) -> bool:
    return "answer" in first and ("_input_hash" in first or "_task_hash" in first)


def _items(objects: Iterable[Object], not_kept: Counter[str]) -> Iterator[Item]:
    by_key: dict[str, Item] = {}
    for number, row in enumerate(objects, 1):
        key = str(row.get("_input_hash", number))
        texts = {name: value for name, value in row.items() if name[0] != "_" and name not in _IGNORED}
        if "text" not in texts and "html" in row:
            texts["text"] = row["html"]
        item = by_key.setdefault(key, Item(key, {**texts, **(row.get("meta") or {})}))
        by = person_name(row.get("_annotator_id") or row.get("_session_id"))
        not_kept["relations"] += len(row.get("relations") or ())
        if row["answer"] == "ignore":
            not_kept["skipped answers"] += 1
        elif isinstance(row.get("options"), list):
            _add_options(row, by, item, not_kept)
        elif row.get("label") is not None and not row.get("spans"):
            item.answers.append(Answer(by, str(row["label"]), (row["answer"],), at=row.get(AT)))
        elif row["answer"] == "reject":
            not_kept["rejected marks"] += 1
        elif not isinstance(row.get("spans"), list):
            not_kept["answers without options, a label or spans"] += 1
        else:
            spans = (Span(int(mark["start"]), int(mark["end"]), str(mark["label"])) for mark in row.get("spans") or ())
            _answers_by(item, by).append(Answer(by, "", tuple(spans), "text", at=row.get(AT)))
    yield from by_key.values()


def _add_options(row: Object, by: str, item: Item, not_kept: Counter[str]) -> None:
    """Add the options that an annotator chose, by the names that the annotator saw."""
    names = {str(option["id"]): str(option.get("text", option["id"])) for option in row["options"]}
    item.possible_labels = tuple(names.values())
    chosen = tuple(names.get(str(accepted), str(accepted)) for accepted in row.get("accept") or ())
    if row["answer"] == "accept" and chosen:
        _answers_by(item, by).append(Answer(by, "", chosen, at=row.get(AT)))
    else:
        not_kept["answers without a chosen option"] += 1


def _answers_by(item: Item, by: str) -> list[Answer]:
    return item.predictions if by == GOLD else item.answers


PRODIGY = Tool("Prodigy", _is_export, _items)
