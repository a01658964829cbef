"""When the work will be done, by queue and in all, with a range: a simulation of what is left and of those who read it.

Numbers in, numbers out: finish_forecast.py reads what is left and who is there. Not single units are simulated but the
amount left in each queue, day by day: a few hundred futures side by side, each with paces, days and shares of its own,
as far as these are not known. The range is between the 5% and the 95% quantile of them; tests/benchmarks/forecasts.py
says how often simulated campaigns end within it.

Not known, and therefore drawn: how fast a reader is and how many hours they work on a day (of few observations drawn
towards those of all, and these towards what is assumed), on which days they work, when they begin, whether they stay,
what share is skipped, and what share comes to an adjudicator. A reader of several languages is given what comes first
in the draw, so their time goes to the queue that is furthest behind (work/queue.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, log, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from annotate.core.draws.hash_order import lot

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
ADJUDICATION = "adjudication"  # the queue of those who adjudicate
FUTURES = 200
TAIL = 0.05  # of the futures on either side of the range
HORIZON = 730  # days; what takes longer is not foretold
EXACT, GROWTH = 21, 0.05  # so many days are simulated one by one; later steps are this share of the time gone by
PARTS, COARSE = 4, 2  # into which a day is cut, and a longer step, so that people change queues
LITTLE = 0.5  # answers; less is nothing

# How far logarithms of seconds an answer and of hours a day lie apart: what is assumed from the mean of all, people
# from one another, a person's single answers or days, and what comes from what was, as people learn or tire. These and
# what follows are chosen: so wide that campaigns of people unlike these end within the range (tests/benchmarks).
ASSUMED, BETWEEN, WITHIN, DRIFT = 0.3, 0.45, 0.9, 0.12
MEASURED = 1.0  # the first of them, where some people were measured: that says more than what is assumed
HOURS_ASSUMED, HOURS_BETWEEN, HOURS_WITHIN = 0.25, 0.5, 0.6
# As many days as the assumed share of days counts, for all and for one person.
DAYS_ASSUMED, DAYS_BETWEEN = 20, 4
WEEKEND = 0.4  # of the work of another day
# Of people who have not begun: how many never do, and the scale in days of when the others do: half of them within 0.8
# days, a tenth after 4.3 (Lomax's distribution with the shape 2, so that whoever has waited long goes on to wait).
NEVER, BEGINS = 0.03, 2.0
# Of people who work: how many stop for good on a day (median), and how far its logarithm may be from that.
STOPS, STOPS_SPREAD = 0.002, 0.8


class Share(NamedTuple):
    """How often something happened of how often it could; where little is known, together with what is assumed."""

    part: float
    whole: float

    def __add__(self, assumed: "Share") -> "Share":  # type: ignore[override]
        return Share(self.part + assumed.part, self.whole + assumed.whole)

    def draw(self, drawing: np.random.Generator) -> Floats:
        return drawing.beta(max(self.part, 1e-3), max(self.whole - self.part, 1e-3), FUTURES)


NOTHING_KNOWN = Share(0.0, 0.0)
USUAL_SKIPS, USUAL_CONFLICTS = Share(1.0, 12.0), Share(1.0, 25.0)


@dataclass(frozen=True)
class Queue:
    """answers: that are missing; units: on which, since nobody is asked twice about one (0: as many as answers); whole:
    answers that it asks for in all, with those that are there (0: as many as are missing); decided: units that an
    adjudicator decides in any case once they are answered; onward: queue -> share of skipped units that go there, while
    the others stay.
    """

    name: str
    answers: float
    units: float = 0.0
    whole: float = 0.0
    decided: float = 0.0
    onward: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Reader:
    """key: by which their futures are drawn. answers: how many were timed, at a mean of `seconds`; worked: days on
    which they worked, for a mean of `hours`; days: from the first of these until now; idle: days since the last of
    these, or since they could have begun; most: answers on one day.
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


