"""The exception for an invalid answer in modules that do not depend on Django.

Its message is in English. kinds/interface_language.py translates it.
"""

from typing import Any


class Wrong(ValueError):
    """An answer is invalid. `str()` returns the message in English.

    sentence: message with placeholders such as %(label)s, as in the translation catalogs.
    several: plural form of the message, used unless the value `number` is 1.
    values: values for the placeholders.
    """

    def __init__(self, sentence: str, several: str = "", **values: Any) -> None:
        super().__init__(sentence, several, values)
        self.sentence, self.several, self.values = sentence, several, values

    def __str__(self) -> str:
        is_one = not self.several or self.values["number"] == 1
        return (self.sentence if is_one else self.several) % self.values
