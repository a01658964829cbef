"""ROUGE of suggested replies, as eval.py of MRS has it with the package rouge."""

import json
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st
from rouge import Rouge
from rouge.rouge_score import rouge_n

from annotate.core.measures import replies
from annotate.core.measures.replies import (
    EMPTY,
    LONGEST,
    MissingExtra,
    _mecab,
    best_of,
    is_measured,
    rouge,
    tokenized,
)

WORKED = {
    ("i 'm sure it 'll be available for ps4 as well .", "i think it will be available for ps4 ."): (
        *(0.631579, 0.352941, 0.266667),
        0.356244,
    ),
    ("thank you so much !", "thank you !"): (0.75, 0.333333, 0, 0.236111),
    ("that costs 3.5 euros", "that costs 3.5 dollars"): (0.8, 0.75, 0.666667, 0.716667),
    ("yes yes yes", "yes"): (1, 0, 0, 0.166667),
}


@pytest.mark.parametrize("pair", WORKED, ids=" | ".join)
def test_the_worked_pairs_have_their_figures_to_six_places(pair):
    found = rouge(*pair)
    assert (*(round(each, 6) for each in found), round(found.weighted, 6)) == WORKED[pair]


def by_the_package(prediction, reference):
    kept = Rouge(metrics=["rouge-1", "rouge-2"])
    kept.AVAILABLE_METRICS["rouge-3"] = lambda said, true, **how: rouge_n(said, true, 3, **how)
    kept.metrics.append("rouge-3")
    [found] = kept.get_scores(prediction, reference)
    return [found[f"rouge-{n}"]["f"] for n in (1, 2, 3)]


WORDS = st.sampled_from(["yes", "no", "it", "'s", "3.5", ".", "...", "so.", "!", "été", "да"])
TEXTS = st.lists(WORDS, min_size=1, max_size=12).map(" ".join).filter(lambda text: text.replace(".", "").strip())


@given(TEXTS, TEXTS)
def test_any_two_texts_have_the_figures_of_the_package(prediction, reference):
    assert list(rouge(prediction, reference)) == pytest.approx(by_the_package(prediction, reference), abs=1e-9)


@given(TEXTS)
def test_a_text_has_all_n_grams_of_itself_and_the_order_of_sides_does_not_matter(text):
    words = text.replace(".", " ").split()
    assert rouge(text, text).one == pytest.approx(1, abs=1e-7)
    assert rouge(text, "yes no it").weighted == pytest.approx(rouge("yes no it", text).weighted)
    assert rouge(" ".join(words), text).one > 0.5


def test_a_side_with_fewer_than_n_words_scores_nothing():
    assert rouge("thank you", "thank you")[2] == 0
    assert rouge("thanks", "thanks")[1:] == (0, 0)


def test_words_are_those_of_nltk_in_small_letters_and_of_japanese_those_of_mecab():
    assert tokenized("I'm sure it'll cost 3.5 Euros!", "en") == "i 'm sure it 'll cost 3.5 euros !"
    assert tokenized("I see. So... OK.", "en") == "i see. so ... ok ."
    assert tokenized("", "de") == ""
    assert tokenized("今日は良い天気ですね。", "ja") == "今日 は 良い 天気 です ね 。"


def test_japanese_without_mecab_is_refused_with_what_to_install(monkeypatch):
    _mecab.cache_clear()
    monkeypatch.setitem(sys.modules, "MeCab", None)
    with pytest.raises(MissingExtra, match=r"needs the extra ja: pip install 'assay\[ja\]'\.$"):
        tokenized("今日は", "ja")
    assert tokenized("Bonjour !", "fr") == "bonjour !"


