"""Exported sets of spans: three people, majority and adjudication, CoNLL files, and measured predictions."""

import io
import json
import random
import re
from functools import partial

import pytest
from datasets import load_dataset
from django.utils import timezone
from seqeval.metrics import classification_report, f1_score
from seqeval.scheme import IOB2

from annotate.actions.judgment_files import import_judgments
from annotate.actions.registry import call_command
from annotate.core import stages
from annotate.evaluation.measurement import evaluate
from annotate.evaluation.predicted_spans import word_scores
from annotate.evaluation.subjects import EvaluationError
from annotate.goldsets.exporter import export
from annotate.goldsets.formats.conll import ConllError, count_widened, read_conll, spans_of, tags, tokens_in
from annotate.kinds import Answer
from annotate.kinds.forms.spans import NOTHING, Span, spans_in
from annotate.models import Job, Task, Unit
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate.acts import settle
from tests.annotate.evaluation.figures import figures
from tests.annotate.spans.marked_texts import TEXTS, marks_of

SENTENCES = ["Ada met Noël in Rome 🙂 today", "Nokia left", "Nobody slept"]
ANSWERS = {
    "Ada met Noël in Rome 🙂 today": ["0:3:PER 8:12:PER 16:20:LOC", "0:3:PER 8:12:PER 16:20:ORG", "0:3:PER 16:20:LOC"],
    "Nokia left": ["0:5:ORG", "0:10:ORG", NOTHING],
    "Nobody slept": [NOTHING, NOTHING, "0:6:PER"],
}


@pytest.fixture
def labelled(person, spans_task):
    """A finished task: two records by the majority of three people, and one by an adjudicator."""
    task = spans_task(SENTENCES)
    for number in range(3):
        annotator = person(f"p{number}", "en")
        for _ in SENTENCES:
            lease = take(annotator, task)
            judge(annotator, lease.pk, Answer(ANSWERS[lease.unit.item.text][number]))
    [waiting] = Unit.objects.filter(task=task, stage=stages.ADJUDICATION)
    settle(person("ada", adjudicates=True), waiting, "0:5:ORG")
    return task


def rows_of(folder):
    return {row["id"]: row for row in map(json.loads, (folder / "gold.jsonl").read_text("utf-8").splitlines())}


def test_spans_of_three_people_and_an_adjudicator_are_exported_with_their_texts(labelled, tmp_path):
    manifest = export(labelled, tmp_path / "set", splits="test=1")
    rows = rows_of(tmp_path / "set")
    labels = {"en-0": "0:3:PER 8:12:PER 16:20:LOC", "en-1": "0:5:ORG", "en-2": NOTHING}
    assert {key: row["label"] for key, row in rows.items()} == labels
    for row in rows.values():
        assert [span["text"] for span in row["spans"]] == [
            row["sentence"][span["start"] : span["end"]] for span in row["spans"]
        ]
    assert [span["text"] for span in rows["en-0"]["spans"]] == ["Ada", "Noël", "Rome"]
    assert manifest["counts"]["by_label"] == {"LOC": 1, "ORG": 1, "PER": 1, NOTHING: 1}
    assert manifest["agreement"]["all"]["unitizing"]["value"] is not None
    blocks = (tmp_path / "set" / "NER" / "en.test").read_text("utf-8").split("\n\n")
    assert sorted(blocks) == [
        "",
        "Ada B-PER\nmet O\nNoël B-PER\nin O\nRome B-LOC\n🙂 O\ntoday O",
        "Nobody O\nslept O",
        "Nokia B-ORG\nleft O",
    ]
    card = (tmp_path / "set" / "README.md").read_text("utf-8")
    assert "`NER/en.test`" in card
    assert "a blank line ends each record" in card


@pytest.mark.parametrize("on_conflict", [stages.ADJUDICATION, stages.DISCARDED])
def test_a_record_with_a_disputed_name_goes_where_conflicts_go(person, spans_task, on_conflict):
    task = spans_task(["Noël met Ada"], on_conflict=on_conflict)
    for number, disputed in enumerate(["0:4:PER 9:12:PER", "0:2:PER 9:12:PER", "0:4:LOC"]):
        annotator = person(f"p{number}", "en")
        judge(annotator, take(annotator, task).pk, Answer(disputed))
    assert (task.units.get().stage, task.units.get().label) == (on_conflict, "")


