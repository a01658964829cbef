"""A simulated crowd: records whose truth is known, people of known accuracy, and what each says. No input or output.

What somebody says of a record depends on the seed, their name and the record alone, never on when they are asked, so
one crowd can be let loose on tasks that differ in how they guard themselves. Spammers answer the test as well as the
best do, and at random what comes after it.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass

LABELS = ("1", "0")
LANGUAGE = "en"
WORK, PRACTICE, TEST, QUEUE = "work", "practice", "test", "queue"
# In the test; as good as the best.
SPAMMER_IN_TEST = 0.95
AT_RANDOM = 0.5
# The share of records that anybody passes on.
SKIPPED = 0.02

THINGS = ("river", "bridge", "tower", "comet", "orchard", "harbour", "glacier", "library", "lantern", "market")
ASKED = (("How old", "years old"), ("How tall", "metres tall"), ("How heavy", "tons heavy"), ("How deep", "feet deep"))


@dataclass(frozen=True)
class Record:
    """A question, a passage, and whether the passage answers the question ("1") or not ("0"). For work or as gold."""

    id: str
    question: str
    passage: str
    truth: str
    purpose: str


@dataclass(frozen=True)
class Labeler:
    """Somebody who is right in a share `accuracy` of the queue, and in `tested` of the test."""

    name: str
    accuracy: float
    tested: float
    spams: bool = False


def crowd(honest: int, spammers: int, low: float = 0.6, high: float = 0.95) -> list[Labeler]:
    """Honest people with accuracies from low to high in equal steps, and spammers."""
    step = (high - low) / max(1, honest - 1)
    good = [Labeler(f"honest{n:02}", round(low + n * step, 4), round(low + n * step, 4)) for n in range(honest)]
    return good + [Labeler(f"spammer{n}", AT_RANDOM, SPAMMER_IN_TEST, True) for n in range(spammers)]


def records(counts: dict[str, int], seed: str) -> list[Record]:
    """So many records for each purpose, as many of either label (one more of "1" where odd), in an order by lot."""
    found = []
    for purpose, count in counts.items():
        for n in range(count):
            number = len(found) + 1
            rng = random.Random(f"{seed} record {number}")
            thing, (question, unit) = rng.choice(THINGS), rng.choice(ASKED)
            truth = LABELS[n % 2]
            told = f"{rng.randint(2, 990)} {unit}" if truth == "1" else "painted anew every spring"
            found.append(
                Record(
                    id=f"{purpose}-{number:05}",
                    question=f"{question} is {thing} number {number}?",
                    passage=f"Of all in the valley, {thing} number {number} is {told}.",
                    truth=truth,
                    purpose=purpose,
                )
            )
    random.Random(f"{seed} records").shuffle(found)
    return found


class World:
    """What is true, and what people make of it. Records are known by their question, which is all that a page tells."""

    def __init__(self, found: Iterable[Record], seed: str, skipped: float = SKIPPED) -> None:
        self.seed, self.skipped = seed, skipped
        self.records = {record.question: record for record in found}
        self.truth = {record.id: record.truth for record in self.records.values()}

    def _chance(self, labeler: Labeler, question: str) -> random.Random:
        return random.Random(f"{self.seed} {labeler.name} {question}")

    def says(self, labeler: Labeler, question: str) -> str:
        """A label: right with the labeler's accuracy in the queue, or in the test where the record is of the test."""
        record = self.records[question]
        accuracy = labeler.tested if record.purpose == TEST else labeler.accuracy
        right = self._chance(labeler, question).random() < accuracy
        return record.truth if right else LABELS[1 - LABELS.index(record.truth)]

    def skips(self, labeler: Labeler, question: str) -> bool:
        return self._chance(labeler, f"skip {question}").random() < self.skipped
