"""Ends the program with an error message on stderr, if something went wrong, and an exit status for scripts.

    0  success                          2  usage error (a missing argument, an unknown option)
    1  refused or failed                3  rows of a file were rejected
    70  bug in the program             130, 143  stopped by Ctrl-C or SIGTERM
                                       141  the reader of the output has exited, e.g. `head`

By then, the operation has rolled back its unfinished work, so this module needs no knowledge of operations.
"""

import errno
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError
from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, InternalError, NotSupportedError

from corpora.core import CorpusError
from corpora.system import DatabaseAway

DONE, REFUSED, USAGE_ERROR, GONE, FAULT = 0, 1, 2, 128 + signal.SIGPIPE, 70
STOPS = {signal.SIGINT: "Stopped by Ctrl-C", signal.SIGTERM: "Stopped by SIGTERM"}
KEPT = "finished work is kept and the rest was rolled back. Run the command again to continue."
FULL = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "the quota is used up", errno.EFBIG: "the file grew too large"}
DATABASE = "The database cannot be used"
# Database errors that can only be caused by a bug in the program.
PROGRAM_ERRORS = (DataError, IntegrityError, InternalError, NotSupportedError)


class Stopped(BaseException):
    """Raised when the program receives a signal to stop."""


def run(function: Callable[[], object], *, listens: bool = True) -> int:
    """Call a function, report any error it raises, and return the program's exit status.

    If the command line contains --traceback, the error's traceback is printed too.

    listens: whether signals raise Stopped in the function; False keeps Python's default handlers, e.g. for an
        interactive shell
    """
    _reopen_streams()
    handler_context: AbstractContextManager[list[int]] = _handle_signals() if listens else nullcontext([])
    with handler_context as signals:
        try:
            try:
                function()
            finally:
                # Flush here, because errors at interpreter exit can't be handled.
                sys.stdout.flush()
        except SystemExit:
            raise
        except BaseException as error:  # noqa: BLE001 - nothing may end with a traceback
            sentence, status = _signal_outcome(signals[0]) if signals else _error_outcome(error)
            return _end(error, sentence, status)
    return DONE


@contextmanager
def _handle_signals() -> Iterator[list[int]]:
    """Context manager that handles signals, and yields the list of signals received so far.

    The first signal raises Stopped. The caller needs the list because a library may replace Stopped by a different
    exception. The second signal is ignored, because `timeout` sends each signal twice, and the program is already
    cleaning up. Later signals raise Stopped again, because a user is trying to stop a program that is still running.
    """
    signals: list[int] = []

    def handle(number: int, frame: object) -> None:
        signals.append(number)
        if len(signals) != 2:
            raise Stopped

    old_handlers = {number: signal.signal(number, handle) for number in STOPS}
    try:
        yield signals
    finally:
        for number, handler in old_handlers.items():
            signal.signal(number, handler)


def _signal_outcome(number: int) -> tuple[str, int]:
    return f"{STOPS[signal.Signals(number)]}: {KEPT}", 128 + number


def _error_outcome(error: BaseException) -> tuple[str, int]:
    """Return the message and the exit status for an error. The message is empty if the output's reader has exited."""
    if isinstance(error, CommandError):
        return str(error), error.returncode
    if isinstance(error, CorpusError):
        return str(error), error.status
    if isinstance(error, KeyboardInterrupt):
        return _signal_outcome(signal.SIGINT)
    if isinstance(error, BrokenPipeError):
        return "", GONE
    if isinstance(error, ImproperlyConfigured):
        return f"Invalid settings: {_one_line(error)}", REFUSED
    if isinstance(error, DatabaseError | InterfaceError) and not isinstance(error, PROGRAM_ERRORS):
        return _database_message(error), REFUSED
    if isinstance(error, MemoryError):
        return f"Out of memory: {KEPT} Use fewer --processes, or stop other programs first.", REFUSED
    if isinstance(error, OSError) and error.errno is not None:
        return _system_message(error), REFUSED
    description = f"{type(error).__name__}: {_one_line(error)}" if str(error) else type(error).__name__
    return (
        f"Internal error: {description}. Run the command again with --traceback, and report the output.",
        FAULT,
    )


def _database_message(error: Exception) -> str:
    message = _one_line(error)
    if isinstance(error, DatabaseAway):
        return message
    if "database is locked" in message:
        return f"Another program is writing to the database, which stayed locked: {message}. Run the command again."
    if "disk is full" in message or "No space left" in message:
        return f"{DATABASE}: {message}. Free space on its disk and run the command again. No data was partly written."
    if "disk I/O error" in message:
        return (
            f"{DATABASE}: {message}. Its files were moved or replaced while in use, or the disk is broken. Restart "
            "the server (`assay serve`), then run the command again."
        )
    return f"{DATABASE}: {message} (Check DATABASE_URL, and whether `assay serve` has been run.)"


def _system_message(error: OSError) -> str:
    where = error.filename2 or error.filename
    if error.errno in FULL:
        what = f"{where} cannot be written" if where else "A file cannot be written"
        return f"{what}: {FULL[error.errno]}; {KEPT}"
    return f"{where or 'A file'} cannot be used: {error.strerror}."


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _end(error: BaseException, sentence: str, status: int) -> int:
    if "--traceback" in sys.argv:
        traceback.print_exception(error)
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is sys.stderr and sentence:
                print(sentence, file=stream)
            stream.flush()
        except OSError:
            _discard_output(stream.fileno())
    return status


def _reopen_streams() -> None:
    """Open /dev/null in place of each standard stream that was closed before the program started.

    Python sets such a stream to None. Without this, the next file that is opened would get the stream's descriptor.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115 - open until exit


def _discard_output(descriptor: int) -> None:
    """Discard a stream's buffered output, because its reader has exited or the disk is full."""
    with suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, descriptor)
        os.close(null)
