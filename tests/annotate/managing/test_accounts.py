"""Accounts in the browser: people are invited by name or by a table, changed, locked out; superusers make managers."""

import re

import pytest
from axes.models import AccessAttempt
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from annotate.models import Annotator
from annotate.pages import account_administration as pages
from annotate.work import accounts
from annotate.work.routes import unknown_code
from tests.annotate.managing.acts import words

ACCOUNTS, NEW = "/manage/accounts/", "/manage/accounts/new/"
HEADER = "username,name,languages\n"


def one(annotator, act=""):
    return f"{ACCOUNTS}{annotator.pk}/{act}"


def links(page):
    return re.findall(r'value="(http://testserver/invite/[^"]+)"', page.text)


def token_of(link):
    return link.split("/")[-2]


def by_table(desk, content, **fields):
    table = SimpleUploadedFile("people.csv", content if isinstance(content, bytes) else content.encode())
    return desk.post(NEW, {"file": table, **fields})


# --- who there is


def test_the_list_says_what_everybody_reads_and_how_they_come_in(desk, person):
    ann, bea = person("ann", "de:5 en:4"), person("bea", "fr", adjudicates=True)
    User.objects.filter(username="ann").update(last_login=timezone.now(), password="!")
    accounts.invite(ann)
    shown = words(desk.get(ACCOUNTS))
    until = f"{timezone.localtime(ann.invites.get().expires_at):%Y-%m-%d}"
    assert re.search(rf"ann de:5 en:4 no invited, the link works until {until} \d{{4}}-", shown)
    assert "bea fr:5 yes has a password –" in shown
    assert "manager everything" in shown
    ann.invites.update(expires_at=timezone.now())
    assert "the link expired on" in words(desk.get(ACCOUNTS))
    accounts.set_active([bea], False)
    assert "bea fr:5 yes locked out" in words(desk.get(ACCOUNTS))


def test_somebody_is_found_by_name_and_by_language(desk, person):
    ann = person("ann", "de")
    person("bea", "fr")
    User.objects.filter(pk=ann.user_id).update(last_name="Lovelace")
    for asked in ("ann", "lovel", "de"):
        shown = desk.get(ACCOUNTS, {"q": asked}).text
        assert one(ann) in shown
        assert ">bea<" not in shown, asked
    assert "Nobody is found by “ nobody ”" in words(desk.get(ACCOUNTS, {"q": "nobody"}))


def test_the_list_takes_as_many_statements_however_many_there_are(desk, person, django_assert_max_num_queries):
    for number in range(12):
        accounts.invite(person(f"p{number}", "de en"))
    desk.get("/docs/")  # what the manager wants of pages is read once
    with django_assert_max_num_queries(12):
        desk.get(ACCOUNTS)


def test_staff_without_the_permission_look_and_are_offered_nothing(client, person):
    ann = person("ann", "de")
    User.objects.filter(pk=ann.user_id).update(email="ann@example.org")
    client.force_login(User.objects.create_user("staff", is_staff=True))
    shown = client.get(ACCOUNTS).text + client.get(one(ann)).text
    assert "Invite people" not in shown
    assert "New manager" not in shown
    assert "<form" not in client.get(one(ann)).text.split("<main")[1]
    assert "ann@example.org" not in shown


# --- new ones


def test_one_person_is_invited_and_the_link_is_shown_once(desk, client):
    sent = {"username": "eve", "name": "Eve Adam", "email": "eve@example.org", "languages": "de:5 en:4"}
    page = desk.post(NEW, {**sent, "adjudicates": "yes"})
    [link] = links(page)
    eve = Annotator.objects.get(user__username="eve")
    assert (str(eve), eve.user.email, eve.adjudicates) == ("Eve Adam", "eve@example.org", True)
    assert sorted(map(str, eve.languages.all())) == ["de:5", "en:4"]
    assert token_of(link) not in desk.get(ACCOUNTS).text + desk.get(one(eve)).text
    assert LogEntry.objects.get().object_repr == "Eve Adam"
    client.logout()
    assert "Welcome, Eve Adam" in client.get(link.removeprefix("http://testserver")).text


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"languages": "xx:5"}, unknown_code("xx")),
        ({"languages": "de:6"}, "'de:6' has no level from 0 to 5"),
        ({"languages": ""}, "No language is named; write them like this: de:5 en:4."),
        ({"username": "e v e"}, "'e v e' is not a user name"),
        ({"username": "ann"}, "There is an annotator ann already; change them on their own page."),
        ({"email": "nowhere"}, "'nowhere' is not a mail address."),
    ],
)
def test_a_person_who_cannot_be_is_refused_and_what_was_typed_stays(desk, person, fields, told):
    ann = person("ann", "fr:5")
    sent = {"username": "eve", "name": "Eve Adam", "languages": "de:5", **fields}
    page = desk.post(NEW, sent)
    assert page.status_code == 400
    assert told in words(page)
    assert 'value="Eve Adam"' in page.text
    assert not User.objects.filter(username="eve").exists()
    assert list(map(str, ann.languages.all())) == ["fr:5"]


