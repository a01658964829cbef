import io
import re
import sys
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError
from django.urls import reverse
from django.utils import timezone

from annotate.actions.commands import call_command
from annotate.core.refusals import NotFound
from annotate.models import Annotator, Invite
from annotate.work import accounts
from annotate.work.accounts import add_annotators
from annotate.work.people_file import BadTable, Row, read_table
from annotate.work.routes import unknown_code

HEADER = "username,name,languages\n"
PASSWORD = "horse battery staple"


def faults(text):
    with pytest.raises(BadTable) as caught:
        read_table(text)
    return list(caught.value.args)


def levels(annotator):
    return {row.language: row.level for row in annotator.languages.all()}


def invite_page(token):
    return reverse("invite", args=[token])


def set_password(client, token, first=PASSWORD, second=None):
    return client.post(invite_page(token), {"new_password1": first, "new_password2": second or first})


# --- the table


def test_a_table_gives_a_row_for_each_person():
    assert read_table(HEADER + "marta,Marta Nowak,pl:5 en:4\nli,Li,zh-TW:3\n") == [
        Row("marta", "Marta Nowak", {"pl": 5, "en": 4}),
        Row("li", "Li", {"zh-TW": 3}),
    ]


@pytest.mark.parametrize("languages", ["de:5 en:4", "de:5;en:4", '"de:5, en:4"', " de:5  en:4 ", "de:5; en:4;"])
def test_languages_may_be_written_with_spaces_semicolons_or_quoted_commas(languages):
    assert read_table(f"{HEADER}ann,Ann,{languages}\n")[0].levels == {"de": 5, "en": 4}


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_a_table_may_come_from_any_system(ending):
    text = "\ufeff" + (HEADER + "ann,Ann,de:5\nbob,Bob,en:5\n").replace("\n", ending)
    assert [row.username for row in read_table(text)] == ["ann", "bob"]


def test_the_columns_may_stand_in_any_order():
    assert read_table("languages,name,username\nde:5,Ann Lee,ann\n") == [Row("ann", "Ann Lee", {"de": 5})]


def test_a_column_that_is_not_known_is_refused_by_its_name():
    told = "There are username, name, languages, adjudicates and email; rename them, or take them out."
    assert faults("languages,team,name,username,Adjudicates\nde,A,Ann Lee,ann,yes\n") == [
        f"Columns that are not known here: 'team', 'Adjudicates'. {told}"
    ]
    assert faults("username,name,languages,\nann,Ann,de,\n") == [
        f"Columns that are not known here: one without a name, between or after commas. {told}"
    ]


@pytest.mark.parametrize(("separator", "words"), [(";", "semicolons"), ("\t", "tabs")])
def test_a_table_with_another_separator_is_refused_with_what_to_do(separator, words):
    table = (HEADER + "ann,Ann,de\n").replace(",", separator)
    [fault] = faults(table)
    assert fault.endswith(f"The columns seem to be separated by {words}: save the table with commas between them.")


def test_missing_columns_are_named_with_those_that_are_there():
    assert faults("user,languages\nann,de\n") == [
        "The first line must name the columns username, name, languages; it names user, languages."
    ]


@pytest.mark.parametrize("text", ["", "\ufeff", "\n"])
def test_an_empty_file_is_refused(text):
    assert faults(text) == ["The first line must name the columns username, name, languages; it names none."]


def test_a_table_without_rows_is_refused():
    assert faults(HEADER) == ["The table has no rows."]


