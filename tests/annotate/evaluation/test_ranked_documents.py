"""Ranked labels of documents, from a TREC run or a table to a report."""

import gzip
import json
from math import log2

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import assay
from annotate.actions.registry import call_command
from annotate.core.estimation.differences import holm
from annotate.evaluation.measurement import evaluate
from annotate.evaluation.ranked_documents import read_ranking, sentences
from tests.annotate.evaluation.figures import as_percent, figures, in_three_forms, refusal
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
SCORED = {
    "a": {"cat": 0.9, "dog": 0.5, "wolf": 0.2},
    "b": {"cat": 3, "dog": 2},
    "c": {"elk": 0.4, "wolf": 0.6},
}
SECOND = 1 / log2(3)


@pytest.fixture
def gold(tmp_path):
    return labelled_set(tmp_path / "gold", SPLITS, PARENTS)


@pytest.fixture
def predict(tmp_path):
    """predict(scores, "mine") writes a run, and returns its path."""
    return lambda scores, system="mine", name="": run_of(tmp_path / f"{name or system}.run", scores, system)


def values(report, labels, k):
    return {row["measure"]: row["value"] for row in report["rows"] if row["of"] == {"labels": labels, "k": str(k)}}


def documents(report):
    """Return the number of documents with such labels, by group of labels."""
    return {row["of"]["labels"]: row["units"] for row in report["rows"] if "labels" in row["of"]}


def answered(report, answers="plain"):
    """Return the counts of micro precision and recall, such as "4 of 7", and micro F1."""
    precision, recall, f1 = (
        figures(report, f"micro_{name}", answers=answers) for name in ("precision", "recall", "f1")
    )
    return precision["note"].split(";")[0], recall["note"].split(";")[0], f1["value"]


def test_the_measures_of_three_documents_are_those_worked_out_by_hand(gold, predict, run):
    report = run("--gold", gold, predict(SCORED))
    assert (report["kind"], report["predictor"]["spelled"]) == ("evaluation", "mine")
    assert report["words"]["gold"][0].startswith("Measured on 3 documents of the split test")
    ks = [row["of"]["k"] for row in report["rows"] if row["measure"] == "P" and row["of"]["labels"] == "all"]
    assert ks == [str(k) for k in range(1, 11)]
    # Hits of a: ranks 1 and 3, of b: rank 2, of c: rank 1 of two.
    assert values(report, "all", 2) == pytest.approx(
        {
            "P": (1 / 2 + 1 / 2 + 1 / 2) / 3,
            "R": (1 / 2 + 1 + 1 / 3) / 3,
            "RP": (1 / 2 + 1 + 1 / 2) / 3,
            "nDCG": (1 / (1 + SECOND) + SECOND + 1 / (1 + SECOND)) / 3,
        }
    )
    assert report == assay.report(predict(SCORED), gold).to_dict() == run("--gold", gold, predict(SCORED))
    with pytest.raises(assay.AssayError, match=r"first is 0\. It must be 1 or more"):
        assay.evaluate(predict(SCORED), gold, first=0)
    report = run("--gold", gold, predict({"d1": {"cat": 2, "dog": 1}}), "--split", "dev")
    assert report["words"]["gold"][0].startswith("Measured on 1 document of the split dev")
    assert values(report, "all", 2)["RP"] == 1


def test_buckets_are_counted_anew_from_the_train_documents_where_another_limit_is_named(gold, predict, run):
    report = run("--gold", gold, predict(SCORED), "--frequent-over", 2)
    assert (
        "0 frequent (in more than 2 documents of train), 3 few-shot (in fewer, but at least one)"
        in report["words"]["gold"][-1]
    )
    frequent = figures(report, "RP", labels="frequent", k="1")
    assert (frequent["units"], frequent["value"], frequent["note"]) == (0, None, "no document has such a label")
    as_exported = run("--gold", gold, predict(SCORED), "--frequent-over", 1)
    assert as_exported == run("--gold", gold, predict(SCORED))
    assert documents(as_exported) == {"all": 3, "frequent": 2, "few": 2, "zero": 2}
    assert "Labels used: 1 frequent (in more than 1 document of train), 2 few-shot" in as_exported["words"]["gold"][-1]
    # Only the labels of a bucket and the documents that have them count: of the frequent ones a has cat, c not.
    assert [values(as_exported, bucket, 1)["RP"] for bucket in ("frequent", "few", "zero")] == [1 / 2, 1 / 2, 1]


def test_the_first_labels_are_the_answer_or_those_above_a_threshold(gold, predict, run):
    def answers(*options):
        return answered(run("--gold", gold, predict(SCORED), *options))

    assert answers() == ("4 of 7", "4 of 6", 8 / 13)  # fewer than five of each
    assert answers("--first", 1) == ("2 of 3", "2 of 6", 4 / 9)
    assert answers("--threshold", "0.5") == ("3 of 5", "3 of 6", 6 / 11)
    assert answers("--threshold", "-1000") == answers()
    assert answers("--threshold", "100") == ("0 of 0", "0 of 6", 0)


