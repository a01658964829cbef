"""Jobs that managers start in the browser: separate processes run them one by one and survive kills."""

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from annotate.actions import job_worker
from annotate.actions.action import ActionError
from annotate.actions.registry import by_name
from annotate.controls import agreement_audit as contesting
from annotate.core import stages
from annotate.core.refusals import WrongStage
from annotate.models import Job
from annotate.work import job_store
from corpora.storage.layout import manifest_of
from tests.annotate.acts import say, settle
from tests.annotate.api.test_http_load import database_url
from tests.annotate.conftest import AGREED
from tests.together import HANGS, until

pytestmark = pytest.mark.slow


POSTS = django_settings.BASE_DIR / "fixtures" / "demo_posts.jsonl"


@pytest.fixture
def installed(transactional_db, data_dir, monkeypatch):
    """Child processes use the same installation."""
    monkeypatch.setenv("DATABASE_URL", database_url())
    # On SQLite, other processes see only committed data.
    return data_dir


def importing(corpus="july", **options):
    return job_worker.start(
        "import_corpus", {"corpus": corpus, "files": [str(POSTS)], "licence": "CC-BY-4.0", **options}
    )


def worker():
    return subprocess.Popen(
        job_worker.assay_command("work", "--until-done"), env=job_worker.environment(), stdin=subprocess.DEVNULL
    )


def state(job):
    job.refresh_from_db()
    return job.state


def long_file(folder, rows=150_000):
    """A file whose import takes a while."""
    path = folder / "long.jsonl"
    with path.open("w") as file:
        file.writelines(
            f'{{"id": "{number}", "text": "a text of some length, number {number}"}}\n' for number in range(rows)
        )
    return path


def progress_of(job):
    return job_store.progress(job)["done"]


@pytest.fixture
def running(installed, tmp_path):
    """Yield a running job, its worker and its process. Ends those still running."""
    job = importing(files=[str(long_file(tmp_path))])
    ours = worker()
    until(lambda: progress_of(job) > 0)
    theirs = int((job_store.folder(job) / "pid").read_text())
    yield job, ours, theirs
    for process in (ours.pid, theirs):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    ours.wait()


def begun_again(job):
    """The same file with fewer rows, so that the import is short."""
    long_file(Path(job.given["files"][0]).parent, rows=10)
    again = job_worker.start(job.action, job.given)
    assert worker().wait(HANGS) == 0
    return state(again), again.data["accepted"]


def test_jobs_run_in_the_order_of_their_requests_and_report_like_their_commands(installed):
    done, refused, last = jobs = [importing(), importing("secret", column=["text=secret"]), importing("last")]
    assert (state(done), done.corpus) == (Job.WAITING, "july")
    assert worker().wait(HANGS) == 0
    assert [state(job) for job in jobs] == [Job.DONE, Job.FAILED, Job.DONE]
    assert list(Job.objects.order_by("began_at")) == jobs
    for job in (done, last):
        sentence = f"Corpus {job.corpus}: 1,525 posts from 1 new file; 0 duplicates dropped, 0 rows rejected."
        assert (job.said, job.data["accepted"], manifest_of(job.corpus).rows) == ([sentence], 1525, 1525)
    assert "secret" in refused.warned[0]


def test_two_jobs_of_one_corpus_wait_for_each_other_and_another_corpus_does_not_wait(installed):
    first, second, other = importing("one"), importing("one"), importing("two")
    job, lock = job_store.claim()
    with lock:
        assert job == first
        other_job, other_lock = job_store.claim()
        with other_lock:
            assert other_job == other
            assert job_store.claim() is None
    assert state(second) == Job.WAITING


def test_with_two_workers_each_job_runs_once(installed):
    jobs = [importing(name) for name in ("one", "two", "one")]
    workers = [worker(), worker()]
    assert [process.wait(HANGS) for process in workers] == [0, 0]
    assert [state(job) for job in jobs] == [Job.DONE] * 3
    assert jobs[2].said == ["Corpus one: no new files; it contains 1,525 posts."]


