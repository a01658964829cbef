"""Simulate the remaining work to forecast when each queue and the whole task will be finished.

This module has no access to the database: `finish_forecast.py` reads the remaining work and the annotators. The
simulation does not track individual units, only the amount of work in each queue, day by day. A few hundred futures are
simulated in parallel, each with its own draws of the unknown quantities. The range is from the 5% quantile to the 95%
quantile. benchmarks/forecasts.py measures how often simulated campaigns end within the range.

These quantities are unknown, so they are drawn at random:

- Each annotator's pace and daily hours. The fewer observations there are, the more they are shrunk towards the mean of
  all annotators, which is itself shrunk towards the assumptions.
- The days on which annotators work, when they start, and whether they stay.
- The share of skipped units, and the share of units that go to adjudicators.

An annotator who works in several languages gets units in draw order (see work/assignment.py), so the
annotator's time goes to the queue that is furthest behind.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, log, sqrt
from typing import NamedTuple

import numpy as np

from annotate.core.aggregation.answer_table import Bools, Floats
from annotate.core.estimation.resampling import generator

ADJUDICATION = "adjudication"  # the adjudicators' queue
FUTURES = 200
TAIL = 0.05  # share of futures below the range, and share of futures above it
HORIZON = 730  # maximum number of simulated days
# The first EXACT days are simulated one by one. After that, each step is a share (GROWTH) of the elapsed time.
EXACT, GROWTH = 21, 0.05
PARTS, COARSE = 4, 2  # number of parts of a day, and of a longer step; annotators can change queues after each part
LITTLE = 0.5  # a smaller number of answers counts as zero
MANY = 40  # if a queue has more annotators than this, only a sample of them is simulated

# Standard deviations of the logarithms of seconds per answer and of hours per day: ASSUMED for the annotators' mean
# around the assumption, BETWEEN for different annotators, and WITHIN for one annotator's answers (or days). DRIFT is
# for changes over time, because annotators learn or get tired. These and the following values are large enough for
# different campaigns to end within the range (benchmarks).
ASSUMED, BETWEEN, WITHIN, DRIFT = 0.3, 0.45, 0.9, 0.12
# Replaces ASSUMED and HOURS_ASSUMED once any annotator's pace was measured, so that data outweigh the assumption.
MEASURED = 1.0
HOURS_ASSUMED, HOURS_BETWEEN, HOURS_WITHIN = 0.25, 0.5, 0.6
# Weight of the assumed share of working days, as a number of observed days: for the mean of all annotators, and for
# each annotator.
DAYS_ASSUMED, DAYS_BETWEEN = 20, 4
WEEKEND = 0.4  # probability of work on a weekend day, relative to other days
# For annotators who have not started: the share who never start, and the scale of the others' delay in days. Half of
# them start within 0.8 days, and a tenth after more than 4.3 days. The delay has a Lomax distribution with shape 2, so
# the longer an annotator has waited, the longer the expected remaining delay.
NEVER, BEGINS = 0.03, 2.0
# For annotators who work: the median probability of stopping for good on a given day, and the standard deviation of its
# logarithm.
STOPS, STOPS_SPREAD = 0.002, 0.8


class Share(NamedTuple):
    """A proportion of events. Assumptions are added in the form of pseudo-observations.

    part: number of events.
    whole: number of opportunities.
    """

    part: float
    whole: float

    def __add__(self, assumed: "Share") -> "Share":  # type: ignore[override]
        return Share(self.part + assumed.part, self.whole + assumed.whole)

    def draw(self, drawing: np.random.Generator) -> Floats:
        return drawing.beta(max(self.part, 1e-3), max(self.whole - self.part, 1e-3), FUTURES)


NO_DATA = Share(0.0, 0.0)
USUAL_SKIPS, USUAL_CONFLICTS = Share(1.0, 12.0), Share(1.0, 25.0)


@dataclass(frozen=True)
class Queue:
    """A queue.

    answers: number of missing answers.
    units: number of units with missing answers, needed because no annotator answers a unit twice; 0 if equal to
        answers.
    whole: total number of answers needed, including existing ones; 0 if equal to answers.
    decided: number of units that always go to an adjudicator after they are answered.
    onward: share of skipped units that move to each of the other queues; the remaining units stay.
    """

    name: str
    answers: float
    units: float = 0.0
    whole: float = 0.0
    decided: float = 0.0
    onward: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Reader:
    """An annotator.

    key: seed of the annotator's random draws.
    queues: queues where the annotator may work.
    answers, seconds: number of timed answers, and their mean time.
    days: number of days since the annotator's first day of work.
    worked, hours: number of working days, and mean hours on these days.
    idle: number of days since the annotator last worked, or could have started.
    most: maximum number of answers per day.
    stands_for: number of annotators that this annotator represents, see `sample`.
    """

    key: str
    queues: tuple[str, ...]
    answers: int = 0
    seconds: float = 0.0
    days: int = 0
    worked: int = 0
    hours: float = 0.0
    idle: int = 0
    most: float = inf
    stands_for: float = 1.0


class Assumed(NamedTuple):
    """Assumptions about annotators without data: seconds per answer, hours per week and working days per week."""

    seconds: float
    weekly: float
    days: float = 5.0


class Finish(NamedTuple):
    """The number of days until the work is finished, as a median and a range. Days beyond HORIZON are infinite."""

    low: float
    middle: float
    high: float


class Forecast(NamedTuple):
    """The finish of each queue, and of all queues with annotators (None if there are none)."""

    queues: dict[str, Finish]
    all: Finish | None


def forecast(
    queues: Sequence[Queue],
    readers: Sequence[Reader],
    assumed: Assumed,
    *,
    skips: Share = NO_DATA,
    conflicts: Share | None = NO_DATA,
    weekday: int = 0,
    seed: str = "",
) -> Forecast:
    """Forecast when each queue will be finished.

    queues: queues; the adjudicators' queue is named ADJUDICATION and receives units from the other queues.
    assumed: assumptions about annotators without data.
    skips: share of judgments that are skips.
    conflicts: share of answered units that go to an adjudicator because the answers differ; None if none do.
    weekday: weekday of the first day; 0 is Monday.

    The same seed always gives the same range. Adding annotators does not change the existing annotators' random draws.
    """
    drawing = generator(seed, "forecast", "all")
    people = _People(readers, assumed, drawing, seed)
    skipped = (skips + USUAL_SKIPS).draw(drawing)
    differ = np.zeros(FUTURES) if conflicts is None else (conflicts + USUAL_CONFLICTS).draw(drawing)
    listed = [queue for queue in queues if queue.name != ADJUDICATION]
    listed.append(next((queue for queue in queues if queue.name == ADJUDICATION), Queue(ADJUDICATION, 0.0)))
    work = _Work(listed, readers, skipped, differ, drawing)
    ends = dict(zip((queue.name for queue in listed), _ends(work, people, weekday).T, strict=True))
    here = {name for reader in readers for name in reader.queues}
    served = [days for name, days in ends.items() if name in here or not days.any()]
    finishes = {name: _finish(days) for name, days in ends.items()}
    return Forecast(finishes, _finish(np.max(served, axis=0)) if served else None)


def sample(readers: Sequence[Reader], seed: str) -> list[Reader]:
    """Draw a sample of the annotators, so that simulating thousands takes no longer than simulating hundreds.

    The sample contains about MANY or more of each queue's annotators, and all of them if there are at most MANY. An
    annotator with inclusion probability p stands for 1/p annotators. The sample is systematic, in an order that puts
    annotators with similar queues and hours next to each other, so that all groups are represented.
    """
    counts = Counter(name for reader in readers for name in reader.queues)
    chances = {reader: min(1.0, max(MANY / counts[name] for name in reader.queues)) for reader in readers}
    some = sorted(
        (reader for reader in readers if chances[reader] < 1), key=lambda of: (of.queues, of.hours, of.seconds, of.key)
    )
    ends = np.floor(np.cumsum([chances[of] for of in some]) + generator(seed, "forecast", "sample").random())
    chosen = {reader for reader, is_next in zip(some, np.diff(ends, prepend=0), strict=True) if is_next}
    return [
        replace(reader, stands_for=1 / chances[reader])
        for reader in readers
        if chances[reader] == 1 or reader in chosen
    ]


def with_more(readers: Sequence[Reader], queue: str, more: int = 2) -> list[Reader]:
    """Return the annotators and `more` additional annotators without data, who work only in this queue."""
    return [*readers, *(Reader(f"{queue} {number}", (queue,)) for number in range(more))]


def _finish(days: Floats) -> Finish:
    ordered, last = np.sort(days), len(days) - 1
    low, middle, high = (float(ordered[round(share * last)]) for share in (TAIL, 0.5, 1 - TAIL))
    return Finish(low, middle, high)


# --- Annotators


class _People:
    """The annotators, as arrays of shape (futures, annotators).

    a_day: number of answers on a working day.
    share: share of working days.
    begins, stops: days from now until the annotator starts, and until the annotator stops.
    """

    def __init__(self, readers: Sequence[Reader], assumed: Assumed, drawing: np.random.Generator, seed: str) -> None:
        self.readers, self.drawing = readers, [generator(seed, "forecast", reader.key) for reader in readers]
        seconds = [(log(reader.seconds), WITHIN**2 / reader.answers) if reader.answers else None for reader in readers]
        hours = [(log(reader.hours), HOURS_WITHIN**2 / reader.worked) if reader.hours else None for reader in readers]
        daily = log(assumed.weekly / assumed.days) - HOURS_BETWEEN**2 / 2  # the assumption is a mean, not a median
        of_pace, of_time, drift, of_stops = drawing.standard_normal((4, FUTURES))
        pace = _logs(seconds, log(assumed.seconds), ASSUMED, BETWEEN, of_pace, self.drawing)
        time = _logs(hours, daily, HOURS_ASSUMED, HOURS_BETWEEN, of_time, self.drawing)
        self.a_day = np.exp(time - pace + DRIFT * drift[:, None]) * 3600 * [reader.stands_for for reader in readers]
        self.share = _shares(readers, assumed.days / 7, drawing, self.drawing)
        self.begins, self.stops = np.zeros_like(self.share), np.zeros_like(self.share)
        for place in range(len(readers)):
            self._presence(place, STOPS * np.exp(STOPS_SPREAD * of_stops))

    def _presence(self, place: int, stop: Floats) -> None:
        """Draw when an annotator starts and stops.

        place: index of the annotator.
        stop: daily probability of stopping (futures,).
        """
        reader, drawing = self.readers[place], self.drawing[place]
        self.stops[:, place] = drawing.exponential(1 / stop)
        if reader.worked:
            gone = 1 - (1 - stop) ** reader.idle
            away = (1 - gone) * (1 - self.share[:, place]) ** reader.idle
            has_left: Floats | float = gone / (gone + away)
        else:
            scale = BEGINS + reader.idle
            self.begins[:, place] = scale * (drawing.random(FUTURES) ** -0.5 - 1)
            has_left = NEVER / (NEVER + (1 - NEVER) * (BEGINS / scale) ** 2)
        self.stops[drawing.random(FUTURES) < has_left, place] = 0

    def able(self, place: int, at: float, step: int, weekday: int) -> Floats:
        """Return the number of answers that an annotator has time for in the `step` days from day `at` (futures,)."""
        drawing, share = self.drawing[place], self.share[:, place]
        if step == 1:
            weekdays = np.minimum(1.0, share * 7 / (5 + 2 * WEEKEND))
            share = (7 * share - 5 * weekdays) / 2 if (weekday + int(at)) % 7 > 4 else weekdays
            days = (drawing.random(FUTURES) < share).astype(float)
        else:
            days = drawing.binomial(step, share).astype(float)
        spread = HOURS_WITHIN / sqrt(step)
        days *= np.exp(spread * drawing.standard_normal(FUTURES) - spread**2 / 2)  # the second term keeps the mean
        presence = np.minimum(at + step, self.stops[:, place]) - np.maximum(at, self.begins[:, place])
        days *= np.clip(presence / step, 0, 1)
        most = step * self.readers[place].most * self.readers[place].stands_for
        answers: Floats = np.minimum(days * self.a_day[:, place], most)
        return answers


def _logs(
    measured: Sequence[tuple[float, float] | None],
    assumed: float,
    unsure: float,
    between: float,
    noise: Floats,
    drawing: Sequence[np.random.Generator],
) -> Floats:
    """Draw the logarithm of a rate for each annotator (futures, annotators).

    The model is hierarchical: the mean of all annotators is normally distributed around the assumption, and the
    annotators around this mean. Each annotator is shrunk towards the mean, more strongly with fewer data (Gelman et al.
    2013, Bayesian Data Analysis, section 5.4, with fixed standard deviations).

    measured: (logarithm, variance of the logarithm) of each annotator; None for an annotator without data.
    assumed: assumed logarithm.
    unsure: standard deviation of the mean around the assumed logarithm, if there are no data.
    between: standard deviation between annotators.
    noise: standard normal draws for the mean (futures,).
    drawing: random generator of each annotator.
    """
    weights = [(1 / (between**2 + variance), value) for value, variance in filter(None, measured)]
    unsure = MEASURED if weights else unsure
    precision = 1 / unsure**2 + sum(weight for weight, _ in weights)
    mean = (assumed / unsure**2 + sum(weight * value for weight, value in weights)) / precision
    of_all, columns = mean + noise / sqrt(precision), []
    for one, draws in zip(measured, drawing, strict=True):
        value, weight = (one[0], 1 / one[1]) if one else (0.0, 0.0)
        precise = 1 / between**2 + weight
        columns.append(
            (of_all / between**2 + weight * value) / precise + draws.standard_normal(FUTURES) / sqrt(precise)
        )
    return np.stack(columns, axis=1) if columns else np.zeros((FUTURES, 0))


def _shares(
    readers: Sequence[Reader], assumed: float, drawing: np.random.Generator, generators: Sequence[np.random.Generator]
) -> Floats:
    """Draw each annotator's share of working days (futures, annotators).

    An annotator's first day is not counted. In the estimate of the mean of all annotators, an annotator's days count as
    at most DAYS_BETWEEN + 1 independent days.
    """
    seen = [Share(reader.worked - 1, reader.days - 1) if reader.worked else NO_DATA for reader in readers]
    counts = [whole * (DAYS_BETWEEN + 1) / (DAYS_BETWEEN + whole) for _, whole in seen]
    observed = Share(sum(part / whole * n for (part, whole), n in zip(seen, counts, strict=True) if whole), sum(counts))
    of_all = (observed + Share(assumed * DAYS_ASSUMED, DAYS_ASSUMED)).draw(drawing)
    columns = [
        draws.beta(
            np.maximum(1e-3, of_all * DAYS_BETWEEN + part),
            np.maximum(1e-3, (1 - of_all) * DAYS_BETWEEN + whole - part),
        )
        for (part, whole), draws in zip(seen, generators, strict=True)
    ]
    return np.stack(columns, axis=1) if columns else np.zeros((FUTURES, 0))


# --- Work


class _Work:
    """The remaining work, as the array `answers` of shape (futures, queues). The adjudicators' queue is the last.

    served: indices of each annotator's queues.
    may: number of answers that each annotator may still give in each of these queues.
    again: work that an answer in the first queue adds to the second (futures, queues, queues).
    behind: factor for each queue that makes the remaining answers of different queues comparable (queues,).
    enough: annotators by queue, for queues whose units need several annotators and that have enough of them.
    """

    def __init__(
        self,
        queues: Sequence[Queue],
        readers: Sequence[Reader],
        skips: Floats,
        conflicts: Floats,
        drawing: np.random.Generator,
    ) -> None:
        self.at = {queue.name: place for place, queue in enumerate(queues)}
        self.served = [np.array([self.at[name] for name in of.queues if name in self.at], np.intp) for of in readers]
        answers = np.array([queue.answers for queue in queues])
        # In small queues, the times of individual answers don't average out, so vary the amount of work.
        few = np.minimum(WITHIN / np.sqrt(np.maximum(answers, 1)), 0.5)
        size = answers * np.exp(few * drawing.standard_normal((FUTURES, len(queues))))
        # Don't let a queue with work become empty by chance.
        self.answers = np.where(answers > LITTLE, np.maximum(size, 1.01 * LITTLE), size)
        self.again = np.zeros((FUTURES, len(queues), len(queues)))
        for place, queue in enumerate(queues[:-1]):
            if queue.answers:
                self._send(place, queue, skips, conflicts)
        units = np.array([queue.units or queue.answers for queue in queues])
        several = units < answers
        # If units need several answers, an annotator may give at most one answer per unit. Otherwise, an annotator may
        # give all answers.
        bound = np.where(several, units, inf)
        self.may = [
            np.tile(bound[queue_indices] * reader.stands_for, (FUTURES, 1))
            for queue_indices, reader in zip(self.served, readers, strict=True)
        ]
        annotators_of_queue = {
            int(queue): [n for n, queue_indices in enumerate(self.served) if queue in queue_indices]
            for queue in np.flatnonzero(several)
        }
        self.enough = {
            queue: of
            for queue, of in annotators_of_queue.items()
            if sum(readers[n].stands_for for n in of) * units[queue] >= answers[queue]
        }
        self.behind = 1 / np.array([max(queue.whole, queue.answers, 1e-9) for queue in queues])

    def _send(self, place: int, queue: Queue, skips: Floats, conflicts: Floats) -> None:
        """Set the amount of work that an answer in a queue adds to each queue."""
        unit = min(1.0, (queue.units or queue.answers) / queue.answers)
        decided = min(1.0, queue.decided / queue.answers)
        # Answers cannot conflict if each unit has a single answer.
        differ = conflicts * max(0.0, unit - decided) if unit < 1 else 0.0
        self.again[:, place, -1] = (1 - skips) * (decided + differ)
        onward = {self.at[name]: part for name, part in queue.onward.items() if name in self.at}
        for other, part in onward.items():
            self.again[:, place, other] += skips * part
        self.again[:, place, place] += skips * max(0.0, 1 - sum(onward.values()))

    def judge(self, reader: int, able: Floats) -> Floats:
        """Let an annotator answer in the queue that is furthest behind. Return the number of answers (futures,).

        reader: index of the annotator.
        able: number of answers that the annotator has time for (futures,).
        """
        rows, queue_indices = np.arange(FUTURES), self.served[reader]
        if not (self.answers[:, queue_indices] > LITTLE).any():
            return np.zeros(FUTURES)
        some = np.minimum(self.answers[:, queue_indices], self.may[reader])
        chosen_places = np.argmax(
            np.where(some > LITTLE, self.answers[:, queue_indices] * self.behind[queue_indices], -1), axis=1
        )
        done: Floats = np.minimum(able, some[rows, chosen_places])
        done[some[rows, chosen_places] <= LITTLE] = 0
        queue = queue_indices[chosen_places]
        self.may[reader][rows, chosen_places] -= done
        self.answers[rows, queue] -= done
        self.answers += done[:, None] * self.again[rows, queue]
        return done

    def send_on(self) -> None:
        """Send units to the adjudicators if no annotator of their queue may give another answer."""
        for queue, readers in self.enough.items():
            may = [self.may[reader][:, list(self.served[reader]).index(queue)] for reader in readers]
            over = np.where(np.max(may, axis=0) <= LITTLE, self.answers[:, queue], 0.0)
            self.answers[:, queue] -= over
            self.answers[:, -1] += over

    def is_served(self, stays: Bools) -> Bools:
        """Return whether each queue has an annotator who has not stopped (futures, queues).

        stays: whether each annotator has not stopped (futures, annotators).
        """
        served = np.zeros(self.answers.shape, bool)
        for place, queue_indices in enumerate(self.served):
            served[:, queue_indices] |= stays[:, [place]]
        return served


def _ends(work: _Work, people: _People, weekday: int) -> Floats:
    """Run the simulation. Return the number of days until each queue is finished (futures, queues)."""
    elapsed, busy = 0, work.answers > LITTLE
    ends = np.where(busy, inf, 0.0)
    while elapsed < HORIZON and (busy & work.is_served(people.stops > elapsed)).any():
        step, parts = (1, PARTS) if elapsed < EXACT else (max(1, int(GROWTH * elapsed)), COARSE)
        able = [
            people.able(reader, elapsed, step, weekday) if busy[:, queue_indices].any() else np.zeros(FUTURES)
            for reader, queue_indices in enumerate(work.served)
        ]
        for part in range(parts):
            for reader in range(len(able)):
                able[reader] -= work.judge(reader, able[reader] / (parts - part))
            work.send_on()
            busy = work.answers > LITTLE
            # An empty queue is finished at the end of this part, unless new work arrives later.
            ends = np.where(busy, inf, np.where(ends == inf, elapsed + step * (part + 1) / parts, ends))
        elapsed += step
    return ends
