"""Languages that are listed nowhere, and what a corpus takes of them."""

import pytest
from django.core.management import CommandError

from annotate.actions.commands import call_command
from corpora.core.languages import (
    ARTICLE_LABELS,
    COVERAGE,
    LANGUAGES,
    LISTED,
    Language,
    add_names,
    confusable_with,
    normalise,
    read_added,
)
from corpora.core.records import RecordError, read_language
from corpora.draws.language_draws import sample_precision
from corpora.draws.part_draws import sample_records
from corpora.models import Corpus
from corpora.predictions.prediction_rows import is_label, read_map
from corpora.predictions.predictor_labels import find_predictor, predicted_labels, triggers
from corpora.storage.layout import manifest_of
from tests.corpora.conftest import POSTS
from tests.corpora.on_disk import posts, rejects

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
        ("und", PIDGIN, "und is reserved for texts without a single language"),
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
        ("pcm", {}, 'The language pcm has no name. Add one, such as name = "Nigerian Pidgin".'),
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
    assert not any("pcm" in known or "pt-BR" in known for known in COVERAGE.values())
    with pytest.raises(KeyError):
        normalise("fasttext", "pcm")
    assert confusable_with("pcm") == frozenset()
    with pytest.raises(ValueError, match="is 'pcm', which is not a built-in code"):
        read_added({"fpe": {"name": "Pichi", "under": "pcm"}})
    # Codes and labels of detectors are for listed languages alone.
    add_names({"kri": Language("kri", "Krio", "Krio", "en", "en", "en", labels=("en",))})
    assert LANGUAGES["kri"] == Language("kri", "Krio", "Krio")
    with pytest.raises(ValueError, match="The language pt is built in as Portuguese"):
        add_names({"pt": LANGUAGES["pt"]})


def test_the_same_language_may_be_added_again_but_not_by_other_names():
    add_names(read_added({"pcm": PIDGIN}))
    add_names(read_added({"pcm": {**PIDGIN, "under": "en"}}))
    with pytest.raises(ValueError) as error:
        add_names(read_added({"kri": {"name": "Krio"}, "pcm": {"name": "Pidgin"}}))
    assert str(error.value).startswith("The language pcm was already added as 'Nigerian Pidgin' ('Naijá')")
    assert "kri" not in LANGUAGES


def test_once_added_a_language_is_a_label_and_may_be_declared():
    with pytest.raises(RecordError, match="'pcm' is not a known label"):
        read_map(["pidgin=pcm"])
    with pytest.raises(RecordError, match="The language 'PCM' is not a known code; write a code such as"):
        read_language("PCM")
    add_names(read_added({"pcm": PIDGIN, **VARIETIES}))
    assert all(map(is_label, ("pcm", "pt-BR", "pt")))
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
    file = write("ads.jsonl", ads("pcm", "pt-BR", "pt-PT", "pt", "kri"))
    import_corpus("without", file, fields="query")
    assert [row["language"] for row in posts("without")] == ["pt", "pt", "pt"]
    assert "'pcm' is not a known code" in rejects("without")[0]["reason"]
    import_corpus("c", file, fields="query", languages=kind)
    assert [row["language"] for row in posts()] == ["pcm", "pt-BR", "pt-PT", "pt"]
    assert "'kri' is not a known code" in rejects()[0]["reason"]
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
        ({}, "The label 'pcm' is not a known language code"),
        ({"languages": tmp_path / "no.toml"}, r"no\.toml cannot be read: No such file or directory\."),
    ):
        with pytest.raises(CommandError, match=sentence):
            importing(["pcm", "de", "de", "de", "de", "de"], **options)
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
