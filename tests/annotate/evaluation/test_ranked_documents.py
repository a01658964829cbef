"""Ranked labels of documents, from a run to a report."""

import json
import math
from collections import Counter
from math import log2
from pathlib import Path
from statistics import fmean

import pytest
from django.conf import settings
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import assay
from annotate.actions.commands import call_command
from annotate.core.estimation.differences import holm
from annotate.evaluation.measurement import evaluate
from tests.annotate.evaluation.figures import figures, refusal
from tests.annotate.labelled_sets import labelled_set, run_of

PARENTS = {
    "animal": [],
    "pet": [],
    "cat": ["animal", "pet"],
    "dog": ["animal", "pet"],
    "wolf": ["animal"],
    "elk": ["animal"],
}
# Over 1 document of train: cat is frequent, dog and animal few-shot, wolf zero-shot; elk is never used.
SPLITS = {
    "train": {"t1": ["cat", "dog"], "t2": ["cat"], "t3": ["animal"]},
    "dev": {"d1": ["dog"]},
    "test": {"a": ["cat", "wolf"], "b": ["dog"], "c": ["wolf", "dog", "cat"]},
}
SAID = {
    "a": {"cat": 0.9, "dog": 0.5, "wolf": 0.2},
    "b": {"cat": 3, "dog": 2},
    "c": {"elk": 0.4, "wolf": 0.6},
}
SECOND = 1 / log2(3)


@pytest.fixture
def gold(tmp_path):
    return labelled_set(tmp_path / "gold", SPLITS, PARENTS)


@pytest.fixture
def say(tmp_path):
    """say(scores, "mine") writes a run, and returns its path."""
    return lambda scores, system="mine", name="": run_of(tmp_path / f"{name or system}.run", scores, system)


def values(report, labels, k):
    return {row["measure"]: row["value"] for row in report["rows"] if row["of"] == {"labels": labels, "k": str(k)}}


def documents(report):
    """Labels -> how many documents have some."""
    return {row["of"]["labels"]: row["units"] for row in report["rows"] if "labels" in row["of"]}


def answered(report, answers="plain"):
    """Of micro precision and recall: what is right of how much; and micro F1."""
    precision, recall, f1 = (
        figures(report, f"micro_{name}", answers=answers) for name in ("precision", "recall", "f1")
    )
    return precision["note"].split(";")[0], recall["note"].split(";")[0], f1["value"]


# --- what is measured


def test_the_measures_of_three_documents_are_those_worked_out_by_hand(gold, say, run):
    report = run("--gold", gold, say(SAID))
    assert (report["kind"], report["predictor"]["spelled"]) == ("evaluation", "mine")
    assert report["words"]["gold"][0].startswith("Measured on 3 documents of the split test")
    ks = [row["of"]["k"] for row in report["rows"] if row["measure"] == "P" and row["of"]["labels"] == "all"]
    assert ks == [str(k) for k in range(1, 11)]
    # Hits of a: ranks 1 and 3, of b: rank 2, of c: rank 1 of two.
    assert values(report, "all", 1) == pytest.approx(
        {"P": 2 / 3, "R": (1 / 2 + 0 + 1 / 3) / 3, "RP": 2 / 3, "nDCG": 2 / 3}
    )
    assert values(report, "all", 2) == pytest.approx(
        {
            "P": (1 / 2 + 1 / 2 + 1 / 2) / 3,
            "R": (1 / 2 + 1 + 1 / 3) / 3,
            "RP": (1 / 2 + 1 + 1 / 2) / 3,
            "nDCG": (1 / (1 + SECOND) + SECOND + 1 / (1 + SECOND)) / 3,
        }
    )
    assert values(report, "all", 10)["R"] == pytest.approx((1 + 1 + 1 / 3) / 3)


def test_of_a_bucket_only_its_labels_and_the_documents_that_have_them_are_measured(gold, say, run):
    report = run("--gold", gold, say(SAID))
    assert documents(report) == {"all": 3, "frequent": 2, "few": 2, "zero": 2}
    assert "Labels used: 1 frequent (in more than 1 document of train), 2 few-shot" in report["words"]["gold"][-1]
    assert values(report, "frequent", 1)["RP"] == 1 / 2  # a has cat, c not
    assert values(report, "few", 1)["RP"] == 1 / 2  # of b dog comes first, c lacks it
    assert values(report, "zero", 1)["RP"] == 1


