"""Simulated campaigns of people who read, skip, come late, stay away and leave, by the moves of core/stages.py.

The assumptions of figures/finish_simulation.py do not hold here. A reader works on certain days of the week, comes on
most of these, may fall ill for a week or leave, and is slow at first. The times of answers have a gamma distribution.
Units that were skipped once are skipped more often. The queue is that of work/assignment.py: a free person receives the
first unit in the draw that waits in one of their languages and that they have not judged.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from random import Random
from typing import NamedTuple

from annotate.core import stages
from annotate.core.draws.hash_order import lot
from annotate.figures.finish_simulation import ADJUDICATION, Assumed, Finish, Queue, Reader, Share, forecast

LANGUAGES = {"en": 0.3, "de": 0.22, "hr": 0.16, "sr": 0.14, "nl": 0.1, "cs": 0.08}
HOURS, DAY = 3600.0, 24 * 3600.0
NOBODY = 300.0  # seconds after which a person without a unit looks again
LIMIT = 120  # days after which a campaign is given up


@dataclass(frozen=True)
class World:
    """A population. people: their number; the last two adjudicate. units; seconds (per answer) and weekly (hours): as
    the manager knows them. wrong: how far all people differ from these (standard deviation of the factor's logarithm);
    unlike: how far they differ from one another, in the same terms. skipped: shares by round; checked: share that an
    adjudicator checks at random. late, ill, leaves: shares of people. elapsed: days before the forecast; assumed: the
    manager's seconds, if mistaken.
    """

    people: int = 20
    units: int = 6000
    seconds: float = 120.0
    weekly: float = 10.0
    wrong: float = 0.2
    unlike: float = 0.4
    skipped: tuple[float, ...] = (0.08, 0.2, 0.35)
    checked: float = 0.05
    late: float = 0.15
    ill: float = 0.15
    leaves: float = 0.08
    elapsed: int = 0
    assumed: float = 0.0


@dataclass
class Person:
    key: str
    queues: tuple[str, ...]
    seconds: float
    weekdays: frozenset[int]
    hours: float
    comes: float
    begins: int
    away: range
    leaves: float
    answered: int = 0
    busy: Counter[int] = field(default_factory=Counter)  # day -> seconds
    answers: Counter[int] = field(default_factory=Counter)  # day -> answers

    def session(self, day: int, chance: Random) -> tuple[float, float] | None:
        """Return the start and end of their work on a day (seconds since the beginning), or None if they are away."""
        if day < self.begins or day in self.away or day >= self.leaves or day % 7 not in self.weekdays:
            return None
        if chance.random() > self.comes:
            return None
        start = day * DAY + chance.uniform(7, 19) * HOURS
        return start, start + self.hours * chance.uniform(0.4, 1.6) * HOURS

    def takes(self, chance: Random) -> float:
        """Return the seconds of the next answer: 1.5 times the usual at first, and the usual after about a hundred."""
        slow = 1 + 0.5 / (1 + self.answered / 40)
        return self.seconds * slow * chance.gammavariate(1.3, 1 / 1.3)


@dataclass
class Unit:
    position: int
    candidates: tuple[str, ...]
    checked: bool
    stage: str = stages.QUEUED
    round: int = 1
    judged: set[str] = field(default_factory=set)

    @property
    def queue(self) -> str:
        return ADJUDICATION if self.stage == stages.ADJUDICATION else self.candidates[self.round - 1]

    def move(self, event: str, end: str) -> None:
        stages.check_move(self.stage, event, end)
        self.stage = end


class Campaign:
    def __init__(self, world: World, seed: str) -> None:
        self.world, self.chance = world, Random(int(lot(seed, "campaign", ""), 16))
        self.people = self._people()
        self.units = [self._unit(position) for position in range(world.units)]
        self.waiting: dict[str, list[tuple[int, int]]] = {name: [] for name in (*LANGUAGES, ADJUDICATION)}
        for unit in self.units:
            self.waiting[unit.queue].append((unit.position, unit.position))
        for heap in self.waiting.values():
            heapify(heap)
        self.left = Counter(unit.queue for unit in self.units)
        self.ends: dict[str, float] = {}
        self.skips = self.judgments = self.unforeseen = self.answers = 0

    def _people(self) -> list[Person]:
        world, chance = self.world, self.chance
        slower, fewer = chance.lognormvariate(0, world.wrong), chance.lognormvariate(0, world.wrong)
        readers, names = world.people - 2, [*LANGUAGES]
        spoken = [{names[n % len(names)]} for n in range(readers)]
        for languages in spoken:  # each language has several; many read two, some three
            languages |= set(chance.choices(names, [*LANGUAGES.values()], k=chance.choice((0, 1, 1, 2))))
        by_person = [*(tuple(sorted(languages)) for languages in spoken), (ADJUDICATION,), (ADJUDICATION,)]
        return [self._person(f"p{n}", queues, slower, fewer) for n, queues in enumerate(by_person)]

    def _person(self, key: str, queues: tuple[str, ...], slower: float, fewer: float) -> Person:
        world, chance = self.world, self.chance
        days = frozenset(
            chance.sample(range(7), 3) if chance.random() < 0.3 else [*range(5), *chance.sample((5, 6), 1)]
        )
        comes = chance.uniform(0.7, 0.95)
        weekly = world.weekly * fewer * chance.lognormvariate(-(world.unlike**2) / 2, world.unlike)
        ill = chance.randrange(0, 15) if chance.random() < world.ill else None
        return Person(
            key,
            queues,
            world.seconds * slower * chance.lognormvariate(0, world.unlike) / 1.1,
            days,
            min(9.0, weekly / len(days) / comes),
            comes,
            chance.randrange(2, 7) if chance.random() < world.late else chance.choice((0, 0, 1)),
            range(0) if ill is None else range(ill, ill + chance.randrange(3, 8)),
            chance.expovariate(1 / 8) if chance.random() < world.leaves else float("inf"),
        )

    def _unit(self, position: int) -> Unit:
        candidates: dict[str, None] = {}
        while len(candidates) < 3:
            candidates[self.chance.choices([*LANGUAGES], [*LANGUAGES.values()])[0]] = None
        return Unit(position, tuple(candidates), self.chance.random() < self.world.checked)

    # --- what a manager knows

    def queues(self) -> list[Queue]:
        units = [unit for unit in self.units if unit.stage == stages.QUEUED]
        whole = Counter(unit.candidates[0] for unit in self.units)
        queues = []
        for name in LANGUAGES:
            queue = [unit for unit in units if unit.queue == name]
            then = Counter(unit.candidates[unit.round] for unit in queue if unit.round < 3)
            onward = {other: number / len(queue) for other, number in then.items()}
            onward[ADJUDICATION] = sum(unit.round == 3 for unit in queue) / max(1, len(queue))
            queues.append(Queue(name, len(queue), len(queue), whole[name], sum(unit.checked for unit in queue), onward))
        cases = sum(unit.stage == stages.ADJUDICATION for unit in self.units)
        return [*queues, Queue(ADJUDICATION, cases)]

    def readers(self, day: int) -> list[Reader]:
        return [self._reader(person, day) for person in self.people]

    def _reader(self, person: Person, day: int) -> Reader:
        if ADJUDICATION in person.queues:  # little work reaches them, so their pace is unknown
            return Reader(person.key, person.queues)
        if not person.answers:
            return Reader(person.key, person.queues, idle=day)
        answers, busy, worked = person.answers.total(), person.busy.total(), [*person.answers]
        return Reader(
            person.key,
            person.queues,
            answers=answers,
            seconds=busy / answers,
            worked=len(worked),
            hours=busy / HOURS / len(worked),
            days=day - worked[0],
            idle=day - 1 - worked[-1],
        )

    # --- what happens

    def days(self) -> Iterator[int]:
        """Work day by day. Yield each day before it begins."""
        for day in range(LIMIT):
            yield day
            free = []
            for place, person in enumerate(self.people):
                if session := person.session(day, self.chance):
                    heappush(free, (session[0], place, session[1]))
            while free:
                at, place, until = heappop(free)
                if at < until and self.left.total():
                    heappush(free, (self._work(self.people[place], at, day), place, until))

    def _work(self, person: Person, at: float, day: int) -> float:
        """Process one answer, and return when the person is free again."""
        unit = self._next(person)
        if unit is None:
            return at + NOBODY
        takes = person.takes(self.chance)
        unit.judged.add(person.key)
        self.left[unit.queue] -= 1
        self._judged(unit, at + takes)
        person.answered, person.answers[day] = person.answered + 1, person.answers[day] + 1
        person.busy[day] += takes
        return at + takes

    def _next(self, person: Person) -> Unit | None:
        heads = [(self.waiting[name][0], name) for name in person.queues if self.waiting[name]]
        for (position, _), name in sorted(heads):
            if person.key not in self.units[position].judged:
                heappop(self.waiting[name])
                return self.units[position]
        return None

    def _judged(self, unit: Unit, at: float) -> None:
        queue, chance = unit.queue, self.chance
        self.ends[queue] = max(at, self.ends.get(queue, 0))
        if unit.stage == stages.ADJUDICATION:
            unit.move("settled", stages.LABELLED)
            return
        self.judgments += 1
        if chance.random() < self.world.skipped[unit.round - 1]:
            self.skips += 1
            if unit.round == 3:
                unit.move("exhausted", stages.ADJUDICATION)
            else:
                unit.move("skipped", stages.QUEUED)
                unit.round += 1
        else:
            self.answers += 1
            unit.move(*(("checked", stages.ADJUDICATION) if unit.checked else ("answered", stages.LABELLED)))
        if unit.stage != stages.LABELLED:
            self.left[unit.queue] += 1
            heappush(self.waiting[unit.queue], (unit.position, unit.position))


class Row(NamedTuple):
    """The result of one campaign: its end (days) and its forecast, in total and by language."""

    end: float
    foretold: tuple[float, float, float]
    languages: list[tuple[float, float, float, float]]


def run(world: World, seed: str) -> Row | None:
    """Return None if the campaign ended before the forecast was due."""
    campaign, made, elapsed = Campaign(world, seed), None, world.elapsed
    for day in campaign.days():
        if day == elapsed:
            if not campaign.left.total():
                return None
            made = forecast(
                campaign.queues(),
                campaign.readers(day),
                Assumed(world.assumed or world.seconds, world.weekly),
                skips=Share(campaign.skips, campaign.judgments),
                conflicts=Share(0, campaign.answers),
                weekday=day % 7,
                seed=seed,
            )
        elif not campaign.left.total():
            break
    assert made
    ends = {name: at / DAY - elapsed for name, at in campaign.ends.items()}
    unfinished = {name for name, number in campaign.left.items() if number}
    ends |= dict.fromkeys(unfinished, float("inf"))
    languages = [(ends[name], *made.queues[name]) for name in LANGUAGES if ends.get(name, 0) > 0]
    return Row(max(ends.values()), made.all or Finish(0, 0, 0), languages)


# In later worlds, more differs from what the manager knows.
WORLDS = {
    "as expected": World(),
    "few units": World(units=1500),
    "many units": World(units=15000),
    "after three days": World(elapsed=3),
    "after a week, of many units": World(units=15000, elapsed=7),
    "half as long again as assumed": World(seconds=180.0, assumed=120.0),
    "all differ more from what is assumed": World(wrong=0.5),
    "three in ten leave, four come late": World(leaves=0.3, late=0.4),
    "half is skipped": World(skipped=(0.35, 0.5, 0.6)),
}


def main(name: str, draws: str, seed: str) -> None:
    for number in range(int(draws)):
        if row := run(WORLDS[name], f"{seed} {number}"):
            print(json.dumps(row))


if __name__ == "__main__":
    main(*sys.argv[1:])
