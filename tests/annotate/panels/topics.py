"""A task about the topics of real sentences (SIB-200) on which three invented classifiers vote."""

import json
import random
from pathlib import Path

from django.conf import settings

from annotate.actions.registry import call_command
from annotate.core.stages import ADJUDICATION, QUEUED
from annotate.kinds import Answer
from annotate.models import Task
from annotate.work.adjudication import settle
from annotate.work.judgments import judge
from annotate.work.queue import take

LANGUAGES = ("de", "en")
FILES = [settings.BASE_DIR / "fixtures" / "topics" / f"sib200.{code}.jsonl" for code in LANGUAGES]
ROWS = [json.loads(line) for file in FILES for line in file.read_text(encoding="utf-8").splitlines()]
TRUTH = {row["id"]: row["topic"] for row in ROWS}
TOPICS = sorted(set(TRUTH.values()))
KIND = """title = "What is the sentence about?"
form = "choice"

[[layout]]
style = "passage"
fields = ["body"]
""" + "".join(f'\n[[answers]]\ncode = "{topic}"\nname = "{topic.capitalize()}"\n' for topic in TOPICS)
VOTERS = ("a", "b", "c")


def predictions(seed="1", accuracy=0.88, correlation=0.3):
    """Return the labels of each voter by id. Where errors are shared, all voters make the same one."""
    rng, labels = random.Random(seed), {voter: {} for voter in VOTERS}
    for key, truth in TRUTH.items():
        others = [topic for topic in TOPICS if topic != truth]
        shared = rng.choice(others) if rng.random() > accuracy else truth
        for by_key in labels.values():
            label = rng.choice(others) if rng.random() > accuracy else truth
            by_key[key] = shared if rng.random() < correlation**0.5 else label
    return labels


def import_topics(folder: Path, name="topics", labels=None) -> None:
    """Import the sentences, and the labels of the voters as predictors a@1, b@1 and c@1."""
    (folder / "topic_panel.toml").write_text(KIND, encoding="utf-8")
    how = {
        "fields": "body",
        "column": ["body=text"],
        "licence": "CC-BY-SA-4.0",
        "text_may_leave": True,
        "source": "SIB-200",
        "verbosity": 0,
    }
    call_command("import_corpus", name, *map(str, FILES), **how)
    for voter, by_key in (labels or predictions()).items():
        file = folder / f"{voter}.tsv"
        file.write_text("id\tlabel\n" + "".join(f"{key}\t{label}\n" for key, label in by_key.items()), encoding="utf-8")
        call_command("import_predictions", name, str(file), name=voter, version="1", verbosity=0)


def open_topics(folder: Path, name="panel", corpus="topics", **options) -> Task:
    usual = {"kind": str(folder / "topic_panel.toml"), "corpus": corpus, "seed": "1", "redundancy": "1"}
    usual |= {"test_items": "0", "gold_share": "0", "on_conflict": ADJUDICATION, "voters": "a b c"}
    call_command("open_task", name, **usual | options, verbosity=0)
    return Task.objects.get(name=name)


def answer_all(task, people, adjudicator, labels=TRUTH):
    """Let people give the true answers until no unit waits, and let the adjudicator decide what they doubt."""
    while task.units.filter(stage__in=(QUEUED, ADJUDICATION)).exists():
        for person in people:
            while lease := take(person, task):
                judge(person, lease.pk, Answer(labels[lease.unit.item.key]))
        for unit in task.units.filter(stage=ADJUDICATION).select_related("item"):
            settle(adjudicator, unit.pk, Answer(labels[unit.item.key], reason="I read it"))
