"""People answer at the same time, and their answers lead to further draws of documents."""

from functools import partial

import pytest

from annotate.controls.replenishment import class_progress
from annotate.kinds import Answer
from annotate.models import Task
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate.balanced_draws.acts import opened
from tests.annotate.balanced_draws.test_documents_by_people import (  # noqa: F401 - fixtures
    CLASSES,
    NEEDED,
    SETS,
    kind,
    predictions,
    sentences,
    truth,
)
from tests.together import at_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


def test_people_at_once_draw_no_document_twice_and_none_too_many(predictions, kind, person, caplog):  # noqa: F811
    opened("topics", kind, labels=CLASSES, redundancy=1, **SETS)
    task = Task.objects.get()
    people = [person(f"reader{number}", "de en") for number in range(6)]

    def work(reader):
        while task.units.filter(stage="QUEUED").exists():
            if lease := take(reader, task):
                judge(reader, lease.pk, Answer(truth(lease.unit)))

    assert at_once(*(partial(work, reader) for reader in people)) == [None] * 6
    cells = class_progress(task)
    assert [(cell["short"], cell["over"]) for cell in cells] == [(0, False)] * 6
    assert all(cell["right"] <= NEEDED for cell in cells)
    # Each drawn reserve is a unit, and no draw was wasted.
    assert task.units.count() + task.reserve.count() == sum(
        sum(draw.parameters["frame"].values()) for draw in task.draws.all()
    )
    assert "on_commit" not in caplog.text
