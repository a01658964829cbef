"""Figures of a task for managers: progress, pace, people, tests, known answers."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from django.utils import timezone

from annotate.core import pause_rule
from annotate.figures import annotator_statistics, task_statistics
from annotate.figures.queue_states import queue_states
from annotate.kinds import Answer
from annotate.models import Guidelines, Qualification, Task
from annotate.work.answer_changes import undo
from annotate.work.closure import close, reopen
from annotate.work.interventions import lift, pause, void
from annotate.work.judgments import judge
from annotate.work.permit import current_pause
from annotate.work.queue import release, take
from tests.annotate.acts import work_through
from tests.annotate.attacks import run_out
from tests.annotate.conftest import AGREED, DISPUTED
from tests.annotate.manager_pages.acts import TESTED, at, by, work

NOW = datetime(2026, 3, 29, 12, 30, tzinfo=UTC)


def person_in(task, annotator):
    return annotator_statistics.person(task, annotator, annotator_statistics.label_counts(task))


# --- progress


def test_units_are_counted_by_language_and_stage_and_the_answers_that_are_missing(make_records_task, person):
    task = make_records_task(count=3, languages=("en", "de"), gold={"queue": ["1", "0"]}, redundancy=3)
    for name in ("ann", "bea", "cem", "dan"):
        work(person(name, "en"), task, units=1)
    progress = task_statistics.progress(task)
    english, german = by(progress["languages"])["en"], by(progress["languages"])["de"]
    assert (english["units"], english["done"], english["LABELLED"], english["QUEUED"]) == (3, 1, 1, 2)
    assert (english["answers"], english["missing"]) == (1, 5)
    assert (german["units"], german["done"], german["missing"]) == (3, 0, 9)
    assert (progress["all"]["units"], progress["all"]["missing"]) == (6, 14)


def test_hidden_gold_answers_are_no_progress(make_records_task, ann):
    ann.languages.create(language="en")
    task = make_records_task(count=4, gold={"queue": ["1", "0"] * 2}, gold_share=0.5, redundancy=1)
    assert len(work(ann, task)) > 4
    progress = task_statistics.progress(task)["all"]
    assert (progress["units"], progress["done"]) == (4, 4)
    assert task_statistics.pace(task)["answers"] == annotator_statistics.people(task)[0]["answers"] == 4


def test_items_are_counted_under_the_language_agreed_on_queued_for_or_asked_about(make_task, ann):
    same = {"votes": AGREED, "text": "one text for two posts"}
    task = make_task([AGREED, AGREED, DISPUTED, same, same])
    work(ann, task, "de")
    [row] = task_statistics.progress(task)["languages"]
    stages = ("units", "AGREED", "LABELLED", "COPIED")
    assert (row["language"], *(row[stage] for stage in stages)) == ("de", 5, 3, 1, 1)
    task = make_task([DISPUTED] * 3, name="asking", asked="de")
    work(ann, task, "de", units=2)
    [row] = task_statistics.progress(task)["languages"]
    assert (row["language"], row["units"], row["done"], row["missing"]) == ("de", 3, 2, 1)


def test_a_copy_is_done_when_the_unit_is_whose_label_it_takes(make_task, ann):
    task = make_task([AGREED, *[{"votes": DISPUTED, "text": "one text for three posts"}] * 3])

    def counts():
        row = task_statistics.progress(task)["all"]
        [overall] = task_statistics.overview()
        assert (overall["units"], overall["done"]) == (row["units"], row["done"])
        return row["units"], row["done"], row["waiting_copies"]

    assert counts() == (4, 1, 2)
    assert close(task)["unfinished"] == 3
    reopen(task)
    work(ann, task, "de")
    assert counts() == (4, 4, 0)


# --- pace and times


def test_answers_are_counted_by_the_hour_of_the_last_day_where_the_installation_is(make_records_task, person, settings):
    task, ann = make_records_task(count=5, redundancy=1), person("ann", "en")
    made = work(ann, task)
    for judgment, ago in zip(made, (0, 31, 50, 23 * 60, 25 * 60), strict=True):
        at(judgment, NOW - timedelta(minutes=ago))
    settings.TIME_ZONE = "Asia/Kolkata"
    pace = task_statistics.pace(task, NOW)
    hours = {f"{row['at']:%d %H:%M}": row["answers"] for row in pace["last_day"]}
    # Half past twelve in London's winter is six in the evening there.
    assert len(hours) == 24
    assert list(hours)[-1] == "29 18:00"
    assert {hour: count for hour, count in hours.items() if count} == {"28 19:00": 1, "29 17:00": 2, "29 18:00": 1}
    assert (pace["answers"], pace["today"]) == (5, 4)


def test_an_hour_that_the_clock_skips_or_has_twice_is_an_hour(make_records_task, person, settings):
    task = make_records_task(count=3, redundancy=1)
    for judgment, hour in zip(work(person("ann", "en"), task), (0, 1, 2), strict=True):
        at(judgment, datetime(2026, 10, 25, hour, 10, tzinfo=UTC))
    settings.TIME_ZONE = "Europe/Berlin"
    spring = [row["at"] for row in task_statistics.pace(task, NOW)["last_day"]]
    autumn = [row["at"] for row in task_statistics.pace(task, datetime(2026, 10, 25, 12, tzinfo=UTC))["last_day"]]
    assert "02:00" not in {f"{moment:%H:%M}" for moment in spring}
    assert [f"{moment:%H:%M}" for moment in autumn].count("02:00") == 2
    for moments in (spring, autumn):
        in_utc = [moment.astimezone(UTC) for moment in moments]
        assert {later - earlier for earlier, later in pairwise(in_utc)} == {timedelta(hours=1)}
    since = task_statistics.pace(task, NOW)["since"]
    assert [(f"{row['at']:%H:%M}", row["answers"]) for row in since] == [("02:00", 1), ("02:00", 1), ("03:00", 1)]


@pytest.mark.parametrize(("days", "cut", "columns"), [(0.2, "hour", 6), (9, "day", 10), (200, "week", 29)])
def test_since_the_beginning_is_cut_into_hours_days_or_weeks(make_records_task, person, settings, days, cut, columns):
    task = make_records_task(count=2, redundancy=1)
    first, last = work(person("ann", "en"), task)
    at(last, NOW)
    at(first, NOW - timedelta(days=days))
    settings.TIME_ZONE = "Europe/Berlin"
    pace = task_statistics.pace(task, NOW)
    assert (pace["cut"], len(pace["since"])) == (cut, columns)
    assert [row["answers"] for row in (pace["since"][0], pace["since"][-1])] == [1, 1]
    assert sum(row["answers"] for row in pace["since"]) == 2


def test_what_was_taken_back_or_voided_is_no_answer(make_records_task, person, manager):
    task = make_records_task(count=3, redundancy=1)
    ann, bea = person("ann", "en"), person("bea", "en")
    work(ann, task, units=2)
    undo(ann, task)
    assert task_statistics.pace(task)["answers"] == 1
    void(ann, task, by=manager, reason="sleeps")
    assert task_statistics.pace(task)["answers"] == 0
    work(bea, task, units=1)
    rows = by(annotator_statistics.people(task), "name")
    assert [rows["ann"][key] for key in ("answers", "taken_back", "voided")] == [0, 1, 1]
    assert rows["bea"]["answers"] == 1


def test_times_are_quartiles_by_language_and_by_annotator(make_records_task, person):
    task = make_records_task(count=5, languages=("en", "de"), redundancy=1)
    ann, bea = person("ann", "en"), person("bea", "de")
    for annotator in (ann, bea):
        for number, judgment in enumerate(work(annotator, task), 1):
            at(judgment, NOW, active_seconds=number if annotator == ann else None)
    times = task_statistics.times(task)
    assert times["languages"] == [{"language": "en", "count": 5, "quartiles": [2.0, 3.0, 4.0]}]
    assert times["annotators"] == [{"annotator": ann.pk, "count": 5, "quartiles": [2.0, 3.0, 4.0]}]
    assert times["all"]["count"] == 5
    assert task_statistics.times(make_records_task(name="other"))["all"] is None


# --- people, pauses, tests, known answers


def test_each_annotator_is_shown_with_gold_answers_and_where_they_may_work(make_records_task, person, manager):
    task = make_records_task(count=6, languages=("en", "de"), gold={"queue": ["1", "0"] * 2}, gold_share=0.5)
    ann, bea = person("ann", "en de"), person("bea", "en")
    work(ann, task)
    work(bea, task, units=2)
    pause(bea, task, by=manager, reason="asks to stop")
    rows = by(annotator_statistics.people(task), "name")
    gold = rows["ann"]["known"]
    assert (gold["accuracy"]["value"], gold["asked"]) == (1.0, 8)
    assert (rows["ann"]["may"], rows["bea"]["may"]) == (["de", "en"], [])
    assert (rows["ann"]["left"], rows["bea"]["left"]) == ({"de": 0, "en": 0}, {})
    assert rows["ann"]["last"] is not None


def test_it_is_counted_how_many_units_each_person_let_go_of(make_records_task, person):
    task = make_records_task(count=30, gold={"queue": ["1", "0"] * 4}, gold_share=0.5)
    ann, bea, cem = (person(name, "en") for name in ("ann", "bea", "cem"))
    for _ in range(3):
        release(ann, take(ann, task).pk)
    judge(ann, take(ann, task).pk, Answer("1"))
    run_out(take(bea, task))
    take(bea, task)
    take(cem, task)
    rows = by(annotator_statistics.people(task), "name")
    assert {name: (row["given_back"], row["ran_out"]) for name, row in rows.items()} == {"ann": (3, 0), "bea": (0, 1)}


def test_a_pause_is_new_until_it_is_lifted_a_manager_has_said_why_it_stays_or_the_task_is_closed(
    make_records_task, person, manager, monkeypatch
):
    monkeypatch.setattr(pause_rule, "LEAST", 2)
    task = make_records_task(count=8, gold={"queue": ["1", "0"] * 2}, gold_share=0.5)
    pause(person("eve", "en"), task, by=manager, reason="a break")  # by a manager, so it is not news
    people = [person(name, "en") for name in ("ann", "bea", "cem", "dan")]
    for annotator in people:
        work_through(annotator, task, lambda lease: "0" if lease.unit.known_answer == "1" else "1")
    newly_paused = lambda: task_statistics.overview()[0]["newly_paused"]  # noqa: E731
    assert newly_paused() == 4
    lift(current_pause(people[0], task), by=manager)
    assert newly_paused() == 3
    pause(people[1], task, by=manager, reason="asked him")
    assert newly_paused() == 2
    void(people[2], task, by=manager, reason="random")
    assert newly_paused() == 1
    Task.objects.update(is_open=False)
    assert newly_paused() == 0
    rows = by(annotator_statistics.pauses(task), "name")
    assert [(rows[name]["running"], rows[name]["reason"]) for name in ("ann", "bea", "cem")] == [
        (False, ""),
        (True, "asked him"),
        (True, "random"),
    ]
    assert (rows["ann"]["right"], rows["ann"]["asked"], rows["ann"]["lifted_by"]) == (0, 2, "manager")


def test_tests_are_told_by_annotator_and_language_under_the_guidelines_that_hold(
    make_records_task, person, manager, tried
):
    task = make_records_task(languages=("en", "de"), **TESTED)
    ann, bea, cem, dan = (person(name, "en de") for name in ("ann", "bea", "cem", "dan"))
    tried(ann, task, right=3, passed=False)
    tried(ann, task, right=5, number=2)
    tried(bea, task, right=2, passed=False)
    tried(bea, task, right=1, passed=False, number=2)
    tried(cem, task, "de", finished=False)
    Qualification.objects.create(
        annotator=dan, task=task, language="de", major=1, granted_by=manager, at=timezone.now()
    )
    tests = task_statistics.tests(task)
    keys = ("tries", "right", "asked", "qualified", "granted", "open", "left")
    assert {(row["name"], row["language"]): [row[key] for key in keys] for row in tests["annotators"]} == {
        ("ann", "en"): [2, 5, 5, True, False, False, 0],
        ("bea", "en"): [2, 2, 5, False, False, False, 0],
        ("cem", "de"): [1, None, 0, False, False, True, 1],
        ("dan", "de"): [0, None, 0, True, True, False, 0],
    }
    languages, keys = by(tests["languages"]), ("took", "passed", "granted", "failed", "tests")
    assert [languages["en"][key] for key in keys] == [2, 1, 0, 1, 4]
    assert [languages["de"][key] for key in keys] == [1, 0, 1, 0, 0]
    assert languages["en"]["share"]["value"] == 0.25
    Guidelines.objects.create(task=task, language="en", major=2, text="Read again.")
    assert "en" not in {row["language"] for row in task_statistics.tests(task)["annotators"]}


def test_a_known_answer_that_everybody_fails_is_doubtful_once_they_are_three(make_records_task, person, tried):
    task = make_records_task(count=6, gold={"test": ["1"] * 5, "queue": ["1", "0"]}, gold_share=0.5, test_items=5)
    for name in ("ann", "bea", "cem"):
        assert not any(row["doubtful"] for row in task_statistics.gold_answers(task))
        annotator = person(name, "en")
        tried(annotator, task, right=4)
        work_through(annotator, task, "1")
    rows = task_statistics.gold_answers(task)
    assert [(row["purpose"], row["label"], row["said"], row["asked"], row["right"]) for row in rows[:2]] == [
        ("test", "1", "0", 3, 0),
        ("queue", "0", "1", 3, 0),
    ]
    assert [row["doubtful"] for row in rows] == [True] * 2 + [False] * 5


def test_what_one_person_says_is_told_beside_what_everybody_says(make_records_task, person):
    task = make_records_task(count=4, gold={"queue": ["1", "0"]}, gold_share=0.5, redundancy=2)
    ann, bea = person("ann", "en"), person("bea", "en")
    for annotator, label in ((ann, "1"), (bea, "0")):
        work_through(annotator, task, label)
    figures = person_in(task, ann)
    assert {row["label"]: (row["own"], row["all"]) for row in figures["labels"]} == {"1": (1.0, 0.5), "0": (0.0, 0.5)}
    gold = sorted((row["label"], row["said"], row["right"]) for row in figures["known"])
    assert gold == [("0", "1", False), ("1", "1", True)]
    nothing_said = [{"label": row["label"], "own": 0.0, "all": 0.5} for row in figures["labels"]]
    assert person_in(task, person("cem", "en")) == {"labels": nothing_said, "known": []}


# --- queries and size


@pytest.mark.parametrize("count", [10, 60])
def test_the_number_of_queries_does_not_depend_on_the_number_of_units(
    make_records_task, person, tried, judged, django_assert_max_num_queries, count
):
    gold = {"test": ["1"] * 5, "queue": ["1", "0"] * 4}
    task = make_records_task(count=count, languages=("en", "de"), gold=gold, test_items=5)
    people = [person(f"p{number}", "en de") for number in range(4)]
    for annotator in people:
        tried(annotator, task)
    for unit in task.units.all():
        for annotator in people[: unit.pk % 4]:
            judged(annotator, unit, "1", active_seconds=3.0)
    for figures, most in (
        *((task_statistics.progress, 2), (task_statistics.pace, 3), (task_statistics.times, 1)),
        *((annotator_statistics.people, 17), (annotator_statistics.pauses, 1)),
        *((task_statistics.tests, 4), (task_statistics.gold_answers, 3)),
    ):
        with django_assert_max_num_queries(most):
            figures(task)
    with django_assert_max_num_queries(13):
        queue_states(task)
    with django_assert_max_num_queries(5):
        task_statistics.overview()
