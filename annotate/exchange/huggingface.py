"""Data sets as on the Hugging Face Hub: folders of Parquet, Arrow, JSON or CSV files with a card or dataset_info.json.

Columns of the type `ClassLabel` are questions. If there are none, a column named `label` or `labels` is the question.
The annotators are unknown, so labels are imported as predictions by GOLD.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from annotate.exchange.items import FILE_NAME, GOLD, Answer, Item, Object, ProjectError, Tool
from corpora.core.arrow import pq
from corpora.sources.compression import format_of

CARD, INFOS = "README.md", ("dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json")
IDS = ("id", "idx", "guid", "uid")
LABELS = ("label", "labels")
FORMATS = ("parquet", "arrow", "jsonl", "csv", "tsv")
DATASET_KEY = "\0data set"  # the key that holds an object's split, and each question's label names
_SPLIT = re.compile(r"(?:^|[^a-z])(train|validation|valid|dev|test)(?:[^a-z]|$)")
_SHARD = "*-of-*.parquet"

Names = Mapping[str, list[str]]


def is_dataset(folder: Path) -> bool:
    card = _card(folder)
    is_described = "configs" in card or "dataset_info" in card
    return is_described or any((folder / name).exists() for name in INFOS) or any(folder.rglob(_SHARD))


def _card(folder: Path) -> dict[str, Any]:
    """Return the metadata at the top of the data set's card; empty if there is none."""
    path = folder / CARD
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n") if path.is_file() else []
    if "---" not in lines[1:] or lines[0] != "---":
        return {}
    try:
        content = yaml.safe_load("\n".join(lines[1 : lines.index("---", 1)]))
    except yaml.YAMLError as error:
        raise ProjectError(f"The metadata on top of {path} are not YAML. Correct or remove them.") from error
    return content if isinstance(content, dict) else {}


def files_of(folder: Path) -> Iterator[tuple[Path, Callable[[Object], Object]]]:
    """Yield (path, decoder) for each data file of a data set. The decoder converts the file's rows.

    Raise ProjectError if the data set has several configs, or no data file.
    """
    card = _card(folder)
    configs = [config for config in card.get("configs") or () if isinstance(config, dict)]
    if len(configs) > 1:
        names = ", ".join(str(config.get("config_name")) for config in configs)
        raise ProjectError(f"{folder} has the configs {names}. Name the files of one of them in place of the folder.")
    listed_files = dict(_config_files(folder, configs[0].get("data_files"))) if configs else {}
    files = listed_files or {file: _split_of(file.relative_to(folder)) for file in _find_files(folder)}
    if not files:
        raise ProjectError(f"{folder} contains no Parquet, Arrow, JSON or CSV file. Name the files of the data set.")
    card_names = dict(_names_in(card.get("dataset_info")))
    for file, split in files.items():
        info = file.parent / INFOS[0]
        info_names = _names_in(json.loads(info.read_bytes())) if info.is_file() else ()
        yield file, decoder(file, split, {**card_names, **dict(info_names)})


def _config_files(folder: Path, files: Any) -> Iterator[tuple[Path, str]]:
    """Yield (path, split) of the files that a config lists."""
    for entry in files if isinstance(files, list) else [files]:
        split, paths = (entry.get("split", ""), entry.get("path")) if isinstance(entry, dict) else ("", entry)
        for pattern in paths if isinstance(paths, list) else [paths]:
            matches = sorted(folder.glob(pattern)) if isinstance(pattern, str) and ".." not in pattern else []
            yield from ((file, str(split)) for file in matches if file.is_file())


def _find_files(folder: Path) -> list[Path]:
    """Return the data files in a folder, all in one format. If there are several formats, the first in FORMATS wins."""
    files: dict[str | None, list[Path]] = {}
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.name not in INFOS and not file.name.startswith(("cache-", ".")):
            files.setdefault(format_of(file), []).append(file)
    return next((files[format] for format in FORMATS if format in files), [])


def _split_of(path: Path) -> str:
    match = _SPLIT.search(path.as_posix().lower())
    return match[1] if match else ""


