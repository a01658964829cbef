"""suggest: two simple systems rank the labels of a vocabulary for the records of a corpus."""

import json
import random
from collections import Counter
from math import log

import pytest
from django.conf import settings as django_settings
from django.core.management import CommandError

from annotate.actions.registry import call_command
from annotate.core.measures.ranked_labels import Judged, measures_at
from corpora.predictions import concept_rankers
from corpora.predictions.concept_rankers import NEIGHBOURS, TITLE, Counts, Phrases, label_match, nearest, terms_of
from corpora.predictions.rankings import fuse_rankings, load_rankings, rank_labels
from corpora.storage.inventory import delete_predictions
from corpora.storage.layout import manifest_of
from tests.corpora.on_disk import bytes_of, posts

pytestmark = pytest.mark.django_db
FIXTURES = django_settings.BASE_DIR / "fixtures"
EURLEX = [FIXTURES / "eurlex" / f"{split}.jsonl" for split in ("train", "dev", "test")]

LAW = {
    "1": {"label": "law", "label_de": "Recht"},
    "2": {"label": "fishing licence", "label_de": "Fischereilizenz"},
    "3": {"label": "fishing", "alt_labels": ["fishery"], "label_de": "Fischerei"},
    "4": {"label": "licence"},
    "5": {"label": "sheep"},
}


def act(key, title, body, concepts, split="train", language="en"):
    return {"id": key, "language": language, "title": title, "body": body, "split": split, "concepts": concepts}


ACTS = [
    act("a", "On fishing licences", "A licence to fish cod.", ["2"]),
    act("b", "On sheep", "Wool of sheep is shorn in spring.", ["5", "9"]),
    act("c", "On licences", "Fishing cod needs a licence.", [], "test"),
    act("d", "Über die Fischerei", "Jede Fischereilizenz ist Recht.", [], "test", "de"),
    act("e", "On wool", "It is shorn in spring.", ["1"], "dev"),
]


@pytest.fixture
def law(write):
    call_command("import_vocabulary", "law", write("law.json", json.dumps(LAW)), verbosity=0)


@pytest.fixture
def corpus(law, write, import_corpus):
    import_corpus("acts", write("acts.jsonl", ACTS), fields="title body split", labels="concepts")


@pytest.fixture
def suggested(printed):
    return lambda corpus="acts", vocabulary="law", **how: printed("suggest", corpus, vocabulary=vocabulary, **how)


def of(name, *keys):
    return load_rankings("acts", name, keys)


# --- what is ranked


def test_labels_in_regional_and_general_tags_are_found_in_records_of_their_language(write, import_corpus, suggested):
    tags = {
        "1": {"label_zh": "电子商务"},
        "2": {"label_nb": "farge"},
        "3": {"label_pt-BR": "ônibus"},
        "4": {"label": "x"},
    }
    call_command("import_vocabulary", "law", write("law.json", json.dumps(tags)), verbosity=0)
    records = [("a", "电子商务", "zh-CN"), ("b", "farge", "no"), ("c", "onibus", "pt"), ("d", "farge", "en")]
    rows = [{"id": key, "language": language, "title": title} for key, title, language in records]
    import_corpus("acts", write("acts.jsonl", rows), fields="title")
    assert "3 of 4 records" in suggested()


def test_concepts_are_ranked_by_how_often_their_labels_stand_in_a_record_and_how_rare_they_are(corpus, suggested):
    suggested()
    # The longer label counts, and not the labels within it; in "licences", the final s is ignored.
    assert of("label-match", "a", "b", "c", "e") == {"a": ["2", "4"], "b": ["5"], "c": ["4", "3"], "e": []}
    # Labels in the record's own language are searched, and its title counts more.
    assert of("label-match", "d") == {"d": ["3", "1", "2"]}
    suggested(depth=1)
    best = str([predictor for predictor in manifest_of("acts").predictions if predictor.name == "label-match"][-1])
    assert of(best, "a", "c", "d") == {"a": ["2"], "c": ["4"], "d": ["3"]}


def test_the_labels_of_the_records_most_alike_are_ranked_and_never_a_record_s_own(corpus, suggested):
    output = suggested()
    assert [labels[0] for labels in of("nearest", "b", "c", "e").values()] == ["1", "2", "5"]
    assert all(act["concepts"][0] not in of("nearest", act["id"])[act["id"]] for act in ACTS if act["concepts"])
    assert "Note: 1 label of the records was ignored, because law, version 1 does not contain it: 9." in output
    assert "Records used for learning: 3." in output


