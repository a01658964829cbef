"""The log-in: wrong passwords and their addresses, forms carried through it, and API tokens."""

import re
from datetime import timedelta
from html import unescape

import pytest
from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth.hashers import MD5PasswordHasher
from django.core.management import CommandError
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone
from knox.models import AuthToken

from annotate.actions.registry import call_command
from annotate.models import Guidelines, Judgment, Lease
from annotate.pages.api_access import address_of
from annotate.work import accounts
from annotate.work.people_file import Row
from tests.annotate.accounts.acts import ELSEWHERE, HERE, NEW, OLD, PAGES, is_in, log_in, tasks_by, type_wrong_passwords
from tests.annotate.acts import signed_in
from tests.annotate.conftest import DISPUTED

# --- wrong passwords


@pytest.mark.parametrize("page", PAGES)
def test_after_five_wrong_passwords_the_right_one_is_refused(manager, page):
    replies = type_wrong_passwords("manager", 12, page=page)
    assert [reply.status_code for reply in replies] == [200] * 4 + [429] * 8
    client = Client()
    assert log_in("manager", OLD, client, page=page).status_code == 429
    assert not is_in(client)


def test_the_page_states_the_wait_which_ends_after_half_an_hour_however_often_somebody_tries(ann):
    page = type_wrong_passwords("ann")[-1]
    for sentence in ("Too many wrong passwords", "You can try again in 30 minutes.", "manager for a new invite link"):
        assert sentence in page.text
    assert 29 * 60 < int(page["Retry-After"]) <= 30 * 60
    assert "no-store" in page["Cache-Control"]
    begun = timezone.now() - timedelta(minutes=20)
    AccessAttempt.objects.update(attempt_time=begun)
    assert "You can try again in 10 minutes." in type_wrong_passwords("ann")[-1].text
    assert AccessAttempt.objects.get().attempt_time == begun
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=29, seconds=30))
    assert "You can try again in 1 minute." in log_in("ann", OLD).text
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=31))
    client = Client()
    assert log_in("ann", OLD, client).status_code == 302
    assert is_in(client)


def test_whoever_guesses_from_elsewhere_keeps_nobody_out(ann, person):
    person("bea", "de")
    type_wrong_passwords("ann", address=ELSEWHERE)
    assert log_in("ann", OLD, address=ELSEWHERE).status_code == 429
    assert log_in("ann", OLD).status_code == 302
    assert log_in("bea", OLD, address=ELSEWHERE).status_code == 302


def test_the_right_password_forgets_the_wrong_ones_of_its_own_name_alone(ann, person):
    person("bea", "de")
    type_wrong_passwords("ann", 4)
    type_wrong_passwords("bea", 4)
    log_in("ann", OLD)
    assert [attempt.username for attempt in AccessAttempt.objects.all()] == ["bea"]
    assert type_wrong_passwords("ann", 4)[-1].status_code == 200
    assert log_in("bea", "wrong").status_code == 429


def test_another_browser_or_another_spelling_of_the_name_is_no_way_round(person):
    person("Zoé", "fr")
    for number, name in enumerate(["Zoé", "Ｚoe\u0301", " Zoé", "Zoé", "Zoé"]):
        Client(headers={"User-Agent": str(number)}).post("/login/", {"username": name, "password": "wrong"})
    assert Client().post("/login/", {"username": "Zoé", "password": OLD}).status_code == 429


@pytest.fixture
def names(person):
    """The names of an annotator, of one locked out, of one without a password, and of nobody."""
    person("ann7", "de")
    accounts.set_active([person("out7", "de")], False)
    accounts.add_annotators([Row("invited7", "", {"de": 5})])
    return ("ann7", "out7", "invited7", "nobody7")


def test_a_name_that_exists_and_one_that_does_not_get_the_same_answer_for_as_much_hashing(names, monkeypatch):
    hashed = []
    encode = MD5PasswordHasher.encode
    monkeypatch.setattr(MD5PasswordHasher, "encode", lambda self, *how: hashed.append(how) or encode(self, *how))
    for number in range(6):
        replies = set()
        for name in names:
            hashed.clear()
            reply = log_in(name, "wrong")
            text = re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", reply.text)
            replies.add((reply.status_code, text.replace(name, "NAME"), len(hashed)))
        assert len(replies) == 1, number
        assert number or len(hashed) == 1


