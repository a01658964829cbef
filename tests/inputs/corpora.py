"""import_corpus, import_threads, import_scores, prelabel, import_predictions, import_vocabulary, vocabularies,
suggest, plan."""

import gzip
import json
import os

from tests.annotate.corpus import POSTS

ADS = POSTS.parent / "records" / "ad_relevance.en.jsonl"

CSV = "id,text\n" + "".join(f"{n},{'Grüße' if n % 2 else 'Hallo'} aus dem Ort mit der Nummer {n}.\n" for n in range(40))
UNDATED = "id,text,posted_at\n1,Grüße,2014/7/1\n".encode("cp1252")
RUSSIAN = "id,text\n" + "".join(f"{n},Сегодня мы долго гуляли в парке {n}.\n" for n in range(40))
JSONL = "".join(
    json.dumps({"id": n, "text": f"„Text“ – mit der Nummer {n}."}, ensure_ascii=False) + "\n" for n in range(40)
)
GOOD = JSONL.encode()


def corpus(file, *options):
    return " ".join([f"import_corpus new FILE.{file} --licence CC0-1.0", *options])


def with_id(written):
    """Return a line of JSON with this literal as its id."""
    return f'{{"id": {written}, "text": "Guten Morgen zusammen."}}\n'.encode()


def long_line(path):
    """Write a sparse file with a line of 200 MB."""
    with path.open("wb") as file:
        file.write(b'{"id": 1, "text": "' + b"a" * 5000)
        file.truncate(200_000_000)
        file.seek(0, os.SEEK_END)
        file.write(b'"}\n' + GOOD)


def unreadable(path):
    path.symlink_to("/proc/self/mem")


ACT = json.dumps(
    dict.fromkeys(("title", "type", "header", "recitals", "attachments"), "a")
    | {"celex_id": "1", "uri": "http://example.org/1", "main_body": ["b", "c"], "concepts": ["7"]}
).encode()


def folder(files):
    """Return a function that writes a folder with these files, by name."""

    def make(path):
        path.mkdir()
        for name, content in files.items():
            (path / name).write_bytes(content)

    return make


def acts(file, *options):
    return corpus(file, "--format eurlex", *options)


