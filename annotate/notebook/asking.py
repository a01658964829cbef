"""How a notebook asks: outside its event loop, and with refusals of every kind as one sentence."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

import pyarrow as pa
from django.db import Error as DatabaseError

from annotate.actions.action import ActionError
from annotate.core.option import OptionError
from annotate.core.refusals import Refusal
from annotate.endings import OURS
from annotate.evaluation.given import EvaluationError
from annotate.goldsets.manifest import GoldSetError
from annotate.notebook.installation import AssayError, check_installed
from corpora.core import CorpusError
from corpora.core.records import RecordError
from corpora.system import DatabaseAway

P, R = ParamSpec("P"), TypeVar("R")
# Those whose text is a sentence for people.
SAID = (ActionError, OptionError, Refusal, EvaluationError, GoldSetError, CorpusError, RecordError, DatabaseAway)

# Jupyter runs every cell inside an event loop, and Django lets nobody ask the database in a thread that has one, since
# a query would hold all else up (SynchronousOnlyOperation). Its way out, as in asgiref's sync_to_async, is another
# thread; always the same one, since a connection belongs to a thread. DJANGO_ALLOW_ASYNC_UNSAFE, which switches the
# guard off, would be for the whole process, whatever else runs there.
_APART = ThreadPoolExecutor(max_workers=1, thread_name_prefix="assay")


def apart(call: Callable[[], R]) -> Future[R] | None:
    """The call on its way in the thread for it; None where no event loop runs here, so that it may be made here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return None
    return _APART.submit(call)


@contextmanager
def told(what: str = "") -> Iterator[None]:
    """Every refusal as an AssayError. what: is being read, for errors of files that do not name themselves."""
    try:
        yield
    except SAID as error:
        # The sentence says it all; a notebook would show what lies below in a hundred lines.
        raise AssayError(str(error)) from None
    except DatabaseError as error:
        if isinstance(error, OURS):
            raise
        said = " ".join(str(error).split()).rstrip(".")
        raise AssayError(
            f"The database cannot be used: {said}. See DATABASE_URL; and has `assay serve` been run?"
        ) from error
    except (OSError, pa.ArrowException) as error:
        said = str(error).split("\n")[0].rstrip(".")
        raise AssayError(f"{what or 'A file'} cannot be read: {said}.") from error


def database(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function that asks the database one that a notebook can call."""

    @wraps(function)
    def asked(*args: P.args, **kwargs: P.kwargs) -> R:
        check_installed()
        with told():
            waiting = apart(lambda: function(*args, **kwargs))
            return function(*args, **kwargs) if waiting is None else waiting.result()

    return asked
