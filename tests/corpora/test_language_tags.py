"""Which labels serve readers of a language, by their tags, and where that decides what people see."""

import json

import pytest

from corpora.core.language_codes import serving
from corpora.vocabulary.concept_index import find, names_in, vocabulary_named
from corpora.vocabulary.thesaurus import label_in
from corpora.vocabulary.vocabulary_import import import_vocabulary


@pytest.mark.parametrize(
    ("tags", "wanted", "closest_first"),
    [
        ("en-GB de en-US en", "en", "en en-US en-GB"),
        ("en-AU en-US", "en-GB", "en-AU en-US"),
        ("zh-Hant zh-TW zh-Hans zh", "zh-CN", "zh zh-Hans zh-Hant zh-TW"),
        ("zh zh-CN zh-Hant", "zh-TW", "zh-Hant zh zh-CN"),
        ("zh-CN", "zh", "zh-CN"),
        ("nn nb", "no", "nb nn"),
        ("no", "nn", "no"),
        ("pt-PT pt-BR", "pt", "pt-BR pt-PT"),
        ("pt", "pt-BR", "pt"),
        ("sr-Latn hr sr", "sr", "sr sr-Latn"),
        ("sr sr-Cyrl", "sr-Latn", "sr sr-Cyrl"),
        ("de-AT", "de", "de-AT"),
        ("es-ES es-419", "es-AR", "es-419 es-ES"),
        ("iw", "he", "iw"),
        ("tl", "fil", "tl"),
        ("fil", "tl", "fil"),
        ("eng DE", "en", "eng"),
        ("DE", "de", "DE"),
        ("und x-own bad.tag", "en", ""),
    ],
)
def test_a_tag_falls_back_to_its_language_and_script_and_then_to_other_regions(tags, wanted, closest_first):
    assert serving(tuple(tags.split()), wanted) == tuple(closest_first.split())


def test_a_label_of_the_language_in_another_region_is_shown_before_those_of_other_languages():
    assert label_in({"ar": "لون", "de": "Farbe", "en-GB": "colour"}, "en") == ("colour", "en-GB")
    assert label_in({"ar": "لون", "en-GB": "colour"}, "fr") == ("colour", "en-GB")
    assert label_in({"ar": "لون", "pt-BR": "cor"}, "fr") == ("لون", "ar")


ROWS = {
    "1": {"label_en-GB": "colour", "label_de": "Farbe", "label_ar": "لون"},
    "2": {"label": "shape", "label_zh": "电子", "label_nb": "farge", "label_pt-BR": "ônibus"},
    "3": {"label_en-GB": "law of sea"},
    "4": {"label_en-US": "law of sea"},
    "5": {"label_en": "x", "label_de": "law of sea"},
}


@pytest.mark.django_db
def test_labels_in_regional_and_general_tags_are_found_and_shown_the_closest_first(write):
    imported = import_vocabulary("v", [write("v.json", json.dumps(ROWS))])
    assert imported.oddities.unlabelled == []
    vocabulary = vocabulary_named("v")
    for typed, language, ids in (
        *(("colour", language, ["1"]) for language in ("en", "en-US", "fr")),
        *((typed, language, ["2"]) for typed, language in (("电", "zh-CN"), ("farge", "no"), ("onibus", "pt"))),
        ("farbe", "en", []),
        ("law", "en", ["4", "3", "5"]),
    ):
        assert [hit.concept.key for hit in find(vocabulary, typed, language, also=["de"][: typed == "law"])] == ids
    assert names_in(vocabulary, "en")["1"] == ("colour", "en-GB")
    assert [names_in(vocabulary, tag)["2"].text for tag in ("zh-TW", "nn", "pt")] == ["电子", "farge", "ônibus"]
