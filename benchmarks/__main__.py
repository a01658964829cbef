"""Run benchmarks: `python -m benchmarks FOLDER [NAMES...]`. By default, all but peers are run, one after another."""

import argparse
import signal
import sys
import time
from pathlib import Path

from benchmarks import (
    adjudications,
    agreeing,
    answer,
    api,
    audit_defaults,
    audits,
    bulk,
    comparing,
    contrasts,
    crowd,
    database,
    declared,
    detectors,
    draws,
    evidence,
    faults,
    filters,
    forecasts,
    idle,
    jobs,
    judge,
    load,
    looks,
    measuring,
    oracle,
    oracle_pairs,
    pages,
    panels,
    peers,
    planning,
    population,
    preferences,
    prelabel_speed,
    press,
    row_formats,
    rows,
    scores,
    stream,
    suggestions,
    vocabulary,
    whole_run,
)
from benchmarks.material import MissingData
from benchmarks.place import BenchmarkFailed

# Name -> module with `run(folder, options)`, `add_options(parser)` and a first docstring line that says what is
# measured.
BENCHMARKS = {
    "whole_run": whole_run,
    "adjudications": adjudications,
    "audits": audits,
    "stream": stream,
    "comparing": comparing,
    "contrasts": contrasts,
    "measuring": measuring,
    "looks": looks,
    "agreeing": agreeing,
    "judge": judge,
    "planning": planning,
    "declared": declared,
    "filters": filters,
    "forecasts": forecasts,
    "audit_defaults": audit_defaults,
    "population": population,
    "crowd": crowd,
    "detectors": detectors,
    "evidence": evidence,
    "panels": panels,
    "peers": peers,
    "prelabel_speed": prelabel_speed,
    "draws": draws,
    "database": database,
    "vocabulary": vocabulary,
    "suggestions": suggestions,
    "preferences": preferences,
    "press": press,
    "oracle": oracle,
    "oracle_pairs": oracle_pairs,
    "answer": answer,
    "idle": idle,
    "jobs": jobs,
    "pages": pages,
    "load": load,
    "api": api,
    "scores": scores,
    "rows": rows,
    "row_formats": row_formats,
    "bulk": bulk,
    "faults": faults,
}


def read_arguments(arguments: list[str]) -> argparse.Namespace:
    listed = "\n".join(f"  {name:16}{module.__doc__.splitlines()[0]}" for name, module in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"Measure Assay on real data.\n\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="the data: lingua_sentences/, afrisenti_tweets/, ...")
    parser.add_argument("names", nargs="*", help="the benchmarks to run (default: all but peers)")
    parser.add_argument(
        "--seed", default="2015", help="the seed of the sample and the annotators (default %(default)s)"
    )
    for name, module in BENCHMARKS.items():
        module.add_options(parser.add_argument_group(name))
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in BENCHMARKS]:
        parser.error(f"{unknown[0]!r} is not a benchmark. Available benchmarks: {', '.join(BENCHMARKS)}.")
    return options


def main(arguments: list[str]) -> int:
    options = read_arguments(arguments)
    # As an exception, so that servers are stopped and folders removed on the way out.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        if not options.folder.is_dir():
            raise MissingData(f"There is no folder {options.folder}.")
        for name in options.names or [name for name in BENCHMARKS if name != "peers"]:
            module = BENCHMARKS[name]
            print(f"# {name}: {module.__doc__.splitlines()[0]}\n", flush=True)
            start = time.monotonic()
            module.run(options.folder, options)
            print(f"{name} took {time.monotonic() - start:,.0f} s.\n", flush=True)
    except (MissingData, BenchmarkFailed) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
