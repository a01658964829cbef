"""Readers for EU acts with their EuroVoc concepts: EURLEX57K and MultiEURLEX (Chalkidis et al. 2019 and 2021).

EURLEX57K was published as folders named train, dev and test, with a file `<celex_id>.json` for each act. It is now
distributed as train.jsonl, dev.jsonl and test.jsonl, with one act per line and two keys renamed. MultiEURLEX also has
one act per line, but in up to 23 languages. Each language version becomes a record.

Each part of an act is a field of the record. The articles in the list `main_body` are joined with empty lines between
them, and `split_articles` can split the text again.
"""

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from corpora.core import CorpusError
from corpora.core.records import RecordError, kind_of, read_language, read_string, read_time
from corpora.sources.compression import Progress, entries_of
from corpora.sources.readers import Row
from corpora.sources.text import Fault, object_of, values_of
from corpora.storage.layout import files_in, name_of

# The keys of an act as published, in order.
KEYS = ("celex_id", "uri", "type", "title", "header", "recitals", "main_body", "attachments", "concepts")
# The published reader (lmtc-eurlex57k, json_loader.py) forms an act's text from the values of these keys.
TEXTS = ("header", "recitals", "main_body", "attachments")
# In EURLEX57K, 99.4% of the acts have at most this many concepts, and systems are evaluated on at most this many.
MOST_CONCEPTS = 10

_SEPARATOR = "\n\n"
# An empty line inside an article is replaced with this invisible character, because empty lines separate articles.
_FILLER = "\u00a0"


def join_articles(articles: Iterable[str]) -> str:
    """Join articles with empty lines between them. `split_articles` is the inverse."""
    lines_by_article = (article.split("\n") for article in articles)
    return _SEPARATOR.join(
        "\n".join(line if line.strip(_FILLER) else line + _FILLER for line in lines) for lines in lines_by_article
    )


def split_articles(text: str) -> list[str]:
    """Split the text into its articles, which were joined by `join_articles`."""
    lines_by_article = (part.split("\n") for part in text.split(_SEPARATOR)) if text else ()
    return ["\n".join(line if line.strip(_FILLER) else line[:-1] for line in lines) for lines in lines_by_article]