def test_the_set_and_its_conll_files_are_read_by_datasets(labelled, tmp_path):
    export(labelled, tmp_path / "set", splits="test=1")
    read = partial(load_dataset, cache_dir=str(tmp_path / "cache"))
    records = read("parquet", data_files=str(tmp_path / "set" / "gold.test.parquet"), split="train")
    named = sorted([span["text"] for span in spans] for spans in records["spans"])
    assert named == [[], ["Ada", "Noël", "Rome"], ["Nokia"]]
    blocks = read("text", data_files=str(tmp_path / "set/NER/en.test"), sample_by="paragraph", split="train")
    tagged = [[line.split(" ") for line in block.strip().split("\n")] for block in blocks["text"] if block.strip()]
    assert sorted([tag for _, tag in item] for item in tagged) == [
        ["B-ORG", "O"],
        ["B-PER", "O", "B-PER", "O", "B-LOC", "O", "O"],
        ["O", "O"],
    ]


def test_overlapping_and_partial_marks_become_whole_tokens_of_the_longest_span():
    text = "New Yorkers firm"
    assert tags(tokens_in(text), spans_in("0:8:LOC 4:8:MISC 12:16:ORG")) == ["B-LOC", "I-LOC", "B-ORG"]
    assert count_widened(tokens_in(text), spans_in("0:8:LOC 4:8:MISC 12:16:ORG")) == 2
    assert spans_of(["B-LOC", "I-LOC", "B-LOC", "I-ORG", "O", "I-PER"]) == [Span(0, 2, "LOC"), Span(2, 3, "LOC")]
    text = TEXTS["ja"][0]
    places = tokens_in(text, "田中 さん は 東京 から 大阪")
    assert [text[start:end] for start, end in places] == ["田中", "さん", "は", "東京", "から", "大阪"]
    assert tags(places, marks_of("ja")) == ["B-PER", "O", "O", "B-LOC", "O", "B-LOC"]
    with pytest.raises(ConllError, match="The token 'さ' is not in the text after its character 2"):
        tokens_in("田中", "田中 さ")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("“Google.” isn't 3,5", ["“", "Google", ".", "”", "isn", "'", "t", "3", ",", "5"]),
        ("田中さん AI", ["田", "中", "さ", "ん", "AI"]),
        ("กำลัง", ["กำ", "ลั", "ง"]),
        ("می\u200cشود \u200f👍🏽x", ["می\u200cشود", "👍🏽", "x"]),
    ],
)
def test_tokens_are_words_and_single_characters(text, tokens):
    assert [text[start:end] for start, end in tokens_in(text)] == tokens


@pytest.mark.parametrize("language", TEXTS)
def test_no_name_in_six_scripts_is_widened_unless_it_is_a_part_of_a_word(language):
    text = TEXTS[language][0]
    assert count_widened(tokens_in(text), marks_of(language)) == 0


def test_spans_within_tokens_are_counted_by_the_command_and_on_the_card(person, spans_task, tmp_path, capsys):
    task = spans_task(["Die Berliner lesen Zeitungen."], redundancy=1, language="de")
    ann = person("ann", "de")
    judge(ann, take(ann, task).pk, Answer("4:10:LOC 13:18:MISC"))
    call_command("export_gold", task.name, out=str(tmp_path / "set"))
    note = "1 of 2 spans begins or ends within a token; CoNLL has the whole token."
    assert note in "".join(capsys.readouterr())
    assert note in (tmp_path / "set" / "README.md").read_text("utf-8")
    [file] = (tmp_path / "set" / "NER").iterdir()
    assert file.read_text("utf-8") == "Die O\nBerliner B-LOC\nlesen B-MISC\nZeitungen O\n. O\n\n"


