"""A predictor measured on uniform sets, held to tables that were worked out by hand."""

import shutil
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from annotate.actions.action import ActionError
from annotate.actions.evaluate import check
from annotate.actions.registry import by_name
from annotate.core import stages
from annotate.core.estimation.proportions import Guess, Stratum, Turn, jeffreys, stratified
from annotate.evaluation import measures
from annotate.evaluation.joined_sets import Joined, audit_refusal
from annotate.evaluation.posts import evaluate
from annotate.evaluation.subjects import EvaluationError, read_sets, subject_of_file
from annotate.evaluation.uniform import Cell, Uniform
from annotate.goldsets.set_folder import FORMAT, write_manifest
from annotate.models import Unit
from annotate.reports.report_renderer import as_html, as_markdown, as_text
from tests.annotate.evaluation.figures import (
    VOTER,
    accuracy,
    by_label,
    close,
    interval,
    means,
    measures_of,
    run,
    values,
)


def test_a_voter_is_right_on_agreed_posts_as_often_as_on_the_audited_ones(world, stream):
    report = run(world.subject("cld2", built_in=True), stream)
    # 27 of 30 audited German stand for 60, 10 of 10 English for 20; of the disputed 14 of 20 are right.
    with_und, without = (accuracy(report, posts) for posts in ("with und", "without und"))
    naive, naive_without = (accuracy(report, posts, "naive_accuracy") for posts in ("with und", "without und"))
    assert with_und["value"] == close("88/100")
    assert without["value"] == close("88/94")
    assert naive["value"] == close("91/100")
    assert naive_without["value"] == close("91/95")
    assert interval(naive) == jeffreys(91, 100)
    assert [row["units"] for row in (with_und, without, naive)] == [60, 55, 100]
    strata = [Stratum(60, 30, 30, 27), Stratum(20, 10, 10, 10), Stratum(20, 20, 20, 14)]
    assert interval(with_und) == interval(stratified(strata).as_dict())
    assert report["predictor"]["voted"] is True


def test_recall_precision_f1_and_confusions_are_taken_by_stratum_from_a_uniform_set_alone(world, stream):
    report = run(world.subject("cld2", built_in=True), stream)
    assert report["words"]["recall"][0] == report["words"]["precision"][0] == "Measured on the uniform set."
    # German: 54 agreed and 8 disputed, of which 60 are found; English: 4 among the German, 20 and 8, of which 28.
    recalls = {"de": 60 / 62, "en": 28 / 32, "und": 0}
    assert values(report, "recall") == pytest.approx(recalls)
    assert means(report, "recall") == [
        ("with und", pytest.approx(sum(recalls.values()) / 3), "2 languages and und"),
        ("without und", pytest.approx(sum(recalls.values()) / 2), "2 languages"),
    ]
    precisions = {"de": 60 / 66, "en": 28 / 34}
    assert values(report, "precision") == pytest.approx(precisions)
    assert values(report, "precision_without_und") == {"de": close("60/64"), "en": close("28/30")}
    assert by_label(report, "precision")["de"]["units"] == 36
    strata = [
        Stratum(60, 30, 27, 27, Guess(60, 60, (Turn(-1, -1, 60, 30, 3),))),
        Stratum(20, 10, 0, 0, Guess(0, 0, (Turn(1, 0, 20, 10, 0),))),
        Stratum(20, 20, 8, 6),
    ]
    assert interval(by_label(report, "recall")["de"]) == interval(stratified(strata).as_dict())
    harmonic = {
        label: 2 * recalls[label] * precision / (recalls[label] + precision) for label, precision in precisions.items()
    }
    f1 = {label: value or 0 for label, value in values(report, "f1").items()}
    assert f1 == pytest.approx({**harmonic, "und": 0})
    macro = [row for row in report["rows"] if row["measure"].startswith("mean_")]
    assert {row["measure"] for row in macro} == {"mean_recall", "mean_precision", "mean_f1"}
    assert all(row["low"] < row["value"] < row["high"] or row["value"] == row["high"] for row in macro)
    assert {figure["measure"] for figure in report["head"]} >= {row["measure"] for row in macro}
    [mean] = [row for row in macro if row["measure"] == "mean_f1" and row["of"]["labels"] == "all labels"]
    assert mean["value"] == pytest.approx(sum(f1.values()) / 3)
    assert report["confusion"]["labels"] == ["de", "en", "und"]
    assert {(truth, predicted): weight for truth, predicted, weight in report["confusion"]["cells"]} == {
        **{("de", "de"): 60, ("en", "de"): 4, ("und", "de"): 2},
        **{("de", "en"): 2, ("en", "en"): 28, ("und", "en"): 4},
    }
    # A predictor that voted labels no unread post alone.
    assert values(report, "if_wrong") == {}


