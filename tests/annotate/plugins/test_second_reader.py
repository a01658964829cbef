"""A quality control that is defined only in this folder: option, hooks, column, section of the card, and panel."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from annotate import controls
from annotate.actions import open_task  # noqa: F401 - it lists its options once, here without the control's
from annotate.actions.registry import call_command
from annotate.kinds.control import CONTROLS, QualityControl
from annotate.kinds.options import OPTIONS
from annotate.models import Task
from tests.annotate.acts import work_through
from tests.annotate.plugins import second_reader
from tests.annotate.plugins.second_reader import CONTROL, EVERY
from tests.running import assay

pytestmark = pytest.mark.slow
RECORDS = 12
KIND = """
title = "Is the reviewer content?"
form = "choice"
controls = ["second reader"]

[[layout]]
style = "passage"
fields = ["review"]

[[answers]]
code = "yes"
name = "Yes"

[[answers]]
code = "no"
name = "No"

[options]
redundancy = 1
test_items = 0
gold_share = 0
"""


@pytest.fixture
def plugged():
    controls.add(CONTROL)
    yield CONTROL
    del CONTROLS[CONTROL.name], OPTIONS[EVERY.name]
    delattr(Task, EVERY.name)


def test_a_control_must_not_replace_a_column_of_the_set_or_take_the_name_of_an_option_or_attribute_of_tasks(
    task, monkeypatch, tmp_path
):
    for name in ("redundancy", "name", "pk"):
        taker = type("Taker", (QualityControl,), {"name": "taker", "options": (replace(EVERY, name=name),)})()
        with pytest.raises(ValueError, match=f"The quality control 'taker' has an option named '{name}'"):
            controls.add(taker)
        assert "taker" not in CONTROLS
        assert name not in OPTIONS or OPTIONS[name].help != EVERY.help
    monkeypatch.setattr(type(CONTROL), "columns", lambda self, task: {"label": {}})
    with pytest.raises(ValueError, match="'second reader' adds a column named 'label', but the set already has one"):
        call_command("export_gold", "content", out=str(tmp_path / "set"), verbosity=0)
    assert not (tmp_path / "set").exists()


@pytest.fixture
def kind_file(tmp_path):
    path = tmp_path / "content.toml"
    path.write_text(KIND, encoding="utf-8")
    return path


def reviews(folder):
    path = folder / "reviews.csv"
    rows = (f"r{number},en,This is review number {number}." for number in range(RECORDS))
    path.write_text("\n".join(["id,language,review", *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def task(plugged, kind_file, data_dir, tmp_path, db):
    kind_file.write_text(f"{KIND}second_every = 3\n", encoding="utf-8")
    words = {"licence": "CC0-1.0", "source": "invented", "verbosity": 0}
    call_command("import_corpus", "reviews", str(reviews(tmp_path)), fields="review", **words)
    call_command("open_task", "content", kind=str(kind_file), corpus="reviews", languages="en", seed="1")
    return Task.objects.get(name="content")


@pytest.fixture
def read(task, person):
    """Have two people answer everything that they are given."""
    for reader in (person("ann", "en"), person("bob", "en")):
        work_through(reader, task, "yes")
    return task


def test_one_unit_in_three_goes_to_a_second_person_who_is_shown_nothing_else(task, person, client):
    """The statements and the page are the same as for any other unit."""
    redundancies = list(task.units.order_by("position").values_list("redundancy", flat=True))
    assert sorted(redundancies) == [1] * 8 + [2] * 4
    assert [redundancies[place::3] for place in range(3)].count([2] * 4) == 1
    shown = {}
    for name in ("ann", "bob"):
        client.force_login(person(name, "en").user)
        client.post("/tasks/content/start/", {"read": 1})
        shown[name] = client.get("/tasks/content/").text
    assert "second" not in "".join(shown.values()).lower()


def test_the_export_has_its_column_and_section_and_managers_see_its_panel(read, client, manager, capsys, tmp_path):
    call_command("export_gold", "content", out=str(tmp_path / "gold"))
    lines = (tmp_path / "gold" / "gold.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["second_label"] for line in lines].count("yes") == 4
    section = json.loads((tmp_path / "gold" / "manifest.json").read_text(encoding="utf-8"))["second_reader"]
    assert (section["every"], section["read"], section["same"]) == (3, 4, 4)
    card = (tmp_path / "gold" / "README.md").read_text(encoding="utf-8")
    sentence = "Two people read 4 units and gave the same answer to 4."
    assert "Second readers" in card
    assert sentence in card
    client.force_login(manager)
    assert "Second readers" in client.get("/manage/tasks/content/quality/").text
    capsys.readouterr()
    call_command("audit", "content")
    assert sentence in capsys.readouterr().out


def test_an_installed_control_is_found_and_its_option_is_one_of_open_task(installed, installed_package, kind_file):
    """The package is installed like one from outside: a module, and metadata with the name of the object."""
    site = installed_package("controls", "second", "second_reader:CONTROL")
    shutil.copy(second_reader.__file__, site)
    words = ("--fields", "review", "--licence", "CC0-1.0", "--source", "invented")
    path = {"PYTHONPATH": str(site)}
    assert assay(installed, "import_corpus", "reviews", reviews(installed), *words, **path).returncode == 0
    opened = ("open_task", "content", "--kind", kind_file, "--corpus", "reviews", "--languages", "en", "--seed", "1")
    made = assay(installed, *opened, "--second-every", "4", "--json", **path)
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["queues"][0]["several"] == 3
    without = assay(installed, *opened, "--second-every", "4")
    assert without.returncode == 2
    served = assay(installed, "serve", "--port", "0")
    assert (served.returncode, served.stdout) == (1, "")
    assert "The task content cannot be shown: content.toml, line 4" in served.stderr
    assert "Install the package that contains the kind, or the Assay version that opened the task." in served.stderr


def test_the_documentation_has_this_control_as_it_is(settings):
    page = (settings.BASE_DIR / "annotate" / "docs" / "how-to" / "develop.md").read_text(encoding="utf-8")
    assert Path(second_reader.__file__).read_text(encoding="utf-8").strip() in page
