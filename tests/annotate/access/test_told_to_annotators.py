"""What annotators are not told, by page or by API."""

import json
import re

import pytest
from django.test import Client

from annotate.core import stages
from annotate.models import Annotator

pytestmark = pytest.mark.on_sqlite


CLOSED = {"id", "kind", "label", "reason", "comment", "answered_at", "active_seconds", "next"}
PROGRESS = {"answered_today", "skipped_today", "waiting"}
LEASE = {"id", "text", "language", "fields", "asked", "sets", "written", "suggestions", "expires_at"}
TASK = {"name", "title", "type", "labels", "languages", "guidelines", "version", "progress"}
IN_FULL = TASK | {"answers", "vocabulary"}
VOCABULARY = {"name", "version", "least", "most", "beside_broader"}
OFFERED = {"label", "asked", "name", "names", "autonym"}
STANDING = {"language", "state", "version", "guidelines", "tries_left"}
QUESTION = {"id", "number", "of", "fields", "sets"}
ANSWERED = {"accepted", "right", "label", "explanation", "result"}
RESULT = {"kind", "passed", "right", "asked", "needed", "missed"}
FLAGGED = {"kind", "words", "at", "next"}
NEXT = {"lease": LEASE, "why": None}


def test_the_api_tells_exactly_this(world):
    client = world.client("ann")
    *_, task = client.get("/api/v1/tasks/").json()
    assert set(task) == TASK
    assert set(task["progress"]) == set(world.send(client, "GET", "api-progress").json()) == PROGRESS
    task = world.send(client, "GET", "api-task").json()
    assert (set(task), *map(set, task["answers"])) == (IN_FULL, *[OFFERED] * len(world.task.labels), OFFERED)
    given = world.send(client, "POST", "api-next").json()
    assert {key: set(value) if isinstance(value, dict) else None for key, value in given.items()} == NEXT
    assert set(world.send(client, "POST", "api-judge").json()) == CLOSED
    reopened = world.send(client, "POST", "api-undo").json()
    assert {key: set(value) if isinstance(value, dict) else None for key, value in reopened.items()} == NEXT
    path = f"/api/v1/leases/{reopened['lease']['id']}/skip/"
    skipped = client.post(path, {"take_next": True}, content_type="application/json").json()
    assert (set(skipped), set(skipped["next"])) == (CLOSED, set(NEXT))
    path = f"/api/v1/leases/{skipped['next']['lease']['id']}/flag/"
    flagged = client.post(path, {"kind": "disturbing", "take_next": True}, content_type="application/json").json()
    assert (set(flagged), set(flagged["next"])) == (FLAGGED, set(NEXT))
    refused = client.post("/api/v1/leases/0/skip/", content_type="application/json")
    assert set(refused.json()) == {"code", "detail"}
    (standing,) = world.send(client, "GET", "api-qualification").json()
    assert set(standing) == STANDING
    for name in ("api-practise", "api-test"):
        begun = world.send(client, "POST", name).json()
        assert (set(begun), set(begun["question"])) == ({"question", "result"}, QUESTION)
    said = world.send(client, "POST", "api-answer").json()
    assert (set(said), {name for name, value in said.items() if value is not None}) == (ANSWERED, {"accepted"})


ADJUDICATORS = {"Discard", "Dossier", "Judgment", "Move", "OtherPost", "Said", "Settle", "Waiting", "WaitingList"}
MANAGERS = {"Corpus", "Job", "JobProgress", "Output", "TaskState", "Uploaded"}
MANAGERS |= {"Delivery", "Register", "Registered", "Webhook"}


