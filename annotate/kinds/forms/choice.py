"""One answer out of several. Its canonical text is its code."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from annotate.core import agreement, pairs
from annotate.core.aggregation import Aggregation, majority
from annotate.core.answers import Floats
from annotate.core.words import Wrong

SEVERAL = False
SIDED = False
AGGREGATIONS: Mapping[str, Aggregation] = {"majority": majority}


def read(sent: Sequence[str]) -> str:
    """The code that was sent, empty if none was. ValueError if several were sent."""
    given = [text for text in sent if text]
    if len(given) > 1:
        said = "Several answers were sent (%(answers)s), but only one can be given. Choose one."
        raise Wrong(said, answers=", ".join(given))
    return given[0] if given else ""


def check(text: str, codes: Collection[str]) -> None:
    if text not in codes:
        raise Wrong(
            "%(answer)s is not an answer here; it is one of %(answers)s.", answer=repr(text), answers=", ".join(codes)
        )


def name(text: str, called: Callable[[str], str]) -> str:
    return called(text)


def agrees(said: str, known: str) -> bool:
    return said == known


def facets(text: str) -> tuple[str, ...]:
    return (text,)


def values(codes: Sequence[str], said: Iterable[str]) -> list[str]:
    return list(codes)


def distances(values: Sequence[str]) -> dict[str, pairs.Distance]:
    return {"nominal": agreement.nominal(len(values))}


def unlike(values: Sequence[str]) -> Floats:
    return agreement.nominal(len(values))
