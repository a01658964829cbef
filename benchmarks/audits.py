"""Audits of the detectors' agreement over many seeds: whether the intervals cover the truth.

A frame of posts is resampled as for the whole run, imported and prelabelled. Then, for each seed, a uniform task is
drawn from it, simulated readers do all of it through the operations that page and API call (no HTTP), adjudicators
settle the rest, and the figures of the audit and by stratum are compared with the frame's known truth. A reader who
slips names the queue's language if the post is in another one, and otherwise another of their languages. Everything is
rolled back before the next seed. There is one process per core, each with its own frame.
"""

from collections.abc import Iterable, Mapping
from math import sqrt
from pathlib import Path

from annotate.core.estimation.label_errors import power_allocation
from benchmarks.material import resample
from benchmarks.resampled import on_frames
from benchmarks.tables import share, show
from benchmarks.whole_run import PIDGIN_SHARE

# Languages with fewer audits are reported separately.
LEAST_AUDITS = 30
BY_POWER = (0.02, 0.03, 0.05, 0.1, 0.15, 0.2)  # shares of what is agreed on


def add_options(parser) -> None:
    parser.add_argument(
        "--audit-seeds", type=int, default=40, help="draws, each with new errors of readers (default %(default)s)"
    )
    parser.add_argument("--audit-frame", type=int, default=100_000, help="posts in a frame (default %(default)s)")
    parser.add_argument("--audit-size", type=int, default=10_000, help="posts drawn for a task (default %(default)s)")
    parser.add_argument(
        "--adjudicator-slip", type=float, default=0.0, help="share of an adjudicator's wrong labels (default none)"
    )
    parser.add_argument(
        "--audit-limit", type=float, default=1.0, help="option of the task (default: no contested label)"
    )


def run(folder: Path, options) -> None:
    seeds = [f"{options.seed}-{number}" for number in range(options.audit_seeds)]
    arguments = (options.audit_size, options.slip, options.adjudicator_slip, options.audit_limit)
    frames = on_frames(
        lambda seed: resample(folder, options.audit_frame, PIDGIN_SHARE, seed)[0],
        seeds,
        "benchmarks.audits_work",
        *arguments,
    )
    runs = [run for frame in frames for run in frame]
    print(
        f"{len(runs)} draws of {options.audit_size:,} from {len(frames)} frames of {options.audit_frame:,} posts, "
        f"{PIDGIN_SHARE:.0%} Nigerian Pidgin; readers slip on {options.slip:.1%} of answers, adjudicators on "
        f"{options.adjudicator_slip:.1%}.\n"
        f"On average {_mean(run['judgments'] for run in runs):,.0f} judgments, of which "
        f"{_mean(run['audited'] for run in runs):,.0f} posts audited.\n"
    )
    report(runs)
    for frame in frames:
        by_allocation(frame[0]["agreed"], options.audit_size / options.audit_frame)


def by_allocation(agreed: Mapping[str, tuple[int, int]], part: float) -> None:
    """Show the standard deviation of the overall error of agreement, with the former allocation of audits (2%, and at
    least 30 per language) and with power allocation. agreed: label -> posts of the frame on which detectors agree, and
    how many of these are wrong; part: the share of the frame that is drawn.
    """
    sizes = {label: part * posts for label, (posts, _) in agreed.items()}
    before = {label: min(size, max(0.02 * size, 30)) for label, size in sizes.items()}
    rules = {"2%, at least 30": before}
    rules |= {f"{of:.0%} in all": power_allocation(sizes, of, 5) for of in BY_POWER}

    def deviation(audits: Mapping[str, float]) -> float:
        return sqrt(
            sum(
                (sizes[label] / sum(sizes.values())) ** 2
                * (wrong / posts * (1 - wrong / posts) / audits[label])
                * (1 - audits[label] / sizes[label])
                for label, (posts, wrong) in agreed.items()
            )
        )

    show(
        "Error of agreement in all: its standard deviation over draws",
        ["audit", "audits", "points", "of the first"],
        [
            [name, round(sum(audits.values())), 100 * deviation(audits), deviation(audits) / deviation(before)]
            for name, audits in rules.items()
        ],
    )


def report(runs: list[dict]) -> None:
    ways = ("blind", "not adjudicated")
    cells = [row for run in runs for row in run["languages"]]
    overall = [run["overall"] for run in runs]
    audited = [row for row in cells if row["audited"] >= LEAST_AUDITS]
    groups = {
        f"languages with {LEAST_AUDITS} audits or more": audited,
        "  of these, with some error": [row for row in audited if 0 < row["truth"] < 1],
        "  of these, with an error or more expected": [row for row in audited if row["truth"] * row["audited"] >= 1],
        "languages with fewer": [row for row in cells if 0 < row["audited"] < LEAST_AUDITS],
        "in all": overall,
    }
    show(
        "Error of agreement: how often the 95% interval covers that of the frame",
        ["", "cells", *ways],
        [[title, len(rows), *(_coverage(rows, way) for way in ways)] for title, rows in groups.items()],
    )
    show(
        "Error of agreement in all (%)",
        ["", "mean"],
        [["truth", 100 * _mean(row["truth"] for row in overall)]]
        + [[way, 100 * _mean(row[way]["value"] for row in overall)] for way in ways],
    )
    show(
        "Accuracy of a detector, with und: how often the interval covers that of the frame, and means (%)",
        ["", "truth", "by stratum", "covers", "width", "naive", "covers", "width"],
        [_accuracy(runs, detector) for detector in runs[0]["accuracy"]],
    )


def _accuracy(runs: list[dict], detector: str) -> list[object]:
    cells = [run["accuracy"][detector] for run in runs]
    row: list[object] = [detector, 100 * _mean(cell["truth"] for cell in cells)]
    for way in ("by stratum", "naive"):
        row += [
            100 * _mean(cell[way]["value"] for cell in cells),
            _coverage(cells, way),
            100 * _mean(cell[way]["high"] - cell[way]["low"] for cell in cells),
        ]
    return row


def _coverage(rows: list[dict], way: str) -> str:
    return share(sum(row[way]["low"] <= row["truth"] <= row[way]["high"] for row in rows), len(rows))


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)
