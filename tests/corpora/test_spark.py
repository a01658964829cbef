"""Spark in local mode gives the same draws, counts and votes as DuckDB. Error messages if Spark cannot start."""

import json
import shutil
import sys
from fractions import Fraction

import duckdb
import pytest
from django.core.management import CommandError
from django.test import override_settings

from annotate.actions.registry import call_command
from corpora import engines
from corpora.core import CorpusError
from corpora.draws.language_draws import WINDOW, ids_in_frame, sample_precision, sample_recall, sample_triggers
from corpora.draws.part_draws import sample_contrasted, sample_filtered, sample_records
from corpora.draws.samples import sample_chosen, sample_uniform
from corpora.engines import open_store, posts_by_author
from corpora.models import Corpus
from corpora.predictions.panels import first_votes, panel_named
from corpora.predictions.predictor_labels import count_differing, find_predictor, predicted_labels, triggers
from corpora.storage.inventory import declared_counts
from corpora.storage.layout import Manifest, corpus_dir, manifest_of
from corpora.votes.vote_run import prelabel
from tests.corpora.conftest import as_jsonl
from tests.corpora.draws.test_draw_by_language import MINE, corpus_of, stream
from tests.corpora.draws.test_draw_filtered import import_filtered
from tests.corpora.on_disk import bytes_of
from tests.running import ROOT

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

MAJORITY = find_predictor("", "majority")
with open(ROOT / "fixtures" / "demo_posts.jsonl", encoding="utf-8") as file:
    TEXTS = [json.loads(line)["text"] for line in file]
# Real sentences. Each author writes mostly in one language.
ROWS = [row | {"text": TEXTS[n % len(TEXTS)]} for n, row in enumerate(stream(posts=500))]
UNREAD = {row["id"]: ("de", "en", "sh")[n % 3] for n, row in enumerate(ROWS) if n % 2 == 0}


