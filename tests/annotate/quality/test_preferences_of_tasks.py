"""Which of two systems people prefer, from a file of judgments to the command's report."""

import json

import numpy as np
import pytest
from django.core.management import CommandError
from django.utils import timezone

from annotate.actions.judgment_files import JudgmentFileError, import_judgments
from annotate.actions.registry import call_command
from annotate.controls.pair_order import sides_of
from annotate.core import stages
from annotate.kinds import Answer
from annotate.kinds.control import CONTROLS
from annotate.models import Annotator, Comparison, Judgment, Side, Task
from annotate.quality import agreement_statistics
from annotate.quality.preference_statistics import report
from annotate.reports.numbers import coefficient
from annotate.work.interventions import void
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate.conftest import make_manager
from tests.annotate.preferences.comparing import open_comparison

pytestmark = pytest.mark.django_db


@pytest.fixture
def file_of(tmp_path):
    """file_of("1|a|b ann A", …) writes a TSV of task, worker and label."""

    def make(*rows, name="judgments.tsv", header="task\tworker\tlabel"):
        path = tmp_path / name
        path.write_text("\n".join([header, *("\t".join(row.split(" ")) for row in rows)]) + "\n", encoding="utf-8")
        return path

    return make


def judged(texts, systems="a|b"):
    """Return a row for each letter of each message's text: the answers of the people p0, p1, …"""
    names = {"t": "tie"}
    return [
        f"{message}|{systems} p{person} {names.get(letter, letter)}"
        for message, text in enumerate(texts)
        for person, letter in enumerate(text)
    ]


TWO = ["AAA"] * 7 + ["AAB"] * 5 + ["Btt", "ABt", "BBA", "BBt"]


def output(capsys, *arguments):
    capsys.readouterr()
    call_command("preferences", *arguments)
    return capsys.readouterr().out


def test_judgments_of_pairs_are_of_the_systems_that_the_items_name(file_of, tmp_path):
    imported = import_judgments("pairs", file_of(*judged(["AAt", "BBB", "ABt"], "mt5|bert")), pairs=True)
    task = imported.task
    assert (task.kind_slug, task.labels, task.is_open) == ("imported_pairs", ["bert", "mt5", "tie"], False)
    assert list(task.units.values_list("item__key", "stage", "label")) == [
        ("0|bert|mt5", stages.LABELLED, "mt5"),
        ("1|bert|mt5", stages.LABELLED, "bert"),
        ("2|bert|mt5", stages.DISCARDED, ""),
    ]
    assert set(Comparison.objects.values_list("system_a", "system_b")) == {("bert", "mt5")}
    assert not Side.objects.exists()
    # A second run adds nothing, with or without --pairs.
    for again in (True, False):
        imported = import_judgments("pairs", tmp_path / "judgments.tsv", pairs=again)
        assert (imported.judgments, imported.already, imported.rejects) == (0, 9, {})
    assert Judgment.objects.count() == 9


def test_systems_named_in_the_other_order_are_the_same_comparison(file_of):
    rows = ("m1|a|b w1 A", "m1|b|a w1 B", "m1|b|a w1 A", "m1|b|a w2 A", "m1|b|a w3 B")
    imported = import_judgments("pairs", file_of(*rows), pairs=True)
    assert (imported.units, imported.judgments) == (1, 3)
    assert imported.rejects == dict.fromkeys((3, 4), "w1 has already answered m1|a|b with a. The first answer counts.")
    assert imported.task.units.get().label == "a"
    turned = file_of("m1|b|a w1 B", "m1|a|b w2 B", name="turned.tsv")
    again = import_judgments("pairs", turned, pairs=True)
    assert (again.judgments, again.already, again.rejects) == (0, 2, {})


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("1 ann A", "The task '1' must have the form MESSAGE|SYSTEM|SYSTEM."),
        ("1|a|a ann A", "The task '1|a|a' compares a with itself."),
        ("1|a|tie ann A", "tie has a special meaning and cannot be the name of a system. Choose another name."),
        ("1|a|b ann C", "The label 'C' is not A, B or tie."),
        ("1|a|b ann a", "The label 'a' is not A, B or tie."),
    ],
)
def test_a_row_that_names_no_pair_or_another_label_is_rejected_with_its_reason(file_of, row, reason):
    imported = import_judgments("pairs", file_of("9|x|a|b ann tie", row), pairs=True)
    assert (imported.judgments, imported.rejects) == (1, {3: reason})
    assert imported.task.labels == ["a", "b", "tie"]


