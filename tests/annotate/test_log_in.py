"""The log-in: wrong passwords, what a password must be, changing and forgetting one, and what a new one ends."""

import re
import threading
from datetime import timedelta
from importlib import import_module

import pytest
from axes.models import AccessAttempt
from django.apps import apps
from django.contrib.auth.hashers import MD5PasswordHasher
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core import mail
from django.core.cache import cache
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.management import CommandError, call_command
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone
from knox.models import AuthToken

from annotate.pages.addresses import address_of
from annotate.work import accounts
from annotate.work.people_file import Row
from deploy.settings import mail_server, whole_number
from tests.together import HANGS

OLD, NEW = "a long password", "quite another long one"
HERE, ELSEWHERE = "192.0.2.1", "198.51.100.7"
PAGES = ("login", "admin:login")


def log_in(name, password, client=None, address=HERE, page="login"):
    sent = {"username": name, "password": password}
    return (client or Client()).post(reverse(page), sent, REMOTE_ADDR=address)


def is_in(client):
    return "_auth_user_id" in client.session


def type_wrong_passwords(name, count=5, **where):
    return [log_in(name, f"wrong {number}", **where) for number in range(count)]


def tasks_by(token):
    return Client().get("/api/v1/tasks/", headers={"Authorization": f"Token {token}"}).status_code


@pytest.fixture
def ann(person):
    return person("ann", "de").user


# --- wrong passwords


@pytest.mark.parametrize("page", PAGES)
def test_after_sixty_wrong_passwords_the_right_one_is_refused(manager, page):
    replies = type_wrong_passwords("manager", 60, page=page)
    assert [reply.status_code for reply in replies] == [200] * 4 + [429] * 56
    client = Client()
    assert log_in("manager", OLD, client, page=page).status_code == 429
    assert not is_in(client)


def test_the_page_says_how_long_to_wait_and_what_to_do(ann):
    told = type_wrong_passwords("ann")[-1]
    assert "Too many wrong passwords" in told.text
    assert "In 30 minutes you can try again." in told.text
    assert "ask your manager for a new invite link" in told.text
    assert 29 * 60 < int(told["Retry-After"]) <= 30 * 60
    assert "no-store" in told["Cache-Control"]
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=29, seconds=30))
    assert "In 1 minute you can try again." in log_in("ann", OLD).text


def test_trying_on_makes_nobody_wait_longer(ann):
    type_wrong_passwords("ann")
    begun = timezone.now() - timedelta(minutes=20)
    AccessAttempt.objects.update(attempt_time=begun)
    assert "In 10 minutes you can try again." in type_wrong_passwords("ann")[-1].text
    assert AccessAttempt.objects.get().attempt_time == begun


def test_after_half_an_hour_the_right_password_opens_again(ann):
    type_wrong_passwords("ann")
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
    assert [each.username for each in AccessAttempt.objects.all()] == ["bea"]
    assert type_wrong_passwords("ann", 4)[-1].status_code == 200
    assert log_in("bea", "wrong").status_code == 429


def test_another_browser_or_another_spelling_of_the_name_is_no_way_round(person):
    person("Zoé", "fr")
    for number, name in enumerate(["Zoé", "Ｚoe\u0301", " Zoé", "Zoé", "Zoé"]):
        Client(headers={"User-Agent": str(number)}).post("/login/", {"username": name, "password": "wrong"})
    assert Client().post("/login/", {"username": "Zoé", "password": OLD}).status_code == 429


@pytest.fixture
def names(person):
    """Of an annotator, of one who is locked out, of one who has set no password yet, and of nobody."""
    person("ann7", "de")
    accounts.set_active([person("out7", "de")], False)
    accounts.add_annotators([Row("invited7", "", {"de": 5})])
    return ("ann7", "out7", "invited7", "nobody7")


def test_a_name_that_exists_and_one_that_does_not_are_answered_alike(names):
    for number in range(6):
        told = set()
        for name in names:
            reply = log_in(name, "wrong")
            text = re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", reply.text)
            told.add((reply.status_code, text.replace(name, "NAME")))
        assert len(told) == 1, number


