"""Exports of LightTag, Potato, INCEpTION, and Assay itself, all of which name the annotator of each answer."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from annotate.exchange.items import FILE_NAME, GOLD, Answer, Item, Object, Tool, get_item, person_name
from annotate.kinds.files import EXPORT_COLUMNS
from annotate.kinds.forms.spans import NOTHING, Span, spans_in
from corpora.core.records import FIELDS
from corpora.core.values import is_missing
from corpora.core.voters import VOTERS

# --- LightTag: JSON with `examples`. Each classification and each annotation (span) names its annotator. The
# structure is documented in lighttag/type_definitions in the repository LightTag/lighttag-convertors.


CLASSES, SPANS = "classification", "spans"


def _is_light_tag(first: Object) -> bool:
    examples = first.get("examples")
    return (isinstance(examples, list) and "schema" in first) or {"example_id", "content", "seen_by"} <= first.keys()


def _light_tag_items(objects: Iterable[Object], not_kept: Counter[str]) -> Iterator[Item]:
    by_key: dict[str, Item] = {}
    for job in objects:
        kinds = (job.get("schema") or {}).get("classification_types") or ()
        possible_labels = tuple(str(kind["name"]) for kind in kinds if isinstance(kind, dict))
        for example in job.get("examples", [job]):
            key, texts = str(example["example_id"]), {"text": example["content"], **(example.get("metadata") or {})}
            item = get_item(by_key, key, texts)
            item.possible_labels = item.possible_labels or possible_labels
            item.answers += _light_tag_answers(example, not_kept)
    yield from by_key.values()


def _light_tag_answers(example: Object, not_kept: Counter[str]) -> Iterator[Answer]:
    """Yield the classes that each annotator chose, and the spans that each annotator marked."""
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
        not_kept["verdicts of reviewers"] += bool(entry.get("reviewed"))
        for person in entry.get(by) or ():
            place = (str(person.get("annotator") or person["annotator_id"]), question)
            labels.setdefault(place, []).append(label)
            times[place] = person.get("timestamp")
    for (name, question), chosen in labels.items():
        yield Answer(name, question, tuple(chosen), "text", at=times[name, question])


LIGHT_TAG = Tool("LightTag", _is_light_tag, _light_tag_items)


# --- Potato: annotated_instances (JSONL, or CSV with a column for each label) and user_state.json. A user state has no
# texts, so it must be imported together with the project's data file. `UserState.to_json` in
# potato/user_state_management.py defines its structure.


LABEL_SEPARATOR = ":::"  # between schema and label in names of columns
STATE, SPAN_VALUES = "instance_id_to_label_to_value", "instance_id_to_span_to_value"


def _is_potato(first: Object) -> bool:
    is_table = "instance_id" in first and any(LABEL_SEPARATOR in name for name in first)
    return is_table or {"instance_id", "label_annotations"} <= first.keys() or STATE in first


def _potato_items(objects: Iterable[Object], not_kept: Counter[str]) -> Iterator[Item]:
    by_key: dict[str, Item] = {}
    for row in objects:
        user = person_name(row.get("user_id") or row.get("user"))
        if "instance_id" in row:
            texts = {"text": row.get("displayed_text") or row.get("text")}
            item = get_item(by_key, str(row["instance_id"]), texts)
            labels = row.get("label_annotations") or _labels_in_columns(row)
            _add_answers(item, user, labels, row.get("span_annotations"))
        elif STATE in row:
            spans = row.get(SPAN_VALUES) or {}
            for key in dict.fromkeys([*row[STATE], *spans]):
                item = by_key.setdefault(str(key), Item(str(key), {}))
                _add_answers(item, user, row[STATE].get(key), spans.get(key))
        else:  # a row of the data file
            item = by_key.setdefault(str(row["id"]), Item(str(row["id"]), {}))
            item.texts = {name: value for name, value in row.items() if name not in ("id", FILE_NAME)}
    yield from by_key.values()


def _labels_in_columns(row: Object) -> dict[str, dict[str, Any]]:
    """Return the labels by schema from a table's row, whose columns have names such as `schema:::label`."""
    labels: dict[str, dict[str, Any]] = {}
    for name, value in row.items():
        schema, is_label, label = name.partition(LABEL_SEPARATOR)
        if is_label and not is_missing(value):
            labels.setdefault(schema, {})[label] = value
    return labels


def _add_answers(item: Item, user: str, labels: Any, spans: Any) -> None:
    """Add an annotator's answers to an item."""
    for schema, chosen in _by_schema(labels).items():
        item.answers.append(Answer(user, schema, tuple(_chosen_labels(chosen))))
    if marked := tuple(_spans(spans or ())):
        item.answers.append(Answer(user, "spans", marked, "text"))


def _by_schema(labels: Any) -> dict[str, Any]:
    """Return the labels by schema, as name -> value. Convert the pairs ({schema, name}, value) in user states."""
    if isinstance(labels, dict):
        return labels
    rows = sorted((str(label["schema"]), str(label["name"]), value) for label, value in labels or ())
    return {schema: {name: value for _, name, value in same} for schema, same in groupby(rows, key=lambda row: row[0])}


def _chosen_labels(labels: Any) -> Iterator[str]:
    """Yield the labels of a schema: the values of text fields and scales, and the names of ticked boxes."""
    for name, value in labels.items() if isinstance(labels, dict) else [(labels, True)]:
        if value is None:
            continue
        is_ticked = str(value).lower() in ("true", "on", "1") or str(value) == str(name)
        yield str(name) if is_ticked else str(value)


