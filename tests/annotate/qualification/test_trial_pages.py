"""Guidelines, practice and the test on pages and through the API, and what they never reveal."""

import json
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotate.controls.qualification import grant, next_question
from annotate.models import TrialAnswer
from annotate.quality.guideline_versions import new_version
from tests.annotate.acts import begin, state, states, words
from tests.annotate.programs import Program
from tests.annotate.qualification.trials import HTMX, PATH, go_through, practise, practised, says, take_test


def test_the_guidelines_come_in_each_of_their_languages_and_earlier_versions_for_managers_alone(
    make_tested, as_ann, client, manager
):
    task = make_tested(languages=("en", "fr"))
    for text in ("Lisez d’abord.", "Lisez tout d’abord."):
        new_version(task, "fr", text, major=False)
    page = as_ann.get("/tasks/crowd/guidelines/?language=fr").text
    for words_of_page, is_there in (("Lisez tout d’abord.", True), ("Version 1.1", True), ("version=1.0", False)):
        assert (words_of_page in page) == is_there
    english = as_ann.get("/tasks/crowd/guidelines/").text
    assert re.findall(r'<a href="\?language=(\w+)" (aria-current="page")?', english) == [
        ("en", 'aria-current="page"'),
        ("fr", ""),
    ]
    for query in ("?language=fr&version=1.0", "?language=xx&version=1.0", "?version=a%00b"):
        assert as_ann.get(f"/tasks/crowd/guidelines/{query}").status_code == 404
    client.force_login(manager)
    page = client.get("/tasks/crowd/guidelines/?language=fr").text
    assert '<a href="?language=fr&amp;version=1.0">1.0</a>' in page
    earlier = client.get("/tasks/crowd/guidelines/?language=fr&version=1.0").text
    assert "Lisez d’abord." in earlier
    assert "Annotators see version 1.1." in earlier


def test_a_language_without_guidelines_is_shown_those_of_another_and_one_that_is_not_read_is_refused(
    make_tested, person, client
):
    make_tested(languages=("en", "de"))
    client.force_login(person("bea", "de").user)
    page = client.get("/tasks/crowd/qualification/de/").text
    assert "There are none in German" in page
    assert '<div lang="en" dir="auto" tabindex="0"><p>Read.</p>' in page
    for language, status in (("en", 403), ("fr", 404), ("x%00", 404)):
        assert client.get(f"/tasks/crowd/qualification/{language}/").status_code == status


# --- the way there


def test_the_home_page_and_the_queue_lead_to_each_test(make_tested, person, client):
    task = make_tested(languages=("en", "de", "fr"), tries=1)
    bea = person("bea", "en de fr")
    client.force_login(bea.user)
    for address in ("/", "/tasks/crowd/"):
        page = client.get(address).text
        links = re.findall(r'href="/tasks/crowd/qualification/(\w+)/">([^<]*)<', page)
        assert links == [(code, f"Take the test in {name}") for code, name in
                         (("de", "German"), ("en", "English"), ("fr", "French"))]  # fmt: skip
        assert "/start/" not in page
        assert "Check again" not in page
    practised(bea, task, "de")
    go_through(bea, task, "practice", language="fr")
    go_through(bea, task, "test", language="fr", wrong=4)
    go_through(bea, task, "practice")
    go_through(bea, task, "test")
    page = client.get("/").text
    links = re.findall(r'href="/tasks/crowd/qualification/(\w+)/">([^<]*)<', page)
    assert links == [("de", "Continue the test in German"), ("fr", "Test in French: not passed, no tries left")]
    assert "/tasks/crowd/start/" in page


def test_the_queue_says_why_it_is_empty(task, ann, as_ann):
    def why():
        return re.search("<h1>(.*?)</h1>", as_ann.get("/tasks/crowd/").text)[1]

    assert why() == "Before you begin, there is a short test. Read the guidelines and take it."
    go_through(ann, task, "practice")
    go_through(ann, task, "test", wrong=4)
    go_through(ann, task, "test", wrong=4)
    assert why() == "You have not passed the test, and have no tries left. The manager can exempt you from the test."
    new_version(task, "en", "Otherwise.", major=True)
    assert why() == "The guidelines have changed. Read them and take the new test."


