"""The tables of a new installation, and what becomes of them where they are made by a process that is killed."""

import signal
import subprocess
import sys

from tests.running import ROOT, assay, environment

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
from annotate.program import main
main()
"""


def test_tables_that_a_killed_command_has_half_made_are_finished_by_the_next(tmp_path):
    code = MAKER.format(time=9)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment(tmp_path / "data"), capture_output=True, text=True
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    status = assay(tmp_path, "status")
    assert status.returncode == 0, status.stderr
    assert "Nobody is there to annotate" in status.stdout
