"""The answers that count for the agreement of a task, and how it is reported."""

import json
from io import StringIO
from itertools import pairwise

import numpy as np
import pytest
from django.core.management import CommandError
from django.utils import timezone

from annotate.actions.judgment_files import JudgmentFileError, read_truth
from annotate.actions.registry import call_command
from annotate.models import Judgment
from annotate.quality.agreement_report import calibration_sentences
from annotate.quality.agreement_statistics import report
from annotate.quality.answer_models import UnknownLabel, _worse, fit_answers, label_posteriors, vote_shares
from corpora.core import CorpusError

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
DISPUTED = ("de en", "en de", "de")


@pytest.fixture
def people(person):
    """people(3) creates three annotators."""
    return lambda count: [person(f"reader {n}", "en de fr") for n in range(count)]


def answer(judged, unit, people, labels):
    for annotator, label in zip(people, labels.split(), strict=True):
        judged(annotator, unit, label)


def output_of(*arguments):
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def test_only_answers_that_stand_on_units_that_are_work_count(make_records_task, people, judged, person):
    task = make_records_task("qa_match", 2, gold={"queue": ["1"]})
    ann, bob, chief = people(3)
    work, other = task.units.filter(honeypot=False)
    answer(judged, work, (ann, bob), "1 1")
    answer(judged, task.units.get(honeypot=True), (ann, bob), "1 0")
    answer(judged, other, (ann, bob), "1 0")
    other.judgments.filter(annotator=bob).update(voided_at=timezone.now())
    Judgment.objects.create(unit=other, annotator=chief, kind="settle", label="0", answered_at=timezone.now())
    Judgment.objects.create(unit=work, annotator=bob, kind="repeat", label="0", answered_at=timezone.now())
    whole = report(task)["all"]
    assert [whole[key] for key in ("units", "units_of_two", "annotators", "judgments")] == [2, 1, 2, 3]
    assert whole["observed"]["value"] == 1.0
    assert report(task, repeats=True)["all"]["observed"]["value"] == pytest.approx(1 / 3)


def test_a_task_of_records_is_reported_by_language_with_a_model_for_each(make_records_task, people, judged):
    task = make_records_task("qa_match", 3, languages=("en", "fr"))
    readers = people(3)
    for unit in task.units.filter(item__language="en"):
        answer(judged, unit, readers, "1 1 0" if unit.position % 2 else "0 0 0")
    for unit in task.units.filter(item__language="fr"):
        answer(judged, unit, readers[:2], "1 0")
    figures = report(task)
    assert list(figures["languages"]) == ["en", "fr"]
    assert [part["judgments"] for part in (*figures["languages"].values(), figures["all"])] == [9, 6, 15]
    assert figures["languages"]["fr"]["observed"]["value"] == 0.0
    assert figures["languages"]["fr"]["dawid_skene"]["tied"] == 3
    assert (figures["labels"], figures["ordered"], figures["languages"]["en"]["ordinal"]) == (["1", "0"], False, None)
    fit, units = fit_answers(task), list(task.units.values_list("pk", flat=True))
    french = task.units.filter(item__language="fr")[0].pk
    assert dict(zip(fit.labels, *vote_shares(fit, [french]), strict=True)) == {"1": 0.5, "0": 0.5}
    assert label_posteriors(fit, units).sum(axis=1) == pytest.approx(1)


def test_grades_have_an_ordinal_alpha_and_each_label_one_against_all_others_least_first(
    make_records_task, people, judged
):
    task = make_records_task("web_ranking", 30)
    readers = people(2)
    for unit in task.units.all():
        answer(judged, unit, readers, ("4 4", "3 2", "0 0")[unit.position % 3])
    whole = report(task)["all"]
    assert whole["nominal"]["value"] < 0.7 < 0.9 < whole["ordinal"]["value"]
    rows = whole["by_label"]
    assert [row["label"] for row in rows][2:] in (["0", "4"], ["4", "0"])
    assert {row["label"]: row["units"] for row in rows} == dict.fromkeys("0234", 10)
    values = [row["alpha"]["value"] for row in rows]
    assert values == sorted(values)
    assert values[0] < 0 < values[-1] == 1.0
    lines = output_of("agreement", task.name).splitlines()
    assert any("ordinal alpha" in line for line in lines)
    place = next(number for number, line in enumerate(lines) if "alpha against all other labels" in line)
    assert lines[place + 1].split()[0] == rows[0]["label"]


