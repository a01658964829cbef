"""Which labels count as one class when a predictor or a gold set does not tell them apart.

A predictor that says zh is right on zh-CN and on zh-TW; if people were asked "Is this Chinese?", a predictor that
tells the two apart is right with either, on those posts and no others. This module alone decides which labels are
taken together.
"""

from collections.abc import Iterable, Mapping

from corpora.core.languages import finer as finer_labels


class ClassError(ValueError):
    """Classes that cannot be used together; the sentence names them."""


def folding(mappings: Iterable[Mapping[str, Iterable[str]]]) -> dict[str, str]:
    """Finer label -> the class that it becomes part of; labels without an entry stay as they are.

    mappings: each predictor's coarse classes with the labels that they stand for. ClassError if a label would belong
    to two classes.
    """
    classes: dict[str, set[str]] = {}
    for mapping in mappings:
        for coarse, finer in mapping.items():
            classes.setdefault(coarse, set()).update(finer)
    folded: dict[str, str] = {}
    for coarse in sorted(classes):
        for label in sorted(classes[coarse] - {coarse}):
            other = folded.setdefault(label, coarse)
            if other != coarse:
                raise ClassError(
                    f"The label {label} is in two classes, {other} and {coarse}; declare it in one of them."
                )
    for coarse, holder in folded.items():
        if coarse in classes:
            raise ClassError(f"{coarse} stands for several labels and is part of {holder}; declare one class of all.")
    return folded


def asked_together(codes: Iterable[str], folded: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Coarse code -> the labels, as folded, that are right on posts for which people used the code; empty without such
    codes.

    codes: the labels of the gold sets and the languages asked about in them. ClassError if a predictor's class has
    only some labels of a code, and other labels too.
    """
    found = {}
    for code in sorted(set(codes)):
        finer = set(finer_labels(code))
        if not finer:
            continue
        for label, holder in sorted(folded.items()):
            if label not in finer and holder != code and any(folded.get(other) == holder for other in finer):
                raise ClassError(
                    f"The class {holder} of a predictor has {label} besides labels of {code}, which people were asked "
                    f"about; declare {holder} without it, or leave out the gold set that asks about {code}."
                )
        found[code] = frozenset({folded.get(label, label) for label in finer} - {code})
    return found
