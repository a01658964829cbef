"""The manager's desk, by its real pages: all lists and records, who may see them, and the routes."""

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from annotate.models import Annotator, Invite, Judgment, LanguageRoute, Task, Transition, Unit
from annotate.work.accounts import add_annotators
from annotate.work.languages import unknown_code
from annotate.work.people_file import Row
from corpora.models import Corpus, Draw
from tests.annotate.admin.desk import HEADER, Page, address, errors, form_of, page, run

MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
RECORDS = [Unit, Judgment, Corpus, Draw, LogEntry]


# --- every page


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_list_and_every_record_can_be_opened_and_runs_no_inline_script(desk, world, model):
    assert page(desk, address(model, "changelist")).forbidden == []
    for key in model._default_manager.values_list("pk", flat=True):
        assert page(desk, address(model, "change", key)).forbidden == []
    if admin.site._registry[model].has_add_permission(desk.get(reverse("admin:index")).wsgi_request):
        assert page(desk, address(model, "add")).forbidden == []


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_list_can_be_searched_and_opened_while_there_is_nothing_in_it(desk, db, model):
    LanguageRoute.objects.all().delete()
    page(desk, address(model, "changelist"))
    if admin.site._registry[model].search_fields:
        page(desk, address(model, "changelist"), q="nothing")


def test_the_other_pages_of_the_admin_run_no_inline_script_either(desk, world):
    annotator = Annotator.objects.first()
    for path in (
        reverse("admin:index"),
        reverse("admin:app_list", args=["annotate"]),
        reverse("admin:password_change"),
        reverse("admin:annotate_annotator_import"),
        address(Annotator, "history", annotator.pk),
        address(LanguageRoute, "delete", LanguageRoute.objects.first().pk),
    ):
        assert page(desk, path).forbidden == [], path
    desk.logout()
    assert page(desk, reverse("admin:login")).forbidden == []


def test_what_people_wrote_is_shown_as_text(desk, world):
    judgment = Judgment.objects.exclude(comment="").get()
    assert "<script>alert(1)</script>" in page(desk, address(Judgment, "change", judgment.pk)).text


def test_lists_can_be_searched_for_what_managers_look_for(desk, world):
    assert "1 result" in page(desk, address(Annotator, "changelist"), q="ann").text
    assert "1 result" in page(desk, address(Annotator, "changelist"), q="de").text
    assert "2 results" in page(desk, address(Unit, "changelist"), q="same").text


# --- who may


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_staff_without_permissions_see_no_list(client, world, model):
    client.force_login(User.objects.create_user("staff", is_staff=True))
    assert client.get(address(model, "changelist")).status_code == 403


def test_staff_without_permissions_cannot_import_reroute_or_open_a_task(client, world):
    client.force_login(User.objects.create_user("staff", is_staff=True))
    table = SimpleUploadedFile("people.csv", (HEADER + "eve,Eve,de:5\n").encode())
    assert client.post(reverse("admin:annotate_annotator_import"), {"table": table}).status_code == 403
    assert client.post(reverse("admin:annotate_task_reroute", args=[world.pk])).status_code == 403
    assert client.get(address(Task, "change", world.pk)).status_code == 403
    assert not User.objects.filter(username="eve").exists()


def test_annotators_and_strangers_are_sent_to_the_login(client, person, world):
    for user in (None, person("bob", "de").user):
        if user:
            client.force_login(user)
        for path in (reverse("admin:index"), reverse("admin:annotate_annotator_import")):
            reply = client.get(path)
            assert reply.status_code == 302
            assert "/login/" in reply.url


def test_staff_who_may_only_look_at_annotators_cannot_make_links_or_lock_out(client, world):
    staff = User.objects.create_user("staff", is_staff=True)
    staff.user_permissions.add(Permission.objects.get(codename="view_annotator"))
    client.force_login(staff)
    before = list(Invite.objects.values())
    for action in ("send_invites", "revoke_invites", "lock_out", "let_in"):
        run(client, action, Annotator.objects.all())
    assert list(Invite.objects.values()) == before
    assert not User.objects.filter(is_active=False).exists()


def test_a_manager_who_is_no_superuser_cannot_take_over_one_by_an_invite(client, manager):
    [(boss, _)] = add_annotators([Row("manager", "The Boss", {"de": 5})])
    staff = User.objects.create_user("staff", is_staff=True)
    staff.user_permissions.add(*Permission.objects.filter(codename__in=["view_annotator", "change_annotator"]))
    client.force_login(staff)
    for action in ("send_invites", "lock_out"):
        text = Page(run(client, action, [boss])).text
        assert "Only a superuser may do this to managers and to themselves, here manager. Nothing was changed." in text
    assert not Invite.objects.exists()
    manager.refresh_from_db()
    assert manager.is_active


# --- records


