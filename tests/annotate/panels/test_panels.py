"""Panels: if classifiers and detectors agree on an item, it is labelled. People audit a share, and label the rest."""

import json
import sys
from collections import Counter

import pytest
from django.core.management.base import CommandError
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotate.actions.registry import call_command
from annotate.controls.audit_report import report
from annotate.core import stages
from annotate.kinds import Answer
from annotate.kinds.language import LEAST_LETTERS
from annotate.models import Task
from annotate.work.judgments import judge
from annotate.work.queue import take
from corpora.core.voters import DEFAULT, agreed_vote, ballots, rank_candidates
from corpora.core.voters import VOTERS as DETECTORS
from corpora.models import Item
from corpora.predictions.predictor_labels import find_predictor, triggers
from tests.annotate.corpus import POSTS
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
from tests.annotate.secrecy.test_hidden import all_an_annotator_sees

pytestmark = [pytest.mark.django_db, pytest.mark.on_sqlite]


@pytest.fixture
def topics(tmp_path):
    import_topics(tmp_path)
    return tmp_path


@pytest.fixture
def people(person):
    return [person(f"reader{number}", "de en") for number in range(2)]


def rows_of(folder, name="gold.jsonl"):
    return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]


def test_what_classifiers_agree_on_is_labelled_and_audited_and_the_rest_is_read(topics, people, ada):
    task = open_topics(topics)
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
    call_command("export_gold", "panel", out=topics / "gold", verbosity=0)
    rows = {row["id"]: row for row in rows_of(topics / "gold")}
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
    manifest = json.loads((topics / "gold" / "manifest.json").read_text())
    assert (manifest["task"]["voters"], manifest["task"]["agree"]) == (["a@1", "b@1", "c@1"], 3)
    assert manifest["detectors"][0].keys() == {"a@1", "b@1", "c@1"}
    assert manifest["audit"]["languages"] == results["languages"]
    card = (topics / "gold" / "README.md").read_text()
    assert "Audit of the voters' agreement" in card
    assert "Three voters (a@1, b@1, c@1)" in card


@pytest.mark.slow
def test_a_voter_is_measured_on_what_people_read_and_audited_rows_stand_for_the_others(topics, people, ada):
    task = open_topics(topics, audit_limit="1")
    answer_all(task, people, ada)
    call_command("export_gold", "panel", out=topics / "gold", verbosity=0)
    call_command("evaluate", "a", gold=[str(topics / "gold")], out=topics / "report", verbosity=0)
    report = json.loads((topics / "report" / "report.json").read_text())
    accuracy = next(row for row in report["rows"] if row["measure"] == "accuracy" and not row["of"])
    rows = [row for row in rows_of(topics / "gold") if row["stratum"] != "agreed"]
    assert accuracy["count"] == len(rows)
    labels = predictions()["a"]
    weights = [1 / row["audit_chance"] for row in rows]
    right = [weight for row, weight in zip(rows, weights, strict=True) if labels[row["id"]] == row["label"]]
    assert accuracy["value"] == pytest.approx(sum(right) / sum(weights))
    truly = sum(labels[key] == label for key, label in TRUTH.items()) / len(TRUTH)
    assert accuracy["low"] <= truly <= accuracy["high"]

    open_topics(topics, "unaudited", seed="2", audit_share="0", audit_least="0")
    task = Task.objects.get(name="unaudited")
    answer_all(task, people, ada)
    call_command("export_gold", "unaudited", out=topics / "unaudited", verbosity=0)
    with pytest.raises(CommandError, match="Nobody audited some of the labels on which the voters agree"):
        call_command("evaluate", "a", gold=[str(topics / "unaudited")], out=topics / "other", verbosity=0)


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
    labels = task.units.filter(item__language="de", agreed_label="sports").values_list("label", flat=True)
    assert {*labels} == {"sports", "travel"}


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
    how = {"kind": str(tmp_path / "topic_panel.toml"), "corpus": "topics", "seed": "1", "voters": "a b c"}
    for options in ({"dry_run": True}, {"size": "500"}):
        call_command("open_task", "panel", test_items="0", gold_share="0", **how, **options)
        printed = capsys.readouterr()
        assert (printed.out + printed.err).count(warning) == 1
    in_each = ", ".join(f"{code} {sum(row['language'] == code for row in ROWS)}" for code in LANGUAGES)
    sentence = f"500 records per language were requested, but all that can be drawn are {in_each}."
    assert sentence in printed.out + printed.err


