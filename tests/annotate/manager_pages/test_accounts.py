"""Accounts in the browser: inviting people by name or table, changing and locking accounts, and creating managers."""

import re
import time

import pytest
from axes.models import AccessAttempt
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from annotate.manager_pages import account_administration as pages
from annotate.models import Annotator
from annotate.work import accounts, membership
from annotate.work.adjudication import adjudicates_in
from tests.annotate.acts import words
from tests.annotate.conftest import AGREED

ACCOUNTS, NEW, PEOPLE = "/manage/accounts/", "/manage/accounts/new/", "/manage/people/"
HEADER = "username,name,languages\n"


def one(annotator, act=""):
    return f"{ACCOUNTS}{annotator.pk}/{act}"


def links(page):
    return re.findall(r'value="(http://testserver/invite/[^"]+)"', page.text)


def languages(name):
    return sorted(map(str, Annotator.objects.get(user__username=name).languages.all()))


def token_of(link):
    return link.split("/")[-2]


def by_table(desk, content):
    table = SimpleUploadedFile("people.csv", content if isinstance(content, bytes) else content.encode())
    return desk.post(NEW, {"file": table}, follow=True)


# --- who there is


def test_the_list_says_what_everybody_reads_and_how_they_come_in(desk, person):
    ann, bea = person("ann", "de:5 en:4"), person("bea", "fr", adjudicates=True)
    User.objects.filter(username="ann").update(last_login=timezone.now(), password="!")
    accounts.invite(ann)
    shown = words(desk.get(PEOPLE))
    until = f"{timezone.localtime(ann.invites.get().expires_at):%Y-%m-%d}"
    assert f"ann German 5, English 4 invited, link valid until {until}" in shown
    assert "bea adjudicates French 5 active" in shown
    assert "manager everything" in shown
    ann.invites.update(expires_at=timezone.now())
    assert "the link expired on" in words(desk.get(PEOPLE))
    accounts.set_active([bea], False)
    assert "bea adjudicates, locked out French 5 locked out" in words(desk.get(PEOPLE))


def test_somebody_is_found_by_name_language_and_group(desk, person):
    ann = person("ann", "de")
    person("bea", "fr")
    User.objects.filter(pk=ann.user_id).update(last_name="Lovelace")
    Group.objects.create(name="students").user_set.add(ann.user)
    for query in ("ann", "lovel", "german", "students"):
        shown = desk.get(PEOPLE, {"find-everybody": query}).text
        assert one(ann) in shown
        assert ">bea<" not in shown, query
    assert "0 of 2" in words(desk.get(PEOPLE, {"find-everybody": "nobody"}))


def test_the_empty_list_leads_to_the_invitation(desk):
    shown = desk.get(PEOPLE).text
    assert "No people yet" in shown
    assert f'<a href="{NEW}">Invite people</a>' in shown


@pytest.mark.slow
def test_many_people_are_listed_in_pages(desk):
    users = User.objects.bulk_create(User(username=f"p{number:03}") for number in range(80))
    Annotator.objects.bulk_create(
        Annotator(user=user, pseudonym=f"annotator-{number}") for number, user in enumerate(users)
    )
    first, second = desk.get(PEOPLE).text, desk.get(PEOPLE, {"page-everybody": "2"}).text
    last = int(re.search(r"1–(\d+) of 80", first)[1])
    for number in range(80):
        assert (f">p{number:03}<" in first, f">p{number:03}<" in second) == (number < last, number >= last)
    assert f"{last + 1}–80 of 80" in second
    assert desk.get(PEOPLE, {"csv": "everybody"}).text.count("p079") == 1


# --- new ones


