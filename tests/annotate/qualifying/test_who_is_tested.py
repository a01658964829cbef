"""Whom a test is for, and who may work without it."""

import pytest

from annotate.controls.qualification import grant, next_question
from annotate.core.refusals import (
    InvalidAnswer,
    NotAllowed,
    NotFound,
    Paused,
    WrongStage,
)
from annotate.models import Qualification, Task, Trial
from annotate.work.interventions import pause
from annotate.work.queue import take
from tests.annotate.acts import answer, begin, state, states
from tests.annotate.conftest import DISPUTED
from tests.annotate.qualifying.trials import GOLD, practise, take_test

pytestmark = pytest.mark.both_databases


def test_each_language_has_its_own_test(make_tested, person):
    task = make_tested(languages=("en", "de", "fr"))
    bea = person("bea", "de:5 en:4")
    assert [found.language for found in states(bea, task)] == ["de", "en"]
    practise(bea, task, language="de")
    assert take_test(bea, task, language="de").passed
    assert [(found.language, found.step) for found in states(bea, task)] == [("de", "passed"), ("en", "read")]
    assert take(bea, task).unit.language == "de"
    with pytest.raises(NotAllowed, match="not down as a reader of French"):
        begin(bea, task, "fr", Trial.PRACTICE)
    with pytest.raises(NotFound, match="no records in Italian"):
        begin(bea, task, "it", Trial.PRACTICE)


def test_where_nobody_is_tested_nobody_need_pass(make_records_task, ann):
    task = make_records_task(gold=GOLD)
    assert state(ann, task, "en").step == "none_needed"
    with pytest.raises(WrongStage, match="asks for no test"):
        begin(ann, task, "en", Trial.PRACTICE)


def test_posts_have_no_qualification(make_task, person):
    assert states(person("bea", "de"), make_task([DISPUTED])) == []


def test_who_has_passed_is_not_tested_again(make_tested, ann):
    task = make_tested()
    practise(ann, task)
    take_test(ann, task)
    for kind in (Trial.PRACTICE, Trial.TEST):
        with pytest.raises(WrongStage, match="You have passed the test in English"):
            begin(ann, task, "en", kind)


def test_a_closed_task_tests_nobody(make_tested, ann):
    task = make_tested()
    Task.objects.update(is_open=False)
    task.refresh_from_db()
    with pytest.raises(WrongStage, match="closed"):
        begin(ann, task, "en", Trial.PRACTICE)


def test_who_is_paused_takes_no_test(make_tested, ann, manager):
    task = make_tested()
    question = next_question(begin(ann, task, "en", Trial.PRACTICE))
    pause(ann, task, by=manager, reason="a question")
    with pytest.raises(Paused):
        answer(ann, question.pk, "1")
    with pytest.raises(Paused):
        begin(ann, task, "en", Trial.PRACTICE)


def test_a_manager_may_let_somebody_in_without_the_test(make_tested, ann, manager):
    task = make_tested(tries=1)
    practise(ann, task)
    take_test(ann, task, wrong=4)
    first = grant(ann, task, "en", by=manager)
    assert grant(ann, task, "en", by=manager) == first
    assert (first.trial, first.granted_by, first.major) == (None, manager, 1)
    assert state(ann, task, "en").step == "passed"
    assert take(ann, task) is not None


def test_what_cannot_be_granted(make_tested, make_records_task, ann, manager):
    with pytest.raises(NotFound, match="no records in German"):
        grant(ann, make_tested(), "de", by=manager)
    with pytest.raises(InvalidAnswer, match="asks for no test"):
        grant(ann, make_records_task(name="untested"), "en", by=manager)


def test_who_was_let_in_in_the_middle_of_a_test_may_finish_it(make_tested, ann, manager):
    task = make_tested()
    practise(ann, task)
    test = begin(ann, task, "en", Trial.TEST)
    grant(ann, task, "en", by=manager)
    while question := next_question(test):
        answer(ann, question.pk, question.gold_answer.label)
    assert Qualification.objects.get().granted_by == manager