def test_of_posts_only_those_that_two_people_have_read_count_by_queue(make_task, people, judged):
    task = make_task([DISPUTED] * 4)
    ann, bob = people(2)
    first, second, alone, french = task.units.all()
    answer(judged, first, (ann, bob), "de de")
    answer(judged, second, (ann, bob), "de und")
    answer(judged, alone, (ann,), "en")
    answer(judged, french, (ann, bob), "fr fr")
    task.units.filter(pk=french.pk).update(language="fr")
    figures = report(task)
    assert figures["labels"][-1] == "und"
    assert {code: part["units"] for code, part in figures["languages"].items()} == {"de": 2, "fr": 1}
    assert figures["languages"]["de"]["observed"]["value"] == 0.5
    assert figures["all"]["judgments"] == 6
    assert not label_posteriors(fit_answers(task), [alone.pk]).any()


def test_where_one_language_is_asked_about_people_agree_on_yes_no_and_und(make_task, people, judged):
    task = make_task([DISPUTED] * 3, asked="de", decoys=1)
    readers = people(2)
    one, two, decoy = task.units.all()
    answer(judged, one, readers, "de not-de")
    answer(judged, two, readers, "de und")
    answer(judged, decoy, readers, "not-de not-de")
    figures = report(task, gold={one.item.key: "de", two.item.key: "fr"})
    assert figures["labels"] == ["yes", "no", "und"]
    assert list(figures["languages"]) == ["de"]
    assert (figures["all"]["units"], figures["all"]["observed"]["value"]) == (2, 0.0)
    # Half a hit for yes or no, none for yes or und.
    assert figures["all"]["gold"]["majority"]["value"] == 0.25


def test_who_is_asked_later_since_the_first_differ_does_not_count_for_agreement(make_records_task, people, judged):
    task = make_records_task("qa_match", 4, stop_early=True)
    readers = people(3)
    for unit, labels in zip(task.units.all(), ("1 1", "0 0", "1 0 1", "0 1 1"), strict=True):
        answer(judged, unit, readers[: len(labels.split())], labels)
    whole = report(task)["all"]
    assert whole["observed"]["value"] == 0.5
    assert (whole["judgments"], whole["annotators"]) == (10, 3)
    assert {one["units"] for one in whole["against_rest"]} == {4}


def test_true_labels_measure_majority_and_model_and_those_of_no_unit_are_told(make_records_task, people, judged):
    task = make_records_task("qa_match", 3)
    readers = people(2)
    one, two, three = task.units.all()
    for unit, labels in ((one, "1 1"), (two, "0 0"), (three, "1 0")):
        answer(judged, unit, readers, labels)
    gold = {one.item.key: "1", two.item.key: "1", three.item.key: "0", "elsewhere": "1"}
    measured = report(task, gold=gold)["all"]["gold"]
    assert (measured["units"], measured["unknown"], measured["majority"]["value"]) == (3, 1, 0.5)
    assert report(task)["all"]["gold"] is None
    empty = report(task, gold={})["all"]["gold"]
    assert (empty["majority"]["value"], empty["sure"]) == (None, None)
    assert set(measured) == {"units", "unknown", "majority", "dawid_skene", "one_coin", "mace", "glad", "worse", "sure"}
    assert 0.5 <= measured["sure"] <= 1
    with pytest.raises(UnknownLabel, match=r"is 'Good', which is not one of the task's labels: 1, 0\."):
        report(task, gold={one.item.key: "Good"})


