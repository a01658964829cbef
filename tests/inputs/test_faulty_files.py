"""Files with faults that users of other tools reported: what each of them does, and what its message says.

A row is (file of fixtures/faulty, commands, status of the last command, patterns of the output). `{}` stands for the
file. Rows of VARIANTS have the content of a neighbouring file instead.
"""

import bz2
import gzip
import io
import json
import re
import shlex
import tarfile
import unicodedata
from collections.abc import Callable
from functools import partial

import pyarrow.parquet as pq
import pytest

from annotate import exit_status
from annotate.actions.registry import call_command
from corpora.storage.layout import corpus_dir, manifest_of
from corpora.vocabulary.concept_index import find, vocabulary_named
from tests.corpora.on_disk import zipped
from tests.inputs.conftest import FIXTURES

pytestmark = pytest.mark.django_db
FILES = FIXTURES / "faulty"
CORPUS, RECORDS = "import_corpus c {} --licence CC0-1.0", "import_corpus c {} --fields body --licence CC0-1.0"
BODY = f"{CORPUS} --column text=body"
JUDGMENTS, VOCABULARY = "import_judgments c {}", "import_vocabulary c {}"
THREADS = "import_threads c {} --column text=body --licence CC0-1.0"
VALID, AGREE = f"{JUDGMENTS} --max-rejects 1", "agreement c"
PEOPLE = "add_annotators {}"
PREDICTIONS = (
    "import_corpus c language-codes/posts.jsonl --licence CC0-1.0 && import_predictions c {} --name p --version 1"
)
FORTY, TWO = "40 accepted, 0 duplicates, 0 rejected", "2 accepted, 0 duplicates, 0 rejected"
Case = tuple[str, str, int, str]
Variant = tuple[str, bytes | str, str, int, str]

