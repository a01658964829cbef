"""A task's settings in the browser: changes, fixed settings, and links to the other settings."""

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.db.models import F
from django.utils.text import capfirst

from annotate.core.refusals import InvalidAnswer
from annotate.kinds.options import OPTIONS
from annotate.models import Job, Task
from annotate.work import task_settings
from annotate.work.routes import unknown_code
from tests.annotate.acts import words
from tests.annotate.conftest import AGREED, DISPUTED


def page_of(task, act=""):
    return f"/manage/tasks/{task.name}/settings/{act}"


def change(desk, task, **changes):
    """Submit the form as a browser would, with these changes."""
    page = desk.get(page_of(task))
    context = page.context
    sent = {"title": context["title"], **({"labels": context["labels"]} if context["labels"] is not None else {})}
    for fields in context["groups"].values():
        sent |= {field.name: field.value for field in fields}
    return desk.post(page_of(task, "change/"), sent | changes, follow=True)


def test_what_may_be_changed_is_and_what_was_fixed_at_its_opening_stays(desk, make_task):
    task = make_task([AGREED])
    before = Task.objects.values().get()
    assert "Nothing was changed." in words(change(desk, task))
    assert (Task.objects.values().get(), LogEntry.objects.exists()) == (before, False)
    page = change(desk, task, title="New", rounds="3", labels="fr de, en de", redundancy="9", audit_least="1", name="x")
    assert "Changed: title, rounds, labels." in words(page)
    change(desk, task, audit_limit="25%")
    task = Task.objects.get()
    assert (task.title, task.rounds, task.labels, task.audit_limit) == ("New", 3, ["de", "en", "fr"], 0.25)
    assert (task.redundancy, task.audit_least, task.name) == (1, 0, "task")
    assert LogEntry.objects.last().get_change_message() == "Changed title, rounds, labels."


def test_what_two_managers_change_at_once_is_both_kept_and_of_one_setting_the_second_is_told(desk, make_task):
    task = make_task([DISPUTED], skip_limit=10, least_level=2)
    shown = dict(re.findall(r'name="(was-[a-z_]+)" value="([^"]*)"', desk.get(page_of(task)).text))
    assert shown["was-skip_limit"] == "10"
    assert "Changed: skip limit." in words(change(desk, task, skip_limit="1"))
    page = change(desk, task, **shown, skip_limit="10", least_level="3")
    assert "Changed: least level." in words(page)
    task = Task.objects.get()
    assert (task.skip_limit, task.least_level) == (1, 3)
    refused = change(desk, task, **shown, skip_limit="5", least_level="2")
    assert refused.status_code == 409
    assert "Somebody has changed skip limit (1) since you opened this page" in words(refused)
    assert re.search(r'name="skip_limit"[^>]* value="5"', refused.text)
    assert (Task.objects.get().skip_limit, Task.objects.get().least_level) == (1, 3)
    again = dict(re.findall(r'name="(was-[a-z_]+)" value="([^"]*)"', refused.text))
    assert "Changed: skip limit." in words(change(desk, task, **again, skip_limit="5"))


