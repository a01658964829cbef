"""Draws with several seeds from one stream, read, exported and evaluated. Prints a line of JSON per seed and rule.

Arguments: TRUTH SIZE SLIP ADJUDICATOR_SLIP WRONG_KEYS RULES SEEDS...
RULES: "confirmed", "single" or both: what becomes of an answer in a language other than the queue's.
"""

import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import django

django.setup()

from django.db import transaction  # noqa: E402
from django.db.models import F, OuterRef, Subquery  # noqa: E402

from annotate.core import stages  # noqa: E402
from annotate.evaluation.measures import WITH_UND  # noqa: E402
from annotate.evaluation.posts import evaluate  # noqa: E402
from annotate.evaluation.subjects import (  # noqa: E402
    Subject,
    read_sets,
    subject_of_corpus,
)
from annotate.goldsets.exporter import export  # noqa: E402
from annotate.kinds import KINDS  # noqa: E402
from annotate.kinds.files import MODULES  # noqa: E402
from annotate.models import Judgment, Task, Transition, Unit  # noqa: E402
from annotate.work import task_creation  # noqa: E402
from benchmarks import audits_work  # noqa: E402
from benchmarks.audits_work import ADJUDICATORS, Crew, Frame, RolledBack  # noqa: E402
from benchmarks.place import BenchmarkFailed  # noqa: E402
from benchmarks.stream import Figure  # noqa: E402
from benchmarks.world import label_of  # noqa: E402
from corpora.core.languages import ARTICLE_LABELS, UND, confusable_with  # noqa: E402
from corpora.models import Corpus  # noqa: E402
from corpora.predictions.prediction_import import import_predictions  # noqa: E402
from corpora.predictions.prediction_rows import coarse_by_label  # noqa: E402

VOTER, OTHER = "fasttext", "other"
OTHER_RIGHT = 0.96  # accuracy of the predictor that did not vote


def predictions(truth: Mapping[str, str], seed: str) -> dict[str, str]:
    """Return the labels of a predictor that did not vote: mostly the truth. Half of the others are languages that are
    easily confused with it, if there are any, and the rest are drawn by their share of the stream."""
    chance = random.Random(f"{seed} predictions")
    labels = {key: label_of(language) for key, language in truth.items()}
    common = Counter(labels.values())
    predicted = {}
    for key, label in labels.items():
        others = Counter({label: 1})
        if chance.random() >= OTHER_RIGHT:
            near = Counter(sorted(confusable_with(label) & set(ARTICLE_LABELS)))
            others = near if near and chance.random() < 0.5 else common - Counter({label: common[label]})
        predicted[key] = chance.choices(list(others), list(others.values()))[0]
    return predicted


