"""A task with units in every state."""

import pytest

from annotate.kinds import Answer
from annotate.work import accounts
from annotate.work.adjudication import settle
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from tests.annotate.conftest import AGREED, DISPUTED


@pytest.fixture
def world(make_task, person):
    """Return a task with answered, skipped, settled, open, agreed and copied units."""
    task = make_task(
        [DISPUTED, DISPUTED, AGREED, ("fr", "fr", "he"), *[{"votes": DISPUTED, "text": "<b>same</b>"}] * 2]
    )
    ann, ada = person("ann", "de:5 en:4"), person("ada", adjudicates=True)
    judge(ann, take(ann, task).pk, Answer("und", "several", "<script>alert(1)</script>"), 3)
    passed = skip(ann, take(ann, task).pk)
    settle(ada, passed.unit_id, Answer("en", "looked it up"))
    take(ann, task)
    accounts.invite(ann)
    return task
