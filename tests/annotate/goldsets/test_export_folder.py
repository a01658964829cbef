"""A set's folder: what an export replaces and leaves, which moment it shows, and that it appears as a whole."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from itertools import cycle

import pytest
from django.core.management import CommandError
from django.db import connection

from annotate.actions.registry import call_command
from annotate.core import stages
from annotate.goldsets import exporter, set_folder, unit_rows
from annotate.goldsets.exporter import ExportError, export
from annotate.kinds import Answer
from annotate.models import Judgment, Task
from annotate.work.judgments import judge
from annotate.work.queue import take
from corpora.storage.layout import write_atomically
from tests.annotate.conftest import AGREED, DISPUTED
from tests.annotate.corpus import SMALL
from tests.annotate.goldsets.acts import finish, no_file_longer_than, with_manifest
from tests.annotate.goldsets.set_contents import files, fill
from tests.running import ROOT
from tests.together import HANGS


def test_an_export_does_not_sweep_away_what_people_have_put_beside_the_earlier_one(task, people, out):
    export(task, out)
    (out / "notes").mkdir()
    (out / "analysis.py").write_text("mine")
    before = {path.name for path in out.iterdir()}
    with pytest.raises(ExportError, match=r"contains files that are not part of the export: analysis\.py, notes\."):
        export(task, out)
    assert {path.name for path in out.iterdir()} == before
    assert (out / "analysis.py").read_text() == "mine"


def test_an_export_replaces_an_earlier_one_but_a_finished_set_is_not_replaced_by_an_unfinished_one(task, people, out):
    export(task, out)
    assert "gold.unfinished.parquet" in files(out)
    finish(task, people, cycle([Answer("en")]))
    export(task, out)
    before = files(out)
    assert "gold.parquet" in before
    assert not [name for name in before if "unfinished" in name]
    assert stat.S_IMODE(out.stat().st_mode) == 0o755
    task.units.filter(pk=task.units.first().pk).update(stage=stages.QUEUED, label="")
    with pytest.raises(
        ExportError, match=r"gold contains the finished set of .*, but some items of the task are open again"
    ):
        export(task, out)
    assert files(out) == before
    assert [path.name for path in out.parent.iterdir()] == ["gold"]


def test_an_empty_folder_is_taken_and_a_link_to_a_folder_stays_one(task, tmp_path):
    empty, link = tmp_path / "empty", tmp_path / "link"
    empty.mkdir()
    link.symlink_to(empty)
    export(task, link)
    assert link.is_symlink()
    assert "manifest.json" in files(empty)


def test_a_folder_with_something_else_in_it_is_refused_and_left_alone(task, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.txt").write_text("three years of work")
    for content in (None, "{}", "[]", "no json", '{"task": {"name": "other"}}', '{"task": "gold"}'):
        if content is not None:
            (folder / "manifest.json").write_text(content)
        before = files(folder)
        with pytest.raises(CommandError, match="is not empty and does not contain the export of gold"):
            call_command("export_gold", "gold", out=folder)
        assert files(folder) == before, content
        assert not [name for name in os.listdir(tmp_path) if name.startswith(".mine")]


def test_a_file_as_out_is_refused(task, tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(CommandError, match="Set --out to a folder"):
        call_command("export_gold", "gold", out=file)
    with pytest.raises(CommandError, match=r"cannot be written: .*\. Nothing was changed\."):
        call_command("export_gold", "gold", out=file / "gold")
    assert file.read_text() == "x"


def test_an_unknown_task_or_a_lost_corpus_is_one_sentence(task, data_dir, out):
    with pytest.raises(CommandError, match="There is no task 'none'; available: gold"):
        call_command("export_gold", "none", out=out)
    shutil.rmtree(data_dir / "corpora" / SMALL)
    with pytest.raises(CommandError, match="The corpus 'small' does not exist"):
        call_command("export_gold", "gold", out=out)
    assert not out.exists()
    assert list(out.parent.iterdir()) == []


# --- of one moment


def in_another_connection(operation):
    """Run the operation in a thread with its own connection; return whether it finished."""
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
    real, worked = exporter.batches, []

    def work_on():
        judge(ann, take(ann, task).pk, Answer("de"))

    def slow(*arguments, **options):
        worked.append(in_another_connection(work_on))
        for number, row in enumerate(real(*arguments, **options)):
            if number == 0:
                worked.append(in_another_connection(work_on))
            yield row

    monkeypatch.setattr(unit_rows, "CHUNK", 1)  # otherwise the first read would return everything
    monkeypatch.setattr(exporter, "batches", slow)
    export(task, out)
    assert worked == [True, True]
    assert Judgment.objects.count() == 3
    assert files(out) == before
    monkeypatch.setattr(exporter, "batches", real)
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
    with pytest.raises(InternalError, match="read-only"), exporter.snapshot():
        Task.objects.filter(pk=task.pk).update(title="x")


# Kills itself just before the folder is moved for the {time}th time, or earlier.
WRITER = """
import os, signal, sys
from pathlib import Path
from annotate.goldsets import set_folder
from tests.annotate.goldsets.set_contents import fill

moves = []

def watch(event, args):
    if event == "os.rename":
        moves.append(event)
        if len(moves) == {time}:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(watch)
with set_folder.replacing(Path({out!r}), "evaluation", "mine") as folder:
    fill(folder, {text!r})
    if not {time}:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def write(out, text):
    with set_folder.replacing(out, "evaluation", "mine") as folder:
        fill(folder, text)


def killed(out, text, *, time):
    code = WRITER.format(out=str(out), text=text, time=time)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


def beside(out):
    return [path.name for path in out.parent.iterdir()]


@pytest.mark.parametrize("time", [0, 1, 2])
def test_what_a_killed_command_has_left_is_put_away_by_the_next(tmp_path, time):
    out = tmp_path / "report"
    write(out, "the first")
    killed(out, "the second", time=time)
    assert len(beside(out)) > 1 or not out.exists()
    if time == 2:
        # The folder was already moved aside, and moves back if the next command fails.
        assert not out.exists()
        with pytest.raises(ZeroDivisionError), set_folder.replacing(out, "evaluation", "mine"):
            raise ZeroDivisionError
        assert ((out / "report.md").read_text(), beside(out)) == ("the first", ["report"])
    write(out, "the third")
    assert beside(out) == ["report"]
    assert (out / "report.md").read_text() == "the third"


def test_what_another_command_is_writing_to_the_folder_and_folders_that_are_called_alike_are_left_alone(tmp_path):
    out = tmp_path / "report"
    with set_folder.replacing(out, "evaluation", "mine") as folder:
        write(out, "the faster")
        fill(folder, "the slower")
    assert (out / "report.md").read_text() == "the slower"
    assert beside(out) == ["report"]
    other = tmp_path / ".report.old"
    other.mkdir()
    write(tmp_path / "report", "the first")
    assert other.exists()


def test_a_file_that_cannot_be_written_to_its_end_stays_as_it_was(tmp_path):
    path = tmp_path / "page.html"
    write_atomically(path, "the first")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "cut off here: \ud800")
    assert path.read_text() == "the first"
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
    write_atomically(path, "the second")
    assert path.read_text() == "the second"
