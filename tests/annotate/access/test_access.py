"""Every URL of the site, requested by every kind of person, and by people who are not members of its tasks."""

import re
from html import unescape
from urllib.parse import quote

import pytest
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse
from knox.models import AuthToken

from annotate.models import Annotator, Job, Lease, Membership, Task
from annotate.work import job_store, membership, permit
from corpora.models import Item
from tests.annotate.access.addresses import API, OTHERS, PAGES, PICKERS, WHO

pytestmark = pytest.mark.on_sqlite


def addresses(patterns):
    for pattern in patterns:
        if isinstance(pattern, URLPattern):
            yield pattern.name or str(pattern.pattern)
        elif pattern.namespace != "admin":
            yield from addresses(pattern.url_patterns)


def test_the_tables_have_every_address():
    assert sorted(addresses(get_resolver().url_patterns)) == sorted([*PAGES, *API])


@pytest.mark.parametrize("who", WHO)
def test_who_may_ask_for_what(world, who):
    place, names = WHO.index(who), [*PAGES, *API]
    assert {name: (*world.statuses(name, "GET", [who]), *world.statuses(name, "POST", [who])) for name in names} == {
        name: (fetched[place], posted[place]) for name, (fetched, posted) in (PAGES | API).items()
    }


def test_only_who_has_an_item_may_use_its_concept_picker(world):
    assert {name: world.statuses(name, "POST") for name in PICKERS} == PICKERS


@pytest.mark.slow
@pytest.mark.parametrize("who", OTHERS)
def test_what_staff_with_some_rights_a_withdrawn_reader_and_paused_people_may_ask_for(world, who):
    model, but_for = OTHERS[who]
    otherwise = {}
    for name, (fetched, posted) in (PAGES | API).items():
        statuses = (*world.statuses(name, "GET", [who]), *world.statuses(name, "POST", [who]))
        if statuses != (fetched[WHO.index(model)], posted[WHO.index(model)]):
            otherwise[name] = statuses
    assert otherwise == but_for


@pytest.mark.slow
@pytest.mark.parametrize("who", WHO)
def test_a_method_that_an_address_does_not_take_is_answered_by_a_page_with_a_way_back(world, who):
    client, tried = world.client(who), set()
    for name, statuses in PAGES.items():
        for method, by_who in zip(("GET", "POST"), statuses, strict=True):
            if by_who[WHO.index(who)] != 405:
                continue
            response = world.response(who, method, name)
            assert response.text.count("<h1>") == 1, (method, name)
            assert response.headers["Allow"], (method, name)
            ways = re.findall(r'<a (?:class="primary" )?href="([^"]*)"', response.text.partition("<h1>")[2])
            assert "/" in ways, (method, name)
            with transaction.atomic():
                for way in ways:
                    target = client.get(unescape(way))
                    assert target.status_code in (200, 302, 403, 404), (method, name, way)
                    if target.streaming:
                        b"".join(target.streaming_content)  # at its end the file is closed
                transaction.set_rollback(True)
            tried.add(method)
    assert tried == {"GET", "POST"}


def test_the_page_to_which_an_address_belongs_is_named_and_options_stay_without_a_body(world):
    client = world.client("manager")
    for method, address, way in (
        ("GET", "/manage/tasks/task/guidelines/preview/", "/manage/tasks/task/guidelines/"),
        ("POST", "/manage/people/", "/manage/people/"),
        ("PUT", "/tasks/task/", "/tasks/task/"),
    ):
        answer = client.generic(method, address)
        assert (answer.status_code, f'<a class="primary" href="{way}">' in answer.text) == (405, True), address
    options = client.options("/manage/tasks/task/guidelines/preview/")
    assert (options.status_code, options["Allow"], options.content) == (405, "POST", b"")


@pytest.mark.slow
@pytest.mark.parametrize("who", WHO)
def test_head_is_answered_wherever_get_is_with_no_body(world, who):
    of_get, of_head = {}, {}
    for name in (*PAGES, *API):
        with transaction.atomic():
            answer = world.send(world.client(who), "HEAD", name)
            transaction.set_rollback(True)
        of_head[name] = (answer.status_code, answer.getvalue())
        of_get[name] = (world.response(who, "GET", name).status, b"")
    assert of_head == of_get


def test_options_tell_by_one_header_which_methods_an_address_of_the_api_takes(world):
    for who in (*WHO, *OTHERS):
        client = world.client(who)
        for name, (fetched, posted) in API.items():
            answer = client.options(world.address(name))
            if who == "nobody" and fetched[0] == 401:
                assert (answer.status_code, answer.json()["code"]) == (401, "not_authenticated"), name
                continue
            takes = {method for method, ann in (("GET", fetched[2]), ("POST", posted[2])) if ann != 405}
            allowed = set(answer["Allow"].split(", ")) - {"OPTIONS", "HEAD"}
            assert (answer.status_code, answer.content, allowed) == (200, b"", takes), (who, name)


OPEN = (
    *("login", "tongue", "logout", "invite", "shared", "first-manager", "forgotten", "reset"),
    *("docs", "docs-page", "docs-file", "favicon.ico"),
)