@pytest.mark.django_db
def test_all_faults_are_said_at_once_each_with_its_line():
    told = faults(
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
    name = "is not a user name (letters, digits and @.+-_), or stands here twice."
    assert told == [
        f"Line 2: 'an n' {name}",
        f"Line 3: {unknown_code('xx')}",
        "Line 4: 'de:6' has no level from 0 to 5; write it like de:5, where 5 is native.",
        "Line 4: 'en:five' has no level from 0 to 5; write it like en:5, where 5 is native.",
        "Line 5: no language is named; write them like this: de:5 en:4.",
        f"Line 6: 'dora' {name}",
        f"Line 7: {'e' * 151!r} {name}",
        "Line 8: there are more cells than columns; separate languages by spaces, or quote them.",
        "Line 9: the name is longer than 150 characters, or has some that cannot be seen.",
        "Line 10: the name is longer than 150 characters, or has some that cannot be seen.",
        "Line 11: 'zh' stands for several labels; name those that the person reads: zh-CN, zh-TW.",
    ]


@pytest.mark.parametrize("username", ["1.0", "1.00", "9.1E+17", "12345678901234567.0"])
def test_a_user_name_that_a_spreadsheet_has_rewritten_is_refused(username):
    assert faults(f"{HEADER}{username},Ann,de:5\n") == [
        f"Line 2: the user name {username} is a number that another program has rewritten; save it as text."
    ]


def test_user_names_that_differ_only_in_case_are_refused(person, tmp_path):
    assert faults(f"{HEADER}Gus,Gus,de:5\ngus,Gus,de:5\n") == [
        "Line 3: the user name gus differs from Gus only in case; use Gus if it is the same person."
    ]
    person("Éva", "de")
    table = tmp_path / "people.csv"
    table.write_text(f"{HEADER}ann,Ann,de:5\néva,Éva,de:5\n", encoding="utf-8")
    with pytest.raises(CommandError, match=r"^The user name éva differs from Éva only .*\nNothing was"):
        call_command("add_annotators", str(table))
    assert [user.username for user in User.objects.all()] == ["Éva"]
    table.write_text(f"{HEADER}Éva,Éva,en:5\n", encoding="utf-8")
    call_command("add_annotators", str(table))
    assert levels(Annotator.objects.get()) == {"en": 5}


def test_a_cell_without_end_is_a_fault_and_no_crash():
    cell = '"' + "x" * 200_000
    told = "this is not CSV: field larger than field limit (131072)."
    assert faults(HEADER + "b b,Bob,de:5\nann," + cell)[1:] == [f"Line 3: {told}"]
    assert faults(cell) == [f"Line 1: {told}"]


def test_a_user_name_is_taken_as_it_will_be_compared_at_the_login():
    assert read_table(HEADER + "Ｚoe\u0301,Zoé,fr:5\n")[0].username == "Zoé"


# --- making accounts


def test_new_annotators_get_a_link_and_no_password(db):
    [(ann, token)] = add_annotators([Row("ann", "Ann van Dijk", {"nl": 5, "de": 4})])
    assert (ann.user.first_name, ann.user.last_name) == ("Ann", "van Dijk")
    assert not ann.user.has_usable_password()
    assert levels(ann) == {"nl": 5, "de": 4}
    assert accounts.find_invite(token).annotator == ann


def test_an_update_replaces_languages_and_name_and_keeps_password_and_pseudonym(person):
    ann = person("ann", "de:5 en:4")
    [(same, token)] = add_annotators([Row("ann", "Ann Lee", {"fr": 3})])
    assert (same, token) == (ann, None)
    assert levels(ann) == {"fr": 3}
    user = User.objects.get(username="ann")
    assert user.get_full_name() == "Ann Lee"
    assert user.check_password("a long password")
    assert Annotator.objects.get().pseudonym == ann.pseudonym


def test_an_account_that_is_no_annotator_yet_becomes_one_and_keeps_its_rights(manager):
    [(annotator, token)] = add_annotators([Row("manager", "Mo", {"de": 5})])
    assert token is None
    user = User.objects.get()
    assert user == annotator.user
    assert user.is_superuser
    assert user.check_password("a long password")


def test_the_command_prints_a_link_for_each_new_person(person, tmp_path, capsys, client):
    person("old", "de")
    table = tmp_path / "people.csv"
    table.write_text("\ufeff" + HEADER + "old,Old,en:5\nann,Ann,de:5\n", encoding="utf-8")
    call_command("add_annotators", str(table))
    out = capsys.readouterr().out
    name, link = out.splitlines()[0].split("\t")
    assert name == "ann"
    assert link.startswith("http://localhost:8000/invite/")
    assert "1 annotator made, 1 updated." in out
    assert client.get(link.removeprefix("http://localhost:8000")).status_code == 200


def test_the_command_lists_whose_languages_the_file_replaced(person, tmp_path, capsys):
    person("old", "de nl")
    person("same", "fr")
    table = tmp_path / "people.csv"
    table.write_text(HEADER + "old,Old,en:4 de:5\nsame,Same,fr:5\nnew,New,en:5\n", encoding="utf-8")
    call_command("add_annotators", str(table))
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if line.startswith("Languages of")] == ["Languages of old: de:5 nl:5 → de:5 en:4."]
    call_command("add_annotators", str(table))
    assert "Languages of" not in capsys.readouterr().err


