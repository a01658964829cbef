"""status, corpora, tasks, draws, predictors: what exists, what is missing, and what to do next."""

import io
import json
import re
import shutil
from datetime import timedelta

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from annotate.actions.database import prepare
from annotate.actions.registry import call_command
from annotate.figures import task_overview
from annotate.kinds import Answer
from annotate.management.commands import serve
from annotate.models import Job, Judgment, Pause, Task
from annotate.reports.table_formats import wrap
from annotate.work import job_store
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from corpora.models import Corpus
from tests.annotate.conftest import AGREED, DISPUTED
from tests.annotate.corpus import NAME

pytestmark = pytest.mark.on_sqlite
FRENCH = ("fr en", "en fr", "fr")


def printed(name, *arguments, **options):
    out = io.StringIO()
    call_command(name, *arguments, stdout=out, stderr=io.StringIO(), **options)
    return out.getvalue()


def report(name, *arguments):
    return json.loads(printed(name, *arguments, json=True))


def next_of(name):
    [row] = [row for row in report("tasks")["tasks"] if row["name"] == name]
    return row["next"]


# --- nothing yet


@pytest.mark.django_db
def test_an_empty_installation_says_what_to_do_first(data_dir):
    assert printed("corpora").startswith("There are no corpora yet. Import a file of posts: `assay import_corpus NAME")
    assert printed("tasks").startswith("There are no tasks yet. Open one: `assay open_task NAME --corpus CORPUS")
    assert printed("draws").startswith("There are no draws yet. Opening a task creates one")
    assert printed("predictors").startswith("There are no predictors yet. Create detector votes")
    status = printed("status")
    assert f"Data folder  {data_dir} (" in status
    assert "People       0 annotators, including 0 adjudicators; 0 managers\n" in status
    _, _, todo = status.partition("Next steps\n----------\n")
    assert [line[:30] for line in todo.splitlines()] == [
        "Create an account for a manage",
        "There are no corpora yet. Impo",
        "Add annotators: `assay add_ann",
    ]


@pytest.mark.django_db
def test_status_serve_and_the_pages_agree_on_who_is_a_manager(data_dir, monkeypatch, client, capsys):
    monkeypatch.setattr(serve, "serve", lambda *how: None)
    clerk = User.objects.create_user("clerk", is_staff=True)
    for active, superuser, is_one in ((True, False, True), (True, True, True), (False, True, False)):
        clerk.is_active, clerk.is_superuser = active, superuser
        clerk.save()
        client.force_login(clerk)
        assert (client.get(reverse("manage")).status_code == 200) is is_one
        assert ("1 manager\n" in printed("status")) is is_one
        assert ("Create an account for a manager" in printed("status")) is not is_one
        assert ("There is no manager yet" in printed("serve", port=0)) is not is_one


@pytest.mark.django_db
def test_a_database_that_lacks_a_migration_is_said_to_lack_it_and_nothing_is_read(data_dir):
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'annotate'")
    status = printed("status")
    assert status.endswith(
        "The database belongs to an older version of Assay. Back it up, then run `assay serve` to update it.\n"
    )
    assert "Tasks" not in status
    there = list((settings.BASE_DIR / "annotate" / "migrations").glob("0*.py"))
    assert report("status")["database"]["migrations_missing"] == len(there)


@pytest.mark.django_db
def test_only_the_server_finishes_an_update_that_was_cut_short_after_its_last_migration(data_dir):
    permission = Permission.objects.filter(codename="change_task")
    lock = data_dir / "migrating.lock"

    def prepared(**options):
        prepare(**options)
        return permission.exists(), lock.read_text()

    permission.delete()
    assert prepared() == (False, "")  # no migration is missing
    begun = f"{connection.settings_dict['NAME']} is being updated\n"
    lock.write_text(begun)
    assert prepared(only_new=True) == (False, begun)
    assert prepared() == (True, "")


# --- corpora and predictors