def test_a_task_without_a_test_shows_its_guidelines_and_begins(make_tested, as_ann):
    make_tested(test_items=0)
    page = as_ann.get(PATH).text
    assert "No test is needed." in page
    assert '<form class="onwards" method="post" action="/tasks/crowd/start/">' in page
    assert "qualification" not in as_ann.get("/").text


# --- practice


def test_practice_is_explained_item_by_item(task, ann, as_ann):
    as_ann.post(f"{PATH}practice/")
    first = next_question(ann.trials.get())
    page = as_ann.get(PATH).text
    assert first.gold_answer.item.fields["passage"] in page
    assert "Because" not in page
    shown = says(as_ann, first, "0", **HTMX).text
    assert "Correct: Yes Your answer: No Because of 1." in words(shown)
    assert first.gold_answer.item.fields["passage"] in shown
    assert "<html" not in shown
    second = next_question(ann.trials.get())
    after = as_ann.get(PATH, headers=HTMX).text
    assert second.gold_answer.item.fields["passage"] in after
    after = says(as_ann, second, "0")  # without htmx
    assert after.url == f"{PATH}?answered={second.pk}"
    shown = as_ann.get(after.url).text
    assert "Right: No Because of 0." in words(shown)
    assert "Continue to the test" in shown
    assert "Start the test" in as_ann.get(PATH).text


def test_an_explanation_is_of_ones_own_answered_practice_alone(task, ann, as_ann, person):
    bea = person("bea", "en")
    go_through(bea, task, "practice")
    others = TrialAnswer.objects.first()
    begin(ann, task, "en", "practice")
    open_one = next_question(ann.trials.get())
    for pk in (others.pk, open_one.pk, 10**18, "x", "-1"):
        page = as_ann.get(f"{PATH}?answered={pk}").text
        assert "Because" not in page
        assert open_one.gold_answer.item.fields["passage"] in page


# --- the test


def test_nothing_on_a_page_tells_what_is_right_before_the_end_of_the_test(make_tested, ann, as_ann):
    """Two tests that differ only in the right answers show the same pages for the same answers."""
    seen = []
    for label in ("1", "0"):
        task = make_tested(name=f"crowd{label}", gold={"test": [label] * 8})
        path = f"/tasks/{task.name}/qualification/en/"
        begin(ann, task, "en", "practice")
        begin(ann, task, "en", "test")
        pages = []
        for _ in range(3):
            question = next_question(ann.trials.filter(task=task).last())
            fields = {"question": question.pk, "answer": "1"}
            pages += [
                as_ann.get(path).text,
                as_ann.post(f"{path}answer/", fields, headers=HTMX).text,
                as_ann.post(f"{path}answer/", fields, headers=HTMX).text,
                as_ann.get(f"{path}?answered={question.pk}").text,
                as_ann.get("/tasks/crowd1/").text if label == "1" else as_ann.get("/tasks/crowd0/").text,
            ]
        html = "\n".join(pages)
        html = re.sub(r'(csrfmiddlewaretoken" value="|X-CSRFToken": ")\w+|(name="question" value=")\d+', r"\1\2", html)
        seen.append(re.sub(r"crowd\d|en-\d+", "…", html))
    assert seen[0] == seen[1]
    assert "Because" not in seen[0]
    assert 'class="explained' not in seen[0]


def test_the_end_of_a_test_tells_the_score_the_mark_and_what_was_missed(task, ann, as_ann):
    practised(ann, task)
    go_through(ann, task, "test", wrong=2)
    page = as_ann.get(PATH).text
    shown = words(page)
    assert "Not passed: 2 of 4 right" in shown
    assert "You need 3. You can take the test once more" in shown
    assert "The 2 you missed" in shown
    missed = [row for row in TrialAnswer.objects.filter(trial__kind="test") if row.label != row.gold_answer.label]
    assert all(row.gold_answer.item.fields["passage"] in page for row in missed)
    assert page.count("Because of") == 2
    as_ann.post(f"{PATH}test/")
    assert "Because of" not in as_ann.get(PATH).text
    go_through(ann, task, "test", wrong=1)
    shown = words(as_ann.get(PATH).text)
    assert "Passed: 3 of 4 right" in shown
    assert "The one you missed" in shown
    assert "Start work" in shown


def test_guidelines_that_change_in_the_middle_of_a_test_are_read_and_the_test_is_taken_anew(task, ann, as_ann):
    question = next_question(practised(ann, task))
    new_version(task, "en", "Now otherwise.", major=True)
    refused = says(as_ann, question, "1", **HTMX)
    assert (refused.status_code, "The guidelines have changed since you began" in refused.text) == (409, True)
    page = as_ann.get(PATH).text
    for sentence in ("did not use up a try", "Now otherwise.", "I have read them"):
        assert sentence in page


