"""The contents of a finished task's gold set, and its safety when an export fails."""

import errno
import hashlib
import json
import os
import shutil
from dataclasses import replace
from itertools import cycle
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from datasets import load_dataset
from django.conf import settings as django_settings

from annotate.actions.registry import call_command
from annotate.controls import audit_report
from annotate.core import stages
from annotate.exchange.tool_files import WRITERS
from annotate.goldsets import export as exporting
from annotate.goldsets import exporter, unit_rows
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
from tests.annotate.goldsets.acts import TITLE, finish, make_people, no_file_longer_than, open_small
from tests.annotate.goldsets.set_contents import card_of, everything_in, files, json_lines, jsonlike

pytestmark = pytest.mark.on_sqlite


def make_finished(small):
    """A task that people have finished, with answers, skips, decisions, discarded items and one undone answer."""
    shutil.copytree(small, django_settings.DATA_DIR, dirs_exist_ok=True)
    people, task = make_people(), open_small(Corpus.objects.create(name=SMALL))
    quick = people[0][0]
    judge(quick, take(quick, task).pk, Answer("fr"), 2)
    undo(quick, task)
    answers = [Answer("en"), Answer("de"), None, Answer("und", "mixed"), Answer("und", "unlisted", "Swahili, or Zulu?")]
    finish(task, people, cycle(answers))
    export(task, django_settings.DATA_DIR / "exported")
    return SimpleNamespace(task=task, people=[annotator for group in people for annotator in group])


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
def exported(world, data_dir):
    """The folder of a set exported when the task was finished."""
    return data_dir / "exported"


def all_rows(folder):
    return json_lines(folder / "gold.jsonl") + json_lines(folder / "left_out.jsonl")


# --- the rows


def test_the_published_file_json_lines_and_parquet_hold_the_rows_in_their_order_with_texts_as_they_came(
    finished, exported
):
    rows, left_out = json_lines(exported / "gold.jsonl"), json_lines(exported / "left_out.jsonl")
    assert rows == jsonlike(pq.read_table(exported / "gold.parquet").to_pylist())
    assert len(rows) + len(left_out) == 60
    places = dict(finished.units.values_list("item__key", "position"))
    for part in (rows, left_out):
        assert [places[row["id"]] for row in part] == sorted(places[row["id"]] for row in part)
    assert all(row["label"] for row in rows)
    assert {(row["label"], row["stage"], row["left_out"]) for row in left_out} == {(None, "DISCARDED", "without_label")}
    assert {row["left_out_why"] for row in left_out} == {"names only"}
    assert list(left_out[0]) == [*rows[0], *LEFT_OUT]
    assert list(rows[0]) == list(finished.kind.publication.columns)
    texts = {row["id"]: row["text"] for row in (*rows, *left_out)}
    assert texts == dict(finished.units.values_list("item__key", "item__text"))
    hard = dict(HARD).keys() & texts.keys()
    assert hard
    assert {key: texts[key] for key in hard} == {key: dict(HARD)[key] for key in hard}
    # The published file is label, tab and id, sorted and without a header.
    content = (exported / "uniformly_sampled.tsv").read_bytes()
    assert content.endswith(b"\n")
    assert b"\r" not in content
    pairs = [tuple(line.split("\t")) for line in content.decode().split("\n")[:-1]]
    labels = [label for label, _ in pairs]
    assert labels == sorted(labels)
    for label in set(labels):
        numbers = [int(key) for of, key in pairs if of == label and key.isdigit()]
        assert numbers == sorted(numbers)
    units = finished.units.select_related("item", "copy_of")
    assert set(pairs) == {
        ((unit.copy_of or unit).label, unit.item.key) for unit in units if (unit.copy_of or unit).label
    }
    assert "und" in labels


