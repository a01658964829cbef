"""All pairs of a person's actions on a unit, with every number, size and order that pages, the API and a colleague's
queue return.

The true state of the units is read from the database afterwards. Stored times are changed, so that no test waits.
"""

import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise, product

from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from annotate.controls.checks import is_seconded
from annotate.core.refusals import Refusal
from annotate.kinds import Answer
from annotate.models import Annotator, Backlog, Judgment, Lease, Suggestion, Task, Unit
from annotate.work.adjudication import to_adjudicate
from annotate.work.judgments import judge, skip
from annotate.work.queue import open_lease, take
from tests.annotate import attacks
from tests.annotate.conftest import AGREED, DISPUTED, make_person, records_task_maker, task_maker

HTMX = {"HX-Request": "true"}
# The maximum number of units that a colleague takes when searching for one.
LOOKED = 3
# The views that a person can read without changing anything, and those of an adjudicator.
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
    """A person who tries to recognize hidden units, through the pages or the API, with the help of a colleague.

    asking: the actions after which the colleague searches for the unit
    views: the number of randomly chosen views to read around each unit; all by default
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
        # The decision, if there is one, and its number.
        self.case: Unit | None = None

    def look_elsewhere(self) -> None:
        self.views = self.chance.sample(self.all_views, self.number)

    def label(self, unit: Unit) -> str:
        return self.chance.choice([unit.asked, f"not-{unit.asked}"] if unit.asked else self.task.labels[:2])

    @property
    def open(self) -> Lease | None:
        return open_lease(self.annotator, self.task)

    def of_case(self, what: str, **fields: object) -> HttpResponse:
        """Send a request about the case. what: the end of the URL; empty to view the case."""
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
    judgment = Judgment.objects.filter(lease=lease).first()
    address = f"/tasks/{person.task.name}/answers/{judgment.pk if judgment else 0}/"
    other = [label for label in ("0", "1", "de", "en", "fr") if not judgment or label != judgment.label]
    return [person.post(address, answer=label) for label in other[:3]] + [person.get(address)]


Act = Callable[[Person, Lease], object]
LONGER_AGO = timedelta(minutes=11)  # longer than the number of waiting units is cached
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
# Additional actions around a decision by an adjudicator who is also a reader.
OF_CASES: dict[str, Act] = {
    "look at the case": lambda person, lease: person.of_case(""),
    "unsettle": lambda person, lease: person.of_case("unsettle/"),
}
Pair = tuple[str, str]
PAIRS: list[Pair] = list(product(ACTS, repeat=2))
PAIRS_OF_CASES: list[Pair] = list(product({**ACTS, **OF_CASES}, repeat=2))


# --- Visible information


def seen(person: Person, key: str) -> tuple[dict[str, float], dict[str, list[str]]]:
    """Return the numbers and sizes in a person's views, and the units in each view in order. key: the item's key."""
    scores, listed = {}, {}
    for view in person.views:
        reply = person.get(view)
        content = attacks.measured(reply) | _numbers(reply.content.decode())
        listed[view] = units = _units(reply.content.decode())
        content |= {"status": reply.status_code, "units": len(units)}
        content["place"] = units.index(key) if key in units else -1
        scores |= {f"{view} {name}": float(value) for name, value in content.items()}
    return scores, listed


# The key of an item, as task fixtures write it into the text.
KEY = re.compile(r"\b(?:of|number) ((?:en-|de-)?\d+)")


def _units(text: str) -> list[str]:
    """Return the keys of the items whose texts occur in a text, in order."""
    return list(dict.fromkeys(KEY.findall(text)))


def _numbers(text: str) -> dict[str, float]:
    try:
        return dict(_of_json(json.loads(text)))
    except ValueError:
        pass
    # Keep only the readable text of a page, because ids of units and leases, tokens and times always differ.
    text = KEY.sub("", text)
    words = re.sub(r"<(script|style).*?</\1>|<[^>]*>|\d+:\d\d(:\d\d)?|\d{4}-\d\d-\d\d", " ", text, flags=re.DOTALL)
    numbers = [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", words)]
    # Lists grow with each answer, so their lengths always differ.
    return {f"number {place}": number for place, number in enumerate(numbers[:12])} | {"numbers": float(len(numbers))}


def _of_json(value: object, path: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from _of_json(entry, f"{path}.{key}")
    elif isinstance(value, list):
        yield f"{path} length", float(len(value))
        for number, entry in enumerate(value[:5]):
            yield from _of_json(entry, f"{path}[{number}]")
    # Primary keys, and the URLs that contain them, only count rows.
    elif isinstance(value, int | float) and not path.endswith((".id", ".unit", ".lease", ".judgment")):
        yield path, float(value)


def scores_of(replies: object, way: str) -> dict[str, float]:
    """Return the status, size, words, redirect target, statements and time of the responses to an action."""
    scores: dict[str, float] = {}
    for number, reply in enumerate(replies if isinstance(replies, list) else [replies]):
        if isinstance(reply, attacks.Reply):
            content = {"status": reply.status, "statements": len(reply.statements), **reply.content}
            content["seconds"] = reply.seconds
        elif isinstance(reply, HttpResponse):
            content = {"status": reply.status_code, **attacks.measured(reply)}
        else:
            continue
        scores |= {f"{way} {name} {number}": float(value) for name, value in content.items()}
    return scores


# --- Experiments


@dataclass
class Tried:
    """The results of an experiment on a unit.

    begun: whether it began by taking or by deciding the unit
    scores: the scores of the beginning, of each action, and of the time afterwards
    """

    unit: Unit
    begun: str
    pair: Pair
    scores: list[dict[str, float]] = field(default_factory=list)

    def features(self) -> Iterator[tuple[str, float]]:
        """Yield the scores of each action, over all actions before or after it; for the second action, also by pair."""
        first, second = self.pair
        about = "" if self.begun == TAKE else f"{self.begun}, "
        names = [[self.begun], [f"{about}{first}"], [f"{about}then {second}", f"{about}{first}, {second}"]]
        names.append([f"{about}after {second}", "afterwards"])
        for scores, all_names in zip(self.scores, names, strict=True):
            yield from ((f"{name}: {key}", value) for name in all_names for key, value in scores.items())


TAKE, DECIDE = "take", "decide"


def tried(person: Person, pair: Pair, begin: str = TAKE) -> Tried | None:
    """Try two actions on the next unit that is taken or decided. Return the scores of the responses and of the
    differences in all views before and after each action.
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
    attempt = Tried(unit, begin, pair)
    for act in (None, *pair):
        scores = scores_of(ACTS.get(act, OF_CASES.get(act))(person, lease) if act else reply, person.way.name)
        following = seen(person, unit.item.key)
        scores |= _changes(last, following)
        attempt.scores.append(scores)
        last = following
    attempt.scores.append(_afterwards(person, attempt, pair[-1]))
    _go_on(person)
    return attempt


