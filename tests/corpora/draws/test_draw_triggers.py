"""Draws of unread posts on which the detectors agree and a predictor differs."""

import pytest

from corpora.core import CorpusError
from corpora.draws.language_draws import sample_triggers
from corpora.predictions.predictor_labels import Predictor, find_predictor
from tests.corpora.draws.test_draw_by_language import MINE, corpus_of, in_order, keys, stream

pytestmark = pytest.mark.django_db

ROWS = [row | {"label": "hr"} if n % 11 == 0 else row for n, row in enumerate(stream())]
# The labels on which the detectors agree. sh also stands for hr.
UNREAD = {row["id"]: ("de", "en", "sh")[n % 3] for n, row in enumerate(ROWS) if n % 2 == 0}


@pytest.fixture(scope="module")
def begin(make_world, tmp_path_factory):
    return make_world(corpus_of, ROWS, tmp_path_factory.mktemp("files"))


@pytest.fixture
def corpus(begin, data_dir):
    return begin(data_dir)


def frame(language):
    return [row["id"] for row in ROWS if row["label"] == language and UNREAD.get(row["id"], language) != language]


def draw(corpus, *languages, size=None, predictor=MINE, unread=UNREAD):
    how = {"size": size, "seed": "7", "predictor": predictor, "of": "stream", "unread": unread}
    return {sample.language: sample for sample in sample_triggers(corpus, languages or None, **how)}


def test_unread_posts_are_drawn_that_the_predictor_labels_so_and_the_detectors_otherwise(corpus):
    samples = draw(corpus, "de", "en")
    assert set(samples) == {"de", "en"}
    for language, sample in samples.items():
        assert keys(sample) == in_order(frame(language), "7", language)
        assert sample.size == sample.frame_size == sample.asked == len(frame(language)) > 10
        assert (sample.design, sample.predictor, sample.parameters) == ("triggers", "mine@1", {"of": "stream"})
    some = draw(corpus, "de", size=3)["de"]
    assert (some.size, some.asked, some.frame_size) == (3, 3, len(frame("de")))
    assert keys(some) == keys(samples["de"])[:3]
    sizes = {language: sample.size for language, sample in draw(corpus, unread={}).items()}
    assert sizes == dict.fromkeys(("de", "en", "hr", "sl"), 0), "where all was read, each draw is empty"


def test_a_label_that_stands_for_the_detectors_label_or_is_part_of_it_is_no_other_label(corpus):
    english, serbo_croatian = ({key for key, label in UNREAD.items() if label == code} for code in ("en", "sh"))
    coarse = Predictor("mine", "1", {"de": ("en", "nl")})
    assert set(keys(draw(corpus, "de", predictor=coarse)["de"])) == set(frame("de")) - english
    croatian = set(frame("hr"))
    assert set(keys(draw(corpus, "hr")["hr"])) == croatian - serbo_croatian < croatian


@pytest.mark.parametrize("name", ["cld2", "majority"])
def test_a_predictor_that_voted_has_no_triggers(corpus, name):
    with pytest.raises(CorpusError, match=f"{name} voted in the task stream, so it has the same label"):
        draw(corpus, "de", predictor=find_predictor("c", name))