def test_buckets_are_counted_anew_from_the_train_documents_where_another_limit_is_named(gold, say, run):
    report = run("--gold", gold, say(SAID), "--frequent-over", 2)
    assert report["words"]["gold"][-1] == (
        "Labels used: 0 frequent (in more than 2 documents of train), 3 few-shot (in fewer, at least one), 1 zero-shot "
        "(in none)."
    )
    frequent = figures(report, "RP", labels="frequent", k="1")
    assert (frequent["units"], frequent["value"], frequent["note"]) == (0, None, "no document has such a label")
    as_exported = run("--gold", gold, say(SAID), "--frequent-over", 1)
    assert as_exported == run("--gold", gold, say(SAID))


def test_another_split_is_measured_where_it_is_named(gold, say, run):
    report = run("--gold", gold, say({"d1": {"cat": 2, "dog": 1}}), "--split", "dev")
    assert report["words"]["gold"][0].startswith("Measured on 1 document of the split dev")
    assert values(report, "all", 2)["RP"] == 1


def test_the_first_labels_are_the_answer_or_those_above_a_threshold(gold, say, run):
    def answers(*options):
        return answered(run("--gold", gold, say(SAID), *options))

    assert answers() == ("4 of 7", "4 of 6", 8 / 13)  # fewer than five of each
    assert answers("--first", 1) == ("2 of 3", "2 of 6", 4 / 9)
    assert answers("--threshold", "0.5") == ("3 of 5", "3 of 6", 6 / 11)
    assert answers("--threshold", "-1000") == answers()
    assert answers("--threshold", "100") == ("0 of 0", "0 of 6", 0)


def test_with_all_ancestors_on_both_sides_a_near_miss_costs_less(gold, say, run):
    report = run("--gold", gold, say({"b": {"cat": 1}}), "--first", 1)
    assert answered(report) == ("0 of 1", "0 of 6", 0)
    # b has dog, animal and pet, and is given cat, animal and pet; a has 4, and c 5.
    assert answered(report, "with_ancestors")[:2] == ("2 of 3", f"2 of {3 + 4 + 5}")
    assert figures(report, "micro_precision", answers="with_ancestors")["value"] == pytest.approx(2 / 3)


def test_documents_outside_the_split_and_those_without_a_line_are_told(gold, say, run, capsys):
    mine = say({"a": {"cat": 1}, "t1": {"cat": 1}, "nowhere": {"dog": 1}})
    report = run("--gold", gold, mine)
    assert report["told"] == [
        "mine: 2 documents are not among those measured, without effect on any figure.",
        "mine: 2 documents measured have no line; there nothing counts as found.",
    ]
    call_command("evaluate", str(mine), gold=[str(gold)])
    assert "mine: 2 documents are not among those measured" in " ".join(capsys.readouterr().out.split())


def test_documents_without_labels_count_for_the_answers_alone(tmp_path, say, run, capsys):
    gold = labelled_set(tmp_path / "bare", {**SPLITS, "test": {"a": ["cat"], "b": []}}, PARENTS)
    mine = say({"a": {"cat": 1}, "b": {"dog": 1}})
    report = run("--gold", gold, mine)
    precision = figures(report, "micro_precision", answers="plain")
    assert (documents(report)["all"], precision["units"], precision["value"]) == (1, 2, 0.5)
    call_command("evaluate", str(mine), gold=[str(gold)])
    assert "1 document has no gold label, and no part in the measures at K." in capsys.readouterr().out


# --- acts of the EU


@pytest.fixture(scope="module")
def acts(tmp_path_factory):
    """The acts of the fixtures as a set, and a run of all their labels by the train count, then the id as text."""
    folder = tmp_path_factory.mktemp("acts")
    root = Path(settings.BASE_DIR) / "fixtures"
    lines = {
        split: map(json.loads, (root / f"eurlex/{split}.jsonl").read_text(encoding="utf-8").splitlines())
        for split in ("train", "dev", "test")
    }
    splits = {split: {act["celex_id"]: act["eurovoc_concepts"] for act in acts} for split, acts in lines.items()}
    concepts = json.loads((root / "eurovoc/concepts.json").read_text(encoding="utf-8"))
    used = {label for documents in splits.values() for labels in documents.values() for label in labels}
    parents = {label: [] for label in used} | {key: concept["parents"] for key, concept in concepts.items()}
    count = Counter(label for labels in splits["train"].values() for label in labels)
    scores = {key: {label: count[label] for label in sorted(used, reverse=True)} for key in splits["test"]}
    gold = labelled_set(folder / "gold", splits, parents, frequent_over=2)
    ranking = sorted(used, key=lambda label: (-count[label], label))
    return gold, run_of(folder / "by-count.run", scores, "by-count"), splits, count, ranking


