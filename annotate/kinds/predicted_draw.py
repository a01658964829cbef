"""The draw of documents that people are to label for balanced sets, by what a predictor says of them.

Drawn are as many of each class as the sets need if the predictor is right in all of them; what follows in the order of
the lots is drawn where it was not (controls/replenishment.py). Which set a document is in is known once people have
labelled it (goldsets/partitions.py).
"""

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import product
from typing import Any

from annotate.core.draws.balanced_sets import BalanceError, Sizes, check_enough, one_of_each
from annotate.core.draws.hash_order import by_seed, drawn
from annotate.core.draws.splits import DEV, TEST, TRAIN
from annotate.kinds.balanced_draw import check_once, check_shares, frame_of
from corpora.core import CorpusError
from corpora.core.languages import UND
from corpora.draws.samples import Sample, sample_chosen
from corpora.models import Corpus
from corpora.predictions.predictor_labels import find_predictor, predicted_labels
from corpora.storage.inventory import declared_records

# What a draw's parameters call the sizes of the sets (test, dev, train), how many documents of each class they need in
# all, how many the predictor finds (class -> documents), and all that it finds in the order of their lots (class ->
# ids), which is not kept with the draw.
SIZES, NEEDED, FRAME, ORDER = "sizes", "needed", "frame", "order"


def sample_predicted(
    corpus: Corpus,
    languages: Collection[str] | None,
    *,
    seed: str,
    fields: Sequence[str],
    classes: Sequence[str],
    predictor: str,
    test: int = 0,
    dev: int = 0,
    train: Sequence[int] = (),
    short: str = "refuse",
    leave_out: Collection[str] = frozenset(),
    **others: Any,
) -> list[Sample]:
    """One sample for each language, or CorpusError. It only reads files.

    predictor: whose labels are the classes. short: `fill` where a class may stay short in any set. others: options that
    it cannot have, such as apart. The further arguments are those of balanced_draw.sample_balanced.
    """
    if others:
        raise CorpusError(
            "Which set a document is in is known once people have labelled it; leave --from-indices, `apart` "
            "and the joint sets out, or --predictor."
        )
    check_once(classes)
    if UND in classes:
        raise CorpusError(
            f"{UND} says that a classifier names no class, so it cannot be one; leave it out of --labels."
        )
    sizes = Sizes(test, dev, tuple(train))
    check_shares(sizes, classes)
    found = find_predictor(corpus.name, predictor)
    if found.voted:
        raise CorpusError(f"{found} tells languages and not classes; import what a classifier says of the documents.")
    ids = [row["id"] for row in declared_records(corpus.name, languages, ())]
    frame = frame_of(corpus.name, languages, fields, classes, (), leave_out, predicted_labels(corpus.name, found, ids))
    merged = one_of_each(frame.documents, seed=seed)
    there = Counter((document.language, document.label) for document in merged.documents)
    by_language = sorted({*(languages or ()), *(language for language, _ in there)})
    try:
        check_enough(there, by_language, classes, sizes, (TEST, DEV, TRAIN) if short == "fill" else ())
    except BalanceError as error:
        raise CorpusError(f"{error} These are numbers of what {found} says.") from error
    needed = sum(sizes.apart().values()) // len(classes)
    orders: dict[str, dict[str, list[str]]] = {language: {} for language in by_language}
    for cell in product(by_language, classes):
        of_cell = [document.id for document in merged.documents if (document.language, document.label) == cell]
        orders[cell[0]][cell[1]] = drawn(of_cell, len(of_cell), lots=by_seed(seed), purpose="draw")
    parameters = {
        language: {
            "classes": list(classes),
            "apart": [],
            "no_class": frame.none[language],
            "several": frame.several[language],
            "equal": merged.equal[language],
            "differing": merged.differing[language],
            "published": False,
            "faults": [],
            SIZES: list(sizes),
            NEEDED: needed,
            FRAME: {label: len(order) for label, order in of_class.items()},
            ORDER: of_class,
        }
        for language, of_class in orders.items()
    }
    first = {
        language: [key for order in of_class.values() for key in order[:needed]]
        for language, of_class in orders.items()
    }
    frames = Counter(document.language for document in merged.documents)
    return sample_chosen(
        corpus, "balanced", first, seed=seed, frames=frames, parameters=parameters, predictor=str(found)
    )