def _spans(annotations: Any) -> Iterator[Span]:
    """Yield the spans. They are in a list, in one list per schema, or in pairs of a span and a value."""
    entries = annotations.values() if isinstance(annotations, dict) else annotations
    for entry in entries:
        for mark in entry if isinstance(entry, list) else [entry]:
            if isinstance(mark, dict):
                label = mark.get("name") or mark.get("label") or mark["annotation"]
                yield Span(int(mark["start"]), int(mark["end"]), str(label))


POTATO = Tool("Potato", _is_potato, _potato_items)


# --- INCEpTION: UIMA CAS JSON 0.4, and the older JSON, with one file per document and annotator. An answer is either a
# feature in a document metadata layer (its type has no `begin`), or a feature's values in a span layer. `CASMetadata`
# names the document and the annotator. If it is missing, the folder is named after the document, and the file after
# the annotator. The formats are described in INCEpTION's user guide (Appendix "Formats") and in the specification
# of apache/uima-uimaj-io-jsoncas.


CURATOR, NOBODY = "CURATION_USER", "INITIAL_CAS"
# Types that describe the document or its tokens, so they aren't answers.
_DOCUMENT_TYPES = ("Sofa", "DocumentAnnotation", "DocumentMetaData", "CASMetadata", "TagsetDescription")
_TEXT_TYPES = ("Token", "Sentence", "StringArray", "FSArray")
_BUILT_IN = ("sofa", "begin", "end", "_type", "identifier")


def _is_inception(first: Object) -> bool:
    return "%FEATURE_STRUCTURES" in first or {"_views", "_referenced_fss"} <= first.keys()


def _inception_items(objects: Iterable[Object], not_kept: Counter[str]) -> Iterator[Item]:
    by_key: dict[str, Item] = {}
    for number, document in enumerate(objects, 1):
        structures = list(_structures(document))
        about = {name: values for name, values in structures if name in _DOCUMENT_TYPES}
        saved, meta = about.get("CASMetadata") or {}, about.get("DocumentMetaData") or {}
        key = str(saved.get("sourceDocumentName") or meta.get("documentTitle") or meta.get("documentId") or number)
        by = str(saved.get("username") or document.get(FILE_NAME) or "unknown")
        text = str(about["Sofa"]["sofaString"])
        language = str((meta or about.get("DocumentAnnotation") or {}).get("language") or "x-unspecified")
        texts = {"text": text} | ({"language": language} if language != "x-unspecified" else {})
        item = by_key.setdefault(key, Item(key, texts))
        if by != NOBODY:
            answers = _inception_answers(structures, GOLD if by == CURATOR else by, text, not_kept)
            (item.predictions if by == CURATOR else item.answers).extend(answers)
    yield from by_key.values()


def _structures(document: Object) -> Iterator[tuple[str, Object]]:
    """Yield (short name of the type, features) for each feature structure of a document."""
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


def _inception_answers(
    structures: Iterable[tuple[str, Object]], by: str, text: str, not_kept: Counter[str]
) -> Iterator[Answer]:
    labels: dict[str, list[Any]] = {}
    for name, features in structures:
        if name in _DOCUMENT_TYPES or name in _TEXT_TYPES:
            continue
        if {"Governor", "Dependent"} <= features.keys():
            not_kept["relations"] += 1
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
        if name not in _BUILT_IN and isinstance(value, str | bool | list):
            chosen = value if isinstance(value, list) else [value]
            yield name, [str(choice) for choice in chosen if isinstance(choice, str | bool)]


def _in_code_points(text: str, offset: int) -> int:
    """Convert an offset in UTF-16 code units, as in Java, to code points."""
    return offset if text.isascii() else len(text.encode("utf-16-le")[: 2 * offset].decode("utf-16-le", "replace"))


INCEPTION = Tool("INCEpTION", _is_inception, _inception_items)


# --- Assay: rows that `export_gold` wrote to gold.jsonl or a Parquet file, with each annotator's judgments.


# Columns of a set that are neither texts nor fields.
_NOT_TEXTS = EXPORT_COLUMNS.difference(["text", "language"]).union(FIELDS).difference(["text"]).union(VOTERS)


def _is_assay(first: Object) -> bool:
    judgments = first.get("judgments")
    return {"id", "label", "stage"} <= first.keys() and isinstance(judgments, list)


def _assay_items(objects: Iterable[Object], not_kept: Counter[str]) -> Iterator[Item]:
    for row in objects:
        has_spans = isinstance(row.get("spans"), list)
        texts = {name: value for name, value in row.items() if name not in _NOT_TEXTS and isinstance(value, str)}
        item = Item(str(row["id"]), texts)
        for judgment in row["judgments"]:
            if judgment["kind"] != "answer" or not judgment["label"] or judgment["voided_at"]:
                not_kept["skips, changes and withdrawn answers"] += 1
            else:
                labels = _labels(judgment["label"], has_spans=has_spans)
                item.answers.append(Answer(judgment["annotator"], "", labels, at=judgment["answered_at"]))
        if row["label"]:
            item.predictions.append(Answer(GOLD, "", _labels(row["label"], has_spans=has_spans)))
        yield item


def _labels(text: str, *, has_spans: bool) -> tuple[Any, ...]:
    return tuple(spans_in(text)) if has_spans else tuple(label for label in text.split() if label != NOTHING)


ASSAY = Tool("Assay", _is_assay, _assay_items)
