"""No pair of acts tells gold answers, audits, checks or decoys from work. On more units it is a benchmark."""

import random
import secrets

import pytest

from annotate.models import Unit
from tests.annotate import act_pairs, attacks
from tests.annotate.conftest import AGREED, DISPUTED

FEWEST = 8


@pytest.fixture(autouse=True)
def _lots_of_one_secret(monkeypatch):
    """By chance too few hidden units would be met now and then, and one interval in 5,000 leaves out the truth."""
    monkeypatch.setattr(secrets, "token_hex", lambda size: f"{7:0{2 * size}x}")


def untold(person, hidden, pairs=act_pairs.PAIRS):
    found = act_pairs.all_tried(person, pairs)
    rows = act_pairs.areas(found, hidden, FEWEST)
    assert len(rows) > 20, len(found)
    assert [row for row in rows if not row[4][0] <= 0.5 <= row[4][1]] == []


@pytest.mark.parametrize(("way", "redundancy"), [("api", 1), ("page", 3)])
def test_no_pair_of_acts_tells_a_gold_answer_from_work(make_records_task, person, way, redundancy):
    gold = {"queue": ["1", "0"] * 40}
    how = {"redundancy": redundancy, "gold_share": 0.34, "pause_below": 0.0, "languages": ("en", "de")}
    task = make_records_task("qa_match", 120, gold=gold, **how)
    ann, bea = (person(name, "en de", pseudonym=f"annotator-{name}") for name in ("ann", "bea"))
    untold(act_pairs.Person(ann, task, bea, way), attacks.is_gold, act_pairs.PAIRS[::5])


POSTS = {
    "audits": ({"audit_least": 40, "audit_recheck": 0.5}, attacks.is_audited),
    "checks": ({"check_share": 0.4}, lambda unit: unit.recheck),
    "decoys": ({"asked": "de", "decoys": 45}, lambda unit: bool(unit.known_answer)),
}


@pytest.mark.parametrize("what", POSTS)
def test_no_pair_of_acts_tells_a_hidden_post_from_work(make_task, person, what):
    fields, hidden = POSTS[what]
    posts = [DISPUTED, AGREED, AGREED, DISPUTED] * 30 if what == "audits" else [DISPUTED] * 120
    task = make_task(posts, **fields)
    # The maker of tasks puts decoys last.
    units = list(task.units.all())
    for place, unit in enumerate(random.Random(1).sample(units, len(units)), 1):
        unit.position = place
    Unit.objects.bulk_update(units, ["position"])
    ann, bea = (person(name, "de", pseudonym=f"annotator-{name}") for name in ("ann", "bea"))
    untold(act_pairs.Person(ann, task, bea, "page"), hidden, act_pairs.PAIRS[1::7])
