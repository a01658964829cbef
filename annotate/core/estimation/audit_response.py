"""Weights of audited items if some audits were not finished.

An audit with a label also stands for the unfinished audits of its stratum. This assumes that they have the same errors.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from math import fsum
from typing import NamedTuple


class AuditStratum(NamedTuple):
    """Items of one language to which the voters gave one label."""

    language: str
    label: str


@dataclass
class AuditResponse:
    """Audits of agreed items, with and without a label.

    weights: in each stratum, the number of agreed items for which the drawn audits stand.
    read_weights: the same for the audits with a label only.
    read: number of audits with a label.
    missing: number of unfinished audits, by the reason for which they have no label.
    """

    weights: dict[AuditStratum, float] = field(default_factory=dict)
    read_weights: dict[AuditStratum, float] = field(default_factory=dict)
    read: int = 0
    missing: Counter[str] = field(default_factory=Counter)

    def add(self, stratum: AuditStratum, weight: float, missing: str = "") -> None:
        """Count an audit. missing: the reason for which it has no label; "" if it has one."""
        self.weights[stratum] = self.weights.get(stratum, 0.0) + weight
        if missing:
            self.missing[missing] += 1
        else:
            self.read += 1
            self.read_weights[stratum] = self.read_weights.get(stratum, 0.0) + weight

    @property
    def unread(self) -> list[AuditStratum]:
        """The strata in which no audit has a label."""
        return sorted(self.weights.keys() - self.read_weights.keys())

    def shares(self) -> dict[AuditStratum, float]:
        """Return, for each stratum with labels, the share of its weight that the audits with a label have.

        Audits in the same language stand for strata without labels, or all audits if the language has none.
        """
        total: defaultdict[str, float] = defaultdict(float)
        stands_for: defaultdict[str, float] = defaultdict(float)
        for stratum, weight in self.weights.items():
            total[stratum.language] += weight
            stands_for[stratum.language] += weight * (stratum in self.read_weights)
        seen = fsum(total[language] for language, weight in stands_for.items() if weight)
        whole = seen / fsum(total.values()) if seen else 1.0
        return {
            stratum: weight / self.weights[stratum] * stands_for[stratum.language] / total[stratum.language] * whole
            for stratum, weight in self.read_weights.items()
        }
