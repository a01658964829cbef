"""Audits with a label also stand for the unfinished ones when a system is measured."""

from collections import Counter

import numpy as np
import pytest

from annotate.core.estimation.label_errors import AuditResponse, AuditStratum
from annotate.core.measures.classification import Paired

ONE, TWO, OTHER = AuditStratum("de", "one"), AuditStratum("de", "two"), AuditStratum("en", "one")


def test_an_audit_with_a_label_stands_for_its_stratum_and_others_for_a_stratum_without_one():
    audits = AuditResponse()
    for stratum, missing in ((ONE, ""), (ONE, "closed"), (TWO, "closed"), (TWO, "closed"), (OTHER, "")):
        audits.add(stratum, 10.0, missing)
    assert (audits.read, audits.missing, audits.unread) == (2, Counter(closed=3), [TWO])
    shares = audits.shares()
    # ONE's label stands for all 40 items in German, and the English one for itself.
    assert {stratum: 10 / share for stratum, share in shares.items()} == pytest.approx({ONE: 40, OTHER: 10})


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
        estimate = pairs.share(pairs.right, np.ones(len(gold), bool))
        values.append(estimate.value)
        widths.append(estimate.high - estimate.low)
        covered += estimate.low <= truth <= estimate.high
    assert abs(np.mean(values) - truth) < 3 * np.std(values) / 300**0.5
    assert covered >= 0.92 * 300
