"""Uniform sets against known truth, small: the benchmarks `stream` and `audits` do this on real streams."""

import json
from collections import Counter

import pytest
from django.conf import settings as django_settings

from annotate.core import stages
from annotate.evaluation.subjects import Subject
from annotate.models import Annotator, Judgment, Task
from benchmarks import audits_work, stream_work
from benchmarks.audits_work import Crew, Frame, measured, work
from benchmarks.material import MissingData, mixed
from benchmarks.stream import Figure, held, report, report_rule
from benchmarks.stream_work import OTHER_RIGHT, Truth, predictions
from corpora.core.languages import UND, confusable_with
from tests.annotate.acts import open_task
from tests.annotate.corpus import demo_corpus, prelabelled  # noqa: F401 - fixtures

pytestmark = pytest.mark.slow


ABOUT = {
    "accuracy with und",
    "accuracy without und",
    "recall",
    "precision with und",
    "precision without und",
}


@pytest.fixture
def truth():
    lines = (django_settings.BASE_DIR / "fixtures" / "demo_truth.tsv").read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t") for line in lines)


@pytest.fixture
def done(demo_corpus, truth, tmp_path, monkeypatch, capsys):  # noqa: F811
    """Runs the benchmark's program on the demo's posts and returns what it prints."""
    monkeypatch.setattr(audits_work, "NAME", demo_corpus.name)
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    return lambda *arguments: _printed(tmp_path / "truth.json", arguments, capsys)


def _printed(truth, arguments, capsys):
    stream_work.main([str(truth), *arguments])
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_the_intervals_of_two_reports_and_of_the_audit_cover_the_truth_and_nothing_of_a_seed_is_left(done):
    [found] = done("300", "0.015", "0.02", "", "confirmed", "1")
    figures = [Figure(*row) for row in found["figures"]]
    assert {figure.kind for figure in figures} == {
        "error of agreement, in all",
        "error of agreement, by language",
        *(f"{who}, {figure}" for who in ("voted", "did not vote") for figure in ABOUT),
    }
    assert found["judgments"] > found["seconded"] > 0
    assert not any(model.objects.exists() for model in (Task, Annotator, Judgment))
    intervals = held(figures)
    assert len(intervals) > 100
    assert sum(figure.covers for figure in intervals) / len(intervals) >= 0.93
    # And an interval can fail: if the stream were otherwise, fewer would cover.
    others = [figure._replace(truth=figure.truth - 0.5) for figure in intervals]
    assert sum(figure.covers for figure in others) / len(others) < 0.75


def test_a_confirmed_answer_in_another_language_costs_further_answers_and_is_right(done):
    confirmed, single = done("300", "0.2", "0", "en de", "confirmed single", "1")
    assert (confirmed["rule"], single["rule"]) == ("confirmed", "single")
    assert confirmed["elsewhere"] <= confirmed["further"] < confirmed["judgments"]
    assert single["further"] == 0
    assert confirmed["elsewhere_wrong"] < single["elsewhere_wrong"]


def test_the_audit_covers_the_error_of_agreement_and_the_naive_accuracy_flatters(demo_corpus, truth, monkeypatch):  # noqa: F811
    monkeypatch.setattr(audits_work, "NAME", demo_corpus.name)
    task = open_task("audited", demo_corpus, 400, "1", audit_least=5, audit_limit=1.0).task
    work(task, Crew(truth, slip=0.015, adjudicator_slip=0.0, seed="1"))
    assert not task.units.exclude(stage__in=stages.FINISHED).exists()
    found = measured(task, Frame(task, truth))

    def covered(row, way):
        return row[way]["low"] <= row["truth"] <= row[way]["high"]

    cells = found["languages"]
    assert len(cells) > 30
    assert sum(covered(row, "blind") for row in cells) / len(cells) >= 0.93
    # Readers slip: their word alone finds errors where there are none.
    assert sum(covered(row, "not adjudicated") for row in cells) <= sum(covered(row, "blind") for row in cells)
    assert covered(found["overall"], "blind")
    for row in found["accuracy"].values():
        assert covered(row, "by stratum")
        # Against its own labels a detector looks better than it is.
        assert row["naive"]["value"] > row["by stratum"]["value"]


