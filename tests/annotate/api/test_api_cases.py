"""Whatever is sent to the API, it answers as its description says. benchmarks/api.py sends more."""

import pytest

from tests.annotate import api_cases
from tests.annotate.access.world import World

pytestmark = pytest.mark.slow


def test_every_operation_answers_made_up_requests_as_it_is_described_and_most_of_them_past_404(db, data_dir):
    found = list(api_cases.run(World(), 20))
    assert [fault for each in found for fault in each.faults] == []
    # Of the actions, only one has valid options in this world.
    tried = [each for each in found if "/actions/" not in each.operation or "/import_corpus/" in each.operation]
    assert [each.operation for each in tried if not each.between(200, 300)] == []
    assert sum(each.statuses[404] for each in found) < sum(each.statuses.total() for each in found) / 3
