"""What a new version of the guidelines asks of whom."""

import pytest

from annotate.controls.qualification import next_question
from annotate.core.refusals import (
    InvalidAnswer,
    NotFound,
    Outdated,
)
from annotate.models import Qualification, Trial
from annotate.quality.guideline_versions import current, new_version
from annotate.work.queue import take
from tests.annotate.acts import answer, begin, state
from tests.annotate.qualifying.trials import practise, take_test

pytestmark = pytest.mark.both_databases


def test_a_major_version_asks_for_the_test_again_and_a_minor_one_does_not(make_tested, ann):
    task = make_tested(tries=1)
    practise(ann, task)
    take_test(ann, task)
    assert new_version(task, "en", "Said better.", major=False).version == "1.1"
    assert state(ann, task, "en").step == "passed"
    assert new_version(task, "en", "Said otherwise.", major=True).version == "2.0"
    found = state(ann, task, "en")
    assert (found.step, found.tries_left, found.earlier.version, found.interrupted) == ("read", 1, "1.0", False)
    assert take(ann, task) is None
    practise(ann, task)
    test = take_test(ann, task)
    assert (test.number, test.guidelines.version, test.passed) == (1, "2.0", True)
    assert take(ann, task) is not None
    assert [each.major for each in Qualification.objects.all()] == [1, 2]


def test_who_had_no_tries_left_has_them_again_under_a_major_version(make_tested, ann):
    task = make_tested(tries=1)
    practise(ann, task)
    take_test(ann, task, wrong=4)
    new_version(task, "en", "Said otherwise.", major=True)
    assert state(ann, task, "en").tries_left == 1
    practise(ann, task)
    assert take_test(ann, task).passed


def test_a_test_that_runs_when_a_major_version_comes_counts_for_nothing(make_tested, ann):
    task = make_tested(tries=1)
    practise(ann, task)
    test = begin(ann, task, "en", Trial.TEST)
    answer(ann, next_question(test).pk, "1")
    new_version(task, "en", "Said otherwise.", major=True)
    with pytest.raises(Outdated, match="uses up none of your tries"):
        answer(ann, next_question(test).pk, "1")
    found = state(ann, task, "en")
    assert (found.step, found.tries_left, found.interrupted) == ("read", 1, True)
    practise(ann, task)
    again = take_test(ann, task)
    assert (again.number, again.passed) == (1, True)
    test.refresh_from_db()
    assert test.passed is False
    with pytest.raises(Outdated):
        answer(ann, next_question(test).pk, "1")


def test_a_test_goes_on_under_a_minor_version(make_tested, ann):
    task = make_tested()
    practise(ann, task)
    test = begin(ann, task, "en", Trial.TEST)
    new_version(task, "en", "Said better.", major=False)
    assert begin(ann, task, "en", Trial.TEST) == test
    assert take_test(ann, task).passed


def test_versions_are_added_and_never_changed(make_tested):
    task = make_tested(languages=("en", "de"))
    assert current(task, "de").version == "1.0"  # the English ones
    new_version(task, "en", "Two.", major=True)
    german = new_version(task, "de", "Zwei.", major=False)
    assert german.version == "2.0"
    assert new_version(task, "de", "Zwei, besser.", major=False).version == "2.1"
    assert new_version(task, "de", "Drei.", major=True).version == "3.0"
    assert [(each.language, each.version) for each in task.guidelines.all()] == [
        *(("de", "3.0"), ("de", "2.1"), ("de", "2.0")),
        *(("en", "2.0"), ("en", "1.0")),
    ]
    german.refresh_from_db()
    assert german.text == "Zwei."


def test_the_first_translation_asks_nobody_for_the_test_again(make_tested, person):
    task, bea = make_tested(languages=("en", "de")), person("bea", "de")
    practise(bea, task, language="de")
    take_test(bea, task, language="de")
    new_version(task, "de", "Lesen.", major=False)
    assert state(bea, task, "de").step == "passed"


def test_a_version_that_nobody_would_read_is_refused(make_tested):
    with pytest.raises(NotFound):
        new_version(make_tested(), "it", "Leggere.", major=False)
    with pytest.raises(InvalidAnswer, match="empty"):
        new_version(make_tested(name="other"), "en", " \n", major=True)