class Assumed(NamedTuple):
    """What is assumed of people of whom nothing is known: seconds an answer, hours a week, and days of it."""

    seconds: float
    weekly: float
    days: float = 5.0


class Finish(NamedTuple):
    """Days from now until nothing is left: the median, and the ends of the range. Infinite: not within HORIZON."""

    low: float
    middle: float
    high: float


class Forecast(NamedTuple):
    """By queue, and of all queues that somebody serves; None if nobody serves any."""

    queues: dict[str, Finish]
    all: Finish | None


def forecast(
    queues: Sequence[Queue],
    readers: Sequence[Reader],
    assumed: Assumed,
    *,
    skips: Share = NOTHING_KNOWN,
    conflicts: Share | None = NOTHING_KNOWN,
    weekday: int = 0,
    seed: str = "",
) -> Forecast:
    """When each queue is done. skips: of judgments; conflicts: units that came to an adjudicator without having been
    chosen for it, of those that were answered, None where none does; weekday: of the first day, Monday is 0.

    The same seed gives the same range; readers who are added change nothing of the others' futures. The adjudicators'
    queue is named ADJUDICATION; what the other queues send there is added to what waits in it.
    """
    drawing = _drawing(seed, "all")
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


def with_more(readers: Sequence[Reader], queue: str, more: int = 2) -> list[Reader]:
    """The readers, and `more` of whom nothing is known, who read one queue only."""
    return [*readers, *(Reader(f"{queue} {number}", (queue,)) for number in range(more))]


def _drawing(seed: str, key: str) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(int(lot(seed, "forecast", key), 16)))


def _finish(days: Floats) -> Finish:
    ordered, last = np.sort(days), len(days) - 1
    low, middle, high = (float(ordered[round(share * last)]) for share in (TAIL, 0.5, 1 - TAIL))
    return Finish(low, middle, high)


# --- people


class _People:
    """Arrays with a row for each future and a column for each reader. a_day: answers on a day on which they work;
    share: of days on which they do; begins, stops: days from now.
    """

    def __init__(self, readers: Sequence[Reader], assumed: Assumed, drawing: np.random.Generator, seed: str) -> None:
        self.readers, self.drawing = readers, [_drawing(seed, reader.key) for reader in readers]
        seconds = [(log(reader.seconds), WITHIN**2 / reader.answers) if reader.answers else None for reader in readers]
        hours = [(log(reader.hours), HOURS_WITHIN**2 / reader.worked) if reader.hours else None for reader in readers]
        daily = log(assumed.weekly / assumed.days) - HOURS_BETWEEN**2 / 2  # what is assumed is a mean
        of_pace, of_time, drift, of_stops = drawing.standard_normal((4, FUTURES))
        pace = _logs(seconds, log(assumed.seconds), ASSUMED, BETWEEN, of_pace, self.drawing)
        time = _logs(hours, daily, HOURS_ASSUMED, HOURS_BETWEEN, of_time, self.drawing)
        self.a_day = np.exp(time - pace + DRIFT * drift[:, None]) * 3600
        self.share = _shares(readers, assumed.days / 7, drawing, self.drawing)
        self.begins, self.stops = np.zeros_like(self.share), np.zeros_like(self.share)
        for place in range(len(readers)):
            self._presence(place, STOPS * np.exp(STOPS_SPREAD * of_stops))

    def _presence(self, place: int, stop: Floats) -> None:
        """When a reader begins and stops. stop: the chance that somebody stops on a day."""
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
        """How many answers a reader has time for in the `step` days from `at` on, by future."""
        drawing, share = self.drawing[place], self.share[:, place]
        if step == 1:
            weekdays = np.minimum(1.0, share * 7 / (5 + 2 * WEEKEND))
            share = (7 * share - 5 * weekdays) / 2 if (weekday + int(at)) % 7 > 4 else weekdays
            days = (drawing.random(FUTURES) < share).astype(float)
        else:
            days = drawing.binomial(step, share).astype(float)
        spread = HOURS_WITHIN / sqrt(step)
        days *= np.exp(spread * drawing.standard_normal(FUTURES) - spread**2 / 2)  # as long as usual on average
        there = np.minimum(at + step, self.stops[:, place]) - np.maximum(at, self.begins[:, place])
        days *= np.clip(there / step, 0, 1)
        answers: Floats = np.minimum(days * self.a_day[:, place], step * self.readers[place].most)
        return answers


