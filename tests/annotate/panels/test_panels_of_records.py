"""Imported classifiers label records by agreement, people audit a share, and the rest goes to people."""

import json
from collections import Counter

import pytest
from django.core.management.base import CommandError

from annotate.actions.commands import call_command
from annotate.controls.audit_report import report
from annotate.core import stages
from annotate.models import Task
from corpora.models import Item
from tests.annotate.panels.topics import (
    LANGUAGES,
    ROWS,
    TRUTH,
    VOTERS,
    answer_all,
    import_topics,
    open_topics,
    predictions,
)

pytestmark = [pytest.mark.django_db, pytest.mark.on_sqlite]


@pytest.fixture
def people(person):
    return [person(f"reader{number}", "de en") for number in range(2)]


def rows_of(folder, name="gold.jsonl"):
    return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]


def test_what_classifiers_agree_on_is_labelled_and_audited_and_the_rest_is_read(tmp_path, people, ada):
    import_topics(tmp_path)
    task = open_topics(tmp_path)
    labels = predictions()
    agreed = {key: labels["a"][key] for key in TRUTH if len({labels[voter][key] for voter in VOTERS}) == 1}
    assert dict(task.units.exclude(agreed_label="").values_list("item__key", "agreed_label")) == agreed
    audited = {*task.units.filter(audited=True).values_list("item__key", flat=True)}
    by_stage = Counter(task.units.values_list("stage", flat=True))
    assert by_stage == {stages.AGREED: len(agreed) - len(audited), stages.QUEUED: 280 - len(agreed) + len(audited)}
    cells = Counter((key[4:6], label) for key, label in agreed.items())
    chosen = Counter((key[4:6], agreed[key]) for key in audited)
    assert all(chosen[cell] >= min(5, number) for cell, number in cells.items())
    queued = task.units.filter(stage=stages.QUEUED).values_list("item__language", "language")
    assert all(language == queue for language, queue in queued)

    answer_all(task, people, ada)
    results = report(Task.objects.get())
    assert {(row["language"], row["label"]) for row in results["languages"]} == cells.keys()
    wrong = sum(agreed[key] != TRUTH[key] for key in agreed) / len(agreed)
    assert results["overall"]["low"] <= wrong <= results["overall"]["high"]
    call_command("export_gold", "panel", out=tmp_path / "gold", verbosity=0)
    rows = {row["id"]: row for row in rows_of(tmp_path / "gold")}
    assert len(rows) == 280
    contested = {(row["language"], row["label"]) for row in results["languages"] if row["contested"]}
    for key, row in rows.items():
        cell = key[4:6], agreed.get(key)
        stratum = "disputed" if key not in agreed else "audited" if key in audited else "agreed"
        assert row["stratum"] == ("contested" if stratum == "agreed" and cell in contested else stratum)
        assert row["label"] == (agreed[key] if row["stratum"] == "agreed" else TRUTH[key])
        assert row["decided_by"] == "detectors" or row["stratum"] != "agreed"
        assert row["agreed"] == agreed.get(key)
        assert row["audit_chance"] == (1.0 if stratum == "disputed" else chosen[cell] / cells[cell]) or contested
        assert [(vote["detector"], vote["language"]) for vote in row["votes"]] == [
            (f"{voter}@1", labels[voter][key]) for voter in VOTERS
        ]
    manifest = json.loads((tmp_path / "gold" / "manifest.json").read_text())
    assert (manifest["task"]["voters"], manifest["task"]["agree"]) == (["a@1", "b@1", "c@1"], 3)
    assert manifest["detectors"][0].keys() == {"a@1", "b@1", "c@1"}
    assert manifest["audit"]["languages"] == results["languages"]
    card = (tmp_path / "gold" / "README.md").read_text()
    assert "Audit of the voters' agreement" in card
    assert "Three voters (a@1, b@1, c@1)" in card


@pytest.mark.slow
def test_a_voter_is_measured_on_what_people_read_and_audited_rows_stand_for_the_others(tmp_path, people, ada):
    import_topics(tmp_path)
    task = open_topics(tmp_path, audit_limit="1")
    answer_all(task, people, ada)
    call_command("export_gold", "panel", out=tmp_path / "gold", verbosity=0)
    call_command("evaluate", "a", gold=[str(tmp_path / "gold")], out=tmp_path / "report", verbosity=0)
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    accuracy = next(row for row in report["rows"] if row["measure"] == "accuracy" and not row["of"])
    rows = [row for row in rows_of(tmp_path / "gold") if row["stratum"] != "agreed"]
    assert accuracy["count"] == len(rows)
    said = predictions()["a"]
    weights = [1 / row["audit_chance"] for row in rows]
    right = [weight for row, weight in zip(rows, weights, strict=True) if said[row["id"]] == row["label"]]
    assert accuracy["value"] == pytest.approx(sum(right) / sum(weights))
    truly = sum(said[key] == label for key, label in TRUTH.items()) / len(TRUTH)
    assert accuracy["low"] <= truly <= accuracy["high"]

    open_topics(tmp_path, "unaudited", seed="2", audit_share="0", audit_least="0")
    task = Task.objects.get(name="unaudited")
    answer_all(task, people, ada)
    call_command("export_gold", "unaudited", out=tmp_path / "unaudited", verbosity=0)
    with pytest.raises(CommandError, match="Nobody audited some of the labels on which the voters agree"):
        call_command("evaluate", "a", gold=[str(tmp_path / "unaudited")], out=tmp_path / "other", verbosity=0)


