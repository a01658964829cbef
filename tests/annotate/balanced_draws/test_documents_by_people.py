"""Balanced sets of documents that people label: a predictor finds them, and more are drawn until no class is short."""

import json
import re
from collections import Counter

import pytest
from django.core.management import CommandError

from annotate.actions.registry import call_command
from annotate.controls.replenishment import class_progress, draw_short
from annotate.evaluation.measurement import evaluate
from annotate.kinds import Answer
from annotate.models import Task
from annotate.work.answer_changes import undo
from annotate.work.judgments import judge
from annotate.work.queue import take
from corpora.storage.layout import corpus_dir
from tests.annotate.balanced_draws.acts import (
    ROOT,
    TOPICS,
    exported,
    import_documents,
    import_sentences,
    lists,
    opened,
    read_all,
)
from tests.annotate.evaluation.figures import figures
from tests.annotate.secrecy.test_hidden import all_an_annotator_sees

# The draw after an answer runs in a separate transaction.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

CLASSES = "sports health travel"
SETS = {"test": 9, "dev": 3, "train": "6 12", "predictor": "mine", "languages": "de en"}
NEEDED = 8


@pytest.fixture
def sentences(data_dir, db):
    import_sentences()


@pytest.fixture
def predictions(sentences, tmp_path):
    """Return predictions that are wrong for every fourth sentence."""
    topics = TOPICS.split()
    path = tmp_path / "mine.jsonl"
    with path.open("w") as file:
        for language in ("de", "en", "fr", "ja"):
            for number, row in enumerate(rows(language)):
                place = topics.index(row["topic"])
                label = topics[(place + 1 + number % 3) % 7] if number % 4 == 0 else row["topic"]
                file.write(json.dumps({"id": row["id"], "label": f"__label__{label}"}) + "\n")
    call_command("import_predictions", "sib", str(path), name="mine", version="1")