def test_the_shares_of_two_systems_are_reported_for_judgments_and_for_majorities(file_of, capsys):
    import_judgments("pairs", file_of(*judged(TWO)), pairs=True)
    figures = report(Task.objects.get())
    whole = figures["all"]
    [pair] = whole["pairs"]
    assert (figures["systems"], whole["units"], whole["judgments"], whole["people"]) == (["a", "b"], 16, 48, 3)
    assert pair["counts"] == {"a": 33, "b": 11, "tie": 4}
    assert pair["majority"] == {"a": 12, "b": 2, "tie": 1, "none": 1}
    assert pair["shares"]["a"]["value"] == 33 / 48
    assert pair["shares"]["a"]["low"] < 33 / 48 < pair["shares"]["a"]["high"]
    assert pair["win"]["value"] == (33 + 2) / 48
    assert whole["order"] is None
    text = " ".join(output(capsys, "pairs").split())
    assert "no difference 4 8.3%" in text
    assert "a has the majority in 12 messages and b in 2. The sign test of no preference has p = 0.013" in text
    assert "The order of the systems is unknown" in text
    assert json.loads(output(capsys, "pairs", "--json")) == json.loads(json.dumps(figures))
    # Alpha distinguishes the two by their order by name, whatever the names.
    as_pairs = [f"|a{number % 3}|b{number % 3} " for number in range(len(TWO))]
    rows = [row.replace("|a|b ", as_pairs[int(row.partition("|")[0])]) for row in judged(TWO)]
    import_judgments("several", file_of(*rows, name="several.tsv"), pairs=True)
    several = report(Task.objects.get(name="several"))["all"]
    assert whole["agreement"]["value"] == pytest.approx(several["agreement"]["value"])
    assert 0 < whole["agreement"]["value"] < 1
    # Imported judgments are finished work, even if some are voided.
    person, task = Annotator.objects.get(user__username="imported:pairs:p2"), Task.objects.get(name="pairs")
    void(person, task, by=make_manager(), reason="a robot")
    whole = report(task)["all"]
    assert (whole["judgments"], whole["unfinished"], whole["pairs"][0]["finished"]) == (32, 0, 16)


def test_alpha_of_three_systems_has_one_interval_wherever_it_is_shown(file_of, manager, client, capsys, tmp_path):
    rows = [row for systems in ("a|b", "b|c", "a|c") for row in judged(TWO, systems)]
    import_judgments("pairs", file_of(*rows), pairs=True)
    task = Task.objects.get()
    alpha = report(task)["all"]["agreement"]
    figures = agreement_statistics.report(task)
    assert figures["all"]["nominal"] == alpha
    assert {row["label"] for row in figures["all"]["by_label"]} == {"first by name", "second by name", "tie"}
    assert f"nominal alpha is {coefficient(alpha)}. For more figures, run `agreement`" in " ".join(
        output(capsys, "pairs").split()
    )
    call_command("agreement", "pairs")
    assert coefficient(alpha) in capsys.readouterr().out
    by_place = "annotators cannot prefer a system that they do not see"
    call_command("export_gold", "pairs", out=tmp_path / "gold", verbosity=0)
    card = (tmp_path / "gold/README.md").read_text(encoding="utf-8")
    assert card.count(coefficient(alpha)) == 1
    assert by_place in " ".join(card.split())
    client.force_login(manager)
    page = client.get("/manage/tasks/pairs/agreement/?show=1").content.decode()
    assert page.count("alpha is") == 0
    assert by_place in page


