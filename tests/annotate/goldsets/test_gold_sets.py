"""Gold sets on disk: how they are read, and refused after edits by hand."""

import json
import shutil
from collections import Counter
from itertools import product

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotate.actions.registry import call_command
from annotate.goldsets.gold_set import GoldRow, read_gold_set, read_ids
from annotate.goldsets.set_folder import GoldSetError, manifest_digest, write_digests, write_manifest
from corpora.storage.layout import digest_of

ROWS = [
    {"id": "1", "label": "de", "asked": None, "stratum": "agreed", "agreed": "de", "text": "Ja\u2028\u0085 doch"},
    {"id": "2", "label": "en", "asked": None, "stratum": "audited", "agreed": "de", "votes": [{"rank": 1}]},
    {"id": "3", "label": "fr", "asked": None, "stratum": "contested", "agreed": "fr"},
    {"id": "4", "label": "und", "asked": None, "stratum": "disputed", "agreed": None},
    {"id": "5", "label": "de", "asked": None, "stratum": "agreed", "agreed": "de"},
]
DRAW = {"design": "uniform", "language": "", "predictor": "", "seed": "1", "size": 5, "frame_size": 900}
EDITED = "was changed after the export: its digest"
VERSIONS = {"langid": "1.1.6", "cld2": "0.42", "fasttext": "0.9.2 lid.176.ftz"}


def write_set(folder, rows=ROWS, **changes):
    """A folder as an export in format 2 writes it."""
    manifest = {
        "format": 2,
        "finished": True,
        "design": "uniform",
        "task": {"name": "july"},
        "draws": [DRAW],
        "corpus": {"name": "posts"},
        "detectors": [VERSIONS],
        "audit": {"languages": [{"language": "de", "unresolved": 2}, {"language": "fr", "unresolved": 0}]},
        "counts": {"by_label": dict(Counter(row["label"] for row in rows))},
    } | changes
    mark = "" if manifest["finished"] else ".unfinished"
    folder.mkdir()
    jsonl = folder / f"gold{mark}.jsonl"
    jsonl.write_bytes("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())
    write_digests(jsonl)
    (folder / f"uniformly_sampled{mark}.tsv").write_text("".join(f"{row['label']}\t{row['id']}\n" for row in rows))
    table = pa.table({name: [str(row[name]) for row in rows] for name in ("id", "label", "stratum")})
    pq.write_table(table, folder / f"gold{mark}.parquet")
    (folder / f"left_out{mark}.jsonl").write_text('{"id": "6", "label": null}\n')
    manifest["files"] = {path.name: digest_of(path) for path in sorted(folder.iterdir())}
    write_manifest(folder, manifest)
    return folder


@pytest.fixture
def folder(tmp_path):
    return write_set(tmp_path / "gold")


def edit(path, change):
    """Change the lines of a file by a function of their list."""
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join(change(lines)))


def without(*numbers):
    return lambda lines: [line for number, line in enumerate(lines, 1) if number not in numbers]


def test_a_set_is_read_with_what_an_evaluation_needs_to_know_of_it(folder, tmp_path):
    gold = read_gold_set(folder)
    assert gold.rows == [
        GoldRow("1", "de", "", "agreed", "de"),
        GoldRow("2", "en", "", "audited", "de"),
        GoldRow("3", "fr", "", "contested", "fr"),
        GoldRow("4", "und", "", "disputed", ""),
        GoldRow("5", "de", "", "agreed", "de"),
    ]
    assert (gold.folder, gold.name, gold.design, gold.finished) == (folder, "july", "uniform", True)
    assert (gold.corpus, gold.voted) == ("posts", {"langid", "cld2", "fasttext", "majority"})
    assert (gold.frame_size, gold.unresolved, gold.predictors) == (900, {"de": 2}, {})
    assert (gold.digest, gold.erased) == (digest_of(folder / "gold.jsonl"), Counter())
    # A copy whose manifest has another layout reads the same.
    shutil.copytree(folder, tmp_path / "moved")
    manifest = json.loads((folder / "manifest.json").read_text())
    (tmp_path / "moved" / "manifest.json").write_text(json.dumps(dict(reversed(manifest.items())), indent=8))
    assert read_gold_set(tmp_path / "moved").rows == gold.rows
    unfinished = read_gold_set(write_set(tmp_path / "unfinished", finished=False))
    assert (unfinished.finished, len(unfinished.rows)) == (False, 5)


