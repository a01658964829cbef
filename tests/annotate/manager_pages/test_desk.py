"""The manager dashboard: pending work, forecasts, who is at work, people across tasks, their hours, and table files."""

import csv
import io
import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotate.actions.judgment_files import import_judgments
from annotate.figures.annotator_statistics import at_work_now, everybody, timesheet, with_accounts
from annotate.figures.finish_forecast import forecast_of
from annotate.figures.task_statistics import overview
from annotate.kinds import Answer
from annotate.manager_pages import dashboard
from annotate.models import Judgment, Task
from annotate.work import accounts
from annotate.work.answer_changes import undo
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from tests.annotate.acts import words
from tests.annotate.conftest import AGREED, DISPUTED

pytestmark = pytest.mark.django_db


@pytest.fixture
def task(make_task):
    return make_task([DISPUTED] * 12)


def answer(annotator, task, label="de", *, at=None, seconds=10.0):
    """Submit an answer that took this long, and move it back in time."""
    judgment = judge(annotator, take(annotator, task).pk, Answer(label))
    set_back = {"answered_at": at, "shown_at": None} if at else {}
    Judgment.objects.filter(pk=judgment.pk).update(active_seconds=seconds, **set_back)
    return judgment


def rows_of(reply):
    assert reply.status_code == 200
    assert reply["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(reply.content.decode("utf-8-sig"))))


def table(text, name):
    """Return the part of a page with the rows of a table."""
    return text.split(f'id="{name}"', 1)[1].split("</table>", 1)[0]


# --- when it is done


def statements(desk, page):
    with CaptureQueriesContext(connection) as queries:
        desk.get(page)
    return len(queries)


def test_forecasts_are_shown_for_all_tasks_and_each_unless_nobody_reads_a_language_or_it_is_closed(desk, task, person):
    dates, task_page = "/manage/dates/", f"/manage/tasks/{task.name}/"
    [row] = forecast_of(task)["queues"]
    assert row["days"] == {"low": None, "middle": None, "high": None}
    assert row["more"]["days"]["middle"] > 0
    assert "not foreseeable" in table(desk.get(dates).text, "dates")
    for name in ("ann", "ben", "cem"):
        person(name, "de")
    first = statements(desk, task_page)
    assert statements(desk, task_page) < first  # a forecast is cached while nothing changes
    page = desk.get(task_page).text
    for text in (table(desk.get(dates).text, "dates"), table(page, "forecast")):
        assert ("German" in text, "earlier" in text) == (True, True)
    assert "All work finishes about" in page
    assert "The dates assume 12 seconds per answer" in page
    task.is_open = False
    task.save()
    assert 'id="forecast"' not in desk.get(task_page).text
    assert 'id="dates"' not in desk.get(dates).text


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
    # One minute of work per day, for 32 answers of one minute each.
    assert after["queues"][0]["days"]["middle"] > 10 > before["queues"][0]["days"]["middle"]


def test_somebody_who_has_stopped_is_told_apart_from_one_who_works(make_task, person):
    now, days = timezone.now(), {}
    for name, back in (("works", 1), ("stopped", 16)):
        task, ann = make_task([DISPUTED] * 40, name=name), person(name, "de")
        for day in range(6):
            answer(ann, task, at=now - timedelta(days=back + day), seconds=1200.0)
        days[name] = forecast_of(task)["queues"][0]["days"]["middle"]
        User.objects.filter(username=name).update(is_active=False)
    assert [days[name] is None for name in ("works", "stopped")] == [False, True]


# --- what waits, and who is at work


def test_cases_without_an_adjudicator_wait_for_the_manager(desk, task, person):
    ann = person("ann", "de")
    skip(ann, take(ann, task).pk)
    assert "1 item needs an adjudicator, but there is none" in desk.get("/manage/").text
    person("ada", adjudicates=True)
    assert "needs an adjudicator" not in desk.get("/manage/").text


def test_the_live_counts_are_a_part_of_the_page_counted_once_for_all_who_look(desk, task, person, settings):
    caches = settings.CACHES
    settings.CACHES = {**caches, "default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
    answer(person("ann", "de"), task)
    answer(person("ben", "de"), task, at=timezone.now() - timedelta(minutes=40))
    part = desk.get("/manage/now/").text
    numbers = [after.split("<")[0].strip() for after in part.split("<dd>")[1:]]
    assert (numbers[:2], "<html" in part) == (["1", "2"], False)
    assert 'hx-get="/manage/now/"' in desk.get("/manage/").text
    settings.CACHES = caches
    desk.get("/manage/now/")
    with CaptureQueriesContext(connection) as queries:
        desk.get("/manage/now/")
    assert not [query for query in queries if "annotate_judgment" in query["sql"]]


def test_the_first_page_fetches_the_dates_and_asks_for_the_live_counts_again(new_page, make_task, manager):
    make_task([DISPUTED] * 2)
    page = new_page(user=manager)
    page.clock.install()
    page.goto("/manage/")
    # The dates arrive after the page, each in its task's row.
    page.locator("#finish-task", has_text="not foreseeable").wait_for()
    with page.expect_response("**/manage/now/") as response:
        page.clock.fast_forward(21_000)
    assert response.value.ok
    assert page.locator("#now").count() == 1


def test_imported_judgments_are_nobodys_work_here(desk, make_task, person, tmp_path):
    answer(person("ann", "de"), make_task([DISPUTED]))
    file = tmp_path / "crowd.tsv"
    file.write_text("task\tworker\tlabel\na\tw1\tx\na\tw2\tx\nb\tw1\ty\n")
    import_judgments("crowd", file)
    now = at_work_now()
    assert (now["people"], now["hour"], now["today"]) == (1, 1, 1)
    assert {row["name"]: row["answers_today"] for row in overview()} == {"task": 1, "crowd": 0}
    assert [row["task"] for row in timesheet(timezone.localdate())] == ["task"]


def test_a_task_s_row_tells_its_state_who_works_and_what_can_be_done(desk, task, make_task, make_records_task, person):
    row = lambda: words(desk.get("/manage/")).split("Finish dates by language")[0]  # noqa: E731
    assert "0 of 12 settled stalled finish – people in 7 days 0 Export Extend Close" in row()
    answer(person("ann", "de"), task)
    assert "1 of 12 settled running finish – people in 7 days 1" in row()
    closed = desk.post("/manage/tasks/task/settings/switch/", {"open": "no"}, follow=True)
    assert closed.status_code == 200
    assert "1 of 12 settled closed finish – people in 7 days 1 Export Extend" in row()
    make_task([AGREED], name="agreed")
    assert "1 of 1 settled finished" in row()
    make_records_task(languages=("de", "en"))
    assert "German, English · crowd" in row()


def test_tasks_are_found_by_words_and_shown_a_page_at_a_time(desk, make_task, monkeypatch):
    monkeypatch.setattr(dashboard, "ON_A_PAGE", 2)
    for name in ("one", "two", "three"):
        make_task([DISPUTED], name=name)

    def rows(**query):
        page = desk.get("/manage/", query).text
        return re.findall(r'href="/manage/tasks/(\w+)/">', page.split('class="task-rows"')[1].split("</ul>")[0])

    assert (rows(), rows(page=2), rows(find="LANGUAGE two")) == (["three", "two"], ["one"], ["two"])
    assert "No task matches." in desk.get("/manage/", {"find": "four"}).text


# --- people and their hours


def test_everybody_is_shown_across_tasks_with_hours_whether_or_not_the_work_stands(desk, make_task, person):
    one, two = make_task([DISPUTED] * 3, name="one"), make_task([DISPUTED] * 3, name="two")
    ann, _ = person("ann", "de:5 en:3"), person("ben", "hr")
    now = timezone.now()
    answer(ann, one, seconds=3600.0)
    answer(ann, two, seconds=1800.0, at=now - timedelta(days=3))
    answer(ann, two, seconds=1800.0, at=now - timedelta(days=30))
    ben, row = sorted(with_accounts(everybody()), key=lambda row: row["answers"])
    assert (row["tasks"], row["answers"]) == (["one", "two"], 3)
    assert row["hours"] == {"today": 1.0, "week": 1.5, "all": 2.0}
    assert row["languages"] == {"de": 5, "en": 3}
    assert (ben["tasks"], ben["hours"]["all"], ben["last"]) == ([], 0, None)
    text = desk.get("/manage/people/").text
    assert ("German 5, English 3" in text, "one, two" in text) == (True, True)
    undo(ann, one)
    assert [(row["answers"], row["hours"]) for row in timesheet(timezone.localdate()) if row["task"] == "one"] == [
        (0, 1.0)
    ]


def test_a_month_s_hours_come_as_a_file_by_person_day_and_task(desk, make_task, ann):
    task, here = make_task([DISPUTED] * 5), timezone.get_current_timezone()
    for month, day, hour in ((3, 3, 0), (3, 3, 23), (3, 28, 12), (4, 1, 0)):
        answer(ann, task, at=timezone.datetime(2026, month, day, hour, 30, tzinfo=here), seconds=1800.0)
    reply = desk.get("/manage/people/hours.csv", {"month": "2026-03"})
    assert reply["Content-Disposition"] == 'attachment; filename="hours-2026-03.csv"'
    keys = ("username", "day", "answers", "active hours", "task")
    assert [tuple(row[key] for key in keys) for row in rows_of(reply)] == [
        ("ann", "2026-03-03", "2", "1.00", task.name),
        ("ann", "2026-03-28", "1", "0.50", task.name),
    ]
    for month in ("2026-13", "march", "2026-03-01", "../x"):
        assert desk.get("/manage/people/hours.csv", {"month": month}).status_code == 404


# --- tables that are filtered and downloaded


@pytest.fixture
def many(person):
    for number in range(16):
        person(f"reader{number:02}", "de" if number % 2 else "hr")


@pytest.mark.usefixtures("many")
def test_a_long_table_is_filtered_by_words_sorted_and_downloaded_as_it_is_shown(desk):
    assert 'name="find-everybody"' in desk.get("/manage/people/").text
    page = desk.get("/manage/people/", {"find-everybody": "CROATIAN reader1"}).text
    assert [n for n in range(16) if f"reader{n:02}" in page] == [10, 12, 14]
    assert "3 of 16" in page
    query = {"find-everybody": "croatian", "sort": "everybody.-name"}
    page = desk.get("/manage/people/", query).text
    assert '<input type="hidden" name="sort" value="everybody.-name">' in page
    assert "find-everybody=croatian" in table(page, "everybody")
    assert page.index("reader14") < page.index("reader10")
    rows = rows_of(desk.get("/manage/people/", query | {"csv": "everybody"}))
    assert [row["annotator"] for row in rows] == [f"reader{number:02}" for number in range(14, -1, -2)]


def test_a_short_table_has_no_filter_but_every_table_is_downloaded(desk, task):
    assert "find-tasks" not in desk.get("/manage/").text
    [row] = rows_of(desk.get("/manage/?csv=tasks"))
    assert row["items"] == "12"
    assert desk.get("/manage/?csv=nothing").status_code == 404


def test_no_cell_of_a_file_is_run_as_a_formula(desk, make_task, ann):
    answer(ann, make_task([DISPUTED] * 2))
    for name in ("=cmd()", "+1", "-1", "@SUM(A1)"):
        User.objects.filter(pk=ann.user.pk).update(first_name=name)
        for address in ("/manage/people/?csv=everybody", "/manage/people/hours.csv"):
            cells = [cell for row in rows_of(desk.get(address)) for cell in row.values()]
            assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
            assert [cell for cell in cells if cell.startswith(f"'{name}")]


# --- many people and tasks


@pytest.mark.parametrize(
    "page",
    [
        *("people/", "people/?sort=everybody.-answers", "people/?find-everybody=ann"),
        *("", "dates/", "routes/", "questions/", "accounts/new/", "corpora/", "new-task/", "tasks/first/"),
    ],
)
def test_lists_take_as_many_statements_however_many_people_and_tasks_there_are(desk, make_task, person, page):
    make_task([DISPUTED], name="first")
    for name in ("anna", "ben"):
        answer(person(name, "de fr"), make_task([DISPUTED] * 2, name=f"of-{name}"))
    Task.objects.update(is_open=True)
    counts = []
    for more in range(2):
        for number in range(20):
            accounts.invite(person(f"ann{more}{number}", "de en"))
        if not page.startswith("people/"):  # two tasks are on the page of routes
            for number in range(2 + 8 * more):
                make_task([DISPUTED], name=f"task{more}{number}")
        desk.get(f"/manage/{page}")
        counts.append(statements(desk, f"/manage/{page}"))
    assert counts[0] == counts[1]
    assert len(desk.get(f"/manage/{page}").content) < 50_000


def test_a_long_list_of_people_is_sorted_and_filtered_as_its_cells_show(desk, make_task, person):
    task = make_task([DISPUTED] * 3)
    for name, answers in (("ann", 1), ("ben", 2), ("cem", 0)):
        reader = person(name, "de fr" if name == "ben" else "de")
        for _ in range(answers):
            answer(reader, task)
    shown = table(desk.get("/manage/people/?sort=everybody.-answers").text, "everybody")
    assert sorted(("ann", "ben", "cem"), key=lambda name: shown.index(f">{name}<")) == ["ben", "ann", "cem"]
    french = table(desk.get("/manage/people/?find-everybody=french").text, "everybody")
    assert [name for name in ("ann", "ben", "cem") if f">{name}<" in french] == ["ben"]
    rows = rows_of(desk.get("/manage/people/?csv=everybody&sort=everybody.answers"))
    assert [row["annotator"] for row in rows] == ["cem", "ann", "ben"]
