"""Forms, headers, cookies and tokens, and what browsers keep of pages."""

import re
from functools import cache

import pytest
from django.apps import apps
from django.contrib.staticfiles import finders
from django.db import transaction
from django.test import Client
from knox.models import AuthToken

from annotate.kinds.forms import FORMS as FORMS_OF_ANSWERS
from annotate.models import Annotator, Judgment
from annotate.work import accounts
from deploy import static_files
from tests.annotate.access.addresses import ADMIN, API, FORMS, PAGES, WHO
from tests.annotate.accounts.acts import tasks_by

pytestmark = pytest.mark.on_sqlite


def test_a_form_without_the_token_against_forged_requests_is_refused(world):
    forms = {name: "ada" if name.startswith(("adjudicate", "unsettle")) else "ann" for name in FORMS}
    forms |= {name: "manager" for name in FORMS if name.startswith("manage-")}
    forms |= dict.fromkeys(("login", "tongue", "invite", "first-manager", "forgotten", "reset"), "nobody")
    takes_posts = {name for name, (_, posted) in PAGES.items() if set(posted[1:]) != {405}} - {"favicon.ico"}
    assert set(forms) == takes_posts
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
    """Only the documentation may be kept, and only by browsers of visitors, who ask whether it has changed."""
    public = {"docs", "docs-page", "docs-file"}
    for who in WHO:
        for name in (*PAGES, *API, *ADMIN):
            for method in ("GET", "POST"):
                headers = world.told(who, method, name).headers
                kept = {part.strip() for part in headers["Cache-Control"].split(",")}
                if who == "nobody" and name in public and method == "GET":
                    assert kept == {"no-cache"}, name
                else:
                    assert {"no-store", "private"} <= kept, (who, method, name)
            rules = policy(world.told(who, "GET", name).headers)
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
        page = world.told("ada", "GET", name).text
        scripts = re.findall(r"<script(?![^>]*\bsrc=)[^>]*>", page)
        assert scripts == [], name
        assert not re.search(r"<[^>]+\son[a-z]+=", page), name
        if name not in ("api-docs", "shared"):  # a shared report has its style in itself, and a policy of its own
            assert not re.search(r"<style|<[^>]+\sstyle=", page), name
    assert "<script" in world.told("ada", "GET", "queue").text


def test_the_session_cookie_is_for_the_server_alone(world, settings):
    answer = Client().post("/login/", {"username": "ann", "password": "a long password"})
    cookie = answer.cookies["sessionid"]
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")
    assert settings.SESSION_COOKIE_SECURE == settings.CSRF_COOKIE_SECURE == settings.HTTPS


def test_tokens_are_stored_as_hashes_shown_once_and_revoked_by_their_owner_alone(world):
    client = world.client("ann")
    page = client.post("/account/", {"make": "1"})
    token = re.search(r"<code>(\w{40,})</code>", page.text)[1]
    stored = AuthToken.objects.get(token_key=token[:15])
    assert token not in {str(value) for value in vars(stored).values()}
    assert stored.token_key == token[: len(stored.token_key)]
    assert len(stored.token_key) < len(token) / 2 < len(stored.digest)
    assert token not in client.get("/account/").text
    world.client("bea").post("/account/", {"revoke": stored.token_key})
    assert tasks_by(token) == 200
    client.post("/account/", {"revoke": stored.token_key})
    assert tasks_by(token) == 401


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


# Buttons without fields: the address names the act and what it is done to.
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
        own = f"http://testserver{world.address(name)}"
        for headers in ({}, {"Referer": own}, {"Referer": "https://evil.example/"}):
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
    texts = {(who, name): world.told(who, "GET", name).text for who in people for name in PAGES}
    texts["nobody", "docs"] = world.told("nobody", "GET", "docs").text
    texts["ann", "concepts"] = world.client("ann").get("/tasks/acts/").text
    for page, text in texts.items():
        files = {"".join(match) for match in re.findall(r'/static/([^"]+)\.[0-9a-f]{12}(\.(?:css|js))"', text)}
        weights[page] = sum(map(weight_of, files))
    for name, form in FORMS_OF_ANSWERS.items():
        weights["ann", name] = weights["ann", "queue"] + sum(map(weight_of, form.assets))
    assert {page: weight for page, weight in weights.items() if weight > MOST_KB * 1024} == {}
    assert weights["ann", "concepts"] > weights["ann", "queue"] > weights["ann", "history"] > 0
