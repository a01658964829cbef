"""What people chose with suggestions and without, in manifest and card: who takes the first five unread is seen."""

import json
import random

import pytest

from annotate.controls import concept_suggestions
from annotate.controls.concept_suggestions import FIRST, report, shown_to, suggested
from annotate.kinds import Answer
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate.labelling.acts import command, import_acts, import_eurovoc, task_of

pytestmark = [pytest.mark.usefixtures("corpus", "blind_share_of_two_fifths"), pytest.mark.on_sqlite]


def begun():
    import_eurovoc()
    import_acts()
    command("suggest", "acts", vocabulary="eurovoc")
    return task_of(size=24, suggest_from=["nearest", "label-match"])


BEGUN = begun


@pytest.fixture
def blind_share_of_two_fifths(monkeypatch):
    monkeypatch.setattr(concept_suggestions, "BLIND_SHARE", 0.4)


def honest(lots, unit, shown):
    """Most of what was declared, and one more now and then, whatever is shown."""
    declared = [key for key in unit.item.declared if lots.random() > 0.3]
    return declared or unit.item.declared[:1]


def unread(lots, unit, shown):
    """The first five that are shown; without suggestions an honest answer."""
    return shown[:FIRST] or honest(lots, unit, shown)


def work(task, readers, how):
    """Everybody answers everything; (reader, shown first, chosen) of each answer."""
    lots, told = random.Random(5), []
    for reader in readers:
        while lease := take(reader, task):
            chosen = how(lots, lease.unit, shown_to(reader, lease.unit))
            told.append((reader, lease.unit, bool(shown_to(reader, lease.unit)), set(chosen)))
            judge(reader, lease.pk, Answer(" ".join(sorted(chosen)), is_sure=True))
    return told


def test_three_people_who_take_the_first_five_unread_are_seen(task, readers, tmp_path):
    work(task, readers, unread)
    found = report(task)
    shown, blind = found["shown"], found["blind"]
    assert shown["answers"] + blind["answers"] == 3 * 24
    assert (shown["exactly"], shown["taken"], shown["among"]) == (shown["answers"], 1, 1)
    assert blind["exactly"] <= 1
    assert blind["taken"] < 0.6
    assert shown["f1"] > blind["f1"]
    assert {row["annotator"] for row in found["people"]} == {reader.pseudonym for reader in readers}
    assert all(row["shown"]["exactly"] == row["shown"]["answers"] for row in found["people"])
    out = tmp_path / "gold"
    command("export_gold", task.name, out=str(out))
    assert json.loads((out / "manifest.json").read_text(encoding="utf-8"))["suggestions"] == found
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "## With suggestions and without" in card
    assert (
        f"| all | shown | {shown['answers']} | 5.0 | 100.0% | 100.0% | {shown['answers']} of {shown['answers']} |"
        in card
    )


def test_the_figures_are_those_of_the_answers_and_an_honest_reader_chooses_alike_with_and_without(task, readers):
    told = work(task, readers, honest)
    found = report(task)
    for arm, is_shown in (("shown", True), ("blind", False)):
        own = [(unit, chosen) for _, unit, was, chosen in told if was is is_shown]
        first = [set(suggested(unit)[:FIRST]) for unit, _ in own]
        both = sum(len(chosen & of) for (_, chosen), of in zip(own, first, strict=True))
        assert found[arm]["answers"] == len(own) > 0
        assert found[arm]["concepts"] == pytest.approx(sum(len(chosen) for _, chosen in own) / len(own))
        assert found[arm]["taken"] == pytest.approx(both / sum(map(len, first)))
        assert found[arm]["among"] == pytest.approx(both / sum(len(chosen) for _, chosen in own))
    assert abs(found["shown"]["taken"] - found["blind"]["taken"]) < 0.2


def test_a_task_without_suggestions_has_no_such_section():
    task = task_of("plain", size=5)
    assert report(task) is None
