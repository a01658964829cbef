"""A person's view of their own work: the day and the week, a goal, a reminder after long work, and their history."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotate.figures.personal_progress import LONG, answers_by, without_pause, worked
from annotate.kinds import Answer
from annotate.models import Judgment, Task
from annotate.work import flags
from annotate.work.answer_changes import change
from annotate.work.judgments import judge, skip
from annotate.work.permit import acting, midnight
from annotate.work.queue import take
from tests.annotate.acts import settle, signed_in, words
from tests.annotate.conftest import DISPUTED


def answered(ann, task, label="de", comment="", **fields):
    """Submit a person's answer, and give it another time."""
    judgment = judge(ann, take(ann, task).pk, Answer(label, comment=comment))
    Judgment.objects.filter(pk=judgment.pk).update(**fields)
    judgment.refresh_from_db()
    return judgment


def at(when, seconds=0.0):
    return {"answered_at": when, "shown_at": when - timedelta(seconds=seconds), "active_seconds": seconds}


def texts(html):
    return re.findall(r"number (\d+)", html)


# --- the day and the week


@pytest.mark.parametrize(
    ("seconds", "sentence"), [(40, "1 answer in 40 s"), (61, "1 answer in 1 min"), (3700, "in 1 h 1 min")]
)
def test_less_than_a_minute_is_told_in_seconds(make_task, ann, as_ann, seconds, sentence):
    answered(ann, make_task([DISPUTED] * 2), **at(midnight(), seconds))
    assert sentence in words(as_ann.get("/").text)


def test_answers_and_active_time_of_today_and_this_week_are_told(make_task, ann, as_ann):
    task, today = make_task([DISPUTED] * 5), midnight()
    monday = today - timedelta(days=today.weekday())
    answered(ann, task, **at(today, 60))
    answered(ann, task, **at(monday, 3600))
    answered(ann, task, **at(monday - timedelta(microseconds=1), 7000))
    judgment = skip(ann, take(ann, task).pk)
    Judgment.objects.filter(pk=judgment.pk).update(**at(today, 30))
    totals = worked(ann)
    if monday == today:
        assert (totals.answered_today, totals.seconds_today) == (2, 3690.0)
    else:
        assert (totals.answered_today, totals.seconds_today) == (1, 90.0)
        assert "Today 1 answer in 1 min" in words(as_ann.get("/").text)
    assert (totals.answered_this_week, totals.seconds_this_week) == (2, 3690.0)
    assert "This week 2 answers in 1 h 1 min" in words(as_ann.get("/").text)


def test_an_own_goal_is_told_with_a_bar_and_nobody_has_one_unasked(make_task, ann, as_ann, person):
    task = make_task([DISPUTED] * 3)
    answered(ann, task)
    answered(ann, task, voided_at=timezone.now())
    answered(person("bea", "de"), task)
    assert "<progress" not in as_ann.get("/").text
    as_ann.post("/account/preferences/", {"goal": "40"})
    page = as_ann.get("/").text
    assert '<progress id="goal" value="1" max="40">' in page
    assert "1 of your goal of 40 answers today" in words(page)


def test_what_one_did_is_read_by_an_index_in_one_statement_whatever_waits(make_task, ann):
    make_task([DISPUTED] * 30)
    with CaptureQueriesContext(connection) as queries:
        worked(ann)
    assert len(queries) == 1
    sql = queries[0]["sql"]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {'QUERY PLAN ' if connection.vendor == 'sqlite' else ''}{sql}")
        plan = str(cursor.fetchall())
    assert connection.vendor != "sqlite" or "own_answers" in plan


# --- a word after long work


def worked_for(ann, task, lasts, gap=4):
    """Submit an answer every few minutes, the last one now."""
    now = timezone.now()
    for ago in range(lasts, -1, -gap):
        answered(ann, task, **at(now - timedelta(minutes=ago), 30))
    return now


def test_after_fifty_minutes_without_a_pause_of_five_a_quiet_word_is_said(make_task, ann, as_ann):
    task = make_task([DISPUTED] * 20)
    worked_for(ann, task, 52)
    assert without_pause(ann) // timedelta(minutes=1) == 52
    sentence = "You have worked for 52 minutes without a break."
    for address in ("/", "/tasks/task/", "/rest/"):
        assert sentence in words(as_ann.get(address).text)
    reply = as_ann.post("/tasks/task/start/", headers={"HX-Request": "true"})
    assert sentence not in words(reply.text)


def test_whoever_has_paused_or_rests_is_told_nothing(make_task, ann, as_ann):
    task, now = make_task([DISPUTED] * 40), timezone.now()
    for ago in [*range(60, 30, -3), *range(24, -1, -3)]:
        answered(ann, task, **at(now - timedelta(minutes=ago), 10))
    assert without_pause(ann) < LONG
    assert as_ann.get("/rest/").text.strip() == ""
    worked_for(ann, task, 55)
    assert without_pause(ann) >= LONG
    assert without_pause(ann, timezone.now() + timedelta(minutes=5, seconds=1)) < LONG


def test_a_long_document_is_no_pause(make_task, ann):
    task, now = make_task([DISPUTED] * 3), timezone.now()
    answered(ann, task, **at(now - timedelta(minutes=30), 25 * 60))
    answered(ann, task, **at(now, 29 * 60))
    assert without_pause(ann, now) // timedelta(minutes=1) == 55


# --- history


