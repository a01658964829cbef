"""Gold answers in the queue: how often they come, and that the count of waiting items does not reveal them."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.actions.registry import call_command
from annotate.controls import honeypots
from annotate.controls.honeypots import count_before_last
from annotate.controls.qualification import grant
from annotate.core import stages
from annotate.figures import personal_progress
from annotate.kinds import Answer
from annotate.models import Backlog, Judgment, Task
from annotate.work import backlog, judgments
from annotate.work.answer_changes import undo
from annotate.work.permit import permit_of
from annotate.work.queue import take
from tests.annotate.acts import progress_of, why_empty

POTS = ["1", "0"] * 4


def waiting(annotator, task):
    return progress_of(annotator, task)["waiting"]


def answer(annotator, task, label="1"):
    """Answer the next unit; return whether it was a honeypot."""
    return close(annotator, take(annotator, task), label)


def close(annotator, lease, label="1"):
    judgments.judge(annotator, lease.pk, Answer(label))
    return lease.unit.honeypot


def whole_day(annotator, task, most=1000):
    """Answer all units. Return for each how many waited before it and whether it was a honeypot."""
    day = []
    while len(day) < most and (lease := take(annotator, task)):
        day.append((waiting(annotator, task), close(annotator, lease)))
    return day


# --- the count, against a simulation that decides one unit after the other as work/assignment.py does


def one_after_the_other(work, states):
    """Count the coming honeypots by checking before each unit whether it is a honeypot's turn in its language."""
    states = {language: dict(state) for language, state in states.items()}
    for state in states.values():
        state["given"] = sum(map(state["is_honeypot"], range(state["place"]))) - state["late"]
    work, came = list(work), 0
    while work:
        state = states[work[0]]
        scheduled = sum(map(state["is_honeypot"], range(state["place"] + 1)))
        if scheduled > state["given"] and state["pool"]:
            state["pool"] -= 1
            state["given"] += 1
            came += 1
        else:
            work.pop(0)
        state["place"] += 1
    return came