def test_every_option_of_the_kind_is_on_the_page_with_its_help_and_bounds(desk, make_records_task):
    task = make_records_task(gold={"test": ["1", "0"] * 2}, test_items=2)
    page = words(desk.get(page_of(task)))
    for name in task.kind.options:
        assert capfirst(OPTIONS[name].help) in page, name
    assert (
        "Pause under accuracy "
        "Pause annotators whose accuracy on gold answers is below this share; 0: pause nobody (0 to 1)" in page
    )
    assert "An adjudicator decides" in page
    assert "ADJUDICATION" not in page
    assert re.search(r"Answers per item The number of annotators per item. .{20,140} 3 ", page)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": "de xx"}, unknown_code("xx")),
        ({"labels": " "}, "Enter at least one label."),
        ({"title": " "}, "The title is empty. Enter the title that annotators see."),
        ({"title": "x" * 201}, "The title is longer than 200 characters"),
        ({"rounds": "0"}, "“Rounds” is 0. It must be 1 to 99."),
        ({"rounds": ""}, "“Rounds”: '' is not a whole number."),
        ({"skip_limit": "0"}, "“Skip limit” is 0. It must be 1 to 99."),
        ({"least_level": "6"}, "“Minimum reading level” is 6. It must be 0 to 5."),
        ({"audit_limit": "many"}, "“Audit limit”: 'many' is not a share. Write it as 0.1, 10% or 1/10."),
        ({"on_conflict": "QUEUED"}, "“On conflict” is 'QUEUED'. It must be one of ADJUDICATION, DISCARDED."),
    ],
)
def test_a_wrong_setting_is_refused_and_what_was_typed_stays(desk, make_task, changes, message):
    task = make_task([AGREED])
    before = Task.objects.values().get()
    page = change(desk, task, **{"title": "7", **changes})
    assert page.status_code == 400
    assert message in words(page)
    assert "title" in changes or re.search(r'name="title"[^>]*value="7"', page.text)
    assert Task.objects.values().get() == before


def test_a_test_is_not_made_longer_than_its_gold_answers_allow(desk, make_records_task):
    task = make_records_task(gold={"test": ["1", "0"] * 2}, test_items=2, tries=2)
    page = change(desk, task, test_items="9")
    assert "The test in en asks 9 random questions. It needs at least 14 gold answers" in words(page)
    assert Task.objects.get().test_items == 2
    change(desk, task, test_items="3", tries="1")
    assert Task.objects.get().test_items == 3


def test_nothing_that_is_fixed_is_changed_by_the_operation(desk, make_task):
    task = make_task([DISPUTED], asked="de")
    change(desk, task, labels="fr", title="New")
    task.refresh_from_db()
    assert (task.labels, task.title) == (["de"], "New")
    with pytest.raises(InvalidAnswer, match="The labels were fixed"):
        task_settings.change(task, {"labels": ["fr"]})
    task = make_task([DISPUTED], name="language")
    for name in [option.name for option in task_settings.fixed(task)]:
        with pytest.raises(InvalidAnswer, match="was fixed when the task was opened"):
            task_settings.change(task, {name: "1"})


def test_a_task_is_closed_with_or_without_units_that_lack_a_label_and_opened_again(desk, make_task):
    task = make_task([DISPUTED, DISPUTED])

    def switch(to, **fields):
        page = words(desk.post(page_of(task, "switch/"), {"open": to, **fields}, follow=True))
        assert Task.objects.get().is_open == (to == "yes")
        return page

    page = words(desk.get(page_of(task)))
    assert "Leave out 2 items without a label Items with enough answers get their label." in page
    page = switch("no", leave_out="yes")
    assert "Excluded without a label: 2 items." in page
    assert "Leave out" not in page
    assert not task.units.exclude(stage="DISCARDED").exists()
    assert "Task task has been reopened" in switch("yes")
    page = switch("no")
    assert "Task task has been closed, so annotators no longer receive its items." in page
    assert "Leave out 2 items without a label" in page
    assert "Reopen the task" in page
    assert task.units.filter(stage="QUEUED").count() == 2
    page = switch("no", leave_out="yes")
    assert "Task task was already closed. Excluded without a label: 2 items." in page
    assert LogEntry.objects.count() == 4


def test_what_can_be_done_with_the_task_is_led_to_and_nothing_else(desk, make_task, make_records_task):
    task = make_task([DISPUTED])
    page, of_records = desk.get(page_of(task)).text, desk.get(page_of(make_records_task())).text
    for action in ("audit", "reroute", "adjudicate", "delete"):
        assert f"/manage/do/{action}/?task=task" in page
        assert desk.get(f"/manage/do/{action}/?task=task").status_code == 200
        assert (f"/manage/do/{action}/" in of_records) is (action not in ("audit", "reroute"))
    assert "/manage/tasks/task/extend/" in page


