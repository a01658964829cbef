"""The files of balanced sets work with the published readers: MLDoc's generate_documents.py and sampling_rcv2.py, and
LASER's mldoc.sh.
"""

import json
import zipfile
from collections import Counter, defaultdict
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import pyarrow.parquet as pq
import pytest

from annotate.models import Task
from tests.annotate.balanced_draws.acts import (
    LANGUAGES,
    ROOT,
    SPELLED,
    card_of,
    exported,
    import_documents,
    lists,
    manifest_of,
    opened,
)

pytestmark = [pytest.mark.django_db, pytest.mark.on_sqlite, pytest.mark.slow]

# Topics of the fixtures -> topics of Reuters, for stories made of real sentences.
CODES = {"science/technology": "CCAT", "travel": "ECAT", "politics": "GCAT", "sports": "MCAT"}
CLASSES = " ".join(CODES.values())
SIZES = {"test": 20, "dev": 8, "train": "12 24 40"}
SETS = {"test": 20, "dev": 8, "train.12": 12, "train.24": 24, "train.40": 40}
JOINT = {"train.32": 32, "dev": 32}
STORY = """<?xml version="1.0" encoding="utf-8"?>
<newsitem itemid="{number}" date="1997-03-08" xml:lang="{language}"><title>T</title><headline>H</headline>
<text>{paragraphs}</text><metadata><codes class="bip:countries:1.0"><code code="CCAT"/></codes>
<codes class="bip:topics:1.0"><code code="{letter}15"/><code code="{topic}"/></codes></metadata></newsitem>
"""


@pytest.fixture
def stories(tmp_path):
    """A folder of the fixtures' sentences as Reuters stories: <folder>/<number>newsML.xml."""
    folder = tmp_path / "rcv"
    for language in LANGUAGES:
        (folder / f"RCV{language}").mkdir(parents=True)
        for line in (ROOT / f"fixtures/topics/sib200.{language}.jsonl").read_text(encoding="utf-8").splitlines():
            sentence = json.loads(line)
            if topic := CODES.get(sentence["topic"]):
                paragraphs = "".join(f"<p>{escape(part)}</p>\n" for part in sentence["text"].split(", "))
                about = {"number": sentence["sentence"], "language": language, "paragraphs": paragraphs}
                story = STORY.format(**about, topic=topic, letter=topic[0])
                path = folder / f"RCV{language}" / f"{sentence['sentence']}newsML.xml"
                path.write_text(story, encoding="utf-8")
    return folder


@pytest.fixture
def gold(db, stories, kind, tmp_path):
    """The exported set of these stories, with joint sets."""
    archives = []
    for folder in sorted(stories.iterdir()):
        archives.append(tmp_path / f"{folder.name}.zip")
        with zipfile.ZipFile(archives[-1], "w") as archive:
            for path in sorted(folder.iterdir()):
                archive.write(path, path.name)
    import_documents("reuters", *archives, fields="body", labels="topics", format="rcv", licence="CC0-1.0")
    opened("mldoc", kind, corpus="reuters", labels=CLASSES, joint=8, **SIZES)
    exported("mldoc", tmp_path / "gold")
    return tmp_path / "gold"


