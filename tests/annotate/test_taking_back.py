"""An answer or a skip that a person takes back: for how long, what becomes of the unit, and of what others said."""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotate.core import stages
from annotate.core.refusals import NothingToUndo, TooLateToUndo, WrongStage
from annotate.kinds import Answer
from annotate.models import Judgment, Lease
from annotate.work import answer_changes
from annotate.work.answer_changes import undo
from annotate.work.judgments import judge, skip
from annotate.work.queue import open_lease, take
from annotate.work.routing import reroute
from tests.annotate.acts import settle
from tests.annotate.conftest import DISPUTED
from tests.annotate.one_unit import ENGLISH, FRENCH, GERMAN, answer, history, pass_on, where

pytestmark = pytest.mark.both_databases


def test_an_answer_can_be_taken_back_and_given_anew(make_task, person):
    task, ann = make_task([DISPUTED]), person("ann", "de")
    first = answer(ann, task)
    lease = undo(ann, task)
    assert (lease, lease.unit) == (open_lease(ann, task), first.unit)
    assert where(task) == (stages.QUEUED, "")
    judge(ann, lease.pk, Answer("und"))
    assert where(task) == (stages.LABELLED, "und")
    first.refresh_from_db()
    assert first.voided_at
    assert [event for event, *_ in history(task)] == ["disputed", "answered", "undone", "answered"]


def test_the_unit_that_was_open_goes_back_when_an_answer_is_taken_back(make_task, person):
    task, ann = make_task([DISPUTED] * 2), person("ann", "de")
    answer(ann, task)
    second = take(ann, task)
    assert undo(ann, task).unit.position == 1
    second.refresh_from_db()
    assert (second.outcome, second.place) == ("released", None)


def test_a_skip_that_sent_the_unit_to_the_next_language_can_be_taken_back(make_task, person):
    task, ann = make_task([DISPUTED]), person("ann", "de")
    ben = person("ben", "en")
    pass_on(ann, task)
    assert history(task)[-1] == ("skipped", "QUEUED", 2, "en")
    lease = undo(ann, task)
    assert history(task)[-1] == ("undone", "QUEUED", 1, "de")
    assert task.units.get().visited == ["de"]
    assert take(ben, task) is None
    skip(ann, lease.pk)
    assert history(task)[-1] == ("skipped", "QUEUED", 2, "en")


def test_a_skip_that_sent_the_unit_to_adjudication_can_be_taken_back(make_task, person):
    task, ann = make_task([DISPUTED]), person("ann", "de")
    pass_on(ann, task)
    assert where(task)[0] == stages.ADJUDICATION
    undo(ann, task)
    assert history(task)[-1] == ("undone", "QUEUED", 1, "de")


@pytest.mark.parametrize("stage", [stages.ADJUDICATION, stages.DISCARDED])
def test_the_answer_that_made_the_conflict_can_be_taken_back(make_task, readers, stage):
    task = make_task([DISPUTED], redundancy=2, on_conflict=stage)
    ann, bea = readers("ann bea")
    answer(ann, task)
    answer(bea, task, ENGLISH)
    assert where(task) == (stage, "")
    judge(bea, undo(bea, task).pk, GERMAN)
    assert where(task) == (stages.LABELLED, "de")


def test_one_of_three_answers_can_be_taken_back_while_others_are_missing(make_task, readers):
    task = make_task([DISPUTED], redundancy=3)
    ann, bea, cem = readers("ann bea cem")
    answer(ann, task)
    answer(bea, task, ENGLISH)
    lease = undo(bea, task)
    assert (lease.place, len(history(task))) == (2, 1)
    judge(bea, lease.pk, GERMAN)
    answer(cem, task, ENGLISH)
    assert where(task) == (stages.LABELLED, "de")


def test_the_last_of_three_answers_can_be_taken_back(make_task, readers):
    task = make_task([DISPUTED], redundancy=3)
    ann, bea, cem = readers("ann bea cem")
    for annotator in (ann, bea, cem):
        answer(annotator, task)
    undo(cem, task)
    assert where(task) == (stages.QUEUED, "")
    assert task.units.get().judgments.filter(voided_at=None).count() == 2


