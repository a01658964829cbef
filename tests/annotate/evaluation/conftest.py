"""The sets that the tests of measuring have in common."""

import pytest

from tests.annotate.evaluation.figures import VOTER
from tests.annotate.gold_folders import World


@pytest.fixture
def world(make_task, tmp_path):
    return World(make_task, tmp_path)


@pytest.fixture
def stream(world):
    folder, _ = world.uniform(VOTER)
    return folder
