"""Languages: the decisions on each code, codes of other standards, and added languages."""

import json
from functools import cache

import pycld2
import pytest
from django.core.management import CommandError

from annotate.actions.judgment_files import import_judgments
from annotate.actions.registry import call_command
from annotate.kinds.interface_language import best_language
from annotate.quality.guideline_versions import in_language
from annotate.work.routes import unknown_code
from corpora.core import detectors
from corpora.core.detectors import langid_model
from corpora.core.language_tags import registry, serving, usual_script
from corpora.core.languages import (
    ARTICLE_LABELS,
    CONFUSABLE,
    COVERAGE,
    LANGUAGES,
    LISTED,
    NO_VOTE,
    UND,
    Language,
    add_names,
    code_of,
    confusable_with,
    hint,
    normalise,
    read_added,
)
from corpora.core.records import RecordError, read_language
from corpora.draws.language_draws import sample_precision
from corpora.draws.part_draws import sample_records
from corpora.models import Corpus
from corpora.predictions.prediction_rows import is_label, read_map, read_predictions
from corpora.predictions.predictor_labels import find_predictor, predicted_labels, triggers
from corpora.storage.layout import manifest_of
from corpora.vocabulary.concept_index import find, names_in, vocabulary_named
from corpora.vocabulary.thesaurus import label_in
from corpora.vocabulary.vocabulary_import import import_vocabulary
from tests.annotate.people_tables import rows_of
from tests.corpora.conftest import POSTS
from tests.corpora.on_disk import posts, rejects

NAMED_BY_CLD2 = {code for name, code in pycld2.LANGUAGES if name in pycld2.DETECTED_LANGUAGES}


@cache
def codes():
    """Return all codes that each detector can return."""
    fasttext = detectors._fasttext().predict("a", k=-1, threshold=-1.0)[0]
    return {
        "langid": sorted(map(str, langid_model().languages)),
        "cld2": sorted({code for _, code in pycld2.LANGUAGES} | {"un"}),
        "fasttext": sorted(label.removeprefix("__label__") for label in fasttext),
    }


@pytest.mark.parametrize(("detector", "count"), [("langid", 97), ("cld2", 283), ("fasttext", 176)])
def test_every_code_of_a_detector_is_decided_and_its_coverage_follows_from_that(detector, count):
    ours = {code: normalise(detector, code) for code in codes()[detector]}
    assert len(ours) == count
    assert [code for code, language in ours.items() if language is not None and language not in LANGUAGES] == []
    # CLD2 lists codes that it never returns.
    named = NAMED_BY_CLD2 if detector == "cld2" else ours
    assert COVERAGE[detector] == {normalise(detector, code) for code in named} - {None}
    with pytest.raises(KeyError):
        normalise(detector, "qq")


@pytest.mark.parametrize("detector", COVERAGE)
def test_the_table_names_no_code_that_its_detector_does_not_have(detector):
    owned = [code for language in LANGUAGES.values() for code in getattr(language, detector).split()]
    assert len(owned) == len(set(owned))
    assert set(owned) <= set(codes()[detector])
    refused = {code for by, code in NO_VOTE if by == detector} - {"xx-*"}
    assert refused <= set(codes()[detector])
    assert not refused & set(owned)


def test_the_article_has_70_labels_and_all_are_languages_with_names_of_their_own():
    assert len(ARTICLE_LABELS) == len(set(ARTICLE_LABELS)) == 70
    assert list(ARTICLE_LABELS) == sorted(ARTICLE_LABELS)
    assert set(ARTICLE_LABELS) <= set(LANGUAGES)
    assert UND not in LANGUAGES
    assert len({language.name for language in LANGUAGES.values()}) == len(LANGUAGES)


@pytest.mark.parametrize(
    ("detector", "codes"),
    [
        ("langid", {"nb": "no", "nn": "no"}),
        ("cld2", {"iw": "he", "jw": "jv", "zh": "zh", "zh-Hant": "zh"}),
        ("cld2", dict.fromkeys(("un", "xx-Goth", "zzp", "sr-ME", "bh"))),
        ("fasttext", {"bh": "bho", "als": "gsw", "eml": None, "sh": "sh", "arz": "ar"}),
    ],
)
def test_codes_that_need_a_decision(detector, codes):
    assert {code: normalise(detector, code) for code in codes} == codes


