"""What texts are worth: suggested replies, ROUGE as eval.py of MRS has it with the package rouge, BLEU and chrF as
sacreBLEU has them, and that intervals of figures over all examples hold the truth.
"""

import random
import sys
from itertools import zip_longest

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from rouge import Rouge
from rouge.rouge_score import rouge_n
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF as CHRF_OF_SACREBLEU

from annotate.core.estimation.resampling import compare_scores
from annotate.core.measures import generated_texts, replies
from annotate.core.measures.generated_texts import BLEU4, CHRF, MissingExtra, corpus_score, counts, scores, signature
from annotate.core.measures.replies import (
    EMPTY,
    LONGEST,
    MEASURES,
    TESTED,
    Example,
    _mecab,
    best_of,
    differences,
    figures,
    is_measured,
    p_values,
    rank_of,
    rouge,
    tokenize,
)

DISTINCT = ("dist1", "dist2")


def example(message, suggestions, reference, response_set=(), kind="", random_rank=None):
    """kind: what counts as the same reference in macro MRR; by default the reference itself."""
    best, rank = best_of(suggestions, reference), rank_of(reference, suggestions, set(response_set))
    [matches] = counts([" ".join(best.words)], [[reference]])
    return Example(message, best, rank, kind or reference, random_rank, matches)


def values(examples):
    return {name: estimate.value for name, estimate in figures(examples).items()}


KNOWN = {"yes", "no", "thank you !"}
THREE = [
    example("a", ["no", "yes", "maybe so"], "yes", KNOWN),
    example("b", ["thank you !", "no", "yes"], "thank you !", KNOWN),
    example("c", ["no", "not at all"], "perhaps not at all", KNOWN),
]


def test_macro_mrr_gives_each_reference_the_same_weight_and_ranks_in_a_random_set_are_measured_apart():
    yes = [example(f"m{n}", ["no", "yes"] if n else ["yes"], "yes", KNOWN, random_rank=n + 1) for n in range(3)]
    estimates = figures([*yes, example("m3", ["maybe"], "no", KNOWN)])
    assert estimates["mrr"].value == (1 + 1 / 2 + 1 / 2) / 4
    assert estimates["macro_mrr"].value == ((1 + 1 / 2 + 1 / 2) / 3 + 0) / 2
    assert (estimates["random_p1"].value, estimates["random_mrr"].value) == (1 / 3, (1 + 1 / 2 + 1 / 3) / 3)
    assert figures(THREE)["random_mrr"].value is None
    # Leaving out a message removes a reply that no other message has.
    whole, without = replies._macro_mrr([*yes, example("m3", ["maybe"], "no", KNOWN)])
    assert list(without) == pytest.approx([(1 / 2) / 2, (3 / 4) / 2, (3 / 4) / 2, 2 / 3])
    assert whole == estimates["macro_mrr"].value


def test_bleu_is_that_of_sacrebleu_over_the_best_replies():
    many = [
        example(
            f"m{n}", ["nothing", f"the train number {n} is late again"], f"the train number {n} was late again today"
        )
        for n in range(30)
    ]
    texts = [" ".join(item.best.words) for item in many], [[item.reference for item in many]]
    assert figures(many)["bleu4"].value == pytest.approx(BLEU(lowercase=True).corpus_score(*texts).score / 100)


def test_the_figures_of_three_examples_are_those_worked_out_by_hand():
    measures = values(THREE)
    f = 2 * (1 * 3 / 4) / (1 + 3 / 4), 2 * (1 * 2 / 3) / (1 + 2 / 3), 2 * (1 * 1 / 2) / (1 + 1 / 2)
    assert measures["rouge1"] == pytest.approx((1 + 1 + f[0]) / 3, abs=1e-7)
    assert measures["rouge2"] == pytest.approx((0 + 1 + f[1]) / 3, abs=1e-7)
    assert measures["rouge3"] == pytest.approx((0 + 1 + f[2]) / 3, abs=1e-7)
    assert measures["weighted_rouge"] == pytest.approx((1 / 6 + 1 + f[0] / 6 + f[1] / 3 + f[2] / 2) / 3, abs=1e-7)
    # The replies that count are "yes", "thank you !" and "not at all": 7 words, all distinct, and 4 pairs of words.
    assert (measures["dist1"], measures["dist2"]) == (1, 4 / 7)
    # The reference of c is not in the response set; that of a comes second, that of b first.
    assert (measures["p1"], measures["mrr"]) == (1 / 2, (1 / 2 + 1) / 2)


