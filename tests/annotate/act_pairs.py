"""Every pair of a person's acts around a unit, and every number, size and order that comes back: of pages, of the API
and of what a colleague is given.

The truth of the units is read from the database afterwards. Nothing waits: time goes on by what is stored.
"""

import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise, product

from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from annotate.controls.checks import is_seconded
from annotate.core.refusals import Refusal
from annotate.kinds import Answer
from annotate.models import Annotator, Backlog, Judgment, Lease, Task, Unit
from annotate.work.adjudication import to_adjudicate
from annotate.work.judgments import judge, skip
from annotate.work.queue import open_lease, take
from tests.annotate import attacks
from tests.annotate.conftest import AGREED, DISPUTED, make_person, records_task_maker, task_maker

HTMX = {"HX-Request": "true"}
# How many units a colleague takes, at most, who looks for one.
LOOKED = 3
# What a person can look at without changing anything, and what an adjudicator can.
VIEWS = (
    "/api/v1/tasks/{0}/progress/",
    "/api/v1/tasks/{0}/",
    "/api/v1/tasks/",
    "/",
    "/history/",
    "/tasks/{0}/",
    "/tasks/{0}/answers/",
    "/tasks/{0}/answers/?said=skipped",
    "/tasks/{0}/guidelines/",
    "/account/",
    "/tasks/{0}/sheet/",
)
ADJUDICATING = (
    "/tasks/{0}/adjudication/",
    "/tasks/{0}/adjudication/?case=blind",
    "/api/v1/tasks/{0}/adjudication/",
)


class Person:
    """Who tries to tell hidden units from work, by the page or the API, with a colleague who tells what they get.

    asking: the acts after which the colleague looks for the unit. views: how many views are looked at around each unit,
    chosen at random; all by default.
    """

    def __init__(
        self,
        annotator: Annotator,
        task: Task,
        colleague: Annotator,
        way: str,
        *,
        asking: Iterable[str] = ("release", "expire"),
        seed: str = "1",
        views: int | None = None,
    ) -> None:
        self.annotator, self.task, self.colleague, self.asking = annotator, task, colleague, asking
        self.way = attacks.Way(way, annotator, task)
        self.client: Client = self.way.client
        self.chance = random.Random(seed)
        addresses = [*VIEWS, *ADJUDICATING] if annotator.adjudicates else VIEWS
        self.all_views = [address.format(task.name) for address in addresses]
        self.number = len(self.all_views) if views is None else views
        self.views: Sequence[str] = ()
        # What is decided, if anything is, and by which number.
        self.case: Unit | None = None

    def look_elsewhere(self) -> None:
        self.views = self.chance.sample(self.all_views, self.number)

    def label(self, unit: Unit) -> str:
        return self.chance.choice([unit.asked, f"not-{unit.asked}"] if unit.asked else self.task.labels[:2])

    @property
    def open(self) -> Lease | None:
        return open_lease(self.annotator, self.task)

    def of_case(self, what: str, **fields: object) -> HttpResponse:
        """what: the end of the address: none to look at the case."""
        key, name = self.case.pk, self.task.name
        if not self.way.on_page:
            address = f"/api/v1/tasks/{name}/adjudication/{key}/{what}"
            return self.client.post(address, fields, content_type="application/json") if what else self.get(address)
        address = f"/tasks/{name}/adjudication/{key}/"
        if what == "unsettle/":
            address += what
        return self.client.post(address, fields) if what else self.get(address)

    def get(self, address: str) -> HttpResponse:
        return self.client.get(address)

    def post(self, address: str, **fields: object) -> HttpResponse:
        return self.client.post(address, fields)


# --- the acts


def changed(person: Person, lease: Lease) -> object:
    said = Judgment.objects.filter(lease=lease).first()
    address = f"/tasks/{person.task.name}/answers/{said.pk if said else 0}/"
    other = [each for each in ("0", "1", "de", "en", "fr") if not said or each != said.label]
    return [person.post(address, answer=label) for label in other[:3]] + [person.get(address)]


