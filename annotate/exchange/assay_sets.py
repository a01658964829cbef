"""Sets that `export_gold` wrote: the rows of gold.jsonl or of a Parquet file, with the judgments of each person."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from annotate.exchange.items import GOLD, Item, Object, Said, Tool
from annotate.kinds.files import TAKEN
from annotate.kinds.forms.spans import NOTHING, spans_in
from corpora.core.records import FIELDS
from corpora.core.voters import VOTERS

# Columns of a set that are not texts or fields.
_LEFT_OUT = TAKEN.difference(["text", "language"]).union(FIELDS).difference(["text"]).union(VOTERS)


def _is_export(first: Object) -> bool:
    judgments = first.get("judgments")
    return {"id", "label", "stage"} <= first.keys() and isinstance(judgments, list)


def _items(objects: Iterable[Object], lost: Counter[str]) -> Iterator[Item]:
    for row in objects:
        has_spans = isinstance(row.get("spans"), list)
        texts = {name: value for name, value in row.items() if name not in _LEFT_OUT and isinstance(value, str)}
        item = Item(str(row["id"]), texts)
        for judgment in row["judgments"]:
            if judgment["kind"] != "answer" or not judgment["label"] or judgment["voided_at"]:
                lost["skips, changes and withdrawn answers"] += 1
            else:
                labels = _labels(judgment["label"], has_spans=has_spans)
                item.answers.append(Said(judgment["annotator"], "", labels, at=judgment["answered_at"]))
        if row["label"]:
            item.predictions.append(Said(GOLD, "", _labels(row["label"], has_spans=has_spans)))
        yield item


def _labels(text: str, *, has_spans: bool) -> tuple[Any, ...]:
    return tuple(spans_in(text)) if has_spans else tuple(label for label in text.split() if label != NOTHING)


ASSAY = Tool("Assay", _is_export, _items)
