"""Published gold files, faults and all, read back as gold sets."""

import gzip
import json
from pathlib import Path

import pytest
import yaml
import zstandard
from datasets import load_dataset
from django.core.management import CommandError

from annotate.actions.registry import call_command
from annotate.goldsets.gold_import import canonical, import_gold
from annotate.goldsets.gold_set import GoldRow, read_gold_set
from annotate.goldsets.set_folder import GoldSetError, line_digest
from corpora.storage.layout import digest_of
from corpora.system import VERSION
from tests.annotate.goldsets.set_contents import files
from tests.running import ROOT

PUBLISHED = ROOT / "fixtures" / "twitter_langid"


@pytest.fixture
def out(tmp_path):
    return tmp_path / "sets" / "gold"


@pytest.fixture
def run(out, capsys):
    """Run the command on a file or on content, and return its output. Any share of rows may be refused."""

    def run(content, *, design="uniform", name="twitter", out=out, max_rejects="100%", **options):
        path = content
        if not isinstance(content, Path):
            path = out.parents[1] / "rows.tsv"
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        call_command("import_gold", str(path), out=out, design=design, name=name, max_rejects=max_rejects, **options)
        return capsys.readouterr().out

    return run


def rejects(out):
    return [json.loads(line) for line in (out / "rejects.jsonl").read_text(encoding="utf-8").splitlines()]


def refused(out):
    return {entry["line"]: entry["reason"] for entry in rejects(out)}


def labels(out):
    return {row.id: row.label for row in read_gold_set(out).rows}


def test_the_datasets_library_gives_the_rows_that_were_imported_last(run, out, tmp_path):
    for content in ("en\t1\nde\t2\n", "fr\t1\nde\t2\n", "fr\t1\n"):
        run(content)
        dataset = load_dataset(str(out), split="test", cache_dir=str(tmp_path / "cache"))
        assert dict(zip(dataset["id"][:], dataset["label"][:], strict=True)) == labels(out)
        assert len(labels(out)) == content.count("\n")


# --- the published files


def test_the_published_uniform_file_has_61_rows_with_id_0_and_17_languages_with_100_posts(run, out):
    output = run(PUBLISHED / "uniformly_sampled.tsv")
    assert "       61  the id 0, which no post has\n" in output
    assert "1,818 of 1,879 rows written" in output
    assert output.endswith("17 languages other than und have at least 100 posts.\n")
    assert "ar_LATN -> ar-Latn (2)" in output
    assert "Labels that are not in the language list were kept: mn-Latn (1)." in output
    assert {entry["row"].partition("\t")[2] for entry in rejects(out)} == {"0"}
    assert len(rejects(out)) == 61
    assert {row.asked for row in read_gold_set(out).rows} == {""}
    # Every other row is taken, with its id as it is.
    lines = (PUBLISHED / "uniformly_sampled.tsv").read_text().splitlines()
    expected = [line.split("\t") for line in lines if not line.endswith("\t0")]
    assert list(labels(out).items()) == [(key, canonical(label)) for label, key in expected]
    published = (out / "uniformly_sampled.tsv").read_text().splitlines()
    assert published == sorted(published, key=lambda line: (line.split("\t")[0], int(line.split("\t")[1])))
    assert len(published) == len(expected)


def test_the_published_precision_file_has_an_empty_label_and_4_ids_with_two(run, out):
    output = run(PUBLISHED / "precision_oriented.tsv", design="precision")
    assert "        8  an id with two labels; all rows with the id are refused (4 ids)\n" in output
    assert "        1  an empty label\n" in output
    assert "227 of 236 rows written" in output
    assert "not_am -> not-am (2)" in output
    assert " more spellings." in output
    two = [entry["row"].split("\t") for entry in rejects(out) if "two labels" in entry["reason"]]
    assert [label for label, _ in two].count("not_no") == 4
    assert not {key for _, key in two} & set(labels(out))


# --- which rows are refused


def test_each_faulty_row_is_refused_with_its_line_and_why_and_the_others_are_taken(run, out):
    faulty = [
        (b"de", "a number of columns other than two"),
        (b"de\t1\tx", "a number of columns other than two"),
        (b"  \t1", "an empty label"),
        (b"de\t", "an empty id"),
        (b"de\t0", "the id 0"),
        (b"de\t000", "the id 0"),
        (b"de\t" + b"9" * 201, "an id with more than 200"),
        (b"de\t1\x002", "an id with more than 200 characters, or with an invisible one"),
        (b"de\t\xff", "not UTF-8"),
        (b"german\t1", "a label that is not a language code"),
        (b"not-\t1", "a label that is not a language code"),
        (b"not-not-de\t1", "a label that is not a language code"),
        (b"d e\t1", "a label that is not a language code"),
        (b"NaN\t1", "a label such as NaN, which other programs write for a missing value"),
        (b"None\t1", "a label such as NaN, which other programs write for a missing value"),
        (b"not_de\t1", "a label such as not-de, which only precision sets have"),
    ]
    rows = b"".join(row + b"\n" for row, _ in faulty)
    # More rows than one in a hundred with a label such as not-de make it a precision file.
    output = run(b"en\t7\n\n" + rows + b"fr\t8\nna\t9\n" + b"".join(b"de\t%d\n" % key for key in range(10, 110)))
    reasons = refused(out)
    assert list(reasons) == [*range(3, 3 + len(faulty))]
    for (row, reason), refusal in zip(faulty, reasons.values(), strict=True):
        assert reason in refusal, row
        assert f"  {refusal}\n" in output
    assert list(labels(out).items())[:3] == [("7", "en"), ("8", "fr"), ("9", "na")]
    assert f"103 of {103 + len(faulty)} rows written" in output


