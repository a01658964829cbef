"""The balanced draw, in which every set has the same number of documents from each class.

Each language has its own sets. The classes are either labels that came with the documents, or a predictor's labels,
which annotators then check. Instead of drawing new sets, a task can use published lists of ids.
annotate/core/draws/balanced_sets.py holds the algorithm.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from annotate.core.draws import balanced_sets
from annotate.core.draws.balanced_sets import (
    BalanceError,
    Document,
    Merged,
    Sizes,
    balanced,
    check_enough,
    check_sizes,
    faults,
    one_of_each,
    place_of,
)
from annotate.core.draws.hash_order import by_seed, drawn
from annotate.core.draws.splits import DEV, TEST, TRAIN, equal_key
from corpora.core import CorpusError, listed
from corpora.core.languages import LANGUAGES, UND
from corpora.draws.samples import Sample, sample_chosen
from corpora.models import Corpus
from corpora.predictions.predictor_labels import find_predictor, predicted_labels
from corpora.storage.inventory import check_declared, declared_records

# Keys of a draw's parameters.
IDS = "ids"  # the ids in each set
CHANCES = "chances"  # the probability with which a document was drawn, by class; empty for published lists
JOINT = "joint"  # the ids that a language contributes to the joint sets, by set
# The following keys are used if a predictor's labels are the classes:
# - SIZES: sizes of test, dev and train
# - NEEDED: number of documents that the sets need from each class
# - FRAME: number of documents in the frame, by predicted class
# - ORDER: ids of these documents in random order, by predicted class; not stored with the draw
SIZES, NEEDED, FRAME, ORDER = "sizes", "needed", "frame", "order"
MANY = 20  # maximum number of labels that an error message lists
Sets = Mapping[str, Mapping[str, Sequence[str]]]  # language -> set -> ids


@dataclass(frozen=True)
class _Frame:
    """The documents of a corpus that have exactly one of the classes.

    none: number of documents with none of the classes, by language
    several: number of documents with more than one of the classes, by language
    labels: number of documents with each label, whether or not it is a class
    """

    documents: list[Document]
    none: Counter[str]
    several: Counter[str]
    labels: Counter[str]


class _Chosen(NamedTuple):
    """The drawn documents.

    ids: ids of the drawn documents, by language
    of_each: parameters of the draw, by language
    frame: the documents from which they were drawn
    of: number of documents in the frame, by language
    predictor: name of the predictor; empty if the classes are declared labels
    """

    ids: Mapping[str, list[str]]
    of_each: Mapping[str, dict[str, Any]]
    frame: _Frame
    of: Counter[str]
    predictor: str = ""


@dataclass(frozen=True)
class _Wanted:
    """Options of the draw.

    fill: whether to draw smaller sets if a class has too few documents, instead of raising an error
    fields: fields whose text determines whether two documents are equal
    classes: labels that are classes; a document is in the frame if it has exactly one of them
    apart: fields that keep documents together: all documents with the same value are in the same one of test, dev and
        train
    joint: number of documents that each language contributes to the joint sets
    leave_out: ids of documents to leave out of the frame
    """

    corpus: str
    languages: Collection[str] | None
    seed: str
    sizes: Sizes
    fill: bool
    fields: Sequence[str]
    classes: Sequence[str]
    apart: Sequence[str] = ()
    joint: int = 0
    leave_out: Collection[str] = frozenset()

    def frame(self, languages: Collection[str] | None, predicted: Mapping[str, str] | None = None) -> _Frame:
        """Return the frame. It stores a digest of each text, because the texts might not fit into memory.

        predicted: predicted label of each id, to use in place of the declared labels
        """
        frame = _Frame([], Counter(), Counter(), Counter())
        for row in declared_records(self.corpus, languages, (*self.fields, *self.apart)):
            if row["id"] in self.leave_out:
                continue
            labels = row["declared"] if predicted is None else [predicted[row["id"]]]
            frame.labels.update(labels)
            own = [label for label in labels if label in self.classes]
            if len(own) != 1:
                (frame.several if own else frame.none)[row["language"]] += 1
                continue
            text = equal_key("\n".join(row["fields"][field] for field in self.fields))
            digest = hashlib.sha256(text.encode()).hexdigest()
            values = tuple(row["fields"][field] for field in self.apart)
            frame.documents.append(Document(row["id"], row["language"], own[0], digest, values))
        return frame


def sample_balanced(
    corpus: Corpus,
    languages: Collection[str] | None,
    *,
    seed: str,
    test: int = 0,
    dev: int = 0,
    train: Sequence[int] = (),
    short: str = "refuse",
    from_indices: Path | None = None,
    predictor: str = "",
    **given: Any,
) -> list[Sample]:
    """Draw a sample for each language, without changing the database.

    The parameters of each sample hold the ids of its sets (IDS), what was left out of the frame, which classes have too
    few documents, and what is wrong with published lists.

    test, dev, train: sizes of the sets (documents)
    short: "fill" to allow a smaller train set if a class has too few documents, or any smaller set with a predictor
    from_indices: folder of published lists of ids to use in place of new sets
    predictor: predictor whose labels are the classes; "" for declared labels
    given: fields, classes, apart, joint and leave_out, as in _Wanted

    Raise CorpusError if the draw is not possible.
    """
    wanted = _Wanted(corpus.name, languages, seed, Sizes(test, dev, tuple(train)), short == "fill", **given)
    if repeated := [label for label, number in Counter(wanted.classes).items() if number > 1]:
        raise CorpusError(f"The class {repeated[0]} is named twice; name each once.")
    try:
        chosen = _predicted(wanted, predictor, from_indices) if predictor else _declared(wanted, from_indices)
    except BalanceError as error:
        raise CorpusError(str(error)) from error
    frame, fixed = chosen.frame, {"classes": list(wanted.classes), "apart": list(wanted.apart)}
    parameters = {
        language: {**fixed, "no_class": frame.none[language], "several": frame.several[language], **of}
        for language, of in chosen.of_each.items()
    }
    return sample_chosen(
        corpus,
        "balanced",
        chosen.ids,
        seed=seed,
        frames=chosen.of,
        parameters=parameters,
        predictor=chosen.predictor,
    )


# --- Draws whose classes are declared labels.


def _declared(wanted: _Wanted, from_indices: Path | None) -> _Chosen:
    check_declared(wanted.corpus)
    classes = ", ".join(wanted.classes)
    sets, of_each, frame, of = _published(wanted, from_indices) if from_indices else _drawn(wanted)
    if not sets:
        raise CorpusError(
            f"Corpus {wanted.corpus} has no document with exactly one of the classes {classes}; write them as its "
            "labels are, separated by spaces, or by semicolons where a label has spaces."
        )
    if empty := sorted(set(wanted.languages or ()) - sets.keys()):
        raise CorpusError(f"Corpus {wanted.corpus} has no document in {empty[0]} with exactly one of the classes.")
    ids = {
        language: list(dict.fromkeys(key for each in of_language.values() for key in each))
        for language, of_language in sets.items()
    }
    return _Chosen(ids, {language: of_each[language] | {IDS: sets[language]} for language in sets}, frame, of)


def _drawn(wanted: _Wanted) -> tuple[Sets, dict[str, dict[str, Any]], _Frame, Counter[str]]:
    classes, seed = wanted.classes, wanted.seed
    check_sizes(wanted.sizes, classes)
    frame = wanted.frame(wanted.languages)
    if strange := [label for label in classes if label not in frame.labels]:
        most = [label for label, _ in frame.labels.most_common()]
        raise CorpusError(
            f"No document of corpus {wanted.corpus} has the label {strange[0]!r}; name labels that they have: "
            f"{', '.join(most[:MANY])}{' …' if len(most) > MANY else ''}. Labels are separated by spaces, or by "
            "semicolons where one has spaces."
        )
    merged = one_of_each(frame.documents, seed=seed)
    made = balanced(merged.documents, classes, wanted.sizes, seed=seed, fill=(TRAIN,) if wanted.fill else ())
    labels = {document.id: document.label for document in merged.documents}
    together = balanced_sets.joint(made, labels, classes, wanted.joint) if wanted.joint else {}
    there = Counter((document.language, document.label) for document in merged.documents)
    of_each = {}
    for language, sets in made.sets.items():
        taken = Counter(labels[key] for key in {key for ids in sets.values() for key in ids})
        numbers = {label: there[language, label] for label in classes}
        of_each[language] = {
            "equal": merged.equal[language],
            "differing": merged.differing[language],
            "short": [each._asdict() for each in made.short if each.language == language],
            "published": False,
            "faults": [],
            CHANCES: {label: taken[label] / number if number else None for label, number in numbers.items()},
            **({JOINT: together[language]} if together else {}),
        }
    return made.sets, of_each, frame, Counter(document.language for document in merged.documents)


def _published(wanted: _Wanted, folder: Path) -> tuple[Sets, dict[str, dict[str, Any]], _Frame, Counter[str]]:
    if any(wanted.sizes.all().values()) or wanted.apart or wanted.joint:
        raise CorpusError("Published lists say what is in each set; leave --sets out.")
    lists = read_lists(folder, wanted.languages)
    frame = wanted.frame(sorted(lists))
    there = {(document.language, document.id) for document in frame.documents}
    of_each: dict[str, dict[str, Any]] = {}
    for language, sets in lists.items():
        if missing := sorted({key for ids in sets.values() for key in ids if (language, key) not in there}):
            raise CorpusError(
                f"The lists in {LANGUAGES[language].name} name {listed(missing, len(missing), 'id')}, of which corpus "
                f"{wanted.corpus} has no document in {language} with exactly one of the classes. Import the documents, "
                "with their language and labels, or leave the list out."
            )
        of_each[language] = {
            "equal": 0,
            "differing": 0,
            "short": [],
            "published": True,
            "faults": [each._asdict() for each in faults(sets)],
            CHANCES: {},
        }
    once = {
        language: {name: list(dict.fromkeys(ids)) for name, ids in sets.items()} for language, sets in lists.items()
    }
    return once, of_each, frame, Counter(document.language for document in frame.documents)


# --- Draws whose classes are a predictor's labels.
#
# At first, the draw has just enough documents from each class to fill the sets if every prediction is right. When
# people find a wrong prediction, the next document in random order is added (annotate/controls/replenishment.py).
# After annotation, the documents are assigned to sets (annotate/goldsets/export.py).


def _predicted(wanted: _Wanted, predictor: str, from_indices: Path | None) -> _Chosen:
    classes, sizes = wanted.classes, wanted.sizes
    if wanted.apart or wanted.joint or from_indices:
        raise CorpusError(
            "Which set a document is in is known once people have labelled it; leave --from-indices, `apart` and the "
            "joint sets out, or --predictor."
        )
    if UND in classes:
        raise CorpusError(f"{UND} means that a classifier names no class; leave it out of --labels.")
    check_sizes(sizes, classes)
    found = find_predictor(wanted.corpus, predictor)
    if found.voted:
        raise CorpusError(f"{found} tells languages and not classes; import what a classifier says of the documents.")
    ids = [row["id"] for row in declared_records(wanted.corpus, wanted.languages, ())]
    frame = wanted.frame(wanted.languages, predicted_labels(wanted.corpus, found, ids))
    merged = one_of_each(frame.documents, seed=wanted.seed)
    there = Counter((document.language, document.label) for document in merged.documents)
    languages = sorted({*(wanted.languages or ()), *(language for language, _ in there)})
    try:
        check_enough(there, languages, classes, sizes, (TEST, DEV, TRAIN) if wanted.fill else ())
    except BalanceError as error:
        raise CorpusError(f"{error} These are numbers of what {found} says.") from error
    return _in_order(wanted, merged, languages, frame, str(found))


def _in_order(wanted: _Wanted, merged: Merged, languages: Sequence[str], frame: _Frame, predictor: str) -> _Chosen:
    """Put the documents of each language and class in random order, and choose the first ones."""
    needed = sum(wanted.sizes.apart().values()) // len(wanted.classes)
    orders: dict[str, dict[str, list[str]]] = {language: {} for language in languages}
    for cell in product(languages, wanted.classes):
        of_cell = [document.id for document in merged.documents if (document.language, document.label) == cell]
        orders[cell[0]][cell[1]] = drawn(of_cell, len(of_cell), lots=by_seed(wanted.seed), purpose="draw")
    of_each = {
        language: {
            "equal": merged.equal[language],
            "differing": merged.differing[language],
            "published": False,
            "faults": [],
            SIZES: list(wanted.sizes),
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
    of = Counter(document.language for document in merged.documents)
    return _Chosen(first, of_each, frame, of, predictor)


# --- Published lists.


def spelled_out(language: str) -> str:
    """Return the name of a language as published lists write it: one lower-case word, such as `german`."""
    return re.sub(r"[^a-z]+", "-", LANGUAGES[language].name.casefold()).strip("-")


SET = re.compile(rf"{TEST}|{DEV}|{TRAIN}\.[1-9][0-9]*")
# Languages that the published lists call by another name than `spelled_out` returns.
OTHERWISE = {"chinese": "zh-CN"}


def read_lists(folder: Path, languages: Collection[str] | None) -> dict[str, dict[str, list[str]]]:
    """Read the published lists in a folder, which are files such as german.train.1000.

    languages: codes of the languages to read; None for all

    Return a mapping from language to set to ids. Raise CorpusError if the folder or a list is not valid.
    """
    by_name = {spelled_out(code): code for code in LANGUAGES} | OTHERWISE
    found: dict[str, dict[str, list[str]]] = {}
    try:
        for path in sorted(folder.iterdir()):
            name, _, part = path.name.partition(".")
            if name == JOINT:
                continue  # the joint sets consist of the other lists
            code = by_name.get(name)
            if not SET.fullmatch(part):
                raise CorpusError(
                    f"{path} is not named as a list; such are named by language and set, as german.train.1000, "
                    "german.dev and german.test."
                )
            if code is None and languages is None:
                raise CorpusError(
                    f"{path} is a list for {name}, which is not the name of a language known here; name the languages "
                    "of the other lists with --languages."
                )
            if code and (languages is None or code in languages):
                ids = path.read_text(encoding="utf-8-sig").split()
                if not ids:
                    raise CorpusError(f"The list {path} is empty; give it its ids, or take it away.")
                found.setdefault(code, {})[part] = ids
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"{folder} cannot be read as a folder of lists: {_why(error)}.") from error
    if missing := sorted(set(languages or ()) - found.keys()) or ([] if found else ["any language"]):
        raise CorpusError(f"{folder} has no list for {missing[0]}.")
    return {code: {part: sets[part] for part in sorted(sets, key=place_of)} for code, sets in found.items()}


def _why(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else f"{error.object[:40]!r} is not UTF-8"
