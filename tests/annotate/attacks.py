"""An annotator with a script who tries to recognize hidden units, while four other people work.

The script returns units, lets leases expire, answers late and undoes answers. It also measures the cost, the text and
the size of each response. The true state of the units is read from the database. Leases are changed instead of waiting.
"""

import random
import re
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from django.db import connection
from django.db.models import Q
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from annotate.core.refusals import Refusal
from annotate.kinds import Answer
from annotate.models import Annotator, Judgment, Lease, Task, Transition, Unit
from annotate.work.judgments import judge, skip
from annotate.work.queue import open_lease, take

HTMX = {"HX-Request": "true"}
NEVER = 1e9
# After at most this many more units, all units that can return have returned.
TO_THE_END = 45
# At most this many other people act between two actions of the attacker.
PACE = 2


# --- Work by page or API


@dataclass(frozen=True)
class Reply:
    """A response.

    at: the time of the request
    statements: the SQL statements without their values
    content: the result of `measured`
    waiting: the number of waiting units that the response states, if any
    """

    status: int
    at: datetime
    statements: tuple[str, ...]
    seconds: float
    content: Mapping[str, float]
    waiting: float


@dataclass
class Way:
    """The interface that the attacker uses: `page` or `api`. labels: possible answers; by default all of the task."""

    name: str
    annotator: Annotator
    task: Task
    labels: Sequence[str] = ()
    client: Client = field(default_factory=Client)

    def __post_init__(self) -> None:
        self.client.force_login(self.annotator.user)
        self.client.get("/docs/")  # the first page of a session reads the settings of the person
        self.labels = self.labels or self.task.labels

    def _post(self, page: str, api: str, **fields: object) -> Reply:
        at, start = timezone.now(), time.perf_counter()
        with statements() as run:
            if self.name == "page":
                done = self.client.post(f"/tasks/{self.task.name}/{page}/", fields, headers=HTMX)
            else:
                done = self.client.post(f"/api/v1/{api}/", fields, content_type="application/json")
        seconds = time.perf_counter() - start
        text = done.content.decode()
        match = re.search(r"<b>([\d,]+)</b> waiting", text)
        waiting = float(match[1].replace(",", "")) if match else np.nan
        return Reply(done.status_code, at, tuple(run), seconds, measured(done), waiting)

    def waiting(self, reply: Reply) -> float:
        """Return the number of waiting units after a response. The API needs a separate request."""
        if self.on_page:
            return reply.waiting
        return float(self.client.get(f"/api/v1/tasks/{self.task.name}/progress/").json()["waiting"])

    def take(self) -> tuple[Reply, Lease | None]:
        reply = self._post("start", f"tasks/{self.task.name}/next")
        assert reply.status == 200
        return reply, open_lease(self.annotator, self.task)

    def give_back(self, lease: Lease) -> Reply:
        return self._post("pause", f"leases/{lease.pk}/release")

    def answer(self, lease: Lease, label: str) -> Reply:
        sent = {"answer": label} if self.name == "page" else {"label": label}
        return self._post("judge", f"leases/{lease.pk}/judge", lease=lease.pk, **sent)

    def skip(self, lease: Lease) -> Reply:
        sent = {"lease": lease.pk, "skip": 1} if self.on_page else {}
        return self._post("judge", f"leases/{lease.pk}/skip", **sent)

    def hand_on(self, lease: Lease) -> Reply:
        """Pass on a unit as disturbing."""
        sent = {"flag": "disturbing"} if self.on_page else {"kind": "disturbing"}
        return self._post("flag", f"leases/{lease.pk}/flag", lease=lease.pk, **sent)

    def ask(self, lease: Lease) -> Reply:
        """Ask a question, which leaves the unit open."""
        sent = {"flag": "question"} if self.on_page else {"kind": "question"}
        return self._post("flag", f"leases/{lease.pk}/flag", lease=lease.pk, words="Why?", **sent)

    def undo(self, judgment: Judgment | None = None) -> Reply:
        """Undo a judgment: any judgment with the page, the last one with the API."""
        return self._post("undo", f"tasks/{self.task.name}/undo", **({"judgment": judgment.pk} if judgment else {}))

    @property
    def on_page(self) -> bool:
        return self.name == "page"