def _changes(before: tuple, after: tuple) -> dict[str, float]:
    changes = {f"change of {key}": after[0][key] - before[0][key] for key in before[0].keys() & after[0].keys()}
    # The position of a new element and the structure of a page do not count as differences.
    changes |= {key: value for key, value in after[0].items() if key.endswith((" place", " words", " status"))}
    for view, units in after[1].items():
        both = [unit for unit in units if unit in before[1][view]]
        places = [before[1][view].index(unit) for unit in both]
        changes[f"{view} units in another order"] = float(sum(one > other for one, other in pairwise(places)))
    return changes


def _afterwards(person: Person, attempt: Tried, act: str) -> dict[str, float]:
    """Return whether the next unit is in the same language, and whether the colleague gets this unit."""
    scores, unit = {}, attempt.unit
    if attempt.begun == TAKE:
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
    """Answer two more units, so that the next pair starts in a different state."""
    for _ in range(2):
        if lease := take(person.annotator, person.task):
            try:
                judge(person.annotator, lease.pk, Answer(person.label(lease.unit)))
            except Refusal:
                continue


def all_tried(person: Person, units: int, pairs: Mapping[str, Sequence[Pair]]) -> list[Tried]:
    """Run experiments on this many units, or until none are left. Pairs with the same beginning are tried equally
    often, in random order.
    """
    if connection.vendor == "postgresql":
        # The database does not collect statistics of a transaction that never ends.
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    attempts: list[Tried] = []
    met: set[int] = set()
    # Two of three units are read, because more pairs begin with reading.
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
            attempts.append(result)
    return attempts


