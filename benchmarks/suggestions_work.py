"""The measurements of the benchmark of suggestions, in a process of its own: `CORPUS FILE...`; prints JSON.

System -> RP@5 and R@20 on the acts of each file in turn.
"""

import json
import sys
from pathlib import Path

import django

django.setup()

from annotate.core.measures.ranked_labels import Judged, measures_at  # noqa: E402
from corpora.predictions.concept_rankers import LABEL_MATCH, NEAREST  # noqa: E402
from corpora.predictions.rankings import fuse_rankings, load_rankings  # noqa: E402


def measured(corpus: str, file: Path) -> dict[str, list[float]]:
    acts = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    gold = {act["celex_id"]: frozenset(act["eurovoc_concepts"]) for act in acts}
    ranked = {name: load_rankings(corpus, name, gold) for name in (LABEL_MATCH, NEAREST)}
    ranked["joined"] = {key: fuse_rankings(of[key] for of in ranked.values()) for key in gold}
    figures = {}
    for name, rankings in ranked.items():
        at = measures_at([Judged(of, rankings[key]) for key, of in gold.items()], 20)
        figures[name] = [at["RP"][:, 4].mean(), at["R"][:, 19].mean()]
    return figures


def main(corpus: str, files: list[Path]) -> None:
    table: dict[str, list[float]] = {}
    for file in files:
        for name, figures in measured(corpus, file).items():
            table.setdefault(name, []).extend(figures)
    print(json.dumps(table))


if __name__ == "__main__":
    main(sys.argv[1], [Path(name) for name in sys.argv[2:]])
