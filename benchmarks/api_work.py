"""The cases of the benchmark api: `python -m benchmarks.api_work CASES` prints a line of JSON for each operation."""

import json
import logging
import sys

import django

django.setup()

from django.db import transaction  # noqa: E402

from tests.annotate import api_cases  # noqa: E402
from tests.annotate.access.world import World  # noqa: E402


@transaction.atomic
def main(cases: int) -> None:
    logging.disable(logging.WARNING)  # of each request that is refused
    for each in api_cases.run(World(), cases):
        missed = each.statuses[404]
        told = {
            "operation": each.operation,
            "cases": each.statuses.total(),
            "2xx": each.between(200, 300),
            "4xx": each.between(400, 500) - missed,
            "404": missed,
            "5xx": each.between(500, 600),
            "undescribed": len(each.faults),
        }
        print(json.dumps(told | {"faults": each.faults}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