def test_contested_posts_count_as_read_in_the_stratum_of_their_language(world):
    folder, _ = world.uniform(
        [
            (10, "de", "audited", "de", "de"),
            (10, "de", "contested", "en", "de"),
            (10, "en", "audited", "en", "en"),
            (30, "en", "agreed", "", "en"),
        ]
    )
    figure = accuracy(run(world.subject("cld2", built_in=True), folder))
    # All 20 on which they agree on German were read; 10 audited English stand for 40.
    assert figure["value"] == close("50/60")
    assert figure["units"] == 30


def test_labels_that_nobody_confirmed_are_no_truth_and_bounds_allow_for_any(world):
    read = [(80, "", "disputed", "de", "de"), (10, "", "disputed", "de", "en")]
    folder, _ = world.uniform([*read, (10, "", "unconfirmed", "da", "de")])
    report = run(world.subject(), folder)
    figure = accuracy(report)
    assert figure["value"] == close("80/90")
    assert interval(figure) == jeffreys(80, 90)
    assert figure["bounds"][0] <= jeffreys(80, 100)[0] + 1e-9
    assert figure["bounds"][1] >= jeffreys(90, 100)[1] - 1e-9
    assert "depending on the posts without a label" in figure["note"]
    assert "da" not in by_label(report, "recall")
    assert any("10 labels of the gold set stream are not confirmed" in warning for warning in report["warnings"])


def test_undefined_is_a_class_of_a_predictor_that_says_it(world):
    folder, _ = world.uniform(
        [(3, "", "disputed", "und", "und"), (1, "", "disputed", "und", "de"), (1, "", "disputed", "de", "und")]
    )
    report = run(world.subject(), folder)
    assert values(report, "recall") == {"de": 0, "und": close("3/4")}
    assert values(report, "precision") == {"de": 0, "und": close("3/4")}
    assert "und" not in by_label(report, "precision_without_und")
    assert means(report, "precision") == [("with und", close("3/8"), "1 language and und")]


def without_labels(world, keys):
    """The set again, where nobody could label these posts."""
    lost = Unit.objects.filter(item__key__in=keys)
    lost.update(stage=stages.DISCARDED, label="")
    shutil.rmtree(world.folder / lost[0].task.name)
    return world.export(lost[0].task)


def test_a_second_mean_is_of_the_languages_with_thirty_posts_and_says_how_many_they_are(world):
    table = [(24, "", "disputed", "de", "de"), (6, "", "disputed", "de", "nl"), (29, "", "disputed", "en", "en")]
    folder, _ = world.uniform([*table, (1, "", "disputed", "nl", "de"), (30, "", "disputed", "und", "und")])
    report = run(world.subject(), folder)
    assert [over for _, _, over in means(report, "recall")] == ["3 languages and und", "3 languages"]
    assert " ".join(as_text(report).split()).count("mean over 3 languages and und") >= 1
    assert means(report, "recall", "30+ posts") == [
        ("with und", close("9/10"), "1 language and und"),
        ("without und", close("8/10"), "1 language"),
    ]
    # Only 25 posts are labelled German, so no language counts; und is right wherever it is predicted.
    assert means(report, "precision", "30+ posts") == []
    for form in (as_text, as_markdown, as_html):
        text = " ".join(form(report).split())
        assert "30+ posts" in text
        assert "mean over 1 language and und" in text
        assert "over 0 languages" not in text


@pytest.mark.parametrize("size", [100, None])
def test_a_set_of_its_whole_corpus_has_the_figures_of_one_from_a_larger_corpus(world, size):
    folder, _ = world.uniform(VOTER)
    (gold,) = read_sets([folder], unfinished=False, allow_erased=False)
    sized, plain = (
        evaluate(world.subject("cld2", built_in=True), [gold_set])
        for gold_set in (replace(gold, frame_size=size), gold)
    )
    assert sized["gold"][0]["frame"] == size
    assert sized | {"gold": None} == plain | {"gold": None}
    for form in (as_text, as_markdown, as_html):
        text = " ".join(form(sized).split())
        assert "the stream from which the posts come, even if the set contains all posts of its corpus" in text


def test_a_mean_over_well_measured_languages_is_not_called_with_und_where_und_is_not_among_them(world):
    folder, _ = world.uniform([(30, "", "disputed", "de", "de"), (2, "", "disputed", "und", "und")])
    report = run(world.subject(), folder)
    assert means(report, "recall")[0] == ("with und", 1, "1 language and und")
    assert means(report, "recall", "30+ posts") == [("without und", 1, "1 language")]


