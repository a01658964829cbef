"""Passwords: their rules, changes, resets, what a new one ends, and the first manager's."""

import os
import re
import threading
import time

import pytest
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core import mail
from django.core.cache import cache
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.management import CommandError
from django.test import Client
from django.urls import reverse
from knox.models import AuthToken

from annotate.actions.registry import call_command
from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.work import accounts
from deploy.settings import mail_server, whole_number
from tests.annotate.accounts.acts import NEW, OLD, is_in, log_in, tasks_by, type_wrong_passwords
from tests.annotate.acts import signed_in
from tests.together import HANGS

# --- what a password must be


@pytest.mark.parametrize(
    ("password", "message"),
    [
        ("83920174", "too short"),
        ("8392017465", "entirely numeric"),
        ("password123", "too common"),
        ("annemarie1", "too similar"),
    ],
)
def test_a_weak_password_is_refused_by_every_form_and_by_the_command(manager, person, monkeypatch, password, message):
    user = person("annemarie", "de").user
    with pytest.raises(ValidationError, match=message):
        validate_password(password, user)
    desk = signed_in(manager)
    both = {"new_password1": password, "new_password2": password}
    typed = {"password1": password, "password2": password}
    new = {"username": "annemarie2", "usable_password": "true"}
    replies = [
        Client().post(reverse("invite", args=[accounts.invite(user.annotator)]), both),
        signed_in(user).post(reverse("password"), both | {"old_password": OLD}),
        desk.post(reverse("admin:auth_user_password_change", args=[user.pk]), typed),
        desk.post(reverse("admin:auth_user_add"), typed | new),
    ]
    assert [(reply.status_code, message in reply.text) for reply in replies] == [(200, True)] * 4
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
    here, elsewhere = signed_in(ann), signed_in(ann)
    token = AuthToken.objects.create(ann)[1]
    link = reverse("invite", args=[accounts.invite(ann.annotator)])
    page = Client().get(link)
    assert (tasks_by(token), page.status_code, "API tokens" in page.text) == (200, 200, True)
    here.get(reverse("account"))
    key = here.session.session_key
    reply = change(here)
    assert (reply.status_code, reply.url) == (302, reverse("account"))
    assert "Your password has been changed." in here.get(reverse("account")).text
    assert here.session.session_key != key
    assert elsewhere.get("/").status_code == 302
    assert (tasks_by(token), Client().get(link).status_code) == (401, 404)
    assert [log_in("ann", password).status_code for password in (OLD, NEW)] == [200, 302]


def test_a_change_that_is_refused_changes_nothing_and_does_not_serve_for_guessing(ann):
    client, token = signed_in(ann), AuthToken.objects.create(ann)[1]
    assert "didn’t match" in change(client, again="something else").text
    replies = [change(client, old=f"wrong {number}") for number in range(5)]
    assert [reply.status_code for reply in replies] == [200] * 4 + [429]
    assert "Your old password was entered incorrectly." in replies[0].text
    assert "You are still logged in." in replies[-1].text
    assert (change(client).status_code, tasks_by(token)) == (429, 200)
    ann.refresh_from_db()
    assert ann.check_password(OLD)


def set_by_the_admin(user, manager):
    sent = {"password1": NEW, "password2": NEW, "usable_password": "true"}
    page = reverse("admin:auth_user_password_change", args=[user.pk])
    assert signed_in(manager).post(page, sent).status_code == 302


def set_by_a_link(user, manager):
    sent = {"new_password1": NEW, "new_password2": NEW}
    assert Client().post(reverse("invite", args=[accounts.invite(user.annotator)]), sent).status_code == 302


def set_by_the_command(user, manager):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("getpass.getpass", lambda prompt="": NEW)
        call_command("changepassword", user.username)


