"""Checks of single readers: who is checked, the unit's next stage, and the counts."""

from collections import Counter

import pytest

from annotate.controls import check_report, checks
from annotate.controls.agreement_audit import contest
from annotate.core import stages
from annotate.core.draws import hash_order
from annotate.core.estimation.proportions import jeffreys
from annotate.work import adjudication
from annotate.work.task_creation import extend_task
from tests.annotate.acts import say, settle
from tests.annotate.conftest import AGREED, DISPUTED, LONG, extend_by
from tests.annotate.journeys import follow

ANN_READS = "de fr"
FRENCH = ("fr en", "en fr", "fr")
ALL = {"check_share": 1.0}
# A share so small that only the minimum of each language is checked.
FEW = 1e-9


def chosen(task):
    return dict(Counter(task.units.filter(recheck=True).values_list("language", flat=True)))


def row_of(task, language):
    return next(row for row in check_report.report(task)["languages"] if row["language"] == language)


# --- who is checked


def test_a_share_of_all_is_checked_by_power_allocation_and_the_least_number_of_each_queue(make_task, monkeypatch):
    monkeypatch.setattr(checks, "CHECK_LEAST", 4)
    task = make_task([DISPUTED] * 50 + [FRENCH] * 8, check_share=0.2)
    assert chosen(task) == {"de": 8, "fr": 4}
    keys = list(task.units.filter(language="de").values_list("item__key", flat=True))
    drawn = hash_order.draw_sample(keys, 8, lots=task.lots, purpose="check")
    assert set(task.units.filter(recheck=True, language="de").values_list("item__key", flat=True)) == set(drawn)
    small = make_task([DISPUTED] * 12 + [FRENCH] * 3, name="small", check_share=FEW)
    assert chosen(small) == {"de": 4, "fr": 3}  # all units of a smaller queue are checked


def test_what_several_people_read_is_not_checked(make_task, django_assert_max_num_queries):
    assert chosen(make_task([DISPUTED] * 6, name="three", redundancy=3, **ALL)) == {}
    with django_assert_max_num_queries(60):  # however many are checked
        assert chosen(make_task([DISPUTED] * 100, name="one", **ALL)) == {"de": 100}
    overlap = make_task([DISPUTED] * 40, name="overlap", redundancy=1.5, **ALL)
    counts = Counter(overlap.units.values_list("redundancy", "recheck"))
    assert set(counts) == {(1, True), (2, False)}
    assert check_report.check_counts(overlap) == {"de": (counts[1, True], counts[1, True])}


def test_hidden_posts_copies_and_the_audits_own_are_not_checked(make_task):
    verify = make_task([DISPUTED] * 6, name="verify", asked="de", decoys=2, **ALL)
    assert set(verify.units.values_list("known_answer", "recheck")) == {("", True), ("not-de", False)}
    same = {"text": LONG.format("the same"), "votes": DISPUTED}
    copies = make_task([{**same, "key": "a"}, {**same, "key": "b"}], name="copies", **ALL)
    assert list(copies.units.values_list("stage", "recheck")) == [(stages.QUEUED, True), (stages.COPIED, False)]
    audited = make_task([AGREED] * 5, name="audited", audit_least=3, audit_recheck=0, **ALL)
    assert not audited.units.filter(recheck=True).exists()


def test_of_a_language_that_is_contested_a_share_is_checked_with_what_was_disputed_before_and_is_added(
    make_task, monkeypatch
):
    task = make_task([DISPUTED] * 10 + [AGREED] * 30, check_share=0.1)
    assert task.units.filter(recheck=True).count() == 2
    contest(task, "de")
    extend_by(monkeypatch, task, [{"votes": DISPUTED}] * 20)
    for agreed, number in (("", 2), ("de", 2)):
        assert task.units.filter(recheck=True, agreed_label=agreed).count() == number
    extend_task(task, 10**6)
    assert task.units.filter(recheck=True).count() == 6


# --- what becomes of it


def test_after_its_reader_a_checked_unit_waits_for_an_adjudicator_who_sees_no_answers(make_task, ann, ada):
    task = make_task([DISPUTED], **ALL)
    unit = say(ann, task, "de")
    assert (unit.stage, unit.label) == (stages.ADJUDICATION, "")
    assert unit.transitions.last().event == "checked"
    (listed,) = adjudication.to_adjudicate(task, ada)
    assert listed.blind
    assert not adjudication.to_adjudicate(task, ada, "de").exists()