TABLE: list[Case] = [
    # One JSON array is read like JSON lines, whatever its name.
    *(
        ("json-array/labelstudio.json", CORPUS, 1, "has no column text. .*: id, data.text, .* --column text=data.text"),
        ("json-array/labelstudio.json", f"{CORPUS} --column text=data.text", 0, "1 accepted"),
        ("json-array/labelstudio.jsonl", CORPUS, 1, "has no column text. .* --column text=data.text"),
        ("json-array/one-line.jsonl", CORPUS, 0, TWO),
        ("json-array/posts.json", CORPUS, 0, TWO),
        ("json-array/posts.jsonl", CORPUS, 0, TWO),
        ("json-array/text-object.jsonl", CORPUS, 3, "line 1: The text is an object. It must be a string"),
        ("json-array/text-object.jsonl", f"{CORPUS} --column text=text.body --max-rejects 1", 0, "1 accepted"),
        ("json-array-judgments/j.json", JUDGMENTS, 0, "2 judgments of 2 annotators on 1 item"),
        ("json-array-judgments/pretty.jsonl", CORPUS, 0, "1 accepted"),
        ("json-array-judgments/pretty.jsonl", JUDGMENTS, 1, "has no columns task, worker, label. .* --column task=id"),
    ),
    # Language tags of vocabularies.
    *(
        ("language-tags/bad.rdf", VOCABULARY, 0, r"not imported: 1 label: line 3: .*ex.org/a .* 'unibo.it'"),
        ("language-tags/none.ttl", VOCABULARY, 1, "Concept a has two preferred labels in one language"),
        ("language-tags/notag.ttl", VOCABULARY, 0, "2 labels have no language code, so annotators of every"),
        ("language-tags/space.ttl", VOCABULARY, 1, r"line 3: invalid Turtle .*near @en\)"),
        ("language-tags/tags.ttl", VOCABULARY, 0, "5 labels in en-GB, en-US, fr, sr-Latn, zh-Latn-pinyin"),
    ),
    # Ids of concepts: two addresses are never one id.
    *(
        ("same-last-part/blank.ttl", VOCABULARY, 1, "“Nameless” has no URI, .* Add a URI"),
        ("same-last-part/percent.ttl", VOCABULARY, 0, "2 concepts with 2 labels"),
        ("same-last-part/twohosts.ttl", VOCABULARY, 0, "2 ids: a/1, b/1"),
    ),
    # SKOS as others write it.
    *(
        ("skosxl/mixed.ttl", VOCABULARY, 0, "1 concept with 2 labels in en"),
        ("skosxl/xl.ttl", VOCABULARY, 0, "2 concepts with 2 labels in en"),
        ("other-skos/coll.ttl", VOCABULARY, 0, "(?s)not offered: 1 concept: o.*not imported: 1 collection"),
        ("other-skos/foreign.ttl", VOCABULARY, 1, "(?s)2 errors.*unknown broader concept: http://other.org/9. Add the"),
        ("other-skos/jsonld.jsonld", VOCABULARY, 0, "1 concept with 1 label in en"),
        (
            "other-skos/subclass.ttl",
            VOCABULARY,
            1,
            "no concepts, only 1 labelled resource .* has the type skos:Concept",
        ),
        ("deprecated/v.ttl", VOCABULARY, 0, r"but not offered: 1 concept: 1 \(use 2\)"),
    ),
    # Files that do not follow the syntax.
    *(
        ("bad-turtle/escape.ttl", VOCABULARY, 1, "line 3: invalid Turtle .*bad escape"),
        ("bad-turtle/latin1.rdf", VOCABULARY, 0, "1 concept with 1 label in fr"),
        ("bad-turtle/noend.ttl", VOCABULARY, 1, "line 3: invalid Turtle .*near <http://ex.org/a>"),
        ("bad-turtle/noprefix.ttl", VOCABULARY, 1, 'line 1: invalid Turtle .*Prefix "skos:" not bound'),
        ("bad-turtle/trunc.nt", VOCABULARY, 1, r"line 2: invalid Turtle or N-Triples \(a quote is not closed"),
        ("bad-turtle/xmlent.rdf", VOCABULARY, 1, "line 2: the document has a DOCTYPE.* xmllint --noent --dropdtd"),
    ),
    ("removed/c.jsonl", THREADS, 1, r"All 4 replies were omitted \(the message or reply was deleted or removed: 4\)"),
    # A missing answer is not an answer.
    *(
        ("judgments-missing/empty.csv", JUDGMENTS, 3, "line 4: The label is empty"),
        ("judgments-missing/none.csv", JUDGMENTS, 3, "line 4: The label is None, which programs write for a missing"),
        ("judgments-missing/null.jsonl", JUDGMENTS, 3, "line 3: The label is missing"),
        ("judgments-missing/empty.csv", f"{VALID} && {AGREE}", 0, "alpha is 1.0000"),
        ("judgments-missing/none.csv", f"{VALID} && {AGREE}", 0, "alpha is 1.0000"),
        ("judgments-missing/null.jsonl", f"{VALID} && {AGREE}", 0, "alpha is 1.0000"),
    ),
    # Labels that look alike.
    *(
        (
            "label-spelling/j.csv",
            JUDGMENTS,
            0,
            r"' yes' as yes \(1, line 4\), cafe\u0301 \(NFD\) as café \(1, line 6\)",
        ),
        ("label-spelling/j.csv", f"{JUDGMENTS} && {AGREE}", 0, "The labels Yes and yes differ only in case"),
        ("labels-of-pandas/j.csv", f"{JUDGMENTS} && {AGREE} --gold labels-of-pandas/gold.csv", 0, "On 3 items with a"),
        (
            "labels-of-pandas/j.jsonl",
            JUDGMENTS,
            3,
            "line 3: The label is True, neither a string nor .* save it as text",
        ),
        ("labels-of-pandas/j2.csv", f"{JUDGMENTS} && {AGREE}", 0, "alpha is 1.0000"),
        ("labels-of-pandas/workers.csv", JUDGMENTS, 3, "line 4: The worker is nan, which programs write for a missing"),
        ("labels-of-pandas/workers.csv", VALID, 0, "4 judgments of 3 annotators"),
    ),
    # Codes of languages.
    *(
        ("language-codes/judgments.csv", VALID, 0, "48 judgments of 1 annotator .* 5 were rejected"),
        ("language-codes/people.csv", PEOPLE, 1, "Line 12: 'zh' covers several languages. .*: zh-CN, zh-TW"),
        ("language-codes/people.csv", PEOPLE, 1, r"Line 40: 'als' is not a known .* write sq \(Albanian\) or gsw"),
        ("language-codes/records.jsonl", RECORDS, 3, "6 of its 53 rows .*line 36: The language 'unk' .* so write und"),
        ("language-codes/predictions.tsv", PREDICTIONS, 1, "line 50: The label is nan, .* Write und if"),
        ("language-codes/predictions_ft.tsv", PREDICTIONS, 1, "'zh' stands for zh-CN, zh-TW. .* --map zh=zh-CN,zh-TW"),
    ),
    # Packed files.
    *(
        ("packed/RC_2015-01.zst", BODY, 0, FORTY),
        ("packed/small31.jsonl.zst", BODY, 0, FORTY),
        ("packed/cut.jsonl.gz", BODY, 1, "is truncated or damaged .*, so nothing was imported. Download it again"),
        ("packed/rc.jsonl.bz2", BODY, 0, FORTY),
        ("packed/rc.jsonl.xz", BODY, 0, FORTY),
        ("packed/rc.zip", BODY, 0, FORTY),
        ("packed/two.jsonl.gz", BODY, 0, FORTY),
    ),
]
# Fields that are columns of exported sets.
FIELDS = "chance concepts dawid_skene judged_as judgments label preferred set soft_labels stage transitions"

