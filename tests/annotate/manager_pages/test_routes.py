"""Language routes in the browser: effect on waiting units, adding, changing and removing."""

import pytest
from django.contrib.admin.models import LogEntry

from annotate.models import LanguageRoute
from annotate.work.routes import unknown_code
from tests.annotate.acts import words

ROUTES, NEW = "/manage/routes/", "/manage/routes/new/"


def test_routes_show_what_waits_beside_who_reads_it_and_warn_where_nobody_does(desk, make_task, person):
    hindi = ("hi", "hi en", "en")
    make_task([hindi] * 3 + [("zh", "zh", "zh")])
    make_task([hindi], name="other")
    make_task([("fr", "fr en", "en")], name="closed", is_open=False)
    for name in ("priya", "asha"):
        person(name, "hi")
    person("ann", "de en fr")
    page = desk.get(ROUTES)
    shown = words(page)
    for row in (
        "hi Hindi hi hi-Latn",
        "und no detected language en",
        "hi hi 3 0 asha, priya",
        "hi hi 1 0 asha, priya",
        "zh zh-CN zh-TW 1 0 none 1 item lacks readers: invite some, or reroute it",
    ):
        assert row in shown
    assert "fr fr 1" not in shown
    assert "queues without waiting items</summary>" in page.text
    LanguageRoute.objects.all().delete()
    assert "No routes yet. Each language has its own queue." in words(desk.get(ROUTES))


def test_of_many_readers_the_first_are_named_and_the_others_counted(desk, make_task, person):
    make_task([("hi", "hi en", "en")])
    for number in range(12):
        person(f"reader{number:02}", "hi")
    shown = words(desk.get(ROUTES))
    assert ("reader09 and 2 more" in shown, "reader10" in shown) == (True, False)


def test_a_route_is_added_and_changed_and_its_codes_are_kept_as_a_list(desk, db):
    sent = {"language": "por", "queue": "es", "extra_candidates": "gl, cat gl", "never_agree": "yes"}
    assert "pt → es: this route is now in effect." in words(desk.post(NEW, sent, follow=True))
    route = LanguageRoute.objects.get(language="pt")
    assert (route.queue, route.extra_candidates, route.never_agree) == ("es", ["gl", "ca"], True)
    page = desk.get(f"{ROUTES}pt/").text
    assert 'value="gl ca"' in page
    assert 'value="yes" checked' in page
    desk.post(f"{ROUTES}pt/", {"queue": "pt", "extra_candidates": "gl ca"})
    route.refresh_from_db()
    assert (route.queue, route.extra_candidates, route.never_agree) == ("pt", ["gl", "ca"], False)
    assert [entry.get_change_message() for entry in LogEntry.objects.all()] == ["Changed queue, never agree.", "Added."]
    desk.post(f"{ROUTES}pt/", {"queue": "pt", "extra_candidates": "gl ca"})
    assert LogEntry.objects.count() == 2


@pytest.mark.parametrize("field", ["language", "queue", "extra_candidates"])
def test_an_unknown_code_is_refused_wherever_one_is_typed(desk, db, field):
    before = list(LanguageRoute.objects.values())
    page = desk.post(NEW, {"language": "pt", "queue": "pt", "extra_candidates": "gl"} | {field: "xx"})
    assert (page.status_code, unknown_code("xx") in words(page), 'value="xx"' in page.text) == (400, True, True)
    assert unknown_code("xx") in words(desk.post(f"{ROUTES}hi/", {"queue": "xx"}))
    assert list(LanguageRoute.objects.values()) == before


def test_there_is_one_route_of_a_language_and_one_where_none_is_seen(desk, db):
    page = desk.post(NEW, {"language": "hi", "queue": "en"})
    assert "A route for hi already exists. Change that route." in words(page)
    assert LanguageRoute.objects.get(language="hi").queue == "hi"
    LanguageRoute.objects.filter(language="und").delete()
    desk.post(NEW, {"language": "und", "queue": "en"})
    assert LanguageRoute.objects.get(language="und").queue == "en"


def test_a_route_is_removed_and_that_is_kept(desk, db):
    page = desk.post(f"{ROUTES}hi/remove/", follow=True)
    assert "The route of hi was removed." in words(page)
    assert not LanguageRoute.objects.filter(language="hi").exists()
    assert LogEntry.objects.get().object_repr == "hi → hi"
    for path in (f"{ROUTES}hi/", f"{ROUTES}hi/remove/"):
        assert desk.post(path, {"queue": "hi"}).status_code == 404
