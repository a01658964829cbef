"""Draws from a corpus."""

import hashlib
import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from annotate.actions.registry import call_command
from corpora.core import CorpusError
from corpora.core.voters import DEFAULT, agreed_vote
from corpora.draws.samples import frame_of, record, rows_in, sample_uniform
from corpora.models import Corpus, Draw, Item
from corpora.storage.layout import manifest_of
from corpora.storage.schemas import votes_schema

pytestmark = pytest.mark.django_db

SIZE = 300
MORE = {"author": "ann", "posted_at": 1404216000, "url": "https://e.org/"}
ROWS = [{"id": str(n), "text": f"Das ist Satz Nummer {n}."} | MORE for n in range(SIZE)]


def draw_uniform(corpus, **how):
    return record(sample_uniform(corpus, **how))


@pytest.fixture
def corpus(write, import_corpus):
    import_corpus("c", write("a.jsonl", ROWS[:200]), write("b.jsonl", ROWS[200:]))
    call_command("prelabel", "c", processes=1)
    return Corpus.objects.get(name="c")


def in_order_of(seed, ids=range(SIZE)):
    return sorted(map(str, ids), key=lambda key: (hashlib.md5(f"{seed}:{key}".encode()).hexdigest(), key))


def keys(items):
    return [item.key for item in items]


def test_a_draw_is_the_first_posts_by_a_hash_of_seed_and_id(corpus):
    draw, items = draw_uniform(corpus, size=50, seed="s")
    assert keys(items) == in_order_of("s")[:50]
    assert (draw.design, draw.seed, draw.size, draw.parts, draw.frame_size) == ("uniform", "s", 50, 2, SIZE)
    assert (draw.language, draw.predictor, draw.parameters) == ("", "", {})
    assert draw.chance == 50 / SIZE
    assert draw.frame_digest == frame_of(manifest_of("c"), 2)["digest"]
    assert set(keys(items)) == set(Item.objects.values_list("key", flat=True))
    item = Item.objects.get(pk=items[0].pk)
    assert item.text == f"Das ist Satz Nummer {item.key}."
    assert item.posted_at == datetime(2014, 7, 1, 12, tzinfo=UTC)
    assert (item.url, len(item.author), item.letters) == ("https://e.org/", 32, 16)
    assert item.votes.keys() == {"langid", "cld2", "fasttext"}
    assert [ranking[0][0] for ranking in item.votes.values()] == ["de", "de", "de"]
    assert all(0 <= score <= 1 for ranking in item.votes.values() for _, score in ranking)
    _, larger = draw_uniform(corpus, size=120, seed="s")
    assert [item.pk for item in larger[:50]] == [item.pk for item in items], "a larger draw shares the items"
    assert Item.objects.count() == 120
    assert keys(draw_uniform(corpus, size=50, seed="t")[1]) == in_order_of("t")[:50] != keys(items)


def test_the_digest_of_a_frame_does_not_depend_on_the_key_that_hashes_authors(write, import_corpus, settings):
    posts = [{"id": str(n), "text": f"Guten Morgen {n}", "author": f"a{n}"} for n in range(3)]
    digests = []
    for name, key, rows in (
        ("one", "first key", posts),
        ("two", "second key", posts),
        ("other", "first key", [*posts[1:], posts[0] | {"text": "Guten Abend"}]),
    ):
        settings.AUTHOR_KEY = key
        import_corpus(name, write(f"{name}.jsonl", rows))
        call_command("prelabel", name, processes=1)
        digests.append((manifest_of(name).parts[0].sha256, frame_of(manifest_of(name), 1)["digest"]))
    (file, frame), (file_by_other_key, frame_by_other_key), (_, other_frame) = digests
    assert file != file_by_other_key
    assert frame == frame_by_other_key != other_frame


@pytest.mark.sqlite_only
def test_items_of_an_earlier_draw_are_looked_up_by_id_and_not_among_the_whole_corpus(corpus):
    draw_uniform(corpus, size=50, seed="s")
    with CaptureQueriesContext(connection) as captured:
        draw_uniform(corpus, size=120, seed="s")
    [sql] = [query["sql"] for query in captured.captured_queries if "json_each" in query["sql"]]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
        assert "(corpus_id=? AND key=?)" in "\n".join(row[-1] for row in cursor.fetchall())


