"""A task with waiting units, people who read it, and their earlier answers: `python -m benchmarks.load_work COMMAND`.

open UNITS PEOPLE   creates all this (no task if UNITS is 0), and prints each person's name, token and password
new UNITS PEOPLE    does the same without earlier answers
answers             prints how many answers the task has, and how many of them are too many
analyze             has PostgreSQL gather its statistics
"""

import sys
from collections.abc import Iterator
from datetime import timedelta

import django

django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.utils import timezone  # noqa: E402
from knox.models import AuthToken  # noqa: E402

from annotate.kinds import KINDS  # noqa: E402
from annotate.models import Annotator, AnnotatorLanguage, Judgment, Lease, Task, Transition, Unit  # noqa: E402
from annotate.work.task_creation import provisional_task  # noqa: E402
from corpora.database.bulk_rows import insert  # noqa: E402
from corpora.models import Corpus, Draw, Item  # noqa: E402

TASK, EARLIER = "load", "earlier"
LANGUAGES = ["en", "de", "es", "fr", "it", "pt", "nl", "sv", "da", "no", "fi", "pl", "cs", "ru", "uk"]
LANGUAGES += ["tr", "ar", "he", "ja", "ko"]
BATCH = 50_000
ANSWERED = 5_000


@transaction.atomic
def open_task(units: int) -> None:
    task = task_of(TASK, units)
    for items in items_of(task, units):
        made = insert(unit_of(task, item, 1, stage="QUEUED") for item in items)
        insert(
            Transition(
                unit=unit,
                event="disputed",
                from_stage="NEW",
                to_stage="QUEUED",
                round=1,
                language=unit.language,
                at=timezone.now(),
            )
            for unit in made
        )


@transaction.atomic
def answered_before(answers: int) -> None:
    """Add another task with answers, because a database plans as if empty tables stayed small."""
    task, people = task_of(EARLIER, answers), list(Annotator.objects.all())
    now = timezone.now() - timedelta(days=1)
    for items in items_of(task, answers):
        units = insert(unit_of(task, item, 1, stage="LABELLED", label="en") for item in items)
        by = [people[n % len(people)] for n in range(len(units))]
        leases = insert(
            Lease(
                unit=unit,
                annotator=annotator,
                place=1,
                round=1,
                queue=unit.language,
                opened_at=now,
                expires_at=now,
                closed_at=now,
                outcome="answered",
            )
            for unit, annotator in zip(units, by, strict=True)
        )
        insert(
            Judgment(
                unit=unit,
                annotator=annotator,
                lease=lease,
                kind="answer",
                label="en",
                answered_at=now,
                active_seconds=9,
            )
            for unit, annotator, lease in zip(units, by, leases, strict=True)
        )


def task_of(name: str, units: int, **options: int) -> Task:
    corpus = Corpus.objects.create(name=name)
    kind = KINDS["language"]
    task = provisional_task(kind, LANGUAGES, {"audit_share": 0, "audit_least": 0, **options})
    task.name, task.title = name, kind.title
    task.save()
    drawn = {"corpus": corpus, "design": "uniform", "seed": "1", "asked": units, "size": units, "frame_size": units}
    task.draws.add(Draw.objects.create(**drawn, parts=1, frame_digest="0" * 64))
    return task


def items_of(task: Task, number: int) -> Iterator[list[Item]]:
    """Create the items in batches."""
    corpus = task.draws.get().corpus
    votes = {name: [[code, 0.5]] for name, code in (("langid", "en"), ("cld2", "de"), ("fasttext", "es"))}
    for start in range(0, number, BATCH):
        yield insert(
            Item(
                corpus=corpus, key=str(n), text=f"{_language_of(n)}: This is text number {n}.", votes=votes, letters=17
            )
            for n in range(start, min(number, start + BATCH))
        )


def _language_of(number: int) -> str:
    """Return the language of a unit's queue. It is also the answer, or a second person would have to confirm it."""
    return LANGUAGES[number % 20]


def unit_of(task: Task, item: Item, redundancy: int, **state: str) -> Unit:
    number = int(item.key)
    language = _language_of(number)
    return Unit(
        task=task,
        item=item,
        position=number + 1,
        redundancy=redundancy,
        candidates=[language],
        visited=[language],
        round=1,
        language=language,
        **state,
    )


def analyze() -> None:
    """Gather statistics, as PostgreSQL does by itself within minutes."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")


@transaction.atomic
def invite(people: int) -> None:
    """Create people who read all languages."""
    for number in range(people):
        name, password = f"reader{number}", f"a long password {number}"
        annotator = Annotator.objects.create(user=User.objects.create_user(name, password=password))
        AnnotatorLanguage.objects.bulk_create(
            AnnotatorLanguage(annotator=annotator, language=code) for code in LANGUAGES
        )
        _, token = AuthToken.objects.create(annotator.user)
        print(name, token, password, flush=True)


def print_answers() -> None:
    answers = Judgment.objects.live().answers().filter(unit__task__name=TASK)
    work = answers.filter(unit__honeypot=False)
    print(answers.count(), work.count() - work.values("unit").distinct().count())


if __name__ == "__main__":
    if sys.argv[1] in ("open", "new"):
        if units := int(sys.argv[2]):
            open_task(units)
        invite(int(sys.argv[3]))
        if sys.argv[1] == "open":
            answered_before(ANSWERED)
            analyze()
    elif sys.argv[1] == "analyze":
        analyze()
    else:
        print_answers()
