"""Parts of pyarrow whose import takes 0.1 s. Each is imported when it is first used."""

from importlib import import_module
from typing import Any


class _Part:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = self.__dict__[attribute] = getattr(import_module(self._name), attribute)
        return value


pc, pq = _Part("pyarrow.compute"), _Part("pyarrow.parquet")
