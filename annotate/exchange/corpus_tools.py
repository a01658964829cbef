"""Exports that name the person of each answer: jobs of LightTag, annotations of Potato, documents of INCEpTION, and
sets that Assay itself has exported.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from annotate.exchange.items import FILE_NAME, GOLD, Answer, Item, Object, Tool, item_in, person_of
from annotate.kinds.files import EXPORT_COLUMNS
from annotate.kinds.forms.spans import NOTHING, Span, spans_in
from corpora.core.records import FIELDS
from corpora.core.values import is_missing
from corpora.core.voters import VOTERS

# --- LightTag: JSON with `examples`, whose classifications and annotations (spans) name the people who made them. The
# structure is that of lighttag/type_definitions in the maker's own repository LightTag/lighttag-convertors.


CLASSES, SPANS = "classification", "spans"


def _is_light_tag(first: Object) -> bool:
    examples = first.get("examples")
    return (isinstance(examples, list) and "schema" in first) or {"example_id", "content", "seen_by"} <= first.keys()


def _of_light_tag(objects: Iterable[Object], lost: Counter[str]) -> Iterator[Item]:
    by_key: dict[str, Item] = {}
    for job in objects:
        kinds = (job.get("schema") or {}).get("classification_types") or ()
        offered = tuple(str(kind["name"]) for kind in kinds if isinstance(kind, dict))
        for example in job.get("examples", [job]):
            key, texts = str(example["example_id"]), {"text": example["content"], **(example.get("metadata") or {})}
            item = item_in(by_key, key, texts)
            item.offered = item.offered or offered
            item.answers += _light_tag_answers(example, lost)
    yield from by_key.values()


def _light_tag_answers(example: Object, lost: Counter[str]) -> Iterator[Answer]:
    """Yield the classes that each person chose, and the spans that each person marked."""
    labels: dict[tuple[str, str], list[Any]] = {}
    times: dict[tuple[str, str], Any] = {}
    classes = (
        (CLASSES, "classified_by", str(entry["classname"]), entry) for entry in example.get("classifications") or ()
    )
    spans = (
        (SPANS, "annotated_by", Span(int(entry["start"]), int(entry["end"]), str(entry["tag"])), entry)
        for entry in example.get("annotations") or ()
    )
    for question, by, label, entry in [*classes, *spans]:
        lost["verdicts of reviewers"] += bool(entry.get("reviewed"))
        for person in entry.get(by) or ():
            place = (str(person.get("annotator") or person["annotator_id"]), question)
            labels.setdefault(place, []).append(label)
            times[place] = person.get("timestamp")
    for (name, question), chosen in labels.items():
        yield Answer(name, question, tuple(chosen), "text", at=times[name, question])


LIGHT_TAG = Tool("LightTag", _is_light_tag, _of_light_tag)


# --- Potato: annotated_instances (JSONL, or CSV with a column for each label) and user_state.json. A user state has no
# texts, so it is imported together with the project's data file. `UserState.to_json` in
# potato/user_state_management.py defines its structure.


OF_LABEL = ":::"  # between the name of a schema and a label, in the names of columns
STATE, SPAN_VALUES = "instance_id_to_label_to_value", "instance_id_to_span_to_value"


def _is_potato(first: Object) -> bool:
    is_table = "instance_id" in first and any(OF_LABEL in name for name in first)
    return is_table or {"instance_id", "label_annotations"} <= first.keys() or STATE in first


def _of_potato(objects: Iterable[Object], lost: Counter[str]) -> Iterator[Item]:
    by_key: dict[str, Item] = {}
    for row in objects:
        user = person_of(row.get("user_id") or row.get("user"))
        if "instance_id" in row:
            texts = {"text": row.get("displayed_text") or row.get("text")}
            item = item_in(by_key, str(row["instance_id"]), texts)
            labels = row.get("label_annotations") or _in_columns(row)
            _say(item, user, labels, row.get("span_annotations"))
        elif STATE in row:
            spans = row.get(SPAN_VALUES) or {}
            for key in dict.fromkeys([*row[STATE], *spans]):
                item = by_key.setdefault(str(key), Item(str(key), {}))
                _say(item, user, row[STATE].get(key), spans.get(key))
        else:  # a row of the data file
            item = by_key.setdefault(str(row["id"]), Item(str(row["id"]), {}))
            item.texts = {name: value for name, value in row.items() if name not in ("id", FILE_NAME)}
    yield from by_key.values()


def _in_columns(row: Object) -> dict[str, dict[str, Any]]:
    """Return the labels of each schema in a row of a table, whose columns are named schema:::label."""
    labels: dict[str, dict[str, Any]] = {}
    for name, value in row.items():
        schema, is_label, label = name.partition(OF_LABEL)
        if is_label and not is_missing(value):
            labels.setdefault(schema, {})[label] = value
    return labels


def _say(item: Item, user: str, labels: Any, spans: Any) -> None:
    """Add the answers of a person to an item."""
    for schema, chosen in _by_schema(labels).items():
        item.answers.append(Answer(user, schema, tuple(_chosen(chosen))))
    if marked := tuple(_spans(spans or ())):
        item.answers.append(Answer(user, "spans", marked, "text"))


def _by_schema(labels: Any) -> dict[str, Any]:
    """Return the labels of each schema: name -> value. User states list pairs of ({schema, name}, value)."""
    if isinstance(labels, dict):
        return labels
    rows = sorted((str(label["schema"]), str(label["name"]), value) for label, value in labels or ())
    return {schema: {name: value for _, name, value in same} for schema, same in groupby(rows, key=lambda row: row[0])}


def _chosen(labels: Any) -> Iterator[str]:
    """Yield the labels of a schema: its values in text fields and scales, its names where a box was ticked."""
    for name, value in labels.items() if isinstance(labels, dict) else [(labels, True)]:
        if value is None:
            continue
        is_ticked = str(value).lower() in ("true", "on", "1") or str(value) == str(name)
        yield str(name) if is_ticked else str(value)


def _spans(annotations: Any) -> Iterator[Span]:
    """Yield spans, which are in a list, in lists by schema, or in pairs of a span and a value."""
    marks = annotations.values() if isinstance(annotations, dict) else annotations
    for mark in marks:
        for one in mark if isinstance(mark, list) else [mark]:
            if isinstance(one, dict):
                label = one.get("name") or one.get("label") or one["annotation"]
                yield Span(int(one["start"]), int(one["end"]), str(label))


POTATO = Tool("Potato", _is_potato, _of_potato)


# --- INCEpTION: UIMA CAS JSON 0.4, and the older JSON, with one file for each document and person. An answer is a
# feature of a document metadata layer, whose type has no `begin`, or the values of a feature of a span layer. The
# document and the person are those in `CASMetadata`; exports without it have a file named after the person in a folder
# named after the document. The formats are described in the user's guide of INCEpTION (Appendix "Formats") and in the
# specification of apache/uima-uimaj-io-jsoncas.


CURATOR, NOBODY = "CURATION_USER", "INITIAL_CAS"
# Types that describe the document or its tokens, and are not answers.
_OF_DOCUMENTS = ("Sofa", "DocumentAnnotation", "DocumentMetaData", "CASMetadata", "TagsetDescription")
_OF_TEXTS = ("Token", "Sentence", "StringArray", "FSArray")
_OWN = ("sofa", "begin", "end", "_type", "identifier")


def _is_inception(first: Object) -> bool:
    return "%FEATURE_STRUCTURES" in first or {"_views", "_referenced_fss"} <= first.keys()


def _of_inception(objects: Iterable[Object], lost: Counter[str]) -> Iterator[Item]:
    by_key: dict[str, Item] = {}
    for number, document in enumerate(objects, 1):
        named = list(_structures(document))
        about = {name: values for name, values in named if name in _OF_DOCUMENTS}
        saved, meta = about.get("CASMetadata") or {}, about.get("DocumentMetaData") or {}
        key = str(saved.get("sourceDocumentName") or meta.get("documentTitle") or meta.get("documentId") or number)
        by = str(saved.get("username") or document.get(FILE_NAME) or "unknown")
        text = str(about["Sofa"]["sofaString"])
        language = str((meta or about.get("DocumentAnnotation") or {}).get("language") or "x-unspecified")
        texts = {"text": text} | ({"language": language} if language != "x-unspecified" else {})
        item = by_key.setdefault(key, Item(key, texts))
        if by != NOBODY:
            answers = _inception_answers(named, GOLD if by == CURATOR else by, text, lost)
            (item.predictions if by == CURATOR else item.answers).extend(answers)
    yield from by_key.values()


def _structures(document: Object) -> Iterator[tuple[str, Object]]:
    """Yield the short name of the type and the features of each feature structure."""
    if "_views" in document:
        referenced = document["_referenced_fss"]
        yield from ((str(structure["_type"]), structure) for structure in referenced.values())
        for view in document["_views"].values():
            for name, members in view.items():
                yield from ((name, structure) for structure in members if isinstance(structure, dict))
        return
    structures = document["%FEATURE_STRUCTURES"]
    arrays = {array["%ID"]: array["%ELEMENTS"] for array in structures if {"%ELEMENTS", "%ID"} <= array.keys()}
    for structure in structures:
        features = {name: value for name, value in structure.items() if name[:1] not in "%@^"}
        references = {name[1:]: arrays.get(value, value) for name, value in structure.items() if name[:1] == "@"}
        yield str(structure["%TYPE"]).rpartition(".")[2], features | references


def _inception_answers(named: Iterable[tuple[str, Object]], by: str, text: str, lost: Counter[str]) -> Iterator[Answer]:
    labels: dict[str, list[Any]] = {}
    for name, features in named:
        if name in _OF_DOCUMENTS or name in _OF_TEXTS:
            continue
        if {"Governor", "Dependent"} <= features.keys():
            lost["relations"] += 1
            continue
        for feature, values in _values(features):
            if "end" in features:
                start, end = (_in_code_points(text, int(features.get(side, 0))) for side in ("begin", "end"))
                labels.setdefault(f"{name}.{feature}", []).extend(Span(start, end, value) for value in values)
            else:
                labels.setdefault(f"{name}.{feature}", []).extend(values)
    for question, chosen in labels.items():
        yield Answer(by, question, tuple(chosen), "text")


def _values(features: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    for name, value in features.items():
        if name not in _OWN and isinstance(value, str | bool | list):
            chosen = value if isinstance(value, list) else [value]
            yield name, [str(choice) for choice in chosen if isinstance(choice, str | bool)]


def _in_code_points(text: str, offset: int) -> int:
    """Convert an offset in UTF-16 code units, in which Java counts, to characters."""
    return offset if text.isascii() else len(text.encode("utf-16-le")[: 2 * offset].decode("utf-16-le", "replace"))


INCEPTION = Tool("INCEpTION", _is_inception, _of_inception)


# --- Assay: the rows of gold.jsonl or of a Parquet file that `export_gold` wrote, with the judgments of each person.


# Columns of a set that are not texts or fields.
_NO_TEXTS = EXPORT_COLUMNS.difference(["text", "language"]).union(FIELDS).difference(["text"]).union(VOTERS)


def _is_assay(first: Object) -> bool:
    judgments = first.get("judgments")
    return {"id", "label", "stage"} <= first.keys() and isinstance(judgments, list)


def _of_assay(objects: Iterable[Object], lost: Counter[str]) -> Iterator[Item]:
    for row in objects:
        has_spans = isinstance(row.get("spans"), list)
        texts = {name: value for name, value in row.items() if name not in _NO_TEXTS and isinstance(value, str)}
        item = Item(str(row["id"]), texts)
        for judgment in row["judgments"]:
            if judgment["kind"] != "answer" or not judgment["label"] or judgment["voided_at"]:
                lost["skips, changes and withdrawn answers"] += 1
            else:
                labels = _labels(judgment["label"], has_spans=has_spans)
                item.answers.append(Answer(judgment["annotator"], "", labels, at=judgment["answered_at"]))
        if row["label"]:
            item.predictions.append(Answer(GOLD, "", _labels(row["label"], has_spans=has_spans)))
        yield item


def _labels(text: str, *, has_spans: bool) -> tuple[Any, ...]:
    return tuple(spans_in(text)) if has_spans else tuple(label for label in text.split() if label != NOTHING)


ASSAY = Tool("Assay", _is_assay, _of_assay)
