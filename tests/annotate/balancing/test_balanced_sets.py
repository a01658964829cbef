"""Sets with as many documents of each class: drawn from declared labels, exported, and made again from their lists."""

import io
import json
from collections import Counter
from itertools import product

import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError

from annotate.actions.commands import call_command
from annotate.models import Task, Unit
from tests.annotate.balancing.acts import (
    LANGUAGES,
    ROOT,
    SIZES,
    SPELLED,
    TOPICS,
    exported,
    import_documents,
    lists,
    opened,
)

pytestmark = [pytest.mark.django_db, pytest.mark.on_sqlite, pytest.mark.slow]


def test_each_set_of_each_language_has_as_many_of_each_class_and_no_sentence_is_in_two(sentences, kind, tmp_path):
    said = opened("topics", kind, apart="sentence", **SIZES)
    assert (
        "476 documents drawn in 4 languages, in each: test 35, dev 14, train.28 28, train.49 49, train.70 70." in said
    )
    rows = {row["id"]: row for row in exported("topics", tmp_path / "gold")}
    where = {}
    for language in LANGUAGES:
        found = lists(tmp_path / "gold", SPELLED[language])
        assert {name: len(ids) for name, ids in found.items()} == {
            "test": 35,
            "dev": 14,
            "train.28": 28,
            "train.49": 49,
            "train.70": 70,
        }
        for name, ids in found.items():
            assert {rows[key]["language"] for key in ids} == {language}
            assert set(Counter(rows[key]["label"] for key in ids).values()) == {len(ids) // 7}
            for key in ids:
                where.setdefault(sentence_of(key), set()).add(name.split(".")[0])
        assert set(found["train.28"]) < set(found["train.49"]) < set(found["train.70"])
    assert all(len(names) == 1 for names in where.values())
    # Nobody is asked about a label that is declared.
    assert set(Unit.objects.values_list("stage", flat=True)) == {"AGREED"}


def test_rows_have_what_keeps_them_apart_so_that_a_reader_can_check_it(sentences, kind, tmp_path):
    opened("topics", kind, apart="sentence", **SIZES)
    exported("topics", tmp_path / "gold")
    rows = [row for path in sorted((tmp_path / "gold").glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    assert all(row["apart"] == [sentence_of(row["id"])] for row in rows)
    splits = {}
    for row in rows:
        splits.setdefault(row["apart"][0], set()).add(row["split"])
    assert len(splits) < len(rows)
    assert {len(found) for found in splits.values()} == {1}
    card = (tmp_path / "gold/README.md").read_text(encoding="utf-8")
    assert "Documents with an equal sentence are in one of these, in all languages together; rows have it as" in card
    opened("others", kind, test=7)
    assert {tuple(row["apart"]) for row in exported("others", tmp_path / "others")} == {()}


def sentence_of(key):
    """The number that translations share, as the fixtures have it in their ids."""
    return key.rpartition("-")[2]


def test_the_parts_that_the_card_names_hold_each_document_once(sentences, kind, tmp_path):
    opened("topics", kind, **SIZES)
    exported("topics", tmp_path / "gold")
    parts = {part: pq.read_table(tmp_path / f"gold/gold.{part}.parquet") for part in ("train", "dev", "test")}
    assert {part: table.num_rows for part, table in parts.items()} == {"train": 280, "dev": 56, "test": 140}
    sets = Counter(zip(parts["train"]["language"].to_pylist(), parts["train"]["set"].to_pylist(), strict=True))
    assert (sets["de", "train.28"], sets["de", "train.70"]) == (28, 21)


def test_manifest_and_card_say_what_was_drawn_and_what_never(sentences, kind, tmp_path):
    opened("topics", kind, labels="sports health", test=10, train="10 60", short="fill", languages="de en")
    exported("topics", tmp_path / "gold")
    manifest = json.loads((tmp_path / "gold/manifest.json").read_text())
    told = manifest["sets"]["languages"]["de"]
    assert told["sets"] == {"test": 10, "train.10": 10, "train.60": 30}
    assert (told["no_class"], told["several"], told["equal"], told["differing"]) == (100, 0, 0, 0)
    assert [each["there"] for each in told["short"]] == [15, 15]
    assert "ids" not in manifest["draws"][0]["parameters"]
    assert "mldoc-indices/german.test" in manifest["files"]
    card = (tmp_path / "gold/README.md").read_text(encoding="utf-8")
    assert "| de | train.60 | 30 |" in card
    assert "as many documents of one class as of any other, but for those named below, drawn" in card
    assert "- de, train.60: of sports there are 15 documents and not 30." in card
    assert "| de | 100 | 0 | 0 | 0 |" in card
    assert "how often they are wrong is not known" in card


def test_joint_sets_have_as_many_of_each_language_and_class_from_its_own_sets(sentences, kind, tmp_path):
    opened("topics", kind, joint=14, languages="de en fr", **SIZES)
    rows = {row["id"]: row for row in exported("topics", tmp_path / "gold")}
    found = lists(tmp_path / "gold", "joint")
    assert {name: len(ids) for name, ids in found.items()} == {"train.42": 42, "dev": 42}
    for name, ids in found.items():
        counts = Counter((rows[key]["language"], rows[key]["label"]) for key in ids)
        assert len(counts) == 21
        assert set(counts.values()) == {2}
        assert {rows[key]["set"] for key in ids} == {"train.28" if name == "train.42" else "dev"}
    assert (tmp_path / "gold/MLDoc/mldoc.train42.joint").exists()
    manifest = json.loads((tmp_path / "gold/manifest.json").read_text())
    assert manifest["draws"][0]["parameters"].keys().isdisjoint({"ids", "joint"})


def test_the_sets_of_published_lists_are_made_again_line_by_line(sentences, kind, tmp_path):
    opened("topics", kind, apart="sentence", **SIZES)
    exported("topics", tmp_path / "gold")
    folder = tmp_path / "published"
    folder.mkdir()
    for number, path in enumerate(sorted((tmp_path / "gold/mldoc-indices").iterdir())):
        # In an order of their own, as those of other people are.
        lines = path.read_text().splitlines(keepends=True)
        (folder / path.name).write_text("".join(lines[number % 7 :] + lines[: number % 7]))
    said = opened("again", kind, from_indices=str(folder))
    assert "476 documents drawn in 4 languages, in each: test 35" in said
    assert "lists" not in said
    exported("again", tmp_path / "again")
    made = {path.name: path.read_bytes() for path in (tmp_path / "again/mldoc-indices").iterdir()}
    assert made == {path.name: path.read_bytes() for path in folder.iterdir()}


def test_lists_of_languages_that_are_not_known_are_left_alone_where_others_are_named(sentences, kind, tmp_path):
    opened("topics", kind, test=7)
    exported("topics", tmp_path / "gold")
    (tmp_path / "gold/mldoc-indices/spanish-latam.test").write_text("a\n")
    opened("again", kind, from_indices=str(tmp_path / "gold/mldoc-indices"), languages="de fr")
    assert Task.objects.get(name="again").languages == ["de", "fr"]


def test_the_faults_of_published_lists_are_told(sentences, kind, tmp_path):
    folder = tmp_path / "lists"
    folder.mkdir()
    text = (ROOT / "fixtures/topics/sib200.de.jsonl").read_text(encoding="utf-8")
    keys = [json.loads(line)["id"] for line in text.splitlines()[:6]]
    for name, ids in {"train.2": keys[:2], "train.4": [*keys[:3], keys[0]], "test": keys[2:5], "dev": keys[4:]}.items():
        (folder / f"german.{name}").write_text("".join(f"{key}\n" for key in ids))
    said = opened("again", kind, from_indices=str(folder))
    assert f"Note: the lists in de have 1 id in both train.4 and test ({keys[2]})." in said
    assert f"Note: the lists in de have 1 id in both dev and test ({keys[4]})." in said
    assert f"Note: the lists in de have 1 line too many in train.4, whose ids it has before ({keys[0]})." in said
    rows = exported("again", tmp_path / "gold")
    assert {row["chance"] for row in rows} == {None}
    # Of two sets the first has it in the rows, on every database.
    assert [row["set"] for row in rows if row["id"] in (keys[2], keys[4])] == ["test", "test"]
    # An id that came twice is there once; otherwise the lists are as they were.
    assert lists(tmp_path / "gold", "german") == {
        "test": keys[2:5],
        "dev": keys[4:],
        "train.2": keys[:2],
        "train.4": keys[:3],
    }
    card = (tmp_path / "gold/README.md").read_text(encoding="utf-8")
    assert "as many documents of one class" not in card
    assert "no document is in two" not in card
    assert f"- the lists in de have 1 id in both train.4 and test ({keys[2]})." in card
    assert f"- the lists in de have 1 line too many in train.4, whose ids it has before ({keys[0]})." in card


def test_the_chance_of_a_document_is_that_of_its_class(sentences, kind, tmp_path):
    opened("topics", kind, labels="sports health", test=10, train="10 60", short="fill", languages="de")
    assert {row["chance"] for row in exported("topics", tmp_path / "all")} == {1.0}
    opened("few", kind, labels="sports health", test=10, languages="de")
    assert {row["chance"] for row in exported("few", tmp_path / "few")} == {0.25}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"test": 63}, r"Too few documents of a class: de, science/technology: 20 there, 21 needed"),
        ({"test": 1000}, r"1,000 documents in test cannot be shared equally by 7 classes; take 994 or 1,001\."),
        ({"train": "28 14"}, "The sizes of train must rise"),
        ({"test": 0}, r"--sets: 'test 0 dev 14 train 28 49 70' is no list of sets with sizes"),
        ({"apart": "author"}, "has no field 'author'; its fields are body, sentence"),
        ({"languages": "nl"}, "no records in nl; it has them in de, en, fr, ja"),
        ({"labels": f"{TOPICS} sports"}, "The class sports is named twice"),
        (
            {"labels": "Sports Travel", "test": 10, "dev": 10, "train": "10"},
            r"No document of corpus sib has the label 'Sports'; name labels that they have: .*science/technology",
        ),
        (
            {"labels": "sports health", "test": 20, "dev": 20, "train": "10", "short": "fill"},
            "none of the class at all",
        ),
        ({"labels": "sports"}, "two classes or more, and 1 is given"),
        ({"labels": "sports weather", "test": 20, "dev": 10, "train": "10"}, "has the label 'weather'"),
        ({"size": 10}, "--size"),
        ({"joint": 10}, r"10 documents in the joint sets from each language cannot .*; take 7 or 14"),
        ({"joint": 21}, "No dev set in de has 21 documents in equal parts for the joint one"),
    ],
)
def test_sets_that_cannot_be_had_are_refused_and_nothing_is_kept(sentences, kind, options, why):
    with pytest.raises(CommandError, match=why):
        opened("topics", kind, **{**SIZES, **options})
    assert not Task.objects.exists()


