"""How large a uniform draw must be for intervals of a wished width, and what people read for it. Reads only.

What is expected of a draw is computed in core/planning.py; how it is told is in reports/plans.py.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import cache
from typing import Any, NamedTuple

from annotate.core import planning
from annotate.core.audit_cost import contested
from annotate.core.planning import Checks, Draw, Expected, Stream, planned, reading, width
from annotate.kinds import KINDS
from annotate.models import Task, Unit
from annotate.work.new_task import imagined_task
from annotate.work.routes import Routes
from corpora.core.languages import UND
from corpora.first_votes import first_votes
from corpora.models import Item

FEW, HIDDEN = "few", "hidden"  # why a uniform draw cannot do it


class Pace(NamedTuple):
    """Of people: seconds a post, and hours a week that a reader has for it."""

    seconds: float
    weekly: float

    def of(self, posts: float) -> dict[str, float]:
        hours = posts * self.seconds / 3600
        return {"hours": hours, "weeks": hours / self.weekly}


def usual_task(**options: Any) -> Task:
    """A task as it is opened with these options, of the first kind whose agreement is audited."""
    return imagined_task(next(kind for kind in KINDS.values() if "audit" in kind.controls), (), options)


def stream_of(corpus_name: str, task: Task) -> Stream:
    """The posts of a corpus by the label on which the detectors agree in the task, and the others by the language whose
    readers would be asked first, by the detectors' first places. CorpusError if they have no votes.
    """
    routes = Routes.load(task)
    agreed: Counter[str] = Counter()
    disputed: Counter[str] = Counter()
    for votes, letters, posts in first_votes(corpus_name, task.least_letters):
        item = Item(votes=votes, letters=letters)
        if label := task.kind.agreed(item, task):
            agreed[label] += posts
        else:
            disputed[task.kind.candidates(Unit(task=task, item=item), routes)[0]] += posts
    return Stream(agreed, disputed)


def draw_of(task: Task, size: int) -> Draw:
    """A uniform draw of so many posts, audited and checked as the task's options say."""
    checks = Checks(task.check_share, task.check_least, task.audit_recheck, task.second_share)
    return Draw(size, task.audit_share, task.audit_least, checks)


def languages_of(stream: Stream) -> list[str]:
    """The commonest first."""
    found = {*stream.agreed, *stream.disputed} - {UND}
    return sorted(found, key=lambda label: (-stream.share(label), label))


def plan(
    stream: Stream,
    task: Task,
    *,
    measures: Iterable[str],
    languages: Collection[str],
    wished: float,
    expected: Expected,
    pace: Pace,
    done: Callable[[int], None] = lambda rows: None,
) -> dict[str, Any]:
    """{"posts", "agreed" (share), "rows": [ROW, ...] by measure and language, "draw", "recall": [REACH, ...]}.

    ROW: measure, language ("" for all), share, needs (None if no uniform draw gives that width), why (then), alone
    (posts to draw of a set for the language alone; None if the corpus has fewer in it, or there is no such design),
    decoys (those that are hidden among them besides) and without_decoys ([{"false_yes", "width"}]: how wide the
    interval of these posts is without decoys, for shares of false Yes). needs: the draw with the least reading (size,
    audit_share, audit_least, and reading in all), and of the language its posts, disputed, audits, checks, hours and
    weeks (of one person).
    draw: that with the least reading which suits more than half of the rows that a draw can suit: size, audit_share,
    audit_least, disputed, audits, checks, contested (posts read besides, on average, where the audit fails), hours,
    weeks, suits and of (rows); None if none suits any. REACH, of languages whose recall it does not suit: language,
    posts, width, elsewhere (audits in other languages), and those until it can be stated, and until it is as narrow
    as wished; None if never.
    """

    checks = draw_of(task, 0).checks

    @cache
    def suits(measure: str, label: str, draw: Draw) -> bool:
        return width(planned(measure, label, stream, draw, expected)) <= wished

    rows = []
    for measure in measures:
        for label in [""] if measure == "accuracy" else languages:
            draw = planning.cheapest(stream, lambda draw, of=(measure, label): suits(*of, draw), checks)
            rows.append(_row(stream, task, measure, label, draw, expected, wished, pace))
            done(1)
    possible = [(row["measure"], row["language"]) for row in rows if row["needs"]]

    def suited(draw: Draw) -> int:
        return sum(suits(*of, draw) for of in possible)

    best = planning.cheapest(stream, lambda draw: 2 * suited(draw) > len(possible), checks) if possible else None
    short = [row["language"] for row in rows if row["measure"] == "recall"] if best else []
    return {
        "posts": stream.posts,
        "agreed": 1 - stream.all_disputed / stream.posts,
        "rows": rows,
        "draw": best and _draw(stream, task, best, expected, pace) | {"suits": suited(best), "of": len(rows)},
        "recall": [
            _reach(stream, label, best, expected, wished)
            for label in short
            if best and not suits("recall", label, best)
        ],
    }


def _row(
    stream: Stream,
    task: Task,
    measure: str,
    label: str,
    draw: Draw | None,
    expected: Expected,
    wished: float,
    pace: Pace,
) -> dict[str, Any]:
    share = stream.share(label) if label else 1.0
    own = planning.alone(measure, expected, wished)
    if own is not None and share * stream.posts < own.inside:
        own = None
    found = {
        "measure": measure,
        "language": label,
        "share": share,
        "needs": None,
        "why": "",
        "alone": own and own.posts,
    }
    found["decoys"] = own and own.decoys
    found["without_decoys"] = own and [
        {"false_yes": share, "width": points} for share, points in own.without_decoys.items()
    ]
    if draw is None:
        return found | {"why": HIDDEN if own else FEW}
    of = reading(stream, draw, lambda each: each == label) if label else reading(stream, draw)
    found["needs"] = {
        **_as_options(draw),
        "posts": share * draw.size,
        **_read(task, of, pace),
        "reading": reading(stream, draw).all,
    }
    return found


def _as_options(draw: Draw) -> dict[str, Any]:
    return {"size": draw.size, "audit_share": draw.share, "audit_least": draw.least}


def _read(task: Task, of: planning.Reading, pace: Pace) -> dict[str, float]:
    return {"disputed": of.disputed, "audits": of.audits, "checks": of.checks + of.seconds, **pace.of(of.work)}


def _draw(stream: Stream, task: Task, draw: Draw, expected: Expected, pace: Pace) -> dict[str, Any]:
    part = draw.size / stream.posts
    more = sum(
        contested(round(part * stream.agreed[label]), round(audits), expected.wrong, task.audit_limit)
        for label, audits in stream.audits(draw).items()
    )
    return {**_as_options(draw), **_read(task, reading(stream, draw), pace), "contested": more}


def _reach(stream: Stream, label: str, draw: Draw, expected: Expected, wished: float) -> dict[str, Any]:
    def recall(each: Draw) -> planning.Estimate:
        return planned("recall", label, stream, each, expected)

    def elsewhere(each: Draw | None) -> float | None:
        return each and reading(stream, each, lambda other: other != label).audits

    return {
        "language": label,
        "posts": stream.share(label) * draw.size,
        "width": width(recall(draw)),
        "elsewhere": elsewhere(draw),
        "stated": elsewhere(planning.least_audit(draw, lambda each: planning.is_stated(recall(each)))),
        "wished": elsewhere(planning.least_audit(draw, lambda each: width(recall(each)) <= wished)),
    }