def test_people_are_invited_and_their_links_are_shown_until_they_are_sent(desk, client):
    sent = {
        "people": "eve, Eve Adam, eve@example.org\n\nfay\n",
        "language": ["de", "English"],
        "level": ["5", "4"],
        "groups": "students, night shift",
    }
    reply = desk.post(NEW, {**sent, "adjudicates": "yes"})
    assert reply.status_code == 302
    page = desk.get(reply["Location"])
    assert len(links(page)) == 2
    eve, fay = Annotator.objects.filter(user__username__in=("eve", "fay"))
    assert (str(eve), eve.user.email, eve.adjudicates) == ("Eve Adam", "eve@example.org", True)
    assert (str(fay), fay.user.email) == ("fay", "")
    assert languages("eve") == languages("fay") == ["de:5", "en:4"]
    assert membership.groups_of(fay) == ["night shift", "students"]
    token = token_of(links(page)[0])
    assert links(desk.get(reply["Location"])) == links(page)
    assert token not in "".join(desk.get(at).text for at in (PEOPLE, one(eve)))
    assert desk.post(reply["Location"])["Location"] == PEOPLE
    assert token not in desk.get(reply["Location"]).text
    assert token not in str(desk.session.items())
    assert {entry.object_repr for entry in LogEntry.objects.all()} == {"Eve Adam", "fay"}
    User.objects.create_user("bob", password="a long password")  # an account that becomes an annotator's
    page = desk.post(NEW, {"people": "bob", "language": "de", "level": "5"}, follow=True)
    assert links(page) == []
    assert "existing account updated" in words(page)
    assert User.objects.get(username="bob").check_password("a long password")
    assert languages("bob") == ["de:5"]
    client.logout()
    assert "Welcome, Eve Adam" in client.get(f"/invite/{token}/").text


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"language": "xx", "level": "5"}, "'xx' is not a language on the list."),
        ({"language": "de", "level": "6"}, "'de:6' has no level from 0 to 5"),
        ({"language": ""}, "Choose at least one language. Only adjudicators need none."),
        ({"language": "English, German", "level": ""}, "Choose how well the person reads English."),
        ({"people": "eve, Eve Adam\ne v e"}, "'e v e' is not a valid user name"),
        ({"people": "e" * 300}, "The user name 'eeeeeeeeeeeeeeeeeeee'… is longer than 150 characters."),
        ({"people": "eve, Eve Adam\nann"}, "The annotator ann already exists. Change the account on its own page."),
        ({"people": "eve, Eve Adam, nowhere"}, "'nowhere' is not a valid mail address."),
        ({"people": "eve, Eve Adam, eve@example.org, de"}, "The line of eve has too many parts."),
        ({"groups": "staff"}, "The group 'staff' grants permissions."),
        ({"groups": "s" * 151}, "is longer than 150 characters."),
        ({"people": " \n", "name": "Eve Adam"}, "Enter at least one person, or a table of people."),
    ],
)
def test_a_person_who_cannot_be_is_refused_and_what_was_typed_stays(desk, person, fields, message):
    ann = person("ann", "fr:5")
    Group.objects.create(name="staff").permissions.add(Permission.objects.first())
    sent = {"people": "eve, Eve Adam", "language": "de", "level": "5", **fields}
    page = desk.post(NEW, sent)
    assert page.status_code == 400
    assert message in words(page)
    assert sent["people"].strip() in page.text
    assert not User.objects.filter(username="eve").exists()
    assert list(map(str, ann.languages.all())) == ["fr:5"]


def test_links_of_several_invitations_are_kept_for_an_hour_in_the_managers_session(desk, manager, monkeypatch):
    for name in ("eve", "fay"):
        shown = desk.post(NEW, {"people": name, "language": "de", "level": "5"}, follow=True)
    assert len(links(shown)) == 2
    eve = Annotator.objects.get(user__username="eve")
    [new, _] = again = links(desk.post(one(eve, "do/"), {"do": "link"}, follow=True))
    assert (accounts.find_invite(token_of(new)).annotator, len(again)) == (eve, 2)
    later = time.time() + pages.KEEP_LINKS + 1
    monkeypatch.setattr(pages.time, "time", lambda: later)
    assert links(desk.get(f"{ACCOUNTS}links/")) == []
    assert token_of(new) not in str(desk.session.items())