def test_a_name_that_does_not_exist_costs_as_much_hashing_as_one_that_does(names, monkeypatch):
    hashed = []
    encode = MD5PasswordHasher.encode

    def counted(self, *arguments):
        hashed.append(arguments)
        return encode(self, *arguments)

    monkeypatch.setattr(MD5PasswordHasher, "encode", counted)
    counts = {}
    for name in names:
        hashed.clear()
        log_in(name, "wrong")
        counts[name] = len(hashed)
    assert set(counts.values()) == {1}, counts


def test_nothing_that_was_typed_as_a_password_is_kept_and_nothing_is_kept_for_long(ann, person):
    person("bea", "de")
    client = Client()
    client.force_login(ann)
    type_wrong_passwords("bea", 2)
    sent = {"old_password": "nearly right", "new_password1": NEW, "new_password2": NEW}
    client.post(reverse("password"), sent, REMOTE_ADDR=HERE)
    kept = str(list(AccessAttempt.objects.values()))
    assert AccessAttempt.objects.count() == 2
    for typed in ("wrong 0", "wrong 1", "nearly right", NEW):
        assert typed not in kept
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=31))
    log_in("ann", OLD)
    assert not AccessAttempt.objects.exists()


# --- from which address


@pytest.mark.parametrize(
    ("proxies", "forwarded", "found"),
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
def test_the_address_is_what_the_outermost_proxy_saw(settings, proxies, forwarded, found):
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"NUM_PROXIES": proxies}
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    assert address_of(RequestFactory().get("/", headers=headers, REMOTE_ADDR=HERE)) == found


def test_behind_a_local_socket_there_is_no_address_and_wrong_passwords_count_all_the_same(ann):
    assert type_wrong_passwords("ann", address="")[-1].status_code == 429
    assert log_in("ann", OLD, address="").status_code == 429


def test_behind_a_proxy_each_browser_has_its_own_address(ann, settings):
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"NUM_PROXIES": 1}
    for number in range(5):
        # What the browser itself sends comes before what the proxy appends.
        headers = {"X-Forwarded-For": f"10.0.0.{number}, {ELSEWHERE}"}
        Client(headers=headers).post("/login/", {"username": "ann", "password": "wrong"})
    sent = {"username": "ann", "password": OLD}
    assert Client(headers={"X-Forwarded-For": ELSEWHERE}).post("/login/", sent).status_code == 429
    assert Client(headers={"X-Forwarded-For": HERE}).post("/login/", sent).status_code == 302


# --- the command


def test_unlock_lets_somebody_log_in_at_once(ann, capsys):
    type_wrong_passwords("ann")
    call_command("unlock", "ann")
    assert capsys.readouterr().out == "ann may log in at once; 5 wrong passwords forgotten.\n"
    assert log_in("ann", OLD).status_code == 302
    call_command("unlock", "ann")
    assert capsys.readouterr().out.startswith("ann did not have to wait: no wrong password was typed")


def test_unlock_says_who_is_locked_out_by_a_manager_and_who_does_not_exist(person, capsys):
    accounts.set_active([person("out", "de")], False)
    call_command("unlock", "out")
    assert "out is locked out by a manager, who lets them in again on the page Accounts." in capsys.readouterr().err
    with pytest.raises(CommandError, match=r"^There is no account 'nobody'\.$"):
        call_command("unlock", "nobody")


# --- what a password must be


@pytest.mark.parametrize(
    ("password", "told"),
    [
        ("83920174", "too short"),
        ("8392017465", "entirely numeric"),
        ("short pwd", "too short"),
        ("password123", "too common"),
        ("annemarie1", "too similar"),
    ],
)
def test_a_weak_password_is_refused_by_every_form_and_by_the_command(manager, person, monkeypatch, password, told):
    user = person("annemarie", "de").user
    with pytest.raises(ValidationError, match=told):
        validate_password(password, user)
    own, desk = Client(), Client()
    own.force_login(user)
    desk.force_login(manager)
    both = {"new_password1": password, "new_password2": password}
    invite = reverse("invite", args=[accounts.invite(user.annotator)])
    replies = [
        Client().post(invite, both),
        own.post(reverse("password"), both | {"old_password": OLD}),
        desk.post(
            reverse("admin:auth_user_password_change", args=[user.pk]), {"password1": password, "password2": password}
        ),
        desk.post(
            reverse("admin:auth_user_add"),
            {"username": "annemarie2", "password1": password, "password2": password, "usable_password": "true"},
        ),
    ]
    assert [(reply.status_code, told in reply.text) for reply in replies] == [(200, True)] * 4
    monkeypatch.setattr("getpass.getpass", lambda prompt="": password)
    with pytest.raises(CommandError, match="Aborting password change"):
        call_command("changepassword", "annemarie")
    user.refresh_from_db()
    assert user.check_password(OLD)
    assert not User.objects.filter(username="annemarie2").exists()


