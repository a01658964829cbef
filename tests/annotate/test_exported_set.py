"""What stands in the gold set of a task that people have finished, and what no failure does to it."""

import errno
import hashlib
import json
import os
import shutil
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from datasets import load_dataset
from django.conf import settings as django_settings

from annotate.actions.commands import call_command
from annotate.controls import audit_report
from annotate.core import stages
from annotate.goldsets import export as exporting
from annotate.goldsets import exporter
from annotate.goldsets.columns import LEFT_OUT
from annotate.goldsets.exporter import ExportError, export
from annotate.kinds import Answer
from annotate.models import Judgment
from annotate.work.answer_changes import undo
from annotate.work.judgments import judge
from annotate.work.queue import take
from corpora.core.masking import mask_mentions
from corpora.models import Corpus
from corpora.storage.layout import manifest_of, write_manifest
from corpora.system import VERSION
from tests.annotate.corpus import HARD, SMALL, SMALL_SOURCE
from tests.annotate.exporting.acts import TITLE, finish, make_people, no_file_longer_than, open_small
from tests.annotate.exporting.told import card_of, everything_in, files, json_lines, jsonlike

pytestmark = pytest.mark.on_sqlite


ROOT = Path(__file__).resolve().parents[2]


def make_finished(small):
    """Everything answered, skipped, settled or discarded by people; one answer was taken back."""
    shutil.copytree(small, django_settings.DATA_DIR, dirs_exist_ok=True)
    people, task = make_people(), open_small(Corpus.objects.create(name=SMALL))
    quick = people[0][0]
    judge(quick, take(quick, task).pk, Answer("fr"), 2)
    undo(quick, task)
    said = [Answer("en"), Answer("de"), None, Answer("und", "mixed"), Answer("und", "unlisted", "Swahili, or Zulu?")]
    finish(task, people, cycle(said))
    return SimpleNamespace(task=task, people=people)


@pytest.fixture(scope="module")
def begin(make_world, small):
    return make_world(make_finished, small)


@pytest.fixture
def world(begin, data_dir, db):
    return begin(data_dir)


@pytest.fixture
def finished(world):
    return world.task


@pytest.fixture
def people(world):
    return world.people


@pytest.fixture
def out(tmp_path):
    return tmp_path / "exports" / "gold"


# --- the rows


def test_the_published_file_is_label_tab_id_sorted_and_without_a_header(finished, out):
    export(finished, out)
    content = (out / "uniformly_sampled.tsv").read_bytes()
    assert content.endswith(b"\n")
    assert b"\r" not in content
    pairs = [line.split("\t") for line in content.decode().split("\n")[:-1]]
    assert {len(pair) for pair in pairs} == {2}
    labels = [label for label, _ in pairs]
    assert labels == sorted(labels)
    for label in set(labels):
        ids = [key for of, key in pairs if of == label]
        numbers = [int(key) for key in ids if key.isdigit()]
        assert numbers == sorted(numbers)
    wanted = {}
    for unit in finished.units.select_related("item", "copy_of"):
        if label := (unit.copy_of or unit).label:
            wanted[unit.item.key] = label
    assert {key: label for label, key in pairs} == wanted
    assert "und" in labels


def test_jsonl_and_parquet_say_the_same_row_for_row_in_the_order_of_the_draw(finished, out):
    export(finished, out)
    rows = json_lines(out / "gold.jsonl")
    assert rows == jsonlike(pq.read_table(out / "gold.parquet").to_pylist())
    left_out = json_lines(out / "left_out.jsonl")
    assert len(rows) + len(left_out) == 60
    places = dict(finished.units.values_list("item__key", "position"))
    for told in (rows, left_out):
        assert [places[row["id"]] for row in told] == sorted(places[row["id"]] for row in told)
    assert all(row["label"] for row in rows)
    assert {(row["label"], row["stage"], row["left_out"]) for row in left_out} == {(None, "DISCARDED", "without_label")}
    assert {row["left_out_why"] for row in left_out} == {"names only"}
    assert list(left_out[0]) == [*rows[0], *LEFT_OUT]
    assert list(rows[0]) == list(finished.kind.publication.columns)


