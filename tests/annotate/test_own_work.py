"""What a person is told of their own work: the day and the week, a goal, a word after long work, and their history."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotate.figures.personal_progress import is_long, minutes, own_answers, without_pause, worked
from annotate.kinds import Answer
from annotate.models import Judgment, Preferences, Task
from annotate.work import flags
from annotate.work.answer_changes import change
from annotate.work.judgments import judge, skip
from annotate.work.permit import acting, midnight
from annotate.work.queue import take
from tests.annotate.acts import settle
from tests.annotate.conftest import DISPUTED
from tests.annotate.test_for_everybody import wrong


@pytest.fixture
def ann(person):
    return person("ann", "de")


@pytest.fixture
def as_ann(client, ann):
    client.force_login(ann.user)
    return client


def answered(ann, task, label="de", comment="", **fields):
    """An answer of a person, as if it had been given at another time."""
    judgment = judge(ann, take(ann, task).pk, Answer(label, comment=comment))
    Judgment.objects.filter(pk=judgment.pk).update(**fields)
    judgment.refresh_from_db()
    return judgment


def at(when, seconds=0.0):
    return {"answered_at": when, "shown_at": when - timedelta(seconds=seconds), "active_seconds": seconds}


def texts(html):
    return re.findall(r"number (\d+)", html)


def words(html):
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", html))


# --- the day and the week


def test_answers_and_active_time_of_today_and_this_week_are_told(make_task, ann, as_ann):
    task, today = make_task([DISPUTED] * 5), midnight()
    monday = today - timedelta(days=today.weekday())
    answered(ann, task, **at(today, 60))
    answered(ann, task, **at(monday, 3600))
    answered(ann, task, **at(monday - timedelta(microseconds=1), 7000))
    judgment = skip(ann, take(ann, task).pk)
    Judgment.objects.filter(pk=judgment.pk).update(**at(today, 30))
    found = worked(ann)
    if monday == today:
        assert (found.answered_today, found.seconds_today) == (2, 3690.0)
    else:
        assert (found.answered_today, found.seconds_today) == (1, 90.0)
        assert "Today 1 answer in 1 min" in words(as_ann.get("/").text)
    assert (found.answered_this_week, found.seconds_this_week) == (2, 3690.0)
    assert "This week 2 answers in 1 h 1 min" in words(as_ann.get("/").text)


def test_what_was_taken_back_or_voided_and_what_others_did_does_not_count(make_task, ann, person):
    task = make_task([DISPUTED] * 2)
    answered(person("bea", "de"), task)
    answered(ann, task, voided_at=timezone.now())
    assert worked(ann).answered_this_week == 0


def test_an_own_goal_is_told_with_a_bar_and_nobody_has_one_unasked(make_task, ann, as_ann):
    task = make_task([DISPUTED] * 2)
    answered(ann, task)
    assert "<progress" not in as_ann.get("/").text
    as_ann.post("/account/preferences/", {"goal": "40"})
    page = as_ann.get("/").text
    assert '<progress id="goal" value="1" max="40">' in page
    assert "1 of the 40 answers that you set yourself for today" in words(page)


def test_what_one_did_is_read_by_an_index_in_one_statement_whatever_waits(make_task, ann):
    make_task([DISPUTED] * 30)
    with CaptureQueriesContext(connection) as found:
        worked(ann)
    assert len(found) == 1
    sql = found[0]["sql"]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {'QUERY PLAN ' if connection.vendor == 'sqlite' else ''}{sql}")
        plan = str(cursor.fetchall())
    assert connection.vendor != "sqlite" or "own_answers" in plan


# --- a word after long work


def worked_for(ann, task, lasts, gap=4):
    """One answer each few minutes, the last one just now."""
    now = timezone.now()
    for ago in range(lasts, -1, -gap):
        answered(ann, task, **at(now - timedelta(minutes=ago), 30))
    return now


def test_after_fifty_minutes_without_a_pause_of_five_a_quiet_word_is_said(make_task, ann, as_ann):
    task = make_task([DISPUTED] * 20)
    worked_for(ann, task, 52)
    assert minutes(without_pause(ann)) == 52
    sentence = "You have been at work for 52 minutes without a pause."
    for address in ("/", "/tasks/task/", "/rest/"):
        assert sentence in words(as_ann.get(address).text)
    reply = as_ann.post("/tasks/task/start/", headers={"HX-Request": "true"})
    assert sentence not in words(reply.text)


def test_whoever_has_paused_or_rests_is_told_nothing(make_task, ann, as_ann):
    task, now = make_task([DISPUTED] * 40), timezone.now()
    for ago in [*range(60, 30, -3), *range(24, -1, -3)]:
        answered(ann, task, **at(now - timedelta(minutes=ago), 10))
    assert not is_long(without_pause(ann))
    assert as_ann.get("/rest/").text.strip() == ""
    worked_for(ann, task, 55)
    assert is_long(without_pause(ann))
    assert not is_long(without_pause(ann, timezone.now() + timedelta(minutes=5, seconds=1)))


def test_a_long_document_is_no_pause(make_task, ann):
    task, now = make_task([DISPUTED] * 3), timezone.now()
    answered(ann, task, **at(now - timedelta(minutes=30), 25 * 60))
    answered(ann, task, **at(now, 29 * 60))
    assert minutes(without_pause(ann, now)) == 55


# --- the first page


def test_continue_comes_first_has_the_focus_and_goes_on_with_what_one_used_last(make_task, ann, as_ann):
    tasks = [make_task([DISPUTED] * 3, name=name, title=f"Posts of {name}?") for name in ("may", "june", "july")]
    answered(ann, tasks[0])
    page = as_ann.get("/").text
    assert page.count("autofocus") == 1
    first = page[page.index('<article class="task first"') :]
    assert re.search(r'action="/tasks/may/start/".*?<button class="primary" autofocus>Continue', first, re.S)
    assert page.count("Continue") == 1
    assert "<small>" not in page


@pytest.mark.django_db(transaction=True)
def test_enter_on_the_first_page_goes_on(new_page, make_task, person):
    make_task([DISPUTED] * 3)
    page = new_page(user=person("ann", "de").user)
    page.goto("/")
    page.wait_for_selector(".primary:focus")  # the browser gives it after the page's load
    page.keyboard.press("Enter")
    page.wait_for_selector("#post")
    assert page.url.endswith("/tasks/task/")


def test_what_has_nothing_for_one_is_folded_and_tests_come_before_it(make_task, make_records_task, as_ann):
    make_task([DISPUTED] * 3, name="work")
    make_task([DISPUTED] * 3, name="more", title="More")
    make_task([], name="empty", title="Empty")
    gold = {"practice": ["1"], "test": ["1"] * 2}
    make_records_task(gold=gold, test_items=2, title="To be tested", languages=["de"])
    page = re.sub("</?bdi>", "", as_ann.get("/").text)
    assert re.findall(r"<h2>(.*?)</h2>", page)[1::2] == ["To be tested", "Empty"]
    assert page.index('<details class="idle">') > page.index("To be tested")
    assert page.index("<h2>Empty") > page.index('<details class="idle">')
    assert "1 task in which nothing waits for you" in page


# --- history


def test_history_lists_all_days_and_tasks_the_newest_first(make_task, ann, as_ann, person):
    tasks = [make_task([DISPUTED] * 3, name=name, title=f"Posts of {name}?") for name in ("may", "june")]
    answered(ann, tasks[0], **at(midnight() - timedelta(days=40)))
    answered(ann, tasks[1], label="en")
    answered(person("bea", "de"), tasks[1], label="fr")
    page = as_ann.get("/history/").text
    assert re.findall(r"<h2>(\d{4}-\d\d-\d\d)</h2>", page) == [
        f"{timezone.localdate()}",
        f"{timezone.localdate(midnight() - timedelta(days=40))}",
    ]
    assert re.findall(r'<td class="written">\s*<b>(\w+)</b>', page) == ["English", "German"]
    assert "French</b>" not in page
    assert as_ann.get("/tasks/may/answers/").text.count("<b>German</b>") == 1


def test_history_is_searched_and_filtered_by_task_answer_and_comment(make_task, ann, as_ann):
    task, other = make_task([DISPUTED] * 4), make_task([DISPUTED], name="other")
    answered(ann, task, "de", comment="odd")
    answered(ann, task, "en")
    skip(ann, take(ann, task).pk)
    answered(ann, other, "de")
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
    assert "None of your answers is like that." in as_ann.get("/history/?q=nothing").text


def test_a_search_reads_no_more_than_the_latest_answers(make_task, ann, monkeypatch):
    task = make_task([DISPUTED] * 4)
    for _ in range(4):
        answered(ann, task)
    monkeypatch.setattr("annotate.figures.personal_progress.SEARCHED", 2)
    assert own_answers(ann, words="text").count() == 2


# --- what adjudicators decided otherwise


def test_what_one_found_disturbing_is_listed_without_its_text_and_tells_nobody_else_that_it_was_flagged(
    make_task, ann, person, as_ann
):
    task = make_task([{"votes": DISPUTED, "text": "ein Satz zum Wegsehen"}], redundancy=2)
    bea = person("bea", "de", takes_disturbing=True)
    for name in ("cem", "dan"):
        person(name, "de", takes_disturbing=True)
    answered(bea, task)
    others = Client()
    others.force_login(bea.user)
    before = re.search(r"<tbody>.*?</tbody>", others.get("/history/").text, re.S)[0].split("</td>")[1]
    with acting(ann.user, task.name) as permit:
        flags.flag(permit, take(ann, task).pk, "disturbing")
    page = as_ann.get("/history/").text
    assert "hidden, since you found it disturbing" in page
    assert "passed on as disturbing" in page
    assert "ein Satz zum Wegsehen" not in page
    after = re.search(r"<tbody>.*?</tbody>", others.get("/history/").text, re.S)[0].split("</td>")[1]
    assert "ein Satz zum Wegsehen" in after
    assert after == before


@pytest.fixture
def overruled(make_task, ann, person):
    """A task in which an adjudicator decided otherwise than Ann."""
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
    """Of an answer that was changed, whichever of the two it is that the adjudicator took."""
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
    """Else who is checked and what was audited would be told."""
    page = as_ann.get("/history/").text
    rows = re.findall(r"<tr>.*?</tr>", page[page.index("<tbody>") :], re.S)
    plain = {re.sub(r'\d+|German|English|value="\w{64}"', "", row) for row in rows}
    assert len(rows) == 2
    assert len(plain) == 1


# --- for everybody


@pytest.mark.django_db(transaction=True)
def test_home_is_for_everybody_with_a_goal_and_after_long_work(new_page, make_task, person):
    ann, task = person("ann", "de"), make_task([DISPUTED] * 20)
    make_task([], name="empty", title="Empty")
    Preferences.objects.create(user=ann.user, goal=40)
    worked_for(ann, task, 52)
    page = new_page(user=ann.user)
    for address in ("/", "/history/"):
        page.goto(address)
        assert wrong(page) == []