def test_only_those_are_learned_from_that_are_named_and_their_field_is_not_read_as_text(corpus, suggested):
    suggested(learn_from="split=dev")
    # Without the field, d, which is in German, shares no words with e.
    assert of("nearest", "a", "d", "e") == {"a": ["1"], "d": [], "e": []}
    assert [predictor.source for predictor in manifest_of("acts").predictions] == [
        "law, version 1",
        "law, version 1, split=dev",
    ]


def test_records_that_are_to_be_kept_apart_do_not_learn_from_one_another(law, write, import_corpus, suggested):
    rows = [act(key, "On cod", "Cod.", [concept], split) for key, concept, split in ("a1x", "b2x", "c3y")]
    rows.append(act("d", "Wool", "Of what all have nothing is learned.", []))
    import_corpus("acts", write("acts.jsonl", rows), fields="title body split", labels="concepts")
    suggested(apart="split")
    assert of("nearest", "a", "b", "c") == {"a": ["3"], "b": ["3"], "c": ["1", "2"]}


# --- on acts of the EU


def right_in_five(rankings, gold):
    return measures_at([Judged(of, rankings[key]) for key, of in gold.items()], 5)["RP"][:, 4].mean()


def test_on_acts_that_were_not_learned_from_both_find_concepts_and_together_more_than_either(import_corpus, suggested):
    call_command("import_vocabulary", "eurovoc", str(FIXTURES / "eurovoc" / "concepts.json"), verbosity=0)
    import_corpus("acts", *EURLEX, format="eurlex", licence="CC-BY-SA-4.0")
    assert "Records used for learning: 20." in suggested(vocabulary="eurovoc", learn_from="split=train")
    rows = posts("acts")
    gold = {row["id"]: frozenset(row["declared"]) for row in rows if row["split"] != "train"}
    match, near = (load_rankings("acts", name, gold) for name in ("label-match", "nearest"))
    both = {key: fuse_rankings([match[key], near[key]]) for key in gold}
    # The number of acts in train with a label is the same for each act.
    often = rank_labels(Counter(label for row in rows if row["split"] == "train" for label in row["declared"]))
    assert right_in_five(dict.fromkeys(gold, often), gold) < 0.2
    assert right_in_five(match, gold) > 0.37
    assert right_in_five(near, gold) > 0.32
    assert right_in_five(both, gold) > 0.46


# --- again, and what is refused


def test_the_same_again_changes_nothing_and_gives_the_same_bytes_when_it_is_made_anew(corpus, suggested):
    suggested(learn_from="split=train")
    before, names = bytes_of("acts"), [str(predictor) for predictor in manifest_of("acts").predictions]
    assert suggested(learn_from="split=train").count(": already made: ranked labels for") == 2
    assert bytes_of("acts") == before
    for name in names:
        delete_predictions("acts", name)
    suggested(learn_from="split=train")
    assert [str(predictor) for predictor in manifest_of("acts").predictions] == names
    assert {name: of for name, of in bytes_of("acts").items() if name.startswith("predictions")} == {
        name: of for name, of in before.items() if name.startswith("predictions")
    }


def test_what_is_made_of_something_else_stands_beside_it(corpus, suggested, import_corpus, write):
    suggested()
    versions = {str(predictor) for predictor in manifest_of("acts").predictions}
    suggested(depth=5)
    more = write("more.jsonl", [act("f", "On cod", "Cod.", [])])
    import_corpus("acts", more, fields="title body split", labels="concepts")
    suggested()
    call_command("import_vocabulary", "law", write("law.json", json.dumps(LAW | {"6": {"label": "cod"}})), verbosity=0)
    suggested()
    newest = [predictor for predictor in manifest_of("acts").predictions if predictor.name == "label-match"][-1]
    assert of(str(newest), "f") == {"f": ["6"]}
    assert len({str(predictor) for predictor in manifest_of("acts").predictions} | versions) == 8


