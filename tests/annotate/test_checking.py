"""Checks of readers who decide alone: who is checked, what becomes of the unit, and what is counted."""

from collections import Counter

import pytest

from annotate.controls import checks
from annotate.controls.agreement_audit import contest
from annotate.core import stages
from annotate.core.draws import hash_order
from annotate.core.estimation.proportions import jeffreys
from annotate.kinds import Answer
from annotate.work import adjudication
from annotate.work.answer_changes import undo
from annotate.work.interventions import void
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from annotate.work.task_creation import extend_task
from annotate.work.unit_entry import add_units
from corpora.models import Item
from tests.annotate.acts import say, settle
from tests.annotate.conftest import AGREED, DISPUTED, LONG, extend_by, votes

FRENCH = ("fr en", "en fr", "fr")
ALL = {"check_share": 1.0}
# So small a share that only the least number of each language is checked.
FEW = 1e-9


@pytest.fixture
def ann(person):
    return person("ann", "de fr")


@pytest.fixture
def ada(person):
    return person("ada", adjudicates=True)


def chosen(task):
    return dict(Counter(task.units.filter(recheck=True).values_list("language", flat=True)))


def row_of(task, language):
    return next(row for row in checks.report(task)["languages"] if row["language"] == language)


# --- who is checked


def test_a_share_of_all_is_checked_by_power_allocation_and_the_least_number_of_each_queue(make_task, monkeypatch):
    monkeypatch.setattr(checks, "CHECK_LEAST", 4)
    task = make_task([DISPUTED] * 50 + [FRENCH] * 8, check_share=0.2)
    assert chosen(task) == {"de": 8, "fr": 4}


def test_a_queue_with_fewer_units_than_the_least_number_is_checked_whole(make_task, monkeypatch):
    monkeypatch.setattr(checks, "CHECK_LEAST", 10)
    task = make_task([DISPUTED] * 12 + [FRENCH] * 3, check_share=0.02)
    assert chosen(task) == {"de": 10, "fr": 3}


def test_the_lot_is_one_that_anybody_can_draw_again(make_task, monkeypatch):
    monkeypatch.setattr(checks, "CHECK_LEAST", 5)
    task = make_task([DISPUTED] * 30, check_share=FEW)
    keys = list(task.units.values_list("item__key", flat=True))
    assert set(task.units.filter(recheck=True).values_list("item__key", flat=True)) == set(
        hash_order.drawn(keys, 5, lots=task.lots, purpose="check")
    )


def test_what_several_people_read_is_not_checked(make_task):
    assert chosen(make_task([DISPUTED] * 6, name="three", redundancy=3, **ALL)) == {}
    overlap = make_task([DISPUTED] * 40, name="overlap", redundancy=1.5, **ALL)
    asked = Counter(overlap.units.values_list("redundancy", "recheck"))
    assert set(asked) == {(1, True), (2, False)}
    assert checks.check_counts(overlap) == {"de": (asked[1, True], asked[1, True])}


def test_hidden_posts_copies_and_the_audits_own_are_not_checked(make_task):
    verify = make_task([DISPUTED] * 6, name="verify", asked="de", decoys=2, **ALL)
    assert set(verify.units.values_list("known_answer", "recheck")) == {("", True), ("not-de", False)}
    same = {"text": LONG.format("the same"), "votes": DISPUTED}
    copies = make_task([{**same, "key": "a"}, {**same, "key": "b"}], name="copies", **ALL)
    assert list(copies.units.values_list("stage", "recheck")) == [(stages.QUEUED, True), (stages.COPIED, False)]
    audited = make_task([AGREED] * 5, name="audited", audit_least=3, audit_recheck=0, **ALL)
    assert not audited.units.filter(recheck=True).exists()


def test_a_task_that_is_extended_keeps_its_checks_and_chooses_among_what_is_added(make_task, monkeypatch):
    monkeypatch.setattr(checks, "CHECK_LEAST", 8)
    task = make_task([DISPUTED] * 20, check_share=0.2)
    before = set(task.units.filter(recheck=True).values_list("pk", flat=True))
    items = Item.objects.bulk_create(
        Item(corpus=task.draw.corpus, key=f"new {n}", text=LONG.format(f"new {n}"), letters=40, votes=votes(*DISPUTED))
        for n in range(30)
    )
    add_units(task, items)
    after = set(task.units.filter(recheck=True).values_list("pk", flat=True))
    assert (len(before), len(after)) == (8, 10)
    assert before < after