def test_texts_come_out_as_they_went_in(finished, out):
    export(finished, out)
    rows = {row["id"]: row for name in ("gold", "left_out") for row in json_lines(out / f"{name}.jsonl")}
    texts = dict(finished.units.values_list("item__key", "item__text"))
    assert {key: row["text"] for key, row in rows.items()} == texts
    assert set(dict(HARD)) & set(texts)
    for key, text in HARD:
        if key in texts:
            assert texts[key] == text


def test_every_row_says_its_stratum_and_the_chances_of_being_drawn_and_audited(finished, out):
    export(finished, out)
    rows = json_lines(out / "gold.jsonl") + json_lines(out / "left_out.jsonl")
    frame = manifest_of(SMALL).rows
    assert {row["chance"] for row in rows} == {60 / frame}
    agreed = [row for row in rows if row["agreed"]]
    events = {row["id"]: [move["event"] for move in row["transitions"]][:2] for row in rows}
    strata = {"agreed": ["agreed"], "audited": ["agreed", "audited"]}
    for row in rows:
        if row["agreed"] and not row["judged_as"]:
            assert events[row["id"]] == strata[row["stratum"]]
        elif not row["agreed"]:
            assert events[row["id"]][0] == row["stratum"] == "disputed"
            assert row["audit_chance"] == 1
    assert {row["stratum"] for row in rows} == {"agreed", "audited", "disputed"}
    assert {(row["stage"], row["label"] == row["agreed"]) for row in rows if row["stratum"] == "agreed"} == {
        ("AGREED", True)
    }
    for language in {row["agreed"] for row in agreed}:
        same = [row for row in agreed if row["agreed"] == language]
        audited = sum(row["stratum"] == "audited" for row in same)
        assert {row["audit_chance"] for row in same} == {audited / len(same)}


def test_every_vote_judgment_and_transition_is_there_under_pseudonyms(finished, people, out):
    export(finished, out)
    rows = json_lines(out / "gold.jsonl") + json_lines(out / "left_out.jsonl")
    own = {row["id"]: row for row in rows if row["judged_as"] is None}
    pseudonyms = {annotator.user_id: annotator.pseudonym for group in people for annotator in group}
    for unit in finished.units.filter(copy_of=None).select_related("item"):
        row = own[unit.item.key]
        votes = {detector: [] for detector in ("langid", "cld2", "fasttext")}
        for vote in row["votes"]:
            votes[vote["detector"]].append([vote["language"], vote["score"]])
            assert vote["rank"] == len(votes[vote["detector"]])
        assert votes == unit.item.votes
        assert list(dict.fromkeys(vote["detector"] for vote in row["votes"])) == [d for d in votes if votes[d]]
        judgments = list(unit.judgments.order_by("pk").select_related("annotator"))
        assert [
            (j["annotator"], j["kind"], j["label"] or "", j["reason"] or "", j["comment"] or "", j["active_seconds"])
            for j in row["judgments"]
        ] == [(j.annotator.pseudonym, j.kind, j.label, j.reason, j.comment, j.active_seconds) for j in judgments]
        assert [bool(j["voided_at"]) for j in row["judgments"]] == [bool(j.voided_at) for j in judgments]
        moves = list(unit.transitions.order_by("pk"))
        assert [(t["event"], t["from_stage"], t["to_stage"], t["label"] or "") for t in row["transitions"]] == [
            (t.event, t.from_stage, t.to_stage, t.label) for t in moves
        ]
        assert [t["by"] for t in row["transitions"]] == [pseudonyms[t.by_id] if t.by_id else None for t in moves]
    assert sum(len(row["judgments"]) for row in own.values()) == Judgment.objects.count()
    kinds = {judgment["kind"] for row in rows for judgment in row["judgments"]}
    assert kinds == {"answer", "skip", "settle", "discard"}
    assert any(judgment["voided_at"] for row in rows for judgment in row["judgments"])