def test_a_model_that_is_right_less_often_than_the_majority_beyond_chance_is_named():
    chance = np.random.default_rng(1)
    majority = chance.random(200).round(0)
    worse, alike = majority.copy(), majority.copy()
    worse[np.flatnonzero(majority)[:12]] = 0
    alike[np.flatnonzero(majority)[:3]] = 0
    assert _worse({"majority": majority, "one_coin": worse, "mace": alike, "glad": majority}) == ["one_coin"]


def test_the_report_compares_the_posteriors_certainty_and_accuracy():
    right = {"value": 0.8, "low": 0.7, "high": 0.88, "hits": 80.0, "count": 100}
    texts = {
        sure: " ".join(calibration_sentences({"sure": sure, "dawid_skene": right})) for sure in (None, 0.6, 0.85, 0.97)
    }
    assert texts[None] == ""
    assert texts[0.85].endswith("is 85.0%, and their accuracy is 80.00% [70.0, 88.0]. On these items, the two agree.")
    assert "The model is less certain than accurate" in texts[0.6]
    assert "The model is more certain than accurate, so do not read a posterior as a probability." in texts[0.97]


def test_a_unit_where_the_model_says_what_the_votes_do_not_is_named_with_both(make_records_task, people, judged):
    task = make_records_task("qa_match", 60)
    readers = people(5)
    # Two are always right; three are wrong on a third of the questions each, and all together on every tenth.
    for unit in task.units.all():
        truth = unit.position % 2
        wrong = [unit.position % 10 == 0 or (unit.position + n) % 3 == 0 for n in range(3)]
        answer(judged, unit, readers, " ".join(str(label) for label in (truth, truth, *(truth ^ no for no in wrong))))
    part = report(task)["all"]["dawid_skene"]
    assert (part["converged"], part["tied"]) == (True, 0)
    assert len(part["differs"]) == 6
    for unit in part["differs"]:
        assert set(unit) == {"unit", "item", "language", "votes", "majority", "dawid_skene", "posterior"}
        assert not set(unit["dawid_skene"]) & set(unit["majority"])
    assert all(one["posterior"] >= other["posterior"] for one, other in pairwise(part["differs"]))


def test_a_report_is_json_the_same_each_time_and_names_nobody(make_records_task, people, judged):
    task = make_records_task("qa_match", 30)
    readers = people(3)
    for unit in task.units.all():
        answer(judged, unit, readers, f"{unit.position % 2} {unit.position % 3 % 2} 1")
    written = json.dumps(report(task))
    assert written == json.dumps(report(task))
    assert "reader" not in written
    rest = report(task)["all"]["against_rest"]
    assert {one["pseudonym"] for one in rest} == {reader.pseudonym for reader in readers}
    assert all(one["agreement"]["low"] <= one["agreement"]["value"] <= one["agreement"]["high"] for one in rest)
    assert [one["agreement"]["value"] for one in rest] == sorted(one["agreement"]["value"] for one in rest)


def test_a_task_without_answers_or_overlap_says_so_and_how_it_gets_one(make_records_task, make_task, people, judged):
    task = make_records_task("qa_match", 2)
    whole = report(task)["all"]
    assert (whole["units"], whole["observed"]["value"], whole["nominal"]["value"]) == (0, None, None)
    assert whole["against_rest"] == whole["dawid_skene"]["differs"] == []
    assert not label_posteriors(fit_answers(task), [unit.pk for unit in task.units.all()]).any()
    assert output_of("agreement", task.name).startswith("Task crowd: no valid answers yet")
    judged(people(1)[0], make_task([DISPUTED], name="alone").units.get(), "de")
    assert "--redundancy 1.1" in output_of("agreement", "alone")
    make_task([DISPUTED], name="overlap", redundancy=1.5)
    assert "no valid answers yet" in output_of("agreement", "overlap")