def measured(reply: HttpResponse) -> dict[str, float]:
    """Return the size of a response (bytes), and checksums of its words and redirect target. Digits and tokens always
    differ, so they are left out.
    """
    body = re.sub(rb'"\w{64}"|\d+', b"", reply.content)
    target = next((reply[head] for head in ("Location", "HX-Redirect", "HX-Push-Url") if head in reply), "")
    target = re.sub(r"\d+", "", target)
    return {"bytes": len(body), "words": zlib.crc32(body) % 9973, "target": zlib.crc32(target.encode()) % 9973}


@contextmanager
def statements() -> Iterator[list[str]]:
    """Yield a list of the statements that run in the block, without parameters. Savepoint names are numbered."""
    run: list[str] = []

    def note(execute, sql, params, many, context):
        # Django writes NULL directly into the statement.
        run.append(re.sub(r"s\d+_x\d+", "s", sql).replace("= NULL", "= %s"))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield run


# --- People


class Others:
    """People who take and answer units in turn, and skip one in twenty."""

    def __init__(self, people: Sequence[Annotator], task: Task, seed: str) -> None:
        self.people, self.task, self.chance = people, task, random.Random(seed)

    def go_on(self, turns: int) -> None:
        for person in self.chance.sample(self.people, len(self.people))[:turns]:
            if lease := take(person, self.task):
                try:
                    if self.chance.random() < 0.05:
                        skip(person, lease.pk)
                    else:
                        judge(person, lease.pk, Answer(self.chance.choice(self.task.labels)))
                except Refusal:
                    continue  # the unit has moved on in the meantime


def run_out(lease: Lease) -> None:
    """Make a lease expire."""
    now = timezone.now()
    Lease.objects.filter(pk=lease.pk).update(expires_at=now - timezone.timedelta(seconds=1))


# --- Experiments on a unit


@dataclass
class Tried:
    """The results of an experiment on a unit.

    work: the unit, or the unit of work that it replaces
    scores: the measured scores
    ran: the statements of each request, by the answers of others at that time, because the last answer decides the unit
    """

    unit: Unit
    trick: str
    work: Unit
    scores: dict[str, float] = field(default_factory=dict)
    ran: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    let_go_at: int | None = None
    again: bool = False