def published_act(row: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a record back to EURLEX57K's published form, whose keys are listed in KEYS.

    row: id, url, fields and declared labels of a record
    """
    renamed = {"celex_id": "id", "uri": "url", "concepts": "declared"}
    act = {key: row[renamed.get(key, key)] for key in KEYS}
    return act | {"main_body": split_articles(act["main_body"])}


# The columns of an act, which can be used in --fields, --labels and --column.
FIELDS = ("title", "header", "recitals", "main_body", "attachments", "type", "split")
COLUMNS = ("id", *FIELDS, "concepts", "url")
LEVELS = ("all_levels", "level_1", "level_2", "level_3")
FIELDS_OF_MULTI = ("body", "celex_id", "split")
COLUMNS_OF_MULTI = ("id", "language", *FIELDS_OF_MULTI, *LEVELS, "posted_at")

_RENAMED = {"type": "document_type", "concepts": "eurovoc_concepts"}  # old key -> new key
_MULTI = ("celex_id", "publication_date", "text", "eurovoc_concepts")
_SPLITS = {"train", "dev", "test"}
# An act's number; its file name if the file contains only this act, otherwise ""; the split according to the name of
# the folder or file, or ""; and the act as JSON.
_Act = tuple[int, str, str, bytes | Fault]


def read_acts(path: Path, longest: int, progress: Progress) -> Iterator[Row]:
    """Yield (number, values by column) for each act. If an act cannot be read, yield (number, Fault).

    In a folder or ZIP file, acts are numbered in file name order. In a JSON Lines file, the number is the line number.

    longest: maximum size of an act (bytes)

    Raise CorpusError if there is no act, or if the path is damaged.
    """
    for number, file, split, content in _acts(path, longest, progress):
        unit = "file" if file else "line"
        raw = content if isinstance(content, Fault) else object_of(content, KEYS, unit)
        if isinstance(raw, Fault):
            yield number, Fault(_with_name(file, raw.reason))
            continue
        try:
            yield number, _act(raw, file, split)
        except RecordError as error:
            yield number, Fault(_with_name(file or raw.get("celex_id"), str(error)))


def _acts(path: Path, longest: int, progress: Progress) -> Iterator[_Act]:
    if path.is_dir():
        files = files_in(path)
        if not any(map(_is_act, files)):
            subfolders = [file for file in files if file.is_dir() and any(map(_is_act, files_in(file)))]
            folders = f"the folders in it, such as {subfolders[0]}" if subfolders else "the folder that contains them"
            raise CorpusError(f"{path} contains no file <celex_id>.json. Specify {folders}.")
        for number, file in enumerate(files, 1):
            yield number, file.name, _split(name_of(path)), _content(file, longest, progress)
    elif zipfile.is_zipfile(path):
        for number, (name, content) in enumerate(entries_of(path, ".json", longest), 1):
            progress(min(len(content or b""), path.stat().st_size))
            document = _too_long(longest) if content is None else content
            yield number, name.name, _split(name.parent.name or path.stem), document
    elif _is_act(path):
        yield 1, path.name, _split(name_of(path.parent)), _content(path, longest, progress)
    else:
        for number, line in values_of(path, longest, progress):
            if isinstance(line, Fault) or not line.isspace():
                yield number, "", _split(path.name), line


def _is_act(file: Path) -> bool:
    return file.suffix.lower() == ".json"


def _content(file: Path, longest: int, progress: Progress) -> bytes | Fault:
    if not _is_act(file) or not file.is_file():
        return Fault("This is not an act. The folder must contain only files named <celex_id>.json.")
    size = file.stat().st_size
    progress(size)
    return file.read_bytes() if size <= longest else _too_long(longest)


def _too_long(longest: int) -> Fault:
    return Fault(f"The file is longer than {longest:,} bytes.")


def _split(name: str) -> str:
    """Return the split that a folder or file is named after, such as `train` for train.jsonl; "" if there is none."""
    splits = _SPLITS.intersection(re.split(r"[^a-z]+", name.lower()))
    return splits.pop() if len(splits) == 1 else ""


def _with_name(name: object, reason: str) -> str:
    return f"{name}: {reason}" if isinstance(name, str) and name else reason


def _act(raw: Mapping[str, Any], file: str, split: str) -> dict[str, Any]:
    """Return an act's values of the COLUMNS.

    file: name of the file if it contains only this act, otherwise ""
    split: split according to the name of the folder or file; "" if there is none

    Raise RecordError for the first rule that the act breaks.
    """
    if isinstance(raw.get("text"), dict):
        raise RecordError("The act is from MultiEURLEX, with one text per language. Use --format multi_eurlex.")
    act = {key: raw.get(key, raw.get(_RENAMED.get(key, key), ...)) for key in KEYS}
    _check_keys(act)
    celex = read_string("celex_id", act["celex_id"])
    if file and Path(file).stem != celex:
        raise RecordError(f"The file contains the act {celex[:40]!r}. The file name must be the celex_id of its act.")
    if not isinstance(act["main_body"], list):
        raise RecordError(
            f"The main_body is {kind_of(act['main_body'])}. It must be a list of strings, one for each article."
        )
    texts = {key: read_string(key, act[key]) for key in ("title", "header", "recitals", "attachments", "type")}
    texts["main_body"] = join_articles(read_string("article of the main_body", article) for article in act["main_body"])
    if not any(texts[key].strip() for key in TEXTS):
        raise RecordError(f"The act has no text: {', '.join(TEXTS)} are empty.")
    split = read_string("split", raw.get("split", split))
    return texts | {"id": celex, "url": act["uri"], "concepts": _concepts("concepts", act["concepts"]), "split": split}


def _check_keys(act: Mapping[str, Any]) -> None:
    if missing := [key for key, value in act.items() if value is ...]:
        alternative = f" (or {_RENAMED[missing[0]]})" if missing[0] in _RENAMED else ""
        raise RecordError(f"The act has no key {missing[0]}{alternative}. Required keys are: {', '.join(act)}.")


def _concepts(key: str, value: object) -> list[str]:
    """Return the concept ids unchanged.

    Raise RecordError for repeated ids and for spaces around an id, which a corpus would silently remove.
    """
    if not isinstance(value, list):
        raise RecordError(f"{key} is {kind_of(value)}. It must be a list of strings.")
    seen_concepts = set[str]()
    for concept in value:
        if not isinstance(concept, str):
            raise RecordError(f'{key} contains {kind_of(concept)}. Each value must be a string, such as "1402".')
        if not concept or concept != concept.strip():
            raise RecordError(
                f"{key} contains {concept[:40]!r}, which is empty or has spaces around it. Write only the id."
            )
        if concept in seen_concepts:
            raise RecordError(f"{key} contains {concept[:40]!r} twice. Remove one of them.")
        seen_concepts.add(concept)
    return value


def read_multilingual_acts(path: Path, longest: int, progress: Progress) -> Iterator[Row]:
    """Yield (number, values by column) or (number, Fault) for each language version of each act.

    The language versions are numbered consecutively.

    Raise CorpusError if the file is damaged.
    """
    number = 0
    for line_number, line in values_of(path, longest, progress):
        if not isinstance(line, Fault) and line.isspace():
            continue
        raw = line if isinstance(line, Fault) else object_of(line, _MULTI)
        records: Iterable[dict[str, Any] | Fault]
        try:
            records = [raw] if isinstance(raw, Fault) else list(_multilingual(raw, _split(path.name)))
        except RecordError as error:
            assert not isinstance(raw, Fault)
            records = [Fault(_with_name(raw.get("celex_id"), str(error)))]
        for record in records:
            number += 1
            yield number, Fault(f"Line {line_number:,}: {record.reason}") if isinstance(record, Fault) else record


def _multilingual(raw: Mapping[str, Any], split: str) -> Iterator[dict[str, Any] | Fault]:
    """Yield the COLUMNS_OF_MULTI for each language version of an act, or a Fault if the version's text is invalid.

    Raise RecordError if the act itself is invalid.
    """
    act = {key: raw.get(key, ...) for key in _MULTI}
    _check_keys(act)
    celex, texts, concepts = read_string("celex_id", act["celex_id"]), act["text"], act["eurovoc_concepts"]
    for key, value, key_kind in (("text", texts, "languages"), ("eurovoc_concepts", concepts, "levels")):
        if not isinstance(value, dict):
            raise RecordError(f"The {key} is {kind_of(value)}. It must be an object with {key_kind} as keys.")
    if missing := [level for level in LEVELS if level not in concepts]:
        raise RecordError(f"eurovoc_concepts has no {missing[0]}. Required keys are: {', '.join(LEVELS)}.")
    shared = {level: _concepts(level, concepts[level]) for level in LEVELS} | {
        "celex_id": celex,
        "split": read_string("split", raw.get("split", split)),
        "posted_at": read_time(act["publication_date"]),
    }
    translations = {code: text for code, text in texts.items() if text is not None}
    if not translations:
        raise RecordError("The act has no text in any language.")
    for code, text in translations.items():
        key = f"{celex}-{code}"
        try:
            if not read_string("text", text).strip():
                raise RecordError("The text is empty. Write null if there is no text.")
            yield shared | {"id": key, "language": read_language(code), "body": text}
        except RecordError as error:
            yield Fault(f"{key}: {error}")
