"""An act of the EU as EURLEX57K publishes it (Chalkidis et al. 2019), and as one record of a corpus.

A record has each part of an act as one text. The articles of `main_body`, a list, are parted in it by an empty line,
and come out as they went in. Files are read in corpora/eurlex.py.
"""

from collections.abc import Iterable, Mapping
from typing import Any

# The published keys of an act, in their order.
KEYS = ("celex_id", "uri", "type", "title", "header", "recitals", "main_body", "attachments", "concepts")
# Of which the published reader (lmtc-eurlex57k, json_loader.py) makes the text of an act.
TEXTS = ("header", "recitals", "main_body", "attachments")
# 99.4% of the acts of EURLEX57K have no more concepts, and systems are measured on no more.
MOST_CONCEPTS = 10

_BETWEEN = "\n\n"
# Stands for nothing in a line that has nothing else, so that no line of an article is empty; looks like nothing too.
_NOTHING = "\u00a0"


def joined(articles: Iterable[str]) -> str:
    """The articles as one text, an empty line between each two; articles_of gives them back."""
    return _BETWEEN.join("\n".join(map(_kept, article.split("\n"))) for article in articles)


def articles_of(text: str) -> list[str]:
    """The articles of a text that `joined` made."""
    return ["\n".join(map(_released, part.split("\n"))) for part in text.split(_BETWEEN)] if text else []


def _kept(line: str) -> str:
    return line if line.strip(_NOTHING) else line + _NOTHING


def _released(line: str) -> str:
    return line if line.strip(_NOTHING) else line[:-1]


def published(row: Mapping[str, Any]) -> dict[str, Any]:
    """The act as EURLEX57K has it, by KEYS; row: id, url, the fields and the declared labels of a record."""
    elsewhere = {"celex_id": "id", "uri": "url", "concepts": "declared"}
    act = {key: row[elsewhere.get(key, key)] for key in KEYS}
    return act | {"main_body": articles_of(act["main_body"])}
