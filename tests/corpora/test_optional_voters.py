"""Optional detectors vote like the built-in ones, in our codes, if their packages are installed."""

import sys
from functools import cache
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace

import pytest
from django.apps import apps as django_apps

from corpora.core import voters
from corpora.core.detectors import ranked
from corpora.core.languages import LISTED
from corpora.core.voters import CLD3, PACKAGED, Heliport, Py3Langid

SENTENCES = {
    "de": "Die Katze schläft den ganzen Tag auf dem warmen Fensterbrett.",
    "fr": "Les enfants jouent dans le jardin derrière la maison.",
    "he": "הילדים משחקים בגינה מאחורי הבית",
    "no": "Barna leker i hagen bak det gamle huset, og det begynner å regne.",
    "zh": "孩子们在房子后面的花园里玩耍",
}


# The models of the others take one second each to load.
SLOW = [pytest.param(voter, marks=pytest.mark.slow) for voter in PACKAGED if voter is not CLD3]


@pytest.fixture(params=[CLD3, *SLOW], ids=lambda voter: voter.name)
def voter(request):
    if find_spec(request.param.module) is None:
        pytest.skip(f"{request.param.package} is not installed")
    return request.param()


def test_known_languages_are_returned_in_our_codes_with_scores_above_the_minimum(voter):
    answers = [*voter.vote([*SENTENCES.values()], 3)]
    assert [answer[0][0] for answer in answers] == [*SENTENCES]
    assert all(answer[0][1] >= voter.min_score for answer in answers)
    assert {code for answer in answers for code, _ in answer} <= voter.languages <= LISTED
    assert ranked(answers, 3).first().tolist() == ranked([*voter.vote([*SENTENCES.values()], 1)], 1).first().tolist()


def test_texts_without_letters_get_no_vote(voter):
    assert [*voter.vote(["", "123 456", "🙂 !!"], 3)] == [(), (), ()]


def test_a_repeated_word_is_no_evidence_for_cld3():
    pytest.importorskip("gcld3")
    assert [*CLD3().vote(["Das ist ein langer Text. " * 2_000], 1)] == [()]


def test_a_version_names_the_package(voter):
    assert voter.version()[0].isdigit()


def test_the_declared_codes_are_those_of_the_models():
    pytest.importorskip("py3langid")
    pytest.importorskip("heliport")
    assert {*Py3Langid.own_codes.split()} == {*voters._py3langid().labels}
    # heliport also has thresholds for parts of some languages, such as `fini`, which it never returns.
    assert {*Heliport.own_codes.split()} <= {*voters._heliport().get_confidence_all()}


@pytest.fixture
def invented_cld3(monkeypatch):
    """A replacement for CLD3's package that returns the first word of a text, with the second as its probability."""

    class Identifier:
        def __init__(self, **options):
            pass

        def FindLanguage(self, text):
            language, probability = text.split() or ("ja", "0.78")
            return SimpleNamespace(language=language, probability=float(probability))

    package = ModuleType("gcld3")
    package.NNetLanguageIdentifier = Identifier
    monkeypatch.setitem(sys.modules, "gcld3", package)
    for cached in (voters._cld3, voters._cld3_fallback):
        monkeypatch.setattr(voters, cached.__name__, cache(cached.__wrapped__))
    return CLD3()


def test_a_package_s_code_is_converted_and_an_unlisted_language_is_no_vote(invented_cld3):
    texts = [
        "iw 0.9",
        "fil 0.8",
        "hi-Latn 0.7",
        "zh 1.0000001",
        "ja-Latn 0.9",
        "und 0.9",
        "jv 0.2",
        "ja 0.78",
        "ja 0.9",
    ]
    answers = [*invented_cld3.vote(texts, 3)]
    assert answers == [
        [("he", 0.9)],
        [("tl", 0.8)],
        [("hi-Latn", 0.7)],
        [("zh", 1.0)],
        (),
        (),
        [("jv", 0.2)],
        (),
        [("ja", 0.9)],
    ]
    assert ranked(answers, 3).from_score(invented_cld3.min_score).first().tolist().count(-1) == 4
    assert {"he", "tl", "hi-Latn", "zh"} < invented_cld3.languages


def test_a_voter_is_registered_only_if_its_package_is_installed(monkeypatch):
    registered = {name: voters.VOTERS[name] for name in voters.DEFAULT.voters}
    monkeypatch.setattr(voters, "VOTERS", registered)
    monkeypatch.setattr(voters, "find_spec", lambda module: module == "gcld3")
    django_apps.get_app_config("corpora").ready()
    assert [*registered] == ["langid", "cld2", "fasttext", "cld3"]


def test_heliport_s_score_is_a_language_s_share_of_the_best_five(monkeypatch):
    logs = [("deu", 2.0), ("nld", 3.0), ("ace", 4.0)]
    monkeypatch.setattr(voters, "_heliport", lambda: SimpleNamespace(identify_topk_with_score=lambda text, k: logs))
    [answer] = Heliport().vote(["ein Satz"], 3)
    assert answer == [("de", pytest.approx(1 / 1.11)), ("nl", pytest.approx(0.1 / 1.11))]
