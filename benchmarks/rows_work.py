"""The files of the benchmark rows: `python -m benchmarks.rows_work FOLDER FILES SEED` prints a line of JSON for
each importer and format.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from random import Random

import django

django.setup()

from tests.inputs import fuzzing  # noqa: E402


def main(folder: Path, files: int, seed: str) -> None:
    fuzzing.make_installation(folder)
    for importer, of in fuzzing.IMPORTERS.items():
        for format in of.formats:
            counts, lost = Counter[str](), []
            for number in range(files):
                name = f"{importer}-{format}-{number}"
                try:
                    counts += fuzzing.offer(of, format, Random(f"{seed} {name}"), folder, name, fuzzing.ABOUT)
                except fuzzing.Lost as fault:
                    lost.append(str(fault))
            row = {"importer": f"{importer}, {format}", "offered": files}
            row |= {name: counts[name] for name in ("given", "accepted", "refused", "duplicates", "files")}
            print(json.dumps(row | {"faults": len(lost), "lost": lost}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
