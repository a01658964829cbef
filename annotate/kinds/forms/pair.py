"""The answer form for comparisons of two systems.

The canonical text is the name of the preferred system, or `tie`. Annotators do not learn the names of the systems. They
see two sides and submit one of SIDES. `from_side` and `to_side` convert between sides and canonical texts.
"""

import re
from collections.abc import Iterable, Sequence

from annotate.kinds.forms.choice import Choice

FIRST, SECOND, TIE = SIDES = ("first", "second", "tie")
# Words that cannot be the name of a system, because they already have a meaning. Reports use `none` for units without a
# majority.
TAKEN = frozenset({*SIDES, "none"})
SYSTEM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}", re.ASCII)


def check_system(name: str) -> None:
    """Raise ValueError if a system cannot have this name."""
    if name in TAKEN:
        raise ValueError(f"{name} has a special meaning and cannot be the name of a system. Choose another name.")
    if not SYSTEM.fullmatch(name):
        raise ValueError(
            f"{name!r} is not a valid name for a system. Use up to 40 letters a to z, digits, dots, _ and -, starting "
            "with a letter or a digit."
        )


class Pair(Choice):
    slug = "pair"
    controls = ("sides",)
    imports = "pairs"
    about = ("The order of the two systems is random for each person. An answer is the preferred system, or tie.",)
    refuses_files = "shows two sets side by side, which a file cannot do. Decide on its pages or through the API."

    def from_side(self, sent: str, first: str, second: str) -> str:
        """Return the canonical text of a submitted side; "" if nothing was submitted.

        first, second: names of the systems that the annotator saw on the first and on the second side

        Raise ValueError if the submitted text is not a side. The name of a system is also rejected, because accepting
        it would reveal which system is which.
        """
        if not sent:
            return ""
        self.check(sent, SIDES)
        return {FIRST: first, SECOND: second, TIE: TIE}[sent]

    def to_side(self, text: str, first: str) -> str:
        """Return the side that a canonical text means; "" if there is no answer.

        first: name of the system that the annotator saw on the first side
        """
        return text if text in ("", TIE) else FIRST if text == first else SECOND

    def sent(self, labels: Sequence[str], answers: Iterable[str]) -> list[str]:
        """Return the sides that people can submit, so that they do not learn the names of the systems."""
        return list(answers)

    def filters(self, labels: Sequence[str]) -> Sequence[str]:
        return ()