@pytest.fixture(scope="module", autouse=True)
def _spark():
    """A small Spark session on this machine, which ends with the module."""
    if shutil.which("java") is None:
        pytest.skip("no Java was found; install the Debian package openjdk-17-jre-headless")
    options = {
        "spark.sql.shuffle.partitions": "3",
        # Compiling a query, as for millions of rows, takes far longer than these queries do.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    words = " ".join(f"--conf '{name}={value}'" for name, value in options.items())
    with pytest.MonkeyPatch.context() as patch, override_settings(SPARK_MASTER="local[2]"):
        patch.setenv("PYSPARK_SUBMIT_ARGS", f"{words} pyspark-shell")
        yield
        if pyspark := sys.modules.get("pyspark.sql"):
            pyspark.SparkSession.builder.getOrCreate().stop()


def imported(folder):
    """`one` and `three` contain the same posts, in as many parts; `talk` contains pairs, and `ads` records."""
    corpus_of(ROWS, folder, name="one", votes=False)
    files = []
    for n in range(3):
        files.append(folder / f"{n}.jsonl")
        files[-1].write_text(as_jsonl({key: row[key] for key in row if key != "label"} for row in ROWS[n::3]))
    call_command("import_corpus", "three", *map(str, files), licence="CC0-1.0")
    for name in ("one", "three"):
        call_command("prelabel", name, processes=1)
    import_filtered(folder)
    records = sorted((ROOT / "fixtures" / "records").glob("ad_relevance.*.jsonl"))
    fields = ["query", "title", "description"]
    call_command("import_corpus", "ads", *map(str, records), licence="CC0-1.0", fields=fields, labels="truth")


@pytest.fixture(scope="module")
def begin(make_world, tmp_path_factory):
    return make_world(imported, tmp_path_factory.mktemp("files"))


@pytest.fixture(autouse=True)
def _corpora(begin, data_dir):
    begin(data_dir)


def corpus(name):
    return Corpus.objects.get(name=name)


def recall(name="one", predictor=MINE, **how):
    how = {"share": Fraction(1, 10), "size": 30, "seed": "s"} | how
    return sample_recall(corpus(name), None, predictor=predictor, **how)


CHOSEN = {"en": ["ad-en-007", "ad-en-002"]}
DRAWS = {
    "recall": lambda: recall(),
    "recall, more than there are": lambda: recall(size=10_000),
    "precision, in a window": lambda: sample_precision(
        corpus("one"), ["de"], size=50, seed="s", predictor=MINE, window=WINDOW
    ),
    "triggers": lambda: sample_triggers(
        corpus("one"), ["de", "en"], size=40, seed="s", predictor=MINE, of="t", unread=UNREAD
    ),
    "triggers, where none are unread": lambda: sample_triggers(
        corpus("one"), ["de"], size=None, seed="s", predictor=MINE, of="t", unread={}
    ),
    "records in groups": lambda: sample_records(
        corpus("ads"), ["de", "en"], size=5, seed="s", together="query", leave_out=["ad-en-001", "ad-de-004"]
    ),
    "chosen": lambda: sample_chosen(
        corpus("ads"), "balanced", CHOSEN, seed="s", frames={"en": 60}, parameters={"en": {}}
    ),
    "filtered": lambda: sample_filtered(corpus("talk"), None, kept=10, dropped=3, seed="s"),
    "by another panel": lambda: [
        sample_uniform(corpus("one"), size=40, seed="s", panel=panel_named("one", ["cld2", "mine@1"]))
    ],
    "contrasted": lambda: sample_contrasted(
        corpus("one"), None, systems=["mine@1", "cld2"], size=50, seed="s", labels=(), of_records=False
    ),
}
COUNTS = {
    "triggers": lambda: triggers("one", MAJORITY),
    "labels where": lambda: count_differing("one", MINE, find_predictor("one", "cld2")),
    "predicted labels": lambda: predicted_labels("one", MAJORITY, ["3", "5", "8"]),
    "first votes": lambda: sorted(first_votes("one", 20), key=str),
    "first votes of another panel": lambda: sorted(
        first_votes("one", 20, panel_named("one", ["cld2", "mine"])), key=str
    ),
    "declared counts": lambda: declared_counts("ads"),
}


def on_both(function):
    """Return the results on DuckDB and on Spark."""
    results = []
    for engine in ("duckdb", "spark"):
        with override_settings(ENGINE=engine):
            results.append(function())
    return results


def content_of(samples):
    return [(one.language, one.size, one.frame_size, one.digest, one.parameters, list(one.rows)) for one in samples]


def test_draws_and_counts_are_the_same_on_both_engines():
    for name, draw in DRAWS.items():
        ours, theirs = on_both(lambda draw=draw: content_of(draw()))
        assert ours == theirs, name
        assert any(size for _, size, *_ in ours) or name == "triggers, where none are unread"
    for name, count in COUNTS.items():
        ours, theirs = on_both(count)
        assert ours == theirs, name
        assert ours
    (sample, *_) = recall()
    arguments = ("one", str(MINE), sample.parameters, sample.digest, ["de", "en"], [row["id"] for row in ROWS])
    ours, theirs = on_both(lambda: ids_in_frame(*arguments))
    assert ours == theirs
    assert any(ours.values())
    nothing = Manifest("", True, "")
    with override_settings(ENGINE="spark"), open_store("one") as one, open_store("none", manifest=nothing) as empty:
        assert (one.size("posts"), empty.size("posts")) == (len(ROWS), 0), "each store has its own views"


@pytest.mark.parametrize("design", ["uniform", "recall", "precision"])
def test_a_draw_is_the_same_however_many_parts_and_threads_there_are(design, monkeypatch):
    def drawn(name):
        if design == "uniform":
            return content_of([sample_uniform(corpus(name), size=100, seed="s")])
        if design == "recall":
            return content_of(recall(name, MAJORITY, share=Fraction(1, 20), least_posts=2))
        return content_of(sample_precision(corpus(name), None, size=20, seed="s", predictor=MAJORITY))

    assert [len(manifest_of(name).parts) for name in ("one", "three")] == [1, 3]
    connect, draws = duckdb.connect, []
    for threads in (1, 4):
        monkeypatch.setattr(duckdb, "connect", lambda config, of=threads: connect(config=config | {"threads": of}))
        draws.append((drawn("one"), drawn("three")))
    with override_settings(ENGINE="spark"):
        draws.append((drawn("one"), drawn("three")))
    assert draws == draws[:1] * 3
    of_one, of_three = ([(language, frame, rows) for language, _, frame, *_, rows in draw] for draw in draws[0])
    assert of_one == of_three
    assert any(rows for *_, rows in of_one)


@pytest.fixture
def _no_java(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)


def without_votes(name):
    folder = corpus_dir(name)
    raw = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(raw | {"votes": []}))
    for file in (folder / "votes").iterdir():
        file.unlink()


