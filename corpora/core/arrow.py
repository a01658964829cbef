"""Modules of pyarrow that take 0.1 s to import. Each is imported lazily, when one of its attributes is first used."""

from importlib import import_module
from typing import Any


class _LazyModule:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = self.__dict__[attribute] = getattr(import_module(self._name), attribute)
        return value


pc, pq = _LazyModule("pyarrow.compute"), _LazyModule("pyarrow.parquet")