def test_rouge_and_bleu_without_the_extra_are_refused_with_what_to_install(monkeypatch):
    for name, module in (("_nltk", "nltk.tokenize"), ("_bleu", "sacrebleu.metrics.bleu")):
        getattr(replies, name).cache_clear()
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r"^ROUGE needs the extra text: pip install 'assay\[text\]'\.$"):
        tokenized("Bonjour !", "fr")
    with pytest.raises(MissingExtra, match=r"^BLEU needs the extra text: pip install 'assay\[text\]'\.$"):
        replies.corpus_bleu(["a"], ["a"], seed="1")


def test_the_reply_that_counts_is_the_one_with_the_highest_weighted_rouge_and_the_first_of_equals():
    found = best_of(["no", "thank you so much !", "thank you !"], "thank you !")
    assert (found.place, found.words) == (2, ("thank", "you", "!"))
    assert found.scores.weighted == pytest.approx(1, abs=1e-7)
    assert best_of(["no", "never"], "yes").place == 0


def test_a_prediction_without_words_or_none_at_all_is_called_empty():
    assert best_of(["", ". .", "..."], "yes").words == (EMPTY,)
    assert best_of([], "yes").words == (EMPTY,)
    assert best_of([], EMPTY).scores.one == pytest.approx(1, abs=1e-7)


def test_a_prediction_counts_to_its_hundredth_word_and_a_longer_reference_is_not_measured():
    words = [f"w{number}" for number in range(LONGEST + 1)]
    assert is_measured(" ".join(words[:-1]))
    assert not is_measured(" ".join(words))
    found = best_of([" ".join(words)], words[-1])
    assert (found.scores.one, len(found.words)) == (0, LONGEST)


@pytest.mark.parametrize("reference", ["", ".", "...", ". . ."])
def test_a_reference_of_full_stops_alone_is_not_measured(reference):
    assert not is_measured(reference)
    assert is_measured(f"{reference} yes")


# Replies as people write them, with abbreviations, figures, quotes, and marks of several scripts.
REPLIES = [
    "Yes.",
    "No, I don't think so.",
    "That's a great idea! Let's do it at 3.5 p.m...",
    "Thank you so much, I'm sure it'll be available for PS4 as well.",
    '"Never say never." That is what she said, isn\'t it?',
    "Das weiß ich nicht. Vielleicht morgen?",
    "¿Qué tal? Estoy bien, gracias.",
    "Je ne sais pas... peut-être demain . . .",
    "Да, конечно. Спасибо!",
    "See https://example.org/a.b.c or write to me@example.org.",
    "1. Open it. 2. Close it. 3. Profit!!!",
    "ok",
]


def test_sentences_as_people_write_them_have_the_figures_of_the_package():
    texts = [tokenized(text, "en") for text in REPLIES]
    together = [" ".join(pair) for pair in pairwise(texts)]
    compared = [(one, other) for one in [*texts, *together] for other in [*texts, *together]]
    assert len(compared) > 300
    for one, other in compared:
        assert list(rouge(one, other)) == pytest.approx(by_the_package(one, other), abs=1e-9)


def test_300_pairs_of_real_messages_have_the_figures_of_the_package():
    lines = (Path(settings.BASE_DIR) / "fixtures/oasst1/messages.jsonl").read_text(encoding="utf-8").splitlines()
    texts = {row["id"]: (row["parent_id"], tokenized(row["text"], "en")) for row in map(json.loads, lines)}
    answers = [(texts[parent][1], text) for parent, text in texts.values() if parent in texts]
    # Replies to one message share more words with one another than with the message.
    siblings = [
        (one, other)
        for parent in texts
        for one, other in pairwise(text for above, text in texts.values() if above == parent)
    ]
    pairs = [pair for pair in [*answers, *siblings] if all(text.replace(".", "").strip() for text in pair)][:300]
    assert len(pairs) == 300
    found = [list(rouge(*pair)) for pair in pairs]
    assert sum(scores[2] > 0 for scores in found) > 50
    for pair, scores in zip(pairs, found, strict=True):
        assert scores == pytest.approx(by_the_package(*pair), abs=1e-9)
