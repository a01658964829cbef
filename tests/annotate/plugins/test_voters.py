"""A detector that is defined in this folder alone votes like those that come with Assay."""

import json
from itertools import islice

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.management.base import CommandError

from annotate.actions.commands import call_command
from annotate.models import Task
from corpora.core import CorpusError
from corpora.core.detectors import ranked
from corpora.core.voters import DEFAULT, VOTERS, load, register
from corpora.draws.samples import sample_uniform
from corpora.engines import votes_in
from corpora.models import Corpus
from corpora.predictions.panels import panel_named
from corpora.predictions.predictor_labels import find_predictor, triggers
from corpora.storage.layout import corpus_dir, manifest_of
from tests.annotate.corpus import POSTS
from tests.annotate.plugins.common_words import CommonWords

pytestmark = pytest.mark.django_db


@pytest.fixture
def common():
    register(voter := CommonWords())
    yield voter
    VOTERS.pop("common", None)


@pytest.fixture
def corpus(tmp_path):
    with open(POSTS, encoding="utf-8") as file:
        (tmp_path / "posts.jsonl").write_text("".join(islice(file, 80)), encoding="utf-8")
    call_command("import_corpus", "posts", str(tmp_path / "posts.jsonl"), licence="CC0-1.0", source="demo", verbosity=0)
    return Corpus.objects.get()


FOUR = "langid cld2 fasttext common"


def test_a_detector_from_outside_votes_and_is_one_of_a_panel(common, corpus, tmp_path, capsys):
    call_command("prelabel", "posts", processes=1, voters=FOUR)
    assert "all four detectors agree on the language" in capsys.readouterr().out
    [part] = manifest_of("posts").votes
    rows = pq.read_table(corpus_dir("posts") / "votes" / part.name).to_pylist()
    by_id = {row["id"]: row["common"][0]["language"] for row in rows if row["common"]}
    assert set(by_id.values()) == {"de", "en", "fr"}
    assert part.versions["common"] == "1, text in NFKC"
    unanimous = {
        row["id"]
        for row in rows
        if len({tuple(vote["language"] for vote in row[name][:1]) for name in FOUR.split()}) == 1
    } - {row["id"] for row in rows if not row["common"]}
    assert part.unanimous == len(unanimous) > 0

    said = triggers("posts", find_predictor("posts", "common"))
    assert said["de"] == list(by_id.values()).count("de")
    assert sum(triggers("posts", find_predictor("posts", "majority")).values()) == len(rows)

    how = {"kind": "language", "corpus": "posts", "size": "40", "seed": "1", "audit_share": "0"}
    call_command("open_task", "lang", **how, voters=FOUR, verbosity=0)
    task = Task.objects.get()
    for unit in task.units.select_related("item"):
        assert unit.item.votes.keys() == {*FOUR.split()}
        assert unit.agreed_label in ("", by_id.get(unit.item.key))
    assert {"en"} <= set(task.units.values_list("agreed_label", flat=True)) <= {"", "de", "en", "fr"}

    call_command("export_gold", "lang", out=tmp_path / "gold", verbosity=0)
    manifest = json.loads((tmp_path / "gold" / "manifest.json").read_text())
    assert {*manifest["detectors"][0]} == {"langid", "cld2", "fasttext", "common"}
    card = (tmp_path / "gold" / "README.md").read_text()
    assert "Four detectors (langid.py, CLD2, fastText, common words) labelled every post. If all four agree" in card
    [read] = votes_in(pa.array([json.dumps({"langid": [], "common": [["de", 0.5]]})]), ["langid", "common"]).to_pylist()
    assert read == [{"detector": "common", "rank": 1, "language": "de", "score": 0.5}]


def test_a_registered_voter_changes_neither_the_default_panel_nor_what_is_stored(corpus, common):
    call_command("prelabel", "posts", processes=1, verbosity=0)
    [part] = manifest_of("posts").votes
    assert tuple(part.versions) == DEFAULT.voters
    names = pq.read_schema(corpus_dir("posts") / "votes" / part.name).names
    assert names == ["id", "letters", *DEFAULT.voters]
    sample = sample_uniform(corpus, size=3, seed="1")
    assert [json.loads(row["votes"]).keys() for row in sample.rows] == [{*DEFAULT.voters}] * 3
    with pytest.raises(
        CorpusError, match=r"common has not voted on all posts of corpus posts. Run `assay prelabel posts"
    ):
        sample_uniform(corpus, size=3, seed="1", panel=panel_named("posts", FOUR.split()))
    call_command("prelabel", "posts", processes=1, voters=FOUR, again=True, verbosity=0)
    assert [*sample_uniform(corpus, size=3, seed="1").rows] == [*sample.rows]
    call_command("prelabel", "posts", processes=1, verbosity=0)  # the same voters as before
    del VOTERS["common"]
    assert [*sample_uniform(corpus, size=3, seed="1").rows] == [*sample.rows]
    with pytest.raises(CommandError, match="The detector common is not installed"):
        call_command("prelabel", "posts", processes=1, again=True, verbosity=0)


def test_a_package_names_its_voters_by_an_entry_point_and_two_voters_cannot_have_one_name(installed_package):
    installed_package("voters", "common", "tests.annotate.plugins.common_words:CommonWords")
    load()
    try:
        assert isinstance(VOTERS["common"], CommonWords)
        with pytest.raises(ValueError, match="'common' is already used"):
            register(CommonWords())
    finally:
        del VOTERS["common"]


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("tests.annotate.plugins.common_words:Missing", r"AttributeError: .*Missing"),
        ("nowhere_to_be_found:Voter", "ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
    ],
)
def test_a_package_that_cannot_be_loaded_is_named(installed_package, what, why):
    installed_package("voters", "common", what)
    with pytest.raises(CorpusError, match=rf"The package common cannot be loaded: its entry point common = .*\({why}"):
        load()


@pytest.mark.parametrize("name", ["text", "majority", "two words"])
def test_a_voter_cannot_be_named_like_a_column(name):
    with pytest.raises(ValueError, match="is not a valid column name"):
        register(type("Taken", (CommonWords,), {"name": name})())


@pytest.mark.parametrize(
    ("vote", "why"),
    [(("xx", 0.5), "'xx', which is not the code"), (("de", float("nan")), "score nan"), (("de", 1.5), "score 1.5")],
)
def test_a_vote_that_is_none_is_refused(vote, why):
    with pytest.raises(ValueError, match=why):
        ranked([[vote]], 3)


def test_votes_are_put_into_order_and_a_language_counts_once():
    assert [*ranked([[("de", 0.1), ("en", 0.6), ("de", 0.3)]], 3)] == [[("en", 0.6), ("de", 0.3)]]
