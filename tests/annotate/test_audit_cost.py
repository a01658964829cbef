"""What a limit costs: the posts of languages that are over it by chance."""

from itertools import product
from math import comb

import pytest

from annotate.core.estimation.detector_error import Audit, contest_chance, contested, is_over

LIMITS = (0.05, 0.1, 0.15, 0.2, 1.0)


@pytest.mark.parametrize(("audits", "wrong", "limit"), [*product((1, 7, 30), (0.0, 0.01, 0.2), LIMITS)])
def test_the_chance_to_be_contested_is_that_of_all_findings_over_the_limit(audits, wrong, limit):
    over = [
        comb(audits, found) * wrong**found * (1 - wrong) ** (audits - found)
        for found in range(audits + 1)
        if is_over(Audit(audits, found, found, audits - found, 0, 0), limit)
    ]
    assert contest_chance(audits, wrong, limit) == pytest.approx(sum(over), abs=1e-12)


def test_without_audits_nothing_is_contested():
    assert contest_chance(0, 0.5, 0.1) == 0


def test_where_all_is_audited_nothing_more_is_read():
    assert contested(20, 20, 0.5, 0.1) == 0
