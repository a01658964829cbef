"""Draws from a corpus."""

import hashlib
from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotate.actions.commands import call_command
from corpora.core import CorpusError
from corpora.draws.samples import frame_digest, record, sample_uniform
from corpora.models import Corpus, Draw, Item
from corpora.storage.layout import manifest_of

pytestmark = pytest.mark.django_db

SIZE = 300
ROWS = [
    {
        "id": str(n),
        "text": f"Das ist Satz Nummer {n}.",
        "author": "ann",
        "posted_at": 1404216000,
        "url": "https://e.org/",
    }
    for n in range(SIZE)
]


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
    assert draw.frame_digest == frame_digest(manifest_of("c"), 2)
    assert set(keys(items)) == set(Item.objects.values_list("key", flat=True))


def test_the_digest_of_a_frame_does_not_depend_on_the_key_that_hashes_authors(write, import_corpus, settings):
    posts = [
        {
            "id": str(number),
            "text": f"Guten Morgen {number}",
            "author": f"a{number}",
            "posted_at": "2014-07-01T14:00:00Z",
        }
        for number in range(5)
    ]
    digests = []
    for name, key, rows in (
        ("one", "first key", posts),
        ("two", "second key", posts),
        ("other", "first key", [*posts[1:], posts[0] | {"text": "Guten Abend"}]),
    ):
        settings.AUTHOR_KEY = key
        import_corpus(name, write(f"{name}.jsonl", rows))
        call_command("prelabel", name, processes=1)
        digests.append((manifest_of(name).parts[0].sha256, frame_digest(manifest_of(name), 1)))
    (one, same), (two, as_well), (_, other) = digests
    assert one != two
    assert same == as_well != other


@pytest.mark.sqlite_only
def test_what_an_earlier_draw_made_is_found_by_its_ids_and_not_among_all_of_the_corpus(corpus):
    draw_uniform(corpus, size=50, seed="s")
    with CaptureQueriesContext(connection) as asked:
        draw_uniform(corpus, size=120, seed="s")
    [sql] = [each["sql"] for each in asked.captured_queries if "json_each" in each["sql"]]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
        assert "(corpus_id=? AND key=?)" in "\n".join(row[-1] for row in cursor.fetchall())


def test_an_item_holds_the_post_and_its_votes(corpus):
    _, items = draw_uniform(corpus, size=1, seed="s")
    item = Item.objects.get(pk=items[0].pk)
    assert item.text == f"Das ist Satz Nummer {item.key}."
    assert item.posted_at == datetime(2014, 7, 1, 12, tzinfo=UTC)
    assert (item.url, len(item.author), item.letters) == ("https://e.org/", 32, 16)
    assert item.votes.keys() == {"langid", "cld2", "fasttext"}
    assert [ranking[0][0] for ranking in item.votes.values()] == ["de", "de", "de"]
    assert all(0 <= score <= 1 for ranking in item.votes.values() for _, score in ranking)


def test_the_seed_decides(corpus):
    one, two = draw_uniform(corpus, size=50, seed="s")[1], draw_uniform(corpus, size=50, seed="t")[1]
    assert keys(one) != keys(two)
    assert keys(two) == in_order_of("t")[:50]


def test_a_larger_draw_contains_the_smaller_and_shares_its_items(corpus):
    _, small = draw_uniform(corpus, size=50, seed="s")
    _, large = draw_uniform(corpus, size=120, seed="s")
    assert [item.pk for item in large[:50]] == [item.pk for item in small]
    assert Item.objects.count() == 120


def test_an_extension_adds_only_what_is_new(corpus):
    draw, small = draw_uniform(corpus, size=50, seed="s")
    larger, added = draw_uniform(corpus, size=120, seed="s", extends=draw)
    assert keys(small) + keys(added) == in_order_of("s")[:120]
    assert (larger.extends, larger.size, larger.chance) == (draw, 120, 120 / SIZE)


def test_an_extension_stays_in_its_frame_when_the_corpus_has_grown(corpus, write, import_corpus):
    draw, _ = draw_uniform(corpus, size=50, seed="s")
    import_corpus("c", write("c.jsonl", [{"id": f"new{n}", "text": "Noch ein Satz."} for n in range(500)]))
    larger, added = draw_uniform(corpus, size=150, seed="s", extends=draw)  # the new part has no votes yet
    assert keys(added) == in_order_of("s")[50:150]
    assert (larger.parts, larger.frame_size, larger.frame_digest) == (2, SIZE, draw.frame_digest)
    with pytest.raises(CorpusError, match="run `assay prelabel c`"):
        draw_uniform(corpus, size=150, seed="s")
    call_command("prelabel", "c", processes=1)
    fresh, items = draw_uniform(corpus, size=400, seed="s")
    assert fresh.frame_size == SIZE + 500
    assert any(item.key.startswith("new") for item in items)


def test_all_are_taken_where_there_are_fewer_than_asked(corpus):
    draw, items = draw_uniform(corpus, size=5000, seed="s")
    assert (draw.asked, draw.size, len(items), draw.chance) == (5000, SIZE, SIZE, 1)
    with pytest.raises(CorpusError, match=r"300 of 300 posts already.*those that came later are not among them"):
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
        (corpus, 70, "s", draw, "has been extended before"),
        (corpus, 70, "t", apart, "has the seed 'apart'"),
        (corpus, 50, "apart", apart, "ask for more"),
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


def test_a_corpus_without_votes_names_the_command_to_run(write, import_corpus):
    import_corpus("c", write("a.jsonl", ROWS))
    with pytest.raises(CorpusError, match="posts without votes; run `assay prelabel c`"):
        draw_uniform(Corpus.objects.get(), size=5, seed="s")


def test_a_draw_keeps_the_versions_that_voted_and_refuses_posts_drawn_before_with_other_votes(corpus):
    draw, _ = draw_uniform(corpus, size=50, seed="s")
    assert draw.detectors == [manifest_of(corpus.name).votes[0].versions]
    call_command("prelabel", corpus.name, k=1, again=True, processes=1)
    with pytest.raises(CorpusError, match="was drawn before, with other votes than corpus"):
        draw_uniform(corpus, size=60, seed="t")
    assert Draw.objects.get() == draw