def test_three_systems_have_an_order_and_each_pair_a_row(file_of, capsys):
    rows = [*judged(TWO, "a|b"), *judged(TWO, "b|c"), *judged(TWO, "a|c")]
    import_judgments("pairs", file_of(*rows), pairs=True)
    whole = report(Task.objects.get())["all"]
    assert [pair["systems"] for pair in whole["pairs"]] == [["a", "b"], ["a", "c"], ["b", "c"]]
    assert [row["system"] for row in whole["standings"]] == ["a", "b", "c"]
    for ties in ("left_out", "half"):
        strengths = whole["order"][ties]["strengths"]
        assert [row["system"] for row in strengths] == ["a", "b", "c"]
        assert strengths[0] == {"system": "a", "value": 0, "low": 0, "high": 0}
        differences = whole["order"][ties]["differences"]
        assert [row["systems"] for row in differences] == [["a", "b"], ["a", "c"], ["b", "c"]]
        assert all(row["low"] < row["value"] < row["high"] for row in differences)
    text = output(capsys, "pairs")
    assert "strength without ties" in text
    assert "Each strength is relative to a, the system with the most judgments" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 100
    # A system that always loses has no strength.
    rows = [*judged(TWO, "a|b"), *judged(["AAA"] * 10, "b|c")]
    import_judgments("loses", file_of(*rows), pairs=True)
    losing = report(Task.objects.get(name="loses"))
    assert losing["all"]["order"]["left_out"]["groups"] == [["a", "b"], ["c"]]
    text = " ".join(output(capsys, "loses").split())
    assert "Without ties, there are no finite strengths" in text
    assert "a, b; c." in text


def test_results_are_split_by_language_where_the_file_has_languages(file_of, capsys):
    rows = [f"{row} {'de' if n % 2 else 'en'}" for n, row in enumerate(judged(list("ABAt" * 6)))]
    import_judgments("pairs", file_of(*rows, header="task\tworker\tlabel\tlanguage"), pairs=True)
    sections = report(Task.objects.get())["languages"]
    assert {code: section["pairs"][0]["counts"] for code, section in sections.items()} == {
        "en": {"a": 12, "b": 0, "tie": 0},
        "de": {"a": 0, "b": 6, "tie": 6},
    }
    assert "German" in output(capsys, "pairs")


def test_a_person_who_always_chooses_the_left_is_named_as_an_outlier(file_of, manager, client, capsys):
    chance = np.random.default_rng(4)
    import_judgments(
        "pairs", file_of(*judged(["".join(chance.choice(list("ABt"), size=3)) for _ in range(60)])), pairs=True
    )
    task = Task.objects.get()
    for judgment in Judgment.objects.select_related("unit__item", "unit__task", "annotator__user"):
        CONTROLS["sides"].shown(judgment.unit, judgment.annotator)
        if judgment.annotator.user.username.endswith("p1"):
            # The answers of a person who looks only at the side.
            judgment.label = Side.objects.get(unit=judgment.unit, annotator=judgment.annotator).first
            judgment.save()
    sides = report(task)["all"]["sides"]
    assert sides["judgments"] == 180
    lefty, *others = sides["people"]
    assert (lefty["first"], lefty["share"]["value"], lefty["out_of_line"]) == (60, 1.0, True)
    assert [row["out_of_line"] for row in others] == [False, False]
    client.force_login(manager)
    page = " ".join(client.get("/manage/tasks/pairs/agreement/?show=1").content.decode().split())
    assert "Preferred system" in page
    assert "1 annotator is an outlier" in page
    assert page.index("Preference for a side") < page.index("100.0% [")
    text = " ".join(output(capsys, "pairs").split())
    assert "1 annotator is an outlier" in text
    assert text.index("p1") < text.index("p0")


def says(somebody, task, system, times=None):
    """Answer a number of units, or all of a person's units, in favour of a system, or with tie."""
    while times != 0 and (lease := take(somebody, task)):
        judge(somebody, lease.pk, Answer(sides_of(somebody, lease.unit).side_of(system)))
        times = times and times - 1


