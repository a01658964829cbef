"""Who works on a task: everybody who reads its languages, or its members, with a role and a quota."""

import pytest
from django.contrib.auth.models import Group, Permission
from django.urls import reverse

from annotate.core import refusals, stages
from annotate.kinds import Answer
from annotate.models import Annotator, Judgment, Lease, Membership
from annotate.work import adjudication, eligible, membership
from annotate.work.answer_changes import change, undo
from annotate.work.backlog import progress_of
from annotate.work.judgments import judge, skip
from annotate.work.moves import move
from annotate.work.permit import open_permits, permit_of
from annotate.work.queue import open_lease, take, take_sheet
from annotate.work.routes import Routes, readers_of
from tests.annotate.acts import signed_in
from tests.annotate.conftest import DISPUTED

pytestmark = pytest.mark.both_databases


@pytest.fixture
def task(make_task):
    return make_task([DISPUTED] * 6, redundancy=3)


@pytest.fixture
def bea(person):
    return person("bea", "de")


def able(task):
    return readers_of([Routes.load(task)])[task.pk].able.get("de", set())


def test_a_task_for_members_gives_nobody_else_units_and_takes_back_those_of_others(task, ann, bea, person):
    fay = person("fay", "fr")
    membership.add(task, [ann, fay])
    lease, other = take(ann, task), take(bea, task)
    membership.set_members_only(task, members_only=True)
    assert list(Lease.objects.filter(closed_at=None)) == [lease]
    assert Lease.objects.get(pk=other.pk).outcome == "released"
    with pytest.raises(refusals.NotAllowed):
        take(bea, task)
    assert (permit_of(bea, task).queues, open_permits(bea)) == ([], [])
    assert [permit.task for permit in open_permits(ann)] == [task]
    assert take(fay, task) is None  # a member who does not read the language
    assert able(task) == {ann.pk}
    assert membership.remove(task, [ann]) == 1
    assert Lease.objects.get(pk=lease.pk).outcome == "released"
    with pytest.raises(refusals.NotAllowed):
        judge(ann, lease.pk, Answer("de"))
    assert not Judgment.objects.exists()
    assert membership.remove(task, [ann]) == 0


def test_a_quota_ends_the_work_of_one_member_alone_who_can_still_undo_and_change_answers(task, ann, bea):
    membership.add(task, [ann], quota=2)
    skip(ann, take(ann, task).pk)
    for _ in range(2):
        assert ann.pk in able(task)
        last = judge(ann, take(ann, task).pk, Answer("de"))
    assert take(ann, task) is None
    assert isinstance(permit_of(ann, task).stopped, refusals.QuotaReached)
    assert able(task) == {bea.pk}
    assert take(bea, task)
    lease = undo(ann, task)
    assert lease.unit_id == last.unit_id
    change(ann, task, judge(ann, lease.pk, Answer("en")).pk, Answer("de"))
    assert take(ann, task) is None
    membership.add(task, [ann], quota=3, keep_quota=False)
    assert take(ann, task)


def test_an_undone_skip_frees_no_answer_of_the_quota(task, ann):
    membership.add(task, [ann], quota=3)
    judge(ann, take(ann, task).pk, Answer("de"))
    skip(ann, take(ann, task).pk)
    page = signed_in(ann.user).post(reverse("undo", args=[task.name]), headers={"HX-Request": "true"})
    assert page.context["progress"].waiting == 2


def test_a_sheet_has_no_more_units_than_the_quota_leaves(make_task, ann):
    task = make_task([DISPUTED] * 6, asked="de")
    membership.add(task, [ann], quota=4)
    judge(ann, take(ann, task).pk, Answer("de"))
    assert len(take_sheet(ann, task)) == 3
    assert open_lease(ann, task) is None


@pytest.fixture
def case(make_task, ann):
    """A task with a unit that waits for an adjudicator."""
    task = make_task([DISPUTED] * 3, skip_limit=1, rounds=1)
    skip(ann, take(ann, task).pk)
    return task.units.get(stage=stages.ADJUDICATION)


SETTLED = Answer("de", "I read the language")


