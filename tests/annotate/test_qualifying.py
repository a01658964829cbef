"""Guidelines, practice and the test: what they open, what they tell and when, and what happens in two tabs."""

import json
from itertools import count

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from knox.models import AuthToken

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
from annotate.quality import qualification
from annotate.quality.guidelines import current, new_version
from annotate.quality.qualification import grant, missed, next_question
from annotate.work.pausing import pause
from annotate.work.queue import take
from tests.annotate.acts import answer, begin, state, states
from tests.annotate.conftest import DISPUTED
from tests.annotate.test_races import at_once

POOL = ["1", "0"] * 4
GOLD = {"practice": ["1", "0"], "test": POOL}
OTHER = {"1": "0", "0": "1"}


@pytest.fixture
def make_tested(make_records_task):
    """A task of which the test has four questions of eight, of which three are to be right, and may be taken twice."""

    def make(*, gold=GOLD, **knobs):
        return make_records_task(gold=gold, **({"test_items": 4, "pass_mark": 0.75, "tries": 2} | knobs))

    return make


@pytest.fixture
def ann(person):
    return person("ann", "en")


def go_through(annotator, task, kind, *, wrong=0, language="en"):
    """Practise, or take a test, with so many wrong answers at its beginning. Returns the trial."""
    trial = begin(annotator, task, language, kind)
    for number in count():
        question = next_question(trial)
        if question is None:
            trial.refresh_from_db()
            return trial
        right = question.gold_answer.label
        answer(annotator, question.pk, OTHER[right] if number < wrong else right)


def practise(annotator, task, **fields):
    return go_through(annotator, task, Trial.PRACTICE, **fields)


def take_test(annotator, task, **fields):
    return go_through(annotator, task, Trial.TEST, **fields)


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
    task = make_tested()
    practise(ann, task)
    trial = begin(ann, task, "en", Trial.TEST)
    drawn = [each.gold_answer for each in trial.answers.select_related("gold_answer")]
    trial.answers.all().delete()
    assert qualification._draw(trial) == drawn
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


# --- whom it is for


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


# --- versions of the guidelines


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


# --- two tabs


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
@pytest.mark.parametrize("round", range(3))
def test_two_tabs_begin_one_test(make_tested, ann, round):
    task = make_tested()
    practise(ann, task)
    trials = at_once(*[lambda: begin(ann, task, "en", Trial.TEST)] * 4)
    assert len(set(trials)) == 1
    assert trials[0].answers.count() == 4
    assert state(ann, task, "en").tries_left == 1


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
@pytest.mark.parametrize("round", range(3))
def test_of_two_tabs_that_answer_otherwise_one_is_refused(make_tested, ann, round):
    task = make_tested()
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


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
@pytest.mark.parametrize("round", range(3))
def test_two_tabs_that_finish_a_test_at_once_pass_it_once(make_tested, ann, manager, round):
    task = make_tested()
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


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_two_managers_who_write_at_once_get_a_version_each(make_tested):
    task = make_tested()
    made = at_once(*[lambda: new_version(task, "en", "Anew.", major=False)] * 4)
    assert sorted(each.version for each in made) == ["1.1", "1.2", "1.3", "1.4"]


# --- the API


class Program:
    def __init__(self, client, annotator):
        self.client = client
        self.headers = {"Authorization": f"Token {AuthToken.objects.create(annotator.user)[1]}"}

    def get(self, path):
        return self.client.get(f"/api/v1/{path}", headers=self.headers)

    def post(self, path, **said):
        return self.client.post(f"/api/v1/{path}", said, content_type="application/json", headers=self.headers)

    def take(self, kind, label):
        """Practise, or take the test, with one label for every question. Returns the last reply."""
        while True:
            found = self.post(f"tasks/crowd/qualification/en/{kind}/").json()
            if found["question"] is None:
                return found
            said = self.post(f"qualification/answers/{found['question']['id']}/", label=label).json()
            if said["result"]:
                return said


@pytest.fixture
def program(client, ann):
    return Program(client, ann)