SHORT = ((4, "de", "audited", "de", "de"), (50, "de", "agreed", "", "de"), (9, "", "disputed", "en", "en"))


@pytest.mark.parametrize("name", ["cld2", "majority"])
def test_a_predictor_that_voted_is_refused_where_too_few_agreed_posts_of_a_label_were_read(world, name):
    folder, _ = world.uniform(SHORT)
    message = rf"{name} voted in the gold set stream, .* at least 5 posts .* 30 posts in total, .* de \(4 of 54\): open"
    with pytest.raises(EvaluationError, match=message):
        run(world.subject(name, built_in=True), folder)


def test_it_is_refused_too_where_too_few_were_read_in_all_and_not_where_all_were(world):
    table = [
        (row, label, stratum, truth, label)
        for label in ("de", "en", "fr")
        for row, stratum, truth in ((9, "audited", label), (2, "agreed", ""))
    ]
    folder, _ = world.uniform(table, "few")
    with pytest.raises(EvaluationError, match=r"Too few were read for all labels together \(27 of 33\): "):
        run(world.subject("cld2", built_in=True), folder)
    read, _ = world.uniform([row for row in table if row[2] == "audited"], "all-read")
    assert accuracy(run(world.subject("cld2", built_in=True), read))["value"] == 1


def test_the_form_refuses_a_voter_on_a_small_audit_from_the_manifest_alone(world, tmp_path):
    def refusal(predictor, audited, **row):
        row = {"posts": 34, "audited": audited, "unresolved": 0, "contested": False, "all_read": False} | row
        manifest = {"format": FORMAT, "design": "uniform", "task": {"name": "few"}, "detectors": [{"cld2": "1"}]}
        write_manifest(tmp_path, manifest | {"audit": {"languages": [row]}, "files": {}})
        values = by_name()["evaluate"].read({"predictions": predictor, "gold": [str(tmp_path)]})
        try:
            check(values)
        except ActionError as error:
            return error.option, str(error)
        return None

    option, words = refusal("cld2", 15)
    assert option == "predictions"
    assert words.startswith("cld2 voted in the gold set few")
    assert "all labels together (15 of 34)" in words
    assert refusal("majority", 29)
    assert refusal("cld2", 30) is refusal("mine@2", 15) is refusal("cld2", 15, all_read=True) is None
    write_manifest(tmp_path, {"format": FORMAT, "files": {}})  # as a set of pairs, which has no panel and no audit
    assert audit_refusal("cld2", tmp_path) == ""


def test_a_predictor_that_did_not_vote_has_naive_figures_alone_where_too_little_was_read(world):
    """They have names of their own, and none is in the headline, so a smaller audit shows less."""
    folder, _ = world.uniform(SHORT)
    report = run(world.subject(), folder)
    assert report["predictor"]["voted"] is False
    assert measures_of(report) == {"naive_accuracy", "naive_recall", "naive_precision"}
    assert report["head"] == []
    naive = accuracy(report, measure="naive_accuracy")
    assert naive["units"] == 63
    assert interval(naive) == interval(stratified([Stratum(63, 63, 63, 63)]).as_dict())
    [warning] = report["warnings"]
    assert "the gold set stream uses their labels" in warning
    assert "de (4 of 54)" in warning
    # A comparison on naive figures names no winner.
    worse = world.subject("worse", changes=dict.fromkeys(world.predictions, "nl"))
    rows = run(world.subject(), folder, against=worse)["comparison"]["rows"]
    assert {row["better"] for row in rows} == {None}
    assert all(row["note"].startswith("naive") for row in rows)


def test_what_another_predictor_says_of_agreed_posts_that_nobody_read_counts_by_the_agreed_label(world):
    table = [(10, "de", "audited", "de", "de"), (80, "de", "agreed", "", "de"), (10, "de", "agreed", "", "nl")]
    many = [(30, "en", "audited", "en", "en")]
    folder, _ = world.uniform([*table, *many])
    report = run(world.subject(), folder)
    # None of the ten misses was read.
    assert accuracy(report)["value"] == close("120/130")
    assert values(report, "recall") == {"de": close("90/100"), "en": 1}
    # One of ten that were read is wrong, and so are eight of the other 80 with the same predicted label.
    wrong = [(9, "de", "audited", "de", "de"), (1, "de", "audited", "en", "de"), *table[1:], *many]
    folder, _ = world.uniform(wrong, "wrong")
    report = run(world.subject(), folder)
    assert accuracy(report)["value"] == close("111/130")
    # Of the ten that it labels Dutch none was read: they count as agreed. English may be any of the 90 unread.
    assert values(report, "recall") == {"de": close("81/91"), "en": close("30/40")}


