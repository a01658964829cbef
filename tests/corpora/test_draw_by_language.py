"""Recall- and precision-oriented draws, against the same worked out anew in Python."""

import hashlib
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from django.db import IntegrityError, transaction

from annotate.actions.commands import call_command
from corpora.core import CorpusError
from corpora.draws.language_draws import HISTORY, WINDOW, sample_precision, sample_recall, within_reach
from corpora.draws.samples import frame_digest, record, sample_uniform
from corpora.models import Corpus, Draw, Item
from corpora.predictions.predictor_labels import Predictor, find_predictor
from corpora.storage.layout import manifest_of
from tests.corpora.conftest import as_jsonl

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

LANGUAGES = ["de", "en", "sl"]
MINE = Predictor("mine", "1")


def stream(seed=1, authors=40, posts=1500):
    """Posts with what a classifier says of each; some lack an author or a time, some are on the edge of a window."""
    rng = random.Random(seed)
    main = {f"a{n}": rng.choice([*LANGUAGES, "und"]) for n in range(authors)}
    edges = [*HISTORY, *WINDOW, *(moment - timedelta(microseconds=1) for moment in (*HISTORY, *WINDOW))]
    rows = []
    for n in range(posts):
        author = rng.choice(list(main))
        label = main[author] if rng.random() < 0.8 else rng.choice([*LANGUAGES, "und"])
        moment = HISTORY[0] + timedelta(seconds=rng.randrange(-10 * 86400, 180 * 86400))
        if n % 17 == 0:
            moment = rng.choice(edges)
        rows.append(
            {
                "id": str(n),
                "text": f"Satz {n}.",
                "author": author if n % 31 else "",
                "posted_at": moment.isoformat() if n % 29 else "",
                "label": label,
            }
        )
    return rows


@pytest.fixture
def rows():
    return stream()


def corpus_of(rows, folder, *, name="c", votes=True):
    """Makes the corpus of rows, with votes and the predictor mine@1."""
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
    return make_world(corpus_of, stream(), tmp_path_factory.mktemp("files"))


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
def test_a_recall_draw_is_of_all_later_posts_by_authors_who_wrote_in_the_language(corpus, rows, share, least_posts):
    samples = sample_recall(corpus, None, size=30, seed="s", predictor=MINE, share=share, least_posts=least_posts)
    assert [sample.language for sample in samples] == LANGUAGES
    for sample in samples:
        authors = authors_of(sample.language, rows, float(share), least_posts)
        frame = [row["id"] for row in rows if row["author"] in authors and within(row, WINDOW)]
        assert keys(sample) == in_order(frame, "s", sample.language)[:30]
        assert (sample.frame_size, sample.size, sample.asked) == (len(frame), min(30, len(frame)), 30)
        assert sample.parameters == {
            "share": str(share),
            "least_posts": least_posts,
            "history": ["2014-03-01T00:00:00+00:00", "2014-06-01T00:00:00+00:00"],
            "window": ["2014-07-01T00:00:00+00:00", "2014-08-01T00:00:00+00:00"],
            "authors": len(authors),
            "posts_without_time": sum(not row["posted_at"] for row in rows),
            "posts_without_author": sum(not row["author"] for row in rows),
        }
        drawn = [row["label"] for row in rows if row["id"] in keys(sample)]
        assert share == 1 or not sample.rows or len(set(drawn)) > 1, "only posts labelled with the language were drawn"


def test_it_can_be_asked_afterwards_which_posts_a_recall_draw_could_have_taken(corpus, rows):
    samples = sample_recall(corpus, ["de", "sl"], size=30, seed="s", predictor=MINE)
    ids = [row["id"] for row in rows][::3]
    german, slovenian = (
        within_reach("c", "mine@1", sample.parameters, sample.digest, [sample.language], ids)[sample.language]
        for sample in samples
    )
    for found, language in ((german, "de"), (slovenian, "sl")):
        authors = authors_of(language, rows, 0.1, 1)
        assert found == {
            row["id"] for row in rows if row["id"] in ids and row["author"] in authors and within(row, WINDOW)
        }
    assert german
    with pytest.raises(CorpusError, match="no longer the one from which the draw was made"):
        within_reach("c", "mine@1", samples[0].parameters, "another", ["de"], ids)


@pytest.mark.parametrize("window", [None, WINDOW])
def test_a_precision_draw_is_of_posts_that_the_predictor_labels_with_the_language(corpus, rows, window):
    samples = sample_precision(corpus, None, size=40, seed="s", predictor=MINE, window=window)
    assert [sample.language for sample in samples] == LANGUAGES
    for sample in samples:
        frame = [
            row["id"] for row in rows if row["label"] == sample.language and (window is None or within(row, window))
        ]
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


