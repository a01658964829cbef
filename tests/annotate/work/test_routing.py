"""A post's first queue, and where skips and answers in another language move it."""

import pytest
from django.core.management import CommandError
from django.urls import reverse

from annotate.actions.registry import call_command
from annotate.controls import check_report
from annotate.controls.qualification import grant
from annotate.core import stages
from annotate.core.refusals import NotAllowed
from annotate.figures.queue_states import queue_table
from annotate.kinds import Answer
from annotate.models import LanguageRoute
from annotate.quality import answer_models
from annotate.work.answer_changes import undo
from annotate.work.closure import close
from annotate.work.judgments import judge
from annotate.work.queue import take
from annotate.work.routes import Routes
from annotate.work.routing import reroute
from annotate.work.unit_entry import add_units
from corpora.models import Item
from tests.annotate.acts import behind_tests, progress_of, queues_of, states, why_empty
from tests.annotate.conftest import AGREED, DISPUTED
from tests.annotate.journeys import FRENCH, answer, follow, history, journeys, the_unit, where

SHARED = {"post": ("bs", "hr", "sr"), "labels": ["bs", "hr", "sr", "en"]}


@pytest.mark.parametrize(
    ("post", "options", "queue", "candidates"),
    [
        pytest.param(DISPUTED, {}, "de", ["de", "en"], id="disputed"),
        pytest.param({"votes": AGREED, "letters": 19}, {}, "de", ["de"], id="agreed, too short"),
        pytest.param(AGREED, {"never_agree": ["de"]}, "de", ["de"], id="agreed on a language that never agrees"),
        pytest.param(("zh", "zh", "zh"), {}, "zh", ["zh"], id="agreed on a coarse code"),
        pytest.param(("la", "la en", "la"), {}, "en", ["en"], id="agreed on a language that is no label"),
        pytest.param({"votes": ("", "", ""), "letters": 0}, {}, "en", ["und"], id="no language: the route of und"),
        pytest.param(("hi en", "en hi", "hi"), {}, "hi", ["hi", "hi-Latn", "en"], id="a script no detector names"),
        pytest.param(("bs", "hr", "sr"), {"labels": SHARED["labels"]}, "hr", ["hr", "sr", "bs"], id="a shared queue"),
    ],
)
def test_a_post_without_agreement_waits_for_readers_of_the_most_likely_language(
    make_task, post, options, queue, candidates
):
    unit = the_unit(make_task([post], **options))
    assert (unit.stage, unit.language, unit.round, unit.label) == (stages.QUEUED, queue, 1, "")
    assert unit.candidates == candidates


def test_agreed_posts_are_labelled_without_people_and_identical_texts_are_judged_once(make_task):
    task = make_task([AGREED])
    assert where(task) == (stages.AGREED, "de")
    assert history(task) == [("agreed", "AGREED", 0, "")]
    task = make_task([{"votes": DISPUTED, "text": "same"}, {"votes": DISPUTED, "text": "same"}], name="same")
    first, second = task.units.order_by("position")
    assert (first.stage, second.stage, second.copy_of) == (stages.QUEUED, stages.COPIED, first)


def test_a_queue_serves_the_readers_of_each_of_its_languages_at_the_level_that_the_task_asks(make_task, person):
    coarse = make_task([("zh", "zh", "zh")], name="coarse")
    assert take(person("mei", "zh-TW"), coarse)
    shared = make_task([SHARED["post"]], name="shared", labels=SHARED["labels"])
    assert Routes.load(shared).labels["hr"] == ["bs", "hr", "sr"]
    assert take(person("goran", "sr"), shared)
    level = make_task([DISPUTED], name="level", least_level=4)
    assert take(person("ann", "de:3"), level) is None
    bea = person("bea", "de:4")
    assert take(bea, level)
    assert Routes.load(level).readers()["de"] == {bea.pk}
    LanguageRoute.objects.create(language="fr", queue="de")  # while people work
    changed = make_task([("fr", "fr en", "en")], name="changed")
    assert the_unit(changed).language == "de"
    assert take(person("fay", "fr"), changed)


