"""Forms, headers, cookies, tokens, browser caches, and what annotators must not learn."""

import json
import re
from functools import cache

import pytest
from django.apps import apps
from django.contrib.staticfiles import finders
from django.db import transaction
from django.test import Client
from knox.models import AuthToken

from annotate.core import stages
from annotate.kinds.forms import FORMS as FORMS_OF_ANSWERS
from annotate.models import Annotator, Judgment
from annotate.work import accounts
from deploy import static_files
from tests.annotate.access.addresses import ADMIN, API, FORMS, OF_NOBODY, PAGES, WHO
from tests.annotate.accounts.acts import tasks_by

pytestmark = pytest.mark.on_sqlite


def test_a_form_without_the_token_against_forged_requests_is_refused(world):
    forms = {name: "ada" if name.startswith(("adjudicate", "unsettle")) else "ann" for name in FORMS}
    forms |= {name: "manager" for name in FORMS if name.startswith("manage-")}
    forms |= dict.fromkeys(OF_NOBODY, "nobody")
    for name, who in forms.items():
        answer = world.send(world.client(who, enforce_csrf_checks=True), "POST", name)
        assert answer.status_code == 403, name
        assert re.search('<a class="primary" href="/[^"]*">Reload the page</a>', answer.text), name
    assert not Judgment.objects.filter(unit=world.waiting, kind="settle").exists()


def test_the_api_with_a_session_asks_for_that_token_too(world):
    tried = set()
    for who in ("ann", "ada", "manager"):
        client = world.client(who, enforce_csrf_checks=True)
        for name, (_, posted) in API.items():
            if posted[WHO.index(who)] not in (403, 405):
                assert world.send(client, "POST", name).status_code == 403, (who, name)
                tried.add(name)
    assert tried == {name for name, (_, posted) in API.items() if set(posted[1:]) != {405}}


def policy(headers):
    parts = (part.split() for part in headers["Content-Security-Policy"].split(";"))
    return {name: set(sources) for name, *sources in parts}


@pytest.mark.slow
def test_every_answer_forbids_scripts_of_others_and_is_kept_by_no_browser_or_proxy(world):
    """Only visitors' browsers may cache the documentation, and they must revalidate it."""
    public = {"docs", "docs-page", "docs-file"}
    for who in WHO:
        for name in (*PAGES, *API, *ADMIN):
            for method in ("GET", "POST"):
                headers = world.response(who, method, name).headers
                directives = {part.strip() for part in headers["Cache-Control"].split(",")}
                if who == "nobody" and name in public and method == "GET":
                    assert directives == {"no-cache"}, name
                else:
                    assert {"no-store", "private"} <= directives, (who, method, name)
            rules = policy(world.response(who, "GET", name).headers)
            if name == "shared" or (name, who) == ("manage-job-file", "manager"):  # a document has no script or form
                assert rules["default-src"] == {"'none'"}
                assert "sandbox" in rules
                continue
            assert rules["default-src"] == {"'self'"}, name
            assert rules.get("script-src", {"'self'"}) == {"'self'"}, name
            assert rules["form-action"] == rules.get("connect-src", {"'self'"}) == {"'self'"}, name
            assert (rules["object-src"], rules["frame-ancestors"]) == ({"'none'"}, {"'none'"}), name
            relaxed = {"'self'", "'unsafe-inline'"} if name == "api-docs" else {"'self'"}
            assert rules.get("style-src", {"'self'"}) == relaxed, name


@pytest.mark.slow
def test_no_page_has_a_script_or_a_style_in_it(world):
    for name in (*PAGES, *API):
        page = world.response("ada", "GET", name).text
        scripts = re.findall(r"<script(?![^>]*\bsrc=)[^>]*>", page)
        assert scripts == [], name
        assert not re.search(r"<[^>]+\son[a-z]+=", page), name
        if name not in ("api-docs", "shared"):  # a shared report has its style in itself, and a policy of its own
            assert not re.search(r"<style|<[^>]+\sstyle=", page), name
    assert "<script" in world.response("ada", "GET", "queue").text


def test_the_session_cookie_is_for_the_server_alone(world, settings):
    answer = Client().post("/login/", {"username": "ann", "password": "a long password"})
    cookie = answer.cookies["sessionid"]
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")
    assert settings.SESSION_COOKIE_SECURE == settings.CSRF_COOKIE_SECURE == settings.HTTPS


def test_who_is_locked_out_is_out_at_once(world):
    client, (_, token) = world.client("ann"), AuthToken.objects.create(world.who["ann"])
    accounts.set_active(Annotator.objects.filter(user=world.who["ann"]), False)
    assert client.get("/").url == "/login/?next=/"
    assert world.send(client, "POST", "judge").url.startswith("/login/")
    assert world.send(client, "POST", "api-judge").status_code == 401
    assert tasks_by(token) == 401
    again = Client().post("/login/", {"username": "ann", "password": "a long password"})
    assert again.status_code == 200


# --- forms without fields, and forms sent after the session has ended