def test_every_row_has_its_stratum_and_the_chances_of_being_drawn_and_audited(exported):
    rows = all_rows(exported)
    assert {row["chance"] for row in rows} == {60 / manifest_of(SMALL).rows}
    strata = {"agreed": ["agreed"], "audited": ["agreed", "audited"]}
    for row in rows:
        events = [move["event"] for move in row["transitions"]][:2]
        if row["agreed"] and not row["judged_as"]:
            assert events == strata[row["stratum"]]
        elif not row["agreed"]:
            assert events[0] == row["stratum"] == "disputed"
            assert row["audit_chance"] == 1
    assert {row["stratum"] for row in rows} == {"agreed", "audited", "disputed"}
    assert {(row["stage"], row["label"] == row["agreed"]) for row in rows if row["stratum"] == "agreed"} == {
        ("AGREED", True)
    }
    for language in {row["agreed"] for row in rows if row["agreed"]}:
        same = [row for row in rows if row["agreed"] == language]
        audited = sum(row["stratum"] == "audited" for row in same)
        assert {row["audit_chance"] for row in same} == {audited / len(same)}


def test_every_vote_judgment_and_transition_is_there_under_pseudonyms_and_nobodys_name(world, manager, exported):
    by_key = {row["id"]: row for row in all_rows(exported) if row["judged_as"] is None}
    pseudonyms = {annotator.user_id: annotator.pseudonym for annotator in world.people}
    for unit in world.task.units.filter(copy_of=None).select_related("item"):
        row = by_key[unit.item.key]
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
        assert [
            (t["event"], t["from_stage"], t["to_stage"], t["label"] or "", t["by"]) for t in row["transitions"]
        ] == [
            (t.event, t.from_stage, t.to_stage, t.label, pseudonyms[t.by_id] if t.by_id else None)
            for t in unit.transitions.order_by("pk")
        ]
    judgments = [judgment for row in by_key.values() for judgment in row["judgments"]]
    assert len(judgments) == Judgment.objects.count()
    assert {judgment["kind"] for judgment in judgments} == {"answer", "skip", "settle", "discard"}
    assert any(judgment["voided_at"] for judgment in judgments)
    content = everything_in(exported).lower()
    for annotator in world.people:
        assert annotator.pseudonym in content
        for name in (annotator.user.username, annotator.user.first_name, annotator.user.last_name):
            assert not name or name.lower() not in content
    assert "somebody_q" not in content  # authors are hashed when they are imported


# --- manifest and card


def test_the_manifest_counts_and_digests_what_is_there_and_has_each_option_of_the_task(finished, exported, out):
    manifest = json.loads((exported / "manifest.json").read_bytes())
    assert export(finished, out) == manifest
    assert files(out) == files(exported)  # the same database gives the same bytes
    assert set(manifest["files"]) | {"manifest.json"} == set(files(exported))
    for name, digest in manifest["files"].items():
        assert hashlib.sha256((exported / name).read_bytes()).hexdigest() == digest
    counts, labelled = manifest["counts"], len(json_lines(exported / "gold.jsonl"))
    assert (counts["posts"], counts["labelled"], counts["unfinished"]) == (60, labelled, 0)
    assert sum(counts["by_stage"].values()) == 60
    assert sum(counts["by_label"].values()) == sum(counts["by_stratum"].values()) == labelled
    assert manifest["finished"] is True
    assert manifest["versions"]["assay"] == VERSION
    assert (manifest["format"], manifest["design"], manifest["decoys"]) == (2, "uniform", None)
    draw = finished.draw
    assert manifest["draws"] == [
        {"design": "uniform", "language": "", "predictor": "", "seed": "7", "size": 60, "asked": 60, "parameters": {}}
        | {name: getattr(draw, name) for name in ("frame_size", "frame_digest", "chance")}
    ]
    assert manifest["audit"] == audit_report.report(finished)
    assert manifest["corpus"] == {"name": SMALL, "source": SMALL_SOURCE, "licence": "CC BY 4.0", "text_may_leave": True}
    [versions] = manifest["detectors"]
    assert set(versions) == {"langid", "cld2", "fasttext"}
    task = manifest["task"]
    names = ("name", "title", "type", "kind_sha256", "form", "together", "labels", "languages", "added_languages")
    assert tuple(task) == (*names, *finished.kind.options, "never_agree", "overlap_share", "least_letters")
    assert {name: task[name] for name in finished.options} == finished.options
    assert [task[name] for name in ("type", "kind_sha256", "languages", "added_languages")] == [
        "language",
        None,
        [],
        {},
    ]