def test_a_corpus_is_listed_with_what_is_to_be_done_next(demo_corpus, data_dir):
    listed = printed("corpora")
    assert re.search(r"^demo +1,525  posts +100\.0% +83\.1%  CC-BY-4\.0  publishable +0$", listed, re.MULTILINE)
    next_step = f"`assay open_task TASK --corpus {NAME} --seed 1 …`"
    assert listed.endswith(f"No items have been drawn from corpus {NAME}: {next_step}.\n")
    [row] = report("corpora")["corpora"]
    assert (row["rows"], row["voted"], row["agreed"], row["draws"], row["fault"]) == (1525, 1525, 1268, 0, "")
    path = data_dir / "corpora" / NAME / "manifest.json"
    manifest = json.loads(path.read_bytes())
    path.write_text(json.dumps(manifest | {"votes": []}))
    assert f"Corpus {NAME} has posts without votes: `assay prelabel {NAME}`." in printed("status")
    shutil.copytree(path.parent, path.parent.with_name("second"))
    Corpus.objects.create(name="second")
    assert "Corpus second has posts without votes" in printed("status")
    assert report("predictors") == {"predictors": []}


def test_what_disk_and_database_do_not_agree_on_is_listed_with_its_fault(demo_corpus, data_dir):
    folder = data_dir / "corpora"
    shutil.copytree(folder / NAME, folder / "stray")
    manifests = {"broken": "{", "empty": "{}", "list": "[]", "lacking": '{"sources": [{"name": "a"}]}'}
    for name, text in manifests.items():
        (folder / name).mkdir()
        (folder / name / "manifest.json").write_text(text)
    (folder / ".DS_Store").write_text("a file of somebody else's")
    Corpus.objects.create(name="lost")
    rows = {row["corpus"]: row for row in report("corpora")["corpora"]}
    faults = {name: row["fault"] for name, row in rows.items()}
    assert faults.keys() == {NAME, "stray", "lost", *manifests}
    assert (faults[NAME], "cannot be read" in faults["broken"]) == ("", True)
    for name in ("empty", "list", "lacking"):
        path = folder / name / "manifest.json"
        assert faults[name] == f"{path} is not a complete corpus manifest. Restore the file."
    assert {name for name, row in rows.items() if row["holds"] == "unknown"} == {*manifests, "lost"}
    assert {row["corpus"] for row in report("predictors")["predictors"]} == {NAME, "stray"}
    assert faults["lost"].startswith("The corpus is in the database but not on disk")
    assert faults["stray"].startswith("The corpus is on disk but not in the database")
    assert "* stray: The corpus is on disk but not in the database. Import its files again, or delete it.\n" in printed(
        "corpora"
    )
    assert printed("status")


def test_a_predictor_that_has_not_seen_all_posts_is_marked(demo_corpus, tmp_path, settings):
    posts = settings.BASE_DIR / "fixtures/demo_posts.jsonl"
    ids = [json.loads(line)["id"] for line in posts.read_text(encoding="utf-8").splitlines()]
    labels = tmp_path / "labels.tsv"
    labels.write_text("".join(f"{key}\tzh\n" for key in ids), encoding="utf-8")
    call_command("import_predictions", NAME, str(labels), name="m", version="1", map=["zh=zh-CN,zh-TW"], verbosity=0)
    more = tmp_path / "more.jsonl"
    more.write_text('{"id": "new", "text": "one more"}\n', encoding="utf-8")
    call_command("import_corpus", NAME, str(more), licence="CC-BY-4.0", stdout=io.StringIO())
    rows = {row["predictor"]: row for row in report("predictors", NAME)["predictors"]}
    assert (rows["m@1"]["posts"], rows["m@1"]["of"], rows["m@1"]["complete"]) == (1525, 1526, False)
    assert rows["m@1"]["classes"] == ["zh"]
    listed = printed("predictors")
    assert "* langid, cld2, fasttext, majority: some posts have no votes; run `assay prelabel demo`\n" in listed
    assert "* m@1: the corpus has grown" in listed
    with pytest.raises(CommandError, match=f"The corpus 'none' does not exist. Available corpora: {NAME}"):
        printed("predictors", "none")