def test_the_database_refuses_two_running_jobs_of_one_corpus_and_impossible_times(db):
    now = timezone.now()
    Job.objects.create(action="prelabel", corpus="one", state=Job.RUNNING, began_at=now)
    for wrong in (
        {"corpus": "one", "state": Job.RUNNING, "began_at": now},
        {"state": Job.RUNNING},
        {"state": Job.DONE, "began_at": now},
        {"state": Job.WAITING, "ended_at": now},
        {"state": "half done"},
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            Job.objects.create(action="prelabel", **wrong)
    Job.objects.create(action="evaluate", state=Job.RUNNING, began_at=now)
    Job.objects.create(action="evaluate", state=Job.RUNNING, began_at=now)


def test_a_waiting_job_is_cancelled_at_once(installed):
    job = importing()
    job_store.cancel(job)
    assert (state(job), job.began_at) == (Job.CANCELLED, None)
    assert job_store.claim() is None


def test_a_running_job_is_cancelled_as_a_command_is_stopped_and_can_be_begun_again(running):
    job, ours, _ = running
    job_store.cancel(job)
    assert ours.wait(HANGS) == 0
    assert state(job) == Job.CANCELLED
    assert job.warned == [job_store.STOPPED]
    assert not (job_store.folder(job).parents[1] / "corpora" / "july").exists()
    assert begun_again(job) == (Job.DONE, 10)


def test_what_has_ended_is_not_cancelled_and_what_has_not_is_not_removed(db, data_dir):
    job = importing()
    with pytest.raises(WrongStage, match="has not ended"):
        job_store.remove(job)
    now = timezone.now()
    Job.objects.update(state=Job.DONE, began_at=now, ended_at=now)
    job.refresh_from_db()
    with pytest.raises(WrongStage, match="has already ended"):
        job_store.cancel(job)
    job_store.remove(job)
    assert (list(Job.objects.all()), job_store.folder(job).exists()) == ([], False)


def test_a_job_whose_process_is_killed_has_failed_and_the_next_one_runs(running):
    job, ours, theirs = running
    other = importing("other")
    os.kill(theirs, signal.SIGKILL)
    assert ours.wait(HANGS) == 0
    assert (state(job), job.warned) == (Job.FAILED, [job_store.KILLED])
    assert state(other) == Job.DONE


def test_where_the_worker_is_killed_the_job_goes_on_and_the_next_worker_writes_down_how_it_ended(running):
    job, ours, _ = running
    ours.kill()
    ours.wait()
    assert state(job) == Job.RUNNING
    assert worker().wait(HANGS) == 0
    assert (state(job), job.data["accepted"]) == (Job.DONE, 150_000)


def test_where_both_are_killed_the_next_worker_says_so_and_nothing_is_half_made(running):
    job, ours, theirs = running
    os.kill(theirs, signal.SIGKILL)
    ours.kill()
    ours.wait()
    assert begun_again(job) == (Job.DONE, 10)
    assert (state(job), job.warned) == (Job.FAILED, [job_store.KILLED])
    assert manifest_of("july").rows == 10


def test_a_worker_that_is_stopped_stops_its_job_and_says_so(running):
    job, ours, _ = running
    ours.terminate()
    ours.wait()
    assert state(job) == Job.FAILED
    assert "Stopped by SIGTERM" in job.warned[0]


@pytest.mark.parametrize(
    ("name", "options", "command"),
    [
        ("prelabel", {"corpus": "july", "again": True}, "assay prelabel july --again"),
        (
            "import_corpus",
            {"corpus": "july", "files": ["a b.csv", "c.csv"], "licence": "own", "text_may_leave": False},
            "assay import_corpus july 'a b.csv' c.csv --licence own --text-stays",
        ),
        ("delete", {"task": "language"}, "assay delete language --yes"),
        (
            "open_task",
            {"name": "n", "labels": "de en", "guidelines": ["a.md", "b.md"], "seed": "7"},
            "assay open_task n --seed 7 --labels 'de en' --guidelines a.md b.md",
        ),
    ],
)
def test_a_job_has_the_command_that_does_the_same(name, options, command):
    assert job_worker.command_of(by_name()[name], options) == command


# --- what an answer begins


@pytest.fixture
def failed(make_task, person, monkeypatch):
    """A task of which a language has just failed its audit, with more posts than an answer sends to people itself."""
    monkeypatch.setattr(contesting, "AT_ONCE", 5)
    ann, ada = person("ann", "de fr"), person("ada", adjudicates=True)
    task = make_task([AGREED] * 10, audit_least=2, audit_recheck=0, audit_limit=0.3)
    for unit in [say(ann, task, "fr"), say(ann, task, "fr")]:
        settle(ada, unit, "fr")
    return task


def test_where_an_answer_would_send_thousands_to_people_a_job_does(failed):
    job = Job.objects.get()
    assert (job.action, job.given, job.corpus, job.by) == ("audit", {"task": "task", "contest": True}, "corpus", None)
    assert failed.units.filter(stage=stages.AGREED).count() == 8
    outcome = by_name()[job.action].perform(job.given)
    assert outcome.data["contested"] == {"de": 8}
    assert not failed.units.filter(stage=stages.AGREED).exists()


def test_until_that_is_done_the_set_is_not_exported(failed, data_dir):
    with pytest.raises(ActionError, match=r"An audit of task has failed, .* \(job \d+\)\."):
        by_name()["export_gold"].perform({"task": "task", "out": str(data_dir / "gold")})
    assert not (data_dir / "gold").exists()