def test_the_card_is_one_that_a_hub_can_read(exported):
    manifest = json.loads((exported / "manifest.json").read_bytes())
    header, text = card_of(exported)
    assert (header["pretty_name"], header["license"]) == (TITLE, "cc-by-4.0")
    assert "license_name" not in header
    assert header["language"] == sorted({code.split("-")[0] for code in manifest["counts"]["by_label"]} - {"und"})
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
    # One person reads each post, so there is no agreement.
    assert manifest["agreement"] is None
    assert "Agreement between annotators" not in text


def test_the_command_counts_what_it_wrote_row_by_row_and_reads_nothing_that_only_other_kinds_need(
    finished, out, capsys, monkeypatch
):
    def unwanted(*arguments, **options):
        raise AssertionError

    for name in ("split_set", "ratios"):
        monkeypatch.setattr(exporting, name, unwanted)
    monkeypatch.setattr(exporting.answer_models, "label_posteriors", unwanted)
    call_command("export_gold", "gold", out=out)
    labels = [row["label"] for row in json_lines(out / "gold.jsonl")]
    printed = capsys.readouterr()
    assert printed.out == f"{len(labels)} of 60 posts written to {out}, in {len(set(labels))} labels.\n"
    assert printed.err == ""
    monkeypatch.setattr(unit_rows, "CHUNK", 25)
    progress = []
    export(finished, out, progress=progress.append)
    assert progress == [25, 50, 60]


def test_the_card_counts_the_posts_in_which_mentions_are_masked_if_there_are_any(finished, out):
    for unit in finished.units.exclude(label="").filter(copy_of=None).select_related("item")[:2]:
        unit.item.text = mask_mentions(f"@ada {unit.item.text}")
        unit.item.save()
    counts = export(finished, out)["counts"]
    masked = sum("@xzy" in row["text"] for row in json_lines(out / "gold.jsonl"))
    assert counts["masked"] == masked >= 2
    sentence = f"Mentions of accounts stand as `@xzy`, in {masked} of the {counts['labelled']} posts"
    assert sentence in card_of(out)[1]
    for unit in finished.units.select_related("item"):
        unit.item.text = unit.item.text.replace("@xzy", "")
        unit.item.save()
    assert export(finished, out)["counts"]["masked"] == 0
    assert "@xzy" not in card_of(out)[1]


def test_where_the_text_may_not_leave_no_file_holds_it_or_what_leads_to_it(finished, out, capsys):
    write_manifest(SMALL, replace(manifest_of(SMALL), text_may_leave=False))
    call_command("export_gold", "gold", out=out)
    assert "The licence does not allow publishing the text" in capsys.readouterr().err
    content = everything_in(out)
    for item in (unit.item for unit in finished.units.select_related("item")):
        for line in item.text.splitlines():
            assert len(line) < 5 or json.dumps(line, ensure_ascii=False)[1:-1] not in content
        assert not item.author or item.author not in content
        assert not item.url or item.url not in content
    assert "example.org" not in content
    for names in (*all_rows(out), pq.read_schema(out / "gold.parquet").names):
        assert not {"text", "author", "url"} & set(names)
    assert "without their text, which the licence keeps back" in card_of(out)[1]
    # Without texts, masks are unknown, so they are not counted.
    assert "masked" not in json.loads((out / "manifest.json").read_bytes())["counts"]


# --- the folder


