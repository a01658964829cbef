"""The tables of corpora, tasks and gold sets in the module `assay`, and its errors."""

import asyncio
import json

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.db import IntegrityError, OperationalError

import assay
from annotate.actions.evaluate import evaluate_action
from annotate.kinds import Answer
from annotate.notebook import lazy_rows
from annotate.notebook.lazy_rows import AssayError, from_dicts, readable_errors
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from corpora.storage.layout import corpus_dir, read_manifest
from tests.annotate.conftest import AGREED, DISPUTED, make_task, person  # noqa: F401 - fixtures
from tests.annotate.corpus import NAME, demo_corpus, prelabelled  # noqa: F401 - fixtures
from tests.annotate.evaluation.figures import figures, interval
from tests.annotate.gold_folders import World

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _no_loop_runs_here():
    """As in a script. Once a worker has a browser, its thread has a loop as a notebook's has, and what the module does
    in a thread of its own would wait for the transaction of the test."""
    loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    yield
    asyncio._set_running_loop(loop)


def test_a_fault_of_the_program_is_not_told_as_one_of_the_database():
    with (
        pytest.raises(AssayError, match=r"The database cannot be used: no such table: x\. Check DATABASE_URL"),
        readable_errors(),
    ):
        raise OperationalError("no such table: x")
    with pytest.raises(IntegrityError), readable_errors():
        raise IntegrityError("UNIQUE constraint failed")


# --- corpora


def test_posts_and_votes_are_read_from_disk(demo_corpus):  # noqa: F811
    (listed,) = assay.corpora()
    assert (listed["name"], listed["rows"], listed["voted"], listed["licence"]) == (NAME, 1525, 1525, "CC-BY-4.0")
    corpus = assay.corpus(NAME)
    assert repr(corpus) == "Corpus demo: 1,525 posts, CC-BY-4.0"
    posts, votes = corpus.posts(), corpus.votes()
    assert posts.columns == ["id", "text", "author", "posted_at", "url"]
    assert (len(posts), len(votes)) == (1525, 1525)
    stored = pq.read_table(corpus_dir(NAME) / "parts" / "000001.parquet").to_pylist()
    assert list(posts) == stored == posts.to_arrow().to_pylist()
    assert posts.head(2) == stored[:2]
    assert [vote["id"] for vote in votes] == [post["id"] for post in stored]
    assert set(votes.head(1)[0]["cld2"][0]) == {"language", "score"}
    frame = posts.to_pandas(["id", "text"])
    assert (list(frame.columns), len(frame)) == (["id", "text"], 1525)
    outcome = assay.run("open_task", name="small", corpus=NAME, size=20, seed=1, labels="de en")
    assert outcome.data["task"] == "small"
    assert outcome.said[0].startswith("Task small: 20 posts drawn;")
    with pytest.raises(AssayError, match="There is no annotator 'ada'"):
        assay.run("adjudicate", task="small", list=True, as_="ada")


def test_what_else_stands_in_the_folder_of_corpora_is_no_corpus(demo_corpus, data_dir):  # noqa: F811
    (data_dir / "corpora" / ".DS_Store").write_text("a file of somebody else's")
    (data_dir / "corpora" / "an empty folder").mkdir()
    assert [row["name"] for row in assay.corpora()] == [NAME]
    (data_dir / "corpora" / NAME / "manifest.json").write_text("{}")
    with pytest.raises(AssayError, match="is not a complete corpus manifest"):
        assay.corpora()


def test_a_table_is_read_as_far_as_it_is_asked_for(data_dir, tmp_path, db):
    for number in range(2):
        path = tmp_path / f"{number}.jsonl"
        posts = [{"id": f"{number}-{n}", "text": f"the text {n} of {number}"} for n in range(3)]
        path.write_text("".join(json.dumps(post) + "\n" for post in posts), encoding="utf-8")
        assay.run("import_corpus", corpus="two", files=str(path), licence="CC0-1.0")
    posts = assay.corpus("two").posts()
    assert [post["id"] for post in posts] == ["0-0", "0-1", "0-2", "1-0", "1-1", "1-2"]
    (corpus_dir("two") / "parts" / read_manifest("two").parts[1].name).write_bytes(b"cut off")
    assert posts.head(2)[1]["id"] == "0-1"
    with pytest.raises(AssayError, match=r"^posts of two in .*/two/parts cannot be read: "):
        list(posts)


