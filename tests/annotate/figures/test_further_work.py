"""Which further work narrows the interval of accuracy most per hour, from the task's own counts."""

import io
import json
import shlex

import pytest
from django.core.management import CommandError

from annotate.actions.registry import call_command
from annotate.controls.audited_units import add_audits
from annotate.controls.checks import add_checks
from annotate.core.refusals import WrongStage
from annotate.figures.further_work import further_work, measured, narrowing
from annotate.figures.interval_width import AUDITS, CHECKS, POSTS, SECONDS, Expected, planned, width
from annotate.kinds import Answer
from annotate.models import Judgment
from annotate.quality.agreement_strata import contested_strata
from annotate.reports.numbers import in_points
from annotate.work.adjudication import to_adjudicate
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate.acts import settle
from tests.annotate.conftest import AGREED, DISPUTED
from tests.annotate.evaluation.figures import accuracy, run
from tests.annotate.gold_folders import World

pytestmark = pytest.mark.slow


FRENCH = ("fr", "fr", "fr")


@pytest.fixture
def task(make_task, person):
    """A finished task of 200 posts, with 15 of 150 agreed posts audited and 6 of 50 others checked."""
    options = {"audit_share": 0.1, "audit_least": 2, "audit_recheck": 0.2, "audit_limit": 1}
    options |= {"check_share": 0.12}
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
    of = measured(task)
    assert of.counted.agreed == {"de": 90, "fr": 60}
    assert of.counted.disputed == {"de": 50}
    assert sum(of.counted.audited.values()) == task.units.filter(audited=True).count()
    assert (of.counted.checked, of.seconds) == ({"de": 6}, pytest.approx(7.0))
    [larger] = [row for row in narrowing(of._replace(frame=2_000), 0.0)["rows"] if row["work"] == POSTS]
    assert (larger["amount"], larger["enough"]) == (2_000, False)  # at most the frame


def test_a_task_without_answers_is_planned_by_default(make_task):
    assert measured(make_task([AGREED] * 5)).expected == Expected()


def test_each_kind_of_work_reaches_the_wished_width_or_is_all_there_is(task):
    figures = further_work(task)
    assert figures["wished"] == pytest.approx(figures["width"] / 2, abs=0.0005)
    assert {row["work"] for row in figures["rows"]} >= {AUDITS, CHECKS}
    gains = [row["gain"] for row in figures["rows"]]
    assert gains == sorted(gains, reverse=True)
    for row in figures["rows"]:
        assert row["enough"] == (row["width"] <= figures["wished"])
        assert row["hours"] == pytest.approx(row["posts"] * 7 / 3600)
        assert row["gain"] == pytest.approx((figures["width"] - row["width"]) / row["hours"])
    labels = {row["label"] for row in figures["rows"] if row["work"] == AUDITS}
    assert labels == {"", "de", "fr"}


def test_the_commands_narrow_accuracy_as_much_as_they_say(task):
    """Run the command shown for each kind of work; the width is then as predicted."""
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


def read_all(task, truth, reader, adjudicator):
    """Have both work until nothing is left. truth: key -> label, for posts on which the detectors are wrong."""
    while lease := take(reader, task):
        judge(reader, lease.pk, Answer(truth.get(lease.unit.item.key) or lease.unit.agreed_label or "de"))
    for unit in list(to_adjudicate(task, adjudicator)):
        settle(adjudicator, unit, truth.get(unit.item.key) or unit.agreed_label or "de")


