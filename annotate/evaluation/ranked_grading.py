"""Ranked labels of documents, measured: P@K, R@K, RP@K and nDCG@K for all labels and for each bucket, and precision,
recall and F1 of those that are taken for the answer; and two systems, by what they say of the same documents.

The report is one dict that JSON can hold, like that of evaluate.py; reports/ranked_report.py says it in words.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotate.core import ranked_labels as measures
from annotate.core.comparing import Difference, holm
from annotate.core.ranked_labels import Answered, Judged, Micro, Share
from annotate.core.splits import TEST
from annotate.evaluation.given import EvaluationError
from annotate.evaluation.prediction_files import PublishedSet, unfinished_ones
from annotate.evaluation.ranked_sets import LabelledDocuments, read_documents
from annotate.evaluation.trec_run import Run, read_run
from annotate.reports import ranked_report
from annotate.reports.ranked_report import ALL, ANSWERS, AT, PLAIN, TESTED, WIDENED

FIRST = 5  # labels that are taken for an answer; about as many as a document of EURLEX57K has


@dataclass(frozen=True)
class System:
    """What a system says of the documents measured. groups: ALL or a bucket -> those that have gold labels of it.
    answers: PLAIN, WIDENED -> what is taken for its answers, to all documents."""

    run: Run
    groups: Mapping[str, Sequence[Judged]]
    answers: Mapping[str, Sequence[Answered]]


def grade(
    predictions: Path,
    sets: Sequence[PublishedSet],
    against: Path | None = None,
    *,
    split: str | None = None,
    first: int | None = None,
    threshold: float | None = None,
    frequent_over: int | None = None,
) -> dict[str, Any]:
    """The report. split: whose documents are measured, TEST unless another is named. first, threshold: an answer is so
    many first labels, FIRST of them, or those with such a score. frequent_over: counts the buckets anew.

    EvaluationError if the runs do not fit the set.
    """
    if len(sets) > 1:
        raise EvaluationError(
            f"{len(sets)} sets of documents are given, and a run is for one; measure on each by itself."
        )
    if first is not None and threshold is not None:
        raise EvaluationError(
            "--first and --threshold both say which labels are taken for a document's answer; give one of them."
        )
    if against and against.resolve() == predictions.resolve():
        raise EvaluationError(f"{predictions} cannot be compared with itself; name another run with --against.")
    [gold] = sets
    documents = read_documents(gold, frequent_over)
    truth = _truth(gold, documents, split or TEST)
    first = FIRST if threshold is None and first is None else first

    def system(path: Path) -> System:
        return _system(_read(path, truth, documents), truth, documents, first, threshold)

    systems = [system(path) for path in (predictions, against) if path]
    names = _names([path for path in (predictions, against) if path], systems)
    seed = f"{gold.digest}:{split or TEST}"
    return {
        "kind": ranked_report.KIND,
        "predictor": _described(names[0]),
        "gold": [gold.described()],
        "vocabulary": gold.manifest["published"]["vocabulary"],
        "split": split or TEST,
        "documents": len(truth),
        "unlabelled": sum(not labels for labels in truth.values()),
        "frequent_over": documents.frequent_over,
        "first": first,
        "threshold": threshold,
        "groups": [_group(name, each, documents) for name, each in systems[0].groups.items()],
        "answers": {name: _micro(measures.micro(each, seed=seed)) for name, each in systems[0].answers.items()},
        "comparison": _comparison(*systems, name=names[1], seed=seed) if against else None,
        "told": [f"{name}: {said}" for name, each in zip(names, systems, strict=True) for said in each.run.sentences()],
        "warnings": unfinished_ones(sets),
    }


def _truth(gold: PublishedSet, documents: LabelledDocuments, split: str) -> Mapping[str, frozenset[str]]:
    if split in documents.splits:
        return documents.splits[split]
    there = ", ".join(sorted(documents.splits)) or "no documents at all"
    raise EvaluationError(
        f"The set {gold.name} in {gold.folder} has no documents in the split {split}, only in: {there}; name another "
        "with --split, or export the set with one."
    )


def _read(path: Path, truth: Mapping[str, Any], documents: LabelledDocuments) -> Run:
    if path.is_dir():
        raise EvaluationError(
            f"{path} is a folder, and ranked labels are in one file, a TREC run with a line for each label of each "
            "document; name that file."
        )
    return read_run(path, truth, documents.parents)


def _system(
    run: Run,
    truth: Mapping[str, frozenset[str]],
    documents: LabelledDocuments,
    first: int | None,
    threshold: float | None,
) -> System:
    rankings = run.rankings()
    judged = [Judged(labels, rankings[key]) for key, labels in truth.items()]
    if threshold is None:
        assert first is not None
        answers = measures.first_of(judged, first)
    else:
        answers = [Answered(labels, measures.above(run.scores[key], threshold)) for key, labels in truth.items()]
    groups = {ALL: measures.with_gold(judged)}
    groups |= {name: measures.within(judged, labels) for name, labels in documents.buckets.items()}
    return System(run, groups, {PLAIN: answers, WIDENED: measures.widened(answers, documents.parents)})


def _names(paths: Sequence[Path], systems: Sequence[System]) -> list[str]:
    """What the report calls the systems: as their runs do, or by the files' names or paths where these are the same."""
    ways: tuple[Callable[[int], str], ...] = (
        lambda n: systems[n].run.system,
        lambda n: paths[n].name,
        lambda n: str(paths[n]),
    )
    found = [[way(n) for n in range(len(paths))] for way in ways]
    return next((names for names in found if len(set(names)) == len(names)), found[-1])


