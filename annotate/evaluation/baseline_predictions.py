"""Predictions of simple baselines for a gold set, in files that `evaluate` reads.

A `Plan` contains the baselines suitable for a set, and a function that writes the predictions of one of them. Baselines
are trained on the `train` split. Without it, each fifth of the set is predicted from the other four.
"""

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from annotate.core.draws import splits
from annotate.core.draws.hash_order import lot
from annotate.core.draws.splits import DEV, TEST, TRAIN, components
from annotate.evaluation import language_pairs, suggested_replies
from annotate.evaluation.measurement import OF_FORM, RANKED, UNITS, kind_of
from annotate.evaluation.prediction_files import SUFFIX
from annotate.evaluation.record_sets import PublishedSet, is_text, read_published_sets
from annotate.evaluation.subjects import EvaluationError
from annotate.evaluation.text_classifiers import (
    LABEL_MODELS,
    MULTILABEL_MODELS,
    TEXT_MODELS,
    Document,
    Model,
    Problem,
    Scores,
    best,
    majority,
    nearest,
)
from annotate.goldsets.formats.mrs import MADE_BY
from annotate.goldsets.formats.xglue import LABEL, TASKS, XGLUE, XglueTask, cell, group_rows
from annotate.goldsets.gold_set import objects_in
from annotate.goldsets.set_folder import get, manifest_of
from annotate.kinds import KINDS
from annotate.kinds.balanced_draw import JOINT
from annotate.kinds.forms import FORMS
from annotate.kinds.forms.free_text import Text
from annotate.kinds.interface_language import is_negative
from annotate.reports.tables import many
from corpora.core import CorpusError
from corpora.core.languages import published_code
from corpora.draws.samples import rows_of
from corpora.engines import open_store
from corpora.storage.layout import manifest_of as manifest_of_corpus
from corpora.threads.pair_sets import OF_LANGUAGE

FOLDS = 5
DIGITS = 6  # decimals of the scores in a file
DIGEST = 8  # hex digits of a hash that selects a fold


@dataclass(frozen=True)
class Plan:
    """The baselines of a set.

    models: mapping from name to title and model.
    write: writes a model's predictions to a path, possibly with an added suffix, and returns the path written.
    notes: sentences on what the baselines are trained and measured on.
    options: options of `evaluate`.
    """

    models: Mapping[str, tuple[str, Model]]
    write: Callable[[Model, Path], Path]
    notes: Sequence[str]
    options: Mapping[str, Any] = field(default_factory=dict)


def has_baselines(form: str) -> bool:
    """Return whether there are baselines for sets with this form of answers.

    form: form name; "" if the set has no task.
    """
    return form == Text.slug or not (form in FORMS and FORMS[form].measured_by)


def make_plan(folder: Path, fields: Sequence[str], seed: str) -> Plan:
    """Return the plan for a set's baselines.

    folder: folder of the set.
    fields: names of the text fields of records; empty for all fields.
    seed: seed for the folds and for labels drawn at random.

    Raise EvaluationError if there are no texts or labels to train on.
    """
    manifest = manifest_of(folder)
    if manifest.get("made_by") == MADE_BY:
        return _plan_replies(read_published_sets([folder], unfinished=True)[0])
    kind = kind_of(folder, "labels.csv")
    if kind in (UNITS, OF_FORM):
        [gold] = read_published_sets([folder], unfinished=True)
        if gold.format == XGLUE and (plan := _plan_xglue(gold, seed)):
            return plan
    form = (manifest.get("task") or {}).get("form", "")
    if not has_baselines(form):
        raise EvaluationError(f"There are no baselines for answers of the form {form}, only for labels and texts.")
    documents = list(_documents(folder, manifest, fields))
    if kind == UNITS and (trained := _training_sets(gold, documents)):
        return _plan_language_pairs(gold, documents, trained, seed)
    return _plan_rows(documents, kind, seed, by_character=_asks_language(manifest))


def _asks_language(manifest: Mapping[str, Any]) -> bool:
    kind = KINDS.get((manifest.get("task") or {}).get("type", ""))
    return bool(kind and kind.labels_are_languages)