def test_own_answers_are_shown_in_words_while_the_task_is_the_persons(person, spans_task, client):
    task, ann = spans_task(["Ada met Noël"], redundancy=1), person("ann", "en")
    judge(ann, take(ann, task).pk, Answer("8:12:PER"))
    client.force_login(ann.user)
    assert "\u2068“Noël”\u2069 \u2068Person\u2069" in client.get("/history/").content.decode()
    Task.objects.update(members_only=True)
    shown = client.get("/history/").content.decode()
    assert "Person 8–12" in shown
    assert "Noël" not in shown


def test_baselines_are_offered_for_sets_of_labels_and_not_of_spans(labelled, desk, tmp_path):
    for form, is_offered in (("spans", False), ("choice", True)):
        manifest = export(labelled, tmp_path / form, splits="test=1")
        manifest["task"]["form"] = form
        now = timezone.now()
        job = Job.objects.create(action="export_gold", state=Job.DONE, data=manifest, began_at=now, ended_at=now)
        page = desk.get(f"/manage/jobs/{job.pk}/").content.decode()
        assert "Measure a classifier on this set" in page
        assert ("Measure baselines on this set" in page) is is_offered


# --- predictions


@pytest.fixture
def large_set(spans_task, tmp_path):
    """A set of 60 records whose labels are known, and random predictions for it, as spans by record."""
    chance = random.Random(7)
    task = spans_task([f"{n} " + " ".join("abcdefgh") for n in range(60)], redundancy=1, name="many")

    def marked(text):
        places, marks, number = tokens_in(text), [], 1
        while number < len(places):
            size = chance.choice((1, 1, 2))
            if chance.random() < 0.4 and number + size <= len(places):
                label = chance.choice(("PER", "LOC", "ORG"))
                marks.append(Span(places[number][0], places[number + size - 1][1], label))
            number += size
        return marks

    for unit in task.units.select_related("item"):
        unit.label, unit.stage = " ".join(map(str, marked(unit.item.text))) or NOTHING, stages.LABELLED
        unit.save(update_fields=["label", "stage"])
    export(task, tmp_path / "many", splits="test=1")
    rows = rows_of(tmp_path / "many")
    predicted = {}
    for key, row in rows.items():
        hits = [span for span in spans_in(row["label"]) if chance.random() < 0.7]
        taken = {place for span in hits for place in range(span.start, span.end)}
        others = (span for span in marked(row["sentence"]) if taken.isdisjoint(range(span.start, span.end)))
        predicted[key] = sorted({*hits, *others})
    return tmp_path / "many", predicted


def value_of(report, measure, **of):
    [value] = [row["value"] for row in report["rows"] if (row["measure"], row["of"]) == (measure, of)]
    return value


def test_seqeval_gives_the_same_f1_for_all_spans_and_for_each_label(large_set, tmp_path):
    folder, predicted = large_set
    spans = tmp_path / "spans.jsonl"
    listed = [{"id": key, "spans": [span._asdict() for span in marks]} for key, marks in predicted.items()]
    spans.write_text("\n".join(map(json.dumps, listed)), encoding="utf-8")
    report = evaluate(str(spans), [folder])
    gold = [[tag for _, tag in item] for item in read_conll(folder / "NER" / "en.test")]
    rows = rows_of(folder)
    predicted_tags = [tags(tokens_in(rows[key]["sentence"]), predicted[key]) for key in rows]
    strict = {"mode": "strict", "scheme": IOB2}
    assert value_of(report, "span_f1") == pytest.approx(f1_score(gold, predicted_tags, **strict), abs=1e-12)
    by_label = classification_report(gold, predicted_tags, output_dict=True, **strict)
    for label in ("PER", "LOC", "ORG"):
        for measure, name in (("span_f1", "f1-score"), ("span_precision", "precision"), ("span_recall", "recall")):
            assert value_of(report, measure, label=label) == pytest.approx(by_label[label][name], abs=1e-12)
    [main] = [row for row in report["rows"] if (row["measure"], row["of"]) == ("span_f1", {})]
    assert main["low"] < main["value"] < main["high"]
    # The same predictions as CoNLL files have the same figures. They are also compared with perfect ones.
    for name, tagged in (("system", predicted_tags), ("perfect", gold)):
        (tmp_path / name).mkdir()
        words = [row["sentence"].split() for row in rows.values()]
        items = ("".join(map("{} {}\n".format, *pair)) for pair in zip(words, tagged, strict=True))
        (tmp_path / name / "en.test").write_text("\n".join(items), encoding="utf-8")
    report = evaluate(str(tmp_path / "system"), [folder], against=str(tmp_path / "perfect"))
    assert value_of(report, "span_f1") == pytest.approx(main["value"])
    [apart] = report["comparison"]["rows"]
    assert apart["value"] == pytest.approx(main["value"] - 1)
    assert apart["better"] == "second"
    assert apart["p"] < 0.001