def test_coarse_codes_stand_for_labels_and_are_none_themselves():
    coarse = {code: language.labels for code, language in LANGUAGES.items() if language.labels}
    assert coarse == {"zh": ("zh-CN", "zh-TW"), "sh": ("bs", "hr", "sr")}
    assert not set(coarse) & set(ARTICLE_LABELS)
    assert all(label in LANGUAGES for labels in coarse.values() for label in labels)


def test_what_is_confusable_are_labels_and_each_with_the_other():
    named = [code for group in CONFUSABLE for code in group]
    assert [code for code in named if code not in LANGUAGES or LANGUAGES[code].labels] == []
    assert all(len(group) == len(set(group)) > 1 for group in CONFUSABLE)
    for code in LANGUAGES:
        assert code not in confusable_with(code)
        assert all(code in confusable_with(other) for other in confusable_with(code))
    # A label includes all labels that share a group with it.
    assert {"bs", "sr", "sl"} == confusable_with("hr")
    assert {"fa", "ar", "hi-Latn"} <= confusable_with("ur")
    assert confusable_with("ko") == confusable_with(UND) == frozenset()


# --- codes of other standards, and which labels serve readers of a language by their tags


MEANT = {
    "he": "iw he heb HE", "id": "in id ind", "yi": "ji yid", "en": "eng EN en-US en_GB en-Latn-US __label__en",
    "zh-CN": "zh-Hans zh_CN zh-cn zh-SG cmn-Hans", "zh-TW": "zh-Hant zh-HK zh-Hant-HK zh-TW",
    "zh": "zh zho chi cmn cmn_Hani chinese",
    "pt": "pt_BR pt-br por", "no": "nb nn no nob nb-NO", "tl": "fil tl tgl", "sr": "sr-Latn sr-Cyrl srp",
    "ro": "mo ron",
    "sh": "sh hbs", "zh-Latn": "zh-Latn zho_Latn", "fr": "fra fre fr-FR Français FRENCH",
    "hr": "hrv scr", "de": "deu ger de-AT de-DE-1996", "ar": "arb arz ar ary_Arab", "ar-Latn": "arb_Latn",
    "fa": "fas pes per prs", "sw": "swa swh", "et": "ekk est", "jv": "jw jav", "hi-Latn": "hi_latn hin_Latn",
    "yue": "zh-yue",
    "na": "na", "ku": "kmr", "az": "aze azj", "sq": "alb sqi als_Latn",
    "pcm": "pcm PCM pcm_Latn pcm-NG", "ru-Latn": "ru-Latn rus_Latn", "lzh": "lzh lzh_Hani", "nan-Latn": "nan_Latn",
    "bcl": "bcl_Latn", "diq": "diq_Latn", "pnb": "pnb_Arab", "azb": "azb_Arab", "wuu": "wuu_Hani", "sh-Cyrl": "sh_Cyrl",
}  # fmt: skip


@pytest.mark.parametrize(
    ("code", "written"), [(code, written) for code, all_ in MEANT.items() for written in all_.split()]
)
def test_a_code_of_another_standard_is_the_language_that_it_means(code, written):
    assert code_of(written) == code


@pytest.mark.parametrize("code", sorted(code for code in LISTED if "-" not in code and code != "zh"))
def test_a_listed_language_with_its_usual_script_is_not_read_as_its_macrolanguage(code):
    assert code_of(f"{code}_{usual_script(code)}") == code


@pytest.mark.parametrize(
    "written", ["und", "mul", "zxx", "xx", "qq", "qaa", "nan", "als", "-", "label", "Nigerian Pidgin", "sgn-XX-abc1"]
)
def test_a_code_without_one_language_here_is_none(written):
    assert code_of(written) == ""


def test_a_hint_never_takes_a_code_for_another_that_is_merely_spelled_like_it():
    assert "did you mean de (German)?" in unknown_code("Deutch")
    assert "did you mean pcm (Nigerian Pidgin)?" in unknown_code("Nigerian Pidgin")
    for code in ("nan", "label", "qq", "unk", "mul"):
        assert "did you mean" not in unknown_code(code)
    assert hint("als") == "write sq (Albanian) or gsw (Swiss German)."


