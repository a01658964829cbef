"""Answers the units of benchmarks/load_work.py in this process: `python -m benchmarks.answer_work ANSWERS`
prints what an answer costs, as JSON.
"""

import json
import re
import statistics
import sys
import time
from collections import defaultdict
from contextlib import contextmanager
from urllib.parse import urlencode

import django

django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402

from annotate.pages import annotators  # noqa: E402
from annotate.work import judgments, permit  # noqa: E402
from benchmarks.load_work import TASK  # noqa: E402
from benchmarks.server_load.people import has_already  # noqa: E402

BACKEND = "annotate.pages.access.PasswordBackend"
FIRST = 20  # answers that fill caches
took: dict[str, float] = defaultdict(float)
statements: list[tuple[str, tuple, float]] = []


def timed(owner, name: str, part: str) -> None:
    function = getattr(owner, name)

    def run(*args, **how):
        began = time.perf_counter()
        try:
            return function(*args, **how)
        finally:
            took[part] += time.perf_counter() - began

    setattr(owner, name, run)


def watch(execute, sql, params, many, context):
    began = time.perf_counter()
    try:
        return execute(sql, params, many, context)
    finally:
        statements.append((sql, params, time.perf_counter() - began))


def at_work() -> tuple[Client, str, dict[str, str]]:
    client = Client(headers={"HX-Request": "true"}, SERVER_NAME="localhost")
    client.force_login(User.objects.get(username="reader0"), backend=BACKEND)
    page = client.post(f"/tasks/{TASK}/start/").text
    return client, page, has_already(page)


def answer(client: Client, page: str, headers: dict[str, str]) -> str:
    lease = re.search(r'name="lease" value="(\d+)"', page)[1]
    # The text begins with the language of its queue. Another answer would send the unit on to a second person.
    language = re.search(r"<p dir=\"auto\">(\w+):", page)[1]
    form = {"lease": lease, "answer": language, "active_ms": 2_000}
    # The test client would send a form in parts, which no page does.
    sent = urlencode(form)
    return client.post(f"/tasks/{TASK}/judge/", sent, "application/x-www-form-urlencoded", headers=headers).text


@contextmanager
def watched():
    statements.clear()
    took.clear()
    with connection.execute_wrapper(watch):
        yield


def plan(sql: str, params) -> list[str]:
    if sql.startswith("BEGIN"):
        return []
    explain = "EXPLAIN QUERY PLAN " if connection.vendor == "sqlite" else "EXPLAIN (COSTS OFF) "
    with connection.cursor() as cursor:
        cursor.execute(explain + sql, params)
        return [str(row[-1]) for row in cursor.fetchall()]


def main(answers: int) -> dict:
    client, page, headers = at_work()
    for _ in range(FIRST):
        page = answer(client, page, headers)
    walls, began = [], time.process_time()
    for _ in range(answers):
        start = time.perf_counter()
        page = answer(client, page, headers)
        walls.append(time.perf_counter() - start)
    processor = (time.process_time() - began) / answers
    timed(permit, "permits", "permit")
    timed(judgments, "close", "close")
    timed(annotators, "lease_next", "hand_out")
    timed(connection, "_commit", "commit")
    timed(annotators, "_work", "show")
    with watched():
        start = time.perf_counter()
        for _ in range(answers):
            page = answer(client, page, headers)
        wall = (time.perf_counter() - start) / answers
    parts = {part: took[part] / answers * 1e3 for part in ("permit", "close", "hand_out", "commit", "show")}
    driver = sum(seconds for *_, seconds in statements) / answers
    number = len(statements) // answers
    times: dict[str, list[float]] = defaultdict(list)
    for sql, _, seconds in statements:
        times[sql].append(seconds)
    return {
        "median": statistics.median(walls) * 1e3,
        "processor": processor * 1e3,
        "driver": driver * 1e3,
        "floor": driver * 1e3 + parts["commit"],
        "statements": number,
        "bytes": len(page.encode()),
        "parts": parts,
        "rest": wall * 1e3 - sum(parts.values()),
        "plans": [
            {
                "sql": " ".join(sql.split())[:100],
                "milliseconds": statistics.fmean(times[sql]) * 1e3,
                "plan": plan(sql, params),
            }
            for sql, params, _ in statements[-number:]
        ],
    }


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]))))