def test_taking_back_leaves_a_unit_where_it_was_before_not_where_it_was_when_leased(make_task, person):
    """It had gone to the next language while the annotator had it open."""
    task = make_task([DISPUTED], redundancy=2)
    ann, bea = person("ann", "de"), person("bea", "de")
    person("ben", "en")
    person("bob", "en")
    slow = take(ann, task)
    pass_on(bea, task)
    judge(ann, slow.pk, GERMAN)
    undo(ann, task)
    assert history(task)[-1] == ("skipped", "QUEUED", 2, "en")
    assert task.units.get().visited == ["de", "en"]


def test_an_answer_can_be_taken_back_after_its_unit_was_rerouted_and_the_unit_stays_there(make_task, person):
    task = make_task([DISPUTED], redundancy=2)
    ann, bea = person("ann", "de"), person("bea", "de")
    person("ben", "en")
    answer(ann, task)
    bea.user.is_active = False
    bea.user.save()
    assert reroute(task)["queues"] == 1
    assert undo(ann, task).unit == task.units.get()
    assert history(task)[-1] == ("rerouted", "QUEUED", 1, "en")


def test_an_answer_to_a_unit_that_went_on_to_another_language_can_be_taken_back_and_given_anew(make_task, person):
    task = make_task([DISPUTED], redundancy=2)
    ann, bea = person("ann", "de"), person("bea", "de")
    person("ben", "en")
    answer(ann, task)
    pass_on(bea, task)
    again = undo(ann, task)
    assert (again.queue, again.round, again.unit.language, again.unit.round) == ("de", 1, "en", 2)
    judge(ann, again.pk, Answer("en"))
    assert history(task)[-1] == ("skipped", "QUEUED", 2, "en")
    assert [said.label for said in task.units.get().judgments.live().answers()] == ["en"]


def test_an_answer_can_be_taken_back_after_rerouting_sent_its_unit_to_adjudication(make_task, readers):
    task = make_task([DISPUTED], redundancy=2)
    ann, bea = readers("ann bea")
    answer(ann, task)
    bea.user.is_active = False
    bea.user.save()
    assert reroute(task)["adjudication"] == 1
    undo(ann, task)
    assert history(task)[-1] == ("undone", "QUEUED", 1, "de")


def long_ago(judgment, minutes):
    then = timezone.now() - timedelta(minutes=minutes)
    Judgment.objects.filter(pk=judgment.pk).update(shown_at=then, answered_at=then)


@pytest.mark.parametrize(
    ("theirs", "comes_to"), [(GERMAN, (stages.LABELLED, "de")), (ENGLISH, (stages.ADJUDICATION, ""))]
)
@pytest.mark.parametrize("first", ["theirs", "mine"])
def test_a_skip_can_be_taken_back_though_another_person_has_the_unit_and_then_both_decide(
    make_task, person, theirs, comes_to, first
):
    task = make_task([DISPUTED])
    ann, ben = person("ann", "de"), person("ben", "en")
    pass_on(ann, task)
    lease = take(ben, task)
    if first == "theirs":
        judge(ben, lease.pk, theirs)
    again = undo(ann, task)
    judge(ann, again.pk, GERMAN)
    if first == "mine":
        judge(ben, lease.pk, theirs)
    assert where(task) == comes_to


def test_an_answer_can_be_taken_back_though_others_judged_since_and_the_unit_is_decided_anew(make_task, readers):
    task = make_task([DISPUTED], redundancy=2)
    ann, bea = readers("ann bea")
    theirs = take(bea, task)
    answer(ann, task)
    judge(bea, theirs.pk, ENGLISH)
    assert where(task)[0] == stages.ADJUDICATION
    judge(ann, undo(ann, task).pk, ENGLISH)
    assert where(task) == (stages.LABELLED, "en")


def test_a_third_person_whom_the_difference_brought_in_keeps_the_unit_when_an_answer_is_taken_back(make_task, readers):
    task = make_task([DISPUTED], redundancy=3, stop_early=True)
    ann, bea, cem = readers("ann bea cem")
    answer(ann, task)
    answer(bea, task, ENGLISH)
    third = take(cem, task)
    again = undo(ann, task)
    judge(cem, third.pk, FRENCH)
    judge(ann, again.pk, ENGLISH)
    assert where(task) == (stages.LABELLED, "en")


