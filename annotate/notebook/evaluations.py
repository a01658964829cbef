"""Predictions measured on gold sets in a notebook, as the command `evaluate` measures them."""

import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from django.template.loader import render_to_string

from annotate.actions.evaluate import OF_RANKED
from annotate.evaluation import evaluate as evaluating
from annotate.evaluation.given import (
    EvaluationError,
    Subject,
    check_for_files,
    corpus_of,
    of_corpus,
    of_file,
    read_sets,
)
from annotate.evaluation.grading import check_of_posts, check_of_records, grade
from annotate.evaluation.prediction_files import is_published
from annotate.goldsets.manifest import manifest_of
from annotate.notebook.asking import SAID, told
from annotate.notebook.installation import AssayError
from annotate.notebook.rows import Rows, check_pandas, of_dicts
from annotate.reports import mldoc_report, ranked_report, writing
from corpora.core.predictions import read_map
from corpora.files import format_of

if TYPE_CHECKING:
    import pandas as pd

Given = Union[str, os.PathLike[str], Mapping[str, str], "pd.DataFrame"]
OPTION = re.compile("--([a-z][a-z-]*[a-z])")
COLUMNS = ("measure", "of", "language", "name", "value", "low", "high", "posts")
OF_PAIRS = ("measure", "train", "test", "label", "value", "low", "high")
OF_RANKINGS = ("measure", "of", "k", "value", "low", "high", "documents")


def evaluate(
    predictions: Given,
    gold: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    against: Given | None = None,
    measures: Iterable[str] = (),
    mapping: Mapping[str, str | Sequence[str]] | None = None,
    corpus: str = "",
    vanished: Iterable[str] = (),
    unfinished: bool = False,
    allow_erased: bool = False,
    balanced_precision: bool = False,
    split: str | None = None,
    first: int | None = None,
    threshold: float | None = None,
    frequent_over: int | None = None,
    name: str = "This classifier",
) -> "Evaluation":
    """What predictions are worth on gold sets: accuracy, recall, precision by language, as far as the sets tell them,
    each with its 95% interval.

    predictions: the path of a file (id, label); id -> label; a DataFrame with the columns id and label; or the name
    of a predictor of the corpus, such as "fasttext" or "ours@2". Of sets of records: the folder of prediction
    files, or the file of ranked labels, a TREC run; of message-reply pairs the file of suggested replies, or a folder
    of such files. gold: a folder, or several. against: other predictions, compared post by post. measures: of
    accuracy, recall, precision; all that the sets allow if none is named. mapping: what labels mean here:
    {"nb": "no", "zh": ["zh-CN", "zh-TW"]}. corpus: whose predictor is meant, where the sets were imported. vanished:
    ids of posts that are gone. unfinished, allow_erased: measure on a set that is not done, or of which rows were
    erased. balanced_precision: also on recall-oriented sets, as if all languages were equally common. split, first,
    threshold, frequent_over: of ranked labels, as the command has them. name: what the report calls predictions that
    come neither from a file nor from the corpus.

    AssayError for what cannot, or must not, be computed of them.
    """
    folders = [Path(folder).expanduser() for folder in ([gold] if isinstance(gold, str | os.PathLike) else gold)]
    with told(), tempfile.TemporaryDirectory(prefix="assay") as aside:

        def subject(given: Given, name: str) -> Subject:
            if _is_named(given):
                return of_corpus(corpus_of(sets, corpus), given)
            if isinstance(given, str | os.PathLike):
                return of_file(Path(given).expanduser(), declared, sets=sets)
            return of_file(_written(given, Path(aside) / name.replace("/", "-")), declared, format="jsonl", sets=sets)

        try:
            wanted, gone = _known(measures), frozenset(vanished)
            of_posts = {
                "--measure": wanted,
                "--map": mapping,
                "--corpus": corpus,
                "--vanished": gone,
                "--allow-erased": allow_erased,
                "--balanced-precision": balanced_precision,
            }
            choices = {"split": split, "first": first, "threshold": threshold, "frequent_over": frequent_over}
            ranked = {
                option.name: option.value(choices[option.name])
                for option in OF_RANKED
                if choices[option.name] is not None
            }
            if any(_is_of_records(folder) for folder in folders):
                check_of_records([option for option, given in of_posts.items() if given])
                other = None if against is None else _path(against)
                report = grade(_path(predictions), folders, against=other, unfinished=unfinished, chosen=ranked)
                return Evaluation(report)
            check_of_posts([option.spelled for option in OF_RANKED if option.name in ranked])
            labels = [predictions] if against is None else [predictions, against]
            check_for_files(["--map"] if mapping else [], files=not all(map(_is_named, labels)))
            sets = read_sets(folders, allow_erased=allow_erased, unfinished=unfinished)
            declared = read_map(f"{label}={_targets(means)}" for label, means in (mapping or {}).items())
            report = evaluating.evaluate(
                subject(predictions, name),
                sets,
                against=None if against is None else subject(against, "The other one"),
                vanished=gone,
                measures=wanted,
                balanced=balanced_precision,
            )
        except SAID as error:
            said = str(error).replace(f"{aside}{os.sep}", "")
            raise AssayError(OPTION.sub(_as_here, said)) from None
    return Evaluation(report)


def _is_named(given: Given) -> bool:
    """Whether it is the name of a predictor of a corpus."""
    return isinstance(given, str) and not (format_of(Path(given)) or Path(given).exists())


def _as_here(option: re.Match[str]) -> str:
    """An option of the command, as it is called here."""
    name = option[1].replace("-", "_")
    return {"map": "mapping", "measure": "measures"}.get(name, name)


def _is_of_records(folder: Path) -> bool:
    return is_published(manifest_of(folder))