def test_the_schema_names_nothing_else_to_annotators(world):
    schema = json.loads(Client().get("/api/v1/schema/?format=json").text)
    others = ADJUDICATORS | MANAGERS
    paths = {
        path: methods for path, methods in schema["paths"].items() if not re.search("/adjudication|/manage/", path)
    }
    schemas = {name: each for name, each in schema["components"]["schemas"].items() if name not in others}
    text = json.dumps([paths, schemas])
    assert not re.search(f'schemas/({"|".join(others)})"', text)
    assert {name: set(schema["properties"]) for name, schema in schemas.items() if "properties" in schema} == {
        "Answer": {"label", "reason", "comment", "sure", "active_seconds", "take_next"},
        "Answered": ANSWERED,
        "Concept": {"id", "label", "path"},
        "Closed": CLOSED,
        "Flag": {"kind", "words", "active_seconds", "take_next"},
        "Flagged": FLAGGED,
        "Lease": LEASE,
        "Missed": {"fields", "sets", "said", "label", "explanation"},
        "Next": {"lease", "why"},
        "Offered": OFFERED,
        "Progress": PROGRESS,
        "Question": QUESTION,
        "Refusal": {"code", "detail"},
        "Result": RESULT,
        "Skip": {"active_seconds", "take_next"},
        "Standing": STANDING,
        "Task": TASK,
        "TaskInFull": IN_FULL,
        "Trial": {"question", "result"},
        "TrialAnswer": {"label", "sure"},
        "Vocabulary": VOCABULARY,
    }
    assert not re.search("votes|visited|candidate|pseudonym|stage|round|redundancy|detector", text)


def test_no_page_of_an_annotator_names_others_or_anything_of_the_machine(world):
    client = world.client("ann")
    pages = [world.send(client, "GET", name).text for name in ("home", "queue", "answers", "guidelines", "account")]
    pages.append(client.post("/tasks/task/start/", headers={"HX-Request": "true"}).text)
    told = "\n".join(pages)
    assert "a comment of Ann&#x27;s" in told
    assert "Bea" not in told
    for annotator in Annotator.objects.all():
        assert annotator.pseudonym not in told
    for word in (*stages.STAGES, "langid", "cld2", "fasttext", "candidate"):
        assert word not in told, word


def test_no_address_of_a_task_with_a_panel_tells_votes_or_what_the_voters_agree_on(world):
    client, name, told = world.client("ann"), world.voted.name, []
    for _ in range(4):
        told.append(client.post(f"/tasks/{name}/start/", headers={"HX-Request": "true"}))
        told += [client.get(f"/tasks/{name}/{page}") for page in ("", "answers/", "guidelines/", "sheet/")]
        told += [client.get(f"/api/v1/tasks/{page}") for page in ("", f"{name}/", f"{name}/progress/")]
        lease = client.post(f"/api/v1/tasks/{name}/next/")
        told += [lease, client.post(f"/api/v1/leases/{lease.json()['lease']['id']}/judge/", {"label": "0"})]
    told += [client.get(f"/tasks/{name}/adjudication/"), client.get("/history/")]
    seen = "\n".join(page.content.decode() for page in told if page.status_code == 200)
    assert seen.count("the question of de-") > 4
    assert {*world.voted.units.values_list("stage", flat=True)} >= {stages.QUEUED}
    for word in (*stages.STAGES, "a@1", "b@1", "voter", "panel", "agreed", "audit", "disputed", "stratum"):
        assert not re.search(rf"\b{word}\b", seen), word


def test_a_hidden_suggestion_is_told_by_no_address_of_its_task(world):
    client, name = world.client("ann"), world.blind.unit.task.name
    pages = [client.get(f"/tasks/{name}/{page}") for page in ("", "answers/", "guidelines/", "sheet/", "adjudication/")]
    pages += [client.get(f"/api/v1/{page}") for page in (f"tasks/{name}/", f"tasks/{name}/progress/", "tasks/")]
    lease = client.post(f"/api/v1/tasks/{name}/next/").json()["lease"]
    assert (lease["id"], lease["suggestions"]) == (world.blind.pk, [])
    told = "\n".join(page.content.decode() for page in pages if page.status_code == 200)
    assert world.blind.unit.item.fields["question"] in told
    assert not re.search(r"machine@1|Suggested by|class=.suggested", told)
