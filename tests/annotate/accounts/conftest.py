"""The account that the tests of accounts are about."""

import pytest


@pytest.fixture
def ann(person):
    return person("ann", "de").user
