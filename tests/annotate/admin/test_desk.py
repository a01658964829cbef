"""The admin's pages, who may see them, and the controls shown on a task's page."""

import re
from html import unescape

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.urls import reverse

import annotate.urls  # noqa: F401 - it loads the admin's pages
from annotate.actions.registry import call_command
from annotate.core.estimation.proportions import jeffreys
from annotate.kinds import Answer
from annotate.models import Annotator, LanguageRoute, Transition
from annotate.work import accounts
from annotate.work.adjudication import settle
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from tests.annotate.acts import signed_in
from tests.annotate.admin.desk import address, page
from tests.annotate.conftest import AGREED, DISPUTED

MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
RECORDS = [LogEntry, Annotator]


@pytest.fixture
def world(make_task, person):
    """Return a task with answered, skipped, settled, open, agreed and copied units."""
    task = make_task(
        [DISPUTED, DISPUTED, AGREED, ("fr", "fr", "he"), *[{"votes": DISPUTED, "text": "<b>same</b>"}] * 2]
    )
    ann, ada = person("ann", "de:5 en:4"), person("ada", adjudicates=True)
    judge(ann, take(ann, task).pk, Answer("und", "several", "<script>alert(1)</script>"), 3)
    passed = skip(ann, take(ann, task).pk)
    settle(ada, passed.unit_id, Answer("en", "looked it up"))
    take(ann, task)
    accounts.invite(ann)
    return task


def test_django_finds_no_fault_in_the_admins_pages():
    assert MODELS
    assert admin.site.check(app_configs=None) == []


# --- every page


def test_every_list_and_every_record_can_be_opened_and_runs_no_inline_script(desk, world):
    request = desk.get(reverse("admin:index")).wsgi_request
    for model in MODELS:
        assert page(desk, address(model, "changelist")).forbidden == [], model
        for key in model._default_manager.values_list("pk", flat=True)[:3]:
            assert page(desk, address(model, "change", key)).forbidden == [], model
        if admin.site._registry[model].has_add_permission(request):
            assert page(desk, address(model, "add")).forbidden == [], model


def test_every_list_can_be_searched_and_opened_while_there_is_nothing_in_it(desk, db):
    for model in MODELS:
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
    for query in ("ann", "de"):
        assert "1 result" in page(desk, address(Annotator, "changelist"), q=query).text
    desk.logout()
    assert page(desk, reverse("admin:login")).forbidden == []


# --- who may


def test_staff_without_permissions_annotators_and_strangers_see_no_list(client, person, world):
    staff, annotator = signed_in(User.objects.create_user("staff", is_staff=True)), signed_in(person("bob", "de"))
    paths = [address(model, "changelist") for model in MODELS]
    assert {staff.get(path).status_code for path in paths} == {403}
    for visitor in (client, annotator):
        for path in (*paths, reverse("admin:index")):
            reply = visitor.get(path)
            assert (reply.status_code, "/login/" in reply.url) == (302, True), path


# --- records


@pytest.mark.parametrize("model", RECORDS, ids=lambda model: model.__name__)
def test_records_can_be_looked_at_and_not_changed(desk, world, model):
    LogEntry.objects.log_actions(User.objects.get(username="manager").pk, LanguageRoute.objects.all()[:1], 2)
    before = list(model.objects.order_by("pk").values())
    record = model.objects.first()
    assert desk.get(address(model, "add")).status_code == 403
    for path, sent in (
        (address(model, "add"), {"label": "en"}),
        (address(model, "change", record.pk), {"label": "en", "name": "x"}),
        (address(model, "delete", record.pk), {"post": "yes"}),
    ):
        assert desk.post(path, sent).status_code == 403
    everything = model.objects.values_list("pk", flat=True)
    sent = {"action": "delete_selected", "_selected_action": everything, "post": "yes"}
    desk.post(address(model, "changelist"), sent)
    assert list(model.objects.order_by("pk").values()) == before


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


# --- audits, decoys and checks on a task's page


def led_to(desk, task, words):
    """The page to which a link on a task's page leads."""
    [link] = re.findall(rf'<a href="([^"]+)">{words}', desk.get(reverse("manage-quality", args=[task.name])).text)
    return desk.get(unescape(link)).text