def test_of_a_language_that_is_contested_a_share_is_checked_with_what_was_disputed_before(make_task):
    task = make_task([DISPUTED] * 10 + [AGREED] * 30, check_share=0.1)
    assert task.units.filter(recheck=True).count() == 2
    contest(task, "de")
    assert task.units.filter(recheck=True, agreed_label="").count() == 2
    assert task.units.filter(recheck=True, agreed_label="de").count() == 2


def test_opening_asks_the_database_no_more_often_for_more_checks(make_task, django_assert_max_num_queries):
    with django_assert_max_num_queries(60):
        make_task([DISPUTED] * 100, **ALL)


# --- what becomes of it


def test_after_its_reader_a_checked_unit_waits_for_an_adjudicator_who_is_told_nothing(make_task, ann, ada, client):
    task = make_task([DISPUTED], **ALL)
    unit = say(ann, task, "de")
    assert (unit.stage, unit.label) == (stages.ADJUDICATION, "")
    assert unit.transitions.last().event == "checked"
    (listed,) = adjudication.to_adjudicate(task, ada)
    assert listed.blind
    assert not adjudication.to_adjudicate(task, ada, "de").exists()
    client.force_login(ada.user)
    page = client.get(f"/tasks/task/adjudication/{unit.pk}/").text
    assert "This one is checked blind" in page
    assert "Votes" not in page
    told = client.get(f"/api/v1/tasks/task/adjudication/{unit.pk}/").json()
    assert (told["blind"], told["votes"], told["judgments"], told["history"]) == (True, {}, [], [])
    assert client.get("/api/v1/tasks/task/adjudication/").json()["units"][0]["told"] == {}


@pytest.mark.parametrize("label", ["de", "en"])
def test_the_adjudicators_word_is_its_label(make_task, ann, ada, label):
    task = make_task([DISPUTED], **ALL)
    unit = settle(ada, say(ann, task, "de"), label)
    assert (unit.stage, unit.label) == (stages.LABELLED, label)
    row = row_of(task, "de")
    assert (row["alone"], row["checked"], row["otherwise"], row["waiting"]) == (0, 1, label != "de", 0)


def test_what_is_not_chosen_has_its_readers_label_at_once(make_task, ann):
    task = make_task([DISPUTED])
    assert say(ann, task, "de").stage == stages.LABELLED
    assert row_of(task, "de")["alone"] == 1


def test_a_unit_of_verify_is_checked_too(make_task, ann, ada):
    task = make_task([DISPUTED], asked="de", **ALL)
    unit = say(ann, task, "de")
    assert unit.stage == stages.ADJUDICATION
    assert settle(ada, unit, "not-de").label == "not-de"
    assert row_of(task, "de")["otherwise"] == 1


def test_a_contested_unit_is_checked_though_the_detectors_agree(make_task, ann, ada):
    task = make_task([AGREED], **ALL)
    contest(task, "de")
    unit = say(ann, task, "de")
    assert unit.transitions.last().event == "checked"
    assert settle(ada, unit, "fr").label == "fr"


def test_the_reader_can_take_the_answer_back_and_what_an_adjudicator_has_decided_stands(make_task, ann, ada):
    task = make_task([DISPUTED], **ALL)
    unit = say(ann, task, "de")
    undo(ann, task)
    unit.refresh_from_db()
    assert (unit.stage, row_of(task, "de")["waiting"]) == (stages.QUEUED, 1)
    unit = say(ann, task, "fr")
    assert unit.stage == stages.ADJUDICATION
    settle(ada, unit, "fr")
    again = undo(ann, task)
    judge(ann, again.pk, Answer("de"))
    unit.refresh_from_db()
    assert (unit.stage, unit.label) == (stages.LABELLED, "fr")


