"""What the options and the sentences of several actions have in common."""

from collections.abc import Collection
from pathlib import Path

from django.conf import settings

from annotate.core.option import Option, OptionError, flag, share, whole_number
from corpora.core.values import FREE_LICENCES
from corpora.sources.compression import FORMATS
from corpora.sources.rejects import MOST
from corpora.sources.text import MAX_LINE
from corpora.storage import layout

THE_FILE = "How the file is read"
LEAVING = "Where the texts come from, and whether they may leave"

TASK = Option("task", required=True, argument=True, help="the task's name")
CORPUS = Option("corpus", required=True, argument=True, help="the corpus's name")
FILE = Option("file", Path, required=True, argument=True, shown="FILE", help="the file to read")
FORMAT = Option(
    "format", choices=tuple(FORMATS), help="the format, if the name of a file does not tell it", group=THE_FILE
)
LANGUAGES = Option(
    "languages",
    Path,
    shown="FILE",
    help="a TOML file with a table [languages.CODE] for each language that is not known here: its name and, if you "
    "like, autonym, script and under; a kind's file does",
    group=THE_FILE,
)
LICENCE = Option("licence", required=True, help="the licence of the texts, for example CC-BY-4.0")
TEXT_MAY_LEAVE = Option(
    "text_may_leave",
    flag,
    help=f"exports may hold the text (the default under {', '.join(FREE_LICENCES)} of any version)",
    opposite=("text-stays", "exports hold ids only; any other licence needs one of these two at the first import"),
    group=LEAVING,
)
SOURCE = Option("source", default="", help="where the posts come from, for the data card", group=LEAVING)
LONGEST_LINE = Option(
    "longest_line",
    whole_number,
    MAX_LINE,
    least=1,
    shown="BYTES",
    help="longer lines are rejected",
    group=THE_FILE,
)
MAX_REJECTS = Option(
    "max_rejects",
    share,
    MOST,
    most=1,
    shown="SHARE",
    help="how many of a file's rows may be rejected, as in 1% or 0.01; with more, nothing of it is taken, and the exit "
    "status is 3",
)
MAP = Option(
    "map",
    default=(),
    several=True,
    shown="LABEL=LABELS",
    help="what a label of a file means here: nb=no renames it, zh=zh-CN,zh-TW keeps it as a class that stands for "
    "several",
    group=THE_FILE,
)


def column(fields: Collection[str], example: str = "", *, name: str = "column", group: str = THE_FILE) -> Option:
    """The option that says which column of a file is which field."""
    shown = f", for example {example}" if example else ""
    told = f"which column of a file is which field ({', '.join(fields)}){shown}"
    return Option(name, default=(), several=True, shown="FIELD=COLUMN", help=told, group=group)


def address(text: str) -> str:
    """The address of a site, with which links begin; OptionError if it is none."""
    if not text.startswith(("http://", "https://")):
        raise OptionError(f"{text!r} is not the address of a site; begin it with http:// or https://.")
    return text.rstrip("/")


def assumed() -> str:
    """What is to be said beside the address that commands print, where nobody has said it."""
    return " (assumed; set ASSAY_SITE if people reach the site at another)" if settings.SITE_ASSUMED else ""


def size_of(files: Collection[Path]) -> int:
    """Bytes in all, for a bar; missing files count nothing, and are refused when they are read."""
    return sum(map(layout.size_of, files))