def _described(name: str) -> dict[str, str]:
    return {"name": name, "version": "", "spelled": name}


# --- one system


def _group(name: str, judged: Sequence[Judged], documents: LabelledDocuments) -> dict[str, Any]:
    found = measures.means(judged)
    sizes = {bucket: len(labels) for bucket, labels in documents.buckets.items()}
    return {
        "of": name,
        "labels": sizes.get(name, sum(sizes.values())),
        "documents": len(judged),
        "at": _by_k({measure: [each.as_dict() for each in of_each] for measure, of_each in found.items()}),
    }


def _by_k(found: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """A row for each K from 1 on, with what each measure has there."""
    return [
        {"k": k} | dict(zip(found, values, strict=True))
        for k, values in enumerate(zip(*found.values(), strict=True), 1)
    ]


def _micro(found: Micro) -> dict[str, Any]:
    told = found._asdict()
    return {name: each._asdict() if isinstance(each, Share) else each for name, each in told.items()}


# --- two systems


def _comparison(first: System, second: System, *, name: str, seed: str) -> dict[str, Any]:
    groups = []
    for of, ones in first.groups.items():
        found = measures.differences(ones, second.groups[of])
        told = {measure: [each and _apart(each) for each in of_each] for measure, of_each in found.items()}
        groups.append({"of": of, "documents": len(ones), "at": _by_k(told)})
    answers = {
        which: {
            share: _of_share(each)
            for share, each in measures.micro_differences(ones, second.answers[which], seed=seed).items()
        }
        for which, ones in first.answers.items()
    }
    tested = [*_tested_at(first, second, groups, seed), *_tested_answers(first, second, answers, seed)]
    for row, p_holm in zip(tested, holm([row["p"] for row in tested]), strict=True):
        row["p_holm"] = p_holm
    return {"other": _described(name), "groups": groups, "answers": answers, "tested": tested}


def _tested_at(first: System, second: System, groups: Sequence[Mapping[str, Any]], seed: str) -> list[dict[str, Any]]:
    """RP and nDCG at K = AT of each group that has documents."""
    return [
        {
            "of": group["of"],
            "measure": f"{measure}@{AT}",
            "difference": group["at"][AT - 1][measure],
            "p": found[measure],
        }
        for group in groups
        if group["documents"]
        for found in [
            measures.p_values(first.groups[group["of"]], second.groups[group["of"]], AT, seed=f"{seed}:{group['of']}")
        ]
        for measure in TESTED
    ]


def _tested_answers(
    first: System, second: System, answers: Mapping[str, Mapping[str, Any]], seed: str
) -> list[dict[str, Any]]:
    return [
        {
            "of": which,
            "measure": "micro-F1",
            "difference": answers[which]["f1"],
            "p": measures.micro_p_value(first.answers[which], second.answers[which], seed=f"{seed}:{which}"),
        }
        for which in ANSWERS
    ]


def _apart(found: Difference) -> dict[str, Any]:
    return found.as_dict()


def _of_share(found: Share) -> dict[str, Any]:
    if found.value is None or found.low is None or found.high is None:
        return {**found._asdict(), "better": None}
    return _apart(Difference(found.value, found.low, found.high))