IMPORT_CORPUS = [
    # encodings
    (corpus("jsonl.gz"), gzip.compress(bytes(2_000_000)), 3, "longer than"),
    (corpus("jsonl"), JSONL.encode("cp1252"), 0, "(?s)40 accepted.*was read as Windows-1252.*can only be guessed"),
    (corpus("jsonl", "--encoding utf-8"), JSONL.encode("cp1252"), 3, "40 rows were rejected.*seems to be WINDOWS-1252"),
    # the encoding is no advice where every row has another fault
    (corpus("csv", "--encoding windows-1252"), UNDATED, 3, "The time '2014/7/1' is not valid.*epoch seconds. All rej"),
    (corpus("csv"), RUSSIAN.encode("cp1251"), 3, "encoding for a non-Latin script"),
    # one row in twenty, and one more
    (corpus("jsonl"), GOOD.replace(b'"id": 1,', b'"id": ,').replace(b'"id": 2,', b'"id": ,'), 0, "2 rows rejected"),
    (corpus("jsonl"), GOOD + b"x\n" * 3, 3, "3 of its 43 rows were rejected"),
    (
        corpus("csv", "--encoding windows-1251"),
        RUSSIAN.encode("cp1251"),
        0,
        "(?s)40 accepted.*was read as Windows-1251",
    ),
    (corpus("csv", "--encoding latin"), CSV.encode(), 1, "--encoding is 'latin'. It must be one of utf-8, utf-16, "),
    (corpus("csv", "--encoding utf-8 --max-rejects 100%"), CSV.encode("latin-1"), 0, "20 accepted, 0 duplicates, 20"),
    (corpus("csv"), CSV.replace(",", ";").encode("utf-16"), 0, "read as UTF-16, with columns separated by semicolons"),
    (corpus("csv"), ("\ufeff" + CSV).encode(), 0, "40 accepted"),
    (corpus("csv"), CSV.replace("\n", "\r\n").encode(), 0, "40 accepted"),
    (corpus("jsonl"), GOOD + b'{"id": "x", "text": "Gr\xfc\xdfe"}\n', 0, "40 accepted, 0 duplicates, 1 rejected"),
    # compressed, truncated and empty files
    (corpus("csv"), b"\n", 1, "The first line of .* is blank, but the columns id and text are required"),
    # lines
    (corpus("jsonl"), long_line, 0, "40 accepted, 0 duplicates, 1 rejected"),
    (corpus("csv"), CSV.encode() + b'x,"never closed\n', 0, "40 accepted, 0 duplicates, 1 rejected"),
    (corpus("jsonl"), b'{"id": 1, "id": 2, "text": "a"}\n', 3, "has the key 'id' twice"),
    (corpus("jsonl"), b'{"id": 1, "text": "a", "more": {"x": 1, "x": 2}}\n', 3, "has the key 'x' twice"),
    # ids
    (corpus("jsonl"), with_id('"1e3"'), 3, "1e3 is a number that another program has rewritten"),
    (corpus("csv"), b"id,text\n4.84891E+17,Hallo zusammen\n", 3, "rewritten. Save the original ids as text"),
    (corpus("jsonl"), with_id('"../../etc/passwd"'), 0, "1 accepted"),
    (corpus("jsonl"), with_id('"Ünïcödé-🙂"'.encode().decode()), 0, "1 accepted"),
    (corpus("jsonl"), GOOD + with_id("1"), 0, "40 accepted, 0 duplicates, 1 rejected"),
    # paths that are not files
    (corpus("csv"), unreadable, 1, "cannot be read: Input/output error"),
    # names
    ("import_corpus ../evil FILE.jsonl --licence CC0-1.0", GOOD, 1, "'../evil' is not a valid corpus name"),
    # options
    ("import_corpus none.csv", None, 1, "none.csv does not exist"),
    ("import_corpus FILE.csv", b"id,title\n1,a\n", 1, "(?s)title.*No column seems to contain the text. Add --column"),
    ("import_corpus FILE.csv", b"id,body,tweet\n1,a,b\n", 1, "--column text=body or --column text=tweet"),
    (corpus("jsonl", "--source"), GOOD, 2, "--source requires a value"),
    (corpus("jsonl", "--max-rejects 2"), GOOD, 1, "--max-rejects is 2. It must be 0 to 1"),
    (corpus("jsonl", "--max-rejects=-1%"), GOOD, 1, "--max-rejects is -0.01"),
    (corpus("jsonl", "--longest-line 0"), GOOD, 1, "--longest-line is 0. It must be 1 or more"),
    (corpus("jsonl", "--longest-line 1e9"), GOOD, 1, "'1e9' is not a whole number"),
    (corpus("jsonl", f"--longest-line {'9' * 400}"), GOOD, 1, "--longest-line"),
    (corpus("jsonl", "--longest-line 99999999999999999999"), GOOD, 1, "--longest-line"),
    (corpus("jsonl", "--format xml"), GOOD, 1, "--format is 'xml'. It must be one of"),
    (corpus("csv", "--column id tweet"), CSV.encode(), 1, "--column id: expected FIELD=COLUMN without spaces, for"),
    # files after an option
    (corpus("csv", "--column id=id FILE.csv"), CSV.encode(), 0, "FILE.csv: already imported"),
    (corpus("csv", "--colum id=tweet"), CSV.encode(), 1, "has no column tweet"),
    (corpus("csv", "--columns id=tweet"), CSV.encode(), 2, r"Did you mean --column instead of --columns\?"),
    (corpus("csv").replace("licence", "license"), CSV.encode(), 2, r"Did you mean --licence instead of --license"),
    # without a header
    (corpus("csv"), CSV.encode().split(b"\n", 1)[1], 1, "seems to be a row.* such as id,text. If you used --column"),
    (corpus("tsv"), b"7300000000000\tx\ten\n", 1, "column names, such as id<tab>text<tab>column3"),
    # acts
    (acts("acts"), folder({"1.json": ACT}), 0, "1 accepted, 0 duplicates, 0 rejected"),
    (acts("jsonl"), ACT, 0, "1 accepted, 0 duplicates, 0 rejected"),
    (acts("jsonl", "--language fr"), ACT, 0, "1 accepted"),
]
PRELABEL = [
    ("prelabel none", None, 1, "The corpus 'none' does not exist"),
    ("prelabel ../demo", None, 1, "is not a valid corpus name"),
    ("prelabel demo --k 0", None, 1, "--k is 0"),
    ("prelabel demo --k=-1", None, 1, "--k is -1"),
    ("prelabel demo --processes 0", None, 1, "--processes is 0"),
]
IDS, RECORDS = (
    [json.loads(line)["id"] for line in file.read_text(encoding="utf-8").splitlines()] for file in (POSTS, ADS)
)


