"""Exports with damaged values: each is imported or refused with a sentence, and nothing is half-written."""

import copy
import json
import random

import pytest
from django.core.management.base import CommandError

from annotate.actions.commands import call_command
from annotate.models import Task
from corpora.storage.layout import read_manifest
from tests.annotate.exchange.test_import_project import EXPORTS

STRANGE = (None, "", 0, -1, 3.5, True, [], {}, [None], [[1]], {"a": 1}, "x" * 300, "é\u202e", [0, 1, 2], ["a", "b"])


def objects_of(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if path.suffix == ".json" else list(map(json.loads, text.splitlines()))


def places(value, at=()):
    """Yield the path to each value inside a JSON value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield (*at, key)
        yield from places(inner, (*at, key))


def damaged(objects, chance):
    objects = copy.deepcopy(objects)
    *path, last = chance.choice([place for place in places(objects) if len(place) > 1])
    holder = objects
    for key in path:
        holder = holder[key]
    if chance.random() < 0.3 and isinstance(holder, dict):
        del holder[last]
    else:
        holder[last] = chance.choice(STRANGE)
    return objects


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize(
    "export", sorted(path.name for path in EXPORTS.glob("*.json*") if not path.name.startswith("argilla_settings"))
)
def test_damaged_exports_are_imported_or_refused(export, data_dir, tmp_path):
    objects, chance = objects_of(EXPORTS / export), random.Random(export)
    for number in range(25):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(damaged(objects, chance)), encoding="utf-8")
        name = f"fuzz{number}"
        refused = ""
        try:
            call_command("import", name, path, licence="CC0-1.0", language="en", max_rejects="100%", verbosity=0)
        except CommandError as error:
            refused = str(error)
        is_there = not refused
        assert (Task.objects.filter(name=name).exists(), read_manifest(name) is not None) == (is_there, is_there)
