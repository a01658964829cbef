"""Practice and the test: who takes them, what passing allows, the questions, and the feedback."""

import pytest

from annotate.controls import qualification
from annotate.controls.qualification import grant, missed, next_question
from annotate.core.refusals import (
    AlreadyAnswered,
    InvalidAnswer,
    NotAllowed,
    NotFound,
    NotQualified,
    Outdated,
    Paused,
    WrongStage,
)
from annotate.models import Qualification, Task, Trial, TrialAnswer
from annotate.quality.guideline_versions import current, new_version
from annotate.work.interventions import pause
from annotate.work.queue import take
from tests.annotate.acts import answer, begin, state, states
from tests.annotate.conftest import DISPUTED
from tests.annotate.qualification.trials import GOLD, OTHER, POOL, practise, take_test
from tests.together import at_once


def test_who_passes_may_work_and_nobody_before_and_is_not_tested_again(task, ann):
    assert (state(ann, task, "en").step, take(ann, task)) == ("read", None)
    practised = practise(ann, task, wrong=2)
    assert (practised.right, practised.passed, practised.answers.count()) == (0, True, 2)
    assert (state(ann, task, "en").step, take(ann, task)) == ("test", None)
    test = take_test(ann, task, wrong=1)
    assert (test.right, test.passed, test.number) == (3, True, 1)
    assert state(ann, task, "en").step == "passed"
    assert Qualification.objects.get().trial == test
    assert take(ann, task) is not None
    for kind in (Trial.PRACTICE, Trial.TEST):
        with pytest.raises(WrongStage, match="You have passed the test in English"):
            begin(ann, task, "en", kind)


def test_who_fails_may_practise_and_try_again_as_often_as_the_task_says_and_no_more(task, ann):
    practise(ann, task)
    first = take_test(ann, task, wrong=2)
    assert (first.right, first.passed) == (2, False)
    status = state(ann, task, "en")
    assert (status.step, status.tries_left, status.last) == ("test", 1, first)
    assert begin(ann, task, "en", Trial.PRACTICE).number == 2
    assert state(ann, task, "en").step == "practice"
    last = begin(ann, task, "en", Trial.TEST)
    practise(ann, task)
    assert begin(ann, task, "en", Trial.TEST) == last == state(ann, task, "en").trial  # it can be gone on with
    assert take_test(ann, task, wrong=4) == last
    status = state(ann, task, "en")
    assert (status.step, status.tries_left) == ("failed", 0)
    begin(ann, task, "en", Trial.PRACTICE)
    with pytest.raises(NotQualified, match="used all your tries for the test in English"):
        begin(ann, task, "en", Trial.TEST)
    assert take(ann, task) is None
    assert Trial.objects.filter(kind="test").count() == 2


def test_the_test_comes_after_the_practice_or_after_reading_where_there_is_nothing_to_practise(make_tested, ann):
    task = make_tested()
    for _ in range(2):
        with pytest.raises(WrongStage, match="practice questions before"):
            begin(ann, task, "en", Trial.TEST)
        begin(ann, task, "en", Trial.PRACTICE)
    assert state(ann, task, "en").step == "practice"
    without = make_tested(gold={"test": POOL}, name="without")
    trial = begin(ann, without, "en", Trial.PRACTICE)
    assert (trial.passed, trial.right, trial.guidelines) == (True, 0, current(without))
    assert state(ann, without, "en").step == "test"


# --- what is asked


def test_each_person_and_each_try_has_a_draw_of_its_own_of_what_was_not_asked_before(make_tested, person):
    task = make_tested(tries=3)
    drawn = []
    for annotator in (person("ann", "en"), person("bea", "en")):
        practise(annotator, task)
        first, second, third = (
            [question.gold_answer_id for question in take_test(annotator, task, wrong=4).answers.all()] for _ in "123"
        )
        assert len({*first, *second}) == 8  # all of them
        assert {*third} <= {*first, *second}
        drawn += [first, second, third]
    assert {len(set(questions)) for questions in drawn} == {4}
    assert len({tuple(questions) for questions in drawn}) == 6


