"""Decoys, audits and gold answers are not given to a person who has seen the text, whatever it was shown as."""

import pytest

from annotate.actions.opening_summary import lacking
from annotate.kinds import Answer
from annotate.models import Lease, Unit
from annotate.work.eligible import waiting
from annotate.work.judgments import judge
from annotate.work.permit import permit_of
from annotate.work.queue import take
from annotate.work.routes import Routes
from annotate.work.routing import lacking_readers
from tests.annotate.acts import progress_of
from tests.annotate.conftest import AGREED, DISPUTED


def all_given(person, task):
    """Everything that a person is given, as they answer it."""
    given = []
    while lease := take(person, task):
        given.append(lease.unit)
        judge(person, lease.pk, Answer(task.labels[0] if not lease.unit.asked else lease.unit.asked))
    return given


@pytest.mark.parametrize("copied", [False, True], ids=["the post", "a copy of another corpus"])
@pytest.mark.parametrize(
    ("posts", "hidden"),
    [([DISPUTED] * 8, {"asked": "de", "decoys": 4}), ([DISPUTED, AGREED] * 4, {"audit_least": 4})],
    ids=["decoys", "audits"],
)
def test_hidden_posts_go_to_those_alone_who_have_not_seen_the_text(make_task, person, posts, hidden, copied):
    task = make_task(posts, name="later", **hidden)
    hidden = set(task.units.filter(known_answer__gt="") | task.units.filter(audited=True))
    assert len(hidden) == 4
    earlier = make_task([DISPUTED] * 4, name="earlier")
    for unit, other in zip(sorted(hidden, key=lambda each: each.pk), earlier.units.all(), strict=True):
        if copied:
            other.item.text = unit.item.text
            other.item.save()
        else:
            Unit.objects.filter(pk=other.pk).update(item=unit.item)
    ann, bea = person("ann", "de"), person("bea", "de")
    assert len(all_given(ann, earlier)) == 4
    assert not hidden.intersection(waiting(permit_of(ann, task)))
    assert progress_of(ann, task)["waiting"] == task.units.queued().count() - 4
    assert lacking_readers(task, Routes.load(task).readers()) == {}
    assert not hidden.intersection(all_given(ann, task))
    assert hidden == set(all_given(bea, task))


def test_a_manager_hears_that_the_readers_have_seen_the_items_in_another_task(make_task, person):
    task, earlier = make_task([AGREED] * 5, name="later", audit_share=1.0), make_task([DISPUTED] * 5, name="earlier")
    for unit, other in zip(task.units.all(), earlier.units.all(), strict=True):
        Unit.objects.filter(pk=other.pk).update(item=unit.item)
    ann = person("ann", "de")
    assert lacking(task) == []
    all_given(ann, earlier)
    [warning] = lacking(task)
    assert warning.startswith("Warning: too few readers of these languages have not yet seen the units")
    assert warning.endswith(": de (5). Invite others.")


def test_gold_answers_go_to_those_alone_who_have_not_seen_the_record(make_records_task, person):
    task = make_records_task("qa_match", 12, gold={"queue": ["1", "0"] * 3}, gold_share=0.34, pause_below=0.0)
    pots = set(task.units.filter(honeypot=True))
    earlier = make_records_task("qa_match", 4, name="earlier")
    for pot, other in zip(sorted(pots, key=lambda each: each.pk), earlier.units.all(), strict=False):
        other.item.text = pot.item.text
        other.item.save()
    ann = person("ann", "en")
    assert len(all_given(ann, earlier)) == 4
    met = {lease.unit.item.text for lease in Lease.objects.filter(annotator=ann)}
    left = {pot for pot in pots if pot.item.text not in met}
    assert len(left) == 2
    waits = progress_of(ann, task)["waiting"]
    given = all_given(ann, task)
    assert pots.intersection(given) == left
    assert len(given) == waits
