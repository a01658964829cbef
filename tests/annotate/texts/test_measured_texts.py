"""Generated texts are measured on the texts that people wrote, as sacrebleu and XGLUE's script do."""

import io
import json

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from annotate.actions.registry import call_command
from annotate.evaluation.measurement import evaluate
from annotate.evaluation.subjects import EvaluationError
from annotate.models import Task
from tests.annotate.acts import work_through
from tests.annotate.classified_sets import classified_set
from tests.annotate.evaluation.figures import figures
from tests.annotate.texts.conftest import PASSAGES

GENERATED = {
    "p1": "how many strings has a violin?",
    "p2": "Why is the tomato a fruit?",
    "p3": "When was the lake frozen?",
}
WRITTEN = {
    "p1": "How many strings does a violin have?",
    "p2": "Why do botanists call the tomato a fruit?",
    "p3": "When did the lake freeze?",
}
OTHERS = {"p1": "How many strings has a violin?", "p2": "Is the tomato a fruit?", "p3": "When was the lake frozen?"}


@pytest.fixture
def gold(opened, person, tmp_path):
    """Return a function that exports a set in which people wrote these texts: gold("one", WRITTEN)."""
    people = [person(name, "en") for name in ("wim", "ria", "rob")]

    def make(name, texts):
        if Task.objects.exists():
            how = {"kind": "question_writing", "corpus": "passages", "languages": "en", "seed": "1", "size": "3"}
            call_command("open_task", name, **how, verbosity=0)
        else:
            opened()
        task = Task.objects.latest("pk")
        for annotator in people:
            work_through(annotator, task, lambda lease: texts[lease.unit.item.key])
        out = tmp_path / name
        call_command("export_gold", task.name, out=out, splits="train=0,dev=0,test=1", seed="1", verbosity=0)
        return out

    return make


@pytest.fixture
def system(tmp_path):
    path = tmp_path / "system.jsonl"
    path.write_text("".join(json.dumps({"id": key, "text": text}) + "\n" for key, text in GENERATED.items()))
    return path


def expected(metric, *references):
    streams = [[texts[key] for key in PASSAGES] for texts in references]
    return pytest.approx(metric.corpus_score([GENERATED[key] for key in PASSAGES], streams).score / 100, abs=1e-9)


@pytest.mark.on_sqlite
def test_texts_have_sacrebleus_scores_against_one_or_several_references(gold, system, tmp_path):
    one = gold("one", WRITTEN)
    report = evaluate(str(system), [one])
    assert figures(report, "bleu4")["value"] == expected(BLEU(lowercase=True), WRITTEN)
    assert figures(report, "chrf", language="en")["value"] == expected(CHRF(), WRITTEN)
    assert report["words"]["gold"][0] == "Measured on 3 records of the split test."
    assert report["words"]["gold"][1].startswith("BLEU’s signature: nrefs:1|case:lc|")
    both = evaluate(str(system), [one, gold("two", OTHERS)])
    assert figures(both, "bleu4")["value"] == expected(BLEU(lowercase=True), WRITTEN, OTHERS)
    assert both["words"]["gold"][0] == "Measured on 3 records of the split test, each with up to 2 texts by people."
    # XGLUE's script reads a file of lines, in the order of the test file, and finds the same BLEU-4.
    folder = tmp_path / "predictions" / "QG"
    folder.mkdir(parents=True)
    ids = {text: key for key, text in PASSAGES.items()}
    passages = (one / "xglue.qg.en.src.test").read_text().splitlines()
    (folder / "en.prediction").write_text("".join(f"{GENERATED[ids[text]]}\n" for text in passages))
    by_lines = evaluate(str(folder.parent), [one])
    assert figures(by_lines, "bleu4", task="QG")["value"] == figures(report, "bleu4")["value"]


@pytest.mark.on_sqlite
def test_a_report_compares_two_systems_and_wrong_files_are_refused(gold, system, tmp_path):
    one, other = gold("one", WRITTEN), tmp_path / "other.csv"
    other.write_text("id,question\n" + "".join(f"{key},{text}\n" for key, text in OTHERS.items()))
    short, out = tmp_path / "short.jsonl", io.StringIO()
    short.write_text("".join(system.read_text().splitlines(keepends=True)[:2]))
    with pytest.raises(EvaluationError, match="has no text for 1 of 3 records"):
        evaluate(str(short), [one])
    assert figures(evaluate(str(other), [one], column=["text=question"]), "bleu4")["value"] > 0
    second = tmp_path / "second.jsonl"
    second.write_text("".join(json.dumps({"id": key, "text": text}) + "\n" for key, text in WRITTEN.items()))
    [difference] = evaluate(str(system), [one], against=str(second))["comparison"]["rows"]
    # Three texts are too few for an interval.
    assert (difference["measure"], difference["units"], difference["value"]) == ("bleu4", 3, None)
    call_command("evaluate", str(system), gold=[str(one)], out=str(tmp_path / "report"), stdout=out)
    assert "chrF" in (tmp_path / "report" / "report.md").read_text()


@pytest.mark.on_sqlite
def test_bleu_of_scripts_without_spaces_compares_characters(tmp_path):
    truth = {
        ("en", "a"): "How many strings does a violin have?",
        ("ja", "b"): "バイオリンの弦は何本ですか？",
        ("th", "c"): "ไวโอลินมีกี่สาย",
    }
    predicted = {"a": truth["en", "a"], "b": "バイオリンには弦が何本ありますか？", "c": "ไวโอลินมีสายกี่สาย"}
    rows = [(key, code, "test", text, "A passage.") for (code, key), text in truth.items()]
    task = {"name": "questions", "title": "", "form": "text", "type": "question_writing", "labels": [], "languages": []}
    folder = classified_set(tmp_path / "gold", rows, form="text", task=task)
    predictions = tmp_path / "said.jsonl"
    predictions.write_text("".join(json.dumps({"id": key, "text": text}) + "\n" for key, text in predicted.items()))
    report = evaluate(str(predictions), [folder])
    by_character = BLEU(lowercase=True, force=True, tokenize="char")
    expected_ones = {"en": 1.0} | {
        code: by_character.corpus_score([predicted[key]], [[truth[code, key]]]).score / 100
        for code, key in truth
        if code != "en"
    }
    for code, value in expected_ones.items():
        assert figures(report, "bleu4", language=code)["value"] == pytest.approx(value), code
        assert value > 0.1
    mean = figures(report, "bleu4")["value"]
    assert mean == pytest.approx(sum(expected_ones.values()) / 3)
    [sentence] = [words for words in report["words"]["gold"] if "characters instead of words" in words]
    assert sentence.startswith("BLEU-4 in ja th compares characters")
    assert "tok:char" in sentence
    # Two systems are compared in the same way.
    other = tmp_path / "other.jsonl"
    other.write_text(predictions.read_text())
    differences = evaluate(str(predictions), [folder], against=str(other))["comparison"]["rows"]
    assert {row["of"]["language"] for row in differences} == {"en", "ja", "th"}
