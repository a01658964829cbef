"""The admin, by its real pages: all lists and records, and who may see them."""

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.urls import reverse

import deploy.urls  # noqa: F401 - it loads the admin's pages
from annotate.models import Annotator, Judgment, LanguageRoute, Task, Transition, Unit
from corpora.models import Corpus, Draw
from tests.annotate.admin.desk import address, page

MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
RECORDS = [Unit, Judgment, Corpus, Draw, LogEntry, Task, Annotator]


def test_django_finds_no_fault_in_the_admins_pages():
    assert MODELS
    assert admin.site.check(app_configs=None) == []


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
    page(desk, address(model, "changelist"))
    if admin.site._registry[model].search_fields:
        page(desk, address(model, "changelist"), q="nothing")


def test_the_other_pages_of_the_admin_run_no_inline_script_either(desk, world):
    annotator = Annotator.objects.first()
    for path in (
        reverse("admin:index"),
        reverse("admin:app_list", args=["annotate"]),
        reverse("admin:password_change"),
        address(Annotator, "history", annotator.pk),
        address(User, "delete", User.objects.create_user("eve").pk),
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


def test_staff_without_permissions_cannot_open_a_task(client, world):
    client.force_login(User.objects.create_user("staff", is_staff=True))
    assert client.get(address(Task, "change", world.pk)).status_code == 403


def test_annotators_and_strangers_are_sent_to_the_login(client, person, world):
    for user in (None, person("bob", "de").user):
        if user:
            client.force_login(user)
        for path in (reverse("admin:index"), address(Annotator, "changelist")):
            reply = client.get(path)
            assert reply.status_code == 302
            assert "/login/" in reply.url


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
    desk.post(reverse("manage-route", args=[route.language]), {"queue": "ur", "extra_candidates": "hi-Latn"})
    text = page(desk, address(LogEntry, "changelist")).text
    assert "manager" in text
    assert "hi → ur" in text
    assert LogEntry.objects.get().get_change_message() == "Changed queue."