def test_the_precision_of_a_predictor_that_did_not_vote_stands_beside_its_bounds(world):
    agreed = [(40, "de", "audited", "de", "de"), (60, "de", "agreed", "", "de"), (5, "de", "agreed", "", "nl")]
    folder, _ = world.uniform([*agreed, (38, "", "disputed", "nl", "nl"), (2, "", "disputed", "de", "nl")])
    report = run(world.subject(), folder)
    dutch = by_label(report, "precision")["nl"]
    assert values(report, "if_wrong") == {"nl": close("38/45")}
    assert values(report, "if_right") == {"nl": close("43/45")}
    assert by_label(report, "if_wrong")["nl"]["units"] == 5
    assert dutch["low"] < 38 / 45 < 43 / 45 < dutch["high"]
    assert "| nl | Dutch | 84.4% | 95.6% | 5 |" in as_markdown(report)


def test_audited_posts_that_nobody_could_label_have_bounds_beside_the_figures_and_a_warning(world):
    table = [(40, "de", "audited", "de", "de"), (60, "de", "agreed", "", "de"), (40, "", "disputed", "en", "en")]
    whole, _ = world.uniform(table, "whole")
    whole = run(world.subject(), whole)
    _, keys = world.uniform([*table, (8, "de", "audited", "de", "de")], "lost")
    report = run(world.subject(), without_labels(world, keys[-8:]))
    assert accuracy(report)["value"] == accuracy(whole)["value"] == 1
    assert interval(accuracy(report)) == interval(accuracy(whole))
    assert accuracy(report)["bounds"][0] < accuracy(whole)["low"] - 0.05
    [warning] = report["warnings"]
    assert warning.startswith("In the audit of the gold set lost, 8 posts have no label (de).")


def test_unresolved_audits_of_a_language_that_people_read_in_full_are_counted_and_left_out_with_a_reason(world):
    table = [(40, "de", "audited", "de", "de"), (60, "de", "agreed", "", "de"), (40, "en", "audited", "en", "en")]
    _, keys = world.uniform([*table, (3, "de", "audited", "de", "de"), (1, "en", "audited", "en", "en")], "lost")
    [warning] = run(world.subject(), without_labels(world, keys[-4:]))["warnings"]
    assert warning.startswith(
        "In the audit of the gold set lost, 4 posts have no label (de, en). 1 of them is left "
        "out (en): there, people read all other posts on which the detectors agree, so no figure depends on "
        "the audit. The intervals assume that the others resemble the posts with the same label that were read."
    )


def test_what_a_file_says_of_posts_that_nobody_could_label_narrows_its_bounds(world, tmp_path):
    """It calls them German, as the detectors do, so none is among the posts that it alone calls Dutch."""
    agreed = [(40, "de", "audited", "de", "de"), (60, "de", "agreed", "", "de")]
    agreed += [(10, "de", "audited", "de", "nl"), (30, "de", "agreed", "", "nl")]
    folder, keys = world.uniform([*agreed, (40, "", "disputed", "en", "en"), (8, "de", "audited", "de", "de")], "lost")
    without_labels(world, keys[-8:])
    sets = read_sets([folder], allow_erased=False, unfinished=False)
    assert sets[0].unresolved_ids == dict.fromkeys(keys[-8:], "de")

    def measured(keys):
        path = tmp_path / "mine.tsv"
        path.write_text("".join(f"{key}\t{world.predictions[key]}\n" for key in keys))
        report = run(subject_of_file(path, {}, sets=sets), folder)
        assert not [warning for warning in report["warnings"] if "outside the gold sets" in warning]
        return accuracy(report)

    named, unnamed = measured(keys), measured(keys[:-8])
    assert named["value"] == unnamed["value"]
    assert named["bounds"][1] < unnamed["bounds"][1] - 0.01


def test_a_recall_with_too_many_possible_misses_elsewhere_has_no_interval(world):
    table = [(5, "de", "audited", "de", "de"), (895, "de", "agreed", "", "de"), (50, "en", "audited", "en", "en")]
    folder, _ = world.uniform([*table, (6, "", "disputed", "nl", "nl")])
    dutch = by_label(run(world.subject(), folder), "recall")["nl"]
    assert (dutch["value"], dutch["low"], dutch["high"]) == (1, None, None)
    report = run(world.subject(), folder)
    assert "100.0%, no interval" in as_markdown(report)
    assert "people read few posts, mainly de." in as_markdown(report)
    assert "on which the detectors agree, run `assay audit TASK --add N`" in as_markdown(report)


