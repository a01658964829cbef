"""The desk of managers: what waits, when it is done, who is at work; people across tasks, their hours, files."""

import csv
import io
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotate.actions.judgment_files import import_judgments
from annotate.figures.annotator_statistics import at_work_now, everybody, timesheet
from annotate.figures.finish_forecast import forecast_of
from annotate.figures.task_statistics import overview
from annotate.kinds import Answer
from annotate.models import Judgment
from annotate.work.answer_changes import undo
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from tests.annotate.conftest import DISPUTED

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk(client, manager):
    client.force_login(manager)
    return client


@pytest.fixture
def task(make_task):
    return make_task([DISPUTED] * 12)


def answer(annotator, task, label="de", *, at=None, seconds=10.0):
    """An answer by the operation, which took so long, and is set back in time."""
    judgment = judge(annotator, take(annotator, task).pk, Answer(label))
    set_back = {"answered_at": at, "shown_at": None} if at else {}
    Judgment.objects.filter(pk=judgment.pk).update(active_seconds=seconds, **set_back)
    return judgment


def rows_of(reply):
    assert reply.status_code == 200
    assert reply["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(reply.content.decode("utf-8-sig"))))


def table(text, name):
    """The part of a page that has the rows of a table."""
    return text.split(f'id="{name}"', 1)[1].split("</table>", 1)[0]


# --- when it is done


def test_a_page_of_all_tasks_and_that_of_a_task_say_when_each_language_is_done(desk, task, person):
    for name in ("ann", "ben", "cem"):
        person(name, "de")
    first, own = desk.get("/manage/dates/").text, desk.get(f"/manage/tasks/{task.name}/").text
    for text, name in ((first, "dates"), (own, "forecast")):
        assert "German" in table(text, name)
        assert "earlier" in table(text, name)
    assert "All is expected to be done about" in own
    assert "These dates suppose 12 seconds an answer" in own


def test_a_language_that_nobody_reads_has_no_date_and_what_two_readers_would_change(desk, task):
    found = forecast_of(task)
    [row] = found["queues"]
    assert row["days"] == {"low": None, "middle": None, "high": None}
    assert row["more"]["days"]["middle"] > 0
    assert "not foreseeable" in table(desk.get("/manage/dates/").text, "dates")


def test_what_is_done_or_closed_is_not_foretold(desk, task, person):
    task.is_open = False
    task.save()
    person("ann", "de")
    assert 'id="forecast"' not in desk.get(f"/manage/tasks/{task.name}/").text
    assert 'id="dates"' not in desk.get("/manage/dates/").text


def test_a_person_s_own_days_take_the_place_of_what_is_assumed(make_task, person):
    """One who answers in a minute, on every day, makes it later than one of whom nothing is known."""
    task, ann = make_task([DISPUTED] * 40), person("ann", "de")
    before = forecast_of(task)
    assert before["assumed"] == {"seconds": 12, "weekly": 10}
    now = timezone.now()
    for day in range(1, 9):
        answer(ann, task, at=now - timedelta(days=day), seconds=60.0)
    after = forecast_of(task)
    assert after["assumed"] is None
    assert after["measured"] == 1
    # A minute of work a day, for 32 answers of a minute each.
    assert after["queues"][0]["days"]["middle"] > 10 > before["queues"][0]["days"]["middle"]


def test_somebody_who_has_stopped_is_told_apart_from_one_who_works(make_task, person):
    now, found = timezone.now(), {}
    for name, back in (("works", 1), ("stopped", 16)):
        task, ann = make_task([DISPUTED] * 40, name=name), person(name, "de")
        for day in range(6):
            answer(ann, task, at=now - timedelta(days=back + day), seconds=1200.0)
        found[name] = forecast_of(task)["queues"][0]["days"]
        User.objects.filter(username=name).update(is_active=False)
    assert found["works"]["middle"] is not None
    assert found["stopped"]["middle"] is None


def test_a_forecast_is_kept_while_nothing_changes(desk, task, person):
    person("ann", "de")

    def statements():
        with CaptureQueriesContext(
            connection,
        ) as asked:
            desk.get(f"/manage/tasks/{task.name}/")
        return len(asked)

    first = statements()
    assert statements() < first


# --- what waits, and who is at work


def test_cases_without_an_adjudicator_wait_for_the_manager(desk, task, person):
    ann = person("ann", "de")
    skip(ann, take(ann, task).pk)
    assert "1 unit waits for an adjudicator" in desk.get("/manage/").text
    person("ada", adjudicates=True)
    assert "for an adjudicator in" not in desk.get("/manage/").text


def test_the_live_counts_are_a_part_of_the_page_and_count_what_stands(desk, task, person, settings):
    settings.CACHES = {**settings.CACHES, "default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
    ann, ben = person("ann", "de"), person("ben", "de")
    now = timezone.now()
    answer(ann, task)
    answer(ben, task, at=now - timedelta(minutes=40))
    found = desk.get("/manage/now/").text
    numbers = [part.split("<")[0].strip() for part in found.split("<dd>")[1:]]
    assert numbers[:2] == ["1", "2"]
    assert "<html" not in found
    assert 'hx-get="/manage/now/"' in desk.get("/manage/").text


@pytest.mark.django_db(transaction=True)
def test_the_first_page_fetches_the_dates_and_asks_for_the_live_counts_again(new_page, make_task, manager):
    make_task([DISPUTED] * 2)
    page = new_page(user=manager)
    page.clock.install()
    page.goto("/manage/")
    # The dates come after the page, and what is pressed in them leads to their own page.
    page.locator("#dates").wait_for()
    assert (
        page.get_by_role("link", name="language", exact=True).get_attribute("href").startswith("/manage/dates/?sort=")
    )
    with page.expect_response("**/manage/now/") as asked:
        page.clock.fast_forward(21_000)
    assert asked.value.ok
    assert page.locator("#now").count() == 1


def test_the_live_counts_are_asked_of_the_database_once_for_all_who_look(desk, task):
    desk.get("/manage/now/")
    with CaptureQueriesContext(connection) as asked:
        desk.get("/manage/now/")
    assert not [each for each in asked if "annotate_judgment" in each["sql"]]


def test_imported_judgments_are_nobodys_work_here(desk, make_task, person, tmp_path):
    answer(person("ann", "de"), make_task([DISPUTED]))
    file = tmp_path / "crowd.tsv"
    file.write_text("task\tworker\tlabel\na\tw1\tx\na\tw2\tx\nb\tw1\ty\n")
    import_judgments("crowd", file)
    now = at_work_now()
    assert (now["people"], now["hour"], now["today"]) == (1, 1, 1)
    assert {row["name"]: row["answers_today"] for row in overview()} == {"task": 1, "crowd": 0}
    assert [row["task"] for row in timesheet(timezone.localdate())] == ["task"]


# --- people and their hours


def test_everybody_is_shown_across_tasks(desk, make_task, person):
    one, two = make_task([DISPUTED] * 3, name="one"), make_task([DISPUTED] * 3, name="two")
    ann, _ = person("ann", "de:5 en:3"), person("ben", "hr")
    now = timezone.now()
    answer(ann, one, seconds=3600.0)
    answer(ann, two, seconds=1800.0, at=now - timedelta(days=3))
    answer(ann, two, seconds=1800.0, at=now - timedelta(days=30))
    ben, found = sorted(everybody(), key=lambda row: row["answers"])
    assert (found["tasks"], found["answers"]) == (["one", "two"], 3)
    assert found["hours"] == {"today": 1.0, "week": 1.5, "all": 2.0}
    assert found["languages"] == {"de": 5, "en": 3}
    assert (ben["tasks"], ben["hours"]["all"], ben["last"]) == ([], 0, None)
    text = desk.get("/manage/people/").text
    assert "German 5, English 3" in text
    assert "one, two" in text


def test_hours_count_what_was_worked_whether_or_not_it_stands(make_task, person):
    task, ann = make_task([DISPUTED] * 3), person("ann", "de")
    answer(ann, task, seconds=900.0)
    undo(ann, task)
    [row] = timesheet(timezone.localdate())
    assert (row["answers"], row["hours"]) == (0, 0.25)


def test_a_month_s_hours_come_as_a_file_by_person_day_and_task(desk, make_task, person, settings):
    task, ann = make_task([DISPUTED] * 5), person("ann", "de")
    here = timezone.get_current_timezone()
    for day, hour in ((3, 0), (3, 23), (28, 12)):
        at = timezone.datetime(2026, 3, day, hour, 30, tzinfo=here)
        answer(ann, task, at=at, seconds=1800.0)
    answer(ann, task, at=timezone.datetime(2026, 4, 1, 0, 30, tzinfo=here))
    reply = desk.get("/manage/people/hours.csv", {"month": "2026-03"})
    assert reply["Content-Disposition"] == 'attachment; filename="hours-2026-03.csv"'
    rows = rows_of(reply)
    assert [(row["username"], row["day"], row["answers"], row["active hours"]) for row in rows] == [
        ("ann", "2026-03-03", "2", "1.00"),
        ("ann", "2026-03-28", "1", "0.50"),
    ]
    assert {row["task"] for row in rows} == {task.name}


@pytest.mark.parametrize("month", ["2026-13", "march", "2026-03-01", "../x"])
def test_a_month_that_is_none_is_refused(desk, month):
    assert desk.get("/manage/people/hours.csv", {"month": month}).status_code == 404


# --- tables that are filtered and downloaded


@pytest.fixture
def many(person):
    for number in range(16):
        person(f"reader{number:02}", "de" if number % 2 else "hr")


def test_a_long_table_is_filtered_by_words_without_a_script(desk, many):
    text = desk.get("/manage/people/").text
    assert 'name="find-everybody"' in text
    found = desk.get("/manage/people/", {"find-everybody": "CROATIAN reader1"}).text
    assert [f"reader{n:02}" for n in range(16) if f"reader{n:02}" in found] == ["reader10", "reader12", "reader14"]
    assert "3 of 16" in found


def test_a_filter_keeps_the_order_and_an_order_the_filter(desk, many):
    found = desk.get("/manage/people/", {"find-everybody": "croatian", "sort": "everybody.-name"}).text
    assert '<input type="hidden" name="sort" value="everybody.-name">' in found
    assert "find-everybody=croatian" in table(found, "everybody")
    assert found.index("reader14") < found.index("reader10")


def test_a_short_table_has_no_filter_but_every_table_is_downloaded(desk, task, person):
    person("ann", "de")
    text = desk.get("/manage/").text
    assert "find-tasks" not in text
    [row] = rows_of(desk.get("/manage/?csv=tasks"))
    assert row["of units"] == "12"
    assert desk.get("/manage/?csv=nothing").status_code == 404


def test_what_is_downloaded_is_what_is_found_and_in_the_order_that_is_shown(desk, many):
    asked = {"find-everybody": "german", "sort": "everybody.-name", "csv": "everybody"}
    assert [row["annotator"] for row in rows_of(desk.get("/manage/people/", asked))] == [
        f"reader{number:02}" for number in range(15, 0, -2)
    ]


@pytest.mark.parametrize("name", ["=cmd()", "+1", "-1", "@SUM(A1)"])
def test_no_cell_of_a_file_is_run_as_a_formula(desk, make_task, person, name):
    ann = person("ann", "de")
    User.objects.filter(pk=ann.user.pk).update(first_name=name)
    answer(ann, make_task([DISPUTED] * 2))
    for address in ("/manage/people/?csv=everybody", "/manage/people/hours.csv"):
        cells = [cell for row in rows_of(desk.get(address)) for cell in row.values()]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
        assert [cell for cell in cells if cell.startswith(f"'{name}")]


def test_the_page_of_people_asks_as_many_statements_for_many_as_for_few(desk, person):
    def statements():
        with CaptureQueriesContext(connection) as asked:
            desk.get("/manage/people/")
        return len(asked)

    person("first", "de")
    desk.get("/docs/")  # what the manager wants of pages is read once
    few = statements()
    for number in range(8):
        person(f"reader{number}", "de en")
    assert statements() == few
