"""Every address of the site, asked for by every kind of person."""

import re
from html import unescape
from urllib.parse import quote

import pytest
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, get_resolver
from knox.models import AuthToken

from annotate.work import permit
from tests.annotate.access.addresses import ADMIN, API, OTHERS, PAGES, PICKERS, WHO

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
        name: (asked[place], posted[place]) for name, (asked, posted) in (PAGES | API).items()
    }


def test_only_who_has_an_item_may_use_its_concept_picker(world):
    assert {name: world.statuses(name, "POST") for name in PICKERS} == PICKERS


@pytest.mark.slow
@pytest.mark.parametrize("who", OTHERS)
def test_what_staff_with_some_rights_a_withdrawn_reader_and_paused_people_may_ask_for(world, who):
    model, but_for = OTHERS[who]
    otherwise = {}
    for name, (asked, posted) in (PAGES | API).items():
        statuses = (*world.statuses(name, "GET", [who]), *world.statuses(name, "POST", [who]))
        if statuses != (asked[WHO.index(model)], posted[WHO.index(model)]):
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
            told = world.told(who, method, name)
            assert told.text.count("<h1>") == 1, (method, name)
            assert told.headers["Allow"], (method, name)
            ways = re.findall(r'<a (?:class="primary" )?href="([^"]*)"', told.text.partition("<h1>")[2])
            assert "/" in ways, (method, name)
            with transaction.atomic():
                for way in ways:
                    led = client.get(unescape(way))
                    assert led.status_code in (200, 302, 403, 404), (method, name, way)
                    if led.streaming:
                        b"".join(led.streaming_content)  # at its end the file is closed
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
    got, asked = {}, {}
    for name in (*PAGES, *API):
        with transaction.atomic():
            answer = world.send(world.client(who), "HEAD", name)
            transaction.set_rollback(True)
        asked[name] = (answer.status_code, answer.getvalue())
        got[name] = (world.told(who, "GET", name).status, b"")
    assert asked == got


def test_options_tell_by_one_header_which_methods_an_address_of_the_api_takes(world):
    for who in (*WHO, *OTHERS):
        client = world.client(who)
        for name, (asked, posted) in API.items():
            answer = client.options(world.address(name))
            if who == "nobody" and asked[0] == 401:
                assert (answer.status_code, answer.json()["code"]) == (401, "not_authenticated"), name
                continue
            takes = {method for method, ann in (("GET", asked[2]), ("POST", posted[2])) if ann != 405}
            told = set(answer["Allow"].split(", ")) - {"OPTIONS", "HEAD"}
            assert (answer.status_code, answer.content, told) == (200, b"", takes), (who, name)


def test_the_admin_is_the_managers(world):
    assert {name: world.statuses(name, "GET") for name in ADMIN} == ADMIN


OPEN = (
    *("login", "tongue", "logout", "invite", "shared", "first-manager", "forgotten", "reset"),
    *("docs", "docs-page", "docs-file", "favicon.ico"),
)


def test_nobody_is_sent_to_the_login_and_back(world):
    for name in set(PAGES).difference(OPEN):
        reply = world.told("nobody", "GET", name)
        assert reply.headers["Location"] == f"/login/?next={quote(world.address(name))}", name


@pytest.mark.parametrize(
    "who", ["ann", *(pytest.param(who, marks=pytest.mark.slow) for who in WHO[1:] if who != "ann")]
)
def test_a_token_opens_what_a_session_opens(world, who):
    client = Client(headers={"Authorization": f"Token {AuthToken.objects.create(world.who[who])[1]}"})
    for name, (asked, posted) in API.items():
        with transaction.atomic():
            statuses = tuple(world.send(client, method, name).status_code for method in ("GET", "POST"))
            assert statuses == (asked[WHO.index(who)], posted[WHO.index(who)]), name
            transaction.set_rollback(True)


def test_a_paused_adjudicator_is_told_so_and_led_to_no_adjudication(world):
    client = world.client("kit")
    assert permit.PAUSED in world.send(client, "GET", "adjudication").text
    assert "/adjudication/" not in client.get("/").text
