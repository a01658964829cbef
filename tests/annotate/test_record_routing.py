"""Records: several people per unit, adaptive redundancy, the right to work, and what becomes of skips and
differences.
"""

import pytest
from django.core.management import CommandError
from django.urls import reverse
from django.utils import timezone

from annotate.actions.commands import call_command
from annotate.controls.qualification import grant
from annotate.core import stages
from annotate.core.refusals import NotAllowed, WrongStage
from annotate.figures.queue_states import queue_states, queue_table
from annotate.kinds import Answer
from annotate.models import Qualification
from annotate.work import judgments
from annotate.work.answer_changes import undo
from annotate.work.queue import take
from annotate.work.routes import Routes
from tests.annotate.acts import behind_tests, own_progress, queues_of, states, why_empty
from tests.annotate.conftest import DISPUTED

pytestmark = pytest.mark.both_databases


@pytest.fixture
def crowd(person):
    """crowd(3) are three people who read English."""
    return lambda count, languages="en": [person(f"p{n}", languages) for n in range(count)]


def answer(annotator, task, label):
    return judgments.judge(annotator, take(annotator, task).pk, Answer(label))


def skip(annotator, task):
    return judgments.skip(annotator, take(annotator, task).pk)


def the_unit(task):
    return task.units.get(honeypot=False)


def test_a_record_waits_for_the_readers_of_its_language(make_records_task, person):
    task = make_records_task(count=1, languages=["de", "en"])
    hanna, emma = person("hanna", "de"), person("emma", "en")
    assert take(hanna, task).unit.item.language == "de"
    assert take(emma, task).unit.item.language == "en"


def test_three_people_answer_and_two_of_them_decide(make_records_task, crowd):
    task = make_records_task(count=1)
    for annotator, label in zip(crowd(3), ["1", "0", "1"], strict=True):
        answer(annotator, task, label)
    unit = the_unit(task)
    assert (unit.stage, unit.label, unit.judgments.count()) == (stages.LABELLED, "1", 3)


def test_a_fourth_person_is_given_nothing(make_records_task, crowd):
    task = make_records_task(count=1)
    *three, fourth = crowd(4)
    leases = [take(annotator, task) for annotator in three]
    assert None not in leases
    assert take(fourth, task) is None


def test_where_all_differ_the_unit_is_dropped(make_records_task, crowd):
    task = make_records_task("web_ranking", 1)
    for annotator, label in zip(crowd(3), "420", strict=True):
        answer(annotator, task, label)
    assert the_unit(task).stage == stages.DISCARDED


def test_or_adjudicated_as_the_task_says(make_records_task, crowd):
    task = make_records_task("web_ranking", 1, on_conflict=stages.ADJUDICATION)
    for annotator, label in zip(crowd(3), "420", strict=True):
        answer(annotator, task, label)
    assert the_unit(task).stage == stages.ADJUDICATION


def test_or_given_the_grade_in_the_middle(make_records_task, crowd):
    task = make_records_task("web_ranking", 1, aggregation="median")
    for annotator, label in zip(crowd(3), "420", strict=True):
        answer(annotator, task, label)
    assert the_unit(task).label == "2"


def test_where_two_agree_early_the_third_is_not_asked(make_records_task, crowd):
    task = make_records_task(count=1, stop_early=True)
    first, second, third = crowd(3)
    for annotator in (first, second):
        answer(annotator, task, "1")
    assert (the_unit(task).label, take(third, task)) == ("1", None)


def test_and_where_they_differ_the_third_decides(make_records_task, crowd):
    task = make_records_task(count=1, stop_early=True)
    first, second, third = crowd(3)
    answer(first, task, "1")
    held = take(second, task)
    assert take(third, task) is None  # two are asked at first, and nobody's work is wasted
    judgments.judge(second, held.pk, Answer("0"))
    answer(third, task, "0")
    assert (the_unit(task).label, the_unit(task).redundancy) == ("0", 3)


