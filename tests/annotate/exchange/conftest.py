"""Fixtures: exports of other annotation tools, and what `import` makes of them."""

import json
from pathlib import Path

import pytest
from django.conf import settings

from annotate.actions.registry import call_command
from annotate.models import Judgment

EXPORTS = Path(settings.BASE_DIR) / "fixtures" / "exchange"


@pytest.fixture
def imported(data_dir, capsys):
    """Return a function that imports an export as the task `kettle` and returns what the command says."""

    def run(*files, **options):
        options = {"licence": "CC0-1.0", "language": "en"} | options
        call_command("import", "kettle", *(EXPORTS / file for file in files), **options)
        return capsys.readouterr().out

    return run


def answers():
    rows = Judgment.objects.values_list("unit__item__key", "annotator__user__username", "label")
    return {(key, name.removeprefix("imported:kettle:"), label) for key, name, label in rows}


def jsonl(path, *rows):
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path
