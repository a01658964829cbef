"""Sets of a few records with spans: what their cards, files and reports say."""

import io
import json

import pytest

from annotate.actions.commands import call_command
from annotate.core import stages
from annotate.evaluation.measurement import evaluate
from annotate.evaluation.subjects import EvaluationError
from tests.annotate.evaluation.figures import figures

LABELS = {"ner": "0:3:PER", "mlqa": "0:3:answer"}


@pytest.fixture
def exported(spans_task, tmp_path):
    """Return a function that exports six records: exported("mlqa")."""

    def make(kind):
        texts = [{"passage": f"Ada {n}", "question": f"Who {n}?"} if kind == "mlqa" else f"Ada {n}" for n in range(6)]
        task = spans_task(texts, kind, redundancy=1, name=kind)
        task.units.update(label=LABELS[kind], stage=stages.LABELLED)
        out = io.StringIO()
        call_command("export_gold", kind, out=tmp_path / kind, splits="train=0,dev=0,test=1", seed="1", stdout=out)
        return tmp_path / kind, out.getvalue()

    return make


@pytest.mark.on_sqlite
@pytest.mark.parametrize(("kind", "category"), [("ner", "token-classification"), ("mlqa", "question-answering")])
def test_a_card_names_the_task_category_and_few_records_have_no_interval(exported, tmp_path, kind, category):
    folder, _ = exported(kind)
    assert f"task_categories:\n- {category}\n" in (folder / "README.md").read_text()
    said = tmp_path / "said.jsonl"
    rows = [json.loads(line) for line in (folder / "gold.jsonl").read_text().splitlines()]
    said.write_text("".join(json.dumps({"id": row["id"], "label": row["label"]}) + "\n" for row in rows))
    report = evaluate(str(said), [folder])
    assert {(row["value"], row["low"]) for row in report["rows"]} == {(1.0, None)}
    assert all("fewer than 20 records" in row["note"] for row in report["rows"])
    if kind == "mlqa":
        assert figures(report, "token_f1")["units"] == 6


@pytest.mark.on_sqlite
def test_a_cut_file_of_predictions_and_a_missing_one_are_named_with_what_to_do(exported, tmp_path):
    folder, _ = exported("ner")
    said = tmp_path / "said.jsonl"
    for content in ('{"id": "en-0", "label": "0:3', '{"label": "none"}'):
        said.write_text(content)
        with pytest.raises(EvaluationError, match=r"line 1.* Write one complete JSON object with an id per line"):
            evaluate(str(said), [folder])
    (tmp_path / "conll").mkdir()
    with pytest.raises(EvaluationError, match=r"conll/NER/en\.test cannot be read"):
        evaluate(str(tmp_path / "conll"), [folder])
