"""The account that the tests in this folder use."""

import pytest


@pytest.fixture
def ann(person):
    return person("ann", "de").user
