"""Readers for the files of a gold set."""

import json
from datetime import datetime

import pyarrow.parquet as pq
import yaml


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def json_lines(path):
    """Return the objects in a file of JSON lines. A missing file counts as empty."""
    if not path.exists() and path.name.startswith("left_out"):
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def jsonlike(value):
    """Convert a value from Parquet to its form in JSON."""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, dict):
        return {key: jsonlike(of) for key, of in value.items()}
    return [jsonlike(of) for of in value] if isinstance(value, list) else value


def everything_in(folder):
    """Return the contents of all files as one text, with Parquet files decoded."""
    # Compressed bytes may contain any three letters by chance.
    plain = (content for name, content in files(folder).items() if not name.endswith(".parquet"))
    told = [content.decode("utf-8", "replace") for content in plain]
    for path in folder.glob("*.parquet"):
        told.append(json.dumps(jsonlike(pq.read_table(path).to_pylist()), ensure_ascii=False))
        told.append(str(pq.read_schema(path)))
    return "\n".join(told)


def card_of(folder):
    _, header, text = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(header), text
