"""Recall- and precision-oriented draws, compared with the same draws computed in Python."""

import hashlib
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from django.db import IntegrityError, transaction

from annotate.actions.registry import call_command
from corpora.core import CorpusError
from corpora.draws.language_draws import HISTORY, WINDOW, ids_in_frame, sample_precision, sample_recall
from corpora.draws.samples import frame_of, record, sample_uniform
from corpora.models import Corpus, Draw, Item
from corpora.predictions.predictor_labels import Predictor, find_predictor
from corpora.storage.layout import manifest_of
from tests.corpora.conftest import as_jsonl

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

LANGUAGES = ["de", "en", "sl"]
MINE = Predictor("mine", "1")


def stream(seed=1, authors=40, posts=1500):
    """Posts with a classifier's labels. Some lack an author or a time, and some are at the edge of a window."""
    rng = random.Random(seed)
    main = {f"a{n}": rng.choice([*LANGUAGES, "und"]) for n in range(authors)}
    edges = [*HISTORY, *WINDOW, *(moment - timedelta(microseconds=1) for moment in (*HISTORY, *WINDOW))]

    def post(n):
        author = rng.choice(list(main))
        label = main[author] if rng.random() < 0.8 else rng.choice([*LANGUAGES, "und"])
        moment = HISTORY[0] + timedelta(seconds=rng.randrange(-10 * 86400, 180 * 86400))
        moment = moment if n % 17 else rng.choice(edges)
        author, posted_at = author if n % 31 else "", moment.isoformat() if n % 29 else ""
        return {"id": str(n), "text": f"Satz {n}.", "author": author, "posted_at": posted_at, "label": label}

    return [post(n) for n in range(posts)]


ROWS = stream()


def corpus_of(rows, folder, *, name="c", votes=True):
    """Return a function that creates a corpus from rows, with votes and the predictor mine@1."""
    posts, predictions = folder / "posts.jsonl", folder / "p.tsv"
    posts.write_text(as_jsonl([{k: v for k, v in row.items() if k != "label"} for row in rows]))
    call_command("import_corpus", name, str(posts), licence="CC0-1.0")
    if votes:
        call_command("prelabel", name, processes=1)
    predictions.write_text("".join(f"{row['id']}\t{row['label']}\n" for row in rows))
    call_command("import_predictions", name, str(predictions), name="mine", version="1")
    return Corpus.objects.get(name=name)


@pytest.fixture
def make(tmp_path):
    return lambda rows, **how: corpus_of(rows, tmp_path, **how)


@pytest.fixture(scope="module")
def begin(make_world, tmp_path_factory):
    return make_world(corpus_of, ROWS, tmp_path_factory.mktemp("files"))


@pytest.fixture
def corpus(begin, data_dir):
    return begin(data_dir)


def within(row, window):
    return bool(row["posted_at"]) and window[0] <= datetime.fromisoformat(row["posted_at"]) < window[1]


def authors_of(language, rows, share, least_posts, history=HISTORY):
    posts, labelled = Counter(), Counter()
    for row in rows:
        if row["author"] and within(row, history):
            posts[row["author"]] += 1
            labelled[row["author"]] += row["label"] == language
    return {a for a in labelled if labelled[a] and posts[a] >= least_posts and labelled[a] / posts[a] >= share - 1e-12}


def in_order(ids, seed, language):
    return sorted(ids, key=lambda key: (hashlib.md5(f"{seed}:{language}:{key}".encode()).hexdigest(), key))


def keys(sample):
    return [row["id"] for row in sample.rows]


