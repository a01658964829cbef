"""A profile of the time of some work by module, and of its memory.

The thread is sampled every few milliseconds. The time counts for the current module of the project. Time in a library
or driver counts for the module that called it.
"""

import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from benchmarks.place import ROOT
from benchmarks.tables import show

EVERY = 0.005  # seconds
OURS = [ROOT / name for name in ("annotate", "corpora")]
SHOWN = 9


@contextmanager
def sampled() -> Iterator[Counter[str]]:
    """Yield a counter that holds the seconds of this thread by module after the work."""
    by_module, over, thread = Counter[str](), threading.Event(), threading.get_ident()

    def look() -> None:
        before = time.perf_counter()
        while not over.wait(EVERY):
            # A call that holds the interpreter's lock is sampled once, at its end, with all its time.
            now = time.perf_counter()
            by_module[_module(sys._current_frames()[thread])] += now - before
            before = now

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield by_module
    finally:
        over.set()
        looking.join()


def _module(frame: FrameType | None) -> str:
    while frame:
        file = Path(frame.f_code.co_filename)
        if any(file.is_relative_to(folder) for folder in OURS):
            return str(file.relative_to(ROOT).with_suffix("")).replace("/", ".")
        frame = frame.f_back
    return "the rest"


def most_memory() -> float:
    """Return the peak memory of this process in MB. Unlike ru_maxrss, it does not start with that of the parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024 / 1e6


def show_profile(title: str, by_module: dict[str, float]) -> None:
    """Print the modules that took the most time."""
    whole = sum(by_module.values())
    most = sorted(by_module.items(), key=lambda pair: -pair[1])
    rest = sum(seconds for _, seconds in most[SHOWN:])
    rows = [*most[:SHOWN], *([("all other modules", rest)] if rest else [])]
    show(title, ["", "share"], [[name, f"{seconds / whole:.1%}"] for name, seconds in rows])