def _problem(train: Sequence[Document], test: Sequence[Document], **more: Any) -> Problem:
    """Return a problem. Training documents without a label to predict are left out.

    Raise EvaluationError if no training documents remain.
    """
    labelled = [document for document in train if document.labels]
    if not labelled:
        raise EvaluationError("The set has no labelled items to learn from, so no baseline can be measured.")
    return Problem(labelled, test, **more)


# --- rows of a set


def _documents(folder: Path, manifest: Mapping[str, Any], fields: Sequence[str]) -> Iterator[Document]:
    """Yield a set's rows as documents. Negative language labels, such as `not-es`, cannot be learnt and are dropped.

    Raise EvaluationError if the rows lack a field or have no texts.
    """
    path = folder / f"gold{'' if manifest['finished'] else '.unfinished'}.jsonl"
    rows = [(location, row) for location, row in objects_in(path)]
    names = list(fields) or sorted({name for _, row in rows for name, value in row.items() if is_text(name, value)})
    texts = {} if names else _texts_of_corpus(manifest, [row["id"] for _, row in rows])
    together = (manifest.get("task") or {}).get("together", "")
    has_negatives = not manifest.get("task") or _asks_language(manifest)
    for location, row in rows:
        if missing := [name for name in names if name not in row]:
            raise EvaluationError(f"{location} has no field {missing[0]!r}. Choose other fields with --fields.")
        key = get(location, row, "id", str)
        text = "\n".join(str(row[name] or "") for name in names) if names else texts[key]
        labels = row["concepts"] if "concepts" in row else [row["label"]]
        targets = tuple(label for label in labels if not (has_negatives and is_negative(label)))
        group = [str(row.get(together))] if together else row.get("apart") or []
        yield Document(key, row.get("language") or "", text, targets, row.get("split") or "", (text, *map(str, group)))


def _texts_of_corpus(manifest: Mapping[str, Any], ids: Sequence[str]) -> dict[str, str]:
    """Return the texts of a set whose files omit them, by id. They are read from the corpus.

    Raise EvaluationError if the corpus is not on this machine.
    """
    name = (manifest.get("corpus") or {}).get("name", "")
    try:
        corpus = manifest_of_corpus(name)
        with open_store(name, manifest=corpus) as store:
            rows = rows_of(store, name, ids, voted=not corpus.fields)
    except CorpusError as error:
        raise EvaluationError(
            f"The files of the set have no texts, and they cannot be read from the corpus: {error} Measure baselines "
            "where the corpus is."
        ) from error
    return {
        key: "\n".join(
            [str(row.get("text") or ""), *(value for _, value in sorted(dict(row.get("fields") or ()).items()))]
        )
        for key, row in rows.items()
    }


def _folds(documents: Sequence[Document], seed: str) -> Iterator[tuple[list[Document], list[Document]]]:
    """Yield the training and test documents of each fold.

    Documents that have equal texts or were drawn together are in the same fold.
    """
    fold_of: dict[str, int] = {}
    for component in components(splits.Row(row.id, row.language, row.apart) for row in documents):
        first = min(row.id for row in component)
        fold = int(lot(seed, "fold", first)[:DIGEST], 16) % FOLDS
        fold_of |= {row.id: fold for row in component}
    for fold in range(FOLDS):
        test = [document for document in documents if fold_of[document.id] == fold]
        if test:
            yield [document for document in documents if fold_of[document.id] != fold], test