def test_a_draw_is_recorded_with_all_that_made_it(corpus):
    sample = sample_recall(corpus, ["sl"], size=30, seed="s", predictor=find_predictor("c", "mine"))[0]
    assert not Draw.objects.exists()
    draw, items = record(sample)
    assert [item.key for item in items] == keys(sample)
    draw.refresh_from_db()
    assert (draw.design, draw.language, draw.predictor, draw.asked, draw.size) == ("recall", "sl", "mine@1", 30, 30)
    assert (draw.frame_size, draw.parameters) == (sample.frame_size, sample.parameters)
    assert draw.chance == 30 / sample.frame_size
    manifest = manifest_of("c")
    assert draw.frame_digest == frame_digest(manifest, 1, manifest.predictions[0]) != frame_digest(manifest, 1)
    assert "for sl" in str(draw)
    item = Item.objects.get(pk=items[0].pk)
    assert item.votes.keys() == {"langid", "cld2", "fasttext"}


def test_a_post_drawn_for_two_languages_is_one_item(corpus):
    samples = sample_recall(corpus, None, size=200, seed="s", predictor=MINE)
    drawn = [key for sample in samples for key in keys(sample)]
    for sample in samples:
        record(sample)
    record(sample_uniform(corpus, size=100, seed="s"))
    assert len(set(drawn)) < len(drawn)
    assert set(drawn) <= set(Item.objects.values_list("key", flat=True))


def test_a_language_without_a_frame_gives_an_empty_draw(corpus):
    for draw in (sample_recall, sample_precision):
        empty, some = draw(corpus, ["cs", "de"], size=5, seed="s", predictor=MINE)
        assert (empty.language, list(empty.rows), empty.size, empty.frame_size, empty.asked) == ("cs", [], 0, 0, 5)
        assert some.size == 5
    made, items = record(empty)
    assert (made.chance, items) == (0, [])


def test_the_database_refuses_a_draw_larger_than_its_frame(corpus):
    draw, _ = record(sample_precision(corpus, ["de"], size=5, seed="s", predictor=MINE)[0])
    with pytest.raises(IntegrityError), transaction.atomic():
        Draw.objects.filter(pk=draw.pk).update(size=draw.frame_size + 1)


def test_the_detectors_draw_as_well(corpus):
    for name in ("cld2", "majority"):
        samples = sample_precision(corpus, None, size=5, seed="s", predictor=find_predictor("c", name))
        assert samples
        assert all(sample.predictor == name and sample.language != "und" for sample in samples)


def test_labels_that_a_predictor_does_not_have_are_explained(make):
    chinese = [{**row, "label": "zh-CN" if row["label"] == "de" else row["label"]} for row in stream(posts=200)]
    corpus = make(chinese)
    cld2, majority = find_predictor("c", "cld2"), find_predictor("c", "majority")
    for language, predictor, sentence in [
        ("zh-CN", cld2, "cld2 has no label zh-CN, but zh for it; draw for zh"),
        ("zh-TW", majority, "majority has no label zh-TW, but zh for it"),
        ("ckb", majority, "majority does not know ckb; draw for it by a predictor that does"),
        ("ckb", cld2, "cld2 does not know ckb"),
        ("zh", MINE, "mine@1 has no label zh, but zh-CN for it; draw for zh-CN"),
        ("xx", MINE, "'xx' is not a language code known here"),
        ("und", MINE, "'und' is not a language; a draw is for a language"),
    ]:
        with pytest.raises(CorpusError, match=sentence):
            sample_precision(corpus, [language], size=5, seed="s", predictor=predictor)
    with pytest.raises(CorpusError, match="No language is named"):
        sample_recall(corpus, [], size=5, seed="s", predictor=MINE)
    (zh,) = sample_precision(corpus, ["zh"], size=5, seed="s", predictor=cld2)
    assert zh.language == "zh"
    # fastText knows Croatian, though it also has a coarse class for it
    assert sample_precision(corpus, ["hr"], size=5, seed="s", predictor=find_predictor("c", "fasttext"))


def test_a_coarse_class_is_drawn_for_under_its_own_name(make, write):
    rows = stream(posts=200)
    corpus = make(rows)
    said = "".join(f"{row['id']}\t{'sh' if row['label'] == 'de' else row['label']}\n" for row in rows)
    call_command("import_predictions", "c", str(write("q.tsv", said)), name="mine", version="2", map=["sh=bs,hr,sr"])
    coarse = find_predictor("c", "mine@2")
    (sample,) = sample_precision(corpus, ["sh"], size=500, seed="s", predictor=coarse)
    assert sorted(keys(sample)) == sorted(row["id"] for row in rows if row["label"] == "de")
    with pytest.raises(CorpusError, match="mine@2 has no label hr, but sh for it; draw for sh"):
        sample_precision(corpus, ["hr"], size=5, seed="s", predictor=coarse)


