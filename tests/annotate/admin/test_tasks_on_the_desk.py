"""What audits, decoys and checks found, on the first page of a task; and draws and units in the admin."""

import re
from html import unescape

import pytest
from django.contrib.auth.models import Permission, User
from django.urls import reverse

from annotate.actions.commands import call_command
from annotate.core.estimation.proportions import jeffreys
from annotate.kinds import Answer
from annotate.models import Transition, Unit
from annotate.work.adjudication import settle
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from corpora.models import Draw
from tests.annotate.admin.desk import address, page
from tests.annotate.conftest import AGREED, DISPUTED


def led_to(desk, task, words):
    """The page to which a link on a task's page leads."""
    [link] = re.findall(
        rf'<a href="([^"]+)">{words}', desk.get(reverse("manage-task", args=[task.name])).content.decode()
    )
    return desk.get(unescape(link)).content.decode()


@pytest.fixture
def failed(make_task, person):
    """A task of two languages whose audit is done; German was wrong each time, and the limit let it pass."""
    task = make_task([AGREED] * 12 + [("fr",) * 3] * 8, name="audited", audit_least=4, audit_recheck=0, audit_limit=1)
    ann, ada = person("ann", "de fr"), person("ada", adjudicates=True)
    while lease := take(ann, task):
        judge(ann, lease.pk, Answer("fr"))
    for unit in task.units.filter(stage="ADJUDICATION"):
        settle(ada, unit.pk, Answer("en", "I read it"))
    return task


def test_a_tasks_page_shows_what_its_audit_found(desk, failed):
    shown = page(desk, reverse("manage-task", args=[failed.name]))
    assert shown.forbidden == []
    assert "The detectors agree on 20 posts. 8 of these were chosen by lot" in shown.text
    low, high = (100 * end for end in jeffreys(4, 4))
    assert f"de German 12 4 of 4 100.0% [{low:.1f}, {high:.1f}]" in shown.text
    assert "fr French 8 4 of 4 0.0% [0.0, " in shown.text
    assert "Where the detectors agree and are wrong" in shown.text  # the plot
    assert "over the limit" not in shown.text


def test_a_lower_limit_shows_what_is_over_it_and_a_page_has_people_label_that(desk, failed, manager):
    desk.post(reverse("manage-settings-change", args=[failed.name]), {"audit_limit": "0.5", "audit_share": "0.9"})
    failed.refresh_from_db()
    assert (failed.audit_limit, failed.audit_share) == (0.5, 0)
    shown = page(desk, reverse("manage-task", args=[failed.name]))
    assert shown.forbidden == []
    assert "Over the task’s limit: de. Have people label the languages over the limit" in shown.text
    assert "more than 50% may be wrong" in shown.text
    form = led_to(desk, failed, "Have people label")
    assert f'<option value="{failed.name}" selected>' in form
    assert re.search(r'name="contest" value="yes"[^>]* checked', form)
    assert failed.units.filter(stage="AGREED").count() == 12
    call_command("audit", failed.name, contest=True)
    assert "contested: people label all of it" in page(desk, reverse("manage-task", args=[failed.name])).text
    assert set(Transition.objects.filter(event="contested").values_list("unit__agreed_label")) == {("de",)}


def test_a_page_says_where_the_audit_is_not_done_and_where_there_is_none(desk, make_task):
    waiting = make_task([AGREED] * 3, audit_least=1)
    shown = page(desk, reverse("manage-task", args=[waiting.name])).text
    assert "de German 3 0 of 1 – not done yet" in shown
    without = make_task([AGREED] * 3, name="without")
    assert (
        "no post was chosen for an audit when the task was opened"
        in page(desk, reverse("manage-task", args=[without.name])).text
    )
    assert "Over the task’s limit" not in page(desk, reverse("manage-task", args=[without.name])).text


def test_a_page_says_what_no_adjudicator_may_decide(desk, make_task, person):
    task, both = make_task([DISPUTED], rounds=1), person("both", "de", adjudicates=True)
    skip(both, take(both, task).pk)
    told = "1 post waits for an adjudicator who has not read it; make another person an adjudicator."
    assert told in page(desk, reverse("manage-task", args=[task.name])).text
    person("ada", adjudicates=True)
    assert "who has not read it" not in page(desk, reverse("manage-task", args=[task.name])).text


def test_the_page_of_a_verification_shows_the_decoys(desk, make_task, person):
    task = make_task([DISPUTED] * 6, asked="de", decoys=4)
    shown = page(desk, reverse("manage-task", args=[task.name])).text
    assert "de German 4 – –" in shown
    ann = person("ann", "de")
    while lease := take(ann, task):
        judge(ann, lease.pk, Answer("de"))
    shown = page(desk, reverse("manage-task", args=[task.name]))
    assert shown.forbidden == []
    assert "In 4 answers to them readers said Yes 4 times." in shown.text
    low, _ = jeffreys(4, 4)
    assert f"de German 4 4 of 4: 100.0% [{100 * low:.1f}, 100.0] –" in shown.text
    settings = page(desk, reverse("manage-settings", args=[task.name])).text
    assert "precision draw of 6 for de from corpus, seed 1" in settings
    assert "Audit limit" not in settings


def test_units_can_be_listed_by_what_they_are_to_people_who_manage(desk, make_task):
    make_task([AGREED] * 3, audit_least=1)
    make_task([DISPUTED] * 3, name="verify", asked="de", decoys=1)
    for query, count in (
        ({"audited__exact": "1"}, 1),
        ({"asked": "de"}, 3),
        ({"decoy": "yes"}, 1),
        ({"decoy": "no"}, 5),
    ):
        noun = "units" if count != 1 else "unit"
        assert f" {count} {noun}" in page(desk, address(Unit, "changelist"), **query).text, query


def test_draws_show_for_what_and_by_whom_they_were_made(desk, make_task):
    make_task([DISPUTED], asked="de")
    assert "corpus precision de cld2 1 1 1 2" in page(desk, address(Draw, "changelist")).text


def test_annotators_see_none_of_it(client, failed):
    client.force_login(User.objects.get(username="ann"))
    assert client.get(reverse("manage-task", args=[failed.name])).status_code == 403
    for path in (address(Unit, "changelist"), address(Draw, "changelist")):
        reply = client.get(path)
        assert (reply.status_code, "/login/" in reply.url) == (302, True), path
    assert failed.units.filter(stage="AGREED").count() == 12


def test_staff_who_may_only_look_at_tasks_see_the_audit_and_cannot_contest(client, failed):
    failed.audit_limit = 0.5
    failed.save()
    staff = User.objects.create_user("staff", is_staff=True)
    staff.user_permissions.add(Permission.objects.get(codename="view_task"))
    client.force_login(staff)
    shown = page(client, reverse("manage-task", args=[failed.name])).text
    assert "Over the task’s limit: de." in shown
    assert "Have people label" not in shown
