"""Fixtures: a world that the tests of a module share."""

import pytest

from tests.annotate.access.world import World


@pytest.fixture(scope="module")
def begin_world(make_world):
    begin, already = make_world(World), {}

    def again(data_dir):
        made = begin(data_dir)
        made.already = already
        return made

    return again


@pytest.fixture
def world(begin_world, data_dir, db):
    made = begin_world(data_dir)
    made.as_if_just_made()
    return made
