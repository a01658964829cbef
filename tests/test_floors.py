"""The layers of the code: imports point down only, and there are no circles inside a package."""

import ast
from functools import cache
from graphlib import TopologicalSorter

import pytest

from tests.running import ROOT

# From the ground up. Packages on one line are independent of each other.
FLOORS = (
    ("corpora", "annotate.core", "annotate.job_watcher"),
    ("annotate.kinds", "annotate.exit_status"),
    ("annotate.models", "annotate.reports", "annotate.exchange"),
    ("annotate.quality", "annotate.manual"),
    ("annotate.work",),
    ("annotate.controls",),
    ("annotate.goldsets",),
    ("annotate.figures",),
    ("annotate.evaluation",),
    ("annotate.actions",),
    ("annotate.notebook", "annotate.pages"),
    ("annotate.manager_pages",),
    ("annotate.api",),
    ("annotate.management", "annotate.urls"),
)
# Folders in which Django looks for things of other packages.
HANDLES = {"annotate.admin", "annotate.apps", "annotate.migrations", "annotate.templatetags"}


def modules():
    files = [path for room in ("annotate", "corpora") for path in (ROOT / room).rglob("*.py")]
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in files}


MODULES = modules()


@cache
def imported(name):
    """Return every module that a module imports, anywhere in it."""
    names = []
    for node in ast.walk(ast.parse(MODULES[name].read_bytes())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.module, f"{name} has an import relative to it, which tests do not follow"
            # `from annotate.work import queue` imports the module, not a name of the package.
            names += [
                full if (full := f"{node.module}.{alias.name}") in MODULES else node.module for alias in node.names
            ]
    return names


def room_of(module):
    rooms = [room for floor in FLOORS for room in floor if f"{module}.".startswith(f"{room}.")]
    return max(rooms, key=len, default=None)


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
        if (room := room_of(module)) and (other := room_of(name)) and room != other and FLOOR[other] >= FLOOR[room]
    ]
    assert upwards == []


@pytest.mark.parametrize("room", [room for floor in FLOORS for room in floor])
def test_inside_a_room_no_module_needs_itself(room):
    imports = {name: set(imported(name)) for name in MODULES if room_of(name) == room}
    # A package's own __init__ may import its modules.
    graph = {name: needs & imports.keys() - {room} for name, needs in imports.items() if name != room}
    TopologicalSorter(graph).prepare()


@pytest.mark.parametrize(
    ("room", "others"),
    [
        ("corpora", "benchmarks deploy tests"),
        ("annotate", "benchmarks deploy tests"),
        ("corpora.core", "django rest_framework"),
        ("annotate.core", "django rest_framework"),
        ("annotate.kinds.forms", "django rest_framework"),
    ],
)
def test_a_room_does_not_import_what_is_outside_of_its_floor(room, others):
    inside = [module for module in MODULES if f"{module}.".startswith(f"{room}.")]
    assert inside
    imports = [f"{module} imports {name}" for module in inside for name in imported(module)]
    assert [line for line in imports if line.split()[-1].partition(".")[0] in others.split()] == []


@pytest.mark.parametrize(("engine", "owner"), [("duckdb", "corpora.engines"), ("pyspark", "corpora.engines.spark")])
def test_nothing_but_the_engine_itself_imports_it(engine, owner):
    assert [module for module in MODULES if any(name.split(".")[0] == engine for name in imported(module))] == [owner]


@pytest.mark.parametrize("room", ["corpora.core", "annotate.core"])
def test_core_imports_of_the_rooms_only_core(room):
    """Otherwise, Django would be imported through a neighbour."""
    names = {name for module in MODULES if f"{module}.".startswith(f"{room}.") for name in imported(module)}
    ours = {name for name in names if name.partition(".")[0] in ("annotate", "corpora")}
    assert {name for name in ours if name.split(".")[1:2] != ["core"]} == set()