# --- changing it


def change(client, old=OLD, new=NEW, again=None):
    sent = {"old_password": old, "new_password1": new, "new_password2": again or new}
    return client.post(reverse("password"), sent)


def test_a_changed_password_ends_sessions_elsewhere_tokens_and_links_and_keeps_this_session(ann):
    here, elsewhere = Client(), Client()
    here.force_login(ann)
    elsewhere.force_login(ann)
    token = AuthToken.objects.create(ann)[1]
    link = reverse("invite", args=[accounts.invite(ann.annotator)])
    assert (tasks_by(token), Client().get(link).status_code) == (200, 200)
    here.get(reverse("account"))
    key = here.session.session_key
    reply = change(here)
    assert (reply.status_code, reply.url) == (302, reverse("account"))
    assert "Your password is changed." in here.get(reverse("account")).text
    assert here.session.session_key != key
    assert elsewhere.get("/").status_code == 302
    assert (tasks_by(token), Client().get(link).status_code) == (401, 404)
    assert log_in("ann", OLD).status_code == 200
    assert log_in("ann", NEW).status_code == 302


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({"old": "wrong"}, "Your old password was entered incorrectly."),
        ({"again": "something else"}, "didn’t match"),
        ({"new": "8392017465"}, "entirely numeric"),
    ],
)
def test_a_change_that_is_refused_changes_nothing(ann, sent, told):
    client = Client()
    client.force_login(ann)
    token = AuthToken.objects.create(ann)[1]
    assert told in change(client, **sent).text
    assert tasks_by(token) == 200
    ann.refresh_from_db()
    assert ann.check_password(OLD)


def test_whoever_finds_an_open_session_cannot_guess_the_password_by_the_change(ann):
    client = Client()
    client.force_login(ann)
    replies = [change(client, old=f"wrong {number}") for number in range(5)]
    assert [reply.status_code for reply in replies] == [200] * 4 + [429]
    assert "You are still logged in." in replies[-1].text
    assert change(client).status_code == 429
    ann.refresh_from_db()
    assert ann.check_password(OLD)


def set_by_the_admin(user, manager):
    desk = Client()
    desk.force_login(manager)
    sent = {"password1": NEW, "password2": NEW, "usable_password": "true"}
    assert desk.post(reverse("admin:auth_user_password_change", args=[user.pk]), sent).status_code == 302


def set_by_a_link(user, manager):
    sent = {"new_password1": NEW, "new_password2": NEW}
    assert Client().post(reverse("invite", args=[accounts.invite(user.annotator)]), sent).status_code == 302


def set_by_the_command(user, manager):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("getpass.getpass", lambda prompt="": NEW)
        call_command("changepassword", user.username)


@pytest.mark.parametrize("set_anew", [set_by_the_admin, set_by_a_link, set_by_the_command])
def test_however_a_password_is_set_it_ends_sessions_tokens_and_the_wait(ann, person, manager, set_anew):
    bea = person("bea", "de").user
    others = AuthToken.objects.create(bea)[1]
    token, session = AuthToken.objects.create(ann)[1], Client()
    session.force_login(ann)
    type_wrong_passwords("ann")
    set_anew(ann, manager)
    assert (tasks_by(token), tasks_by(others)) == (401, 200)
    assert session.get("/").status_code == 302
    assert log_in("ann", NEW).status_code == 302


# --- a forgotten one


@pytest.fixture
def mailing(settings):
    settings.MAIL = True
    settings.SITE = "https://assay.example.org"
    cache.clear()


