"""The audit of the detectors' agreement: who is asked, what counts, and the consequences."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.actions.registry import call_command
from annotate.controls import audit_report
from annotate.controls.agreement_audit import contest_all
from annotate.core import stages
from annotate.core.draws import hash_order
from annotate.core.estimation.proportions import jeffreys
from annotate.figures.task_overview import load_overview
from annotate.kinds import Answer
from annotate.work import adjudication
from annotate.work.assignment import lease_locked
from annotate.work.judgments import judge
from annotate.work.permit import permit_of
from annotate.work.task_creation import extend_task
from tests.annotate.acts import say, settle, work_through
from tests.annotate.conftest import AGREED, DISPUTED, LONG, extend_by
from tests.annotate.goldsets.acts import with_manifest
from tests.annotate.journeys import follow

ANN_READS = "de fr"
FRENCH = ("fr", "fr", "fr")
COPY = {"text": LONG.format("of a copy"), "votes": AGREED}


@pytest.fixture
def extended(monkeypatch):
    """extended(task, [{"votes": AGREED}]) extends a task by items with these fields."""

    def extend(task, added):
        extend_by(monkeypatch, task, added)
        return extend_task(task, 10**6)

    return extend


def test_a_share_of_all_is_audited_by_power_allocation_and_the_least_number_of_each_language(make_task):
    # The 15 audits are spread as 50^0.7 = 15.5 to 8^0.7 = 4.3.
    for least, expected in ((2, {"de": 12, "fr": 3}), (4, {"de": 11, "fr": 4})):
        task = make_task([AGREED] * 50 + [FRENCH] * 8, name=f"t{least}", audit_share=0.25, audit_least=least)
        chosen = task.units.filter(audited=True)
        assert Counter(chosen.values_list("agreed_label", flat=True)) == expected
        assert set(chosen.values_list("stage", flat=True)) == {stages.QUEUED}
        assert task.units.filter(stage=stages.AGREED).count() == 43
    unaudited = make_task([AGREED] * 3, name="unaudited")
    assert set(unaudited.units.values_list("audited", "stage")) == {(False, stages.AGREED)}


def test_what_is_added_to_a_language_that_failed_goes_to_people_too(make_task, ann, ada, extended):
    task = make_task([AGREED] * 10, audit_least=2, audit_recheck=0, audit_limit=0.01)
    for _ in range(2):
        settle(ada, say(ann, task, "fr"), "fr")
    work_through(ann, task)
    opened = extended(task, [{"votes": AGREED}] * 5 + [{"votes": FRENCH}] * 5)
    assert opened.contested == {"de": 5}
    # another language has its own audit, which is not finished
    stages_now = Counter(task.units.filter(agreed_label="fr").values_list("stage", flat=True))
    assert stages_now == {stages.AGREED: 3, stages.QUEUED: 2}


def test_an_audit_is_done_though_what_was_contested_before_is_not(make_task, ann, ada, extended):
    task = make_task([AGREED] * 10, audit_share=0.2, audit_least=2, audit_recheck=0, audit_limit=0.01)
    for _ in range(2):
        settle(ada, say(ann, task, "fr"), "fr")
    assert task.units.filter(stage=stages.QUEUED).count() == 8
    assert not audit_report.report(task)["languages"][0]["waiting"]
    assert extended(task, [{"votes": AGREED}] * 10).contested == {}
    assert audit_report.report(task)["languages"][0]["waiting"]
    for unit in task.units.filter(audited=True, stage=stages.QUEUED):
        judge(ann, lease_locked(unit, permit_of(ann, task)).pk, Answer("de"))
    assert not task.units.filter(stage=stages.AGREED).exists()


def test_an_audited_post_is_handed_out_in_its_turn_like_any_other(make_task, ann):
    task = make_task([DISPUTED, AGREED, DISPUTED], audit_least=1)
    assert [say(ann, task, "de").position for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("recheck", "steps", "counts"),
    [
        (0, "ann de > LABELLED de 1 de", (0, 0, 1, 1)),
        (1, "ann de > ADJUDICATION de 1; ada settles de > LABELLED de 1 de", (0, 0, 1, 1)),
        (0, "ann fr > ADJUDICATION de 1; ada settles de > LABELLED de 1 de", (1, 0, 0, 1)),
        (0, "ann und > ADJUDICATION de 1; ada settles de > LABELLED de 1 de", (1, 0, 0, 1)),
        (0, "ann fr; ann undo; ann de > LABELLED de 1 de", (0, 0, 1, 1)),
        (0, "ann skip > ADJUDICATION de 1; ada settles fr > LABELLED de 1 fr", (1, 1, 0, 1)),
    ],
)
def test_a_confirmation_counts_at_once_and_a_doubt_or_what_the_lot_chose_once_it_is_adjudicated(
    make_task, recheck, steps, counts
):
    task = make_task([AGREED], audit_least=1, audit_recheck=recheck)
    follow(task, "ann:de+fr ada:", steps)
    audit = audit_report.audits(task)["de"]
    assert (audit.doubted, audit.doubted_wrong, audit.confirmed, audit.resolved) == counts


def test_an_overruled_confirmation_is_reported(make_task, ann, ada, capsys):
    for label in ("fr", "de"):
        task = make_task([AGREED], name=label, audit_least=1, audit_recheck=1, audit_limit=0.99)
        settle(ada, say(ann, task, "de"), label)
        call_command("audit", label)
        sentence = "1 of 1 confirmation checked by an adjudicator was wrong"
        assert (sentence in capsys.readouterr().out) == (label == "fr")


def test_what_is_discarded_or_not_done_yet_gives_bounds(make_task, ann, ada):
    task = make_task([AGREED] * 3, audit_least=3, audit_recheck=0)
    say(ann, task, "de")
    adjudication.discard(ada, say(ann, task, "und").pk, "Nothing found")
    audit = audit_report.audits(task)["de"]
    assert (audit.resolved, audit.unresolved) == (1, 2)
    report = audit_report.report(task)
    assert report["languages"][0]["error"]["value"] == 0
    for low, high in (report["languages"][0]["bounds"], report["overall_bounds"]):
        assert low == pytest.approx(jeffreys(0, 3)[0])
        assert high == pytest.approx(jeffreys(2, 3)[1])


def test_discarded_posts_are_distinguished_from_unfinished_ones(make_task, ann, ada, capsys):
    task = make_task([AGREED] * 3, audit_least=3, audit_recheck=0, audit_limit=0.1)
    adjudication.discard(ada, say(ann, task, "und").pk, "Nothing found")
    call_command("audit", "task")
    assert "* de: not finished\n" in capsys.readouterr().out
    for _ in range(2):
        settle(ada, say(ann, task, "fr"), "fr")
    call_command("audit", "task")
    output = capsys.readouterr().out
    assert "* de: 1 discarded; regardless of their labels, " in output
    assert "More than 10% may be wrong, but people already read all posts: de.\n" in output
    (row,) = audit_report.report(task)["languages"]
    assert (row["all_read"], row["over_limit"], row["contested"]) == (True, False, False)


def test_copies_of_an_audited_text_count_as_posts_and_take_its_label(make_task, ann, ada):
    task = make_task(
        [{**COPY, "key": "a"}, {**COPY, "key": "b"}, AGREED], audit_least=3, audit_recheck=0, audit_limit=1
    )
    assert task.units.filter(audited=True).count() == 3
    work_through(ann, task, lambda lease: "fr" if lease.unit.item.text == COPY["text"] else "de")
    settle(ada, task.units.get(stage=stages.ADJUDICATION), "fr")
    audit = audit_report.audits(task)["de"]
    assert (audit.posts, audit.doubted_wrong, audit.confirmed) == (3, 2, 1)


def test_a_copy_may_be_chosen_where_its_original_is_not(make_task):
    for share in (0.34, 0.67):
        task = make_task(
            [{**COPY, "key": f"{share} {n}"} for n in range(3)], name=f"t{share * 100:.0f}", audit_share=share
        )
        chosen = task.units.filter(audited=True).count()
        assert chosen == {0.34: 2, 0.67: 3}[share]
        assert task.units.get(copy_of=None).stage == stages.QUEUED


def test_a_language_that_fails_its_audit_goes_to_people_and_it_is_said_why(make_task, ann, ada, data_dir, capsys):
    task = make_task([AGREED] * 10 + [FRENCH] * 2, audit_least=2, audit_recheck=0, audit_limit=0.95)
    units = [say(ann, task, "fr") for _ in range(2)]
    work_through(ann, task, "fr")
    assert task.units.filter(stage=stages.AGREED, agreed_label="de").count() == 8
    settle(ada, units[0], "fr")
    # one audit of the language is not done yet
    assert task.units.filter(stage=stages.AGREED, agreed_label="de").count() == 8
    settle(ada, units[1], "fr")
    contested = task.units.filter(transitions__event="contested")
    assert contested.count() == 8
    assert set(contested.values_list("stage", "language", "round", "label")) == {(stages.QUEUED, "de", 1, "")}
    # answers on these count as on any disputed post
    unit = say(ann, task, "de")
    assert (unit.stage, unit.label, unit.agreed_label) == (stages.LABELLED, "de", "de")
    row = audit_report.report(task)["languages"][0]
    assert row["contested"]
    assert row["audited"] == 2
    # people who see work come back are told why
    assert audit_report.contested_waiting() == {task.pk: {"de": 7}}
    why = "The audit failed for de, so people label these too: 7 are waiting."
    [row] = load_overview().tasks
    assert row["next"] == f"In progress: 7 more answers are needed. {why}"
    with_manifest()
    call_command("export_gold", "task", out=data_dir / "gold")
    assert why in capsys.readouterr().err
    call_command("audit", "task")
    output = capsys.readouterr().out
    assert "People label all posts, because more than 95% may be wrong: de.\n" in output
    assert "No other language with unread posts and a finished audit is over the limit of 95%.\n" in output


def test_an_audit_that_cannot_tell_contests_nothing(make_task, ann, ada):
    """Of ten right posts up to 21.7% may be wrong, and of ten with a wrong one up to 38.1%."""
    task = make_task([AGREED] * 40, audit_least=10, audit_recheck=0, audit_limit=0.15)
    settle(ada, say(ann, task, "fr"), "fr")
    for _ in range(9):
        say(ann, task, "de")
    row = audit_report.report(task)["languages"][0]
    assert (row["audited"], row["waiting"], row["over_limit"]) == (10, False, False)
    assert row["error"]["low"] < 0.15 < row["error"]["high"]
    assert contest_all(task) == {}
    assert task.units.filter(stage=stages.AGREED).count() == 30


@given(st.floats(0, 1), st.integers(0, 10_000))
def test_a_part_is_never_less_than_its_share(share, whole):
    part = hash_order.part_of(share, whole)
    assert share * whole <= part + 1e-6
    assert part <= whole
    assert hash_order.part_of(0.07, 100) == 7  # exact decimal arithmetic


@given(st.floats(0, 1), st.sampled_from([hash_order.by_seed("s"), hash_order.by_secret("s")]))
def test_a_share_of_ids_is_hit(share, lots):
    hits = sum(hash_order.is_drawn(share, lots=lots, purpose="p", key=str(n)) for n in range(400))
    assert abs(hits / 400 - share) < 0.12
