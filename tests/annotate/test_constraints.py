"""What the database refuses, whatever the operations do: each test breaks a rule by writing past them."""

import re
from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError
from django.utils import timezone

from annotate.core import stages
from annotate.kinds import Answer
from annotate.models import AnnotatorLanguage, Comparison, Judgment, Lease, Side, Unit
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from corpora.models import Draw, Item
from tests.annotate.conftest import AGREED, DISPUTED

pytestmark = pytest.mark.both_databases


NOW = timezone.now()


def refuses(constraint, write):
    with pytest.raises(IntegrityError) as refusal, transaction.atomic():
        write()
    # PostgreSQL names the constraint; SQLite names a unique one by its columns.
    assert re.search(f"{constraint}|UNIQUE constraint failed", str(refusal.value))


@pytest.fixture
def task(make_task):
    return make_task([DISPUTED, AGREED])


@pytest.fixture
def unit(task):
    return task.units.get(stage=stages.QUEUED)


@pytest.fixture
def ann(person):
    return person("ann", "de")


@pytest.fixture
def bea(person):
    return person("bea", "de")


def lease(unit, annotator, **fields):
    fields = {"place": 1, "round": 1, "queue": "de", "opened_at": NOW, "expires_at": NOW} | fields
    return Lease.objects.create(unit=unit, annotator=annotator, **fields)


def closed(outcome="skipped", place=None):
    return {"closed_at": NOW, "outcome": outcome, "place": place}


def judgment(unit, annotator, **fields):
    if "lease" not in fields:
        fields["lease"] = lease(unit, annotator, **closed())
    fields = {"kind": "answer", "label": "de", "answered_at": NOW} | fields
    return Judgment.objects.create(unit=unit, annotator=annotator, **fields)


def test_two_live_judgments_of_one_annotator_on_one_unit(unit, ann, bea):
    judgment(unit, ann)
    judgment(unit, bea)
    judgment(unit, ann, voided_at=NOW)
    refuses("one_live_judgment", lambda: judgment(unit, ann, label="en"))


def test_a_settlement_by_who_has_judged_the_unit(unit, ann):
    judgment(unit, ann, kind="skip", label="")
    refuses("one_live_judgment", lambda: judgment(unit, ann, kind="settle", lease=None))


def test_an_answer_together_with_a_skip(unit, ann):
    refuses("answer_or_skip", lambda: judgment(unit, ann, kind="skip", label="de"))
    refuses("answer_or_skip", lambda: judgment(unit, ann, kind="answer", label=""))


def test_a_discard_with_a_label_and_a_settlement_without(unit, ann):
    refuses("answer_or_skip", lambda: judgment(unit, ann, kind="discard", label="de", lease=None))
    refuses("answer_or_skip", lambda: judgment(unit, ann, kind="settle", label="", lease=None))


def test_an_unknown_kind_of_judgment(unit, ann):
    refuses("answer_or_skip|annotators_judge_by_lease", lambda: judgment(unit, ann, kind="guess"))


def test_an_answer_without_a_lease_and_a_settlement_with_one(unit, ann):
    refuses("annotators_judge_by_lease", lambda: judgment(unit, ann, lease=None))
    refuses("annotators_judge_by_lease", lambda: judgment(unit, ann, kind="settle"))


def test_two_judgments_by_one_lease(unit, ann):
    first = judgment(unit, ann, voided_at=NOW)
    refuses("lease_id", lambda: judgment(unit, ann, lease=first.lease))


def test_an_answer_before_the_unit_was_shown(unit, ann):
    refuses("shown_before_answered", lambda: judgment(unit, ann, shown_at=NOW + timedelta(seconds=1)))


@pytest.mark.parametrize("stage", [s for s in stages.STAGES if s not in (*stages.WITH_LABEL, stages.COPIED)])
def test_a_label_outside_agreed_and_labelled(task, unit, stage):
    Unit.objects.filter(pk=unit.pk).update(stage=stage)
    refuses("label_only_where_labelled", lambda: Unit.objects.filter(pk=unit.pk).update(label="de"))


def test_a_copy_with_a_label_of_its_own(task, unit):
    agreed = task.units.get(stage=stages.AGREED)
    copy = {"stage": stages.COPIED, "copy_of": unit}
    Unit.objects.filter(pk=agreed.pk).update(label="", **copy)
    refuses("label_only_where_labelled", lambda: Unit.objects.filter(pk=agreed.pk).update(label="de"))


@pytest.mark.parametrize("stage", stages.WITH_LABEL)
def test_agreed_or_labelled_without_a_label(unit, stage):
    changed = {"stage": stage, "agreed_label": "de"}
    refuses("label_only_where_labelled", lambda: Unit.objects.filter(pk=unit.pk).update(**changed))


def test_an_audit_where_nothing_was_agreed_on(unit):
    refuses("agreed_on_a_label", lambda: Unit.objects.filter(pk=unit.pk).update(audited=True))


def test_agreed_without_what_was_agreed_on(task):
    refuses("agreed_on_a_label", lambda: task.units.filter(stage=stages.AGREED).update(agreed_label=""))


def test_a_copy_whose_answer_is_known(task, unit):
    agreed = task.units.filter(stage=stages.AGREED)
    agreed.update(label="", stage=stages.COPIED, copy_of=unit)
    refuses("known_answer_stands_alone", lambda: task.units.filter(copy_of=unit).update(known_answer="not-de"))


def test_an_unknown_stage(unit):
    refuses("known_stage", lambda: Unit.objects.filter(pk=unit.pk).update(stage="LOST"))