def test_a_set_built_by_language_says_which_predictor_chose_its_posts(tmp_path):
    draws = [
        DRAW | {"design": "precision", "language": language, "predictor": predictor}
        for language, predictor in [("de", "cld2"), ("fr", "mine@2")]
    ]
    rows = [
        {"id": "1", "label": "not-de", "asked": "de", "stratum": None, "agreed": None},
        {"id": "1", "label": "fr", "asked": "fr", "stratum": None, "agreed": None},
    ]
    gold = read_gold_set(write_set(tmp_path / "gold", rows, design="precision", draws=draws, audit=None))
    assert gold.predictors == {"de": "cld2", "fr": "mine@2"}
    assert gold.frame_size is None
    assert gold.rows == [GoldRow("1", "not-de", "de", "", ""), GoldRow("1", "fr", "fr", "", "")]


def test_an_imported_set_has_no_corpus_no_frame_and_no_detectors_that_voted(tmp_path, capsys):
    published = tmp_path / "published.tsv"
    published.write_text("de\t1\n")
    call_command("import_gold", str(published), out=tmp_path / "gold", design="uniform", name="twitter")
    gold = read_gold_set(tmp_path / "gold")
    assert (gold.name, gold.corpus, gold.frame_size, gold.voted) == ("twitter", "", None, frozenset())
    assert gold.rows == [GoldRow("1", "de", "", "", "")]


# --- edited by hand


def relabel(number, label):
    def change(lines):
        row = json.loads(lines[number - 1])
        lines[number - 1] = json.dumps(row | {"label": label}).encode()
        return lines

    return change


def test_altered_lines_are_refused_and_named_whether_or_not_rows_may_be_gone(folder):
    before = (folder / "gold.jsonl").read_bytes()
    for change, named in (
        (relabel(2, "de"), "line 2 was altered or added"),
        (lambda lines: relabel(4, "de")(relabel(1, "en")(lines)), "lines 1, 4 were altered or added"),
        (lambda lines: [lines[0], *lines], "line 2 was altered or added"),
        (lambda lines: relabel(3, "en")(without(1)(lines)), "line 3 was altered or added"),
        (lambda lines: [line + b" " for line in lines], "lines 1, 2, 3, 4, 5 were altered"),
        (lambda lines: [b"{}"] * 9, "lines 1, 2, 3, 4, 5 and 4 more were altered"),
        (lambda lines: [*lines[:5][::-1], b""], "their order or the empty lines"),
        (lambda lines: [*lines, b"", b""], "their order or the empty lines"),
    ):
        (folder / "gold.jsonl").write_bytes(before)
        edit(folder / "gold.jsonl", change)
        for allow_erased in (False, True):
            with pytest.raises(GoldSetError, match=f"gold.jsonl was edited: .*{named}"):
                read_gold_set(folder, allow_erased=allow_erased)


def test_erased_rows_are_told_apart_from_altered_ones_and_counted_by_label_where_allowed(folder, tmp_path):
    path = folder / "gold.jsonl"
    edit(path, without(1, 4))
    with pytest.raises(GoldSetError, match=r"^2 rows were erased from .*gold\.jsonl .* Add --allow-erased"):
        read_gold_set(folder)
    gold = read_gold_set(folder, allow_erased=True)
    assert [row.id for row in gold.rows] == ["2", "3", "5"]
    assert gold.erased == {"de": 1, "und": 1}
    path.write_bytes(b"")
    gold = read_gold_set(folder, allow_erased=True)
    assert (gold.rows, gold.erased.total()) == ([], 5)
    # The line may stay, empty. An unfinished set has a separate file.
    other = write_set(tmp_path / "other", finished=False)
    edit(other / "gold.unfinished.jsonl", lambda lines: [b"", *lines[1:]])
    with pytest.raises(GoldSetError, match=r"^1 row was erased"):
        read_gold_set(other)
    assert read_gold_set(other, allow_erased=True).erased == {"de": 1}


