"""Every pair of an annotator's acts around a unit, and every number, size and order that comes back: of pages, of the
API and of what a colleague is given.

The truth of the units is read from the database afterwards. Nothing waits: time goes on by what is stored.
"""

import json
import random
import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import product

from django.test import Client
from django.utils import timezone

from annotate.core.refusals import Refusal
from annotate.kinds import Answer
from annotate.models import Annotator, Backlog, Judgment, Lease, Task, Unit
from annotate.work.judging import judge
from annotate.work.queue import open_lease, take
from tests.annotate import attacks

HTMX = {"HX-Request": "true"}
# How many units a colleague takes, at most, who looks for what was given back.
LOOKED = 3


class Person:
    """Who tries to tell hidden units from work, by the page or the API, with a colleague who tells what they get."""

    def __init__(self, annotator: Annotator, task: Task, colleague: Annotator, way: str, seed: int = 1) -> None:
        self.annotator, self.task, self.colleague = annotator, task, colleague
        self.way = attacks.Way(way, annotator, task)
        self.client: Client = self.way.client
        self.chance = random.Random(seed)

    def label(self, lease: Lease) -> str:
        return self.chance.choice([lease.unit.asked, f"not-{lease.unit.asked}"] if lease.unit.asked else self.labels)

    @property
    def labels(self) -> Sequence[str]:
        return self.task.labels[:2]

    @property
    def open(self) -> Lease | None:
        return open_lease(self.annotator, self.task)


def taken(person: Person, lease: Lease) -> object:
    return person.way.take()[0]


def released(person: Person, lease: Lease) -> object:
    return person.way.give_back(lease)


def run_out(person: Person, lease: Lease) -> object:
    return attacks.run_out(lease)


def answered(person: Person, lease: Lease) -> object:
    return person.way.answer(lease, person.label(lease))


def undone(person: Person, lease: Lease) -> object:
    return person.way.undo()


def skipped(person: Person, lease: Lease) -> object:
    return person.way.skip(lease)


def flagged(person: Person, lease: Lease) -> object:
    return person.way.hand_on(lease)


def asked(person: Person, lease: Lease) -> object:
    return person.way.ask(lease)


def changed(person: Person, lease: Lease) -> object:
    said = Judgment.objects.filter(lease=lease).first()
    number = said.pk if said else 0
    other = [each for each in ("0", "1", "de", "en", "fr") if not said or each != said.label]
    return [
        person.client.post(f"/tasks/{person.task.name}/answers/{number}/", {"answer": label}) for label in other[:3]
    ] + [person.client.get(f"/tasks/{person.task.name}/answers/{number}/")]


def toggled(person: Person, lease: Lease) -> object:
    return person.client.post("/account/disturbing/", {"takes": person.chance.choice(["yes", "no"])})


def preferred(person: Person, lease: Lease) -> object:
    return person.client.post("/account/preferences/", {"text_size": "large", "theme": "dark", "goal": "9"})


def asked_for_language(person: Person, lease: Lease) -> object:
    return person.client.post("/account/languages/", {"language": "it", "level": "3"})


def counted_anew(person: Person, lease: Lease) -> object:
    """Ten minutes have gone by."""
    return Backlog.objects.update(counted_at=timezone.now() - timedelta(minutes=11))


def on_a_sheet(person: Person, lease: Lease) -> object:
    return person.client.post(f"/tasks/{person.task.name}/sheet/start/", headers=HTMX)


ACTS: dict[str, Callable[[Person, Lease], object]] = {
    "take": taken,
    "release": released,
    "expire": run_out,
    "answer": answered,
    "undo": undone,
    "skip": skipped,
    "flag": flagged,
    "ask": asked,
    "change": changed,
    "toggle": toggled,
    "prefer": preferred,
    "ask for a language": asked_for_language,
    "recount": counted_anew,
    "sheet": on_a_sheet,
}
PAIRS = list(product(ACTS, repeat=2))


def seen(person: Person) -> dict[str, float]:
    """Every number and size of what a person can look at without changing anything."""
    name, found = person.task.name, {}
    for view in (
        f"/api/v1/tasks/{name}/progress/",
        "/api/v1/tasks/",
        "/",
        "/history/",
        f"/tasks/{name}/answers/",
        f"/tasks/{name}/answers/?said=skipped",
        f"/tasks/{name}/guidelines/",
        "/account/",
        f"/tasks/{name}/sheet/",
    ):
        reply = person.client.get(view)
        found[f"{view} status"] = float(reply.status_code)
        found |= {f"{view} {key}": value for key, value in _numbers(reply.content.decode()).items()}
    return found


