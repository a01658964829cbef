"""Panels of detectors and imported predictors: which ones are possible, and their votes on posts and records."""

from collections import Counter

import pytest
from django.test import override_settings

from corpora.core import CorpusError
from corpora.core.voters import DEFAULT, agreed_vote, panel_of
from corpora.draws.part_draws import sample_records
from corpora.draws.samples import record, sample_uniform
from corpora.models import Corpus, Item
from corpora.predictions.panels import first_votes, panel_named, supported_labels
from corpora.predictions.prediction_import import import_predictions, import_ranked
from corpora.storage.layout import manifest_of

pytestmark = pytest.mark.django_db
CODES = ("de", "en", "fr", "und")


def predicted(name, number):
    """Return the label of an invented predictor. The predictors agree on most items."""
    return CODES[number % 3] if (number * 7 + ord(name)) % 5 else CODES[number * ord(name) % 4]


@pytest.fixture
def posts(demo_corpus, write):
    """The demo corpus with four imported predictors, a@1 to d@1."""
    keys = [row["id"] for row in sample_uniform(demo_corpus, size=2_000, seed="1").rows]
    for name in "abcd":
        rows = [{"id": key, "label": predicted(name, place)} for place, key in enumerate(keys)]
        import_predictions("demo", write(f"{name}.jsonl", rows), name=name, version="1", declared={})
    return demo_corpus


@pytest.mark.parametrize(
    ("names", "agree"),
    [
        (["langid", "a@1"], 2),
        (["langid", "cld2", "a"], 2),
        (["a", "b", "c", "d", "cld2"], 3),
        (["langid", "cld2", "fasttext", "a", "b", "c", "d"], 4),
        (["langid", "cld2", "fasttext", "a", "b", "c", "d"], None),
    ],
)
def test_the_label_on_which_enough_voters_agree_is_the_same_in_queries_and_in_python(posts, names, agree):
    panel = panel_named("demo", names, agree)
    assert len(panel.voters) == len(names)
    sample = sample_uniform(posts, size=300, seed="2", panel=panel)
    rows = list(sample.rows)
    _, items = record(sample)
    agreed = [agreed_vote(item.votes, panel) for item in items]
    assert agreed == [row["agreed"] for row in rows]
    assert len({*agreed}) > 1
    for item, label in zip(items, agreed, strict=True):
        firsts = Counter(item.votes[voter][0][0] for voter in panel.voters if item.votes[voter])
        assert label == next((code for code, number in firsts.items() if number >= panel.agree), None)
    counted = list(first_votes("demo", 0, panel))
    assert sum(voted.posts for voted in counted) == manifest_of("demo").rows
    assert sample.detectors[0].keys() == {*panel.voters}


def test_another_panel_adds_its_votes_to_an_item_and_a_changed_vote_is_refused(posts):
    _, items = record(sample_uniform(posts, size=50, seed="2"))
    panel = panel_named("demo", ["cld2", "a", "b"])
    record(sample_uniform(posts, size=50, seed="2", panel=panel))
    for item in items:
        before = dict(item.votes)
        item.refresh_from_db()
        assert {name: item.votes[name] for name in DEFAULT.voters} == before
        assert item.votes.keys() == {*DEFAULT.voters, "a@1", "b@1"}
    record(sample_uniform(posts, size=50, seed="2"))
    first = items[0]
    Item.objects.filter(pk=first.pk).update(votes=first.votes | {"b@1": [["fr", None], ["de", None]]})
    with pytest.raises(CorpusError, match=f"Post {first.key} was drawn earlier, and its votes"):
        record(sample_uniform(posts, size=50, seed="2", panel=panel))


@pytest.fixture
def records(write, import_corpus):
    rows = [{"id": f"r{number}", "language": "en", "title": f"Title {number}"} for number in range(20)]
    import_corpus("news", str(write("records.jsonl", rows)), fields="title")
    keys = [row["id"] for row in rows]
    for name in "ab":
        labels = [{"id": key, "label": "sports" if number % 4 else name} for number, key in enumerate(keys)]
        import_predictions("news", write(f"{name}.jsonl", labels), name=name, version="1", declared={})
    run = "".join(f"{key} Q0 {label} 1 {1 / rank} s\n" for key in keys[:9] for rank, label in enumerate("vwxyz", 1))
    import_ranked("news", write("run.trec", run), name="run", version="2")
    return Corpus.objects.get(name="news")


def test_records_are_drawn_with_the_votes_of_predictors_and_ranked_ones_vote_with_their_first_labels(records):
    panel = panel_named("news", ["a", "b@1", "run@2"], 2)
    for engine in ("duckdb",):
        with override_settings(ENGINE=engine):
            [sample] = sample_records(records, None, size=None, seed="1", panel=panel)
    _, items = record(sample)
    assert len(items) == 20
    for item in items:
        number = int(item.key[1:])
        assert item.votes["a@1"] == [["sports" if number % 4 else "a", None]]
        assert [label for label, _ in item.votes["run@2"]] == (["v", "w", "x"] if number < 9 else [])
        assert agreed_vote(item.votes, panel) == ("sports" if number % 4 else None)
    assert supported_labels("news", panel) == {"sports"}
    [plain] = sample_records(records, None, size=None, seed="1")
    assert (plain.keys, plain.detectors) == (sample.keys, [])
    assert plain.digest != sample.digest


@pytest.mark.parametrize(
    ("names", "agree", "why"),
    [
        (["cld2", "a"], None, "cld2 votes on the languages of posts"),
        (["a", "c"], None, "Corpus news has no predictor 'c'"),
        (["a"], None, "A panel has two to seven voters, not 1"),
        (["a", "a@1"], None, "The voter a@1 is listed twice"),
        (["a", "b"], 1, "1 of 2 voters cannot settle a label. At least 2 must agree"),
        (["a", "b"], 3, "3 of 2 voters cannot settle a label"),
    ],
)
def test_an_impossible_panel_is_refused(records, names, agree, why):
    with pytest.raises(CorpusError, match=why):
        panel_named("news", names, agree)


def test_a_panel_of_eight_is_too_large():
    with pytest.raises(ValueError, match="not 8"):
        panel_of("abcdefgh")
