"""How the program ends: with one sentence on stderr if something went wrong, and with an exit status for scripts.

    0  success                          2  usage error (a missing argument, an unknown option)
    1  refused or failed                3  rows of a file were rejected
    70  bug in the program             130, 143  stopped by Ctrl-C or SIGTERM
                                       141  the reader of the output has exited, for example `head`

When the program ends, the operation has already rolled back its unfinished work, so this module does not need to know
which operation it was.
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

DONE, REFUSED, CALLED_WRONGLY, GONE, FAULT = 0, 1, 2, 128 + signal.SIGPIPE, 70
STOPS = {signal.SIGINT: "Stopped by Ctrl-C", signal.SIGTERM: "Stopped by SIGTERM"}
KEPT = "finished work is kept and the rest was rolled back. Run the command again to continue."
FULL = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "the quota is used up", errno.EFBIG: "the file grew too large"}
DATABASE = "The database cannot be used"
# Database errors that only a bug in the program can cause.
OURS = (DataError, IntegrityError, InternalError, NotSupportedError)


class Stopped(BaseException):
    """Raised if the program receives a signal to stop."""


def run(function: Callable[[], object], *, listens: bool = True) -> int:
    """Call a function, report its error if it raises one, and return the exit status of the program.

    If the command line contains --traceback, also print the traceback of the error.

    listens: whether signals stop the function by raising Stopped; if not, Python's default handlers stay in place,
        which an interactive shell needs
    """
    _open_what_is_closed()
    listening: AbstractContextManager[list[int]] = _listening() if listens else nullcontext([])
    with listening as heard:
        try:
            try:
                function()
            finally:
                # Flush here, because an error at interpreter exit could not be handled.
                sys.stdout.flush()
        except SystemExit:
            raise
        except BaseException as error:  # noqa: BLE001 - nothing may end with a traceback
            sentence, status = _of_signal(heard[0]) if heard else _of_error(error)
            return _end(error, sentence, status)
    return DONE


@contextmanager
def _listening() -> Iterator[list[int]]:
    """Handle signals, and yield a list of the signals that have arrived so far.

    The first signal raises Stopped. The caller needs the list because a library may turn this into a different
    exception. The second signal is ignored, because `timeout` sends each signal twice and the program is already
    cleaning up. Later signals raise Stopped again, because they come from a user who wants to stop a program that is
    still running.
    """
    heard: list[int] = []

    def hear(number: int, frame: object) -> None:
        heard.append(number)
        if len(heard) != 2:
            raise Stopped

    old_handlers = {number: signal.signal(number, hear) for number in STOPS}
    try:
        yield heard
    finally:
        for number, handler in old_handlers.items():
            signal.signal(number, handler)


def _of_signal(number: int) -> tuple[str, int]:
    return f"{STOPS[signal.Signals(number)]}: {KEPT}", 128 + number


def _of_error(error: BaseException) -> tuple[str, int]:
    """Return the message and the exit status for an error. The message is empty if nobody is left to read it."""
    if isinstance(error, CommandError):
        return str(error), error.returncode
    if isinstance(error, CorpusError):
        return str(error), error.status
    if isinstance(error, KeyboardInterrupt):
        return _of_signal(signal.SIGINT)
    if isinstance(error, BrokenPipeError):
        return "", GONE
    if isinstance(error, ImproperlyConfigured):
        return f"Invalid settings: {_line(error)}", REFUSED
    if isinstance(error, DatabaseError | InterfaceError) and not isinstance(error, OURS):
        return _of_database(error), REFUSED
    if isinstance(error, MemoryError):
        return f"Out of memory: {KEPT} Use fewer --processes, or stop other programs first.", REFUSED
    if isinstance(error, OSError) and error.errno is not None:
        return _of_system(error), REFUSED
    description = f"{type(error).__name__}: {_line(error)}" if str(error) else type(error).__name__
    return (
        f"Internal error: {description}. Run the command again with --traceback, and report the output.",
        FAULT,
    )


def _of_database(error: Exception) -> str:
    message = _line(error)
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


def _of_system(error: OSError) -> str:
    where = error.filename2 or error.filename
    if error.errno in FULL:
        what = f"{where} cannot be written" if where else "A file cannot be written"
        return f"{what}: {FULL[error.errno]}; {KEPT}"
    return f"{where or 'A file'} cannot be used: {error.strerror}."


def _line(error: BaseException) -> str:
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
            _give_up(stream.fileno())
    return status


def _open_what_is_closed() -> None:
    """Open /dev/null in place of each standard stream that the caller of the program has closed.

    Python sets a closed standard stream to None. Without this function, the next file that is opened would get the
    descriptor of the stream.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115 - open until exit


def _give_up(descriptor: int) -> None:
    """Discard the buffered output of a stream, because its reader has exited or the disk is full."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