Act = Callable[[Person, Lease], object]
LONGER_AGO = timedelta(minutes=11)  # than what is said to wait is kept
ACTS: dict[str, Act] = {
    "take": lambda person, lease: person.way.take()[0],
    "release": lambda person, lease: person.way.give_back(lease),
    "expire": lambda person, lease: attacks.run_out(lease),
    "answer": lambda person, lease: person.way.answer(lease, person.label(lease.unit)),
    "undo": lambda person, lease: person.way.undo(),
    "skip": lambda person, lease: person.way.skip(lease),
    "flag": lambda person, lease: person.way.hand_on(lease),
    "ask": lambda person, lease: person.way.ask(lease),
    "change": changed,
    "toggle": lambda person, lease: person.post("/account/disturbing/", takes=person.chance.choice(["yes", "no"])),
    "prefer": lambda person, lease: person.post("/account/preferences/", text_size="large", theme="dark", goal="9"),
    "ask for a language": lambda person, lease: person.post("/account/languages/", language="it", level="3"),
    "recount": lambda person, lease: Backlog.objects.update(counted_at=timezone.now() - LONGER_AGO),
    "sheet": lambda person, lease: person.client.post(f"/tasks/{person.task.name}/sheet/start/", headers=HTMX),
}
# Around a decision of an adjudicator who reads as well, besides.
OF_CASES: dict[str, Act] = {
    "look at the case": lambda person, lease: person.of_case(""),
    "unsettle": lambda person, lease: person.of_case("unsettle/"),
}
Pair = tuple[str, str]
PAIRS: list[Pair] = list(product(ACTS, repeat=2))
PAIRS_OF_CASES: list[Pair] = list(product({**ACTS, **OF_CASES}, repeat=2))


# --- what can be seen


def seen(person: Person, key: str) -> tuple[dict[str, float], dict[str, list[str]]]:
    """The numbers and size of what a person looks at, and each view's units in their order. key: of the unit's item."""
    found, listed = {}, {}
    for view in person.views:
        reply = person.get(view)
        content = attacks.measured(reply) | _numbers(reply.content.decode())
        listed[view] = units = _units(reply.content.decode())
        content |= {"status": reply.status_code, "units": len(units)}
        content["place"] = units.index(key) if key in units else -1
        found |= {f"{view} {name}": float(value) for name, value in content.items()}
    return found, listed


# As the makers of tasks write it into the text of an item.
KEY = re.compile(r"\b(?:of|number) ((?:en-|de-)?\d+)")


def _units(text: str) -> list[str]:
    """The keys of the items whose texts are in a text, in their order."""
    return list(dict.fromkeys(KEY.findall(text)))


