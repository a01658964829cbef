"""Audits with several seeds on one frame. Prints a line of JSON for each seed.

Arguments: TRUTH SIZE SLIP ADJUDICATOR_SLIP LIMIT SEEDS...
"""

import json
import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import django

django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.db import transaction  # noqa: E402

from annotate.controls import agreement_audit as contesting  # noqa: E402
from annotate.controls import audit_report  # noqa: E402
from annotate.core import stages  # noqa: E402
from annotate.core.estimation.label_errors import Audit, error, overall_error  # noqa: E402
from annotate.core.estimation.proportions import Stratum, proportion, stratified  # noqa: E402
from annotate.kinds import Answer  # noqa: E402
from annotate.kinds.language import LEAST_LETTERS  # noqa: E402
from annotate.models import Annotator, AnnotatorLanguage, Job, Judgment, Task, Unit  # noqa: E402
from annotate.work import adjudication, judgments, queue, routing  # noqa: E402
from annotate.work.routes import Routes  # noqa: E402
from benchmarks.whole_run import NAME  # noqa: E402
from benchmarks.world import Reader, label_of, people  # noqa: E402
from corpora.core.languages import LANGUAGES, UND  # noqa: E402
from corpora.core.voters import (  # noqa: E402
    DEFAULT,
    agreed_label,
    agreed_vote,
)
from corpora.engines import open_store  # noqa: E402
from corpora.models import Corpus  # noqa: E402
from tests.annotate.acts import open_task  # noqa: E402

READERS = 60
# The first makes all first decisions, and the others make further ones.
ADJUDICATORS = ("adjudicator", "second adjudicator", "third adjudicator")


class RolledBack(Exception):
    """Raised to roll back the work for one seed."""


class Crew:
    """The answers of readers and adjudicators. Each depends only on the seed, the person's name and the post."""

    def __init__(
        self, truth: dict[str, str], slip: float, adjudicator_slip: float, seed: str, wrong_keys: Sequence[str] = ()
    ) -> None:
        self.truth, self.slip, self.adjudicator_slip, self.seed = truth, slip, adjudicator_slip, seed
        self.wrong_keys = wrong_keys
        self.readers = people(READERS, seed)

    def answer(self, reader: Reader, lease, labels: list[str]) -> Answer | None:
        key = lease.unit.item.key
        language = self.truth[key]
        chance = random.Random(f"{self.seed} {reader.name} {key}")
        readable = [label for label in labels if label in reader.languages] or labels
        slips = chance.random() < self.slip
        if slips and self.wrong_keys:
            return Answer(chance.choice([label for label in self.wrong_keys if label != language]))
        if language in reader.languages:
            others = [label for label in reader.languages if label != language]
            wrong = readable[0] if readable[0] != language else chance.choice(others or [UND])
            return Answer(wrong if slips else language)
        if slips:
            return Answer(readable[0])
        return Answer(UND, "unlisted", language) if language in reader.recognises else None

    def decision(self, name: str, unit: Unit) -> str:
        chance = random.Random(f"{self.seed} {name} {unit.item.key}")
        label = label_of(self.truth[unit.item.key])
        if chance.random() < self.adjudicator_slip:
            listed = [*unit.task.labels, UND]
            likely = [code for code in [*unit.candidates, UND] if code != label and code in listed]
            return chance.choice(likely or unit.task.labels)
        return label


def work(task: Task, crew: Crew, adjudicators: Sequence[str] = ADJUDICATORS[:1]) -> None:
    """Let readers and adjudicators finish all units, including those that an audit sends to people later."""
    deciding = {
        name: Annotator.objects.create(user=User.objects.create(username=name), adjudicates=True)
        for name in adjudicators
    }
    annotators = {}
    for reader in crew.readers:
        annotators[reader] = Annotator.objects.create(user=User.objects.create(username=reader.name))
        for language in reader.languages:
            AnnotatorLanguage.objects.create(annotator=annotators[reader], language=language, level=5)
    routes = Routes.load(task)
    while task.units.filter(stage__in=(stages.QUEUED, stages.ADJUDICATION)).exists():
        for reader, annotator in annotators.items():
            while lease := queue.take(annotator, task):
                answer = crew.answer(reader, lease, routes.labels[lease.queue])
                if answer:
                    judgments.judge(annotator, lease.pk, answer)
                else:
                    judgments.skip(annotator, lease.pk)
        if not task.units.filter(stage=stages.QUEUED).exists():
            for name, adjudicator in deciding.items():
                for unit in adjudication.to_adjudicate(task, adjudicator):
                    adjudication.settle(adjudicator, unit.pk, Answer(crew.decision(name, unit), "Dictionary"))
        else:
            routing.reroute(task)
        if Job.objects.contesting(task).exists():
            Job.objects.contesting(task).delete()
            contesting.contest_all(task)


