"""The crowd of crowd_world without a server and database, so that many runs can be simulated. No input or output.

The schedule is that of the queue. All people work at the same speed. Each receives the first unit that has a free place
and that they have not answered, but one unit of each block, at a random position, is a gold answer. The rule is applied
after each gold answer. When no units are left, the manager voids all answers of paused people, and the affected units
are asked again. This repeats until no more people are paused.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import comb

from annotate.core.pause_rule import Rule, chance_of_pause, pauses
from benchmarks.crowd_world import Labeler


@dataclass(frozen=True)
class EntryTest:
    """A test. Of `items` questions, the share `mark` must be answered correctly in one of the attempts."""

    items: int
    mark: float
    tries: int

    def passed(self, right: int) -> bool:
        return right >= self.mark * self.items - 1e-9

    def chance(self, accuracy: float) -> float:
        """Return the probability of passing in one of the attempts, each with new questions."""
        failed = sum(
            comb(self.items, right) * accuracy**right * (1 - accuracy) ** (self.items - right)
            for right in range(self.items + 1)
            if not self.passed(right)
        )
        return 1 - failed**self.tries


@dataclass(frozen=True)
class Guard:
    """The guards of a task. A guard that the task does not have is None."""

    test: EntryTest | None
    rule: Rule | None
    gold_share: float = 0.0
    gold_pool: int = 0


@dataclass
class Work:
    """The work of one person in a run."""

    labeler: Labeler
    admitted: bool = True
    answered: int = 0  # units without gold answers
    gold: list[bool] = field(default_factory=list)  # whether right, in order
    paused: bool = False
    gold_place: int = 0  # of the gold answer in the current block

    def gold_is_due(self, guard: Guard, rng: random.Random) -> bool:
        """Return whether a gold answer is due, by the rule of controls/honeypots.py."""
        if not guard.rule or len(self.gold) >= guard.gold_pool:
            return False
        size = max(2, round(1 / guard.gold_share))
        at = (self.answered + len(self.gold)) % size
        if at == 0:
            self.gold_place = rng.randrange(size)
        return at == self.gold_place


@dataclass
class Run:
    work: list[Work]
    right: int  # units whose label is right
    units: int
    answers: int
    voided: int

    @property
    def accuracy(self) -> float:
        return self.right / self.units


def run(labelers: Sequence[Labeler], guard: Guard, *, units: int, redundancy: int, seed: str) -> Run:
    """Simulate one task. A person's answer to a unit is the same under every guard."""
    rng = random.Random(f"{seed} answers")
    says = [[rng.random() < labeler.accuracy for _ in range(units)] for labeler in labelers]
    rng = random.Random(f"{seed} schedule")
    people = [Work(labeler, admitted=_passes(labeler, guard.test, rng)) for labeler in labelers]
    answers: list[dict[int, bool]] = [{} for _ in range(units)]  # by person
    queue, made, voided = list(range(units)), 0, 0
    at_work = [number for number, person in enumerate(people) if person.admitted]
    void: list[int] = []
    while queue:
        made += _work(people, at_work, queue, says, answers, guard, redundancy, rng)
        gone = [n for n in at_work if people[n].paused]
        void += gone
        at_work = [n for n in at_work if n not in gone]
        for by_person in answers:
            for number in gone:
                voided += by_person.pop(number, None) is not None
        queue = [unit for unit, by_person in enumerate(answers) if len(by_person) < redundancy]
        if not gone:
            break
    right = sum(2 * sum(by_person.values()) > redundancy for by_person in answers if len(by_person) == redundancy)
    return Run(people, right, units - len(queue), made, voided)


def _passes(labeler: Labeler, test: EntryTest | None, rng: random.Random) -> bool:
    if test is None:
        return True
    tries = [sum(rng.random() < labeler.tested for _ in range(test.items)) for _ in range(test.tries)]
    return any(test.passed(right) for right in tries)


def _work(people, at_work, queue, says, answers, guard, redundancy, rng) -> int:
    """Let people answer in turn, in random order, until nobody finds a unit. Return the number of answers."""
    made, active = 0, list(at_work)
    while active:
        rng.shuffle(active)
        for number in list(active):
            person = people[number]
            place = next((at for at, unit in enumerate(queue) if number not in answers[unit]), None)
            if place is None:
                active.remove(number)
                continue
            if person.gold_is_due(guard, rng):
                person.gold.append(rng.random() < person.labeler.accuracy)
                person.paused = pauses(sum(person.gold), len(person.gold), guard.rule)
                if person.paused:
                    active.remove(number)
                continue
            by_person = answers[queue[place]]
            by_person[number] = says[number][queue[place]]
            person.answered, made = person.answered + 1, made + 1
            if len(by_person) == redundancy:
                del queue[place]
    return made


def paused_by(work: Iterable[Work], gold_answers: int) -> float:
    """Return the share of people paused within this many gold answers, as estimated by Kaplan and Meier.

    People who received fewer and were not paused count for as long as they received some.
    """
    listed, going_on = list(work), 1.0
    for number in range(1, gold_answers + 1):
        reached = [person for person in listed if len(person.gold) >= number]
        stopped = sum(person.paused and len(person.gold) == number for person in reached)
        going_on *= 1 - stopped / len(reached) if reached else 1.0
    return 1 - going_on


def exactly(work: Iterable[Work], gold_answers: int, rule: Rule) -> float:
    """Return the same from the exact table, averaged over these people."""
    chances = {person.labeler.accuracy: 0.0 for person in work}
    listed = [person.labeler.accuracy for person in work]
    for accuracy in chances:
        chances[accuracy] = chance_of_pause(accuracy, gold_answers, rule)[-1]
    return sum(chances[accuracy] for accuracy in listed) / len(listed)
