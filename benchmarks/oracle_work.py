"""One run of the benchmark oracle: `python -m benchmarks.oracle_work HIDDEN WAY UNITS [TRICKS...]` prints a line
of JSON for each score.
"""

import json
import random
import sys
from collections.abc import Sequence
from typing import Any

import django

django.setup()

from django.conf import settings  # noqa: E402

from annotate.models import Annotator, Task, Unit  # noqa: E402
from benchmarks.oracle import FEWEST, SURE  # noqa: E402
from tests.annotate import attacks, roc  # noqa: E402
from tests.annotate.conftest import AGREED, DISPUTED, make_person, records_task_maker, task_maker  # noqa: E402

NAMES = ("ann", "bea", "cem", "dan", "eve")
PER_UNIT = 5  # units that five people need for each unit that is attacked


def crowd(units: int, redundancy: int) -> Task:
    """Open a task in which half of the units are gold answers, so that areas are precise."""
    gold = {"queue": ["1", "0"] * (units // 2)}
    # The rule for pausing is evaluated after every answer, but pauses nobody.
    how = {"redundancy": redundancy, "gold_share": 0.5, "pause_below": 0.01}
    return records_task_maker()("qa_match", PER_UNIT * units, gold=gold, **how)


def posts(units: int) -> Task:
    """Open a task with disputed and audited posts, some of them checked and some read by two people."""
    lots = {"audit_least": 2 * units, "audit_recheck": 0.4, "check_share": 0.4, "redundancy": 1.4}
    return task_maker()([DISPUTED, AGREED] * (4 * units), **lots)


def decoys(units: int) -> Task:
    number = PER_UNIT * units
    return _mixed(task_maker()([DISPUTED] * number, asked="de", decoys=number // 3))


def _mixed(task: Task) -> Task:
    """Shuffle the units, because the maker of tasks for tests puts decoys last."""
    units = list(task.units.all())
    for place, unit in enumerate(random.Random(1).sample(units, len(units)), 1):
        unit.position = place
    Unit.objects.bulk_update(units, ["position"], batch_size=500)
    return task


# What is hidden -> the maker of the task, the language of its people, and for each kind of hidden unit a function that
# returns whether a unit is one (None: not counted).
HIDDEN: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "gold, one reader": (lambda units: crowd(units, 1), "en", {"gold answer": attacks.is_gold}),
    "gold, three readers": (lambda units: crowd(units, 3), "en", {"gold answer": attacks.is_gold}),
    "posts": (
        posts,
        "de",
        {
            "audited post": attacks.is_audited,
            "recheck of an audited post": lambda unit: unit.recheck if attacks.is_audited(unit) else None,
            "check of a reader": lambda unit: None if attacks.is_audited(unit) or unit.redundancy > 1 else unit.recheck,
            "post for two readers": lambda unit: None if attacks.is_audited(unit) else unit.redundancy > 1,
        },
    ),
    "decoys": (decoys, "de", {"decoy": lambda unit: bool(unit.known_answer)}),
}


def main(hidden: str, way: str, units: int, tricks: Sequence[str]) -> None:
    settings.ALLOWED_HOSTS = ["testserver"]
    settings.SECURE_SSL_REDIRECT = False
    make, language, kinds = HIDDEN[hidden]
    task = make(units)
    who, *rest = (make_person(name, language) for name in NAMES)
    tried = _attacker(way, who, rest, task, tricks).work(units)
    for kind, is_hidden in kinds.items():
        for score, (of, others) in attacks.by_score(tried, is_hidden).items():
            if min(len(of), len(others)) >= FEWEST:
                _print_score(kind, score, of, others)


def _attacker(way: str, who: Annotator, rest: list[Annotator], task: Task, tricks: Sequence[str]) -> attacks.Attacker:
    acting, others = attacks.Way(way, who, task), attacks.Others(rest, task, "1")
    return attacks.Attacker(acting, others, dict.fromkeys(tricks, 1) or attacks.all_tricks(way))


def _print_score(kind: str, score: str, hidden: list[float], others: list[float]) -> None:
    low, high = roc.interval(hidden, others)
    surely_from, surely_to = roc.interval(hidden, others, SURE)
    row = {"kind": kind, "score": score, "hidden": len(hidden), "others": len(others)}
    row |= {"area": roc.auc(hidden, others), "low": low, "high": high}
    print(json.dumps(row | {"recognised": not surely_from <= 0.5 <= surely_to}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])
