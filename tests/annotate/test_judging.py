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
from tests.annotate.one_unit import ENGLISH, FRENCH, GERMAN, answer, history, pass_on, where

pytestmark = pytest.mark.both_databases


# --- answers


def test_an_answer_is_kept_with_who_when_and_how_long(make_task, person):
    task, ann = make_task([DISPUTED]), person("ann", "de")
    lease = take(ann, task)
    Lease.objects.filter(pk=lease.pk).update(opened_at=lease.opened_at - timedelta(seconds=20))
    judgment = judge(ann, lease.pk, Answer("und", "mixed", "  half of it Dutch "), active_seconds=7.1239)
    judgment.refresh_from_db()
    assert (judgment.kind, judgment.label, judgment.reason) == ("answer", "und", "mixed")
    assert (judgment.comment, judgment.active_seconds) == ("half of it Dutch", 7.124)
    assert judgment.shown_at == lease.opened_at - timedelta(seconds=20)
    assert where(task) == (stages.LABELLED, "und")


@pytest.mark.parametrize(("measured", "least", "most"), [(3600, 30, 31), (-5, 0, 0), (float("nan"), 0, 0)])
def test_time_at_work_is_cut_to_the_time_since_the_unit_was_shown(make_task, person, measured, least, most):
    task, ann = make_task([DISPUTED]), person("ann", "de")
    lease = take(ann, task)
    Lease.objects.filter(pk=lease.pk).update(opened_at=lease.opened_at - timedelta(seconds=30))
    judgment = judge(ann, lease.pk, GERMAN, active_seconds=measured)
    judgment.refresh_from_db()
    assert least <= judgment.active_seconds <= most


def test_time_at_work_that_was_not_measured_is_not_invented(make_task, person):
    task, ann = make_task([DISPUTED] * 2), person("ann", "de")
    assert [answer(ann, task).active_seconds, pass_on(ann, task).active_seconds] == [None, None]


def test_nobody_can_answer_with_the_lease_of_somebody_else(make_task, readers):
    task = make_task([DISPUTED])
    ann, bea = readers("ann bea")
    lease = take(ann, task)
    for attempt in (lambda: judge(bea, lease.pk, GERMAN), lambda: skip(bea, lease.pk), lambda: judge(bea, 0, GERMAN)):
        with pytest.raises(NotFound, match="You have not been given such a unit"):
            attempt()
    assert not Judgment.objects.exists()


def test_an_answer_for_a_unit_that_has_gone_on_is_refused(make_task, readers):
    task = make_task([DISPUTED], redundancy=2, rounds=1)
    ann, bea = readers("ann bea")
    lease = take(ann, task)
    pass_on(bea, task)
    assert where(task)[0] == stages.ADJUDICATION
    with pytest.raises(WrongStage, match="has gone on without your answer"):
        judge(ann, lease.pk, GERMAN)


def test_an_answer_that_the_task_does_not_offer_is_refused_and_the_unit_stays_open(make_task, person):
    task, ann = make_task([DISPUTED]), person("ann", "de")
    lease = take(ann, task)
    for said, sentence in [
        (Answer("ja"), "'ja' is not on this task's list of languages"),
        (Answer("de", "mixed"), "Only Undefined can have a reason"),
        (Answer("und", "whatever"), "'whatever' is not one of the reasons: several, mixed, gibberish, unlisted"),
        (Answer("und", "unlisted", " \n"), "Write in the comment which one it is"),
    ]:
        with pytest.raises(InvalidAnswer, match=sentence):
            judge(ann, lease.pk, said)
    assert open_lease(ann, task) == lease
    assert not Judgment.objects.exists()


@pytest.mark.parametrize("reason", ["", *UNDEFINED_REASONS])
def test_undefined_may_say_why(make_task, person, reason):
    task, ann = make_task([DISPUTED]), person("ann", "de")
    assert answer(ann, task, Answer("und", reason, "Frisian")).reason == reason
    assert where(task) == (stages.LABELLED, "und")


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


def test_an_answer_without_a_language_is_refused(make_task, person):
    task, ann = make_task([DISPUTED]), person("ann", "de")
    lease = take(ann, task)
    with pytest.raises(InvalidAnswer, match="No language was chosen"):
        judge(ann, lease.pk, read_answer(task.kind, [""]))


def test_a_reason_alone_says_undefined():
    assert read_answer(KINDS["language"], [], "mixed") == Answer("und", "mixed")


# --- the same again


def test_the_same_answer_again_returns_the_first_judgment(make_task, person):
    task, ann = make_task([DISPUTED]), person("ann", "de")
    lease = take(ann, task)
    first = judge(ann, lease.pk, GERMAN)
    assert judge(ann, lease.pk, GERMAN) == first
    assert Judgment.objects.count() == 1
    assert len(history(task)) == 2


