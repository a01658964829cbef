"""Options that several deeds have."""

from collections.abc import Collection
from pathlib import Path

from annotate.core.option import Option
from corpora.readers import FORMATS

TASK = Option("task", required=True, argument=True, help="the task's name")
CORPUS = Option("corpus", required=True, argument=True, help="the corpus's name")
FILE = Option("file", Path, required=True, argument=True, shown="FILE")
FORMAT = Option("format", choices=tuple(FORMATS), help="where the name of a file does not tell it")
LANGUAGES = Option(
    "languages",
    Path,
    shown="FILE",
    help="a TOML file with a table [languages.CODE] for each language that is not known here: its name and, if you "
    "like, autonym, script and under; a kind's file does",
)
MAP = Option(
    "map",
    default=(),
    several=True,
    shown="LABEL=LABELS",
    help="what a label of a file means here: nb=no renames it, zh=zh-CN,zh-TW keeps it as a class that stands for "
    "several",
)


def column(fields: Collection[str], example: str = "", *, name: str = "column") -> Option:
    """Which column of a file is which field."""
    shown = f", for example {example}" if example else ""
    told = f"which column of a file is which field ({', '.join(fields)}){shown}"
    return Option(name, default=(), several=True, shown="FIELD=COLUMN", help=told)


def size_of(files: Collection[Path]) -> int:
    """Bytes in all, for a bar; files that are not there count nothing, and are refused where they are read."""
    return sum(file.stat().st_size for file in files if file.is_file())