def test_an_account_that_is_no_annotators_becomes_one_and_keeps_its_password(desk):
    User.objects.create_user("eve", password="a long password")
    page = desk.post(NEW, {"username": "eve", "languages": "de:5"})
    assert links(page) == []
    assert "updated; has an account already" in words(page)
    assert User.objects.get(username="eve").check_password("a long password")
    assert list(map(str, Annotator.objects.get(user__username="eve").languages.all())) == ["de:5"]


@pytest.mark.parametrize("pasted", [True, False])
def test_many_are_invited_by_a_table(desk, person, pasted):
    old = person("old", "de")
    table = HEADER + "ann,Ann Lee,de:5\nold,Old One,en:5\n"
    page = desk.post(NEW, {"table": table}) if pasted else by_table(desk, "\ufeff" + table)
    assert len(links(page)) == 1
    assert "Old One old : updated; has an account already." in words(page)
    assert list(map(str, old.languages.all())) == ["en:5"]
    assert accounts.find_invite(token_of(links(page)[0])).annotator.user.username == "ann"


def test_a_bad_table_says_all_its_faults_and_changes_nothing(desk, person):
    old = person("old", "de")
    page = by_table(desk, HEADER + "old,Old,en:5\nb b,Bob,de:5\ncleo,Cleo,xx\ndora,Dora,de:9\n")
    assert page.status_code == 400
    for line in ("Line 3:", "Line 4:", "Line 5:", "Nothing was changed."):
        assert line in words(page)
    assert list(map(str, old.languages.all())) == ["de:5"]
    assert Annotator.objects.count() == 1


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ((HEADER + "zoe,Zoé,fr\n").encode("latin-1"), "The file is not UTF-8. Save it as “CSV UTF-8”."),
        ((HEADER + "zoe,Zoé,fr\n").encode("utf-16"), "The file is not UTF-8. Save it as “CSV UTF-8”."),
        (b"", "The first line must name the columns"),
        (HEADER, "The table has no rows."),
        ("name\nAnn\n", "The first line must name the columns"),
        ("username;name;languages\nann;Ann;de:5\n", "separated by semicolons"),
    ],
)
def test_what_is_no_table_is_refused_in_a_sentence(desk, content, told):
    assert told in words(by_table(desk, content))
    assert not Annotator.objects.exists()


def test_a_form_without_a_table_and_a_file_too_large_are_refused(desk, monkeypatch, settings):
    assert "Choose a file, or paste a table." in words(desk.post(NEW, {"table": " "}))
    monkeypatch.setattr(pages, "LARGEST", 1 << 20)
    assert "The file has more than 1 MB" in words(by_table(desk, b"x" * (1 << 20) + b"x"))
    settings.UPLOAD_MOST = 1 << 10
    assert "is larger than" in words(by_table(desk, b"x" * 100_000))


def test_nothing_of_an_uploaded_table_stays_in_the_inbox(desk, data_dir):
    by_table(desk, HEADER + "ann,Ann Lee,de:5\n")
    assert list((data_dir / "inbox").iterdir()) == []


# --- one of them


def test_a_person_is_changed_and_what_is_left_empty_is_gone(desk, person):
    ann = person("ann", "de:5 en:4", adjudicates=True)
    User.objects.filter(pk=ann.user_id).update(first_name="Ann", last_name="Lee", email="ann@example.org")
    page = desk.get(one(ann)).text
    assert 'value="Ann Lee"' in page
    assert 'value="de:5 en:4"' in page
    desk.post(one(ann, "change/"), {"name": "Anna", "email": "", "languages": "fr:3"})
    ann = Annotator.objects.get(pk=ann.pk)
    assert (ann.user.get_full_name(), ann.user.email, ann.adjudicates) == ("Anna", "", False)
    assert list(map(str, ann.languages.all())) == ["fr:3"]
    assert ann.user.has_usable_password()


def test_a_change_that_cannot_be_is_refused_and_what_was_typed_stays(desk, person):
    ann = person("ann", "de:5")
    page = desk.post(one(ann, "change/"), {"name": "Anna", "languages": "xx:5"})
    assert page.status_code == 400
    assert unknown_code("xx") in words(page)
    assert 'value="xx:5"' in page.text
    assert list(map(str, ann.languages.all())) == ["de:5"]
    assert desk.post(f"{ACCOUNTS}0/change/", {"languages": "de:5"}).status_code == 404


def test_a_new_link_is_shown_once_and_earlier_ones_stop_working(desk, person):
    ann, bob = person("ann", "de"), person("bob", "en")
    before, kept = accounts.invite(ann), accounts.invite(bob)
    [link] = links(desk.post(one(ann, "do/"), {"do": "link"}))
    assert accounts.find_invite(token_of(link)).annotator == ann
    assert accounts.find_invite(kept).annotator == bob
    assert desk.get(f"/invite/{before}/").status_code == 404


