"""The audit of labels that came with documents: who answers, and the result. Draws are the same on every database."""

import hashlib
import io
import json
from collections import Counter

import pytest

from annotate.actions.registry import call_command
from annotate.controls.sample_audits import declared_report
from annotate.evaluation.measurement import evaluate
from annotate.models import Task
from tests.annotate.balanced_draws.acts import SIZES, TOPICS, card_of, exported, lists, manifest_of, opened, read_all

pytestmark = pytest.mark.django_db


SETS = {"test": 70, "train": "70"}


def test_a_share_of_each_class_in_each_language_goes_to_people_who_do_not_know(sentences, kind, readers, capsys):
    opened("topics", kind, audit_share=0.2, audit_least=5, languages="de en", **SETS)
    task = Task.objects.get()
    chosen = task.units.filter(audited=True)
    cells = Counter(chosen.values_list("item__language", "agreed_label"))
    assert len(cells) == 14
    assert set(cells.values()) == {5}
    assert set(chosen.values_list("stage", "label", "redundancy")) == {("QUEUED", "", 3)}
    assert set(task.units.exclude(audited=True).values_list("stage", flat=True)) == {"AGREED"}
    # Without an audit, nobody has read the labels.
    opened("unread", kind, languages="de", **SETS)
    assert declared_report(Task.objects.get(name="unread")) is None
    call_command("audit", "unread")
    assert "so their error rate is not known" in capsys.readouterr().out


def test_the_majority_is_the_label_and_the_error_is_reported_by_class_language_and_answer(
    sentences, kind, readers, tmp_path, capsys
):
    opened("topics", kind, audit_share=0.2, languages="de en", **SETS)
    task = Task.objects.get()

    def say(reader, unit):
        # One of three makes mistakes everywhere, without effect. Two label all travel as sports.
        if reader == 0:
            return "health"
        return "sports" if unit.agreed_label == "travel" else unit.agreed_label

    assert read_all(task, readers, say) == 3 * task.units.filter(audited=True).count() == 168
    result = declared_report(task)
    assert (result["documents"], result["chosen"], result["audited"], result["unresolved"]) == (280, 56, 56, 0)
    assert result["wrong"] == 8
    assert result["error"]["value"] == pytest.approx(1 / 7)
    by_class = {row["class"]: row for row in result["classes"]}
    assert by_class["travel"]["error"]["value"] == 1
    assert by_class["travel"]["error"]["low"] < 1
    assert by_class["sports"]["wrong"] == 0
    assert {"declared": "travel", "found": "sports", "documents": 8} in result["found"]
    assert sum(row["documents"] for row in result["found"]) == 56
    assert [row["language"] for row in result["languages"]] == ["de", "en"]
    rows = exported("topics", tmp_path / "gold")
    labels = dict.fromkeys(TOPICS.split(), 40) | {"sports": 48, "travel": 32}
    assert Counter(row["label"] for row in rows) == labels
    assert {row["audit_chance"] for row in rows} == {0.2}
    assert manifest_of(tmp_path / "gold")["declared_audit"] == json.loads(json.dumps(result))
    card = card_of(tmp_path / "gold")
    assert "280 documents came with a label. People labelled a random sample of 56" in card
    assert "| travel | 40 | 8 of 8 | 8 | 100.0% [" in card
    assert "| travel | 0 | 0 | 0 | 8 | 0 | 0 | 0 |" in card
    call_command("audit", "topics")
    assert "14.3% [" in capsys.readouterr().out


def test_what_nobody_could_settle_may_be_right_or_wrong_and_is_in_no_set(sentences, kind, readers, tmp_path):
    opened("topics", kind, audit_share=0.2, languages="de", **SETS)
    task = Task.objects.get()

    def say(reader, unit):
        return TOPICS.split()[reader] if unit.agreed_label == "geography" else unit.agreed_label

    # Nobody removed the units that wait for people.
    call_command("export_gold", "topics", out=str(tmp_path / "unfinished"), stdout=io.StringIO())
    german = manifest_of(tmp_path / "unfinished")["sets"]["languages"]["de"]
    assert (sum(german["sets"].values()), german["taken_out"]) == (140 - 28, 0)
    read_all(task, readers, say)
    result = declared_report(task)
    assert (result["unresolved"], result["wrong"]) == (4, 0)
    (geography,) = (row for row in result["classes"] if row["class"] == "geography")
    assert geography["error"]["value"] is None
    assert result["error"]["high"] > 4 / 28
    gold = tmp_path / "gold"
    rows = exported("topics", gold)
    assert Counter(row["label"] for row in rows)["geography"] == 16
    german = manifest_of(gold)["sets"]["languages"]["de"]
    assert german["taken_out"] == 4
    files = lists(gold, "german")
    assert german["sets"] == {name: len(ids) for name, ids in files.items()}
    assert sum(map(len, files.values())) == len(rows) == 136
    words = "de: 4 documents that were drawn are in no set, because people found none of the classes in them"
    assert words in card_of(gold)
    # The report shows the quality of the labels next to the figures that use them.
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/de-de.prediction").write_text("travel\n" * len(files["test"]))
    [warning] = evaluate(str(tmp_path / "mine"), [gold])["warnings"]
    assert warning.startswith("According to the audit, 0.0% [0.0, ")


@pytest.mark.both_databases
def test_the_same_seed_gives_the_same_bytes_on_every_database(sentences, kind, tmp_path):
    opened("topics", kind, apart="sentence", **SIZES)
    exported("topics", tmp_path / "gold")
    indices = b"".join(path.read_bytes() for path in sorted((tmp_path / "gold/mldoc-indices").iterdir()))
    assert hashlib.sha256(indices).hexdigest()[:16] == "f0578c1538a4c5e0"
