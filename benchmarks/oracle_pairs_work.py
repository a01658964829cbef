"""One run of the benchmark oracle_pairs: `python -m benchmarks.oracle_pairs_work POPULATION WAY UNITS VIEWS SEED`
prints a line of JSON for each unit and kind of hidden unit.
"""

import json
import sys

import django

django.setup()

from django.conf import settings  # noqa: E402

from tests.annotate import act_pairs  # noqa: E402


def main(name: str, way: str, units: int, views: int, seed: str) -> None:
    settings.ALLOWED_HOSTS = ["testserver"]
    settings.SECURE_SSL_REDIRECT = False
    population = act_pairs.POPULATIONS[name](units, way, views=views, seed=seed)
    trials = act_pairs.all_tried(population.person, units, population.pairs)
    for kind, hidden, features in population.features(trials):
        print(json.dumps({"kind": kind, "hidden": hidden, "features": list(features)}), flush=True)


if __name__ == "__main__":
    name, way, units, views, seed = sys.argv[1:]
    main(name, way, int(units), int(views), seed)
