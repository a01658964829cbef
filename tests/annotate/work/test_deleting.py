"""close, reopen and delete: what they change in tasks, corpora and predictors, and what they leave."""

import io
import json
import sys
import threading
from pathlib import Path

import pytest
from django.core.management import CommandError
from django.db import transaction
from django.utils import timezone

from annotate.actions.registry import call_command
from annotate.core.refusals import Refusal, WrongStage
from annotate.kinds import Answer
from annotate.models import GoldAnswer, Guidelines, Judgment, Lease, Qualification, Task, Transition, Unit
from annotate.work.closure import delete_task
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from corpora.models import Corpus, Draw, Item
from corpora.storage import inventory
from corpora.storage.layout import lock_corpus, manifest_of
from corpora.votes.vote_run import pieces_of
from tests.annotate import acts
from tests.annotate.attacks import run_out
from tests.annotate.conftest import AGREED, DISPUTED
from tests.annotate.corpus import NAME
from tests.running import ROOT
from tests.together import HANGS, at_once

OPENED = {"corpus": NAME, "seed": "7", "audit_share": 0, "audit_least": 0, "verbosity": 0}


def output_of(command, *arguments, **options):
    out = io.StringIO()
    call_command(command, *arguments, stdout=out, **options)
    return out.getvalue()


def delete(*arguments, **options):
    return output_of("delete", *arguments, yes=True, **options)


def counts():
    models = (Task, Unit, Transition, Lease, Draw, Item, GoldAnswer, Guidelines, Qualification)
    return {model.__name__: model.objects.count() for model in models}


# --- close and reopen


@pytest.mark.both_databases
def test_a_closed_task_hands_out_nothing_and_a_reopened_one_goes_on(make_task, person, capsys):
    task = make_task([DISPUTED, DISPUTED, AGREED])
    ann, ben = person("ann", "de"), person("ben", "de")
    held = take(ann, task)
    assert output_of("close", "task") == (
        "Task task has been closed, so annotators no longer receive its items. Items without a label: 2. "
        "Annotators can still answer the items that they have open (1 item).\n"
    )
    task.refresh_from_db()
    assert take(ben, task) is None
    judge(ann, held.pk, Answer("de"))
    assert output_of("close", "task") == "Task task was already closed. Items without a label: 1.\n"
    assert output_of("reopen", "task") == (
        "Task task has been reopened, so annotators receive its items. Items without a label: 1.\n"
    )
    task.refresh_from_db()
    assert take(ben, task)
    assert output_of("reopen", "task").startswith("Task task was already open.")
    make_task([("fr", "en", "fr")], is_open=False, name="unread")
    capsys.readouterr()
    call_command("reopen", "unread")
    assert "Warning: items in these queues lack readers: fr (1)." in capsys.readouterr().err


def test_a_task_of_imported_judgments_is_not_opened(db, tmp_path):
    file = tmp_path / "judgments.tsv"
    file.write_text("task\tworker\tlabel\na\tcal\tx\na\tdan\tx\n", encoding="utf-8")
    output_of("import_judgments", "crowd", str(file))
    with pytest.raises(CommandError, match="crowd contains imported judgments, so annotators cannot receive"):
        output_of("reopen", "crowd")
    assert not Task.objects.get().is_open


# --- delete: a task


def test_a_task_of_which_nobody_has_said_anything_goes_with_all_that_was_made_for_it(demo_corpus, person):
    output_of("open_task", "t", size=100, **OPENED)
    output_of("extend_task", "t", size=150)
    person("ann", "de:5 en:5")
    assert Draw.objects.count() == 2
    assert delete("t") == "Deleted: task t with 150 items and 1 draw.\n"
    assert not any(counts().values())
    # As if the task had never existed.
    output_of("open_task", "t", size=100, **OPENED)
    assert Task.objects.get().units.count() == 100


