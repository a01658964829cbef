"""What the database itself refuses: each case breaks a rule by writing to it directly."""

import re
from datetime import timedelta
from types import SimpleNamespace

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


@pytest.fixture
def world(make_task, person):
    """A disputed unit and an agreed one, with two annotators."""
    task = make_task([DISPUTED, AGREED])
    unit, agreed = task.units.order_by("position")
    return SimpleNamespace(task=task, unit=unit, agreed=agreed, ann=person("ann", "de"), bea=person("bea", "de"))


def closed(outcome="skipped", place=None):
    return {"closed_at": NOW, "outcome": outcome, "place": place}


def lease(world, who="ann", **fields):
    fields = {"place": 1, "round": 1, "queue": "de", "opened_at": NOW, "expires_at": NOW} | fields
    return Lease.objects.create(unit=world.unit, annotator=getattr(world, who), **fields)


def judgment(world, who="ann", **fields):
    if "lease" not in fields:
        fields["lease"] = lease(world, who, **closed())
    fields = {"kind": "answer", "label": "de", "answered_at": NOW} | fields
    return Judgment.objects.create(unit=world.unit, annotator=getattr(world, who), **fields)


def changing(unit="unit", **fields):
    """Writes a unit: the disputed one, or "agreed"."""
    return lambda w: Unit.objects.filter(pk=getattr(w, unit).pk).update(**fields)


def leasing(who="ann", **fields):
    return lambda w: lease(w, who, **fields)


def judging(who="ann", **fields):
    return lambda w: judgment(w, who, **fields)


def comparing(one, other):
    return lambda w: Comparison.objects.create(unit=w.unit, system_a=one, system_b=other)


def instead_of(outcome, place=None):
    return lambda w: lease(w, instead_of=w.unit, **closed(outcome, place))


def siding(who, first):
    return lambda w: Side.objects.create(unit=w.unit, annotator=getattr(w, who), first=first)


def asking(**fields):
    """Another unit of the task about the same item."""
    fields = {"position": 9, "redundancy": 1} | fields
    return lambda w: Unit.objects.create(task=w.task, item=w.unit.item, **fields)


def copied(w):
    Unit.objects.filter(pk=w.agreed.pk).update(label="", stage=stages.COPIED, copy_of=w.unit)


def item_again(w):
    again = {"corpus": w.unit.item.corpus, "key": w.unit.item.key, "text": "other", "votes": {}, "letters": 5}
    return Item.objects.create(**again)


def reading(language, **fields):
    return lambda w: AnnotatorLanguage.objects.create(annotator=w.ann, language=language, **fields)


