"""Documents: EU acts from EURLEX57K and MultiEURLEX, and stories from Reuters' corpora."""

import json
import zipfile
from collections import Counter
from itertools import product
from pathlib import Path

import pytest
from django.core.management import CommandError

from corpora.sources.eurlex import join_articles, published_act, split_articles
from corpora.storage.layout import manifest_of
from tests.corpora.on_disk import bytes_of, posts, rejects, zipped

FIXTURES = Path(__file__).parents[2] / "fixtures" / "eurlex"
SPLITS = ("train", "dev", "test")
RENAMED = {"document_type": "type", "eurovoc_concepts": "concepts"}


def as_published(act):
    return {RENAMED.get(key, key): value for key, value in act.items()}


def lines(name):
    return [json.loads(line) for line in (FIXTURES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


ACTS = {split: [as_published(act) for act in lines(split)] for split in SPLITS}
ACT = ACTS["train"][0]
MULTI = lines("multi_eurlex")


@pytest.fixture
def folder(tmp_path):
    """folder("train", [ACT]) writes a file for each act, named by its id. more: other files, by name"""

    def make(name, acts, more=None):
        path = tmp_path / name
        path.mkdir()
        for act in acts:
            (path / f"{act['celex_id']}.json").write_text(json.dumps(act, indent=1), encoding="utf-8")
        for file, content in (more or {}).items():
            (path / file).write_text(content, encoding="utf-8")
        return path

    return make


def imported(import_corpus, *paths, name="eu", **options):
    return import_corpus(name, *paths, **{"format": "eurlex", "licence": "CC-BY-SA-4.0"} | options)


def test_every_act_comes_out_as_it_went_in_from_folders_lines_and_a_zip_file(folder, import_corpus, tmp_path):
    folders = [folder(split, ACTS[split]) for split in SPLITS]
    with zipfile.ZipFile(tmp_path / "dataset.zip", "w") as packed:
        for path in (file for one in folders for file in one.iterdir()):
            packed.write(path, f"dataset/{path.parent.name}/{path.name}")
        packed.writestr("__MACOSX/train/._32001D0042.json", b"\0")
    imported(import_corpus, *folders)
    rows = posts("eu")
    acts = {act["celex_id"]: (act, split, "en") for split in SPLITS for act in ACTS[split]}
    assert {row["id"]: (published_act(row), row["split"], row["language"]) for row in rows} == acts
    assert [list(published_act(row)) for row in rows] == [list(ACT)] * 60
    imported(import_corpus, *(FIXTURES / f"{split}.jsonl" for split in SPLITS), name="lines")
    imported(import_corpus, tmp_path / "dataset.zip", name="zipped")
    from_folders, from_lines, zipped = ({row["id"]: row for row in posts(name)} for name in ("eu", "lines", "zipped"))
    assert from_folders == from_lines == zipped
    assert manifest_of("eu").fields == manifest_of("lines").fields
    assert rejects("zipped") == []


def test_an_act_is_of_the_split_that_its_folder_is_named_after(folder, import_corpus, monkeypatch, tmp_path):
    (tmp_path / "test").symlink_to(folder("acts", ACTS["dev"]))
    alone = folder("dev", [ACT | {"celex_id": "1"}]) / "1.json"
    monkeypatch.chdir(folder("train", ACTS["train"]))
    assert "train: 20 accepted" in imported(import_corpus, ".", tmp_path / "test", alone)
    imported(import_corpus, folder("unnamed", [ACT | {"celex_id": "2"}]))
    assert Counter(row["split"] for row in posts("eu")) == {"train": 20, "test": 20, "dev": 1, "": 1}


@pytest.mark.parametrize("number", range(4))
def test_articles_come_out_whatever_lines_they_have(number):
    for articles in product(("", "\n", "\n\n", "a", "a\n\nb", "\u00a0", "a\n\u00a0\u00a0\n"), repeat=number):
        assert split_articles(join_articles(articles)) == list(articles)
    assert join_articles(["One\ntwo", "Three\n\nfour"]) == "One\ntwo\n\nThree\n\u00a0\nfour"


def test_parts_may_be_empty_and_an_act_without_concepts_is_kept_and_counted(folder, import_corpus):
    bare = ACT | {"celex_id": "1", "attachments": "", "recitals": "", "main_body": [], "concepts": []}
    output = imported(import_corpus, folder("train", [ACT, bare]))
    assert "2 accepted, 0 duplicates, 0 rejected" in output
    assert "with several labels: 1; without labels: 1" in output
    assert published_act(next(row for row in posts("eu") if row["id"] == "1")) == bare


BAD_ACTS = [
    *(({key: ...}, f"The act has no key {key}") for key in ACT if key != "celex_id"),
    ({"concepts": "1402"}, "concepts is a string. It must be a list of strings."),
    ({"concepts": None}, "concepts is null. It must be a list of strings."),
    ({"concepts": ["1402", 7]}, 'concepts contains a number. Each value must be a string, such as "1402".'),
    ({"concepts": ["1402", "7", "1402"]}, "concepts contains '1402' twice. Remove one of them."),
    (
        {"concepts": ["1402", " 7"]},
        "concepts contains ' 7', which is empty or has spaces around it. Write only the id.",
    ),
    ({"header": None}, "The header is null. It must be a string."),
    ({"title": "a\0"}, "The title contains a NUL character"),
    ({"main_body": "Article 1"}, "The main_body is a string. It must be a list of strings, one for each article."),
    ({"main_body": ["a", None]}, "The article of the main_body is null. It must be a string."),
    ({"header": "", "recitals": " ", "main_body": ["\n"], "attachments": ""}, "The act has no text: header, "),
    (
        {"celex_id": "32001D0042"},
        "The file contains the act '32001D0042'. The file name must be the celex_id of its act.",
    ),
    ({"celex_id": ...}, "The act has no key celex_id. Required keys are: celex_id, uri, type, title, "),
    ({"text": {"en": "a"}}, "The act is from MultiEURLEX, with one text per language. Use"),
]


BAD_FILES = [
    ("a.json", json.dumps(ACT)[:99], "a.json: The file is not valid JSON: "),
    ("b.json", "", "b.json: The file is not valid JSON: "),
    ("c.json", "[]", "c.json: The file is a list. "),
    ("d.json", '{"a": 1, "a": 2}', "d.json: The file has the key 'a' twice."),
    ("e.json", " " * 9000, "e.json: The file is longer than 8,000 bytes."),
    ("README.txt", "Acts", "README.txt: This is not an act. The folder must contain only files named <celex_id>.json"),
]


def test_an_act_or_a_file_that_breaks_a_rule_is_a_reject_that_names_its_file(folder, import_corpus, write):
    reasons, files = {}, {".DS_Store": "hidden"}
    for n, (change, why) in enumerate(BAD_ACTS):
        bad = ACT | {"celex_id": f"bad{n}"} | change
        files[f"bad{n}.json"] = json.dumps({key: value for key, value in bad.items() if value is not ...})
        reasons[f"bad{n}.json"] = f"bad{n}.json: {why}"
    for name, content, why in BAD_FILES:
        files[name], reasons[name] = content, why
    imported(import_corpus, folder("train", [ACT], files), longest_line=8000)
    by_name = {reject["reason"].partition(":")[0]: reject for reject in rejects("eu")}
    assert by_name.keys() == reasons.keys()
    for name, why in reasons.items():
        assert by_name[name]["reason"].startswith(why)
        assert by_name[name]["file"] == "train"
    assert [row["id"] for row in posts("eu")] == [ACT["celex_id"]]
    imported(import_corpus, write("train.jsonl", [ACT, ACT | {"celex_id": "9", "concepts": ["7", "7"]}]), name="lines")
    assert rejects("lines") == [
        {"file": "train.jsonl", "line": 2, "reason": "9: concepts contains '7' twice. Remove one of them."}
    ]


def test_the_same_act_twice_is_dropped_and_one_of_another_split_rejected(folder, import_corpus, write):
    imported(import_corpus, write("train.jsonl", [ACT, ACT]), folder("dev", [ACT, ACTS["dev"][0]]))
    assert manifest_of("eu").sources[0].duplicates == 1
    [reject] = rejects("eu", 2)
    assert reject["reason"].startswith(f"The id {ACT['celex_id']} already occurred with other fields")


def test_a_folder_is_known_again_until_a_file_in_it_changes(folder, import_corpus):
    path = folder("train", ACTS["train"])
    imported(import_corpus, path)
    before = bytes_of("eu")
    assert "train: already imported." in imported(import_corpus, path)
    assert bytes_of("eu") == before
    (path / "9.json").write_text(json.dumps(ACT | {"celex_id": "9"}))
    assert "1 accepted, 20 duplicates" in imported(import_corpus, path)


def test_what_holds_no_acts_is_refused_and_leaves_no_corpus(folder, import_corpus, data_dir, tmp_path):
    folder("empty", [])
    folder("train", [ACT])
    for path, why in (
        (tmp_path / "empty", r"empty contains no file <celex_id>\.json\. Specify the folder that contains them\."),
        (tmp_path, r"contains no file <celex_id>\.json\. Specify the folders in it, such as .*/train\."),
        (tmp_path / "nowhere", "nowhere does not exist"),
    ):
        with pytest.raises(CommandError, match=why):
            imported(import_corpus, path)
    with pytest.raises(CommandError, match=r"train is a folder. Specify the files in it"):
        imported(import_corpus, tmp_path / "train", format="multi_eurlex")
    assert not list(data_dir.rglob("manifest.json"))


def test_fields_and_labels_may_be_named_all_the_same(folder, import_corpus):
    imported(import_corpus, folder("train", [ACT]), fields="headline main_body", column=["headline=title"])
    [row] = posts("eu")
    assert (row["headline"], split_articles(row["main_body"])) == (ACT["title"], ACT["main_body"])
    assert row["declared"] == ACT["concepts"]
    with pytest.raises(CommandError, match=r"has no column subject. Its columns are: id, title, "):
        imported(import_corpus, FIXTURES / "dev.jsonl", name="other", labels="subject")


def multilingual(import_corpus, path=FIXTURES / "multi_eurlex.jsonl", **options):
    return imported(import_corpus, path, format="multi_eurlex", **options)


def test_an_act_of_multieurlex_is_a_record_in_each_language_that_has_a_text(import_corpus):
    multilingual(import_corpus)
    rows = posts("eu")
    assert {row["id"]: row["body"] for row in rows} == {
        f"{act['celex_id']}-{language}": text for act in MULTI for language, text in act["text"].items() if text
    }
    assert Counter(row["celex_id"] for row in rows) == {"32003R1012": 22, "32012R0782": 22, "32014R0730": 23}
    assert all(row["id"] == f"{row['celex_id']}-{row['language']}" for row in rows)
    assert {row["celex_id"]: (row["split"], row["posted_at"].date().isoformat()) for row in rows} == {
        act["celex_id"]: (act["split"], act["publication_date"]) for act in MULTI
    }


@pytest.mark.parametrize("level", ["level_1", "level_2", "level_3", "all_levels", None])
def test_the_concepts_are_those_of_the_level_and_of_all_levels_where_none_is_named(import_corpus, level):
    multilingual(import_corpus, **({"labels": level} if level else {}))
    concepts = {act["celex_id"]: act["eurovoc_concepts"][level or "all_levels"] for act in MULTI}
    assert {row["id"]: row["declared"] for row in posts("eu")} == {
        row["id"]: concepts[row["celex_id"]] for row in posts("eu")
    }


LEVELS = MULTI[0]["eurovoc_concepts"]
BAD_MULTILINGUAL = [
    ({"text": dict.fromkeys(MULTI[0]["text"])}, "The act has no text in any language."),
    ({"text": "A text"}, "The text is a string. It must be an object with languages as keys."),
    ({"text": {"en": 7}}, "The text is a number. It must be a string."),
    ({"text": {"en": " "}}, "The text is empty. Write null if there is no text."),
    ({"text": {"qaa": "nuqneH"}}, "The language 'qaa' is not a known language code"),
    (
        {"eurovoc_concepts": ["1"]},
        "The eurovoc_concepts is a list. It must be an object with levels as keys.",
    ),
    ({"eurovoc_concepts": {"level_1": []}}, "eurovoc_concepts has no all_levels. Required keys are: "),
    ({"eurovoc_concepts": LEVELS | {"level_2": ["1", "1"]}}, "level_2 contains '1' twice"),
    ({"publication_date": "soon"}, "The time 'soon' is not valid"),
    ({"publication_date": ...}, "The act has no key publication_date. Required keys are: celex_id, "),
]


def test_an_act_of_multieurlex_that_breaks_a_rule_is_a_reject_with_its_line(import_corpus, write):
    bad = [MULTI[0] | {"celex_id": "9"} | change for change, _ in BAD_MULTILINGUAL]
    bad = [{key: value for key, value in act.items() if value is not ...} for act in bad]
    output = multilingual(import_corpus, write("a.jsonl", [MULTI[1], *bad, MULTI[2]]))
    assert "45 accepted, 0 duplicates, 10 rejected" in output
    for line, (reject, (change, why)) in enumerate(zip(rejects("eu"), BAD_MULTILINGUAL, strict=True), 2):
        texts = change.get("text")
        language = f"-{next(iter(texts))}" if isinstance(texts, dict) and len(texts) == 1 else ""
        assert reject["reason"].startswith(f"Line {line}: 9{language}: {why}")


# --- stories of Reuters' corpora: an XML file a story, alone or in an archive, with ids as in the published lists


STORY = """<?xml version="1.0" encoding="iso-8859-1" ?>
<newsitem itemid="39373" id="root" date="1996-08-20" xml:lang="de">
<title>GERMANY: Aktien.</title><headline>Aktien in Frankfurt &amp; anderswo</headline>
<text><p>Die B\xf6rse  schlie\xdft.</p>
<p>Morgen <b>mehr</b>.</p></text>
<metadata><codes class="bip:countries:1.0"><code code="GFR"/></codes>
<codes class="bip:topics:1.0"><code code="C15"><editdetail/></code><code code="CCAT"/></codes></metadata></newsitem>
""".encode("latin-1")
IN_UTF_16 = '<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE a [<!ENTITY b "c">]><newsitem/>'
OTHER = STORY.replace(b"CCAT", b"ECAT")


@pytest.fixture
def archive(tmp_path):
    """archive({"1.xml": STORY}, "FDCH5") writes a ZIP file with these files."""

    def make(files, name="FDCH5"):
        path = tmp_path / f"{name}.zip"
        path.write_bytes(zipped(files))
        return path

    return make


def stories(import_corpus, *files, **options):
    fixed = {"fields": "headline body", "labels": "topics", "format": "rcv"}
    return import_corpus("reuters", *files, **fixed | options)


def test_a_story_has_headline_paragraphs_topics_language_date_and_the_id_of_the_lists(archive, import_corpus, tmp_path):
    output = stories(import_corpus, archive({"39373.xml": STORY, "39374newsML.xml": OTHER, "notes.txt": b"x"}))
    first, second = posts("reuters")
    assert (first["id"], second["id"]) == ("FDCH5-39373", "FDCH5-39374newsML")
    assert first["language"] == "de"
    assert first["headline"] == "Aktien in Frankfurt & anderswo"
    assert first["body"] == "Die Börse schließt.\nMorgen mehr."
    assert (first["declared"], second["declared"]) == (["C15", "CCAT"], ["C15", "ECAT"])
    assert first["posted_at"].isoformat() == "1996-08-20T00:00:00+00:00"
    assert "with several labels: 2" in output
    # A single file has the id of its folder, and so has one in a folder of an archive.
    folder = tmp_path / "19970308"
    folder.mkdir()
    (folder / "428849newsML.xml").write_bytes(STORY)
    stories(import_corpus, folder / "428849newsML.xml", archive({"19970309/1.xml": OTHER}, "all"))
    assert [row["id"] for row in posts("reuters")][2:] == ["19970308-428849newsML", "19970309-1"]


NO_STORIES = [
    (STORY[:200], "FDCH5-{}: Line "),
    (b"<html></html>", "FDCH5-{}: The root element is <html>, but <newsitem> is required."),
    (STORY.replace(b"text>", b"words>"), "FDCH5-{}: The story has no <text> element."),
    (b'<!DOCTYPE a [<!ENTITY b "c">]>' + STORY, "FDCH5-{}: Line 1: the document has a DOCTYPE"),
    (IN_UTF_16.encode("utf-16"), "FDCH5-{}: Line 1: the document has a DOCTYPE"),
    (STORY.replace(b"headline>", b"line>"), "The headline is missing."),
    (STORY.replace(b' xml:lang="de"', b""), "The language is missing."),
    (STORY.replace(b'"de"', b'"qaa"'), "The language 'qaa' is not a known language code"),
    (STORY + b" " * 2000, "The story FDCH5-{} is longer than 2,000 bytes."),
]


def test_what_is_no_story_is_a_reject(archive, import_corpus):
    files = {"01.xml": STORY} | {f"{n:02}.xml": content for n, (content, _) in enumerate(NO_STORIES, 2)}
    stories(import_corpus, archive(files), longest_line=2000)
    for line, (reject, (_, reason)) in enumerate(zip(rejects("reuters"), NO_STORIES, strict=True), 2):
        assert reject["line"] == line
        assert reject["reason"].startswith(reason.format(f"{line:02}"))
    assert len(posts("reuters")) == 1


def test_what_cannot_be_read_as_stories_is_refused(archive, import_corpus, write):
    inner = archive({"1.xml": STORY}, "19970308").read_bytes()
    damaged = bytearray(archive({"1.xml": STORY * 50}, "damaged").read_bytes())
    damaged[60:90] = b"\0" * 30
    for path, options, sentence in (
        (write("a.txt", STORY), {}, r"neither an XML file nor a ZIP file"),
        (
            archive({"notes.txt": b"x"}),
            {},
            r"FDCH5\.zip contains no XML file\. Each document must be a separate XML file",
        ),
        (archive({"19970308.zip": inner}, "cd1"), {}, r"cd1\.zip contains ZIP files such as 19970308\.zip\. Unpack it"),
        (archive({"1.xml": STORY}, "other"), {"labels": "subject"}, "has no column subject"),
        (write("damaged.zip", bytes(damaged)), {}, "is truncated or damaged"),
    ):
        with pytest.raises(CommandError, match=sentence):
            stories(import_corpus, path, **options)