@pytest.mark.parametrize(
    ("files", "options", "why"),
    [
        (
            {"german.test": "nobody\n"},
            {},
            "in German name .*nobody.*, of which corpus sib has no document in de with",
        ),
        ({"spanish-latam.test": "a\n"}, {}, "a list for spanish-latam, which is .* name the languages of the other"),
        ({"german.tests": "a\n"}, {}, "german.tests is not named as a list"),
        ({}, {}, "has no list for any language"),
        ({"german.test": "\n"}, {}, "german.test is empty; give it its ids"),
        ({"german.test": "a\n"}, {"languages": "fr"}, "has no list for fr"),
        ({"german.test": "a\n"}, {"test": 7}, "leave --sets out"),
    ],
)
def test_lists_that_cannot_be_used_are_refused(sentences, kind, tmp_path, files, options, why):
    folder = tmp_path / "lists"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    with pytest.raises(CommandError, match=why):
        opened("again", kind, from_indices=str(folder), **options)
    assert not Task.objects.exists()


def test_a_corpus_without_declared_labels_has_no_balanced_sets(kind, tmp_path):
    path = tmp_path / "plain.jsonl"
    path.write_text(json.dumps({"id": "1", "language": "de", "body": "Ein Satz."}) + "\n")
    call_command("import_corpus", "plain", str(path), fields="body", licence="CC0-1.0", stdout=io.StringIO())
    with pytest.raises(CommandError, match="has no labels that came with its records; import it with --labels COLUMN"):
        opened("topics", kind, corpus="plain", **SIZES)