def test_a_unit_that_waits_for_readers_of_no_language_or_in_no_round(unit):
    refuses("queued_somewhere", lambda: Unit.objects.filter(pk=unit.pk).update(language=""))
    refuses("queued_somewhere", lambda: Unit.objects.filter(pk=unit.pk).update(round=0))


def test_a_copy_without_an_original_and_an_original_for_what_is_no_copy(task, unit):
    other = task.units.get(stage=stages.AGREED)
    refuses("copied_has_original", lambda: Unit.objects.filter(pk=unit.pk).update(stage=stages.COPIED))
    refuses("copied_has_original", lambda: Unit.objects.filter(pk=unit.pk).update(copy_of=other))


def test_two_open_leases_of_one_annotator_on_one_unit(unit, ann):
    lease(unit, ann)
    refuses("one_open_lease_per_annotator", lambda: lease(unit, ann, place=2))


def test_two_holders_of_one_place_of_a_unit(unit, ann, bea):
    lease(unit, ann)
    lease(unit, bea, place=2)
    refuses("one_holder_per_place", lambda: lease(unit, ann, **closed("answered", 2)))


def test_an_answered_place_given_to_somebody_else(unit, ann, bea):
    lease(unit, ann, **closed("answered", 1))
    refuses("one_holder_per_place", lambda: lease(unit, bea))


def test_an_open_lease_with_place_nought(unit, ann):
    refuses("place_kept_by_open_or_answered", lambda: lease(unit, ann, place=0))


def test_an_open_lease_without_a_place(unit, ann):
    refuses("place_kept_by_open_or_answered", lambda: lease(unit, ann, place=None))


@pytest.mark.parametrize("outcome", ["", "skipped", "released", "expired", "undone"])
def test_a_place_kept_by_a_lease_that_was_closed_without_an_answer(unit, ann, outcome):
    refuses("place_kept_by_open_or_answered", lambda: lease(unit, ann, **closed(outcome, 1)))


def test_an_answered_lease_without_its_place(unit, ann):
    refuses("place_kept_by_open_or_answered", lambda: lease(unit, ann, **closed("answered", None)))


def test_a_lease_that_stands_for_another_unit_and_was_closed_without_an_answer_holds_no_place(unit, ann):
    lease(unit, ann, instead_of=unit, **closed("answered"))
    for outcome in ("skipped", "released"):
        fields = closed(outcome, 1) | {"instead_of": unit}
        refuses("place_kept_by_open_or_answered", lambda fields=fields: lease(unit, ann, **fields))


def test_an_open_lease_with_an_outcome(unit, ann):
    refuses("place_kept_by_open_or_answered", lambda: lease(unit, ann, outcome="answered"))


def test_a_place_beyond_the_redundancy_is_the_operations_to_keep(unit, ann, bea):
    """No constraint can compare two tables; free_place never counts beyond."""
    take(ann, unit.task)
    assert take(bea, unit.task) is None


def test_an_item_twice_in_one_corpus(task):
    item = Item.objects.first()
    again = {"corpus": item.corpus, "key": item.key, "text": "other", "votes": {}, "letters": 5}
    refuses("item_once_in_corpus", lambda: Item.objects.create(**again))


def test_an_item_twice_in_one_task(unit):
    again = {"task": unit.task, "item": unit.item, "position": 9, "redundancy": 1}
    refuses("item_asked_once_in_task", lambda: Unit.objects.create(**again))


def test_a_unit_that_asks_nobody(unit):
    refuses("unit_asks_somebody", lambda: Unit.objects.update(redundancy=0))


def test_a_language_twice_for_one_annotator_and_a_level_above_native(ann):
    refuses("language_once_per_annotator", lambda: AnnotatorLanguage.objects.create(annotator=ann, language="de"))
    refuses("level_0_to_5", lambda: AnnotatorLanguage.objects.create(annotator=ann, language="fr", level=6))


def test_a_draw_that_is_larger_than_what_it_was_drawn_from(task):
    refuses("draw_within_frame", lambda: Draw.objects.update(size=1000))


def test_nothing_is_deleted_that_an_answer_stands_on(task, unit, ann):
    lease = take(ann, task)
    given = judge(ann, lease.pk, Answer("de"))
    for record in (ann, ann.user, lease, unit, unit.item, task, given):
        with pytest.raises(ProtectedError):
            record.delete()


def test_a_skip_leaves_no_place_behind(unit, ann):
    given = take(ann, unit.task)
    skip(ann, given.pk)
    given.refresh_from_db()
    assert (given.outcome, given.place) == ("skipped", None)


def test_a_unit_compares_two_different_systems_and_a_comparison_is_of_a_unit_or_of_a_gold_answer(unit):
    refuses("two_systems_compared", lambda: Comparison.objects.create(unit=unit, system_a="a", system_b="a"))
    refuses("compared_for_a_unit_or_a_gold", lambda: Comparison.objects.create(system_a="a", system_b="b"))
    Comparison.objects.create(unit=unit, system_a="a", system_b="b")
    refuses("unit_id", lambda: Comparison.objects.create(unit=unit, system_a="a", system_b="c"))


def test_which_system_stands_first_for_a_person_is_kept_once(unit, ann, bea):
    Side.objects.create(unit=unit, annotator=ann, first="a")
    Side.objects.create(unit=unit, annotator=bea, first="b")
    refuses("sides_drawn_once", lambda: Side.objects.create(unit=unit, annotator=ann, first="b"))


def test_a_message_is_asked_about_once_for_each_pair_of_systems(unit):
    def another(pair):
        position = 100 + pair
        return Unit.objects.create(task=unit.task, item=unit.item, pair=pair, position=position, redundancy=1)

    another(1), another(2)
    refuses("item_asked_once", lambda: another(2))
