"""Evaluation of files named TRAIN-TEST.prediction on sets of records, by training and test language.

For example, de-en.prediction contains the predictions of a classifier trained on German and tested on English, and
joint-en.prediction those of a classifier trained on all languages (Schwenk and Li 2018, table 3). Line n of a file is
the prediction for line n of the test language's list of documents. In a set without such lists, it is the prediction
for row n of the test language in the split `test`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from annotate.core.aggregation.answer_table import Floats, Ints
from annotate.core.draws import splits
from annotate.core.draws.splits import TEST, components
from annotate.core.estimation.differences import mcnemar
from annotate.core.estimation.proportions import proportion
from annotate.core.measures import classification
from annotate.core.measures.classification import ClassSample
from annotate.core.measures.figure_rows import Row, add_holm_p_values, difference_row, row
from annotate.evaluation.prediction_files import SUFFIX, check_labels, describe_system, read_lines, system_names
from annotate.evaluation.record_sets import PublishedSet, unfinished_warnings
from annotate.evaluation.subjects import EvaluationError
from annotate.goldsets.formats import benchmarks
from annotate.goldsets.gold_set import objects_in
from annotate.goldsets.set_folder import RESTORE, GoldSetError
from annotate.kinds.balanced_draw import JOINT
from annotate.reports.evaluation_report import texts
from annotate.reports.numbers import estimate
from annotate.reports.tables import are, many
from corpora.core.languages import LANGUAGES, published_code

Pair = tuple[str, str]  # training language or JOINT; test language
Hits = Mapping[Pair, Floats]  # for each pair, 1 for each test document classified correctly and 0 for each wrong one
TEXTS = texts("pairs")


@dataclass(frozen=True)
class Tested:
    """The test set of a language.

    file: path of the list of documents, within the set's folder.
    ids: id of each document, in file order.
    truth: class of each document.
    strata: stratum of each document: its class if the set has a fixed number of documents per class.
    units: unit number of each document, shared by translations of the same document. None if the set does not show
        which documents are translations of each other.
    """

    file: str
    ids: list[str]
    truth: list[str]
    strata: list[str]
    units: Ints | None = None


Tests = Mapping[str, Tested]  # the test set of each language


def grade(
    predictions: Path,
    sets: Sequence[PublishedSet],
    against: Path | None = None,
    *,
    split: str = TEST,
    group: Sequence[str] = (),
) -> dict[str, Any]:
    """Evaluate predictions by language pair and return the report.

    predictions: folder of prediction files.
    sets: a sequence with the gold set as its only element.
    against: folder of a second system's files; None for no comparison.
    split: the split to measure.
    group: groups of test languages to average over separately, such as "romance=es it".

    Raise EvaluationError if the predictions do not fit the set.
    """
    [gold] = sets
    tests, classes = read_tests(gold, split), classes_of(gold)
    paths = [predictions, *([against] if against else [])]
    names, systems = system_names(paths), [read_predictions(path, gold, tests) for path in paths]
    first_system, unpaired = systems[0], len(systems[0].keys() ^ systems[-1].keys())
    across = {"matrix": [code for code in tests if code in {test for _, test in first_system}], "recall": classes}
    sections = TEXTS.sections
    heads: list[tuple[str, dict[str, str]]] = [("transfer", {}), ("mean_accuracy", {"train": JOINT})]
    if any(train == test for train, test in first_system):
        heads.insert(0, ("mean_accuracy", {}))
    return {
        "unit": "document" if gold.manifest.get("sets") else "record",
        "head": [{"measure": measure, "of": slice_keys} for measure, slice_keys in heads],
        "sections": [
            section | {"across": across[section["slug"]]} if section["slug"] in across else section
            for section in sections
        ],
        "words": {"matrix": _matrix_notes(gold, first_system, tests), "overall": _mean_notes(gold, tests)},
        "reading": TEXTS.reading,
        "predictor": describe_system(names[0]),
        "rows": [*_rows(first_system, tests, classes), *_group_rows(first_system, tests, groups_of(group, tests))],
        "confusion": None,
        "comparison": _comparison(systems, tests, names) if against else None,
        "told": [
            f"{are(unpaired, 'language pair has', 'language pairs have')} predictions from only one system and "
            "cannot be compared."
        ]
        * bool(unpaired),
        "warnings": [*unfinished_warnings(sets), *_warnings(gold)],
    }


def _warnings(gold: PublishedSet) -> list[str]:
    """Return warnings about the set's labels and about how its documents were selected."""
    warnings, audit = [], gold.manifest.get("declared_audit")
    if audit and audit["error"]["value"] is not None:
        warnings.append(TEXTS.words["audited"].format(error=estimate(audit["error"]), name=gold.name))
    if gold.manifest.get("sets") and gold.manifest["sets"]["standing"]:
        predictor = gold.manifest["draws"][0]["predictor"]
        warnings.append(TEXTS.words["found"].format(name=gold.name, predictor=predictor))
    return warnings


