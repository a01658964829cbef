"""The gold set of a task that compares two systems: rows, files, card, and sides that anybody can redraw."""

import hmac
import json
from hashlib import sha256

import pyarrow.parquet as pq
import pytest

from annotate.actions.registry import call_command
from annotate.controls.pair_order import sides_of
from annotate.kinds import Answer
from annotate.models import Task
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate.goldsets.set_contents import json_lines
from tests.annotate.preferences.comparing import MARKS
from tests.annotate.told_sets import of_lots, rewrite, tell, verified

pytestmark = [pytest.mark.django_db, pytest.mark.on_sqlite]


def work(task, person, preferred):
    """Everybody answers everything for their system. preferred: name of a person -> system."""
    for name, system in preferred.items():
        annotator = person(name, "en")
        while lease := take(annotator, task):
            judge(annotator, lease.pk, Answer(sides_of(annotator, lease.unit).side_of(system)))


@pytest.fixture
def judged(compare, person):
    """A task with six comparisons, one of them of equal sets. In all others, two people prefer mt5 and one prefers
    bert.
    """
    pear = lambda row: ["Yes"] if row["id"] == "en-5" else [f"{MARKS['bert']} {row['id']}"]  # noqa: E731
    plum = lambda row: ["Yes"] if row["id"] == "en-5" else [f"{MARKS['mt5']} {row['id']}", "Hello"]  # noqa: E731
    task = compare(number=6, replies={"bert": pear, "mt5": plum})
    work(task, person, {"ann": "mt5", "bea": "mt5", "cem": "bert"})
    return task


def export(folder):
    call_command("export_gold", "talk", out=folder / "gold", verbosity=0)
    lines = (folder / "gold" / "gold.jsonl").read_text(encoding="utf-8").splitlines()
    manifest = json.loads((folder / "gold" / "manifest.json").read_text(encoding="utf-8"))
    return {row["id"]: row for row in map(json.loads, lines)}, manifest


def test_a_row_has_the_message_both_sets_the_majority_and_who_stood_first_for_whom(judged, tmp_path):
    rows, manifest = export(tmp_path)
    assert len(rows) == 6
    row = rows["en-2"]
    assert (row["message"], row["reply"], row["language"]) == ("Message 2 of the day", "reply 2", "en")
    assert row["systems"] == ["bert", "mt5"]
    assert row["replies"] == [
        {"system": "bert", "replies": ["Pear en-2"]},
        {"system": "mt5", "replies": ["Plum en-2", "Hello"]},
    ]
    assert (row["label"], row["stage"]) == ("mt5", "LABELLED")
    assert row["preferred"] == [{"label": "bert", "votes": 1}, {"label": "mt5", "votes": 2}]
    assert [judgment["label"] for judgment in row["judgments"]] == ["mt5", "mt5", "bert"]
    assert {judgment["first"] for other in rows.values() for judgment in other["judgments"]} == {"bert", "mt5"}
    # Equal sets are ties without judgments.
    row = rows["en-5"]
    assert (row["label"], row["stage"], row["preferred"], row["judgments"]) == ("tie", "AGREED", [], [])
    folder = tmp_path / "gold"
    for row in pq.read_table(folder / "gold.parquet").to_pylist():
        other = rows[row["id"]]
        for name in ("message", "reply", "systems", "replies", "label", "preferred"):
            assert row[name] == other[name]
        assert [judgment["first"] for judgment in row["judgments"]] == [
            judgment["first"] for judgment in other["judgments"]
        ]
    card = (folder / "README.md").read_text(encoding="utf-8")
    for words in (
        "6 comparisons on 6 messages of the corpus `talk`",
        "| bert | bert.tsv | 6 | 0 |",
        "| mt5 | 5 |",
        "1 comparison is a tie because both systems suggest the same replies",
    ):
        assert words in card
    assert [manifest["systems"][name] for name in ("equal", "messages", "comparisons")] == [1, 6, 6]
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    export(tmp_path)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_comparisons_without_a_majority_are_left_out_with_their_judgments(compare, person, tmp_path):
    work(compare(number=2), person, {"ann": "mt5", "bea": "bert", "cem": "tie"})
    rows, manifest = export(tmp_path)
    left_out = json_lines(tmp_path / "gold" / "left_out.jsonl")
    assert not rows
    assert [len(row["judgments"]) for row in left_out] == [3, 3]
    assert manifest["counts"]["comparisons"] == 2


def test_with_the_secret_anybody_can_draw_the_sides_again_and_one_that_was_changed_is_named(judged, tmp_path):
    folder = tmp_path / "gold"
    _, manifest = export(tmp_path)
    before = manifest["lots"]
    assert before["secret"] is None
    assert judged.secret not in (folder / "README.md").read_text(encoding="utf-8")
    tell(judged, folder)
    lots = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["lots"]
    secret = lots["secret"]
    assert sha256(secret.encode()).hexdigest() == before["secret_sha256"] == lots["secret_sha256"]
    drawn = 0
    for row in json_lines(folder / "gold.jsonl"):
        for judgment in row["judgments"]:
            message = f"sides:{row['id']}:{':'.join(row['systems'])}:{judgment['annotator']}"
            digit = hmac.new(secret.encode(), message.encode(), "sha256").hexdigest()[0]
            assert judgment["first"] == row["systems"][int(digit, 16) > 7]
            drawn += 1
    assert drawn == 15
    status, outcome = verified(folder)
    assert (status, of_lots(outcome)) == (0, {"side": (15, 0)})

    def change(rows):
        row = next(row for row in rows if row["id"] == "en-2")
        judgment = row["judgments"][1]
        judgment["first"] = next(system for system in row["systems"] if system != judgment["first"])

    rewrite(folder, "gold.jsonl", change)
    status, outcome = verified(folder)
    assert (status, of_lots(outcome)) == (1, {"side": (15, 1)})
    assert outcome["lots"][0]["first"] == "bert and mt5 of en-2 for annotator-bea"


def test_where_the_licence_keeps_the_text_the_replies_are_kept_too(judged, tmp_path, data_dir):
    path = data_dir / "corpora" / "talk" / "manifest.json"
    text = path.read_text(encoding="utf-8")
    assert '"text_may_leave": true' in text
    path.write_text(text.replace('"text_may_leave": true', '"text_may_leave": false'), encoding="utf-8")
    rows, _ = export(tmp_path)
    row = rows["en-2"]
    assert not {"message", "reply", "replies"} & row.keys()
    assert (row["systems"], row["label"]) == (["bert", "mt5"], "mt5")
    assert Task.objects.get().secret