@pytest.mark.parametrize("set_anew", [set_by_the_admin, set_by_a_link, set_by_the_command])
def test_however_a_password_is_set_it_ends_sessions_tokens_and_the_wait(ann, person, manager, set_anew):
    others = AuthToken.objects.create(person("bea", "de").user)[1]
    token, session = AuthToken.objects.create(ann)[1], signed_in(ann)
    type_wrong_passwords("ann")
    set_anew(ann, manager)
    assert (tasks_by(token), tasks_by(others)) == (401, 200)
    assert session.get("/").status_code == 302
    assert log_in("ann", NEW).status_code == 302


# --- a forgotten one


def ask(name, client=None, **headers):
    """Return the page's response after all its mail is sent."""
    reply = (client or Client()).post(reverse("forgotten"), {"email": name}, **headers)
    for thread in threading.enumerate():
        if "send_mail" in thread.name:
            thread.join(HANGS)
    return reply


def link_of(message):
    return re.search(r"https://assay\.example\.org(/forgotten/\S+)", message.body)[1]


@pytest.fixture
def with_mail(ann, settings):
    """Ann, who has a mail address, at a site that sends mail."""
    settings.MAIL, settings.SITE = True, "https://assay.example.org"
    ann.email = "ann@example.org"
    ann.save()
    return ann


@pytest.mark.parametrize("typed", ["ann", "ANN@example.org"])
def test_a_mail_brings_a_link_that_sets_a_password_once(with_mail, typed):
    token, session = AuthToken.objects.create(with_mail)[1], signed_in(with_mail)
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


def test_the_page_says_the_same_whether_a_name_exists_or_not_and_floods_nobody_with_mail(with_mail, person):
    person("bea", "de")  # no address
    # The language form has a new token each time.
    pages = [ask(name).text for name in ("ann", "bea", "nobody", "nobody@example.org", "ann", "ann")]
    assert len({re.sub(r'(csrfmiddlewaretoken" value=)"\w+"', r"\1", page) for page in pages}) == 1
    assert len(mail.outbox) == 1


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


def test_the_link_leads_to_the_site_and_not_to_where_the_request_says(with_mail, settings):
    settings.ALLOWED_HOSTS = ["*"]
    ask("ann", HTTP_HOST="evil.example.net")
    assert "evil" not in mail.outbox[0].body
    assert "https://assay.example.org/forgotten/" in mail.outbox[0].body


def test_where_no_mail_can_be_sent_the_page_says_who_helps_and_takes_nothing(with_mail, settings):
    settings.MAIL = False
    for reply in (Client().get(reverse("forgotten")), ask("ann")):
        assert "Ask your manager for a new invite link." in reply.text
        assert "<input" not in reply.text.partition("<footer")[0]
    assert mail.outbox == []


@pytest.mark.parametrize(
    ("address", "read"),
    [
        ("smtp://localhost", ("localhost", 25, "", "", False, False)),
        ("smtp+starttls://ann:p%40ss%2F@mail.example.org", ("mail.example.org", 587, "ann", "p@ss/", False, True)),
        (
            "smtps://ann@example.org:secret@mail.example.org:4465",
            ("mail.example.org", 4465, "ann@example.org", "secret", True, False),
        ),
    ],
)
def test_the_server_that_sends_mail_is_named_by_one_variable(address, read):
    assert mail_server(address) == read


@pytest.mark.parametrize(
    "variable",
    ["mail.example.org", "imap://mail.example.org", "smtp://", "smtp://ann:secret@mail:x", "smtp://ann:se/cret@mail"],
)
def test_what_names_no_server_is_refused_without_repeating_the_password(variable):
    with pytest.raises(ImproperlyConfigured, match="ASSAY_MAIL is not valid") as refused:
        mail_server(variable)
    assert not re.search("secret|cret@", str(refused.value))


@pytest.mark.parametrize("variable", ["one", "-1", "1.5", "²"])
def test_the_number_of_proxies_is_a_whole_number(variable, monkeypatch):
    monkeypatch.setenv("ASSAY_PROXIES", variable)
    with pytest.raises(ImproperlyConfigured, match=f"ASSAY_PROXIES is '{variable}'. It must be a whole number"):
        whole_number("ASSAY_PROXIES")