@pytest.mark.slow
def test_every_language_of_the_registry_has_one_code_here_with_a_name_and_a_script():
    names = registry().languages
    codes = {code: code_of(code) for code in names}
    assert sorted(code for code, ours in codes.items() if not ours) == ["als", "nan", "unk"]
    assert all(code_of(code) == code and code in LANGUAGES for code in codes.values() if code)
    assert sum(code == ours for code, ours in codes.items()) > 7_700
    assert LANGUAGES["pcm"] == Language("pcm", "Nigerian Pidgin", "Nigerian Pidgin", script="Latn")
    assert (LANGUAGES["ru-Latn"].name, LANGUAGES["ru-Latn"].script) == ("Russian (Latin)", "Latn")
    assert ("arz" in LANGUAGES, "eng" in LANGUAGES, "pcm" in list(LANGUAGES)) == (False, False, False)


@pytest.mark.django_db
def test_every_importer_takes_the_same_codes(tmp_path):
    written = ["iw", "in", "eng", "nb", "pt_BR", "fil", "deu", "sr-Latn", "mo"]
    meant = ["he", "id", "en", "no", "pt", "tl", "de", "sr", "ro"]
    people = "username,name,languages\n" + "".join(f"p{n},P,{code}:5\n" for n, code in enumerate(written))
    assert [[*row.levels] for row in rows_of(people)] == [[code] for code in meant]
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


def test_texts_of_a_kind_and_guidelines_are_shown_in_the_closest_language():
    assert [best_language({"en": "a", "pt": "b", "zh": "c"}, [code]) for code in ("pt-BR", "zh-CN", "de")] == [
        "pt",
        "zh",
        "en",
    ]
    assert best_language({"en": "a", "pt": "b", "pt-BR": "c"}, ["pt-BR"]) == "pt-BR"
    assert [in_language(code, {"en": 1, "pt": 2}) for code in ("pt-BR", "en", "de")] == [2, 1, 1]


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


# --- languages that are listed nowhere, and what a corpus takes of them


PIDGIN = {"name": "Nigerian Pidgin", "autonym": "Naijá"}
VARIETIES = {
    "pt-BR": {"name": "Brazilian Portuguese", "autonym": "português brasileiro", "under": "pt"},
    "pt-PT": {"name": "European Portuguese", "autonym": "português europeu", "under": "pt"},
}
TOML = """
title = "Which language is it?"
form = "choice"

[languages.pcm]
name = "Nigerian Pidgin"
autonym = "Naijá"

[languages.pt-BR]
name = "Brazilian Portuguese"
under = "pt"

[languages.pt-PT]
name = "European Portuguese"
under = "pt"

[options]
redundancy = 2
"""


def test_a_language_may_stand_under_nothing_or_under_a_listed_code():
    added = read_added(
        {"pcm": PIDGIN, **VARIETIES, "kri": {"name": " Krio "}, "sr-Latn": {"name": "x", "script": "latn"}}
    )
    assert added["pcm"] == Language("pcm", "Nigerian Pidgin", "Naijá")
    assert {code: language.under for code, language in added.items()} == dict.fromkeys(added, "") | {
        "pt-BR": "pt",
        "pt-PT": "pt",
    }
    assert (added["kri"].autonym, added["sr-Latn"].script) == ("Krio", "Latn")
    codes = ["pcm", "pt-BR", "es-419", "sr-Latn", "sr-Latn-RS", "de-1901", "ca-valencia", "sl-Latn-IT-rozaj"]
    assert list(read_added(dict.fromkeys(codes, PIDGIN))) == codes
    assert [language.name for language in read_added({"arz": {}, "pt-BR": {"under": "pt"}}).values()] == [
        "Egyptian Arabic",
        "Portuguese (Brazil)",
    ]


