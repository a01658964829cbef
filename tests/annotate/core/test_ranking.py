from itertools import pairwise, permutations, zip_longest
from math import log2
from statistics import mean

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF as CHRF_OF_SACREBLEU

from annotate.core.estimation.resampling import apart
from annotate.core.measures.generated_texts import BLEU4, CHRF, corpus_score, counts, scores, signature
from annotate.core.measures.ranked_labels import mean_ndcg, ndcg

PAGES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("grades", "scores", "expected"),
    [
        # by sklearn.metrics.ndcg_score, which XGLUE's script calls
        ([3, 2, 0, 1], [4, 4, 1, 1], 0.9539682252597386),
        ([4, 0], [0, 4], 0.6309297535714573),
        ([4, 3, 2, 1, 0], [2, 2, 2, 2, 2], 0.8052086790151614),
        ([0, 1, 2, 3, 4], [0.1, 0.5, 0.2, 0.9, 0.9], 0.9653362804685146),
        ([0, 0, 0], [1, 2, 3], 0.0),
    ],
)
def test_ndcg_is_that_of_the_published_evaluation(grades, scores, expected):
    assert ndcg(grades, scores) == pytest.approx(expected, abs=1e-12)


@given(PAGES)
def test_pages_predicted_alike_count_as_the_mean_over_all_their_orders(pages):
    grades, scores = zip(*pages, strict=True)
    orders = [order for order in permutations(range(len(pages))) if _falls([scores[page] for page in order])]
    untied = [ndcg([grades[page] for page in order], range(len(pages), 0, -1)) for order in orders]
    assert ndcg(grades, scores) == pytest.approx(mean(untied))


def _falls(scores):
    return all(before >= after for before, after in pairwise(scores))


def test_grades_below_nothing_and_pages_without_a_prediction_are_refused():
    with pytest.raises(ValueError, match="grades of 0 or more"):
        ndcg([-1, 2], [1, 2])
    with pytest.raises(ValueError, match="2 grades and 1 predictions"):
        ndcg([1, 2], [1])


def test_the_mean_leaves_out_queries_of_one_page_and_counts_those_without_a_relevant_one_as_nothing():
    pages = [("a", 4, 4), ("a", 0, 0), ("b", 3, 0), ("c", 0, 2), ("c", 0, 1), ("d", 0, 4), ("d", 4, 0)]
    found = mean_ndcg(pages, seed="1")
    assert found.value == pytest.approx((1 + 0 + 1 / log2(3)) / 3)
    assert (found.queries, found.single, found.irrelevant) == (3, 1, 1)
    assert found.low is found.high is None  # of three queries
    # A query that comes again later in the file is another one, as in the published script.
    assert mean_ndcg([("a", 4, 1), ("a", 0, 2), ("b", 1, 1), ("b", 1, 1), ("a", 2, 2)], seed="1").single == 1
    assert mean_ndcg([("a", 4, 4)], seed="1").value is None
    assert mean_ndcg([], seed="1").queries == 0


def test_the_interval_is_over_queries_and_the_same_for_the_same_seed():
    pages = [(f"q{query}", grade, (grade * query) % 7) for query in range(200) for grade in range(5)]
    found = mean_ndcg(pages, seed="1")
    assert found == mean_ndcg(pages, seed="1") != mean_ndcg(pages, seed="2")
    values = [ndcg(range(5), [(grade * query) % 7 for grade in range(5)]) for query in range(200)]
    spread = (mean(value**2 for value in values) - mean(values) ** 2) ** 0.5 / 200**0.5
    assert found.value == pytest.approx(mean(values))
    assert found.low == pytest.approx(found.value - 1.96 * spread, abs=spread / 5)
    assert found.high == pytest.approx(found.value + 1.96 * spread, abs=spread / 5)


SAID = ["what is canvas made of", "what is a hydrostatic mower", "Where is it ?"]
MEANT = ["What is canvas made from", "what is a hydrostatic lawn mower", "where is it"]


