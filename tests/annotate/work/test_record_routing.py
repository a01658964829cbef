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
from annotate.core.refusals import NotAllowed
from annotate.figures.queue_states import queue_table
from annotate.kinds import Answer
from annotate.models import Qualification
from annotate.work.answer_changes import undo
from annotate.work.judgments import judge
from annotate.work.queue import take
from annotate.work.routes import Routes
from annotate.work.unit_entry import add_units
from corpora.models import Item
from tests.annotate.acts import behind_tests, progress_of, queues_of, states, why_empty
from tests.annotate.journeys import answer, follow, journeys

THREE, FOUR = "ann:en bea:en cem:en", "ann:en bea:en cem:en dan:en"
DIFFER = "ann 4; bea 2; cem 0"


@journeys(
    """
    that too few people are there yet drops nothing
      post=qa_match ann:en = ann 1 > QUEUED en 1
    two of three decide, and a fourth is given nothing
      post=qa_match ann:en bea:en cem:en dan:en = ann 1; bea takes; cem takes; dan nothing; bea 0 > QUEUED en 1;
      cem 1 > LABELLED en 1 1; dan nothing
    where all differ it is dropped
      post=web_ranking ann:en bea:en cem:en = ann 4; bea 2; cem 0 > conflicted DISCARDED en 1
    or adjudicated, as the task says
      post=web_ranking on_conflict=ADJUDICATION ann:en bea:en cem:en = ann 4; bea 2; cem 0 > ADJUDICATION en 1
    or given the grade in the middle
      post=web_ranking aggregation=median ann:en bea:en cem:en = ann 4; bea 2; cem 0 > LABELLED en 1 2
    where two agree early the third is not asked
      post=qa_match stop_early=True ann:en bea:en cem:en = ann 1; bea 1 > LABELLED en 1 1; cem nothing
    and where they differ the third decides, who is not asked before
      post=qa_match stop_early=True ann:en bea:en cem:en = ann 1; bea takes; cem nothing; bea 0;
      cem 0 > LABELLED en 1 0
    until one of the two is taken back
      post=qa_match stop_early=True ann:en bea:en cem:en = ann 1; bea 0; bea undo > QUEUED en 1; cem nothing
    a skip gives the place to another person
      post=qa_match ann:en bea:en cem:en dan:en = ann skip; ann nothing; bea 1; cem 1; dan 1 > LABELLED en 1 1
    too many skips drop it
      post=qa_match ann:en bea:en cem:en = ann skip > QUEUED en 1; bea skip > exhausted DISCARDED en 1
    """
)
def test_a_record_goes(make_records_task, post, options, people, steps):
    task = make_records_task(post, 1, **{"skip_limit": 2} | options)
    follow(task, people, steps)


# --- the right to work


def qualify(annotator, task, language, manager):
    passed = {"language": language, "major": 1, "granted_by": manager, "at": timezone.now()}
    Qualification.objects.create(annotator=annotator, task=task, **passed)


def test_records_wait_for_readers_of_their_language_who_have_passed_the_test(
    make_records_task, person, manager, client
):
    task = make_records_task(count=2, languages=["de", "en"], test_items=2, gold={"test": ["1", "0"]})
    ann = person("ann", "en de")
    assert take(ann, task) is None
    assert "test" in why_empty(ann, task)
    with pytest.raises(CommandError, match="wait for people who read their language and pass the test"):
        call_command("reroute", task.name)
    client.force_login(manager)
    assert "move units from queues" not in client.get(reverse("manage-settings", args=[task.name])).text
    assert set(task.units.work().values_list("stage", flat=True)) == {stages.QUEUED}
    qualify(ann, task, "de", manager)
    assert list(queues_of(ann, task)) == ["de"]
    assert take(ann, task).unit.language == "de"


def test_who_passed_under_earlier_guidelines_is_given_nothing_and_takes_nothing_back(
    make_records_task, person, manager
):
    task, ann = make_records_task(count=2, test_items=2), person("ann", "en")
    qualify(ann, task, "en", manager)
    task.guidelines.create(language="en", major=1, minor=1, text="Better said.")
    answer(ann, task, Answer("1"))
    task.guidelines.create(language="en", major=2, minor=0, text="Otherwise.")
    other = make_records_task(count=1, name="other")
    assert queues_of(ann, task) == {}
    assert queues_of(ann, other) == {"en": ["en"]}
    with pytest.raises(NotAllowed, match="can no longer work in English"):
        undo(ann, task)
    assert not ann.leases.filter(closed_at=None).exists()
    assert task.units.filter(judgments__voided_at=None, judgments__annotator=ann).count() == 1


def test_each_language_of_records_has_a_queue_and_a_test_of_its_own(make_records_task, person, manager):
    """This holds although posts in them share a queue, since detectors do not tell them apart."""
    task = make_records_task(count=2, languages=("hr", "sr"), test_items=2, gold={"test": ["1", "0"]})
    ann, ben = person("ann", "hr"), person("ben", "hr sr")
    assert set(task.units.values_list("language", "item__language")) == {("hr", "hr"), ("sr", "sr")}
    assert [[state.language for state in states(annotator, task)] for annotator in (ann, ben)] == [
        ["hr"],
        ["hr", "sr"],
    ]
    for annotator in (ann, ben):
        grant(annotator, task, "hr", by=manager)
        assert queues_of(annotator, task) == {"hr": ["hr"]}
        languages = set()
        while lease := take(annotator, task):
            languages.add(lease.unit.item.language)
            judge(annotator, lease.pk, Answer("1"))
        assert languages == {"hr"}
        assert progress_of(annotator, task)["waiting"] == 0
    assert behind_tests(ben, task) == {"sr": 2}
    assert [state.step for state in states(ben, task)] == ["passed", "read"]
    assert {row.queue: (row.labels, row.readers) for row in queue_table(task)} == {
        "hr": (["hr"], ["ann", "ben"]),
        "sr": (["sr"], []),
    }


def test_records_of_a_coarse_code_and_of_no_language_are_for_readers_of_a_finer_label_and_of_posts_in_none(
    make_records_task, person
):
    task = make_records_task(count=1, languages=("zh", "zh-TW"))
    mainland, taiwan, none = person("mei", "zh-CN"), person("lin", "zh-TW"), person("emma", "en")
    assert queues_of(mainland, task) == {"zh": ["zh"]}
    assert queues_of(taiwan, task) == {"zh": ["zh"], "zh-TW": ["zh-TW"]}
    assert queues_of(none, task) == {}
    assert Routes.load(task).readers() == {"zh": {mainland.pk, taiwan.pk}, "zh-TW": {taiwan.pk}}
    undefined = make_records_task(count=1, languages=("de", "en", "und"), name="undefined")
    assert queues_of(none, undefined) == {"en": ["en"], "und": ["und"]}
    assert queues_of(person("hans", "de"), undefined) == {"de": ["de"]}


def test_records_that_say_the_same_are_copies_in_one_language_and_not_in_two(make_records_task):
    task = make_records_task(count=0)
    fields = {"corpus": task.draws.get().corpus, "text": "the same", "fields": {}, "votes": {}, "letters": 0}
    languages = {"a": "de", "b": "en", "c": "en"}
    add_units(task, [Item.objects.create(key=key, language=code, **fields) for key, code in languages.items()])
    assert list(task.units.order_by("position").values_list("item__key", "copy_of__item__key")) == [
        ("a", None),
        ("b", None),
        ("c", "b"),
    ]
