"""An answer or a skip that a person takes back: for how long, what becomes of the unit, and of what others said."""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotate.core import stages
from annotate.core.refusals import NothingToUndo, TooLateToUndo, WrongStage
from annotate.models import Judgment, Lease
from annotate.work.answer_changes import undo
from annotate.work.judgments import judge, skip
from annotate.work.queue import open_lease, take
from tests.annotate.acts import settle
from tests.annotate.conftest import DISPUTED
from tests.annotate.journeys import GERMAN, answer, follow, history, journeys, pass_on, the_unit


def test_an_answer_is_taken_back_and_given_anew_and_the_unit_that_was_open_goes_back(make_task, person):
    task, ann = make_task([DISPUTED] * 2), person("ann", "de")
    first, second = answer(ann, task), take(ann, task)
    lease = undo(ann, task)
    assert (lease, lease.unit) == (open_lease(ann, task), first.unit)
    second.refresh_from_db()
    assert (second.outcome, second.place) == ("released", None)
    judge(ann, lease.pk, GERMAN)
    unit = task.units.get(pk=first.unit_id)
    assert (unit.stage, unit.label) == (stages.LABELLED, "de")
    first.refresh_from_db()
    assert first.voided_at
    assert [move.event for move in unit.transitions.all()] == ["disputed", "answered", "undone", "answered"]


@journeys(
    """
    from the queue of the next language
      ann:de ben:en = ann skip > QUEUED en 2; ann undo > undone QUEUED de 1; ben nothing; ann skip > QUEUED en 2
    from adjudication
      ann:de = ann skip > ADJUDICATION de 1; ann undo > QUEUED de 1
    from a conflict
      redundancy=2 ann:de bea:de = ann de; bea en > ADJUDICATION de 1; bea undo > QUEUED de 1; bea de > LABELLED de
      1 de
    from a conflict that discarded it
      redundancy=2 on_conflict=DISCARDED ann:de bea:de = ann de; bea en > DISCARDED de 1; bea undo > QUEUED de 1;
      bea de > LABELLED de 1 de
    while other answers are missing
      redundancy=3 ann:de bea:de cem:de = ann de; bea en; bea undo > QUEUED de 1; bea de; cem en > LABELLED de 1 de
    after the last of three answers
      redundancy=3 ann:de bea:de cem:de = ann de; bea de; cem de; cem undo > QUEUED de 1; cem en > LABELLED de 1 de
    to where it is, not to where it was when the lease began
      redundancy=2 ann:de bea:de ben:en bob:en = ann takes; bea skip; ann de; ann undo > QUEUED en 2
    where rerouting has sent it on
      redundancy=2 ann:de bea:de ben:en = ann de; bea leaves; task rerouted > QUEUED en 1; ann undo > QUEUED en 1;
      ann takes
    from where rerouting has sent it to adjudication
      redundancy=2 ann:de bea:de = ann de; bea leaves; task rerouted > ADJUDICATION de 1; ann undo > QUEUED de 1
    while it is in the queue of another language
      redundancy=2 ann:de bea:de ben:en = ann de; bea skip > QUEUED en 2; ann undo; ann en > QUEUED en 2; ben en >
      LABELLED en 2 en
    though others judged it since, and it is decided anew
      redundancy=2 ann:de bea:de = bea takes; ann de; bea en > ADJUDICATION de 1; ann undo; ann en > LABELLED de 1
      en
    while a third person keeps it, whom the difference brought in
      redundancy=3 stop_early=True ann:de bea:de cem:de = ann de; bea en; cem takes; ann undo; cem fr; ann en >
      LABELLED de 1 en
    though somebody had it open before
      redundancy=2 ann:de bea:de = bea takes; ann de; ann undo; bea en > QUEUED de 1
    though another person has answered it, and both decide
      ann:de ben:en = ann skip; ben takes; ben de; ann undo; ann de > LABELLED de 1 de
    or differ
      ann:de ben:en = ann skip; ben takes; ben en; ann undo; ann de > ADJUDICATION de 1
    though another person has it, who answers later, and both decide
      ann:de ben:en = ann skip; ben takes; ann undo; ann de; ben de > LABELLED en 2 de
    or differ then
      ann:de ben:en = ann skip; ben takes; ann undo; ann de; ben en > ADJUDICATION en 2
    """
)
def test_a_unit_comes_back(make_task, post, options, people, steps):
    follow(make_task([post], **options), people, steps)