def _plan_rows(documents: Sequence[Document], kind: str, seed: str, *, by_character: bool) -> Plan:
    train = [document for document in documents if document.split == TRAIN]
    tested = next((name for name in (TEST, DEV) if any(document.split == name for document in documents)), "")
    if tested and len({label for document in train for label in document.labels}) > 1:
        parts = [(train, [document for document in documents if document.split != TRAIN])]
        size = sum(document.split == tested for document in documents)
        summary = f"Learnt from {many(len(train), 'item')} of the split {TRAIN}; measured on {size:,} of {tested}."
        options = {"split": tested}
    else:
        if kind == RANKED:
            raise EvaluationError(f"The set has no documents in {TRAIN} and {TEST}. Export it with these splits.")
        parts, options = list(_folds(documents, seed)), {}
        summary = f"Each of {FOLDS} parts of the set ({many(len(documents), 'item')}) is predicted from the others; "
        summary += f"items with equal texts are in one part. The parts are drawn with the seed {seed}."

    def write(model: Model, path: Path) -> Path:
        answers: dict[str, Scores] = {}
        for training, test in parts:
            problem = _problem(training, test, multilabel=kind == RANKED, by_character=by_character, seed=seed)
            answers |= {document.id: scores for document, scores in zip(test, model(problem), strict=True)}
        file = path.with_name(f"{path.name}.csv")
        if kind == RANKED:
            _write_ranked(file, answers)
        else:
            _write_best(file, answers, "text" if kind == OF_FORM else "label", with_scores=kind == UNITS)
        return file

    return Plan({RANKED: MULTILABEL_MODELS, OF_FORM: TEXT_MODELS}.get(kind, LABEL_MODELS), write, [summary], options)


def _write_best(path: Path, answers: Mapping[str, Scores], column: str, *, with_scores: bool) -> None:
    """Write the best label or text of each item, and the scores of all labels if there are any."""
    labels = sorted({label for scores in answers.values() for label in scores})
    is_single = all(len(scores) == 1 for scores in answers.values())
    scored = [] if is_single or not with_scores or {"id", "label"} & {*labels} else labels
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["id", column, *scored])
        for key, scores in sorted(answers.items()):
            table.writerow([key, best(scores), *(f"{scores.get(label, 0.0):.{DIGITS}f}" for label in scored)])


def _write_ranked(path: Path, answers: Mapping[str, Scores]) -> None:
    """Write one row for each label of each document, best label first."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["id", "label", "score"])
        for key, scores in sorted(answers.items()):
            order = sorted(scores, key=lambda label: (-scores[label], label))
            table.writerows([key, label, f"{scores[label]:.{DIGITS}f}"] for label in order)


# --- pairs of a training and a test language


def _training_sets(gold: PublishedSet, documents: Sequence[Document]) -> dict[str, list[Document]]:
    """Return the training documents of each language. The key JOINT holds those of all languages.

    The result is empty unless the set is balanced or has training documents in several languages.
    """
    if gold.manifest.get("sets"):
        by_id = {document.id: document for document in documents}
        trained = {code: _largest_list(gold, code) for code in (*language_pairs.languages_of(gold), JOINT)}
        return {code: [by_id[key] for key in ids] for code, ids in trained.items() if ids}
    train = [document for document in documents if document.split == TRAIN]
    codes = sorted({document.language for document in train})
    if len(codes) < 2 or not any(document.split == TEST for document in documents):
        return {}
    return {code: [document for document in train if document.language == code] for code in codes} | {JOINT: train}


def _largest_list(gold: PublishedSet, language: str) -> list[str]:
    """Return the ids of a balanced set's largest training set in a language; empty if there is no training set."""
    start = re.escape(language_pairs.list_path(gold, language, TRAIN))
    names = [name for name in gold.files if re.fullmatch(rf"{start}\.\d+", name)]
    return language_pairs.read_list(gold, max(names, key=lambda name: gold.files[name])) if names else []


def _plan_language_pairs(
    gold: PublishedSet, documents: Sequence[Document], trained: Mapping[str, Sequence[Document]], seed: str
) -> Plan:
    by_id, tests = {document.id: document for document in documents}, language_pairs.read_tests(gold)

    def write(model: Model, path: Path) -> Path:
        path.mkdir()
        for code, training in trained.items():
            test = [by_id[key] for tested in tests.values() for key in tested.ids]
            answers = model(_problem(training, test, seed=seed))
            labels = {document.id: best(scores) for document, scores in zip(test, answers, strict=True)}
            for language, tested in tests.items():
                lines = "".join(f"{labels[key]}\n" for key in tested.ids)
                (path / f"{code}-{language}{SUFFIX}").write_text(lines, encoding="utf-8")
        return path

    sizes = ", ".join(f"{code} {len(training):,}" for code, training in trained.items())
    size = sum(len(tested.ids) for tested in tests.values())
    summary = f"Learnt from the largest training set of each language ({sizes}); measured on {size:,} test documents."
    return Plan(LABEL_MODELS, write, [summary])


