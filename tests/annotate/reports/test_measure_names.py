"""Each measure has a row in the documentation's table of methods, to which reports link."""

import re

import pytest
from django.urls import reverse
from django.utils import timezone

from annotate.evaluation.posts import SECTIONS
from annotate.models import Job
from annotate.reports import evaluation_report
from annotate.reports.slice_tables import ANCHORS, DIFFERENCE, MEASURES, METHODS, method

PAGE = "/docs/explanation/measuring/"


@pytest.fixture
def table(client):
    """Anchors of the rows of the table, in its order."""
    text = client.get(PAGE).text
    first = re.search(r"<table>.*?</table>", text[text.index('id="estimators"') :], re.DOTALL)
    return re.findall(r'<tr id="([^"]*)">', first[0])


def test_the_table_has_a_row_for_each_measure_and_no_measure_is_left_out(table):
    missing = [name for name in MEASURES for form in ("posts", "choice") if ANCHORS[method(name, form)] not in table]
    assert missing == []
    assert ANCHORS[DIFFERENCE] in table


def test_the_rows_name_measures_that_reports_know():
    assert {measure for measures in METHODS.values() for measure in measures} == MEASURES.keys()


def test_a_measure_of_posts_and_of_other_units_has_a_row_for_each():
    assert method("recall", "posts") == "Recall"
    assert method("recall", "choice") == "One label per unit"


def test_figures_on_the_page_of_a_job_lead_to_the_documentation(client, manager, table):
    client.force_login(manager)
    figures = [
        {"measure": measure, "of": {"label": "en"}, "value": 0.5, "low": 0.4, "high": 0.6, "units": 9, "count": 9.0}
        for measure in ("recall", "precision", "f1")
    ]
    report = {
        **{"kind": evaluation_report.KIND, "form": "posts", "unit": "post", "sections": SECTIONS, "gold": []},
        **{"rows": [figure | {"note": ""} for figure in figures], "head": [], "words": {}, "reading": [], "told": []},
        **{"predictor": {"spelled": "mine@1"}, "warnings": []},
    }
    now = timezone.now()
    job = Job.objects.create(action="evaluate", state=Job.DONE, data=report, began_at=now, ended_at=now)
    text = client.get(reverse("manage-job", args=[job.pk])).text
    links = re.findall(rf'href="{PAGE}#([^"]*)"', text)
    assert {"row-recall", "row-precision", "row-f1"} <= set(links) <= set(table)