@pytest.fixture
def failed(make_task, person):
    """A task of two languages after its audit. German was always wrong, but within the limit."""
    task = make_task([AGREED] * 12 + [("fr",) * 3] * 8, name="audited", audit_least=4, audit_recheck=0, audit_limit=1)
    ann, ada = person("ann", "de fr"), person("ada", adjudicates=True)
    while lease := take(ann, task):
        judge(ann, lease.pk, Answer("fr"))
    for unit in task.units.filter(stage="ADJUDICATION"):
        settle(ada, unit.pk, Answer("en", "I read it"))
    return task


def test_a_tasks_page_shows_what_its_audit_found(desk, failed):
    shown = page(desk, reverse("manage-quality", args=[failed.name]))
    assert shown.forbidden == []
    assert "The detectors agree on 20 posts. People read 8 of these" in shown.text
    low, high = (100 * end for end in jeffreys(4, 4))
    assert f"de German 12 4 of 4 100.0% [{low:.1f}, {high:.1f}]" in shown.text
    assert "fr French 8 4 of 4 0.0% [0.0, " in shown.text
    assert "Error rate of the detectors where they agree" in shown.text  # the plot
    assert "over the limit" not in shown.text
    csv = desk.get(reverse("manage-quality", args=[failed.name]), {"csv": "audit-of-the-detectors-agreement"})
    assert csv.text.splitlines()[0].startswith("\ufefflanguage,")


def test_a_lower_limit_shows_what_is_over_it_and_a_page_has_people_label_that(desk, failed, manager):
    desk.post(reverse("manage-settings-change", args=[failed.name]), {"audit_limit": "0.5", "audit_share": "0.9"})
    failed.refresh_from_db()
    assert (failed.audit_limit, failed.audit_share) == (0.5, 0)
    shown = page(desk, reverse("manage-quality", args=[failed.name]))
    assert shown.forbidden == []
    assert "Over the task’s limit: de. Send the languages over the limit to annotators" in shown.text
    assert "more than 50% may be wrong" in shown.text
    form = led_to(desk, failed, "Send the languages")
    assert f'<input type="hidden" name="task" value="{failed.name}">' in form
    assert re.search(r'name="contest"[^>]* checked', form)
    assert failed.units.filter(stage="AGREED").count() == 12
    call_command("audit", failed.name, contest=True)
    assert "contested: people label all" in page(desk, reverse("manage-quality", args=[failed.name])).text
    assert set(Transition.objects.filter(event="contested").values_list("unit__agreed_label")) == {("de",)}


def test_the_page_of_a_verification_shows_the_decoys(desk, make_task, person):
    task = make_task([DISPUTED] * 6, asked="de", decoys=4)
    shown = page(desk, reverse("manage-quality", args=[task.name])).text
    assert "de German 4 – –" in shown
    ann = person("ann", "de")
    while lease := take(ann, task):
        judge(ann, lease.pk, Answer("de"))
    shown = page(desk, reverse("manage-quality", args=[task.name]))
    assert shown.forbidden == []
    assert "Readers answered Yes in 4 of 4 answers to decoys." in shown.text
    low, _ = jeffreys(4, 4)
    assert f"de German 4 4 of 4: 100.0% [{100 * low:.1f}, 100.0] –" in shown.text
    settings = page(desk, reverse("manage-settings", args=[task.name])).text
    assert "precision draw of 6 for de from corpus, seed 1" in settings
    assert "Audit limit" not in settings


def test_staff_who_may_only_look_at_tasks_see_the_audit_and_cannot_contest_and_annotators_see_none(failed):
    failed.audit_limit = 0.5
    failed.save()
    staff = User.objects.create_user("staff", is_staff=True)
    staff.user_permissions.add(Permission.objects.get(codename="view_task"))
    shown = page(signed_in(staff), reverse("manage-quality", args=[failed.name])).text
    assert "Over the task’s limit: de." in shown
    assert "Send the languages" not in shown
    client = signed_in(User.objects.get(username="ann"))
    assert client.get(reverse("manage-quality", args=[failed.name])).status_code == 403
