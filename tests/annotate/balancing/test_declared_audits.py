"""The audit of labels that came with documents: whom it asks, what it finds, and what its intervals hold."""

import io
import json
from collections import Counter

import numpy as np
import pytest

from annotate.actions.commands import call_command
from annotate.controls import declared_audit
from annotate.core.estimation.filter_quality import Part, share
from annotate.core.estimation.proportions import UNKNOWN
from annotate.evaluation.measurement import evaluate
from annotate.models import Judgment, Task
from tests.annotate.balancing.acts import TOPICS, exported, lists, opened, read_all

pytestmark = pytest.mark.django_db
SETS = {"test": 70, "train": "70"}


def test_a_share_of_each_class_in_each_language_goes_to_people_who_are_not_told(sentences, kind, readers):
    opened("topics", kind, audit_share=0.2, audit_least=5, languages="de en", **SETS)
    task = Task.objects.get()
    chosen = task.units.filter(audited=True)
    cells = Counter(chosen.values_list("item__language", "agreed_label"))
    assert len(cells) == 14
    assert set(cells.values()) == {5}
    assert set(chosen.values_list("stage", "label", "redundancy")) == {("QUEUED", "", 3)}
    assert set(task.units.exclude(audited=True).values_list("stage", flat=True)) == {"AGREED"}


def test_the_majority_of_several_people_is_the_label_and_the_error_is_told_by_class_language_and_answer(
    sentences, kind, readers, tmp_path
):
    opened("topics", kind, audit_share=0.2, languages="de en", **SETS)
    task = Task.objects.get()

    def say(reader, unit):
        # One of three slips everywhere, and nothing of it is left; two find every travel to be sports.
        if reader == 0:
            return "health"
        return "sports" if unit.agreed_label == "travel" else unit.agreed_label

    asked = task.units.filter(audited=True).count()
    assert read_all(task, readers, say) == 3 * asked == 168
    found = declared_audit.report(task)
    assert (found["documents"], found["chosen"], found["audited"], found["unresolved"]) == (280, 56, 56, 0)
    assert found["wrong"] == 8
    assert found["error"]["value"] == pytest.approx(1 / 7)
    by_class = {row["class"]: row for row in found["classes"]}
    assert by_class["travel"]["error"]["value"] == 1
    assert by_class["travel"]["error"]["low"] < 1
    assert by_class["sports"]["wrong"] == 0
    assert {"declared": "travel", "found": "sports", "documents": 8} in found["found"]
    assert sum(row["documents"] for row in found["found"]) == 56
    assert [row["language"] for row in found["languages"]] == ["de", "en"]
    rows = exported("topics", tmp_path / "gold")
    assert Counter(row["label"] for row in rows) == Counter(dict.fromkeys(TOPICS.split(), 40)) + Counter(
        {"sports": 8}
    ) - Counter({"travel": 8})
    assert {row["audit_chance"] for row in rows} == {0.2}
    manifest = json.loads((tmp_path / "gold/manifest.json").read_text())
    assert manifest["declared_audit"] == json.loads(json.dumps(found))
    card = (tmp_path / "gold/README.md").read_text(encoding="utf-8")
    assert "280 documents came with a label. 56 of them were chosen by lot" in card
    assert "| travel | 40 | 8 of 8 | 8 | 100.0% [" in card
    assert "| travel | 0 | 0 | 0 | 8 | 0 | 0 | 0 |" in card
    out = io.StringIO()
    call_command("audit", "topics", stdout=out)
    assert "Of all these labels 14.3% [" in out.getvalue()


def test_what_nobody_could_settle_may_be_right_or_wrong_and_is_in_no_set(sentences, kind, readers, tmp_path):
    opened("topics", kind, audit_share=0.2, languages="de", **SETS)
    task = Task.objects.get()

    def say(reader, unit):
        return TOPICS.split()[reader] if unit.agreed_label == "geography" else unit.agreed_label

    # What waits for people was taken out by nobody.
    call_command("export_gold", "topics", out=str(tmp_path / "unfinished"), stdout=io.StringIO())
    told = json.loads((tmp_path / "unfinished/manifest.json").read_text())["sets"]["languages"]["de"]
    assert (sum(told["sets"].values()), told["taken_out"]) == (140 - 28, 0)
    read_all(task, readers, say)
    found = declared_audit.report(task)
    assert (found["unresolved"], found["wrong"]) == (4, 0)
    (geography,) = (row for row in found["classes"] if row["class"] == "geography")
    assert geography["error"]["value"] is None
    assert found["error"]["high"] > 4 / 28
    rows = exported("topics", tmp_path / "gold")
    assert Counter(row["label"] for row in rows)["geography"] == 16
    told = json.loads((tmp_path / "gold/manifest.json").read_text())["sets"]["languages"]["de"]
    assert told["taken_out"] == 4
    files = {name: len(ids) for name, ids in lists(tmp_path / "gold", "german").items()}
    assert told["sets"] == files
    assert sum(files.values()) == len(rows) == 136
    card = (tmp_path / "gold/README.md").read_text(encoding="utf-8")
    assert "de: 4 documents that were drawn are in no set, since people found none of the classes in them" in card
    # What is known of the labels stands beside what is measured by them.
    (tmp_path / "mine").mkdir()
    tested = lists(tmp_path / "gold", "german")["test"]
    (tmp_path / "mine/de-de.prediction").write_text("travel\n" * len(tested))
    [warned] = evaluate(str(tmp_path / "mine"), [tmp_path / "gold"])["warnings"]
    assert warned.startswith("By the audit 0.0% [0.0, ")


def test_a_task_without_an_audit_says_that_nobody_has_read_the_labels(sentences, kind):
    opened("topics", kind, languages="de", **SETS)
    assert declared_audit.report(Task.objects.get()) is None
    out = io.StringIO()
    call_command("audit", "topics", stdout=out)
    assert "so how often they are wrong is not known" in out.getvalue()
    assert not Judgment.objects.exists()


@pytest.mark.parametrize(
    ("cells", "size", "read", "rate", "width"),
    [
        (1, 70, 35, 0.1, 0.13),
        (1, 70, 63, 0.1, 0.036),
        (7, 70, 14, 0.1, 0.105),
        (7, 70, 60, 0.1, 0.021),
        (7, 20, 5, 0.1, 0.165),
        (28, 50, 10, 0.01, 0.022),
    ],
)
def test_the_interval_holds_the_error_of_the_documents_themselves_and_is_no_wider_than_it_need_be(
    cells, size, read, rate, width
):
    """Width: at most, on average of 1,000 audits."""
    chance = np.random.default_rng(7)
    wrong = chance.binomial(size, rate, (1000, cells))
    found = chance.hypergeometric(wrong, size - wrong, read)
    made = [share(*(Part(size, read, int(of)) for of in seen)) for seen in found]
    truth = wrong.sum(axis=1) / (cells * size)
    held = [each.low - 1e-12 <= true <= each.high + 1e-12 for each, true in zip(made, truth, strict=True)]
    assert 0.92 <= np.mean(held) <= 0.985
    assert np.mean([each.high - each.low for each in made]) <= width


def test_a_class_that_nobody_has_read_counts_as_the_others_and_may_be_wrong_as_a_whole_or_not_at_all():
    read, unread = Part(70, 35, 7), Part(30, 0, 0)
    alone, both = share(read), share(read, unread)
    assert both.value == alone.value == 0.2
    assert both.low == pytest.approx(alone.low * 0.7)
    assert both.high == pytest.approx(alone.high * 0.7 + 0.3)
    assert share(unread) == share() == UNKNOWN
