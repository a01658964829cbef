"""Whatever is sent to the API, it answers as its description says. benchmarks/api.py sends more."""

import pytest

from tests.annotate import api_cases
from tests.annotate.access.world import World

pytestmark = pytest.mark.slow


def test_every_operation_answers_made_up_requests_as_it_is_described_and_most_of_them_past_404(db, data_dir):
    found = list(api_cases.run(World(), 20))
    assert [fault for each in found for fault in each.faults] == []
    assert [each.operation for each in found if not each.between(200, 300)] == []
    assert sum(each.statuses[404] for each in found) < sum(each.statuses.total() for each in found) / 3