# --- tasks of XGLUE


def _plan_xglue(gold: PublishedSet, seed: str) -> Plan | None:
    """Return the plan for XGLUE's tasks, or None if the set lacks training or test rows."""
    rows = [row for _, row in objects_in(gold.folder / f"gold{gold.mark}.jsonl")]
    if not {TRAIN, TEST} <= {row["split"] for row in rows}:
        return None
    tasks = [(task, group_rows(task, rows)) for task in TASKS[gold.manifest["published"]["tasks"][0]]]
    languages = {row["language"] for row in rows}

    def write(model: Model, path: Path) -> Path:
        for task, included in tasks:
            if (model is nearest) != bool(task.target) and model is not majority:
                continue  # only `majority` predicts both labels and texts
            (path / task.name.upper()).mkdir(parents=True)
            train = _inputs(task, included, TRAIN)
            for language in sorted({row["language"] for row in included if row["split"] == TEST}):
                test = [document for document in _inputs(task, included, TEST) if document.language == language]
                lines = [_line(task, scores) for scores in model(_problem(train, test, seed=seed))]
                name = f"{published_code(language, languages)}{SUFFIX}"
                (path / task.name.upper() / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    sizes = ", ".join(f"{task.name.upper()} {len(_inputs(task, part, TRAIN)):,}" for task, part in tasks)
    trained = ", ".join(sorted({row["language"] for row in rows if row["split"] == TRAIN}))
    summary = f"Learnt from the split {TRAIN} in {trained} ({sizes}); measured on the test files of all languages."
    kinds = {bool(task.target) for task, _ in tasks}
    return Plan(
        {**(TEXT_MODELS if True in kinds else {}), **(LABEL_MODELS if False in kinds else {})}, write, [summary]
    )


def _inputs(task: XglueTask, rows: Sequence[Mapping[str, Any]], split: str) -> list[Document]:
    return [
        Document(
            row["id"],
            row["language"],
            "\n".join(row[name] for name in task.inputs),
            (cell(row[task.target or LABEL]),),
        )
        for row in rows
        if row["split"] == split
    ]


def _line(task: XglueTask, scores: Scores) -> str:
    """Return a prediction's line: a label, text or, for a page, its expected grade."""
    if task.together:
        return f"{sum(float(label) * score for label, score in scores.items()):.{DIGITS}f}"
    return best(scores)


# --- replies to messages


def _plan_replies(gold: PublishedSet) -> Plan:
    tests = suggested_replies.read_tests(gold)
    train = {language: suggested_replies.read_pairs(gold, TRAIN, language) for language in tests}
    trained = [language for language in tests if train[language]]
    if not trained:
        raise EvaluationError(f"The set {gold.name} has no pairs in the split {TRAIN} to learn from.")

    def write(model: Model, path: Path) -> Path:
        path.mkdir()
        for language in trained:
            pairs = tests[language].pairs
            training, test = (
                [Document(f"{number}", language, message, (reply,)) for number, (message, reply) in enumerate(rows)]
                for rows in (train[language], pairs)
            )
            lines = [
                "\t".join([*pair, *sorted(scores, key=lambda reply: (-scores[reply], reply))[:3]]) + "\n"
                for pair, scores in zip(pairs, model(_problem(training, test)), strict=True)
            ]
            (path / f"{language}{OF_LANGUAGE}").write_text("".join(lines), encoding="utf-8")
        return path

    sizes = ", ".join(f"{language} {len(train[language]):,}" for language in trained)
    return Plan(TEXT_MODELS, write, [f"Learnt from the pairs of {TRAIN} ({sizes}); measured on {TEST}."])
