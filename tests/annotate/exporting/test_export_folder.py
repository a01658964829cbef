"""The folder of a set: what is replaced, and what is left alone."""

import os
import shutil
import stat
from itertools import cycle

import pytest
from django.core.management import CommandError

from annotate.actions.commands import call_command
from annotate.core import stages
from annotate.goldsets.exporter import ExportError, export
from annotate.kinds import Answer
from tests.annotate.corpus import SMALL
from tests.annotate.exporting.acts import finish
from tests.annotate.exporting.told import files

pytestmark = pytest.mark.both_databases


def test_an_export_does_not_sweep_away_what_people_have_put_beside_the_earlier_one(task, people, out):
    export(task, out)
    (out / "notes").mkdir()
    (out / "analysis.py").write_text("mine")
    before = {path.name for path in out.iterdir()}
    with pytest.raises(ExportError, match=r"holds files that are not part of the export: analysis\.py, notes\."):
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
    with pytest.raises(ExportError, match=r"gold holds the finished set of .*, and by now units of the task wait"):
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
        with pytest.raises(CommandError, match="holds something other than an export of gold; choose another folder"):
            call_command("export_gold", "gold", out=folder)
        assert files(folder) == before, content
        assert not [name for name in os.listdir(tmp_path) if name.startswith(".mine")]


def test_a_file_as_out_is_refused(task, tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(CommandError, match="is a file; --out must name a folder"):
        call_command("export_gold", "gold", out=file)
    with pytest.raises(CommandError, match=r"cannot be written: .*\. Nothing was changed\."):
        call_command("export_gold", "gold", out=file / "gold")
    assert file.read_text() == "x"


def test_an_unknown_task_or_a_lost_corpus_is_one_sentence(task, data_dir, out):
    with pytest.raises(CommandError, match="There is no task 'none'; available: gold"):
        call_command("export_gold", "none", out=out)
    shutil.rmtree(data_dir / "corpora" / SMALL)
    with pytest.raises(CommandError, match="There is no corpus 'small'"):
        call_command("export_gold", "gold", out=out)
    assert not out.exists()
    assert list(out.parent.iterdir()) == []
