"""The commands that import and measure crowd sets reproduce their published figures."""

import json

import pytest

from annotate.actions.registry import call_command
from tests.annotate import crowd

pytestmark = [pytest.mark.django_db, pytest.mark.on_sqlite, pytest.mark.slow]


def output_of(capsys):
    return capsys.readouterr().out.strip()


def test_the_crowd_sets_give_their_published_figures_with_and_without_repeats(capsys):
    labels, gold = crowd.FOLDER / "cf_amt.labels.tsv", crowd.FOLDER / "cf_amt.gold.tsv"
    call_command("import_judgments", "cf_amt", str(labels), "--keep-repeats")
    assert "6,025 judgments of 110 annotators on 300 items" in output_of(capsys)
    for options, judgments, alpha, model in [
        ([], "6,025", "0.5209", "84.00% [79.5, 87.8]"),
        (["--repeats"], "6,030", "0.5212", "84.33% [79.9, 88.1]"),
    ]:
        call_command("agreement", "cf_amt", "--gold", str(gold), *options)
        output = output_of(capsys)
        assert f"{judgments} judgments by 110 annotators on 300 items" in output
        assert f"alpha is {alpha} " in output
        assert "accuracy is 85.33% [81.0, 89.0] for the majority (ties count in part), Dawid-Skene " in output
        assert f"Dawid-Skene {model}, one-coin 86.00% [81.7, 89.6], MACE " in output


def test_zencrowd_gives_its_published_figures_where_the_first_of_each_repeat_is_kept(capsys):
    labels, gold = crowd.FOLDER / "zencrowd_in.labels.tsv", crowd.FOLDER / "zencrowd_in.gold.tsv"
    call_command("import_judgments", "zencrowd", str(labels))
    assert "710 were rejected" in output_of(capsys)
    call_command("agreement", "zencrowd", "--gold", str(gold), "--json")
    whole = json.loads(output_of(capsys))["all"]
    assert round(whole["nominal"]["value"], 4) == 0.1699
    right = {"majority": 74.00, "dawid_skene": 75.69, "one_coin": 78.92, "mace": 71.47, "glad": 76.81}
    assert {how: round(100 * whole["gold"][how]["value"], 2) for how in right} == right
    assert round(100 * whole["gold"]["sure"], 1) == 90.5


def test_the_page_on_agreement_says_which_figure_belongs_to_which_option():
    page = crowd.FOLDER.parents[1] / "annotate" / "docs" / "explanation" / "agreement.md"
    text = page.read_text(encoding="utf-8")
    for row in (
        "| cf_amt | (first kept) | 6,025 | 85.33% | 84.00% | 86.00% | 85.67% | 85.33% | 0.5209 |",
        "| cf_amt | `--repeats` | 6,030 | 85.33% | 84.33% | 86.00% | 85.67% | 85.33% | 0.5212 |",
        "| zencrowd_in | (first kept) | 10,495 | 74.00% | 75.69% | 78.92% | 71.47% | 76.81% | 0.1699 |",
        "| zencrowd_in | `--repeats` | 11,205 | 74.09% | 75.74% | 79.26% | 72.75% | 77.16% | 0.1757 |",
    ):
        assert row in text
