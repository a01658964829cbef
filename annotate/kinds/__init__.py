"""The registry of the built-in kinds of questions. Each kind is defined by a module or a TOML file."""

from pathlib import Path

from annotate.kinds.files import MODULES, kind_of, read_kind
from annotate.kinds.kind import Answer, Kind

__all__ = ["IMPORTED", "IMPORTED_PAIRS", "KINDS", "MADE_ELSEWHERE", "Answer", "Kind", "kind_of"]

_FILES = sorted(Path(__file__).parent.glob("*.toml"))
KINDS: dict[str, Kind] = {**MODULES, **{kind.slug: kind for kind in map(read_kind, _FILES)}}
# Kinds for judgments that were made outside Assay and are only imported.
IMPORTED, IMPORTED_PAIRS = KINDS["imported"], KINDS["imported_pairs"]
MADE_ELSEWHERE = (IMPORTED.slug, IMPORTED_PAIRS.slug)
