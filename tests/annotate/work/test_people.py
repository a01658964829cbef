"""The table of people, the accounts created from it, and invitation links."""

import io
import re
import sys
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError
from django.urls import reverse
from django.utils import timezone

from annotate.actions.registry import call_command
from annotate.core.refusals import NotFound
from annotate.models import Annotator, Invite
from annotate.work import accounts
from annotate.work.accounts import add_annotators
from annotate.work.people_file import BadTable, Row
from annotate.work.routes import unknown_code
from tests.annotate.people_tables import rows_of

HEADER = "username,name,languages\n"
PASSWORD = "horse battery staple"


def faults(text):
    with pytest.raises(BadTable) as caught:
        rows_of(text)
    return list(caught.value.args)


@pytest.fixture
def add(tmp_path, capsys):
    """add("ann,Ann,de:5", "--again") imports a table with these lines and returns the output and the messages."""
    table = tmp_path / "people.csv"

    def run(lines, *options):
        table.write_text("\ufeff" + HEADER + lines + "\n", encoding="utf-8")
        call_command("add_annotators", str(table), *options)
        return capsys.readouterr()

    return run


def levels(annotator):
    return {row.language: row.level for row in annotator.languages.all()}


def invite_page(token):
    return reverse("invite", args=[token])


def set_password(client, token, first=PASSWORD, second=None):
    return client.post(invite_page(token), {"new_password1": first, "new_password2": second or first})


ANN = Row("ann", "Ann Lee", {"de": 5, "en": 4})


# --- the table


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (f"{HEADER}ann,Ann Lee,de:5 en:4\nli,Li,zh-TW:3\n", [ANN, Row("li", "Li", {"zh-TW": 3})]),
        ("languages,name,username\nde:5 en:4,Ann Lee,ann\n", [ANN]),
        *(
            (f"{HEADER}ann,Ann Lee,{cell}\n", [ANN])
            for cell in ("de:5;en:4", '"de:5, en:4"', " de:5  en:4 ", "de:5; en:4;")
        ),
        *((f"\ufeff{HEADER}ann,Ann Lee,de:5 en:4\n".replace("\n", ending), [ANN]) for ending in ("\r\n", "\r")),
        # Names are stored in the form that the log-in compares.
        (f"{HEADER}Ｚoe\u0301,Zoé,fr:5\n", [Row("Zoé", "Zoé", {"fr": 5})]),
    ],
)
def test_a_table_from_any_program_gives_a_row_for_each_person(text, rows):
    assert rows_of(text) == rows


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("people.csv", (HEADER.replace(",", "\t") + "ann\tAnn Lee\tde:5 en:4\n").encode("utf-16")),
        ("people.jsonl", '{"username": "ann", "name": "Ann Lee", "languages": ["de:5", "en:4"]}\n'),
    ],
)
def test_a_table_may_have_any_format_that_has_rows(name, content):
    assert rows_of(content, name) == [ANN]


UNKNOWN = (
    "Unknown columns: {}. The columns are username, name, languages, adjudicates and email. "
    "Rename or remove the unknown columns."
)
MISSING = "The first line must contain the columns username, name, languages, but contains {}."
REWRITTEN = "Line 2: the user name {} is a number that another program has rewritten. Save it as text."


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "languages,team,name,username,Adjudicates\nde,A,Ann Lee,ann,yes\n",
            UNKNOWN.format("'team', 'Adjudicates'"),
        ),
        (
            "username,name,languages,\nann,Ann,de,\n",
            UNKNOWN.format("a column without a name, between or after commas"),
        ),
        ("user,languages\nann,de\n", MISSING.format("user, languages")),
        *((text, MISSING.format("none")) for text in ("\ufeff", "\n")),
        (HEADER, "The table has no rows."),
        *(
            (f"{HEADER}{name},Ann,de:5\n", REWRITTEN.format(name))
            for name in ("1.00", "9.1E+17", "12345678901234567.0")
        ),
        (
            f"{HEADER}Gus,Gus,de:5\ngus,Gus,de:5\n",
            "Line 3: the user name gus differs from Gus only in case. Use Gus if it is the same person.",
        ),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_with_its_fault(text, fault):
    assert faults(text) == [fault]


@pytest.mark.django_db
def test_all_faults_are_reported_at_once_with_their_lines():
    messages = faults(
        HEADER
        + "an n,Ann,de:5\n"  # a space
        + "bob,Bob,xx:5\n"
        + "cleo,Cleo,de:6 en:five\n"
        + "dora,Dora,\n"
        + "dora,Dora,de:5\n"
        + f"{'e' * 151},Emil,de:5\n"
        + "fay,Fay,de:5,en:4\n"  # commas without quotes
        + f"gus,{'G' * 151},de:5\n"
        + "hal,Ha\u0000l,de:5\n"
        + "ida,Ida,zh:5\n"
    )
    name = "is not a valid user name (letters, digits and @.+-_), or occurs twice."
    assert messages == [
        f"Line 2: 'an n' {name}",
        f"Line 3: {unknown_code('xx')}",
        "Line 4: 'de:6' has no level from 0 to 5. Write it as in de:5, where 5 is native.",
        "Line 4: 'en:five' has no level from 0 to 5. Write it as in en:5, where 5 is native.",
        "Line 5: the languages are missing. Write them as in de:5 en:4.",
        f"Line 6: 'dora' {name}",
        f"Line 7: the user name {'e' * 20!r}… is longer than 150 characters.",
        "Line 8: The row has 4 fields, but the header has 3. Separate languages by spaces, or quote them.",
        "Line 9: the name is longer than 150 characters or contains invisible characters.",
        "Line 10: the name is longer than 150 characters or contains invisible characters.",
        "Line 11: 'zh' covers several languages. Enter the ones that the person reads: zh-CN, zh-TW.",
    ]