def test_predictions_that_do_not_fit_the_set_are_refused(large_set, tmp_path):
    folder, _ = large_set
    path = tmp_path / "some.jsonl"
    for prediction, sentence in (
        ('"label": "none"', "has no spans for 59 of 60 records, the first: en-"),
        ('"spans": [{"start": 1}]', r"some\.jsonl, line 1"),
        ('"spans": null', r"line 1 has neither `spans` nor `label`\. Write a list"),
    ):
        path.write_text(f'{{"id": "en-0", {prediction}}}\n', encoding="utf-8")
        with pytest.raises(EvaluationError, match=sentence):
            evaluate(str(path), [folder])
    (tmp_path / "en.test").write_text("a O\n", encoding="utf-8")
    with pytest.raises(EvaluationError, match="does not have the tokens of"):
        evaluate(str(tmp_path), [folder])


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('"label": "0:99:PER"', "line 1: 0:99:PER is outside the text, which has 28 characters"),
        ('"label": "0:3:DOG"', "line 1: 'DOG' is not a label of this task. Its labels are PER, ORG, LOC, MISC."),
        ('"label": "0:3:PER 2:5:LOC"', "line 1: 0:3:PER and 2:5:LOC overlap. Remove one."),
        ('"spans": [{"start": 24, "end": 28, "label": "LOC", "text": "today"}]', "'oday' in the set, but its text is"),
        ('"spans": 3', "line 1: `spans` is not a list of objects. Correct it."),
        ('"label": "0:3:PER"}\n{"id": "en-0", "label": "none"', "line 2: the record en-0 has other spans in line 1."),
    ],
)
def test_spans_that_cannot_be_right_are_refused_with_their_line(labelled, tmp_path, line, sentence):
    export(labelled, tmp_path / "set", splits="test=1")
    path = tmp_path / "said.jsonl"
    rest = "".join(f'\n{{"id": "en-{number}", "spans": []}}' for number in (1, 2))
    path.write_text(f'{{"id": "en-0", {line}}}{rest}\n', encoding="utf-8")
    with pytest.raises(EvaluationError, match=re.escape(sentence)):
        evaluate(str(path), [tmp_path / "set"])


@pytest.mark.parametrize(
    ("gold", "predicted", "language", "scores"),
    [
        ("the Eiffel Tower", "Eiffel tower.", "en", (1, 1)),
        ("Eiffel Tower", "tower", "en", (2 / 3, 0)),
        ("der Rhein", "Rhein", "de", (1, 1)),
        ("北京市", "北京", "zh-CN", (0.8, 0)),
        ("", "", "en", (1, 1)),
        ("", "Rome", "en", (0, 0)),
        ("Rome", "Paris", "en", (0, 0)),
    ],
)
def test_words_of_answers_are_compared_as_in_mlqa(gold, predicted, language, scores):
    assert word_scores(gold, predicted, language) == pytest.approx(scores)