def test_the_command_tells_agreement_by_language_and_who_agrees_least(make_records_task, people, judged, tmp_path):
    task = make_records_task("qa_match", 2, languages=("en", "fr"))
    readers = people(3)
    for unit in task.units.all():
        answer(judged, unit, readers, "1 1 0" if unit.position % 2 else "0 0 0")
    gold = tmp_path / "gold.csv"
    keys = task.units.values_list("item__key", flat=True)
    gold.write_text("item,truth\n" + "".join(f"{key},0\n" for key in keys), encoding="utf-8")
    lines = output_of("agreement", task.name, "--gold", str(gold), "--column", "task=item", "--column", "label=truth")
    first = [line.split()[0] for line in lines.splitlines() if line]
    assert first[:4] == ["language", "en", "fr", "all"]
    assert "reader 2" in lines
    told_of_gold, told_of_sureness = lines.rstrip().splitlines()[-2:]
    assert (
        "is 50.00% [12.3, 87.7] for the majority (ties count in part), Dawid-Skene 50.00% [12.3, 87.7], one-coin 50.00%"
        in told_of_gold
    )
    assert ", MACE 50.00% [12.3, 87.7], GLAD 50.00% [12.3, 87.7]." in told_of_gold
    assert told_of_sureness.endswith("do not read a posterior as a probability.")
    with pytest.raises(CommandError, match="There is no task 'else'; available: crowd"):
        call_command("agreement", "else")


def test_where_nearly_all_say_the_same_the_command_says_why_alpha_says_little(make_records_task, people, judged):
    task = make_records_task("qa_match", 40)
    readers = people(2)
    for unit in task.units.all():
        answer(judged, unit, readers, "0 1" if unit.position == 3 else "0 0")
    whole = report(task)["all"]
    assert whole["few_others"] == {"label": "0", "others": 1}
    assert whole["nominal"]["value"] == pytest.approx(0)
    assert whole["ac1"]["value"] == pytest.approx(0.9744, abs=1e-4)
    lines = output_of("agreement", task.name)
    assert "Of 40 items with two or more answers, 1 has a label other than 0, so alpha" in lines
    assert "AC1 is 0.9744 [" in lines
    assert "-0.000" not in lines
    # Of two labels there is no table by label, as both have the alpha of all.
    assert [row["alpha"]["value"] for row in whole["by_label"]] == [whole["nominal"]["value"]] * 2
    assert "all other labels" not in lines
    Judgment.objects.filter(label="1").update(label="0")
    whole = report(task)["all"]
    assert (whole["few_others"], whole["nominal"]["value"]) == ({"label": "0", "others": 0}, None)
    assert "none have a label other than 0, so there is no alpha" in output_of("agreement", task.name)


def test_languages_with_nearly_only_one_answer_are_named(make_records_task, people, judged):
    task = make_records_task("qa_match", 30, languages=("en", "fr"))
    readers = people(2)
    for unit in task.units.all():
        same_for_all = unit.item.language == "fr" or unit.position % 2
        answer(judged, unit, readers, "0 0" if same_for_all else "1 1")
    figures = report(task)
    assert figures["languages"]["fr"]["few_others"] == {"label": "0", "others": 0}
    assert figures["all"]["few_others"] is figures["languages"]["en"]["few_others"] is None
    assert "Alpha says little there" in output_of("agreement", task.name)


def test_files_of_true_labels_that_cannot_be_used_are_refused_with_their_line(tmp_path):
    file = tmp_path / "gold.tsv"
    for text, sentence in [
        ("task\tlabel\na\t1\na\t0\n", "line 3: a has the label 0 here and 1 in an earlier line"),
        ("task\tlabel\na\t\n", "line 2: The label is empty"),
        ("task\tlabel\na\n", "line 2: The row has 1 field, but the header has 2"),
    ]:
        file.write_text(text, encoding="utf-8")
        with pytest.raises(JudgmentFileError, match=sentence):
            read_truth(file, {})
    file.write_text("task\ttruth\na\t1\n", encoding="utf-8")
    with pytest.raises(CorpusError, match="has no column label"):
        read_truth(file, {})