@pytest.mark.parametrize(("share", "least_posts"), [(Fraction(1, 10), 1), (Fraction(1, 2), 5), (Fraction(1), 1)])
def test_a_recall_draw_is_of_all_later_posts_by_authors_who_wrote_in_the_language(corpus, share, least_posts):
    samples = sample_recall(corpus, None, size=30, seed="s", predictor=MINE, share=share, least_posts=least_posts)
    assert [sample.language for sample in samples] == LANGUAGES
    for sample in samples:
        authors = authors_of(sample.language, ROWS, float(share), least_posts)
        frame = [row["id"] for row in ROWS if row["author"] in authors and within(row, WINDOW)]
        assert keys(sample) == in_order(frame, "s", sample.language)[:30]
        assert (sample.frame_size, sample.size, sample.asked) == (len(frame), min(30, len(frame)), 30)
        assert sample.parameters == {
            "share": str(share),
            "least_posts": least_posts,
            "history": ["2014-03-01T00:00:00+00:00", "2014-06-01T00:00:00+00:00"],
            "window": ["2014-07-01T00:00:00+00:00", "2014-08-01T00:00:00+00:00"],
            "authors": len(authors),
            "posts_without_time": sum(not row["posted_at"] for row in ROWS),
            "posts_without_author": sum(not row["author"] for row in ROWS),
        }
        labels = {row["label"] for row in ROWS if row["id"] in keys(sample)}
        assert share == 1 or not sample.rows or len(labels) > 1, "only posts labelled with the language were drawn"
        ids = [row["id"] for row in ROWS][::3]
        reach = ids_in_frame("c", "mine@1", sample.parameters, sample.digest, [sample.language], ids)
        assert reach == {sample.language: set(ids) & set(frame)}
    with pytest.raises(CorpusError, match="have changed since the draw was made"):
        ids_in_frame("c", "mine@1", samples[0].parameters, "another", ["de"], ids)


@pytest.mark.parametrize("window", [None, WINDOW])
def test_a_precision_draw_is_of_posts_that_the_predictor_labels_with_the_language(corpus, window):
    samples = sample_precision(corpus, None, size=40, seed="s", predictor=MINE, window=window)
    assert [sample.language for sample in samples] == LANGUAGES
    for sample in samples:
        labelled = [row for row in ROWS if row["label"] == sample.language]
        frame = [row["id"] for row in labelled if window is None or within(row, window)]
        assert keys(sample) == in_order(frame, "s", sample.language)[:40]
        assert (sample.frame_size, sample.size) == (len(frame), min(40, len(frame)))
        assert sample.parameters.get("window") == (window and [moment.isoformat() for moment in window])


@pytest.mark.parametrize("draw", [sample_recall, sample_precision])
def test_a_language_has_the_same_draw_alone_and_with_others(corpus, draw):
    together = draw(corpus, None, size=30, seed="s", predictor=MINE)
    for sample in together:
        (alone,) = draw(corpus, [sample.language], size=30, seed="s", predictor=MINE)
        assert alone == sample
    assert [s.language for s in draw(corpus, ["sl", "de", "sl"], size=30, seed="s", predictor=MINE)] == ["de", "sl"]
    (other,) = draw(corpus, ["de"], size=30, seed="t", predictor=MINE)
    assert keys(other) != keys(together[0])
    (larger,) = draw(corpus, ["de"], size=60, seed="s", predictor=MINE)
    assert keys(larger)[:30] == keys(together[0])


def test_a_share_is_compared_as_an_exact_fraction(make):
    def posts(author, of, labelled):
        for n in range(of):
            moment = HISTORY[0] + timedelta(hours=n)
            label = "de" if n < labelled else "en"
            yield {"id": f"{author}{n}", "text": "x", "author": author, "posted_at": moment.isoformat(), "label": label}
        yield {"id": author, "text": "x", "author": author, "posted_at": "2014-07-05T00:00:00Z", "label": "und"}

    # 7 of 100 are 7%, although 0.07 * 100 > 7 in binary fractions; 6 of 99 are less.
    assert 0.07 * 100 > 7
    corpus = make([*posts("exact", 100, 7), *posts("below", 99, 6), *posts("above", 99, 7), *posts("none", 5, 0)])
    for share in (Fraction(7, 100), 0.07, "7/100"):
        (sample,) = sample_recall(corpus, ["de"], size=9, seed="s", predictor=MINE, share=share)
        assert sorted(keys(sample)) == ["above", "exact"]
        assert sample.parameters["share"] == "7/100"
    (sample,) = sample_recall(corpus, ["de"], size=9, seed="s", predictor=MINE, share="7/100", least_posts=100)
    assert keys(sample) == ["exact"], "it alone has 100 posts in the history"


