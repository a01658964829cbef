"""The link by which the first manager's account is made in the browser."""

import os
import time

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.work import accounts
from tests.annotate.accounts.acts import NEW, is_in

pytestmark = pytest.mark.usefixtures("db", "data_dir")
FORM = {"username": "mo", "password1": NEW, "password2": NEW}


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
    for wrong, told in (
        ({"password1": "123", "password2": "123"}, "too short"),
        ({"username": "ann"}, "already exists"),
    ):
        assert told in client.post(link, FORM | wrong).text
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


def test_of_two_who_follow_the_link_at_once_one_is_refused(data_dir, monkeypatch):
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
