"""How large a uniform draw must be, how wide its intervals will be, and which further work narrows them. Reads only.

Widths are computed in interval_width.py.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

from django.db.models import Avg, Count, QuerySet

from annotate.core.audits import Audit, allotted, deviation, overall_error
from annotate.figures import interval_width
from annotate.figures.interval_width import (
    ERROR,
    Checks,
    Counted,
    Draw,
    Expected,
    Stream,
    contested,
    least_audit,
    planned,
    reading,
    width,
)
from annotate.kinds import KINDS
from annotate.kinds.designs import DESIGNS
from annotate.kinds.language import LEAST_LETTERS
from annotate.models import Judgment, Task, Unit
from annotate.quality import audits, checks
from annotate.work.new_task import imagined_task
from annotate.work.routes import Routes
from corpora.core.languages import UND
from corpora.models import Item
from corpora.predictions.predictor_labels import first_votes

# --- Which further work narrows accuracy most, and how much of it reaches a wished width: by the counts of a draw that
# was made. Numbers in, numbers out; the widths are those of planning.py.


AUDITS, CHECKS, SECONDS, POSTS = "audits", "checks", "second opinions", "a larger draw"
LABELS = 3  # whose audits have a row of their own
LEAST_GAIN = 1e-5  # by which a width is narrower, at least


class Measured(NamedTuple):
    """A draw that was made, as planning takes it, and what there is for further work. unread: label -> the posts that
    may be audited, and the audit so far; unchecked: the same of what one reader decides, by first queue; frame: posts
    that may be drawn."""

    counted: Counted
    draw: Draw
    expected: Expected
    unread: Mapping[str, tuple[int, Audit]]
    unchecked: Mapping[str, tuple[int, Audit]]
    frame: int
    seconds: float


Enlarged = Callable[[int], tuple[Counted, Draw]]


def narrowing(of: Measured, wished: float | None = None) -> dict[str, Any]:
    """{"width", "wished", "accuracy", "seconds", "rows": [ROW, ...]}.

    width: of the 95% interval of accuracy, once all that is chosen has been read; wished: by default half of that,
    to a tenth of a point; accuracy: what the predictor is expected to have.
    ROW: work (AUDITS, CHECKS, SECONDS, POSTS), label (whose audits; empty for all), amount (audits, checks, second
    opinions, or posts to draw, in all), posts (to read, adjudicators' too), hours, width, gain (of width, by hour), and
    enough: whether it reaches the wished width; else it is all that there is of this work. The most gain comes first.
    """

    def width_of(counted: Counted, draw: Draw) -> float:
        return width(planned("accuracy", "", counted, draw, of.expected))

    def negative_width(enlarged: Enlarged, amount: int) -> float:
        return -width_of(*enlarged(amount))

    now, work_now = width_of(of.counted, of.draw), reading(of.counted, of.draw).work
    wished = max(0.001, round(now / 2, 3)) if wished is None else wished
    rows: list[dict[str, Any]] = []
    for work, label, most, enlarged in _kinds(of):
        if most < 1:
            continue
        amounts = range(1, most + 1)
        place = bisect_left(amounts, -wished, key=partial(negative_width, enlarged))
        amount = amounts[min(place, most - 1)]
        narrower, posts = width_of(*enlarged(amount)), reading(*enlarged(amount)).work - work_now
        hours = posts * of.seconds / 3600
        if posts > 0 and now - narrower > LEAST_GAIN:
            total = amount + of.draw.size * (work == POSTS)
            row = {"work": work, "label": label, "amount": total, "posts": posts, "hours": hours, "width": narrower}
            rows.append(row | {"gain": (now - narrower) / hours, "enough": place < most})
    rows.sort(key=lambda row: -row["gain"])
    known = {"width": now, "wished": wished, "accuracy": of.expected.accuracy, "seconds": of.seconds}
    return known | {"rows": rows if now > wished else []}


def _kinds(of: Measured) -> Iterator[tuple[str, str, int, Enlarged]]:
    """Each kind of work, the label that it is about, how much there is to do, and what so much of it makes."""
    counted, draw = of.counted, of.draw

    def audit(labels: Mapping[str, tuple[int, Audit]]) -> Enlarged:
        return lambda n: (replace(counted, audited=Counter(counted.audited) + Counter(allotted(n, labels))), draw)

    def check(n: int) -> tuple[Counted, Draw]:
        return replace(counted, checked=Counter(counted.checked) + Counter(allotted(n, of.unchecked))), draw

    def second(n: int) -> tuple[Counted, Draw]:
        more = draw.checks.second + n / decisions
        return counted, draw._replace(checks=draw.checks._replace(second=min(1.0, more)))

    unread = {label: of_label for label, of_label in of.unread.items() if of_label[0]}
    yield AUDITS, "", sum(posts for posts, _ in unread.values()), audit(unread)
    # What one post more takes off the interval: as Neyman's weight, for each post that was read.
    gain = {label: posts * deviation(audit) / (1 + audit.resolved) for label, (posts, audit) in unread.items()}
    for label in sorted(gain, key=lambda label: (-gain[label], label))[:LABELS] if len(gain) > 1 else ():
        yield AUDITS, label, unread[label][0], audit({label: unread[label]})
    yield CHECKS, "", sum(units for units, _ in of.unchecked.values()), check
    decisions = reading(counted, draw).checks
    yield SECONDS, "", int((1 - draw.checks.second) * decisions), second
    yield POSTS, "", of.frame - draw.size, lambda n: (counted, draw._replace(size=draw.size + n))


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
    for votes, letters, posts in first_votes(corpus_name, LEAST_LETTERS):
        item = Item(votes=votes, letters=letters)
        if label := task.kind.routing.agreed(item, task):
            agreed[label] += posts
        else:
            disputed[task.kind.routing.candidates(Unit(task=task, item=item), routes)[0]] += posts
    return Stream(agreed, disputed)


def draw_of(task: Task, size: int) -> Draw:
    """A uniform draw of so many posts, audited and checked as the task's options say."""
    least = checks.CHECK_LEAST if task.check_share else 0
    chosen = Checks(task.check_share, least, task.audit_recheck, task.check_share)
    return Draw(size, task.audit_share, task.audit_least, chosen)


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
            draw = interval_width.cheapest(stream, lambda draw, of=(measure, label): suits(*of, draw), checks)
            rows.append(_row(stream, task, measure, label, draw, expected, wished, pace))
            done(1)
    possible = [(row["measure"], row["language"]) for row in rows if row["needs"]]

    def suited(draw: Draw) -> int:
        return sum(suits(*of, draw) for of in possible)

    best = interval_width.cheapest(stream, lambda draw: 2 * suited(draw) > len(possible), checks) if possible else None
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
    own = interval_width.alone(measure, expected, wished)
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


def _read(task: Task, of: interval_width.Reading, pace: Pace) -> dict[str, float]:
    return {"disputed": of.disputed, "audits": of.audits, "checks": of.checks + of.seconds, **pace.of(of.work)}


def _draw(stream: Stream, task: Task, draw: Draw, expected: Expected, pace: Pace) -> dict[str, Any]:
    part = draw.size / stream.posts
    more = sum(
        contested(round(part * stream.agreed[label]), round(audits), expected.wrong, task.audit_limit)
        for label, audits in stream.audits(draw).items()
    )
    return {**_as_options(draw), **_read(task, reading(stream, draw), pace), "contested": more}


def _reach(stream: Stream, label: str, draw: Draw, expected: Expected, wished: float) -> dict[str, Any]:
    def recall(each: Draw) -> interval_width.Estimate:
        return planned("recall", label, stream, each, expected)

    def elsewhere(each: Draw | None) -> float | None:
        return each and reading(stream, each, lambda other: other != label).audits

    return {
        "language": label,
        "posts": stream.share(label) * draw.size,
        "width": width(recall(draw)),
        "elsewhere": elsewhere(draw),
        "stated": elsewhere(interval_width.least_audit(draw, lambda each: interval_width.is_stated(recall(each)))),
        "wished": elsewhere(interval_width.least_audit(draw, lambda each: width(recall(each)) <= wished)),
    }


# --- Which further work narrows the accuracy that a task will measure, by the task's own counts. Reads only.
#
# Computed by figures/draw_plan.py; the table is in figures/plan_report.py.


def further_work(task: Task, wished: float | None = None) -> dict[str, Any] | None:
    """As core/further_work.narrowing, or None for a task that measures no accuracy of a stream."""
    if not measures_accuracy(task):
        return None
    counts = measured(task)
    return narrowing(counts, wished) if counts.counted.posts else None


def measures_accuracy(task: Task) -> bool:
    """Whether it measures the accuracy of a predictor in the stream from which its posts come."""
    return "audit" in task.kind.controls and DESIGNS[task.draw.design].of_stream


def measured(task: Task) -> Measured:
    """The counts of a task. The posts of a contested language that its audit did not choose count as disputed: people
    read them all, and checks, not rechecks, are chosen among them."""
    found = audits.audits(task)
    unread = _counts(audits.unread(task), "agreed_label")
    audited = {label: audit.resolved + audit.unresolved for label, audit in found.items()}
    agreed = Counter(audited) + unread
    of_checks, unchecked = checks.report(task), checks.unchecked_counts(task)
    rows = {row["language"]: checks.as_audit(row) for row in of_checks["languages"]}
    disputed = task.units.exported().filter(audited=False).exclude(pk__in=audits.unread(task))
    by_queue = _counts(disputed.filter(copy_of=None), "visited__0")
    by_queue += _counts(disputed.exclude(copy_of=None), "copy_of__visited__0")
    checked = {queue: chosen for queue, (_, chosen) in checks.check_counts(task).items() if queue in by_queue}
    counted = Counted(agreed, by_queue, audited, checked)
    # Only where posts are unread does it matter how often agreement is wrong.
    error = overall_error(audit for label, audit in found.items() if unread[label]).value
    rechecked = sum(audit.checked for audit in found.values())
    slips = checks.slips(task)
    expected = Expected(
        wrong=Expected().wrong if error is None else error,
        misread=of_checks["overall"]["error"]["value"] or 0.0,
        misconfirmed=sum(audit.checked_wrong for audit in found.values()) / max(1, rechecked),
        slips=(slips and slips.value) or 0.0,
    )
    return Measured(
        counted,
        draw_of(task, counted.posts),
        expected,
        {label: (unread[label], audit) for label, audit in found.items()},
        {queue: (units, rows[queue]) for queue, units in unchecked.items()},
        max(task.draws.values_list("frame_size", flat=True)),
        _seconds(task),
    )


def _counts(units: QuerySet[Unit], field: str) -> Counter[str]:
    return Counter(dict(units.order_by().values_list(field).annotate(Count("pk"))))


def _seconds(task: Task) -> float:
    """How long a person takes for an answer in the task, on average; what is supposed before any was timed."""
    timed = Judgment.objects.live().answers().filter(unit__task=task, active_seconds__isnull=False)
    return timed.aggregate(mean=Avg("active_seconds"))["mean"] or task.kind.seconds


# --- How wide the intervals of a uniform draw will be, and what more or fewer audits would change. Reads only.
#
# Computed by figures/interval_width.py; the tables and the plot are in figures/plan_report.py.


CURVE_SHARES = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)  # of audits, on the curve
FEWEST = 30  # posts of a language, from which on its figures are shown
# Of each kind of further work, how much is compared.
ENLARGED_BY = 0.1
LABEL_MEASURES = ("recall", "precision", ERROR)