def _numbers(text: str) -> dict[str, float]:
    try:
        return dict(_of_json(json.loads(text)))
    except ValueError:
        pass
    # Of a page what can be read: numbers of units, leases and tokens differ by themselves, and so do times.
    text = KEY.sub("", text)
    words = re.sub(r"<(script|style).*?</\1>|<[^>]*>|\d+:\d\d(:\d\d)?|\d{4}-\d\d-\d\d", " ", text, flags=re.DOTALL)
    numbers = [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", words)]
    # Lists grow with each answer.
    return {f"number {place}": number for place, number in enumerate(numbers[:12])} | {"numbers": float(len(numbers))}


def _of_json(value: object, path: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _of_json(each, f"{path}.{key}")
    elif isinstance(value, list):
        yield f"{path} length", float(len(value))
        for number, each in enumerate(value[:5]):
            yield from _of_json(each, f"{path}[{number}]")
    # The keys of the database, which only count rows, and addresses with them.
    elif isinstance(value, int | float) and not path.endswith((".id", ".unit", ".lease", ".judgment")):
        yield path, float(value)


def told(replies: object, way: str) -> dict[str, float]:
    """Status, size, words, target, statements and time of what an act returned, by page or API."""
    found: dict[str, float] = {}
    for number, reply in enumerate(replies if isinstance(replies, list) else [replies]):
        if isinstance(reply, attacks.Reply):
            content = {"status": reply.status, "statements": len(reply.statements), **reply.content}
            content["seconds"] = reply.seconds
        elif isinstance(reply, HttpResponse):
            content = {"status": reply.status_code, **attacks.measured(reply)}
        else:
            continue
        found |= {f"{way} {name} {number}": float(value) for name, value in content.items()}
    return found


# --- trying


@dataclass
class Tried:
    """What was tried around a unit. begun: by taking it, or by deciding it. scores: of the beginning, of each act, and
    of what came afterwards.
    """

    unit: Unit
    begun: str
    pair: Pair
    scores: list[dict[str, float]] = field(default_factory=list)

    def features(self) -> Iterator[tuple[str, float]]:
        """What each act told, over all acts that came before or after it; of the second also by pair."""
        first, second = self.pair
        about = "" if self.begun == TAKE else f"{self.begun}, "
        names = [[self.begun], [f"{about}{first}"], [f"{about}then {second}", f"{about}{first}, {second}"]]
        names.append([f"{about}after {second}", "afterwards"])
        for told, all_names in zip(self.scores, names, strict=True):
            yield from ((f"{name}: {key}", value) for name in all_names for key, value in told.items())


TAKE, DECIDE = "take", "decide"


def tried(person: Person, pair: Pair, begin: str = TAKE) -> Tried | None:
    """What two acts tell around the next unit that is taken or decided: of replies, and by the differences of all that
    is looked at, before and after each.
    """
    person.look_elsewhere()
    if begin == DECIDE:
        unit = to_adjudicate(person.task, person.annotator).first()
        lease = take(person.annotator, person.task)
        person.case = unit
    else:
        unit = lease = None
    if begin == DECIDE and (unit is None or lease is None):
        return None
    last = seen(person, unit.item.key if unit else "")
    if begin == DECIDE:
        answer = {"answer" if person.way.on_page else "label": person.label(unit), "reason": "I read it"}
        reply = person.of_case("settle/", **answer)
    else:
        reply, lease = person.way.take()
        if lease is None:
            return None
        unit = lease.unit
    found = Tried(unit, begin, pair)
    for act in (None, *pair):
        scores = told(ACTS.get(act, OF_CASES.get(act))(person, lease) if act else reply, person.way.name)
        following = seen(person, unit.item.key)
        scores |= _changes(last, following)
        found.scores.append(scores)
        last = following
    found.scores.append(_afterwards(person, found, pair[-1]))
    _go_on(person)
    return found


def _changes(before: tuple, after: tuple) -> dict[str, float]:
    found = {f"change of {key}": after[0][key] - before[0][key] for key in before[0].keys() & after[0].keys()}
    # Where something stands, that was not there before, and what a page is made of, are no differences.
    found |= {key: value for key, value in after[0].items() if key.endswith((" place", " words", " status"))}
    for view, units in after[1].items():
        both = [unit for unit in units if unit in before[1][view]]
        places = [before[1][view].index(unit) for unit in both]
        found[f"{view} units in another order"] = float(sum(one > other for one, other in pairwise(places)))
    return found


def _afterwards(person: Person, found: Tried, act: str) -> dict[str, float]:
    """Whether the next unit is in the same language, and whether the colleague is given this one."""
    scores, unit = {}, found.unit
    if found.begun == TAKE:
        following = person.open or take(person.annotator, person.task)
        if following and following.unit_id != unit.pk:
            scores["next: same language"] = float(following.unit.language == unit.language)
        if act in person.asking:
            scores["colleague: is given it"] = _came_to(person, unit)
    return scores


def _came_to(person: Person, unit: Unit) -> float:
    for _ in range(LOOKED):
        theirs = take(person.colleague, person.task)
        if theirs is None:
            break
        judge(person.colleague, theirs.pk, Answer(person.label(theirs.unit)))
        if theirs.unit_id == unit.pk:
            return 1.0
    return 0.0


def _go_on(person: Person) -> None:
    """Two further units are answered, so that the next pair begins somewhere else."""
    for _ in range(2):
        if lease := take(person.annotator, person.task):
            try:
                judge(person.annotator, lease.pk, Answer(person.label(lease.unit)))
            except Refusal:
                continue


def all_tried(person: Person, units: int, pairs: Mapping[str, Sequence[Pair]]) -> list[Tried]:
    """So many units, or until nothing is left: each pair as often as any other that begins in the same way, in a random
    order.
    """
    found: list[Tried] = []
    met: set[int] = set()
    # Of three units two are read, since there are more kinds of these.
    begins = [*pairs, *pairs, TAKE][:3]
    coming: dict[str, list[Pair]] = defaultdict(list)
    for number in range(units):
        begin = begins[number % len(begins)]
        if not coming[begin]:
            coming[begin] = person.chance.sample(list(pairs[begin]), len(pairs[begin]))
        result = tried(person, coming[begin].pop(), begin)
        if result is None:
            break
        if result.unit.pk not in met:
            met.add(result.unit.pk)
            found.append(result)
    return found


# --- who is attacked


@dataclass
class Population:
    """A task with hidden units, and who attacks it. kinds: by how it begins and for each kind of hidden unit, which are
    hidden, and which are not (None: neither).
    """

    person: Person
    kinds: Mapping[str, Mapping[str, Callable[[Unit], bool | None]]]

    @property
    def pairs(self) -> dict[str, list[Pair]]:
        return {begin: PAIRS if begin == TAKE else PAIRS_OF_CASES for begin in self.kinds}

    def features(self, found: Iterable[Tried]) -> Iterator[tuple[str, bool, Iterator[tuple[str, float]]]]:
        """Of each unit that was tried and each kind: the kind, whether the unit is hidden, and what was learned."""
        for each in found:
            for kind, is_hidden in self.kinds[each.begun].items():
                if (hidden := is_hidden(each.unit)) is not None:
                    yield kind, hidden, each.features()


def _mixed(task: Task, seed: int) -> Task:
    """With its units in a random order: the makers of tasks put languages one after another, and decoys last."""
    units = list(task.units.all())
    for place, unit in enumerate(random.Random(seed).sample(units, len(units)), 1):
        unit.position = place
    Unit.objects.bulk_update(units, ["position"], batch_size=500)
    return task


def _gold(units: int, redundancy: int, way: str, **how: object) -> Population:
    """In two languages, which the order mixes; one unit in two has a known answer."""
    gold = {"queue": ["1", "0"] * (units // 2 + 20)}
    fields = {"redundancy": redundancy, "gold_share": 0.5, "pause_below": 0.0, "languages": ("en", "de")}
    task = _mixed(records_task_maker()("qa_match", 2 * units, gold=gold, **fields), units)
    ann, bea = (make_person(name, "en de", pseudonym=f"annotator-{name}") for name in ("ann", "bea"))
    return Population(Person(ann, task, bea, way, **how), {TAKE: {"gold answer": attacks.is_gold}})


def _posts(units: int, way: str, **how: object) -> Population:
    """Disputed and audited posts, some of which are checked, and cases, some of which two adjudicators decide."""
    chance = random.Random(units)
    entries = chance.choices([DISPUTED, DISPUTED, AGREED], k=4 * units)
    lots = {"audit_least": 4 * units, "audit_recheck": 0.5, "check_share": 0.5}
    task = task_maker()(entries, audit_limit=0.99, rounds=1, **lots)
    ann = make_person("ann", "de", pseudonym="annotator-ann", adjudicates=True)
    bea = make_person("bea", "de en", pseudonym="annotator-bea")
    make_person("ada", pseudonym="annotator-ada", adjudicates=True)
    # What a reader of German alone skips waits for an adjudicator.
    cem = make_person("cem", "de", pseudonym="annotator-cem")
    for _ in range(units):
        skip(cem, take(cem, task).pk)
    person = Person(ann, task, bea, way, asking=("release", "expire", "answer", "skip", "flag"), **how)
    kinds = {
        TAKE: {
            "audited post": attacks.is_audited,
            "check of a reader": lambda unit: None if attacks.is_audited(unit) else unit.recheck,
        },
        DECIDE: {"second decision": lambda unit: is_seconded(task, unit.item.key)},
    }
    return Population(person, kinds)


def _decoys(units: int, way: str, **how: object) -> Population:
    """Of which one in two posts is a decoy, and some of the others are checked."""
    number = 4 * units
    task = _mixed(task_maker()([DISPUTED] * number, asked="de", decoys=number // 2, check_share=0.5), units)
    ann, bea = (make_person(name, "de", pseudonym=f"annotator-{name}") for name in ("ann", "bea"))
    kinds = {
        "decoy": lambda unit: bool(unit.known_answer),
        "check of a reader": lambda unit: None if unit.known_answer else unit.recheck,
    }
    return Population(Person(ann, task, bea, way, **how), {TAKE: kinds})


POPULATIONS: dict[str, Callable[..., Population]] = {
    "gold, one reader": lambda units, way, **how: _gold(units, 1, way, **how),
    "gold, three readers": lambda units, way, **how: _gold(units, 3, way, **how),
    "posts": _posts,
    "decoys": _decoys,
}