def test_units_of_a_queue_whose_readers_are_gone_are_sent_on_and_at_last_to_adjudication(make_task, person):
    task, ann, ben = make_task([DISPUTED]), person("ann", "de"), person("ben", "en")
    for leaver, moved, last in (
        (None, {"queues": 0, "adjudication": 0, "decided": 0}, ("disputed", "QUEUED", 1, "de")),
        (ann, {"queues": 1, "adjudication": 0, "decided": 0}, ("rerouted", "QUEUED", 1, "en")),
        (ben, {"queues": 0, "adjudication": 1, "decided": 0}, ("exhausted", "ADJUDICATION", 1, "en")),
    ):
        if leaver:
            leaver.user.is_active = False
            leaver.user.save()
        assert reroute(task) == moved
        assert history(task)[-1] == last


@journeys(
    """
    skips send a post to the second language, then to adjudication
      ann:de ben:en = ben nothing; ann skip > skipped QUEUED en 2; ben skip > exhausted ADJUDICATION en 2
    nobody is asked twice, in another language
      both:de+en = both skip > ADJUDICATION de 1
    rounds end where the task says
      rounds=1 ann:de ben:en = ann skip > ADJUDICATION de 1
    a task may ask for two skips a round
      skip_limit=2 ann:de bea:de ben:en = ann skip > QUEUED de 1; bea skip > QUEUED en 2
    a named language is confirmed by another reader
      ann:de fay:fr = ann fr > QUEUED fr 2; ann nothing; fay fr > LABELLED fr 2 fr
    a skipped confirmation goes to another reader of the language, then to adjudication
      skip_limit=2 ann:de fay:fr flo:fr ben:en = ann fr; fay skip > QUEUED fr 2; flo skip > ADJUDICATION fr 2
    a named language that nobody else reads goes to adjudication
      both:de+fr = both fr > named ADJUDICATION de 1
    a confirmation whose readers leave is adjudicated
      ann:de fay:fr ben:en = ann fr; fay leaves; task rerouted > ADJUDICATION fr 2
    a named language is confirmed though the rounds are used up
      rounds=2 ann:de ben:en fay:fr = ann skip; ben fr > QUEUED fr 3; fay fr > LABELLED fr 3 fr
    what was skipped in a queue comes back to its other readers where its language is named
      ann:de ben:en | bea:de = ann skip > QUEUED en 2; bea joins; ben de > QUEUED de 3; ann nothing; bea de >
      LABELLED de 3 de
    Undefined stays the word of its reader
      ann:de fay:fr = ann und > LABELLED de 1 und
    two readers of one queue confirm each other
      redundancy=2 ann:de bea:de fay:fr = ann fr; bea fr > LABELLED de 1 fr
    a confirmation can be taken back after what it confirmed
      ann:de fay:fr = ann fr; fay fr; ann undo; fay undo > QUEUED fr 2; fay fr > ADJUDICATION fr 2
    an answer that named another language can be taken back
      ann:de fay:fr = ann fr; ann undo > QUEUED de 1; fay nothing; ann de > LABELLED de 1 de
    a skip given anew sends the post on as the first time, whatever was answered meanwhile
      redundancy=3 skip_limit=2 ann:de bea:de fay:en x:de+en y:de+en z:de+en = ann skip; bea skip; fay de > QUEUED
      en 2; bea undo > QUEUED de 1; bea skip > QUEUED en 2
    the second reader's answer stays when the first is given again
      ann:de fay:fr = ann fr; fay fr; ann undo; ann fr > LABELLED de 1 fr
    and an adjudicator decides where the first is then another
      ann:de fay:fr = ann fr; fay fr; ann undo; ann de > ADJUDICATION de 1
    an answer changed to another language is no last word
      ann:de fay:fr = ann de; ann changes fr > ADJUDICATION de 1
    nor is one changed from another
      ann:de fay:fr = ann fr; ann changes de > ADJUDICATION fr 2
    where the first answer is voided another reader is asked
      ann:de fay:fr flo:fr = ann fr; fay fr; ann voided > QUEUED fr 2; flo fr > LABELLED fr 2 fr
    and so where the confirmation is voided
      ann:de fay:fr flo:fr = ann fr; fay fr; fay voided > QUEUED fr 2; flo fr > LABELLED fr 2 fr
    an answer voided before it is confirmed leaves the post to one reader
      ann:de fay:fr = ann fr; ann voided; fay fr > LABELLED fr 2 fr
    a language that nobody reads is passed over
      post=de+en,de+en,en+fr ann:de ben:fr = ann skip > QUEUED fr 2
    a language of the same queue stays so too
      post=bs,hr,sr labels=bs,hr,sr,en hana:hr goran:sr = hana bs > LABELLED hr 1 bs
    """
)
def test_a_post_goes(make_task, post, options, people, steps):
    follow(make_task([post], **options), people, steps)