# --- tasks: what to do next


def test_a_command_to_copy_stays_on_one_line():
    for command in ("`assay reroute language-tweets-of-july`", "`assay export_gold language-tweets --out FOLDER`"):
        for before in range(1, 30, 4):
            text = "word " * before + f"ends here: {command}; and so on, word for word."
            lines = wrap(text, "* ", "  ").splitlines()
            assert any(command in line for line in lines)
            assert max(map(len, lines)) <= 100


def test_a_task_says_what_its_manager_should_do_next(make_task, person):
    task = make_task([DISPUTED, FRENCH])
    assert next_of("task") == (
        "2 items are waiting in stalled queues (German, French), because nobody reads them. Invite readers with "
        "`assay add_annotators FILE`, or move the items with `assay reroute task`."
    )
    ann = person("ann", "de fr")
    assert next_of("task") == "In progress: 2 more answers are needed."
    skip(ann, take(ann, task).pk)
    judge(ann, take(ann, task).pk, Answer("fr"))
    assert next_of("task") == "1 item is waiting for an adjudicator, but there is none. Add an adjudicator."
    person("ada", adjudicates=True)
    assert next_of("task") == "1 item is waiting for an adjudicator."
    call_command("close", "task", stdout=io.StringIO())
    assert next_of("task") == (
        "The task is closed, and 1 item has no label. To reopen it, run `assay reopen task`. To end the task "
        "without the items that lack a label: `assay close task --leave-out`."
    )
    task.units.filter(stage="ADJUDICATION").update(stage="DISCARDED")
    publish = "`assay export_gold task --out FOLDER`"
    assert next_of("task") == f"All items are finished. Check `assay audit task`, then publish the gold set: {publish}."


def test_a_task_is_not_said_to_be_done_while_a_job_is_about_to_contest_a_language(make_task):
    task = make_task([AGREED])
    job_store.begin("audit", {"task": task.name, "contest": True}, corpus="corpus")
    [job] = Job.objects.all()
    assert next_of("task").startswith(f"An audit has failed, and job {job.pk} will send the agreed posts to people")


def test_only_what_has_labels_is_to_be_published_and_only_what_two_people_read_to_be_reported(make_task, person):
    make_task([], name="empty")
    empty = "The draw is empty, so there is nothing to read. Delete the task with `assay delete e"
    assert next_of("empty").startswith(empty)
    make_task([DISPUTED], name="unread")
    call_command("close", "unread", leave_out=True, stdout=io.StringIO())
    assert next_of("unread") == (
        "None of the items has a label, so a gold set would be empty. To reopen it, run `assay reopen unread`."
    )
    make_task([AGREED])
    assert next_of("task") == "All items are finished. Publish the gold set: `assay export_gold task --out FOLDER`."
    task, ann = make_task([DISPUTED], name="asked", asked="de"), person("ann", "de")
    judge(ann, take(ann, task).pk, Answer("de"))
    assert "agreement" not in next_of("asked")


def test_who_was_paused_and_seen_by_no_manager_comes_first(make_records_task, person):
    task = make_records_task()
    ann = person("ann", "en")
    Pause.objects.create(task=task, annotator=ann, at=timezone.now(), right=2, asked=8)
    assert next_of("crowd") == "1 person was paused, and no manager has reviewed this. See the task's page People."
    status = printed("status")
    assert "Unreviewed pauses\n" in status
    assert f"crowd  ann                    2 of 8  {timezone.localtime():%Y-%m-%d}" in status
    assert [(row["task"], row["name"], row["right"]) for row in report("status")["pauses"]] == [("crowd", "ann", 2)]