def test_nobodys_name_is_in_any_file(finished, people, manager, out):
    export(finished, out)
    told = everything_in(out).lower()
    for group in people:
        for annotator in group:
            user = annotator.user
            assert annotator.pseudonym in told
            for name in (user.username, user.first_name, user.last_name):
                assert not name or name.lower() not in told
    assert "somebody_q" not in told  # authors are hashed when they are imported


# --- manifest and card


def test_the_manifest_counts_and_digests_what_is_there(finished, out):
    returned = export(finished, out)
    manifest = json.loads((out / "manifest.json").read_bytes())
    assert returned == manifest
    assert set(manifest["files"]) | {"manifest.json"} == set(files(out))
    for name, digest in manifest["files"].items():
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == digest
    counts = manifest["counts"]
    rows = json_lines(out / "gold.jsonl")
    assert (counts["posts"], counts["labelled"], counts["unfinished"]) == (60, len(rows), 0)
    assert sum(counts["by_stage"].values()) == 60
    assert sum(counts["by_label"].values()) == sum(counts["by_stratum"].values()) == len(rows)
    assert manifest["finished"] is True
    assert manifest["versions"]["assay"] == VERSION
    assert (manifest["format"], manifest["design"], manifest["decoys"]) == (2, "uniform", None)
    draw = finished.draw
    assert manifest["draws"] == [
        {
            "design": "uniform",
            "language": "",
            "predictor": "",
            "seed": "7",
            "size": 60,
            "asked": 60,
            "frame_size": draw.frame_size,
            "frame_digest": draw.frame_digest,
            "chance": draw.chance,
            "parameters": {},
        }
    ]
    assert manifest["audit"] == audit_report.report(finished)
    assert manifest["corpus"] == {"name": SMALL, "source": SMALL_SOURCE, "licence": "CC BY 4.0", "text_may_leave": True}
    [versions] = manifest["detectors"]
    assert set(versions) == {"langid", "cld2", "fasttext"}


def test_the_manifest_tells_of_the_task_each_option_that_its_kind_has(finished, out):
    told = export(finished, out)["task"]
    known = ("name", "title", "type", "kind_sha256", "form", "together", "labels", "languages", "added_languages")
    assert tuple(told) == (*known, *finished.kind.options, "never_agree", "overlap_share", "least_letters")
    assert {name: told[name] for name in finished.options} == finished.options
    assert (told["type"], told["kind_sha256"], told["languages"]) == ("language", None, [])
    assert told["added_languages"] == {}


def test_progress_is_told_to_the_last_row(finished, out, monkeypatch):
    monkeypatch.setattr(exporter, "CHUNK", 25)
    told = []
    export(finished, out, progress=told.append)
    assert told == [25, 50, 60]


def test_what_only_other_kinds_of_rows_need_is_not_read(finished, out, monkeypatch):
    def unwanted(*arguments, **options):
        raise AssertionError

    for name in ("split_set", "ratios"):
        monkeypatch.setattr(exporting, name, unwanted)
    monkeypatch.setattr(exporting.answer_models, "second_opinions", unwanted)
    assert export(finished, out)["finished"]


def test_the_card_is_one_that_a_hub_can_read(finished, out):
    manifest = export(finished, out)
    header, text = card_of(out)
    assert header["pretty_name"] == TITLE
    assert header["license"] == "cc-by-4.0"
    assert "license_name" not in header
    labels = set(manifest["counts"]["by_label"])
    assert header["language"] == sorted({code.split("-")[0] for code in labels - {"und"}})
    (config,) = header["configs"]
    assert config["config_name"] == "default"
    assert config["data_files"] == [{"split": "test", "path": "gold.parquet"}]
    assert header["size_categories"] == ["n<1K"]
    for name in manifest["files"]:
        assert f"`{name}`" in text or name == "README.md"
    assert SMALL_SOURCE in text
    assert "do not measure one of these three detectors" in text.lower()
    assert "Unfinished" not in text
    for label, count in manifest["counts"]["by_label"].items():
        assert f"| {label} | " in text
        assert f" | {count} |" in text