def test_a_reference_that_is_not_suggested_counts_as_missed_and_one_outside_the_response_set_not_at_all():
    measures = values([*THREE, example("d", ["yes"], "no", KNOWN)])
    assert (measures["p1"], measures["mrr"]) == (1 / 3, (1 / 2 + 1 + 0) / 3)
    assert rank_of("No", ["No"], {"no"}) is None
    measures = values([example("a", ["yes"], "yes")])
    assert (measures["p1"], measures["mrr"], measures["rouge1"]) == (None, None, pytest.approx(1, abs=1e-7))
    assert set(values([]).values()) == {None}
    # Replies that say the same again are less distinct.
    measures = values([example(str(number), ["thank you !"], "yes") for number in range(10)])
    assert (measures["dist1"], measures["dist2"]) == (3 / 30, 2 / 30)


def test_the_same_message_many_times_tells_no_more_than_once():
    apart = [example(str(number), ["yes" if number % 3 else "no"], "yes", KNOWN) for number in range(60)]
    once, thrice = figures(apart), figures([item for item in apart for _ in range(3)])
    for name in ("weighted_rouge", "rouge1", "p1", "mrr"):
        assert thrice[name].value == pytest.approx(once[name].value)
        assert (thrice[name].low, thrice[name].high) == pytest.approx((once[name].low, once[name].high))


def test_a_system_against_itself_differs_by_nothing():
    examples = [
        item._replace(message=f"{item.message}{number}", random_rank=2) for item in THREE for number in range(10)
    ]
    for difference in differences(examples, examples).values():
        assert (difference.value, difference.better) == (0, None)
        assert -0.2 < difference.low == -difference.high <= 0
    assert p_values(examples, examples, seed="s") == dict.fromkeys(TESTED, 1)


def test_the_better_of_two_systems_is_named_in_either_order():
    good = [example(str(number), ["yes", "no"], "yes", KNOWN) for number in range(30)]
    poor = [example(str(number), ["no", "yes"] if number < 20 else ["no"], "yes", KNOWN) for number in range(30)]
    there, back = differences(good, poor), differences(poor, good)
    assert (there["p1"].value, there["p1"].better, back["p1"].better) == (1, "first", "second")
    # That it was better in all thirty does not show that it would be in all others.
    assert 0.8 < there["p1"].low < 0.95
    assert there["mrr"].value == pytest.approx(1 - 20 / 30 / 2)
    assert there["weighted_rouge"].value == pytest.approx(10 / 30 / 6, abs=1e-7)
    assert back["weighted_rouge"].low == pytest.approx(-there["weighted_rouge"].high)
    assert p_values(good, poor, seed="s")["p1"] == 1 / 10_000
    assert set(differences(THREE, THREE).values()) == {None}  # of few messages
    with pytest.raises(ValueError, match="must be measured on the same messages"):
        differences(THREE, THREE[::-1])


WORDS = [f"w{number}" for number in range(60)]


def simulated(rng, number):
    """Examples of a population: common and rare words, one to three replies of a message, hits by luck."""
    examples = []
    while len(examples) < number:
        message, skill = str(rng.random()), rng.betavariate(0.5, 1)
        suggestions = [" ".join(WORDS[int(rng.paretovariate(0.6)) % 60] for _ in range(5)) for _ in range(2)]
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            reference = suggestions[rng.choice([0, 0, 1])] if rng.random() < skill else "nothing like it"
            ranks = {"kind": f"reply {rng.randrange(8)}", "random_rank": rng.choice([1, 1, 2, 5])}
            examples.append(example(message, suggestions, reference, {reference}, **ranks))
    return examples