def predicted(label, *more):
    return "".join(f"{key}\t{label}\n" for key in IDS).encode() + b"".join(more)


def predictions(*options):
    return " ".join(["import_predictions demo FILE.tsv --name mine --version 1", *options])


def ranking(*options):
    return " ".join(["import_predictions ads FILE.run --name mine --version 1 --ranked", *options])


def threads(file, *options):
    return " ".join([f"import_threads new FILE.{file} --licence CC0-1.0", *options])


ASKED = b'{"id": 1, "parent_id": null, "text": "What is the largest ocean in the world?"}\n'
ANSWERED = b'{"id": 2, "parent_id": 1, "text": "The Pacific Ocean is the largest ocean in the world."}\n'
TWO = ASKED + ANSWERED


def replying(**fields):
    """Return a message and a reply with changed fields."""
    return ASKED + json.dumps(json.loads(ANSWERED) | fields).encode() + b"\n"


IMPORT_THREADS = [
    (threads("jsonl"), TWO, 0, "1 pair from 1 file"),
    (threads("jsonl"), replying(score="many"), 3, "The score 'many' is not a number"),
    (threads("jsonl"), replying(id="4.8E+17"), 3, "rewritten. Save the original ids as text"),
    (threads("jsonl", "--least-certainty 2"), TWO, 1, "--least-certainty is 2. It must be 0 to 1"),
    (threads("jsonl").replace("new", "demo"), TWO, 1, "demo contains posts.*, not records with message reply"),
    ("import_threads new FILE.jsonl", TWO, 2, "Required arguments are missing: --licence"),
]


def scores(*options):
    return " ".join(["import_scores talk FILE.tsv --name mine", *(options or ("--threshold 0.5",))])


IMPORT_SCORES = [
    (scores(), b"a\t0.1\nb\t0.9\n", 0, "1 pair dropped, .* In total, the scorers keep 0 of 1 pair"),
    (scores(), b"a\tNaN\nb\t1.5\n", 1, "line 1: The score is NaN"),
    (scores(), b"m 0.1\n", 1, "contains only the cell 'm 0.1', but the columns id and score are required. Separate"),
    (scores("--threshold nan"), b"a\t0.1\n", 1, "--threshold"),
    (scores("--threshold 0.5 --of thread"), b"a\t0.1\n", 1, "--of is 'thread'. It must be one of message, pair"),
    ("import_scores talk FILE.tsv --name mine", b"a\t0.1\n", 2, "Required arguments are missing: --threshold"),
]
IMPORT_PREDICTIONS = [
    (predictions(), predicted("__label__en"), 0, "converted without --map: __label__en as en"),
    (predictions(), predicted("english"), 0, "converted without --map: english as en"),
    (predictions(), predicted("elvish"), 1, "contains unknown labels.*--map"),
    (predictions("--column id tweet"), predicted("en"), 2, "--column expects FIELD=COLUMN as one argument, such as"),
    (ranking(), f"{RECORDS[0]} Q0 9 1 0.5 s\n".encode(), 0, "ranked labels for 1 record from FILE.run"),
    (ranking("--vocabulary none"), b"x", 1, "vocabulary 'none' does not exist"),
    ("import_predictions ads FILE.tsv --name mine --version 1", predicted("en"), 1, "lacks 60 records"),
]
VOCABULARY = {"1": {"label": "law"}, "2": {"label": "civil law", "parents": ["1"]}}
SKOS = b"@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix x: <https://example.org/> .\n"


def vocabulary(file, *options):
    return " ".join([f"import_vocabulary new FILE.{file}", *options])


def concepts(**rows):
    return json.dumps(VOCABULARY | rows).encode()


def huge(path):
    """Write a sparse file of 500 MB."""
    path.write_bytes(b"a" * 5000)
    os.truncate(path, 500_000_000)


# 700 bytes that entities expand to gigabytes.
LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "' + "A" * 40 + '">'
    + "".join(f'<!ENTITY {new} "{f"&{old};" * 10}">' for old, new in zip("abcdefgh", "bcdefghi", strict=True))
    + "]><r>&i;</r>"
).encode()  # fmt: skip

