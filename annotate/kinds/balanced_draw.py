"""The balanced draw: of each class as many documents, in each set of each language; see core/draws/balanced_sets.py.

The classes are those that came with the documents. Or the sets are those of lists that were published, as they are.
Where people label what a predictor finds: predicted_draw.py.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from annotate.core.draws import balanced_sets as balancing
from annotate.core.draws.balanced_sets import (
    BalanceError,
    Document,
    Sizes,
    balanced,
    check_sizes,
    faults,
    one_of_each,
    place_of,
)
from annotate.core.draws.splits import DEV, TEST, TRAIN, equal_key
from corpora.core import CorpusError, listed
from corpora.core.languages import LANGUAGES
from corpora.draws.samples import Sample, sample_chosen
from corpora.models import Corpus
from corpora.storage.inventory import check_declared, declared_records

# What a draw's parameters call the ids of its sets.
IDS = "ids"
CHANCES = "chances"  # class -> the chance that a document of it had; of published lists nobody knows it
JOINT = "joint"  # part -> the ids of a language in the joint sets of all
MANY = 20  # labels that a refusal names
Sets = Mapping[str, Mapping[str, Sequence[str]]]  # language -> set -> ids


class Frame(NamedTuple):
    """What a corpus has. documents: of exactly one of the classes; none, several: how many others, by language; labels:
    how many documents have each label."""

    documents: list[Document]
    none: Counter[str]
    several: Counter[str]
    labels: Counter[str]


class Chosen(NamedTuple):
    """told: language -> what the draw's record says of its sets; of: of how many documents they were chosen."""

    sets: Sets
    told: dict[str, dict[str, Any]]
    of: Counter[str]


def sample_balanced(
    corpus: Corpus,
    languages: Collection[str] | None,
    *,
    seed: str,
    fields: Sequence[str],
    classes: Sequence[str],
    test: int = 0,
    dev: int = 0,
    train: Sequence[int] = (),
    apart: Sequence[str] = (),
    short: str = "refuse",
    joint: int = 0,
    from_indices: Path | None = None,
    leave_out: Collection[str] = frozenset(),
) -> list[Sample]:
    """One sample for each language, or CorpusError. It only reads files.

    fields: what makes two documents equal; classes: the declared labels that count, of which a document has exactly
    one; apart: fields whose equal values stay in one of test, dev and train; joint: how many of each language are in
    joint sets of all of them. from_indices: a folder of published lists of ids, whose sets are made in place of new
    ones. The parameters of a sample say what was left out of the frame (no class, several, equal, differing), what is
    short of the sizes, what is wrong with published lists, and by IDS which ids are in which set.
    """
    check_once(classes)
    sizes = Sizes(test, dev, tuple(train))
    check_declared(corpus.name)
    if from_indices is None:
        check_shares(sizes, classes)
        frame = frame_of(corpus.name, languages, fields, classes, apart, leave_out)
        _check_labels(frame, corpus.name, classes)
        chosen = _drawn(frame, classes, sizes, apart, seed=seed, fill=(TRAIN,) if short == "fill" else (), joint=joint)
    else:
        if any(sizes.all().values()) or apart or joint:
            raise CorpusError("Published lists say what is in each set; leave --sets out.")
        lists = read_lists(from_indices, languages)
        frame = frame_of(corpus.name, sorted(lists), fields, classes, (), leave_out)
        _check_there(lists, frame, corpus.name)
        chosen = _published(lists, frame)
    if not chosen.sets:
        raise CorpusError(
            f"Corpus {corpus.name} has no document with exactly one of the classes {', '.join(classes)}; write them as "
            "its labels are, separated by spaces, or by semicolons where a label has spaces."
        )
    if empty := sorted(set(languages or ()) - chosen.sets.keys()):
        raise CorpusError(f"Corpus {corpus.name} has no document in {empty[0]} with exactly one of the classes.")
    parameters = {
        language: {
            "classes": list(classes),
            "apart": list(apart),
            "no_class": frame.none[language],
            "several": frame.several[language],
            **chosen.told[language],
            IDS: sets,
        }
        for language, sets in chosen.sets.items()
    }
    ids = {
        language: list(dict.fromkeys(key for each in sets.values() for key in each))
        for language, sets in chosen.sets.items()
    }
    return sample_chosen(corpus, "balanced", ids, seed=seed, frames=chosen.of, parameters=parameters)


def check_once(classes: Sequence[str]) -> None:
    if repeated := [label for label, number in Counter(classes).items() if number > 1]:
        raise CorpusError(f"The class {repeated[0]} is named twice; name each once.")


def _check_labels(frame: Frame, corpus_name: str, classes: Sequence[str]) -> None:
    """CorpusError for a class that no document of the frame's languages is declared to be of."""
    if strange := [label for label in classes if label not in frame.labels]:
        most = [label for label, _ in frame.labels.most_common()]
        raise CorpusError(
            f"No document of corpus {corpus_name} has the label {strange[0]!r}; name labels that they have: "
            f"{', '.join(most[:MANY])}{' …' if len(most) > MANY else ''}. Labels are separated by spaces, or by "
            "semicolons where one has spaces."
        )


