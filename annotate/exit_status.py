"""How the program ends, whatever happens in it: one sentence on stderr, and a status that a script can act on.

    0  done                             2  called wrongly (a missing argument, an unknown option)
    1  refused, or could not be done    3  rows of a file were rejected, or more than may be
    70  a fault of the program          130, 143  stopped by Ctrl-C, or by SIGTERM
                                        141  whoever read the output has gone, as `head` does

Whatever was running has put away by then what it had not finished: each operation is whole or not at all. Nothing here
knows which operation it was.
"""

import errno
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError
from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, InternalError, NotSupportedError

from corpora.system import DatabaseAway

DONE, REFUSED, CALLED_WRONGLY, GONE, FAULT = 0, 1, 2, 128 + signal.SIGPIPE, 70
STOPS = {signal.SIGINT: "Stopped by Ctrl-C", signal.SIGTERM: "Stopped by SIGTERM"}
KEPT = "what was finished is kept, and the rest is undone; run the command again to go on."
FULL = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "the quota is used up", errno.EFBIG: "the file grew too large"}
DATABASE = "The database cannot be used"
# Of errors of the database, those that nothing but a fault of the program brings about.
OURS = (DataError, IntegrityError, InternalError, NotSupportedError)


class Stopped(BaseException):
    """Somebody wants the program to end."""


def run(function: Callable[[], object], *, listens: bool = True) -> int:
    """Do it, and return the status to exit with. Whoever gives --traceback sees where a fault came from as well.

    listens: whether signals stop it by what is raised here; else they do what Python has them do, as a shell expects.
    """
    _open_what_is_closed()
    with _listening() if listens else nullcontext([]) as heard:
        try:
            try:
                function()
            finally:
                # What waits to be written would else fail when the interpreter ends, beyond our reach.
                sys.stdout.flush()
        except SystemExit:
            raise
        except BaseException as error:  # noqa: BLE001 - nothing may end with a traceback
            sentence, status = _of_signal(heard[0]) if heard else _of_error(error)
            return _end(error, sentence, status)
    return DONE


@contextmanager
def _listening() -> Iterator[list[int]]:
    """The signals that have come. The first stops what is running; what it raises may come out as another error, from
    inside a library that was at work, so it is remembered. The second changes nothing, since `timeout` sends each one
    twice, and the program is putting things away. More than that come from somebody who sees it going on."""
    heard: list[int] = []

    def hear(number: int, frame: object) -> None:
        heard.append(number)
        if len(heard) != 2:
            raise Stopped

    before = {number: signal.signal(number, hear) for number in STOPS}
    try:
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _of_signal(number: int) -> tuple[str, int]:
    return f"{STOPS[signal.Signals(number)]}: {KEPT}", 128 + number


def _of_error(error: BaseException) -> tuple[str, int]:
    """The sentence and the status; where there is nobody to read a sentence, it is empty."""
    if isinstance(error, CommandError):
        return str(error), error.returncode
    if isinstance(error, KeyboardInterrupt):
        return _of_signal(signal.SIGINT)
    if isinstance(error, BrokenPipeError):
        return "", GONE
    if isinstance(error, ImproperlyConfigured):
        return f"Wrong settings: {_line(error)}", REFUSED
    if isinstance(error, DatabaseError | InterfaceError) and not isinstance(error, OURS):
        return _of_database(error), REFUSED
    if isinstance(error, MemoryError):
        return f"Memory ran out: {KEPT} Have fewer --processes, or end other programs first.", REFUSED
    if isinstance(error, OSError) and error.errno is not None:
        return _of_system(error), REFUSED
    told = f"{type(error).__name__}: {_line(error)}" if str(error) else type(error).__name__
    return f"A fault of the program: {told}. Run the command again with --traceback, and report what it says.", FAULT


def _of_database(error: Exception) -> str:
    told = _line(error)
    if isinstance(error, DatabaseAway):
        return told
    if "database is locked" in told:
        return f"The database is being written to by another program, and stayed locked: {told}. Run the command again."
    if "disk is full" in told or "No space left" in told:
        return f"{DATABASE}: {told}. Free space on its disk and run the command again; nothing is half-written."
    if "disk I/O error" in told:
        return (
            f"{DATABASE}: {told}. Its files were moved or replaced while it was in use, or the disk is broken: restart "
            "the server (`assay serve`), then run the command again."
        )
    return f"{DATABASE}: {told} (See DATABASE_URL; and has `assay serve` been run?)"


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
    """Let what nobody wants to hear go nowhere: a stream that the caller has closed is None, and the next file that is
    opened would have its number.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115 - until the end


def _give_up(descriptor: int) -> None:
    """Let what is still to be written go nowhere: nobody reads it, or there is no room for it."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
