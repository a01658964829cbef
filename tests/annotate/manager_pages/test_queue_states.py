"""The states of a task's queues, their reasons, and who waits for work."""

from datetime import timedelta

from django.utils import timezone

from annotate.core import stages
from annotate.figures.queue_states import queue_states, queue_states_of
from annotate.kinds import Answer
from annotate.models import Guidelines, Judgment, Task
from annotate.work import accounts
from annotate.work.adjudication import settle
from annotate.work.interventions import pause
from annotate.work.judgments import skip
from annotate.work.queue import take
from tests.annotate.conftest import DISPUTED
from tests.annotate.manager_pages.acts import TESTED, by, work


def state(task, queue="en"):
    row = by(queue_states(task)["queues"], "queue")[queue]
    return row["state"], row["said"]


def test_a_queue_that_nobody_reads_that_is_worked_on_or_of_a_closed_task(make_records_task, person):
    task = make_records_task(count=2, redundancy=1)
    person("ann", "en:2")
    assert state(task) == (
        "unread",
        "No active annotator reads English at level 4 or better. Invite a reader, or add the language to an annotator.",
    )
    bea = person("bea", "en")
    assert state(task) == ("going", "1 person can work on 2 items. Answers needed: 2.")
    accounts.set_active([bea], False)
    assert state(task)[0] == "unread"
    Task.objects.update(is_open=False)
    task.refresh_from_db()
    assert state(task) == (
        "closed",
        "The task is closed, so annotators do not receive the 2 items that wait. Reopen the task in its settings.",
    )


def test_a_queue_whose_readers_have_not_passed_the_test(make_records_task, person, tried):
    task = make_records_task(**TESTED, redundancy=1)
    ann, _ = person("ann", "en"), person("bea", "en")
    tried(ann, task, right=1, passed=False)
    assert state(task) == (
        "untested",
        "2 people read English, but nobody has passed the test yet. Ask them to take it.",
    )
    tried(ann, task, number=2)
    assert state(task)[0] == "going"
    Guidelines.objects.create(task=task, language="en", major=2, text="Read again.")
    assert state(task)[0] == "untested"


def test_a_queue_in_which_all_are_paused(make_records_task, person, manager):
    task = make_records_task(count=2, redundancy=1)
    pause(person("ann", "en"), task, by=manager, reason="a break")
    assert state(task) == (
        "paused",
        "Everybody who reads English is paused (1). Lift a pause, or invite other readers.",
    )


def test_a_queue_that_all_have_judged_already(make_records_task, person):
    task = make_records_task(count=2, redundancy=3)
    for name in ("ann", "bea"):
        work(person(name, "en"), task)
    assert state(task) == (
        "judged",
        "2 items need 2 more answers, but each of the 2 people who can work has already answered them, or does not "
        "accept disturbing items. Invite another person.",
    )
    person("cem", "en")
    assert state(task)[0] == "going"


def test_a_queue_of_which_what_is_left_is_open_with_somebody(make_records_task, person):
    task = make_records_task(count=1, redundancy=1)
    ann, bea = person("ann", "en"), person("bea", "en")
    lease = take(ann, task)
    assert state(task) == ("leased", "The remaining 1 item is open with annotators now, for at most 10 minutes.")
    assert by(queue_states(task)["idle"], "name")["bea"]["said"].startswith("The remaining items are open with")
    lease.expires_at = timezone.now() - timedelta(seconds=1)
    lease.save()
    assert state(task)[0] == "going"
    assert take(bea, task)


def test_a_queue_with_too_few_people_for_some_of_its_units(make_records_task, person):
    task = make_records_task(count=2, redundancy=3)
    for name in ("ann", "bea"):
        person(name, "en")
    assert state(task) == (
        "lacking",
        "All 2 items need answers from more people than can work here (2). Invite more.",
    )
    cem, dan = person("cem", "en"), person("dan", "en")
    assert state(task)[0] == "going"
    skip(cem, take(cem, task).pk)
    assert state(task)[0] == "going"
    skip(dan, take(dan, task).pk)
    assert state(task)[1].startswith("1 of the 2 items need")