def check_shares(sizes: Sizes, classes: Sequence[str]) -> None:
    """CorpusError before anything is read, where the classes cannot share the sizes."""
    try:
        check_sizes(sizes, classes)
    except BalanceError as error:
        raise CorpusError(str(error)) from error


def _drawn(
    frame: Frame,
    classes: Sequence[str],
    sizes: Sizes,
    apart: Sequence[str],
    *,
    seed: str,
    fill: Collection[str],
    joint: int,
) -> Chosen:
    try:
        merged = one_of_each(frame.documents, seed=seed)
        made = balanced(merged.documents, classes, sizes, seed=seed, fill=fill)
        labels = {document.id: document.label for document in merged.documents}
        together = balancing.joint(made, labels, classes, joint) if joint else {}
        there = Counter((document.language, document.label) for document in merged.documents)
    except BalanceError as error:
        raise CorpusError(str(error)) from error
    told = {
        language: {
            "equal": merged.equal[language],
            "differing": merged.differing[language],
            "short": [each._asdict() for each in made.short if each.language == language],
            "published": False,
            "faults": [],
            CHANCES: {label: _share(made.sets[language], labels, label, there[language, label]) for label in classes},
            **({JOINT: together[language]} if together else {}),
        }
        for language in made.sets
    }
    return Chosen(made.sets, told, Counter(document.language for document in merged.documents))


def _share(sets: Mapping[str, Sequence[str]], labels: Mapping[str, str], label: str, there: int) -> float | None:
    """The chance that a document of a class had of being in one of the sets."""
    drawn = {key for ids in sets.values() for key in ids if labels[key] == label}
    return len(drawn) / there if there else None


def _published(lists: Sets, frame: Frame) -> Chosen:
    told: dict[str, dict[str, Any]] = {
        language: {
            "equal": 0,
            "differing": 0,
            "short": [],
            "published": True,
            "faults": [each._asdict() for each in faults(sets)],
            CHANCES: {},
        }
        for language, sets in lists.items()
    }
    once = {
        language: {name: list(dict.fromkeys(ids)) for name, ids in sets.items()} for language, sets in lists.items()
    }
    return Chosen(once, told, Counter(document.language for document in frame.documents))


def frame_of(
    corpus: str,
    languages: Collection[str] | None,
    fields: Sequence[str],
    classes: Sequence[str],
    apart: Sequence[str],
    leave_out: Collection[str],
    predicted: Mapping[str, str] | None = None,
) -> Frame:
    """Of a text a digest is kept, so that a corpus need not fit into memory. predicted: id -> label, if that is the
    class and not what is declared."""
    frame = Frame([], Counter(), Counter(), Counter())
    for row in declared_records(corpus, languages, (*fields, *apart)):
        if row["id"] in leave_out:
            continue
        labels = row["declared"] if predicted is None else [predicted[row["id"]]]
        frame.labels.update(labels)
        own = [label for label in labels if label in classes]
        if len(own) != 1:
            (frame.several if own else frame.none)[row["language"]] += 1
            continue
        text = equal_key("\n".join(row["fields"][field] for field in fields))
        digest = hashlib.sha256(text.encode()).hexdigest()
        values = tuple(row["fields"][field] for field in apart)
        frame.documents.append(Document(row["id"], row["language"], own[0], digest, values))
    return frame


# --- published lists


def spelled_out(language: str) -> str:
    """german; the name of a language in one word, as the published lists have it."""
    return re.sub(r"[^a-z]+", "-", LANGUAGES[language].name.casefold()).strip("-")


SET = re.compile(rf"{TEST}|{DEV}|{TRAIN}\.[1-9][0-9]*")
# What lists call a language that is called otherwise here.
OTHERWISE = {"chinese": "zh-CN"}


def read_lists(folder: Path, languages: Collection[str] | None) -> dict[str, dict[str, list[str]]]:
    """Language -> set -> ids, from files such as german.train.1000; of these languages, or of all there are."""
    by_name = {spelled_out(code): code for code in LANGUAGES} | OTHERWISE
    found: dict[str, dict[str, list[str]]] = {}
    try:
        for path in sorted(folder.iterdir()):
            name, _, part = path.name.partition(".")
            if name == JOINT:
                continue  # made of the others
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


def _check_there(lists: Sets, frame: Frame, corpus: str) -> None:
    """CorpusError for ids of which the corpus has no document in that language with one of the classes."""
    there: dict[str, set[str]] = {}
    for document in frame.documents:
        there.setdefault(document.language, set()).add(document.id)
    for language, sets in lists.items():
        if missing := _missing(sets.values(), there.get(language, set())):
            raise CorpusError(
                f"The lists in {LANGUAGES[language].name} name {listed(missing, len(missing), 'id')}, of which corpus "
                f"{corpus} has no document in {language} with exactly one of the classes. Import the documents, with "
                "their language and labels, or leave the list out."
            )


def _missing(lists: Iterable[Sequence[str]], there: Collection[str]) -> list[str]:
    return sorted({key for ids in lists for key in ids if key not in there})