def test_rows_may_be_erased_from_the_other_files_too_or_those_be_removed(folder):
    for name in ("gold.jsonl", "uniformly_sampled.tsv"):
        edit(folder / name, without(2))
    path = folder / "gold.parquet"
    table = pq.read_table(path)
    pq.write_table(table.filter(pa.compute.not_equal(table["id"], "2")), path)
    (folder / "left_out.jsonl").unlink()
    assert read_gold_set(folder, allow_erased=True).erased == {"en": 1}


def test_a_change_of_another_file_or_a_missing_one_is_refused_by_its_name(folder):
    before = {path: path.read_bytes() for path in folder.iterdir()}
    for name, erase, content, refusal in (
        *product(("uniformly_sampled.tsv", "gold.parquet", "left_out.jsonl"), (False, True), (b"de\t1\n",), (EDITED,)),
        # A row that was erased from the published file alone.
        ("uniformly_sampled.tsv", False, before[folder / "uniformly_sampled.tsv"].replace(b"en\t2\n", b""), EDITED),
        *product(("gold.jsonl", "gold.digests.txt", "gold.parquet"), (False,), (None,), (r"is missing\. Restore it",)),
    ):
        for path, original in before.items():
            path.write_bytes(original)
        if content is None:
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(content)
        if erase:
            edit(folder / "gold.jsonl", without(2))
        with pytest.raises(GoldSetError, match=f"{name} {refusal}"):
            read_gold_set(folder, allow_erased=True)


def test_without_the_digests_of_the_lines_erased_rows_cannot_be_told_apart(folder):
    edit(folder / "gold.jsonl", without(1))
    edit(folder / "gold.digests.txt", without(1))
    with pytest.raises(
        GoldSetError, match=r"and .*gold\.digests\.txt, which has a digest of each line, were both changed"
    ):
        read_gold_set(folder, allow_erased=True)


# --- what is not a gold set


def broken(**changes):
    """The manifest with changes; ... removes a key."""
    return lambda manifest: {key: value for key, value in (manifest | changes).items() if value is not ...}


def half_a_pair(manifest):
    changed = manifest | {"task": {"name": "half a pair: \ud83d"}}
    return json.dumps(changed | {"digest": manifest_digest(changed)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda manifest: "{", "manifest.json is not JSON"),
        (lambda manifest: "[" * 100_000, "manifest.json is not JSON"),
        (lambda manifest: f'{{"format": 2, "deep": {"[" * 960}{"]" * 960}}}', "manifest.json"),
        (lambda manifest: "[]", "is not an object, so it cannot have the key 'format'"),
        (broken(format=1), "has format 1, which an earlier version wrote. Export the set again"),
        (broken(format=3), "has format 3, but this version reads format 2"),
        (broken(format="2"), "'format' is not a number"),
        (broken(design="random"), "design 'random'. It must be one of uniform, recall, precision"),
        (broken(design=...), "has no key 'design'"),
        (broken(finished=1), "'finished' is not true or false"),
        (broken(finished=False), r"does not list gold\.unfinished\.jsonl among its files"),
        (broken(files={"gold.jsonl": "0", "../other": "0"}), r"lists '\.\./other', which is not a file in the folder"),
        (half_a_pair, "'name' is not a string"),
        (broken(task=...), "has no key 'task'"),
        (broken(corpus={"name": None}), "'name' is not a string"),
        (broken(draws=...), "has no key 'draws'"),
        (broken(draws=["x"]), "is not an object, so it cannot have the key 'frame_size'"),
        (broken(detectors=["cld2"]), "'detectors' is not a list of objects"),
        (broken(audit=[]), "'audit' is not an object"),
        (broken(counts={}), "has no key 'by_label'"),
        (broken(counts={"by_label": {"de": True}}), "'de' is not a number"),
        (
            broken(counts={"by_label": {"de": 5}}),
            r"label counts in .*manifest\.json do not match the rows of gold\.jsonl",
        ),
    ],
)
def test_a_manifest_that_is_not_as_it_should_be_is_one_sentence(folder, change, message):
    changed = change(json.loads((folder / "manifest.json").read_text()))
    if isinstance(changed, str):
        (folder / "manifest.json").write_text(changed)
    else:
        write_manifest(folder, changed)
    with pytest.raises(GoldSetError, match=message):
        read_gold_set(folder, allow_erased=True)


