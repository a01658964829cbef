"""A program that reads, practises and takes the test."""

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.annotate.acts import states
from tests.annotate.programs import Program
from tests.annotate.qualification.trials import practise, take_test


class Candidate(Program):
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
    return Candidate(client, ann)


def test_a_program_qualifies(make_tested, program, ann):
    make_tested(gold={"practice": ["1", "0"], "test": ["1"] * 8})
    (found,) = program.get("tasks/crowd/qualification/").json()
    assert found == {"language": "en", "state": "read", "version": "1.0", "guidelines": "Read.", "tries_left": 2}
    assert program.post("tasks/crowd/qualification/en/test/").status_code == 409

    first = program.post("tasks/crowd/qualification/en/practice/").json()
    question = first["question"]
    assert (question["number"], question["of"], first["result"]) == (1, 2, None)
    assert list(question["fields"]) == ["question", "passage"]
    assert [each["label"] for each in program.get("tasks/crowd/").json()["answers"]] == ["1", "0"]
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
    for number in range(3):
        if number:
            take_test(ann, task, wrong=4)
        with CaptureQueriesContext(connection) as queries:
            states(ann, task)
        counts.append(len(queries))
    assert len(set(counts)) == 1