def widths(task: Task, stream: Stream, size: int, expected: Expected, seconds: int) -> dict[str, Any]:
    """{"expected", "share", "accuracy", "error", "languages": [...], "typical", "curve": [...], "next": [...]}.

    languages: those of which FEWEST posts or more are drawn, the commonest first, each with its posts, audits, and the
    width of each of LABEL_MEASURES. typical: the middle one of them. curve: share of audits -> audits, read (posts in
    all), hours, and the width of accuracy, the error in all, and recall and precision in the typical language; with the
    task's own share among CURVE_SHARES. next: the same of the draw with more of one kind of work, the kind that narrows
    accuracy most first: work (AUDITS, CHECKS, SECONDS, POSTS) and more (posts to read, adjudicators' too: ENLARGED_BY
    of what readers read now, each time). Widths are fractions; None where there is no interval.
    """
    draw = draw_of(task, size)
    languages = [label for label in languages_of(stream) if size * stream.share(label) >= FEWEST]
    typical = languages[len(languages) // 2] if languages else ""

    def width_of(measure: str, label: str, each: Draw = draw) -> float | None:
        found = width(planned(measure, label, stream, each, expected))
        return found if found < 1 else None

    def point(each: Draw) -> dict[str, Any]:
        read = reading(stream, each)
        return {
            "share": each.share,
            "audits": read.audits,
            "read": read.all,
            "hours": read.work * seconds / 3600,
            "accuracy": width_of("accuracy", "", each),
            "error": width_of(ERROR, "", each),
            "recall": width_of("recall", typical, each) if typical else None,
            "precision": width_of("precision", typical, each) if typical else None,
        }

    return {
        "expected": {"accuracy": expected.accuracy, "wrong": expected.wrong, "voted": expected.voted},
        "share": draw.share,
        "accuracy": width_of("accuracy", ""),
        "error": width_of(ERROR, ""),
        "languages": [
            {
                "language": label,
                "posts": size * stream.share(label),
                "audits": stream.audits(draw).get(label, 0.0),
                **{measure: width_of(measure, label) for measure in LABEL_MEASURES},
            }
            for label in languages
        ],
        "typical": typical,
        "curve": _distinct(
            [point(draw._replace(share=share)) for share in sorted({*CURVE_SHARES, draw.share})], draw.share
        ),
        "next": sorted(
            (
                {"work": work, **point(each), "more": reading(stream, each).work - reading(stream, draw).work}
                for work, each in _enlarged(stream, draw)
            ),
            key=lambda row: row["accuracy"] or 1,
        ),
    }


def _enlarged(stream: Stream, draw: Draw) -> Iterator[tuple[str, Draw]]:
    """The draw with more of each kind of work, ENLARGED_BY of what readers read where there is so much left to do."""
    read, checks = reading(stream, draw), draw.checks
    more = ENLARGED_BY * read.all
    kinds = {
        AUDITS: lambda by: draw._replace(share=min(1.0, draw.share + by)),
        CHECKS: lambda by: draw._replace(checks=checks._replace(share=min(1.0, checks.share + by))),
        SECONDS: lambda by: draw._replace(checks=checks._replace(second=min(1.0, checks.second + by))),
        POSTS: lambda by: draw._replace(size=min(stream.posts, round(draw.size * (1 + by)))),
    }
    steps = [step / 200 for step in range(201)]
    for work, enlarged in kinds.items():
        enough = bisect_left(steps, more, key=lambda by, of=enlarged: reading(stream, of(by)).work - read.work)
        each = enlarged(steps[min(enough, len(steps) - 1)])
        if each != draw:
            yield work, each


def _distinct(curve: Sequence[dict[str, Any]], own: float) -> list[dict[str, Any]]:
    """Without the shares that give as many audits as another one, where the least numbers are more; the own stays."""
    by_audits: dict[float, dict[str, Any]] = {}
    for point in curve:
        audits = round(point["audits"], 6)
        if audits not in by_audits or point["share"] == own:
            by_audits[audits] = point
    return list(by_audits.values())


def needed(
    task: Task, stream: Stream, size: int, wished: float, expected: Expected, seconds: int
) -> list[dict[str, Any]]:
    """For accuracy, the error in all, and each of LABEL_MEASURES: {"measure", "share", "audits", "read", "hours"} of
    the smallest share of audits by which the interval is as narrow as wished; of LABEL_MEASURES, in most of the
    languages of which FEWEST posts are drawn. share is None if not even auditing all is enough.
    """
    draw = draw_of(task, size)
    labels = [label for label in languages_of(stream) if size * stream.share(label) >= FEWEST]
    figures = {"accuracy": [""], "error in all": [""], **dict.fromkeys(LABEL_MEASURES, labels)}
    found = []
    for name, of in figures.items():
        measure = ERROR if name == "error in all" else name

        def is_enough(each: Draw, measure: str = measure, of: Sequence[str] = of) -> bool:
            narrow = (width(planned(measure, label, stream, each, expected)) <= wished for label in of)
            return 2 * sum(narrow) > len(of)

        least = least_audit(draw, is_enough) if of else None
        read = least and reading(stream, least)
        found.append(
            {
                "measure": name,
                "share": least and least.share,
                "audits": read and read.audits,
                "read": read and read.all,
                "hours": read and read.work * seconds / 3600,
            }
        )
    return found