def test_all_rows_of_an_id_with_two_labels_are_refused_and_a_repeated_row_is_taken_once(run, out):
    run("de\t1\nen\t1\nde\t1\nfr\t2\nfr\t2\nfr_latn\t3\nfr-Latn\t3\n\t4\nit\t4\n")
    assert {line: reason.split(";")[0] for line, reason in refused(out).items()} == {
        1: "an id with two labels",
        2: "an id with two labels",
        3: "an id with two labels",
        5: "an id repeated with the same label",
        7: "an id repeated with the same label",
        8: "an empty label",
    }
    assert labels(out) == {"2": "fr", "3": "fr-Latn", "4": "it"}


def test_in_a_precision_set_the_label_in_bcp_47_form_gives_the_question(run, out):
    run("de\t1\nnot_de\t2\nund\t3\nnot_und\t4\nnot_zh_cn\t5\n", design="precision")
    assert read_gold_set(out).rows == [
        GoldRow("1", "de", "de", "", ""),
        GoldRow("2", "not-de", "de", "", ""),
        GoldRow("3", "und", "", "", ""),
        GoldRow("4", "not-und", "", "", ""),
        GoldRow("5", "not-zh-CN", "zh-CN", "", ""),
    ]
    written = "de und ZH_cn ar_LATN zh-hant-tw es-419 sl-ROZAJ not-zh_CN not d xx--yy \u212ao en-x-private"
    expected = ["de", "und", "zh-CN", "ar-Latn", "zh-Hant-TW", "es-419", "sl-rozaj", "not-zh-CN", "not"]
    # The kelvin sign is not a letter of a code either, although its lower case is k.
    assert [canonical(label) for label in written.split()] == [*expected, "", "", "", ""]


@pytest.mark.parametrize("design", ["uniform", "recall"])
def test_a_precision_file_given_as_another_design_is_refused_as_a_whole(run, out, design):
    with pytest.raises(
        CommandError, match=r"labels such as not-de in 2 of 199 rows\. .* with --design precision\. Not"
    ):
        run("".join(f"de\t{key}\n" for key in range(1, 198)) + "not_de\t198\nnot_de\t199\n", design=design)
    with pytest.raises(CommandError, match="import it with --design precision"):
        run(PUBLISHED / "precision_oriented.tsv", design=design)
    with pytest.raises(CommandError, match="'two words' is not a valid name of a gold set"):
        run("de\t1\n", design=design, name="two words")
    with pytest.raises(GoldSetError, match=r"cannot be imported\. Choose one of uniform, recall, precision"):
        import_gold(PUBLISHED / "precision_oriented.tsv", out, design="records", name="x")
    assert not out.parent.exists()
    run("de\t1\n", design=design)
    assert f"{'uniformly_sampled' if design == 'uniform' else 'recall_oriented'}.tsv" in files(out)


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_a_packed_file_a_byte_order_mark_and_windows_newlines_are_read(run, out, pack):
    run(pack(b"\xef\xbb\xbfde\t1\r\n\r\nen\t2"))
    assert labels(out) == {"1": "de", "2": "en"}
    assert rejects(out) == []


# --- the folder


def test_the_folder_says_where_it_comes_from_and_digests_every_file(run, out):
    run(PUBLISHED / "precision_oriented.tsv", design="precision", source="langid_eval", licence="CC0 1.0")
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["versions"] == {"assay": VERSION}
    assert manifest["imported"] == {
        "name": "twitter",
        "file": "precision_oriented.tsv",
        "source": "langid_eval",
        "licence": "CC0 1.0",
        "sha256": digest_of(PUBLISHED / "precision_oriented.tsv"),
    }
    assert manifest["files"] == {name: digest_of(out / name) for name in sorted(files(out)) if name != "manifest.json"}
    lines = (out / "gold.jsonl").read_bytes().splitlines()
    assert (out / "gold.digests.txt").read_text().split() == sorted(map(line_digest, lines))
    _, front, card = (out / "README.md").read_text().split("---\n", 2)
    assert yaml.safe_load(front)["license"] == "cc0-1.0"
    assert "| an id with two labels; all rows with the id are refused | 8 |" in card
    assert "(SHA-256 `" + manifest["imported"]["sha256"] + "`; langid_eval)" in card


