"""A task in which units wait, and people who read it: `python -m tests.benchmarks.load_work open UNITS PEOPLE` prints
a name, a password and a token for each. `... said` prints how many answers stand, and on how many units.
"""

import sys

import django

django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.utils import timezone  # noqa: E402
from knox.models import AuthToken  # noqa: E402

from annotate.kinds import KINDS  # noqa: E402
from annotate.models import Annotator, AnnotatorLanguage, Judgment, Transition, Unit  # noqa: E402
from annotate.work.new_task import new_task  # noqa: E402
from corpora.inserting import insert  # noqa: E402
from corpora.models import Corpus, Draw, Item  # noqa: E402

TASK, LANGUAGES = "load", ["en", "de", "es", "fr", "it", "pt", "nl", "sv", "da", "no", "fi", "pl", "cs", "ru", "uk"]
LANGUAGES += ["tr", "ar", "he", "ja", "ko"]
BATCH = 50_000


@transaction.atomic
def open_task(units: int) -> None:
    corpus = Corpus.objects.create(name=TASK)
    task = new_task(TASK, KINDS["language"], "", LANGUAGES, {"audit_share": 0, "audit_least": 0})
    task.save()
    drawn = {"corpus": corpus, "design": "uniform", "seed": "1", "asked": units, "size": units, "frame_size": units}
    task.draws.add(Draw.objects.create(**drawn, parts=1, frame_digest="0" * 64))
    votes = {name: [[code, 0.5]] for name, code in (("langid", "en"), ("cld2", "de"), ("fasttext", "es"))}
    for start in range(0, units, BATCH):
        numbers = range(start, min(units, start + BATCH))
        items = insert(
            Item(corpus=corpus, key=str(n), text=f"This is text number {n}.", votes=votes, letters=17) for n in numbers
        )
        made = insert(
            Unit(
                task=task,
                item=item,
                position=n + 1,
                stage="QUEUED",
                redundancy=1,
                candidates=[LANGUAGES[n % 20]],
                visited=[LANGUAGES[n % 20]],
                round=1,
                language=LANGUAGES[n % 20],
            )
            for n, item in zip(numbers, items, strict=True)
        )
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


def analyze() -> None:
    """What PostgreSQL does by itself after a minute, except where it was made for tests."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")


@transaction.atomic
def invite(people: int) -> None:
    """Each reads all languages."""
    for number in range(people):
        name, password = f"reader{number}", f"a long password {number}"
        annotator = Annotator.objects.create(user=User.objects.create_user(name, password=password))
        AnnotatorLanguage.objects.bulk_create(
            AnnotatorLanguage(annotator=annotator, language=code) for code in LANGUAGES
        )
        _, token = AuthToken.objects.create(annotator.user)
        print(name, token, password, flush=True)


def said() -> None:
    answers = Judgment.objects.live().answers().filter(unit__task__name=TASK)
    print(answers.count(), answers.values("unit").distinct().count())


if __name__ == "__main__":
    if sys.argv[1] == "open":
        open_task(int(sys.argv[2]))
        invite(int(sys.argv[3]))
        analyze()
    else:
        said()
