"""From several people's answers on one unit to its label."""

from collections import Counter
from collections.abc import Sequence


def majority(answers: Sequence[str]) -> str | None:
    """The answer that more than half gave, or None.

    answers: one label per annotator, in any order. One answer is its own majority; of three, two must agree (the
    rule of XGLUE, Liang et al. 2020, section 2); an even split is no label.
    """
    if not answers:
        return None
    label, count = Counter(answers).most_common(1)[0]
    return label if 2 * count > len(answers) else None