def test_with_all_ancestors_on_both_sides_a_near_miss_costs_less(gold, predict, run):
    report = run("--gold", gold, predict({"b": {"cat": 1}}), "--first", 1)
    assert answered(report) == ("0 of 1", "0 of 6", 0)
    # b has dog, animal and pet, and is given cat, animal and pet; a has 4, and c 5.
    assert answered(report, "with_ancestors")[:2] == ("2 of 3", f"2 of {3 + 4 + 5}")
    assert figures(report, "micro_precision", answers="with_ancestors")["value"] == pytest.approx(2 / 3)


def test_documents_without_labels_count_for_the_answers_alone_and_others_are_reported(tmp_path, predict, run, capsys):
    gold = labelled_set(tmp_path / "bare", {**SPLITS, "test": {"a": ["cat"], "b": [], "c": []}}, PARENTS)
    mine = predict({"a": {"cat": 1}, "b": {"dog": 1}, "t1": {"cat": 1}, "nowhere": {"dog": 1}})
    report = run("--gold", gold, mine)
    precision = figures(report, "micro_precision", answers="plain")
    assert (documents(report)["all"], precision["units"], precision["value"]) == (1, 3, 0.5)
    call_command("evaluate", str(mine), gold=[str(gold)])
    printed = " ".join(capsys.readouterr().out.split())
    assert "2 documents have no gold label. The measures at K ignore such documents." in printed
    assert report["told"][:2] == [
        "mine: ignored 2 documents outside the set.",
        "mine: 1 measured document has no ranking, so no labels count as predicted there.",
    ]
    assert report["told"][0] in printed


LABELS = st.sampled_from(sorted(PARENTS))
SCORES = st.dictionaries(LABELS, st.integers(0, 3), min_size=1)
RUNS = st.fixed_dictionaries({"a": SCORES}, optional={"b": SCORES, "c": SCORES})
ONCE = hypothesis_settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@ONCE
@given(RUNS)
def test_a_system_against_itself_has_no_difference_in_any_measure(gold, tmp_path, scores):
    one, other = (run_of(tmp_path / f"{name}.run", scores) for name in ("one", "other"))
    report = evaluate(str(one), [gold], against=str(other))
    comparison = report["comparison"]
    assert {row["value"] for row in comparison["rows"]} <= {0, None}
    assert {row["better"] for row in comparison["rows"]} == {None}
    assert {(row["p"], row["p_holm"]) for row in comparison["rows"] if row["p"] is not None} == {(1, 1)}
    # Both runs name "mine", so the report names them by their files.
    assert (report["predictor"]["spelled"], comparison["other"]["spelled"]) == ("one.run", "other.run")


@pytest.fixture
def many(tmp_path):
    """A set of forty test documents, and a function: the scores of a system that is right in this many of them."""
    test = {f"n{number}": ["cat", "wolf"] for number in range(40)}
    gold = labelled_set(tmp_path / "many", {**SPLITS, "test": test}, PARENTS)

    def right_in(number):
        return {
            key: {"cat": 3, "wolf": 2, "elk": 1} if place < number else {"elk": 3, "pet": 2, "wolf": 1}
            for place, key in enumerate(test)
        }

    return gold, right_in


def test_two_systems_are_compared_by_document_and_the_better_one_is_named(many, predict, run):
    gold, right_in = many
    mine, other = predict(right_in(36)), predict(right_in(12), "other")
    report = run("--gold", gold, mine, "--against", other)
    comparison = report["comparison"]
    # 24 documents apart: at K = 1 by all, at K = 3 by one label of two.
    first, third = (figures(comparison, "RP", labels="all", k=k) for k in ("1", "3"))
    assert (first["units"], first["value"], third["value"]) == (40, pytest.approx(24 / 40), pytest.approx(12 / 40))
    assert first["better"] == "first"
    turned = figures(run("--gold", gold, other, "--against", mine)["comparison"], "RP", labels="all", k="1")
    assert (turned["value"], turned["better"]) == (pytest.approx(-24 / 40), "second")
    assert turned["low"] == pytest.approx(-first["high"])
    assert figures(comparison, "micro_f1", answers="plain")["better"] == "first"


def test_the_tests_are_corrected_together_and_only_of_groups_that_have_documents(many, predict, run):
    gold, right_in = many
    mine, other = predict(right_in(22)), predict(right_in(20), "other")
    comparison = run("--gold", gold, mine, "--against", other)["comparison"]
    tested = [row for row in comparison["rows"] if row["p"] is not None]
    assert [(row["measure"], row["of"]) for row in tested] == [
        *((name, {"labels": group, "k": "5"}) for group in ("all", "frequent", "zero") for name in ("RP", "nDCG")),
        *(("micro_f1", {"answers": answers}) for answers in ("plain", "with_ancestors")),
    ]
    assert [row["p_holm"] for row in tested] == holm([row["p"] for row in tested])
    # Two documents, of which both are better in the first system, could fall so with a chance of one half.
    assert tested[0]["p"] == pytest.approx(0.5, abs=0.03)
    assert tested[0]["better"] is None


