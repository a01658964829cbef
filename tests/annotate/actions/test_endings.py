"""How the program ends: each end has its sentence and its exit status, and no traceback unless somebody asks for it."""

import errno
import os
import signal
import subprocess
import sys

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError
from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, OperationalError, ProgrammingError

from annotate import exit_status
from annotate.actions.commands import reword
from tests import running

FULL = OSError(errno.ENOSPC, "No space left on device", "/data/gold")


def raising(error):
    def function():
        raise error

    return function


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (CommandError("There is no task."), 1, "There is no task."),
        (CommandError("Too many.", returncode=3), 3, "Too many."),
        (FULL, 1, f"/data/gold cannot be written: the disk is full; {exit_status.KEPT}"),
        (OSError(errno.EDQUOT, "x"), 1, f"A file cannot be written: the quota is used up; {exit_status.KEPT}"),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), 1, "/x cannot be used: Permission denied."),
        (ImproperlyConfigured("ASSAY_DEBUG is\n'x'."), 1, "Invalid settings: ASSAY_DEBUG is 'x'."),
        (OperationalError("database or disk is full"), 1, "Free space on its disk"),
        (OperationalError("could not extend file: No space left on device"), 1, "Free space on its disk"),
        (OperationalError("no such table: x"), 1, "whether `assay serve` has been run"),
        (OperationalError('database "blocked_users" does not exist'), 1, "whether `assay serve` has been run"),
        (OperationalError('could not translate host name "fullerton"'), 1, "whether `assay serve` has been run"),
        (InterfaceError("connection already closed"), 1, "whether `assay serve` has been run"),
        (ProgrammingError('relation "x" does not exist'), 1, "whether `assay serve` has been run"),
        (DatabaseError("file is not a database"), 1, "whether `assay serve` has been run"),
        (IntegrityError("UNIQUE constraint failed"), 70, "Internal error: IntegrityError: UNIQUE"),
        (DataError("value too long"), 70, "Internal error: DataError: value"),
        (OperationalError("database is locked"), 1, "Another program is writing to the database"),
        (MemoryError(), 1, "Out of memory: finished work is kept"),
        (KeyError("x"), 70, "Internal error: KeyError: 'x'."),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 141, ""),
    ],
    ids=repr,
)
def test_each_end_has_its_sentence_and_its_status(error, status, message, capfd):
    assert exit_status.run(raising(error)) == status
    err = capfd.readouterr().err
    assert message in err
    assert "Traceback" not in err
    assert bool(err) == bool(message)


def test_success_is_silent_and_a_fault_shows_its_traceback_only_on_request(capfd, monkeypatch):
    assert exit_status.run(lambda: None) == 0
    assert capfd.readouterr() == ("", "")
    monkeypatch.setattr(sys, "argv", ["assay", "audit", "--traceback"])
    assert exit_status.run(raising(KeyError("x"))) == 70
    assert "Traceback (most recent call last)" in capfd.readouterr().err


@pytest.mark.parametrize(("number", "name"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")])
def test_a_signal_is_told_even_where_a_library_makes_another_error_of_it(number, name, capfd):
    def interrupted():
        try:
            os.kill(os.getpid(), number)
        except exit_status.Stopped as stopped:
            os.kill(os.getpid(), number)  # somebody is impatient
            raise RuntimeError("Query interrupted") from stopped

    before = signal.getsignal(number)
    assert exit_status.run(interrupted) == 128 + number
    assert capfd.readouterr().err == f"Stopped by {name}: {exit_status.KEPT}\n"
    assert signal.getsignal(number) is before


def test_a_signal_that_a_library_swallows_does_not_make_the_program_unstoppable(capfd):
    raised = []

    def swallowing():
        for _ in range(3):
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except exit_status.Stopped:
                raised.append(True)
                if len(raised) == 2:
                    raise

    assert exit_status.run(swallowing) == 130
    assert len(raised) == 2
    assert capfd.readouterr().err == f"Stopped by Ctrl-C: {exit_status.KEPT}\n"


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("the following arguments are required: task, --out", "Required arguments are missing: task, --out."),
        ("argument --k: expected one argument", "--k requires a value."),
        ("argument --a: not allowed with argument --b", "--a and --b cannot be used together."),
        ("something new", "Something new."),
    ],
)
def test_what_argparse_says_is_said_in_our_words(theirs, ours):
    assert reword(theirs) == ours


NONE, UNKNOWN = '{\n  "corpora": []\n}\n', "There is no command 'nosuch'. See `assay --help`.\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("closed", "out", "err"), [("<&- >&-", "", UNKNOWN), ("<&- 2>&-", NONE, ""), ("<&- >&- 2>&-", "", "")]
)
def test_what_the_caller_has_closed_is_no_fault(installed, closed, out, err):
    program = f"{sys.executable} {running.ROOT / 'manage.py'}"
    script = f"{program} corpora --json {closed} && {program} nosuch {closed}"
    environment = running.environment(installed / running.DATA)
    done = subprocess.run(["sh", "-c", script], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == (out, err, 2)