def test_nobody_is_sent_to_the_login_and_back(world):
    for name in set(PAGES).difference(OPEN):
        reply = world.response("nobody", "GET", name)
        assert reply.headers["Location"] == f"/login/?next={quote(world.address(name))}", name


@pytest.mark.parametrize(
    "who", ["ann", *(pytest.param(who, marks=pytest.mark.slow) for who in WHO[1:] if who != "ann")]
)
def test_a_token_opens_what_a_session_opens(world, who):
    client = Client(headers={"Authorization": f"Token {AuthToken.objects.create(world.who[who])[1]}"})
    for name, (fetched, posted) in API.items():
        with transaction.atomic():
            statuses = tuple(world.send(client, method, name).status_code for method in ("GET", "POST"))
            assert statuses == (fetched[WHO.index(who)], posted[WHO.index(who)]), name
            transaction.set_rollback(True)


def test_a_paused_adjudicator_is_told_so_and_led_to_no_adjudication(world):
    client = world.client("kit")
    assert permit.PAUSED in world.send(client, "GET", "adjudication").text
    assert "/adjudication/" not in client.get("/").text


# --- while all tasks are for their members only, asked for by people who are no members


OUTSIDERS = ("ann", "bea", "ada", "pat", "kit")
# Names of addresses whose arguments name a lease or a question instead of a task.
BY_LEASE = {"api-judge", "api-skip", "api-flag", "api-answer"}
# Statuses that reveal nothing.
REFUSED = {403, 404, 405}


@pytest.fixture
def closed_circle(world):
    """The world with tasks for members only, and no members."""
    Task.objects.update(members_only=True)
    return world


def of_a_task(world, name):
    named = world.arguments.get(name, [])
    tasks = set(Task.objects.values_list("name", flat=True))
    return name in BY_LEASE or (bool(tasks & set(map(str, named))) and not name.startswith("manage"))


def answers(world, who, names=(*PAGES, *API)):
    """Yield the responses to a person at addresses, as (name, method, response)."""
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
                fetched, posted = (PAGES | API)[name]
                expected = (fetched if method == "GET" else posted)[WHO.index(who)]
                assert response.status_code == expected, (who, name, method)


def test_an_adjudicator_of_the_account_who_is_an_annotator_here_sees_no_case(world):
    membership.add(world.task, [Annotator.objects.get(user__username="ada")], role=Membership.ANNOTATOR)
    client = world.client("ada")
    for name in ("adjudication", "adjudicate", "api-adjudication", "api-dossier"):
        assert world.send(client, "GET", name).status_code == 403, name
    assert not re.search(r"/tasks/task/adjudication/", client.get("/").text)


# --- managers of one task


@pytest.fixture
def managed(world):
    """The world with Bea as manager of the task."""
    membership.add(world.task, [Annotator.objects.get(user__username="bea")], role=Membership.MANAGER)
    return world


# What starts a job other than an export is for managers of all tasks.
STARTED = {"manage-extend"}
# The job of the world is about its task.
JOBS = {"manage-job", "manage-job-packed", "manage-job-file"}


def test_a_manager_of_one_task_sees_and_manages_that_task_alone(managed):
    pages = [name for name in PAGES if name.startswith("manage")]
    pages_of_task = {name for name in pages if managed.arguments.get(name, [""])[0] == managed.task.name}
    assert {"manage-task", "manage-people", "manage-members", "manage-export", "manage-task-jobs"} <= pages_of_task
    pages_of_task = pages_of_task - STARTED | JOBS
    for name, method, response in answers(managed, "bea", pages):
        fetched, posted = PAGES[name]
        as_manager = (fetched if method == "GET" else posted)[WHO.index("manager")]
        expected = as_manager if name in pages_of_task else 405 if as_manager == 405 else 403
        assert response.status_code == expected, (name, method)
    for other in Task.objects.exclude(pk=managed.task.pk):
        assert managed.client("bea").get(f"/manage/tasks/{other.name}/").status_code == 403


def test_a_manager_of_one_task_exports_it_and_sees_its_jobs_alone(managed):
    client, other = managed.client("bea"), Task.objects.get(name="crowd")
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


def test_a_manager_of_one_task_receives_no_items_of_it_and_chooses_no_other_manager(managed):
    client, bea = managed.client("bea"), Annotator.objects.get(user__username="bea")
    assert reverse("manage-task", args=["task"]) in client.get("/").text
    client.post(reverse("start", args=["task"]))
    assert not Lease.objects.filter(annotator=bea, closed_at=None, unit__task=managed.task).exists()
    ann = Annotator.objects.get(user__username="ann")
    fields = {"do": "add", "person": ann.pk, "role": "manager"}
    assert client.post(reverse("manage-members", args=["task"]), fields).status_code == 403
    assert client.post(reverse("manage-members", args=["task"]), fields | {"role": "annotator"}).status_code == 302
    assert client.post(reverse("manage-members", args=["task"]), fields | {"person": bea.pk}).status_code == 403
