from datetime import timedelta

import pytest
from django.utils import timezone

from annotate.core import stages
from annotate.core.refusals import AlreadyAnswered, InvalidAnswer, NotFound, NothingToUndo, TooLateToUndo, WrongStage
from annotate.kinds import KINDS, Answer
from annotate.kinds.language import UNDEFINED_REASONS
from annotate.models import Judgment, Lease
from annotate.work.judging import judge, read_answer, skip, undo
from annotate.work.queue import open_lease, take
from annotate.work.routing import reroute
from tests.annotate.acts import settle
from tests.annotate.conftest import DISPUTED

GERMAN, ENGLISH, FRENCH = Answer("de"), Answer("en"), Answer("fr")


@pytest.fixture
def readers(person):
    """readers("ann bea cem") are annotators who read German."""
    return lambda names: [person(name, "de") for name in names.split()]


def answer(annotator, task, said=GERMAN):
    return judge(annotator, take(annotator, task).pk, said)


def pass_on(annotator, task):
    return skip(annotator, take(annotator, task).pk)


def where(task):
    unit = task.units.get()
    return unit.stage, unit.label


def history(task):
    return [(t.event, t.to_stage, t.round, t.language) for t in task.units.get().transitions.all()]


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


# --- taking back


def test_an_answer_can_be_taken_back_and_given_anew(make_task, person):
    task, ann = make_task([DISPUTED]), person("ann", "de")
    first = answer(ann, task)
    lease = undo(ann, task)
    assert (lease, lease.unit) == (open_lease(ann, task), first.unit)
    assert where(task) == (stages.QUEUED, "")
    judge(ann, lease.pk, ENGLISH)
    assert where(task) == (stages.LABELLED, "en")
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


def test_an_answer_can_be_taken_back_for_as_many_minutes_as_the_task_says(make_task, person):
    task, ann = make_task([DISPUTED], undo_minutes=3), person("ann", "de")
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
