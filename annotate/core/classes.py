"""Which labels count as one class, where a predictor or a gold set does not tell them apart.

A predictor that says zh is right on zh-CN and on zh-TW; where people were asked "Is this Chinese?", a predictor that
tells the two apart is right with either. Here and nowhere else it is decided which labels are taken together.
"""

from collections.abc import Iterable, Mapping

from corpora.core.languages import LANGUAGES


class ClassError(ValueError):
    """Classes that cannot be used together; says which."""


def folding(mappings: Iterable[Mapping[str, Iterable[str]]], codes: Iterable[str]) -> dict[str, str]:
    """Finer label -> the class that it is taken into; labels that are not in it stay as they are.

    mappings: of each predictor, its coarse classes with the labels that they stand for. codes: the labels of the gold
    sets and the languages asked about in them, of which some may be coarse themselves. ClassError where a label would
    be of two classes.
    """
    classes: dict[str, set[str]] = {}
    for mapping in mappings:
        for coarse, finer in mapping.items():
            classes.setdefault(coarse, set()).update(finer)
    for code in codes:
        if code in LANGUAGES and LANGUAGES[code].labels:
            classes.setdefault(code, set()).update(LANGUAGES[code].labels)
    folded: dict[str, str] = {}
    for coarse in sorted(classes):
        for label in sorted(classes[coarse] - {coarse}):
            other = folded.setdefault(label, coarse)
            if other != coarse:
                raise ClassError(
                    f"The label {label} is of two classes, {other} and {coarse}; declare it in one of them."
                )
    for coarse, holder in folded.items():
        if coarse in classes:
            raise ClassError(f"{coarse} stands for several labels and is part of {holder}; declare one class of all.")
    return folded