def _logs(
    measured: Sequence[tuple[float, float] | None],
    assumed: float,
    unsure: float,
    between: float,
    noise: Floats,
    drawing: Sequence[np.random.Generator],
) -> Floats:
    """Logarithms, a row for each future and a column for each reader: normal, their mean about what is assumed, people
    about the mean. measured: by reader, the measured logarithm and its variance; None if nothing was measured.

    So each is drawn towards all others, the more the less is known of them (Gelman et al. 2013, Bayesian Data Analysis,
    section 5.4, with the spreads given).
    """
    weights = [(1 / (between**2 + variance), value) for value, variance in filter(None, measured)]
    unsure = MEASURED if weights else unsure
    precision = 1 / unsure**2 + sum(weight for weight, _ in weights)
    mean = (assumed / unsure**2 + sum(weight * value for weight, value in weights)) / precision
    of_all, columns = mean + noise / sqrt(precision), []
    for one, own in zip(measured, drawing, strict=True):
        value, weight = (one[0], 1 / one[1]) if one else (0.0, 0.0)
        precise = 1 / between**2 + weight
        columns.append((of_all / between**2 + weight * value) / precise + own.standard_normal(FUTURES) / sqrt(precise))
    return np.stack(columns, axis=1) if columns else np.zeros((FUTURES, 0))


def _shares(
    readers: Sequence[Reader], assumed: float, drawing: np.random.Generator, own: Sequence[np.random.Generator]
) -> Floats:
    """Shares of days on which people work, counted from the second day on. One person's days count for all as what
    that many different people would say, DAYS_BETWEEN + 1 at most."""
    seen = [Share(reader.worked - 1, reader.days - 1) if reader.worked else NOTHING_KNOWN for reader in readers]
    counts = [whole * (DAYS_BETWEEN + 1) / (DAYS_BETWEEN + whole) for _, whole in seen]
    known = Share(sum(part / whole * n for (part, whole), n in zip(seen, counts, strict=True) if whole), sum(counts))
    of_all = (known + Share(assumed * DAYS_ASSUMED, DAYS_ASSUMED)).draw(drawing)
    columns = [
        each.beta(
            np.maximum(1e-3, of_all * DAYS_BETWEEN + part),
            np.maximum(1e-3, (1 - of_all) * DAYS_BETWEEN + whole - part),
        )
        for (part, whole), each in zip(seen, own, strict=True)
    ]
    return np.stack(columns, axis=1) if columns else np.zeros((FUTURES, 0))


# --- work


