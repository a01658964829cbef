"""What the audit costs: its posts, and those of languages that are over the limit by chance."""

from itertools import product
from math import comb

import pytest

from annotate.core.audit_cost import audited, contest_chance, contested, expected_reading, loss
from annotate.core.audits import Audit, error

LIMITS = (0.05, 0.1, 0.15, 0.2, 1.0)


def test_a_share_is_audited_and_at_least_some_of_each_language():
    assert [audited(posts, 0.07, 30) for posts in (10, 100, 1_000)] == [10, 30, 70]
    assert audited(100, 0.0, 0) == 0


@pytest.mark.parametrize(("audits", "wrong", "limit"), [*product((1, 7, 30), (0.0, 0.01, 0.2), LIMITS)])
def test_the_chance_to_be_contested_is_that_of_all_findings_over_the_limit(audits, wrong, limit):
    over = [
        comb(audits, found) * wrong**found * (1 - wrong) ** (audits - found)
        for found in range(audits + 1)
        if error(Audit(audits, found, found, audits - found, 0, 0)).high > limit
    ]
    assert contest_chance(audits, wrong, limit) == pytest.approx(sum(over), abs=1e-12)


def test_without_audits_nothing_is_contested():
    assert contest_chance(0, 0.5, 0.1) == 0
    assert expected_reading(1_000, 0.5, 0.0, 0, 0.1) == 0


def test_where_all_is_audited_nothing_more_is_read():
    assert contested(20, 20, 0.5, 0.1) == 0
    assert expected_reading(20, 0.5, 0.02, 30, 0.1) == 20


def test_wrong_labels_that_nobody_reads_have_their_price():
    read = expected_reading(1_000, 0.05, 0.02, 30, 0.15)
    assert 30 < read < 1_000
    assert loss(1_000, 0.05, 0.02, 30, 0.15, price=20) == pytest.approx(read + 20 * 0.05 * (1_000 - read))
    assert loss(1_000, 0.0, 0.02, 30, 1.0, price=20) == 30
