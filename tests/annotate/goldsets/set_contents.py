"""What the files of a set say."""

import json
from datetime import datetime

import pyarrow.parquet as pq
import yaml


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def json_lines(path):
    """Of a file that is not written where it would be empty: none."""
    if not path.exists() and path.name.startswith("left_out"):
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def jsonlike(value):
    """A value that came out of Parquet as it stands in JSON."""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, dict):
        return {key: jsonlike(of) for key, of in value.items()}
    return [jsonlike(of) for of in value] if isinstance(value, list) else value


def everything_in(folder):
    """All that the files say, Parquet unpacked, as one text."""
    # Compressed bytes say nothing, and hold any three letters by chance.
    plain = (content for name, content in files(folder).items() if not name.endswith(".parquet"))
    told = [content.decode("utf-8", "replace") for content in plain]
    for path in folder.glob("*.parquet"):
        told.append(json.dumps(jsonlike(pq.read_table(path).to_pylist()), ensure_ascii=False))
        told.append(str(pq.read_schema(path)))
    return "\n".join(told)


def card_of(folder):
    _, header, text = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(header), text