def test_an_extension_stays_in_its_frame_when_the_corpus_has_grown(corpus, write, import_corpus):
    draw, _ = draw_uniform(corpus, size=50, seed="s")
    import_corpus("c", write("c.jsonl", [{"id": f"new{n}", "text": "Noch ein Satz."} for n in range(500)]))
    larger, added = draw_uniform(corpus, size=150, seed="s", extends=draw)  # the new part has no votes yet
    assert keys(added) == in_order_of("s")[50:150]
    assert (larger.parts, larger.frame_size, larger.frame_digest) == (2, SIZE, draw.frame_digest)
    assert (larger.extends, larger.size, larger.chance) == (draw, 150, 150 / SIZE)
    with pytest.raises(CorpusError, match="Run `assay prelabel c`"):
        draw_uniform(corpus, size=150, seed="s")
    call_command("prelabel", "c", processes=1)
    fresh, items = draw_uniform(corpus, size=400, seed="s")
    assert fresh.frame_size == SIZE + 500
    assert any(item.key.startswith("new") for item in items)


def test_all_are_taken_where_there_are_fewer_than_asked(corpus):
    draw, items = draw_uniform(corpus, size=5000, seed="s")
    assert (draw.asked, draw.size, len(items), draw.chance) == (5000, SIZE, SIZE, 1)
    with pytest.raises(CorpusError, match=r"already contains all 300 posts.*posts that were imported later"):
        draw_uniform(corpus, size=6000, seed="s", extends=draw)


def test_what_cannot_be_extended_is_explained_and_nothing_is_left_behind(corpus, write, import_corpus):
    draw, _ = draw_uniform(corpus, size=50, seed="s")
    draw_uniform(corpus, size=60, seed="s", extends=draw)
    import_corpus("other", write("o.jsonl", ROWS))
    call_command("prelabel", "other", processes=1)
    other = Corpus.objects.get(name="other")
    apart, _ = draw_uniform(corpus, size=50, seed="apart")
    before = Draw.objects.count(), Item.objects.count()
    for corpus_asked, size, seed, extends, sentence in [
        (corpus, 70, "s", draw, "has already been extended"),
        (corpus, 70, "t", apart, "same seed as the draw that it extends: 'apart'"),
        (corpus, 50, "apart", apart, r"already contains 50 of 300 posts\. Request more"),
        (other, 70, "apart", apart, "is from corpus c, not other"),
        (corpus, 0, "s", None, "at least one"),
        (corpus, 5, "", None, "The seed has 0 characters"),
        (corpus, 5, "s" * 65, None, "The seed has 65 characters"),
    ]:
        with pytest.raises(CorpusError, match=sentence):
            draw_uniform(corpus_asked, size=size, seed=seed, extends=extends)
    call_command("prelabel", "c", processes=1, k=2, again=True)
    with pytest.raises(CorpusError, match="have changed since"):
        draw_uniform(corpus, size=70, seed="apart", extends=apart)
    assert (Draw.objects.count(), Item.objects.count()) == before


def test_a_draw_keeps_the_versions_that_voted_and_refuses_posts_drawn_before_with_other_votes(corpus):
    draw, _ = draw_uniform(corpus, size=50, seed="s")
    assert draw.detectors == [manifest_of(corpus.name).votes[0].versions]
    call_command("prelabel", corpus.name, k=1, again=True, processes=1)
    with pytest.raises(CorpusError, match="was drawn earlier, and its votes in corpus"):
        draw_uniform(corpus, size=60, seed="t")
    assert Draw.objects.get() == draw


SCORES = st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-3, 3).map(float)
CODES = st.sampled_from(["de", "zh-CN", 'a "quoted" one', "naïve", "back\\slash"])
LISTS = st.lists(st.fixed_dictionaries({"language": CODES, "score": SCORES}), max_size=3)
VOTED = st.lists(
    st.fixed_dictionaries({"id": st.text(), "letters": st.just(1), **dict.fromkeys(DEFAULT.voters, LISTS)})
)


@given(VOTED, st.integers(0, 3))
def test_votes_are_written_unchanged_with_the_language_in_which_they_are_unanimous(rows, start):
    batch = pa.RecordBatch.from_pylist(rows, schema=votes_schema()).slice(start)
    for row, original in zip(rows_in(batch), rows[start:], strict=True):
        pairs = {name: [[vote["language"], vote["score"]] for vote in original[name]] for name in DEFAULT.voters}
        read = json.loads(row["votes"])
        assert read == pairs
        assert [type(score) for votes in read.values() for _, score in votes] == [
            type(score) for votes in pairs.values() for _, score in votes
        ]
        assert row["agreed"] == agreed_vote(pairs, DEFAULT)
        assert (row["id"], row["letters"]) == (original["id"], 1)