def test_a_link_is_withdrawn(desk, person):
    ann = person("ann", "de")
    token = accounts.invite(ann)
    assert "1 link withdrawn." in words(desk.post(one(ann, "do/"), {"do": "withdraw"}, follow=True))
    assert desk.get(f"/invite/{token}/").status_code == 404
    assert "Withdraw the link" not in words(desk.get(one(ann)))


def test_people_are_locked_out_and_let_in_again(desk, person):
    ann = person("ann", "de")
    assert "ann is locked out." in words(desk.post(one(ann, "do/"), {"do": "lock_out"}, follow=True))
    assert not User.objects.get(username="ann").is_active
    assert "ann may log in again." in words(desk.post(one(ann, "do/"), {"do": "let_in"}, follow=True))
    assert User.objects.get(username="ann").is_active


def test_who_typed_too_many_wrong_passwords_is_let_in_at_once(desk, person):
    ann = person("ann", "de")
    AccessAttempt.objects.create(username="ann", ip_address="1.2.3.4", failures_since_start=7)
    assert "7 wrong passwords were typed for this name of late" in words(desk.get(one(ann)))
    assert "7 wrong passwords forgotten" in words(desk.post(one(ann, "do/"), {"do": "unlock"}, follow=True))
    assert not AccessAttempt.objects.exists()


def test_there_is_nothing_else_to_do_with_an_account(desk, person):
    assert desk.post(one(person("ann", "de"), "do/"), {"do": "delete"}).status_code == 400


def test_a_manager_who_is_no_superuser_cannot_take_over_one_by_a_link(client, manager):
    [(boss, _)] = accounts.add_annotators([accounts.Row("manager", "The Boss", {"de": 5})])
    staff = User.objects.create_user("staff", is_staff=True)
    staff.user_permissions.add(*Permission.objects.filter(codename__in=["add_annotator", "change_annotator"]))
    client.force_login(staff)
    for act in ("link", *pages.ACTS):
        text = words(client.post(one(boss, "do/"), {"do": act}))
        assert "Only a superuser may do this to managers and to themselves, here manager. Nothing was changed." in text
    assert "Only a superuser may do this" in words(client.post(one(boss, "change/"), {"languages": "de:5"}))
    assert "Make a new link" not in words(client.get(one(boss)))
    assert not boss.invites.exists()


# --- managers


def test_a_superuser_makes_a_manager_whose_password_is_shown_once(desk):
    page = words(desk.post(f"{ACCOUNTS}managers/new/", {"name": "mia"}))
    [password] = re.findall(r"with the password (\S+) which is shown", page)
    assert User.objects.get(username="mia").is_superuser
    assert User.objects.get(username="mia").check_password(password)
    assert password not in desk.get(ACCOUNTS).text


def test_of_an_account_that_there_is_a_manager_is_made_only_when_it_is_said_again(desk, person):
    person("ann", "de")
    page = desk.post(f"{ACCOUNTS}managers/new/", {"name": "ann", "sure": "bea"})
    assert "There is an account ann already." in words(page)
    assert not User.objects.get(username="ann").is_staff
    assert "ann is a manager." in words(desk.post(f"{ACCOUNTS}managers/new/", {"name": "ann", "sure": "ann"}))
    assert User.objects.get(username="ann").is_superuser


def test_a_name_that_cannot_be_is_refused(desk):
    page = desk.post(f"{ACCOUNTS}managers/new/", {"name": "e v e"})
    assert page.status_code == 400
    assert "'e v e' cannot be a user name" in words(page)


# --- in a browser


def test_a_link_is_marked_whole_and_copied_by_a_button(new_page, manager):
    page = new_page(user=manager)
    page.goto(NEW)
    page.fill("#username", "eve")
    page.fill("#languages", "de:5")
    page.press("#languages", "Enter")
    page.click("[data-copies]")
    page.wait_for_selector("text=Copied")
    assert page.evaluate("getSelection().toString()") == page.input_value("#link-1")


def test_without_a_script_the_link_is_there_and_no_button(new_page, manager):
    page = new_page(user=manager, java_script_enabled=False)
    page.goto(NEW)
    page.fill("#table", HEADER + "eve,Eve,de:5")
    page.click("text=Invite all of them")
    assert "/invite/" in page.input_value("#link-1")
    assert page.locator("[data-copies]:visible").count() == 0


def test_two_people_are_invited_and_come_in_by_their_links(new_page, manager):
    page = new_page(user=manager)
    page.goto(NEW)
    page.fill("#table", HEADER + "ann,Ann Lee,de:5\nbea,Bea Ray,fr:5")
    page.click("text=Invite all of them")
    for number, name in ((1, "Ann Lee"), (2, "Bea Ray")):
        theirs = new_page()
        theirs.goto(page.input_value(f"#link-{number}"))
        theirs.fill("[name=new_password1]", "quite a long one")
        theirs.fill("[name=new_password2]", "quite a long one")
        theirs.click("main button")
        assert name in theirs.inner_text("header")
    page.goto(ACCOUNTS)
    assert page.inner_text("#accounts").count("has a password") == 2