def test_what_another_task_asks_about_or_has_taken_labels_from_stays(demo_corpus, make_task):
    output_of("open_task", "one", size=60, **OPENED)
    output_of("open_task", "two", size=80, **OPENED)
    delete("two")
    assert (Task.objects.get().name, Draw.objects.count(), Item.objects.count()) == ("one", 1, 60)
    assert set(Unit.objects.values_list("item__key", flat=True)) == set(Item.objects.values_list("key", flat=True))
    delete("one")
    first, second = make_task([DISPUTED], name="first"), make_task([DISPUTED], name="second")
    second.units.update(reused_from=first.units.get())
    with pytest.raises(CommandError, match="another task has reused its labels"):
        delete("first")
    delete("second")
    delete("first")
    assert not any(counts().values())


def test_a_task_of_records_goes_with_its_gold_answers_and_copies(make_records_task, manager, person):
    task = make_records_task(gold={"practice": ["1"], "queue": ["1", "0"]})
    Qualification.objects.create(
        task=task, annotator=person("ann", "en"), language="en", major=1, granted_by=manager, at=timezone.now()
    )
    unit = task.units.work().first()
    Unit.objects.create(
        task=task, item=Item.objects.create(corpus=unit.item.corpus, key="copy", text="x", votes={}, letters=1),
        position=99, redundancy=1, stage="COPIED", copy_of=unit,
    )  # fmt: skip
    assert delete("crowd") == "Deleted: task crowd with 5 items, 3 gold answers and 1 draw.\n"
    assert not any(counts().values())


def test_a_task_of_which_somebody_has_said_something_stays_even_if_that_counts_no_longer(make_task, person):
    ann = person("ann", "de")
    for name, say in (("answer", lambda *of: judge(*of, Answer("de"))), ("skip", skip)):
        say(ann, take(ann, make_task([DISPUTED, DISPUTED], name=name)).pk)
        Judgment.objects.update(voided_at=timezone.now())
        before = counts()
        with pytest.raises(
            CommandError, match=r"annotators have answered its items \(1 time\), and these records must be"
        ):
            delete(name)
        assert counts() == before


def test_a_task_whose_test_somebody_took_stays(make_records_task, person):
    gold = {"practice": ["1"], "test": ["1", "0", "1", "0"]}
    task, ann = make_records_task(gold=gold, test_items=2), person("ann", "en")
    acts.begin(ann, task, "en", "practice")
    with pytest.raises(CommandError, match="taken its practice or test"):
        delete("crowd")
    assert Task.objects.filter(pk=task.pk).exists()


def test_a_task_of_which_somebody_has_a_unit_open_stays_until_that_is_over(make_task, person):
    task, ann = make_task([DISPUTED]), person("ann", "de")
    take(ann, task)
    with pytest.raises(CommandError, match=r"an annotator has one of its items open\. Close the task with `assay clo"):
        delete("task")
    run_out(Lease.objects.get())
    delete("task")
    assert not any(counts().values())


@pytest.mark.both_databases
def test_a_deletion_that_breaks_off_takes_nothing(make_task, monkeypatch):
    make_task([DISPUTED, AGREED])
    before = counts()

    def fail(self, *args, **kwargs):
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(Task, "delete", fail)
        with pytest.raises(RuntimeError):
            delete("task")
    assert counts() == before
    delete("task")
    assert not any(counts().values())


# --- delete: a corpus, a predictor


def predictions(folder, name):
    path = folder / f"{name}.tsv"
    rows = (ROOT / "fixtures/demo_posts.jsonl").read_text(encoding="utf-8").splitlines()
    path.write_text("".join(f"{json.loads(row)['id']}\tde\n" for row in rows), encoding="utf-8")
    output_of("import_predictions", NAME, str(path), name=name, version="1")


