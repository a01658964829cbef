"""How a corpus is asked: an engine's verbs, and who may know the engine."""

import subprocess
import sys

import pyarrow as pa

from corpora.core.voters import DEFAULT
from corpora.engines import asking, votes_in
from corpora.storage.layout import Manifest
from corpora.storage.schemas import votes_schema
from tests.running import ROOT


def test_a_worker_that_votes_loads_no_engine_and_no_django():
    code = "import sys, corpora.votes.vote_worker; print({'duckdb', 'pyspark', 'django'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "set()"


def test_the_first_votes_are_those_that_each_detector_names_first_and_und_where_it_names_none(data_dir):
    ranked = [{"language": "de", "score": 0.5}, {"language": "nl", "score": 0.25}]
    rows = [{"id": "a", "letters": 9, "langid": ranked, "cld2": [], "fasttext": ranked[1:]}]
    with asking("none", manifest=Manifest("", True, "")) as store:
        store.connection.execute("DROP TABLE votes")
        store.rows("votes", pa.Table.from_pylist(rows, schema=votes_schema()))
        store.first_votes()
        (first,) = store.connection.table("first_votes").to_arrow_table().to_pylist()
    assert first == {
        **{"id": "a", "letters": 9, "langid": "de", "langid_score": 0.5, "cld2": "und", "cld2_score": None},
        **{"fasttext": "nl", "fasttext_score": 0.25},
    }


def test_what_is_defined_follows_its_source_and_what_is_kept_does_not(data_dir):
    with asking("none", manifest=Manifest("", True, "")) as store:
        store.rows("given", pa.table({"id": ["a", "b"], "lang": ["de", "en"], "fields": [1, 2]}))
        store.select("predicted", "given", {"id": "id", "label": "lang"})  # under other names
        rows = [row for batch in store.query("label_counts") for row in batch.to_pylist()]
        assert rows == store.fetch("label_counts") == [{"label": "de", "posts": 1}, {"label": "en", "posts": 1}]
        store.define("defined", "label_counts")
        store.keep("kept", "label_counts")
        store.connection.execute("INSERT INTO given VALUES ('c', 'de', 3)")
        counts = [store.connection.table(name).fetchall() for name in ("defined", "kept")]
        assert counts == [[("de", 2), ("en", 1)], [("de", 1), ("en", 1)]]


def test_votes_are_unpacked_in_the_order_of_the_detectors_whatever_the_order_of_their_keys():
    texts = ['{"cld2": [["de", 1], ["a\\"é", 1e-7]], "langid": [["en", 0.1]]}', "{}", '{"fasttext": []}']
    first, *others = votes_in(pa.array(texts), DEFAULT.voters).to_pylist()
    assert [tuple(vote.values()) for vote in first] == [
        ("langid", 1, "en", 0.1),
        ("cld2", 1, "de", 1.0),
        ("cld2", 2, 'a"é', 1e-7),
    ]
    assert others == [[], []]
    assert list(first[0]) == ["detector", "rank", "language", "score"]
    assert len(votes_in(pa.array([], pa.string()), DEFAULT.voters)) == 0
