"""Qualification in the admin: versions of guidelines, corrected gold answers, and letting people in."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotate.controls import honeypots
from annotate.controls.gold_answers import correct
from annotate.controls.qualification import grant, next_question
from annotate.core.refusals import InvalidAnswer
from annotate.kinds import Answer
from annotate.models import GoldAnswer, Qualification
from annotate.quality.guideline_versions import new_version
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate.acts import answer, begin, state, words

GOLD = {"practice": ["1"], "test": ["1", "0"] * 2}
ADMIN = "/admin/annotate"


@pytest.fixture
def task(make_records_task):
    return make_records_task(gold=GOLD, test_items=2, pass_mark=0.5, tries=2)


def pass_test(annotator, task):
    for kind in ("practice", "test"):
        trial = begin(annotator, task, "en", kind)
        while question := next_question(trial):
            answer(annotator, question.pk, question.gold_answer.label)


# --- guidelines


def test_which_qualifications_hold_is_shown_by_as_many_queries_however_many_there_are(desk, task, person, manager):
    def counts():
        with CaptureQueriesContext(connection) as queries:
            shown = desk.get(f"{ADMIN}/qualification/").text
        return len(queries), shown.count("icon-yes"), shown.count("icon-no")

    grant(person("ann", "en"), task, "en", by=manager)
    desk.get("/docs/")  # the manager's page settings are read once
    first = counts()
    assert first[1:] == (1, 0)
    for number in range(4):
        new_version(task, "en", f"Version {number}", major=number == 3)
        grant(person(f"p{number}", "en"), task, "en", by=manager)
    assert counts() == (first[0], 1, 4)


# --- gold answers


@pytest.fixture
def honeypot(make_records_task, ann, person):
    """A hidden gold record with answer 1, which Ann answered 1 and Bea 0."""
    task = make_records_task(count=4, name="hidden", gold={"queue": ["1"]}, gold_share=0.5)
    for annotator, label in ((ann, "1"), (person("bea", "en"), "0")):
        for _ in range(3):
            judge(annotator, take(annotator, task).pk, Answer(label))
    assert honeypots.answers(task).count() == 2
    return task.gold_answers.get()


def accuracies(task):
    return {annotator: row["right"] for annotator, row in honeypots.by_annotator(task).items()}


def test_a_correction_changes_what_counts_in_the_queue(honeypot, ann):
    task = honeypot.task
    before = accuracies(task)
    assert correct(honeypot, "0", "Looked at again.") == (1, 1)
    after = accuracies(task)
    assert (before[ann.pk], after[ann.pk]) == (1, 0)
    assert {right for person, right in after.items() if person != ann.pk} == {1}
    assert task.units.get(honeypot=True).known_answer == "0"
    honeypot.refresh_from_db()
    assert (honeypot.label, honeypot.explanation) == ("0", "Looked at again.")
    assert correct(honeypot, "0", "") == (0, 0)


def test_a_correction_leaves_tests_that_are_over_and_is_refused_without_answer_or_explanation(task, ann, desk):
    pass_test(ann, task)
    trial = ann.trials.get(kind="test")
    for question in trial.answers.all():
        gold = question.gold_answer
        assert correct(gold, "0" if gold.label == "1" else "1", "") == (0, 1)
    trial.refresh_from_db()
    assert (trial.right, trial.passed) == (2, True)
    practice = task.gold_answers.get(purpose="practice")
    with pytest.raises(InvalidAnswer, match="is not a valid answer"):
        correct(practice, "2", "Because.")
    with pytest.raises(InvalidAnswer, match="Explain in one sentence why"):
        correct(practice, "0", " ")
    page = desk.post(f"{ADMIN}/goldanswer/{practice.pk}/change/", {"label": "0", "explanation": ""})
    assert "Explain in one sentence why" in words(page)


def test_gold_answers_are_listed_with_how_often_they_were_answered_rightly(desk, honeypot, task, ann):
    pass_test(ann, task)
    page = desk.get(f"{ADMIN}/goldanswer/").text
    rows = re.findall(r'field-purpose">(\w+)</td>.*?field-right">([^<]*)</td>', page)
    assert sorted(rows) == [
        *(("practice", "no answers yet"), ("queue", "1 of 2 (50%)")),
        *(("test", "1 of 1 (100%)"),) * 2,
        *(("test", "no answers yet"),) * 2,
    ]


def test_a_label_is_corrected_at_the_desk_which_says_what_follows(desk, honeypot):
    path = f"{ADMIN}/goldanswer/{honeypot.pk}/change/"
    page = desk.get(path).text
    assert "accuracies change" in words(desk.get(path))
    assert honeypot.item.fields["passage"] in page
    assert re.findall(r'<option value="(\w)"[^>]*>([^<]*)</option>', page) == [("1", "Yes"), ("0", "No")]
    after = desk.post(path, {"label": "0", "explanation": "Looked at again."}, follow=True)
    assert "1 of the existing answers are now right and 1 are wrong" in words(after)
    assert GoldAnswer.objects.get(pk=honeypot.pk).label == "0"
    assert "Select a valid choice" in words(desk.post(path, {"label": "5", "explanation": ""}))
    assert desk.get(f"{ADMIN}/goldanswer/add/").status_code == 403
    assert desk.post(f"{ADMIN}/goldanswer/{honeypot.pk}/delete/", {"post": "yes"}).status_code == 403


# --- tests and qualifications


def test_qualifications_can_be_read_and_a_manager_lets_somebody_in(desk, manager, task, ann, person):
    pass_test(ann, task)
    assert ">test</td>" in desk.get(f"{ADMIN}/qualification/").text
    assert desk.get(f"{ADMIN}/qualification/{Qualification.objects.get().pk}/change/").status_code == 200
    bea = person("bea", "en")
    sent = {"annotator": bea.pk, "task": task.pk, "language": "en"}
    assert "exempted by manager" in words(desk.post(f"{ADMIN}/qualification/add/", sent, follow=True))
    assert Qualification.objects.get(annotator=bea).granted_by == manager
    assert state(bea, task, "en").step == "passed"
    refused = desk.post(f"{ADMIN}/qualification/add/", sent | {"language": "fr"})
    assert "This task has no records in French." in words(refused)
