"""The balanced draw: every set has the same number of documents from each class.

Each language has its own sets. The classes are either the documents' declared labels, or a predictor's labels that
annotators then check. A task can also use published lists of ids instead of drawing new sets.
annotate/core/draws/balanced_sets.py contains the algorithm.
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
    check_enough,
    check_sizes,
    distinct_documents,
    draw_balanced_sets,
    find_faults,
    place_of,
)
from annotate.core.draws.hash_order import by_seed, draw_sample
from annotate.core.draws.splits import DEV, TEST, TRAIN, equal_key
from corpora.core import CorpusError, listed
from corpora.core.languages import LANGUAGES, UND
from corpora.draws.samples import Sample, sample_chosen
from corpora.models import Corpus
from corpora.predictions.predictor_labels import find_predictor, predicted_labels
from corpora.storage.inventory import check_declared, declared_records

# Keys of a draw's parameters.
IDS = "ids"  # the ids in each set
CHANCES = "chances"  # the probability that a document was drawn, by class; empty for published lists
JOINT = "joint"  # the ids that a language contributes to the joint sets, by set
# The following keys are used if a predictor's labels are the classes:
# - SIZES: sizes of test, dev and train
# - NEEDED: number of documents that the sets need from each class
# - FRAME: number of documents in the frame, by predicted class
# - ORDER: ids of the documents in the frame, in random order, by predicted class; not stored with the draw
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


class _Draw(NamedTuple):
    """The drawn documents.

    ids: ids of the drawn documents, by language
    language_parameters: parameters of the draw, by language
    frame: the documents that the draw could choose from
    frame_sizes: number of distinct documents in the frame, by language
    predictor: predictor name; "" if the classes are declared labels
    """

    ids: Mapping[str, list[str]]
    language_parameters: Mapping[str, dict[str, Any]]
    frame: _Frame
    frame_sizes: Counter[str]
    predictor: str = ""


@dataclass(frozen=True)
class _Request:
    """Options of the draw.

    fill: whether to draw smaller sets if a class has too few documents, instead of raising an error
    fields: fields whose values identify equal documents
    classes: labels that are classes; a document is in the frame if it has exactly one of them
    apart: fields that group documents: documents with the same value are all in test, all in dev, or all in train
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
        """Return the frame. It contains digests, because the texts may not fit into memory.

        predicted: id -> predicted label, to use in place of the declared labels; None to use the declared labels
        """
        frame = _Frame([], Counter(), Counter(), Counter())
        for row in declared_records(self.corpus, languages, (*self.fields, *self.apart)):
            if row["id"] in self.leave_out:
                continue
            labels = row["declared"] if predicted is None else [predicted[row["id"]]]
            frame.labels.update(labels)
            matching = [label for label in labels if label in self.classes]
            if len(matching) != 1:
                (frame.several if matching else frame.none)[row["language"]] += 1
                continue
            text = equal_key("\n".join(row["fields"][field] for field in self.fields))
            digest = hashlib.sha256(text.encode()).hexdigest()
            values = tuple(row["fields"][field] for field in self.apart)
            frame.documents.append(Document(row["id"], row["language"], matching[0], digest, values))
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
    **frame_options: Any,
) -> list[Sample]:
    """Draw a sample for each language, without changing the database.

    Each sample's parameters contain the ids in its sets (IDS). They also report the documents left out of the frame,
    the classes with too few documents, and the faults in published lists.

    test, dev, train: number of documents in each set
    short: `fill` allows a smaller train set if a class has too few documents; with a predictor, any set can be smaller
    from_indices: folder of published lists of ids to use in place of new sets
    predictor: predictor whose labels are the classes; "" for declared labels
    frame_options: fields, classes, apart, joint and leave_out, as in _Request

    Raise CorpusError if the draw is not possible.
    """
    request = _Request(corpus.name, languages, seed, Sizes(test, dev, tuple(train)), short == "fill", **frame_options)
    if repeated := [label for label, number in Counter(request.classes).items() if number > 1]:
        raise CorpusError(f"The class {repeated[0]} is listed twice. List each class once.")
    try:
        draw = _draw_predicted(request, predictor, from_indices) if predictor else _draw_declared(request, from_indices)
    except BalanceError as error:
        raise CorpusError(str(error)) from error
    frame, fixed = draw.frame, {"classes": list(request.classes), "apart": list(request.apart)}
    parameters = {
        language: {**fixed, "no_class": frame.none[language], "several": frame.several[language], **values}
        for language, values in draw.language_parameters.items()
    }
    return sample_chosen(
        corpus,
        "balanced",
        draw.ids,
        seed=seed,
        frames=draw.frame_sizes,
        parameters=parameters,
        predictor=draw.predictor,
    )


