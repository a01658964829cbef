"""The tables of a new installation, and what becomes of them where they are made by a process that is killed."""

import signal
import subprocess
import sys

import pytest

from tests.running import DATA, ROOT, assay, environment

pytestmark = pytest.mark.slow


# Kills itself before the {time}th migration.
MAKER = """
import os, signal, sys
from django.db.migrations.executor import MigrationExecutor

apply, times = MigrationExecutor.apply_migration, []

def apply_or_die(self, *args, **options):
    times.append(1)
    if len(times) == {time}:
        os.kill(os.getpid(), signal.SIGKILL)
    return apply(self, *args, **options)

MigrationExecutor.apply_migration = apply_or_die
sys.argv = ["assay", "status"]
from annotate.actions.registry import main
main()
"""


def killed(folder, time, **env):
    code = MAKER.format(time=time)
    variables = environment(folder / DATA) | env
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=variables, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


def test_tables_that_a_killed_command_has_half_made_are_finished_by_the_next(tmp_path):
    killed(tmp_path, 9)
    status = assay(tmp_path, "status")
    assert status.returncode == 0, status.stderr
    assert "Nobody is there to annotate" in status.stdout


def test_of_an_empty_database_beside_corpora_it_is_not_said_that_nothing_was_there(tmp_path):
    corpus = tmp_path / DATA / "corpora" / "posts"
    corpus.mkdir(parents=True)
    (corpus / "manifest.json").touch()
    (tmp_path / DATA / "assay.sqlite3").touch()
    said = assay(tmp_path, "tasks").stderr
    assert said == f"The database was empty, and has no task: what {tmp_path / DATA} holds stays as it is.\n"


def test_a_first_command_whose_keys_come_from_the_environment_makes_the_data_folder(tmp_path):
    killed(tmp_path, 1, ASSAY_SECRET_KEY="x" * 50, ASSAY_AUTHOR_KEY="y" * 50)
    assert (tmp_path / DATA / "assay.sqlite3").exists()
