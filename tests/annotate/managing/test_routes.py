"""Routes of languages in the browser: what they lead to beside what waits, added, changed and removed."""

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User

from annotate.models import LanguageRoute
from annotate.work.routes import unknown_code
from tests.annotate.conftest import AGREED, DISPUTED
from tests.annotate.managing.acts import words

ROUTES, NEW = "/manage/routes/", "/manage/routes/new/"


def test_routes_show_what_waits_beside_who_reads_it(desk, make_task, person):
    make_task([("hi", "hi en", "en")] * 3 + [("zh", "zh", "zh")])
    make_task([("hi", "hi en", "en")], name="other")
    make_task([("fr", "fr en", "en")], name="closed", is_open=False)
    person("priya", "hi")
    person("asha", "hi")
    shown = words(desk.get(ROUTES))
    assert "hi Hindi hi hi-Latn" in shown
    assert "und no language seen en" in shown
    assert "hi hi 3 0 asha, priya" in shown
    assert "hi hi 1 0 asha, priya" in shown
    assert "fr fr" not in shown


def test_routes_warn_where_something_waits_and_nobody_reads(desk, make_task):
    make_task([("zh", "zh", "zh")])
    assert "zh zh-CN zh-TW 1 0 nobody 1 lacks readers: invite some, or reroute it" in words(desk.get(ROUTES))


def test_queues_with_nothing_waiting_are_folded(desk, make_task, person):
    make_task([DISPUTED, AGREED], audit_least=1)
    person("ann", "de en fr")
    page = desk.get(ROUTES)
    assert "<details><summary>2 queues with nothing waiting</summary>" in page.text


def test_there_may_be_no_route_at_all(desk, db):
    LanguageRoute.objects.all().delete()
    assert "There is no route: each language has its own queue." in words(desk.get(ROUTES))


def test_a_route_is_added_and_changed_and_its_codes_are_kept_as_a_list(desk, db):
    sent = {"language": "pt", "queue": "es", "extra_candidates": "gl, ca gl", "never_agree": "yes"}
    assert "pt → es: this holds from now on." in words(desk.post(NEW, sent, follow=True))
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
    page = desk.post(NEW, {"language": "pt", "queue": "pt", "extra_candidates": "gl"} | {field: "xx"})
    assert page.status_code == 400
    assert unknown_code("xx") in words(page)
    assert 'value="xx"' in page.text
    assert not LanguageRoute.objects.filter(language="pt").exists()


def test_a_change_to_an_unknown_code_is_refused(desk, db):
    before = LanguageRoute.objects.filter(language="hi").values().get()
    assert unknown_code("xx") in words(desk.post(f"{ROUTES}hi/", {"queue": "xx"}))
    assert LanguageRoute.objects.filter(language="hi").values().get() == before


def test_there_is_no_second_route_of_a_language(desk, db):
    page = desk.post(NEW, {"language": "hi", "queue": "en"})
    assert "There is a route of hi already; change that one." in words(page)
    assert LanguageRoute.objects.get(language="hi").queue == "hi"


def test_where_no_language_is_seen_has_a_route_too(desk, db):
    LanguageRoute.objects.filter(language="und").delete()
    desk.post(NEW, {"language": "und", "queue": "en"})
    assert LanguageRoute.objects.get(language="und").queue == "en"


def test_a_route_is_removed_and_that_is_kept(desk, db):
    page = desk.post(f"{ROUTES}hi/remove/", follow=True)
    assert "hi has no route any more." in words(page)
    assert not LanguageRoute.objects.filter(language="hi").exists()
    assert LogEntry.objects.get().object_repr == "hi → hi"
    for path in (f"{ROUTES}hi/", f"{ROUTES}hi/remove/"):
        assert desk.post(path, {"queue": "hi"}).status_code == 404


def test_staff_without_the_permission_look_and_change_nothing(client, db):
    client.force_login(User.objects.create_user("staff", is_staff=True))
    page = client.get(ROUTES).text
    assert "New route" not in page
    assert "/manage/routes/hi/" not in page
    assert client.get(f"{ROUTES}hi/").status_code == 403
    assert client.post(f"{ROUTES}hi/remove/").status_code == 403
    assert LanguageRoute.objects.filter(language="hi").exists()