def test_of_many_tasks_the_newest_are_suggested_and_any_can_be_entered(desk, make_task, monkeypatch):
    monkeypatch.setattr(pages, "OFFERED", 1)
    oldest, newest = make_task([AGREED], name="oldest"), make_task([AGREED], name="newest")
    page = desk.get(NEW).text
    assert ('<option value="newest">' in page, '<option value="oldest"' in page) == (True, False)
    assert '<input id="task" name="task"' in page
    refused = desk.post(NEW, {"people": "eve", "language": "de", "level": "5", "task": "none"}, follow=True)
    assert "Task &#x27;none&#x27; does not exist." in refused.text
    assert '<input id="task" name="task" value="none"' in refused.text
    desk.post(NEW, {"people": "eve", "language": "de", "level": "5", "task": "oldest"})
    assert [task.memberships.count() for task in (oldest, newest)] == [1, 0]


def test_an_adjudicator_who_is_invited_to_a_task_adjudicates_there(desk, make_task):
    task = make_task([AGREED] * 2, audit_share=1.0, audit_recheck=1.0)
    sent = {"task": task.name, "language": "", "level": ""}
    page = desk.post(NEW, {**sent, "people": "ada", "adjudicates": "yes"}, follow=True)
    assert "will need an adjudicator" not in words(page)
    assert f"{NEW}?task={task.name}" in page.text
    desk.post(NEW, {**sent, "people": "ann", "language": "de", "level": "5"})
    roles = task.memberships.order_by("pk").values_list("annotator__user__username", "role")
    assert list(roles) == [("ada", "adjudicator"), ("ann", "annotator")]
    assert adjudicates_in(Annotator.objects.get(user__username="ada"), task)
    assert desk.post(f"{ACCOUNTS}links/")["Location"] == f"/manage/tasks/{task.name}/"


@pytest.mark.parametrize("pasted", [True, False])
def test_many_are_invited_by_a_table_of_which_nothing_stays_in_the_inbox(desk, person, pasted, data_dir):
    person("old", "de")
    table = HEADER + "ann,Ann Lee,de:5\nold,Old One,en:5\n"
    page = desk.post(NEW, {"table": table}, follow=True) if pasted else by_table(desk, "\ufeff" + table)
    [link] = links(page)
    assert "Old One old : existing account updated." in words(page)
    assert languages("old") == ["en:5"]
    assert accounts.find_invite(token_of(link)).annotator.user.username == "ann"
    assert pasted or list((data_dir / "inbox").iterdir()) == []


@pytest.mark.parametrize(
    ("content", "sentences"),
    [
        # The faults of tables are tested in test_people.py.
        (
            HEADER + "old,Old,en:5\nb b,Bob,de:5\ncleo,Cleo,xx\n",
            ("Line 3:", "Line 4:", "Nothing was changed."),
        ),
        (b"x" * (1 << 20) + b"x", ("The file is larger than 1 MB",)),
    ],
    ids=["faults", "large"],
)
def test_a_table_that_is_none_says_all_its_faults_and_changes_nothing(desk, person, content, sentences, monkeypatch):
    monkeypatch.setattr(pages, "LARGEST", 1 << 20)
    person("old", "de")
    page = by_table(desk, content)
    assert page.status_code == 400
    assert [sentence for sentence in sentences if sentence not in words(page)] == []
    assert (languages("old"), Annotator.objects.count()) == (["de:5"], 1)


# --- one of them


def test_a_person_is_changed_and_what_is_left_empty_is_gone_or_what_was_typed_stays(desk, person):
    ann = person("ann", "de:5 en:4", adjudicates=True)
    User.objects.filter(pk=ann.user_id).update(first_name="Ann", last_name="Lee", email="ann@example.org")
    page = desk.get(one(ann)).text
    assert ('value="Ann Lee"' in page, 'value="German"' in page) == (True, True)
    page = desk.post(one(ann, "change/"), {"name": "Anna", "language": "xx", "level": "5"})
    assert (page.status_code, "'xx' is not a language" in words(page), 'value="xx"' in page.text) == (400, True, True)
    assert languages("ann") == ["de:5", "en:4"]
    assert desk.post(f"{ACCOUNTS}0/change/", {"language": "de", "level": "5"}).status_code == 404
    rights = Group.objects.create(name="staff")
    rights.permissions.add(Permission.objects.first())
    ann.user.groups.add(rights, Group.objects.create(name="students"))
    assert 'value="students"' in desk.get(one(ann)).text
    sent = {"name": "Anna", "email": "", "language": "fr", "level": "3", "groups": "night shift"}
    desk.post(one(ann, "change/"), sent)
    ann = Annotator.objects.get(pk=ann.pk)
    assert [*ann.user.groups.order_by("name").values_list("name", flat=True)] == ["night shift", "staff"]
    assert not Group.objects.filter(name="students").exists()
    assert (ann.user.get_full_name(), ann.user.email, ann.adjudicates) == ("Anna", "", False)
    assert (languages("ann"), ann.user.has_usable_password()) == (["fr:3"], True)


