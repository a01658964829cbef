"""A task in which people compare two systems, and people who do."""

import pytest

from tests.annotate.preferring.comparing import open_comparison


@pytest.fixture
def compare(tmp_path, db):
    """compare("mt5", "bert", number=4) opens a task in which each message has replies of these systems."""

    def make(*systems, **options):
        return open_comparison(tmp_path, *systems, **options)

    return make


@pytest.fixture
def ann(person):
    return person("ann", "en")