def test_headline_and_body_are_of_the_kind_that_comes_with_assay_and_a_text_that_stays_is_in_no_file(db, tmp_path):
    path = tmp_path / "news.jsonl"
    stories = [
        {
            "id": f"{topic}-{n}",
            "language": "en",
            "headline": f"On {topic}",
            "body": f"Story {n}.",
            "of": topic,
        }
        for topic, n in product(("sports", "health"), range(4))
    ]
    path.write_text("".join(json.dumps(story) + "\n" for story in stories))
    fixed = {"fields": "headline body", "labels": "of", "licence": "ours", "text_may_leave": False}
    call_command("import_corpus", "news", str(path), stdout=io.StringIO(), **fixed)
    opened("news", "topic", corpus="news", labels="sports health", test=4, train="4")
    rows = exported("news", tmp_path / "gold")
    assert {row["label"] for row in rows} == {"sports", "health"}
    assert not {"headline", "body", "apart"} & rows[0].keys()
    assert sorted(path.name for path in (tmp_path / "gold").iterdir() if path.is_dir()) == ["mldoc-indices"]


def write_topics(path, *topics):
    """The corpus own: two documents in English of each topic."""
    documents = [
        {"id": f"{number}-{n}", "language": "en", "body": f"Text {number} {n}", "topic": topic}
        for number, topic in enumerate(topics)
        for n in range(2)
    ]
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    import_documents("own", path, fields="body", labels="topic", licence="CC0-1.0")


