"""A task about moods in which a predictor suggests labels, and people who follow suggestions with a given chance."""

import json
import random
from pathlib import Path

from annotate.actions.commands import call_command
from annotate.controls.suggestions import shown_to
from annotate.kinds import Answer
from annotate.models import Task
from annotate.work.judgments import judge
from annotate.work.queue import take

LABELS = ("glad", "calm", "sad")
KIND = """title = "What is the mood?"
form = "choice"

[[layout]]
style = "passage"
fields = ["diary"]
""" + "".join(f'\n[[answers]]\ncode = "{label}"\nname = "{label.capitalize()}"\n' for label in LABELS)


def true_label(key):
    return LABELS[int(key[1:]) % 3]


def wrong_label(key):
    return LABELS[(int(key[1:]) + 1) % 3]


def prediction(key):
    """The predictor is right on three of four records."""
    return wrong_label(key) if int(key[1:]) // 3 % 4 == 0 else true_label(key)


def write(path, rows, header="id\tlabel\tpurpose"):
    path.write_text("\n".join([header, *("\t".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return path


def import_diary(folder: Path, number=12, predictions=prediction) -> None:
    """Import records and predictions. predictions: function from the id of a record to the predicted label."""
    (folder / "moods.toml").write_text(KIND)
    rows = [{"id": f"d{n}", "language": "en", "diary": f"Dear diary, it is day {n}."} for n in range(number)]
    (folder / "diary.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    how = {"fields": "diary", "licence": "CC0-1.0", "text_may_leave": True, "source": "made", "verbosity": 0}
    call_command("import_corpus", "diary", folder / "diary.jsonl", **how)
    predict(folder, predictions, number=number)


def predict(folder, predictions, name="mine", number=12):
    path = write(folder / f"{name}.tsv", [(f"d{n}", predictions(f"d{n}")) for n in range(number)], "id\tlabel")
    call_command("import_predictions", "diary", path, name=name, version="1", verbosity=0)


def open_moods(folder: Path, name="moods", **options) -> Task:
    """Open a task on the imported records, with suggestions by default."""
    usual = {"kind": str(folder / "moods.toml"), "corpus": "diary", "seed": "1", "test_items": "0", "gold_share": "0"}
    call_command("open_task", name, **usual | {"suggest": ["mine"]} | options, verbosity=0)
    return Task.objects.get(name=name)


def answer_all(task, people, follow, seed="1", accuracy=0.8):
    """Let people answer everything in turn. They follow a suggestion with the probability `follow`."""
    rng, working = random.Random(seed), list(people)
    while working:
        for person in list(working):
            lease = take(person, task)
            if lease is None:
                working.remove(person)
                continue
            key = lease.unit.item.key
            label = true_label(key) if rng.random() < accuracy else rng.choice(LABELS)
            suggestions = shown_to(person, lease.unit)
            if suggestions and rng.random() < follow:
                label = suggestions[0]
            judge(person, lease.pk, Answer(label), active_seconds=0.01)