def test_a_language_and_label_that_fail_the_audit_are_read_by_people_and_no_others(tmp_path, people, ada):
    labels = predictions(accuracy=1.0)
    for voter in VOTERS:
        labels[voter] |= {key: "sports" for key, topic in TRUTH.items() if key[4:6] == "de" and topic == "travel"}
    import_topics(tmp_path, labels=labels)
    task = open_topics(tmp_path, audit_share="0.5")
    answer_all(task, people, ada)
    contested = task.units.filter(transitions__event="contested").values_list("item__language", "agreed_label")
    assert {*contested} == {("de", "sports")}
    assert not task.units.filter(stage=stages.AGREED, item__language="de", agreed_label="sports").exists()
    assert task.units.filter(stage=stages.AGREED, item__language="en", agreed_label="sports").exists()
    assert {unit.label for unit in task.units.filter(item__language="de", agreed_label="sports")} == {
        "sports",
        "travel",
    }


def test_two_of_three_settle_a_label_that_all_three_know(tmp_path):
    labels = predictions()
    labels["c"] = {key: "travel" if label == "health" else label for key, label in labels["c"].items()}
    import_topics(tmp_path, labels=labels)
    task = open_topics(tmp_path, agree="2")
    assert "health" in task.never_agree
    for unit in task.units.select_related("item"):
        label, number = Counter(labels[voter][unit.item.key] for voter in VOTERS).most_common(1)[0]
        assert unit.agreed_label == (label if number >= 2 and label != "health" else "")


@pytest.mark.slow
def test_labels_that_are_no_answers_are_counted_in_the_panel_s_report_and_when_a_task_opens(tmp_path, capsys):
    labels = predictions()
    labels["c"] = {key: label.replace("travel", "travels") for key, label in labels["c"].items()}
    number = sum(label == "travels" for label in labels["c"].values())
    import_topics(tmp_path, labels=labels)
    warning = f"Warning: the labels of c@1 for {number} items are not answers to the question: travels ({number})."
    call_command("panel", "topics", voters=["a b c"], kind=str(tmp_path / "topic_panel.toml"))
    assert capsys.readouterr().err.count(warning) == 1
    for options in ({"dry_run": True}, {"size": "500"}):
        call_command(
            "open_task",
            "panel",
            kind=str(tmp_path / "topic_panel.toml"),
            corpus="topics",
            voters="a b c",
            seed="1",
            test_items="0",
            gold_share="0",
            **options,
        )
        printed = capsys.readouterr()
        assert (printed.out + printed.err).count(warning) == 1
    in_each = ", ".join(f"{code} {sum(row['language'] == code for row in ROWS)}" for code in LANGUAGES)
    told = f"500 records per language were requested, but all that can be drawn are {in_each}."
    assert told in printed.out + printed.err


def test_a_task_without_voters_takes_no_votes_and_shares_its_items_with_one_that_does(tmp_path):
    import_topics(tmp_path)
    open_topics(tmp_path)
    votes = dict(Item.objects.values_list("key", "votes"))
    assert all(item.keys() == {"a@1", "b@1", "c@1"} for item in votes.values())
    plain = open_topics(tmp_path, "plain", voters="")
    assert (plain.options.keys() & {"voters", "agree", "audit_share"}, plain.draw.detectors) == (set(), [])
    assert {*plain.units.values_list("stage", "agreed_label")} == {(stages.QUEUED, "")}
    assert dict(Item.objects.values_list("key", "votes")) == votes
    assert not any(control.of_agreement for control in plain.kind.quality_controls)


def test_predictions_that_voted_cannot_be_deleted(tmp_path):
    import_topics(tmp_path)
    open_topics(tmp_path)
    with pytest.raises(CommandError, match="a@1 cannot be deleted because it was used to draw"):
        call_command("delete", corpus="topics", predictor="a@1", yes=True, verbosity=0)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"voters": "a"}, "A panel has two to seven voters, not 1"),
        ({"voters": "a cld2"}, "cld2 votes on the languages of posts"),
        ({"voters": "", "agree": "2"}, "--agree has no effect without voters"),
        ({"agree": "1"}, "1 of 3 voters cannot settle a label"),
        ({"voters": "", "audit_share": "0.1"}, "--audit-share is not an option"),
    ],
)
def test_impossible_panels_are_refused_before_anything_is_drawn(tmp_path, options, why):
    import_topics(tmp_path)
    with pytest.raises(CommandError, match=why):
        open_topics(tmp_path, **options)
    assert not Task.objects.exists()
    assert len(LANGUAGES) == 2
