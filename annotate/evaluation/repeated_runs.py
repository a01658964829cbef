"""Evaluation of several training runs of one system: means over the runs, and a report on the run that is best on dev.

As in XGLUE and EURLEX57K, a run is selected on the split dev and reported on the split test. A file has predictions for
both splits. A folder of published files has those for dev in its subfolder `dev`.
"""

from collections.abc import Sequence
from math import inf, sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import scipy

from annotate.core.draws.splits import DEV, TEST
from annotate.core.estimation.proportions import LEVEL
from annotate.evaluation.measurement import BOUNDS, evaluate
from annotate.evaluation.prediction_files import system_names
from annotate.evaluation.subjects import EvaluationError
from annotate.goldsets.set_folder import GoldSetError
from annotate.reports.evaluation_report import head_rows, name_of
from annotate.reports.slice_tables import MEASURES

Report = dict[str, Any]


def evaluate_runs(
    runs: Sequence[str], gold: Sequence[Path], *, against: str = "", split: str | None = None, **options: Any
) -> Report:
    """Return the report on the run that is best on dev, with the means over all runs.

    runs: paths or names of the runs' predictions; see `evaluate`.
    gold, against, options: see `evaluate`. `against` is compared with the best run.
    split: the split to measure; by default test, if the runs can be measured on dev.

    Raise EvaluationError, GoldSetError or CorpusError if a run cannot be measured.
    """
    if options.get("judge"):
        raise EvaluationError("--judge certifies a single judge. Specify one file of labels.")
    on_dev, why = _on_dev(runs, gold, **options)
    split = split or (TEST if on_dev else None)
    tested = [evaluate(run, gold, split=split, **options) for run in runs]
    main = [_main(report) for report in on_dev]
    best = main.index(max(main)) if main else 0
    names = system_names(runs)
    report = evaluate(runs[best], gold, against=against, split=split, **options) if against else tested[best]
    if why:
        report["warnings"] = [
            *report["warnings"],
            f"No run was selected on {DEV}, so the figures of single items are those of {names[best]}. {why}",
        ]
    return report | {
        "runs": {
            "chosen": names[best] if main else "",
            "runs": [
                {"name": name, "dev": main[index] if main else None, "rows": tested[index]["rows"]}
                for index, name in enumerate(names)
            ],
            "rows": _means(tested),
        },
        "files": {key: digest for one in (*tested, report) for key, digest in one["files"].items()},
    }


def _on_dev(runs: Sequence[str], gold: Sequence[Path], **options: Any) -> tuple[list[Report], str]:
    """Return the reports on dev, or an empty list and the reason."""
    places = [Path(run) / DEV if Path(run).is_dir() else run for run in runs]
    try:
        return [evaluate(str(place), gold, split=DEV, **options) for place in places], ""
    except (EvaluationError, GoldSetError) as error:
        return [], str(error)


def _main(report: Report) -> float:
    """Return the first headline figure; runs without one are the worst."""
    row = next(iter(head_rows(report, report["rows"])), None)
    return -inf if row is None or row["value"] is None else float(row["value"])


def _means(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """Return the mean of each figure over the runs that have it, with Student's interval and the standard deviation."""
    values: dict[tuple[Any, ...], list[float]] = {}
    for report in reports:
        for row in report["rows"]:
            if row["value"] is not None:
                values.setdefault((row["measure"], *row["of"].items()), []).append(row["value"])
    heads = [(head["measure"], *head["of"].items()) for head in reports[0]["head"]]
    return [
        {"name": name_of(reports[0], {"measure": measure, "of": dict(of)}), "measure": measure, "of": dict(of)}
        | _mean(measure, numbers)
        | {"is_head": (measure, *of) in heads}
        for (measure, *of), numbers in values.items()
        if len(numbers) == len(reports)
    ]


def _mean(measure: str, values: Sequence[float]) -> dict[str, Any]:
    mean, spread = fmean(values), stdev(values)
    half = float(scipy.stats.t.ppf(1 - (1 - LEVEL) / 2, len(values) - 1)) * spread / sqrt(len(values))
    lowest, highest = BOUNDS.get(measure, (0.0, 1.0 if MEASURES[measure].is_share else inf))
    return {
        "value": mean,
        "low": max(lowest, mean - half),
        "high": min(highest, mean + half),
        "deviation": spread,
        "values": list(values),
    }
