"""The registry of the built-in kinds of questions, which are modules or TOML files."""

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path

from annotate.kinds.files import MODULES, kind_of, read_kind
from annotate.kinds.kind import Answer, Kind
from annotate.kinds.panel_kind import with_panel

__all__ = ["IMPORTED", "IMPORTED_KINDS", "IMPORTED_PAIRS", "KINDS", "Answer", "Kind", "kind_of", "panel_kind_of"]

_FILES = {file.stem: file for file in sorted(Path(__file__).parent.glob("*.toml"))}


class _Kinds(Mapping[str, Kind]):
    """The kinds by name. A kind's file is read on first use, because most commands need few kinds."""

    def __getitem__(self, slug: str) -> Kind:
        return MODULES[slug] if slug in MODULES else _kind_in_file(slug)

    def __contains__(self, slug: object) -> bool:
        return slug in MODULES or slug in _FILES

    def __iter__(self) -> Iterator[str]:
        return iter([*MODULES, *_FILES])

    def __len__(self) -> int:
        return len(MODULES) + len(_FILES)


@cache
def _kind_in_file(slug: str) -> Kind:
    return read_kind(_FILES[slug])


KINDS: Mapping[str, Kind] = _Kinds()
# Kinds whose judgments were made outside Assay and are imported.
IMPORTED_KINDS = IMPORTED, IMPORTED_PAIRS = ("imported", "imported_pairs")


@lru_cache(maxsize=256)
def panel_kind_of(slug: str, text: str) -> Kind:
    """Return a kind for tasks that have a panel.

    text: text of the kind's file; "" for a built-in kind
    """
    return with_panel(kind_of(slug, text) if text else KINDS[slug])