@pytest.mark.parametrize(
    ("code", "table", "sentence"),
    [
        ("p", PIDGIN, "'p' is not a valid language code. Use a BCP 47 code such as pcm, pt-BR or sr-Latn."),
        ("pidgin", PIDGIN, "'pidgin' is not a valid language code. Use a BCP 47 code"),
        ("", PIDGIN, "'' is not a valid language code. Use a BCP 47 code"),
        ("pcm ", PIDGIN, "'pcm ' is not a valid language code"),
        ("pcm\n", PIDGIN, "is not a valid language code"),
        ("pt_br", PIDGIN, "'pt_br' is not a valid language code. Write pt-BR."),
        ("SR-LATN", PIDGIN, "'SR-LATN' is not a valid language code. Write sr-Latn."),
        ("not-de", PIDGIN, "'not-de' is not a valid language code. Write not-DE."),
        ("und", PIDGIN, "und is reserved for texts with no language"),
        (
            "sl-Latn-IT-rozaj-biske",
            PIDGIN,
            "The language code sl-Latn-IT-rozaj-biske has 22 characters. The limit is 16",
        ),
        ("pt", PIDGIN, "The language pt is built in as Portuguese. Remove it."),
        ("zh", PIDGIN, "The language zh is built in as Chinese. Remove it."),
        ("pcm", "Pidgin", "The language pcm must be a table. Write [languages.pcm], and the name below it."),
        ("pcm", {**PIDGIN, "autonm": "Naijá"}, "pcm has the unknown key 'autonm'. Did you mean autonym?"),
        (
            "pcm",
            {**PIDGIN, "labels": []},
            "pcm has the unknown key 'labels'. Valid keys are: name, autonym, script, under.",
        ),
        ("qaa", {}, 'The language qaa has no name. Add one, such as name = "Nigerian Pidgin".'),
        ("pcm", {"name": 3}, "The name of the language pcm is 3. It must be a short text on one line."),
        ("pcm", {"name": "  "}, "The name of the language pcm is '  '. It must be a short text on one line."),
        ("pcm", {**PIDGIN, "autonym": "a\nb"}, "The autonym of the language pcm is 'a\\nb'. It must be"),
        ("pcm", {**PIDGIN, "autonym": ""}, "The autonym of the language pcm is ''. It must be"),
        ("pcm", {**PIDGIN, "script": "Latin"}, "The script of the language pcm is 'Latin'. It must have four letters"),
        ("pcm", {**PIDGIN, "script": ""}, "The script of the language pcm is ''. It must have four letters"),
        ("pcm", {**PIDGIN, "under": "eng"}, "The value of under for the language pcm is 'eng', which is not"),
        (
            "pcm",
            {**PIDGIN, "under": ["en"]},
            "The value of under for the language pcm is ['en'], which is not a built-in code",
        ),
    ],
)
def test_what_is_wrong_with_a_language_is_said_in_one_sentence(code, table, sentence):
    with pytest.raises(ValueError) as error:
        read_added({"kri": {"name": "Krio"}, code: table})
    assert sentence in str(error.value)


def test_added_languages_have_names_come_after_the_listed_and_change_nothing_that_was_decided():
    def decided():
        listed = {code: LANGUAGES[code] for code in LISTED}
        return listed, dict(COVERAGE), ARTICLE_LABELS, normalise("fasttext", "pt"), confusable_with("pt")

    before, iterator = decided(), iter(LANGUAGES.items())
    next(iterator)
    add_names(read_added({"pcm": PIDGIN, **VARIETIES}))
    assert len(list(iterator)) == len(LISTED) - 1, "an iteration that has begun goes on undisturbed"
    assert decided() == before
    assert (LANGUAGES["pcm"].name, LANGUAGES["pt-BR"].under) == ("Nigerian Pidgin", "pt")
    assert list(LANGUAGES)[-3:] == ["pcm", "pt-BR", "pt-PT"]
    assert len(LANGUAGES) == len(LISTED) + 3
    assert dict(LANGUAGES.items())["pcm"] in LANGUAGES.values()
    assert not any("pcm" in languages or "pt-BR" in languages for languages in COVERAGE.values())
    with pytest.raises(KeyError):
        normalise("fasttext", "pcm")
    assert confusable_with("pcm") == frozenset()
    with pytest.raises(ValueError, match="is 'pcm', which is not a built-in code"):
        read_added({"fpe": {"name": "Pichi", "under": "pcm"}})
    # Codes and labels of detectors exist for listed languages only.
    add_names({"kri": Language("kri", "Krio", "Krio", "en", "en", "en", labels=("en",))})
    assert LANGUAGES["kri"] == Language("kri", "Krio", "Krio")
    with pytest.raises(ValueError, match="The language pt is built in as Portuguese"):
        add_names({"pt": LANGUAGES["pt"]})


def test_the_same_language_may_be_added_again_but_not_by_other_names():
    add_names(read_added({"pcm": PIDGIN}))
    add_names(read_added({"pcm": {**PIDGIN, "under": "en"}}))
    with pytest.raises(ValueError) as error:
        add_names(read_added({"qaa": {"name": "Krio"}, "pcm": {"name": "Pidgin"}}))
    assert str(error.value).startswith("The language pcm was already added as 'Nigerian Pidgin' ('Naijá')")
    assert "qaa" not in LANGUAGES