@st.composite
def languages(draw):
    size = draw(st.integers(2, 7))
    at = draw(st.lists(st.integers(0, size - 1), min_size=40, max_size=40))
    return {
        "pool": draw(st.integers(0, 6)),
        "place": draw(st.integers(0, 30)),
        "late": draw(st.integers(-3, 5)),
        "is_honeypot": lambda place: at[place // size % len(at)] == place % size,
    }


@given(st.lists(st.sampled_from(["en", "de", "fr"]), max_size=25), st.tuples(languages(), languages(), languages()))
def test_the_count_of_coming_honeypots_matches_a_simulation(work, schedules):
    states = dict(zip(("en", "de", "fr"), schedules, strict=True))
    waiting = Counter(work)
    coming = sum(count_before_last(waiting[language], **state) for language, state in states.items())
    assert coming == one_after_the_other(work, states)


# --- in the queue


@pytest.mark.parametrize("share", [0.5, 0.34, 0.05])
def test_the_number_that_waits_goes_down_by_one_with_every_answer(make_records_task, person, share):
    task, ann = make_records_task("qa_match", 20, gold={"queue": POTS}, gold_share=share), person("ann", "en")
    day = whole_day(ann, task)
    assert [count for count, _ in day] == list(range(len(day), 0, -1))
    assert waiting(ann, task) == 0
    pots = sum(pot for _, pot in day)
    assert len(day) == 20 + pots
    # The person's count of today's answers includes them.
    assert progress_of(ann, task)["answered_today"] == personal_progress.worked(ann).answered_today == len(day)
    # One in each block until the pool is empty, and none after the work is done.
    blocks = len(day) / round(1 / share)
    assert min(int(blocks), len(POTS)) <= pots <= min(int(blocks) + 1, len(POTS))
    assert take(ann, task) is None
    assert "no more items in your languages" in why_empty(ann, task)


def test_what_a_used_up_language_lacks_is_not_made_up_for_in_another(make_records_task, person, manager):
    task = make_records_task(
        count=20, languages=("en", "de"), gold={"queue": POTS[:4]}, gold_share=0.2, pause_below=0, test_items=2
    )
    ann = person("ann", "en de")
    grant(ann, task, "en", by=manager)
    english = [pot for _, pot in whole_day(ann, task)]
    assert (len(english), sum(english), any(english[20:])) == (24, 4, False)
    grant(ann, task, "de", by=manager)
    german = [pot for _, pot in whole_day(ann, task)]
    assert (len(german), sum(german)) == (24, 4)
    # One in each block of five, so at most two in a row.
    assert [sum(german[start : start + 5]) for start in range(0, 20, 5)] == [1] * 4


def test_the_number_does_so_for_readers_of_two_languages_after_the_share_was_changed(make_records_task, person):
    task = make_records_task("qa_match", 12, languages=("en", "de"), gold={"queue": POTS[:3]}, gold_share=0.34)
    ann = person("ann", "en de")
    day = whole_day(ann, task)
    assert [count for count, _ in day] == list(range(len(day), 0, -1))
    assert sum(pot for _, pot in day) == 6
    for share in (0.5, 0.1, 0.0):
        task = make_records_task("qa_match", 12, gold={"queue": POTS}, gold_share=0.25, name=f"then-{10 * share:.0f}")
        whole_day(ann, task, most=7)
        task.gold_share = share
        task.save()
        Backlog.objects.all().delete()
        day = whole_day(ann, task)
        assert [count for count, _ in day] == list(range(len(day), 0, -1)), share


def test_counting_them_costs_the_same_however_many_units_wait(make_records_task, person, django_assert_max_num_queries):
    task = make_records_task("qa_match", 150, languages=("en", "de"), gold={"queue": POTS}, gold_share=0.1)
    ann = person("ann", "en de")
    task.units.filter(language="de", honeypot=False).update(stage=stages.DISCARDED)
    permit = permit_of(ann, task)
    with django_assert_max_num_queries(7):
        assert backlog.progress_of(permit).waiting == 150 + 8


def test_where_they_run_out_is_known_beforehand(make_records_task, person):
    enough = make_records_task("qa_match", 18, gold={"queue": POTS[:2]}, gold_share=0.1, name="enough")
    task = make_records_task("qa_match", 19, gold={"queue": POTS[:2]}, gold_share=0.1)
    assert (honeypots.too_few(enough), honeypots.too_few(task)) == ({}, {"en": (2, 20)})
    day = whole_day(person("ann", "en"), task)
    assert max(place for place, (_, pot) in enumerate(day, 1) if pot) <= 20 < len(day)


def test_a_honeypot_on_the_screen_counts_until_others_have_finished_the_work(make_records_task, person):
    task, ann = make_records_task("qa_match", 3, gold={"queue": POTS}, gold_share=0.5), person("ann", "en")
    while not take(ann, task).unit.honeypot:
        answer(ann, task)
    work = task.units.filter(honeypot=False)
    work.exclude(pk=take(ann, task).work.pk).update(stage=stages.DISCARDED)
    assert waiting(ann, task) in (2, 3)  # with another honeypot before the last of the work, if the lot falls so
    task.gold_share = 0
    task.save()
    Backlog.objects.all().delete()
    assert waiting(ann, task) == 2
    work.update(stage=stages.DISCARDED)
    Backlog.objects.all().delete()
    # The work that it was mixed into is done, so it no longer counts.
    assert waiting(ann, task) == 0


def test_an_answer_taken_back_waits_again_whichever_it_was(make_records_task, person):
    task, ann = make_records_task("qa_match", 12, gold={"queue": POTS}, gold_share=0.34), person("ann", "en")
    kinds = set()
    while take(ann, task):
        before_it = waiting(ann, task)
        pot = answer(ann, task)
        again = undo(ann, task)
        assert (waiting(ann, task), again.unit.honeypot) == (before_it, pot)
        answer(ann, task)
        assert waiting(ann, task) == before_it - 1
        kinds.add(pot)
    assert kinds == {True, False}


def test_a_skip_of_a_honeypot_is_a_skip_like_any_other(make_records_task, person):
    task, ann = make_records_task("qa_match", 12, gold={"queue": POTS}, gold_share=0.34), person("ann", "en")
    counts = []
    while lease := take(ann, task):
        counts.append(waiting(ann, task))
        judgments.skip(ann, lease.pk)
    assert counts == list(range(len(counts), 0, -1))
    assert not honeypots.answers(task).exists()


def test_each_person_is_asked_in_another_order_and_at_other_places(make_records_task, person):
    task = make_records_task("qa_match", 16, gold={"queue": POTS}, gold_share=0.25)
    places, orders = [], []
    for name in ("ann", "bea", "cem"):
        annotator = person(name, "en")
        day = whole_day(annotator, task)
        places.append([place for place, (_, pot) in enumerate(day) if pot])
        judgments = Judgment.objects.filter(annotator=annotator, unit__honeypot=True).order_by("pk")
        orders.append(list(judgments.values_list("unit_id", flat=True)))
    assert len(set(map(tuple, places))) == 3
    assert len(set(map(tuple, orders))) == 3
    for annotator_places in places:
        assert [place // 4 for place in annotator_places] == list(range(len(annotator_places)))


def test_a_honeypot_takes_everybody_s_answer_and_gets_no_label(make_records_task, person):
    task = make_records_task("qa_match", 5, gold={"queue": POTS[:4]}, gold_share=0.5)
    for name in ("ann", "bea", "cem"):
        whole_day(person(name, "en"), task)
    for pot in task.units.filter(honeypot=True):
        assert (pot.stage, pot.label) == (stages.QUEUED, "")
        assert pot.judgments.count() == 3
    assert set(task.units.filter(honeypot=False).values_list("stage", flat=True)) == {stages.LABELLED}


def test_pages_of_one_query_come_apart_so_that_a_hidden_one_of_another_does_not_stick_out(db, tmp_path):
    rows = [
        {"id": f"{q}{n}", "query": f"q{q}", "title": f"t{q}{n}", "snippet": "s"} for q in range(6) for n in range(5)
    ]
    file = tmp_path / "pages.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    options = {"fields": "query title snippet", "language": "en", "licence": "CC0-1.0", "verbosity": 0}
    call_command("import_corpus", "pages", str(file), **options)
    more = ["--test-items", "0", "--gold-share", "0", "--seed", "1"]
    call_command("open_task", "t", "--kind", "web_ranking", "--corpus", "pages", *more)
    queries = [unit.item.fields["query"] for unit in Task.objects.get().units.select_related("item")]
    assert Counter(queries) == {f"q{n}": 5 for n in range(6)}
    alone = sum(
        query not in (before, after) for before, query, after in zip(queries, queries[1:], queries[2:], strict=False)
    )
    assert alone > len(queries) / 2