def test_nothing_that_was_typed_as_a_password_is_kept_and_nothing_is_kept_for_long(ann, person):
    person("bea", "de")
    type_wrong_passwords("bea", 2)
    sent = {"old_password": "nearly right", "new_password1": NEW, "new_password2": NEW}
    signed_in(ann).post(reverse("password"), sent, REMOTE_ADDR=HERE)
    attempts = str(list(AccessAttempt.objects.values()))
    assert AccessAttempt.objects.count() == 2
    for typed in ("wrong 0", "wrong 1", "nearly right", NEW):
        assert typed not in attempts
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=31))
    log_in("ann", OLD)
    assert not AccessAttempt.objects.exists()


# --- from which address


@pytest.mark.parametrize(
    ("proxies", "forwarded", "expected"),
    [
        (0, "203.0.113.5", HERE),  # anybody can send the header
        (1, "203.0.113.5", "203.0.113.5"),
        (1, "10.9.8.7, 203.0.113.5", "203.0.113.5"),
        (2, "10.9.8.7, 203.0.113.5, 192.0.2.9", "203.0.113.5"),
        (1, None, HERE),
        (1, "made up", None),
        (1, "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        (1, "2001:db8:1:2:ffff::1", "2001:db8:1:2::"),
        (1, "::ffff:203.0.113.5", "203.0.113.5"),
    ],
)
def test_the_address_is_what_the_outermost_proxy_saw(settings, proxies, forwarded, expected):
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"NUM_PROXIES": proxies}
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    assert address_of(RequestFactory().get("/", headers=headers, REMOTE_ADDR=HERE)) == expected


def test_behind_a_local_socket_there_is_no_address_and_wrong_passwords_count_all_the_same(ann):
    assert type_wrong_passwords("ann", address="")[-1].status_code == 429
    assert log_in("ann", OLD, address="").status_code == 429


def test_behind_a_proxy_each_browser_has_its_own_address(ann, settings):
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"NUM_PROXIES": 1}
    for number in range(5):
        # The browser's own value comes before the proxy's.
        headers = {"X-Forwarded-For": f"10.0.0.{number}, {ELSEWHERE}"}
        Client(headers=headers).post("/login/", {"username": "ann", "password": "wrong"})
    sent = {"username": "ann", "password": OLD}
    assert Client(headers={"X-Forwarded-For": ELSEWHERE}).post("/login/", sent).status_code == 429
    assert Client(headers={"X-Forwarded-For": HERE}).post("/login/", sent).status_code == 302


# --- the command


def test_unlock_lets_somebody_log_in_at_once_unless_a_manager_locked_them_out(ann, person, capsys):
    type_wrong_passwords("ann")
    call_command("unlock", "ann")
    assert capsys.readouterr().out == "ann can log in again; 5 wrong passwords cleared.\n"
    assert log_in("ann", OLD).status_code == 302
    call_command("unlock", "ann")
    assert capsys.readouterr().out.startswith("ann was not locked: there were no wrong passwords")
    accounts.set_active([person("out", "de")], False)
    call_command("unlock", "out")
    assert "A manager has locked the account of out. To unlock it, use the page People." in capsys.readouterr().err
    with pytest.raises(CommandError, match=r"^There is no account 'nobody'\.$"):
        call_command("unlock", "nobody")


# --- tokens of the API


def test_a_token_is_shown_once_and_works_for_ninety_days_and_its_owner_alone_renews_and_revokes_it(ann, person):
    client = signed_in(ann)
    [key] = re.findall("[0-9a-f]{64}", client.post(reverse("account"), {"make": "1"}).text)
    token = AuthToken.objects.get()
    assert key not in {str(value) for value in vars(token).values()}
    assert len(token.token_key) < len(key) / 2 < len(token.digest)  # only its first part is shown
    assert timedelta(days=89) < token.expiry - timezone.now() <= timedelta(days=90)
    renew = {"renew": token.token_key}
    page = client.get(reverse("account")).text
    assert (f"{token.expiry:%Y-%m-%d}" in page, key in page) == (True, False)
    assert "A token is valid for 90 days" in page
    soon = timezone.now() + timedelta(days=1)
    other = signed_in(person("bea", "de"))
    other.post(reverse("account"), {"revoke": token.token_key})
    for sender, is_renewed in ((other, False), (client, True)):
        AuthToken.objects.update(expiry=soon)
        sender.post(reverse("account"), renew)
        token.refresh_from_db()
        assert (token.expiry > soon, tasks_by(key)) == (is_renewed, 200)
    AuthToken.objects.update(expiry=timezone.now() - timedelta(seconds=1))
    page = client.get(reverse("account")).text
    assert ("expired" in page, 'name="renew"' in page) == (True, False)
    client.post(reverse("account"), renew)
    assert tasks_by(key) == 401
    client.post(reverse("account"), {"revoke": token.token_key})
    assert not AuthToken.objects.exists()