def test_a_task_without_voters_takes_no_votes_and_shares_its_items_with_one_that_does(topics):
    open_topics(topics)
    votes = dict(Item.objects.values_list("key", "votes"))
    assert all(item.keys() == {"a@1", "b@1", "c@1"} for item in votes.values())
    plain = open_topics(topics, "plain", voters="")
    assert (plain.options.keys() & {"voters", "agree", "audit_share"}, plain.draw.detectors) == (set(), [])
    assert {*plain.units.values_list("stage", "agreed_label")} == {(stages.QUEUED, "")}
    assert dict(Item.objects.values_list("key", "votes")) == votes
    assert not any(control.of_agreement for control in plain.kind.quality_controls)


def test_predictions_that_voted_cannot_be_deleted(topics):
    open_topics(topics)
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
def test_impossible_panels_are_refused_before_anything_is_drawn(topics, options, why):
    with pytest.raises(CommandError, match=why):
        open_topics(topics, **options)
    assert not Task.objects.exists()


# --- detectors and classifiers vote on posts


@pytest.fixture
def mine(demo_corpus, tmp_path):
    """A classifier that is always right, except that it labels German as Dutch."""
    truth = dict(
        line.split("\t") for line in (POSTS.parent / "demo_truth.tsv").read_text(encoding="utf-8").splitlines()
    )
    lines = (f"{key}\t{'nl' if label == 'de' else label}\n" for key, label in truth.items())
    (tmp_path / "mine.tsv").write_text("id\tlabel\n" + "".join(lines), encoding="utf-8")
    call_command("import_predictions", "demo", str(tmp_path / "mine.tsv"), name="mine", version="2", verbosity=0)
    return demo_corpus


def opened(name="lang", **options):
    usual = {"kind": "language", "corpus": "demo", "size": "300", "seed": "1"}
    call_command("open_task", name, **usual | options, verbosity=0)
    return Task.objects.get(name=name)


def test_two_of_three_settle_a_language_that_all_of_them_know(mine, tmp_path):
    task = opened(voters="langid cld2 mine", agree="2", audit_share="0", audit_least="0")
    languages = {*triggers("demo", find_predictor("demo", "mine"))}
    assert "de" not in languages
    seen = set()
    for unit in task.units.select_related("item"):
        votes = ballots(unit.item.votes, task.panel)
        label = agreed_vote(votes, task.panel)
        stands = (
            label in languages.intersection(task.labels)
            and unit.item.letters >= LEAST_LETTERS
            and label not in task.never_agree
            and all(label in DETECTORS[name].languages for name in ("langid", "cld2"))
        )
        assert unit.agreed_label == (label if stands else "")
        seen.add((stands, bool(label)))
        if unit.stage == stages.QUEUED:
            ranked = rank_candidates(votes)
            assert unit.candidates[0] in (*ranked, "und")
    assert seen == {(True, True), (False, True), (False, False)}
    call_command("export_gold", "lang", out=tmp_path / "gold", verbosity=0)
    manifest = json.loads((tmp_path / "gold" / "manifest.json").read_text())
    assert manifest["detectors"][0].keys() == {"langid", "cld2", "mine@2"}
    card = (tmp_path / "gold" / "README.md").read_text()
    assert "If at least 2 of them agree on a language that all of them know" in card
    assert "(langid.py, CLD2, mine@2)" in card


