"""Personal settings: the look of pages, times and keys, and requests for languages."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone, translation

from annotate.core.refusals import InvalidAnswer, NotAllowed, NotFound
from annotate.kinds import Answer
from annotate.models import Flag, Judgment, LanguageRequest, Preferences
from annotate.work.accounts import grant, preferences_of, refuse, request_language
from annotate.work.judgments import judge
from annotate.work.permit import midnight, permit_of
from annotate.work.queue import take
from tests.annotate.acts import signed_in
from tests.annotate.conftest import DISPUTED
from tests.annotate.hands import answers_of, let_guard_pass
from tests.looks import faults

NONE = {"text_size": "", "theme": "", "keys": "", "time_zone": "", "language": "", "goal": ""}


def save(client, **values):
    return client.post("/account/preferences/", NONE | values, follow=True)


# --- what is kept


def test_what_was_set_is_on_every_page_from_each_log_in_on_for_that_person_alone(as_ann, ann, person, manager):
    save(as_ann, text_size="larger", theme="dark", keys="left", goal="300")
    frame = '<html lang="en" dir="ltr" data-theme="dark" data-text="larger" data-keys="left">'
    for client in (as_ann, signed_in(ann)):
        assert [frame in client.get(address).text for address in ("/", "/account/", "/docs/")] == [True] * 3
        assert 'value="300"' in client.get("/account/preferences/").text
    assert '<html lang="en" dir="ltr">' in signed_in(person("bea", "de")).get("/").text
    save(as_ann)
    assert '<html lang="en" dir="ltr">' in as_ann.get("/").text
    assert preferences_of(ann.user) == NONE | {"goal": None}
    managers = signed_in(manager)
    save(managers, theme="light")
    assert 'data-theme="light"' in managers.get("/manage/").text


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"time_zone": "Mars/Olympus"}, "This time zone does not exist"),
        ({"time_zone": "../../etc/passwd"}, "This time zone does not exist"),
        ({"theme": "pink"}, "Select a valid choice"),
        ({"language": "xx"}, "Select a valid choice"),
        ({"goal": "0"}, "greater than or equal to 1"),
        ({"goal": "many"}, "Enter a whole number"),
    ],
)
def test_what_no_page_has_is_refused_in_a_sentence_and_nothing_is_kept(as_ann, ann, values, sentence):
    assert sentence in as_ann.post("/account/preferences/", NONE | values).text
    assert not Preferences.objects.filter(user=ann.user).exists()


def test_the_database_refuses_preferences_that_no_page_has(ann):
    for values in ({"theme": "pink"}, {"keys": "both"}, {"text_size": "huge"}, {"goal": 0}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Preferences.objects.create(user=ann.user, **values)


def test_a_request_takes_no_statement_for_preferences_after_the_first_of_a_session(as_ann):
    save(as_ann, theme="dark", time_zone="Asia/Tokyo")
    with CaptureQueriesContext(connection) as queries:
        assert 'data-theme="dark"' in as_ann.get("/account/preferences/").text
    statements = [query["sql"] for query in queries if "annotate_preferences" in query["sql"]]
    assert len(statements) == 1  # the form's own
    with CaptureQueriesContext(connection) as queries:
        as_ann.get("/account/")
    assert not [query for query in queries if "annotate_preferences" in query["sql"] or "UPDATE" in query["sql"]]


# --- the language of the pages, and time zones


def test_the_chosen_language_holds_whatever_the_browser_asks_for_except_where_all_is_english(
    as_ann, make_task, manager
):
    make_task([DISPUTED])
    with translation.override("ar"):
        assert translation.gettext("Your preferences are saved.") in save(as_ann, language="ar").text
        assert translation.gettext("Log out") in as_ann.get("/").text
    for address in ("/", "/tasks/task/", "/account/", "/account/preferences/"):
        page = as_ann.get(address, headers={"Accept-Language": "de"})
        assert ('<html lang="ar" dir="rtl"' in page.text, page["Content-Language"]) == (True, "ar")
    managers = signed_in(manager)
    save(managers, language="ar")
    for page in (as_ann.get("/docs/"), managers.get("/manage/")):
        assert ('<html lang="en" dir="ltr"' in page.text, page["Content-Language"]) == (True, "en")
    assert '<html lang="ar" dir="rtl"' in managers.get("/account/").text
    refused = as_ann.get("/api/v1/tasks/nowhere/")
    assert (refused.status_code, refused["Content-Language"], refused.text.isascii()) == (404, "en", True)
    save(as_ann)
    assert '<html lang="de" dir="ltr"' in as_ann.get("/", headers={"Accept-Language": "de"}).text


def test_times_are_told_in_ones_own_zone(as_ann, ann, make_task):
    task = make_task([DISPUTED])
    judgment = judge(ann, take(ann, task).pk, Answer("de"))
    at = midnight() + timedelta(hours=0, minutes=7, seconds=9)
    Judgment.objects.filter(pk=judgment.pk).update(answered_at=at, shown_at=at)
    assert "00:07" in as_ann.get("/tasks/task/answers/").text
    save(as_ann, time_zone="Asia/Tokyo")
    assert "09:07" in as_ann.get("/tasks/task/answers/").text


def test_the_day_of_what_one_is_given_and_of_what_counts_stays_the_installations(make_records_task, ann):
    """Otherwise, moving to the east would give a person twice as much disturbing work."""
    task = make_records_task("toxic_pairs", count=1)
    here = midnight()
    for zone in ("Pacific/Kiritimati", "Pacific/Niue"):
        with timezone.override(zone):
            assert midnight() == here
            assert permit_of(ann, task).read_today == 0


# --- languages that people read


def test_a_language_is_asked_for_granted_and_read_from_then_on(as_ann, ann, make_task, manager):
    task, page = make_task([DISPUTED]), "/manage/people/languages/"
    ann.languages.all().delete()
    request = {"language": "de", "level": "5", "words": "I grew up there"}
    response = as_ann.post("/account/languages/", request, follow=True)
    assert "German: a manager has not decided yet" in response.text
    assert take(ann, task) is None
    managers = signed_in(manager)
    assert "Language requests</a>: 1 open" in managers.get("/manage/").text
    shown = managers.get(page).text
    assert "I grew up there" in shown
    [number] = re.findall('name="grant" value="([0-9]+)"', shown)
    assert managers.post(page, {}).status_code == 400
    assert managers.post(page, {"grant": "999"}).status_code == 404
    done = managers.post(page, {"grant": number, f"level-{number}": "4"}, follow=True)
    assert "ann can now read German." in done.text
    assert [str(row) for row in ann.languages.all()] == ["de:4"]
    assert "German: granted" in as_ann.get("/account/languages/").text
    assert take(ann, task)


def test_a_language_that_is_refused_changes_nothing_and_may_be_asked_for_again(as_ann, ann, manager):
    refuse(request_language(ann, "fr", 3).pk, manager)
    assert "French: refused" in as_ann.get("/account/languages/").text
    assert [str(row) for row in ann.languages.all()] == ["de:5"]
    assert request_language(ann, "fr", 3).outcome == ""


@pytest.mark.parametrize(
    ("language", "level", "sentence"),
    [
        ("xx", 5, "Choose a language from the list"),
        ("", 5, "Choose a language from the list"),
        ("fr", None, "from 1"),
        ("fr", 9, "from 1"),
        ("de", 5, "already"),
        ("it", 5, "no manager has decided yet"),
    ],
)
def test_what_cannot_be_asked_for_is_refused_in_a_sentence(as_ann, ann, language, level, sentence):
    request_language(ann, "it", 5)
    with pytest.raises(InvalidAnswer, match=sentence):
        request_language(ann, language, level)
    page = as_ann.post("/account/languages/", {"language": language, "level": level or ""})
    assert (page.status_code, sentence in page.text) == (400, True)
    assert LanguageRequest.objects.count() == 1


def test_two_managers_decide_once(ann, manager):
    request = request_language(ann, "fr", 4)
    grant(request.pk, manager)
    for decide in (grant, refuse):
        with pytest.raises(NotFound, match="has already been decided"):
            decide(request.pk, manager)
    assert sorted(map(str, ann.languages.all())) == ["de:5", "fr:4"]


def test_staff_who_may_not_change_annotators_or_their_own_account_grant_nothing(ann, person):
    onlooker = User.objects.create_user("onlooker", password="a long password", is_staff=True)
    request = request_language(ann, "fr", 4)
    refused = signed_in(onlooker).post("/manage/people/languages/", {"grant": request.pk})
    assert (refused.status_code, "lacks the permission" in refused.text) == (403, True)
    annotator = person("clerk")
    User.objects.filter(pk=annotator.user.pk).update(is_staff=True)
    clerk = User.objects.get(pk=annotator.user.pk)
    clerk.user_permissions.set(Permission.objects.filter(content_type__app_label="annotate"))
    with pytest.raises(NotAllowed):
        grant(request_language(annotator, "fr", 5).pk, clerk)
    grant(request.pk, clerk)
    assert [row.outcome for row in LanguageRequest.objects.order_by("pk")] == ["granted", ""]


# --- in a browser


def test_letters_of_the_chosen_hand_answer_and_stand_on_the_buttons(make_task, ann, at_work):
    task = make_task([DISPUTED] * 3)
    Preferences.objects.create(user=ann.user, keys="right")
    hands = at_work(task, ann)
    caps = hands.page.locator("#answers .languages kbd").all_inner_texts()
    assert caps[0] == "J"
    hands.press_and_wait("KeyJ")
    hands.press_and_wait("Digit1")
    assert [label for _, label, _ in answers_of(ann)] == ["de", "de"]
    let_guard_pass(hands.page)
    hands.press("KeyQ")
    hands.press_and_wait("KeyJ")
    [_, _, (_, label, reason)] = answers_of(ann)
    assert (label, bool(reason)) == ("und", True)


@pytest.mark.slow
def test_beside_letters_of_the_left_hand_f_still_flags_and_the_letters_choose_among_the_flags(make_task, ann, at_work):
    task = make_task([DISPUTED] * 2)
    Preferences.objects.create(user=ann.user, keys="left")
    hands = at_work(task, ann)
    let_guard_pass(hands.page)
    hands.press("KeyF")
    assert hands.page.locator("#flag .sheet kbd").all_inner_texts() == ["A", "S", "D", "E"]
    hands.press("KeyS")
    hands.page.wait_for_selector("text=The manager has received your flag")
    assert [flag.kind for flag in Flag.objects.all()] == ["personal"]
    assert not Judgment.objects.exists()


def test_a_question_mark_shows_all_keys_of_the_page_and_again_hides_them(make_task, ann, at_work):
    task = make_task([DISPUTED] * 2)
    page = at_work(task, ann).page
    let_guard_pass(page)
    assert not page.locator("#keys dl").is_visible()
    page.keyboard.press("?")
    listed = " ".join(page.inner_text("#keys dl").split())
    assert "F flag the item for the manager" in listed
    assert "Z undo the last answer" in listed
    assert faults(page) == []
    page.keyboard.press("Escape")
    assert not page.locator("#keys dl").is_visible()
    page.click("#keys summary")
    assert page.locator("#keys dl").is_visible()
    page.keyboard.press("?")
    assert not page.locator("#keys dl").is_visible()
    page.keyboard.press("c")
    page.keyboard.type("what?")
    assert not page.locator("#keys dl").is_visible()
    assert page.input_value("[name=comment]") == "what?"


def test_the_keys_of_each_page_can_be_opened_without_a_script(make_task, make_records_task, person):
    make_task([DISPUTED])
    make_task([DISPUTED], asked="de", name="asking")
    make_records_task(gold={"practice": ["1"], "test": ["1"] * 2}, test_items=2)
    client = signed_in(person("bea", "de en"))
    for address, shown in [("task/", "Z"), ("asking/sheet/", "Y"), ("crowd/qualification/en/", "")]:
        keys = re.findall("<dt><kbd>(.*?)</kbd></dt>", client.get(f"/tasks/{address}").text)
        assert "?" in keys
        assert "".join(key for key in ("Y", "Z") if key in keys) == shown, address


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_chosen_theme_holds_whatever_the_system_has(new_page, ann, theme):
    Preferences.objects.create(user=ann.user, theme=theme, text_size="large")
    for scheme in ("light", "dark"):
        page = new_page(user=ann.user, color_scheme=scheme)
        page.goto("/account/preferences/")
        ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert ground == {"light": "rgb(248, 248, 246)", "dark": "rgb(19, 19, 22)"}[theme]
        assert page.evaluate("getComputedStyle(document.documentElement).fontSize") == "19px"