def test_where_no_record_has_a_label_of_the_vocabulary_label_match_alone_is_made(law, write, import_corpus, suggested):
    rows = [{key: value for key, value in row.items() if key != "concepts"} for row in ACTS]
    import_corpus("acts", write("acts.jsonl", rows), fields="title body split")
    assert "Note: nearest was not created, because no record has a label of the vocabulary." in suggested()
    assert [predictor.name for predictor in manifest_of("acts").predictions] == ["label-match"]
    assert ": already made: ranked labels for 4 of 5 records" in suggested()
    with pytest.raises(CommandError, match="The records of corpus acts have no declared labels to learn from"):
        suggested(learn_from="split=train")


def test_what_cannot_be_made_is_refused_and_nothing_is_kept(corpus, suggested):
    before = bytes_of("acts")
    for options, sentence in (
        ({"learn_from": "split"}, "--learn-from split: expected FIELD=VALUE, such as split=train"),
        ({"learn_from": "spilt=train"}, "acts has no field 'spilt'. Its fields are: title, body, split"),
        ({"learn_from": "split=test"}, "No record in corpus acts with split=test has a label that is a concept of"),
        ({"apart": "celex_id"}, "acts has no field 'celex_id'"),
        ({"vocabulary": "lex"}, "The vocabulary 'lex' does not exist. Available vocabularies: law 1"),
        ({"corpus": "none"}, "The corpus 'none' does not exist"),
    ):
        with pytest.raises(CommandError, match=sentence):
            suggested(**options)
    assert bytes_of("acts") == before


# --- the two systems by themselves


def counted(*rows):
    counts = Counts()
    for title, rest in rows:
        counts.add(title, rest)
    return counts


def test_only_whole_words_make_a_phrase_and_the_longest_that_begins_first_is_taken():
    phrases = Phrases([("1", "import of meat"), ("2", "meat"), ("3", "import"), ("4", "Meats"), ("5", "…")])

    def concepts_in(text):
        return [phrases.concepts[number] for number in phrases.occurrences(terms_of(text))]

    assert concepts_in("Imports of meat, meat and imports") == [["1"], ["2", "4"], ["3"]]
    assert concepts_in("import of meatballs") == [["3"]]
    assert concepts_in("") == []


def test_the_scores_are_those_that_the_module_states():
    phrases = Phrases([("1", "law"), ("2", "sheep"), ("3", "law")])
    ([law],), ([sheep],) = ([phrases.occurrences([word])] for word in ("law", "sheep"))
    counts = counted(([law], [law, sheep]), ([], [law]), ([], []))
    rare, often = log(4 / 1), log(4 / 2)
    title = pytest.approx((1 + log(TITLE + 1)) * often, abs=1e-6)
    assert list(label_match(counts, phrases)) == [
        {"1": title, "2": pytest.approx(rare, abs=1e-6), "3": title},
        {"1": pytest.approx(often, abs=1e-6), "3": pytest.approx(often, abs=1e-6)},
        {},
    ]
    # Three documents: two words have the weight ln(4/3) each, and the third has none, because it is in all documents.
    counts = counted(([], "abx"), ([], "ax"), ([], "bx"))
    done = []
    assert list(nearest(counts, [["1"], ["2"], []], ["0", "1", "2"], done.append)) == [
        {"2": 0.5},
        {"1": 0.5},
        {"1": 0.5},
    ]
    assert sum(done) == 3


def test_no_more_neighbours_count_than_the_module_states_and_of_equal_ones_the_first():
    size = NEIGHBOURS + 5
    counts = counted(*([([], "ab")] * size), ([], "c"))
    labels = [[str(number)] for number in range(size)] + [[]]
    rankings = list(nearest(counts, labels, [str(number) for number in range(size + 1)], lambda count: None))
    assert list(rankings[0]) == [str(number) for number in range(1, NEIGHBOURS + 1)]
    assert list(rankings[-2]) == [str(number) for number in range(NEIGHBOURS)]
    assert rankings[-1] == {}


def test_blocks_of_any_size_give_the_same(monkeypatch):
    rng = random.Random(1)
    counts = counted(*(([], rng.choices("abcdefghij", k=5)) for _ in range(50)))
    labels = [[str(rng.randrange(9))] if rng.random() < 0.7 else [] for _ in range(50)]
    keys = [str(number) for number in range(50)]
    whole = list(nearest(counts, labels, keys, lambda count: None))
    monkeypatch.setattr(concept_rankers, "_CELLS", 100)
    assert list(nearest(counts, labels, keys, lambda count: None)) == whole