@pytest.mark.slow
def test_in_300_simulated_sets_the_intervals_hold_the_truth_about_as_often_as_they_say():
    rng = random.Random(20)
    drawn = [figures(simulated(rng, 100)) for _ in range(300)]
    truth = values(simulated(rng, 12_000))
    # Dist falls as replies are added, so its truth is that of sets of this size.
    truth |= {name: float(np.mean([row[name].value for row in drawn])) for name in DISTINCT}
    held = {name: np.mean([row[name].low <= truth[name] <= row[name].high for row in drawn]) for name in MEASURES}
    assert all(0.93 <= held[name] <= 0.98 for name in MEASURES if name not in DISTINCT), held
    # The jackknife takes every n-gram that was seen once for one that might as well not have been, and is wide.
    assert all(held[name] >= 0.93 for name in DISTINCT), held


@pytest.mark.slow
def test_in_300_simulated_sets_the_intervals_of_differences_hold_the_truth_about_as_often_as_they_say():
    def both(size):
        """Two systems on the same messages, of which the second finds the reference less often."""
        first = simulated(rng, size)
        lost = example("", ["nothing at all"], "w1 w2 w3", [])
        worse = {item.message for item in first if rng.random() < 0.2}
        loss = {"best": lost.best, "matches": lost.matches, "random_rank": 9}
        second = [item._replace(rank=item.rank and 0, **loss) if item.message in worse else item for item in first]
        return first, second

    rng = random.Random(5)
    means = [name for name in MEASURES if name not in DISTINCT]
    drawn = [differences(*both(100)) for _ in range(300)]
    first, second = map(values, both(12_000))
    held = {
        name: np.mean([row[name].low <= first[name] - second[name] <= row[name].high for row in drawn])
        for name in means
    }
    # The plain jackknife of these two is somewhat too narrow.
    narrow = {"bleu4", "macro_mrr"}
    assert all((0.88 if name in narrow else 0.92) <= share <= 0.99 for name, share in held.items()), held


def by_the_package(prediction, reference):
    package = Rouge(metrics=["rouge-1", "rouge-2"])
    package.AVAILABLE_METRICS["rouge-3"] = lambda predicted, true, **how: rouge_n(predicted, true, 3, **how)
    package.metrics.append("rouge-3")
    [by_metric] = package.get_scores(prediction, reference)
    return [by_metric[f"rouge-{n}"]["f"] for n in (1, 2, 3)]


TOKENS = st.sampled_from(["yes", "no", "it", "'s", "3.5", ".", "...", "so.", "!", "été", "да"])
TEXTS = st.lists(TOKENS, min_size=1, max_size=12).map(" ".join).filter(lambda text: text.replace(".", "").strip())


@given(TEXTS, TEXTS)
def test_any_two_texts_have_the_figures_of_the_package(prediction, reference):
    assert list(rouge(prediction, reference)) == pytest.approx(by_the_package(prediction, reference), abs=1e-9)


def test_words_are_those_of_nltk_in_small_letters_and_of_japanese_those_of_mecab():
    assert tokenize("I'm sure it'll cost 3.5 Euros!", "en") == "i 'm sure it 'll cost 3.5 euros !"
    assert tokenize("I see. So... OK.", "en") == "i see. so ... ok ."
    assert tokenize("", "de") == ""
    assert tokenize("今日は良い天気ですね。", "ja") == "今日 は 良い 天気 です ね 。"


def test_figures_without_their_extra_are_refused_with_what_to_install(monkeypatch):
    _mecab.cache_clear()
    monkeypatch.setitem(sys.modules, "MeCab", None)
    with pytest.raises(MissingExtra, match=r"requires Assay's extra ja: pip install mecab-python3 unidic-lite$"):
        tokenize("今日は", "ja")
    assert tokenize("Bonjour !", "fr") == "bonjour !"
    for function, module in ((replies._nltk, "nltk.tokenize"), (generated_texts._metric, "sacrebleu.metrics.bleu")):
        function.cache_clear()
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r"^ROUGE requires Assay's extra text: pip install nltk$"):
        tokenize("Bonjour !", "fr")
    with pytest.raises(MissingExtra, match=r"^BLEU requires Assay's extra text: pip install sacrebleu$"):
        generated_texts.corpus_score(["a"], [["a"]], seed="1")


