"""The steps of the benchmark of pages: `python -m benchmarks.pages_work STEP [UNITS]`. All but `fill` print their
measurements as JSON.
"""

import json
import random
import statistics
import sys
import threading
import time
from datetime import timedelta

import django

django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.db import transaction  # noqa: E402
from django.test import Client  # noqa: E402
from django.urls import reverse  # noqa: E402
from django.utils import timezone  # noqa: E402

from annotate.models import Annotator, AnnotatorLanguage, Judgment, Lease, Task, Transition  # noqa: E402
from annotate.quality import agreement_statistics  # noqa: E402
from benchmarks.answer_work import BACKEND  # noqa: E402
from benchmarks.load_work import LANGUAGES, analyze, items_of, task_of, unit_of  # noqa: E402
from benchmarks.pages import EACH  # noqa: E402
from benchmarks.sampling import most_memory  # noqa: E402
from corpora.database.bulk_rows import insert  # noqa: E402

NAME = "read"
PEOPLE = 60
WRONG = 0.3  # at most, of a person's answers
TIMES = 9
EVENTS = {"QUEUED": "disputed", "ADJUDICATION": "exhausted", "LABELLED": "answered"}


@transaction.atomic
def fill(units: int) -> None:
    chance = random.Random("pages")
    people = [_person(f"reader{number}") for number in range(PEOPLE)]
    _person("judge", adjudicates=True)
    User.objects.create_superuser("manager", password="-")
    wrong = {person: chance.random() * WRONG for person in people}
    task, now = task_of(NAME, units, redundancy=EACH), timezone.now()
    for items in items_of(task, units):
        made = insert(unit_of(task, item, EACH, **_stage(int(item.key))) for item in items)
        read = [(unit, person) for unit in made if unit.stage == "LABELLED" for person in chance.sample(people, EACH)]
        at = [now - timedelta(seconds=chance.randrange(30 * 86400)) for _ in read]
        leases = insert(
            Lease(
                unit=unit,
                annotator=person,
                place=place % EACH + 1,
                round=1,
                queue=unit.language,
                opened_at=opened,
                expires_at=opened,
                closed_at=opened,
                outcome="answered",
            )
            for place, ((unit, person), opened) in enumerate(zip(read, at, strict=True))
        )
        insert(
            Judgment(
                unit=unit,
                annotator=person,
                lease=lease,
                kind="answer",
                label=chance.choice(LANGUAGES) if chance.random() < wrong[person] else unit.language,
                comment="It says “so”." if chance.random() < 0.01 else "",
                answered_at=opened,
                active_seconds=4 + chance.random() * 9,
            )
            for (unit, person), opened, lease in zip(read, at, leases, strict=True)
        )
        insert(
            Transition(
                unit=unit,
                event=EVENTS[unit.stage],
                from_stage="NEW" if unit.stage == "QUEUED" else "QUEUED",
                to_stage=unit.stage,
                round=1,
                language=unit.language,
                at=now - timedelta(days=1),
            )
            for unit in made
        )
    analyze()


def _stage(number: int) -> dict[str, str]:
    """Return the stage of a unit: one in ten waits, and one in a thousand waits for an adjudicator."""
    if number % 10 == 9:
        return {"stage": "QUEUED"}
    if number % 1000 == 0:
        return {"stage": "ADJUDICATION"}
    return {"stage": "LABELLED", "label": LANGUAGES[number % len(LANGUAGES)]}


def _person(name: str, **more: bool) -> Annotator:
    person = Annotator.objects.create(user=User.objects.create_user(name, password="-"), pseudonym=name, **more)
    AnnotatorLanguage.objects.bulk_create(AnnotatorLanguage(annotator=person, language=code) for code in LANGUAGES)
    return person


def pages() -> None:
    task, reader = Task.objects.get(name=NAME), Annotator.objects.get(user__username="reader1")
    waiting = task.units.filter(stage="ADJUDICATION").first()
    addresses = {
        "home": ("reader1", reverse("home")),
        "queue": ("reader1", reverse("queue", args=[NAME])),
        "own answers": ("reader1", reverse("answers", args=[NAME])),
        "own answers in all tasks": ("reader1", reverse("history")),
        "words in own answers": ("reader1", reverse("history") + "?q=number"),
        "adjudication": ("judge", reverse("adjudication", args=[NAME])),
        "one for adjudication": ("judge", reverse("adjudicate", args=[NAME, waiting.pk])),
        "all tasks": ("manager", reverse("manage")),
        "people of all tasks": ("manager", reverse("manage-everybody")),
        "hours of a month": ("manager", reverse("manage-hours")),
        "routes": ("manager", reverse("manage-routes")),
        "progress": ("manager", reverse("manage-task", args=[NAME])),
        "people": ("manager", reverse("manage-people", args=[NAME])),
        "a person": ("manager", reverse("manage-person", args=[NAME, reader.pk])),
        "voiding, beforehand": ("manager", reverse("manage-void", args=[NAME, reader.pk])),
        "comments": ("manager", reverse("manage-comments", args=[NAME])),
        "tests": ("manager", reverse("manage-tests", args=[NAME])),
        "agreement, beforehand": ("manager", reverse("manage-agreement", args=[NAME])),
        "agreement": ("manager", reverse("manage-agreement", args=[NAME]) + "?show=1"),
        "admin: annotators": ("manager", reverse("admin:annotate_annotator_changelist")),
    }
    times = {}
    for name, (username, address) in addresses.items():
        client = Client(SERVER_NAME="localhost")
        client.force_login(User.objects.get(username=username), backend=BACKEND)
        first, *then = (_time(client, address) for _ in range(TIMES))
        times[name] = [first, statistics.median(then)]
    print(json.dumps(times))


def _time(client: Client, address: str) -> float:
    """Return the milliseconds until the page shows its figures."""
    began = time.perf_counter()
    while "Refresh" in (answer := client.get(address)):
        for thread in threading.enumerate():
            if thread.name.startswith("counting "):
                thread.join()
    if answer.status_code != 200:
        raise ValueError(f"{address}: {answer.status_code}")
    return (time.perf_counter() - began) * 1000


def agree() -> None:
    """Measure the agreement. The queued language is the truth, because `fill` made the answers from it."""
    task, begun, start = Task.objects.get(name=NAME), most_memory(), time.monotonic()
    languages = task.units.filter(stage="LABELLED").values_list("item__key", "language")
    whole = agreement_statistics.report(task, gold=dict(languages))["all"]
    right = [whole["gold"][name]["value"] for name in ("majority", "dawid_skene")]
    print(json.dumps([time.monotonic() - start, begun, most_memory(), *right]))


if __name__ == "__main__":
    if sys.argv[1] == "fill":
        fill(int(sys.argv[2]))
    else:
        {"pages": pages, "agreement": agree}[sys.argv[1]]()
