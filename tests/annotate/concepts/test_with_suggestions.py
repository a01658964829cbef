"""Answers with and without suggestions in manifest and card, which reveal people who accept the first five unread."""

import json
import random

import pytest

from annotate.controls.suggestions import FIRST, shown_to, suggested
from annotate.kinds import Answer
from annotate.kinds.control import CONTROLS
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate.concepts.acts import command, import_both, task_of

pytestmark = [pytest.mark.usefixtures("corpus"), pytest.mark.on_sqlite]


def begun():
    import_both()
    command("suggest", "acts", vocabulary="eurovoc")
    return task_of(size=24, suggest=["nearest", "label-match"], blind_share=0.4)


BEGUN = begun


def rows_in(out):
    return [json.loads(line) for line in (out / "gold.jsonl").read_text(encoding="utf-8").splitlines()]


def is_blind_to_one(row):
    return any(judgment["suggestions_shown"] is False for judgment in row["judgments"])


def report(task):
    return CONTROLS["suggestions"].section(task)


def honest(lots, unit, shown):
    """Return most of the declared concepts, and sometimes one more, whatever is suggested."""
    declared = [key for key in unit.item.declared if lots.random() > 0.3]
    return declared or unit.item.declared[:1]


def unread(lots, unit, shown):
    """Return the first five suggestions, or an honest answer if there are none."""
    return shown[:FIRST] or honest(lots, unit, shown)


def work(task, readers, how):
    """Have everybody answer everything. Return (unit, whether suggestions were shown, concepts) for each answer."""
    rng, answers = random.Random(5), []
    for reader in readers:
        while lease := take(reader, task):
            shown = shown_to(reader, lease.unit)
            chosen = how(rng, lease.unit, shown)
            answers.append((lease.unit, bool(shown), set(chosen)))
            judge(reader, lease.pk, Answer(" ".join(sorted(chosen)), is_sure=True))
    return answers


@pytest.mark.slow
def test_three_people_who_take_the_first_five_unread_are_seen(task, readers, tmp_path):
    work(task, readers, unread)
    result = report(task)
    shown, blind = result["shown"], result["blind"]
    assert shown["answers"] + blind["answers"] == 3 * 24
    assert (shown["exactly"], shown["taken"], shown["among"]) == (shown["answers"], 1, 1)
    assert blind["exactly"] <= 1
    assert blind["taken"] < 0.6
    assert shown["agreement"] > blind["agreement"]
    assert result["score"]["low"] > 0.2
    assert {row["annotator"] for row in result["people"]} == {reader.pseudonym for reader in readers}
    assert all(row["shown"]["exactly"] == row["shown"]["answers"] for row in result["people"])
    out = tmp_path / "gold"
    command("export_gold", task.name, out=str(out))
    assert json.loads((out / "manifest.json").read_text(encoding="utf-8"))["suggestions"] == result
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "## Effect of suggestions" in card
    count = shown["answers"]
    assert f"| all | shown | {count} | 5.0 | 100.0% | 100.0% | {count} of {count} |" in card
    for system in ("nearest", "label-match"):
        measured = json.loads(command("evaluate", system, gold=[out], split="train", json=True))
        assert "suggested labels to the people who made this set" in measured["warnings"][0]
        documents = {row["id"] for row in rows_in(out) if row["split"] == "train" and is_blind_to_one(row)}
        [row] = [row for row in measured["rows"] if row["measure"] == "micro_f1" and row["of"] == {"answers": "plain"}]
        assert row["units"] == len(documents) > 0


def test_the_figures_are_those_of_the_answers_and_an_honest_reader_chooses_alike_with_and_without(task, readers):
    answers = work(task, readers, honest)
    result = report(task)
    for arm, is_shown in (("shown", True), ("blind", False)):
        of_arm = [
            (set(suggested(unit)[:FIRST]), chosen) for unit, was_shown, chosen in answers if was_shown is is_shown
        ]
        both = sum(len(chosen & first) for first, chosen in of_arm)
        total = sum(len(chosen) for _, chosen in of_arm)
        assert result[arm]["answers"] == len(of_arm) > 0
        assert result[arm]["concepts"] == pytest.approx(total / len(of_arm))
        assert result[arm]["taken"] == pytest.approx(both / sum(len(first) for first, _ in of_arm))
        assert result[arm]["among"] == pytest.approx(both / total)
    assert abs(result["shown"]["taken"] - result["blind"]["taken"]) < 0.2
    assert report(task_of("plain", size=5)) is None, "a task without suggestions has no such section"