def _matrix_notes(gold: PublishedSet, hits: Hits, tests: Tests) -> list[str]:
    counts = {tested.truth.count(label) for tested in tests.values() for label in classes_of(gold)}
    class_size = f"{min(counts):,}" if len(counts) == 1 else f"{min(counts):,} to {max(counts):,}"
    sentences = [TEXTS.words["counts"].format(each=class_size)] * bool(gold.manifest.get("sets"))
    if missing := len({train for train, _ in hits}) * len({test for _, test in hits}) - len(hits):
        sentences.append(f"{are(missing, 'pair has', 'pairs have')} no prediction file.")
    return sentences


def _mean_notes(gold: PublishedSet, tests: Tests) -> list[str]:
    fields = ", ".join(
        sorted({field for draw in gold.manifest["draws"] for field in draw["parameters"].get("apart", ())})
    )
    if not fields or len(tests) < 2:
        return []
    are_marked = all(tested.units is not None for tested in tests.values())
    return [TEXTS.words["translations" if are_marked else "unmarked"].format(fields=fields)]


# --- one system


def _samples(hits: Hits, pairs: Collection[Pair], tests: Tests) -> list[ClassSample]:
    """Return a sample of test documents for each language and stratum of these pairs.

    A document's value is the share of its language's pairs that predict its class, so all pairs have equal weight.
    """
    samples = []
    for language, tested in tests.items():
        pair_hits = [hits[pair] for pair in pairs if pair[1] == language]
        if not pair_hits:
            continue
        values, strata = np.mean(pair_hits, axis=0), np.array(tested.strata)
        for stratum in sorted(set(tested.strata)):
            in_stratum = strata == stratum
            weight = len(pair_hits) / len(pairs) * in_stratum.sum() / len(values)
            units = None if tested.units is None else tested.units[in_stratum]
            samples.append(ClassSample(weight, values[in_stratum], units))
    return samples


def _groups(pairs: Collection[Pair]) -> Iterator[tuple[str, list[Pair], str]]:
    """Yield the means to report, as (measure, pairs, note) tuples.

    One mean is over all pairs, the other over pairs of different languages. Both exclude classifiers trained jointly on
    all languages.
    """
    separate = [pair for pair in pairs if pair[0] != JOINT]
    crossing = [pair for pair in separate if pair[0] != pair[1]]
    if separate:
        yield "mean_accuracy", separate, f"mean over {many(len(separate), 'pair')}"
    if crossing:
        yield "transfer", crossing, f"mean over {many(len(crossing), 'pair')}"


def _sort(pairs: Collection[Pair]) -> list[Pair]:
    return sorted(pairs, key=lambda pair: (pair[0] == JOINT, pair))


def _rows(hits: Hits, tests: Tests, classes: Collection[str]) -> Iterator[Row]:
    """Yield each pair's accuracy, the means, and the recall of each class for each pair."""
    for train, test in _sort(hits):
        accuracy = classification.mean(_samples(hits, [(train, test)], tests))
        yield row("accuracy", {"train": train, "test": test}, accuracy, len(hits[train, test]))
    trained = sorted({train for train, _ in hits} - {JOINT})
    slices: list[tuple[dict[str, str], list[Pair]]] = [
        ({}, list(hits)),
        *(({"train": code}, [pair for pair in hits if pair[0] == code]) for code in trained),
        *(({"test": code}, [pair for pair in hits if pair[1] == code]) for code in tests),
    ]
    for slice_keys, pairs in slices:
        for measure, group, note in _groups(pairs):
            yield row(measure, slice_keys, classification.mean(_samples(hits, group, tests)), None, note)
    if joint := [pair for pair in hits if pair[0] == JOINT]:
        note = f"mean over {many(len(joint), 'test language')}"
        yield row("mean_accuracy", {"train": JOINT}, classification.mean(_samples(hits, joint, tests)), None, note)
    for train, test in _sort(hits):
        truth = np.array(tests[test].truth)
        for label in classes:
            class_hits = hits[train, test][truth == label]
            slice_keys = {"train": train, "test": test, "label": label}
            yield row("recall", slice_keys, proportion(float(class_hits.sum()), len(class_hits)), len(class_hits))


