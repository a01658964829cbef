"""Fixtures: a world that the tests of a module share."""

import pytest

from tests.annotate.access.world import World


@pytest.fixture(scope="module")
def begin_world(make_world):
    begin, already = make_world(World), {}

    def again(data_dir):
        copy = begin(data_dir)
        copy.already = already
        return copy

    return again


@pytest.fixture
def world(begin_world, data_dir, db):
    world = begin_world(data_dir)
    world.as_if_just_made()
    return world