@pytest.fixture
def earlier(exported, out):
    """An earlier export, which must stay as it was, like its neighbours."""
    shutil.copytree(exported, out)
    before = files(out)
    yield out
    assert files(out) == before
    assert os.listdir(out.parent) == ["gold"]


def fails(task, out):
    with pytest.raises(ExportError) as failed:
        export(task, out)
    assert str(failed.value).endswith("Nothing was changed.")
    assert "None" not in str(failed.value)


@pytest.mark.parametrize("size", [0, 100, 5_000, 30_000])
def test_a_write_that_fails_leaves_the_earlier_export_as_it_was(finished, earlier, size):
    assert max(map(len, files(earlier).values())) > 30_000
    with no_file_longer_than(size):
        fails(finished, earlier)


def test_a_first_export_that_fails_leaves_nothing(finished, out):
    out.parent.mkdir()
    with pytest.raises(ExportError, match="File too large"), no_file_longer_than(5_000):
        export(finished, out)
    assert list(out.parent.iterdir()) == []


@pytest.mark.parametrize("writer", ["write_batch", "close"])
def test_a_full_disk_while_parquet_is_written_leaves_the_earlier_export_as_it_was(
    finished, earlier, monkeypatch, writer
):
    real = getattr(pq.ParquetWriter, writer)

    def full(self, *arguments):
        real(self, *arguments)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(pq.ParquetWriter, writer, full)
    fails(finished, earlier)


def test_where_the_new_folder_cannot_take_its_place_the_earlier_one_is_put_back(finished, earlier, monkeypatch):
    real = os.replace

    def refuse(source, target):
        if (target, os.path.basename(source)) == (earlier, "old") or target != earlier:
            return real(source, target)
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(source))

    monkeypatch.setattr(os, "replace", refuse)
    fails(finished, earlier)


def test_a_stop_by_the_keyboard_leaves_the_earlier_export_as_it_was(finished, earlier, monkeypatch):
    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(exporter, "render_to_string", stop)
    with pytest.raises(KeyboardInterrupt):
        export(finished, earlier)


# --- readers


def test_the_datasets_library_never_gives_the_rows_of_an_earlier_export(finished, exported, out, tmp_path):
    """The library caches data by the folder's name and the version in the card."""

    def loaded(folder):
        splits = load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
        assert list(splits) == ["test"]
        rows = list(zip(splits["test"]["id"][:], splits["test"]["label"][:], strict=True))
        assert rows == [(row["id"], row["label"]) for row in json_lines(folder / "gold.jsonl")]
        return rows

    def version_in(folder):
        return card_of(folder)[0]["configs"][0]["version"]

    export(finished, out)
    first = loaded(out)
    assert version_in(out) == version_in(exported)
    # With other labels, then with one post fewer, each in the same folder and in another of the same name.
    assert finished.units.filter(label="en").update(label="pt") > 0
    export(finished, out)
    assert loaded(out) != first
    assert version_in(out) != version_in(exported)
    unit = finished.units.filter(stage=stages.LABELLED, copies=None, copy_of=None).exclude(label="").first()
    unit.stage, unit.label = stages.DISCARDED, ""
    unit.save()
    elsewhere = tmp_path / "elsewhere" / "gold"
    export(finished, elsewhere)
    assert len(loaded(elsewhere)) == len(first) - 1
    assert len(loaded(out)) == len(first)
    export(finished, out)
    assert loaded(out) == loaded(elsewhere)


def test_a_set_of_languages_is_copied_for_other_tools_with_its_labels_as_languages(world, tmp_path):
    export(world.task, tmp_path / "set", tools=list(WRITERS))
    rows = {row["id"]: row["label"] for row in json_lines(next((tmp_path / "set").glob("gold*.jsonl")))}
    [tasks] = (tmp_path / "set").glob("label-studio*/tasks.json")
    copied = json.loads(tasks.read_text(encoding="utf-8"))
    assert {task["data"]["id"]: task["data"]["language"] for task in copied} == rows