def test_a_draw_can_be_made_again_from_the_seed_and_practice_comes_in_the_order_of_the_file(make_tested, ann):
    # The random order depends on the trial's key. Ten questions are in the file's order once in three million.
    task = make_tested(gold={"practice": ["1", "1", "0", "1", "0"], "test": POOL * 4}, test_items=10)
    practice = begin(ann, task, "en", Trial.PRACTICE)
    golds = [question.gold_answer_id for question in practice.answers.order_by("position")]
    assert (golds, len(golds)) == (sorted(golds), 5)
    practise(ann, task)
    trial = begin(ann, task, "en", Trial.TEST)
    drawn = [question.gold_answer for question in trial.answers.select_related("gold_answer")]
    trial.answers.all().delete()
    assert qualification._draw(trial, task.gold_answers.filter(purpose="test")) == drawn
    assert {gold.purpose for gold in drawn} == {"test"}
    assert drawn != sorted(drawn, key=lambda gold: gold.pk)


def test_questions_are_answered_one_after_another_once_with_labels_of_the_task(task, ann, person):
    trial = begin(ann, task, "en", Trial.PRACTICE)
    question, second = trial.answers.all()
    for annotator, target, label, refusal, sentence in (
        (ann, second, "1", NotFound, "have not been asked this question yet"),
        (person("bea", "en"), question, "1", NotFound, None),
        *((ann, question, label, InvalidAnswer, None) for label in ("2", "", "Good", "und", "a\x00b")),
    ):
        with pytest.raises(refusal, match=sentence):
            answer(annotator, target.pk, label)
    assert not TrialAnswer.objects.exclude(answered_at=None).exists()
    first = answer(ann, question.pk, "1")
    assert answer(ann, question.pk, "1").answered_at == first.answered_at
    with pytest.raises(AlreadyAnswered, match="already answered Yes here"):
        answer(ann, question.pk, "0")
    assert TrialAnswer.objects.get(pk=question.pk).label == "1"
    assert next_question(trial) == second


def test_missed_questions_are_shown_only_after_the_end_and_resending_the_last_answer_changes_nothing(task, ann):
    practise(ann, task)
    test = begin(ann, task, "en", Trial.TEST)
    question = next_question(test)
    answer(ann, question.pk, OTHER[question.gold_answer.label])
    assert not missed(test)
    test = take_test(ann, task)
    assert [answer.pk for answer in missed(test)] == [question.pk]
    last = test.answers.last()
    assert answer(ann, last.pk, last.label).trial == test
    assert Qualification.objects.count() == 1


def test_the_pass_mark_is_rounded_up(make_tested, ann):
    task = make_tested(test_items=3, pass_mark=0.7)
    practise(ann, task)
    test = take_test(ann, task, wrong=1)
    assert (qualification.needed(test), test.right, test.passed) == (3, 2, False)


# --- whom it is for


def test_each_language_has_its_own_test(make_tested, person):
    task = make_tested(languages=("en", "de", "fr"))
    bea = person("bea", "de:5 en:4")
    assert [status.language for status in states(bea, task)] == ["de", "en"]
    practise(bea, task, language="de")
    assert take_test(bea, task, language="de").passed
    assert [(status.language, status.step) for status in states(bea, task)] == [("de", "passed"), ("en", "read")]
    assert take(bea, task).unit.language == "de"
    with pytest.raises(NotAllowed, match="not registered as a reader of French"):
        begin(bea, task, "fr", Trial.PRACTICE)
    with pytest.raises(NotFound, match="no records in Italian"):
        begin(bea, task, "it", Trial.PRACTICE)


