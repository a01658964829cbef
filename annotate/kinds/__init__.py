"""The registry of the built-in kinds of questions. Each kind is defined by a module or a TOML file."""

from functools import lru_cache
from pathlib import Path

from annotate.kinds.files import MODULES, kind_of, read_kind
from annotate.kinds.kind import Answer, Kind
from annotate.kinds.panel_kind import with_panel

__all__ = ["IMPORTED", "IMPORTED_PAIRS", "KINDS", "MADE_ELSEWHERE", "Answer", "Kind", "kind_of", "panel_kind_of"]

_FILES = sorted(Path(__file__).parent.glob("*.toml"))
KINDS: dict[str, Kind] = {**MODULES, **{kind.slug: kind for kind in map(read_kind, _FILES)}}
# Kinds for judgments that were made outside Assay and are only imported.
IMPORTED, IMPORTED_PAIRS = KINDS["imported"], KINDS["imported_pairs"]
MADE_ELSEWHERE = (IMPORTED.slug, IMPORTED_PAIRS.slug)


@lru_cache(maxsize=256)
def panel_kind_of(slug: str, text: str) -> Kind:
    """Return the kind of a task with a panel. text: the text of the kind's file, "" for a built-in kind"""
    return with_panel(kind_of(slug, text) if text else KINDS[slug])
