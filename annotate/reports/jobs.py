"""Jobs in words and in a table."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from annotate.reports.tables import SENTENCE, SHORT, Cell, Column, Table, table, when

LEAST = 0.02  # of the work must be done before the rest is foretold
UNITS = {"B": (1 << 20, "MB")}  # unit -> how many of it are told as one of another
STATES = {"waiting": "waits", "running": "runs", "done": "done", "failed": "failed", "cancelled": "cancelled"}


def title(job: Any, deed: str) -> str:
    """What is done, and to what."""
    about = job.given.get("task") or job.given.get("corpus") or job.given.get("name") or ""
    return f"{deed}: {about}" if about else deed


def jobs_table(jobs: Iterable[Any], address: Callable[[int], str], asked: str = "") -> Table:
    columns = (
        Column("number", "job", SHORT, lambda job: Cell(str(job.pk), job.pk, url=address(job.pk))),
        Column("action", "what", SHORT, lambda job: Cell(job.action, job.action)),
        Column("about", "of", SHORT, lambda job: str(job.given.get("task") or job.given.get("name") or job.corpus)),
        Column(
            "state",
            "state",
            SHORT,
            lambda job: Cell(STATES[job.state], job.state, mark="falsely" if job.state == "failed" else ""),
        ),
        Column("by", "begun by", SHORT, lambda job: str(job.by) if job.by else "the program"),
        Column("at", "asked for", SHORT, lambda job: when(job.asked_at)),
        Column("took", "took", SHORT, _took),
        Column("said", "what came of it", SENTENCE, lambda job: " ".join([*job.warned[:1], *job.said[:1]])[:200]),
    )
    return table("Jobs", columns, jobs, slug="jobs", asked=asked)


def _state(job: Any) -> Cell:
    return Cell(STATES[job.state], job.state, mark="falsely" if job.state == "failed" else "")


def _took(job: Any) -> Cell:
    if not (job.began_at and job.ended_at):
        return Cell("–")
    seconds = (job.ended_at - job.began_at).total_seconds()
    return Cell(duration(seconds), seconds)


def duration(seconds: float) -> str:
    """In the two largest units."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def progress(of: Mapping[str, Any]) -> dict[str, Any]:
    """of: as work/jobs.py has it. {"done", "total" (as for a bar; None if it is not known), "words", "said"}."""
    done, total, unit = of["done"], of["total"], of["unit"]
    size, name = UNITS.get(unit, (1, f"{unit}s"))
    passed = of["at"] - of["began"]
    told = []
    if done or total:
        amount = f"{done / size:,.0f}" + (f" of {total / size:,.0f}" if total else "")
        told.append(f"{amount} {name}")
    if done and passed > 1:
        told.append(f"{done / size / passed:,.{0 if done / size / passed >= 10 else 1}f} {name} a second")
        if total and done / total >= LEAST:
            left = (total - done) * passed / done - max(0.0, time.time() - of["at"])
            told.append(f"about {duration(left)} left")
    return {"done": done, "total": total, "words": ", ".join(told), "said": of["said"]}