def test_nobody_is_tested_where_none_is_needed_where_the_task_is_closed_or_who_is_paused(
    make_tested, make_records_task, make_task, ann, manager
):
    untested = make_records_task(gold=GOLD, name="untested")
    assert state(ann, untested, "en").step == "none_needed"
    assert states(ann, make_task([DISPUTED], name="posts")) == []
    with pytest.raises(WrongStage, match="has no test"):
        begin(ann, untested, "en", Trial.PRACTICE)
    with pytest.raises(InvalidAnswer, match="has no test"):
        grant(ann, untested, "en", by=manager)
    task = make_tested()
    with pytest.raises(NotFound, match="no records in German"):
        grant(ann, task, "de", by=manager)
    question = next_question(begin(ann, task, "en", Trial.PRACTICE))
    pause(ann, task, by=manager, reason="a question")
    with pytest.raises(Paused):
        answer(ann, question.pk, "1")
    with pytest.raises(Paused):
        begin(ann, task, "en", Trial.PRACTICE)
    Task.objects.update(is_open=False)
    task.refresh_from_db()
    with pytest.raises(WrongStage, match="closed"):
        begin(ann, task, "en", Trial.PRACTICE)


def test_a_manager_may_let_somebody_in_who_may_still_finish_the_test(task, ann, manager):
    practise(ann, task)
    test = begin(ann, task, "en", Trial.TEST)
    first = grant(ann, task, "en", by=manager)
    assert grant(ann, task, "en", by=manager) == first
    assert (first.trial, first.granted_by, first.major) == (None, manager, 1)
    assert state(ann, task, "en").step == "passed"
    assert take(ann, task) is not None
    while question := next_question(test):
        answer(ann, question.pk, question.gold_answer.label)
    assert Qualification.objects.get() == first


# --- versions of the guidelines


@pytest.mark.parametrize(("wrong", "step"), [(0, "passed"), (4, "failed")])
def test_a_major_version_asks_for_the_test_again_with_all_tries_and_a_minor_one_does_not(make_tested, ann, wrong, step):
    task = make_tested(tries=1)
    practise(ann, task)
    take_test(ann, task, wrong=wrong)
    assert new_version(task, "en", "Said better.", major=False).version == "1.1"
    assert state(ann, task, "en").step == step
    assert new_version(task, "en", "Said otherwise.", major=True).version == "2.0"
    status = state(ann, task, "en")
    assert (status.step, status.tries_left, status.earlier.version, status.interrupted) == ("read", 1, "1.0", False)
    assert take(ann, task) is None
    practise(ann, task)
    test = take_test(ann, task)
    assert (test.number, test.guidelines.version, test.passed) == (1, "2.0", True)
    assert take(ann, task) is not None
    assert [qualification.major for qualification in Qualification.objects.all()] == ([2] if wrong else [1, 2])


def test_a_test_goes_on_under_a_minor_version_and_counts_for_nothing_under_a_major_one(make_tested, ann):
    task = make_tested(tries=1)
    practise(ann, task)
    test = begin(ann, task, "en", Trial.TEST)
    new_version(task, "en", "Said better.", major=False)
    assert begin(ann, task, "en", Trial.TEST) == test
    answer(ann, next_question(test).pk, "1")
    new_version(task, "en", "Said otherwise.", major=True)
    with pytest.raises(Outdated, match="uses none of your tries"):
        answer(ann, next_question(test).pk, "1")
    status = state(ann, task, "en")
    assert (status.step, status.tries_left, status.interrupted) == ("read", 1, True)
    practise(ann, task)
    again = take_test(ann, task)
    assert (again.number, again.passed) == (1, True)
    test.refresh_from_db()
    assert test.passed is False
    with pytest.raises(Outdated):
        answer(ann, next_question(test).pk, "1")


