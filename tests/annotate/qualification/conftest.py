"""Fixtures: a task with a qualification test, and a person who can take it."""

import pytest

from tests.annotate.qualification.trials import GOLD


@pytest.fixture
def make_tested(make_records_task):
    """A task whose test has four of eight questions, requires three correct answers, and can be taken twice."""

    def make(*, gold=GOLD, **knobs):
        return make_records_task(gold=gold, **({"test_items": 4, "pass_mark": 0.75, "tries": 2} | knobs))

    return make


@pytest.fixture
def ann(person):
    return person("ann", "en")


@pytest.fixture
def task(make_tested):
    return make_tested()
