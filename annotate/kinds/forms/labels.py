"""Several labels out of many, such as the concepts of a thesaurus.

Their canonical text is their ids, sorted as text and separated by one space. An id has no white space, and ids that
differ by case are different ones. The empty text is no answer, so no answer is without labels. Besides what every form
has, whoever asks can say how many labels an answer has and from which F1 on it is right, and see how many people chose
each.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from annotate.core.aggregation.answer_table import Floats, needed
from annotate.core.agreement import coefficients, pair_intervals
from annotate.core.estimation.comparisons import Difference
from annotate.core.estimation.resampling import LEAST_UNITS
from annotate.core.measures import ranked_labels
from annotate.core.measures.figure_rows import NO_UNITS, Row, difference_row, holm_corrected, row
from annotate.core.measures.ranked_labels import Answered, Judged, Share
from annotate.core.words import Wrong
from annotate.kinds.forms.form import Form

RIGHT_FROM = 0.5  # the F1 from which on an answer counts as right
ALL, PLAIN, WIDENED = "all", "plain", "with_ancestors"
# The measures in which two systems are tested, and at which K: the figures that Chalkidis et al. 2019 compare.
TESTED, AT = ("RP", "nDCG"), 5


def majority(answers: Sequence[str], order: Sequence[str] = (), asked: int = 0) -> str | None:
    """The labels that more than half of the people asked chose, or None where no label has so many.

    answers, asked: as in answer_table.py. If others were asked because no label had so many, as many still
    suffice. `order` plays no part.
    """
    least = needed(asked or len(answers))
    return _text(label for label, votes in support(answers).items() if votes >= least) or None


def support(answers: Iterable[str]) -> Counter[str]:
    """How many of the answers have each label, of those that any has."""
    return Counter(label for text in answers for label in text.split())


def _sets(values: Iterable[str]) -> list[set[str]]:
    return [set(text.split()) for text in values]


def _text(ids: Iterable[str]) -> str:
    return " ".join(sorted(ids))


def _twice(ids: Sequence[str]) -> str | None:
    return next((label for label, number in Counter(ids).items() if number > 1), None)


@dataclass(frozen=True)
class Measures:
    """What a system's labels of documents are worth. groups: ALL or a bucket of labels -> the documents that have gold
    labels of it, with their rankings. answers: PLAIN, WIDENED -> what is taken for the answers to all documents. seed:
    of the bootstrap and of randomization tests."""

    groups: Mapping[str, Sequence[Judged]]
    answers: Mapping[str, Sequence[Answered]]
    seed: str

    head = (
        *({"measure": measure, "of": {"labels": ALL, "k": str(AT)}} for measure in TESTED),
        {"measure": "micro_f1", "of": {"answers": PLAIN}},
    )

    def rows(self) -> Iterator[Row]:
        for labels, judged in self.groups.items():
            note = "" if judged else "no document has such a label"
            for measure, of_each in ranked_labels.means(judged, seed=self.seed).items():
                for k, found in enumerate(of_each, 1):
                    yield row(measure, {"labels": labels, "k": str(k)}, found, len(judged), note)
        for answers, answered in self.answers.items():
            micro = ranked_labels.micro(answered, seed=self.seed)
            for measure, counts in (
                ("precision", f"{micro.hits:,} of {micro.said:,}"),
                ("recall", f"{micro.hits:,} of {micro.gold:,}"),
                ("f1", ""),
            ):
                share = getattr(micro, measure)
                note = "; ".join(filter(None, (counts, _why_none(share, answered))))
                yield row(f"micro_{measure}", {"answers": answers}, _as_difference(share), len(answered), note)

    def compared(self, other: "Measures") -> list[Row]:
        """How far this system is apart from another one, on the same documents."""
        rows = []
        for labels, ones in self.groups.items():
            if ones:
                others = other.groups[labels]
                p_values = ranked_labels.p_values(ones, others, AT, seed=f"{self.seed}:{labels}")
                for measure, of_each in ranked_labels.differences(ones, others).items():
                    for k, found in enumerate(of_each, 1):
                        p = p_values[measure] if k == AT and measure in TESTED else None
                        rows.append(difference_row(measure, {"labels": labels, "k": str(k)}, found, len(ones), "", p))
        for answers, given in self.answers.items():
            theirs = other.answers[answers]
            p = ranked_labels.micro_p_value(given, theirs, seed=f"{self.seed}:{answers}")
            for measure, share in ranked_labels.micro_differences(given, theirs, seed=self.seed).items():
                tested = p if measure == "f1" else None
                name, found, note = f"micro_{measure}", _as_difference(share), _why_none(share, given)
                rows.append(difference_row(name, {"answers": answers}, found, len(given), note, tested))
        return holm_corrected(rows)


def _as_difference(found: Share) -> Difference | None:
    if found.value is None:
        return None
    return Difference(found.value, -1.0 if found.low is None else found.low, 1.0 if found.high is None else found.high)


def _why_none(found: Share, answered: Sequence[Answered]) -> str:
    """Why a figure of answers has no value or no interval."""
    if found.value is None:
        return NO_UNITS
    if found.low is not None:
        return ""
    return (
        f"fewer than {LEAST_UNITS} documents" if len(answered) < LEAST_UNITS else "too little variation for an interval"
    )


class Labels(Form):
    slug = "labels"
    several = True
    aggregations = {"majority": majority}
    Measures = Measures

    def read(self, sent: Sequence[str]) -> str:
        """The ids that were sent, one or several in a text. ValueError if one was sent twice."""
        ids = [label for text in sent for label in text.split()]
        if twice := _twice(ids):
            raise Wrong("%(label)s was sent twice, but a label is chosen or not. Send it once.", label=twice)
        return _text(ids)

    def check(self, text: str, codes: Collection[str], least: int = 1, most: int | None = None) -> None:
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

    def name(self, text: str, called: Callable[[str], str]) -> str:
        """Names separated by semicolons, since names of concepts have commas."""
        return "; ".join(called(label) for label in text.split())

    def agrees(self, said: str, known: str, right_from: float = RIGHT_FROM) -> bool:
        """right_from: the least F1 of an answer that is right."""
        return bool(said and known) and coefficients.f1(set(said.split()), set(known.split())) >= right_from

    def facets(self, text: str) -> tuple[str, ...]:
        return tuple(text.split())

    def values(self, codes: Sequence[str], said: Iterable[str]) -> list[str]:
        """Only sets that were given: of all that could be, there are too many."""
        return sorted(set(said))

    def distances(self, values: Sequence[str]) -> dict[str, pair_intervals.Distance]:
        sets = _sets(values)
        return super().distances(values) | {"jaccard": coefficients.jaccard(sets), "masi": coefficients.masi(sets)}

    def unlike(self, values: Sequence[str]) -> Floats:
        """1 - F1."""
        return coefficients.unlike(_sets(values))

    def filters(self, labels: Sequence[str]) -> Sequence[str]:
        return ()
