"""Balanced sets, with equally many documents of each class: drawn from declared labels, exported, and rebuilt."""

import json
from collections import Counter

import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError

from annotate.actions.registry import call_command
from annotate.models import Task, Unit
from tests.annotate.balanced_draws.acts import (
    LANGUAGES,
    ROOT,
    SIZES,
    SPELLED,
    TOPICS,
    card_of,
    exported,
    import_documents,
    lists,
    manifest_of,
    opened,
)

pytestmark = [pytest.mark.django_db, pytest.mark.on_sqlite, pytest.mark.slow]


def sentence_of(key):
    """Return the number that translations of a sentence share in the ids of the fixtures."""
    return key.rpartition("-")[2]


def test_each_set_of_each_language_has_as_many_of_each_class_and_no_sentence_is_in_two(sentences, kind, tmp_path):
    output = opened("topics", kind, apart="sentence", **SIZES)
    words = "476 documents drawn in 4 languages, in each language: test 35, dev 14, train.28 28, train.49 49"
    assert words in output
    gold = tmp_path / "gold"
    rows = {row["id"]: row for row in exported("topics", gold)}
    splits = {}
    for language in LANGUAGES:
        sets = lists(gold, SPELLED[language])
        sizes = {"test": 35, "dev": 14, "train.28": 28, "train.49": 49, "train.70": 70}
        assert {name: len(ids) for name, ids in sets.items()} == sizes
        for name, ids in sets.items():
            assert {rows[key]["language"] for key in ids} == {language}
            assert set(Counter(rows[key]["label"] for key in ids).values()) == {len(ids) // 7}
            for key in ids:
                splits.setdefault(sentence_of(key), set()).add(name.split(".")[0])
        assert set(sets["train.28"]) < set(sets["train.49"]) < set(sets["train.70"])
    assert all(len(names) == 1 for names in splits.values())
    # Declared labels need no answers.
    assert set(Unit.objects.values_list("stage", flat=True)) == {"AGREED"}
    # The parts that the card names contain each document once, with its separation key.
    tables = {part: pq.read_table(gold / f"gold.{part}.parquet") for part in ("train", "dev", "test")}
    assert {part: table.num_rows for part, table in tables.items()} == {"train": 280, "dev": 56, "test": 140}
    in_parts = [row for table in tables.values() for row in table.to_pylist()]
    assert all(row["apart"] == [sentence_of(row["id"])] for row in in_parts)
    assert {row["id"]: row["split"] for row in in_parts} == {key: row["split"] for key, row in rows.items()}
    sets = Counter((row["language"], row["set"]) for row in in_parts)
    assert (sets["de", "train.28"], sets["de", "train.70"]) == (28, 21)
    words = "Documents with an equal sentence are in one of these, in all languages together; rows have it as"
    assert words in card_of(gold)


def test_manifest_and_card_have_what_was_drawn_and_what_never(sentences, kind, tmp_path):
    opened("topics", kind, labels="sports health", test=10, train="10 60", short="fill", languages="de en")
    rows = exported("topics", tmp_path / "gold")
    assert {row["chance"] for row in rows} == {1.0}, "the chance of a document is that of its class"
    assert {tuple(row["apart"]) for row in rows} == {()}
    manifest = manifest_of(tmp_path / "gold")
    german = manifest["sets"]["languages"]["de"]
    assert german["sets"] == {"test": 10, "train.10": 10, "train.60": 30}
    assert (german["no_class"], german["several"], german["equal"], german["differing"]) == (100, 0, 0, 0)
    assert [row["available"] for row in german["short"]] == [15, 15]
    assert "ids" not in manifest["draws"][0]["parameters"]
    assert "mldoc-indices/german.test" in manifest["files"]
    card = card_of(tmp_path / "gold")
    for words in (
        "| de | train.60 | 30 |",
        "as many documents of one class as of any other, but for those named below, randomly drawn",
        "- de, train.60: the class sports has 15 documents, not 30.",
        "| de | 100 | 0 | 0 | 0 |",
        "how often they are wrong is not known",
    ):
        assert words in card
    opened("few", kind, labels="sports health", test=10, languages="de")
    assert {row["chance"] for row in exported("few", tmp_path / "few")} == {0.25}


def test_joint_sets_have_as_many_of_each_language_and_class_from_its_own_sets(sentences, kind, tmp_path):
    opened("topics", kind, joint=14, languages="de en fr", **SIZES)
    rows = {row["id"]: row for row in exported("topics", tmp_path / "gold")}
    joint = lists(tmp_path / "gold", "joint")
    assert {name: len(ids) for name, ids in joint.items()} == {"train.42": 42, "dev": 42}
    for name, ids in joint.items():
        counts = Counter((rows[key]["language"], rows[key]["label"]) for key in ids)
        assert len(counts) == 21
        assert set(counts.values()) == {2}
        assert {rows[key]["set"] for key in ids} == {"train.28" if name == "train.42" else "dev"}
    assert (tmp_path / "gold/MLDoc/mldoc.train42.joint").exists()
    assert manifest_of(tmp_path / "gold")["draws"][0]["parameters"].keys().isdisjoint({"ids", "joint"})


def test_the_sets_of_published_lists_are_made_again_line_by_line(sentences, kind, tmp_path):
    opened("topics", kind, apart="sentence", **SIZES)
    exported("topics", tmp_path / "gold")
    folder = tmp_path / "published"
    folder.mkdir()
    for number, path in enumerate(sorted((tmp_path / "gold/mldoc-indices").iterdir())):
        # In their own order, like the lists of other people.
        lines = path.read_text().splitlines(keepends=True)
        (folder / path.name).write_text("".join(lines[number % 7 :] + lines[: number % 7]))
    output = opened("again", kind, from_indices=str(folder))
    assert "476 documents drawn in 4 languages, in each language: test 35" in output
    assert "lists" not in output
    exported("again", tmp_path / "again")
    made = {path.name: path.read_bytes() for path in (tmp_path / "again/mldoc-indices").iterdir()}
    assert made == {path.name: path.read_bytes() for path in folder.iterdir()}
    # Lists of unknown languages are ignored if others are named.
    (folder / "spanish-latam.test").write_text("a\n")
    opened("some", kind, from_indices=str(folder), languages="de fr")
    assert Task.objects.get(name="some").languages == ["de", "fr"]


def test_the_faults_of_published_lists_are_reported(sentences, kind, tmp_path):
    folder, gold = tmp_path / "lists", tmp_path / "gold"
    folder.mkdir()
    text = (ROOT / "fixtures/topics/sib200.de.jsonl").read_text(encoding="utf-8")
    keys = [json.loads(line)["id"] for line in text.splitlines()[:6]]
    for name, ids in {"train.2": keys[:2], "train.4": [*keys[:3], keys[0]], "test": keys[2:5], "dev": keys[4:]}.items():
        (folder / f"german.{name}").write_text("".join(f"{key}\n" for key in ids))
    output = opened("again", kind, from_indices=str(folder))
    faults = [
        f"the lists in de have 1 id in both train.4 and test ({keys[2]}).",
        f"the lists in de have 1 id in both dev and test ({keys[4]}).",
        f"the lists in de have 1 repeated id in train.4 ({keys[0]}).",
    ]
    rows = exported("again", gold)
    card = card_of(gold)
    for fault in faults:
        assert f"Note: {fault}" in output
        assert f"- {fault}" in card
    assert {row["chance"] for row in rows} == {None}
    # A document in two sets is in the first one in the rows, on every database.
    assert [row["set"] for row in rows if row["id"] in (keys[2], keys[4])] == ["test", "test"]
    # A duplicate id occurs once; otherwise the lists are unchanged.
    sets = {"test": keys[2:5], "dev": keys[4:], "train.2": keys[:2], "train.4": keys[:3]}
    assert lists(gold, "german") == sets
    assert "as many documents of one class" not in card
    assert "no document is in two" not in card


REFUSED = [
    ({"test": 63}, r"Too few documents of a class: de, science/technology: 20 available, 21 needed"),
    ({"test": 0}, r"--sets: 'test 0 dev 14 train 28 49 70' is not a list of sets with sizes"),
    ({"apart": "author"}, "has no field 'author'. Its fields are: body, sentence"),
    ({"languages": "nl"}, "no records in nl. Available languages: de, en, fr, ja"),
    ({"labels": f"{TOPICS} sports"}, "The class sports is listed twice"),
    ({"labels": "Sports Travel", "test": 10, "dev": 10, "train": "10"}, "No document of corpus sib has the label"),
    (
        {"labels": "sports health", "test": 20, "dev": 20, "train": "10", "short": "fill"},
        "contain no documents of the class",
    ),
    ({"labels": "sports weather", "test": 20, "dev": 10, "train": "10"}, "has the label 'weather'"),
    ({"size": 10}, "--size"),
    ({"joint": 10}, r"10 documents in each language's part of the joint sets cannot .* Use 7 or 14"),
    ({"joint": 21}, "No dev set in de can provide 21 documents"),
]
REFUSED_LISTS = [
    (
        {"german.test": "nobody\n"},
        {},
        "for German contain ids for which corpus sib has no document in de with .*nobody",
    ),
    ({"spanish-latam.test": "a\n"}, {}, "a list for spanish-latam, which is not a known language. Set --languages"),
    ({"german.tests": "a\n"}, {}, "german.tests does not have the name of a list"),
    ({}, {}, "contains no list for any language"),
    ({"german.test": "\n"}, {}, "german.test is empty. Add its ids"),
    ({"german.test": "a\n"}, {"languages": "fr"}, "contains no list for fr"),
    ({"german.test": "a\n"}, {"test": 7}, "Remove --sets"),
]


def test_sets_and_lists_that_cannot_be_had_are_refused_and_nothing_is_kept(sentences, kind, tmp_path):
    for options, why in REFUSED:
        with pytest.raises(CommandError, match=why):
            opened("topics", kind, **{**SIZES, **options})
    for number, (files, options, why) in enumerate(REFUSED_LISTS):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
        with pytest.raises(CommandError, match=why):
            opened("topics", kind, from_indices=str(folder), **options)
    (tmp_path / "plain.jsonl").write_text(json.dumps({"id": "1", "language": "de", "body": "Ein Satz."}) + "\n")
    import_documents("plain", tmp_path / "plain.jsonl", fields="body", licence="CC0-1.0")
    with pytest.raises(CommandError, match=r"have no declared labels. Import them with --labels COLUMN"):
        opened("topics", kind, corpus="plain", **SIZES)
    assert not Task.objects.exists()
    with pytest.raises(CommandError, match="but a corpus of posts is required"):
        call_command("plan", "sib")


def write_topics(path, *topics):
    """Write the corpus `own`, with two English documents on each topic."""
    documents = [
        {"id": f"{number}-{n}", "language": "en", "body": f"Text {number} {n}", "topic": topic}
        for number, topic in enumerate(topics)
        for n in range(2)
    ]
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    import_documents("own", path, fields="body", labels="topic", licence="CC0-1.0")


def test_classes_are_separated_by_semicolons_and_labels_that_differ_in_capital_letters_are_reported(db, kind, tmp_path):
    write_topics(tmp_path / "own.jsonl", "sports", "Sports", "health", "Travel", "travel", "world news")
    for name, classes in (("two", "sports health"), ("three", "sports Sports health")):
        output = opened(name, kind, corpus="own", labels=classes, test=2 * len(classes.split()))
        assert "Note: The labels Sports and sports differ only in case" in output
        assert "ravel" not in output
    with pytest.raises(CommandError, match="has the label 'world'"):
        opened("topics", kind, corpus="own", labels="world news sports", test=3)
    opened("topics", kind, corpus="own", labels="world news; sports;", test=4)
    assert {row["label"] for row in exported("topics", tmp_path / "gold")} == {"world news", "sports"}