def test_a_user_name_that_differs_from_an_existing_one_only_in_case_is_refused(person, add):
    person("Éva", "de")
    with pytest.raises(CommandError, match=r"^The user name éva differs from Éva only .*\nNothing was"):
        add("ann,Ann,de:5\néva,Éva,de:5")
    assert [user.username for user in User.objects.all()] == ["Éva"]
    add("Éva,Éva,en:5")
    assert levels(Annotator.objects.get()) == {"en": 5}


# --- making accounts


def test_new_people_get_a_link_and_an_update_keeps_password_and_pseudonym(person):
    ann = person("ann", "de:5 en:4")
    [(same, none), (bea, token)] = add_annotators(
        [Row("ann", "Ann Lee", {"fr": 3}), Row("bea", "Bea van Dijk", {"nl": 5, "de": 4})]
    )
    assert (same, none, levels(ann)) == (ann, None, {"fr": 3})
    user = User.objects.get(username="ann")
    assert (user.get_full_name(), user.check_password("a long password")) == ("Ann Lee", True)
    assert Annotator.objects.get(user=user).pseudonym == ann.pseudonym
    assert (bea.user.first_name, bea.user.last_name) == ("Bea", "van Dijk")
    assert (bea.user.has_usable_password(), levels(bea)) == (False, {"nl": 5, "de": 4})
    assert accounts.find_invite(token).annotator == bea


def test_an_account_that_is_no_annotator_yet_becomes_one_and_keeps_its_rights(manager):
    [(annotator, token)] = add_annotators([Row("manager", "Mo", {"de": 5})])
    assert token is None
    user = User.objects.get()
    assert user == annotator.user
    assert user.is_superuser
    assert user.check_password("a long password")


def test_the_command_prints_links_for_new_people_and_again_for_those_without_a_password(person, add, client):
    person("old", "de nl")
    person("same", "fr")
    table = "old,Old,en:4 de:5\nsame,Same,fr:5\nann,Ann,de:5"
    printed = add(table)
    name, first = printed.out.splitlines()[0].split("\t")
    assert (name, first.startswith("http://localhost:8000/invite/")) == ("ann", True)
    assert "1 annotator created, 2 updated." in printed.out
    changed = [line for line in printed.err.splitlines() if line.startswith("Languages of")]
    assert changed == ["Languages of old: de:5 nl:5 → de:5 en:4."]
    first = first.removeprefix("http://localhost:8000")
    assert client.get(first).status_code == 200
    printed = add(table)
    assert printed.out == "0 annotators created, 3 updated.\n"
    assert "Languages of" not in printed.err
    assert "No password yet: ann. To print new links, use --again.\n" in printed.err
    assert "Passwords unchanged: old, same. If somebody has lost their password" in printed.err
    printed = add(table, "--again", "--site", "https://assay.example.org:8101/")
    [line, counted] = printed.out.splitlines()
    assert re.fullmatch(r"ann\thttps://assay\.example\.org:8101/invite/\S+/", line)
    assert counted.startswith("0 annotators created, 3 updated. Each link can be used once")
    assert "No password yet" not in printed.err
    assert client.get(line.split("8101")[1]).status_code == 200
    assert client.get(first).status_code == 404


def test_an_address_that_is_only_assumed_is_said_to_be(db, add, capsys, settings):
    elsewhere = "If the address of the site is not http://localhost:8000, run the command with --again --site URL."
    assert elsewhere in add("ann,Ann,de:5").out
    assert elsewhere not in add("ann,Ann,de:5", "--again", "--site", "http://localhost:8101").out
    assumed = "(where `serve` listens; set ASSAY_SITE if the site has another address)"
    call_command("add_manager", "mo")
    assert f"Log in at http://localhost:8000/ {assumed} with the password  " in capsys.readouterr().out
    call_command("status")
    assert f"Site         http://localhost:8000 {assumed}\n" in capsys.readouterr().out
    settings.SITE_ASSUMED = False
    call_command("add_manager", "meg")
    call_command("status")
    assert assumed not in capsys.readouterr().out
    settings.SITE = "https://assay.example.org"
    assert "\thttps://assay.example.org/invite/" in add("bea,Bea,de:5").out


