"""What an installed package returns is checked where it enters, and a control that fails hides no other's results."""

import pyarrow as pa
import pytest

from annotate.controls.checks import Checks
from annotate.core import stages
from annotate.kinds import Answer
from annotate.kinds.forms.choice import Grades
from annotate.models import Unit
from annotate.work.judgments import judge
from annotate.work.queue import take
from corpora.core import CorpusError
from corpora.votes.vote_worker import vote_on
from tests.annotate.acts import say
from tests.annotate.conftest import DISPUTED
from tests.annotate.plugins.common_words import CommonWords


@pytest.mark.parametrize(
    ("returned", "why"),
    [
        (3, "returned 3 for .* It must be a text or None"),
        ("", "returned '' for "),
        ("excellent", "returned 'excellent' for .*'excellent' is not a valid answer"),
    ],
)
def test_the_result_of_an_aggregation_must_be_an_answer_of_the_task(
    make_records_task, person, monkeypatch, installed_package, returned, why
):
    installed_package("forms", "laughs", "annotate.kinds.forms:choice")
    monkeypatch.setattr(Grades, "aggregations", {"majority": lambda answers, order, asked: returned})
    task = make_records_task("web_ranking", 1, redundancy=2)
    ann, bea = person("ann", "en"), person("bea", "en")
    judge(ann, take(ann, task).pk, Answer("1"))
    with pytest.raises(CorpusError, match=f"The package laughs cannot be used: its aggregation majority .* {why}"):
        judge(bea, take(bea, task).pk, Answer("2"))
    assert Unit.objects.get().stage == stages.QUEUED


@pytest.mark.parametrize(
    ("votes", "why"),
    [
        ([[("xx", 0.5)]], "'xx', which is not the code of a listed language"),
        ([[("de", 1.5)]], "score 1.5"),
        ([], "It has 0 rankings for 1 texts"),
        ([["de"]], ""),
        (None, "not iterable"),
    ],
)
def test_the_result_of_a_detector_is_checked_and_its_package_is_named(installed_package, votes, why):
    installed_package("voters", "common", "tests.annotate.plugins.common_words:CommonWords")
    voter = type("Faulty", (CommonWords,), {"vote": lambda self, texts, k: votes, "__module__": "tests.faulty"})()
    posts = pa.record_batch({"id": ["1"], "text": ["der Hund ist da"]})
    with pytest.raises(CorpusError, match=f"The package common cannot be used: .* detector common is not valid.*{why}"):
        vote_on(3, [voter], posts)


def test_a_control_whose_panel_fails_says_so_and_the_page_shows_the_others(make_task, desk, monkeypatch, caplog):
    make_task([DISPUTED])

    def fail(self, task, found):
        raise ZeroDivisionError("no answers")

    monkeypatch.setattr(Checks, "panel", fail)
    page = desk.get("/manage/tasks/task/quality/")
    assert page.status_code == 200
    assert "These results could not be computed." in page.text
    assert "Audit of the detectors" in page.text
    [record] = [record for record in caplog.records if record.name == "annotate.kinds.control"]
    assert record.exc_info[0] is ZeroDivisionError
    assert "the panel of the quality control 'checks' failed" in record.getMessage()


def test_a_control_can_ask_one_more_person_for_a_unit(make_task, person, monkeypatch):
    monkeypatch.setattr(Checks, "decided", lambda self, unit, answers, label: 2)
    task = make_task([DISPUTED])
    first = say(person("ann", "de"), task, "de")
    assert (first.stage, first.redundancy) == (stages.QUEUED, 2)
    second = say(person("bea", "de"), task, "de")
    assert (second.stage, second.label) == (stages.LABELLED, "de")
