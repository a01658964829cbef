"""The members of a task, on its page People and by the command."""

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission, User

from annotate.actions.action import ActionError
from annotate.actions.task_management import members_action
from annotate.kinds import Answer
from annotate.models import Membership
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate.conftest import DISPUTED

PAGE, MEMBERS = "/manage/tasks/task/people/", "/manage/tasks/task/members/"


@pytest.fixture
def task(make_task):
    return make_task([DISPUTED] * 4)


@pytest.fixture
def people(person):
    made = [person("ann", "de"), person("bea", "de"), person("fay", "fr")]
    Group.objects.create(name="students").user_set.set([made[0].user, made[2].user])
    return made


def roles(task):
    return {member.annotator.user.username: (member.role, member.quota) for member in task.memberships.all()}


def do(act, *people, **fields):
    return {"do": act, "person": [person.pk for person in people], **fields}


def test_a_manager_chooses_people_changes_them_and_removes_them(desk, task, people):
    ann, bea, _ = people
    assert "Everyone who reads the language" in desk.get(PAGE).text
    desk.post(MEMBERS, do("open", open_to="members"))
    task.refresh_from_db()
    assert task.members_only
    assert "No members yet" in desk.get(PAGE).text
    reply = desk.post(MEMBERS, do("add", ann, bea, role="annotator", quota="50%"), follow=True)
    assert "2 members added, 0 changed." in reply.text
    assert roles(task) == {"ann": ("annotator", 2), "bea": ("annotator", 2)}
    judge(ann, take(ann, task).pk, Answer("de"))
    assert re.search(r"ann</a>.*?1 <small>of 2", desk.get(PAGE).text, re.DOTALL)
    desk.post(MEMBERS, do("change", bea, role="adjudicator", quota=""))
    assert roles(task)["bea"] == ("adjudicator", None)
    desk.post(MEMBERS, do("remove", ann))
    assert roles(task) == {"bea": ("adjudicator", None)}
    assert LogEntry.objects.filter(change_message__contains="ann").exists()


def test_people_are_found_and_all_of_them_added(desk, task, people):
    page = desk.get(PAGE, {"group": "students"}).text
    assert (page.count('type="checkbox" name="person"'), "Add all 2" in page) == (2, True)
    desk.post(MEMBERS, do("add", everybody="1", group="students"))
    assert set(roles(task)) == {"ann", "fay"}
    assert "No other people match." in desk.get(PAGE, {"language": "de", "find": "ann"}).text


def test_a_manager_becomes_an_adjudicator_of_a_task_with_one_button(desk, task, manager):
    assert "I will adjudicate" in desk.get(PAGE).text
    assert f"{manager.username} manages tasks and has no annotator account." in desk.get(PAGE, {"find": ""}).text
    reply = desk.post(MEMBERS, {"do": "join", "role": "adjudicator"}, follow=True)
    assert "1 member added, 0 changed." in reply.text
    assert "I will adjudicate" not in reply.text
    assert roles(task) == {manager.username: ("adjudicator", None)}


@pytest.mark.parametrize("fields", [{"do": "add"}, {"do": "fly"}, {"do": "open", "open_to": "some"}, {}])
def test_a_form_that_chooses_nobody_changes_nothing(desk, task, fields):
    assert desk.post(MEMBERS, fields).status_code == 400
    assert not Membership.objects.exists()


def test_a_wrong_quota_is_refused(desk, task, people):
    reply = desk.post(MEMBERS, do("add", people[0], quota="lots"))
    assert (reply.status_code, "is not a quota" in reply.text, roles(task)) == (400, True, {})


def test_managers_who_are_no_superusers_choose_neither_managers_nor_themselves(client, task, people, person):
    clerk = person("clerk", "de")
    clerk.user.is_staff = True
    clerk.user.save()
    clerk.user.user_permissions.set(Permission.objects.all())
    client.force_login(clerk.user)
    assert "I will adjudicate" not in client.get(PAGE).text
    assert client.post(MEMBERS, {"do": "join", "role": "adjudicator"}).status_code == 403
    assert client.post(MEMBERS, do("add", clerk)).status_code == 403
    assert client.post(MEMBERS, do("add", people[0])).status_code == 302
    assert set(roles(task)) == {"ann"}


def test_many_members_are_listed_in_pages(desk, task, person):
    for number in range(26):
        task.memberships.create(annotator=person(f"p{number}"))
    assert desk.get(PAGE).text.count('class="of-member"') == 25
    assert desk.get(PAGE, {"members": 2}).text.count('class="of-member"') == 1


def test_invited_people_become_members_of_the_task(desk, task):
    form = desk.get("/manage/accounts/new/", {"task": "task"}).text
    assert '<option value="task" selected>' in form
    sent = {"people": "nia", "language": "de", "level": "5", "task": "task"}
    reply = desk.post("/manage/accounts/new/", sent, follow=True)
    assert "/invite/" in reply.text
    assert roles(task) == {"nia": ("annotator", None)}
    reply = desk.post("/manage/accounts/new/", sent | {"people": "nat", "task": "gone"})
    assert (reply.status_code, User.objects.filter(username="nat").exists()) == (400, False)


# --- the command


def members(**options):
    return members_action.perform({"task": "task", **options})


def test_the_command_opens_a_task_to_members_and_lists_them(task, people):
    outcome = members(open_to="members", add=["ann"], add_readers="de", role="adjudicator", quota="3")
    assert outcome.data["open_to"] == "members"
    assert roles(task) == {"ann": ("adjudicator", 3), "bea": ("adjudicator", 3)}
    members(add=["ann"], role="annotator")
    assert roles(task)["ann"] == ("annotator", 3)
    assert "bea" in members().said[-1]
    members(remove=["bea"], add_group="students", open_to="everybody")
    assert set(roles(task)) == {"ann", "fay"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"add": ["nobody"]}, "There is no annotator 'nobody'"),
        ({"add_group": "none"}, "There is no group 'none'; available: students"),
        ({"add_readers": "xx-what"}, "is not a known language code"),
        ({"role": "manager"}, "Specify them with --add"),
        ({"add": ["ann"], "quota": "0"}, "is not a quota"),
    ],
)
def test_the_command_refuses_what_it_does_not_know(task, people, options, words):
    with pytest.raises(ActionError, match=re.escape(words)):
        members(**options)
    assert roles(task) == {}
