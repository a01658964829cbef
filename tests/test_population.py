"""The three designs against a known truth: a small run of the benchmark `population`, which uses 200 seeds."""

import json
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from django.conf import settings as django_settings
from django.test import override_settings

from annotate.actions.registry import call_command
from benchmarks import population_report, population_work
from benchmarks.place import BenchmarkFailed
from benchmarks.population_report import cells_of
from benchmarks.population_stream import HISTORY, WINDOW, AuthorModel, make_stream, write_jsonl
from benchmarks.population_work import NAME, cells, frames, load, samples, truths
from corpora.core.languages import UND
from corpora.models import Corpus
from corpora.predictions.predictor_labels import find_predictor, predicted_labels

POSTS = 5_000
SEEDS = [f"small-{number}" for number in range(6)]
PREDICTOR = "fasttext"
# An import creates a row.
pytestmark = [pytest.mark.django_db, pytest.mark.slow]
SIZES = {"uniform": 400, "recall": 60, "precision": 60}
# Rounded from the benchmark's figures on the users of TweetLID.
MODEL = AuthorModel(
    tail=3.0,
    scale=25.0,
    undefined=(0.7, 12.0),
    two=0.22,
    main_of_two=0.63,
    main_of_one=(56.0, 1.7),
    second=0.91,
    english=0.38,
    mixed=0.51,
)
SHARES = {"en": 0.3, "es": 0.2, "pt": 0.15, "id": 0.12, "tr": 0.06, "ms": 0.04, "da": 0.02, "no": 0.02, UND: 0.09}


@pytest.fixture(scope="module")
def pools():
    """Return the texts of the demo by language."""
    fixtures = django_settings.BASE_DIR / "fixtures"
    truth = dict(line.split("\t") for line in (fixtures / "demo_truth.tsv").read_text(encoding="utf-8").splitlines())
    texts = {}
    for line in (fixtures / "demo_posts.jsonl").read_text(encoding="utf-8").splitlines():
        post = json.loads(line)
        texts.setdefault(truth[post["id"]], []).append(post["text"])
    return texts


def stream_of(pools, seed="small", posts=POSTS):
    return make_stream(pools, SHARES, MODEL, posts=posts, habit=0.5, seed=seed)


@pytest.fixture(scope="module")
def made(pools, django_db_setup, django_db_blocker, tmp_path_factory):
    """The stream, the data folder of its prelabelled corpus, and the true values."""
    folder = tmp_path_factory.mktemp("population")
    stream = stream_of(pools)
    write_jsonl(stream, folder / "posts.jsonl")
    with override_settings(DATA_DIR=folder / "var"), django_db_blocker.unblock():
        call_command("import_corpus", NAME, str(folder / "posts.jsonl"), licence="CC-BY-4.0", verbosity=0)
        call_command("prelabel", NAME, processes=1)
        Corpus.objects.all().delete()
        population = load(NAME, {post.id: post.label for post in stream})
        drawn = frames(population, PREDICTOR)
    return SimpleNamespace(stream=stream, data=folder / "var", population=population, drawn=drawn)


@pytest.fixture
def corpus(made, settings):
    """The corpus, which is not in the database, because draws only read files."""
    settings.DATA_DIR = made.data
    return Corpus(name=NAME)


def test_the_intervals_cover_what_is_true_of_the_frames_and_are_printed(made, corpus, capsys):
    truth = json.loads(json.dumps(truths(made.population, made.drawn, PREDICTOR)))
    counted = [cells(made.population, corpus, made.drawn, PREDICTOR, SIZES, seed) for seed in SEEDS]
    all_cells = list(cells_of(truth, counted))
    plain = [cell for cell in all_cells if cell.plain]
    assert {cell.design for cell in plain} == {"uniform", "recall", "precision"}
    assert len(plain) > 250
    covered = sum(cell.covers(cell.truth) for cell in plain) / len(plain)
    assert 0.92 <= covered <= 0.985
    others = [cell for cell in all_cells if not cell.plain]
    assert sum(cell.covers(cell.truth) for cell in others) / len(others) >= 0.93
    # an interval can fail: the intervals of a worse detector, with a sixth fewer hits, do not cover the truth
    worse = [cell._replace(hits=round(cell.hits * 5 / 6)) for cell in plain]
    assert sum(cell.covers(cell.truth) for cell in worse) / len(worse) < 0.75
    with pytest.raises(BenchmarkFailed, match="instead of 93%-97%"):
        population_report.check(worse)
    population_report.report(truth, list(cells_of(truth, counted[:1])), PREDICTOR, detail=True)
    printed = capsys.readouterr().out
    assert "under a tenth drawn, truth between 0 and 1" in printed
    assert "recall recall es majority" in printed


def test_the_recall_frame_holds_chosen_authors_posts_of_the_later_window_only(made, corpus):
    labels = predicted_labels(NAME, find_predictor(NAME, PREDICTOR), [post.id for post in made.stream])
    by_id = {post.id: post for post in made.stream}
    history, spanish = Counter(), Counter()
    for post in made.stream:
        if HISTORY[0] <= post.posted_at < HISTORY[1]:
            history[post.author] += 1
            spanish[post.author] += labels[post.id] == "es"
    chosen = {author for author in history if 10 * spanish[author] >= history[author]}
    assert 0 < len(chosen) < len(history)
    frame = {post.id for post in made.stream if post.author in chosen and WINDOW[0] <= post.posted_at < WINDOW[1]}
    (sample,) = [
        sample
        for sample in samples(corpus, made.drawn, PREDICTOR, SIZES | {"recall": POSTS}, "all")
        if (sample.design, sample.language) == ("recall", "es")
    ]
    assert {row["id"] for row in sample.rows} == frame
    assert {by_id[key].label for key in frame} > {"es", "en", UND}
    # A frame that differs from the computed one stops the benchmark.
    places = made.drawn["recall", "es"]
    assert len(population_work.places_of(made.population, sample, places)) == len(frame)
    with pytest.raises(BenchmarkFailed, match="has a frame of"):
        population_work.places_of(made.population, sample, places[1:])
    elsewhere = np.setdiff1d(np.arange(POSTS), places)[: len(places)]
    with pytest.raises(BenchmarkFailed, match="not in its frame"):
        population_work.places_of(made.population, replace(sample, frame_size=len(elsewhere)), elsewhere)
