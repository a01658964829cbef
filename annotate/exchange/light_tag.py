"""Jobs of LightTag: JSON with `examples`, whose classifications and annotations (spans) name the people who made them.

The structure is that of lighttag/type_definitions in the maker's own repository LightTag/lighttag-convertors.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from annotate.exchange.items import Item, Object, Said, Tool, item_in
from annotate.kinds.forms.spans import Span

CLASSES, SPANS = "classification", "spans"


def _is_export(first: Object) -> bool:
    examples = first.get("examples")
    return (isinstance(examples, list) and "schema" in first) or {"example_id", "content", "seen_by"} <= first.keys()


def _items(objects: Iterable[Object], lost: Counter[str]) -> Iterator[Item]:
    by_key: dict[str, Item] = {}
    for job in objects:
        kinds = (job.get("schema") or {}).get("classification_types") or ()
        offered = tuple(str(kind["name"]) for kind in kinds if isinstance(kind, dict))
        for example in job.get("examples", [job]):
            key, texts = str(example["example_id"]), {"text": example["content"], **(example.get("metadata") or {})}
            item = item_in(by_key, key, texts)
            item.offered = item.offered or offered
            item.answers += _answers(example, lost)
    yield from by_key.values()


def _answers(example: Object, lost: Counter[str]) -> Iterator[Said]:
    """Yield the classes that each person chose, and the spans that each person marked."""
    labels: dict[tuple[str, str], list[Any]] = {}
    times: dict[tuple[str, str], Any] = {}
    classes = (
        (CLASSES, "classified_by", str(each["classname"]), each) for each in example.get("classifications") or ()
    )
    spans = (
        (SPANS, "annotated_by", Span(int(each["start"]), int(each["end"]), str(each["tag"])), each)
        for each in example.get("annotations") or ()
    )
    for question, by, label, each in [*classes, *spans]:
        lost["verdicts of reviewers"] += bool(each.get("reviewed"))
        for person in each.get(by) or ():
            place = (str(person.get("annotator") or person["annotator_id"]), question)
            labels.setdefault(place, []).append(label)
            times[place] = person.get("timestamp")
    for (name, question), chosen in labels.items():
        yield Said(name, question, tuple(chosen), "text", at=times[name, question])


LIGHT_TAG = Tool("LightTag", _is_export, _items)
