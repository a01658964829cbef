"""The command `assay`: the list of its commands, their help, what it says to words that are no command, its version."""

import importlib
import pkgutil
import re
import subprocess
import sys

import pytest
from django.urls import reverse

from annotate import endings, program
from annotate.actions.calling import Command
from annotate.actions.commands import ActionCommand
from annotate.management import commands
from corpora.folders import corpus_dir
from corpora.manifest import Manifest, read_manifest, write_manifest
from corpora.version import VERSION
from tests.running import DATA, ROOT, assay, begin, environment

FILES = [each.name for each in pkgutil.iter_modules(commands.__path__)]
# What each of Django's commands takes.
DJANGOS = ("--version", "--verbosity", "--settings", "--pythonpath", "--traceback", "color", "--skip-checks")


def command(name):
    return importlib.import_module(f"{commands.__name__}.{name}").Command()


def help_of(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    return command(name).create_parser("assay", name).format_help()


def headings_of(told):
    return re.findall(r"^(\w.*):\n  ", told, re.MULTILINE)


# --- the list


def test_every_command_stands_in_the_list_once_and_every_name_of_the_list_is_a_command():
    listed = [name for group in program.COMMANDS.values() for name in group]
    assert sorted(listed) == sorted(FILES)


def test_the_list_says_of_each_command_in_a_line_what_it_does():
    told = program.overview()
    groups = iter(told.splitlines())
    for group, does in program.COMMANDS.items():
        assert f"{group}:" in groups
        for name, line in does.items():
            assert re.match(r"[A-Z].*[^ ]\.$", line), name
            assert f"  {name:{max(map(len, FILES))}}  {line}" in groups
    assert max(map(len, told.splitlines())) <= 100


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",), ("help",)])
def test_the_list_is_what_one_sees_without_a_command_and_nothing_is_made_for_it(tmp_path, words):
    done = assay(tmp_path, *words)
    assert (done.stdout, done.stderr, done.returncode) == (f"{program.overview()}\n", "", 0)
    assert not (tmp_path / DATA).exists()


@pytest.mark.parametrize("words", [("version",), ("--version",), ("reroute", "--version")])
def test_the_program_says_its_own_version(tmp_path, words):
    done = assay(tmp_path, *words)
    assert done.stdout.split()[-1] == VERSION
    assert done.returncode == 0


def test_the_help_of_a_command_is_to_be_had_either_way(tmp_path):
    told = assay(tmp_path, "reroute", "--help").stdout
    assert told.startswith("usage: assay reroute TASK [options]\n")
    for word in ("help", "--help", "-h"):
        assert assay(tmp_path, word, "reroute").stdout == told
    assert assay(tmp_path, "help", "--help").stdout == f"{program.overview()}\n"


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("prelable", "There is no command 'prelable'. Did you mean `assay prelabel`? `assay --help` lists all."),
        (
            "createsuperuser",
            "There is no command 'createsuperuser'. Did you mean `assay django createsuperuser`? "
            "`assay --help` lists all.",
        ),
        ("xyzzy", "There is no command 'xyzzy'. `assay --help` lists all."),
        ("--port", "There is no command '--port'. `assay --help` lists all."),
    ],
)
def test_what_is_no_command_is_answered_in_a_line_with_what_comes_near(tmp_path, word, said):
    done = assay(tmp_path, word)
    assert (done.stdout, done.stderr) == ("", f"{said}\n")
    assert done.returncode == 2


def test_djangos_commands_are_behind_a_word_of_their_own(tmp_path):
    assert "migrate" in assay(tmp_path, "django").stdout
    assert assay(tmp_path, "django", "check").stdout == "System check identified no issues (0 silenced).\n"


def test_ctrl_c_in_djangos_shell_is_what_python_makes_of_it(tmp_path):
    interrupt = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"
    caught = f"try:\n    {interrupt}\nexcept KeyboardInterrupt:\n    print('caught')\n"
    done = assay(tmp_path, "django", "shell", "--no-imports", "-c", 2 * caught)
    assert (done.stdout, done.stderr, done.returncode) == ("caught\ncaught\n", "", 0)
    done = assay(tmp_path, "django", "shell", "--no-imports", "-c", interrupt)
    assert done.stderr == f"Stopped by Ctrl-C: {endings.KEPT}\n"
    assert done.returncode == 130


def test_a_signal_that_comes_when_all_is_done_changes_nothing(tmp_path):
    late = "import atexit, os, signal, sys; atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT)); "
    program = f"{late} sys.argv = ['assay', 'version']; from annotate.program import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment(tmp_path), capture_output=True, text=True
    )
    assert (done.stdout, done.stderr, done.returncode) == (f"Assay {VERSION}\n", "", 0)


# --- the help of a command


@pytest.mark.parametrize("name", FILES)
def test_the_help_of_a_command_is_about_what_it_takes_and_not_about_django(name, monkeypatch):
    assert isinstance(command(name), Command)
    told = help_of(name, monkeypatch)
    # A predictor has a version too.
    own = {"--version"} if name == "import_predictions" else set()
    assert {option for option in DJANGOS if option in told} == own