def test_a_task_that_is_opened_while_the_others_are_read_is_told_the_next_time(make_task, monkeypatch):
    make_task([DISPUTED])
    contested = task_overview.contested_waiting

    def meanwhile():
        if not Task.objects.filter(name="second").exists():
            make_task([DISPUTED], name="second")
        return contested()

    monkeypatch.setattr(task_overview, "contested_waiting", meanwhile)
    assert [row["name"] for row in report("tasks")["tasks"]] == ["task"]
    assert {row["name"] for row in report("tasks")["tasks"]} == {"task", "second"}


def test_status_says_what_waits_for_whom(make_task, person):
    task = make_task([DISPUTED, DISPUTED, FRENCH, AGREED])
    ann = person("ann", "de:5")
    skip(ann, take(ann, task).pk)
    rows = [(row["queue"], row["waiting"], row["able"], row["stuck"]) for row in report("status")["waits"]]
    assert sorted(rows) == [("", 1, 0, True), ("de", 1, 1, False), ("fr", 1, 0, True)]
    status = printed("status")
    for readers in ("readers of French", "adjudicators"):
        assert re.search(rf"^task  {readers} +1 +1 +0  stalled$", status, re.MULTILINE)


def test_imported_judgments_are_not_stalled_work(db, tmp_path):
    file = tmp_path / "judgments.tsv"
    file.write_text("task\tworker\tlabel\na\tcal\tx\na\tdan\tx\nb\tcal\tx\n", encoding="utf-8")
    call_command("import_judgments", "crowd", str(file), stdout=io.StringIO())
    assert next_of("crowd").startswith("All items are finished. Check `assay agreement crowd`, ")
    task = Task.objects.get()
    task.units.filter(item__key="b").update(stage="QUEUED", label="", language="und", round=1)
    assert next_of("crowd").startswith("1 item needs more judgments. Import")
    assert report("status")["waits"] == []
    assert [(row["holds"], row["rows"], row["fault"]) for row in report("corpora")["corpora"]] == [
        ("judged items", 2, "")
    ]


# --- draws


def test_draws_are_those_of_a_task_or_of_a_corpus(demo_corpus):
    for name, seed in (("one", "1"), ("two", "2")):
        call_command("open_task", name, corpus=NAME, size=50, seed=seed, audit_share=0, audit_least=0, verbosity=0)
    call_command("extend_task", "two", size=60, verbosity=0)
    assert [(row["seed"], row["drawn"], row["tasks"]) for row in report("draws", "one")["draws"]] == [
        ("1", 50, ["one"])
    ]
    rows = report("draws", NAME)["draws"]
    assert rows == report("draws")["draws"]
    assert [(row["drawn"], row["tasks"], row["extended"]) for row in rows] == [
        (60, ["two"], False),
        (50, [], True),
        (50, ["one"], False),
    ]
    assert rows[0]["chance"] == 60 / 1525
    assert "(enlarged)" in printed("draws")
    with pytest.raises(CommandError, match="There is no task or corpus 'none'"):
        printed("draws", "none")


# --- what it costs


def test_a_list_takes_as_many_statements_for_many_tasks_as_for_one(make_task, make_records_task, person):
    ann = person("ann", "de:5 en:5 fr:5")
    tasks = [make_task([DISPUTED, AGREED, FRENCH]), make_records_task()]
    names = ("status", "tasks", "corpora", "draws", "predictors")

    def statements(name):
        with CaptureQueriesContext(connection) as caught:
            printed(name)
        return len(caught)

    few = {name: statements(name) for name in names}
    for number in range(3):
        tasks.append(make_task([DISPUTED, FRENCH], name=f"more-{number}"))
        tasks.append(make_records_task(name=f"records-{number}", test_items=0))
    for task in tasks[::2]:
        judge(ann, take(ann, task).pk, Answer("de"))
    assert {name: statements(name) for name in names} == few
    assert max(few.values()) <= 30
    assert [row["answers_today"] for row in report("tasks")["tasks"] if row["name"] == "task"] == [1]
    Judgment.objects.update(answered_at=timezone.now() - timedelta(hours=25), shown_at=None)
    assert {row["answers_today"] for row in report("tasks")["tasks"]} == {0}