def test_a_predictor_that_names_nothing_has_a_recall_of_0_and_no_precision(world, stream):
    nothing = world.subject(changes=dict.fromkeys(world.predictions, "und"))
    report = run(nothing, stream)
    assert values(report, "recall") == {"de": 0, "en": 0, "und": 1}
    assert values(report, "precision").keys() == {"und"}
    assert 0 <= accuracy(report)["low"] < 0.1


def test_the_macro_mean_of_a_perfect_predictor_is_known_by_its_labels(world):
    folder, _ = world.uniform([(20, "", "disputed", code, code) for code in ("de", "en", "nl", "fr")])
    [row, *_] = [row for row in run(world.subject(), folder)["rows"] if row["measure"] == "mean_recall"]
    assert row["value"] == row["high"] == 1
    assert row["low"] == pytest.approx(1 - (1 - jeffreys(20, 20)[0]) / 2)


@pytest.mark.slow
def test_in_100_draws_the_interval_of_a_macro_mean_holds_the_truth():
    """Twelve labels, one in forty of the agreed labels wrong, 15% of the agreement read; an error of the predictor is
    mostly the detectors' own."""
    shares = np.array([1 / place for place in range(1, 13)])
    shares /= shares.sum()

    def posts(chance, number):
        truth, other, guess = (chance.choice(12, number, p=shares) for _ in range(3))
        agreed = np.where(chance.random(number) < 0.025, other, truth)
        astray = np.where(chance.random(number) < 0.5, agreed, guess)
        return truth, agreed, np.where(chance.random(number) < 0.93, truth, astray), chance.random(number)

    truth, _, predicted, _ = posts(np.random.default_rng(0), 1_000_000)
    recalls, precisions = (
        np.array([(truth == predicted)[side == label].mean() for label in range(12)]) for side in (truth, predicted)
    )
    truths = {"recall": recalls.mean(), "precision": precisions.mean()}
    truths["f1"] = (2 * recalls * precisions / (recalls + precisions)).mean()
    held = Counter()
    for seed in range(100):
        columns = zip(*(column.tolist() for column in posts(np.random.default_rng(seed + 1), 2_000)), strict=True)
        cells = {}
        for number, (true, agreed, label, draw) in enumerate(columns):
            stratum, read = "" if draw < 0.25 else f"l{agreed}", draw < 0.36
            cells[str(number)] = Cell(stratum, stratum, read, f"l{true if read else agreed}", f"l{label}")
        joined = Joined({}, {}, {}, uniform=Uniform(cells), labelled=Uniform(cells))
        rows = [*measures.recall(joined), *measures.precision(joined)]
        for row in (*rows, *measures.f1(rows, joined)):
            measure = row["measure"].removeprefix("mean_")
            posts_of = "with und" if measure == "f1" else "without und"
            if row["of"] == {"posts": posts_of, "labels": "all labels"}:
                held[measure] += row["low"] <= truths[measure] <= row["high"]
    assert min(held[measure] for measure in truths) >= 93


def test_errors_are_the_posts_that_people_read_and_the_predictor_labels_otherwise(world, stream):
    report = run(world.subject(), stream)
    # A predictor that did not vote is measured by stratum too, where enough was read.
    assert accuracy(report)["value"] == close("88/100")
    assert report["warnings"] == []
    assert (report["error_count"], report["error_base"]) == (len(report["errors"]), 60)
    pairs = Counter((error["gold"], error["predicted"]) for error in report["errors"])
    assert pairs == {("en", "de"): 2, ("und", "de"): 1, ("de", "en"): 2, ("und", "en"): 4}
    assert all(error["fields"]["text"] for error in report["errors"])
    assert "The prediction differs from the gold label in 9 of 60 posts that people read." in " ".join(
        as_text(report).split()
    )


def test_where_the_predictor_differs_each_post_read_counts_for_the_unread_posts_that_it_represents():
    """A sixth and a tenth of the posts were read, so one post stands for five more, the other for nine more."""
    read = Cell("de", "de", True, "nl", "nl"), Cell("sv", "sv", True, "sv", "nl")
    unread = Cell("de", "de", False, "de", "de"), Cell("sv", "sv", False, "sv", "sv")
    posts = [read[0], *[unread[0]] * 5, read[1], *[unread[1]] * 9]
    assert Uniform(dict(enumerate(posts))).lone_right == pytest.approx(5 / (5 + 9))