def ask(name, client=None, **headers):
    """The page's answer, once all mail that it sends is sent."""
    reply = (client or Client()).post(reverse("forgotten"), {"email": name}, **headers)
    for thread in threading.enumerate():
        if "send_mail" in thread.name:
            thread.join(HANGS)
    return reply


def link_of(message):
    return re.search(r"https://assay\.example\.org(/forgotten/\S+)", message.body)[1]


@pytest.fixture
def with_mail(ann):
    ann.email = "ann@example.org"
    ann.save()
    return ann


@pytest.mark.usefixtures("mailing")
@pytest.mark.parametrize("typed", ["ann", "ann@example.org", "ANN@example.org"])
def test_a_mail_brings_a_link_that_sets_a_password_once(with_mail, typed):
    token, session = AuthToken.objects.create(with_mail)[1], Client()
    session.force_login(with_mail)
    type_wrong_passwords("ann")
    assert "a link is on its way" in ask(typed, HTTP_HOST="localhost").text
    [message] = mail.outbox
    assert (message.to, message.subject) == (["ann@example.org"], "A new password for Assay")
    client = Client()
    page = client.get(link_of(message), follow=True)
    assert "Your user name is <b>ann</b>" in page.text
    path = page.redirect_chain[-1][0]
    assert "entirely numeric" in client.post(path, {"new_password1": "8392017465", "new_password2": "8392017465"}).text
    assert client.post(path, {"new_password1": NEW, "new_password2": NEW}).url == "/"
    assert is_in(client)
    assert (tasks_by(token), session.get("/").status_code) == (401, 302)
    assert log_in("ann", NEW).status_code == 302
    again = Client().get(link_of(message))
    assert (again.status_code, "This link has been used" in again.text) == (404, True)


@pytest.mark.usefixtures("mailing")
def test_the_page_says_the_same_whether_a_name_exists_or_not(with_mail, person):
    person("bea", "de")  # no address
    # The form for the language of the page has a token of its own each time.
    pages = [ask(name).text for name in ("ann", "bea", "nobody", "nobody@example.org")]
    assert len({re.sub(r'(csrfmiddlewaretoken" value=)"\w+"', r"\1", page) for page in pages}) == 1
    assert len(mail.outbox) == 1


@pytest.mark.usefixtures("mailing")
def test_the_answer_does_not_wait_for_the_mail(with_mail, monkeypatch):
    may_send, sent = threading.Event(), threading.Event()

    def send(self):
        assert may_send.wait(HANGS)
        sent.set()

    monkeypatch.setattr("django.core.mail.EmailMultiAlternatives.send", send)
    assert Client().post(reverse("forgotten"), {"email": "ann"}).status_code == 200
    assert not sent.is_set()
    may_send.set()
    assert sent.wait(HANGS)


@pytest.mark.usefixtures("mailing")
def test_nobody_is_flooded_with_mail(with_mail):
    for _ in range(5):
        ask("ann")
    assert len(mail.outbox) == 1


@pytest.mark.usefixtures("mailing")
def test_no_link_goes_to_whoever_is_locked_out_or_opens_after_that_or_after_an_hour(with_mail, settings):
    ask("ann")
    link = link_of(mail.outbox[0])
    accounts.set_active([with_mail.annotator], False)
    assert Client().get(link).status_code == 404
    accounts.set_active([with_mail.annotator], True)
    assert Client().get(link).status_code == 302
    settings.PASSWORD_RESET_TIMEOUT = -1
    assert Client().get(link).status_code == 404
    cache.clear()
    accounts.set_active([with_mail.annotator], False)
    ask("ann")
    assert len(mail.outbox) == 1


@pytest.mark.usefixtures("mailing")
def test_the_link_leads_to_the_site_and_not_to_where_the_request_says(with_mail, settings):
    settings.ALLOWED_HOSTS = ["*"]
    ask("ann", HTTP_HOST="evil.example.net")
    assert "evil" not in mail.outbox[0].body
    assert "https://assay.example.org/forgotten/" in mail.outbox[0].body


