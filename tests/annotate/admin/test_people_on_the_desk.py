"""The manager's desk, by its real pages: people and their invitations."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from annotate.models import Annotator
from annotate.work import accounts
from annotate.work.languages import unknown_code
from tests.annotate.admin.desk import HEADER, Page, address, errors, form_of, page, run


def annotator_form(desk, annotator, **changes):
    path = address(Annotator, "change", annotator.pk)
    return desk.post(path, form_of(desk, path) | changes)


def test_languages_are_added_on_the_page_of_an_annotator(desk, person):
    ann = person("ann", "de:5")
    reply = annotator_form(desk, ann, **{"languages-1-language": "en", "languages-1-level": 4})
    assert reply.status_code == 302
    assert sorted(map(str, ann.languages.all())) == ["de:5", "en:4"]


@pytest.mark.parametrize(
    ("language", "level", "told"),
    [
        (
            "xx",
            5,
            unknown_code("xx"),
        ),
        ("en", 6, "Ensure this value is less than or equal to 5."),
        ("en", -1, "Ensure this value is greater than or equal to 0."),
    ],
)
def test_a_wrong_language_of_an_annotator_is_refused(desk, person, language, level, told):
    ann = person("ann", "de:5")
    reply = annotator_form(desk, ann, **{"languages-1-language": language, "languages-1-level": level})
    assert errors(reply) == [told]
    assert list(map(str, ann.languages.all())) == ["de:5"]


def test_an_annotator_is_made_of_an_account_and_stays_with_it(desk, person):
    eve = User.objects.create_user("eve")
    path = address(Annotator, "add")
    assert desk.post(path, form_of(desk, path) | {"user": eve.pk, "languages-0-language": "de"}).status_code == 302
    annotator = Annotator.objects.get(user=eve)
    assert list(map(str, annotator.languages.all())) == ["de:5"]
    annotator_form(desk, annotator, user=User.objects.create_user("ann").pk)
    annotator.refresh_from_db()
    assert annotator.user == eve


def upload(desk, content):
    table = SimpleUploadedFile("people.csv", content if isinstance(content, bytes) else content.encode())
    return desk.post(reverse("admin:annotate_annotator_import"), {"table": table})


def test_a_table_of_annotators_is_imported_and_the_links_are_shown_once(desk, person, client):
    person("old", "de")
    reply = upload(desk, "\ufeff" + HEADER + "ann,Ann Lee,de:5\nold,Old One,en:5\n")
    shown = Page(reply)
    assert shown.forbidden == []
    [link] = [word for word in shown.words if word.startswith("http://testserver/invite/")]
    assert "updated; has an account already" in shown.text
    assert link.split("/")[-2] not in desk.get(reverse("admin:annotate_annotator_import")).content.decode()
    assert list(map(str, Annotator.objects.get(user__username="old").languages.all())) == ["en:5"]
    desk.logout()
    assert "Welcome, Ann Lee" in client.get(link.removeprefix("http://testserver")).content.decode()


def test_a_bad_table_says_all_its_faults_and_changes_nothing(desk, person):
    old = person("old", "de")
    shown = Page(upload(desk, HEADER + "old,Old,en:5\nb b,Bob,de:5\ncleo,Cleo,xx\ndora,Dora,de:9\n")).text
    for line in ("Line 3:", "Line 4:", "Line 5:", "Nothing was changed."):
        assert line in shown
    assert list(map(str, old.languages.all())) == ["de:5"]
    assert Annotator.objects.count() == 1


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ((HEADER + "zoe,Zoé,fr\n").encode("latin-1"), "The file is not UTF-8. Save it as “CSV UTF-8”."),
        ((HEADER + "zoe,Zoé,fr\n").encode("utf-16"), "The file is not UTF-8. Save it as “CSV UTF-8”."),
        (b"", "The submitted file is empty."),
        (HEADER, "The table has no rows."),
        ("name\nAnn\n", "The first line must name the columns"),
    ],
)
def test_what_is_no_table_is_refused_in_a_sentence(desk, db, content, told):
    assert told in Page(upload(desk, content)).text
    assert not Annotator.objects.exists()


def test_an_upload_without_a_file_is_refused(desk, db):
    assert (
        "This field is required."
        in Page(desk.post(reverse("admin:annotate_annotator_import"), {"csrfmiddlewaretoken": "x"})).text
    )


def test_links_are_made_for_the_selected_and_earlier_ones_stop_working(desk, person):
    ann, bob = person("ann", "de"), person("bob", "en")
    before = accounts.invite(ann)
    kept = accounts.invite(bob)
    shown = Page(run(desk, "send_invites", [ann]))
    assert shown.forbidden == []
    [link] = [word for word in shown.words if word.startswith("http://testserver/invite/")]
    assert accounts.find_invite(link.split("/")[-2]).annotator == ann
    assert accounts.find_invite(kept).annotator == bob
    assert desk.get(reverse("invite", args=[before])).status_code == 404


def test_links_are_revoked_and_counted(desk, person):
    ann, bob = person("ann", "de"), person("bob", "en")
    token = accounts.invite(ann)
    assert "1 link revoked." in Page(run(desk, "revoke_invites", [ann, bob])).text
    assert desk.get(reverse("invite", args=[token])).status_code == 404
    assert "revoked" in page(desk, address(Annotator, "changelist")).text


def test_people_are_locked_out_and_let_in_again(desk, person):
    ann = person("ann", "de")
    assert "Locked out." in Page(run(desk, "lock_out", [ann])).text
    ann.user.refresh_from_db()
    assert not ann.user.is_active
    run(desk, "let_in", [ann])
    ann.user.refresh_from_db()
    assert ann.user.is_active


def test_the_list_says_what_somebody_reads_has_judged_and_how_their_invite_stands(desk, world):
    ann = Annotator.objects.get(user__username="ann")
    shown = page(desk, address(Annotator, "changelist")).text
    assert "de:5 en:4" in shown
    assert f"open until {ann.invites.get().expires_at:%Y-%m-%d}" in shown
    found = admin.site._registry[Annotator].get_queryset(None).get(pk=ann.pk)
    assert found.live_judgments == 2
    ann.invites.update(expires_at=ann.invites.get().created_at)
    assert "expired" in page(desk, address(Annotator, "changelist")).text
