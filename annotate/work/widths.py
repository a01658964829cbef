"""How wide the intervals of a uniform draw will be, and what more or fewer audits would change. Reads only.

Computed by core/planning.py; the tables and the plot are in reports/widths.py.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

from annotate.core.further_work import AUDITS, CHECKS, POSTS, SECONDS
from annotate.core.planning import ERROR, Draw, Expected, Stream, least_audit, planned, reading, width
from annotate.models import Task
from annotate.work.plan import draw_of, languages_of

SHARES = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)  # of audits, on the curve
FEWEST = 30  # posts of a language, from which on its figures are shown
# Of each kind of further work, how much is compared.
MORE = 0.1
MEASURES = ("recall", "precision", ERROR)


def widths(task: Task, stream: Stream, size: int, expected: Expected) -> dict[str, Any]:
    """{"expected", "share", "accuracy", "error", "languages": [...], "typical", "curve": [...], "next": [...]}.

    languages: those of which FEWEST posts or more are drawn, the commonest first, each with its posts, audits, and the
    width of each of MEASURES. typical: the middle one of them. curve: share of audits -> audits, read (posts in all),
    hours, and the width of accuracy, the error in all, and recall and precision in the typical language; with the
    task's own share among SHARES. next: the same of the draw with more of one kind of work, the kind that narrows
    accuracy most first: work (AUDITS, CHECKS, SECONDS, POSTS) and more (posts to read, adjudicators' too: MORE of what
    readers read now, each time). Widths are fractions; None where there is no interval.
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
            "hours": read.work * task.seconds / 3600,
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
                **{measure: width_of(measure, label) for measure in MEASURES},
            }
            for label in languages
        ],
        "typical": typical,
        "curve": _distinct([point(draw._replace(share=share)) for share in sorted({*SHARES, draw.share})], draw.share),
        "next": sorted(
            (
                {"work": work, **point(each), "more": reading(stream, each).work - reading(stream, draw).work}
                for work, each in _enlarged(stream, draw)
            ),
            key=lambda row: row["accuracy"] or 1,
        ),
    }


def _enlarged(stream: Stream, draw: Draw) -> Iterator[tuple[str, Draw]]:
    """The draw with more of each kind of work, MORE of what readers read where there is so much left to do."""
    read, checks = reading(stream, draw), draw.checks
    more = MORE * read.all
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


def needed(task: Task, stream: Stream, size: int, wished: float, expected: Expected) -> list[dict[str, Any]]:
    """For accuracy, the error in all, and each of MEASURES: {"measure", "share", "audits", "read", "hours"} of the
    smallest share of audits by which the interval is as narrow as wished; of MEASURES, in most of the languages of
    which FEWEST posts are drawn. share is None if not even auditing all is enough.
    """
    draw = draw_of(task, size)
    labels = [label for label in languages_of(stream) if size * stream.share(label) >= FEWEST]
    figures = {"accuracy": [""], "error in all": [""], **dict.fromkeys(MEASURES, labels)}
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
                "hours": read and read.work * task.seconds / 3600,
            }
        )
    return found
