"""The steps of a set-up: the next step, depending on what exists, and how to resume a set-up."""

import os
import time

import pytest
from django.urls import reverse
from django.utils import timezone

from annotate.actions.action import ActionError
from annotate.actions.registry import by_name
from annotate.core import stages
from annotate.kinds.interface_language import label_name
from annotate.manager_pages import inbox, setup_steps
from annotate.models import Annotator, Job
from annotate.work import job_store
from tests.annotate.acts import words
from tests.annotate.conftest import AGREED, DISPUTED

ROWS = b'{"id": "1", "text": "Where does the train leave?"}\n{"id": "2", "text": "Das weiss ich nicht mehr."}\n'
FIRST = reverse("manage")
TIMES = {"began_at": timezone.now(), "ended_at": timezone.now()}


@pytest.fixture
def desk(desk, data_dir):
    return desk


def file(name="posts.jsonl"):
    path = inbox.folder() / name
    path.write_bytes(ROWS)
    return path


def imported(**options):
    arguments = {"corpus": "july", "files": [str(file())], "licence": "CC0-1.0", **options}
    return arguments, by_name()["import_corpus"].perform(arguments)


def finished(action, arguments, **fields):
    return Job.objects.create(**{"action": action, "given": arguments, "state": Job.DONE, **TIMES, **fields})


def polled(desk, job):
    """Return the response to a running job's page that asks for its progress."""
    return desk.get(reverse("manage-job", args=[job.pk]), headers={"HX-Request": "true"})


def test_an_empty_installation_shows_the_five_steps_and_the_first_of_them(desk):
    page = desk.get(FIRST)
    for step in ("File", "Columns and rights", "Detectors", "Question and sample", "People"):
        assert f"<b>{step}</b>" in page.text
    assert f'action="{reverse("manage-new-corpus")}" enctype="multipart/form-data"' in page.text
    assert 'name="upload-file" aria-label="File" required> <button class="primary">Upload</button>' in page.text
    assert "Continue setup" not in words(page)


@pytest.mark.slow
def test_an_import_can_have_the_detectors_label_the_posts_in_the_same_job(desk):
    _, outcome = imported(prelabel=True)
    assert [sentence.partition(":")[2][:12] for sentence in outcome.said] == [" 2 posts fro", " 2 posts hav"]
    assert outcome.data["votes"]["posts"] == 2
    with pytest.raises(ActionError, match="--prelabel applies only to posts"):
        imported(corpus="ads", fields="text", language="en", prelabel=True)


def test_the_columns_are_a_finished_step_only_if_the_corpus_exists(desk):
    arguments = {"corpus": "july", "files": [str(file())], "licence": "CC0-1.0"}
    job = finished("import_corpus", arguments, corpus="july", state=Job.FAILED)
    assert [step.title for step in setup_steps.steps_of_job(job) if step.is_done] == ["File"]
    imported()
    assert [step.title for step in setup_steps.steps_of_job(job) if step.is_done] == ["File", "Columns and rights"]


def test_a_dry_run_and_a_failed_job_stay_where_they_are(desk, make_task):
    make_task([DISPUTED], name="t")
    tried = finished("open_task", {"name": "t", "dry_run": True})
    failed = finished("open_task", {"name": "t"}, state=Job.FAILED)
    opened = finished("open_task", {"name": "t"}, said=["Task t: 1 post drawn.", "1\n2"])
    for job in (tried, failed):
        assert "HX-Redirect" not in polled(desk, job)
    assert polled(desk, opened)["HX-Redirect"] == f"{reverse('manage-new-accounts')}?task=t"
    assert 'aria-current="step"' not in desk.get(reverse("manage-job", args=[tried.pk])).text


@pytest.mark.slow
def test_a_set_up_that_was_left_is_gone_on_with_from_the_first_page(desk, person, make_task):
    def goes_on():
        page = desk.get(FIRST).text
        return page.partition('class="go-on"')[2].partition("</ul>")[0]

    path = file()
    assert f"{reverse('manage-new-corpus')}?file=posts.jsonl" in goes_on()
    arguments, _ = imported()
    os.utime(path, (time.time() - 60,) * 2)
    job = job_store.begin("import_corpus", arguments, corpus="july")
    assert reverse("manage-job", args=[job.pk]) in goes_on()
    Job.objects.update(state=Job.DONE, **TIMES)
    assert "Label with detectors" in goes_on()
    by_name()["prelabel"].perform({"corpus": "july"})
    assert "Choose a question" in goes_on()
    assert goes_on().count("<li>") == 1
    make_task([DISPUTED], name="unread")
    assert f"{reverse('manage-new-accounts')}?task=unread" in goes_on()
    person("ann", "de en fr nl")
    assert "unread" not in goes_on()


def test_a_corpus_is_called_as_its_file_and_never_as_another_corpus(desk):
    file("July posts (final).jsonl")
    page = reverse("manage-new-corpus")
    assert 'name="corpus" value="july-posts-final"' in desk.get(page, {"file": "July posts (final).jsonl"}).text
    imported()
    file("july.jsonl")
    assert 'name="corpus" value="july-2"' in desk.get(page, {"file": "july.jsonl"}).text


# --- people


def inviting(desk, **fields):
    return desk.post(f"{reverse('manage-new-accounts')}?task=t", fields, follow=True)


@pytest.fixture
def waiting(make_task):
    return make_task([DISPUTED, DISPUTED, AGREED], name="t")


def test_people_are_invited_to_a_task_by_its_languages_and_the_work_is_shared(desk, waiting, person):
    page = desk.get(reverse("manage-new-accounts"), {"task": "t"})
    codes = set(waiting.units.filter(stage=stages.QUEUED).values_list("language", flat=True))
    [code] = codes
    assert f'name="language" value="{label_name(code)}"' in page.text  # the only one with work
    links = inviting(desk, people="ann, Ann Lee\nbea\n", language=code, level="5")
    assert links.text.count('value="http://testserver/invite/') == 2
    assert '<button class="primary">I have sent them</button>' in links.text
    assert desk.post(reverse("manage-links"))["Location"] == reverse("manage-task", args=["t"])
    ann = Annotator.objects.get(user__username="ann")
    assert (ann.user.get_full_name(), {row.language: row.level for row in ann.languages.all()}) == (
        "Ann Lee",
        dict.fromkeys(codes, 5),
    )
    row = waiting.units.filter(stage=stages.QUEUED).count()
    assert f"{row} {row} 2 {row / 2:.0f}" in words(desk.get(reverse("manage-new-accounts"), {"task": "t"}))


def test_people_are_asked_to_make_an_adjudicator_if_items_will_wait_for_one(desk, make_task, person):
    make_task([AGREED] * 20, name="t", audit_share=1.0, audit_recheck=1.0)
    page = desk.get(reverse("manage-new-accounts"), {"task": "t"})
    assert "20 items will need an adjudicator, but there is none." in words(page)
    assert f'<a href="{reverse("manage-people", args=["t"])}">Add an adjudicator</a>' in page.text
    person("ada", "de", adjudicates=True)
    assert "will need an adjudicator" not in words(desk.get(reverse("manage-new-accounts"), {"task": "t"}))
