"""Audits with a label also stand for the unfinished ones when a system is measured."""

import json
from collections import Counter

import numpy as np
import pytest
from django.core.management.base import CommandError

from annotate.actions.commands import call_command
from annotate.core.estimation.audit_response import AuditResponse, AuditStratum
from annotate.core.measures.classification import Paired
from annotate.models import Annotator
from annotate.work.adjudication import settle
from tests.annotate.panels.topics import TRUTH, Answer, import_topics, judge, open_topics, predictions, take

ONE, TWO, OTHER = AuditStratum("de", "one"), AuditStratum("de", "two"), AuditStratum("en", "one")


def test_an_audit_with_a_label_stands_for_its_stratum_and_others_for_a_stratum_without_one():
    audits = AuditResponse()
    for stratum, missing in ((ONE, ""), (ONE, "closed"), (TWO, "closed"), (TWO, "closed"), (OTHER, "")):
        audits.add(stratum, 10.0, missing)
    assert (audits.read, audits.missing, audits.unread) == (2, Counter(closed=3), [TWO])
    shares = audits.shares()
    # The label of ONE stands for all 40 items in German, and the one in English for itself.
    assert {stratum: 10 / share for stratum, share in shares.items()} == pytest.approx({ONE: 40, OTHER: 10})


def answer_some(task, person, adjudicator, number):
    """Answer all disputed items, and this many audits of each language and label."""
    read = Counter()
    while lease := take(person, task):
        unit = lease.unit
        cell = unit.item.language, unit.agreed_label
        if unit.agreed_label and read[cell] >= number:
            unit.task.units.filter(pk=unit.pk).update(language="zz")  # nobody reads it
            continue
        read[cell] += 1
        judge(person, lease.pk, Answer(TRUTH[unit.item.key]))
    for unit in task.units.filter(stage="ADJUDICATION").select_related("item"):
        settle(adjudicator, unit.pk, Answer(TRUTH[unit.item.key], reason="I read it"))


@pytest.mark.django_db
@pytest.mark.on_sqlite
@pytest.mark.parametrize("number", [2, 0])
def test_a_set_with_unfinished_audits_represents_all_items(tmp_path, person, ada, number):
    import_topics(tmp_path)
    task = open_topics(tmp_path, audit_limit="1", audit_recheck="0")
    answer_some(task, person("ann", "de en"), ada, number)
    assert Annotator.objects.exists()
    call_command("close", "panel", leave_out=True, verbosity=0)
    call_command("export_gold", "panel", out=tmp_path / "gold", verbosity=0)
    out = {"gold": [str(tmp_path / "gold")], "out": tmp_path / "report", "verbosity": 0}
    if not number:
        with pytest.raises(CommandError, match=r"Only 0 of \d+ audits of the items on which the voters agree"):
            call_command("evaluate", "a", **out)
        return
    call_command("evaluate", "a", **out)
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    missing = task.units.filter(audited=True, stage="DISCARDED").count()
    read = task.units.filter(audited=True).count() - missing
    warnings = " ".join(report["warnings"])
    assert f"{missing} audits of agreed items were not finished; the {read} with a label stand for all" in warnings
    assert "harder than the others" not in warnings
    accuracy = next(row for row in report["rows"] if row["measure"] == "accuracy" and not row["of"])
    rows = [json.loads(line) for line in (tmp_path / "gold" / "gold.jsonl").read_text().splitlines()]
    agreed = Counter((key[4:6], label) for key, label in task.units.exclude(agreed_label="").values_list(*KEYS))
    audited = [row for row in rows if row["stratum"] == "audited"]
    labelled = Counter((row["language"], row["agreed"]) for row in audited)
    said = predictions()["a"]
    right = sum(
        agreed[cell] / labelled[cell]
        for row in audited
        if said[row["id"]] == row["label"] and (cell := (row["language"], row["agreed"]))
    )
    right += sum(said[row["id"]] == row["label"] for row in rows if row["stratum"] == "disputed")
    assert accuracy["value"] == pytest.approx(right / len(TRUTH))
    assert accuracy["count"] == sum(row["stratum"] != "agreed" for row in rows)


KEYS = ("item__key", "agreed_label")


@pytest.mark.slow
def test_accuracy_is_unbiased_and_covered_if_audits_are_unfinished_at_random():
    rng = np.random.default_rng(5)
    sizes, accuracies = [150, 120, 90, 60, 50, 30], [0.95, 0.9, 0.97, 0.8, 0.92, 0.85]
    agreed = [rng.random(size) < accuracy for size, accuracy in zip(sizes, accuracies, strict=True)]
    disputed = rng.random(200) < 0.5
    truth = np.concatenate([disputed, *agreed]).mean()
    values, covered, widths = [], 0, []
    for _ in range(300):
        audits, hits, weights, strata = AuditResponse(), [], [], []
        for place, items in enumerate(agreed):
            stratum = AuditStratum("en", str(place))
            drawn = rng.choice(items, 20, replace=False)
            for hit in drawn:
                is_read = rng.random() < (0.35 + 0.1 * place)
                audits.add(stratum, len(items) / 20, "" if is_read else "closed")
                if is_read:
                    hits.append(hit)
                    weights.append(len(items) / 20)
                    strata.append(stratum)
        shares = audits.shares()
        weights = np.array([1.0] * len(disputed) + [w / shares[s] for w, s in zip(weights, strata, strict=True)])
        assert weights.sum() == pytest.approx(700)
        gold = np.concatenate([disputed, hits]).astype(int)
        pairs = Paired(np.ones_like(gold), gold, 2, weights)
        found = pairs.share(pairs.right, np.ones(len(gold), bool))
        values.append(found.value)
        widths.append(found.high - found.low)
        covered += found.low <= truth <= found.high
    assert abs(np.mean(values) - truth) < 3 * np.std(values) / 300**0.5
    assert covered >= 0.92 * 300
