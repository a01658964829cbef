"""A task with suggestions from its answers to its set: what they changed, and on what the suggester is measured."""

import json
from collections import Counter

import pytest
from django.core.management import CommandError

from annotate.actions.commands import call_command
from annotate.controls.suggestions import is_blind
from annotate.models import Judgment
from tests.annotate.suggestions.moods import answer_all, import_diary, open_moods, predict, prediction, true_label
from tests.annotate.told_sets import of_lots, tell, verified

pytestmark = [pytest.mark.django_db, pytest.mark.on_sqlite]
NUMBER = 60


@pytest.fixture
def answered(tmp_path, person):
    """Return a function that opens a task, lets four people answer it and exports it."""
    import_diary(tmp_path, NUMBER)
    people = [person(f"p{number}", "en", pseudonym=f"person-{number}") for number in range(4)]

    def make(name="moods", follow=0.7, **options):
        task = open_moods(tmp_path, name, **{"blind_share": "0.4", "redundancy": "3"} | options)
        type(task).objects.filter(pk=task.pk).update(secret="5ecret")
        task.refresh_from_db()
        answer_all(task, people, follow)
        folder = tmp_path / name
        tell(task, folder)
        return task, folder

    return make


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def evaluated(capsys, predictions, folder):
    capsys.readouterr()
    call_command("evaluate", str(predictions), "--gold", str(folder), "--json")
    return json.loads(capsys.readouterr().out)


def by_hand(rows):
    """The accuracy of the suggester on the blind answers of rows, weighted, and the number of rows."""
    hits, total, number = 0.0, 0.0, 0
    for row in rows:
        answers = [judgment for judgment in row["judgments"] if judgment["kind"] == "answer"]
        blind = [judgment["label"] for judgment in answers if not judgment["suggestions_shown"]]
        if not blind:
            continue
        [(label, count), *_] = Counter(blind).most_common()
        if 2 * count <= len(blind):  # a tie: the draw decides
            return None
        weight = 1 / (1 - 0.6 ** len(answers))
        hits, total, number = hits + weight * (label == row["suggested"]), total + weight, number + 1
    return hits / total, number


def test_each_answer_has_its_arm_and_the_card_says_what_suggestions_changed(answered):
    task, folder = answered()
    rows = lines(folder / "gold.jsonl") + lines(folder / "left_out.jsonl")
    assert len(rows) == NUMBER
    for row in rows:
        assert row["suggested"] == prediction(row["id"])
        for judgment in row["judgments"]:
            assert judgment["suggestions_shown"] is not is_blind(judgment["annotator"], task, row["id"])
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["task"]["suggest"], manifest["task"]["blind_share"]) == (["mine@1"], 0.4)
    effect = manifest["suggestions"]
    assert effect["shown"]["answers"] + effect["blind"]["answers"] == Judgment.objects.count() == 3 * NUMBER
    assert 0 < effect["score"]["low"] < effect["score"]["value"]
    assert {label["label"] for label in effect["labels"]} == {"glad", "calm", "sad"}
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "## Effect of suggestions" in card
    assert "| share that equals the suggestion |" in card
    assert "| label Glad |" in card
    status, outcome = verified(folder)
    assert (status, of_lots(outcome)["blind"]) == (0, (3 * NUMBER, 0))


def test_a_task_without_suggestions_has_nothing_of_them_in_its_set(answered):
    _, folder = answered(suggest=(), blind_share=None)
    text = "".join((folder / name).read_text(encoding="utf-8") for name in ("manifest.json", "README.md", "gold.jsonl"))
    assert "suggest" not in text
    assert "blind" not in json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["task"]


def test_the_suggester_is_measured_on_blind_answers_and_others_get_a_warning(answered, tmp_path, capsys):
    _, folder = answered(redundancy="1", blind_share="0.4")
    report = evaluated(capsys, "mine@1", folder)
    rows = lines(folder / "gold.jsonl")
    accuracy, number = by_hand(rows)
    [found] = [row for row in report["rows"] if row["measure"] == "accuracy" and not row["of"]]
    assert (found["value"], found["units"]) == (pytest.approx(accuracy), number)
    assert 0 < number < NUMBER
    assert report["warnings"][0].startswith("mine@1 suggested labels to the people who made this set")
    naive = sum(row["label"] == row["suggested"] for row in rows) / len(rows)
    assert naive > accuracy + 0.1, "measured on all labels it would be better"
    # A file with the same labels is recognized. One with other labels is measured on all answers.
    again = evaluated(capsys, tmp_path / "mine.tsv", folder)
    assert again["rows"] == report["rows"]
    predict(tmp_path, true_label, "other", NUMBER)
    other = evaluated(capsys, "other@1", folder)
    [found] = [row for row in other["rows"] if row["measure"] == "accuracy" and not row["of"]]
    assert found["units"] == NUMBER
    assert other["warnings"][0].startswith("People saw labels by mine@1 while they answered")


def test_items_on_which_people_disagreed_count_if_somebody_was_blind(answered, tmp_path, capsys):
    _, folder = answered(follow=0.2, redundancy="3")
    left_out = lines(folder / "left_out.jsonl")
    blind = [
        row["id"]
        for row in [*lines(folder / "gold.jsonl"), *left_out]
        if any(judgment["suggestions_shown"] is False for judgment in row["judgments"])
    ]
    assert {row["id"] for row in left_out} & set(blind)
    report = evaluated(capsys, "mine@1", folder)
    [found] = [row for row in report["rows"] if row["measure"] == "accuracy" and not row["of"]]
    assert found["units"] == len(blind)
    assert not any("have no label" in warning for warning in report["warnings"])


def test_without_blind_answers_the_suggester_is_not_measured(answered, capsys):
    _, folder = answered(blind_share="0")
    with pytest.raises(CommandError, match="nobody has answered without seeing them"):
        evaluated(capsys, "mine@1", folder)