def test_the_report_has_a_table_and_a_plot_of_each_group_of_labels(many, predict, tmp_path, capsys):
    gold, right_in = many
    sides = predict(right_in(36)), "--against", predict(right_in(12), "other")
    text, html, report, forms = in_three_forms(tmp_path / "report", capsys, *sides, "--gold", gold, "--threshold", 2)
    for words in forms:
        assert as_percent(figures(report, "RP", labels="all", k="5")) in words
        assert "its labels with a score of at least 2" in words
        assert "No document has such a label" in words
    tables = text.split("\nK  ")[1:]
    assert len(tables) == 6  # all, frequent and zero-shot, of one system and of both
    for part in tables:
        assert [line.split()[0] for line in part.splitlines()[1:11]] == [str(k) for k in range(1, 11)]
    assert html.count("<svg xmlns") == 5  # the main figures, all, frequent and zero-shot labels, and answers


def table_of(path, scores, labels):
    """Write the scores of a TREC run as a table with a column for each label."""
    lines = [["id", *labels], *([key, *(cells.get(label, "") for label in labels)] for key, cells in scores.items())]
    path.write_text("".join("\t".join(map(str, line)) + "\n" for line in lines))
    return path


def test_a_table_of_scores_is_a_ranking_too(gold, predict, tmp_path, run):
    as_run = run("--gold", gold, predict(SCORED), "--threshold", 0.5)
    table = table_of(tmp_path / "mine.tsv", SCORED, sorted(PARENTS))
    lines = tmp_path / "mine.jsonl"
    lines.write_text("".join(json.dumps({"id": key} | cells) + "\n" for key, cells in SCORED.items()))
    for path in (table, lines):
        report = run("--gold", gold, path, "--threshold", 0.5)
        assert (report["rows"], report["predictor"]["spelled"]) == (as_run["rows"], path.name)
    report = run("--gold", gold, predict(SCORED), "--against", table)
    assert {row["value"] for row in report["comparison"]["rows"]} <= {0, None}


def test_a_set_without_the_split_and_a_label_that_the_vocabulary_lacks_are_refused(tmp_path, predict):
    splits = {split: rows for split, rows in SPLITS.items() if split != "test"}
    gold = labelled_set(tmp_path / "untested", splits, PARENTS)
    assert f"{gold} has no documents in the split test. Its splits are: dev, train" in refusal(
        "--gold", gold, predict(SCORED)
    )
    untrained = labelled_set(tmp_path / "untrained", {"test": SPLITS["test"]}, PARENTS)
    assert refusal("--gold", untrained, predict(SCORED), "--frequent-over", 2).startswith("--frequent-over cannot be")
    # A label that the vocabulary lacks is named with its line.
    gold = labelled_set(tmp_path / "odd", {**SPLITS, "dev": {"d1": ["unicorn"]}}, PARENTS)
    assert refusal("--gold", gold, predict(SCORED)).startswith(
        f"{gold}/gold.jsonl, line 4 contains the concept 'unicorn'"
    )


DOCUMENTS = ["31999R1400", "32001D0712"]
LABELS = {"1565", "2443", "2644", "c_4ee83dea"}


@pytest.fixture
def read(tmp_path):
    def of(text, documents=DOCUMENTS):
        path = tmp_path / "mysystem.run"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_ranking(path, documents, LABELS)

    return of


def test_the_score_decides_and_not_the_rank_nor_the_order_of_the_lines(read):
    ranking = read(
        "31999R1400 Q0 2443 1 0.2 mysystem\n32001D0712\tQ0\t2644\t1\t-3e-2\tmysystem\n\n"
        "31999R1400 Q0 1565 2 0.93 mysystem\r\n  31999R1400  Q0 c_4ee83dea 3   .5 mysystem"
    )
    assert ranking.system == "mysystem"
    assert ranking.rankings() == {"31999R1400": ["1565", "c_4ee83dea", "2443"], "32001D0712": ["2644"]}
    assert ranking.scores["32001D0712"] == {"2644": -0.03}
    assert sentences(ranking) == []
    # Equal scores stand in the order of their ids as text; a run may be packed, and a name hold a no-break space.
    line = "31999R1400 Q0 {} 2 1 syst\u00e8me\u00a01"
    packed = read(gzip.compress("\n".join(map(line.format, ["c_4ee83dea", "2644", "1565"])).encode()))
    assert packed.system == "syst\u00e8me\u00a01"
    assert packed.rankings()["31999R1400"] == ["1565", "2644", "c_4ee83dea"]