POSTS = [{"id": "1", "text": "The ferry leaves at seven"}, {"id": "2", "text": "The second text"}]
ARRAY = json.dumps(POSTS)
LINES = "".join(f"{json.dumps(post)}\n" for post in POSTS).encode()
PREFIXES = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix x: <http://ex.org/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""
LINKED = {
    "@context": {"skos": "http://www.w3.org/2004/02/skos/core#"},
    "@graph": [{"@id": "x:a", "@type": "skos:Concept", "skos:prefLabel": {"@value": "A", "@language": "en"}}],
}
RDF = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:skos="http://www.w3.org/2004/02/skos/core#">'
NT = "<x:a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://www.w3.org/2004/02/skos/core#Concept> .\n"
NT_LABEL = "<x:a> <http://www.w3.org/2004/02/skos/core#prefLabel> "


def concepts(*tagged: str) -> str:
    """Return a concept for each label, which is written in Turtle."""
    return PREFIXES + "".join(f"x:{n} a skos:Concept ; skos:prefLabel {label} .\n" for n, label in enumerate(tagged))


def votes(*labels: str) -> bytes:
    """Return a table of judgments with a row for each label."""
    return "".join(["task,worker,label\n", *(f"{n},w,{label}\n" for n, label in enumerate(labels))]).encode()


