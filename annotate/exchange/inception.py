"""Documents of INCEpTION: UIMA CAS JSON 0.4, and the older JSON, with one file for each document and person.

An answer is a feature of a document metadata layer, whose type has no `begin`, or the values of a feature of a span
layer. The document and the person are those in `CASMetadata`; exports without it have a file named after the person in
a folder named after the document. The formats are described in the user's guide of INCEpTION (Appendix "Formats") and
in the specification of apache/uima-uimaj-io-jsoncas.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from annotate.exchange.items import FILE_NAME, GOLD, Item, Object, Said, Tool
from annotate.kinds.forms.spans import Span

CURATOR, NOBODY = "CURATION_USER", "INITIAL_CAS"
# Types that describe the document or its tokens, and are no answers.
_OF_DOCUMENTS = ("Sofa", "DocumentAnnotation", "DocumentMetaData", "CASMetadata", "TagsetDescription")
_OF_TEXTS = ("Token", "Sentence", "StringArray", "FSArray")
_OWN = ("sofa", "begin", "end", "_type", "identifier")


def _is_export(first: Object) -> bool:
    return "%FEATURE_STRUCTURES" in first or {"_views", "_referenced_fss"} <= first.keys()


def _items(objects: Iterable[Object], lost: Counter[str]) -> Iterator[Item]:
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
            answers = _answers(named, GOLD if by == CURATOR else by, text, lost)
            (item.predictions if by == CURATOR else item.answers).extend(answers)
    yield from by_key.values()


def _structures(document: Object) -> Iterator[tuple[str, Object]]:
    """Yield the short name of the type and the features of each feature structure."""
    if "_views" in document:
        referenced = document["_referenced_fss"]
        yield from ((str(each["_type"]), each) for each in referenced.values())
        for view in document["_views"].values():
            for name, members in view.items():
                yield from ((name, each) for each in members if isinstance(each, dict))
        return
    structures = document["%FEATURE_STRUCTURES"]
    arrays = {each["%ID"]: each["%ELEMENTS"] for each in structures if "%ELEMENTS" in each and "%ID" in each}
    for each in structures:
        features = {name: value for name, value in each.items() if name[:1] not in "%@^"}
        references = {name[1:]: arrays.get(value, value) for name, value in each.items() if name[:1] == "@"}
        yield str(each["%TYPE"]).rpartition(".")[2], features | references


def _answers(named: Iterable[tuple[str, Object]], by: str, text: str, lost: Counter[str]) -> Iterator[Said]:
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
        yield Said(by, question, tuple(chosen), "text")


def _values(features: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    for name, value in features.items():
        if name not in _OWN and isinstance(value, str | bool | list):
            chosen = value if isinstance(value, list) else [value]
            yield name, [str(each) for each in chosen if isinstance(each, str | bool)]


def _in_code_points(text: str, offset: int) -> int:
    """Convert an offset in UTF-16 code units, in which Java counts, to characters."""
    return offset if text.isascii() else len(text.encode("utf-16-le")[: 2 * offset].decode("utf-16-le", "replace"))


INCEPTION = Tool("INCEpTION", _is_export, _items)
