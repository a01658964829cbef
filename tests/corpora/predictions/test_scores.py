"""import_scores: which pairs of a corpus are kept, and which are dropped because of imported scores."""

import gzip

import pytest
from django.core.management import CommandError

from annotate.actions.registry import call_command
from corpora.core import CorpusError
from corpora.models import Corpus, Draw
from corpora.storage.layout import manifest_of
from corpora.threads.scorers import filter_counts, filter_digest, open_filter
from tests.corpora.on_disk import bytes_of
from tests.corpora.test_threads import MESSAGES, TALK

pytestmark = pytest.mark.django_db


@pytest.fixture
def corpus(write, printed):
    """Three messages in a row, so two pairs, b and c: a and b, b and c."""
    printed("import_threads", "talk", write("talk.jsonl", TALK), licence="CC0-1.0")
    return "talk"


@pytest.fixture
def scoring(corpus, write, printed):
    def run(content, name="detoxify", threshold="0.5", file="scores.tsv", **options):
        return printed("import_scores", corpus, write(file, content), name=name, threshold=threshold, **options)

    return run


def scores_of(corpus="talk"):
    """Return the score by pair and scorer, whether it is missing, and whether the scorer drops the pair."""
    with open_filter(corpus) as store:
        rows = store.connection.table("scores").to_arrow_table().to_pylist()
    return {(row["id"], row["scorer"]): (row["score"], row["lacking"], row["dropped"]) for row in rows}


def dropped_by(corpus="talk"):
    return {key for key, (_, _, dropped) in scores_of(corpus).items() if dropped}


def test_a_pair_has_the_greater_score_of_its_sides_and_is_dropped_above_the_threshold(scoring, corpus):
    assert filter_counts(corpus) == {"pairs": 2, "dropped": 0, "lacking": 0}
    assert scores_of(corpus) == {}
    output = scoring("id,toxicity\na,0.9\nb,0.5\nc,0.1\nz,0.9\n", file="s.csv", column=["score=toxicity"])
    assert (
        "3 scores from s.csv; 1 pair dropped, with scores above 0.5. In total, the scorers keep 1 of 2 pairs" in output
    )
    assert "Note: these ids were ignored, because no pair of corpus talk has such a message: 1 id: z." in output
    # A score equal to the threshold is not above it.
    assert scores_of() == {("b", "detoxify"): (0.9, False, True), ("c", "detoxify"): (0.5, False, False)}


def test_a_pair_goes_where_any_scorer_passes_its_threshold(scoring):
    scoring("a\t0.9\nb\t0\nc\t0\n")
    scoring("b\t0\nc\t1\n", name="words", threshold="0", of="pair")
    assert dropped_by() == {("b", "detoxify"), ("c", "words")}
    assert filter_counts("talk") == {"pairs": 2, "dropped": 2, "lacking": 0}
    with open_filter("talk") as store:
        assert sorted((row["id"], row["dropped"]) for row in store.fetch("filtered")) == [("b", 1), ("c", 1)]


def test_a_score_that_is_lacking_is_never_taken_for_0(scoring):
    assert "Note: 2 pairs have no score of detoxify" in scoring("b\t0.2\n")
    assert scores_of()["b", "detoxify"] == (0.2, True, False)
    scoring('{"id": "a", "score": null}\n{"id": "c", "score": 0.7}\n', name="other", file="scores.jsonl")
    scores = scores_of()
    assert scores["b", "other"] == (None, True, False)
    # One scored side is enough to drop the pair.
    assert scores["c", "other"] == (0.7, True, True)
    assert filter_counts("talk") == {"pairs": 2, "dropped": 1, "lacking": 2}


def test_another_threshold_takes_the_place_of_the_first_unless_something_was_drawn_by_it(scoring):
    scores = "a\t0.9\nb\t0.6\nc\t0.1\n"
    scoring(scores)
    before, digest = bytes_of("talk"), filter_digest(manifest_of("talk"))
    output = scoring(gzip.compress(scores.encode()), file="s.tsv.gz")
    assert "Scorer detoxify of corpus talk: already imported" in output
    assert bytes_of("talk") == before
    output = scoring(scores, threshold="0.8")
    assert "these scores replace those of detoxify from scores.tsv, with the threshold 0.5" in output
    assert dropped_by() == {("b", "detoxify")}
    assert [(scorer.name, scorer.threshold) for scorer in manifest_of("talk").scores] == [("detoxify", 0.8)]
    assert filter_digest(manifest_of("talk")) != digest
    drawn = {"design": "uniform", "seed": "1", "size": 1, "asked": 1, "frame_size": 2, "parameters": {}, "parts": 1}
    Draw.objects.create(corpus=Corpus.objects.get(name="talk"), **drawn)
    with pytest.raises(CommandError, match=r"cannot be replaced, .* \(draws: 1\).* with another --name"):
        scoring(scores)
    scoring(scores, name="detoxify-5")
    assert len(manifest_of("talk").scores) == 2


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("a\tNaN\nb\t0.1\n", "line 1: The score is NaN. .* from 0 to 1, .*Nothing was imported from the file"),
        ("a\t0.1\nb\t1.5\nc\t-1\n", "line 2: The score is 1.5. It must be .* This is the first of 2 invalid rows"),
        ("a\thigh\n", "The score is high"),
        ("a\t0.1\na\t0.2\n", r"repeats 1 id: a \(line 2, first in line 1\). Keep one row for each id"),
        ("y\t0.1\nz\t0.2\n", "contains no scores for messages of corpus talk.* --of pair"),
    ],
)
def test_what_is_no_score_is_refused_in_one_sentence(scoring, content, why):
    before = bytes_of("talk")
    with pytest.raises(CommandError, match=why):
        scoring(content)
    assert bytes_of("talk") == before


def test_detoxify_drops_pairs_of_the_excerpt_of_oasst1(capsys, import_corpus, write):
    call_command("import_threads", "oasst", str(MESSAGES), licence="Apache-2.0", text_may_leave=True)
    call_command("import_scores", "oasst", str(MESSAGES), name="d", threshold="0.5", column=["score=detoxify"])
    counts = filter_counts("oasst")
    assert counts["lacking"] == 0
    assert 0 < counts["dropped"] < 20
    assert f"keep {counts['pairs'] - counts['dropped']:,} of 239 pairs" in capsys.readouterr().out
    import_corpus("posts", write("p.jsonl", [{"id": "1", "text": "Guten Morgen zusammen"}]))
    with pytest.raises(CommandError, match=r"posts was not imported from threads, .* import_threads"):
        call_command("import_scores", "posts", str(write("s.tsv", "1\t0.1\n")), name="x", threshold="0.5")
    with pytest.raises(CorpusError, match="was not imported from threads"):
        filter_counts("posts")
