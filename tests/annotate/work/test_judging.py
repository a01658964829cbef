"""An answer or a skip: what is stored, what is refused, and what several answers come to."""

from datetime import timedelta

import pytest

from annotate.core import stages
from annotate.core.refusals import AlreadyAnswered, InvalidAnswer, NotFound, WrongStage
from annotate.kinds import KINDS, Answer
from annotate.kinds.language import UNDEFINED_REASONS
from annotate.models import Judgment, Lease
from annotate.work.answer_changes import undo
from annotate.work.judgments import judge, read_answer, skip
from annotate.work.queue import open_lease, take
from tests.annotate.conftest import DISPUTED
from tests.annotate.journeys import ENGLISH, GERMAN, answer, follow, history, journeys, pass_on, where

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
        (
            Answer("und", "whatever"),
            "'whatever' is not a valid reason. Valid reasons: several, mixed, gibberish, unlisted",
        ),
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
    assert read_answer(KINDS["language"], [], "mixed") == Answer("und", "mixed")  # a reason alone says Undefined


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
    """Otherwise a request that was delayed on its way would bring the answer back."""
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
    answers that all differ go to an adjudicator
      redundancy=3 ann:de bea:de cem:de = ann de; bea en; cem fr > conflicted ADJUDICATION de 1
    or are discarded, as the task says
      redundancy=3 on_conflict=DISCARDED ann:de bea:de cem:de = ann de; bea en; cem fr > conflicted DISCARDED de 1
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
