"""Which of two systems did better, or neither.

The canonical text of an answer is the name of the system that is preferred, or `tie`. People are told of no system:
what they see are two sides, of which the one stands first, and that is what they send. SIDES are the words for it;
`from_side` and `to_side` go from the one to the other, once it is known which system stood first for the person.
"""

import re
from collections.abc import Iterable, Sequence

from annotate.kinds.forms.choice import Choice

FIRST, SECOND, TIE = SIDES = ("first", "second", "tie")
# Names that say something else than a system: `none` is what numbers call units without a majority.
TAKEN = frozenset({*SIDES, "none"})
SYSTEM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}", re.ASCII)


def check_system(name: str) -> None:
    """ValueError, a sentence, if a system cannot be called so."""
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
        """The canonical text of what a person sent before whom the one system stood first and the other second; empty
        for nothing. ValueError, a sentence, if that is no side: whoever sends the name of a system learns nothing of
        it.
        """
        if not sent:
            return ""
        self.check(sent, SIDES)
        return {FIRST: first, SECOND: second, TIE: TIE}[sent]

    def to_side(self, text: str, first: str) -> str:
        """The same the other way round; the empty text, which is no answer, stays."""
        return text if text in ("", TIE) else FIRST if text == first else SECOND

    def sent(self, labels: Sequence[str], answers: Iterable[str]) -> list[str]:
        """Systems that people compare are not named."""
        return list(answers)

    def filters(self, labels: Sequence[str]) -> Sequence[str]:
        return ()
