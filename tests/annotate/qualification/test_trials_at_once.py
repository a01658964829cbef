"""Two tabs, and two managers, at once."""

import pytest

from annotate.controls.qualification import grant, next_question
from annotate.core.refusals import AlreadyAnswered
from annotate.models import Qualification, Trial, TrialAnswer
from annotate.quality.guideline_versions import new_version
from tests.annotate.acts import answer, begin, state
from tests.annotate.qualification.trials import practise
from tests.together import at_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


@pytest.mark.parametrize("round", range(3))
def test_two_tabs_begin_one_test(task, ann, round):
    practise(ann, task)
    trials = at_once(*[lambda: begin(ann, task, "en", Trial.TEST)] * 4)
    assert len(set(trials)) == 1
    assert trials[0].answers.count() == 4
    assert state(ann, task, "en").tries_left == 1


@pytest.mark.parametrize("round", range(3))
def test_of_two_tabs_that_answer_otherwise_one_is_refused(task, ann, round):
    practise(ann, task)
    test = begin(ann, task, "en", Trial.TEST)
    while question := next_question(test):
        said = at_once(
            lambda pk=question.pk: answer(ann, pk, "1"),
            lambda pk=question.pk: answer(ann, pk, "0"),
            lambda pk=question.pk: answer(ann, pk, "1"),
        )
        kept = TrialAnswer.objects.get(pk=question.pk).label
        refused = {"1": [AlreadyAnswered], "0": [AlreadyAnswered] * 2}[kept]
        assert [type(each) for each in said if isinstance(each, Exception)] == refused
        assert {each.label for each in said if isinstance(each, TrialAnswer)} == {kept}
    test.refresh_from_db()
    assert test.right == sum(each.label == each.gold_answer.label for each in test.answers.all())


@pytest.mark.parametrize("round", range(3))
def test_two_tabs_that_finish_a_test_at_once_pass_it_once(task, ann, manager, round):
    practise(ann, task)
    test = begin(ann, task, "en", Trial.TEST)
    for _ in range(3):
        question = next_question(test)
        answer(ann, question.pk, question.gold_answer.label)
    last = next_question(test)
    *said, granted = at_once(
        *[lambda: answer(ann, last.pk, last.gold_answer.label)] * 3, lambda: grant(ann, task, "en", by=manager)
    )
    assert {type(each) for each in said} == {TrialAnswer}
    assert Qualification.objects.get() == granted
    test.refresh_from_db()
    assert (test.right, test.passed) == (4, True)


def test_two_managers_who_write_at_once_get_a_version_each(task):
    made = at_once(*[lambda: new_version(task, "en", "Anew.", major=False)] * 4)
    assert sorted(each.version for each in made) == ["1.1", "1.2", "1.3", "1.4"]
