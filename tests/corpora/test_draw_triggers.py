"""Draws of the posts that a predictor labels otherwise than the detectors, which agree, and that nobody has read."""

import hashlib

import pytest

from corpora.core import CorpusError
from corpora.draws.language_draws import sample_triggers
from corpora.predictions.predictor_labels import Predictor, find_predictor
from tests.corpora.test_draw_by_language import MINE, corpus_of, stream

pytestmark = pytest.mark.django_db

ROWS = [row | {"label": "hr"} if n % 11 == 0 else row for n, row in enumerate(stream())]
# What the detectors are taken to agree on; hr is one of the labels that sh stands for.
UNREAD = {row["id"]: ("de", "en", "sh")[n % 3] for n, row in enumerate(ROWS) if n % 2 == 0}


@pytest.fixture(scope="module")
def begin(make_world, tmp_path_factory):
    return make_world(corpus_of, ROWS, tmp_path_factory.mktemp("files"))


@pytest.fixture
def corpus(begin, data_dir):
    return begin(data_dir)


def frame(language):
    return [row["id"] for row in ROWS if row["label"] == language and UNREAD.get(row["id"], language) != language]


def draw(corpus, *languages, size=None, predictor=MINE, unread=UNREAD, seed="7"):
    found = sample_triggers(
        corpus, languages or None, size=size, seed=seed, predictor=predictor, of="stream", unread=unread
    )
    return {sample.language: sample for sample in found}


def ids(sample):
    return [row["id"] for row in sample.rows]


def ticket(language, key):
    return hashlib.md5(f"7:{language}:{key}".encode()).hexdigest()


def test_all_unread_posts_are_drawn_that_the_predictor_labels_so_and_the_detectors_otherwise(corpus):
    found = draw(corpus, "de", "en")
    assert set(found) == {"de", "en"}
    for language, sample in found.items():
        assert ids(sample) == sorted(frame(language), key=lambda key: ticket(language, key))
        assert sample.size == sample.frame_size == sample.asked == len(frame(language)) > 10
        assert (sample.design, sample.predictor, sample.parameters) == ("triggers", "mine@1", {"of": "stream"})


def test_a_size_takes_the_first_by_lot_of_each_language_and_the_frame_is_told(corpus):
    some, more = draw(corpus, "de", size=3)["de"], draw(corpus, "de", size=8)["de"]
    assert (some.size, some.asked, some.frame_size) == (3, 3, len(frame("de")))
    assert ids(more)[:3] == ids(some)


def test_the_detectors_label_is_no_other_one_where_the_predictors_stands_for_it_or_is_part_of_it(corpus):
    english, serbo_croatian = ({key for key, label in UNREAD.items() if label == code} for code in ("en", "sh"))
    coarse = Predictor("mine", "1", {"de": ("en", "nl")})
    assert set(ids(draw(corpus, "de", predictor=coarse)["de"])) == set(frame("de")) - english
    croatian = set(frame("hr"))
    assert set(ids(draw(corpus, "hr")["hr"])) == croatian - serbo_croatian < croatian


def test_a_language_without_such_posts_has_an_empty_draw_and_so_has_each_where_all_was_read(corpus):
    assert {language: sample.size for language, sample in draw(corpus, unread={}).items()} == dict.fromkeys(
        ("de", "en", "hr", "sl"), 0
    )


@pytest.mark.parametrize("name", ["cld2", "majority"])
def test_a_predictor_that_voted_is_told_that_it_has_none(corpus, name):
    with pytest.raises(CorpusError, match=f"{name} voted in the task stream: where the detectors agree it says what"):
        draw(corpus, "de", predictor=find_predictor("c", name))
