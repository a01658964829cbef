"""Queries of a corpus: an engine's verbs, the posts of an author and of a manifest, and which modules use engines."""

import shutil
import subprocess
import sys

import pyarrow as pa
import pytest
from django.core.management import CommandError

from corpora.core import CorpusError
from corpora.core.voters import DEFAULT
from corpora.engines import SQL, open_store, posts_by_author, votes_in
from corpora.storage.layout import Manifest, corpora_dir, corpus_dir, manifest_of
from corpora.storage.schemas import votes_schema
from tests.corpora.conftest import FULL, POSTS
from tests.corpora.on_disk import posts
from tests.running import ROOT

pytestmark = pytest.mark.django_db


def test_a_worker_that_votes_loads_no_engine_and_no_django():
    code = "import sys, corpora.votes.vote_worker; print({'duckdb', 'pyspark', 'django'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "set()"


def test_the_first_votes_are_those_that_each_detector_names_first_and_und_where_it_names_none(data_dir):
    ranked = [{"language": "de", "score": 0.5}, {"language": "nl", "score": 0.25}]
    rows = [{"id": "a", "letters": 9, "langid": ranked, "cld2": [], "fasttext": ranked[1:]}]
    with open_store("none", manifest=Manifest("", True, "")) as store:
        store.connection.execute("DROP TABLE votes")
        store.rows("votes", pa.Table.from_pylist(rows, schema=votes_schema()))
        store.first_votes()
        (first,) = store.connection.table("first_votes").to_arrow_table().to_pylist()
    assert first == {
        **{"id": "a", "letters": 9, "langid": "de", "langid_score": 0.5, "cld2": "und", "cld2_score": None},
        **{"fasttext": "nl", "fasttext_score": 0.25},
    }


def test_what_is_defined_follows_its_source_and_what_is_kept_does_not(data_dir):
    with open_store("none", manifest=Manifest("", True, "")) as store:
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


# --- what is asked of a corpus that is there


def test_an_authors_posts_are_listed_latest_first_and_authors_are_hashed_by_the_key(write, import_corpus, settings):
    rows = [
        {"id": n, "text": f"text {n}", "author": "ann" if n % 2 else "ben", "posted_at": 1404216000 + n}
        for n in range(6)
    ]
    file = write("a.jsonl", [*rows, {"id": "undated", "text": "t", "author": "ann"}])
    import_corpus("c", file)
    ann = posts()[1]["author"]
    assert [post["id"] for post in posts_by_author("c", ann, 3)] == ["5", "3", "1"]
    assert posts_by_author("c", ann, 9)[3] == {"id": "undated", "text": "t", "posted_at": None, "url": ""}
    assert posts_by_author("c", "", 3) == []
    with pytest.raises(CorpusError, match="The corpus 'gone' does not exist"):
        posts_by_author("gone", ann, 3)
    settings.AUTHOR_KEY = "another"
    import_corpus("other", file)
    assert ann not in {post["author"] for post in posts("other")}


def lose_the_part():
    (corpus_dir("c") / "parts" / "000001.parquet").unlink()


def damage_the_part():
    (corpus_dir("c") / "parts" / "000001.parquet").write_bytes(b"no parquet")


def leave_no_room_to_spill():
    (corpora_dir().parent / "tmp").write_text("a file, where a directory should be")


@pytest.mark.parametrize("harm", [lose_the_part, damage_the_part, leave_no_room_to_spill])
def test_an_authors_posts_that_cannot_be_read_are_explained(write, import_corpus, harm):
    import_corpus("c", write("a.jsonl", [FULL]))
    author = posts()[0]["author"]
    shutil.rmtree(corpora_dir().parent / "tmp")
    harm()
    with pytest.raises(CorpusError, match=r"The posts of corpus c cannot be read: .*\. Check .*corpora/c and .*tmp\.$"):
        posts_by_author("c", author, 3)


def test_a_damaged_manifest_is_explained(write, import_corpus):
    import_corpus("c", write("a.jsonl", [FULL]))
    (corpus_dir("c") / "manifest.json").write_text("{")
    with pytest.raises(CorpusError, match=r"corpora/c/manifest\.json cannot be read: .*\. Restore the file"):
        posts_by_author("c", "ann", 3)
    with pytest.raises(CommandError, match=r"corpora/c/manifest\.json cannot be read"):
        import_corpus("c", write("b.jsonl", POSTS))


def test_a_query_sees_what_its_manifest_names(write, import_corpus):
    import_corpus("c", write("a.jsonl", [FULL]))
    before = manifest_of("c")
    import_corpus("c", write("b.jsonl", POSTS[:2]))
    for manifest, ids in ((before, ["7"]), (None, ["7", "1", "2"])):
        with open_store("c", manifest=manifest) as store:
            assert [row[0] for row in store.connection.sql("SELECT id FROM posts").fetchall()] == ids


def test_no_query_says_what_spark_reads_differently():
    """design: double-quoted names, $x, list literals, \\w and VARCHAR are read differently or not at all."""
    for path in SQL.glob("*.sql"):
        sql = path.read_text()
        assert sql.startswith("-- "), path
        assert not any(sign in sql for sign in ('"', "$", "[", "\\w", "VARCHAR")), path