def test_the_export_of_a_task_does_not_ask_for_the_task_and_is_listed_on_its_overview(desk, make_task):
    make_task([AGREED])
    path = "/manage/tasks/task/export/"
    assert f'href="{path}"' in desk.get("/manage/tasks/task/").text
    form = desk.get(path).text
    hidden = '<input type="hidden" name="task" value="task">'
    assert (hidden in form, '<select name="task"' in form, "Overview" in form) == (True, False, True)
    job = desk.post(path, {"task": "task"}).url
    assert Job.objects.get().given == {"task": "task"}
    overview = desk.get("/manage/tasks/task/").text
    assert (job in overview, f"{job}packed/" in overview) == (True, False)
    Job.objects.update(state=Job.DONE, began_at=F("asked_at"), ended_at=F("asked_at"))
    assert f"{job}packed/" in desk.get("/manage/tasks/task/").text


def test_a_task_is_extended_by_a_job(desk, make_task):
    task = make_task([DISPUTED])
    path = "/manage/tasks/task/extend/"
    assert f"The same seed draws more items from the corpus {task.draw.corpus.name}" in words(desk.get(path))
    sent = desk.post(path, {"size": "20"})
    job = Job.objects.get()
    assert sent.url == f"/manage/jobs/{job.pk}/"
    assert (job.action, job.given, job.by.username) == (
        "extend_task",
        {"name": "task", "size": "20"},
        "manager",
    )
    assert "Extend: task" in words(desk.get(sent.url))
    assert "assay extend_task task --size 20" in words(desk.get(sent.url))
    desk.post(path, {"size": "20", "dry_run": "yes"})
    assert Job.objects.first().given["dry_run"] is True
    refused = desk.post(path, {"size": "many"})
    assert (refused.status_code, Job.objects.count()) == (400, 2)
    assert "“Size”: 'many' is not a whole number." in words(refused)


# --- forms that are refused


def test_back_from_a_page_that_refused_a_form_shows_it_with_what_was_entered(new_page, make_task, manager):
    make_task([DISPUTED])
    page = new_page(user=manager)
    page.goto("/manage/")
    page.goto("/manage/tasks/task/settings/")
    page.fill("[name=title]", "Headlines")
    page.fill("[name=audit_limit]", "2")
    page.click("button:has-text('Save')")
    page.wait_for_url("**/settings/change/?again=1")
    assert page.input_value("[name=title]") == "Headlines"
    page.click("nav.tabs a:has-text('People')")
    page.go_back()
    page.wait_for_url("**/settings/change/?again=1")
    assert page.input_value("[name=title]") == "Headlines"
    page.fill("[name=audit_limit]", "0.25")
    page.click("button:has-text('Save')")
    page.wait_for_selector("[role=status]:has-text('Changed')")
    assert page.evaluate("Object.keys(sessionStorage).filter(key => key.startsWith('draft '))") == []


def test_a_refused_form_has_an_address_of_its_own_in_its_session_alone(make_task, desk):
    make_task([DISPUTED])
    address = "/manage/tasks/task/settings/change/"
    sent = desk.post(address, {"title": "", "draft": "123"}, headers={"accept": "text/html"})
    assert (sent.status_code, sent["Location"]) == (302, f"{address}?again=1")
    assert "accepted" not in sent.cookies
    shown = desk.get(sent["Location"])
    assert "title" in words(shown)
    # Pages that no longer exist redirect to the page with the form.
    for number in range(3):
        desk.post(
            "/manage/do/delete/",
            {"task": f"task{number}"},
            QUERY_STRING=f"task={number}",
            headers={"accept": "text/html"},
        )
    assert desk.get(sent["Location"])["Location"] == "/manage/tasks/task/settings/"


def test_a_refused_form_is_shown_again_only_to_somebody_who_may_still_see_its_page(make_task, desk, manager):
    make_task([DISPUTED])
    sent = desk.post("/manage/tasks/task/settings/change/", {"title": ""}, headers={"accept": "text/html"})
    assert desk.get(sent["Location"]).status_code == 200
    type(manager).objects.filter(pk=manager.pk).update(is_staff=False, is_superuser=False)
    assert desk.get(sent["Location"]).status_code == 403