def test_the_table_of_people_takes_mail_addresses_and_an_empty_one_wipes_none(db, tmp_path):
    table = tmp_path / "people.csv"
    for line in ("ann,Ann,de:5,ann@example.org", "ann,Ann,de:5,"):
        table.write_text(f"username,name,languages,email\n{line}\n")
        call_command("add_annotators", str(table))
        assert User.objects.get().email == "ann@example.org"


# --- the link by which the first manager's account is made in the browser


FORM = {"username": "mo", "password1": NEW, "password2": NEW}


@pytest.fixture
def client(client, db, data_dir):
    return client


def address(token=None):
    return reverse("first-manager", args=[token or accounts.invite_first_manager()])


def test_the_link_makes_the_first_manager_who_is_logged_in_and_works_once(client):
    link = address()
    page = client.get(link)
    assert page["Referrer-Policy"] == "strict-origin"
    assert "at least" in page.text
    assert "API tokens" not in page.text
    assert client.post(link, FORM)["Location"] == reverse("manage")
    mo = User.objects.get()
    assert (mo.username, mo.is_superuser, mo.check_password(NEW)) == ("mo", True, True)
    assert client.get(reverse("manage")).status_code == 200
    other = Client()
    assert other.post(link, FORM | {"username": "eve"}).status_code == 404
    assert User.objects.count() == 1
    assert not is_in(other)


def test_the_login_page_shows_the_text_of_the_installation(client, data_dir):
    assert "welcome" not in client.get("/login/").content.decode()
    (data_dir / "welcome.md").write_text("Write to **Maria** <script>for an account.")
    assert "Write to <strong>Maria</strong> &lt;script&gt;for an account." in client.get("/login/").content.decode()


def test_the_login_page_refers_to_the_link_while_there_is_no_manager(client):
    assert "There is no manager yet." in client.get(reverse("login")).text
    accounts.add_manager("meg")
    assert "There is no manager yet." not in client.get(reverse("login")).text


def test_a_first_password_is_not_said_to_end_anything(client):
    [(_, token)] = accounts.add_annotators([accounts.Row("ann", "Ann", {"de": 5})])
    assert "API tokens" not in client.get(reverse("invite", args=[token])).text


def test_a_weak_password_or_a_taken_name_leaves_the_link_as_it_was(client, person):
    person("ann", "de")
    link = address()
    for wrong, message in (
        ({"password1": "123", "password2": "123"}, "too short"),
        ({"username": "ann"}, "already exists"),
    ):
        assert message in client.post(link, FORM | wrong).text
    assert client.post(link, FORM).status_code == 302


def test_the_link_ends_with_time_with_a_newer_one_and_with_any_manager(client, data_dir):
    old = address()
    new = address()
    assert [client.get(link).status_code for link in (old, new, address("guessed"))] == [404, 200, 404]
    assert accounts.token_digest(new.split("/")[-2]) == (data_dir / "first-manager").read_text()
    assert (data_dir / "first-manager").stat().st_mode & 0o077 == 0
    past = time.time() - accounts.FIRST_MANAGER_HOURS * 3600
    os.utime(data_dir / "first-manager", (past, past))
    assert client.get(new).status_code == 404
    link = address()
    accounts.add_manager("meg")
    assert client.post(link, FORM).status_code == 404


def test_of_two_who_follow_the_link_at_once_one_is_refused(db, data_dir, monkeypatch):
    token = accounts.invite_first_manager()
    create = User.objects.create_superuser

    def overtaken(*args, **fields):
        (data_dir / "first-manager").unlink()
        return create(*args, **fields)

    monkeypatch.setattr(User.objects, "create_superuser", overtaken)
    with pytest.raises(InvalidAnswer):
        accounts.create_first_manager(token, "mo", NEW)
    assert not User.objects.exists()
    with pytest.raises(NotFound):
        accounts.create_first_manager(token, "mo", NEW)