def import_other(corpus: Corpus, truth: Mapping[str, str], seed: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "other.jsonl"
        rows = predictions(truth, seed).items()
        path.write_text("".join(json.dumps({"id": key, "label": label}) + "\n" for key, label in rows))
        import_predictions(corpus.name, path, name=OTHER, version="1", declared={})


class Truth:
    """The true figures of one predictor on all posts of a stream."""

    def __init__(self, subject: Subject, truth: Mapping[str, str]) -> None:
        fold = coarse_by_label([subject.mapping])
        codes = subject.labels(tuple(truth))
        labels = {key: label_of(language) for key, language in truth.items()}
        self.pairs = Counter((fold.get(labels[key], labels[key]), fold.get(codes[key], codes[key])) for key in truth)

    def accuracy(self, *, with_und: bool) -> float | None:
        return self._right({pair: n for pair, n in self.pairs.items() if with_und or pair[0] != UND})

    def recall(self, label: str) -> float | None:
        return self._right({pair: n for pair, n in self.pairs.items() if pair[0] == label})

    def precision(self, label: str, *, with_und: bool) -> float | None:
        return self._right(
            {pair: n for pair, n in self.pairs.items() if pair[1] == label and (with_und or pair[0] != UND)}
        )

    @staticmethod
    def _right(pairs: Mapping[tuple[str, str], int]) -> float | None:
        total = sum(pairs.values())
        return sum(n for (true, predicted), n in pairs.items() if true == predicted) / total if total else None


# Kind, label, posts read, estimate, truth.
Estimate = tuple[str, str, int, Mapping[str, Any], float | None]


PRECISIONS = {"precision": "precision with und", "precision_without_und": "precision without und"}


def of_report(report: Mapping[str, Any], truth: Truth, who: str, read: int) -> Iterator[Estimate]:
    """Yield the figures of a report. read: how many posts of the set people have read."""
    for row in report["rows"]:
        measure, label = row["measure"], row["of"].get("label", "")
        if measure == "accuracy":
            posts = row["of"]["posts"]
            yield f"{who}, accuracy {posts}", "", read, row, truth.accuracy(with_und=posts == WITH_UND)
        elif measure == "recall":
            yield f"{who}, recall", label, row["units"], row, truth.recall(label)
        elif measure in PRECISIONS:
            true = truth.precision(label, with_und=measure == "precision")
            yield f"{who}, {PRECISIONS[measure]}", label, row["units"], row, true


def of_audit(audit: Mapping[str, Any], frame: Frame) -> Iterator[Estimate]:
    rows = audit["languages"]
    true = frame.wrong.total() / frame.posts.total()
    yield "error of agreement, in all", "", sum(row["audited"] for row in rows), audit["overall"], true
    for row in rows:
        label = row["language"]
        true = frame.wrong[label] / frame.posts[label]
        yield "error of agreement, by language", label, row["audited"], row["error"], true


def measured(task: Task, truth: Mapping[str, str], frame: Frame, seed: str, folder: Path) -> dict[str, Any]:
    """Export a finished task to the folder, and return all figures. Raise BenchmarkFailed if it is not finished."""
    if waiting := task.units.exclude(stage__in=stages.FINISHED).count():
        raise BenchmarkFailed(f"{waiting:,} units still wait for people.")
    manifest = export(task, folder)
    sets = read_sets([folder], allow_erased=False, unfinished=False)
    read = sum(row.stratum != "agreed" for row in sets[0].rows)
    figures = list(of_audit(manifest["audit"], frame))
    for who, spelled in (("voted", VOTER), ("did not vote", f"{OTHER}@1")):
        subject = subject_of_corpus(sets[0].corpus, spelled)
        figures += of_report(evaluate(subject, sets), Truth(subject, truth), who, read)
    return {
        "seed": seed,
        "languages": len(set(truth.values())),
        "read": read,
        "judgments": Judgment.objects.filter(unit__task=task).count(),
        "seconded": manifest["checks"]["adjudicators"]["seconded"],
        **_elsewhere(task, truth),
        "figures": [
            Figure(seed, kind, label, posts, estimate["value"], estimate["low"], estimate["high"], true)
            for kind, label, posts, estimate, true in figures
            if estimate["value"] is not None
        ],
    }


def _elsewhere(task: Task, truth: Mapping[str, str]) -> dict[str, int]:
    """elsewhere: posts for which a reader named a language other than the queue's, without those of the audit, which an
    adjudicator decides in any case; elsewhere_wrong: how many of their labels are wrong; further: answers, skips and
    decisions after posts were sent on for confirmation, without decisions on posts of the audit.
    """
    answers = Judgment.objects.filter(unit__task=task, unit__honeypot=False, kind=Judgment.ANSWER, voided_at=None)
    answers = answers.exclude(label=UND).exclude(label=F("lease__queue"))
    elsewhere = Unit.objects.filter(pk__in=answers.values("unit"), audited=False)
    sent = Transition.objects.filter(unit__task=task, event="named")
    return {
        "elsewhere": elsewhere.count(),
        "elsewhere_wrong": sum(
            label_of(truth[key]) != label
            for key, label in elsewhere.filter(stage=stages.LABELLED).values_list("item__key", "label")
        ),
        "further": Judgment.objects.filter(unit__in=sent.values("unit"))
        .exclude(unit__audited=True, kind__in=[Judgment.SETTLE, Judgment.DISCARD])
        .filter(pk__gt=Subquery(sent.filter(unit=OuterRef("unit")).values("judgment")[:1]))
        .count(),
    }


@contextmanager
def following(rule: str) -> Iterator[None]:
    """Use a rule for answers in another language. confirmed: that of Assay; single: the answer is final."""
    kind = KINDS["language"]
    if rule == "single":
        MODULES["language"] = kind.with_parts(routing={"named": lambda label: ""})
    try:
        yield
    finally:
        MODULES["language"] = kind


def main(arguments: list[str]) -> None:
    path, size, slip, adjudicator_slip, wrong_keys, rules, *seeds = arguments
    truth = json.loads(Path(path).read_text())
    corpus = Corpus.objects.get(name=audits_work.NAME)
    import_other(corpus, truth, seeds[0])
    frame = None
    for seed, rule in product(seeds, rules.split()):
        try:
            with following(rule), transaction.atomic(), tempfile.TemporaryDirectory() as folder:
                task = task_creation.open_task("stream", corpus, KINDS["language"], size=int(size), seed=seed).task
                frame = frame or Frame(task, truth)
                crew = Crew(truth, float(slip), float(adjudicator_slip), seed, wrong_keys.split())
                audits_work.work(task, crew, ADJUDICATORS)
                figures = measured(task, truth, frame, seed, Path(folder) / "gold")
                print(json.dumps({"rule": rule, **figures}), flush=True)
                raise RolledBack
        except RolledBack:
            continue


if __name__ == "__main__":
    main(sys.argv[1:])
