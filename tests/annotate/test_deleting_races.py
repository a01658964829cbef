"""A task that is deleted while somebody is about to take a unit of it: one of the two comes too late."""

import threading

import pytest
from django.db import transaction

from annotate.core.refusals import Refusal, WrongStage
from annotate.models import Lease, Task, Unit
from annotate.work.closure import delete_task
from annotate.work.queue import take
from tests.annotate.conftest import DISPUTED
from tests.annotate.test_races import HANGS, at_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]
ROUNDS = 12


def test_either_the_task_goes_or_the_unit_is_handed_out(make_task, person):
    ann = person("ann", "de")
    for number in range(ROUNDS):
        task = make_task([DISPUTED] * 3, name=f"task-{number}")
        deletions = [lambda task=task: delete_task(Task.objects.get(pk=task.pk)), lambda task=task: take(ann, task)]
        gone, lease = at_once(*(deletions if number % 2 else deletions[::-1]))[:: 1 if number % 2 else -1]
        if Task.objects.filter(pk=task.pk).exists():
            assert isinstance(gone, WrongStage)
            assert task.units.count() == 3
        else:
            assert gone["units"] == 3
            assert lease is None or isinstance(lease, Refusal | Task.DoesNotExist), lease
            assert not Unit.objects.filter(task=task.pk).exists()
    assert Lease.objects.count() == Task.objects.count()


@pytest.mark.postgres_only
def test_whoever_is_at_work_is_not_waited_for(make_task):
    task = make_task([DISPUTED])
    held, done = threading.Event(), threading.Event()

    def work():
        with transaction.atomic():
            Unit.objects.select_for_update(no_key=True).get(task=task)
            held.set()
            assert done.wait(HANGS)

    def delete():
        assert held.wait(HANGS)
        try:
            return delete_task(Task.objects.get(pk=task.pk))
        finally:
            done.set()

    _, refused = at_once(work, delete)
    assert isinstance(refused, WrongStage)
    assert str(refused) == "Somebody is at work in task just now. Close it with `assay close task`, and try again."
    assert Unit.objects.filter(task=task).exists()