class Attacker:
    """The attacker.

    way: the interface that they use
    others: the other people who work, if any
    tricks: the number of times to try each trick; each new unit gets one trick
    """

    def __init__(self, way: Way, others: Others | None, tricks: Mapping[str, int]) -> None:
        self.way, self.others, self.tricks = way, others, tricks
        self.chance = random.Random(f"{way.name} {sorted(tricks)}")
        self.tried: dict[int, Tried] = {}
        self.answered = 0
        self.waiting = np.nan
        self.last_lease = 0
        # Actions to run after a certain number of answers.
        self.later: list[tuple[int, Callable[[], None]]] = []

    def work(self, units: int) -> list[Tried]:
        """Try tricks on this many units, and continue until all units that can return have returned."""
        trying: list[Tried] = []
        left = TO_THE_END
        while len(trying) < units or (left and (self.later or any(tried.let_go_at is not None for tried in trying))):
            reply, lease = self.way.take()
            if lease is None:
                break
            if before := self.tried.get(lease.unit_id):
                self._came_back(before, lease)
            elif len(trying) < units:
                trick = self.chance.choices(list(self.tricks), list(self.tricks.values()))[0]
                trying.append(tried := Tried(lease.unit, trick, lease.work))
                self.tried[lease.unit_id] = tried
                self.note(tried, "take", reply)
                tried.scores["take: step of the lease's number"] = lease.pk - self.last_lease
                self.last_lease = lease.pk
                TRICKS[trick](self, tried, lease)
            else:
                left -= 1
                self.answer(lease)
            for due in [due for due in self.later if due[0] <= self.answered]:
                self.later.remove(due)
                due[1]()
        for tried in trying:
            if tried.let_go_at is not None:
                tried.scores.setdefault(f"{tried.trick}: comes back", -NEVER)
        return trying

    def note(self, tried: Tried, what: str, reply: Reply) -> None:
        # Including the answers to the gold answer in its place.
        there = Q(lease__unit=tried.work) | Q(lease__unit=tried.unit, lease__instead_of=tried.work)
        others = Judgment.objects.live().filter(there, answered_at__lt=reply.at).exclude(annotator=self.way.annotator)
        tried.ran[what, " ".join(sorted(others.values_list("kind", flat=True)))] = reply.statements
        waits, self.waiting = self.waiting, self.way.waiting(reply)
        scores = {
            "status": reply.status,
            "statements": len(reply.statements),
            "seconds": reply.seconds,
            "bytes": reply.content["bytes"],
            "step of what waits": self.waiting - waits,
        }
        for name, score in scores.items():
            if not np.isnan(score):
                tried.scores[f"{what}: {name}"] = float(score)

    def others_go_on(self) -> None:
        if self.others:
            self.others.go_on(self.chance.randint(0, PACE))

    def answer(self, lease: Lease) -> Reply:
        reply = self.way.answer(lease, self.chance.choice(self.way.labels))
        self.answered += 1
        self.others_go_on()
        return reply

    def _came_back(self, tried: Tried, lease: Lease) -> None:
        if tried.let_go_at is not None:
            tried.scores[f"{tried.trick}: comes back"] = -float(self.answered - tried.let_go_at)
            tried.let_go_at = None
        if tried.again:
            tried.again = False
            self.let_go(tried, self.way.give_back, lease)
        else:
            self.answer(lease)

    def let_go(self, tried: Tried, how: Callable[[Lease], object], lease: Lease) -> None:
        tried.let_go_at = self.answered
        how(lease)
        self.others_go_on()


# --- Tricks

Trick = Callable[[Attacker, Tried, Lease], None]


def _tells(what: str, act: Callable[[Attacker, Lease], Reply]) -> Trick:
    """Return a trick that consists of one request, which finishes the unit."""

    def trick(attacker: Attacker, tried: Tried, lease: Lease) -> None:
        attacker.note(tried, what, act(attacker, lease))
        attacker.answered += 1
        attacker.others_go_on()

    return trick


answered = _tells("answer", lambda who, lease: who.way.answer(lease, who.chance.choice(who.way.labels)))
skipped = _tells("skip", lambda who, lease: who.way.skip(lease))
handed_on = _tells("hand on", lambda who, lease: who.way.hand_on(lease))


def asked_about(attacker: Attacker, tried: Tried, lease: Lease) -> None:
    attacker.note(tried, "ask", attacker.way.ask(lease))
    answered(attacker, tried, lease)


def given_back(attacker: Attacker, tried: Tried, lease: Lease) -> None:
    tried.let_go_at = attacker.answered
    attacker.note(tried, "give back", attacker.way.give_back(lease))
    attacker.others_go_on()


def given_back_twice(attacker: Attacker, tried: Tried, lease: Lease) -> None:
    tried.again = True
    given_back(attacker, tried, lease)


def ran_out(attacker: Attacker, tried: Tried, lease: Lease) -> None:
    attacker.let_go(tried, run_out, lease)


def answered_late(attacker: Attacker, tried: Tried, lease: Lease) -> None:
    run_out(lease)
    attacker.others_go_on()
    attacker.note(tried, "answer late", attacker.answer(lease))


def answered_later(attacker: Attacker, tried: Tried, lease: Lease) -> None:
    """Answer a unit after the attacker and others have worked on a few more units."""
    run_out(lease)
    attacker.others_go_on()
    due = attacker.answered + attacker.chance.randint(2, 6)
    attacker.later.append((due, lambda: attacker.note(tried, "answer late", attacker.answer(lease))))


def answered_again(attacker: Attacker, tried: Tried, lease: Lease) -> None:
    attacker.note(tried, "answer again", attacker.answer(lease))


