"""The answer form for which of two systems did better, or a tie.

The canonical text is the name of the preferred system, or `tie`. Annotators do not see the names of systems. They see
two sides and submit one of SIDES; `from_side` and `to_side` convert between both, given the system that the annotator
saw first.
"""

import re
from collections.abc import Iterable, Sequence

from annotate.kinds.forms.choice import Choice

FIRST, SECOND, TIE = SIDES = ("first", "second", "tie")
# Names with another meaning; `none` counts units without a majority.
TAKEN = frozenset({*SIDES, "none"})
SYSTEM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}", re.ASCII)


def check_system(name: str) -> None:
    """Check the name of a system.

    ValueError: it is invalid
    """
    if name in TAKEN:
        raise ValueError(f"No system can be called {name}, which says something else here. Give it another name.")
    if not SYSTEM.fullmatch(name):
        raise ValueError(
            f"{name!r} cannot be the name of a system. Write up to 40 letters a to z, digits, dots, _ and -, beginning "
            "with a letter or a digit."
        )


class Pair(Choice):
    slug = "pair"
    controls = ("sides",)
    imports = "pairs"
    about = ("Which of two systems stands first is drawn for each person; stored is the one that they prefer, or tie.",)
    refuses_files = "asks about two sets side by side, which a file does not show; decide on its pages or by the API."

    def from_side(self, sent: str, first: str, second: str) -> str:
        """Return the canonical text of a submitted side, "" for none.

        The name of a system is rejected, because accepting it would reveal which system is which.

        first, second: the systems that the annotator saw first and second
        ValueError: the text is not a side
        """
        if not sent:
            return ""
        self.check(sent, SIDES)
        return {FIRST: first, SECOND: second, TIE: TIE}[sent]

    def to_side(self, text: str, first: str) -> str:
        """Return the side of a canonical text; "" stays ""."""
        return text if text in ("", TIE) else FIRST if text == first else SECOND

    def sent(self, labels: Sequence[str], answers: Iterable[str]) -> list[str]:
        """Return the sides, so that systems are not named."""
        return list(answers)

    def filters(self, labels: Sequence[str]) -> Sequence[str]:
        return ()