def of_one(texts):
    return [[text] for text in texts]


def test_bleu_is_that_of_the_published_evaluation():
    # by sacrebleu.corpus_bleu(said, [meant], lowercase=True), which XGLUE's script calls
    found = corpus_score(SAID, of_one(MEANT), seed="1")
    assert found.value == pytest.approx(0.628308058977331, abs=1e-12)
    assert found.texts == 3
    assert signature().startswith("nrefs:1|case:lc|eff:no|tok:13a|smooth:exp")


def test_bleu_comes_with_an_interval_over_pairs_and_needs_one_text_for_each_reference():
    found = corpus_score(SAID * 20, of_one(MEANT * 20), seed="1")
    assert found.low < found.value < found.high
    assert found.value == pytest.approx(0.628308058977331, abs=1e-12)
    perfect = corpus_score(MEANT * 20, of_one(MEANT * 20), seed="1")
    assert (perfect.value, perfect.low) == (pytest.approx(1.0), None)
    assert corpus_score([], [], seed="1").value is None
    with pytest.raises(ValueError, match="1 texts for 3 references"):
        corpus_score(SAID[:1], of_one(MEANT), seed="1")


REFERENCES = [
    ["What is canvas made from", "What is a canvas made of?"],
    ["what is a hydrostatic lawn mower"],
    ["where is it"],
]


def test_bleu_and_chrf_of_several_references_are_sacrebleus():
    streams = list(zip_longest(*REFERENCES))
    for measure, metric in ((BLEU4, BLEU(lowercase=True)), (CHRF, CHRF_OF_SACREBLEU())):
        found = corpus_score(SAID, REFERENCES, seed="1", measure=measure)
        assert found.value == pytest.approx(metric.corpus_score(SAID, streams).score / 100, abs=1e-12)
        assert found.value >= corpus_score(SAID, of_one(MEANT), seed="1", measure=measure).value
        many_texts = corpus_score(SAID * 20, REFERENCES * 20, seed="1", measure=measure)
        assert many_texts.low < many_texts.value < many_texts.high


def of_means(values):
    return np.array([[value, 1.0] for value in values])


def test_two_means_are_apart_by_the_mean_difference_with_the_interval_of_paired_values():
    values = np.random.default_rng(1).normal(0.7, 0.2, size=(2, 200))
    found, p = apart(of_means(values[0]), of_means(values[1]), lambda sums: sums[0] / sums[1], seed="1")
    differences = values[0] - values[1]
    off = 1.959964 * differences.std(ddof=1) / 200**0.5
    assert found.value == pytest.approx(differences.mean())
    assert (found.low, found.high) == pytest.approx((found.value - off, found.value + off))
    assert p == pytest.approx(2 * scipy.special.ndtr(-abs(found.value) / off * 1.959964), abs=0.02)


def test_what_never_differs_or_is_little_has_no_interval_of_a_difference():
    score = {"score": lambda sums: sums[0] / sums[1], "seed": "1"}
    assert apart(of_means([0.5] * 40), of_means([0.4] * 40), **score)[0] is None
    assert apart(of_means([0.5, 0.7] * 9), of_means([0.4, 0.8] * 9), **score)[0] is None
    same, p = apart(of_means([0.5, 0.7] * 20), of_means([0.5, 0.7] * 20), **score)
    assert (same.value, same.low, same.high, p) == (0, 0, 0, 1)


def test_bleu_of_two_systems_is_compared_by_the_counts_of_each_pair():
    first, second = (counts(said * 20, of_one(MEANT * 20)) for said in (MEANT, SAID))
    found, p = apart(first, second, scores, seed="1")
    assert found.value == pytest.approx(1 - 0.628308058977331, abs=1e-12)
    assert 0 < found.low < found.high < 1
    assert p < 0.001