def rows_of(gold):
    """Return the rows of gold.jsonl by id."""
    lines = (gold / "gold.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["id"]: row for row in map(json.loads, lines)}


def keys_of(task):
    return set(Task.objects.get(name=task).units.values_list("item__key", flat=True))


# --- the published readers


def generated(indices: Path, rcv: Path) -> list[tuple[str, str]]:
    """Return the class and text of each id in a list, like generate_documents.py, but with single spaces, because the
    import collapses runs of spaces.
    """
    documents = []
    with indices.open(encoding="utf-8") as lines:
        for line in lines:
            folder, stem = line.strip().split("-")
            story = ElementTree.parse(rcv / folder / f"{stem}.xml")
            codes = [code.get("code") for code in story.findall(".//codes[@class='bip:topics:1.0']/code")]
            [topic] = [code for code in codes if code in ("CCAT", "ECAT", "GCAT", "MCAT")]
            documents.append((topic, " ".join(word for p in story.findall(".//p") for word in p.text.split())))
    return documents


def lines_of(path: Path) -> list[tuple[str, str]]:
    """Return the label and text of each line, which are separated by its only tab."""
    rows = []
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            label, text = line.rstrip("\n").split("\t")
            rows.append((label, text))
    return rows


def as_laser(gold: Path, name: str, code: str) -> list[tuple[int, str]]:
    """Return the number of the class and the text, with the steps of LASER's mldoc.sh: cut, sed s/C/0/ and so on."""
    rows = []
    for label, text in lines_of(gold / f"MLDoc/mldoc.{name}.{code}"):
        for number, letter in enumerate("CEGM"):
            label = label.replace(letter, str(number), 1)
        rows.append((int(label), text))
    return rows


def as_sampler(path: Path) -> tuple[dict[str, list[str]], int]:
    """Return the texts by letter and the number of dropped lines, like sampling_rcv2.py."""
    examples: dict[str, list[str]] = {letter: [] for letter in "CEGM"}
    dropped = 0
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        try:
            label, text = line.strip().split("\t")
            examples[label].append(text)
        except (ValueError, KeyError):
            dropped += 1
    return examples, dropped


# --- what they find


def test_lists_name_stories_from_which_the_published_program_makes_the_documents_that_are_exported(gold, stories):
    for language, name in ((language, name) for language in LANGUAGES for name in SETS):
        made = generated(gold / f"mldoc-indices/{SPELLED[language]}.{name}", stories)
        assert len(made) == SETS[name]
        assert lines_of(gold / f"mldoc-documents/{SPELLED[language]}.{name}") == made
        assert Counter(label for label, _ in made) == dict.fromkeys(CODES.values(), SETS[name] // 4)
    by_name = dict.fromkeys(SPELLED.values(), SETS) | {"joint": JOINT}
    expected = {f"{spelled}.{name}" for spelled, sets in by_name.items() for name in sets}
    assert {path.name for path in (gold / "mldoc-indices").iterdir()} == expected


def test_laser_gets_the_numbers_of_the_classes_and_the_texts_of_the_lists(gold):
    for language, name in ((language, name) for language in LANGUAGES for name in ("train.12", "dev", "test")):
        documents = lines_of(gold / f"mldoc-documents/{SPELLED[language]}.{name}")
        expected = [(CLASSES.split().index(label), text) for label, text in documents]
        assert as_laser(gold, name.replace(".", ""), language) == expected
    joint = lines_of(gold / "mldoc-documents/joint.dev")
    assert [text for _, text in as_laser(gold, "dev", "joint")] == [text for _, text in joint]


def test_the_published_sampler_gets_each_document_of_a_language_once_and_drops_none(gold):
    texts = defaultdict(lambda: defaultdict(set))
    for row in rows_of(gold).values():
        texts[row["language"]][row["label"][0]].add(" ".join(row["body"].split()))
    for language in LANGUAGES:
        examples, dropped = as_sampler(gold / f"mldoc-sampling/{SPELLED[language]}")
        assert dropped == 0
        assert {letter: set(of_letter) for letter, of_letter in examples.items()} == texts[language]
        assert sum(map(len, examples.values())) == 68
    # The sampler reads every file of its folder as a language.
    assert sorted(path.name for path in (gold / "mldoc-sampling").iterdir()) == sorted(SPELLED.values())
    manifest = manifest_of(gold)
    assert manifest["published"]["letters"] == {"CCAT": "C", "ECAT": "E", "GCAT": "G", "MCAT": "M"}
    assert {"mldoc-sampling/german", "MLDoc/mldoc.train12.de"} <= manifest["files"].keys()
    words = "with the letters C, E, G, M in place of CCAT, ECAT, GCAT, MCAT; `mldoc-sampling/`"
    assert words in card_of(gold)


def test_json_lines_and_parquet_have_the_documents_of_the_lists_with_the_set_that_has_them_first(gold):
    rows = rows_of(gold)
    for language in LANGUAGES:
        ids = lists(gold, SPELLED[language])
        for smaller, name in (("", "test"), ("", "dev"), ("", "train.12"), ("train.12", "train.24")):
            first = [key for key in ids[name] if key not in ids.get(smaller, ())]
            assert sorted(first) == sorted(
                key for key, row in rows.items() if (row["language"], row["set"]) == (language, name)
            )
        documents = lines_of(gold / f"mldoc-documents/{SPELLED[language]}.train.40")
        of_rows = [(rows[key]["label"], " ".join(rows[key]["body"].split())) for key in ids["train.40"]]
        assert documents == of_rows
    tables = [pq.read_table(gold / f"gold.{part}.parquet") for part in ("train", "dev", "test")]
    in_parts = [row for table in tables for row in table.to_pylist()]
    assert {row["id"]: (row["set"], row["label"], row["body"]) for row in in_parts} == {
        key: (row["set"], row["label"], row["body"]) for key, row in rows.items()
    }
    assert len(in_parts) == len(rows)


def test_classes_that_are_not_mldocs_keep_their_names_and_the_card_has_what_laser_does(sentences, kind, tmp_path):
    opened("topics", kind, labels="sports health", test=10)
    gold = tmp_path / "gold"
    exported("topics", gold)
    expected = lines_of(gold / "mldoc-documents/french.test")
    assert {label for label, _ in expected} == {"sports", "health"}
    assert lines_of(gold / "MLDoc/mldoc.test.fr") == expected
    assert not (gold / "mldoc-sampling").exists()
    assert manifest_of(gold)["published"]["letters"] == {}
    words = "turns the letters C, E, G and M alone into numbers, so its `sed` and `nb_cl` must be changed"
    assert words in card_of(gold)


def test_chinese_is_called_as_in_the_published_lists_and_two_kinds_of_it_are_told_apart(kind, tmp_path):
    path = tmp_path / "chinese.jsonl"
    documents = [
        {"id": f"{language}-{topic}-{n}", "language": language, "body": f"{language} {topic} {n}", "topic": topic}
        for language in ("zh-CN", "zh-TW")
        for topic in ("sports", "health")
        for n in range(2)
    ]
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    import_documents("chinese", path, fields="body", labels="topic", licence="CC0-1.0")
    for languages, files in (
        ("zh-CN", {"mldoc-indices/chinese.test", "MLDoc/mldoc.test.zh"}),
        ("zh-CN zh-TW", {"mldoc-indices/simplified-chinese.test", "MLDoc/mldoc.test.zh-TW"}),
    ):
        name = f"of-{len(languages.split())}"
        opened(name, kind, corpus="chinese", labels="sports health", test=4, languages=languages)
        exported(name, tmp_path / name)
        assert files <= manifest_of(tmp_path / name)["files"].keys()
        again, folder = f"{name}-again", str(tmp_path / name / "mldoc-indices")
        opened(again, kind, corpus="chinese", labels="sports health", from_indices=folder)
        assert keys_of(again) == keys_of(name)
