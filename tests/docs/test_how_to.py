"""The how-to pages whose commands need no browser do what they say."""

import json

import pytest

from benchmarks.place import new_place
from tests.docs.newcomer import DOCS, Newcomer

pytestmark = pytest.mark.slow


HOW_TO = DOCS / "how-to"


@pytest.fixture
def newcomer(migrated):
    with new_place(sqlite=True, migrated=migrated) as place:
        yield Newcomer(place)


def test_a_kind_of_ones_own_is_made_looked_at_and_asked(newcomer):
    newcomer.follow(HOW_TO / "own-kind.md", {})
    assert "How content is the reviewer?" in (newcomer.folder / "review_mood.html").read_text(encoding="utf-8")


def test_what_was_backed_up_is_there_again_once_it_is_restored(newcomer):
    newcomer.shell("printf 'id,text\\n1,Guten Morgen\\n' > posts.csv")
    import_posts = "assay import_corpus small posts.csv --licence CC0-1.0"
    newcomer.shell(import_posts)
    newcomer.shell("printf 'username,name,languages\\nanna,Anna,de:5\\n' > people.csv; assay add_annotators people.csv")

    newcomer.follow(HOW_TO / "server.md", {})

    # both from the archive: the page has deleted the folder
    assert "already imported" in newcomer.shell(import_posts)
    assert "0 annotators created, 1 updated" in newcomer.shell("assay add_annotators people.csv")


def test_invited_people_are_updated_by_the_same_table(newcomer):
    newcomer.follow(HOW_TO / "people.md", {})
    assert "0 annotators created, 2 updated" in newcomer.shell("assay add_annotators people.csv")


def test_judgments_of_another_tool_are_imported_by_their_columns(newcomer):
    newcomer.follow(HOW_TO / "publish.md", {})
    assert "4 judgments of 2 annotators on 2 items imported" in newcomer.printed[-1]


def test_documents_with_several_labels_are_exported_and_have_suggestions(newcomer):
    newcomer.follow(HOW_TO / "several-labels.md", {})
    lines = (newcomer.folder / "gold/laws/gold.unfinished.jsonl").read_text(encoding="utf-8").splitlines()
    concepts = {row["id"]: (row["concepts"], row["split"]) for row in map(json.loads, lines)}
    assert concepts == {
        "a": (["4", "2"], "train"),
        "b": (["3", "4"], "train"),
        "c": (["2"], "dev"),
        "d": (["3"], "test"),
    }
    labels = (newcomer.folder / "gold/laws/labels.unfinished.tsv").read_text(encoding="utf-8").splitlines()
    assert labels[1:] == [
        "2\tcivil law\t1\t1\t0\tfew",
        "3\tpenal law\t1\t0\t1\tfew",
        "4\ttrade\t2\t0\t0\tfew",
    ]
    predictors = newcomer.shell("assay predictors laws").splitlines()[1:]
    assert [line.split()[0].partition("@")[0] for line in predictors] == ["label-match", "nearest", "mine"]
    versions = newcomer.shell("assay vocabularies").splitlines()[1:]
    assert [line.split()[:3] for line in versions] == [["law", "1", "4"]]


def test_a_panel_labels_what_its_voters_agree_on(newcomer):
    topics = {f"a{number}": ("sports", "travel")[number % 2] for number in range(40)}
    voters = {"a": topics, "b": topics | {f"a{number}": "travel" for number in range(0, 40, 8)}}
    rows = [f"{key},en,Article {key},{topic}\n" for key, topic in topics.items()]
    (newcomer.folder / "news.csv").write_text("id,language,body,topic\n" + "".join(rows))
    for name, labels in voters.items():
        lines = [f"{key}\t{label}\n" for key, label in labels.items()]
        (newcomer.folder / f"{name}.tsv").write_text("id\tlabel\n" + "".join(lines))
    newcomer.follow(HOW_TO / "panels.md", {})
    lines = (newcomer.folder / "gold/topics/gold.unfinished.jsonl").read_text(encoding="utf-8").splitlines()
    labels = {row["id"]: row["label"] for row in map(json.loads, lines)}
    assert labels.items() < {key: topic for key, topic in topics.items() if voters["b"][key] == topic}.items()


def test_pairs_are_made_of_threads_filtered_and_published(newcomer):
    newcomer.follow(HOW_TO / "pairs.md", {})
    files = (newcomer.folder / "pairs").glob("t*/en/pairs.tsv")
    replies = [line.split("\t")[1] for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    assert sorted(replies) == [
        "1 2 3",
        "Take baking soda and some buttermilk.",
        "Thank you very much for the answer!",
        "Thank you very much for the answer!",
        "The Pacific Ocean is the largest of all.",
    ]
    struck = (newcomer.folder / "pairs/struck.tsv").read_text(encoding="utf-8")
    assert struck == "en\tThank you very much for the answer!\t2\tempty politeness\n"


def test_reply_systems_are_compared_by_people_and_by_words(newcomer):
    newcomer.follow(HOW_TO / "preferences.md", {})
    lines = (newcomer.folder / "gold/which/gold.unfinished.jsonl").read_text(encoding="utf-8").splitlines()
    [row] = map(json.loads, lines)
    assert (row["id"], row["systems"], row["label"], row["preferred"]) == ("c", ["mbert", "mt5"], "tie", [])
    assert json.loads(newcomer.shell("assay preferences elsewhere --json"))["systems"] == ["mbert", "mt5"]
    report = json.loads(newcomer.shell("assay evaluate mine --gold pairs --against frequent --json"))
    assert (report["rows"][0]["units"], report["comparison"]["rows"][0]["p"]) == (56, 0.0001)