def test_links_are_made_and_withdrawn_and_people_locked_out_and_let_in(desk, person):
    ann, bob = person("ann", "de"), person("bob", "en")
    before, other = accounts.invite(ann), accounts.invite(bob)

    def do(act):
        return desk.post(one(ann, "do/"), {"do": act}, follow=True)

    [link] = links(do("link"))
    assert accounts.find_invite(token_of(link)).annotator == ann
    assert accounts.find_invite(other).annotator == bob
    assert desk.get(f"/invite/{before}/").status_code == 404
    assert "1 link revoked." in words(do("withdraw"))
    assert desk.get(f"/invite/{token_of(link)}/").status_code == 404
    assert "Withdraw the link" not in words(desk.get(one(ann)))
    assert "ann is locked out." in words(do("lock_out"))
    assert not User.objects.get(username="ann").is_active
    assert "ann can log in again." in words(do("let_in"))
    assert User.objects.get(username="ann").is_active
    AccessAttempt.objects.create(username="ann", ip_address="1.2.3.4", failures_since_start=7)
    assert "7 recent login attempts with a wrong password" in words(desk.get(one(ann)))
    assert "7 wrong passwords cleared" in words(do("unlock"))
    assert not AccessAttempt.objects.exists()
    assert do("delete").status_code == 400


# --- managers


def test_a_superuser_makes_managers_and_of_accounts_that_exist_only_when_asked_twice(desk, person):
    def make(**fields):
        return desk.post(f"{ACCOUNTS}managers/new/", fields)

    [password] = re.findall(r"with the password (\S+) \(shown only", words(make(name="mia")))
    assert User.objects.get(username="mia").is_superuser
    assert User.objects.get(username="mia").check_password(password)
    assert password not in desk.get(PEOPLE).text
    person("ann", "de")
    assert "The account ann already exists." in words(make(name="ann", sure="bea"))
    assert not User.objects.get(username="ann").is_staff
    assert "ann is a manager." in words(make(name="ann", sure="ann"))
    assert User.objects.get(username="ann").is_superuser
    refused = make(name="e v e")
    assert (refused.status_code, "'e v e' is not a valid user name" in words(refused)) == (400, True)


# --- in a browser


def test_a_link_is_marked_whole_and_copied_by_a_button_and_all_links_by_another(new_page, manager):
    page = new_page(user=manager)
    page.goto(NEW)
    page.fill("#people", "eve\nfay")
    page.locator("[name=language]").first.fill("German")
    page.locator("[name=level]").first.select_option("5")
    page.press("#groups", "Enter")
    links = [page.input_value(f"#link-{number}") for number in (1, 2)]
    page.locator("[data-copies]").first.click()
    page.wait_for_selector("text=Copied")
    assert page.evaluate("getSelection().toString()") == links[0]
    page.click("text=Copy all links")
    assert page.input_value("#all-links") == f"eve\t{links[0]}\nfay\t{links[1]}\n"


def test_without_a_script_the_link_is_there_and_no_button_and_a_reload_sends_no_form_again(new_page, manager):
    page = new_page(user=manager, java_script_enabled=False)
    page.goto(NEW)
    page.click("text=Groups, and people as a table")
    page.fill("#table", HEADER + "eve,Eve Ray,de:5")
    page.click("text=Create links")
    assert page.locator("[data-copies]:visible").count() == 0
    assert "/invite/" in page.input_value("#link-1")
    assert (page.reload().request.method, page.locator("#link-1").count()) == ("GET", 1)