def test_history_lists_all_own_answers_the_newest_first_searched_and_filtered(make_task, ann, as_ann, person):
    task, other = make_task([DISPUTED] * 4), make_task([DISPUTED], name="other")
    long_ago = midnight() - timedelta(days=40)
    answered(ann, task, "de", comment="odd", **at(long_ago))
    answered(ann, task, "en")
    skip(ann, take(ann, task).pk)
    answered(ann, other, "de")
    answered(person("bea", "de"), task, label="fr")
    page = as_ann.get("/history/").text
    days = [str(timezone.localdate()), str(timezone.localdate(long_ago))]
    assert re.findall(r"<h2>(\d{4}-\d\d-\d\d)</h2>", page) == days
    assert re.findall(r'<td class="written">\s*<b>(\w+)</b>', page) == ["German", "English", "German"]
    assert "French</b>" not in page
    assert as_ann.get("/tasks/other/answers/").text.count("<b>German</b>") == 1
    for query, numbers in [
        ("", ["5", "3", "2", "1"]),
        ("?q=NUMBER 2", ["2"]),
        ("?q=nothing", []),
        ("?task=other", ["5"]),
        ("?task=unknown", ["5", "3", "2", "1"]),
        ("?commented=on", ["1"]),
        ("?said=skipped", ["3"]),
        ("?said=answered", ["5", "2", "1"]),
        ("?task=task&said=en", ["2"]),
        ("?said=%00&q=%00", ["5", "3", "2", "1"]),
        ("?page=99", ["5", "3", "2", "1"]),
    ]:
        shown = as_ann.get(f"/history/{query}").text
        assert texts(shown[shown.index("</form>", shown.index("of-history")) :]) == numbers, query
        assert ("None of your answers match." in shown) is (numbers == []), query


def test_a_search_reads_no_more_than_the_latest_answers(make_task, ann, monkeypatch):
    task = make_task([DISPUTED] * 4)
    for _ in range(4):
        answered(ann, task)
    monkeypatch.setattr("annotate.figures.personal_progress.SEARCHED", 2)
    assert answers_by(ann, words="text").count() == 2


# --- what adjudicators decided otherwise


def test_what_one_found_disturbing_is_listed_without_its_text_and_tells_nobody_else_that_it_was_flagged(
    make_task, ann, person, as_ann
):
    task = make_task([{"votes": DISPUTED, "text": "ein Satz zum Wegsehen"}], redundancy=2)
    bea, *_ = (person(name, "de", takes_disturbing=True) for name in ("bea", "cem", "dan"))
    answered(bea, task)

    def row_of_bea():
        return re.search(r"<tbody>.*?</tbody>", signed_in(bea).get("/history/").text, re.S)[0].split("</td>")[1]

    before = row_of_bea()
    with acting(ann.user, task.name) as permit:
        flags.flag(permit, take(ann, task).pk, "disturbing")
    page = as_ann.get("/history/").text
    assert "hidden because you found it disturbing" in page
    assert "flagged as disturbing" in page
    assert "ein Satz zum Wegsehen" not in page
    assert "ein Satz zum Wegsehen" in row_of_bea() == before


@pytest.fixture
def overruled(make_task, ann, person):
    """A task in which an adjudicator disagreed with Ann."""
    task = make_task([DISPUTED] * 4, redundancy=2, on_conflict="ADJUDICATION")
    bea, ada = person("bea", "de"), person("ada", adjudicates=True)
    for label in ("de", "en"):
        answered(ann, task, label)
        answered(bea, task, "fr")
    for unit in task.units.filter(stage="ADJUDICATION"):
        settle(ada, unit, "en")
    return task


def test_what_was_decided_otherwise_is_told_with_its_reason_once_the_task_is_closed(overruled, as_ann):
    assert "An adjudicator decided" not in as_ann.get("/history/").text
    assert "None of your answers" in as_ann.get("/history/?differs=on").text
    Task.objects.update(is_open=False)
    page = as_ann.get("/history/").text
    assert page.count("An adjudicator decided: English.") == 1
    assert "I read the language" in page
    assert "Bea" not in page
    assert "ada" not in words(page)
    assert texts(as_ann.get("/history/?differs=on").text) == ["1"]


def test_what_was_decided_is_held_against_what_one_said_last(overruled, ann, as_ann):
    """The adjudicator's decision is compared with the last version of a changed answer."""
    agreed, differed = (Judgment.objects.get(annotator=ann, label=label) for label in ("en", "de"))
    change(ann, overruled, agreed.pk, Answer("he"))
    change(ann, overruled, differed.pk, Answer("en"))
    Task.objects.update(is_open=False)
    page = as_ann.get("/history/").text
    assert page.count("An adjudicator decided: English.") == 1
    [row] = [row for row in re.findall(r"<tr>.*?</tr>", page, re.S) if "An adjudicator decided" in row]
    assert "Hebrew" in row
    assert texts(as_ann.get("/history/?differs=on").text) == texts(row)


def test_nothing_is_told_of_what_was_hidden_among_the_work_even_of_a_closed_task(overruled, as_ann):
    overruled.units.update(known_answer="en")
    Task.objects.update(is_open=False)
    for address in ("/history/", "/history/?differs=on"):
        assert "An adjudicator decided" not in as_ann.get(address).text


def test_while_a_task_is_open_adjudicated_and_other_answers_look_alike(overruled, as_ann):
    """Otherwise, the page would reveal which people are checked and which units are audited."""
    page = as_ann.get("/history/").text
    rows = re.findall(r"<tr>.*?</tr>", page[page.index("<tbody>") :], re.S)
    plain = {re.sub(r'\d+|German|English|value="\w{64}"', "", row) for row in rows}
    assert len(rows) == 2
    assert len(plain) == 1