def test_who_has_set_no_password_gets_a_new_link_where_it_is_asked_for(person, tmp_path, capsys, client):
    person("old", "de")
    table = tmp_path / "people.csv"
    table.write_text(HEADER + "old,Old,en:5\nann,Ann,de:5\n", encoding="utf-8")
    call_command("add_annotators", str(table))
    first = capsys.readouterr().out.split()[1]
    call_command("add_annotators", str(table))
    told = capsys.readouterr()
    assert told.out == "0 annotators made, 2 updated.\n"
    assert "No password set yet: ann; --again prints new links for them.\n" in told.err
    assert "With a password of their own, which stays: old. Whoever has lost it gets a new link on" in told.err
    call_command("add_annotators", str(table), "--again", "--site", "https://assay.example.org:8101/")
    told = capsys.readouterr()
    [line, counted] = told.out.splitlines()
    assert re.fullmatch(r"ann\thttps://assay\.example\.org:8101/invite/\S+/", line)
    assert counted.startswith("0 annotators made, 2 updated. Each link sets a password once")
    assert "No password set yet" not in told.err
    assert client.get(line.split("8101")[1]).status_code == 200
    assert client.get(first.removeprefix("http://localhost:8000")).status_code == 404


def test_an_address_that_is_only_assumed_is_said_to_be(db, tmp_path, capsys, settings):
    table = tmp_path / "people.csv"
    table.write_text(HEADER + "ann,Ann,de:5\n", encoding="utf-8")
    elsewhere = "If people reach the site elsewhere than at http://localhost:8000, run it with --again --site URL."
    call_command("add_annotators", str(table))
    assert elsewhere in capsys.readouterr().out
    call_command("add_annotators", str(table), "--again", "--site", "http://localhost:8101")
    assert elsewhere not in capsys.readouterr().out
    beside = "(assumed; set ASSAY_SITE if people reach the site at another)"
    call_command("add_manager", "mo")
    assert f"Log in at http://localhost:8000/ {beside} with the password  " in capsys.readouterr().out
    call_command("status")
    assert f"Site         http://localhost:8000 {beside}\n" in capsys.readouterr().out
    settings.SITE_ASSUMED = False
    call_command("add_manager", "meg")
    call_command("status")
    assert "assumed" not in capsys.readouterr().out


def test_who_has_an_account_becomes_a_manager_only_when_that_is_confirmed(person, capsys, monkeypatch, client):
    ann = person("ann", "de")
    monkeypatch.setattr(sys, "stdin", io.StringIO("yes\n"))
    with pytest.raises(CommandError, match=r"^There is an account ann already\. .* Add --yes if you mean it\.$"):
        call_command("add_manager", "ann")
    ann.user.refresh_from_db()
    assert not ann.user.is_staff
    call_command("add_manager", "ann", "--yes")
    assert "take the ticks off “Staff status” and “Superuser status”" in capsys.readouterr().out
    client.force_login(User.objects.get())
    page = client.get(reverse("admin:auth_user_change", args=[ann.user.pk])).content.decode()
    assert "Staff status" in page
    assert "Superuser status" in page
    call_command("add_manager", "ann")  # changes nothing, so nothing is asked
    User.objects.update(is_superuser=False)
    with pytest.raises(CommandError, match="There is an account ann already"):
        call_command("add_manager", "ann")


def test_links_begin_with_where_people_reach_the_site(db, tmp_path, capsys, settings):
    settings.SITE = "https://assay.example.org"
    table = tmp_path / "people.csv"
    table.write_text(HEADER + "ann,Ann,de:5\n", encoding="utf-8")
    call_command("add_annotators", str(table))
    assert "\thttps://assay.example.org/invite/" in capsys.readouterr().out


def test_the_command_says_all_faults_and_changes_nothing(db, tmp_path):
    table = tmp_path / "people.csv"
    table.write_text(HEADER + "ann,Ann,de:5\nbob,Bob,xx\ncleo,Cleo,de:9\n", encoding="utf-8")
    with pytest.raises(CommandError) as caught:
        call_command("add_annotators", str(table))
    assert re.search(r"Line 3.*\nLine 4.*\nNothing was changed\.$", str(caught.value))
    assert not User.objects.exists()


def test_the_command_says_which_file_it_cannot_read(db, tmp_path):
    with pytest.raises(CommandError, match=r"none\.csv cannot be read"):
        call_command("add_annotators", str(tmp_path / "none.csv"))
    latin = tmp_path / "latin.csv"
    latin.write_bytes((HEADER + "zoe,Zoé,fr\n").encode("latin-1"))
    with pytest.raises(CommandError, match=r"latin\.csv is not UTF-8"):
        call_command("add_annotators", str(latin))


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


def test_only_the_hash_of_a_link_is_kept(invited):
    _, token = invited
    [stored] = Invite.objects.values()
    assert token not in map(str, stored.values())
    assert re.fullmatch("[0-9a-f]{64}", stored["digest"])
    with pytest.raises(NotFound):
        accounts.find_invite(stored["digest"])