def test_a_corpus_that_nothing_was_drawn_from_goes_from_database_and_disk(demo_corpus, data_dir):
    output_of("open_task", "t", size=60, **OPENED)
    with pytest.raises(CommandError, match=r"Corpus demo cannot be deleted because .* drawn from it \(draws: 1\)"):
        delete(corpus=NAME)
    assert (data_dir / "corpora" / NAME / "manifest.json").exists()
    delete("t")
    assert delete(corpus=NAME) == "Deleted: corpus demo with 1,525 rows from 1 file.\n"
    assert not Corpus.objects.exists()
    assert list((data_dir / "corpora").iterdir()) == []
    with pytest.raises(CommandError, match=r"The corpus 'demo' does not exist. Available corpora: none"):
        delete(corpus=NAME)
    assert list((data_dir / "corpora").iterdir()) == []


@pytest.mark.parametrize("dies", ["manifest", "rejects", "sweeping"])
def test_a_deletion_of_a_corpus_that_was_killed_is_finished_by_the_next(demo_corpus, data_dir, monkeypatch, dies):
    class KilledError(BaseException):
        pass

    unlink = Path.unlink

    def die(*args, **kwargs):
        raise KilledError

    def die_at_the_manifest(path, **kwargs):
        if path.name == "manifest.json":
            raise KilledError
        unlink(path, **kwargs)

    directory = data_dir / "corpora" / NAME
    (directory / "rejects" / "000001.jsonl").write_text("{}\n")
    with monkeypatch.context() as patch:
        if dies == "manifest":
            patch.setattr(Path, "unlink", die_at_the_manifest)
        elif dies == "rejects":
            patch.setattr(inventory.layout, "sync", die)
        else:
            patch.setattr("corpora.storage.layout._sweep", lambda *args, **options: None)
            patch.setattr("corpora.storage.layout._remove_empty", die)
        with pytest.raises(KilledError):
            delete(corpus=NAME)
    assert not Corpus.objects.exists()
    assert directory.exists()
    assert delete(corpus=NAME).startswith("Deleted: corpus demo with ")
    assert not directory.exists()


def test_other_files_in_the_folder_of_a_corpus_are_left_and_named_but_not_the_pieces_of_a_prelabelling(
    demo_corpus, data_dir
):
    directory = data_dir / "corpora" / NAME
    (part, *_) = manifest_of(NAME).parts
    (pieces_of(directory, part, 3, {}, 100).folder / "000000.arrow").write_text("votes")
    foreign = directory / "notes.txt"
    foreign.write_text("mine")
    with pytest.raises(CommandError, match=r"Corpus demo was deleted, but files remain in .*/demo"):
        delete(corpus=NAME)
    assert not Corpus.objects.exists()
    assert [path for path in directory.rglob("*") if path.is_file()] == [foreign]
    foreign.unlink()
    delete(corpus=NAME)
    assert not directory.exists()


def test_a_corpus_that_another_command_is_changing_stays(demo_corpus):
    with lock_corpus(NAME), pytest.raises(CommandError, match="Another command is changing the corpus demo"):
        delete(corpus=NAME)
    assert Corpus.objects.exists()


def test_a_predictor_goes_alone_unless_posts_were_drawn_by_it(demo_corpus, data_dir, tmp_path):
    for name in ("one", "two"):
        predictions(tmp_path, name)
    files = data_dir / "corpora" / NAME / "predictions"
    output_of("open_task", "t", corpus=NAME, seed="7", design="precision", predictor="two@1", languages="de", size=20)
    with pytest.raises(CommandError, match=r"two@1 cannot be deleted because it was used to draw from corpus demo"):
        delete(corpus=NAME, predictor="two")
    with pytest.raises(CommandError, match="cld2 cannot be deleted because it consists of the detectors' votes"):
        delete(corpus=NAME, predictor="cld2")
    assert len(list(files.iterdir())) == 2
    assert delete(corpus=NAME, predictor="one") == "Deleted: the predictions of one@1 for 1,525 posts of corpus demo.\n"
    assert [path.name for path in files.iterdir()] == ["000002.parquet"]
    with pytest.raises(CommandError, match="Corpus demo has no predictor 'one@1'"):
        delete(corpus=NAME, predictor="one@1")