def test_the_role_in_a_task_replaces_that_of_the_account(case, bea, ada):
    membership.add(case.task, [bea], role=Membership.ADJUDICATOR)
    membership.add(case.task, [ada])
    assert set(adjudication.adjudicators(case.task)) == {bea}
    assert adjudication.adjudicator_counts([case.task]) == {case.task.pk: 1}
    with pytest.raises(refusals.NotAllowed):
        adjudication.settle(ada, case.pk, SETTLED)
    adjudication.settle(bea, case.pk, SETTLED)


def test_adjudicators_of_other_tasks_decide_nothing_in_a_task_for_members(case, ada, eve):
    task = case.task
    assert adjudication.adjudicator_counts([task]) == {task.pk: 2}
    membership.set_members_only(task, members_only=True)
    assert adjudication.adjudicator_counts([task]) == {task.pk: 0}
    with pytest.raises(refusals.NotAllowed):
        adjudication.settle(ada, case.pk, SETTLED)
    membership.add(task, [eve], role=Membership.ADJUDICATOR)
    assert set(adjudication.adjudicators(task)) == {eve}
    adjudication.settle(eve, case.pk, SETTLED)


def test_cases_of_the_same_text_are_shown_only_from_tasks_in_which_one_adjudicates(case, make_task, bea, ada):
    other = make_task([DISPUTED], name="other", skip_limit=1, rounds=1)
    other.units.update(stage=stages.ADJUDICATION, item=case.item)
    assert [unit.task for unit, _ in adjudication.with_same_text(case, ada)] == [other]
    membership.add(case.task, [bea], role=Membership.ADJUDICATOR)
    assert adjudication.with_same_text(case, bea) == []


def test_managers_of_a_task_neither_answer_nor_adjudicate(case, bea, ada):
    task = case.task
    held = take(bea, task)
    membership.add(task, [bea, ada], role=Membership.MANAGER)
    assert Lease.objects.get(pk=held.pk).outcome == "released"
    assert take(bea, task) is None
    assert bea.pk not in able(task)
    with pytest.raises(refusals.NotAllowed):
        adjudication.settle(ada, case.pk, SETTLED)


@pytest.mark.parametrize("role", [Membership.ADJUDICATOR, Membership.MANAGER, "account"])
def test_people_are_not_asked_about_what_they_could_have_read_even_when_their_role_has_ended(case, bea, role):
    if role == "account":
        for bea.adjudicates in (True, False):
            bea.save(update_fields=["adjudicates"])
    else:
        membership.add(case.task, [bea], role=role)
        membership.remove(case.task, [bea])
    move(case, "reopened", stages.QUEUED)
    permit = permit_of(Annotator.objects.get(pk=bea.pk), case.task)
    left = list(eligible.waiting_units(permit))
    assert left
    assert case not in left
    assert progress_of(permit).waiting == len(left)


@pytest.mark.parametrize(("text", "quota"), [("", None), ("none", None), ("1,200", 1200), ("50%", 9), ("1%", 1)])
def test_a_quota_is_a_number_a_share_or_none(task, text, quota):
    assert membership.parse_quota(task, text) == quota


def test_a_share_of_no_answers_is_one_answer(make_task):
    assert membership.parse_quota(make_task([]), "25%") == 1


@pytest.mark.parametrize(
    "text", ["0", "-1", "many", "101%", "1.5", "9" * 13, "0" * 12 + "9" * 13, "0" * 12 + "1999%", "²"]
)
def test_what_is_not_a_quota_is_refused(task, text):
    with pytest.raises(refusals.InvalidAnswer):
        membership.parse_quota(task, text)


def test_people_are_found_by_name_language_and_group(task, person):
    ann, low, fay = person("ann", "de"), person("anton", "de:2"), person("fay", "fr")
    students = Group.objects.create(name="students")
    staff = Group.objects.create(name="staff")
    staff.permissions.add(Permission.objects.first())
    for group in (students, staff):
        group.user_set.add(fay.user)
    assert set(membership.candidates(task, "an")) == {ann, low}
    assert set(membership.candidates(task, language="de")) == {ann}
    assert set(membership.candidates(task, group="students")) == {fay}
    assert set(membership.candidates(task, group="staff")) == set()
    membership.add(task, [ann])
    assert set(membership.candidates(task)) == {low, fay}
