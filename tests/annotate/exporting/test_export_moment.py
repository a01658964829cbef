"""A set is of one moment, whatever people do meanwhile, and an export leaves the connection as it was."""

import threading

import pytest
from django.db import connection

from annotate.goldsets import exporter
from annotate.goldsets.exporter import ExportError, export
from annotate.kinds import Answer
from annotate.models import Judgment, Task
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate.conftest import AGREED, DISPUTED
from tests.annotate.exporting.acts import no_file_longer_than, with_manifest
from tests.annotate.exporting.told import files
from tests.together import HANGS

pytestmark = pytest.mark.both_databases


def in_another_connection(operation):
    """Runs operation in a thread with its own connection; returns whether it was done."""
    failed = []

    def run():
        try:
            operation()
        except BaseException as error:
            failed.append(error)
            raise
        finally:
            connection.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(HANGS)
    return not thread.is_alive() and not failed


@pytest.mark.django_db(transaction=True)
def test_an_export_is_of_one_moment_while_people_go_on_working(make_task, person, out, monkeypatch):
    task = make_task([DISPUTED, AGREED, DISPUTED, DISPUTED])
    with_manifest()
    ann = person("ann", "de")
    judge(ann, take(ann, task).pk, Answer("de"))
    export(task, out)
    before = files(out)
    real, worked = exporter.rows, []

    def work_on():
        judge(ann, take(ann, task).pk, Answer("de"))

    def slow(*arguments, **options):
        worked.append(in_another_connection(work_on))
        for number, row in enumerate(real(*arguments, **options)):
            if number == 0:
                worked.append(in_another_connection(work_on))
            yield row

    monkeypatch.setattr(exporter, "CHUNK", 1)  # else the first read would have it all
    monkeypatch.setattr(exporter, "rows", slow)
    export(task, out)
    assert worked == [True, True]
    assert Judgment.objects.count() == 3
    assert files(out) == before
    monkeypatch.setattr(exporter, "rows", real)
    assert export(task, out)["counts"]["labelled"] == 4


@pytest.mark.django_db(transaction=True)
def test_after_an_export_that_failed_the_connection_works_as_before(make_task, person, out):
    task = make_task([DISPUTED])
    with_manifest()
    with pytest.raises(ExportError), no_file_longer_than(0):
        export(task, out)
    assert not connection.in_atomic_block
    ann = person("ann", "de")
    judge(ann, take(ann, task).pk, Answer("de"))
    assert export(Task.objects.get(), out)["finished"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.postgres_only
def test_an_export_cannot_write(make_task):
    from django.db import InternalError

    task = make_task([AGREED])
    with pytest.raises(InternalError, match="read-only"), exporter.one_moment():
        Task.objects.filter(pk=task.pk).update(title="x")
