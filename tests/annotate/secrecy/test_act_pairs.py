"""No pair of acts tells gold answers, audits, checks, second decisions or decoys from others. Pair by pair, on more
units, it is the benchmark benchmarks/oracle_pairs.py.
"""

import secrets
from collections import defaultdict

import pytest

from tests.annotate import act_pairs, roc

pytestmark = pytest.mark.slow


UNITS = 56
# How many pages are looked at around a unit.
VIEWS = 3
FEWEST = 7
# Some thousand features are looked at.
SURE = 0.9999


@pytest.fixture(autouse=True)
def _lots_of_one_secret(monkeypatch):
    """Each run does the same, so that none fails by chance."""
    monkeypatch.setattr(secrets, "token_hex", lambda size: f"{7:0{2 * size}x}")


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("gold, one reader", "api"),
        ("gold, three readers", "page"),
        ("gold with suggestions", "page"),
        ("posts", "api"),
        ("posts", "page"),
        ("decoys", "page"),
    ],
)
def test_no_pair_of_acts_tells_a_hidden_unit_from_others(db, name, way):
    population = act_pairs.POPULATIONS[name](UNITS, way, views=VIEWS)
    found = act_pairs.all_tried(population.person, UNITS, population.pairs)
    features = defaultdict(lambda: ([], []))
    for kind, hidden, told in population.features(found):
        for feature, value in told:
            features[kind, feature][not hidden].append(value)
    enough = {key: values for key, values in features.items() if min(map(len, values)) >= FEWEST}
    assert {kind for kind, _ in enough} == {kind for kinds in population.kinds.values() for kind in kinds}
    intervals = {key: roc.interval(*values, SURE) for key, values in enough.items() if not key[1].endswith("seconds 0")}
    assert {key: (low, high) for key, (low, high) in intervals.items() if not low <= 0.5 <= high} == {}
