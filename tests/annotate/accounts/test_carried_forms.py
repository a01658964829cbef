"""A form that is sent after the session has ended: the log-in carries it for its sender alone."""

import re
from html import unescape

import pytest
from django.conf import settings

from annotate.models import Guidelines, Judgment, Lease
from tests.annotate.conftest import DISPUTED

PASSWORD = "a long password"


def fields_of(page):
    """The hidden fields of a page, as its form would send them."""
    found = re.findall(r'<input type="hidden" name="([^"]*)"[^>]* value="([^"]*)"', page.partition("</main>")[0])
    return {name: unescape(value) for name, value in found}


@pytest.fixture
def expired(client, make_task, person):
    """A reader with a unit in hand, whose session has ended."""
    ann = person("ann", "de")
    make_task([DISPUTED] * 2)
    client.force_login(ann.user)
    client.post("/tasks/task/start/", {"read": 1})
    client.get("/tasks/task/")
    del client.cookies[settings.SESSION_COOKIE_NAME]
    return client


def send(client, address, fields):
    """Send a form as a browser does, which follows to the log-in with the form."""
    reply = client.post(address, fields)
    return client.post(reply["Location"], fields) if reply.status_code == 307 else reply


def log_in(client, page, name="ann"):
    return client.post("/login/", {**fields_of(page.text), "username": name, "password": PASSWORD})


def test_it_leads_back_to_the_page_on_which_the_form_stood(client, person, make_task):
    make_task([DISPUTED])
    page = "/manage/tasks/task/guidelines/?language=he"
    told = client.post(
        "/manage/tasks/task/guidelines/add/", {"text": "x"}, headers={"Referer": f"http://testserver{page}"}
    )
    assert told["Location"] == "/login/?next=/manage/tasks/task/guidelines/%3Flanguage%3Dhe"
    htmx = {"HX-Request": "true", "Referer": "http://testserver/tasks/task/"}
    assert client.post("/tasks/task/judge/", {"lease": 1}, headers=htmx)["Location"] == "/login/?next=/tasks/task/"


def test_an_answer_is_carried_through_the_log_in_and_sent_again(expired):
    lease = Lease.objects.get()
    told = send(expired, "/tasks/task/judge/", {"lease": lease.pk, "answer": "de", "comment": "a comment"})
    assert (told.status_code, "Log in" in told.text, Judgment.objects.count()) == (200, True, 0)
    wrong = expired.post("/login/", {**fields_of(told.text), "username": "ann", "password": "wrong"})
    again = log_in(expired, wrong)
    assert "Your session has expired" in again.text
    assert 'action="/tasks/task/judge/"' in again.text
    expired.post("/tasks/task/judge/", fields_of(again.text))
    assert (Judgment.objects.get().label, Judgment.objects.get().comment) == ("de", "a comment")


def test_another_person_is_not_offered_it(expired, person):
    person("bea", "de")
    told = send(expired, "/tasks/task/judge/", {"lease": 1, "comment": "a comment of Ann's"})
    assert "a comment of Ann" not in told.text
    assert log_in(expired, told, "bea")["Location"] == "/tasks/task/"
    assert "a comment of Ann" not in expired.get("/tasks/task/").text


def test_a_stranger_s_form_and_a_forged_one_are_not_carried(client, expired, person):
    told = send(expired, "/tasks/task/judge/", {"comment": "a comment"})
    carried = fields_of(told.text)["carried"]
    forged = {"next": "/", "username": "ann", "password": PASSWORD, "carried": carried[:-3] + "abc"}
    assert expired.post("/login/", forged)["Location"] == "/"
    client.cookies.clear()
    assert client.post("/tasks/task/judge/", {"comment": "a comment"}).status_code == 302
    assert "carried" not in client.post("/login/?form=/tasks/task/judge/", {"comment": "a comment"}).text
    assert "carried" not in expired.post("/login/?form=https://evil.example/", {"comment": "a comment"}).text


def test_neither_passwords_nor_tokens_nor_what_is_too_large_are_carried(expired):
    secret = {"old_password": "secret one", "new_password1": "secret two", "csrfmiddlewaretoken": "x" * 64}
    told = send(expired, "/account/password/", {**secret, "other": "1"})
    again = log_in(expired, told).text
    assert "secret" not in again
    assert {"old_password", "new_password1"}.isdisjoint(fields_of(again))
    del expired.cookies[settings.SESSION_COOKIE_NAME]
    assert expired.post("/account/password/", secret).status_code == 302
    assert expired.post("/tasks/task/judge/", {"comment": "x" * (1 << 20)}).status_code == 302


def test_new_guidelines_are_carried(client, manager, make_task):
    make_task([DISPUTED])
    client.force_login(manager)
    client.get("/manage/tasks/task/guidelines/")
    del client.cookies[settings.SESSION_COOKIE_NAME]
    typed = {"language": "en", "text": 'Read <better>.\nAnd "so" on.', "change": "minor", "after": ""}
    typed["after"] = str(Guidelines.objects.get().pk)
    told = send(client, "/manage/tasks/task/guidelines/add/", typed)
    again = log_in(client, told, "manager")
    client.post("/manage/tasks/task/guidelines/add/", fields_of(again.text))
    assert Guidelines.objects.order_by("-pk")[0].text == typed["text"]
