"""The admin, by its real pages: tasks as they stand, and what their audits found."""

import re
from html import unescape

import pytest
from django.contrib.auth.models import Permission, User
from django.urls import reverse

from annotate.actions.commands import call_command
from annotate.core.intervals import jeffreys
from annotate.kinds import Answer
from annotate.models import Task, Transition, Unit
from annotate.work.adjudication import settle
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from corpora.models import Draw
from tests.annotate.admin.desk import address, page
from tests.annotate.conftest import AGREED, DISPUTED


def led_to(desk, task, words):
    """The page to which a link on a task's page leads."""
    [link] = re.findall(rf'<a href="([^"]+)">{words}', desk.get(address(Task, "change", task.pk)).content.decode())
    return desk.get(unescape(link)).content.decode()


def test_a_tasks_page_shows_its_stages_and_queues(desk, world):
    shown = page(desk, address(Task, "change", world.pk)).text
    assert "2 queued" in shown
    assert "de de 1 1 ann" in shown  # queue, labels, waiting, open now, readers
    assert "fr fr 1 0 nobody 1 lack readers: add some, or send it on" in shown
    assert "Send on units that lack readers" in shown
    assert "fr (1)" in page(desk, address(Task, "changelist")).text


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
    shown = page(desk, address(Task, "change", failed.pk))
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
    shown = page(desk, address(Task, "change", failed.pk))
    assert shown.forbidden == []
    assert "Over the task’s limit: de. Have people label the languages over the limit" in shown.text
    assert "more than 50% may be wrong" in shown.text
    form = led_to(desk, failed, "Have people label")
    assert f'<option value="{failed.name}" selected>' in form
    assert re.search(r'name="contest" value="yes"[^>]* checked', form)
    assert failed.units.filter(stage="AGREED").count() == 12
    call_command("audit", failed.name, contest=True)
    assert "contested: people label all of it" in page(desk, address(Task, "change", failed.pk)).text
    assert set(Transition.objects.filter(event="contested").values_list("unit__agreed_label")) == {("de",)}


def test_a_page_says_where_the_audit_is_not_done_and_where_there_is_none(desk, make_task):
    waiting = make_task([AGREED] * 3, audit_least=1)
    shown = page(desk, address(Task, "change", waiting.pk)).text
    assert "de German 3 0 of 1 – not done yet" in shown
    without = make_task([AGREED] * 3, name="without")
    assert (
        "no post was chosen for an audit when the task was opened"
        in page(desk, address(Task, "change", without.pk)).text
    )
    assert "Over the task’s limit" not in page(desk, address(Task, "change", without.pk)).text


def test_queues_with_nothing_waiting_are_folded_and_come_after_the_checks(desk, make_task, person):
    task = make_task([DISPUTED, AGREED], audit_least=1)
    person("ann", "de en fr")
    shown = page(desk, address(Task, "change", task.pk)).text
    words = ("The audit of agreement", "de de 2 0 ann", "2 queues with nothing waiting", "fr fr 0 0 ann")
    places = [shown.index(word) for word in words]
    assert places == sorted(places)
    assert desk.get(address(Task, "change", task.pk)).content.count(b"<details><summary>2 queues") == 1


def test_a_page_says_what_no_adjudicator_may_decide(desk, make_task, person):
    task, both = make_task([DISPUTED], rounds=1), person("both", "de", adjudicates=True)
    skip(both, take(both, task).pk)
    told = "1 post waits for an adjudicator who has not read it; make another person an adjudicator."
    assert told in page(desk, address(Task, "change", task.pk)).text
    person("ada", adjudicates=True)
    assert "who has not read it" not in page(desk, address(Task, "change", task.pk)).text


def test_the_page_of_a_verification_shows_the_decoys(desk, make_task, person):
    task = make_task([DISPUTED] * 6, asked="de", decoys=4)
    shown = page(desk, address(Task, "change", task.pk)).text
    assert "de German 4 – –" in shown
    ann = person("ann", "de")
    while lease := take(ann, task):
        judge(ann, lease.pk, Answer("de"))
    shown = page(desk, address(Task, "change", task.pk))
    assert shown.forbidden == []
    assert "In 4 answers to them readers said Yes 4 times." in shown.text
    low, _ = jeffreys(4, 4)
    assert f"de German 4 4 of 4: 100.0% [{100 * low:.1f}, 100.0] –" in shown.text
    assert "precision draw of 6 for de from corpus, seed 1" in shown.text
    assert "Audit limit" not in shown.text


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
    for path in (
        address(Task, "change", failed.pk),
        address(Unit, "changelist"),
        address(Draw, "changelist"),
    ):
        reply = client.get(path)
        assert (reply.status_code, "/login/" in reply.url) == (302, True), path
    assert failed.units.filter(stage="AGREED").count() == 12


def test_staff_who_may_only_look_at_tasks_see_the_audit_and_cannot_contest(client, failed):
    failed.audit_limit = 0.5
    failed.save()
    staff = User.objects.create_user("staff", is_staff=True)
    staff.user_permissions.add(Permission.objects.get(codename="view_task"))
    client.force_login(staff)
    shown = page(client, address(Task, "change", failed.pk)).text
    assert "Over the task’s limit: de." in shown
    assert "Have people label" not in shown
    assert "Send on units" not in shown


def test_a_task_leads_to_the_page_where_its_units_are_sent_on(desk, world):
    assert f'<option value="{world.name}" selected>' in led_to(desk, world, "Send on units")


def test_a_task_that_is_not_there_is_not_found(desk, db):
    assert desk.get(address(Task, "change", 99)).status_code in (302, 404)
