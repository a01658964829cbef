"""One run of the benchmark of databases, in a process of its own: `ANNOTATORS SECONDS`; prints JSON."""

import json
import sys
import threading
import time
from statistics import quantiles

import django

django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.db import OperationalError, connection  # noqa: E402

from annotate.actions.registry import call_command  # noqa: E402
from annotate.kinds import Answer  # noqa: E402
from annotate.models import Annotator, AnnotatorLanguage, Task  # noqa: E402
from annotate.work import judgments, queue  # noqa: E402
from annotate.work.unit_entry import add_units  # noqa: E402
from corpora.models import Corpus, Draw, Item  # noqa: E402

UNITS = 20_000
VOTES = {"langid": [["de", 0.9]], "cld2": [["en", 0.9]], "fasttext": [["de", 0.9]]}


def make_task() -> Task:
    corpus = Corpus.objects.create(name="bench")
    items = [Item(corpus=corpus, key=str(n), text=f"text number {n}", letters=40, votes=VOTES) for n in range(UNITS)]
    Item.objects.bulk_create(items, batch_size=1000)
    draw = Draw.objects.create(
        corpus=corpus, design="uniform", seed="1", size=UNITS, parts=1, frame_size=UNITS, frame_digest="0" * 64
    )
    options = {"redundancy": 1, "rounds": 2, "skip_limit": 1, "least_level": 4}
    task = Task.objects.create(name="bench", kind_slug="language", labels=["de", "en"], options=options)
    task.draws.add(draw)
    add_units(task, items)
    return task


def make_annotator(number: int) -> Annotator:
    annotator = Annotator.objects.create(user=User.objects.create(username=f"reader{number}"))
    AnnotatorLanguage.objects.create(annotator=annotator, language="de", level=5)
    return annotator


class Run:
    """The calls of all threads, with the duration of each and the errors."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.end = 0.0
        self.waits: list[float] = []
        self.answers = self.locked = 0
        self.lock = threading.Lock()

    def timed(self, operation, *arguments):
        """Return the operation's result, or None if the database was locked."""
        start = time.monotonic()
        locked = False
        try:
            return operation(*arguments)
        except OperationalError as error:
            if "locked" not in str(error):
                raise
            locked = True
        finally:
            with self.lock:
                self.waits.append(time.monotonic() - start)
                self.locked += locked

    def work(self, annotator: Annotator, task: Task) -> None:
        try:
            while time.monotonic() < self.end:
                lease = self.timed(queue.take, annotator, task)
                if lease is None:
                    continue
                answered = self.timed(judgments.judge, annotator, lease.pk, Answer("de"))
                if answered and time.monotonic() < self.end:
                    with self.lock:
                        self.answers += 1
        finally:
            connection.close()


def main(annotators: int, seconds: float) -> None:
    call_command("migrate", verbosity=0)
    task = make_task()
    people = [make_annotator(number) for number in range(annotators)]
    run = Run(seconds)
    threads = [threading.Thread(target=run.work, args=(person, task)) for person in people]
    run.end = time.monotonic() + seconds
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cuts = quantiles(run.waits, n=100)
    result = {
        "answers_a_second": run.answers / seconds,
        "median_ms": 1000 * cuts[49],
        "p99_ms": 1000 * cuts[98],
        "longest_s": max(run.waits),
        "over_5_s": sum(wait > 5 for wait in run.waits),
        "locked": run.locked,
        "calls": len(run.waits),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