def unadjudicated(task: Task) -> dict[str, Audit]:
    """Return the audits as if the first reader's answer were final. Skipped posts are omitted."""
    answers: dict[int, str] = {}
    for unit, label in (
        Judgment.objects.filter(unit__task=task, kind="answer").order_by("pk").values_list("unit", "label")
    ):
        answers.setdefault(unit, label)
    counts: dict[str, Counter[str]] = {}
    for pk, copy_of, label in task.units.filter(audited=True).values_list("pk", "copy_of", "agreed_label"):
        answer = answers.get(copy_of or pk)
        verdict = "unresolved" if answer is None else "confirmed" if answer == label else "doubted"
        counts.setdefault(label, Counter())[verdict] += 1
    posts = audit_report.audit_counts(task)
    return {
        label: Audit(
            posts=posts[(label,)][0],
            doubted=count["doubted"],
            doubted_wrong=count["doubted"],
            confirmed=count["confirmed"],
            checked=0,
            checked_wrong=0,
            unresolved=count["unresolved"],
        )
        for label, count in counts.items()
    }


def is_right(code: str | None, label: str) -> bool:
    return label in (code or UND, *(LANGUAGES[code].labels if code else ()))


def first(votes: dict, detector: str) -> str | None:
    return votes[detector][0][0] if votes[detector] else None


class Frame:
    """The truth about the posts of the frame: the errors of agreement by label, and each detector's accuracy."""

    def __init__(self, task: Task, truth: dict[str, str]) -> None:
        self.posts: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()
        self.right: Counter[str] = Counter()
        self.size = len(truth)
        policy = {"labels": task.labels, "never_agree": task.never_agree, "least_letters": LEAST_LETTERS}
        with open_store(NAME) as store:
            for batch in store.query("draw_uniform", "", self.size, 0):
                for row in batch.to_pylist():
                    votes = {name: [[vote["language"], vote["score"]] for vote in row[name]] for name in DEFAULT.voters}
                    label = label_of(truth[row["id"]])
                    self.right.update(name for name in DEFAULT.voters if is_right(first(votes, name), label))
                    if agreed := agreed_label(agreed_vote(votes, DEFAULT), row["letters"], **policy):
                        self.posts[agreed] += 1
                        self.wrong[agreed] += agreed != label


def accuracy(task: Task, frame: Frame, detector: str) -> dict:
    """Return the accuracy by stratum, and the naive accuracy with the labels of the set."""
    strata: dict[str, Counter[str]] = {}
    rows = task.units.select_related("item", "copy_of").iterator(chunk_size=2000)
    naive: Counter[bool] = Counter()
    for unit in rows:
        label = (unit.copy_of or unit).label
        if not label:
            continue
        counts = strata.setdefault(unit.agreed_label, Counter())
        right = is_right(first(unit.item.votes, detector), label)
        naive[right] += 1
        counts["drawn"] += 1
        if unit.audited or not unit.agreed_label:
            counts["read"] += 1
            counts["hits"] += right
    estimate = stratified(
        [
            Stratum(drawn=count["drawn"], read=count["read"], domain=count["read"], hits=count["hits"])
            for count in strata.values()
        ]
    )
    return {
        "truth": frame.right[detector] / frame.size,
        "by stratum": estimate.as_dict(),
        "naive": proportion(naive[True], naive.total()).as_dict(),
    }


def measured(task: Task, frame: Frame) -> dict:
    blind, first_word = audit_report.audits(task), unadjudicated(task)
    return {
        "agreed": {label: (posts, frame.wrong[label]) for label, posts in frame.posts.items()},
        "judgments": Judgment.objects.filter(unit__task=task).count(),
        "audited": sum(audit.resolved for audit in blind.values()),
        "overall": {
            "truth": frame.wrong.total() / frame.posts.total(),
            "blind": overall_error(list(blind.values())).as_dict(),
            "not adjudicated": overall_error(list(first_word.values())).as_dict(),
        },
        "languages": [
            {
                "language": label,
                "truth": frame.wrong[label] / frame.posts[label],
                "audited": audit.resolved,
                "blind": error(audit).as_dict(),
                "not adjudicated": error(first_word[label]).as_dict(),
            }
            for label, audit in blind.items()
            if label in first_word
        ],
        "accuracy": {detector: accuracy(task, frame, detector) for detector in DEFAULT.voters},
    }


def main(arguments: list[str]) -> None:
    path, size, slip, adjudicator_slip, limit, *seeds = arguments
    truth = json.loads(Path(path).read_text())
    corpus = Corpus.objects.get(name=NAME)
    frame = None
    for seed in seeds:
        try:
            with transaction.atomic():
                task = open_task("audited", corpus, int(size), seed, audit_limit=float(limit)).task
                frame = frame or Frame(task, truth)
                work(task, Crew(truth, float(slip), float(adjudicator_slip), seed))
                print(json.dumps(measured(task, frame)), flush=True)
                raise RolledBack
        except RolledBack:
            continue


if __name__ == "__main__":
    main(sys.argv[1:])