def days(start, end):
    return tuple(datetime(2014, *day, tzinfo=UTC) for day in (start, end))


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"size": 0}, "Draw at least one post"),
        ({"seed": ""}, "The seed has 0 characters"),
        (
            {"history": days((3, 1), (7, 2))},
            r"history \(2014-03-01 to 2014-07-02\) must end before the window",
        ),
        ({"history": days((9, 1), (9, 2))}, "must end before the window"),
        ({"history": days((3, 1), (3, 1))}, r"The history \(2014-03-01 to 2014-03-01\) is empty"),
        ({"window": days((8, 1), (7, 1))}, r"The window \(2014-08-01 to 2014-07-01\) is empty"),
        ({"window": tuple(moment.replace(tzinfo=None) for moment in WINDOW)}, "times with an offset"),
        ({"history": days((1, 1), (2, 1))}, r"No post with an author of corpus c is from the history \(2014-01-01 to"),
        (
            {"window": days((12, 1), (12, 2))},
            r"window \(2014-12-01 to 2014-12-02\); the posts that have a time are from 2014-",
        ),
        ({"share": Fraction(0)}, "must be above 0 and at most 1"),
        ({"share": Fraction(3, 2)}, "must be above 0 and at most 1"),
        ({"share": Fraction(1, 10**9)}, "round it to six places"),
        ({"least_posts": 0}, "must be 1 or more"),
        ({"predictor": Predictor("other", "1")}, "There are no predictions of other@1 for corpus c"),
        ({"languages": ["xx"]}, "'xx' is not a language code"),
    ],
)
def test_what_cannot_be_drawn_is_explained_and_nothing_is_drawn(corpus, how, sentence):
    languages = how.pop("languages", None)
    with pytest.raises(CorpusError, match=sentence):
        sample_recall(corpus, languages, **({"size": 5, "seed": "s", "predictor": MINE} | how))
    assert not Draw.objects.exists()
    assert not Item.objects.exists()


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"window": days((8, 1), (7, 1))}, r"The window \(2014-08-01 to 2014-07-01\) is empty"),
        ({"window": days((12, 1), (12, 2))}, r"No post of corpus c is from the window \(2014-12-01 to 2014-12-02\)"),
        ({"size": 0}, "Draw at least one post"),
        ({"seed": "s" * 65}, "The seed has 65 characters"),
    ],
)
def test_what_cannot_be_drawn_for_precision_is_explained(corpus, how, sentence):
    with pytest.raises(CorpusError, match=sentence):
        sample_precision(corpus, None, **({"size": 5, "seed": "s", "predictor": MINE} | how))


@pytest.mark.parametrize(
    ("without", "sentence"),
    [("author", "No post of corpus c has an author"), ("posted_at", "No post of corpus c has a time")],
)
def test_posts_without_any_author_or_time_are_explained(make, without, sentence):
    corpus = make([{**row, without: ""} for row in stream(posts=50)])
    with pytest.raises(CorpusError, match=sentence):
        sample_recall(corpus, None, size=5, seed="s", predictor=MINE)
    assert sample_precision(corpus, None, size=5, seed="s", predictor=MINE)
    if without == "posted_at":
        with pytest.raises(CorpusError, match=sentence):
            sample_precision(corpus, None, size=5, seed="s", predictor=MINE, window=WINDOW)


def test_posts_without_votes_or_predictions_are_explained(make, write, import_corpus):
    corpus = make(stream(posts=50), votes=False)
    for predictor in (MINE, Predictor("cld2")):
        with pytest.raises(CorpusError, match="posts without votes; run `assay prelabel c`"):
            sample_precision(corpus, None, size=5, seed="s", predictor=predictor)
    import_corpus("c", write("more.jsonl", [{"id": "new", "text": "Noch einer."}]))
    call_command("prelabel", "c", processes=1)
    with pytest.raises(CorpusError, match="cover 50 of 51 posts of corpus c; import them again"):
        sample_precision(corpus, None, size=5, seed="s", predictor=MINE)


def test_a_predictor_that_names_no_language_leaves_nothing_to_draw_for(make):
    corpus = make([{**row, "label": "und"} for row in stream(posts=50)])
    with pytest.raises(CorpusError, match="mine@1 labels no post with a language, so there is nothing to draw for"):
        sample_precision(corpus, None, size=5, seed="s", predictor=MINE)
