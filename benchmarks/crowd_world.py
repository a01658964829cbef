"""A simulated crowd: records with known labels, people with known accuracy, and their answers. No input or output.

A person's answer to a record depends only on the seed, the person's name and the record, so the same crowd can be used
for tasks with different guards. Spammers answer the test as well as the best people, and everything else at random.
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
# The share of records that a person skips.
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
    """A person who is right in the share `accuracy` of the queue and in the share `tested` of the test."""

    name: str
    accuracy: float
    tested: float
    spams: bool = False


def crowd(honest: int, spammers: int, low: float = 0.6, high: float = 0.95) -> list[Labeler]:
    """Return honest people with accuracies from low to high in equal steps, and spammers."""
    step = (high - low) / max(1, honest - 1)
    good = [Labeler(f"honest{n:02}", round(low + n * step, 4), round(low + n * step, 4)) for n in range(honest)]
    return good + [Labeler(f"spammer{n}", AT_RANDOM, SPAMMER_IN_TEST, True) for n in range(spammers)]


def records(counts: dict[str, int], seed: str) -> list[Record]:
    """Return this many records for each purpose in random order, half with each label (one more "1" if odd)."""
    pairs = []
    for purpose, count in counts.items():
        for n in range(count):
            number = len(pairs) + 1
            rng = random.Random(f"{seed} record {number}")
            thing, (question, unit) = rng.choice(THINGS), rng.choice(ASKED)
            truth = LABELS[n % 2]
            answer = f"{rng.randint(2, 990)} {unit}" if truth == "1" else "painted anew every spring"
            pairs.append(
                Record(
                    id=f"{purpose}-{number:05}",
                    question=f"{question} is {thing} number {number}?",
                    passage=f"Of all in the valley, {thing} number {number} is {answer}.",
                    truth=truth,
                    purpose=purpose,
                )
            )
    random.Random(f"{seed} records").shuffle(pairs)
    return pairs


class World:
    """The truth and people's answers. Records are identified by their question, because clients see nothing else."""

    def __init__(self, records: Iterable[Record], seed: str, skipped: float = SKIPPED) -> None:
        self.seed, self.skipped = seed, skipped
        self.records = {record.question: record for record in records}
        self.truth = {record.id: record.truth for record in self.records.values()}

    def _chance(self, labeler: Labeler, question: str) -> random.Random:
        return random.Random(f"{self.seed} {labeler.name} {question}")

    def answer(self, labeler: Labeler, question: str) -> str:
        """Return a label. It is right with the labeler's accuracy in the queue, or in the test."""
        record = self.records[question]
        accuracy = labeler.tested if record.purpose == TEST else labeler.accuracy
        right = self._chance(labeler, question).random() < accuracy
        return record.truth if right else LABELS[1 - LABELS.index(record.truth)]

    def skips(self, labeler: Labeler, question: str) -> bool:
        return self._chance(labeler, f"skip {question}").random() < self.skipped