@pytest.mark.django_db
def test_what_is_not_clear_is_refused(data_dir, make_task):
    make_task([DISPUTED], name="t")
    one = "Specify either one task to delete, or one corpus with --corpus NAME."
    for arguments, options, sentence in (
        ([], {}, one),
        (["t"], {"corpus": "c"}, one),
        (["t"], {"predictor": "p@1"}, "--predictor requires --corpus and cannot be used with a task."),
        (["u"], {}, "There is no task 'u'; available: t."),
        ([], {"corpus": "../x"}, "'../x' is not a valid corpus name. Use 1 to 64 letters, digits, hyphens or"),
        ([], {"corpus": "c", "predictor": "p"}, "The corpus 'c' does not exist. Create it with `assay import_corp"),
    ):
        with pytest.raises(CommandError) as refused:
            delete(*arguments, **options)
        assert str(refused.value).startswith(sentence)
    assert list(data_dir.iterdir()) == []


# --- asking first


class Answering(io.StringIO):
    def isatty(self):
        return True


def test_it_asks_first_on_a_terminal(make_task, monkeypatch, capsys):
    for typed, goes in (("yes\n", True), ("Y\n", True), ("no\n", False), ("", False)):
        task = make_task([DISPUTED], name=f"task{Task.objects.count()}")
        monkeypatch.setattr(sys, "stdin", Answering(typed))
        if goes:
            call_command("delete", task.name)
        else:
            with pytest.raises(CommandError, match=r"^Cancelled\. Nothing was changed\.$"):
                call_command("delete", task.name)
        assert Task.objects.filter(pk=task.pk).exists() is not goes
        assert capsys.readouterr().err == (
            f"This deletes task {task.name} with 1 item and 1 draw. The task has no answers. "
            "This cannot be undone.\nContinue? Type yes: "
        )


# --- a task that is deleted while somebody is about to take a unit of it: one of the two comes too late

ROUNDS = 12


@pytest.mark.django_db(transaction=True)
@pytest.mark.both_databases
def test_either_the_task_goes_or_the_unit_is_handed_out(make_task, person):
    ann = person("ann", "de")
    for number in range(ROUNDS):
        task = make_task([DISPUTED] * 3, name=f"task-{number}")
        deletions = [lambda task=task: delete_task(Task.objects.get(pk=task.pk)), lambda task=task: take(ann, task)]
        gone, lease = at_once(*(deletions if number % 2 else deletions[::-1]))[:: 1 if number % 2 else -1]
        if Task.objects.filter(pk=task.pk).exists():
            assert isinstance(gone, WrongStage)
            assert task.units.count() == 3
        else:
            assert gone["units"] == 3
            assert lease is None or isinstance(lease, Refusal | Task.DoesNotExist), lease
            assert not Unit.objects.filter(task=task.pk).exists()
    assert Lease.objects.count() == Task.objects.count()


@pytest.mark.django_db(transaction=True)
@pytest.mark.postgres_only
def test_people_at_work_are_not_waited_for(make_task):
    task = make_task([DISPUTED])
    held, done = threading.Event(), threading.Event()

    def work():
        with transaction.atomic():
            Unit.objects.select_for_update(no_key=True).get(task=task)
            held.set()
            assert done.wait(HANGS)

    def delete():
        assert held.wait(HANGS)
        try:
            return delete_task(Task.objects.get(pk=task.pk))
        finally:
            done.set()

    _, refused = at_once(work, delete)
    assert isinstance(refused, WrongStage)
    assert str(refused) == "Somebody is working in task. Close it with `assay close task`, and try again."
    assert Unit.objects.filter(task=task).exists()