def _numbers(text: str) -> dict[str, float]:
    try:
        return dict(_of_json(json.loads(text)))
    except ValueError:
        pass
    # Of a page what can be read: numbers of leases and tokens differ by themselves, and so do times.
    words = re.sub(r"<(script|style).*?</\1>|<[^>]*>|\d+:\d\d(:\d\d)?|\d{4}-\d\d-\d\d", " ", text, flags=re.DOTALL)
    numbers = [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", words)]
    # The texts of units have numbers of their own, and lists of them grow with each answer.
    return {f"number {place}": number for place, number in enumerate(numbers[:12])} | {"numbers": float(len(numbers))}


def _of_json(value, path: str = ""):
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _of_json(each, f"{path}.{key}")
    elif isinstance(value, list):
        yield f"{path} length", float(len(value))
        for number, each in enumerate(value[:5]):
            yield from _of_json(each, f"{path}[{number}]")
    elif isinstance(value, int | float):
        yield path, float(value)


def told(replies: object) -> dict[str, float]:
    """Status and size of what an act returned."""
    listed = replies if isinstance(replies, list) else [replies]
    found = {}
    for number, reply in enumerate(listed):
        if isinstance(reply, attacks.Reply):
            found |= {f"status {number}": float(reply.status), f"statements {number}": float(len(reply.statements))}
        elif hasattr(reply, "status_code"):
            found[f"status {number}"] = float(reply.status_code)
    return found


def tried(person: Person, pair: tuple[str, str]) -> tuple[Unit, dict[str, float]] | None:
    """What two acts around the next unit tell: differences of all that is seen, before and after each."""
    before = seen(person)
    lease = take(person.annotator, person.task)
    if lease is None:
        return None
    unit, scores = lease.unit, {}
    last = _differences(scores, "take", before, seen(person))
    for place, act in enumerate(pair):
        at = "" if not place else f"{pair[0]}, "
        reply = ACTS[act](person, lease)
        scores |= {f"{at}{act}: {key}": value for key, value in told(reply).items()}
        last = _differences(scores, act, last, seen(person))
    following = person.open or take(person.annotator, person.task)
    if following and following.unit_id != unit.pk:
        scores["next: same language"] = float(following.unit.language == unit.language)
    if pair[-1] in ("release", "expire"):
        came = _came_to(person, unit, following)
        scores["colleague: is given it"] = came
    _go_on(person)
    return unit, scores


def _differences(scores: dict, act: str, before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    for key in before.keys() & after.keys():
        scores[f"{act}: change of {key}"] = after[key] - before[key]
    return after


def _came_to(person: Person, unit: Unit, following: Lease | None) -> float:
    for _ in range(LOOKED):
        theirs = take(person.colleague, person.task)
        if theirs is None:
            break
        if theirs.unit_id == unit.pk:
            judge(person.colleague, theirs.pk, Answer(person.label(theirs)))
            return 1.0
        judge(person.colleague, theirs.pk, Answer(person.label(theirs)))
    return 0.0


def _go_on(person: Person) -> None:
    """Two further units are answered, so that the next pair begins somewhere else."""
    for _ in range(2):
        if lease := take(person.annotator, person.task):
            try:
                judge(person.annotator, lease.pk, Answer(person.label(lease)))
            except Refusal:
                continue


def all_tried(person: Person, pairs: Sequence[tuple[str, str]]) -> list[tuple[Unit, dict[str, float]]]:
    """One unit for each pair, in a random order, until nothing is left."""
    found, met = [], set()
    for pair in person.chance.sample(list(pairs), len(pairs)):
        result = tried(person, pair)
        if result is None:
            break
        if result[0].pk not in met:
            met.add(result[0].pk)
            found.append(result)
    return found


def areas(found: Sequence[tuple[Unit, dict[str, float]]], hidden: Callable[[Unit], bool | None], fewest: int) -> list:
    """Score, numbers of hidden units and others, area and its interval at 99.98%, furthest from 0.5 first."""
    by_score: dict[str, tuple[list[float], list[float]]] = {}
    for unit, scores in found:
        if (is_hidden := hidden(unit)) is not None:
            for key, value in scores.items():
                by_score.setdefault(key, ([], []))[not is_hidden].append(value)
    rows = [
        (key, len(of), len(others), attacks.auc(of, others), attacks.interval(of, others, 0.9998))
        for key, (of, others) in by_score.items()
        if min(len(of), len(others)) >= fewest
    ]
    return sorted(rows, key=lambda row: -abs(row[3] - 0.5))