@pytest.mark.parametrize("model", RECORDS, ids=lambda model: model.__name__)
def test_records_can_be_looked_at_and_not_changed(desk, world, model):
    LogEntry.objects.log_actions(User.objects.get(username="manager").pk, LanguageRoute.objects.all()[:1], 2)
    before = list(model.objects.order_by("pk").values())
    record = model.objects.first()
    assert desk.get(address(model, "add")).status_code == 403
    assert desk.post(address(model, "add"), {"label": "en"}).status_code == 403
    assert desk.post(address(model, "change", record.pk), {"label": "en", "name": "x"}).status_code == 403
    assert desk.post(address(model, "delete", record.pk), {"post": "yes"}).status_code == 403
    everything = model.objects.values_list("pk", flat=True)
    desk.post(
        address(model, "changelist"), {"action": "delete_selected", "_selected_action": everything, "post": "yes"}
    )
    assert list(model.objects.order_by("pk").values()) == before


def test_judgments_and_transitions_cannot_be_changed_on_the_page_of_their_unit(desk, world):
    unit = Unit.objects.filter(judgments__kind="answer").first()
    text = page(desk, address(Unit, "change", unit.pk)).text
    assert "several" in text
    assert "disputed" in text
    before = list(Judgment.objects.values()), list(Transition.objects.values())
    sent = {"judgments-TOTAL_FORMS": 1, "judgments-INITIAL_FORMS": 1, "judgments-0-id": unit.judgments.get().pk}
    desk.post(address(Unit, "change", unit.pk), {**sent, "judgments-0-label": "en", "judgments-0-DELETE": "on"})
    assert (list(Judgment.objects.values()), list(Transition.objects.values())) == before


@pytest.mark.parametrize("model", [Task, Annotator])
def test_tasks_and_people_cannot_be_deleted(desk, world, model):
    record = model.objects.first()
    assert desk.post(address(model, "delete", record.pk), {"post": "yes"}).status_code == 403
    assert model.objects.filter(pk=record.pk).exists()


def test_the_account_of_somebody_who_has_judged_cannot_be_deleted(desk, world):
    ann = User.objects.get(username="ann")
    desk.post(address(User, "delete", ann.pk), {"post": "yes"})
    assert User.objects.filter(pk=ann.pk).exists()


def test_who_changed_which_setting_is_kept(desk, db):
    route = LanguageRoute.objects.get(language="hi")
    path = address(LanguageRoute, "change", route.pk)
    desk.post(path, form_of(desk, path) | {"queue": "ur"})
    text = page(desk, address(LogEntry, "changelist")).text
    assert "manager" in text
    assert "hi → ur" in text
    assert LogEntry.objects.get().get_change_message() == "Changed Queue."


# --- languages and routing


def test_routes_show_what_waits_beside_who_reads_it(desk, make_task, person):
    make_task([("hi", "hi en", "en")] * 3 + [("zh", "zh", "zh")])
    make_task([("hi", "hi en", "en")], name="other")
    make_task([("fr", "fr en", "en")], name="closed", is_open=False)
    person("priya", "hi")
    person("asha", "hi")
    shown = page(desk, address(LanguageRoute, "changelist")).text
    assert "hi Hindi hi hi-Latn" in shown
    assert "und no language seen en" in shown
    assert "hi hi 3 0 asha, priya" in shown
    assert "hi hi 1 0 asha, priya" in shown
    assert "fr fr" not in shown


def test_routes_warn_where_something_waits_and_nobody_reads(desk, make_task):
    make_task([("zh", "zh", "zh")])
    shown = page(desk, address(LanguageRoute, "changelist")).text
    assert "zh zh-CN zh-TW 1 0 nobody 1 lack readers: add some, or send it on" in shown


def test_a_route_can_be_added_and_its_codes_are_kept_as_a_list(desk, db):
    sent = {"language": "pt", "queue": "es", "extra_candidates": "gl, ca", "never_agree": "on"}
    assert desk.post(address(LanguageRoute, "add"), sent).status_code == 302
    route = LanguageRoute.objects.get(language="pt")
    assert (route.queue, route.extra_candidates, route.never_agree) == ("es", ["gl", "ca"], True)
    path = address(LanguageRoute, "change", route.pk)
    assert form_of(desk, path)["extra_candidates"] == "gl ca"
    assert desk.post(path, form_of(desk, path)).status_code == 302
    route.refresh_from_db()
    assert route.extra_candidates == ["gl", "ca"]
    assert LogEntry.objects.latest("pk").get_change_message() == "No fields changed."


@pytest.mark.parametrize("field", ["language", "queue", "extra_candidates"])
def test_an_unknown_code_is_refused_wherever_one_is_typed(desk, db, field):
    sent = {"language": "pt", "queue": "pt", "extra_candidates": "gl"} | {field: "xx"}
    assert errors(desk.post(address(LanguageRoute, "add"), sent)) == [unknown_code("xx")]
    assert not LanguageRoute.objects.filter(language="pt").exists()


def test_there_is_no_second_route_of_a_language(desk, db):
    told = errors(desk.post(address(LanguageRoute, "add"), {"language": "hi", "queue": "en"}))
    assert told == ["Language route with this Language already exists."]
