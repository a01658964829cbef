"""Codes of other standards, and which labels serve readers of a language by their tags."""

import json

import pytest

from annotate.actions.commands import call_command
from annotate.actions.judgment_files import import_judgments
from annotate.work.people_file import read_table
from annotate.work.routes import unknown_code
from corpora.core.languages import code_of, hint, serving
from corpora.predictions.prediction_rows import read_predictions
from corpora.vocabulary.concept_index import find, names_in, vocabulary_named
from corpora.vocabulary.thesaurus import label_in
from corpora.vocabulary.vocabulary_import import import_vocabulary
from tests.corpora.on_disk import posts

MEANT = {
    "he": "iw he heb HE", "id": "in id ind", "yi": "ji yid", "en": "eng EN en-US en_GB en-Latn-US __label__en",
    "zh-CN": "zh-Hans zh_CN zh-cn zh-SG cmn-Hans", "zh-TW": "zh-Hant zh-HK zh-Hant-HK zh-TW", "zh": "zh zho chi cmn",
    "pt": "pt_BR pt-br por", "no": "nb nn no nob nb-NO", "tl": "fil tl tgl", "sr": "sr-Latn sr-Cyrl srp",
    "ro": "mo ron",
    "sh": "sh hbs", "hr": "hrv scr", "de": "deu ger de-AT de-DE-1996", "fr": "fra fre fr-FR", "ar": "arb arz ar",
    "fa": "fas pes per", "sw": "swa swh", "et": "ekk est", "jv": "jw jav", "hi-Latn": "hi_latn", "yue": "zh-yue",
    "na": "na", "ku": "kmr", "az": "aze azj", "sq": "alb sqi",
}  # fmt: skip


@pytest.mark.parametrize(("code", "written"), [(code, each) for code, all_ in MEANT.items() for each in all_.split()])
def test_a_code_of_another_standard_is_the_language_that_it_means(code, written):
    assert code_of(written) == code


@pytest.mark.parametrize(
    "written", ["und", "mul", "zxx", "xx", "qq", "nan", "lzh", "als", "ru-Latn", "ar-Latn", "-", "english"]
)
def test_a_code_without_one_language_here_is_none(written):
    assert code_of(written) == ""


def test_a_hint_never_takes_a_code_for_another_that_is_merely_spelled_like_it():
    assert "did you mean de (German)?" in unknown_code("Deutsch")
    for code in ("nan", "lzh", "qq", "unk", "mul"):
        assert "did you mean" not in unknown_code(code)
    assert hint("als") == "write sq (Albanian) or gsw (Swiss German)"


@pytest.mark.django_db
def test_every_importer_takes_the_same_codes(tmp_path):
    written = ["iw", "in", "eng", "nb", "pt_BR", "fil", "deu", "sr-Latn", "mo"]
    meant = ["he", "id", "en", "no", "pt", "tl", "de", "sr", "ro"]
    people = "username,name,languages\n" + "".join(f"p{n},P,{code}:5\n" for n, code in enumerate(written))
    assert [[*row.levels] for row in read_table(people)] == [[code] for code in meant]
    (tmp_path / "p.tsv").write_text("".join(f"{n}\t{code}\n" for n, code in enumerate(written)))
    assert list(read_predictions(tmp_path / "p.tsv", {})[0].values()) == meant
    rows = [{"id": str(n), "language": code, "body": f"text {n}"} for n, code in enumerate(written)]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    call_command("import_corpus", "c", str(tmp_path / "r.jsonl"), fields="body", licence="CC0-1.0", verbosity=0)
    assert [row["language"] for row in posts()] == meant
    judged = "task,worker,label,language\n" + "".join(f"t{n},w,yes,{code}\n" for n, code in enumerate(written))
    (tmp_path / "j.csv").write_text(judged)
    task = import_judgments("crowd", tmp_path / "j.csv").task
    assert task.languages == sorted(meant)


# --- labels by their tags


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
