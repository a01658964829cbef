"""The backup instructions of the manual restore each table and each file in an empty installation."""

import json
import os
import shlex
import subprocess

import pytest
from django.db import connection

from benchmarks.place import Place, new_place
from tests.docs.markdown import DOCS
from tests.docs.newcomer import steps
from tests.postgres import find_binaries

# It runs on both databases, like a test of either, and touches neither: its own are made beside it.
pytestmark = [pytest.mark.django_db, pytest.mark.both_databases, pytest.mark.slow]

FIXTURES = DOCS.parents[1] / "fixtures"


def commands_under(heading: str) -> list[str]:
    """Return the commands of the page between this heading and the next one."""
    commands, under = [], ""
    for what, text in steps(DOCS / "how-to" / "server.md"):
        if what == "heading":
            under = text
        elif what.startswith("sh") and under == heading:
            commands.append(text)
    return commands


def shell(place: Place, folder, commands: str) -> None:
    binaries = find_binaries()
    path = os.pathsep.join([*([str(binaries)] if binaries else []), os.environ["PATH"]])
    env = place.env | {"PATH": path}
    done = subprocess.run(["sh", "-ec", commands], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def held(place: Place):
    """Return digests of the tables and of the files."""
    place.env |= {"DJANGO_SETTINGS_MODULE": "deploy.settings"}
    return json.loads(place.run("-m", "tests.digests"))


def test_a_backup_that_is_restored_into_an_empty_installation_gives_the_same_tables_and_files(tmp_path, request):
    migrated = None if connection.vendor == "postgresql" else request.getfixturevalue("migrated")
    with new_place(migrated=migrated) as place, new_place() as other:
        place.manage("django", "migrate", "--verbosity=0")
        records = FIXTURES / "records" / "qa_match.en.jsonl"
        place.manage("import_corpus", "qa", records, "--fields", "question passage", "--licence", "CC0-1.0")
        place.manage(*shlex.split("open_task qa --kind qa_match --corpus qa --seed 1 --test-items 0 --gold-share 0"))
        place.manage("import_judgments", "crowd", FIXTURES / "crowd" / "cf_amt.labels.tsv")
        place.manage("add_manager", "maria", "--yes")

        commands = commands_under(f"With {place.database}")
        back_up = next(command for command in commands if "tar --create" in command)
        restore = next(command for command in commands if "tar --extract" in command)
        shell(place, tmp_path, back_up)
        (other.folder / "data").mkdir()
        shell(other, tmp_path, restore)

        tables, files = held(place)
        assert len(tables) > 40
        assert {"author_key", "corpora/qa/manifest.json"} <= files.keys()
        assert held(other) == [tables, files]
        assert "qa" in other.manage("tasks")
