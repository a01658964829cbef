"""One prediction: which label a classifier gives a post, and what its labels mean here. Reads no files.

A classifier may say `nb` where the label is `no`, or `zh` where people tell zh-CN from zh-TW. Such labels are
declared: one target renames the label; several targets make it a coarse class that stands for them and is kept.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from itertools import chain

from corpora.core import CorpusError
from corpora.core.language_codes import FASTTEXT_PREFIX, code_of, hint
from corpora.core.languages import LANGUAGES, UND, finer
from corpora.core.records import RecordError
from corpora.core.values import is_missing, tidy, whole

FIELDS = ("id", "label", "score")
OBLIGATORY = ("id", "label")

Mapped = Mapping[str, tuple[str, ...]]  # the classifier's label -> the labels that it stands for
Prediction = tuple[str, str, float | None]  # id, label, score


class _Every(frozenset[str]):
    """Holds whatever it is asked for."""

    def __contains__(self, label: object) -> bool:
        return True


# The labels that are right of records, whose classes are no languages.
EVERY_LABEL: Collection[str] = _Every()


class UnknownLabel(RecordError):
    """A label that is neither a language's code, nor und, nor declared."""

    def __init__(self, label: str) -> None:
        coarse = LANGUAGES[label].labels if label in LANGUAGES else ()
        near = f" ({near})" if (near := hint(label)) else ""
        why = f"stands for {', '.join(coarse)}" if coarse else f"is not a language code known here{near}"
        super().__init__(f"The label {label!r} {why}.")
        self.label = label


def is_label(code: str) -> bool:
    """Whether a code is a label that people may give: that of one language, or und."""
    return code == UND or (code in LANGUAGES and not LANGUAGES[code].labels)


def read_map(pairs: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """What `zh=zh-CN,zh-TW` and the like declare. RecordError, a sentence, for what cannot be declared."""
    declared: dict[str, tuple[str, ...]] = {}
    for pair in pairs:
        label, _, written = pair.partition("=")
        label, targets = label.strip(), tuple(target.strip() for target in written.split(","))
        if not label or not all(targets):
            raise RecordError(f"--map {pair}: write LABEL=LABEL, or LABEL=LABEL,LABEL for a class of several.")
        if label in declared:
            raise RecordError(f"--map declares {label} twice; give everything that it stands for in one option.")
        if strange := [target for target in targets if not is_label(target)]:
            raise RecordError(f"--map {pair}: {strange[0]!r} is not a label known here, such as de, zh-CN or und.")
        if len(set(targets)) < len(targets):
            raise RecordError(f"--map {pair}: it names a label twice.")
        # A detector's pt may be declared as pt-BR,pt-PT if these were added under it.
        if len(targets) > 1 and is_label(label) and not set(targets) <= set(finer(label)):
            raise RecordError(
                f"--map {pair}: {label} is the label of one language, so a class of several cannot have it; rename the "
                "class in the file, for example to sh."
            )
        if len(targets) > 1 and UND in targets:
            raise RecordError(f"--map {pair}: a class stands for languages, and {UND} is not a language.")
        declared[label] = targets
    return declared


def classes(declared: Mapped) -> dict[str, tuple[str, ...]]:
    """The coarse classes among what is declared, in order of their names."""
    return {label: tuple(sorted(targets)) for label, targets in sorted(declared.items()) if len(targets) > 1}


def read_label(value: object, declared: Mapped, also: Collection[str] = ()) -> tuple[str, bool]:
    """The label of one source row as it counts here, renamed by --map or taken for the nearest that is known; and
    whether it was taken for that one. RecordError for the first rule that it breaks.

    also: labels that are right here although they are not known as languages; EVERY_LABEL for records, of which an
    empty label is a refusal, like UND.
    """
    of_records = also is EVERY_LABEL
    if (isinstance(value, float) and is_missing(value)) or (value is None and of_records):
        value = ""
    if not isinstance(value, str):
        raise RecordError("The label is missing." if value is None else "The label is not a string.")
    label = tidy(value)
    if not label and of_records:
        return UND, False
    instead = "class" if of_records else "language"
    if not label:
        raise RecordError(f"The label is empty; write {UND} if the classifier names no {instead}.")
    bare = label.removeprefix(FASTTEXT_PREFIX)
    way: str | None
    if of_records:
        way = whole(bare) if label in declared or not is_missing(label) else None
    else:
        # A code is looked up only where the label is not right as it stands.
        ways = chain((label, bare), map(code_of, (label,)))
        way = next((way for way in ways if way in declared or is_label(way) or way in also), None)
    if way is None and is_missing(label):
        raise RecordError(
            f"The label is {label}, which another program writes where there is none; write {UND} if the classifier "
            f"names no {instead}."
        )
    if way is None:
        raise UnknownLabel(bare[:40])
    if way in declared:
        targets = declared[way]
        return targets[0] if len(targets) == 1 else way, False
    return way, not of_records and way != value.strip()


def read_score(value: object) -> float | None:
    if value is None or value == "":
        return None
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError
        score = float(value)
    except (ValueError, OverflowError):
        score = math.nan
    if not math.isfinite(score):
        raise RecordError(f"The score {str(value)[:40]!r} is not a number.")
    return score


def folding(mappings: Iterable[Mapping[str, Iterable[str]]]) -> dict[str, str]:
    """Finer label -> the class that it becomes part of; labels without an entry stay as they are. So a predictor that
    says zh is right on zh-CN and on zh-TW.

    mappings: each predictor's coarse classes with the labels that they stand for. CorpusError if a label would belong
    to two classes.
    """
    labels_of: dict[str, set[str]] = {}
    for mapping in mappings:
        for coarse, labels in mapping.items():
            labels_of.setdefault(coarse, set()).update(labels)
    folded: dict[str, str] = {}
    for coarse in sorted(labels_of):
        for label in sorted(labels_of[coarse] - {coarse}):
            other = folded.setdefault(label, coarse)
            if other != coarse:
                raise CorpusError(
                    f"The label {label} is in two classes, {other} and {coarse}; declare it in one of them."
                )
    for coarse, holder in folded.items():
        if coarse in labels_of:
            raise CorpusError(f"{coarse} stands for several labels and is part of {holder}; declare one class of all.")
    return folded