def _names_in(info: Any) -> Iterator[tuple[str, list[str]]]:
    """Yield (column, label names) for each column with labels in a dataset_info."""
    described = info[0] if isinstance(info, list) and info else info
    features = described.get("features") if isinstance(described, dict) else None
    if isinstance(features, list):
        features = {str(feature.get("name")): feature for feature in features if isinstance(feature, dict)}
    for column, feature in (features or {}).items():
        if names := _class_names(feature):
            yield column, names


def _class_names(feature: Any) -> list[str]:
    """Return the label names of a `ClassLabel` or a sequence of `ClassLabel`; empty for other features."""
    if isinstance(feature, list):
        return _class_names(feature[0]) if feature else []
    if not isinstance(feature, dict):
        return []
    names = feature.get("names")
    if isinstance(names, dict):
        return [str(names[key]) for key in sorted(names, key=int)]
    if isinstance(names, list):
        return list(map(str, names))
    inner = (feature.get(key) for key in ("class_label", "feature", "sequence", "list", "dtype"))
    return next(filter(None, map(_class_names, inner)), [])


def decoder(path: Path, split: str = "", card_names: Names | None = None) -> Callable[[Object], Object]:
    """Return a function that replaces a row's label ids by names, and marks the row as part of a data set.

    path: file of the row; a Parquet file can contain label names, which override card_names
    split: split of the row; "" if unknown
    card_names: label names by column, from the data set's metadata; None if the file is not in a data set's folder
    """
    names = {**(card_names or {}), **_names_in_parquet(path)}

    def decode(row: Object) -> Object:
        columns = {column: names[column] for column in names if column in row}
        columns = columns or {column: [] for column in LABELS if column in row and card_names is not None}
        if not columns:
            return row
        return (
            row
            | {column: _label_name(row[column], columns[column]) for column in columns}
            | {DATASET_KEY: (split, columns)}
        )

    return decode


def _names_in_parquet(path: Path) -> dict[str, list[str]]:
    if format_of(path) != "parquet":
        return {}
    try:
        written = (pq.read_schema(path).metadata or {}).get(b"huggingface", b"{}")
        return dict(_names_in(json.loads(written).get("info")))
    except (OSError, ValueError, pa.ArrowException):
        return {}  # reading the rows will report the damage


def _label_name(value: Any, names: list[str]) -> Any:
    """Return the name of a label, or of each label in a list. A missing label, stored as -1, has the name ""."""
    if isinstance(value, list):
        return [_label_name(label, names) for label in value]
    if value is None or not names or str(value) in names:
        return "" if value is None else str(value)
    number = int(value) if re.fullmatch(r"-?\d+", str(value)) else -1
    return names[number] if 0 <= number < len(names) else ""


def _items(objects: Iterable[Object], not_kept: Counter[str]) -> Iterator[Item]:
    rows = list(objects)
    key = next((name for name in IDS if len({row.get(name) for row in rows}) == len(rows)), "")
    numbers: Counter[str] = Counter()
    for row in rows:
        split, columns = row.pop(DATASET_KEY)
        numbers[split] += 1
        texts = {name: value for name, value in row.items() if name not in (*columns, *IDS, FILE_NAME)}
        number = f"{split}-{numbers[split]}" if split else str(numbers[split])
        item = Item(str(row[key]) if key else number, texts | ({"part": split} if split else {}))
        if len(columns) == 1:
            item.possible_labels = tuple(next(iter(columns.values())))
        for column in columns:
            value = row[column]
            if isinstance(value, list) and any(isinstance(text, list) for text in texts.values()):
                not_kept[f"labels of single words in {column!r}"] += 1
            elif labels := tuple(filter(None, value if isinstance(value, list) else [value])):
                item.predictions.append(Answer(GOLD, column, labels))
            else:
                not_kept[f"rows without a label in {column!r}"] += 1
        yield item


HUGGING_FACE = Tool("Hugging Face", lambda first: DATASET_KEY in first, _items)