def _path(predictions: Given) -> Path:
    if isinstance(predictions, str | os.PathLike):
        return Path(predictions).expanduser()
    raise EvaluationError(
        "A set of records is measured on with a folder of prediction files, or with a run of ranked labels; give its "
        "path."
    )


def _known(measures: Iterable[str]) -> list[str]:
    listed = [measures] if isinstance(measures, str) else list(measures)
    if strange := [measure for measure in listed if measure not in evaluating.MEASURES]:
        raise EvaluationError(f"There is no measure {strange[0]!r}; there is: {', '.join(evaluating.MEASURES)}.")
    return listed


def _targets(means: str | Sequence[str]) -> str:
    return means if isinstance(means, str) else ",".join(means)


def _written(given: Any, path: Path) -> Path:
    """Predictions from memory as a file, so that they are read by the rules that hold for files."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps({'id': key, 'label': label})}\n" for key, label in _pairs(given))
    return path


def _pairs(given: Any) -> Iterator[tuple[Any, Any]]:
    """id and label of each row, numbers of NumPy as Python's."""
    if isinstance(given, Mapping):
        rows: Iterable[tuple[Any, Any]] = given.items()
    elif {"id", "label"} <= set(getattr(given, "columns", ())):
        rows = zip(given["id"], given["label"], strict=True)
    else:
        raise EvaluationError(
            "Predictions are the path of a file, a dict of id -> label, a DataFrame with the columns id and label, or "
            f"the name of a predictor; what was given is of the type {type(given).__name__}."
        )
    for key, label in rows:
        yield _plain(key), _plain(label)


def _plain(value: Any) -> Any:
    if isinstance(value, str | int | float | bool | None):
        return value
    return value.item() if hasattr(value, "item") else str(value)


class Evaluation:
    """What came of an evaluation: a table in a notebook, the text of the command where it is printed."""

    def __init__(self, report: dict[str, Any]) -> None:
        self._report = report

    def to_dict(self) -> dict[str, Any]:
        """The whole report, as report.json has it."""
        copied: dict[str, Any] = json.loads(json.dumps(self._report))
        return copied

    @property
    def figures(self) -> Rows:
        """The estimates, a row each: measure (accuracy, recall, precision …), of (which posts: with_und, without_und;
        naive ones take agreement for the truth), language ("" for all together) and its name, value, low and high (a
        95% interval; shares between 0 and 1, null where nothing was measured), posts that it rests on.

        Of balanced sets of documents: measure (accuracy, recall; mean, transfer: the means of accuracy with and without
        the diagonal), train and test language ("" for all), label (of recall), value, low and high.

        Of ranked labels: measure (P, R, RP, nDCG; precision, recall, f1 of the answers), of (all, frequent, few, zero;
        of the answers plain, with_ancestors), k (0 for answers), value, low and high, documents.

        Of suggested replies: measure (replies), of (weighted, rouge1 …, dist1, dist2, p1, mrr), language ("" for all
        together) and its name, value, low and high, posts: the examples.
        """
        if self._report["kind"] == ranked_report.KIND:
            return of_dicts(list(_figures_of_rankings(self._report)), OF_RANKINGS, "figures")
        if self._report["kind"] == mldoc_report.KIND:
            return of_dicts(list(_figures_of_pairs(self._report)), OF_PAIRS, "figures")
        return of_dicts(list(_figures(self._report)), COLUMNS, "figures")

    def to_pandas(self) -> "pd.DataFrame":
        """`figures` as a DataFrame. AssayError where pandas is not installed."""
        check_pandas()
        return self.figures.to_pandas()

    def __repr__(self) -> str:
        return writing.as_text(self._report)

    def _repr_html_(self) -> str:
        return render_to_string("annotate/report_in_notebook.html", writing.as_context(self._report))


def _figures(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for measure, found in report.items():
        if not isinstance(found, Mapping):
            continue
        for row in (found, *(found.get("languages") or ())):
            if not isinstance(row, Mapping):
                continue
            for of, estimate in row.items():
                if isinstance(estimate, Mapping) and {"value", "low", "high"} <= estimate.keys():
                    told = {"language": row.get("language", ""), "name": row.get("name", "")}
                    posts = estimate.get("posts", row.get("rows"))
                    shares = {key: estimate[key] for key in ("value", "low", "high")}
                    yield {"measure": measure, "of": of, **told, **shares, "posts": posts}


def _figures_of_pairs(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    accuracy = report["accuracy"]
    means = [
        ("", "", accuracy["means"]),
        *((row["language"], "", row) for row in accuracy["by_train"]),
        *(("", row["language"], row) for row in accuracy["by_test"]),
    ]
    for measure, found in (("accuracy", accuracy["pairs"]), ("recall", report["recall"])):
        for row in found:
            yield _figure(measure, row["train"], row["test"], row.get("label", ""), row["estimate"])
    for measure, key in (("mean", "all"), ("transfer", "transfer")):
        for train, test, row in means:
            yield _figure(measure, train, test, "", row[key])


def _figures_of_rankings(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for group in report["groups"]:
        for row in group["at"]:
            for measure in ranked_report.MEASURES:
                told = {"measure": measure, "of": group["of"], "k": row["k"], "documents": group["documents"]}
                yield told | {key: row[measure][key] for key in ("value", "low", "high")}
    for of, found in report["answers"].items():
        for measure in ranked_report.SHARES:
            yield {"measure": measure, "of": of, "k": 0, "documents": report["documents"]} | found[measure]


def _figure(measure: str, train: str, test: str, label: str, estimate: Mapping[str, Any]) -> dict[str, Any]:
    told = {"measure": measure, "train": train, "test": test, "label": label}
    return told | {key: estimate[key] for key in ("value", "low", "high")}