def test_the_card_says_in_how_many_posts_mentions_are_masked_if_in_any(finished, out):
    posts = [unit.item for unit in finished.units.exclude(label="").filter(copy_of=None).select_related("item")[:2]]
    for item in posts:
        item.text = mask_mentions(f"@ada {item.text}")
        item.save()
    manifest = export(finished, out)
    masked = sum("@xzy" in row["text"] for row in json_lines(out / "gold.jsonl"))
    assert manifest["counts"]["masked"] == masked >= 2
    told = f"Mentions of accounts stand as `@xzy`, in {masked} of the {manifest['counts']['labelled']} posts"
    assert told in card_of(out)[1]
    for unit in finished.units.select_related("item"):
        unit.item.text = unit.item.text.replace("@xzy", "")
        unit.item.save()
    assert export(finished, out)["counts"]["masked"] == 0
    assert "@xzy" not in card_of(out)[1]


def test_the_command_counts_what_it_wrote(finished, out, capsys):
    call_command("export_gold", "gold", out=out)
    told = capsys.readouterr()
    labels = {row["label"] for row in json_lines(out / "gold.jsonl")}
    count = len(json_lines(out / "gold.jsonl"))
    assert told.out == f"{count} of 60 posts written to {out}, in {len(labels)} labels.\n"
    assert told.err == ""


# --- what may not leave


def test_where_the_text_may_not_leave_no_file_holds_it_or_what_leads_to_it(finished, out, capsys):
    write_manifest(SMALL, replace(manifest_of(SMALL), text_may_leave=False))
    call_command("export_gold", "gold", out=out)
    assert "The licence keeps the text here" in capsys.readouterr().err
    told = everything_in(out)
    for item in (unit.item for unit in finished.units.select_related("item")):
        for line in item.text.splitlines():
            assert len(line) < 5 or json.dumps(line, ensure_ascii=False)[1:-1] not in told
        assert not item.author or item.author not in told
        assert not item.url or item.url not in told
    assert "example.org" not in told
    for row in json_lines(out / "gold.jsonl") + json_lines(out / "left_out.jsonl"):
        assert not {"text", "author", "url"} & set(row)
    assert not {"text", "author", "url"} & set(pq.read_schema(out / "gold.parquet").names)
    _, text = card_of(out)
    assert "without their text, which the licence keeps back" in text
    # Nobody has looked for masks where there is no text, so none is said to be there or not.
    assert "masked" not in json.loads((out / "manifest.json").read_bytes())["counts"]


# --- the folder


def test_the_same_database_gives_the_same_bytes(finished, tmp_path):
    for name in ("one", "two"):
        export(finished, tmp_path / name)
    assert files(tmp_path / "one") == files(tmp_path / "two")


def assert_nothing_happened(task, out):
    """Exports over an earlier export, which must fail in a sentence and leave it and its neighbours alone."""
    before, neighbours = files(out), sorted(os.listdir(out.parent))
    with pytest.raises(ExportError) as caught:
        yield
    assert str(caught.value).endswith("Nothing was changed.")
    assert "None" not in str(caught.value)
    assert files(out) == before
    assert sorted(os.listdir(out.parent)) == neighbours


unchanged = contextmanager(assert_nothing_happened)


@pytest.mark.parametrize("size", [0, 100, 5_000, 30_000])
def test_a_write_that_fails_leaves_the_earlier_export_as_it_was(finished, out, size):
    export(finished, out)
    assert max(map(len, files(out).values())) > 30_000
    with unchanged(finished, out), no_file_longer_than(size):
        export(finished, out)


