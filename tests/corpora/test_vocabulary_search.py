"""Concepts by beginnings of words: what is found, in which order, and what a search may be."""

import json

import pytest

from corpora.vocabulary.concept_index import find, vocabulary_named
from corpora.vocabulary.thesaurus import VocabularyError, words_of
from corpora.vocabulary.vocabulary_import import import_vocabulary
from tests.corpora.test_vocabularies import CONCEPTS, SCHEMES

pytestmark = pytest.mark.both_databases


@pytest.fixture
def found(write, db):
    """found(rows) makes a vocabulary, and returns what finds the ids in it."""

    def make(rows):
        import_vocabulary("v", [write("v.json", json.dumps(rows))])
        return lambda typed, language="en", **options: [
            hit.concept.key for hit in find(vocabulary_named("v"), typed, language, **options)
        ]

    return make


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("L'été à Århus", ["l", "ete", "a", "arhus"]),
        ("STRASSE, Straße", ["strasse", "strasse"]),
        ("Łódź_2 (Ærø)", ["lodz", "2", "aero"]),
        ("環境法", ["環", "境", "法"]),
        ("π²  ½", ["π2", "1", "2"]),
        ("% _ 🙂", []),
    ],
)
def test_words_have_no_accents_case_and_punctuation(text, words):
    assert words_of(text) == words


def test_words_are_found_by_their_beginnings_in_any_order(found):
    search = found({"1": {"label": "environmental policy", "label_fr": "politique de l'environnement"}})
    for typed in ("env", "pol", "env pol", "POL  env", "environmental-policy", "policy, environmental"):
        assert search(typed) == ["1"]
    for typed in ("nvironmental", "env polx", "policies"):
        assert search(typed) == []


def test_labels_of_the_language_and_of_english_count_and_no_others(found):
    search = found({"1": {"label": "law", "label_fr": "droit", "label_de": "Recht"}})
    assert [search(typed, "fr") for typed in ("droit", "law", "Recht")] == [["1"], ["1"], []]


def test_where_neither_language_is_there_any_label_counts(found):
    assert found({"1": {"label_de": "Recht"}, "2": {"label_it": "diritto"}})("rec", "fr") == ["1"]


def test_two_typed_words_take_two_words_of_a_label(found):
    search = found({"1": {"label": "interest"}, "2": {"label": "international institute"}})
    assert search("inte in") == ["2"]
    assert search("in inte") == ["2"]
    assert search("inte") == ["1", "2"]


def test_the_order_is_whole_preferred_beginning_language_short_and_then_by_text_and_id(found):
    search = found(
        {
            "whole": {"label": "z", "alt_labels": ["law"]},
            "long": {"label": "law of the sea"},
            "other": {"label": "y", "alt_labels": ["laws"]},
            "inside": {"label": "a law"},
            "french": {"label": "x", "label_fr": "lawyers in court"},
            "same2": {"label": "lawn"},
            "same1": {"label": "Lawn"},
            "near": {"label": "lawm"},
        }
    )
    assert search("law", "fr") == ["whole", "french", "near", "same1", "same2", "long", "inside", "other"]
    assert search("law", "en") == ["whole", "near", "same1", "same2", "long", "inside", "other"]
    assert search("law", "en", limit=2) == ["whole", "near"]


def test_a_concept_of_many_labels_takes_one_place_and_hides_nobody(found):
    many = {"label": "law 0", "alt_labels": [f"law {n}" for n in range(1, 60)]}
    rows = {"many": many, "one": {"label": "x", "alt_labels": ["law longer than others"]}}
    assert found(rows)("law", limit=2) == ["many", "one"]


def test_only_the_version_that_is_asked_for_is_searched(found):
    found({"1": {"label": "law"}})
    search = found({"2": {"label": "law"}})
    assert search("law") == ["2"]
    assert [hit.concept.key for hit in find(vocabulary_named("v", 1), "law", "en")] == ["1"]


def test_a_search_of_nothing_finds_nothing(found):
    search = found({"1": {"label": "law"}})
    assert [search(""), search("  \n")] == [[], []]


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("a" * 10_000, "10,000 characters were typed; search with 200 at the most"),
        ("%", "Nothing that was typed is a letter or a digit"),
        ("_", "Nothing that was typed is a letter or a digit"),
        ("🙂", "Nothing that was typed is a letter or a digit"),
    ],
)
def test_what_cannot_be_searched_for_gets_a_sentence(found, typed, why):
    search = found({"1": {"label": "law"}})
    with pytest.raises(VocabularyError, match=why):
        search(typed)


def test_signs_beside_letters_stand_for_themselves_and_not_for_any_letters(found):
    search = found({"1": {"label": "law"}, "2": {"label": "100% wool"}})
    assert [search(typed) for typed in ("l%w", "l_w", "la\0w", "' OR 1=1")] == [[], [], [], []]
    assert search("100%") == ["2"]


@pytest.mark.parametrize("hostile", ["a " * 100, "\ufdfa" * 200, "\u0301" * 100 + "law", "ﷺ", "z" * 200])
def test_no_search_breaks_it(found, hostile):
    assert found({"1": {"label": "law"}})(hostile) in ([], ["1"])


def test_every_label_of_the_excerpt_is_found_by_its_first_letters(db):
    import_vocabulary("eurovoc", [CONCEPTS], schemes=SCHEMES)
    eurovoc, missed = vocabulary_named("eurovoc"), []
    for key, row in json.loads(CONCEPTS.read_text(encoding="utf-8")).items():
        first, *others = row["label"].split()
        typed = " ".join([first[:4], *(word[:2] for word in others[:1])])
        if key not in [hit.concept.key for hit in find(eurovoc, typed, "en")]:
            missed.append((typed, row["label"]))
    assert len(missed) <= 6, missed