def undone(attacker: Attacker, tried: Tried, judgment: Judgment | None = None) -> Lease | None:
    """Undo an answer. Return the new lease, or None if the answer cannot be undone."""
    reply = attacker.way.undo(judgment)
    attacker.note(tried, "undo", reply)
    lease = open_lease(attacker.way.annotator, attacker.way.task) if reply.status == 200 else None
    if lease:
        tried.work = lease.work
    return lease


def _taken_back(first: Trick, then: Trick = answered_again) -> Trick:
    def trick(attacker: Attacker, tried: Tried, lease: Lease) -> None:
        first(attacker, tried, lease)
        if again := undone(attacker, tried):
            then(attacker, tried, again)

    return trick


def taken_back_later(attacker: Attacker, tried: Tried, lease: Lease) -> None:
    """Undo an answer after six more answers, which only the page supports."""
    answered(attacker, tried, lease)
    judgment = Judgment.objects.get(lease=lease)

    def take_back() -> None:
        if again := undone(attacker, tried, judgment):
            answered_again(attacker, tried, again)

    attacker.later.append((attacker.answered + 6, take_back))


TRICKS = {
    "answered": answered,
    "skipped": skipped,
    "handed on": handed_on,
    "asked about": asked_about,
    "given back": given_back,
    "given back twice": given_back_twice,
    "run out": ran_out,
    "answered late": answered_late,
    "answered later": answered_later,
    "taken back": _taken_back(answered),
    "skip taken back": _taken_back(skipped),
    "handing on taken back": _taken_back(handed_on),
    "taken back later": taken_back_later,
    "taken back, given back": _taken_back(answered, given_back),
    "taken back, answered late": _taken_back(answered, answered_late),
}
# Tricks that only the page supports.
OF_PAGES = frozenset({"taken back later"})


def assert_same_statements(tried: Sequence[Tried], hidden: Callable[[Unit], bool]) -> None:
    """Assert that each request runs the same statements for hidden and other units. The first unit is left out, because
    its requests also read data that is cached per process.
    """
    seen: dict[bool, dict[tuple[str, str], set[tuple[str, ...]]]] = {True: {}, False: {}}
    for attempt in tried[1:]:
        for request, ran in attempt.ran.items():
            seen[hidden(attempt.unit)].setdefault(request, set()).add(ran)
    both = seen[True].keys() & seen[False].keys()
    requests = {request for attempt in tried for request, _ in attempt.ran}
    assert {request for request, _ in both} == requests, (seen[True].keys(), seen[False].keys())
    for request in both:
        assert seen[True][request] == seen[False][request], request
        assert len(seen[True][request]) == 1, request


# These tricks once revealed hidden units, so they are tried more often.
KNOWN = frozenset({"given back", "run out", "answered late", "taken back"})


def all_tricks(way: str) -> dict[str, int]:
    """Return the relative frequency of each trick."""
    return {trick: 3 if trick in KNOWN else 1 for trick in TRICKS if way == "page" or trick not in OF_PAGES}


def by_score(tried: Sequence[Tried], hidden: Callable[[Unit], bool | None]) -> dict[str, tuple[list, list]]:
    """Return the values of each score for hidden units and for others. hidden: None for a unit that is neither."""
    scores: dict[str, tuple[list[float], list[float]]] = {}
    for attempt in tried:
        is_hidden = hidden(attempt.unit)
        if is_hidden is None:
            continue
        for name, score in attempt.scores.items():
            values = scores.setdefault(f"{attempt.trick}: {name}" if _by_trick(name) else name, ([], []))
            values[not is_hidden].append(score)
    return scores


def _by_trick(name: str) -> bool:
    """Return whether a score has a separate meaning for each trick."""
    return name.split(":")[0] not in {"take", "skip", "answer"} and not name.endswith("comes back")


def is_gold(unit: Unit) -> bool:
    return unit.honeypot


def is_audited(unit: Unit) -> bool:
    return unit.audited and Transition.objects.filter(unit=unit, event="audited").exists()