def test_who_has_no_tries_left_is_refused_in_a_sentence_until_the_manager_lets_them_in(task, ann, as_ann, manager):
    go_through(ann, task, "practice")
    for _ in range(2):
        go_through(ann, task, "test", wrong=4)
    page = as_ann.get(PATH).text
    assert "You have no tries left. The manager can still let you work in English" in words(page)
    assert "<button" not in page.partition('id="work"')[2].partition("</section>")[0]
    refused = as_ann.post(f"{PATH}test/")
    assert refused.status_code == 403
    assert "used all your tries" in refused.text
    assert f'href="{PATH}"' in refused.text
    grant(ann, task, "en", by=manager)
    assert "The manager has let you skip the test." in as_ann.get(PATH).text


def test_an_answer_that_names_no_question_or_label_of_the_task_is_refused(make_tested, task, ann, as_ann):
    question, other = (next_question(practised(ann, of)) for of in (task, make_tested(name="other")))
    for fields, status in (
        ({}, 400),
        ({"question": "x"}, 400),
        ({"question": "0", "answer": "1"}, 404),
        ({"question": "999999"}, 404),
        ({"question": other.pk, "answer": "1"}, 404),
        *(({"question": question.pk, "answer": label}, 400) for label in ("2", "", "und")),
    ):
        assert as_ann.post(f"{PATH}answer/", fields).status_code == status, fields
    assert state(ann, task, "en").step == "test"


# --- a program that reads, practises and takes the test


class Candidate(Program):
    def take(self, kind, label):
        """Practise, or take the test, with one label for every question. Returns the last reply."""
        while True:
            step = self.post(f"tasks/crowd/qualification/en/{kind}/").json()
            if step["question"] is None:
                return step
            reply = self.post(f"qualification/answers/{step['question']['id']}/", label=label).json()
            if reply["result"]:
                return reply


@pytest.fixture
def program(client, ann):
    return Candidate(client, ann)


def test_a_program_qualifies(make_tested, program, ann):
    make_tested(gold={"practice": ["1", "0"], "test": ["1"] * 8})
    (entry,) = program.get("tasks/crowd/qualification/").json()
    assert entry == {"language": "en", "state": "read", "version": "1.0", "guidelines": "Read.", "tries_left": 2}
    assert program.post("tasks/crowd/qualification/en/test/").status_code == 409

    first = program.post("tasks/crowd/qualification/en/practice/").json()
    question = first["question"]
    assert (question["number"], question["of"], first["result"]) == (1, 2, None)
    assert list(question["fields"]) == ["question", "passage"]
    assert [answer["label"] for answer in program.get("tasks/crowd/").json()["answers"]] == ["1", "0"]
    assert program.post("tasks/crowd/qualification/en/practice/").json() == first
    reply = program.post(f"qualification/answers/{question['id']}/", label="0").json()
    assert reply == {
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
        "sets": [],
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


def test_no_reply_during_a_test_tells_what_is_right(make_tested, program, ann):
    """Two tests that differ only in the right answers give the same replies to the same answers."""
    transcripts = []
    for label in ("1", "0"):
        task = make_tested(name=f"crowd{label}", gold={"practice": ["1"], "test": [label] * 8})
        practise(ann, task)
        replies = [program.get(f"tasks/{task.name}/qualification/").json()]
        for _ in range(3):
            reply = program.post(f"tasks/{task.name}/qualification/en/test/").json()
            question = reply["question"].pop("id")
            del reply["question"]["fields"]
            replies += [reply, program.post(f"qualification/answers/{question}/", label="1").json()]
        transcripts.append(json.dumps(replies))
    assert transcripts[0] == transcripts[1]
    assert "Because" not in transcripts[0]


def test_the_home_page_asks_the_database_no_more_for_more_trials(make_tested, ann):
    task = make_tested(tries=9, gold={"test": ["1", "0"] * 20})
    practise(ann, task)
    counts = []
    for number in range(3):
        if number:
            take_test(ann, task, wrong=4)
        with CaptureQueriesContext(connection) as queries:
            states(ann, task)
        counts.append(len(queries))
    assert len(set(counts)) == 1
