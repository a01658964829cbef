"""The measurements for the benchmark of adjudications: `python -m benchmarks.adjudications_work CASES` prints them as
JSON.
"""

import json
import statistics
import sys
import time
from datetime import timedelta

import django

django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.test import Client  # noqa: E402
from django.urls import reverse  # noqa: E402
from django.utils import timezone  # noqa: E402

from annotate.models import Annotator, Task, Transition  # noqa: E402
from annotate.work.adjudication import to_adjudicate  # noqa: E402
from benchmarks.answer_work import BACKEND  # noqa: E402
from benchmarks.load_work import analyze, items_of, task_of, unit_of  # noqa: E402
from corpora.database.bulk_rows import insert  # noqa: E402

NAME, TIMES = "cases", 20


def fill(cases: int) -> None:
    """Create the cases, one second apart."""
    task, now = task_of(NAME, cases), timezone.now()
    for items in items_of(task, cases):
        made = insert(unit_of(task, item, 1, stage="ADJUDICATION") for item in items)
        insert(
            Transition(
                unit=unit,
                event=event,
                from_stage=came_from,
                to_stage=to_stage,
                round=1,
                language=unit.language,
                at=now - timedelta(seconds=number),
            )
            for number, unit in enumerate(made)
            for event, came_from, to_stage in (("disputed", "NEW", "QUEUED"), ("exhausted", "QUEUED", "ADJUDICATION"))
        )
    analyze()


def measure() -> dict[str, float]:
    """Return the medians of TIMES measurements (milliseconds)."""
    user = User.objects.create_user("judge", password="-")
    judge, task = Annotator.objects.create(user=user, pseudonym="judge", adjudicates=True), Task.objects.get(name=NAME)
    client = Client(SERVER_NAME="localhost")
    client.force_login(user, backend=BACKEND)
    durations: dict[str, list[float]] = {"the list": [], "decide": [], "the next case": []}
    address = reverse("adjudicate", args=[NAME, to_adjudicate(task, judge).first().pk])
    for _ in range(TIMES):
        _timed(durations["the list"], lambda: client.get(reverse("adjudication", args=[NAME])), 200)
        sent = {"label": "en", "reason": "I read the language"}
        address = _timed(durations["decide"], lambda to=address, what=sent: client.post(to, what), 302).url
        _timed(durations["the next case"], lambda to=address: client.get(to), 200)
    return {name: statistics.median(times) for name, times in durations.items()}


def _timed(times: list[float], ask, status: int):
    began = time.perf_counter()
    answer = ask()
    times.append((time.perf_counter() - began) * 1000)
    if answer.status_code != status:
        raise ValueError(f"{answer.status_code} where {status} was expected")
    return answer


if __name__ == "__main__":
    fill(int(sys.argv[1]))
    print(json.dumps(measure()))