def test_a_draw_is_recorded_with_all_that_made_it_and_a_post_of_several_draws_is_one_item(corpus):
    samples = sample_recall(corpus, None, size=200, seed="s", predictor=find_predictor("c", "mine"))
    (sample,) = (one for one in samples if one.language == "sl")
    assert not Draw.objects.exists()
    draw, items = record(sample)
    assert [item.key for item in items] == keys(sample)
    draw.refresh_from_db()
    assert (draw.design, draw.language, draw.predictor, draw.asked) == ("recall", "sl", "mine@1", 200)
    assert (draw.size, draw.frame_size, draw.parameters) == (sample.size, sample.frame_size, sample.parameters)
    assert draw.chance == sample.size / sample.frame_size
    manifest = manifest_of("c")
    assert (
        draw.frame_digest == frame_of(manifest, 1, manifest.predictions[0])["digest"] != frame_of(manifest, 1)["digest"]
    )
    assert "for sl" in str(draw)
    assert Item.objects.get(pk=items[0].pk).votes.keys() == {"langid", "cld2", "fasttext"}
    for one in samples:
        record(one)
    record(sample_uniform(corpus, size=100, seed="s"))
    drawn = [key for one in samples for key in keys(one)]
    assert len(set(drawn)) < len(drawn)
    assert set(drawn) <= set(Item.objects.values_list("key", flat=True))
    with pytest.raises(IntegrityError), transaction.atomic():
        Draw.objects.filter(pk=draw.pk).update(size=draw.frame_size + 1)


def test_a_language_without_a_frame_gives_an_empty_draw(corpus):
    for draw in (sample_recall, sample_precision):
        empty, some = draw(corpus, ["cs", "de"], size=5, seed="s", predictor=MINE)
        assert (empty.language, list(empty.rows), empty.size, empty.frame_size, empty.asked) == ("cs", [], 0, 0, 5)
        assert some.size == 5
    made, items = record(empty)
    assert (made.chance, items) == (0, [])


def test_a_draw_is_for_labels_that_the_predictor_has(make, write):
    rows = stream(posts=200)
    corpus = make([{**row, "label": "zh-CN" if row["label"] == "de" else row["label"]} for row in rows])
    coarse_labels = "".join(f"{row['id']}\t{'sh' if row['label'] == 'de' else row['label']}\n" for row in rows)
    file = write("q.tsv", coarse_labels)
    call_command("import_predictions", "c", str(file), name="mine", version="2", map=["sh=bs,hr,sr"])
    cld2, majority, coarse = (find_predictor("c", name) for name in ("cld2", "majority", "mine@2"))
    for language, predictor, sentence in [
        ("zh-CN", cld2, "cld2 does not assign zh-CN, but zh instead. Draw for zh"),
        ("zh-TW", majority, "majority does not assign zh-TW, but zh instead"),
        ("ckb", majority, "majority cannot assign ckb. Use a predictor that can"),
        ("ckb", cld2, "cld2 cannot assign ckb. Use a predictor that can"),
        ("zh", MINE, "mine@1 does not assign zh, but zh-CN instead. Draw for zh-CN"),
        ("xx", MINE, "'xx' is not a known language"),
        ("und", MINE, "'und' is not a known language"),
        ("hr", coarse, "mine@2 does not assign hr, but sh instead. Draw for sh"),
    ]:
        with pytest.raises(CorpusError, match=sentence):
            sample_precision(corpus, [language], size=5, seed="s", predictor=predictor)
    with pytest.raises(CorpusError, match="No language is selected"):
        sample_recall(corpus, [], size=5, seed="s", predictor=MINE)
    (zh,) = sample_precision(corpus, ["zh"], size=5, seed="s", predictor=cld2)
    assert (zh.language, zh.predictor) == ("zh", "cld2")
    # fastText has a code for Croatian, and also a coarse class that contains it
    assert sample_precision(corpus, ["hr"], size=5, seed="s", predictor=find_predictor("c", "fasttext"))
    assert "und" not in {s.language for s in sample_precision(corpus, None, size=5, seed="s", predictor=majority)}
    (sample,) = sample_precision(corpus, ["sh"], size=500, seed="s", predictor=coarse)
    assert sorted(keys(sample)) == sorted(row["id"] for row in rows if row["label"] == "de")