def test_a_lease_that_comes_back_keeps_its_place_queue_and_round(make_task, readers, person):
    task, (ann, bea, _) = make_task([DISPUTED], redundancy=3), readers("ann bea cem")
    person("ben", "en")
    person("bob", "en")
    answer(ann, task)
    answer(bea, task)
    assert (undo(bea, task).place, len(history(task))) == (2, 1)
    pass_on(bea, task)
    assert history(task)[-1] == ("skipped", "QUEUED", 2, "en")
    again = undo(ann, task)
    assert (again.queue, again.round, again.unit.language, again.unit.round) == ("de", 1, "en", 2)
    assert the_unit(task).visited == ["de", "en"]


@pytest.mark.parametrize("label", [GERMAN, None])
def test_what_an_adjudicator_decided_stands_and_the_new_answer_is_kept_beside_it(make_task, person, label):
    task, ann, ada = make_task([DISPUTED] * 2), person("ann", "de"), person("ada", adjudicates=True)
    pass_on(ann, task)
    unit = task.units.get(stage=stages.ADJUDICATION)
    settle(ada, unit, "fr")
    again = undo(ann, task)
    assert again == open_lease(ann, task) == take(ann, task)
    second = judge(ann, again.pk, label) if label else skip(ann, again.pk)
    unit.refresh_from_db()
    assert (unit.stage, unit.label, second.voided_at) == (stages.LABELLED, "fr", None)
    assert take(ann, task).unit != unit


def long_ago(judgment, minutes):
    then = timezone.now() - timedelta(minutes=minutes)
    Judgment.objects.filter(pk=judgment.pk).update(shown_at=then, answered_at=then)


def test_undo_goes_further_back_each_time_or_to_a_named_answer(make_task, person):
    task, ann = make_task([DISPUTED] * 3), person("ann", "de")
    first, skipped, last = answer(ann, task), pass_on(ann, task), answer(ann, task)
    assert undo(ann, task, first.pk).unit == first.unit
    with pytest.raises(NothingToUndo):
        undo(ann, task, first.pk)
    assert [undo(ann, task).unit for _ in range(2)] == [last.unit, skipped.unit]
    with pytest.raises(NothingToUndo, match="You have no answer to undo"):
        undo(ann, task)
    assert set(task.units.values_list("stage", flat=True)) == {stages.QUEUED}
    assert Lease.objects.filter(closed_at=None).count() == 1


def test_nobody_takes_back_what_somebody_else_said_or_what_was_said_in_another_task(make_task, readers):
    task, other = make_task([DISPUTED]), make_task([DISPUTED], name="other")
    ann, bea = readers("ann bea")
    judgment = answer(ann, task)
    for person, of_task, named in ((bea, task, None), (bea, task, judgment.pk), (ann, other, judgment.pk)):
        with pytest.raises(NothingToUndo):
            undo(person, of_task, named)


def test_an_answer_can_be_taken_back_for_some_minutes_in_an_open_task(make_task, person):
    task, ann = make_task([DISPUTED] * 2), person("ann", "de")
    judgment, lease = answer(ann, task), take(ann, task)
    long_ago(judgment, minutes=11)
    with pytest.raises(TooLateToUndo, match="You gave this answer more than 10 minutes ago, so it cannot be undone"):
        undo(ann, task)
    assert open_lease(ann, task) == lease  # a refusal keeps what is open
    long_ago(judgment, minutes=9)
    task.is_open = False
    task.save()
    with pytest.raises(WrongStage, match="closed, so your answer cannot be changed"):
        undo(ann, task)
    task.is_open = True
    task.save()
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
