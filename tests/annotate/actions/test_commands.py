import os
import re
import socket
from dataclasses import replace

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError
from django.urls import reverse
from knox.models import AuthToken

from annotate.actions.job_worker import READY
from annotate.actions.registry import call_command
from annotate.core import stages
from annotate.core.estimation.proportions import jeffreys
from annotate.kinds import Answer
from annotate.management import demo
from annotate.management.commands import serve
from annotate.models import Annotator, Job, Pause, Task, Transition
from annotate.work import job_store
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from corpora.models import Corpus
from deploy import settings as deployed
from tests.annotate.acts import say, settle
from tests.annotate.conftest import AGREED, DISPUTED
from tests.annotate.goldsets.acts import with_manifest
from tests.annotate.goldsets.set_contents import check_documents
from tests.running import DATA, assay

pytestmark = pytest.mark.on_sqlite


# --- tokens


def test_a_token_is_printed_once_and_works_and_none_is_made_for_people_unknown_or_locked_out(
    person, make_task, capsys, client
):
    person("ann", "de")
    make_task([DISPUTED])
    call_command("create_token", "ann")
    token = capsys.readouterr().out.strip()
    reply = client.get(reverse("api-tasks"), headers={"Authorization": f"Token {token}"})
    assert [task["name"] for task in reply.json()] == ["task"]
    assert token not in map(str, AuthToken.objects.values().get().values())
    User.objects.filter(username="ann").update(is_active=False)
    for name in ("ann", "nobody"):
        with pytest.raises(CommandError, match=f"There is no active account '{name}'"):
            call_command("create_token", name)
    assert AuthToken.objects.count() == 1


# --- rerouting


def test_reroute_sends_on_what_has_no_readers_and_counts_it(make_task, person, capsys):
    task = make_task([DISPUTED, ("fr", "fr he", "he"), DISPUTED])
    person("ben", "en")
    call_command("reroute", "task")
    assert capsys.readouterr().out == "Moved: 2 to the queue of the next language, 1 to adjudication.\n"
    ended = [("ADJUDICATION", "fr"), ("QUEUED", "en"), ("QUEUED", "en")]
    assert sorted(task.units.values_list("stage", "language")) == ended
    moves = Transition.objects.count()
    call_command("reroute", "task")
    assert "Moved: 0 to the queue" in capsys.readouterr().out
    assert Transition.objects.count() == moves
    for command in ("reroute", "audit"):
        with pytest.raises(CommandError, match="There is no task 'none'; available: task"):
            call_command(command, "none")


def test_reroute_counts_no_decoy_since_no_adjudicator_sees_it(make_task, capsys):
    task = make_task([DISPUTED] * 3, asked="de", decoys=2)
    call_command("reroute", "task")
    assert capsys.readouterr().out == "Moved: 0 to the queue of the next language, 1 to adjudication.\n"
    assert list(task.units.order_by("position").values_list("stage", flat=True)) == [
        stages.ADJUDICATION,
        stages.DISCARDED,
        stages.DISCARDED,
    ]


def test_reroute_and_export_report_cases_that_no_adjudicator_may_decide(make_task, person, capsys, tmp_path):
    task = make_task([DISPUTED, DISPUTED], rounds=1)
    with_manifest()
    both = person("both", "de", adjudicates=True)
    for warning in (
        "1 post is waiting for an adjudicator who has not read it",
        "2 posts are waiting for .* who has not read them",
    ):
        skip(both, take(both, task).pk)
        for command, options in (("reroute", {}), ("export_gold", {"out": tmp_path / "gold"})):
            call_command(command, "task", **options)
            assert re.search(f"{warning}. Make another person an adjudicator.\n", capsys.readouterr().err)
    person("ada", adjudicates=True)
    call_command("reroute", "task")
    assert capsys.readouterr().err == ""


# --- the audit


@pytest.fixture
def audited(make_task, person):
    """Two of four audited German posts were wrong; the other German posts wait for the end of the audit."""
    task = make_task([AGREED] * 10, audit_least=4, audit_recheck=0, audit_limit=0.6)
    ann, ada = person("ann", "de"), person("ada", adjudicates=True)
    for label in ("fr", "fr", "de", "de"):
        unit = say(ann, task, label)
        if label == "fr":
            settle(ada, unit, label)
    return task


def test_audit_prints_what_was_found_and_contests_what_is_over_the_limit_once(audited, capsys):
    def run(**options):
        call_command("audit", "task", **options)
        return capsys.readouterr().out

    low, high = (f"{100 * end:.1f}" for end in jeffreys(2, 4))
    printed = run()
    assert re.search(rf"^de +German +10 +4 of 4 +50\.0% \[{low}, {high}\]$", printed, re.MULTILINE)
    assert "The detectors agree on 10 posts. People read 4 of these" in printed
    assert "No language with unread posts and a finished audit is over the limit of 60%.\n" in printed
    assert "No post was labelled by a single reader.\n" in printed
    assert "nothing was sent to people" in run(contest=True)
    task = Task.objects.get()
    task.audit_limit = 0.05
    task.save()
    printed = run()
    assert "* de: more than 5% may be wrong\n" in printed
    assert "Over the limit of 5%: de. To have people label these, run `assay audit task --contest`.\n" in printed
    assert run(contest=True) == "Sent to people: 6 of de.\n"
    assert audited.units.filter(stage="QUEUED").count() == 6
    assert "nothing was sent to people" in run(contest=True)