def test_once_added_a_language_is_a_label_and_may_be_declared():
    with pytest.raises(RecordError, match="'qaa' is not a known label"):
        read_map(["pidgin=qaa"])
    with pytest.raises(RecordError, match="The language 'QAA' is not a known language code; write a code such as"):
        read_language("QAA")
    add_names(read_added({"qaa": PIDGIN, **VARIETIES}))
    assert all(map(is_label, ("qaa", "pcm", "pt-BR", "pt")))
    assert read_map(["pidgin=pcm", "por=pt-BR,pt-PT"]) == {"pidgin": ("pcm",), "por": ("pt-BR", "pt-PT")}
    assert read_language(" pcm ") == "pcm"
    assert (read_language("pt_br"), read_language("pt-PT"), read_language("pt_AO")) == ("pt-BR", "pt-PT", "pt")


# --- by a file


@pytest.fixture
def kind(write):
    return write("kind.toml", TOML)


def ads(*languages):
    return [{"id": n, "query": f"q{n}"} | ({"language": code} if code else {}) for n, code in enumerate(languages)]


def test_records_may_be_in_the_languages_of_a_file_and_in_no_unknown_one(write, import_corpus, kind):
    file = write("ads.jsonl", ads("pcm", "pt-BR", "pt-PT", "pt", "qaa"))
    import_corpus("without", file, fields="query")
    assert [row["language"] for row in posts("without")] == ["pcm", "pt", "pt", "pt"]
    assert "'qaa' is not a known language code" in rejects("without")[0]["reason"]
    import_corpus("c", file, fields="query", languages=kind)
    assert [row["language"] for row in posts()] == ["pcm", "pt-BR", "pt-PT", "pt"]
    assert "'qaa' is not a known language code" in rejects()[0]["reason"]
    import_corpus("d", write("more.jsonl", ads("", "")), fields="query", language="pcm", languages=kind)
    (sample,) = sample_records(Corpus.objects.get(name="d"), ["pcm"], size=1, seed="s")
    assert (sample.language, sample.size, sample.frame_size) == ("pcm", 1, 2)


@pytest.fixture
def importing(write, import_corpus):
    import_corpus("c", write("posts.jsonl", POSTS))
    call_command("prelabel", "c", processes=1)

    def run(labels, **options):
        file = write("p.tsv", "".join(f"{n}\t{label}\n" for n, label in enumerate(labels, 1)))
        call_command("import_predictions", "c", str(file), name="mine", version="1", **options)

    return run


def test_predictions_may_have_the_languages_of_a_file_and_be_drawn_by(importing, kind, tmp_path):
    for options, sentence in (
        ({}, "The label 'qaa' is not a known language code"),
        ({"languages": tmp_path / "no.toml"}, r"no\.toml cannot be read: No such file or directory\."),
    ):
        with pytest.raises(CommandError, match=sentence):
            importing(["qaa", "de", "de", "de", "de", "de"], **options)
    importing(["pcm", "pidgin", "pt-BR", "por", "und", "de"], languages=kind, map=["pidgin=pcm", "por=pt-BR,pt-PT"])
    assert manifest_of("c").predictions[0].mapping == {"por": ("pt-BR", "pt-PT")}
    mine = find_predictor("c", "mine")
    assert triggers("c", mine) == {"de": 1, "pcm": 2, "por": 1, "pt-BR": 1, "und": 1}
    assert predicted_labels("c", mine, ["2"]) == {"2": "pcm"}
    samples = sample_precision(Corpus.objects.get(), None, size=5, seed="s", predictor=mine)
    assert [(sample.language, sample.size) for sample in samples] == [("de", 1), ("pcm", 2), ("pt-BR", 1)]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("title = 'x'", "kind.toml contains no table [languages.CODE], such as [languages.pcm]."),
        ("languages = ['pcm']", "kind.toml contains no table [languages.CODE], such as [languages.pcm]."),
        ("[languages", "kind.toml cannot be read as TOML: "),
        (b"title = '\xff'", "kind.toml cannot be read as TOML: "),
    ],
)
def test_a_file_of_languages_that_cannot_be_used_is_explained(write, import_corpus, content, sentence):
    kind = write("kind.toml", content)
    with pytest.raises(CommandError) as error:
        import_corpus("c", write("ads.jsonl", ads("pt")), fields="query", languages=kind)
    assert sentence in str(error.value)
    assert not Corpus.objects.exists()