def test_unfinished_comparisons_have_no_majority_and_are_reported(tmp_path, person, capsys):
    task = open_comparison(tmp_path, number=4)
    ann, bea, cem = (person(name, "en") for name in ("ann", "bea", "cem"))
    says(ann, task, "bert", 3)
    says(bea, task, "mt5")
    says(cem, task, "bert", 1)
    whole = report(task)["all"]
    [pair] = whole["pairs"]
    assert (whole["comparisons"], whole["unfinished"], pair["units"], pair["judgments"]) == (4, 3, 4, 8)
    assert (pair["finished"], pair["majority"]) == (1, {"bert": 1, "mt5": 0, "tie": 0, "none": 0})
    sentence = "3 of 4 comparisons are not fully answered yet. Majorities and the sign test do not include them."
    text = " ".join(output(capsys, "talk").split())
    assert sentence in text
    assert "bert has the majority in 1 message and mt5 in 0." in text
    says(ann, task, "bert")
    says(cem, task, "tie")
    whole = report(task)["all"]
    assert (whole["unfinished"], whole["pairs"][0]["majority"]["none"]) == (0, 3)
    assert "not fully answered" not in output(capsys, "talk")


def test_the_exported_set_has_the_figures_in_manifest_and_card_and_names_nobody(file_of, tmp_path):
    import_judgments("pairs", file_of(*judged(TWO)), pairs=True)
    call_command("export_gold", "pairs", out=tmp_path / "gold")
    manifest = json.loads((tmp_path / "gold/manifest.json").read_text(encoding="utf-8"))
    published, whole = manifest["preferences"], report(Task.objects.get())["all"]
    assert published["all"]["pairs"] == json.loads(json.dumps(whole["pairs"]))
    assert published["all"]["sides"]["out_of_line"] == 0
    assert "people" not in published["all"]["sides"]
    card = (tmp_path / "gold/README.md").read_text(encoding="utf-8")
    assert "## Preferred system" in card
    assert "a has the majority in 12 messages and b in 2" in " ".join(card.split())
    rows = [json.loads(line) for line in (tmp_path / "gold/gold.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["label"] for row in rows} == {"a", "b", "tie"}


def test_equal_sets_count_as_ties_that_nobody_was_asked_about(tmp_path, person, capsys):
    def same(row):
        return [f"the same for {row['id']}"]

    task = open_comparison(tmp_path, replies={"mt5": same, "bert": same}, number=3)
    figures = report(task)["all"]
    assert (figures["equal"], figures["people"], figures["judgments"]) == (3, 0, 9)
    assert figures["pairs"][0]["counts"] == {"bert": 0, "mt5": 0, "tie": 9}
    assert figures["agreement"]["value"] is None
    assert "Nobody has answered yet, so a preference for a side is unknown." in " ".join(output(capsys, "talk").split())
    says(person("ann", "en"), open_comparison(tmp_path, name="one", number=1), "bert")
    assert "of 1 judgment without a tie" in " ".join(output(capsys, "one").split())


def test_a_task_that_compares_nothing_takes_and_has_no_pairs(file_of, capsys):
    import_judgments("crowd", file_of("a ann 1"))
    with pytest.raises(JudgmentFileError, match="The task crowd does not compare systems"):
        import_judgments("crowd", file_of("1|a|b ann A"), pairs=True)
    with pytest.raises(JudgmentFileError, match="--labels cannot be used with --pairs"):
        import_judgments("pairs", file_of("1|a|b ann A"), pairs=True, labels=["A", "B"])
    with pytest.raises(CommandError, match=r"The task crowd does not compare systems: its kind is imported"):
        call_command("preferences", "crowd")
    import_judgments("pairs", file_of("1|a|b ann A"), pairs=True)
    Judgment.objects.filter(unit__task__name="pairs").update(voided_at=timezone.now())
    assert output(capsys, "pairs") == "Task pairs: no valid answers yet.\n"