def test_classes_whose_names_have_spaces_are_parted_by_semicolons(db, kind, tmp_path):
    write_topics(tmp_path / "own.jsonl", "world news", "sports")
    with pytest.raises(CommandError, match="has the label 'world'"):
        opened("topics", kind, corpus="own", labels="world news sports", test=3)
    opened("topics", kind, corpus="own", labels="world news; sports;", test=4)
    assert {row["label"] for row in exported("topics", tmp_path / "gold")} == {"world news", "sports"}


@pytest.mark.parametrize("classes", ["sports health", "sports Sports health"])
def test_labels_that_differ_in_capital_letters_only_are_told(db, kind, tmp_path, classes):
    write_topics(tmp_path / "own.jsonl", "sports", "Sports", "health", "Travel", "travel")
    said = opened("topics", kind, corpus="own", labels=classes, test=2 * len(classes.split()))
    assert "Note: The labels Sports and sports differ in capital letters only, and are told apart; if they are" in said
    assert "ravel" not in said


def test_plan_says_of_records_that_there_is_no_agreement_of_detectors_to_plan_for(sentences):
    with pytest.raises(CommandError) as error:
        call_command("plan", "sib")
    assert str(error.value) == (
        "Corpus sib holds records, which detectors do not label, so there is no agreement of theirs to plan for; "
        "`assay open_task TASK --corpus sib … --dry-run` says what people would have to read."
    )