def test_the_default_panel_is_not_stored_and_a_larger_draw_keeps_the_panel_of_its_task(mine):
    plain = opened("plain", voters=" ".join(DEFAULT.voters), size="50")
    assert not plain.options.keys() & {"voters", "agree"}
    task = opened(voters="cld2 mine", size="50")
    call_command("extend_task", "lang", size="80", verbosity=0)
    assert {"cld2", "mine@2"} in [set(votes) for votes in task.units.values_list("item__votes", flat=True)]
    assert {*task.draw.detectors[0]} == {"cld2", "mine@2"}
    assert all(
        unit.agreed_label in ("", agreed_vote(unit.item.votes, task.panel) or "")
        for unit in task.units.select_related("item")
    )


def test_a_panel_of_a_verification_is_refused(mine):
    how = {"kind": "verify", "design": "precision", "predictor": "cld2", "languages": "de", "size": "10"}
    with pytest.raises(CommandError, match="--voters is not an option of verify tasks"):
        opened(**how, voters="langid mine")


def test_an_imported_voter_has_no_triggers_in_the_task_in_which_it_voted(mine):
    opened(voters="cld2 mine", audit_share="0", audit_least="0")
    how = {"kind": "verify", "design": "triggers", "of": "lang", "languages": "de nl", "size": None}
    with pytest.raises(CommandError, match="mine@2 voted in the task lang, so it has the same label as the other"):
        opened("triggers", predictor="mine", **how)
    opened("triggers", predictor="fasttext", **how | {"languages": "all"})


# --- what annotators do not see, and what plain tasks do not run


@pytest.mark.parametrize("answer", ["1", "0"])
@pytest.mark.parametrize("recheck", [0, 1])
def test_a_record_of_the_audit_looks_like_one_on_which_the_voters_disagree(make_records_task, person, answer, recheck):
    ann, seen = person("ann", "de"), []
    for name, votes in (("disputed", "1 0 1"), ("audited", "1 1 1")):
        task = make_records_task(
            name=name, languages=["de"], panel=[votes], audit_least=1, audit_recheck=recheck, redundancy=1
        )
        unit = task.units.select_related("item").get()
        assert unit.audited == (name == "audited")
        text = unit.item.text.split("\n")
        pages = all_an_annotator_sees(task, ann, answer)
        for number, line in enumerate(text):
            pages = [page.replace(line, f"line {number}") for page in pages]
        seen.append(pages)
        Task.objects.filter(pk=task.pk).update(is_open=False)
    assert seen[0] == seen[1]


# Modules that must not run when somebody answers in a task without a panel.
OF_PANELS = ("panel_kind.py", "panels.py", "voters.py", "agreement_audit.py", "audit_report.py")


def run_by(act):
    """Return the files whose functions an act runs, and its statements without values."""
    files = set()

    def note(frame, event, argument):
        files.add(frame.f_code.co_filename.rpartition("/")[2])

    with CaptureQueriesContext(connection) as queries:
        sys.setprofile(note)
        try:
            act()
        finally:
            sys.setprofile(None)
    return files, len(queries)


def test_an_answer_in_a_task_without_voters_runs_nothing_of_panels(make_records_task, person):
    ann = person("ann", "de")
    counted = {}
    for name, panel in (("plain", ()), ("voted", ["1 0 1"] * 4)):
        task = make_records_task(name=name, count=4, languages=["de"], panel=panel, redundancy=1)
        judge(ann, take(ann, task).pk, Answer("1"))  # prepares the statements
        counted[name] = run_by(lambda task=task: judge(ann, take(ann, Task.objects.get(pk=task.pk)).pk, Answer("0")))
    files, statements = counted["plain"]
    assert not files.intersection(OF_PANELS)
    assert "agreement_audit.py" in counted["voted"][0]
    assert statements <= counted["voted"][1]
