"""The floors of the house: an import goes down only, and inside a room in no circle."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# From the ground up; what stands on one line stands side by side, and does not know of one another.
FLOORS = (
    ("corpora", "annotate.core", "annotate.job_watcher"),
    ("annotate.kinds", "annotate.exit_status"),
    ("annotate.models", "annotate.reports"),
    ("annotate.quality", "annotate.manual"),
    ("annotate.work",),
    ("annotate.controls",),
    ("annotate.goldsets",),
    ("annotate.figures",),
    ("annotate.evaluation",),
    ("annotate.actions",),
    ("annotate.notebook", "annotate.pages"),
    ("annotate.api", "annotate.manager_pages"),
    ("annotate.management", "annotate.urls"),
)
# Where Django looks for what stands elsewhere.
HANDLES = {"annotate.admin", "annotate.apps", "annotate.migrations", "annotate.templatetags"}


def modules():
    files = [path for room in ("annotate", "corpora") for path in (ROOT / room).rglob("*.py")]
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in files}


MODULES = modules()


def imported(name):
    for node in ast.walk(ast.parse(MODULES[name].read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from annotate.work import queue` imports the module, not a name of the room.
            yield from (
                full if (full := f"{node.module}.{alias.name}") in MODULES else node.module for alias in node.names
            )


def room_of(module):
    found = [room for floor in FLOORS for room in floor if f"{module}.".startswith(f"{room}.")]
    return max(found, key=len, default=None)


FLOOR = {room: number for number, floor in enumerate(FLOORS) for room in floor}


def test_every_module_stands_in_a_room():
    assert [name for name in MODULES if room_of(name) is None and not any(name.startswith(h) for h in HANDLES)] == [
        "annotate"
    ]


def test_an_import_goes_down_only():
    upwards = [
        f"{module} imports {name}"
        for module in MODULES
        for name in imported(module)
        if (own := room_of(module)) and (other := room_of(name)) and own != other and FLOOR[other] >= FLOOR[own]
    ]
    assert upwards == []


@pytest.mark.parametrize("room", [room for floor in FLOORS for room in floor])
def test_inside_a_room_no_module_needs_itself(room):
    own = {name: set(imported(name)) for name in MODULES if room_of(name) == room}
    # A room's own __init__ may name what is in it.
    graph = {name: needs & own.keys() - {room} for name, needs in own.items() if name != room}
    TopologicalSorter(graph).prepare()