@pytest.mark.parametrize("said", [GERMAN, None])
def test_what_an_adjudicator_decided_stands_and_the_new_answer_is_kept_beside_it(make_task, person, said):
    task, ann, ada = make_task([DISPUTED] * 2), person("ann", "de"), person("ada", adjudicates=True)
    pass_on(ann, task)
    unit = task.units.get(stage=stages.ADJUDICATION)
    settle(ada, unit, "fr")
    again = undo(ann, task)
    assert again == open_lease(ann, task) == take(ann, task)
    second = judge(ann, again.pk, said) if said else skip(ann, again.pk)
    unit.refresh_from_db()
    assert (unit.stage, unit.label, second.voided_at) == (stages.LABELLED, "fr", None)
    assert take(ann, task).unit != unit


def test_that_somebody_had_the_unit_open_before_does_not_hinder(make_task, readers):
    task = make_task([DISPUTED], redundancy=2)
    ann, bea = readers("ann bea")
    theirs = take(bea, task)
    answer(ann, task)
    undo(ann, task)
    judge(bea, theirs.pk, ENGLISH)
    assert where(task)[0] == stages.QUEUED


def test_refused_undo_keeps_the_unit_that_is_open(make_task, person):
    task, ann = make_task([DISPUTED] * 2), person("ann", "de")
    long_ago(answer(ann, task), minutes=11)
    lease = take(ann, task)
    with pytest.raises(TooLateToUndo):
        undo(ann, task)
    assert open_lease(ann, task) == lease


def test_undo_again_goes_further_back(make_task, person):
    task, ann = make_task([DISPUTED] * 3), person("ann", "de")
    answer(ann, task)
    pass_on(ann, task)
    answer(ann, task)
    assert [undo(ann, task).unit.position for _ in range(3)] == [3, 2, 1]
    with pytest.raises(NothingToUndo, match="There is no answer of yours to take back"):
        undo(ann, task)
    assert list(task.units.values_list("stage", flat=True)) == [stages.QUEUED] * 3
    assert Lease.objects.filter(closed_at=None).count() == 1


def test_an_earlier_answer_can_be_named(make_task, person):
    task, ann = make_task([DISPUTED] * 2), person("ann", "de")
    first, second = answer(ann, task), answer(ann, task)
    assert undo(ann, task, first.pk).unit == first.unit
    second.refresh_from_db()
    assert second.voided_at is None
    with pytest.raises(NothingToUndo):
        undo(ann, task, first.pk)


def test_nobody_can_take_back_what_somebody_else_said(make_task, readers):
    task = make_task([DISPUTED])
    ann, bea = readers("ann bea")
    judgment = answer(ann, task)
    for named in (None, judgment.pk):
        with pytest.raises(NothingToUndo):
            undo(bea, task, named)


def test_what_was_said_in_another_task_is_not_taken_back(make_task, person):
    one, two = make_task([DISPUTED], name="one"), make_task([DISPUTED], name="two")
    ann = person("ann", "de")
    judgment = answer(ann, one)
    with pytest.raises(NothingToUndo):
        undo(ann, two, judgment.pk)


def test_an_answer_can_be_taken_back_for_some_minutes(make_task, person, monkeypatch):
    monkeypatch.setattr(answer_changes, "UNDO_MINUTES", 3)
    task, ann = make_task([DISPUTED]), person("ann", "de")
    judgment = answer(ann, task)
    long_ago(judgment, minutes=4)
    with pytest.raises(TooLateToUndo, match="You said that more than 3 minutes ago, so it stands"):
        undo(ann, task)
    long_ago(judgment, minutes=2)
    assert undo(ann, task).unit == judgment.unit


def test_pages_offer_to_take_back_only_what_is_new_enough(make_task, person, client):
    task, ann = make_task([DISPUTED] * 3), person("ann", "de")
    old, new = answer(ann, task), answer(ann, task)
    long_ago(old, minutes=11)
    client.force_login(ann.user)
    page = client.get(f"/tasks/{task.name}/answers/").text
    assert (f'value="{old.pk}"' in page, f'value="{new.pk}"' in page) == (False, True)
    assert 'data-key="KeyZ"' in client.get(f"/tasks/{task.name}/").text
    long_ago(new, minutes=11)
    assert 'data-key="KeyZ"' not in client.get(f"/tasks/{task.name}/").text


def test_an_answer_cannot_be_taken_back_in_a_closed_task(make_task, person):
    task, ann = make_task([DISPUTED]), person("ann", "de")
    judgment = answer(ann, task)
    task.is_open = False
    task.save()
    with pytest.raises(WrongStage, match="closed, so your answer stands"):
        undo(ann, task)
    task.is_open = True
    task.save()
    assert undo(ann, task).unit == judgment.unit