def test_a_program_qualifies(make_tested, program, ann):
    make_tested(gold={"practice": ["1", "0"], "test": ["1"] * 8})
    (found,) = program.get("tasks/crowd/qualification/").json()
    assert found == {"language": "en", "state": "read", "version": "1.0", "guidelines": "Read.", "tries_left": 2}
    assert program.post("tasks/crowd/qualification/en/test/").status_code == 409

    first = program.post("tasks/crowd/qualification/en/practice/").json()
    question = first["question"]
    assert (question["number"], question["of"], question["answers"], first["result"]) == (1, 2, ["1", "0"], None)
    assert list(question["fields"]) == ["question", "passage"]
    assert program.post("tasks/crowd/qualification/en/practice/").json() == first
    said = program.post(f"qualification/answers/{question['id']}/", label="0").json()
    assert said == {
        "accepted": True,
        "right": False,
        "label": "1",
        "explanation": "Because of 1.",
        "result": None,
    }
    assert program.take("practice", "1")["result"]["right"] == 0

    failed = program.take("test", "0")
    assert (failed["right"], failed["label"], failed["explanation"]) == (None, None, None)
    result = failed["result"]
    assert (result["passed"], result["right"], result["asked"], result["needed"]) == (False, 0, 4, 3)
    assert result["missed"][0] == {
        "fields": result["missed"][0]["fields"],
        "said": "0",
        "label": "1",
        "explanation": "Because of 1.",
    }
    assert program.post("tasks/crowd/next/").json()["lease"] is None
    passed = program.take("test", "1")["result"]
    assert (passed["passed"], passed["missed"]) == (True, [])
    assert program.post("tasks/crowd/qualification/en/test/").json() == {"question": None, "result": passed}
    assert program.get("tasks/crowd/qualification/").json()[0]["state"] == "passed"
    lease = program.post("tasks/crowd/next/").json()["lease"]
    assert (list(lease["fields"]), lease["language"]) == (["question", "passage"], "en")


def test_a_program_is_told_when_it_has_no_tries_left(make_tested, program):
    make_tested(gold={"test": ["1"] * 8}, tries=1)
    program.take("practice", "1")
    program.take("test", "0")
    refused = program.post("tasks/crowd/qualification/en/test/")
    assert (refused.status_code, refused.json()["code"]) == (403, "not_qualified")
    assert program.get("tasks/crowd/qualification/").json()[0]["tries_left"] == 0


def test_a_program_that_sends_an_answer_again_after_the_end_gets_the_result_again(make_tested, program):
    make_tested(gold={"test": ["1"] * 8})
    program.take("practice", "1")
    last = program.take("test", "1")
    question = TrialAnswer.objects.last().pk
    assert program.post(f"qualification/answers/{question}/", label="1").json() == last
    refused = program.post(f"qualification/answers/{question}/", label="0")
    assert (refused.status_code, refused.json()["code"]) == (409, "already_answered")


def test_a_program_is_told_that_the_guidelines_have_changed(make_tested, program):
    task = make_tested()
    program.take("practice", "1")
    question = program.post("tasks/crowd/qualification/en/test/").json()["question"]
    new_version(task, "en", "Otherwise.", major=True)
    refused = program.post(f"qualification/answers/{question['id']}/", label="1")
    assert (refused.status_code, refused.json()["code"]) == (409, "outdated")


def test_no_reply_during_a_test_tells_what_is_right(make_tested, program, ann):
    """Two tests that differ in what is right alone, and answers that are the same, give the same replies."""
    told = []
    for label in ("1", "0"):
        task = make_tested(name=f"crowd{label}", gold={"practice": ["1"], "test": [label] * 8})
        practise(ann, task)
        replies = [program.get(f"tasks/{task.name}/qualification/").json()]
        for _ in range(3):
            found = program.post(f"tasks/{task.name}/qualification/en/test/").json()
            question = found["question"].pop("id")
            del found["question"]["fields"]
            replies += [found, program.post(f"qualification/answers/{question}/", label="1").json()]
        told.append(json.dumps(replies))
    assert told[0] == told[1]
    assert "Because" not in told[0]


def test_the_home_page_asks_the_database_no_more_for_more_trials(make_tested, ann):
    task = make_tested(tries=9, gold={"test": ["1", "0"] * 20})
    practise(ann, task)
    counts = []
    for _ in range(3):
        take_test(ann, task, wrong=4) if counts else None
        with CaptureQueriesContext(connection) as queries:
            states(ann, task)
        counts.append(len(queries))
    assert len(set(counts)) == 1