def test_rows_are_added_from_python_as_files_are_imported(data_dir, db):
    rows = ({"id": str(number), "text": f"the text {number}", "posted_at": None} for number in range(3))
    outcome = assay.corpus("rows", new=True).add(rows, licence="CC0-1.0")
    assert outcome.data["accepted"] == 3
    corpus = assay.corpus("rows")
    frame = pd.DataFrame({"id": ["2", "3"], "text": ["the text 2", "the text 3"], "url": [None, float("nan")]})
    outcome = corpus.add(frame)
    assert (outcome.data["accepted"], outcome.data["duplicates"]) == (1, 1)
    assert corpus.add(pa.Table.from_pylist([{"id": "4", "text": "the text 4"}])).data["accepted"] == 1
    assert corpus.add([{"id": "4", "text": "the text 4"}]).data["accepted"] == 0
    assert [post["id"] for post in corpus.posts()] == ["0", "1", "2", "3", "4"]
    assert {post["url"] for post in corpus.posts()} == {""}
    assert {source.name[:5] for source in corpus.manifest.sources} == {"rows-"}
    for add, sentence in (
        (lambda: corpus.add(["5"]), "Row 1 is not a dict but of the type str."),
        (lambda: corpus.add([{"id": "5"}]), "has no"),
        (lambda: corpus.add([{"id": "5", "text": "x"}], mxa_rejects=1), "import_corpus has no option 'mxa_rejects'"),
        (lambda: assay.corpus("other", new=True).add([{"id": "5", "text": "x"}]), "licence is required"),
        (lambda: assay.corpus("other"), "other"),
    ):
        with pytest.raises(AssayError, match=sentence):
            add()


def test_what_there_is_not_is_said_in_a_sentence(demo_corpus, make_task):  # noqa: F811
    make_task([DISPUTED])
    for ask, sentence in (
        (lambda: assay.corpus("../x"), "'../x' is not a valid corpus name. Use 1 to 64 letters"),
        (
            lambda: assay.corpus(NAME).predictions("ours@2"),
            "Corpus demo has no predictions by 'ours@2'. Available: none.",
        ),
        (
            lambda: assay.corpus(NAME).posts().to_arrow(["body"]),
            "posts of demo has no column 'body'. Its columns are: id,",
        ),
        (lambda: assay.task("other"), "There is no task 'other'; available: task."),
        (lambda: assay.gold("nowhere"), "The folder nowhere does not exist. Choose one that export_gold"),
        (
            lambda: assay.run("shout"),
            "The action 'shout' does not exist. Available actions: add_annotators, add_manager,",
        ),
        (
            lambda: assay.run("reroute", tsk="task"),
            "reroute has no option 'tsk'. Did you mean task? Its options are: task.",
        ),
        (lambda: assay.run("reroute", task="other"), "There is no task 'other'"),
    ):
        with pytest.raises(AssayError) as refused:
            ask()
        assert str(refused.value).startswith(sentence)
    with pytest.raises(AttributeError, match=r"assay has no attribute 'posts'. Available: AssayError, use, corpora"):
        assay.posts  # noqa: B018


def test_a_table_shows_its_first_rows_and_what_stands_in_them_is_no_markup(monkeypatch):
    rows = [{"text": "<script>alert(1)</script>"}, *[{"text": "x" * 200}] * 11]
    shown = from_dicts(rows, ["text"], "posts")._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert f"{'x' * 140}…<" in shown
    assert (shown.count("<tr>"), "posts: 12 rows, first 10 shown" in shown) == (11, True)
    table = from_dicts([{"text": "x"}], ["text"], "posts")
    assert repr(table) == "posts: 1 row\ntext\nx"
    # Without pandas, the result is an Arrow table.
    monkeypatch.setattr(lazy_rows, "find_spec", lambda name: None)
    with pytest.raises(AssayError, match=r"pandas, which is not installed. Run pip install pandas"):
        table.to_pandas()
    assert table.to_arrow().to_pylist() == [{"text": "x"}]


# --- tasks


def test_a_task_tells_how_far_it_is_and_what_people_said(make_task, person):  # noqa: F811
    task, ann = make_task([DISPUTED, DISPUTED, AGREED]), person("ann", "de")
    judge(ann, take(ann, task).pk, Answer("de", comment="plain"))
    skip(ann, take(ann, task).pk)
    (listed,) = assay.tasks()
    assert (listed["name"], listed["units"], listed["done"]) == ("task", 3, 2)
    loaded = assay.task("task")
    assert (loaded.title, loaded.kind, loaded.labels) == (task.title, "language", tuple(task.labels))
    by_language = {row["language"]: row for row in loaded.progress()}
    assert by_language["de"]["labelled"] == 1
    answer, skipped = loaded.judgments()
    assert {name: answer[name] for name in ("id", "kind", "label", "comment", "annotator", "voided_at")} == {
        "id": task.units.get(position=1).item.key,
        "kind": "answer",
        "label": "de",
        "comment": "plain",
        "annotator": ann.pseudonym,
        "voided_at": None,
    }
    assert (skipped["kind"], skipped["label"]) == ("skip", "")


# --- gold sets