# --- Draws whose classes are declared labels.


def _draw_declared(request: _Request, from_indices: Path | None) -> _Draw:
    check_declared(request.corpus)
    classes = ", ".join(request.classes)
    sets, language_parameters, frame, frame_sizes = (
        _read_published(request, from_indices) if from_indices else _draw_sets(request)
    )
    if not sets:
        raise CorpusError(
            f"Corpus {request.corpus} has no document with exactly one of the classes {classes}. Write the classes "
            "exactly as the documents' labels, separated by spaces, or by semicolons if a label contains spaces."
        )
    if empty := sorted(set(request.languages or ()) - sets.keys()):
        raise CorpusError(f"Corpus {request.corpus} has no document in {empty[0]} with exactly one of the classes.")
    ids = {
        language: list(dict.fromkeys(key for set_ids in language_sets.values() for key in set_ids))
        for language, language_sets in sets.items()
    }
    return _Draw(
        ids, {language: language_parameters[language] | {IDS: sets[language]} for language in sets}, frame, frame_sizes
    )


def _draw_sets(request: _Request) -> tuple[Sets, dict[str, dict[str, Any]], _Frame, Counter[str]]:
    classes, seed = request.classes, request.seed
    check_sizes(request.sizes, classes)
    frame = request.frame(request.languages)
    if unknown_labels := [label for label in classes if label not in frame.labels]:
        known_labels = [label for label, _ in frame.labels.most_common()]
        raise CorpusError(
            f"No document of corpus {request.corpus} has the label {unknown_labels[0]!r}. Existing labels: "
            f"{', '.join(known_labels[:MANY])}{' …' if len(known_labels) > MANY else ''}. Separate labels with "
            "spaces, or with semicolons if a label contains spaces."
        )
    merged = distinct_documents(frame.documents, seed=seed)
    result = draw_balanced_sets(
        merged.documents, classes, request.sizes, seed=seed, fill=(TRAIN,) if request.fill else ()
    )
    labels = {document.id: document.label for document in merged.documents}
    joint_ids = balanced_sets.select_joint_sets(result, labels, classes, request.joint) if request.joint else {}
    frame_counts = Counter((document.language, document.label) for document in merged.documents)
    language_parameters = {}
    for language, sets in result.sets.items():
        drawn_counts = Counter(labels[key] for key in {key for ids in sets.values() for key in ids})
        numbers = {label: frame_counts[language, label] for label in classes}
        language_parameters[language] = {
            "equal": merged.equal[language],
            "differing": merged.differing[language],
            "short": [shortage._asdict() for shortage in result.short if shortage.language == language],
            "published": False,
            "faults": [],
            CHANCES: {label: drawn_counts[label] / number if number else None for label, number in numbers.items()},
            **({JOINT: joint_ids[language]} if joint_ids else {}),
        }
    return result.sets, language_parameters, frame, Counter(document.language for document in merged.documents)


def _read_published(request: _Request, folder: Path) -> tuple[Sets, dict[str, dict[str, Any]], _Frame, Counter[str]]:
    if any(request.sizes.all().values()) or request.apart or request.joint:
        raise CorpusError("The published lists determine what the sets contain. Remove --sets.")
    lists = read_lists(folder, request.languages)
    frame = request.frame(sorted(lists))
    frame_ids = {(document.language, document.id) for document in frame.documents}
    language_parameters: dict[str, dict[str, Any]] = {}
    for language, sets in lists.items():
        if missing := sorted({key for ids in sets.values() for key in ids if (language, key) not in frame_ids}):
            raise CorpusError(
                f"The lists for {LANGUAGES[language].name} contain ids for which corpus {request.corpus} has no "
                f"document in {language} with exactly one of the classes ({listed(missing, len(missing), 'id')}). "
                "Import the documents with their language and labels, or remove the list."
            )
        language_parameters[language] = {
            "equal": 0,
            "differing": 0,
            "short": [],
            "published": True,
            "faults": [fault._asdict() for fault in find_faults(sets)],
            CHANCES: {},
        }
    distinct_ids = {
        language: {name: list(dict.fromkeys(ids)) for name, ids in sets.items()} for language, sets in lists.items()
    }
    return distinct_ids, language_parameters, frame, Counter(document.language for document in frame.documents)


# --- Draws whose classes are a predictor's labels.
#
# Initially, the draw contains just enough documents of each class to fill the sets if all predictions are right. For
# each prediction that annotators reject, annotate/controls/replenishment.py adds the next document in random order.
# After annotation, annotate/goldsets/export.py assigns the documents to sets.


