"""Every address of the site while all tasks are for their members only, asked for by people who are no members."""

import re

import pytest
from django.db import transaction
from django.urls import reverse

from annotate.models import Annotator, Job, Lease, Membership, Task
from annotate.work import job_store, membership
from corpora.models import Item
from tests.annotate.access.addresses import API, PAGES, WHO

pytestmark = pytest.mark.on_sqlite

OUTSIDERS = ("ann", "bea", "ada", "pat", "kit")
# Names of addresses whose arguments name a lease or a question instead of a task.
BY_LEASE = {"api-judge", "api-skip", "api-flag", "api-answer"}
# Statuses that give nothing away.
REFUSED = {403, 404, 405}


@pytest.fixture
def closed_circle(world):
    """The world, whose tasks are now for their members, of whom there are none."""
    Task.objects.update(members_only=True)
    return world


def of_a_task(world, name):
    named = world.arguments.get(name, [])
    tasks = set(Task.objects.values_list("name", flat=True))
    return name in BY_LEASE or (bool(tasks & set(map(str, named))) and not name.startswith("manage"))


def answers(world, who, names=(*PAGES, *API)):
    """What a person is answered at addresses, as (name, method, response) tuples."""
    for name in names:
        for method in ("GET", "POST"):
            client = world.signed_in(who)
            with transaction.atomic():
                yield name, method, world.send(client, method, name)
                transaction.set_rollback(True)


def beginnings():
    return {text[:40] for text in Item.objects.values_list("text", flat=True) if len(text) > 20}


@pytest.mark.slow
@pytest.mark.parametrize("who", OUTSIDERS)
def test_no_address_gives_an_outsider_an_item_a_guideline_or_a_unit(closed_circle, who):
    leases, texts, tried = Lease.objects.count(), beginnings(), set()
    for name, method, response in answers(closed_circle, who):
        page = "" if response.streaming else response.text
        assert not [text for text in texts if text in page], (name, method)
        if of_a_task(closed_circle, name):
            assert response.status_code in REFUSED, (name, method, response.status_code)
            tried.add(name)
    assert Lease.objects.count() == leases
    assert {"queue", "start", "judge", "sheet", "guidelines", "consent", "adjudicate", "change"} <= tried
    assert {"api-next", "api-task", "api-dossier", "api-judge", "api-answer", "api-undo"} <= tried


@pytest.mark.parametrize("who", OUTSIDERS)
def test_the_home_page_and_the_list_of_the_api_name_no_task_of_others(closed_circle, who):
    client = closed_circle.client(who)
    assert client.get(reverse("api-tasks")).json() == []
    assert '<article class="task' not in client.get("/").text


@pytest.mark.slow
def test_members_are_answered_as_if_the_task_were_for_everybody(closed_circle):
    for task in Task.objects.all():
        for name, role in (("ann", "annotator"), ("ada", "adjudicator")):
            membership.add(task, [Annotator.objects.get(user__username=name)], role=role)
    for who in ("ann", "ada"):
        for name, method, response in answers(closed_circle, who):
            if of_a_task(closed_circle, name):
                asked, posted = (PAGES | API)[name]
                expected = (asked if method == "GET" else posted)[WHO.index(who)]
                assert response.status_code == expected, (who, name, method)


def test_an_adjudicator_of_the_account_who_is_an_annotator_here_sees_no_case(world):
    membership.add(world.task, [Annotator.objects.get(user__username="ada")], role=Membership.ANNOTATOR)
    client = world.client("ada")
    for name in ("adjudication", "adjudicate", "api-adjudication", "api-dossier"):
        assert world.send(client, "GET", name).status_code == 403, name
    assert not re.search(r"/tasks/task/adjudication/", client.get("/").text)


# --- managers of one task

# What starts a job other than an export is for managers of all tasks.
STARTED = {"manage-extend"}
# The job of the world is about its task.
JOBS = {"manage-job", "manage-job-packed", "manage-job-file"}


def test_a_manager_of_one_task_sees_and_manages_that_task_alone(world):
    membership.add(world.task, [Annotator.objects.get(user__username="bea")], role=Membership.MANAGER)
    own = {
        name for name in PAGES if name.startswith("manage") and world.arguments.get(name, [""])[0] == world.task.name
    }
    assert {"manage-task", "manage-people", "manage-members", "manage-export", "manage-task-jobs"} <= own
    own = own - STARTED | JOBS
    for name, method, response in answers(world, "bea", [name for name in PAGES if name.startswith("manage")]):
        asked, posted = PAGES[name]
        as_manager = (asked if method == "GET" else posted)[WHO.index("manager")]
        expected = as_manager if name in own else 405 if as_manager == 405 else 403
        assert response.status_code == expected, (name, method)
    for other in Task.objects.exclude(pk=world.task.pk):
        assert world.client("bea").get(f"/manage/tasks/{other.name}/").status_code == 403


def test_a_manager_of_one_task_exports_it_and_sees_its_jobs_alone(world):
    membership.add(world.task, [Annotator.objects.get(user__username="bea")], role=Membership.MANAGER)
    client, other = world.client("bea"), Task.objects.get(name="crowd")
    page = client.get(reverse("manage-task", args=["task"])).text
    assert f'method="post" action="{reverse("manage-export", args=["task"])}"' in page
    assert reverse("manage-extend", args=["task"]) not in page
    assert client.post(reverse("manage-export", args=["task"]), {"task": other.name}).status_code == 302
    export = Job.objects.filter(action="export_gold").get()
    assert (export.given["task"], export.by.username) == ("task", "bea")
    page = client.get(reverse("manage-job", args=[export.pk])).text
    for act in ("cancel", "again", "remove", "share"):
        assert reverse(f"manage-job-{act}", args=[export.pk]) not in page
        assert client.post(reverse(f"manage-job-{act}", args=[export.pk])).status_code == 403
    foreign = [
        job_store.begin("export_gold", {"task": other.name}, corpus="", by=None),
        job_store.begin("extend_task", {"name": other.name}, corpus="", by=None),
        job_store.begin("prelabel", {"corpus": "july"}, corpus="july", by=None),
    ]
    listed = client.get(reverse("manage-task-jobs", args=["task"])).text
    assert reverse("manage-job", args=[export.pk]) in listed
    for job in foreign:
        assert reverse("manage-job", args=[job.pk]) not in listed
        assert client.get(reverse("manage-job", args=[job.pk])).status_code == 403
    assert client.get(reverse("manage-job", args=[0])).status_code == 403


def test_a_manager_of_one_task_receives_no_items_of_it_and_chooses_no_other_manager(world):
    bea = Annotator.objects.get(user__username="bea")
    membership.add(world.task, [bea], role=Membership.MANAGER)
    client = world.client("bea")
    assert reverse("manage-task", args=["task"]) in client.get("/").text
    client.post(reverse("start", args=["task"]))
    assert not Lease.objects.filter(annotator=bea, closed_at=None, unit__task=world.task).exists()
    ann = Annotator.objects.get(user__username="ann")
    fields = {"do": "add", "person": ann.pk, "role": "manager"}
    assert client.post(reverse("manage-members", args=["task"]), fields).status_code == 403
    assert client.post(reverse("manage-members", args=["task"]), fields | {"role": "annotator"}).status_code == 302
    assert client.post(reverse("manage-members", args=["task"]), fields | {"person": bea.pk}).status_code == 403