def test_a_manifest_edited_by_hand_or_without_its_digest_is_refused(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    for changes in (
        {"draws": [DRAW | {"frame_size": 9000}]},
        {"audit": {"limit": 0.5}},
        {"digest": ...},
        {"digest": None},
        {"digest": "0" * 64},
    ):
        (folder / "manifest.json").write_text(json.dumps(broken(**changes)(manifest)))
        for allow_erased in (False, True):
            with pytest.raises(GoldSetError, match=r"manifest\.json was edited, or an earlier version wrote it: "):
                read_gold_set(folder, allow_erased=allow_erased)


def test_a_row_that_is_not_as_it_should_be_is_named_with_its_line(tmp_path):
    for number, (row, sentence) in enumerate(
        (
            (ROWS[0] | {"label": ""}, "line 2 has an empty id or label"),
            (ROWS[0] | {"id": 5}, "line 2: 'id' is not a string"),
            (
                ROWS[0] | {"stratum": "guessed"},
                "line 2 has the stratum 'guessed', which is impossible with the detectors' label 'de'",
            ),
            (
                ROWS[0] | {"agreed": None},
                "line 2 has the stratum 'agreed', which is impossible with the detectors' label ''",
            ),
            ({"id": "1", "label": "de", "stratum": "agreed"}, "line 2 has no key 'asked'"),
        )
    ):
        with pytest.raises(GoldSetError, match=sentence):
            read_gold_set(write_set(tmp_path / f"gold{number}", [ROWS[2], {"stratum": None} | row]))


def test_a_path_that_is_not_a_folder_or_not_a_gold_set_is_refused(tmp_path, folder):
    with pytest.raises(GoldSetError, match=r"The folder .*nowhere does not exist"):
        read_gold_set(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(GoldSetError, match=r"is not a gold set, because it has no manifest\.json"):
        read_gold_set(tmp_path / "empty")
    (folder / "manifest.json").unlink()
    (folder / "manifest.json").mkdir()
    with pytest.raises(GoldSetError, match=r"manifest\.json cannot be read: Is a directory\."):
        read_gold_set(folder)


# --- lists of ids


def test_a_list_of_ids_has_one_a_line_and_no_comments(tmp_path):
    path = tmp_path / "vanished.txt"
    path.write_bytes(b"\xef\xbb\xbf1\r\n\n # 2\n3 \n1\n")
    assert read_ids(path) == {"1", "# 2", "3"}
    for content, sentence in (
        (b"1\n\xff\n", "line 2 is not UTF-8"),
        (b"1\x002\n", "Line 1 of .* contains a tab, a NUL"),
        (b"1\nde\t2\n", "Line 2 of .* contains a tab, a NUL"),
    ):
        path.write_bytes(content)
        with pytest.raises(GoldSetError, match=sentence):
            read_ids(path)
    for elsewhere in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(GoldSetError, match="cannot be read: "):
            read_ids(elsewhere)
