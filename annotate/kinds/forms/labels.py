"""The answer form for a set of labels, such as concepts of a thesaurus.

The canonical text consists of the labels' ids, sorted as text and separated by single spaces. Ids are case-sensitive
and contain no white space. An answer has at least one label, because the empty text means that there is no answer.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from annotate.core.aggregation.answer_table import Floats, needed
from annotate.core.agreement import coefficients
from annotate.core.estimation.differences import Difference
from annotate.core.estimation.resampling import LEAST_UNITS
from annotate.core.measures import ranked_labels
from annotate.core.measures.figure_rows import NO_UNITS, Row, add_holm_p_values, difference_row, row
from annotate.core.measures.ranked_labels import Answered, Judged, Share
from annotate.core.refusals import Wrong
from annotate.kinds.forms.form import Form

RIGHT_FROM = 0.5  # minimum F1 of a correct answer
ALL, PLAIN, WIDENED = "all", "plain", "with_ancestors"
# We only test differences between systems for these measures, at this K, as in Chalkidis et al. 2019.
TESTED, AT = ("RP", "nDCG"), 5


def majority(answers: Sequence[str], order: Sequence[str] = (), people: int = 0) -> str | None:
    """Return the labels that more than half of the annotators chose; None if there are none.

    order: not used
    people: number of annotators originally asked. The threshold is half of this number, even if more annotators were
        asked later because no label had a majority. If `people` is 0, the threshold is half the number of answers.
    """
    least = needed(people or len(answers))
    return _canonical(label for label, votes in support(answers).items() if votes >= least) or None


def support(answers: Iterable[str]) -> Counter[str]:
    """Return the number of answers that contain each label."""
    return Counter(label for text in answers for label in text.split())


def _sets(values: Iterable[str]) -> list[set[str]]:
    return [set(text.split()) for text in values]


def _canonical(ids: Iterable[str]) -> str:
    return " ".join(sorted(ids))


def _first_duplicate(ids: Sequence[str]) -> str | None:
    return next((label for label, number in Counter(ids).items() if number > 1), None)


@dataclass(frozen=True)
class Measures:
    """Measures that compare a system's labels of documents with the gold labels.

    groups: documents with gold labels and the system's ranking: for ALL labels, and for each frequency bucket
    answers: gold and assigned labels for all documents: as they are (PLAIN), and with their ancestors (WIDENED)
    seed: seed of the bootstrap and the randomization tests
    """

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
            for measure, by_k in ranked_labels.means(judged, seed=self.seed).items():
                for k, estimate in enumerate(by_k, 1):
                    yield row(measure, {"labels": labels, "k": str(k)}, estimate, len(judged), note)
        for answers, answered in self.answers.items():
            micro = ranked_labels.micro(answered, seed=self.seed)
            for measure, counts in (
                ("precision", f"{micro.hits:,} of {micro.assigned:,}"),
                ("recall", f"{micro.hits:,} of {micro.gold:,}"),
                ("f1", ""),
            ):
                share = getattr(micro, measure)
                note = "; ".join(filter(None, (counts, _missing_reason(share, answered))))
                yield row(f"micro_{measure}", {"answers": answers}, _as_difference(share), len(answered), note)

    def compared(self, other: "Measures") -> list[Row]:
        """Return the differences from another system on the same documents, with Holm-corrected p-values."""
        rows = []
        for labels, documents in self.groups.items():
            if documents:
                other_documents = other.groups[labels]
                p_values = ranked_labels.p_values(documents, other_documents, AT, seed=f"{self.seed}:{labels}")
                for measure, by_k in ranked_labels.differences(documents, other_documents).items():
                    for k, difference in enumerate(by_k, 1):
                        p = p_values[measure] if k == AT and measure in TESTED else None
                        rows.append(
                            difference_row(measure, {"labels": labels, "k": str(k)}, difference, len(documents), "", p)
                        )
        for answers, answered in self.answers.items():
            other_answered = other.answers[answers]
            p = ranked_labels.micro_p_value(answered, other_answered, seed=f"{self.seed}:{answers}")
            for measure, share in ranked_labels.micro_differences(answered, other_answered, seed=self.seed).items():
                tested = p if measure == "f1" else None
                name, difference, note = f"micro_{measure}", _as_difference(share), _missing_reason(share, answered)
                rows.append(difference_row(name, {"answers": answers}, difference, len(answered), note, tested))
        return add_holm_p_values(rows)


def _as_difference(share: Share) -> Difference | None:
    if share.value is None:
        return None
    return Difference(share.value, -1.0 if share.low is None else share.low, 1.0 if share.high is None else share.high)


def _missing_reason(share: Share, answered: Sequence[Answered]) -> str:
    """Return why a share has no value or no interval; "" if it has both."""
    if share.value is None:
        return NO_UNITS
    if share.low is not None:
        return ""
    return (
        f"fewer than {LEAST_UNITS} documents" if len(answered) < LEAST_UNITS else "too little variation for an interval"
    )


class Labels(Form):
    slug = "labels"
    several = True
    fits_tools = True
    aggregations = {"majority": majority}
    Measures = Measures

    def read(self, sent: Sequence[str]) -> str:
        """Return the canonical text of submitted ids. A submitted value can contain several ids.

        Raise ValueError if an id is repeated.
        """
        ids = [label for text in sent for label in text.split()]
        if duplicate := _first_duplicate(ids):
            raise Wrong("%(label)s was sent twice. Send each label once.", label=duplicate)
        return _canonical(ids)

    def check(self, text: str, codes: Collection[str], least: int = 1, most: int | None = None) -> None:
        """Raise ValueError if a canonical text is not a valid answer.

        codes: valid labels
        least: minimum number of labels in an answer
        most: maximum number of labels in an answer; None for no limit
        """
        ids = text.split()
        if duplicate := _first_duplicate(ids):
            raise Wrong("%(label)s occurs twice. Name each label once.", label=duplicate)
        if unknown := [label for label in ids if label not in codes]:
            sentence = "%(label)s is not one of the %(number)s valid labels. Look it up or remove it."
            raise Wrong(sentence, label=repr(unknown[0]), number=f"{len(codes):,}")
        if text != _canonical(ids):
            raise Wrong(
                "%(text)s is not sorted or not separated by single spaces. Write %(sorted)s.",
                text=repr(text),
                sorted=repr(_canonical(ids)),
            )
        if len(ids) < least:
            raise Wrong(
                "%(number)s label was chosen, but at least %(least)s are required. Add the missing labels.",
                "%(number)s labels were chosen, but at least %(least)s are required. Add the missing labels.",
                number=len(ids),
                least=least,
            )
        if most is not None and len(ids) > most:
            raise Wrong(
                "%(number)s label was chosen, but at most %(most)s are allowed. Remove the least suitable labels.",
                "%(number)s labels were chosen, but at most %(most)s are allowed. Remove the least suitable labels.",
                number=len(ids),
                most=most,
            )

    def agrees(self, answer: str, correct: str, right_from: float = RIGHT_FROM) -> bool:
        """Return whether an answer is similar enough to the known answer to count as correct.

        right_from: minimum F1 with the known answer
        """
        return bool(answer and correct) and coefficients.f1(set(answer.split()), set(correct.split())) >= right_from

    def facets(self, text: str) -> tuple[str, ...]:
        return tuple(text.split())

    def values(self, codes: Sequence[str], texts: Iterable[str]) -> list[str]:
        """Return only the sets of labels that occur in the answers, because there are too many possible sets."""
        return sorted(set(texts))

    def distances(self, values: Sequence[str]) -> dict[str, coefficients.Distance]:
        sets = _sets(values)
        return super().distances(values) | {"jaccard": coefficients.jaccard(sets), "masi": coefficients.masi(sets)}

    def unlike(self, values: Sequence[str]) -> Floats:
        """Return 1 - F1 for each pair of sets (K, K)."""
        return coefficients.unlike(_sets(values))

    def filters(self, labels: Sequence[str]) -> Sequence[str]:
        return ()