def test_the_best_reply_counts_to_its_hundredth_word_and_a_longer_reference_is_not_measured():
    best = best_of(["no", "thank you so much !", "thank you !"], "thank you !")
    assert (best.place, best.words) == (2, ("thank", "you", "!"))
    assert best.scores.weighted == pytest.approx(1, abs=1e-7)
    assert best_of(["no", "never"], "yes").place == 0
    # A prediction without words, or none at all, is called empty; a reference of full stops alone is not measured.
    assert best_of(["", ". .", "..."], "yes").words == best_of([], "yes").words == (EMPTY,)
    assert best_of([], EMPTY).scores.one == pytest.approx(1, abs=1e-7)
    for reference in ("", ".", "...", ". . ."):
        assert not is_measured(reference)
        assert is_measured(f"{reference} yes")
    words = [f"w{number}" for number in range(LONGEST + 1)]
    assert is_measured(" ".join(words[:-1]))
    assert not is_measured(" ".join(words))
    best = best_of([" ".join(words)], words[-1])
    assert (best.scores.one, len(best.words)) == (0, LONGEST)


SAID = ["what is canvas made of", "what is a hydrostatic mower", "Where is it ?"]
MEANT = ["What is canvas made from", "what is a hydrostatic lawn mower", "where is it"]


def of_one(texts):
    return [[text] for text in texts]


def test_bleu_is_that_of_the_published_evaluation_with_an_interval_over_pairs():
    # by sacrebleu.corpus_bleu(said, [meant], lowercase=True), which XGLUE's script calls
    bleu = corpus_score(SAID, of_one(MEANT), seed="1")
    assert bleu.value == pytest.approx(0.628308058977331, abs=1e-12)
    assert bleu.texts == 3
    assert signature().startswith("nrefs:1|case:lc|eff:no|tok:13a|smooth:exp")
    bleu = corpus_score(SAID * 20, of_one(MEANT * 20), seed="1")
    assert bleu.low < bleu.value < bleu.high
    assert bleu.value == pytest.approx(0.628308058977331, abs=1e-12)
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
        score = corpus_score(SAID, REFERENCES, seed="1", measure=measure)
        assert score.value == pytest.approx(metric.corpus_score(SAID, streams).score / 100, abs=1e-12)
        assert score.value >= corpus_score(SAID, of_one(MEANT), seed="1", measure=measure).value
        many_texts = corpus_score(SAID * 20, REFERENCES * 20, seed="1", measure=measure)
        assert many_texts.low < many_texts.value < many_texts.high


def of_means(values):
    return np.array([[value, 1.0] for value in values])


def test_two_means_are_apart_by_the_mean_difference_with_the_interval_of_paired_values():
    values = np.random.default_rng(1).normal(0.7, 0.2, size=(2, 200))
    difference, p = compare_scores(of_means(values[0]), of_means(values[1]), lambda sums: sums[0] / sums[1], seed="1")
    differences = values[0] - values[1]
    off = 1.959964 * differences.std(ddof=1) / 200**0.5
    assert difference.value == pytest.approx(differences.mean())
    assert (difference.low, difference.high) == pytest.approx((difference.value - off, difference.value + off))
    assert p == pytest.approx(2 * scipy.special.ndtr(-abs(difference.value) / off * 1.959964), abs=0.02)


def test_what_never_differs_or_is_little_has_no_interval_of_a_difference():
    score = {"score": lambda sums: sums[0] / sums[1], "seed": "1"}
    assert compare_scores(of_means([0.5] * 40), of_means([0.4] * 40), **score)[0] is None
    assert compare_scores(of_means([0.5, 0.7] * 9), of_means([0.4, 0.8] * 9), **score)[0] is None
    same, p = compare_scores(of_means([0.5, 0.7] * 20), of_means([0.5, 0.7] * 20), **score)
    assert (same.value, same.low, same.high, p) == (0, 0, 0, 1)


def test_bleu_of_two_systems_is_compared_by_the_counts_of_each_pair():
    first, second = (counts(texts * 20, of_one(MEANT * 20)) for texts in (MEANT, SAID))
    difference, p = compare_scores(first, second, scores, seed="1")
    assert difference.value == pytest.approx(1 - 0.628308058977331, abs=1e-12)
    assert 0 < difference.low < difference.high < 1
    assert p < 0.001