def test_the_same_file_gives_the_same_bytes_and_only_an_import_of_that_name_is_replaced(run, out):
    run(PUBLISHED / "precision_oriented.tsv", design="precision")
    run("de\t1\n")
    before = files(out)
    run("de\t1\n")
    assert files(out) == before
    assert [path.name for path in out.parent.iterdir()] == ["gold"]
    with pytest.raises(CommandError, match="is not empty and does not contain the import of other"):
        run("en\t1\n", name="other")
    (out / "notes.txt").write_text("mine")
    with pytest.raises(CommandError, match=r"contains files that are not part of the import: notes"):
        run("en\t1\n")
    assert files(out) == before | {"notes.txt": b"mine"}


def test_a_file_that_cannot_be_used_is_one_sentence_and_nothing_is_written(run, out):
    for content, sentence in (
        (b"", "rows.tsv is empty."),
        (b"\n \n", "has no valid row: it is empty"),
        (b"1\tde\n2\ten\n", "line 1, for example, has a label that is not a language code .* must be label<TAB>id"),
        ("de\t1\n".encode("utf-16"), "line 1, for example, has bytes that are not UTF-8"),
        (gzip.compress(b"de\t1\n" * 100_000)[:-20], "is truncated or damaged, so nothing was imported"),
        (Path("nowhere.tsv"), "nowhere.tsv does not exist or is not a regular file"),
        (Path(__file__).parent, "is a folder. Specify the files in it"),
    ):
        with pytest.raises(CommandError, match=sentence):
            run(content)
        assert not out.parent.exists()


# --- hydrate


LABELS = "en\t11\nen\t12\nde\t13\nfr\t14\nde\t15\n"


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        text = content if isinstance(content, str) else "".join(json.dumps(row) + "\n" for row in content)
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write


@pytest.fixture
def printed(capsys):
    def printed(name, *arguments, **options):
        call_command(name, *map(str, arguments), **options)
        captured = capsys.readouterr()
        return captured.out + captured.err

    return printed


@pytest.fixture
def gold(write, tmp_path):
    call_command(
        "import_gold", str(write("published.tsv", LABELS)), out=tmp_path / "gold", design="uniform", name="twitter"
    )
    return tmp_path / "gold"


@pytest.fixture
def hydrating(gold, printed, tmp_path):
    return lambda *texts, **options: printed("hydrate", gold, texts=texts, out=tmp_path / "out", **options)


def test_ids_go_out_and_texts_come_in_and_removed_posts_are_listed(hydrating, write, tmp_path):
    out = tmp_path / "out"
    assert f"5 ids written to {out / 'ids.txt'}." in hydrating()
    assert (out / "ids.txt").read_text() == "11\n12\n13\n14\n15\n"
    tweets = [
        {"id_str": "13", "full_text": "Guten Tag", "user": {"name": "x"}},
        {"id_str": "11", "full_text": "Good day"},
        {"id_str": "14", "full_text": None},
        {"id_str": "15", "full_text": "[deleted]"},
        {"id_str": "99", "full_text": "Of another set"},
    ]
    output = hydrating(write("tweets.jsonl", tweets), column=["id=id_str", "text=full_text"])
    assert "2 of 5 posts have a text" in output
    assert "3 have vanished" in output
    assert "Note: 1 row ignored, of other posts or repeated." in output
    assert "fr 1 0 100.0%" in " ".join(output.split())
    assert [json.loads(line) for line in (out / "posts.jsonl").read_text(encoding="utf-8").splitlines()] == [
        {"id": "11", "label": "en", "text": "Good day"},
        {"id": "13", "label": "de", "text": "Guten Tag"},
    ]
    assert (out / "vanished.txt").read_text() == "12\n14\n15\n"


def test_arrays_as_twurl_prints_them_are_read_and_faults_are_counted(hydrating, write, tmp_path):
    lines = '["11", "Good day"]\n["12", "Hello"]\n["13"\n["", "None"]\n'
    output = hydrating(write("tweets.jsonl", lines))
    assert "2 of 5 posts have a text" in output
    assert "2 invalid rows ignored. The first is" in output
    (tmp_path / "out" / "notes.txt").touch()
    with pytest.raises(CommandError, match=r"contains notes\.txt, which hydrate did not write"):
        hydrating()


@pytest.mark.django_db
def test_hydrated_posts_are_imported_and_vanished_ones_are_left_out_of_an_evaluation(
    hydrating, gold, write, tmp_path, printed
):
    hydrating(write("tweets.jsonl", [{"id": "11", "text": "Good day"}, {"id": "13", "text": "Guten Tag"}]))
    out = tmp_path / "out"
    assert "2 posts from 1 new file" in printed("import_corpus", "tweets", out / "posts.jsonl", licence="CC0-1.0")
    predictions = write("mine.tsv", "11\ten\n13\ten\n")
    output = printed("evaluate", predictions, gold=[gold], vanished=out / "vanished.txt")
    assert "Left out because they are listed as vanished: 3 posts." in output