def test_what_the_adjudicator_discards_is_unresolved(make_task, ann, ada):
    task = make_task([DISPUTED], **ALL)
    unit = say(ann, task, "de")
    adjudication.discard(ada, unit.pk, "nobody can tell")
    row = row_of(task, "de")
    assert (row["checked"], row["unresolved"], row["error"]["value"]) == (0, 1, None)


def test_a_unit_that_no_reader_answered_is_adjudicated_and_is_no_check(make_task, ann, ada):
    task = make_task([DISPUTED], rounds=1, **ALL)
    skip(ann, take(ann, task).pk)
    unit = settle(ada, task.units.get(), "de")
    assert unit.stage == stages.LABELLED
    row = row_of(task, "de")
    assert [row[key] for key in ("alone", "checked", "waiting", "unresolved")] == [0, 0, 0, 0]


def test_a_checked_unit_whose_answer_is_voided_is_read_and_checked_anew(make_task, ann, ada, person, manager):
    task, ben = make_task([DISPUTED], **ALL), person("ben", "de")
    unit = say(ann, task, "de")
    void(ann, task, by=manager, reason="sleeps")
    unit.refresh_from_db()
    assert unit.stage == stages.QUEUED
    assert say(ben, task, "fr").stage == stages.ADJUDICATION
    settle(ada, unit, "fr")
    assert row_of(task, "de")["otherwise"] == 0


# --- what is counted


def test_languages_are_those_of_the_first_queue_and_in_all_they_are_added_up(make_task, ann, ada):
    task = make_task([DISPUTED] * 4 + [FRENCH] * 3, check_share=FEW)
    for queue in task.units.order_by("position").values_list("language", flat=True):
        unit = say(ann, task, queue)
        if unit.stage == stages.ADJUDICATION and row_of(task, "de")["checked"] < 1:
            settle(ada, unit, "en")
    found = checks.report(task)
    german, french = row_of(task, "de"), row_of(task, "fr")
    assert [german[key] for key in ("alone", "checked", "otherwise", "waiting")] == [2, 1, 1, 1]
    assert [french[key] for key in ("alone", "checked", "otherwise", "waiting")] == [1, 0, 0, 2]
    assert [found["overall"][key] for key in ("alone", "checked", "otherwise", "waiting")] == [3, 1, 1, 3]
    error = german["error"]
    assert (error["value"], error["low"], error["high"]) == (1.0, *jeffreys(1, 1))
    assert french["error"]["value"] is None


def test_a_second_reader_who_cannot_be_had_leaves_a_unit_that_one_person_decided(make_task, ann):
    task = make_task([DISPUTED], redundancy=1.999999, rounds=1, check_share=0.0)
    assert task.units.get().redundancy == 2
    assert say(ann, task, "de").stage == stages.LABELLED
    assert row_of(task, "de")["alone"] == 1


def test_an_audit_of_a_language_waits_for_the_second_adjudicator(make_task, ann, ada, person, monkeypatch):
    eve = person("eve", adjudicates=True)
    task = make_task([AGREED] * 8, audit_least=6, audit_recheck=1, audit_limit=0.01, check_share=1.0)
    for _ in range(6):
        unit = say(ann, task, "fr")
        settle(ada, unit, "fr")
        assert task.units.filter(stage=stages.AGREED).count() == 2
        settle(eve, unit, "fr")
    assert not task.units.filter(stage=stages.AGREED).exists()


def test_what_an_extension_adds_to_a_contested_language_is_checked_as_well(make_task, monkeypatch):
    task = make_task([AGREED] * 4, check_share=0.5)
    contest(task, "de")
    assert task.units.filter(recheck=True).count() == 2
    extend_by(monkeypatch, task, [{"votes": DISPUTED}] * 4)
    extend_task(task, 10**6)
    assert task.units.filter(recheck=True).count() == 4


def test_the_first_answer_is_compared_with_the_check_and_not_the_one_given_after_undo(make_task, ann, ada):
    task = make_task([DISPUTED] * 2, **ALL)
    for _ in range(2):
        judge(ann, take(ann, task).pk, Answer("und", reason="mixed"))
        judge(ann, undo(ann, task).pk, Answer("de"))
    for unit in task.units.all():
        settle(ada, unit, "de")
    row = row_of(task, "de")
    assert (row["checked"], row["otherwise"]) == (2, 2)