def rows(language):
    text = (ROOT / f"fixtures/topics/sib200.{language}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def truth(unit):
    """Return the topic of the sentence, or `none` if it is not one of the classes."""
    [label] = unit.item.declared
    return label if label in CLASSES.split() else "none"


def say_truth(reader, unit):
    return truth(unit)


@pytest.fixture
def kind(tmp_path, kind):
    """A kind with an answer for sentences of no class."""
    with open(kind, "a") as file:
        file.write('[[answers]]\ncode = "none"\nname = "None of these"\nkey = "n"\n')
    return kind


def test_documents_are_drawn_until_each_class_has_its_number_and_no_more_than_that(
    predictions, kind, readers, tmp_path
):
    output = opened("topics", kind, labels=CLASSES, **SETS)
    assert "48 documents in 2 languages for annotators to label, 8 of each class as predicted by mine@1." in output
    task = Task.objects.get()
    # People are asked about every document, whatever label came with it.
    assert set(task.units.values_list("stage", "label", "agreed_label")) == {("QUEUED", "", "")}
    assert task.units.count() == 48
    read_all(task, readers[:2], say_truth)
    # Only two of three readers have answered: nothing is settled, so nothing is drawn.
    assert task.units.count() == 48
    read_all(task, readers[2:], say_truth)
    read_all(task, readers * 9, say_truth)
    cells = class_progress(task)
    assert [(cell["short"], cell["over"], cell["waiting"]) for cell in cells] == [(0, False, 0)] * 6
    assert all(cell["labelled"] >= NEEDED for cell in cells)
    # A class has more than needed only if documents predicted as another class turned out to belong to it.
    for cell in cells:
        of = task.units.filter(item__language=cell["language"], label=cell["class"])
        assert of.filter(predicted=cell["class"]).count() <= NEEDED
    rows = {row["id"]: row for row in exported("topics", tmp_path / "gold")}
    for language, spelled in (("de", "german"), ("en", "english")):
        sets = lists(tmp_path / "gold", spelled)
        assert {name: len(ids) for name, ids in sets.items()} == {"test": 9, "dev": 3, "train.6": 6, "train.12": 12}
        for ids in sets.values():
            assert set(Counter(rows[key]["label"] for key in ids).values()) == {len(ids) // 3}
            assert all([rows[key]["label"]] == rows[key]["declared"] for key in ids)
            assert {rows[key]["language"] for key in ids} == {language}
    left_out = [json.loads(line) for line in (tmp_path / "gold/left_out.jsonl").read_text().splitlines()]
    assert {row["left_out"] for row in left_out} <= {"no_class", "not_needed"}
    assert len(left_out) + len(rows) == task.units.count()
    card = (tmp_path / "gold/README.md").read_text(encoding="utf-8")
    assert "The predictor `mine@1` sorted the documents" in card
    manifest = json.loads((tmp_path / "gold/manifest.json").read_text())
    assert manifest["sets"]["standing"] == cells
    assert manifest["finished"] is True
    # The additional answer of people is not a class that a classifier could predict.
    (tmp_path / "mine").mkdir()
    predicted = [rows[key]["predicted"] for key in lists(tmp_path / "gold", "english")["test"]]
    (tmp_path / "mine/de-en.prediction").write_text("".join(f"{label}\n" for label in predicted))
    report = evaluate(str(tmp_path / "mine"), [tmp_path / "gold"])
    assert [row["of"]["label"] for row in report["rows"] if row["measure"] == "recall"] == CLASSES.split()
    assert report["warnings"] == [
        "The documents of topics were selected with the predictor mine@1, "
        "so a similar classifier looks better on them than it is."
    ]
    right = sum(rows[key]["label"] == rows[key]["predicted"] for key in lists(tmp_path / "gold", "english")["test"])
    assert figures(report, "accuracy", train="de", test="en")["value"] == pytest.approx(right / 9)


def test_what_is_drawn_further_is_next_in_the_order_of_the_lots(predictions, kind, readers):
    opened("topics", kind, labels=CLASSES, **SETS)
    task = Task.objects.get()
    expected = list(task.reserve.filter(language="de", predicted="sports").values_list("key", flat=True))
    drawn = set(task.units.values_list("item__key", flat=True))
    assert not drawn & set(expected)
    read_all(task, readers * 9, say_truth)
    later = task.units.exclude(item__key__in=drawn).filter(item__language="de", predicted="sports")
    keys = set(later.values_list("item__key", flat=True))
    assert keys == set(expected[: len(keys)])
    assert keys


def test_a_class_of_which_nothing_is_left_stays_short_and_the_set_says_so(predictions, kind, readers, tmp_path):
    output = opened("topics", kind, labels=CLASSES, short="fill", **SETS | {"test": 60, "languages": "de"})
    assert "Note: de, sports: " in output
    task = Task.objects.get()
    assert [(cell["left"], cell["short"] > 0, cell["over"]) for cell in class_progress(task)] == [(0, True, False)] * 3
    read_all(task, readers * 5, say_truth)
    cells = class_progress(task)
    assert all(cell["over"] and cell["left"] == 0 and cell["short"] for cell in cells)
    exported("topics", tmp_path / "gold")
    manifest = json.loads((tmp_path / "gold/manifest.json").read_text())
    german = manifest["sets"]["languages"]["de"]
    assert german["sets"]["test"] == sum(cell["labelled"] for cell in cells)
    assert german["sets"]["train.12"] == 0
    assert {row["set"] for row in german["short"]} == {"test", "dev", "train.6", "train.12"}


def test_an_answer_stands_where_nothing_can_be_drawn_and_a_later_one_draws_it(predictions, kind, readers, caplog):
    opened("topics", kind, labels=CLASSES, **SETS)
    task = Task.objects.get()
    moved = corpus_dir("sib").with_name("elsewhere")
    corpus_dir("sib").rename(moved)
    read_all(task, readers, say_truth)
    assert task.units.count() == 48
    assert set(task.units.values_list("stage", flat=True)) == {"LABELLED"}
    assert "The corpus 'sib' does not exist" in caplog.text
    call_command("close", "topics")
    call_command("reopen", "topics")
    assert Task.objects.get().is_open
    moved.rename(corpus_dir("sib"))
    call_command("close", "topics")
    assert draw_short(task.pk, "de") == 0
    call_command("reopen", "topics")
    assert task.units.count() > 48
    assert {cell["short"] for cell in class_progress(task)} == {0}


def test_more_is_drawn_once_it_is_a_tenth_of_what_waits_so_that_no_count_tells_what_was_predicted(
    predictions, kind, person
):
    opened("topics", kind, labels=CLASSES, redundancy=1, **SETS | {"languages": "de"})
    task = Task.objects.get()
    reader = person("reader", "de")
    counts = []
    for _ in range(4):
        lease = take(reader, task)
        judge(reader, lease.pk, Answer("none"))
        counts.append(task.units.count())
    # After the first answers, 23, 22 and 21 wait. Three of the remaining ones are more than a tenth.
    assert counts == [24, 24, 27, 27]
    # A document whose answer is undone goes back to people, and does not count as missing.
    lease = undo(reader, task)
    judge(reader, lease.pk, Answer(lease.unit.predicted))
    assert task.units.count() == 27
    assert sum(cell["short"] for cell in class_progress(task)) == 0


def test_sets_that_people_cannot_fill_are_refused(predictions, kind):
    for options, why in (
        ({"predictor": "cld2"}, "cld2 predicts languages, not classes"),
        ({"predictor": "yours"}, "Corpus sib has no predictor 'yours'"),
        ({"apart": "sentence"}, "the sets are determined only after people have labelled the documents. Remove --from"),
        ({"joint": 3}, "Remove --from-indices, `apart` and the joint sets, or remove --predictor"),
        ({"test": 600}, r"de, sports: \d+ available, 205 needed; .* These numbers count the predictions of mine@1"),
        ({"labels": "sports none"}, "The class none has the same name as a different answer of sentence_topic"),
    ):
        with pytest.raises(CommandError, match=why):
            opened("topics", kind, **{"labels": CLASSES} | SETS | options)
        assert not Task.objects.exists()


def test_nothing_that_an_annotator_sees_depends_on_what_was_declared_or_predicted(db, kind, person, tmp_path):
    ann = person("ann", "en")
    seen = []
    for name, topics, predicted, drawn in (
        ("of-people", ("sports", "health"), ("sports", "health"), {"predictor": "mine"}),
        ("otherwise", ("health", "sports"), ("health", "sports"), {"predictor": "mine"}),
        ("mistaken", ("sports", "sports"), ("health", "sports"), {"predictor": "mine"}),
        ("audited", ("sports", "health"), ("sports", "health"), {"audit_share": 1.0}),
    ):
        path, guesses = tmp_path / f"{name}.jsonl", tmp_path / f"{name}.guesses.jsonl"
        rows = [
            {"id": f"{number}", "language": "en", "body": f"Text {number} of {name}.", "topic": topic}
            for number, topic in enumerate(topics)
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        guessed = [{"id": f"{number}", "label": label} for number, label in enumerate(predicted)]
        guesses.write_text("".join(json.dumps(row) + "\n" for row in guessed))
        import_documents(name, path, fields="body", labels="topic", licence="CC0-1.0")
        call_command("import_predictions", name, str(guesses), name="mine", version="1")
        opened(name, kind, corpus=name, labels="sports health", test=2, **drawn)
        task = Task.objects.get(name=name)
        # The next one has a separate lease.
        pages = all_an_annotator_sees(task, ann, "health")
        seen.append([re.sub(r'name="lease" value="\d+"', "", page).replace(f" of {name}.", ".") for page in pages])
        Task.objects.filter(pk=task.pk).update(is_open=False)
    for page, *others in zip(*seen, strict=True):
        assert [page] * 3 == others
    # This kind has no guidelines, so there are no links to them.
    assert "/guidelines/" not in "".join(seen[0])
