"""Several labels out of many, such as the concepts of a thesaurus.

Their canonical text is their ids, sorted as text and separated by one space. An id has no white space, and ids that
differ by case are different ones. The empty text is no answer, so no answer is without labels. Besides what every form
has, whoever asks can say how many labels an answer has and from which F1 on it is right, and see how many people chose
each.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from annotate.core import agreement, label_sets, pairs
from annotate.core.aggregation import Aggregation, needed
from annotate.core.answers import Floats
from annotate.core.words import Wrong

RIGHT_FROM = 0.5  # the F1 from which on an answer counts as right


def read(sent: Sequence[str]) -> str:
    """The ids that were sent, one or several in a text. ValueError if one was sent twice."""
    ids = [label for text in sent for label in text.split()]
    if twice := _twice(ids):
        raise Wrong("%(label)s was sent twice, but a label is chosen or not. Send it once.", label=twice)
    return _text(ids)


def check(text: str, codes: Collection[str], least: int = 1, most: int | None = None) -> None:
    """codes: the labels that there are. least, most: how many may be given, None for any number."""
    ids = text.split()
    if twice := _twice(ids):
        raise Wrong("%(label)s is there twice, but a label is chosen or not. Name it once.", label=twice)
    if unknown := [label for label in ids if label not in codes]:
        said = "%(label)s is not one of the %(number)s labels here. Look it up, or leave it out."
        raise Wrong(said, label=repr(unknown[0]), number=f"{len(codes):,}")
    if text != _text(ids):
        raise Wrong(
            "%(text)s is not sorted or separated by one space; write %(sorted)s.",
            text=repr(text),
            sorted=repr(_text(ids)),
        )
    if len(ids) < least:
        raise Wrong(
            "%(number)s label was chosen, and at least %(least)s must be. Add what is missing.",
            "%(number)s labels were chosen, and at least %(least)s must be. Add what is missing.",
            number=len(ids),
            least=least,
        )
    if most is not None and len(ids) > most:
        raise Wrong(
            "%(number)s label was chosen, and at most %(most)s may be. Take the least fitting away.",
            "%(number)s labels were chosen, and at most %(most)s may be. Take the least fitting away.",
            number=len(ids),
            most=most,
        )


def name(text: str, called: Callable[[str], str]) -> str:
    """Names separated by semicolons, since names of concepts have commas."""
    return "; ".join(called(label) for label in text.split())


def majority(answers: Sequence[str], order: Sequence[str] = (), asked: int = 0) -> str | None:
    """The labels that more than half of the people asked chose, or None where no label has so many.

    answers, asked: as in core/aggregation.py. If others were asked because no label had so many, as many still
    suffice. `order` plays no part.
    """
    least = needed(asked or len(answers))
    return _text(label for label, votes in support(answers).items() if votes >= least) or None


SEVERAL = True
SIDED = False
AGGREGATIONS: Mapping[str, Aggregation] = {"majority": majority}


def support(answers: Iterable[str]) -> Counter[str]:
    """How many of the answers have each label, of those that any has."""
    return Counter(label for text in answers for label in facets(text))


def agrees(said: str, known: str, right_from: float = RIGHT_FROM) -> bool:
    """right_from: the least F1 of an answer that is right."""
    return bool(said and known) and label_sets.f1(set(facets(said)), set(facets(known))) >= right_from


def facets(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def values(codes: Sequence[str], said: Iterable[str]) -> list[str]:
    """Only sets that were given: of all that could be, there are too many."""
    return sorted(set(said))


def distances(values: Sequence[str]) -> dict[str, pairs.Distance]:
    sets = _sets(values)
    return {
        "nominal": agreement.nominal(len(values)),
        "jaccard": label_sets.jaccard(sets),
        "masi": label_sets.masi(sets),
    }


def unlike(values: Sequence[str]) -> Floats:
    """1 - F1."""
    return label_sets.unlike(_sets(values))


def _sets(values: Iterable[str]) -> list[set[str]]:
    return [set(facets(text)) for text in values]


def _text(ids: Iterable[str]) -> str:
    return " ".join(sorted(ids))


def _twice(ids: Sequence[str]) -> str | None:
    return next((label for label, number in Counter(ids).items() if number > 1), None)