def test_labels_ranked_by_count_have_the_figures_of_the_published_formulas(acts, run):
    gold, by_count, splits, count, ranking = acts
    report = run("--gold", gold, by_count)
    buckets = {
        "all": set(ranking),
        "frequent": {label for label in ranking if count[label] > 2},
        "few": {label for label in ranking if 1 <= count[label] <= 2},
        "zero": {label for label in ranking if not count[label]},
    }
    assert all(buckets.values())
    for name, labels in buckets.items():
        listed = [label for label in ranking if label in labels]
        truths = [truth for document in splits["test"].values() if (truth := set(document) & labels)]
        assert documents(report)[name] == len(truths)
        for k in range(1, 11):
            hits = [[label in truth for label in listed[:k]] for truth in truths]
            sizes = [min(k, len(truth)) for truth in truths]
            expected = {
                "P": fmean(sum(each) / k for each in hits),
                "R": fmean(sum(each) / len(truth) for each, truth in zip(hits, truths, strict=True)),
                "RP": fmean(sum(each) / size for each, size in zip(hits, sizes, strict=True)),
                "nDCG": fmean(
                    sum(hit / log2(rank + 1) for rank, hit in enumerate(each, 1))
                    / sum(1 / log2(rank + 1) for rank in range(1, size + 1))
                    for each, size in zip(hits, sizes, strict=True)
                ),
            }
            assert values(report, name, k) == pytest.approx(expected)


def test_every_figure_of_twenty_acts_has_an_interval_that_holds_it(acts, run):
    gold, by_count, *_ = acts
    report = run("--gold", gold, by_count)
    estimates = [
        row for row in report["rows"] if row["measure"] != "nDCG" and row["of"].get("answers") in (None, "plain")
    ]
    assert all(each["low"] < each["high"] and each["low"] <= each["value"] <= each["high"] for each in estimates)


def test_the_same_files_give_the_same_report(acts, run):
    gold, by_count, *_ = acts
    assert run("--gold", gold, by_count) == run("--gold", gold, by_count)


# --- two systems


LABELS = st.sampled_from(sorted(PARENTS))
SCORES = st.dictionaries(LABELS, st.integers(0, 3), min_size=1)
RUNS = st.fixed_dictionaries({"a": SCORES}, optional={"b": SCORES, "c": SCORES})
ONCE = hypothesis_settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@ONCE
@given(RUNS)
def test_a_system_against_itself_differs_by_nothing_in_anything(gold, tmp_path, scores):
    one, other = (run_of(tmp_path / f"{name}.run", scores) for name in ("one", "other"))
    report = evaluate(str(one), [gold], against=str(other))
    found = report["comparison"]
    assert {row["value"] for row in found["rows"]} <= {0, None}
    assert {row["better"] for row in found["rows"]} == {None}
    assert {(row["p"], row["p_holm"]) for row in found["rows"] if row["p"] is not None} == {(1, 1)}
    # Both runs say "mine", so the report tells them by their files.
    assert (report["predictor"]["spelled"], found["other"]["spelled"]) == ("one.run", "other.run")


@ONCE
@given(RUNS)
def test_at_1_the_r_precision_is_the_precision_and_more_labels_never_lower_the_recall(gold, tmp_path, scores):
    report = evaluate(str(run_of(tmp_path / "any.run", scores)), [gold])
    for labels in documents(report):
        first = values(report, labels, 1)
        assert first["RP"] == first["P"] == first["nDCG"]
        recall = [values(report, labels, k)["R"] for k in range(1, 11)]
        assert recall == sorted(recall)


