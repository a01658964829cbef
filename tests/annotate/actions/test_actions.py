"""Managers' actions run without commands, as pages run them, and the commands made from them."""

import io
import json
import pkgutil
import shlex

import pytest
from django.core import management
from django.core.management import CommandError

from annotate.actions import corpus_files, judgment_files, open_task
from annotate.actions.action import Action, ActionError, Cancelled, Outcome, Progress
from annotate.actions.commands import ActionCommand
from annotate.actions.registry import action_named, by_name, call_command, command_named
from annotate.core.option import Option, flag
from annotate.management import commands
from annotate.models import Annotator, Judgment, Task, Transition, Unit
from corpora.models import Corpus, Draw, Item
from corpora.storage.layout import manifest_of, read_manifest
from tests.annotate.corpus import NAME

ACTIONS = list(by_name().values())
# Commands that are not managers' actions.
OTHERS = {"serve", "work", "write_docs", "write_catalogs"}


class Recorded(Progress):
    """Progress that records messages and cancels at a given amount."""

    def __init__(self, until=None):
        self.total, self.unit, self.done, self.said, self.until = None, "", [], [], until

    def begin(self, total, unit):
        self.total, self.unit = total, unit

    def advance(self, count=0):
        self.done.append(count)
        if self.until is not None and sum(self.done) >= self.until:
            raise Cancelled

    def say(self, sentence):
        self.said.append(sentence)


def everything():
    return {model.__name__: model.objects.count() for model in (Corpus, Draw, Item, Task, Unit, Transition, Judgment)}


