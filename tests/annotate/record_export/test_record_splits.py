"""The splits of an exported set of records, and its published files."""

import csv
import json
from collections import Counter
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError

from annotate.actions.registry import call_command
from annotate.goldsets.exporter import export
from corpora.storage.layout import manifest_of, write_manifest
from tests.annotate.goldsets.set_contents import card_of, everything_in, files
from tests.annotate.goldsets.test_xglue import as_written, published_reader
from tests.annotate.record_export.records import FIELDS, LANGUAGES, record, rows_of

pytestmark = pytest.mark.slow


# --- splits


def test_splits_follow_shares_and_seed_and_tear_no_query_apart(ads, out, tmp_path):
    manifest = export(ads, out, splits="train=0.5,dev=0.1,test=0.4", seed="42")
    rows = rows_of(out)
    counts = Counter((row["language"], row["split"]) for row in rows)
    assert counts == {
        ("en", "train"): 10, ("en", "dev"): 2, ("en", "test"): 8,
        ("de", "dev"): 4, ("de", "test"): 16, ("fr", "dev"): 4, ("fr", "test"): 16,
    }  # fmt: skip
    assert len({(row["query"], row["split"]) for row in rows}) == len({row["query"] for row in rows})
    assert manifest["splits"] == {"seed": "42", "shares": "train=0.5,dev=0.1,test=0.4", "off": {}}
    assert manifest["counts"]["by_split"] == {f"{language}.{of}": n for (language, of), n in sorted(counts.items())}
    assert "| en | English | 10 | 2 | 8 |" in card_of(out)[1]
    for name, seed in (("one", ""), ("two", ""), ("other", "8")):
        export(ads, tmp_path / name, seed=seed)
    assert files(tmp_path / "one") == files(tmp_path / "two")
    assert files(tmp_path / "one")["gold.jsonl"] != files(tmp_path / "other")["gold.jsonl"]


def test_a_split_far_from_its_share_is_told_of_with_the_reason(opened, answered, out, capsys):
    shared = [
        record("ad_relevance", language, number) | {"id": f"{language}{number}", "query": f"query {number}"}
        for language in ("en", "de")
        for number in range(100, 130)
    ]
    answered(opened("ad_relevance", *shared, languages=["de", "en"]))
    call_command("export_gold", "ad_relevance", out=out)
    output = capsys.readouterr().err
    assert "Note: In English, train has " in output
    assert " of the records instead of 80.0%, " in output
    sentence = "30 of 50 belong together with records in other languages, and only en is trained on."
    assert output.endswith(f"{sentence}\n")
    assert sentence in card_of(out)[1]
    manifest = json.loads((out / "manifest.json").read_text())
    assert list(manifest["splits"]["off"]) == ["en"]


def test_shares_and_options_that_cannot_be_are_refused_with_a_sentence(ads, make_task, out):
    make_task([("de", "de", "de")])
    for task, option, value, sentence in (
        ("ad_relevance", "splits", "train=0.8", "The shares in 'train=0.8' add up to 0.8. They must add up to 1."),
        ("ad_relevance", "splits", "train=1", "Only en has a train split, so there is no split for the rows in de"),
        (
            "ad_relevance",
            "frequent_over",
            "5",
            "--frequent-over can be used only with sets of documents with several labels",
        ),
        ("task", "seed", "1", "--splits and --seed apply only to sets of records. A set of posts has no splits."),
    ):
        with pytest.raises(CommandError) as refused:
            call_command("export_gold", task, out=out, **{option: value})
        assert sentence in str(refused.value)
        assert not out.exists()


# --- published files


def test_the_published_files_are_read_back_row_for_row(exported):
    out, manifest = exported
    rows = rows_of(out)
    read = set()
    for language in LANGUAGES:
        for split in ("train", "dev", "test"):
            wanted = [row for row in rows if (row["language"], row["split"]) == (language, split)]
            path = out / f"xglue.qadsm.{language}.{split}"
            assert path.exists() is bool(wanted)
            if not wanted:
                continue
            cells = [[as_written(row[field]) for field in FIELDS["ad_relevance"]] for row in wanted]
            labels = [[row["label"]] for row in wanted]
            read.add(path.name)
            if split == "test":
                assert published_reader(path) == cells
                assert published_reader(out / f"{path.name}.labels") == labels
                read.add(f"{path.name}.labels")
            else:
                assert published_reader(path) == [[*row, *label] for row, label in zip(cells, labels, strict=True)]
    assert read == set(manifest["published"]["files"]) == {path.name for path in out.glob("xglue.*")}
    assert not (out / "xglue.qadsm.de.train").exists()


def test_where_the_text_may_not_leave_ids_and_labels_are_written_and_no_published_files(ads, out, capsys):
    write_manifest("ad_relevance", replace(manifest_of("ad_relevance"), text_may_leave=False))
    call_command("export_gold", "ad_relevance", out=out)
    refusal = "XGLUE's files contain the texts of the records, which must not be published, so they are not written."
    assert refusal in capsys.readouterr().err
    assert refusal in card_of(out)[1]
    assert not list(out.glob("xglue.*"))
    content = everything_in(out)
    for unit in ads.units.select_related("item"):
        for value in unit.item.fields.values():
            assert json.dumps(value, ensure_ascii=False)[1:-1] not in content
    assert "a comment" not in content
    rows = rows_of(out)
    assert len(rows) == 60
    for names in (rows[0].keys(), set(pq.read_schema(out / "gold.test.parquet").names)):
        assert not {*FIELDS["ad_relevance"], "author", "url"} & names
        assert {"id", "language", "split", "label"} <= names


def test_a_record_too_long_for_the_published_readers_is_told_and_all_else_is_written(opened, answered, out, capsys):
    answered(opened("qa_match", {"id": "long", "language": "en", "question": "how long?", "passage": "so " * 50_000}))
    call_command("export_gold", "qa_match", out=out)
    assert "XGLUE's files are not written: xglue.qam.en." in capsys.readouterr().err
    assert not list(out.glob("xglue.*"))
    assert len(rows_of(out)) == 61
    csv.field_size_limit(131_072)


@pytest.mark.django_db
def test_splits_far_from_their_shares_are_reported_where_they_were_asked_for(tmp_path, out, capsys):
    judged = tmp_path / "judged.tsv"
    judged.write_text("task\tworker\tlabel\n" + "".join(f"t{n}\tann\t{n % 2}\n" for n in range(3)))
    call_command("import_judgments", "few", judged, verbosity=0)
    capsys.readouterr()
    call_command("export_gold", "few", out=out)
    assert "Note" not in capsys.readouterr().err
    assert "the set has only 3 there" in card_of(out)[1]
    call_command("export_gold", "few", out=out, splits="test=1")
    call_command("export_gold", "few", out=out, splits="dev=0.1,test=0.9")
    assert "the set has only 3 there" in capsys.readouterr().err