def test_audit_says_where_nothing_was_chosen_and_contests_nothing_there(make_task, capsys):
    task = make_task([AGREED])
    nothing = "Task task: No item was chosen for an audit"
    for options, sentence in (({}, nothing), ({"contest": True}, "nothing was sent to people")):
        call_command("audit", "task", **options)
        assert sentence in capsys.readouterr().out
    assert task.units.get().stage == "AGREED"
    make_task([DISPUTED], name="bare", asked="de")
    call_command("audit", "bare")
    assert capsys.readouterr().out.startswith("Task bare: No decoys are hidden among the posts")


def test_audit_of_a_verification_prints_how_often_readers_said_yes_to_decoys(make_task, person, capsys):
    task = make_task([DISPUTED] * 3, asked="de", decoys=2)
    ann = person("ann", "de")
    call_command("audit", "task")
    assert "hidden among the other posts.\nNo reader has answered a decoy yet.\n" in capsys.readouterr().out
    while lease := take(ann, task):
        judge(ann, lease.pk, Answer("de"))
    call_command("audit", "task")
    output = capsys.readouterr().out
    assert re.search(r"^de +German +2 +2 of 2: 100\.0% \[\d+\.\d, 100\.0\] +–$", output, re.MULTILINE)
    assert "\nReaders answered Yes in 2 of 2 answers to decoys.\n" in output
    with pytest.raises(CommandError, match="Cannot contest labels of task task: none of them come from voters"):
        call_command("audit", "task", "--contest")


# --- the demo


@pytest.fixture
def demo_data(prelabelled, demo_corpus):
    """The demo's corpus, made in advance because it is slow."""
    demo_corpus.delete()


@pytest.fixture
def hasty(monkeypatch):
    """A demo whose annotators judge a few units only."""
    tables, tasks = demo.read_config()
    few = [replace(task, work=min(task.work, 6)) for task in tasks]
    monkeypatch.setattr(demo, "read_config", lambda: (tables, few))
    # Otherwise it would wait for the job to be cancelled.
    monkeypatch.setattr(demo.job_worker, "_exit_if_cancelled", lambda file: None)
    return [task.name for task in few]


@pytest.mark.slow
def test_each_task_of_the_demo_has_answers_cases_a_gold_set_and_a_report(hasty, demo_data, data_dir, client, tmp_path):
    message = demo.prepare(8000)
    assert "Tasks still being created: 8." in client.get("/login/").content.decode()
    demo.build()
    page = client.get("/login/").content.decode()
    assert "still being created" not in page
    password = re.search(r"the password  (\S+)  as", message)[1]
    assert password not in page
    for name in ("anna", "yusuf", "ada", "oliver", "manager"):
        assert client.post("/login/", {"username": name, "password": password}).status_code == 302, name
    assert [task.name for task in Task.objects.order_by("pk")] == hasty
    for task in Task.objects.all():
        stages_of_units = set(task.units.filter(honeypot=False).values_list("stage", flat=True))
        assert stages_of_units >= {"LABELLED", "QUEUED", "ADJUDICATION"}, task
        exported = Job.objects.get(action="export_gold", given__task=task.name)
        check_documents(job_store.folder(exported) / "out", tmp_path / task.name)
        measured = Job.objects.get(action="evaluate", given__gold=[str(job_store.folder(exported) / "out")])
        assert (exported.state, measured.state) == (Job.DONE, Job.DONE), measured.warned
        for address in (f"/tasks/{task.name}/", f"/manage/tasks/{task.name}/", f"/manage/jobs/{measured.pk}/"):
            assert f'href="{address}"' in page
            assert address.startswith("/tasks/") or client.get(address).status_code == 200, address
    # A person is paused, which needs the manager's attention.
    assert set(Pause.objects.values_list("annotator__user__username", flat=True)) == {demo.CARELESS}
    assert Task.objects.get(name="demo-precision").units.exclude(known_answer="").exists()


