"""Sentences on what actions did and what remains to be done, for both pages and commands."""

from collections.abc import Mapping
from typing import Any

from annotate.reports.tables import many


def rerouted(counts: dict[str, int]) -> str:
    """What routing.reroute did."""
    queues, adjudication = counts["queues"], counts["adjudication"]
    return f"Sent on: {queues:,} to readers of their next language, {adjudication:,} to adjudication."


def undecidable(count: int) -> str:
    """What to do about the units that progress.undecidable counts; empty if there are none."""
    if not count:
        return ""
    posts = (
        "1 post waits for an adjudicator who has not read it"
        if count == 1
        else f"{count:,} posts wait for an adjudicator who has not read them"
    )
    return f"{posts}; make another person an adjudicator."


def contested(waiting: Mapping[str, int]) -> str:
    """Why people are asked about posts on which the detectors agree: label -> units that wait for that reason."""
    if not waiting:
        return ""
    number = sum(waiting.values())
    wait = "waits" if number == 1 else "wait"
    return f"The audit failed for {' '.join(sorted(waiting))}, so people label these too: {number:,} of them {wait}."


def closed(done: Mapping[str, Any]) -> str:
    """What closing.close did."""
    open_now = many(done["in_hand"], "unit")
    held = f" What people have open now ({open_now}) may still be answered." if done["in_hand"] else ""
    now = "is closed now: nobody is given its units" if done["changed"] else "was closed already"
    digest = f" Publish this digest of what became of its drawn units: {done['digest']}." if done["digest"] else ""
    return f"Task {done['task']} {now}. {_left(done)}{held}{digest}"


def reopened(done: Mapping[str, Any]) -> str:
    """What closing.reopen did."""
    now = "is open again: people are given its units" if done["changed"] else "was open already"
    return f"Task {done['task']} {now}. {_left(done)}"


def _left(done: Mapping[str, Any]) -> str:
    left = done["unfinished"]
    return f"Without a label yet: {many(left, 'unit')}." if left else "All of its units are done."