def days(start, end):
    return tuple(datetime(2014, *day, tzinfo=UTC) for day in (start, end))


RECALL, PRECISION = sample_recall, sample_precision


@pytest.mark.parametrize(
    ("draw", "how", "sentence"),
    [
        (RECALL, {"size": 0}, "must be at least one post"),
        (RECALL, {"seed": ""}, "The seed has 0 characters"),
        (RECALL, {"history": days((3, 1), (7, 2))}, r"history \(2014-03-01 to 2014-07-02\) must end before the window"),
        (RECALL, {"history": days((3, 1), (3, 1))}, r"The history \(2014-03-01 to 2014-03-01\) is empty"),
        (RECALL, {"window": days((8, 1), (7, 1))}, r"The window \(2014-08-01 to 2014-07-01\) is empty"),
        (PRECISION, {"window": days((8, 1), (7, 1))}, r"The window \(2014-08-01 to 2014-07-01\) is empty"),
        (RECALL, {"window": tuple(moment.replace(tzinfo=None) for moment in WINDOW)}, "must have an offset"),
        (RECALL, {"history": days((1, 1), (2, 1))}, r"No post with an author in .* is in the history \(2014-01-01"),
        (RECALL, {"window": days((12, 1), (12, 2))}, r"\(2014-12-01 to 2014-12-02\). The posts of the corpus date "),
        (PRECISION, {"window": days((12, 1), (12, 2))}, r"No post in corpus c is in the window \(2014-12-01 to 2014"),
        (RECALL, {"share": Fraction(0)}, "must be greater than 0 and at most 1"),
        (RECALL, {"share": Fraction(1, 10**9)}, "Round it to six decimal places"),
        (RECALL, {"least_posts": 0}, "must be at least 1"),
        (RECALL, {"predictor": Predictor("other", "1")}, "Corpus c has no predictions by other@1"),
        (RECALL, {"languages": ["xx"]}, "'xx' is not a known language"),
    ],
)
def test_what_cannot_be_drawn_is_explained_and_nothing_is_drawn(corpus, draw, how, sentence):
    with pytest.raises(CorpusError, match=sentence):
        draw(corpus, **({"languages": None, "size": 5, "seed": "s", "predictor": MINE} | how))
    assert not Draw.objects.exists()
    assert not Item.objects.exists()


def test_what_a_corpus_lacks_for_a_draw_is_explained(make, write, import_corpus):
    def refuses(draw, corpus, sentence, **how):
        with pytest.raises(CorpusError, match=sentence):
            draw(corpus, None, **{"size": 5, "seed": "s", "predictor": MINE} | how)

    rows = stream(posts=50)
    without_authors = make([{**row, "author": ""} for row in rows], name="a")
    refuses(RECALL, without_authors, "No post in corpus a has an author")
    assert sample_precision(without_authors, None, size=5, seed="s", predictor=MINE)
    without_times = make([{**row, "posted_at": ""} for row in rows], name="t")
    refuses(RECALL, without_times, "No post in corpus t has a time")
    refuses(PRECISION, without_times, "No post in corpus t has a time", window=WINDOW)
    without_languages = make([{**row, "label": "und"} for row in rows], name="u")
    refuses(PRECISION, without_languages, "mine@1 assigns no language to any post, so nothing can be drawn")
    corpus = make(rows, votes=False)
    for predictor in (MINE, Predictor("cld2")):
        refuses(PRECISION, corpus, "posts in corpus c have no votes. Run `assay prelabel c`", predictor=predictor)
    import_corpus("c", write("more.jsonl", [{"id": "new", "text": "Noch einer."}]))
    call_command("prelabel", "c", processes=1)
    refuses(PRECISION, corpus, "cover only 50 of 51 posts in corpus c. Import predictions for all posts")
