"""Answers and skips: what is stored or refused, how several answers combine, and undo."""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotate.core import stages
from annotate.core.refusals import AlreadyAnswered, InvalidAnswer, NotFound, NothingToUndo, TooLateToUndo, WrongStage
from annotate.kinds import KINDS, Answer
from annotate.kinds.language import UNDEFINED_REASONS
from annotate.models import Consent, Judgment, Lease
from annotate.work.answer_changes import last_judgment, undo
from annotate.work.interventions import agree, withdraw
from annotate.work.judgments import judge, read_answer, skip
from annotate.work.queue import open_lease, take
from tests.annotate.acts import settle
from tests.annotate.conftest import DISPUTED
from tests.annotate.journeys import ENGLISH, GERMAN, answer, follow, history, journeys, pass_on, the_unit, where

pytestmark = pytest.mark.both_databases


# --- answers


@pytest.mark.parametrize(
    ("measured", "least", "most"), [(7.1239, 7.124, 7.124), (3600, 30, 31), (-5, 0, 0), (float("nan"), 0, 0)]
)
def test_an_answer_is_kept_with_who_when_and_a_time_that_ends_where_the_unit_was_shown(
    make_task, person, measured, least, most
):
    task, ann = make_task([DISPUTED]), person("ann", "de")
    lease = take(ann, task)
    Lease.objects.filter(pk=lease.pk).update(opened_at=lease.opened_at - timedelta(seconds=30))
    judgment = judge(ann, lease.pk, Answer("und", "mixed", "  half of it Dutch "), active_seconds=measured)
    judgment.refresh_from_db()
    assert (judgment.kind, judgment.label, judgment.reason) == ("answer", "und", "mixed")
    assert (judgment.annotator, judgment.comment) == (ann, "half of it Dutch")
    assert least <= judgment.active_seconds <= most
    assert judgment.shown_at == lease.opened_at - timedelta(seconds=30)
    assert where(task) == (stages.LABELLED, "und")


def test_time_at_work_that_was_not_measured_is_not_invented(make_task, person):
    task, ann = make_task([DISPUTED] * 2), person("ann", "de")
    assert [act.active_seconds for act in (answer(ann, task), pass_on(ann, task))] == [None, None]


def test_nobody_can_answer_with_the_lease_of_somebody_else(make_task, readers):
    task, (ann, bea) = make_task([DISPUTED]), readers("ann bea")
    lease = take(ann, task)
    for attempt in (lambda: judge(bea, lease.pk, GERMAN), lambda: skip(bea, lease.pk), lambda: judge(bea, 0, GERMAN)):
        with pytest.raises(NotFound, match="You do not have this item"):
            attempt()
    assert not Judgment.objects.exists()


def test_an_answer_for_a_unit_that_has_gone_on_is_refused(make_task, readers):
    task, (ann, bea) = make_task([DISPUTED], redundancy=2, rounds=1), readers("ann bea")
    lease = take(ann, task)
    pass_on(bea, task)
    with pytest.raises(WrongStage, match="no longer needs your answer"):
        judge(ann, lease.pk, GERMAN)
    assert where(task) == (stages.ADJUDICATION, "")


def test_an_answer_that_the_task_does_not_offer_is_refused_and_the_unit_stays_open(make_task, person):
    task, ann = make_task([DISPUTED]), person("ann", "de")
    lease = take(ann, task)
    for refused, sentence in [
        (Answer("ja"), "'ja' is not on this task's list of languages"),
        (Answer("de", "mixed"), "Only Undefined can have a reason"),
        (Answer("und", "whatever"), "'whatever' is not a valid reason. Valid reasons: several, mixed, gibberish,"),
        (Answer("und", "unlisted", " \n"), "Write in the comment which one it is"),
        (read_answer(task.kind, [""]), "No language was chosen"),
    ]:
        with pytest.raises(InvalidAnswer, match=sentence):
            judge(ann, lease.pk, refused)
    assert open_lease(ann, task) == lease
    assert not Judgment.objects.exists()


def test_undefined_may_say_why(make_task, person):
    reasons = ["", *UNDEFINED_REASONS]
    task, ann = make_task([DISPUTED] * len(reasons)), person("ann", "de")
    assert [answer(ann, task, Answer("und", reason, "Frisian")).reason for reason in reasons] == reasons
    assert set(task.units.values_list("stage", "label")) == {(stages.LABELLED, "und")}


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"sent": ["de", "fr"]}, "Several answers were sent"),
        ({"sent": ["de"], "comment": "x" * 2001}, "longer than 2,000 characters"),
        ({"sent": ["de"], "comment": "a\x00b"}, "NUL"),
    ],
)
def test_what_no_task_can_take_is_refused_before_anything_is_read(fields, sentence):
    with pytest.raises(InvalidAnswer, match=sentence):
        read_answer(KINDS["language"], **fields)
    assert read_answer(KINDS["language"], [], "mixed") == Answer("und", "mixed")  # a reason alone means Undefined


# --- the same again