@pytest.mark.parametrize(
    ("post", "options", "second", "end"),
    [
        (DISPUTED, {}, "fr", "LABELLED"),
        *((DISPUTED, {}, other, "ADJUDICATION") for other in ("de", "en", "und")),
        (DISPUTED, {"redundancy": 1.999999, "rounds": 1}, "fr", "LABELLED"),  # the overlap gave it to one reader
        (DISPUTED, {"check_share": 1.0}, "fr", "LABELLED"),  # confirmed answers are not checked
        *(
            (AGREED, {"audit_least": 1, "audit_recheck": recheck}, other, "ADJUDICATION")
            for recheck in (0, 1)
            for other in ("fr", "de", "und")
        ),
    ],
)
def test_a_named_language_is_confirmed_or_adjudicated_and_counts_as_no_agreement(make_task, post, options, second, end):
    task = make_task([post], **options)
    label = second if end == "LABELLED" else ""
    follow(task, "ann:de fay:fr", f"ann fr > QUEUED fr 2; fay {second} > {f'{end} fr 2 {label}'.strip()}")
    assert ("named", "QUEUED", 2, "fr") in history(task)
    assert not answer_models.answers(task)
    if "check_share" in options:
        [row] = check_report.report(task)["languages"]
        assert (row["alone"], row["checked"], row["waiting"]) == (0, 0, 0)


@pytest.mark.parametrize(("leave_out", "end"), [(False, stages.ADJUDICATION), (True, stages.DISCARDED)])
def test_an_audited_post_gets_no_label_by_one_reader_when_the_task_is_closed(make_task, person, leave_out, end):
    task, ann, _ = make_task([AGREED], audit_least=1, audit_recheck=0), person("ann", "de"), person("fay", "fr")
    answer(ann, task, FRENCH)
    close(task, leave_out=leave_out)
    assert where(task) == (end, "")


def test_taking_back_what_was_confirmed_restores_the_queues_visited(make_task, person):
    task, ann, fay = make_task([DISPUTED]), person("ann", "de"), person("fay", "fr")
    named = answer(ann, task, FRENCH)
    judge(fay, take(fay, task).pk, FRENCH)
    undo(ann, task, named.pk)
    assert the_unit(task).visited == ["de"]


# --- records


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


def test_records_wait_for_readers_of_their_language_who_have_passed_the_test(make_records_task, person, manager, desk):
    task = make_records_task(count=2, languages=["de", "en"], test_items=2, gold={"test": ["1", "0"]})
    ann = person("ann", "en de")
    assert take(ann, task) is None
    assert "test" in why_empty(ann, task)
    with pytest.raises(CommandError, match="wait for annotators who read their language and pass the test"):
        call_command("reroute", task.name)
    assert "move items from queues" not in desk.get(reverse("manage-settings", args=[task.name])).text
    assert set(task.units.work().values_list("stage", flat=True)) == {stages.QUEUED}
    grant(ann, task, "de", by=manager)
    assert list(queues_of(ann, task)) == ["de"]
    assert take(ann, task).unit.language == "de"


def test_who_passed_under_earlier_guidelines_is_given_nothing_and_takes_nothing_back(
    make_records_task, person, manager
):
    task, ann = make_records_task(count=2, test_items=2), person("ann", "en")
    grant(ann, task, "en", by=manager)
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
    """Although their posts share a queue, because detectors cannot distinguish them."""
    task = make_records_task(count=2, languages=("hr", "sr"), test_items=2, gold={"test": ["1", "0"]})
    ann, ben = person("ann", "hr"), person("ben", "hr sr")
    assert set(task.units.values_list("language", "item__language")) == {("hr", "hr"), ("sr", "sr")}
    tests = [[state.language for state in states(annotator, task)] for annotator in (ann, ben)]
    assert tests == [["hr"], ["hr", "sr"]]
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
    table = {row.queue: (row.labels, row.readers) for row in queue_table(task)}
    assert table == {"hr": (["hr"], ["ann", "ben"]), "sr": (["sr"], [])}


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
    copies = task.units.order_by("position").values_list("item__key", "copy_of__item__key")
    assert list(copies) == [("a", None), ("b", None), ("c", "b")]
