"""From documents to a gold set to figures, by the commands, for a kind of one's own."""

import json
from statistics import fmean

import pytest
from django.core.management import CommandError

from annotate.actions.commands import call_command
from tests.annotate.concepts.acts import command
from tests.annotate.evaluation.figures import figures, rows_of, written

pytestmark = [pytest.mark.usefixtures("corpus"), pytest.mark.on_sqlite]


LAWS = """title = "Which concepts is this law about?"
form = "labels"

[vocabulary]
name = "law"
most = 3

[[layout]]
style = "document"
fields = ["body"]
"""


@pytest.fixture
def laws(tmp_path):
    """The exported set of a kind of one's own, and its rows: forty laws, whose concepts came with them."""
    names = {"1": {"label": "law"}, "2": {"label": "civil law", "parents": ["1"]}, "3": {"label": "penal law"}}
    laws = [
        {"id": f"d{n}", "language": "en", "body": f"Law {n}.", "topics": ["2", "3"][: 1 + n % 2]} for n in range(40)
    ]
    (tmp_path / "laws.jsonl").write_text("".join(json.dumps(law) + "\n" for law in laws))
    (tmp_path / "law.json").write_text(json.dumps(names))
    (tmp_path / "laws.toml").write_text(LAWS)
    command("import_vocabulary", "law", tmp_path / "law.json")
    options = {"fields": "body", "labels": "topics", "licence": "CC0-1.0", "source": "made"}
    command("import_corpus", "laws", tmp_path / "laws.jsonl", **options)
    command("open_task", "laws", kind=str(tmp_path / "laws.toml"), corpus="laws", seed="1", reuse=True)
    command("export_gold", "laws", out=str(tmp_path / "laws"), splits="train=0.2,dev=0.1,test=0.7")
    return tmp_path / "laws", rows_of(tmp_path / "laws")


def measured(folder, path, **options):
    return json.loads(command("evaluate", path, gold=[folder], json=True, **options))


@pytest.mark.slow
def test_labels_of_a_kind_of_ones_own_are_measured_in_every_layout(laws, tmp_path):
    folder, rows = laws
    assert (folder / "concepts.json").is_file()
    answers = {row["id"]: ["3", "2"] if n % 4 == 0 else ["2"] for n, row in enumerate(rows)}
    cells = written(tmp_path / "cells.tsv", [("id", "label"), *((key, " ".join(of)) for key, of in answers.items())])
    bare = written(tmp_path / "bare.tsv", [(key, " ".join(of)) for key, of in answers.items()])
    single = ((key, label) for key, of in answers.items() for label in of)
    lines = written(tmp_path / "rows.tsv", [("doc", "label"), *single])
    lists = tmp_path / "lists.jsonl"
    lists.write_text("".join(json.dumps({"id": key, "label": of}) + "\n" for key, of in answers.items()))
    report = measured(folder, cells)
    tested = [row for row in rows if row["split"] == "test"]
    hits = sum(len(set(answers[row["id"]]) & set(row["concepts"])) for row in tested)
    size, gold = sum(len(answers[row["id"]]) for row in tested), sum(len(row["concepts"]) for row in tested)
    assert figures(report, "micro_f1", answers="plain")["value"] == pytest.approx(2 * hits / (size + gold))
    first = fmean(answers[row["id"]][0] in row["concepts"] for row in tested)
    assert figures(report, "P", labels="all", k="1")["value"] == pytest.approx(first)
    for path, options in ((bare, {}), (lists, {}), (lines, {"column": ["id=doc"]})):
        assert measured(folder, path, **options)["rows"] == report["rows"]
    places = ((key, label, 1 / place) for key, of in answers.items() for place, label in enumerate(of, 1))
    scored = written(tmp_path / "scored.tsv", [("id", "label", "score"), *places])
    against = measured(folder, scored, against=str(cells))
    assert against["rows"] == report["rows"]
    assert against["comparison"]["rows"][0]["value"] == 0
    run = written(tmp_path / "mine.tsv", [(row["id"], "Q0", "2", 1, 0.5, "mine") for row in rows])
    call_command("import_predictions", "laws", run, name="mine", version="1", ranked=True, verbosity=0)
    assert measured(folder, "mine@1")["rows"] == measured(folder, run)["rows"]
    with pytest.raises(CommandError, match="--threshold requires scores, but the labels of mine@1 have none"):
        command("evaluate", "mine@1", gold=[folder], threshold="0.5")
    key = tested[0]["id"]
    scores = ("id", "label", "score")
    for lines, sentence in (
        ([("id", "label"), (key, "2 22")], "line 2: '22' is not one of the 3 labels. .* Did you mean '2'"),
        ([("id", "label"), (key, "2"), (key, "2")], f"line 3: {key} has the label 2 twice. Remove one of them."),
        ([scores, (key, "2 3", ".5")], "line 2: there is only one score for 2 labels"),
        ([scores, (key, "2", ".5"), (key, "3", "")], "line 3: some labels have scores and others"),
        ([("id", "label"), ("x", "2")], "contains none of the "),
        ([("id", "lable"), (key, "2")], "has the column 'lable', which is not one of the 3 labels"),
    ):
        with pytest.raises(CommandError, match=sentence):
            command("evaluate", written(tmp_path / "wrong.tsv", lines), gold=[folder])