def test_one_unit_one_answer_and_one_person_are_told_in_the_singular(make_records_task, person):
    task = make_records_task(count=1, redundancy=2)
    ann = person("ann", "en")
    assert state(task) == (
        "lacking",
        "1 item needs answers from more people than can work here (1). Invite more.",
    )
    work(ann, task)
    assert state(task) == (
        "judged",
        "1 item needs 1 more answer, but the only person who can work has already answered it, or does not accept "
        "disturbing items. Invite another person.",
    )
    person("bea", "en")
    assert state(task)[1].endswith("can work on 1 item. Answers needed: 1.")


def test_a_queue_that_is_done_or_waits_for_an_adjudicator_whatever_gold_is_hidden_in_it(make_records_task, person):
    task = make_records_task(count=2, task_type="web_ranking", on_conflict="ADJUDICATION")
    people = [person(name, "en") for name in ("ann", "bea", "cem")]
    for annotator, label in zip(people, "420", strict=True):
        work(annotator, task, label)
    assert state(task) == ("done", "Done, except for 2 items in adjudication.")
    ada = person("ada", adjudicates=True)
    for unit in task.units.filter(stage=stages.ADJUDICATION):
        settle(ada, unit.pk, Answer("3", "read the page"))
    assert state(task) == ("done", "Done.")
    task = make_records_task(count=2, gold={"queue": ["1", "0"] * 4}, gold_share=0.2, redundancy=1, name="gold")
    work(people[0], task)
    assert state(task) == ("done", "Done.")


def test_stuck_queues_come_first_and_are_counted(make_records_task, make_task, person):
    task = make_records_task(count=3, languages=("de", "en", "fr"), redundancy=1)
    person("ann", "de")
    states = queue_states(task)
    assert ([row["queue"] for row in states["queues"]], states["stuck"]) == (["en", "fr", "de"], 2)
    [row] = queue_states(make_task([("fr", "fr en", "en")] * 2))["queues"]
    assert (row["queue"], row["state"]) == ("fr", "unread")


def test_the_queues_of_several_tasks_are_told_apart_and_read_together(
    make_records_task, make_task, person, manager, tried, judged, django_assert_max_num_queries
):
    gold = {"test": ["1"] * 5}
    ann, bea = person("ann", "en de"), person("bea", "en")
    crowd = make_records_task(count=4, name="crowd", languages=("en", "de"), gold=gold, test_items=5)
    other = make_records_task(count=2, name="other", languages=("en", "fr"), redundancy=1)
    posts = make_task([DISPUTED, DISPUTED], name="posts")
    tried(ann, crowd)
    for unit in crowd.units.filter(language="en")[:2]:
        judged(ann, unit, "1")
    pause(bea, other, by=manager, reason="a break")
    take(ann, posts)
    tasks = [crowd, other, posts]
    alone = {task.pk: queue_states(task) for task in tasks}
    with django_assert_max_num_queries(12):
        together = queue_states_of(tasks)
    for task in tasks:
        assert alone[task.pk] == {**together[task.pk], "idle": alone[task.pk]["idle"]}
    states = {task.name: {row["queue"]: row["state"] for row in alone[task.pk]["queues"]} for task in tasks}
    assert states == {
        "crowd": {"en": "lacking", "de": "untested"},
        "other": {"en": "going", "fr": "unread"},
        "posts": {"de": "going"},
    }
    assert queue_states_of([]) == {}


# --- who waits for work


def test_who_has_judged_all_that_waits_is_idle_and_was_at_work_just_now(make_records_task, person):
    task = make_records_task(count=2, languages=("en", "de"), redundancy=3)
    ann, bea = person("ann", "en"), person("bea", "en de")
    work(ann, task)
    judged_all = ("ann", True, "They have answered all waiting items in English.")
    assert idle(task) == [judged_all]
    Judgment.objects.update(answered_at=timezone.now() - timedelta(hours=2), shown_at=None)
    assert [at_work for _, at_work, _ in idle(task)] == [False]
    assert take(bea, task)


def idle(task):
    return [(row["name"], row["at_work"], row["said"]) for row in queue_states(task)["idle"]]


def test_who_is_qualified_where_nothing_waits_is_idle(make_records_task, person, tried):
    task = make_records_task(languages=("en", "de"), count=1, **TESTED, redundancy=1)
    ann, bea = person("ann", "en"), person("bea", "en de")
    for annotator in (ann, bea):
        tried(annotator, task)
    work(bea, task)
    nothing = "No items are waiting in their languages."
    assert idle(task) == [("bea", True, nothing), ("ann", False, nothing)]