@pytest.mark.parametrize("name", FILES)
def test_what_is_required_stands_first_and_what_is_in_no_group_last(name, monkeypatch):
    headings = headings_of(help_of(name, monkeypatch))
    assert headings[-1] == "Options"
    required = [action for action in command(name).create_parser("assay", name)._actions if action.required]
    assert [heading for heading in headings if heading == "Required"] == headings[: bool(required)]
    assert len(headings) == len(set(headings))


MANY = 8


@pytest.mark.parametrize("name", [name for name in FILES if isinstance(command(name), ActionCommand)])
def test_no_section_of_a_help_is_so_long_that_one_would_have_to_search_it(name):
    options = [option for option in command(name).action.options if not option.required]
    assert len([option for option in options if not option.group]) <= MANY


def test_the_many_options_of_a_task_read_in_sections(monkeypatch):
    told = help_of("open_task", monkeypatch)
    assert told.startswith("usage: assay open_task NAME [options]\n")
    headings = headings_of(told)
    assert headings[:4] == ["Required", "The draw", "What people are asked", "Answers that are known already"]
    assert len(headings) >= 10


def test_what_was_left_out_is_said_in_a_line(tmp_path):
    done = assay(tmp_path, "import_gold", "a.tsv", "--out", "gold")
    assert done.stderr == "Something is missing: --design, --name. `assay import_gold --help` says more.\n"
    assert (done.stdout, done.returncode) == ("", 2)
    assert not (tmp_path / "gold").exists()


# --- an installation that is empty


NEW = "Nothing was here yet: the data are kept in {} from now on.\n"


def test_any_command_may_be_the_first_and_says_that_it_is(tmp_path):
    made = assay(tmp_path, "add_manager", "meg")
    assert made.stderr == NEW.format(tmp_path / DATA)
    assert made.stdout.startswith("meg is a manager. Log in at http://localhost:8000/ (assumed; set ASSAY_SITE if ")
    again = assay(tmp_path, "add_manager", "meg")
    assert again.stderr == ""
    assert again.stdout.startswith(
        "meg is a manager. The password stays as it was; `assay django changepassword meg` sets another. "
    )


def test_a_first_command_whose_keys_come_from_the_environment_makes_the_data_folder(tmp_path):
    keys = {"ASSAY_SECRET_KEY": "x" * 50, "ASSAY_AUTHOR_KEY": "y" * 50}
    done = assay(tmp_path, "tasks", **keys)
    assert (done.stderr, done.returncode) == (NEW.format(tmp_path / DATA), 0)
    assert (tmp_path / DATA / "assay.sqlite3").exists()


def test_what_reads_and_writes_files_alone_takes_no_database(tmp_path):
    (tmp_path / "gold.tsv").write_text("de\t1\nen\t2\n")
    (tmp_path / "posts.jsonl").write_text('{"id": 1, "text": "Guten Morgen"}\n{"id": 2, "text": "Good morning"}\n')
    (tmp_path / "said.tsv").write_text("id\tlabel\n1\tde\n2\tde\n")
    (tmp_path / "kind.toml").write_text('base = "language"\nlabels = ["de", "en"]\n')
    assert assay(tmp_path, "import_corpus", "c", "posts.jsonl", "--licence", "CC0-1.0").returncode == 0
    assert assay(tmp_path, "prelabel", "c", "--processes", "1").returncode == 0
    for words in (
        ("import_gold", "gold.tsv", "--out", "gold", "--design", "uniform", "--name", "published"),
        ("evaluate", "--file", "said.tsv", "--gold", "gold"),
        ("evaluate", "cld2", "--corpus", "c", "--gold", "gold"),
        ("check_kind", "kind.toml"),
    ):
        done = assay(tmp_path, *words, DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")
        assert (done.stderr, done.returncode) == ("", 0)


def test_two_commands_at_once_may_be_the_first(tmp_path):
    both = [begin(tmp_path, "add_manager", name) for name in ("ann", "bob")]
    said = sorted((process.communicate()[1], process.returncode) for process in both)
    assert said == [("", 0), (NEW.format(tmp_path / DATA), 0)]


# --- the version


@pytest.mark.parametrize("address", ["home", "manage", "admin:index"])
def test_pages_say_the_version_to_who_is_logged_in(client, manager, address):
    assert f"Assay {VERSION}" not in client.get(reverse(address), follow=True).content.decode()
    client.force_login(manager)
    assert f"Assay {VERSION}" in client.get(reverse(address), follow=True).content.decode()


def test_the_description_of_the_api_has_the_version(client, manager):
    client.force_login(manager)
    assert f"version: {VERSION}" in client.get(reverse("api-schema")).content.decode()


def test_the_manifest_of_a_corpus_says_what_wrote_it(data_dir):
    corpus_dir("c").mkdir(parents=True)
    manifest = Manifest("CC0-1.0", True, "")
    write_manifest("c", manifest)
    assert f'"assay": "{VERSION}"' in (corpus_dir("c") / "manifest.json").read_text()
    assert read_manifest("c") == manifest
