"""Sentences on what actions did and what remains to be done, for both pages and commands."""

from collections.abc import Mapping
from typing import Any

from annotate.reports.tables import many


def rerouted(counts: dict[str, int]) -> str:
    """What routing.reroute did."""
    queues, adjudication, decided = counts["queues"], counts["adjudication"], counts["decided"]
    by_answers = f" Decided by the answers that they have: {decided:,}." if decided else ""
    return f"Sent on: {queues:,} to readers of their next language, {adjudication:,} to adjudication.{by_answers}"


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
    ended = {"decided": "Decided by what was answered", "unconfirmed": "Labelled by one reader, and not confirmed"}
    ended |= {"left_out": "Left out without a label"}
    by_this = "".join(f" {what}: {many(done[name], 'unit')}." for name, what in ended.items() if done[name])
    return f"Task {done['task']} {now}.{by_this} {_left(done)}{held}{digest}"


def leave_out(task: str) -> str:
    """How to end a task of which some units get no label."""
    return f"To end the task without these units: `assay close {task} --leave-out`."


def reopened(done: Mapping[str, Any]) -> str:
    """What closing.reopen did."""
    now = "is open again: people are given its units" if done["changed"] else "was open already"
    return f"Task {done['task']} {now}. {_left(done)}"


def _left(done: Mapping[str, Any]) -> str:
    left = done["unfinished"]
    return f"Without a label yet: {many(left, 'unit')}." if left else "All of its units are done."
