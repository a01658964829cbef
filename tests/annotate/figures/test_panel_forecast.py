"""The forecast for a panel before a task is opened: agreement, errors and people's work, computed by hand."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from annotate.actions.action import ActionError
from annotate.actions.registry import action_named, call_command
from annotate.controls.audit_report import report
from annotate.core.estimation.label_errors import Audit
from annotate.core.estimation.proportions import proportion
from annotate.figures import panel_forecast
from annotate.figures.draw_plan import stream_of, usual_task
from annotate.figures.panel_forecast import Work, forecast_of
from corpora.core.voters import panel_of
from corpora.predictions.prediction_import import import_predictions
from tests.annotate.panels.topics import answer_all, import_topics, open_topics

pytestmark = pytest.mark.django_db
# For each record: its language, its true topic, and the topics that the predictors a, b and c give it.
RECORDS = [
    ("en", "sport", "sport", "sport", "sport"),
    ("en", "sport", "sport", "sport", "news"),
    ("en", "news", "news", "news", "news"),
    ("en", "news", "sport", "sport", "sport"),
    ("en", "news", "sport", "news", "news"),
    ("en", "", "news", "news", "news"),
    ("fr", "sport", "sport", "sport", "sport"),
    ("fr", "news", "news", "sport", "und"),
    ("fr", "news", "news", "news", "news"),
    ("fr", "", "sport", "news", "und"),
]
ALL, TWO = panel_of(["a@1", "b@1", "c@1"]), panel_of(["a@1", "b@1", "c@1"], 2)
WORK = Work(None, 0.5, 1, 36)


def jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def news(data_dir, tmp_path):
    """A corpus of records with declared topics and three predictors; returns a file with the true topics."""
    rows = [
        {"id": f"r{number}", "language": language, "body": f"Text {number}", "topic": topic}
        for number, (language, topic, *_) in enumerate(RECORDS)
    ]
    records = jsonl(tmp_path / "records.jsonl", rows)
    call_command("import_corpus", "news", records, fields="body", labels="topic", licence="CC0-1.0", verbosity=0)
    for place, name in enumerate("abc", 2):
        labels = [{"id": f"r{number}", "label": record[place]} for number, record in enumerate(RECORDS)]
        file = Path(jsonl(tmp_path / f"{name}.jsonl", labels))
        import_predictions("news", file, name=name, version="1", declared={})
    truth = [{"id": row["id"], "label": row["topic"]} for row in rows if row["topic"]]
    return jsonl(tmp_path / "truth.jsonl", truth)


def forecast(panel=ALL, truth=None, **options):
    return forecast_of("news", panel, None, truth, WORK._replace(**options))


def test_the_share_on_which_the_voters_agree_is_shown_by_label_with_its_error(news):
    result = forecast()
    assert (result["items"], result["agreed"], result["known"], result["wrong"]) == (10, 6, 5, 1)
    assert result["error"] == proportion(1, 5).as_dict()
    rows = [(row["label"], row["items"], row["known"], row["wrong"]) for row in result["labels"]]
    assert rows == [("news", 3, 2, 0), ("sport", 3, 3, 1)]
    assert result["earlier"] is None


def test_if_two_of_three_suffice_more_is_wrong_and_without_a_known_truth_nothing_is_said_of_errors(news):
    result = forecast(TWO)
    assert (result["agreed"], result["known"], result["wrong"]) == (8, 7, 1)
    assert result["labels"][0]["label"] == "news"
    result = forecast(truth={})
    assert (result["agreed"], result["known"], result["error"]["value"]) == (6, 0, None)
    assert [pair["correlation"] for pair in result["pairs"]] == [None] * 3


def test_pairs_of_voters_are_compared_where_both_vote_and_their_errors_correlate_where_the_truth_is_known(news):
    result = forecast()
    ab, ac, bc = result["pairs"]
    assert (ab["voters"], ab["voted"], ab["same"], ab["known"]) == (["a@1", "b@1"], 10, 7, 8)
    assert (ac["voted"], ac["same"], ac["known"]) == (8, 6, 7)
    assert (bc["voted"], bc["same"], bc["known"]) == (8, 7, 7)
    # Of 8 records with a known topic, a errs on r3 and r4, and b on r3 and r7: both once, each alone once.
    assert ab["correlation"] == pytest.approx((1 * 5 - 1 * 1) / 12)
    # Of 7, a errs on r3 and r4, and c on r1 and r3.
    assert ac["correlation"] == pytest.approx((1 * 4 - 1 * 1) / 10)
    a, _, c = result["single"]
    assert (a["voted"], a["known"], a["right"]) == (10, 8, 6)
    assert (c["voted"], c["known"], c["right"]) == (8, 7, 5)
    assert c["accuracy"] == proportion(5, 7).as_dict()


def test_people_s_work_is_the_disputed_items_and_the_audits_by_language(news):
    result = forecast()
    rows = {row["language"]: row for row in result["queues"]}
    assert {language: row["disputed"] for language, row in rows.items()} == {"en": 2, "fr": 2}
    # The strata have 2, 2, 1 and 1 records, and half of the 6 agreed records are audited, at least one each.
    audits = {language: row["audits"] for language, row in rows.items()}
    assert sum(audits.values()) == pytest.approx(4)
    assert audits["fr"] == pytest.approx(2)
    assert result["people"] == pytest.approx(8)
    assert result["hours"] == pytest.approx(8 * 36 / 3600)
    assert forecast(size=5)["people"] <= 5


@pytest.mark.parametrize("as_file", [True, False])
def test_the_command_compares_panels_side_by_side_with_declared_labels_or_a_file_as_truth(news, as_file, capsys):
    call_command("panel", "news", voters=["a b c", "a b"], truth=news if as_file else "declared")
    printed, notes = capsys.readouterr()
    lines = [line.split() for line in printed.splitlines()]
    assert any(line[:4] == ["a@1", "b@1", "c@1", "60.0%"] for line in lines)
    assert any(line[:3] == ["a@1", "b@1", "70.0%"] for line in lines)
    assert "The voters agree on 6 of 10 items." in printed
    assert "Note: the hours are for one annotator per item, because --kind is not set." in notes


def test_a_draw_larger_than_the_corpus_is_noted(news):
    outcome = action_named("panel").perform({"corpus": "news", "voters": ["a b"], "size": "500"})
    assert "Note: the corpus contains only 10 items, so all of them are drawn." in outcome.warned


def test_a_gold_set_is_truth_but_for_labels_that_came_from_agreement(news, tmp_path):
    gold = tmp_path / "set"
    gold.mkdir()
    rows = [
        {"id": f"r{number}", "label": "news", "decided_by": "detectors" if number else "one"} for number in range(6)
    ]
    jsonl(gold / "gold.jsonl", rows)
    [result] = action_named("panel").perform({"corpus": "news", "voters": ["a b c"], "truth": str(gold)}).data["panels"]
    assert (result["known"], result["wrong"]) == (1, 1)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "which have no default panel. Set --voters"),
        ({"voters": ["a b"], "kind": "ner"}, "ner cannot have voters: only answers that are one label or a set"),
        (
            {"voters": ["a b"], "kind": "language"},
            "language asks about posts, but the corpus contains records",
        ),
        ({"voters": ["a b"], "truth": "nowhere.jsonl"}, "nowhere.jsonl"),
        ({"voters": ["a cld2"]}, "cld2 votes on the languages of posts"),
        ({"voters": ["a d"]}, r"no predictor 'd'. Available predictors: a@1, b@1, c@1\. "),
        ({"voters": ["a b"], "kind": "nowhere.toml"}, "nowhere.toml"),
        ({"voters": ["a b", "a b c"], "agree": "3"}, "3 of 2 voters cannot settle a label"),
    ],
)
def test_an_impossible_request_is_refused(news, options, why):
    with pytest.raises(ActionError, match=why):
        action_named("panel").perform({"corpus": "news", **options})


def audit(confirmed=0, doubted=0):
    """Return an audit of 100 items in which all doubted ones were wrong."""
    return Audit(100, doubted, doubted, confirmed, 0, 0)


def test_earlier_audits_of_the_panel_are_weighted_by_the_labels_of_this_corpus(news, monkeypatch):
    tasks = [SimpleNamespace(name="first")]
    audits = {
        ("en", "news"): audit(confirmed=40),
        ("en", "sport"): audit(doubted=10, confirmed=30),
        ("fr", "sport"): audit(confirmed=40),
        ("fr", "news"): audit(confirmed=40),
        ("de", "news"): audit(doubted=40),
    }
    monkeypatch.setattr(panel_forecast, "earlier_audits", lambda panel, width: (tasks, audits))
    monkeypatch.setattr(panel_forecast, "slips", lambda task: None)
    earlier = forecast()["earlier"]
    # Of 6 agreed records, 2 are sports in English, of which a quarter was wrong.
    assert earlier["value"] == pytest.approx(2 / 6 / 4, abs=1e-4)
    assert 0 < earlier["low"] < 2 / 6 / 4 < earlier["high"] < 0.2
    assert (earlier["audited"], earlier["tasks"], earlier["unseen"]) == (160, ["first"], 0)
    del audits["fr", "sport"]
    unseen = forecast()["earlier"]
    assert unseen["unseen"] == 1
    assert unseen["high"] > earlier["high"] + 0.1


@pytest.mark.slow
def test_after_a_task_its_audit_is_what_the_next_task_expects(tmp_path, person, ada):
    import_topics(tmp_path)
    task = open_topics(tmp_path, audit_limit="1")
    answer_all(task, [person("reader", "de en")], ada)
    measured = report(task)["overall"]
    how = {"corpus": "topics", "voters": ["a b c", "a b"], "kind": str(tmp_path / "topic_panel.toml")}
    three, two = action_named("panel").perform(how).data["panels"]
    assert three["agreed"] == task.units.exclude(agreed_label="").count()
    assert three["earlier"]["tasks"] == ["panel"]
    assert three["earlier"]["audited"] == task.units.filter(audited=True).count()
    assert three["earlier"]["value"] == pytest.approx(measured["value"], abs=1e-3)
    # The next task has other items, so the interval is at least as wide.
    assert three["earlier"]["high"] >= measured["high"]
    assert two["earlier"] is None
    assert two["agreed"] > three["agreed"]


def test_the_default_panel_of_posts_agrees_on_what_a_task_would_label_without_people(demo_corpus):
    [result] = action_named("panel").perform({"corpus": "demo"}).data["panels"]
    assert result["voters"] == ["langid", "cld2", "fasttext"]
    stream = stream_of("demo", usual_task())
    assert {row["label"]: row["items"] for row in result["labels"]} == stream.agreed
    disputed = {row["language"]: row["disputed"] for row in result["queues"] if row["disputed"]}
    assert disputed == {language: number for language, number in stream.disputed.items() if number}
    assert len(result["pairs"]) == 3