def test_where_no_mail_can_be_sent_the_page_says_who_helps_and_takes_nothing(with_mail):
    for reply in (Client().get(reverse("forgotten")), ask("ann")):
        assert "Ask your manager for a new invite link." in reply.text
        assert "<input" not in reply.text.partition("<footer")[0]
    assert mail.outbox == []


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("smtp://localhost", ("localhost", 25, "", "", False, False)),
        ("smtp+starttls://ann:p%40ss%2F@mail.example.org", ("mail.example.org", 587, "ann", "p@ss/", False, True)),
        (
            "smtps://ann@example.org:secret@mail.example.org:4465",
            ("mail.example.org", 4465, "ann@example.org", "secret", True, False),
        ),
    ],
)
def test_the_server_that_sends_mail_is_named_by_one_variable(given, read):
    assert mail_server(given) == read


@pytest.mark.parametrize(
    "given",
    ["mail.example.org", "imap://mail.example.org", "smtp://", "smtp://ann:secret@mail:x", "smtp://ann:se/cret@mail"],
)
def test_what_names_no_server_is_refused_without_repeating_the_password(given):
    with pytest.raises(ImproperlyConfigured, match="ASSAY_MAIL cannot be read") as refused:
        mail_server(given)
    assert not re.search("secret|cret@", str(refused.value))


@pytest.mark.parametrize("given", ["one", "-1", "1.5", "²"])
def test_the_number_of_proxies_is_a_whole_number(given, monkeypatch):
    monkeypatch.setenv("ASSAY_PROXIES", given)
    with pytest.raises(ImproperlyConfigured, match=f"ASSAY_PROXIES is '{given}'; set it to a whole number"):
        whole_number("ASSAY_PROXIES")


def test_the_table_of_people_takes_mail_addresses_and_an_empty_one_wipes_none(db, tmp_path):
    table = tmp_path / "people.csv"
    for line in ("ann,Ann,de:5,ann@example.org", "ann,Ann,de:5,"):
        table.write_text(f"username,name,languages,email\n{line}\n")
        call_command("add_annotators", str(table))
        assert User.objects.get().email == "ann@example.org"


# --- tokens


def test_a_token_works_for_ninety_days_and_its_owner_sees_until_when(ann):
    token, key = AuthToken.objects.create(ann)
    assert timedelta(days=89) < token.expiry - timezone.now() <= timedelta(days=90)
    client = Client()
    client.force_login(ann)
    page = client.get(reverse("account")).text
    assert f"{token.expiry:%Y-%m-%d}" in page
    assert "A token works for 90 days" in page
    AuthToken.objects.update(expiry=timezone.now() - timedelta(seconds=1))
    page = client.get(reverse("account")).text
    assert "expired" in page
    assert 'name="renew"' not in page
    assert tasks_by(key) == 401


def test_tokens_from_before_they_expired_last_ninety_days_from_the_update(ann):
    token, key = AuthToken.objects.create(ann, expiry=None)
    other, _ = AuthToken.objects.create(ann)
    import_module("annotate.migrations.0007_tokens_expire").let_expire(apps, None)
    until = AuthToken.objects.get(pk=token.pk).expiry
    assert timedelta(days=89) < until - timezone.now() <= timedelta(days=90)
    assert AuthToken.objects.get(pk=other.pk).expiry == other.expiry
    assert tasks_by(key) == 200


def test_its_owner_renews_a_token_and_nobody_else_does(ann, person):
    token, key = AuthToken.objects.create(ann)
    soon = timezone.now() + timedelta(days=1)
    for who, renewed in ((person("bea", "de").user, False), (ann, True)):
        AuthToken.objects.update(expiry=soon)
        client = Client()
        client.force_login(who)
        client.post(reverse("account"), {"renew": token.token_key})
        token.refresh_from_db()
        assert (token.expiry > soon) is renewed
        assert tasks_by(key) == 200


def test_an_expired_token_is_not_renewed(ann):
    token, key = AuthToken.objects.create(ann)
    AuthToken.objects.update(expiry=timezone.now() - timedelta(days=1))
    client = Client()
    client.force_login(ann)
    client.post(reverse("account"), {"renew": token.token_key})
    assert tasks_by(key) == 401
