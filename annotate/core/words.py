"""Errors of modules without Django, in English; kinds/interface_language.py translates them."""

from typing import Any


class Wrong(ValueError):
    """What is wrong with an answer. str() is the sentence in English.

    sentence: with its gaps, as in %(label)s, by which it stands in the catalogs; several: the same where the value
    `number` is not one. values: what fills the gaps.
    """

    def __init__(self, sentence: str, several: str = "", **values: Any) -> None:
        super().__init__(sentence, several, values)
        self.sentence, self.several, self.values = sentence, several, values

    def __str__(self) -> str:
        is_one = not self.several or self.values["number"] == 1
        return (self.sentence if is_one else self.several) % self.values