@pytest.fixture
def measured(make_task, tmp_path):  # noqa: F811
    """A gold set, and a file of predictions for it."""
    world = World(make_task, tmp_path)
    folder, _ = world.uniform(
        [(30, "de", "audited", "de", "de"), (10, "", "disputed", "en", "de"), (10, "", "disputed", "fr", "fr")]
    )
    path = tmp_path / "ours.tsv"
    path.write_text("".join(f"{key}\t{label}\n" for key, label in world.predictions.items()), encoding="utf-8")
    return folder, path, world.predictions


def test_a_gold_set_has_rows_and_the_figures_of_the_command_whatever_the_predictions_come_as(measured, tmp_path):
    folder, path, labels = measured
    gold = assay.gold(folder)
    assert list(gold.labels.items()) == [("de", 30), ("en", 10), ("fr", 10)]
    assert repr(gold) == "Gold set stream: 50 labelled, 3 labels, uniform"
    assert gold.manifest == json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert gold.card == (folder / "README.md").read_text(encoding="utf-8")
    assert set(gold.to_pandas()["id"]) == set(labels)
    assert gold.to_arrow(["label"]).column_names == ["label"]

    def figures_of(evaluation):
        report = evaluation.to_dict()
        return {key: value for key, value in report.items() if key not in ("predictor", "files")}

    by_command = evaluate_action.perform({"predictions": str(path), "gold": [folder]}).data
    assert gold.report(path).to_dict() == gold.report(str(path)).to_dict() == json.loads(json.dumps(by_command))
    frame = pd.DataFrame(labels.items(), columns=["id", "label"])
    for evaluation in (gold.report(labels), gold.report(frame, name="This classifier")):
        assert evaluation.to_dict()["predictor"]["spelled"] == "This classifier"
        assert figures_of(evaluation) == figures_of(gold.report(path))
        assert assay.report(labels, folder).to_dict() == evaluation.to_dict()
    right = {row["id"]: row["label"] for row in gold.rows()}
    apart = figures(gold.report(labels, against=right).to_dict()["comparison"], "accuracy", posts="with und")
    assert apart["better"] == "second"
    assert apart["note"] == "of 50 posts, only A is right on 0 and only B on 10"
    published, out = tmp_path / "published.tsv", tmp_path / "imported"
    published.write_text("de\t1\nen\t2\n", encoding="utf-8")
    assay.run("import_gold", file=published, out=out, name="published", design="uniform")
    assert [(row["id"], row["label"]) for row in assay.gold(out).rows()] == [("1", "de"), ("2", "en")]
    assert assay.gold(out).evaluate({"1": "de", "2": "de"}).value[0] == 0.5


def test_an_evaluation_is_a_frame_and_a_report_a_table_and_a_text(measured):
    folder, _, labels = measured
    evaluation = assay.gold(folder).report(labels)
    report = evaluation.to_dict()
    frame = assay.gold(folder).evaluate(labels)
    pd.testing.assert_frame_equal(frame, evaluation.to_pandas())
    assert [*frame.columns[[0, -5, -4, -3, -2, -1]]] == ["measure", "value", "low", "high", "units", "note"]
    assert len(frame) == len(report["rows"])
    english = frame[(frame.measure == "recall") & (frame.label == "en")].iloc[0]
    assert (english.value, english.units) == (0.0, 10)
    assert (english.low, english.high) == interval(figures(report, "recall", label="en"))
    assert repr(evaluation).startswith("This classifier, measured on ")
    shown = evaluation._repr_html_()
    assert "<h3>This classifier, measured on " in shown
    assert "<h4>Recall by label</h4>" in shown
    assert "<style" not in shown
    assert "<script" not in shown


def test_predictions_that_cannot_be_measured_are_refused_in_a_sentence(measured):
    folder, path, labels = measured
    gold = assay.gold(folder)
    first = next(iter(labels))
    for predictions, options, sentence in (
        ({first: "de"}, {}, r"^This classifier has no label for 49 of 50 posts .* with vanished\.$"),
        (labels | {first: "xx"}, {}, r"^This classifier contains unknown labels.* map xx=LABEL"),
        (labels | {first: None}, {"name": "mine"}, r"^mine, line 1: The label is missing\."),
        ([1, 2], {}, r"^The predictions have the type list\. They must be the path of a file, the name of"),
        ("nothing.tsv", {}, r"^nothing\.tsv does not exist"),
        (path, {"measure": "speed"}, r"^measure is 'speed'\. It must be one of accuracy"),
        (path, {"against": str(path)}, r"ours\.tsv cannot be compared with itself\. Specify other predictions with"),
        ("cld2", {"map": {"nb": "no"}}, r"^map can be used only with a file of predictions\. "),
        (
            path,
            {"balanced_precision": True},
            r"^balanced_precision requires a recall-oriented set, but none was specified\.$",
        ),
    ):
        with pytest.raises(AssayError, match=sentence):
            gold.evaluate(predictions, **options)
