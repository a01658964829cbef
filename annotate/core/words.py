"""Errors of modules that do not depend on Django, in English. kinds/interface_language.py translates them."""

from typing import Any


class Wrong(ValueError):
    """An invalid answer. str() is the message in English.

    sentence: message with placeholders such as %(label)s, as in the translation catalogs.
    several: plural form, used if the value `number` is not 1.
    values: values for the placeholders.
    """

    def __init__(self, sentence: str, several: str = "", **values: Any) -> None:
        super().__init__(sentence, several, values)
        self.sentence, self.several, self.values = sentence, several, values

    def __str__(self) -> str:
        is_one = not self.several or self.values["number"] == 1
        return (self.sentence if is_one else self.several) % self.values
