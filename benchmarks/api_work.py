"""The cases of the benchmark api: `python -m benchmarks.api_work CASES` prints a line of JSON for each operation."""

import json
import logging
import sys
from contextlib import redirect_stdout

import django

django.setup()

from django.db import transaction  # noqa: E402

from tests.annotate import api_cases  # noqa: E402
from tests.annotate.access.world import World  # noqa: E402


@transaction.atomic
def main(cases: int) -> None:
    logging.disable(logging.WARNING)  # of each request that is refused
    with redirect_stdout(sys.stderr):
        world = World()
    for operation in api_cases.run(world, cases):
        missed = operation.statuses[404]
        row = {
            "operation": operation.operation,
            "cases": operation.statuses.total(),
            "2xx": operation.between(200, 300),
            "4xx": operation.between(400, 500) - missed,
            "404": missed,
            "5xx": operation.between(500, 600),
            "undescribed": len(operation.faults),
        }
        print(json.dumps(row | {"faults": operation.faults}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
