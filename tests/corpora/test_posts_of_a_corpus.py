"""What is asked of a corpus that is there: the posts of an author, and of a manifest."""

import shutil

import pytest
from django.core.management import CommandError

from corpora.core import CorpusError
from corpora.engines import SQL, asking, posts_by_author
from corpora.storage.layout import corpora_dir, corpus_dir, manifest_of
from tests.corpora.conftest import FULL, POSTS
from tests.corpora.on_disk import posts

pytestmark = pytest.mark.django_db


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
        with asking("c", manifest=manifest) as store:
            assert [row[0] for row in store.connection.sql("SELECT id FROM posts").fetchall()] == ids


def test_no_query_says_what_spark_reads_differently():
    """design: double-quoted names, $x, list literals, \\w and VARCHAR are read differently or not at all."""
    for path in SQL.glob("*.sql"):
        sql = path.read_text()
        assert sql.startswith("-- "), path
        assert not any(sign in sql for sign in ('"', "$", "[", "\\w", "VARCHAR")), path
