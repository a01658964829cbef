"""The command `assay`: its list of commands, their help, errors for unknown commands, and its version."""

import json
import pkgutil
import re
import subprocess
import sys
from functools import partial
from importlib import import_module

import pytest
from django.urls import reverse

from annotate import actions, exit_status
from annotate.actions import registry
from annotate.actions.action import Action
from annotate.actions.commands import ActionCommand, Command
from annotate.actions.registry import call_command
from annotate.actions.registry import command_named as command
from annotate.management import commands
from annotate.pages import kind_preview
from corpora.system import VERSION
from tests.annotate.corpus import NAME, POSTS
from tests.running import DATA, ROOT, assay, begin, environment

pytestmark = pytest.mark.slow


ROOMS = [import_module(f"annotate.actions.{module.name}") for module in pkgutil.iter_modules(actions.__path__)]
# All actions in any module, listed or not, and the other commands.
FILES = sorted(
    {
        *(value.name for room in (*ROOMS, kind_preview) for value in vars(room).values() if isinstance(value, Action)),
        *(module.name for module in pkgutil.iter_modules(commands.__path__)),
    }
)
# What each of Django's commands takes.
DJANGOS = ("--version", "--verbosity", "--settings", "--pythonpath", "--traceback", "color", "--skip-checks")


