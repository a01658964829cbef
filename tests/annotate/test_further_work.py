"""Which further work narrows a task's accuracy most per hour: the counts are the task's, and the commands do it."""

import io
import json
import shlex

import pytest

from annotate.actions.commands import call_command
from annotate.core.further_work import AUDITS, CHECKS, POSTS, SECONDS, narrowing
from annotate.core.planning import Expected, planned, width
from annotate.kinds import Answer
from annotate.models import Judgment
from annotate.work.adjudication import to_adjudicate
from annotate.work.auditing import add_audits
from annotate.work.further_work import further_work, measured
from annotate.work.judging import judge
from annotate.work.queue import take
from tests.annotate.acts import settle
from tests.annotate.conftest import AGREED, DISPUTED

FRENCH = ("fr", "fr", "fr")


@pytest.fixture
def task(make_task, person):
    """A task of 200 posts, of which 15 of 150 audits and 6 of 50 checks are chosen, that people have worked through."""
    options = {"audit_share": 0.1, "audit_least": 2, "audit_recheck": 0.2, "audit_limit": 1}
    options |= {"check_share": 0.1, "check_least": 6, "second_share": 0.5}
    task = make_task([AGREED] * 90 + [FRENCH] * 60 + [DISPUTED] * 50, **options)
    ann, ada, eve = person("ann", "de fr"), person("ada", adjudicates=True), person("eve", adjudicates=True)
    while lease := take(ann, task):
        judge(ann, lease.pk, Answer(lease.unit.agreed_label or "de"))
    for adjudicator in (ada, eve):
        for unit in list(to_adjudicate(task, adjudicator)):
            settle(adjudicator, unit, unit.agreed_label or "de")
    Judgment.objects.update(active_seconds=7.0)
    return task


def test_a_plan_with_the_tasks_counts_has_what_was_chosen(task):
    counted = measured(task).counted
    assert counted.agreed == {"de": 90, "fr": 60}
    assert counted.disputed == {"de": 50}
    assert sum(counted.audited.values()) == task.units.filter(audited=True).count()
    assert counted.checked == {"de": 6}
    assert measured(task).seconds == pytest.approx(7.0)


def test_each_kind_of_work_reaches_the_wished_width_or_is_all_there_is(task):
    found = further_work(task)
    assert found["wished"] == found["width"] / 2
    assert {row["work"] for row in found["rows"]} >= {AUDITS, CHECKS}
    gains = [row["gain"] for row in found["rows"]]
    assert gains == sorted(gains, reverse=True)
    for row in found["rows"]:
        assert row["enough"] == (row["width"] <= found["wished"])
        assert row["hours"] == pytest.approx(row["posts"] * 7 / 3600)
        assert row["gain"] == pytest.approx((found["width"] - row["width"]) / row["hours"])
    labels = {row["label"] for row in found["rows"] if row["work"] == AUDITS}
    assert labels == {"", "de", "fr"}


def test_the_commands_narrow_accuracy_as_much_as_they_say(task):
    """What is written beside each kind of work is run as it stands; then the width is what was foretold."""
    wished = 0.8 * further_work(task)["width"]
    out = io.StringIO()
    call_command("audit", "task", "--width", str(100 * wished), json=True, stdout=out)
    row = next(row for row in json.loads(out.getvalue())["further_work"]["rows"] if row["enough"])
    call_command("audit", "task", "--width", str(100 * wished), stdout=(out := io.StringIO()))
    line = next(line for line in out.getvalue().splitlines() if f"--add {row['amount']}" in line)
    _, name, *options = shlex.split(line[line.index("assay") :])
    call_command(name, *options, stdout=io.StringIO())
    of = measured(task)
    now = width(planned("accuracy", "", of.counted, of.draw, of.expected))
    assert now == pytest.approx(row["width"], abs=0.002)
    assert now <= wished + 0.002


def test_audits_do_nothing_where_all_is_audited(task):
    add_audits(task, 1000)
    found = further_work(task)
    assert AUDITS not in {row["work"] for row in found["rows"]}
    assert {row["work"] for row in found["rows"]} <= {CHECKS, SECONDS, POSTS}


def test_a_larger_draw_is_at_most_the_frame(task):
    of = measured(task)._replace(frame=2_000)
    row = next(row for row in narrowing(of, 0.0)["rows"] if row["work"] == POSTS)
    assert (row["amount"], row["enough"]) == (2_000, False)


def test_what_is_narrow_enough_needs_no_further_work(task):
    out = io.StringIO()
    call_command("audit", "task", "--width", "100", stdout=out)
    assert "which is as narrow as wished." in out.getvalue()


def test_the_tasks_page_links_what_begins_the_work(task, client, manager):
    client.force_login(manager)
    shown = client.get("/manage/tasks/task/").content.decode()
    assert "What narrows accuracy most" in shown
    for row in further_work(task)["rows"]:
        if row["work"] == AUDITS and row["label"]:
            assert f"/manage/do/audit/?task=task&amp;add={row['amount']}&amp;languages={row['label']}" in shown
    [checks] = [row for row in further_work(task)["rows"] if row["work"] == CHECKS]
    begun = client.get(f"/manage/do/audit/?task=task&add={checks['amount']}&checks=yes").content.decode()
    assert f'value="{checks["amount"]}"' in begun


def test_counting_asks_the_database_as_often_for_more_posts(make_task, django_assert_max_num_queries):
    few, many = make_task([AGREED, DISPUTED], name="few"), make_task([AGREED, DISPUTED] * 40, name="many")
    for each in (few, many):
        with django_assert_max_num_queries(24):
            further_work(each)


def test_a_task_for_one_language_has_no_accuracy_to_narrow(make_task):
    assert further_work(make_task([DISPUTED] * 3, asked="de")) is None


def test_the_default_is_that_of_a_plan(make_task):
    assert measured(make_task([AGREED] * 5)).expected == Expected()
