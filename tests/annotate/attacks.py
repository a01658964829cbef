"""Somebody at work with a script who tries to tell hidden units from others, with four people at work besides: by what
comes of giving units back, of letting them run out, of answering late and of taking answers back, and by what each
request costs, says and weighs.

The truth of what they were shown is read from the database. Nothing waits: time goes on by what is stored of leases.
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
# After how many units more, at most, all that may come back has come back.
TO_THE_END = 45
# How many of the others act, at most, while the attacker acts once.
PACE = 2


# --- the two ways to work


@dataclass(frozen=True)
class Reply:
    """at: when it was asked for. statements: what was run for it, without values. content: of measured. waiting: how
    many units it says are waiting, if it does.
    """

    status: int
    at: datetime
    statements: tuple[str, ...]
    seconds: float
    content: Mapping[str, float]
    waiting: float


@dataclass
class Way:
    """How the attacker acts: `page` or `api`. labels: what they choose from; by default all labels of the task."""

    name: str
    annotator: Annotator
    task: Task
    labels: Sequence[str] = ()
    client: Client = field(default_factory=Client)

    def __post_init__(self) -> None:
        self.client.force_login(self.annotator.user)
        self.client.get("/docs/")  # the first page of a session reads what the person has set
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
        told = re.search(r"<b>([\d,]+)</b> waiting", text)
        waiting = float(told[1].replace(",", "")) if told else np.nan
        return Reply(done.status_code, at, tuple(run), seconds, measured(done), waiting)

    def waiting(self, reply: Reply) -> float:
        """What is told to wait after a reply; the API is asked for it."""
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
        """As disturbing."""
        sent = {"flag": "disturbing"} if self.on_page else {"kind": "disturbing"}
        return self._post("flag", f"leases/{lease.pk}/flag", lease=lease.pk, **sent)

    def ask(self, lease: Lease) -> Reply:
        """A question, which leaves the unit open."""
        sent = {"flag": "question"} if self.on_page else {"kind": "question"}
        return self._post("flag", f"leases/{lease.pk}/flag", lease=lease.pk, words="Why?", **sent)

    def undo(self, judgment: Judgment | None = None) -> Reply:
        """judgment: any one by the page; the last by the API."""
        return self._post("undo", f"tasks/{self.task.name}/undo", **({"judgment": judgment.pk} if judgment else {}))

    @property
    def on_page(self) -> bool:
        return self.name == "page"


def measured(reply: HttpResponse) -> dict[str, float]:
    """The size of a reply in bytes, its words, and where it leads, the last two as checksums. Digits and tokens, which
    differ by themselves, are left out.
    """
    body = re.sub(rb'value="\w{64}"|\d+', b"", reply.content)
    target = next((reply[head] for head in ("Location", "HX-Redirect", "HX-Push-Url") if head in reply), "")
    target = re.sub(r"\d+", "", target)
    return {"bytes": len(body), "words": zlib.crc32(body) % 9973, "target": zlib.crc32(target.encode()) % 9973}


@contextmanager
def statements() -> Iterator[list[str]]:
    """The statements that are run meanwhile, without what is filled into them; names of savepoints are numbered."""
    run: list[str] = []

    def note(execute, sql, params, many, context):
        # Django writes a NULL into the statement itself.
        run.append(re.sub(r"s\d+_x\d+", "s", sql).replace("= NULL", "= %s"))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield run


# --- who is at work


class Others:
    """People who take and answer in turn, and skip one in twenty."""

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
                    continue  # it went on meanwhile


def run_out(lease: Lease) -> None:
    """As if the time of the lease had gone by."""
    now = timezone.now()
    Lease.objects.filter(pk=lease.pk).update(expires_at=now - timezone.timedelta(seconds=1))


# --- what may be tried on a unit


@dataclass
class Tried:
    """What was tried on one unit. work: that which it is, or for which it stands; scores: what was learned; ran: the
    statements of each request, by what others had said there by then, since the last of them decides it.
    """

    unit: Unit
    trick: str
    work: Unit
    scores: dict[str, float] = field(default_factory=dict)
    ran: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    let_go_at: int | None = None
    again: bool = False


class Attacker:
    """way: how they act; others: who else is at work, if anybody; tricks: what they try, one on each unit that they
    have not seen, as often as the numbers say.
    """

    def __init__(self, way: Way, others: Others | None, tricks: Mapping[str, int]) -> None:
        self.way, self.others, self.tricks = way, others, tricks
        self.chance = random.Random(f"{way.name} {sorted(tricks)}")
        self.tried: dict[int, Tried] = {}
        self.answered = 0
        self.waiting = np.nan
        self.last_lease = 0
        # What is done after some answers: after which one, and what.
        self.later: list[tuple[int, Callable[[], None]]] = []

    def work(self, units: int) -> list[Tried]:
        """Try something on so many units, and work on until all that may come back has come back."""
        trying: list[Tried] = []
        left = TO_THE_END
        while len(trying) < units or (left and (self.later or any(each.let_go_at is not None for each in trying))):
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
            for due in [each for each in self.later if each[0] <= self.answered]:
                self.later.remove(due)
                due[1]()
        for tried in trying:
            if tried.let_go_at is not None:
                tried.scores.setdefault(f"{tried.trick}: comes back", -NEVER)
        return trying

    def note(self, tried: Tried, what: str, reply: Reply) -> None:
        # Also what they said of the gold answer in its place.
        there = Q(lease__unit=tried.work) | Q(lease__unit=tried.unit, lease__instead_of=tried.work)
        others = Judgment.objects.live().filter(there, answered_at__lt=reply.at).exclude(annotator=self.way.annotator)
        tried.ran[what, " ".join(sorted(others.values_list("kind", flat=True)))] = reply.statements
        waits, self.waiting = self.waiting, self.way.waiting(reply)
        found = {
            "status": reply.status,
            "statements": len(reply.statements),
            "seconds": reply.seconds,
            "bytes": reply.content["bytes"],
            "step of what waits": self.waiting - waits,
        }
        for name, score in found.items():
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


# --- the tricks

Trick = Callable[[Attacker, Tried, Lease], None]


def _tells(what: str, act: Callable[[Attacker, Lease], Reply]) -> Trick:
    """One request about the unit, which is then done with."""

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
    """Others, and oneself, have gone on meanwhile for a few units."""
    run_out(lease)
    attacker.others_go_on()
    due = attacker.answered + attacker.chance.randint(2, 6)
    attacker.later.append((due, lambda: attacker.note(tried, "answer late", attacker.answer(lease))))


def answered_again(attacker: Attacker, tried: Tried, lease: Lease) -> None:
    attacker.note(tried, "answer again", attacker.answer(lease))


def undone(attacker: Attacker, tried: Tried, judgment: Judgment | None = None) -> Lease | None:
    """The lease that is open then, if the answer may be taken back."""
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
    """After six more answers, which only a page can ask for."""
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
# What only a page can do.
OF_PAGES = frozenset({"taken back later"})


def assert_same_statements(tried: Sequence[Tried], hidden: Callable[[Unit], bool]) -> None:
    """Each request runs the same statements, whether or not its unit is hidden. The first unit of all is left out,
    since what is read once a process is read there.
    """
    seen: dict[bool, dict[tuple[str, str], set[tuple[str, ...]]]] = {True: {}, False: {}}
    for each in tried[1:]:
        for request, ran in each.ran.items():
            seen[hidden(each.unit)].setdefault(request, set()).add(ran)
    both = seen[True].keys() & seen[False].keys()
    requests = {request for each in tried for request, _ in each.ran}
    assert {request for request, _ in both} == requests, (seen[True].keys(), seen[False].keys())
    for request in both:
        assert seen[True][request] == seen[False][request], request
        assert len(seen[True][request]) == 1, request


# By which hidden units could once be told: these are tried more often.
KNOWN = frozenset({"given back", "run out", "answered late", "taken back"})


def all_tricks(way: str) -> dict[str, int]:
    """How often each is tried, beside the others."""
    return {trick: 3 if trick in KNOWN else 1 for trick in TRICKS if way == "page" or trick not in OF_PAGES}


def by_score(tried: Sequence[Tried], hidden: Callable[[Unit], bool | None]) -> dict[str, tuple[list, list]]:
    """Score -> its values of hidden units, and of others. hidden: None of a unit that is neither."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    for each in tried:
        is_hidden = hidden(each.unit)
        if is_hidden is None:
            continue
        for name, score in each.scores.items():
            values = found.setdefault(f"{each.trick}: {name}" if _by_trick(name) else name, ([], []))
            values[not is_hidden].append(score)
    return found


def _by_trick(name: str) -> bool:
    """Whether a score means something else for each trick."""
    return name.split(":")[0] not in {"take", "skip", "answer"} and not name.endswith("comes back")


def is_gold(unit: Unit) -> bool:
    return unit.honeypot


def is_audited(unit: Unit) -> bool:
    return unit.audited and Transition.objects.filter(unit=unit, event="audited").exists()