@pytest.fixture
def many(tmp_path):
    """A set of forty test documents, and what a system says that is right in so many of them."""
    test = {f"n{number}": ["cat", "wolf"] for number in range(40)}
    gold = labelled_set(tmp_path / "many", {**SPLITS, "test": test}, PARENTS)

    def right_in(number):
        return {
            key: {"cat": 3, "wolf": 2, "elk": 1} if place < number else {"elk": 3, "pet": 2, "wolf": 1}
            for place, key in enumerate(test)
        }

    return gold, right_in


def test_two_systems_are_compared_by_document_and_the_better_one_is_named(many, say, run):
    gold, right_in = many
    mine, other = say(right_in(36)), say(right_in(12), "other")
    report = run("--gold", gold, mine, "--against", other)
    found = report["comparison"]
    # 24 documents apart: at K = 1 by all, at K = 3 by one label of two.
    first, third = (figures(found, "RP", labels="all", k=k) for k in ("1", "3"))
    assert (first["units"], first["value"], third["value"]) == (40, pytest.approx(24 / 40), pytest.approx(12 / 40))
    assert first["better"] == "first"
    turned = figures(run("--gold", gold, other, "--against", mine)["comparison"], "RP", labels="all", k="1")
    assert (turned["value"], turned["better"]) == (pytest.approx(-24 / 40), "second")
    assert turned["low"] == pytest.approx(-first["high"])
    assert figures(found, "micro_f1", answers="plain")["better"] == "first"


def test_the_tests_are_corrected_together_and_only_of_groups_that_have_documents(many, say, run):
    gold, right_in = many
    mine, other = say(right_in(22)), say(right_in(20), "other")
    found = run("--gold", gold, mine, "--against", other)["comparison"]
    tested = [row for row in found["rows"] if row["p"] is not None]
    assert [(row["measure"], row["of"]) for row in tested] == [
        *((name, {"labels": group, "k": "5"}) for group in ("all", "frequent", "zero") for name in ("RP", "nDCG")),
        *(("micro_f1", {"answers": answers}) for answers in ("plain", "with_ancestors")),
    ]
    assert [row["p_holm"] for row in tested] == holm([row["p"] for row in tested])
    # Two documents, of which both are better in the first system, could fall so with a chance of one half.
    assert tested[0]["p"] == pytest.approx(0.5, abs=0.03)
    assert tested[0]["better"] is None


def test_a_run_is_not_compared_with_itself(gold, say):
    mine = say(SAID)
    assert refusal("--gold", gold, mine, "--against", mine) == (
        f"{mine} cannot be compared with itself; name other predictions with --against."
    )


# --- the report


def test_the_report_says_the_same_on_a_terminal_in_markdown_and_in_html(many, say, tmp_path, capsys):
    gold, right_in = many
    mine, other, out = say(right_in(36)), say(right_in(12), "other"), tmp_path / "report"
    capsys.readouterr()
    call_command("evaluate", str(mine), gold=[str(gold)], against=str(other), out=out, threshold="2")
    text = capsys.readouterr().out
    markdown, html = ((out / f"report.{suffix}").read_text(encoding="utf-8") for suffix in ("md", "html"))
    report = json.loads((out / "report.json").read_text())
    whole = figures(report, "RP", labels="all", k="5")
    shown = f"{100 * whole['value']:.1f}% [{100 * whole['low']:.1f}, {100 * whole['high']:.1f}]"
    for written in (text, markdown, html):
        said = " ".join(written.split())
        assert "mine against other, measured on" in said
        assert shown in said
        assert "its labels with a score of 2 or more" in said
        assert "mine is better: mine less other, in RP@K, all labels, K 5" in said
        assert "No document has such a label" in said
        assert "Labels are ranked by their scores, and those of equal scores by their ids as text." in said
    tables = text.split("\nK  ")[1:]
    assert len(tables) == 6  # all, frequent and zero-shot, of one system and of both
    assert all(
        [line.split()[0] for line in part.splitlines()[1:11]] == [str(k) for k in range(1, 11)] for part in tables
    )
    assert max(map(len, text.splitlines())) <= 100
    assert html.count("<svg xmlns") == 4  # all, frequent and zero-shot labels, and answers


