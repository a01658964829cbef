"""Tables whose headings sort them, without a script; each measure has a row in the documentation's table of methods."""

import pickle
import re

import pytest
from django.urls import reverse
from django.utils import timezone

from annotate.evaluation.posts import SECTIONS
from annotate.models import Job
from annotate.reports import evaluation_report
from annotate.reports.slice_tables import ANCHORS, DIFFERENCE, MEASURES, METHODS, method
from annotate.reports.tables import NUMBER, Cell, Column, table

HEADS = [Column("name", "name"), Column("count", "how many", NUMBER)]
CELLS = [(Cell("b", "b"), Cell("1,000", 1000)), (Cell("a", "a"), Cell("–")), (Cell("c", "c"), Cell("20", 20))]
ROWS = [{"name": name, "count": number} for name, number in CELLS]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("", "bac"),
        ("t.name", "abc"),
        ("t.-name", "cba"),
        ("t.count", "cba"),
        ("t.-count", "bca"),
        ("other.name", "bac"),
        ("t.what", "bac"),
        ("t.-", "bac"),
        ("-", "bac"),
    ],
)
def test_the_address_sorts_a_table_and_unknown_values_come_last(order, expected):
    letters = table("letters", HEADS, ROWS, slug="t", sort=order)
    assert "".join(row[0].shown for row in letters.rows) == expected


def test_totals_stay_below_the_rows_and_a_pickled_table_has_its_rows_and_is_sorted():
    below = {"name": Cell("all", "A"), "count": Cell("1,020", 1020)}
    letters = table("letters", HEADS, ROWS, total=[below], slug="t", sort="t.-count")
    assert [row[0].shown for row in letters.rows] == ["b", "c", "a", "all"]
    plain = table("letters", HEADS, ROWS, sort=".name")
    assert [row[0].shown for row in plain.rows] == ["b", "a", "c"]
    assert {(head.sort, head.aria) for head in plain.headings} == {("", "")}
    heads = [HEADS[0], Column("count", "how many", NUMBER, lambda row: row["count"])]
    restored = pickle.loads(pickle.dumps(table("letters", heads, ROWS, slug="t", sort="t.-count")))
    assert [row[0].shown for row in restored.rows] == ["b", "c", "a"]
    assert [head.aria for head in restored.headings] == ["", "descending"]


def test_a_heading_links_to_its_order_and_then_to_the_reverse():
    def links(order):
        letters = table("letters", HEADS, ROWS, slug="t", sort=order)
        return [(head.sort, head.aria) for head in letters.headings]

    assert links("") == [("t.name", ""), ("t.-count", "")]
    assert links("t.name") == [("t.-name", "ascending"), ("t.-count", "")]
    assert links("t.-count") == [("t.name", ""), ("t.count", "descending")]


PAGE = "/docs/explanation/measuring/"


@pytest.fixture
def documented(client):
    """Return the anchors of the table's rows, in order."""
    text = client.get(PAGE).text
    first = re.search(r"<table>.*?</table>", text[text.index('id="estimators"') :], re.DOTALL)
    return re.findall(r'<tr id="([^"]*)">', first[0])


def test_the_table_has_a_row_for_each_measure_of_posts_and_of_other_units(documented):
    missing = [
        name for name in MEASURES for form in ("posts", "choice") if ANCHORS[method(name, form)] not in documented
    ]
    assert missing == []
    assert ANCHORS[DIFFERENCE] in documented
    assert {measure for measures in METHODS.values() for measure in measures} == MEASURES.keys()
    assert method("recall", "posts") == "Recall"
    assert method("recall", "choice") == "One label per unit"


def test_figures_on_the_page_of_a_job_lead_to_the_documentation(client, manager, documented):
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
    assert {"row-recall", "row-precision", "row-f1"} <= set(links) <= set(documented)