def test_versions_are_added_and_never_changed_and_a_first_translation_asks_nobody_again(make_tested, person):
    task, bea = make_tested(languages=("en", "de")), person("bea", "de")
    practise(bea, task, language="de")
    take_test(bea, task, language="de")
    assert current(task, "de").version == "1.0"  # the English ones
    new_version(task, "de", "Lesen.", major=False)
    assert state(bea, task, "de").step == "passed"
    new_version(task, "en", "Two.", major=True)
    german = new_version(task, "de", "Zwei.", major=True)
    assert new_version(task, "de", "Zwei, besser.", major=False).version == "2.1"
    assert new_version(task, "de", "Drei.", major=True).version == "3.0"
    assert [(guideline.language, guideline.version) for guideline in task.guidelines.all()] == [
        *(("de", "3.0"), ("de", "2.1"), ("de", "2.0"), ("de", "1.0")),
        *(("en", "2.0"), ("en", "1.0")),
    ]
    german.refresh_from_db()
    assert german.text == "Zwei."
    later = make_tested(languages=("en", "de"), name="later")
    new_version(later, "en", "Two.", major=True)
    assert new_version(later, "de", "Zwei.", major=False).version == "2.0"  # as the English ones


def test_a_version_that_nobody_would_read_is_refused(task):
    with pytest.raises(NotFound):
        new_version(task, "it", "Leggere.", major=False)
    with pytest.raises(InvalidAnswer, match="empty"):
        new_version(task, "en", " \n", major=True)


# --- two tabs, and two managers, at once


def at_the_same_time(rounds):
    """Run a test this many times, on both databases, with transactions that are committed."""
    marks = pytest.mark.django_db(transaction=True), pytest.mark.both_databases
    numbers = [pytest.param(number, marks=marks, id=f"round {number}") for number in range(rounds)]
    return pytest.mark.parametrize("attempt", numbers)


@at_the_same_time(3)
def test_two_tabs_begin_one_test(task, ann, attempt):
    practise(ann, task)
    trials = at_once(*[lambda: begin(ann, task, "en", Trial.TEST)] * 4)
    assert len(set(trials)) == 1
    assert trials[0].answers.count() == 4
    assert state(ann, task, "en").tries_left == 1


@at_the_same_time(3)
def test_if_two_tabs_answer_differently_one_is_refused(task, ann, attempt):
    practise(ann, task)
    test = begin(ann, task, "en", Trial.TEST)
    while question := next_question(test):
        results = at_once(
            lambda pk=question.pk: answer(ann, pk, "1"),
            lambda pk=question.pk: answer(ann, pk, "0"),
            lambda pk=question.pk: answer(ann, pk, "1"),
        )
        label = TrialAnswer.objects.get(pk=question.pk).label
        refused = {"1": [AlreadyAnswered], "0": [AlreadyAnswered] * 2}[label]
        assert [type(result) for result in results if isinstance(result, Exception)] == refused
        assert {result.label for result in results if isinstance(result, TrialAnswer)} == {label}
    test.refresh_from_db()
    assert test.right == sum(answer.label == answer.gold_answer.label for answer in test.answers.all())


@at_the_same_time(3)
def test_two_tabs_that_finish_a_test_at_once_pass_it_once(task, ann, manager, attempt):
    practise(ann, task)
    test = begin(ann, task, "en", Trial.TEST)
    for _ in range(3):
        question = next_question(test)
        answer(ann, question.pk, question.gold_answer.label)
    last = next_question(test)
    *results, granted = at_once(
        *[lambda: answer(ann, last.pk, last.gold_answer.label)] * 3, lambda: grant(ann, task, "en", by=manager)
    )
    assert {type(result) for result in results} == {TrialAnswer}
    assert Qualification.objects.get() == granted
    test.refresh_from_db()
    assert (test.right, test.passed) == (4, True)


@at_the_same_time(1)
def test_two_managers_who_write_at_once_get_a_version_each(task, attempt):
    guidelines = at_once(*[lambda: new_version(task, "en", "Anew.", major=False)] * 4)
    assert sorted(guideline.version for guideline in guidelines) == ["1.1", "1.2", "1.3", "1.4"]