def test_the_same_skip_again_returns_the_first(make_task, readers):
    task = make_task([DISPUTED], skip_limit=2)
    ann, _ = readers("ann bea")
    lease = take(ann, task)
    assert skip(ann, lease.pk) == skip(ann, lease.pk)
    assert Judgment.objects.count() == 1
    assert where(task)[0] == stages.QUEUED


def test_another_answer_is_refused_with_the_first_by_name(make_task, person):
    task, ann = make_task([DISPUTED]), person("ann", "de")
    lease = take(ann, task)
    judge(ann, lease.pk, GERMAN)
    for attempt in (
        lambda: judge(ann, lease.pk, ENGLISH),
        lambda: judge(ann, lease.pk, Answer("und", "mixed")),
        lambda: skip(ann, lease.pk),
    ):
        with pytest.raises(AlreadyAnswered, match="You have already answered German here, and that stands"):
            attempt()
    assert where(task) == (stages.LABELLED, "de")


def test_an_answer_after_a_skip_is_refused_with_the_skip_by_name(make_task, readers):
    task = make_task([DISPUTED], skip_limit=2)
    ann, _ = readers("ann bea")
    lease = take(ann, task)
    skip(ann, lease.pk)
    with pytest.raises(AlreadyAnswered, match="You have already skipped here"):
        judge(ann, lease.pk, GERMAN)


def test_a_retry_of_what_was_taken_back_is_refused(make_task, person):
    """Otherwise a request that was delayed on its way would bring the answer back."""
    task, ann = make_task([DISPUTED]), person("ann", "de")
    lease = take(ann, task)
    judge(ann, lease.pk, GERMAN)
    undo(ann, task)
    for attempt in (lambda: judge(ann, lease.pk, GERMAN), lambda: skip(ann, lease.pk)):
        with pytest.raises(AlreadyAnswered, match="You answered German here and took that back since"):
            attempt()
    assert where(task) == (stages.QUEUED, "")


# --- redundancy


def test_the_label_of_several_answers_is_that_of_the_majority(make_task, readers):
    task = make_task([DISPUTED], redundancy=3)
    people = readers("ann bea cem")
    for annotator, said in zip(people, (GERMAN, ENGLISH, GERMAN), strict=True):
        assert where(task) == (stages.QUEUED, "")
        answer(annotator, task, said)
    assert where(task) == (stages.LABELLED, "de")


@pytest.mark.parametrize("stage", [stages.ADJUDICATION, stages.DISCARDED])
def test_answers_that_give_no_label_go_where_the_task_says(make_task, readers, stage):
    task = make_task([DISPUTED], redundancy=3, on_conflict=stage)
    for annotator, said in zip(readers("ann bea cem"), (GERMAN, ENGLISH, FRENCH), strict=True):
        answer(annotator, task, said)
    assert where(task) == (stage, "")
    assert history(task)[-1] == ("conflicted", stage, 1, "de")


def test_two_who_differ_give_no_label(make_task, readers):
    task = make_task([DISPUTED], redundancy=2)
    for annotator, said in zip(readers("ann bea"), (GERMAN, ENGLISH), strict=True):
        answer(annotator, task, said)
    assert where(task) == (stages.ADJUDICATION, "")


def test_answers_of_an_earlier_round_count_on(make_task, person):
    task = make_task([DISPUTED], redundancy=2)
    ann, bea, ben = person("ann", "de"), person("bea", "de"), person("ben", "en")
    answer(ann, task)
    pass_on(bea, task)
    assert history(task)[-1] == ("skipped", "QUEUED", 2, "en")
    answer(ben, task)
    assert where(task) == (stages.LABELLED, "de")


def test_a_unit_goes_on_when_too_few_readers_remain_for_the_answers_that_are_missing(make_task, person):
    task = make_task([DISPUTED], redundancy=2)
    ann, ben = person("ann", "de"), person("ben", "en")
    answer(ann, task)
    assert history(task)[-1][1:] == ("QUEUED", 2, "en")
    answer(ben, task)
    assert where(task) == (stages.LABELLED, "de")


def test_a_skip_from_a_round_that_is_over_does_not_end_the_next(make_task, person):
    task = make_task([DISPUTED], redundancy=2)
    ann, bea = person("ann", "de"), person("bea", "de")
    person("ben", "en")
    person("bob", "en")
    slow = take(ann, task)
    pass_on(bea, task)
    skip(ann, slow.pk)
    assert history(task)[-1] == ("skipped", "QUEUED", 2, "en")