@pytest.mark.slow
def test_the_demo_goes_on_where_it_was_stopped_and_keeps_what_people_have_done(
    hasty, demo_data, data_dir, client, monkeypatch
):
    answered = iter([False] * 9 + [True])

    def work(*who, really=demo.work):
        if next(answered, True):
            raise KeyboardInterrupt
        really(*who)

    demo.prepare(8000)
    with monkeypatch.context() as stopped:
        stopped.setattr(demo, "work", work)
        with pytest.raises(KeyboardInterrupt):
            demo.build()
    task = Task.objects.get()
    before = task.units.filter(judgments__isnull=False).count()
    anna, yusuf = Annotator.objects.get(user__username="anna"), User.objects.get(username="yusuf")
    judgment = judge(anna, take(anna, task).pk, Answer("de"))
    yusuf.set_password("his own long password")
    yusuf.save()
    anna.languages.filter(language="nl").delete()

    tables, tasks = demo.read_config()
    monkeypatch.setattr(demo, "read_config", lambda: (tables, tasks[:1]))
    for _ in range(2):
        demo.prepare(8000)
        demo.build()
        assert Job.objects.count() == 2
    assert task.units.filter(judgments__isnull=False).count() > before + 1
    assert list(anna.judgments.all()) == [judgment]
    sent = {"username": "yusuf", "password": "his own long password"}
    assert client.post("/login/", sent).status_code == 302
    assert not anna.languages.filter(language="nl").exists()
    assert (data_dir / "demo_password").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("there", [lambda: User.objects.create_user("ann"), lambda: Corpus.objects.create(name="mine")])
def test_the_demo_does_not_stand_among_real_people_and_texts(db, data_dir, there):
    there()
    with pytest.raises(CommandError, match=r"do not belong to a demo.*`ASSAY_DATA_DIR=demo-data assay serve --demo`"):
        demo.prepare(8000)
    assert User.objects.count() + Corpus.objects.count() == 1
    assert list(data_dir.iterdir()) == []


def test_serving_prints_an_address_that_is_answered_and_links_begin_with_it(
    db, data_dir, capsys, monkeypatch, settings
):
    monkeypatch.setattr(serve, "serve", lambda *how: None)
    monkeypatch.setenv(READY, "")

    def printed(**options):
        call_command("serve", **options)
        return capsys.readouterr().out

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert f"Open http://localhost:{port}/welcome/" in printed(port=port)
    monkeypatch.setattr(deployed, "DATA_DIR", data_dir)
    assert deployed.served_address() == f"http://localhost:{port}"
    settings.SITE_ASSUMED = settings.HOSTS_ASSUMED = False
    settings.SITE = "https://assay.example.org"
    assert "Open https://assay.example.org/welcome/" in printed(port=port)
    for hosts in (["assay.example.org", "10.0.0.7"], ["localhost", "x.org"]):
        settings.ALLOWED_HOSTS = hosts[::-1] if "localhost" in hosts else hosts
        assert "Serving" not in printed(host="0.0.0.0", port=0)  # the server prints it as soon as it listens
        assert os.environ[READY].startswith(f"Serving http://{hosts[0]}:0/ with")


def test_a_site_that_would_refuse_everybody_else_is_not_served(db, data_dir, monkeypatch, settings):
    served = []
    monkeypatch.setattr(serve, "serve", lambda *how: served.append(how))
    monkeypatch.setenv(READY, "")
    settings.HOSTS_ASSUMED = True
    for host, named in (("0.0.0.0", "assay.example.org"), ("127.0.0.9", "127.0.0.9")):
        with pytest.raises(CommandError, match=rf"--host {host} requires ASSAY_HOSTS, .*=localhost,{re.escape(named)}"):
            call_command("serve", demo=True, host=host, port=0)
    assert (served, list(data_dir.iterdir())) == ([], [])
    for host in ("localhost", "127.0.0.1"):  # for this machine alone
        call_command("serve", host=host, port=0)
    settings.HOSTS_ASSUMED = False
    call_command("serve", host="0.0.0.0", port=0)
    assert served == [(host, 0, None, 4) for host in ("localhost", "127.0.0.1", "0.0.0.0")]


def test_serving_says_when_its_port_cannot_be_used_and_sets_nothing_up(db, data_dir):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(CommandError, match=rf"Port {port} of 127.0.0.1 cannot be used .* --port 8001"):
            call_command("serve", demo=True, port=port)
    for port in (-1, 65536):
        with pytest.raises(CommandError, match=f"--port is {port}. It must be 0 to 65535."):
            call_command("serve", port=port)
    assert list(data_dir.iterdir()) == []
    assert not User.objects.exists()


# --- settings from the environment


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"DATABASE_URL": "postgresql://x:y@h:port/x"}, r"DATABASE_URL cannot be read"),
        ({"ASSAY_DEBUG": "yes"}, r"ASSAY_DEBUG is 'yes'\. It must be 1 or 0\."),
    ],
)
def test_a_wrong_setting_is_one_sentence_and_no_traceback_unless_somebody_asks_for_it(tmp_path, environment, sentence):
    done = assay(tmp_path, "django", "migrate", **environment)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert re.search(sentence, done.stderr)
    assert done.stderr.count("\n") == 1
    assert not list((tmp_path / DATA).glob("*.sqlite3"))


@pytest.mark.slow
def test_a_slash_at_the_end_of_the_sites_address_is_not_doubled(installed):
    run = assay(installed, "add_manager", "meg", ASSAY_SITE="https://assay.example.org/")
    assert "Log in at https://assay.example.org/ with the password" in run.stdout