def test_a_first_export_that_fails_leaves_nothing(finished, out):
    out.parent.mkdir()
    with pytest.raises(ExportError, match="File too large"), no_file_longer_than(5_000):
        export(finished, out)
    assert list(out.parent.iterdir()) == []


@pytest.mark.parametrize("writer", ["write_batch", "close"])
def test_a_full_disk_while_parquet_is_written_leaves_the_earlier_export_as_it_was(finished, out, monkeypatch, writer):
    export(finished, out)
    real = getattr(pq.ParquetWriter, writer)

    def full(self, *arguments):
        real(self, *arguments)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(pq.ParquetWriter, writer, full)
    with unchanged(finished, out):
        export(finished, out)


def test_where_the_new_folder_cannot_take_its_place_the_earlier_one_is_put_back(finished, out, monkeypatch):
    export(finished, out)
    real = os.replace

    def refuse(source, target):
        if (target, os.path.basename(source)) == (out, "old") or target != out:
            return real(source, target)
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(source))

    monkeypatch.setattr(os, "replace", refuse)
    with unchanged(finished, out):
        export(finished, out)


def test_a_stop_by_the_keyboard_leaves_the_earlier_export_as_it_was(finished, out, monkeypatch):
    export(finished, out)
    before = files(out)

    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(exporter, "render_to_string", stop)
    with pytest.raises(KeyboardInterrupt):
        export(finished, out)
    assert files(out) == before
    assert os.listdir(out.parent) == ["gold"]


# --- readers


def test_the_datasets_library_reads_the_folder(finished, out, tmp_path, monkeypatch):
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    import datasets

    manifest = export(finished, out)
    loaded = datasets.load_dataset(str(out), cache_dir=str(tmp_path / "cache"))
    assert list(loaded) == ["test"]
    assert loaded["test"].num_rows == manifest["counts"]["labelled"]
    rows = json_lines(out / "gold.jsonl")
    assert loaded["test"]["id"][:] == [row["id"] for row in rows]
    assert loaded["test"]["label"][:] == [row["label"] for row in rows]


def test_the_datasets_library_never_gives_the_rows_of_an_earlier_export(finished, out, tmp_path):
    """It keeps what it has read, by the folder's last name."""

    def labels_loaded(folder):
        found = load_dataset(str(folder), split="test", cache_dir=str(tmp_path / "cache"))
        return found["label"][:]

    def labels_written(folder):
        return [row["label"] for row in json_lines(folder / "gold.jsonl")]

    export(finished, out)
    earlier = labels_loaded(out)
    assert earlier == labels_written(out)
    # Now with other labels, and then with one post fewer, each in the same folder and in another of its name.
    relabelled = finished.units.filter(label="en")
    assert relabelled.update(label="pt") > 0
    export(finished, out)
    assert labels_loaded(out) == labels_written(out) != earlier
    discard_one(finished)
    elsewhere = tmp_path / "elsewhere" / "gold"
    export(finished, elsewhere)
    assert len(labels_loaded(elsewhere)) == len(earlier) - 1
    assert labels_loaded(out) == labels_written(out)
    export(finished, out)
    assert labels_loaded(out) == labels_loaded(elsewhere) == labels_written(out)


def test_the_version_in_the_card_is_that_of_the_rows(finished, out, tmp_path):
    def version_in(folder):
        return card_of(folder)[0]["configs"][0]["version"]

    export(finished, out)
    export(finished, tmp_path / "again")
    assert version_in(out) == version_in(tmp_path / "again")
    finished.units.filter(label="en").update(label="pt")
    export(finished, tmp_path / "again")
    assert version_in(out) != version_in(tmp_path / "again")


def discard_one(task):
    unit = task.units.filter(stage=stages.LABELLED, copies=None, copy_of=None).exclude(label="").first()
    unit.stage, unit.label = stages.DISCARDED, ""
    unit.save()


# --- one moment


def test_where_one_person_reads_each_post_nothing_is_said_of_agreement(finished, out):
    assert export(finished, out)["agreement"] is None
    assert "How far people agree" not in card_of(out)[1]