def test_an_answer_that_is_taken_back_takes_back_the_asking_of_others(make_records_task, crowd):
    task = make_records_task(count=1, stop_early=True)
    first, second, third = crowd(3)
    answer(first, task, "1")
    answer(second, task, "0")
    undo(second, task)
    assert the_unit(task).redundancy == 2
    assert take(third, task) is None
    answer(second, task, "1")
    assert the_unit(task).label == "1"


def test_a_skip_gives_the_place_to_another_person(make_records_task, crowd):
    task = make_records_task(count=1)
    first, *three = crowd(4)
    skip(first, task)
    assert take(first, task) is None
    for annotator in three:
        answer(annotator, task, "1")
    assert the_unit(task).label == "1"


def test_too_many_skips_drop_the_unit(make_records_task, crowd):
    task = make_records_task(count=1, skip_limit=2)
    for annotator in crowd(2):
        skip(annotator, task)
    assert the_unit(task).stage == stages.DISCARDED
    assert the_unit(task).transitions.last().event == "exhausted"


def test_that_too_few_people_are_there_yet_drops_nothing(make_records_task, crowd):
    task = make_records_task(count=1)
    (only,) = crowd(1)
    answer(only, task, "1")
    assert the_unit(task).stage == stages.QUEUED


def test_records_without_people_who_have_passed_are_not_sent_on_but_wait(make_records_task, crowd, manager, client):
    task = make_records_task(count=2, test_items=2, gold={"test": ["1", "0"]})
    crowd(3)
    with pytest.raises(CommandError, match="wait for people who read their language and pass the test"):
        call_command("reroute", task.name)
    client.force_login(manager)
    shown = client.get(reverse("manage-settings", args=[task.name])).content.decode()
    assert "send on units of queues" not in shown
    assert set(task.units.values_list("stage", flat=True)) == {stages.QUEUED}


def test_who_has_not_passed_the_test_is_given_nothing(make_records_task, crowd, manager):
    task = make_records_task(count=1, languages=["de", "en"], test_items=2)
    (ann,) = crowd(1, "en de")
    assert take(ann, task) is None
    assert "test" in why_empty(ann, task)
    Qualification.objects.create(
        annotator=ann, task=task, language="de", major=1, granted_by=manager, at=timezone.now()
    )
    assert list(queues_of(ann, task)) == ["de"]
    assert take(ann, task).unit.language == "de"


def test_nor_who_passed_it_under_earlier_guidelines(make_records_task, crowd, manager):
    task = make_records_task(count=1, test_items=2)
    (ann,) = crowd(1)
    Qualification.objects.create(
        annotator=ann, task=task, language="en", major=1, granted_by=manager, at=timezone.now()
    )
    task.guidelines.create(language="en", major=1, minor=1, text="Better said.")
    assert take(ann, task)
    task.guidelines.create(language="en", major=2, minor=0, text="Otherwise.")
    other = make_records_task(count=1, name="other")
    assert queues_of(ann, task) == {}
    assert queues_of(ann, other) == {"en": ["en"]}


def test_each_language_of_records_has_a_queue_and_a_test_of_its_own(make_records_task, person, manager):
    """This holds although posts in them share a queue, since detectors do not tell them apart."""
    task = make_records_task(count=2, languages=("hr", "sr"), test_items=2, gold={"test": ["1", "0"]})
    ann, ben = person("ann", "hr"), person("ben", "hr sr")
    assert set(task.units.values_list("language", "item__language")) == {("hr", "hr"), ("sr", "sr")}
    assert ([each.language for each in states(ann, task)], [each.language for each in states(ben, task)]) == (
        ["hr"],
        ["hr", "sr"],
    )
    for annotator in (ann, ben):
        grant(annotator, task, "hr", by=manager)
        assert queues_of(annotator, task) == {"hr": ["hr"]}
        languages = set()
        while lease := take(annotator, task):
            languages.add(lease.unit.item.language)
            judgments.judge(annotator, lease.pk, Answer("1"))
        assert languages == {"hr"}
        assert own_progress(annotator, task)["waiting"] == 0
    assert behind_tests(ben, task) == {"sr": 2}
    assert [step.step for step in states(ben, task)] == ["passed", "read"]
    rows = {row["queue"]: row for row in queue_states(task)["queues"]}
    assert {queue: (row["readers"], row["able"], row["state"]) for queue, row in rows.items()} == {
        "hr": (2, 2, "judged"),
        "sr": (1, 0, "untested"),
    }
    assert {row.queue: (row.labels, row.readers) for row in queue_table(task)} == {
        "hr": (["hr"], ["ann", "ben"]),
        "sr": (["sr"], []),
    }


