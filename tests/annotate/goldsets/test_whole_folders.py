"""Folders and files of results that take their place as a whole, whatever ends the command that writes them."""

import json
import signal
import subprocess
import sys

import pytest

from annotate.goldsets import set_folder
from corpora.storage.layout import digest_of, write_whole
from tests.running import ROOT

# Kills itself when the folder is about to be moved for the {time}th time, or before it is.
WRITER = """
import os, signal, sys
from pathlib import Path
from annotate.goldsets import set_folder
from tests.annotate.goldsets.test_whole_folders import fill

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


def fill(folder, text):
    (folder / "report.md").write_text(text)
    manifest = {"evaluated": {"name": "mine"}, "files": {"report.md": digest_of(folder / "report.md")}}
    (folder / "manifest.json").write_text(json.dumps(manifest))


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
        # The folder was put aside already, and goes back where the next command fails.
        assert not out.exists()
        with pytest.raises(ZeroDivisionError), set_folder.replacing(out, "evaluation", "mine"):
            raise ZeroDivisionError
        assert ((out / "report.md").read_text(), beside(out)) == ("the first", ["report"])
    write(out, "the third")
    assert beside(out) == ["report"]
    assert (out / "report.md").read_text() == "the third"


def test_what_another_command_is_writing_to_the_same_folder_stays(tmp_path):
    out = tmp_path / "report"
    with set_folder.replacing(out, "evaluation", "mine") as folder:
        write(out, "the faster")
        fill(folder, "the slower")
    assert (out / "report.md").read_text() == "the slower"
    assert beside(out) == ["report"]


def test_folders_that_are_called_alike_are_left_alone(tmp_path):
    other = tmp_path / ".report.old"
    other.mkdir()
    write(tmp_path / "report", "the first")
    assert other.exists()


def test_a_file_that_cannot_be_written_to_its_end_stays_as_it_was(tmp_path):
    path = tmp_path / "page.html"
    write_whole(path, "the first")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "cut off here: \ud800")
    assert path.read_text() == "the first"
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]
    write_whole(path, "the second")
    assert path.read_text() == "the second"