def tarred(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        entry = tarfile.TarInfo("posts.jsonl")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def in_languages(*codes: str) -> str:
    return "".join(json.dumps({"id": n, "language": code, "body": "a text"}) + "\n" for n, code in enumerate(codes))


VARIANTS: list[Variant] = [
    *(
        ("trailing.json", f"{ARRAY[:-1]},]", CORPUS, 0, TWO),
        ("nested.json", json.dumps([[post] for post in POSTS]), CORPUS, 3, "line 1: The line is a list. Each row must"),
        ("empty.json", "[]", CORPUS, 1, "contains no rows"),
        ("twice.json", f"{ARRAY}\n[]", CORPUS, 0, TWO),
        (
            "columns.json",
            '{"id": {"0": 1}, "text": {"0": "a"}}',
            CORPUS,
            1,
            "table by columns, as pandas .* lines=True",
        ),
        ("split.json", '{"columns": ["id"], "index": [0], "data": [[1]]}', CORPUS, 1, "table by columns, as pandas"),
        ("texts.json", '["one", "two"]', CORPUS, 3, "Each row must be a JSON object"),
        ("commas.jsonl", LINES.replace(b"}\n", b"},\n"), CORPUS, 3, "line 1: The line ends with a comma. Remove the"),
        ("table.jsonl", "id,text\n1,a\n", CORPUS, 3, "line 1: The line is not a JSON object; it begins with 'id,text'"),
        ("quotes.json", "[{'id': 1}]", CORPUS, 3, "line 1: The line is not valid JSON: .*enclosed in double quotes"),
        ("trailing.json", '[{"task": 1, "worker": "a", "label": "x"},]', JUDGMENTS, 0, "1 judgment of 1 annotator"),
    ),
    *(
        (
            "nfd.csv",
            votes("naïve", unicodedata.normalize("NFD", "naïve")),
            JUDGMENTS,
            0,
            r"nai\u0308ve \(NFD\) as naïve",
        ),
        ("spaces.csv", votes("Yes\u00a0", "Yes"), JUDGMENTS, 0, r"'Yes\\xa0' as Yes \(line 2\)"),
        (
            "width.csv",
            votes("ｙｅｓ", "yes", "YES"),
            JUDGMENTS,
            0,
            "YES and yes and ｙｅｓ differ only in case or width",
        ),
        ("truth.csv", votes("TRUE", "True", "true"), JUDGMENTS, 0, "TRUE and True and true differ only in case"),
        ("missing.csv", votes("NA", "#N/A", "<NA>", "NULL", "n/a", "NaN", "x"), VALID, 0, "1 judgment .* 6 were reje"),
        ("rounded.csv", votes("9.06E+17"), JUDGMENTS, 3, "line 2: The label 9.06E.17 is a number that another program"),
        ("ids.csv", "task,worker,label\n1.0,a,x\n1,b,x\n", JUDGMENTS, 3, "line 2: The task 1.0 is a number that anot"),
        ("workers.csv", "task,worker,label\n1,9.06E+17,x\n", JUDGMENTS, 3, "The worker 9.06E.17 is a number that"),
        ("authors.csv", "id,text,author\n1,a text,9.06E+17\n", CORPUS, 3, "line 2: The author 9.06E.17 is a number"),
        ("nobody.csv", "id,text,author\n1,a text,nan\n2,a text,NULL\n", CORPUS, 0, TWO),
    ),
    *(
        ("codes.jsonl", in_languages("en_GB", "zh-Hant-TW", "iw", "English"), RECORDS, 0, "iw as he"),
        ("none.jsonl", in_languages("xx"), RECORDS, 3, "'xx' is not a known language code; write a code such as de"),
        (
            "people.csv",
            "username,name,languages\na,A,xx:5\nb,B,de\n",
            PEOPLE,
            1,
            "(?s)Line 2: 'xx' .*Line 3: 'de' has no",
        ),
        ("people.csv", "username,name,languages\na,A,en_GB:5\nb,B,iw:5\n", PEOPLE, 0, "2"),
    ),
    *(
        ("tags.ttl", concepts('"A"@english', '"B"@xx'), VOCABULARY, 0, "2 language codes: english, xx"),
        ("old.ttl", concepts('"A"@iw', '"B"@en-GB-oed'), VOCABULARY, 0, "2 labels in en-GB-oed, iw"),
        ("underscore.ttl", concepts('"A"@en_GB'), VOCABULARY, 1, r"line 3: invalid Turtle .*near _GB\)"),
        ("collection.ttl", f"{PREFIXES} x:c a skos:Collection .", VOCABULARY, 1, "no concepts, only 1 collection"),
        ("old.ttl", concepts('"A"@en ; owl:deprecated "true"', '"B"@en'), VOCABULARY, 0, "not offered: 1 concept: 0"),
        ("latin.nt", f'{NT}{NT_LABEL}"Été"@fr .\n'.encode("latin-1"), VOCABULARY, 1, "line 2: .* Save it as UTF-8"),
        ("line.nt", f'{NT}{NT_LABEL}"A"@en\n{NT}', VOCABULARY, 1, "line 3: invalid Turtle or N-Triples"),
        ("page.rdf", "<!DOCTYPE html><html></html>", VOCABULARY, 1, "is a web page, not a vocabulary. Download"),
        ("tree.rdf", f"{RDF}<skos:Concept></rdf:RDF>", VOCABULARY, 1, "line 1: the file is not valid XML .mismatched"),
        ("turtle.rdf", concepts('"A"@en'), VOCABULARY, 0, "1 concept with 1 label in en"),
        ("graph.json", json.dumps(LINKED), VOCABULARY, 0, "1 concept with 1 label in en"),
        ("bad.jsonld", json.dumps(LINKED)[:-1], VOCABULARY, 1, "line 1: invalid JSON"),
        (
            "away.jsonld",
            json.dumps(LINKED | {"@context": "https://example.org/context"}),
            VOCABULARY,
            1,
            "needs the context https://example.org/context, which is not fetched. Put the object",
        ),
        ("text.jsonld", '"text"', VOCABULARY, 1, "must contain a JSON object or array"),
        ("one.zip", zipped({"v.ttl": concepts('"A"@en').encode()}), VOCABULARY, 0, "1 concept with 1 label in en"),
        (
            "rounded.tsv",
            "id\tlabel\n9.06E+17\tlaw\n",
            VOCABULARY,
            1,
            "line 2: The id 9.06E.17 is a number that another",
        ),
        ("tag.jsonld", json.dumps(LINKED).replace('"en"', '"e n"'), VOCABULARY, 1, "invalid language code, 'e n'"),
    ),
    *(
        ("mac.zip", zipped({"a.jsonl": LINES, "__MACOSX/._a.jsonl": b"x", ".DS_Store": b"x"}), CORPUS, 0, TWO),
        ("two.zip", zipped({"a.jsonl": LINES, "b.jsonl": LINES}), CORPUS, 1, "is a ZIP file with 2 files.* Unpack it"),
        ("deep.zip", zipped({"a.jsonl.gz": gzip.compress(LINES)}), CORPUS, 1, "is compressed twice. Unpack it once"),
        ("posts.tar.gz", tarred(LINES), CORPUS, 1, "contains a tar archive. Unpack it, .* tar -xf posts.tar.gz"),
        ("posts.jsonl.gz", tarred(LINES), CORPUS, 1, "contains a tar archive. Unpack it, .* tar -xf posts.jsonl.gz"),
        ("again.jsonl.gz", gzip.compress(gzip.compress(LINES)), CORPUS, 1, "is compressed twice. Unpack it once"),
        ("gzip.jsonl", gzip.compress(LINES), CORPUS, 0, TWO),
        ("bzip2.jsonl.gz", bz2.compress(LINES), CORPUS, 0, TWO),
        ("plain.jsonl.gz", LINES, CORPUS, 1, "its content is not gzip. Remove .gz from its name"),
        ("posts.7z", b"7z\xbc\xaf\x27\x1c" + bytes(99), CORPUS, 1, "compressed with 7-Zip.* Unpack it with 7z x"),
        ("damaged.zip", zipped({"a.jsonl": LINES})[:-9], CORPUS, 1, "is truncated or damaged"),
        ("later.zip", zipped({"a": LINES}).replace(b"\1\2\x14\3\x14", b"\1\2\x14\3c"), CORPUS, 1, "version 9.9"),
    ),
    (
        "removed.jsonl",
        "".join(
            json.dumps({"id": n, "parent_id": 0 if n else None, "body": body}) + "\n"
            for n, body in enumerate(["Which bread is best?", "[Comment deleted]", "(deleted)", "[ Content removed ]"])
        ),
        THREADS,
        1,
        "All 3 replies were omitted .*deleted or removed: 3",
    ),
]
# Rows of the quick tier. The others are in the slow tier.
QUICK = {"json-array/posts.json", "other-skos/jsonld.jsonld", "judgments-missing/none.csv", "posts.tar.gz", "cut.json"}


def rows(table: list, name_index: int = 0) -> list:
    return [
        pytest.param(*row, id=f"{number}-{row[name_index]}", marks=[] if row[0] in QUICK else [pytest.mark.slow])
        for number, row in enumerate(table)
    ]


@pytest.fixture
def run(data_dir, db, monkeypatch, capsys) -> Callable[[str], tuple[int, str]]:
    """Return a function that runs commands and returns the status of the last and its output."""
    monkeypatch.chdir(FILES)

    def run_commands(commands: str) -> tuple[int, str]:
        status = 0
        for command in commands.split(" && "):
            assert status == 0, capsys.readouterr()
            capsys.readouterr()
            status = exit_status.run(partial(call_command, *shlex.split(command)))
        return status, "".join(capsys.readouterr())

    return run_commands


@pytest.mark.parametrize(("file", "commands", "status", "pattern"), rows(TABLE))
def test_a_faulty_file_is_read_as_it_is_meant_or_refused_with_what_to_do(run, file, commands, status, pattern):
    actual, output = run(commands.replace("{}", file))
    assert (actual, bool(re.search(pattern, output))) == (status, True), output
    assert "Traceback" not in output


@pytest.mark.parametrize(("name", "content", "commands", "status", "pattern"), rows(VARIANTS))
def test_a_neighbouring_fault_is_too(run, tmp_path, name, content, commands, status, pattern):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    test_a_faulty_file_is_read_as_it_is_meant_or_refused_with_what_to_do(
        run, str(tmp_path / name), commands, status, pattern
    )


@pytest.mark.slow
@pytest.mark.parametrize("field", FIELDS.split())
def test_a_field_is_not_named_like_a_column_of_exported_sets(run, tmp_path, field):
    (tmp_path / "records.jsonl").write_text(json.dumps({"id": "r0", "language": "en", field: "a", "review": "b"}))
    status, output = run(f"import_corpus c {tmp_path}/records.jsonl --fields '{field} review' --licence CC0-1.0")
    assert status == 1
    assert f"cannot have the name {field}" in output
    assert f"--fields body --column body={field}" in output


@pytest.mark.parametrize(
    ("file", "typed", "labels"),
    [
        ("regional-english/v.ttl", "colour", ["colour"]),
        ("deprecated/v.ttl", "wire", []),
        ("deprecated/v.ttl", "r", ["radio"]),
    ],
)
def test_readers_of_english_find_labels_of_a_region_and_no_deprecated_ones(run, file, typed, labels):
    run(f"import_vocabulary c {file}")
    assert [hit.label.text for hit in find(vocabulary_named("c"), typed, "en")] == labels


@pytest.mark.slow
@pytest.mark.parametrize(("folder", "english"), [("detectors", {"d10"}), ("votes-without-evidence", set())])
def test_detectors_that_know_nothing_of_a_text_do_not_agree_on_english(run, folder, english):
    assert run(f"import_corpus c {folder}/posts.jsonl --licence CC0-1.0 && prelabel c --processes 1")[0] == 0
    parts = [corpus_dir("c") / "votes" / part.name for part in manifest_of("c").votes]
    firsts = {
        row["id"]: [vote["language"] for name in ("langid", "cld2", "fasttext") for vote in row[name][:1]]
        for part in parts
        for row in pq.read_table(part).to_pylist()
    }
    assert {key for key, languages in firsts.items() if languages == ["en"] * 3} == english
