"""Practice and the test: what they open, what they ask, and what they tell and when."""

import pytest
from knox.models import AuthToken

from annotate.controls import qualification
from annotate.controls.qualification import missed, next_question
from annotate.core.refusals import (
    AlreadyAnswered,
    InvalidAnswer,
    NotFound,
    NotQualified,
    WrongStage,
)
from annotate.models import Qualification, Trial, TrialAnswer
from annotate.quality.guideline_versions import current
from annotate.work.queue import take
from tests.annotate.acts import answer, begin, state
from tests.annotate.qualifying.trials import OTHER, POOL, practise, take_test

pytestmark = pytest.mark.both_databases


def test_who_passes_may_work_and_nobody_before(make_tested, ann):
    task = make_tested()
    assert (state(ann, task, "en").step, take(ann, task)) == ("read", None)
    practised = practise(ann, task, wrong=2)
    assert (practised.right, practised.passed, practised.answers.count()) == (0, True, 2)
    assert (state(ann, task, "en").step, take(ann, task)) == ("test", None)
    test = take_test(ann, task, wrong=1)
    assert (test.right, test.passed, test.number) == (3, True, 1)
    assert state(ann, task, "en").step == "passed"
    assert Qualification.objects.get().trial == test
    assert take(ann, task) is not None


def test_who_fails_may_try_again_as_often_as_the_task_says(make_tested, ann):
    task = make_tested()
    practise(ann, task)
    first = take_test(ann, task, wrong=2)
    assert (first.right, first.passed) == (2, False)
    found = state(ann, task, "en")
    assert (found.step, found.tries_left, found.last) == ("test", 1, first)
    assert take_test(ann, task, wrong=4).number == 2
    found = state(ann, task, "en")
    assert (found.step, found.tries_left) == ("failed", 0)
    with pytest.raises(NotQualified, match="used all your tries of the test in English"):
        begin(ann, task, "en", Trial.TEST)
    assert take(ann, task) is None
    assert Trial.objects.filter(kind="test").count() == 2


def test_practising_again_gives_nobody_another_try(make_tested, ann, client):
    task = make_tested(tries=1)
    practise(ann, task)
    take_test(ann, task, wrong=4)
    begin(ann, task, "en", Trial.PRACTICE)
    with pytest.raises(NotQualified, match="used all your tries"):
        begin(ann, task, "en", Trial.TEST)
    token = AuthToken.objects.create(ann.user)[1]
    posted = client.post(
        f"/api/v1/tasks/{task.name}/qualification/en/test/", headers={"Authorization": f"Token {token}"}
    )
    assert (posted.status_code, posted.json()["code"]) == (403, "not_qualified")
    assert Trial.objects.filter(kind="test").count() == 1


def test_the_last_try_can_be_gone_on_with_though_it_is_the_last(make_tested, ann):
    task = make_tested(tries=1)
    practise(ann, task)
    first = begin(ann, task, "en", Trial.TEST)
    begin(ann, task, "en", Trial.PRACTICE)
    assert begin(ann, task, "en", Trial.TEST) == first


def test_who_passes_the_second_time_may_work(make_tested, ann):
    task = make_tested()
    practise(ann, task)
    take_test(ann, task, wrong=2)
    assert take_test(ann, task).passed
    assert take(ann, task) is not None


def test_the_test_comes_after_the_practice(make_tested, ann):
    task = make_tested()
    for _ in range(2):
        with pytest.raises(WrongStage, match="practice questions before"):
            begin(ann, task, "en", Trial.TEST)
        begin(ann, task, "en", Trial.PRACTICE)
    assert state(ann, task, "en").step == "practice"


def test_where_there_is_nothing_to_practise_reading_is_enough(make_tested, ann):
    task = make_tested(gold={"test": POOL})
    trial = begin(ann, task, "en", Trial.PRACTICE)
    assert (trial.passed, trial.right, trial.guidelines) == (True, 0, current(task))
    assert state(ann, task, "en").step == "test"


def test_one_may_practise_again_before_another_try(make_tested, ann):
    task = make_tested()
    practise(ann, task)
    take_test(ann, task, wrong=4)
    again = begin(ann, task, "en", Trial.PRACTICE)
    assert again.number == 2
    assert state(ann, task, "en").step == "practice"
    test = begin(ann, task, "en", Trial.TEST)
    assert state(ann, task, "en").trial == test