def test_who_has_an_account_becomes_a_manager_only_when_that_is_confirmed(person, capsys, monkeypatch, client):
    ann = person("ann", "de")
    monkeypatch.setattr(sys, "stdin", io.StringIO("yes\n"))
    with pytest.raises(CommandError, match=r"^The account ann already exists\. .* Add --yes to confirm\.$"):
        call_command("add_manager", "ann")
    ann.user.refresh_from_db()
    assert not ann.user.is_staff
    call_command("add_manager", "ann", "--yes")
    assert "clear the checkboxes “Staff status” and “Superuser status”" in capsys.readouterr().out
    client.force_login(User.objects.get())
    page = client.get(reverse("admin:auth_user_change", args=[ann.user.pk])).content.decode()
    assert "Staff status" in page
    assert "Superuser status" in page
    call_command("add_manager", "ann")  # changes nothing, so nothing is asked
    User.objects.update(is_superuser=False)
    with pytest.raises(CommandError, match="The account ann already exists"):
        call_command("add_manager", "ann")


def test_how_a_table_was_read_is_reported(db, tmp_path, capsys):
    (tmp_path / "latin.csv").write_bytes((HEADER + "zoe,Zoé,fr:5\n").encode("latin-1"))
    call_command("add_annotators", str(tmp_path / "latin.csv"))
    assert User.objects.get().get_full_name() == "Zoé"
    assert "latin.csv was read as Windows-1252, with columns separated by commas." in "".join(capsys.readouterr())


# --- invitations


@pytest.fixture
def invited(db):
    [(annotator, token)] = add_annotators([Row("annemarie", "Ann Lee", {"de": 5})])
    return annotator, token


def assert_does_not_work(client, token):
    with pytest.raises(NotFound):
        accounts.find_invite(token)
    assert client.get(invite_page(token)).status_code == 404
    reply = set_password(client, token)
    assert reply.status_code == 404
    assert "Ask the manager for a new one." in reply.content.decode()
    assert "_auth_user_id" not in client.session


def test_a_link_of_which_only_the_hash_is_kept_sets_the_password_once_and_logs_in(client, invited):
    annotator, token = invited
    [stored] = Invite.objects.values()
    assert token not in map(str, stored.values())
    assert re.fullmatch("[0-9a-f]{64}", stored["digest"])
    with pytest.raises(NotFound):
        accounts.find_invite(stored["digest"])
    assert "Welcome, Ann Lee" in client.get(invite_page(token)).text
    reply = set_password(client, token)
    assert (reply.status_code, reply.url) == (302, reverse("home"))
    assert client.session["_auth_user_id"] == str(annotator.user.pk)
    client.logout()
    assert_does_not_work(client, token)
    annotator.user.refresh_from_db()
    assert annotator.user.check_password(PASSWORD)


def test_a_link_that_expired_was_withdrawn_replaced_or_made_up_does_not_work(client, invited):
    annotator, token = invited
    assert_does_not_work(client, "made-up")
    new = accounts.invite(annotator)
    assert_does_not_work(client, token)
    days = (annotator.invites.first().expires_at - timezone.now()) / timedelta(days=1)
    assert days > accounts.INVITE_DAYS - 0.01
    annotator.invites.update(expires_at=timezone.now())
    assert_does_not_work(client, new)
    token = accounts.invite(annotator)
    accounts.set_active([annotator], False)
    assert_does_not_work(client, token)
    accounts.set_active([annotator], True)
    assert accounts.find_invite(token)
    assert [accounts.revoke_invites([annotator]) for _ in range(2)] == [1, 0]
    assert_does_not_work(client, token)
    assert set_password(client, accounts.invite(annotator)).status_code == 302


def test_a_table_makes_adjudicators_and_what_it_leaves_empty_stays(db):
    header = "username,name,languages,adjudicates\n"
    add_annotators(rows_of(f"{header}ann,Ann,de:5,yes\nben,Ben,en:4,\nada,Ada A,,yes\n"))
    add_annotators(rows_of(f"{HEADER}ann,,de:4\n"))
    ann, ada = Annotator.objects.filter(adjudicates=True).order_by("pk")
    assert (ann.user.get_full_name(), levels(ann), levels(ada)) == ("Ann", {"de": 4}, {})
    add_annotators(rows_of(f"{header}ann,Ann,de:5,no\n"))
    assert Annotator.objects.get(adjudicates=True) == ada


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("ann,Ann,de:5,maybe,", "adjudicates is 'maybe', but must be yes or no."),
        ("ben,Ben,,no,", "the languages are missing. Write them as in de:5 en:4."),
        ("cleo,Cleo,de:5 de:3,,", "'de' occurs twice."),
        # Some programs write "nan" for missing values.
        ("nan,Ann,de:5,,", "the user name is nan, which programs write for a missing value"),
        ("ann,Ann,nan,,", "the languages are missing"),
    ],
)
def test_a_line_that_says_nothing_usable_is_refused(line, fault):
    header = "username,name,languages,adjudicates,email\n"
    with pytest.raises(BadTable, match=f"^Line 2: {re.escape(fault)}"):
        rows_of(f"{header}{line}\n")
    assert rows_of(f"{header}ann,nan,de:5,nan,NaN\n") == [Row("ann", "", {"de": 5}, False, "")]
