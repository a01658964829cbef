"""People who work at the same time, for a number of answers or seconds, and the result."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from statistics import median, quantiles
from time import monotonic

from benchmarks.server_load.connection import Refused
from benchmarks.server_load.people import Person


@dataclass
class Done:
    """seconds: from the first answer to the last. took: seconds of each answer with the next unit. answered: unit ->
    its acknowledged answers. refused: status -> how often; errors: other errors. cpu: seconds of CPU of the server and
    of the database, if measured."""

    seconds: float = 0.0
    took: list[float] = field(default_factory=list)
    answered: Counter[str] = field(default_factory=Counter)
    refused: Counter[int] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    cpu: list[float] = field(default_factory=list)

    @property
    def answers(self) -> int:
        return len(self.took)

    @property
    def a_second(self) -> float:
        return self.answers / self.seconds if self.seconds else 0.0

    @property
    def median_ms(self) -> float:
        return 1000 * median(self.took) if self.took else 0.0

    @property
    def p95_ms(self) -> float:
        return 1000 * quantiles(self.took, n=20)[-1] if len(self.took) > 1 else self.median_ms

    def more_often_than(self, times: int) -> int:
        """Return the number of acknowledged answers beyond this many per unit."""
        return sum(max(0, number - times) for number in self.answered.values())


def work(
    people: Sequence[Person], *, answers: int, seconds: float, cpu_seconds: Callable[[], list[float]] = list
) -> Done:
    """Let everyone log in, then answer at the same time until there are enough answers, time is over or no unit is
    left. Answers that are under way then also count: at most one per person.

    A refusal or a lost connection is counted, and ends the work of that person. cpu_seconds: returns what the server
    and others have used; it is first read after everyone has logged in, because this costs more than many answers.
    """
    done, lock = Done(), threading.Lock()
    stop = threading.Event()
    began: list[float] = []
    used: list[float] = []

    def begin() -> None:
        began.append(monotonic())
        used.extend(cpu_seconds())

    # The clock starts when everyone has a first unit.
    ready = threading.Barrier(len(people), action=begin)

    def one(person: Person) -> None:
        unit = None
        try:
            unit = person.begin()
        except (Refused, HTTPException, OSError) as error:
            _note(done, lock, error)
        ready.wait()
        try:
            while unit is not None and not stop.is_set():
                start = monotonic()
                following = person.answer()
                end = monotonic()
                with lock:
                    done.took.append(end - start)
                    done.answered[unit] += 1
                    done.seconds = max(done.seconds, end - began[0])
                    if len(done.took) >= answers or end - began[0] >= seconds:
                        stop.set()
                unit = following
        except (Refused, HTTPException, OSError) as error:
            _note(done, lock, error)
        finally:
            person.connection.close()

    threads = [threading.Thread(target=one, args=[person]) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done.cpu = [now - then for then, now in zip(used, cpu_seconds(), strict=True)]
    return done


def _note(done: Done, lock: threading.Lock, error: Exception) -> None:
    with lock:
        if isinstance(error, Refused):
            done.refused[error.status] += 1
        else:
            done.errors[type(error).__name__] += 1