def help_of(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    return command(name).create_parser("assay", name).format_help()


def headings_of(text):
    return re.findall(r"^(\w.*):\n  ", text, re.MULTILINE)


# --- the list


def test_every_command_is_in_the_list_once_with_a_line_on_what_it_does():
    listed = [name for group in registry.COMMANDS.values() for name in group]
    assert sorted(listed) == sorted(FILES)
    lines = registry.help_text().splitlines()
    groups = iter(lines)
    for group, commands_of_group in registry.COMMANDS.items():
        assert f"{group}:" in groups
        for name, (_, line) in commands_of_group.items():
            assert re.match(r"[A-Z].*[^ ]\.$", line), name
            assert f"  {name:{max(map(len, FILES))}}  {line}" in groups
    assert max(map(len, lines)) <= 100


def ended(capfd, *words):
    """Run the program in this process; return its output, its errors and its exit status."""
    try:
        status = exit_status.run(partial(registry.run, list(words)))
    except SystemExit as end:
        status = end.code or 0
    return *capfd.readouterr(), status


def test_the_list_is_shown_without_a_command_and_the_version_where_it_is_asked_for(capfd):
    for words in ((), ("--help",), ("-h",), ("help",), ("help", "--help")):
        assert ended(capfd, *words) == (f"{registry.help_text()}\n", "", 0)
    for words in (("version",), ("--version",), ("reroute", "--version")):
        out, _, status = ended(capfd, *words)
        assert (out.split()[-1], status) == (VERSION, 0)


def test_nothing_is_made_for_the_list(tmp_path):
    done = assay(tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == (f"{registry.help_text()}\n", "", 0)
    assert not (tmp_path / DATA).exists()


def test_the_help_of_a_command_is_to_be_had_either_way(capfd):
    result = ended(capfd, "reroute", "--help")
    assert result[0].startswith("usage: assay reroute TASK [options]\n")
    assert result[1:] == ("", 0)
    for word in ("help", "--help", "-h"):
        assert ended(capfd, word, "reroute") == result


def test_what_is_no_command_is_answered_in_a_line_with_what_comes_near(capfd):
    for word, near in (
        ("prelable", " Did you mean `assay prelabel`?"),
        ("createsuperuser", " Did you mean `assay django createsuperuser`?"),
        ("xyzzy", ""),
        ("--port", ""),
    ):
        assert ended(capfd, word) == ("", f"There is no command '{word}'.{near} See `assay --help`.\n", 2)


def test_djangos_commands_are_behind_a_word_of_their_own(capfd):
    assert "migrate" in ended(capfd, "django")[0]
    assert ended(capfd, "django", "check")[0] == "System check identified no issues (0 silenced).\n"


def test_djangos_shell_loads_no_pages_and_ctrl_c_there_is_what_python_makes_of_it(tmp_path):
    """Importing the pages would make every command start half as slowly again."""
    interrupt = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"
    caught = f"try:\n    {interrupt}\nexcept KeyboardInterrupt:\n    print('caught')\n"
    loaded = "import sys; print(sorted(name for name in sys.modules if name.startswith('annotate.pages')))\n"
    done = assay(tmp_path, "django", "shell", "--no-imports", "-c", loaded + 2 * caught)
    assert (done.stdout, done.stderr, done.returncode) == ("[]\ncaught\ncaught\n", "", 0)
    done = assay(tmp_path, "django", "shell", "--no-imports", "-c", interrupt)
    assert done.stderr == f"Stopped by Ctrl-C: {exit_status.KEPT}\n"
    assert done.returncode == 130


def test_a_signal_that_comes_when_all_is_done_changes_nothing(tmp_path):
    late = "import atexit, os, signal, sys; atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT)); "
    program = f"{late} sys.argv = ['assay', 'version']; from annotate.actions.registry import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment(tmp_path), capture_output=True, text=True
    )
    assert (done.stdout, done.stderr, done.returncode) == (f"Assay {VERSION}\n", "", 0)


# --- the help of a command


@pytest.mark.parametrize("name", FILES)
def test_the_help_of_a_command_has_what_is_required_first_short_sections_and_nothing_of_django(name, monkeypatch):
    assert isinstance(command(name), Command)
    shown = help_of(name, monkeypatch)
    # A predictor has a version too.
    versioned = {"--version"} if name == "import_predictions" else set()
    assert {option for option in DJANGOS if option in shown} == versioned
    headings = headings_of(shown)
    assert headings[-1] == "Options"
    required = [action for action in command(name).create_parser("assay", name)._actions if action.required]
    assert [heading for heading in headings if heading == "Required"] == headings[: bool(required)]
    assert len(headings) == len(set(headings))
    if isinstance(command(name), ActionCommand):
        options = [option for option in command(name).action.options if not option.required]
        assert len([option for option in options if not option.group]) <= MANY


MANY = 8


def test_the_many_options_of_a_task_read_in_sections(monkeypatch):
    text = help_of("open_task", monkeypatch)
    assert text.startswith("usage: assay open_task NAME [options]\n")
    headings = headings_of(text)
    assert headings[:4] == ["Required", "The draw", "The question", "Known answers"]
    assert len(headings) >= 10


def test_missing_arguments_are_named_in_a_line(capfd, tmp_path):
    message = "Required arguments are missing: --design, --name. See `assay import_gold --help`.\n"
    assert ended(capfd, "import_gold", "a.tsv", "--out", str(tmp_path / "gold")) == ("", message, 2)
    assert not (tmp_path / "gold").exists()


# --- an installation that is empty


def test_two_commands_at_once_may_be_the_first_and_one_says_that_it_is(tmp_path):
    new = f"Created a new data folder: {tmp_path / DATA}.\n"
    both = {name: begin(tmp_path, "add_manager", name) for name in ("ann", "bob")}
    results = {name: (*process.communicate(), process.returncode) for name, process in both.items()}
    assert sorted(result[1:] for result in results.values()) == [("", 0), (new, 0)]
    log_in = "Log in at http://localhost:8000/ (where `serve` listens; set ASSAY_SITE if "
    assert all(out.startswith(f"{name} is a manager. {log_in}") for name, (out, _, _) in results.items())
    again = assay(tmp_path, "add_manager", "ann")
    assert again.stderr == ""
    assert again.stdout.startswith(
        "ann is a manager. The password is unchanged; to change it, run `assay django changepassword ann`. "
    )


def test_what_reads_and_writes_files_alone_takes_no_database(prelabelled, settings, tmp_path):
    """Without a database fixture, any query would fail this test."""
    settings.DATA_DIR = prelabelled
    posts = [json.loads(line)["id"] for line in POSTS.read_text(encoding="utf-8").splitlines()[:2]]
    (tmp_path / "gold.tsv").write_text("".join(f"de\t{post}\n" for post in posts))
    (tmp_path / "said.tsv").write_text("id\tlabel\n" + "".join(f"{post}\tde\n" for post in posts))
    (tmp_path / "kind.toml").write_text('base = "language"\nlabels = ["de", "en"]\n')
    gold = str(tmp_path / "gold")
    for name, *words in (
        ("import_gold", str(tmp_path / "gold.tsv"), "--out", gold, "--design", "uniform", "--name", "published"),
        ("evaluate", str(tmp_path / "said.tsv"), "--gold", gold),
        ("evaluate", "cld2", "--corpus", NAME, "--gold", gold),
        ("check_kind", str(tmp_path / "kind.toml")),
    ):
        assert command(name).action.on_files
        call_command(name, *words)
    done = assay(tmp_path, "check_kind", "kind.toml", DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")
    assert (done.stderr, done.returncode) == ("", 0)


# --- the version


def test_pages_say_the_version_to_people_who_are_logged_in(client, manager):
    addresses = [reverse(name) for name in ("home", "manage", "admin:index")]
    for shown in (False, True):
        for address in addresses:
            assert (f"Assay {VERSION}" in client.get(address, follow=True).text) is shown
        client.force_login(manager)
    assert f"version: {VERSION}" in client.get(reverse("api-schema")).text
