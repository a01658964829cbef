"""Published formats that a kind made of a file can be exported in, and what each asks of the kind.

goldsets/formats/ writes them; this module has what a kind's file is checked against.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """The contents of a line or file, by the names of the fields. code: the answer that means yes, if that matters;
    numbers: whether answers must be numbers, by which the rows of a group are ranked; several: whether an answer has
    several labels.
    """

    fields: tuple[str, ...]
    code: str = ""
    numbers: bool = False
    several: bool = False

    def misfit(self, fields: tuple[str, ...], codes: tuple[str, ...], several: bool) -> str:
        """What a kind with these fields and answers lacks for this layout; empty if it fits."""
        if several and not self.several:
            return "has one label a line, and here an answer has several"
        if self.several and not several:
            return 'has several labels a document, and so needs form = "labels"'
        if missing := [name for name in self.fields if name not in fields]:
            return f"needs the fields {', '.join(self.fields)}, and there is no {', '.join(missing)}"
        if self.code and self.code not in codes:
            return f"needs an answer with the code {self.code!r}, which marks the pairs that fit"
        if self.numbers and not all(code.isdecimal() for code in codes):
            return "needs answers whose codes are numbers, such as 4 for the best of five"
        return ""


# Format -> its layouts by name (XGLUE, Liang et al. 2020).
FORMATS: dict[str, Mapping[str, Layout]] = {
    "xglue": {
        "qadsm": Layout(("query", "title", "description")),
        "qam": Layout(("question", "passage"), code="1"),
        "wpr": Layout(("query", "title", "snippet"), numbers=True),
    },
    # MLDoc (Schwenk and Li 2018): lists of ids, and documents, a line each.
    "mldoc": {"documents": Layout(())},
    # EURLEX57K (Chalkidis et al. 2019): a file an act, and the descriptors of its concepts.
    "eurlex57k": {
        "acts": Layout(("title", "header", "recitals", "main_body", "attachments", "type"), several=True),
    },
}