class _Work:
    """What is left, a row for each future and a column for each queue, the adjudicators' last.

    served: by reader, their queues; may: by reader, how many answers they may still give in these. again: future,
    queue, queue -> what comes into the second queue for each answer in the first. behind: by queue, what its answers
    are multiplied by to compare how far it is behind. enough: queue -> its readers, where each unit asks for several
    people and that many read it.
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
        # The time of single answers averages out, except in small queues.
        few = np.minimum(WITHIN / np.sqrt(np.maximum(answers, 1)), 0.5)
        size = answers * np.exp(few * drawing.standard_normal((FUTURES, len(queues))))
        self.answers = np.where(answers > LITTLE, np.maximum(size, 1.01 * LITTLE), size)  # what is there is some
        self.again = np.zeros((FUTURES, len(queues), len(queues)))
        for place, queue in enumerate(queues[:-1]):
            if queue.answers:
                self._send(place, queue, skips, conflicts)
        units = np.array([queue.units or queue.answers for queue in queues])
        several = units < answers
        # Nobody is asked twice about a unit; where each asks for one answer, anybody may give all of them.
        bound = np.where(several, units, inf)
        self.may = [np.tile(bound[own], (FUTURES, 1)) for own in self.served]
        there = {
            int(queue): [n for n, own in enumerate(self.served) if queue in own] for queue in np.flatnonzero(several)
        }
        self.enough = {queue: of for queue, of in there.items() if len(of) * units[queue] >= answers[queue]}
        self.behind = 1 / np.array([max(queue.whole, queue.answers, 1e-9) for queue in queues])

    def _send(self, place: int, queue: Queue, skips: Floats, conflicts: Floats) -> None:
        """Where the answers of a queue lead."""
        unit = min(1.0, (queue.units or queue.answers) / queue.answers)
        decided = min(1.0, queue.decided / queue.answers)
        # One answer contradicts nobody.
        differ = conflicts * max(0.0, unit - decided) if unit < 1 else 0.0
        self.again[:, place, -1] = (1 - skips) * (decided + differ)
        onward = {self.at[name]: part for name, part in queue.onward.items() if name in self.at}
        for other, part in onward.items():
            self.again[:, place, other] += skips * part
        self.again[:, place, place] += skips * max(0.0, 1 - sum(onward.values()))

    def judge(self, reader: int, able: Floats) -> Floats:
        """A reader gives the answers they have time for in one queue, the one furthest behind. Returns how many."""
        rows, own = np.arange(FUTURES), self.served[reader]
        if not (self.answers[:, own] > LITTLE).any():
            return np.zeros(FUTURES)
        some = np.minimum(self.answers[:, own], self.may[reader])
        chosen = np.argmax(np.where(some > LITTLE, self.answers[:, own] * self.behind[own], -1), axis=1)
        done: Floats = np.minimum(able, some[rows, chosen])
        done[some[rows, chosen] <= LITTLE] = 0
        queue = own[chosen]
        self.may[reader][rows, chosen] -= done
        self.answers[rows, queue] -= done
        self.answers += done[:, None] * self.again[rows, queue]
        return done

    def send_on(self) -> None:
        """What is left when each reader has judged all they may goes to adjudicators."""
        for queue, readers in self.enough.items():
            may = [self.may[reader][:, list(self.served[reader]).index(queue)] for reader in readers]
            over = np.where(np.max(may, axis=0) <= LITTLE, self.answers[:, queue], 0.0)
            self.answers[:, queue] -= over
            self.answers[:, -1] += over

    def is_served(self, stays: Bools) -> Bools:
        """Whether a queue has a reader who stays, by future."""
        served = np.zeros(self.answers.shape, bool)
        for place, own in enumerate(self.served):
            served[:, own] |= stays[:, [place]]
        return served


def _ends(work: _Work, people: _People, weekday: int) -> Floats:
    """Days from now until nothing is left, a row for each future and a column for each queue."""
    now, busy = 0, work.answers > LITTLE
    ends = np.where(busy, inf, 0.0)
    while now < HORIZON and (busy & work.is_served(people.stops > now)).any():
        step, parts = (1, PARTS) if now < EXACT else (max(1, int(GROWTH * now)), COARSE)
        able = [
            people.able(reader, now, step, weekday) if busy[:, own].any() else np.zeros(FUTURES)
            for reader, own in enumerate(work.served)
        ]
        for part in range(parts):
            for reader in range(len(able)):
                able[reader] -= work.judge(reader, able[reader] / (parts - part))
            work.send_on()
            busy = work.answers > LITTLE
            # Done at the end of this part, unless more comes in.
            ends = np.where(busy, inf, np.where(ends == inf, now + step * (part + 1) / parts, ends))
        now += step
    return ends