def test_the_same_again_returns_the_first_and_anything_else_is_refused_with_the_first_by_name(make_task, readers):
    task, (ann, bea, _) = make_task([DISPUTED], redundancy=2, skip_limit=2), readers("ann bea cem")
    lease = take(ann, task)
    first = judge(ann, lease.pk, GERMAN)
    assert judge(ann, lease.pk, GERMAN) == first
    for attempt in (
        lambda: judge(ann, lease.pk, ENGLISH),
        lambda: judge(ann, lease.pk, Answer("und", "mixed")),
        lambda: skip(ann, lease.pk),
    ):
        with pytest.raises(AlreadyAnswered, match="You have already answered German"):
            attempt()
    lease = take(bea, task)
    assert skip(bea, lease.pk) == skip(bea, lease.pk)
    with pytest.raises(AlreadyAnswered, match="You have already skipped this item"):
        judge(bea, lease.pk, GERMAN)
    assert Judgment.objects.count() == 2
    assert (len(history(task)), where(task)) == (1, (stages.QUEUED, ""))


def test_a_retry_of_what_was_taken_back_is_refused(make_task, person):
    """Otherwise a delayed request would restore the answer."""
    task, ann = make_task([DISPUTED]), person("ann", "de")
    lease = take(ann, task)
    judge(ann, lease.pk, GERMAN)
    undo(ann, task)
    for attempt in (lambda: judge(ann, lease.pk, GERMAN), lambda: skip(ann, lease.pk)):
        with pytest.raises(AlreadyAnswered, match="You answered German and then undid it"):
            attempt()
    assert where(task) == (stages.QUEUED, "")


# --- redundancy


@journeys(
    """
    the label of several answers is that of the majority
      redundancy=3 ann:de bea:de cem:de = ann de > QUEUED de 1; bea en > QUEUED de 1; cem de > LABELLED de 1 de
    two who differ give no label
      redundancy=2 ann:de bea:de = ann de; bea en > ADJUDICATION de 1
    answers of an earlier round count on
      redundancy=2 ann:de bea:de ben:en = ann de; bea skip > QUEUED en 2; ben de > LABELLED en 2 de
    a unit goes on when too few readers remain for the answers that are missing
      redundancy=2 ann:de ben:en = ann de > QUEUED en 2; ben de > LABELLED en 2 de
    a skip from a round that is over does not end the next
      redundancy=2 ann:de bea:de ben:en bob:en = ann takes; bea skip; ann skip > QUEUED en 2
    a skip leaves a post of the overlap to its other readers
      redundancy=1.999999 skip_limit=2 ann:de bea:de cem:de = ann skip > QUEUED de 1; bea de; cem de > LABELLED de 1
      de
    where no second reader is to be had the first stands alone
      redundancy=1.999999 ann:de = ann de > LABELLED de 1 de
    """
)
def test_of_several_readers(make_task, post, options, people, steps):
    follow(make_task([post], **options), people, steps)


def test_a_share_of_the_posts_is_read_by_two(make_task):
    task = make_task([DISPUTED] * 40, redundancy=1.5)
    assert 5 < task.units.filter(redundancy=2).count() < 35
    whole = make_task([DISPUTED] * 2, redundancy=1, name="whole")
    assert set(whole.units.values_list("redundancy", flat=True)) == {1}


def test_a_unit_whose_redundancy_is_its_own_is_decided_by_it(make_task, readers):
    task = make_task([DISPUTED], redundancy=3)
    task.redundancy = 5
    task.save()
    for annotator in readers("ann bea cem"):
        answer(annotator, task)
    assert where(task) == (stages.LABELLED, "de")


# --- what a person takes back: for how long, and what becomes of the unit and of what others said


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
def test_an_adjudicators_decision_stands_and_the_new_answer_is_stored_with_it(make_task, person, label):
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


# --- a clock that is set back while people are at work


@pytest.fixture
def set_back(monkeypatch):
    """Set the clock back by another hour at each call."""

    def move():
        now = timezone.now
        monkeypatch.setattr(timezone, "now", lambda: now() - timedelta(hours=1))

    return move


@pytest.mark.parametrize("act", [lambda *of: judge(*of, Answer("de"), 2.5), lambda *of: skip(*of, 2.5)])
def test_what_was_taken_before_the_clock_was_set_back_can_be_answered_and_skipped(make_task, ann, set_back, act):
    lease = take(ann, make_task([DISPUTED]))
    set_back()
    judgment = act(ann, lease.pk)
    assert judgment.answered_at == judgment.shown_at == lease.opened_at
    assert judgment.active_seconds == 0


def test_undo_takes_back_what_was_said_last_whatever_the_clock_said(make_task, ann, set_back):
    task = make_task([DISPUTED] * 3)
    first = judge(ann, take(ann, task).pk, Answer("de"))
    set_back()
    last = judge(ann, take(ann, task).pk, Answer("en"))
    assert last.answered_at < first.answered_at
    assert last_judgment(ann, task) == last
    undo(ann, task)
    assert list(Judgment.objects.live()) == [first]


def test_a_unit_that_is_held_stays_held_and_is_answered_once(make_task, ann, person, set_back):
    task = make_task([DISPUTED], rounds=1)
    lease = take(ann, task)
    set_back()
    assert take(ann, task) == lease
    assert take(person("bea", "de"), task) is None
    judge(ann, lease.pk, Answer("de"))
    assert judge(ann, lease.pk, Answer("de")) == Judgment.objects.get()


def test_who_agreed_can_withdraw_after_the_clock_was_set_back(make_records_task, person, set_back):
    task, ann = make_records_task("toxic_pairs", 1), person("bea", "en")
    agree(ann, task.name)
    set_back()
    withdraw(ann, task.name)
    consent = Consent.objects.get()
    assert consent.withdrawn_at == consent.at