def test_a_notebook_has_the_same_report_and_the_figures_as_rows(gold, say, run):
    mine = say(SAID)
    found = assay.report(mine, gold, threshold=0.5, frequent_over=2)
    assert found.to_dict() == run("--gold", gold, mine, "--threshold", 0.5, "--frequent-over", 2)
    rows = found.to_pandas().set_index(["measure", "labels", "k", "answers"]).value
    assert rows["RP", "all", "1", ""] == pytest.approx(2 / 3)
    assert rows["micro_f1", "", "", "plain"] == pytest.approx(6 / 11)
    assert math.isnan(rows["P", "frequent", "1", ""])
    assert "Labels taken for the answer" in found._repr_html_()
    with pytest.raises(assay.AssayError, match="first is 0; it must be 1 or more"):
        assay.evaluate(mine, gold, first=0)


# --- tables of scores


def table_of(path, scores, labels):
    """Of scores as a TREC run has them; the columns are the labels."""
    lines = [["id", *labels], *([key, *(said.get(label, "") for label in labels)] for key, said in scores.items())]
    path.write_text("".join("\t".join(map(str, line)) + "\n" for line in lines))
    return path


def test_a_table_of_scores_is_a_ranking_too(gold, say, tmp_path, run):
    as_run = run("--gold", gold, say(SAID), "--threshold", 0.5)
    table = table_of(tmp_path / "mine.tsv", SAID, sorted(PARENTS))
    lines = tmp_path / "mine.jsonl"
    lines.write_text("".join(json.dumps({"id": key} | said) + "\n" for key, said in SAID.items()))
    for path in (table, lines):
        report = run("--gold", gold, path, "--threshold", 0.5)
        assert (report["rows"], report["predictor"]["spelled"]) == (as_run["rows"], path.name)
    report = run("--gold", gold, say(SAID), "--against", table)
    assert {row["value"] for row in report["comparison"]["rows"]} <= {0, None}


def test_a_table_that_does_not_fit_is_refused_in_a_sentence(gold, tmp_path):
    path, labels = tmp_path / "mine.tsv", sorted(PARENTS)
    for scores, columns, said in (
        ({"a": {"cat": "much"}}, labels, "line 2: the score of cat is 'much'; write a finite number such as 0.93."),
        ({"a": {"cat": "nan"}}, labels, "line 2: the score of cat is 'nan'; write a finite number such as 0.93."),
        (SAID, ["cat", "dgo"], "has the column 'dgo', which is not one of the 6 labels; correct it, or leave it out."),
        ({"x": {"cat": 1}}, labels, "has no line of any of the 3 documents measured; give the run of these documents."),
    ):
        assert said in refusal("--gold", gold, table_of(path, scores, columns))
    path.write_text("id\tcat\na\t1\na\t2\n")
    assert "line 3: a has a row already; give each document one." in refusal("--gold", gold, path)


# --- sets that are not measured on


def test_an_unfinished_set_is_measured_only_where_that_is_said(tmp_path, say, run):
    half, mine = labelled_set(tmp_path / "half", SPLITS, PARENTS, finished=False), say(SAID)
    assert "is unfinished: records that still wait" in refusal("--gold", half, mine)
    report = run("--gold", half, mine, "--unfinished")
    assert values(report, "all", 1)["P"] == pytest.approx(2 / 3)
    assert report["warnings"] == [
        "The gold set half is unfinished: records that still wait for people are missing from it."
    ]


def test_a_set_without_the_split_is_refused_with_the_splits_that_it_has(tmp_path, say):
    splits = {split: rows for split, rows in SPLITS.items() if split != "test"}
    gold = labelled_set(tmp_path / "untested", splits, PARENTS)
    assert refusal("--gold", gold, say(SAID)) == (
        f"The set untested in {gold} has no documents in the split test, only in: dev, train; name another with "
        "--split, or export the set with one."
    )
    untrained = labelled_set(tmp_path / "untrained", {"test": SPLITS["test"]}, PARENTS)
    assert refusal("--gold", untrained, say(SAID), "--frequent-over", 2) == (
        f"--frequent-over cannot be had on the set untrained in {untrained}: There is no split 'train', whose "
        "documents are counted; there are test."
    )


def test_a_label_that_the_vocabulary_lacks_is_refused_with_its_line(tmp_path, say):
    gold = labelled_set(tmp_path / "odd", {**SPLITS, "dev": {"d1": ["unicorn"]}}, PARENTS)
    assert refusal("--gold", gold, say(SAID)) == (
        f"{gold}/gold.jsonl, line 4 has the concept 'unicorn', which the vocabulary lacks. Restore it, or export or "
        "import the set again."
    )
