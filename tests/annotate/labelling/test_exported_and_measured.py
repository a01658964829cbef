"""From acts to a gold set to the figures of a run, by the commands, held against the formulas written out here."""

import json
from collections import Counter
from math import log2
from statistics import fmean

import pytest

from tests.annotate.evaluation.figures import figures
from tests.annotate.labelling.acts import command, opened

pytestmark = pytest.mark.usefixtures("corpus")


@pytest.fixture
def gold(tmp_path):
    """The folder of the exported set, and its rows."""
    opened("acts", keep_declared=True)
    command("export_gold", "acts", out=str(tmp_path / "gold"), frequent_over=2)
    lines = (tmp_path / "gold/gold.jsonl").read_text(encoding="utf-8").splitlines()
    return tmp_path / "gold", [json.loads(line) for line in lines]


def test_a_run_is_measured_on_the_exported_test_set_as_the_published_formulas_say(gold, tmp_path):
    folder, rows = gold
    trained = Counter(label for row in rows if row["split"] == "train" for label in row["concepts"])
    ranking = sorted({label for row in rows for label in row["concepts"]}, key=lambda label: (-trained[label], label))
    tested = [(row["id"], set(row["concepts"])) for row in rows if row["split"] == "test"]
    run = tmp_path / "counts.run"
    run.write_text(
        "".join(
            f"{key} Q0 {label} {rank} {-rank} counts\n" for key, _ in tested for rank, label in enumerate(ranking, 1)
        )
    )
    report = json.loads(command("evaluate", gold=[folder], predictions=str(run), json=True))
    hits = [[label in labels for label in ranking[:5]] for _, labels in tested]
    ideal = [sum(1 / log2(place + 2) for place in range(min(5, len(labels)))) for _, labels in tested]
    gains = [sum(hit / log2(place + 2) for place, hit in enumerate(of)) for of in hits]
    wanted = {
        "P": fmean(sum(of) / 5 for of in hits),
        "R": fmean(sum(of) / len(labels) for of, (_, labels) in zip(hits, tested, strict=True)),
        "RP": fmean(sum(of) / min(5, len(labels)) for of, (_, labels) in zip(hits, tested, strict=True)),
        "nDCG": fmean(gain / best for gain, best in zip(gains, ideal, strict=True)),
    }
    found = {name: figures(report, name, labels="all", k="5")["value"] for name in wanted}
    assert found == pytest.approx(wanted)
    frequent = {label for label, number in trained.items() if number > 2}
    assert f"Labels used: {len(frequent)} frequent" in report["words"]["gold"][-1]
