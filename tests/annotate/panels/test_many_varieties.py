"""Panels at the size of published evaluations: 109 language varieties, and hundreds of draws of a topic task."""

import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from annotate.actions.registry import call_command
from annotate.core import stages
from annotate.core.estimation.label_errors import Audit, overall_error, power_allocation, round_to_total
from annotate.models import Task
from corpora.core.language_tags import usual_script
from corpora.core.languages import code_of
from corpora.core.voters import Heliport
from corpora.predictions.prediction_rows import is_label
from tests.annotate.panels.topics import TOPICS, TRUTH, answer_all

pytestmark = pytest.mark.slow

# Varieties as CommonLID writes them, such as ace_Latn, with our codes.
WRITTEN = {
    f"{code}_{script}": ours
    for code in Heliport.own_codes.split()
    if (ours := code_of(code))
    if (script := usual_script(code)) and is_label(ours) and code_of(f"{code}_{script}") == ours
}
VARIETIES = dict(list({ours: written for written, ours in WRITTEN.items()}.items())[:109])
POSTS_EACH = 12  # so that people read the five agreed posts of each label that a voter needs to be measured


def imported(folder: Path):
    """Import posts in all varieties, and the labels of three predictors that err on different posts."""
    rng, codes = random.Random("varieties"), [*VARIETIES]
    truth = {f"{code}-{number}": code for code in codes for number in range(POSTS_EACH)}
    letters = "abcdefghijklmnopqrstuvwxyz"
    rows = [{"id": key, "text": " ".join("".join(rng.choices(letters, k=7)) for _ in range(6))} for key in truth]
    (folder / "posts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    posts = str(folder / "posts.jsonl")
    call_command("import_corpus", "many", posts, licence="CC0-1.0", text_may_leave=True, source="made up", verbosity=0)
    call_command("prelabel", "many", processes=1, verbosity=0)
    for place, name in enumerate("abc"):
        labels = {
            key: VARIETIES[codes[codes.index(code) - 1 - place] if number % 12 == place else code]
            for number, (key, code) in enumerate(truth.items())
        }
        file = folder / f"{name}.tsv"
        file.write_text("id\tlabel\n" + "".join(f"{key}\t{label}\n" for key, label in labels.items()))
        call_command("import_predictions", "many", str(file), name=name, version="1", verbosity=0)
    return truth


@pytest.mark.django_db
def test_109_varieties_are_imported_voted_on_routed_exported_and_measured(data_dir, tmp_path, person, ada):
    assert len(VARIETIES) == 109
    truth = imported(tmp_path)
    readers = [person(f"reader{number}", " ".join([*VARIETIES][number::3])) for number in range(3)]
    how = {"kind": "language", "corpus": "many", "size": str(len(truth)), "seed": "1", "voters": "a b c"}
    call_command("open_task", "many", **how, labels=" ".join(VARIETIES), verbosity=0)
    task = Task.objects.get()
    agreed = dict(task.units.exclude(agreed_label="").values_list("item__key", "agreed_label"))
    assert {truth[key] for key in agreed} == {*VARIETIES}
    assert len(agreed) == sum(number % 12 > 2 for number in range(len(truth)))
    disputed = task.units.filter(agreed_label="").values_list("item__key", "language")
    # Two of three voters are right, so the first queue is that of the true language.
    assert all(truth[key] == queue for key, queue in disputed)
    answer_all(task, readers, ada, truth)
    call_command("export_gold", "many", out=tmp_path / "gold", verbosity=0)
    rows = [json.loads(line) for line in (tmp_path / "gold" / "gold.jsonl").read_text().splitlines()]
    assert {row["id"]: row["label"] for row in rows} == truth
    assert Counter(row["stratum"] for row in rows)["agreed"] > 0
    assert not task.units.exclude(stage__in=(stages.AGREED, stages.LABELLED)).exists()
    call_command("evaluate", "a", gold=[str(tmp_path / "gold")], out=tmp_path / "report", verbosity=0)
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    measured = json.dumps(report)
    assert all(f'"{code}"' in measured for code in VARIETIES)


# --- 300 draws of a topic task


LANGUAGES, RECORDS, DRAWS, AUDIT_SHARE, LEAST = ("de", "en"), 4_000, 300, 0.15, 5


def drawn(seed, accuracies=(0.85, 0.88, 0.92), shared=0.38, reader=0.95):
    """Return figures of one draw, as the test below names them.

    shared: share of the items on which two voters have the same luck; their errors are then correlated by 0.3
    """
    rng = np.random.default_rng(seed)
    truth = rng.choice([TOPICS.index(topic) for topic in TRUTH.values()], RECORDS)
    language = rng.integers(len(LANGUAGES), size=RECORDS)
    others = (truth + rng.integers(1, len(TOPICS), RECORDS)) % len(TOPICS)
    luck = rng.random(RECORDS)
    shares = rng.random((3, RECORDS)) < shared**0.5
    chances = np.where(shares, luck, rng.random((3, RECORDS)))
    mistakes = (truth + rng.integers(1, len(TOPICS), (3, RECORDS))) % len(TOPICS)
    wrong = chances > np.array(accuracies)[:, None]
    labels = np.where(wrong, np.where(shares, others, mistakes), truth)
    correlations = np.corrcoef(wrong)[np.triu_indices(3, 1)]

    agreed = (labels == labels[0]).all(axis=0)
    answers = np.where(rng.random(RECORDS) < reader, truth, (truth + 1) % len(TOPICS))
    result, audits = np.where(agreed, labels[0], answers), []
    strata = [(place, topic) for place in range(len(LANGUAGES)) for topic in range(len(TOPICS))]
    places = {
        (place, topic): np.flatnonzero(agreed & (language == place) & (labels[0] == topic)) for place, topic in strata
    }
    chosen = round_to_total(
        power_allocation({stratum: len(rows) for stratum, rows in places.items()}, AUDIT_SHARE, LEAST)
    )
    for stratum, rows in places.items():
        read = rng.choice(rows, chosen[stratum], replace=False)
        bad = int((labels[0, read] != truth[read]).sum())
        audits.append(Audit(len(rows), bad, bad, len(read) - bad, 0, 0))
        result[read] = truth[read]  # an adjudicator decides what the reader doubts
    estimate, error = overall_error(audits), float((labels[0, agreed] != truth[agreed]).mean())
    people = 1 - (agreed.sum() - sum(chosen.values())) / RECORDS
    rights = (result == truth).mean(), (answers == truth).mean()
    return estimate.low <= error <= estimate.high, correlations.mean(), agreed.mean(), error, people, *rights


def test_the_interval_of_a_panel_s_error_covers_it_in_300_draws_and_a_third_of_the_work_gives_a_better_set():
    rows = np.array([drawn(seed) for seed in range(DRAWS)], float)
    covered, correlation, agreed, error, people, by_panel, by_people = rows.mean(axis=0)
    assert 0.93 <= covered <= 0.97
    assert correlation == pytest.approx(0.3, abs=0.02)
    assert 0.65 < agreed < 0.85
    assert error < 0.05
    assert people < 0.4
    assert by_panel > by_people + 0.01