def groups_of(texts: Sequence[str], tests: Collection[str]) -> dict[str, list[str]]:
    """Parse groups of languages.

    texts: groups such as "romance=es it".
    tests: the test languages.

    Raise EvaluationError if a group has no name or contains a language that is not a test language.
    """
    groups = {}
    for text in texts:
        name, _, listed = text.partition("=")
        groups[name] = listed.replace(",", " ").split()
        if not name or not groups[name]:
            raise EvaluationError(f"--group is {text!r}. Write a name and test languages, such as 'romance=es it'.")
        if unknown := [code for code in groups[name] if code not in tests]:
            raise EvaluationError(
                f"--group {name} has the language {unknown[0]}, but the test languages are {', '.join(tests)}."
            )
    return groups


def _group_rows(hits: Hits, tests: Tests, groups: Mapping[str, Collection[str]]) -> Iterator[Row]:
    """Yield the means over the pairs whose test language is in a group."""
    for name, codes in groups.items():
        pairs = [pair for pair in hits if pair[1] in codes]
        for measure, group, note in _groups(pairs):
            yield row(measure, {"group": name}, classification.mean(_samples(hits, group, tests)), None, note)


# --- two systems


def _comparison(systems: Sequence[Hits], tests: Tests, names: Sequence[str]) -> dict[str, Any]:
    first_hits, second_hits = systems
    both = _sort([pair for pair in first_hits if pair in second_hits])
    if not both:
        raise EvaluationError(
            f"{names[0]} and {names[1]} have no language pair in common, so they cannot be compared. Predict the "
            "same pairs with both systems."
        )

    def compare(measure: str, slice_keys: dict[str, str], pairs: Collection[Pair], **rest: Any) -> Row:
        difference = classification.difference(_samples(first_hits, pairs, tests), _samples(second_hits, pairs, tests))
        return difference_row(measure, slice_keys, difference, **rest)

    rows = [compare(measure, {}, group, units=None, note=note, p=None) for measure, group, note in _groups(both)]
    for train, test in both:
        ahead = first_hits[train, test] - second_hits[train, test]
        only_right = int((ahead > 0).sum()), int((ahead < 0).sum())
        note = f"only A is right: {only_right[0]:,}, only B is right: {only_right[1]:,}"
        slice_keys = {"train": train, "test": test}
        rows.append(
            compare("accuracy", slice_keys, [(train, test)], units=len(ahead), note=note, p=mcnemar(*only_right))
        )
    return {"other": describe_system(names[1]), "rows": add_holm_p_values(rows)}


# --- files


def read_tests(gold: PublishedSet, split: str = TEST) -> dict[str, Tested]:
    """Return each language's documents in the split, by default its test set.

    Raise EvaluationError if the split has no documents, and GoldSetError if a test list contains a document that is not
    among the set's rows.
    """
    rows_file = f"gold{gold.mark}.jsonl"
    rows = {row["id"]: row for _, row in objects_in(gold.folder / rows_file)}
    ids_of: dict[str, list[str]] = {}
    files = {
        code: list_path(gold, code, split) if gold.manifest.get("sets") else rows_file for code in languages_of(gold)
    }
    for language, file in files.items():
        if file == rows_file:
            ids = [key for key, row in rows.items() if (row["language"], row.get("split")) == (language, split)]
        else:
            ids = read_list(gold, file)
        if unknown := [key for key in ids if key not in rows]:
            raise GoldSetError(f"{gold.folder / file} contains the id {unknown[0]}, which is not in the set. {RESTORE}")
        if ids:
            ids_of[language] = ids
    if not ids_of:
        raise EvaluationError(
            f"The set {gold.name} in {gold.folder} has no {split} split to predict. Open a task with "
            f'--sets "{split} …" and export it.'
        )
    units = _units(ids_of, rows)
    test_sets = {}
    for language, ids in ids_of.items():
        numbers = np.array([units[key] for key in ids]) if units else None
        truth = [rows[key]["label"] for key in ids]
        strata = truth if gold.manifest.get("sets") else [language] * len(ids)
        test_sets[language] = Tested(files[language], ids, truth, strata, numbers)
    return test_sets


def list_path(gold: PublishedSet, language: str, name: str) -> str:
    """Return the path of an id list of a balanced set, within the set's folder."""
    code = language if language == JOINT else benchmarks.published_name(language, languages_of(gold))[0]
    return f"{benchmarks.INDICES}/{code}{gold.mark}.{name}"


