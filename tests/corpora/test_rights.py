"""The program's own files are private to their owner. Exported files have the permissions of the user's umask."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.annotate.corpus import POSTS
from tests.running import DATA, ROOT, begin, environment

pytestmark = pytest.mark.slow


OPEN_TASK = ("open_task", "t", "--corpus", "c", "--size", "20", "--seed", "1")


def run(folder, umask, *words):
    command = begin(folder, *words, umask=umask)
    output, warned = command.communicate()
    assert command.returncode == 0, output + warned


def modes(folder):
    """Return the permissions of files and folders in octal, by path."""
    modes = {path: oct(stat.S_IMODE(path.stat().st_mode)) for path in (folder, *folder.rglob("*"))}
    return ({path: mode for path, mode in modes.items() if is_kind(path)} for is_kind in (Path.is_file, Path.is_dir))


def test_the_data_are_their_owners_alone_and_an_export_is_as_the_shell_has_it(tmp_path):
    posts = tmp_path / "posts.jsonl"
    posts.write_text("".join(POSTS.read_text(encoding="utf-8").splitlines(keepends=True)[:100]), encoding="utf-8")
    for words in (
        ("import_corpus", "c", posts, "--licence", "CC0-1.0", "--source", "test"),
        ("prelabel", "c", "--processes", "2"),
        OPEN_TASK,
    ):
        run(tmp_path, 0, *words)
    for umask, file, directory in ((0, "0o666", "0o777"), (0o027, "0o640", "0o750")):
        run(tmp_path, umask, "export_gold", "t", "--out", f"gold{umask}")
        files, folders = modes(tmp_path / f"gold{umask}")
        assert {"README.md", "gold.unfinished.jsonl", "manifest.json"} <= {path.name for path in files}
        assert set(files.values()) == {file}
        assert set(folders.values()) == {directory}
    files, folders = modes(tmp_path / DATA)
    assert {path.suffix for path in files} >= {".sqlite3", ".parquet", ".json"}
    assert set(files.values()) == {"0o600"}
    assert set(folders.values()) == {"0o700"}


def test_a_server_that_loads_the_application_makes_its_folder_for_its_owner_alone(tmp_path):
    command = [sys.executable, "-c", "import os, deploy.wsgi; print(oct(os.umask(0)))"]
    env = environment(tmp_path / DATA)
    server = subprocess.run(command, cwd=ROOT, env=env, umask=0, capture_output=True, text=True, check=True)
    assert server.stdout.strip() == "0o77"
    files, folders = modes(tmp_path / DATA)
    assert {path.name for path in files} == {"secret_key", "author_key"}
    assert set(files.values()) == {"0o600"}
    assert set(folders.values()) == {"0o700"}