def test_answers_to_questions_are_measured_by_their_words(person, spans_task, tmp_path):
    passage = "She was born in the old town of Lyon in 1903."
    task = spans_task(
        [{"question": "Where?", "passage": passage}, {"question": "Why?", "passage": passage}], "mlqa", redundancy=1
    )
    ann, answers = person("ann", "en"), {"Where?": "32:36:answer", "Why?": NOTHING}
    for _ in answers:
        lease = take(ann, task)
        judge(ann, lease.pk, Answer(answers[lease.unit.item.fields["question"]]))
    manifest = export(task, tmp_path / "set", splits="test=1")
    assert manifest["task"]["marking"]["one"]
    file = tmp_path / "set" / "MLQA" / "test-context-en-question-en.json"
    [entry] = json.loads(file.read_text("utf-8"))["data"]
    [paragraph] = entry["paragraphs"]
    assert paragraph["context"] == passage
    expected = [{"text": passage[32:36], "answer_start": 32}]
    assert sorted(paragraph["qas"], key=lambda qa: qa["id"]) == [
        {"id": "en-0", "question": "Where?", "answers": expected, "is_impossible": False},
        {"id": "en-1", "question": "Why?", "answers": [], "is_impossible": True},
    ]
    [read] = load_dataset("json", data_files=str(file), field="data", split="train", cache_dir=str(tmp_path / "cache"))
    assert [qa["question"] for paragraph in read["paragraphs"] for qa in paragraph["qas"]]
    assert "`MLQA/test-context-en-question-en.json`" in (tmp_path / "set" / "README.md").read_text("utf-8")
    with pytest.raises(EvaluationError, match="has no CoNLL files"):
        evaluate(str(tmp_path), [tmp_path / "set"])
    path = tmp_path / "said.jsonl"
    path.write_text('{"id": "en-0", "label": "20:36:answer"}\n{"id": "en-1", "label": "none"}\n', encoding="utf-8")
    report = evaluate(str(path), [tmp_path / "set"])
    assert value_of(report, "exact_match") == 0.5
    assert value_of(report, "token_f1") == pytest.approx((0.4 + 1) / 2)


def test_judgments_are_imported_as_text_or_as_lists_of_spans(spans_task, tmp_path):
    task = spans_task(["Ada met Noël in Rome.", "Nobody slept."])
    listed = [{"start": 8, "end": 12, "label": "PER"}, {"start": 0, "end": 3, "label": "PER"}]
    answers = {
        "en-0": (listed, "0:3:PER 8:12:PER 16:20:LOC", "16:20:LOC"),
        "en-1": (NOTHING, "0:99:PER", "0:6:DOG"),
    }
    rows = [
        {"task": key, "worker": f"w{number}", "label": label}
        for key, labels in answers.items()
        for number, label in enumerate(labels)
    ]
    path = tmp_path / "judgments.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    imported = import_judgments("names", path)
    assert imported.judgments == 4
    assert [reason.partition(". ")[0] for reason in imported.rejects.values()] == [
        "0:99:PER is outside the text, which has 13 characters",
        "'DOG' is not a label of this task",
    ]
    assert task.units.get(item__key="en-0").label == "0:3:PER 8:12:PER 16:20:LOC"


# --- sets of a few records with spans


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
    predictions = tmp_path / "said.jsonl"
    rows = [json.loads(line) for line in (folder / "gold.jsonl").read_text().splitlines()]
    predictions.write_text("".join(json.dumps({"id": row["id"], "label": row["label"]}) + "\n" for row in rows))
    report = evaluate(str(predictions), [folder])
    assert {(row["value"], row["low"]) for row in report["rows"]} == {(1.0, None)}
    assert all("fewer than 20 records" in row["note"] for row in report["rows"])
    if kind == "mlqa":
        assert figures(report, "token_f1")["units"] == 6


@pytest.mark.on_sqlite
def test_a_cut_file_of_predictions_and_a_missing_one_are_named_with_what_to_do(exported, tmp_path):
    folder, _ = exported("ner")
    predictions = tmp_path / "said.jsonl"
    for content in ('{"id": "en-0", "label": "0:3', '{"label": "none"}'):
        predictions.write_text(content)
        with pytest.raises(EvaluationError, match=r"line 1.* Write one complete JSON object with an id per line"):
            evaluate(str(predictions), [folder])
    (tmp_path / "conll").mkdir()
    with pytest.raises(EvaluationError, match=r"conll/NER/en\.test cannot be read"):
        evaluate(str(tmp_path / "conll"), [folder])