def read_list(gold: PublishedSet, file: str) -> list[str]:
    """Return the ids in an id list of a balanced set; empty if the set does not have this list."""
    return (gold.folder / file).read_text(encoding="utf-8").split("\n")[:-1] if gold.files.get(file) else []


def _units(ids_of: Mapping[str, Sequence[str]], rows: Mapping[str, Any]) -> dict[str, int]:
    """Return a mapping from document id to unit number. Documents with equal values in the --apart fields form a unit.

    Returns an empty dict if these values do not identify translations, because rows lack them or two documents in the
    same language share them.
    """
    tested = [(key, language) for language, ids in ids_of.items() for key in ids]
    if not all(rows[key].get("apart") for key, _ in tested):
        return {}
    units = components(splits.Row(key, language, rows[key]["apart"]) for key, language in tested)
    if any(len({row.language for row in unit}) < len(unit) for unit in units):
        return {}
    return {row.id: number for number, unit in enumerate(units) for row in unit}


def languages_of(gold: PublishedSet) -> list[str]:
    """Return the languages that a balanced set was drawn for, or the languages of any other set's rows."""
    if gold.manifest.get("sets"):
        return sorted({draw["language"] for draw in gold.manifest["draws"]} - {""})
    return sorted(gold.manifest["counts"].get("by_language", ()))


def classes_of(gold: PublishedSet) -> list[str]:
    """Return a set's labels. For a balanced set, these are its classes; other possible answers are left out."""
    if gold.manifest.get("sets"):
        return list(gold.manifest["sets"]["classes"])
    return list(dict.fromkeys([*gold.labels, *sorted(gold.manifest["counts"]["by_label"])]))


def read_predictions(folder: Path, gold: PublishedSet, tests: dict[str, Tested]) -> Hits:
    """Read the prediction files and return which test documents are classified correctly, for each pair.

    Raise EvaluationError if a file does not fit the set.
    """
    if not folder.is_dir():
        raise EvaluationError(
            f"The folder {folder} does not exist. Specify a folder that contains files such as {_example(tests)}."
        )
    trained = languages_of(gold)
    # A file name can't denote two pairs, because only the first part of a language code has two or three lower-case
    # letters. The codes of published files are accepted too, such as zh for zh-CN.
    pairs = {
        f"{train_code}-{test_code}": (train, test)
        for train in (*trained, JOINT)
        for test in tests
        for train_code in (train, published_code(train, trained))
        for test_code in (test, published_code(test, trained))
    }
    hits = {}
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        stem = path.name.removesuffix(SUFFIX)
        if stem not in pairs:
            raise EvaluationError(f"The file {path} {_explain_mismatch(stem, trained, tests)}")
        pair = pairs[stem]
        if pair in hits:
            raise EvaluationError(
                f"{folder} contains two files for {'-'.join(pair)}. Remove {path.name} or the other file."
            )
        tested = tests[pair[1]]
        predicted = read_lines(path, row_count=len(tested.truth), tested=tested.file)
        check_labels(path, predicted, classes_of(gold))
        hits[pair] = np.array([label == true for label, true in zip(predicted, tested.truth, strict=True)], float)
    if not hits:
        raise EvaluationError(
            f"{folder} contains no prediction files. Add a file for each language pair, such as {_example(tests)}, "
            f"with one line per document of {next(iter(tests.values())).file}."
        )
    return hits


def _example(tests: dict[str, Tested]) -> str:
    codes = list(tests)
    return f"{codes[0]}-{codes[-1]}{SUFFIX}"


def _explain_mismatch(stem: str, trained: list[str], tests: dict[str, Tested]) -> str:
    """Explain why a file name does not match a pair of the set."""
    parts = stem.split("-")
    for cut in range(1, len(parts)):
        train, test = "-".join(parts[:cut]), "-".join(parts[cut:])
        if test in LANGUAGES and (train in LANGUAGES or train == JOINT):
            if train not in (*trained, JOINT):
                return (
                    f"is for the training language {train}, which is not in the set. Its training languages are "
                    f"{', '.join(trained)} and {JOINT}."
                )
            return (
                f"is for the test language {test}, in which the set has no test documents. It has test documents in "
                f"{', '.join(tests)}."
            )
    return (
        f"is not named after a language pair. The name must be TRAIN-TEST{SUFFIX}, such as {_example(tests)}, where "
        f"TRAIN can also be {JOINT}."
    )