# --- a form that is sent after the session has ended: the log-in carries it for its sender alone


def fields_of(page):
    """The hidden fields of a page, as its form would send them."""
    fields = re.findall(r'<input type="hidden" name="([^"]*)"[^>]* value="([^"]*)"', page.partition("</main>")[0])
    return {name: unescape(value) for name, value in fields}


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
    """Send a form as a browser does, which follows the redirect to the log-in with the form."""
    reply = client.post(address, fields)
    return client.post(reply["Location"], fields) if reply.status_code == 307 else reply


def log_in_from(client, page, name="ann"):
    return client.post("/login/", {**fields_of(page.text), "username": name, "password": OLD})


def test_it_leads_back_to_the_page_on_which_the_form_stood(client, person, make_task):
    make_task([DISPUTED])
    page = "/manage/tasks/task/guidelines/?language=he"
    reply = client.post(
        "/manage/tasks/task/guidelines/add/", {"text": "x"}, headers={"Referer": f"http://testserver{page}"}
    )
    assert reply["Location"] == "/login/?next=/manage/tasks/task/guidelines/%3Flanguage%3Dhe"
    htmx = {"HX-Request": "true", "Referer": "http://testserver/tasks/task/"}
    assert client.post("/tasks/task/judge/", {"lease": 1}, headers=htmx)["Location"] == "/login/?next=/tasks/task/"


def test_an_answer_is_carried_through_the_log_in_and_sent_again(expired):
    lease = Lease.objects.get()
    reply = send(expired, "/tasks/task/judge/", {"lease": lease.pk, "answer": "de", "comment": "a comment"})
    assert (reply.status_code, "Log in" in reply.text, Judgment.objects.count()) == (200, True, 0)
    wrong = expired.post("/login/", {**fields_of(reply.text), "username": "ann", "password": "wrong"})
    again = log_in_from(expired, wrong)
    assert "Your session has expired" in again.text
    assert 'action="/tasks/task/judge/"' in again.text
    expired.post("/tasks/task/judge/", fields_of(again.text))
    assert (Judgment.objects.get().label, Judgment.objects.get().comment) == ("de", "a comment")


def test_another_person_is_not_offered_it(expired, person):
    person("bea", "de")
    reply = send(expired, "/tasks/task/judge/", {"lease": 1, "comment": "a comment of Ann's"})
    assert "a comment of Ann" not in reply.text
    assert log_in_from(expired, reply, "bea")["Location"] == "/tasks/task/"
    assert "a comment of Ann" not in expired.get("/tasks/task/").text


def test_a_stranger_s_form_and_a_forged_one_are_not_carried(client, expired, person):
    reply = send(expired, "/tasks/task/judge/", {"comment": "a comment"})
    carried = fields_of(reply.text)["carried"]
    forged = {"next": "/", "username": "ann", "password": OLD, "carried": carried[:-3] + "abc"}
    assert expired.post("/login/", forged)["Location"] == "/"
    client.cookies.clear()
    assert client.post("/tasks/task/judge/", {"comment": "a comment"}).status_code == 302
    assert "carried" not in client.post("/login/?form=/tasks/task/judge/", {"comment": "a comment"}).text
    assert "carried" not in expired.post("/login/?form=https://evil.example/", {"comment": "a comment"}).text


def test_neither_passwords_nor_tokens_nor_what_is_too_large_are_carried(expired):
    secret = {"old_password": "secret one", "new_password1": "secret two", "csrfmiddlewaretoken": "x" * 64}
    reply = send(expired, "/account/password/", {**secret, "other": "1"})
    again = log_in_from(expired, reply).text
    assert "secret" not in again
    assert {"old_password", "new_password1"}.isdisjoint(fields_of(again))
    del expired.cookies[settings.SESSION_COOKIE_NAME]
    assert expired.post("/account/password/", secret).status_code == 302
    assert expired.post("/tasks/task/judge/", {"comment": "x" * (1 << 20)}).status_code == 302


def test_new_guidelines_are_carried(desk, manager, make_task):
    make_task([DISPUTED])
    desk.get("/manage/tasks/task/guidelines/")
    del desk.cookies[settings.SESSION_COOKIE_NAME]
    typed = {"language": "en", "text": 'Read <better>.\nAnd "so" on.', "change": "minor", "after": ""}
    typed["after"] = str(Guidelines.objects.get().pk)
    reply = send(desk, "/manage/tasks/task/guidelines/add/", typed)
    again = log_in_from(desk, reply, "manager")
    desk.post("/manage/tasks/task/guidelines/add/", fields_of(again.text))
    assert Guidelines.objects.order_by("-pk")[0].text == typed["text"]