# Buttons without fields: the URL names the action and its object.
BUTTONS = {
    *("logout", "start", "pause", "undo", "sheet-start", "qualification-practice", "qualification-test"),
    *("reply-read", "note-read", "unsettle", "manage-lift", "manage-route-remove", "manage-export"),
    *("manage-job-cancel", "manage-job-again", "manage-job-remove", "manage-job-withdraw"),
    *("manage-webhook-delete", "manage-delivery-again"),
    *("api-next", "api-undo", "api-skip", "api-release", "api-practise", "api-test", "api-unsettle"),
    *("api-upload", "api-start-in-task", "api-job-cancel", "api-webhook-delete", "api-delivery-again"),
}
OF_THE_SERVER = ("sessions.session", "axes.accessattempt", "axes.accesslog", "axes.accessfailurelog")


def rows():
    models = [model for model in apps.get_models() if model._meta.label_lower not in OF_THE_SERVER]
    return {model._meta.label: sorted(model.objects.values_list(), key=repr) for model in models}


@pytest.mark.slow
@pytest.mark.parametrize("who", [*WHO[1:], "clerk"])
def test_a_form_without_fields_changes_nothing_unless_its_address_says_what_is_to_be_done(world, who):
    client, changed = world.client(who), {}
    before = rows()
    for name in sorted({*PAGES, *API} - BUTTONS):
        json = {"content_type": "application/json"} if name.startswith("api-") else {}
        with transaction.atomic():
            answer = client.post(world.address(name), {}, **json)
            if answer.status_code not in (403, 404, 405):
                after = rows()
                if tables := [label for label in before if before[label] != after[label]]:
                    changed[name] = (answer.status_code, tables)
            transaction.set_rollback(True)
    assert changed == {}


@pytest.mark.slow
def test_the_log_in_never_leads_to_an_address_that_only_takes_forms(world):
    for name in FORMS:
        address = f"http://testserver{world.address(name)}"
        for headers in ({}, {"Referer": address}, {"Referer": "https://evil.example/"}):
            reply = world.client("nobody", headers=headers).post(world.address(name), {"a": "b"})
            assert reply.status_code == 302, name
            [back] = re.findall(r"^/login/\?next=(.*)$", reply["Location"])
            statuses = {world.client(who).get(back).status_code for who in ("ann", "ada", "manager")}
            assert statuses & {200, 302}, (name, back)
            assert 405 not in statuses, (name, back)


# --- what a page weighs

MOST_KB = 45  # compressed size of the styles and scripts of a page


@pytest.mark.parametrize("people", [["ann"], pytest.param(["ann", "ada", "manager"], marks=pytest.mark.slow)], ids=len)
def test_no_page_loads_more_styles_and_scripts_than_a_slow_line_brings_at_once(world, people):
    weight_of = cache(lambda file: len(static_files.compressed(finders.find(file), 0)))
    weights = {}
    texts = {(who, name): world.response(who, "GET", name).text for who in people for name in PAGES}
    texts["nobody", "docs"] = world.response("nobody", "GET", "docs").text
    texts["ann", "concepts"] = world.client("ann").get("/tasks/acts/").text
    for page, text in texts.items():
        files = {"".join(match) for match in re.findall(r'/static/([^"]+)\.[0-9a-f]{12}(\.(?:css|js))"', text)}
        weights[page] = sum(map(weight_of, files))
    for name, form in FORMS_OF_ANSWERS.items():
        weights["ann", name] = weights["ann", "queue"] + sum(map(weight_of, form.assets))
    assert {page: weight for page, weight in weights.items() if weight > MOST_KB * 1024} == {}
    assert weights["ann", "concepts"] > weights["ann", "queue"] > weights["ann", "history"] > 0


# --- what annotators are not told, by page or by API


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
    reply = world.send(client, "POST", "api-next").json()
    assert {key: set(value) if isinstance(value, dict) else None for key, value in reply.items()} == NEXT
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
    reply = world.send(client, "POST", "api-answer").json()
    assert (set(reply), {name for name, value in reply.items() if value is not None}) == (ANSWERED, {"accepted"})


ADJUDICATORS = {"Discard", "Dossier", "Judgment", "Move", "OtherPost", "Said", "Settle", "Waiting", "WaitingList"}
MANAGERS = {"Corpus", "Job", "JobProgress", "Output", "TaskState", "Uploaded"}
MANAGERS |= {"Delivery", "Register", "Registered", "Webhook"}


def test_the_schema_names_nothing_else_to_annotators(world):
    schema = json.loads(Client().get("/api/v1/schema/?format=json").text)
    others = ADJUDICATORS | MANAGERS
    paths = {
        path: methods for path, methods in schema["paths"].items() if not re.search("/adjudication|/manage/", path)
    }
    schemas = {name: description for name, description in schema["components"]["schemas"].items() if name not in others}
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
    text = "\n".join(pages)
    assert "a comment of Ann&#x27;s" in text
    assert "Bea" not in text
    for annotator in Annotator.objects.all():
        assert annotator.pseudonym not in text
    for word in (*stages.STAGES, "langid", "cld2", "fasttext", "candidate"):
        assert word not in text, word