def test_a_mixed_stream_has_the_least_number_of_posts_of_each_language(tmp_path):
    for name, text in {
        "lingua_sentences/da.txt": "Dette er en lang sætning",
        "lingua_sentences/ja.txt": "これはとても長い文章です",
        "lingua_sentences/sq.txt": "Kjo nuk është në listë",
        "lingua_single_words/da.txt": "ord",
        "lingua_single_words/ja.txt": "言葉",
        **{f"afrisenti_tweets/{code}.txt": f"tweet {code}" for code in ("am", "ha", "pcm", "sw")},
        "twitter_langid/uniformly_sampled.tsv": "ja\t1\nsq\t2",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    stream = mixed(tmp_path, 500, "1", {"da": 100}, 20)
    counts = Counter(post.language for post in stream)
    assert counts == {"da": 100, "ja": 320, "am": 20, "ha": 20, "pcm": 20, "sw": 20}
    assert {post.text for post in stream if post.language == "da"} == {
        "Dette er en lang sætning",
        "Dette er en",
        "ord",
    }
    assert {post.text for post in stream if post.language == "ja"} == {
        "これはとても長い文章です",
        "これはとても長い",
        "言葉",
    }
    with pytest.raises(MissingData, match="160 posts are needed"):
        mixed(tmp_path, 120, "1", {"da": 60}, 20)


def test_the_predictor_that_did_not_vote_errs_as_often_as_said_and_half_of_the_time_nearby():
    truth = {str(number): "no" if number % 2 else "en" for number in range(20_000)}
    said = predictions(truth, "5")
    assert said == predictions(truth, "5")
    assert sum(said[key] == truth[key] for key in truth) / len(truth) == pytest.approx(OTHER_RIGHT, abs=0.01)
    of_norwegian = [said[key] for key in truth if truth[key] == "no" != said[key]]
    assert set(of_norwegian) == {"en", "da", "is", "sv"} < {"en", *confusable_with("no")}
    assert of_norwegian.count("en") / len(of_norwegian) == pytest.approx(0.5, abs=0.1)


def test_the_truth_of_a_figure_counts_what_is_off_the_list_as_und_and_a_class_as_one_label():
    truth = {"a": "en", "b": "en", "c": "pcm", "d": "zh-CN", "e": "zh-TW", "f": "de"}
    said = {"a": "en", "b": UND, "c": "en", "d": "zh", "e": "zh-TW", "f": "nl"}
    says = lambda ids, also=(): {key: said[key] for key in (*ids, *also)}  # noqa: E731
    subject = Subject("mine", "1", {"zh": ("zh-CN", "zh-TW")}, labels=says)
    known = Truth(subject, truth)
    assert known.accuracy(with_und=True) == 3 / 6
    assert known.accuracy(with_und=False) == 3 / 5
    assert [known.recall(label) for label in ("en", "zh", UND, "fr")] == [1 / 2, 1, 0, None]
    assert known.precision("en", with_und=True) == 1 / 2
    assert known.precision("en", with_und=False) == 1
    assert known.precision("fr", with_und=True) is None


def test_the_table_counts_figures_without_an_interval_or_a_truth_apart_and_shows_what_confirmation_cost(capsys):
    rows = [
        ("1", "recall", "en", 30, 0.9, 0.8, 1.0, 0.85),
        ("1", "recall", "de", 40, 0.9, 0.8, 1.0, 0.75),
        ("1", "recall", "nl", 29, 0.5, None, None, 0.6),
        ("1", "recall", "cy", 1, 0.5, 0.1, 0.9, None),
    ]
    report([Figure(*row) for row in rows])
    many, few, fewest, missed = (part.splitlines() for part in capsys.readouterr().out.strip().split("\n\n"))
    assert many[0] == "30 posts read or more"
    assert many[3].split() == ["recall", "2", "0", "0", "2", "50.00%", "20.00", "10.00"]
    assert few[3].split() == ["recall", "1", "1", "0", "0", "-", "-", "-10.00"]
    assert fewest[3].split() == ["recall", "1", "0", "1", "0", "-", "-", "-"]
    assert [line.split() for line in missed[3:]] == [["recall", "1", "de", "40", "90.00", "80.00", "100.00", "75.00"]]
    counted = {"seed": "1", "languages": 2, "read": 30, "judgments": 40, "seconded": 1}
    elsewhere = {"elsewhere": 3, "elsewhere_wrong": 0, "further": 4}
    report_rule("confirmed", [{**counted, **elsewhere, "figures": rows}], ["nl"])
    work, *_, recalls = (part.splitlines() for part in capsys.readouterr().out.strip().split("\n\n"))
    assert work[0] == "Answers in another language: confirmed. Work"
    assert work[3].split() == ["1", "2", "30", "40", "1", "3", "0", "4", "10.00%"]
    assert [line.split() for line in recalls[3:]] == [["recall", "1", "nl", "29", "50.00", "-", "-", "60.00"]]