def test_records_of_a_coarse_code_are_for_who_reads_one_of_its_finer_labels(make_records_task, person):
    task = make_records_task(count=1, languages=("zh", "zh-TW"))
    mainland, taiwan, none = person("mei", "zh-CN"), person("lin", "zh-TW"), person("emma", "en")
    assert queues_of(mainland, task) == {"zh": ["zh"]}
    assert queues_of(taiwan, task) == {"zh": ["zh"], "zh-TW": ["zh-TW"]}
    assert queues_of(none, task) == {}
    assert Routes.load(task).readers() == {"zh": {mainland.pk, taiwan.pk}, "zh-TW": {taiwan.pk}}


def test_records_in_no_language_are_for_who_reads_posts_in_none(make_records_task, person):
    task = make_records_task(count=1, languages=("de", "en", "und"))
    assert queues_of(person("emma", "en"), task) == {"en": ["en"], "und": ["und"]}
    assert queues_of(person("hans", "de"), task) == {"de": ["de"]}


def test_nothing_is_taken_back_in_a_language_that_one_may_not_work_in_any_more(make_records_task, person, manager):
    task, ann = make_records_task(count=2, test_items=2, gold={"test": ["1", "0"]}), person("ann", "en")
    grant(ann, task, "en", by=manager)
    answer(ann, task, "1")
    task.guidelines.create(language="en", major=2, minor=0, text="Otherwise.")
    with pytest.raises(NotAllowed, match="may not work in English any more"):
        undo(ann, task)
    assert not ann.leases.filter(closed_at=None).exists()
    assert task.units.filter(judgments__voided_at=None, judgments__annotator=ann).count() == 1


def test_an_answer_after_the_unit_has_gone_on_is_refused_and_changes_nothing(make_records_task, crowd):
    task = make_records_task(count=1, skip_limit=1)
    first, second = crowd(2)
    held = take(first, task)
    skip(second, task)
    with pytest.raises(WrongStage):
        judgments.judge(first, held.pk, Answer("1"))
    assert the_unit(task).stage == stages.DISCARDED


def test_two_records_that_say_the_same_are_judged_once_but_not_in_two_languages(make_records_task):
    task = make_records_task(count=1, languages=["de", "en"])
    german, english = task.units.order_by("language")
    assert german.copy_of is None
    assert english.copy_of is None


def test_a_share_of_the_posts_is_read_by_two(make_task, crowd):
    task = make_task([DISPUTED] * 40, redundancy=1.5)
    doubled = [unit for unit in task.units.all() if unit.redundancy == 2]
    assert 5 < len(doubled) < 35
    again = make_task([DISPUTED] * 2, redundancy=1, name="again")
    assert {unit.redundancy for unit in again.units.all()} == {1}


def test_where_no_second_reader_is_to_be_had_the_first_stands_alone(make_task, person):
    task = make_task([DISPUTED], redundancy=1.999999)
    ann = person("ann", "de")
    answer(ann, task, "de")
    unit = task.units.get()
    assert (unit.stage, unit.label, unit.redundancy) == (stages.LABELLED, "de", 1)


def test_where_the_two_differ_an_adjudicator_decides(make_task, person):
    task = make_task([DISPUTED], redundancy=1.999999)
    ann, ben = person("ann", "de"), person("ben", "de")
    answer(ann, task, "de")
    answer(ben, task, "en")
    assert task.units.get().stage == stages.ADJUDICATION


def test_a_unit_whose_redundancy_is_its_own_is_decided_by_it(make_task, person):
    task = make_task([DISPUTED], redundancy=3)
    task.redundancy = 5
    task.save()
    people = [person(name, "de") for name in "abc"]
    for annotator in people:
        answer(annotator, task, "de")
    assert task.units.get().label == "de"