def test_each_person_and_each_try_has_a_draw_of_its_own(make_tested, person):
    task = make_tested(tries=3, gold={"test": ["1", "0"] * 10})
    people = [person(f"person{number}", "en") for number in range(4)]
    drawn = {}
    for each in people:
        practise(each, task)
        for number in range(3):
            test = take_test(each, task, wrong=4)
            drawn[each, number] = [question.gold_answer_id for question in test.answers.all()]
    assert {len(set(questions)) for questions in drawn.values()} == {4}
    assert len({frozenset(questions) for questions in drawn.values()}) == 12
    for each in people:
        assert len({question for number in range(3) for question in drawn[each, number]}) == 12


def test_a_later_try_asks_first_what_was_not_asked_before(make_tested, ann):
    task = make_tested(tries=3)
    practise(ann, task)
    first, second, third = (
        {each.gold_answer_id for each in take_test(ann, task, wrong=4).answers.all()} for _ in "123"
    )
    assert not first & second
    assert third <= first | second


def test_a_draw_can_be_made_again_from_the_seed(make_tested, ann):
    # The lot has the trial's key in it. Of ten questions, one order in three million is that of the file.
    task = make_tested(gold={"practice": ["1", "0"], "test": POOL * 4}, test_items=10)
    practise(ann, task)
    trial = begin(ann, task, "en", Trial.TEST)
    drawn = [each.gold_answer for each in trial.answers.select_related("gold_answer")]
    trial.answers.all().delete()
    assert qualification._draw(trial, task.gold_answers.filter(purpose="test")) == drawn
    assert {gold.purpose for gold in drawn} == {"test"}
    assert drawn != sorted(drawn, key=lambda gold: gold.pk)


def test_practice_comes_in_the_order_of_the_file(make_tested, ann):
    task = make_tested(gold={"practice": ["1", "1", "0", "1", "0"], "test": POOL})
    trial = begin(ann, task, "en", Trial.PRACTICE)
    golds = [each.gold_answer_id for each in trial.answers.order_by("position")]
    assert golds == sorted(golds)
    assert len(golds) == 5


def test_questions_are_answered_one_after_another(make_tested, ann):
    task = make_tested()
    trial = begin(ann, task, "en", Trial.PRACTICE)
    first, second = trial.answers.all()
    with pytest.raises(NotFound, match="have not been asked this question yet"):
        answer(ann, second.pk, "1")
    answer(ann, first.pk, "1")
    assert next_question(trial) == second


def test_an_answer_sent_twice_counts_once_and_another_one_is_refused(make_tested, ann):
    task = make_tested()
    question = next_question(begin(ann, task, "en", Trial.PRACTICE))
    first = answer(ann, question.pk, "1")
    assert answer(ann, question.pk, "1").answered_at == first.answered_at
    with pytest.raises(AlreadyAnswered, match="already answered Yes here"):
        answer(ann, question.pk, "0")
    assert TrialAnswer.objects.get(pk=question.pk).label == "1"


def test_the_last_answer_sent_twice_gives_the_same_result(make_tested, ann):
    task = make_tested()
    practise(ann, task)
    test = take_test(ann, task)
    last = test.answers.last()
    again = answer(ann, last.pk, last.label)
    assert again.trial == test
    assert Qualification.objects.count() == 1


@pytest.mark.parametrize("label", ["2", "", "Good", "und", "a\x00b"])
def test_only_labels_of_the_task_are_answers(make_tested, ann, label):
    question = next_question(begin(ann, make_tested(), "en", Trial.PRACTICE))
    with pytest.raises(InvalidAnswer):
        answer(ann, question.pk, label)
    question.refresh_from_db()
    assert question.answered_at is None


def test_nobody_answers_for_somebody_else(make_tested, ann, person):
    question = next_question(begin(ann, make_tested(), "en", Trial.PRACTICE))
    with pytest.raises(NotFound):
        answer(person("bea", "en"), question.pk, "1")


def test_what_was_missed_is_told_after_the_end_only(make_tested, ann):
    task = make_tested()
    practise(ann, task)
    test = begin(ann, task, "en", Trial.TEST)
    question = next_question(test)
    answer(ann, question.pk, OTHER[question.gold_answer.label])
    assert not missed(test)
    test = take_test(ann, task)
    assert [each.pk for each in missed(test)] == [question.pk]


def test_the_pass_mark_is_rounded_up(make_tested, ann):
    task = make_tested(test_items=3, pass_mark=0.7)
    practise(ann, task)
    test = take_test(ann, task, wrong=1)
    assert (qualification.needed(test), test.right, test.passed) == (3, 2, False)