def _draw_predicted(request: _Request, predictor: str, from_indices: Path | None) -> _Draw:
    classes, sizes = request.classes, request.sizes
    if request.apart or request.joint or from_indices:
        raise CorpusError(
            "With --predictor, the sets are determined only after people have labelled the documents. Remove "
            "--from-indices, `apart` and the joint sets, or remove --predictor."
        )
    if UND in classes:
        raise CorpusError(f"{UND} means that a classifier predicts no class. Remove it from --labels.")
    check_sizes(sizes, classes)
    source = find_predictor(request.corpus, predictor)
    if source.voted:
        raise CorpusError(
            f"{source} predicts languages, not classes. Import a classifier's predictions for the documents."
        )
    ids = [row["id"] for row in declared_records(request.corpus, request.languages, ())]
    frame = request.frame(request.languages, predicted_labels(request.corpus, source, ids))
    merged = distinct_documents(frame.documents, seed=request.seed)
    frame_counts = Counter((document.language, document.label) for document in merged.documents)
    languages = sorted({*(request.languages or ()), *(language for language, _ in frame_counts)})
    try:
        check_enough(frame_counts, languages, classes, sizes, (TEST, DEV, TRAIN) if request.fill else ())
    except BalanceError as error:
        raise CorpusError(f"{error} These numbers count the predictions of {source}.") from error
    return _draw_in_order(request, merged, languages, frame, str(source))


def _draw_in_order(request: _Request, merged: Merged, languages: Sequence[str], frame: _Frame, predictor: str) -> _Draw:
    """Shuffle the documents in each language and class, and draw the first `needed` documents."""
    needed = sum(request.sizes.disjoint().values()) // len(request.classes)
    orders: dict[str, dict[str, list[str]]] = {language: {} for language in languages}
    for cell in product(languages, request.classes):
        cell_ids = [document.id for document in merged.documents if (document.language, document.label) == cell]
        orders[cell[0]][cell[1]] = draw_sample(cell_ids, len(cell_ids), lots=by_seed(request.seed), purpose="draw")
    language_parameters = {
        language: {
            "equal": merged.equal[language],
            "differing": merged.differing[language],
            "published": False,
            "faults": [],
            SIZES: list(request.sizes),
            NEEDED: needed,
            FRAME: {label: len(order) for label, order in class_orders.items()},
            ORDER: class_orders,
        }
        for language, class_orders in orders.items()
    }
    drawn_ids = {
        language: [key for order in class_orders.values() for key in order[:needed]]
        for language, class_orders in orders.items()
    }
    frame_sizes = Counter(document.language for document in merged.documents)
    return _Draw(drawn_ids, language_parameters, frame, frame_sizes, predictor)


# --- Published lists.


def list_name(language: str) -> str:
    """Return a language's name in file names of published lists: one lower-case word, such as `german`."""
    return re.sub(r"[^a-z]+", "-", LANGUAGES[language].name.casefold()).strip("-")


SET = re.compile(rf"{TEST}|{DEV}|{TRAIN}\.[1-9][0-9]*")
# The names in published lists that `list_name` does not return.
SPECIAL_LIST_NAMES = {"chinese": "zh-CN"}


def read_lists(folder: Path, languages: Collection[str] | None) -> dict[str, dict[str, list[str]]]:
    """Read the published lists in a folder, which are files such as german.train.1000.

    languages: codes of the languages to read; None for all

    Return a mapping from language to set to ids. Raise CorpusError if the folder or a list is not valid.
    """
    by_name = {list_name(code): code for code in LANGUAGES} | SPECIAL_LIST_NAMES
    lists: dict[str, dict[str, list[str]]] = {}
    try:
        for path in sorted(folder.iterdir()):
            name, _, part = path.name.partition(".")
            if name == JOINT:
                continue  # joint sets only repeat ids of the other lists
            code = by_name.get(name)
            if not SET.fullmatch(part):
                raise CorpusError(
                    f"{path} does not have the name of a list. Names consist of the language and the set, such as "
                    "german.train.1000, german.dev and german.test."
                )
            if code is None and languages is None:
                raise CorpusError(
                    f"{path} is a list for {name}, which is not a known language. Set --languages to the languages of "
                    "the other lists."
                )
            if code and (languages is None or code in languages):
                ids = path.read_text(encoding="utf-8-sig").split()
                if not ids:
                    raise CorpusError(f"The list {path} is empty. Add its ids or delete the file.")
                lists.setdefault(code, {})[part] = ids
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"Cannot read {folder} as a folder of lists: {_reason(error)}.") from error
    if missing := sorted(set(languages or ()) - lists.keys()) or ([] if lists else ["any language"]):
        raise CorpusError(f"The folder {folder} contains no list for {missing[0]}.")
    return {code: {part: sets[part] for part in sorted(sets, key=place_of)} for code, sets in lists.items()}


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else f"{error.object[:40]!r} is not UTF-8"