def posts(path, first, count):
    rows = [{"id": str(n), "text": f"Das ist der Text mit der Nummer {n}."} for n in range(first, first + count)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


# --- run by a page


def test_a_form_of_texts_opens_a_task_and_hears_of_its_units(demo_corpus, capsys):
    progress = Recorded()
    form = {"name": "t", "corpus": NAME, "seed": "7", "size": "60", "audit_least": "2", "audit_limit": "100%"}
    outcome = open_task.open_task_action.perform(form, progress)
    assert Task.objects.get().units.count() == 60
    assert (progress.unit, sum(progress.done)) == ("item", 60)
    assert outcome.said[0].startswith("Task t: 60 posts drawn; ")
    assert outcome.warned[0].startswith("Warning: items in these queues lack readers: ")
    assert sum(outcome.data["stages"].values()) == 60
    assert capsys.readouterr() == ("", "")


def test_cancelled_in_the_middle_no_task_is_opened(demo_corpus):
    before = everything()
    form = {"name": "t", "corpus": NAME, "seed": "7", "size": "5", "design": "precision", "predictor": "cld2"}
    progress = Recorded(until=6)
    with pytest.raises(Cancelled):
        open_task.open_task_action.perform(form | {"languages": "de nl fr"}, progress)
    # The units of the second language had been made.
    assert progress.done == [0, 5, 5]
    assert everything() == before


def test_cancelled_in_the_middle_a_task_is_not_enlarged(demo_corpus):
    form = {"name": "t", "corpus": NAME, "seed": "7", "size": "60", "audit_share": "0", "audit_least": "0"}
    open_task.open_task_action.perform(form)
    before = everything()
    with pytest.raises(Cancelled):
        open_task.extend_task_action.perform({"name": "t", "size": 90}, Recorded(until=1))
    assert everything() == before
    assert open_task.extend_task_action.perform({"name": "t", "size": 90}).said[0].startswith("Task t: 30 posts")


@pytest.mark.django_db
def test_cancelled_while_judgments_are_stored_none_is(tmp_path, monkeypatch):
    class OnceStored(Recorded):
        def advance(self, count=0):
            super().advance(count)
            if Judgment.objects.exists():
                raise Cancelled

    file = tmp_path / "judgments.tsv"
    file.write_text("task\tworker\tlabel\na\tann\tx\na\tbob\tx\n", encoding="utf-8")
    progress = OnceStored()
    with pytest.raises(Cancelled):
        judgment_files.import_action.perform({"task": "crowd", "file": str(file)}, progress)
    assert (progress.total, progress.unit, sum(progress.done)) == (file.stat().st_size, "B", file.stat().st_size)
    assert everything() == dict.fromkeys(everything(), 0)
    assert not Annotator.objects.exists()
    assert judgment_files.import_action.perform({"task": "crowd", "file": str(file)}).data["judgments"] == 2


@pytest.mark.django_db
def test_a_cancelled_import_keeps_and_reports_finished_files(data_dir, tmp_path):
    files = [posts(tmp_path / "a.jsonl", 0, 50), posts(tmp_path / "b.jsonl", 50, 5000)]
    options = {"corpus": "c", "files": files, "licence": "CC0-1.0"}
    progress = Recorded(until=files[0].stat().st_size + 1)
    with pytest.raises(Cancelled):
        corpus_files.import_corpus_action.perform(options, progress)
    assert progress.said == ["a.jsonl: 50 accepted, 0 duplicates, 0 rejected."]
    assert manifest_of("c").rows == 50
    data = corpus_files.import_corpus_action.perform(options).data
    assert (data["accepted"], data["duplicates"], data["rejects"]) == (5000, 0, 0)
    assert [(file["name"], file["already"]) for file in data["files"]] == [("a.jsonl", True), ("b.jsonl", False)]


@pytest.mark.django_db
def test_a_prelabelling_that_is_cancelled_goes_on_where_it_was(data_dir, tmp_path):
    files = [posts(tmp_path / "a.jsonl", 0, 20), posts(tmp_path / "b.jsonl", 20, 20)]
    for file in files:
        corpus_files.import_corpus_action.perform({"corpus": "c", "files": [file], "licence": "CC0-1.0"})
    progress = Recorded(until=21)
    with pytest.raises(Cancelled):
        action_named("prelabel").perform({"corpus": "c", "processes": 1}, progress)
    assert (progress.total, progress.unit) == (40, "post")
    assert len(read_manifest("c").votes) == 1
    assert action_named("prelabel").perform({"corpus": "c", "processes": "1"}).data["posts"] == 40


@pytest.mark.django_db
def test_whatever_is_wrong_is_one_error_with_its_sentence(data_dir):
    for name, form, sentence in (
        ("reroute", {"task": "none"}, "There is no task 'none'; available: none."),
        ("reroute", {}, "task is required."),
        ("open_task", {"name": "t", "size": "many"}, "--size: 'many' is not a whole number."),
        ("open_task", {"name": "t", "size": 2.5}, "--size is 2.5. It must be a whole number."),
        ("open_task", {"name": "t", "corpus": "none", "seed": 1}, "--seed is 1. It must be a word."),
        ("prelabel", {"corpus": "none"}, "The corpus 'none' does not exist"),
        ("prelabel", {"corpus": "none", "k": "0"}, "--k is 0. It must be 1 or more."),
    ):
        with pytest.raises(ActionError) as refused:
            action_named(name).perform(form)
        assert str(refused.value).startswith(sentence)
    with pytest.raises(TypeError, match="reroute has no option taks"):
        action_named("reroute").perform({"taks": "t"})


# --- the commands


def test_every_action_has_a_command_whose_help_says_what_each_option_is():
    assert {module.name for module in pkgutil.iter_modules(commands.__path__)} == OTHERS
    for action in ACTIONS:
        command = command_named(action.name)
        assert isinstance(command, ActionCommand)
        assert command.action is action
        shown = " ".join(command.create_parser("assay", action.name).format_help().split())
        assert " ".join(action.description.split()) in shown.replace("- ", "-"), action.name
        for option in action.options:
            assert option.spelled in shown or option.shown in shown
            assert option.help or option.shown == "FILE"


def test_what_is_typed_means_the_same_as_what_a_page_gives():
    for form, line in (
        ({"name": "t"}, "unlock t"),
        (
            {"name": "t", "corpus": "july", "seed": "2014", "size": 20000, "audit_share": "2%"},
            "open_task t --corpus july --size 20000 --seed 2014 --audit-share 0.02",
        ),
        (
            {"name": "t", "title": "Which one's?", "languages": ["de", "nl"], "gold": ["a.jsonl", "b"], "reuse": True},
            "open_task t --title 'Which one'\"'\"'s?' --gold a.jsonl --gold b --reuse --languages 'de nl'",
        ),
        (
            {"name": "t", "window": "2014-07-01..2014-08-01", "seed": "-1"},
            "open_task t --seed=-1 --window 2014-07-01..2014-08-01",
        ),
        (
            {"corpus": "c", "files": ["a.jsonl", "b c.jsonl"], "licence": "MIT", "text_may_leave": False},
            "import_corpus c a.jsonl 'b c.jsonl' --licence MIT --text-stays",
        ),
    ):
        name, *words = shlex.split(line)
        action = action_named(name)
        parsed = vars(command_named(name).create_parser("x", name).parse_args(words))
        assert action.read({option.name: parsed[option.name] for option in action.options}) == action.read(form)


def test_a_command_says_warnings_apart_and_all_as_json_where_it_is_wanted():
    def run(values, progress):
        progress.say("Begun.")
        return Outcome(["Done."], ["Take care."], {"loud": values["loud"], "über": 1})

    command = ActionCommand(Action("shout", "Shouts.", (Option("loud", flag, False, help="so"),), run))
    in_words = ({}, "Begun.\nDone.\n", "Take care.\n")
    as_json = ({"json": True}, '{\n  "loud": true,\n  "über": 1\n}\n', "Begun.\nTake care.\n")
    for options, printed, aside in (in_words, as_json):
        out, err = io.StringIO(), io.StringIO()
        management.call_command(command, stdout=out, stderr=err, loud=bool(options) or None, no_color=True, **options)
        assert (out.getvalue(), err.getvalue()) == (printed, aside)


# --- `import_corpus FILE`: what the file seems to be is reported, and imported if that is certain


TABLE = """\
tweet_id;tweet;user;created_at;likes
1;Guten Morgen zusammen;anna;2024-01-02;3
2;Das Wetter ist schön;otto;2024-01-03;4
"""


@pytest.fixture
def run(db, data_dir, tmp_path, monkeypatch, capsys):
    """Return a function that writes a file, imports it without options, and returns the output."""
    monkeypatch.chdir(tmp_path)

    def run(name, content, **options):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        call_command("import_corpus", name, **options)
        return capsys.readouterr().out

    return run


def test_a_file_is_described_and_imported_and_its_texts_stay_here(run):
    output = run("Beiträge.csv", TABLE)
    assert "Beiträge.csv: CSV, UTF-8, with columns separated by semicolons" in output
    assert "tweet_id    id         1 | 2" in output
    assert "likes       –          3 | 4" in output
    assert "2 accepted, 0 duplicates, 0 rejected" in output
    assert "No licence was stated, so exports will not contain the texts" in output
    manifest = manifest_of("beitrage")
    assert (manifest.licence, manifest.text_may_leave, manifest.rows) == ("not stated", False, 2)
    named = {"id": "tweet_id", "text": "tweet", "author": "user", "posted_at": "created_at"}
    assert manifest.sources[0].columns.items() >= named.items()


def test_the_same_file_is_known_and_another_of_its_name_becomes_another_corpus(run):
    run("a.csv", TABLE, licence="CC0-1.0")
    assert "already imported" in run("a.csv", TABLE)
    run("a.csv", f"{TABLE}3;Noch ein Satz;emil;2024-01-04;5\n")
    assert (manifest_of("a").rows, manifest_of("a-2").rows) == (2, 3)


def test_a_nested_field_is_found_and_the_format_without_a_suffix(run):
    output = run("export", json.dumps([{"id": 1, "data": {"text": "Hello there"}, "annotations": []}]).encode("utf-16"))
    assert "export: JSON, UTF-16" in output
    assert manifest_of("export").sources[0].columns["text"] == "data.text"


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"id": 1, "body": "a", "message": "b"}, "The text may be in 2 columns. Add --column text=body or --column te"),
        ({"id": 1, "title": "a"}, 'No column seems to contain the text. Add --column text=COLUMN, or --fields "…" for'),
        ({"text": "a"}, "No column seems to contain the id. Add --column id=COLUMN"),
    ],
)
def test_a_file_that_is_ambiguous_is_described_with_the_options_to_choose_from(run, row, sentence):
    with pytest.raises(CommandError, match=f"(?s)a.jsonl: JSON, UTF-8\ncolumn.*first values\n.*{sentence}"):
        run("a.jsonl", json.dumps(row))


def test_options_that_are_given_are_kept(run):
    row = {"id": 1, "body": "a", "message": "b", "language": "en"}
    run("a.jsonl", json.dumps(row), column=["text=message"], licence="CC0-1.0")
    assert manifest_of("a").sources[0].columns["text"] == "message"
    run("b.jsonl", json.dumps(row), fields="body message")
    assert manifest_of("b").fields == ("body", "message")