def test_the_width_is_that_of_evaluate_after_a_language_was_contested(make_task, person, tmp_path):
    """A quarter of the German posts is French. Later answers on them are checked as for disputed posts, not audits."""
    world = World(make_task, tmp_path)
    votes = [FRENCH] * 200 + [AGREED] * 120 + [DISPUTED] * 20
    entries = [{"key": f"post-{n}", "votes": vote} for n, vote in enumerate(votes)]
    truth = {f"post-{n}": "fr" for n in range(200, 320, 4)}
    world.predictions = {f"post-{n}": "fr" if n < 200 else "de" for n in range(340)} | truth
    world.predictions |= {f"post-{n}": "nl" for n in range(0, 340, 20)}
    options = {"audit_share": 0.3, "audit_least": 5, "audit_recheck": 0.2, "audit_limit": 0.15}
    task = make_task(entries, **options, check_share=0.3)
    people = person("ann", "de fr"), person("ada", adjudicates=True)
    read_all(task, truth, *people)
    assert contested_strata(task) == {"de"}
    read_all(task, truth, *people)
    add_checks(task, 40)
    read_all(task, truth, *people)
    counted = measured(task).counted
    assert all(checked <= counted.disputed[queue] for queue, checked in counted.checked.items())
    interval = accuracy(run(world.subject(), world.export(task)))
    assert further_work(task)["width"] == pytest.approx(interval["high"] - interval["low"], rel=0.1)


def test_checks_that_would_be_refused_are_not_proposed(make_task, person):
    """The reader named another queue's language in some posts, so a second one confirms them instead of a check."""
    task = make_task([AGREED] * 40 + [DISPUTED] * 20, check_share=0.1, audit_share=0.2)
    ann, bob = person("ann", "de en"), person("bob", "de en")
    disputed = 0
    while lease := take(ann, task):
        disputed += not lease.unit.agreed_label
        judge(ann, lease.pk, Answer(lease.unit.agreed_label or ("en" if disputed % 2 else "de")))
    while lease := take(bob, task):
        judge(bob, lease.pk, Answer(lease.unit.agreed_label or "en"))
    assert task.units.filter(transitions__event="named").exists()
    [checks] = [row for row in further_work(task)["rows"] if row["work"] == CHECKS]
    assert sum(add_checks(task, 1000).values()) == checks["amount"]
    assert CHECKS not in {row["work"] for row in further_work(task)["rows"]}
    with pytest.raises(WrongStage):
        add_checks(task, 1)


def test_audits_do_nothing_where_all_is_audited(task):
    add_audits(task, 1000)
    assert {row["work"] for row in further_work(task)["rows"]} <= {CHECKS, SECONDS, POSTS}


def test_the_report_names_the_predictor_and_the_width_as_it_was_typed(task):
    def report(*options):
        call_command("audit", "task", *options, stdout=(out := io.StringIO()))
        return " ".join(out.getvalue().split())

    assert "which is as narrow as desired." in report("--width", "100")
    page = report("--width", "3.25")
    assert "For a predictor with an accuracy of 95.0%, the 95% interval of accuracy will be about" in page
    assert "Further work to reach 3.25 points, at" in page
    by_default = further_work(task)
    typed = further_work(task, float(in_points(by_default["wished"]).split()[0]) / 100)
    assert [row["amount"] for row in typed["rows"]] == [row["amount"] for row in by_default["rows"]]
    with pytest.raises(CommandError, match=r"--width applies only to the report"):
        report("--add", "5", "--width", "3")


def test_the_tasks_page_links_what_begins_the_work(task, client, manager):
    client.force_login(manager)
    shown = client.get("/manage/tasks/task/quality/").content.decode()
    assert "Where more answers help most" in shown
    for row in further_work(task)["rows"]:
        if row["work"] == AUDITS and row["label"]:
            assert f"/manage/do/audit/?task=task&amp;add={row['amount']}&amp;languages={row['label']}" in shown
    [checks] = [row for row in further_work(task)["rows"] if row["work"] == CHECKS]
    begun = client.get(f"/manage/do/audit/?task=task&add={checks['amount']}&checks=yes").content.decode()
    assert f'value="{checks["amount"]}"' in begun


def test_counting_asks_the_database_as_often_for_more_posts(make_task, django_assert_max_num_queries):
    few, many = make_task([AGREED, DISPUTED], name="few"), make_task([AGREED, DISPUTED] * 40, name="many")
    for task in (few, many):
        with django_assert_max_num_queries(24):
            further_work(task)


def test_a_task_for_one_language_has_no_accuracy_to_narrow(make_task):
    assert further_work(make_task([DISPUTED] * 3, asked="de")) is None
    with pytest.raises(CommandError, match=r"^Cannot use --width .* measure accuracy on a stream of posts\."):
        call_command("audit", "task", "--width", "3")
