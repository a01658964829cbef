"""Baselines of sets that are exported from the fixtures: topics in four languages, acts with concepts, and replies."""

import json

import pytest

from annotate.actions.registry import call_command
from tests.annotate.balanced_draws.acts import ROOT, SENTENCES, import_sentences
from tests.annotate.balanced_draws.acts import opened as open_balanced
from tests.annotate.concepts.acts import begun
from tests.annotate.evaluation.figures import rows_of
from tests.annotate.evaluation.test_baselines import contents, head, measure

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def topics(folder):
    (folder / "sentence_topic.toml").write_text(SENTENCES, encoding="utf-8")
    import_sentences()
    kind = str(folder / "sentence_topic.toml")
    open_balanced("topics", kind, test="35", train="28 49", apart="sentence")
    call_command("export_gold", "topics", out=folder / "gold")


def acts(folder):
    begun("acts", reuse=True)
    call_command("export_gold", "acts", out=folder / "gold")


def replies(folder):
    messages = ROOT / "fixtures/oasst1/messages.jsonl"
    call_command("import_threads", "talk", messages, licence="Apache-2.0", text_may_leave=True, source="oasst1")
    call_command("export_pairs", "talk", out=folder / "gold", seed="7", least=1)


def test_topics_are_learnt_in_a_language_and_not_across_scripts(tmp_path):
    topics(tmp_path)
    gold = tmp_path / "gold"
    measure(gold, "--fields", "body")
    systems = json.loads((gold / "baselines/baselines.json").read_text())["systems"]
    values = {
        (system["name"], *row["of"].values()): row["value"]
        for system in systems
        for row in system["rows"]
        if row["measure"] == "accuracy"
    }
    # There are seven topics, each with as many documents.
    assert all(value == pytest.approx(1 / 7) for key, value in values.items() if key[0] == "majority")
    for code in ("de", "en", "fr", "ja"):
        assert values["tfidf", code, code] > 2 / 7
    assert values["tfidf", "ja", "ja"] > values["tfidf", "ja", "en"]


def test_concepts_of_acts_are_ranked_better_than_by_their_frequency(tmp_path):
    acts(tmp_path)
    gold = tmp_path / "gold"
    measure(gold)
    lines = (gold / "baselines/majority.csv").read_text().splitlines()
    first = [line.split(",")[1] for line in lines[1:]][:5]
    train = [row["concepts"] for row in rows_of(gold) if row["split"] == "train"]
    counts = {label: sum(label in labels for labels in train) for labels in train for label in labels}
    assert first == sorted(counts, key=lambda label: (-counts[label], label))[:5]
    assert head(gold)["tfidf"] > head(gold)["majority"] > 0


@pytest.mark.parametrize("make", [topics, acts, replies])
def test_a_set_of_the_fixtures_gets_the_same_bytes_twice(tmp_path, make):
    make(tmp_path)
    measure(tmp_path / "gold", "--out", tmp_path / "once")
    measure(tmp_path / "once", "--out", tmp_path / "twice")
    assert contents(tmp_path / "once") == contents(tmp_path / "twice")
    assert "## Baselines" in (tmp_path / "once/README.md").read_text()