def test_the_page_greets_sets_the_password_and_logs_in(client, invited):
    annotator, token = invited
    page = client.get(invite_page(token)).content.decode()
    assert "Welcome, Ann Lee" in page
    reply = set_password(client, token)
    assert reply.status_code == 302
    assert reply.url == reverse("home")
    assert client.session["_auth_user_id"] == str(annotator.user.pk)
    annotator.user.refresh_from_db()
    assert annotator.user.check_password(PASSWORD)


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ("short1", None, "too short"),
        ("password123", None, "too common"),
        ("annemarie1", None, "too similar"),
        (PASSWORD, PASSWORD + "r", "didn’t match"),
        (" ", " ", "too short"),
    ],
)
def test_a_weak_or_mistyped_password_is_refused_and_the_link_still_works(client, invited, first, second, told):
    annotator, token = invited
    reply = set_password(client, token, first, second)
    assert reply.status_code == 200
    assert told in reply.content.decode()
    annotator.user.refresh_from_db()
    assert not annotator.user.has_usable_password()
    assert accounts.find_invite(token)


def test_a_link_works_once(client, invited):
    annotator, token = invited
    set_password(client, token)
    client.logout()
    assert_does_not_work(client, token)
    annotator.user.refresh_from_db()
    assert annotator.user.check_password(PASSWORD)


def test_a_link_expires(client, invited):
    annotator, token = invited
    invite = annotator.invites.get()
    assert invite.expires_at - timezone.now() > timedelta(days=accounts.INVITE_DAYS, minutes=-1)
    annotator.invites.update(expires_at=timezone.now())
    assert_does_not_work(client, token)


def test_a_link_can_be_withdrawn(client, invited):
    annotator, token = invited
    assert accounts.revoke_invites([annotator]) == 1
    assert accounts.revoke_invites([annotator]) == 0
    assert_does_not_work(client, token)


def test_a_new_link_withdraws_the_one_before(client, invited):
    annotator, old = invited
    new = accounts.invite(annotator)
    assert_does_not_work(client, old)
    assert set_password(client, new).status_code == 302


def test_a_link_of_somebody_locked_out_does_not_work_until_they_are_let_in_again(client, invited):
    annotator, token = invited
    accounts.set_active([annotator], False)
    assert_does_not_work(client, token)
    accounts.set_active([annotator], True)
    assert accounts.find_invite(token)


def test_made_up_links_do_not_work(client, db):
    assert_does_not_work(client, "made-up")


def test_locking_out_ends_sessions_at_once(client, person):
    ann = person("ann", "de")
    client.force_login(ann.user)
    assert client.get(reverse("home")).status_code == 200
    accounts.set_active([ann], False)
    assert client.get(reverse("home")).status_code == 302


def test_a_table_can_make_adjudicators_and_leaves_them_alone_where_it_does_not_say(db):
    header = "username,name,languages,adjudicates\n"
    add_annotators(read_table(f"{header}ann,Ann,de:5,yes\nben,Ben,en:4,\n"))
    assert [str(a.user.username) for a in Annotator.objects.filter(adjudicates=True)] == ["ann"]
    add_annotators(read_table("username,name,languages\nann,Ann,de:4\n"))
    assert Annotator.objects.get(user__username="ann").adjudicates
    add_annotators(read_table(f"{header}ann,Ann,de:5,no\n"))
    assert not Annotator.objects.filter(adjudicates=True).exists()
    with pytest.raises(BadTable) as caught:
        read_table(f"{header}ann,Ann,de:5,maybe\n")
    assert caught.value.args == ("Line 2: adjudicates is 'maybe'; write yes or no.",)


def test_an_adjudicator_needs_no_language_and_an_empty_name_wipes_none(db):
    header = "username,name,languages,adjudicates\n"
    add_annotators(read_table(f"{header}ada,Ada A,,yes\n"))
    add_annotators(read_table(f"{header}ada,,de:5,yes\n"))
    ada = Annotator.objects.get()
    assert (ada.user.get_full_name(), ada.adjudicates) == ("Ada A", True)
    with pytest.raises(BadTable) as caught:
        read_table(f"{header}ben,Ben,,no\ncleo,Cleo,de:5 de:3,\n")
    assert caught.value.args == (
        "Line 2: no language is named; write them like this: de:5 en:4.",
        "Line 3: 'de' is named twice.",
    )


def test_a_word_for_none_is_no_person_and_no_address():
    header = "username,name,languages,adjudicates,email\n"
    assert read_table(f"{header}ann,nan,de:5,nan,NaN\n") == [Row("ann", "", {"de": 5}, False, "")]
    with pytest.raises(BadTable, match="Line 2: the user name is nan, which another program writes where there is"):
        read_table(f"{header}nan,Ann,de:5,,\n")
    with pytest.raises(BadTable, match="Line 2: no language is named"):
        read_table(f"{header}ann,Ann,nan,,\n")
