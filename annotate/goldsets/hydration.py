"""The texts of a published set of ids, which are downloaded anew from their source (hydrated)."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from annotate.goldsets.gold_set import read_gold_set
from annotate.goldsets.set_folder import GoldSetError
from corpora.core.records import FIELDS, RecordError, read_id
from corpora.core.values import is_missing, is_removed
from corpora.sources.compression import check_file, format_of
from corpora.sources.readers import Columns, Row, read_rows
from corpora.sources.text import Fault
from corpora.storage.intake import text_lines

IDS, POSTS, VANISHED = FILES = ("ids.txt", "posts.jsonl", "vanished.txt")


@dataclass
class Hydrated:
    """The result of joining texts with a set.

    posts: number of posts in the set, by label.
    found: number of these posts that have a text, by label.
    outside: number of rows that belong to no post of the set, or to one that already has a text.
    faulty: number of invalid rows.
    first_fault: the first of them.
    """

    posts: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    outside: int = 0
    faulty: int = 0
    first_fault: str = ""


def hydrate(gold: Path, texts: Sequence[Path], out: Path, *, columns: dict[str, str], format: str | None) -> Hydrated:
    """Write the ids of a gold set to a folder, and with texts also its posts and the ids that have none.

    texts: files with the columns FIELDS, of which only id and text are required.

    Raise GoldSetError if the set cannot be read or the folder contains other files, and CorpusError if a file of texts
    cannot be read.
    """
    labels = {row.id: row.label for row in read_gold_set(gold).rows}
    for path in texts:
        check_file(path, format)
    if out.exists() and (other := next((path for path in sorted(out.iterdir()) if path.name not in FILES), None)):
        raise GoldSetError(f"{out} contains {other.name}, which hydrate did not write. Choose another folder.")
    hydrated, posts = Hydrated(Counter(labels.values())), dict[str, dict[str, Any]]()
    for path in texts:
        for row in _rows(path, format or format_of(path) or "", columns, hydrated):
            if row["id"] in labels and row["id"] not in posts:
                posts[row["id"]] = {"id": row["id"], "label": labels[row["id"]]} | row
            else:
                hydrated.outside += 1
    hydrated.found = Counter(post["label"] for post in posts.values())
    out.mkdir(parents=True, exist_ok=True)
    _write(out / IDS, labels)
    if texts:
        with (out / POSTS).open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(json.dumps(posts[key], ensure_ascii=False) + "\n" for key in labels if key in posts)
        _write(out / VANISHED, [key for key in labels if key not in posts])
    return hydrated


def _write(path: Path, ids: Sequence[str] | dict[str, str]) -> None:
    path.write_text("".join(f"{key}\n" for key in ids), encoding="utf-8", newline="\n")


def _rows(path: Path, format: str, columns: dict[str, str], hydrated: Hydrated) -> Iterator[dict[str, Any]]:
    """Yield the rows that have a text, without empty values. Rows of removed posts are skipped."""
    for line, raw in _read(path, format, columns):
        try:
            if isinstance(raw, Fault):
                raise RecordError(raw.reason)
            key, text = read_id(raw.get("id")), raw.get("text")
        except RecordError as error:
            hydrated.faulty += 1
            hydrated.first_fault = hydrated.first_fault or f"{path}, line {line:,}: {error}"
            continue
        if isinstance(text, str) and not is_missing(text) and not is_removed(text):
            yield {name: value for name, value in raw.items() if not is_missing(value)} | {"id": key}


def _read(path: Path, format: str, columns: dict[str, str]) -> Iterator[Row]:
    """Yield the rows of a file. Its lines may be arrays such as ["1", "text"], as twurl and jq print them."""
    _, first = next(text_lines(path, format), (0, "")) if format == "jsonl" else (0, "")
    if not first.lstrip().startswith('["'):
        wanted = Columns({name: columns.get(name, name) for name in FIELDS}, ("id", "text"), bare=True)
        yield from read_rows(path, format, wanted)
        return
    for number, line in text_lines(path, format):
        try:
            key, text = json.loads(line)
            yield number, {"id": key, "text": text}
        except (ValueError, TypeError):
            yield number, Fault("The line is not an array of an id and a text.")