ONE_LIVE, LABELLED, PLACE = "one_live_judgment", "label_only_where_labelled", "place_kept_by_open_or_answered"
BY_LEASE, HOLDER, COMPARED = "annotators_judge_by_lease", "one_holder_per_place", "compared_for_a_unit_or_a_gold"
# (rule, constraint, what is refused, what was written before)
REFUSED = [
    ("two live judgments on a unit", ONE_LIVE, judging(label="en"), judging(), judging("bea"), judging(voided_at=NOW)),
    ("a settlement by a judge", ONE_LIVE, judging(kind="settle", lease=None), judging(kind="skip", label="")),
    ("a skip with a label", "answer_or_skip", judging(kind="skip")),
    ("an answer without a label", "answer_or_skip", judging(label="")),
    ("a discard with a label", "answer_or_skip", judging(kind="discard", lease=None)),
    ("a settlement without a label", "answer_or_skip", judging(kind="settle", label="", lease=None)),
    ("an unknown kind of judgment", f"answer_or_skip|{BY_LEASE}", judging(kind="guess")),
    ("an answer without a lease", BY_LEASE, judging(lease=None)),
    ("a settlement with a lease", BY_LEASE, judging(kind="settle")),
    ("two judgments by a lease", "lease_id", lambda w: judgment(w, lease=Lease.objects.get()), judging(voided_at=NOW)),
    ("an answer before it was shown", "shown_before_answered", judging(shown_at=NOW + timedelta(seconds=1))),
    *(
        (f"a label in the stage {stage}", LABELLED, changing(label="de"), changing(stage=stage))
        for stage in stages.STAGES
        if stage not in (*stages.WITH_LABEL, stages.COPIED)
    ),
    ("a copy with a label", LABELLED, changing("agreed", label="de"), copied),
    *((f"no label in {stage}", LABELLED, changing(stage=stage, agreed_label="de")) for stage in stages.WITH_LABEL),
    ("an audit where nothing was agreed on", "agreed_on_a_label", changing(audited=True)),
    ("agreed without a label", "agreed_on_a_label", changing("agreed", agreed_label="")),
    ("a copy with a known answer", "known_answer_stands_alone", changing("agreed", known_answer="not-de"), copied),
    ("an unknown stage", "known_stage", changing(stage="LOST")),
    ("a queued unit without a language", "queued_somewhere", changing(language="")),
    ("a queued unit without a round", "queued_somewhere", changing(round=0)),
    ("a copy without an original", "copied_has_original", changing(stage=stages.COPIED)),
    ("an original of no copy", "copied_has_original", lambda w: changing(copy_of=w.agreed)(w)),
    ("two open leases on a unit", "one_open_lease_per_annotator", leasing(place=2), leasing()),
    ("two holders of a place", HOLDER, leasing(**closed("answered", 2)), leasing(), leasing("bea", place=2)),
    ("an answered place given away", HOLDER, leasing("bea"), leasing(**closed("answered", 1))),
    ("an open lease with place 0", PLACE, leasing(place=0)),
    ("an open lease without a place", PLACE, leasing(place=None)),
    ("an open lease with an outcome", PLACE, leasing(outcome="answered")),
    ("an answered lease without its place", PLACE, leasing(**closed("answered", None))),
    *(
        (f"a place kept after {outcome!r}", PLACE, leasing(**closed(outcome, 1)))
        for outcome in ("", "skipped", "released", "expired", "undone")
    ),
    *(
        (f"a place kept instead of another after {outcome}", PLACE, instead_of(outcome, 1), instead_of("answered"))
        for outcome in ("skipped", "released")
    ),
    ("an item twice in a corpus", "item_once_in_corpus", item_again),
    ("an item twice in a task", "item_asked_once_in_task", asking()),
    ("an item twice a pair", "item_asked_once", asking(pair=2), asking(pair=2, position=8), asking(pair=1, position=7)),
    ("a unit that asks nobody", "unit_asks_somebody", changing(redundancy=0)),
    ("a language twice for an annotator", "language_once_per_annotator", reading("de")),
    ("a level above native", "level_0_to_5", reading("fr", level=6)),
    ("a draw larger than its frame", "draw_within_frame", lambda w: Draw.objects.update(size=1000)),
    ("a system compared with itself", "two_systems_compared", comparing("a", "a")),
    ("a comparison of nothing", COMPARED, lambda w: Comparison.objects.create(system_a="a", system_b="b")),
    ("two comparisons of a unit", "unit_id", comparing("a", "c"), comparing("a", "b")),
    ("another first side", "sides_drawn_once", siding("ann", "b"), siding("ann", "a"), siding("bea", "b")),
]


def test_the_database_refuses_what_must_never_happen(world):
    for rule, constraint, write, *before in REFUSED:
        with transaction.atomic():
            for prepare in before:
                prepare(world)
            error = None
            try:
                with transaction.atomic():
                    write(world)
            except IntegrityError as refusal:
                error = str(refusal)
            transaction.set_rollback(True)
        # PostgreSQL names the constraint; SQLite names a unique one by its columns.
        assert error, f"{rule} was not refused"
        assert re.search(f"{constraint}|UNIQUE constraint failed", error), rule


def test_nothing_is_deleted_that_an_answer_stands_on(world):
    opened = take(world.ann, world.task)
    answer = judge(world.ann, opened.pk, Answer("de"))
    for record in (world.ann, world.ann.user, opened, world.unit, world.unit.item, world.task, answer):
        with pytest.raises(ProtectedError):
            record.delete()


def test_operations_keep_places_within_the_redundancy_and_free_those_of_skips(world):
    """No constraint can compare two tables."""
    opened = take(world.ann, world.task)
    assert take(world.bea, world.task) is None
    skip(world.ann, opened.pk)
    opened.refresh_from_db()
    assert (opened.outcome, opened.place) == ("skipped", None)