def test_the_executors_votes_are_those_of_this_machine_byte_by_byte(capsys):
    before, votes = bytes_of("three"), manifest_of("three").votes
    without_votes("three")
    done = []
    with override_settings(ENGINE="spark"):
        prelabel("three", progress=done.append)
    assert bytes_of("three") == before
    assert manifest_of("three").votes == votes
    assert sum(done) == len(ROWS)


def test_what_is_done_stays_where_the_executors_are_stopped_and_is_gone_on_with():
    before = bytes_of("three")
    without_votes("three")

    def stop(rows):
        if len(manifest_of("three").votes) == 1:
            raise KeyboardInterrupt

    with override_settings(ENGINE="spark"), pytest.raises(KeyboardInterrupt):
        prelabel("three", progress=stop)
    assert len(manifest_of("three").votes) == 1
    prelabel("three", processes=1)
    assert bytes_of("three") == before


def test_what_is_imported_is_the_same_on_both_engines_byte_by_byte(tmp_path, settings, capsys):
    names = ("one", "three", "talk", "ads")
    before = [bytes_of(name) for name in names]
    settings.DATA_DIR, settings.ENGINE = tmp_path / "other", "spark"
    imported(tmp_path)
    assert [bytes_of(name) for name in names] == before


@override_settings(ENGINE="spark")
def test_what_spark_cannot_read_or_load_is_explained_in_a_sentence(monkeypatch):
    (part, *_) = (corpus_dir("three") / "parts").iterdir()
    part.unlink()
    with pytest.raises(CorpusError, match=r"The corpus file .*/three/parts/.* is missing. Restore it"):
        recall("three", MAJORITY)
    (part, *_) = (corpus_dir("one") / "parts").iterdir()
    part.write_bytes(b"no Parquet")
    with pytest.raises(
        CorpusError, match=r"^Spark failed: [^\n]+\. Fix the problem and run the command again, or set "
    ):
        recall()
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    monkeypatch.delitem(sys.modules, "corpora.engines.spark", raising=False)
    monkeypatch.delattr(engines, "spark", raising=False)
    with pytest.raises(CorpusError, match=r"ASSAY_ENGINE is spark, but pyspark\.sql is not installed\. "):
        recall()


@pytest.mark.usefixtures("_no_java")
@override_settings(ENGINE="spark")
def test_without_java_pages_and_processes_of_this_machine_work_and_the_rest_is_refused():
    with pytest.raises(CorpusError, match=r"requires Java 17 or newer, but Java was not found\. Install it "):
        recall()
    with override_settings(ENGINE="duckdb"):
        (post,) = sample_uniform(corpus("one"), size=1, seed="s").rows
    assert post["id"] in {row["id"] for row in posts_by_author("one", post["author"], 1_000)}
    before = bytes_of("one")
    without_votes("one")
    with pytest.raises(CommandError, match="requires Java 17 or newer"):
        call_command("prelabel", "one")
    prelabel("one", processes=1)
    assert bytes_of("one") == before
