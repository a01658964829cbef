"""The sets that the tests of measuring have in common."""

import json

import pytest
from django.core.management import call_command

from tests.annotate.evaluation.figures import VOTER
from tests.annotate.gold_folders import World


@pytest.fixture
def world(make_task, tmp_path):
    return World(make_task, tmp_path)


@pytest.fixture
def stream(world):
    folder, _ = world.uniform(VOTER)
    return folder


@pytest.fixture
def run(capsys):
    """run("--gold", folder, …) is the report of evaluate."""

    def run(*arguments):
        capsys.readouterr()
        call_command("evaluate", *map(str, arguments), "--json")
        return json.loads(capsys.readouterr().out)

    return run