@pytest.mark.parametrize(
    ("post", "options", "people", "steps", "counts"),
    [
        (DISPUTED, ALL, "ann:de ada:", "ann de; ada settles de > LABELLED de 1 de", (0, 1, 0, 0, 0)),
        (DISPUTED, ALL, "ann:de ada:", "ann de; ada settles en > LABELLED de 1 en", (0, 1, 1, 0, 0)),
        # Units not chosen, or without a second reader, get their reader's label at once.
        (DISPUTED, {}, "ann:de", "ann de > LABELLED de 1 de", (1, 0, 0, 0, 0)),
        (DISPUTED, {"redundancy": 1.999999, "rounds": 1}, "ann:de", "ann de > LABELLED de 1 de", (1, 0, 0, 0, 0)),
        (DISPUTED, {"asked": "de", **ALL}, "ann:de ada:", "ann de; ada settles not-de", (0, 1, 1, 0, 0)),
        # If the reader undoes the answer, the first one is compared, and an adjudicator's decision stands.
        (DISPUTED, ALL, "ann:de", "ann de; ann undo > QUEUED de 1", (0, 0, 0, 1, 0)),
        (
            DISPUTED,
            ALL,
            "ann:de ada:",
            "ann und; ann undo; ann de > ADJUDICATION de 1; ada settles de; ann undo; ann fr > LABELLED de 1 de",
            (0, 1, 1, 0, 0),
        ),
        # A voided answer does not count, and the next reader is checked.
        (
            DISPUTED,
            ALL,
            "ann:de ben:de ada:",
            "ann de; ann voided > QUEUED de 1; ben und > checked ADJUDICATION de 1; ada settles und",
            (0, 1, 0, 0, 0),
        ),
        (DISPUTED, ALL, "ann:de ada:", "ann de; ada discards > DISCARDED de 1", (0, 0, 0, 0, 1)),
        # Without an answer there is nothing to check.
        (DISPUTED, {"rounds": 1, **ALL}, "ann:de ada:", "ann skip; ada settles de", (0, 0, 0, 0, 0)),
    ],
)
def test_a_checked_unit_has_the_adjudicators_label_and_counts_by_the_first_answer(
    make_task, post, options, people, steps, counts
):
    task = make_task([post], **options)
    follow(task, people, steps)
    row = row_of(task, "de")
    assert tuple(row[key] for key in ("alone", "checked", "otherwise", "waiting", "unresolved")) == counts


def test_a_contested_unit_is_checked_though_the_detectors_agree(make_task):
    task = make_task([AGREED], **ALL)
    contest(task, "de")
    follow(task, "ann:de+fr ada:", "ann de > checked ADJUDICATION de 1; ada settles fr > LABELLED de 1 fr")


# --- what is counted


def test_languages_are_those_of_the_first_queue_and_in_all_they_are_added_up(make_task, ann, ada):
    task = make_task([DISPUTED] * 4 + [FRENCH] * 3, check_share=FEW)
    for queue in task.units.order_by("position").values_list("language", flat=True):
        unit = say(ann, task, queue)
        if unit.stage == stages.ADJUDICATION and row_of(task, "de")["checked"] < 1:
            settle(ada, unit, "en")
    report = check_report.report(task)
    german, french = row_of(task, "de"), row_of(task, "fr")
    assert [german[key] for key in ("alone", "checked", "otherwise", "waiting")] == [2, 1, 1, 1]
    assert [french[key] for key in ("alone", "checked", "otherwise", "waiting")] == [1, 0, 0, 2]
    assert [report["overall"][key] for key in ("alone", "checked", "otherwise", "waiting")] == [3, 1, 1, 3]
    error = german["error"]
    assert (error["value"], error["low"], error["high"]) == (1.0, *jeffreys(1, 1))
    assert french["error"]["value"] is None


def test_an_audit_of_a_language_waits_for_the_second_adjudicator(make_task, ann, ada, eve):
    task = make_task([AGREED] * 8, audit_least=6, audit_recheck=1, audit_limit=0.01, check_share=1.0)
    for _ in range(6):
        unit = say(ann, task, "fr")
        settle(ada, unit, "fr")
        assert task.units.filter(stage=stages.AGREED).count() == 2
        settle(eve, unit, "fr")
    assert not task.units.filter(stage=stages.AGREED).exists()
