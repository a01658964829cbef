"""Functions that open tasks in which people compare the suggestions of two systems (files in the published format)."""

import json
from pathlib import Path

from annotate.actions.registry import call_command
from annotate.models import Task

CORPUS = "talk"
SAID = {
    "en": "Message {n} of the day",
    "ar": "الرسالة رقم {n} من اليوم",
}


def records(number, languages=("en",)):
    return [
        {"id": f"{code}-{n}", "language": code, "message": SAID[code].format(n=n), "reply": f"reply {n}"}
        for code in languages
        for n in range(number)
    ]


def write_corpus(folder: Path, rows, name=CORPUS) -> None:
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    how = {"fields": "message reply", "licence": "CC0-1.0", "text_may_leave": True, "verbosity": 0}
    call_command("import_corpus", name, str(path), **how)


def write_system(folder: Path, name: str, rows, replies=None) -> Path:
    """Write the suggestions of a system. replies: of a record; by default, three replies that identify the system."""
    path = folder / f"{name}.tsv"
    made = replies or (lambda row: [f"{MARKS[name]} {row['id']} {place}" for place in "xyz"])
    lines = ["\t".join([row["message"], row["reply"], *made(row)]) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


# A word in the replies of each system, which is unrelated to the system's name.
MARKS = {"mt5": "Plum", "bert": "Pear", "seq2seq": "Fig"}


# A fixed secret, so that random draws are the same in every run. Pseudonyms are fixed too (conftest.py).
SECRET = "5ecret"


def open_comparison(
    folder: Path, *systems, number=4, languages=("en",), name="talk", replies=None, secret=SECRET, **options
) -> Task:
    """Open a comparison. secret: the secret of the random draws; empty to keep the task's own."""
    rows = records(number, languages)
    if not (folder / f"{CORPUS}.jsonl").exists():
        write_corpus(folder, rows)
    names = systems or ("mt5", "bert")
    files = [str(write_system(folder, system, rows, (replies or {}).get(system))) for system in names]
    how = {"corpus": CORPUS, "kind": "better_replies", "systems": files, "seed": "1", "verbosity": 0}
    call_command("open_task", name, **(how | options))
    return with_secret(name, secret)


def with_secret(name: str, secret: str = SECRET) -> Task:
    if secret:
        Task.objects.filter(name=name).update(secret=secret)
    return Task.objects.get(name=name)