# --- Tasks to attack


@dataclass
class Population:
    """A task with hidden units, and its attacker.

    kinds: for each beginning and each kind of hidden unit, a function that returns whether a unit is hidden (None if it
        is neither)
    """

    person: Person
    kinds: Mapping[str, Mapping[str, Callable[[Unit], bool | None]]]

    @property
    def pairs(self) -> dict[str, list[Pair]]:
        return {begin: PAIRS if begin == TAKE else PAIRS_OF_CASES for begin in self.kinds}

    def features(self, attempts: Iterable[Tried]) -> Iterator[tuple[str, bool, Iterator[tuple[str, float]]]]:
        """Yield (kind, whether the unit is hidden, scores) for each unit that was tried and each kind."""
        for attempt in attempts:
            for kind, is_hidden in self.kinds[attempt.begun].items():
                if (hidden := is_hidden(attempt.unit)) is not None:
                    yield kind, hidden, attempt.features()


def _mixed(task: Task, seed: int) -> Task:
    """Put the units of a task in random order, because task fixtures sort by language and add decoys last."""
    units = list(task.units.all())
    for place, unit in enumerate(random.Random(seed).sample(units, len(units)), 1):
        unit.position = place
    Unit.objects.bulk_update(units, ["position"], batch_size=500)
    return task


def _gold(units: int, redundancy: int, way: str, **how: object) -> Population:
    """Create units in two languages in mixed order. Every second unit has a known answer."""
    gold = {"queue": ["1", "0"] * (units // 2 + 20)}
    fields = {"redundancy": redundancy, "gold_share": 0.5, "pause_below": 0.0, "languages": ("en", "de")}
    task = _mixed(records_task_maker()("qa_match", 2 * units, gold=gold, **fields), units)
    ann, bea = (make_person(name, "en de", pseudonym=f"annotator-{name}") for name in ("ann", "bea"))
    return Population(Person(ann, task, bea, way, **how), {TAKE: {"gold answer": attacks.is_gold}})


def _suggested(units: int, way: str, **how: object) -> Population:
    """Create the units of `_gold`. A machine suggests an answer to each, and half of the suggestions are hidden."""
    population = _gold(units, 1, way, **how)
    suggest_by_chance(population.person.task, 0.5)
    return population


def suggest_by_chance(task: Task, blind_share: float) -> None:
    """Store a suggestion for each unit of a task, as if it had been opened with --suggest."""
    task.suggest, task.blind_share = ["machine@1"], blind_share
    task.save()
    chance = random.Random(task.name)
    Suggestion.objects.bulk_create(
        Suggestion(unit=unit, system="machine@1", ranked=[chance.choice(task.labels)])
        for unit in task.units.order_by("pk")
    )


def _posts(units: int, way: str, **how: object) -> Population:
    """Create disputed and audited posts, with some checks, and cases, some of them for two adjudicators."""
    chance = random.Random(units)
    entries = chance.choices([DISPUTED, DISPUTED, AGREED], k=4 * units)
    lots = {"audit_least": 4 * units, "audit_recheck": 0.5, "check_share": 0.5}
    task = task_maker()(entries, audit_limit=0.99, rounds=1, **lots)
    ann = make_person("ann", "de", pseudonym="annotator-ann", adjudicates=True)
    bea = make_person("bea", "de en", pseudonym="annotator-bea")
    make_person("ada", pseudonym="annotator-ada", adjudicates=True)
    # A unit that the only reader of German skips goes to an adjudicator.
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
    """Create posts to verify. Half of them are decoys, and some of the others are checked."""
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
    "gold with suggestions": _suggested,
    "posts": _posts,
    "decoys": _decoys,
}