IMPORT_VOCABULARY = [
    (vocabulary("json"), concepts(), 0, "version 1: 2 concepts with 2 labels in en"),
    (vocabulary("json", "--dry-run"), concepts(), 0, "This was a dry run"),
    (vocabulary("json"), b'{"a b": {"label": "law"}}', 1, 'The id "a b" contains a space, .* Use _'),
    # links
    (vocabulary("json"), concepts(**{"1": {"label": "a", "parents": ["2"]}}), 1, "cycle of 2: .* → .* → .*Remove one"),
    (vocabulary("json"), concepts(**{"1": {"label": "a", "parents": ["1"]}}), 1, "cycle of 1: 1 → 1"),
    (vocabulary("json"), concepts(**{"1": {"label": "a", "related": ["8", "9"]}}), 1, "2 unknown related concepts: 8"),
    (vocabulary("json"), concepts(**{"1": {"label": "a", "related": ["1"]}}), 1, "1 is related to itself"),
    (vocabulary("json"), concepts(**{"1": {"label": "a", "parents": "2"}}), 1, "parents for concept 1 must be a list"),
    # labels
    (vocabulary("json"), concepts(**{"3": {"label": " "}}), 1, "Concept 3 has no label in any language"),
    (vocabulary("json"), concepts(**{"3": {"label": "Law"}}), 0, "share 1 label, .*: “law” of 1, 3"),
    (vocabulary("json"), concepts(**{"3": {"label": 3}}), 1, "A label of concept 3 is 3. It must be a string"),
    (vocabulary("json"), concepts(**{"3": {"label": "x" * 501}}), 1, "has 501 characters. The limit is 500"),
    (vocabulary("json"), concepts(**{"3": {"label": "a\0b"}}), 1, "label of concept 3 contains a NUL"),
    (vocabulary("json"), concepts(**{"3": {"label_" + "x" * 20: "a"}}), 1, "an invalid language code,"),
    (vocabulary("ttl"), SKOS + b'x:1 a skos:Concept ; skos:prefLabel "a"@en, "b"@en .', 1, "two preferred labels in"),
    # ids
    (vocabulary("json"), concepts(**{"": {"label": "a"}}), 1, "An id is empty"),
    (vocabulary("json"), concepts(**{"x" * 201: {"label": "a"}}), 1, "has 201 characters. The limit is 200"),
    (vocabulary("json"), b'{"1": {"label": "a"}, "1": {"label": "b"}}', 1, "has the key 1 twice in one object"),
    (vocabulary("json", "FILE.json"), concepts(), 1, "The concept 1 occurs twice"),
    (vocabulary("tsv"), b"1\tlaw\n1\tcivil law\n", 1, "The concept 1 occurs twice"),
    # files of another type
    (vocabulary("json"), b"{}", 1, "FILE.json: The file contains no concepts"),
    (vocabulary("json"), b"[]", 1, "must contain one JSON object"),
    (vocabulary("json"), b'{"1": "law"}', 1, "Concept 1 must be an object"),
    (vocabulary("json"), b'{"1":\n {"label": law}}', 1, "FILE.json, line 2: invalid JSON"),
    (vocabulary("ttl"), SKOS + b"x:1 a skos:Concept\nx:2 a", 1, "FILE.ttl, line [23]: invalid Turtle"),
    (vocabulary("ttl"), SKOS, 1, "The file contains no concepts"),
    (vocabulary("nt"), b"<a> <b>\n<c> .", 1, "invalid Turtle or N-Triples|contains no concepts"),
    (vocabulary("rdf"), b"<a>\n<b></a>", 1, "FILE.rdf, line 2: the file is not valid XML"),
    (vocabulary("rdf"), LAUGHS, 1, "FILE.rdf, line 1: the document has a DOCTYPE, .*; remove it, .* xmllint"),
    (vocabulary("rdf"), b'<?xml version="1.0" encoding="x-none"?><a/>', 1, "line 1: the declared encoding is not"),
    (vocabulary("tsv"), b"id\tname\n1\tlaw\n", 1, "has the unknown column 'name'. Valid columns are id, label"),
    (vocabulary("json"), huge, 1, "exceeds the limit of 256 MB"),
    (vocabulary("json.gz"), concepts(), 1, "has the suffix of a gzip file, but its content is not gzip"),
    (vocabulary("json"), b"[" * 100_000, 1, "cannot be read as JSON"),
    (vocabulary("json", "--schemes FILE.schemes.json"), concepts(), 1, "must contain the objects domains, schemes"),
    ("import_vocabulary ../x FILE.json", concepts(), 1, "is not a valid vocabulary name"),
    ("import_vocabulary new nowhere.json", None, 1, "nowhere.json does not exist"),
    (vocabulary("json", "--format xls"), concepts(), 1, "--format is 'xls'. It must be one of json"),
]
VOCABULARIES = [
    ("vocabularies", None, 0, "There are no vocabularies yet"),
    ("vocabularies eurovoc", None, 2, "eurovoc"),
]
SUGGEST = [
    ("suggest none --vocabulary law", None, 1, "The corpus 'none' does not exist"),
    ("suggest demo --vocabulary law", None, 1, "Corpus demo contains posts, but records"),
    ("suggest ads --vocabulary law", None, 1, "The vocabulary 'law' does not exist. Available vocabularies: none"),
    ("suggest topics --vocabulary law --learn-from body", None, 1, "--learn-from body: expected FIELD=VALUE"),
    ("suggest topics --vocabulary law --learn-from =x", None, 1, "--learn-from =x: expected FIELD=VALUE"),
    ("suggest topics --vocabulary law --learn-from split=train", None, 1, "no field 'split'. Its fields are: headline"),
    ("suggest topics --vocabulary law --apart author", None, 1, "has no field 'author'"),
    ("suggest topics --vocabulary law --apart body --learn-from headline=x", None, 1, "is left to read as text"),
    ("suggest ads --vocabulary law --learn-from query=x", None, 1, "The records of corpus ads have no declared labels"),
    ("suggest ads --vocabulary law --depth 0", None, 1, "--depth is 0. It must be 1 or more"),
]
EXPORT = json.dumps([{"id": 1, "text": "Bake it for an hour", "label": ["food", "sport"]}]).encode()
IMPORT = [
    ("import new FILE.json --licence CC0-1.0 --language en", EXPORT, 0, "doccano: 1 item, 1 answer"),
    ("import new FILE.json --licence CC0-1.0", EXPORT, 1, "does not state the language of item 1"),
    ("import new FILE.json --licence CC0-1.0 --language en --question mood", EXPORT, 1, "has no question 'mood'"),
    ("import new FILE.csv --licence CC0-1.0", CSV.encode(), 1, "is not recognized as an export of Assay, Label Studio"),
    ("import new FILE.json --licence CC0-1.0", b"", 1, "is empty"),
    ("import demo FILE.json --licence CC0-1.0", EXPORT, 1, "There is already a task or corpus 'demo'"),
    ("import ../x FILE.json --licence CC0-1.0", EXPORT, 1, "is not a valid corpus name"),
]
PROJECT = [
    ("project --creators Ann", None, 0, "creators: Ann"),
    ("project --nothing", None, 2, "nothing"),
]
VOTE = [
    ("vote none --model m --prompt FILE.md", b"{text}", 1, "The corpus 'none' does not exist"),
]
PANEL = [
    ("panel none --voters cld2", None, 1, "The corpus 'none' does not exist"),
    ("panel demo --voters cld2", None, 1, "has two to seven voters, not 1"),
]
PLAN = [
    ("plan none", None, 1, "The corpus 'none' does not exist. Create it with"),
    ("plan demo --width 0", None, 1, "--width is 0. It must be 0.1 to 100"),
    ("plan demo --accuracy 0", None, 1, "--accuracy is 0. It must be "),
    ("plan demo --measure nothing", None, 1, "--measure is 'nothing'. It must be one of recall"),
]
EXPORT_CORPUS = [("export_corpus none --out new", None, 1, "The corpus 'none' does not exist")]
TABLE = [
    *IMPORT_CORPUS,
    *EXPORT_CORPUS,
    *IMPORT_THREADS,
    *IMPORT_SCORES,
    *PRELABEL,
    *IMPORT_PREDICTIONS,
    *IMPORT_VOCABULARY,
    *VOCABULARIES,
    *SUGGEST,
    *IMPORT,
    *PROJECT,
    *VOTE,
    *PANEL,
    *PLAN,
]
