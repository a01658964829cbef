"""The files of a gold set from a task with real answers: rows, manifest and card."""

import json
from collections import Counter
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset

from annotate.actions.registry import call_command
from annotate.core import stages
from annotate.goldsets import columns
from annotate.goldsets.exporter import TALLIES, Counts, export
from annotate.goldsets.formats import formats
from annotate.goldsets.set_documents import STATEMENTS
from annotate.goldsets.set_manifest import SECTIONS
from annotate.kinds import KINDS, Answer, language
from annotate.kinds.control import CONTROLS
from annotate.models import Unit
from annotate.work.adjudication import settle
from annotate.work.closure import close
from annotate.work.judgments import judge
from annotate.work.moves import move
from annotate.work.queue import take
from annotate.work.task_creation import extend_task
from corpora.storage.layout import manifest_of, write_manifest
from tests.annotate.acts import open_task
from tests.annotate.conftest import AGREED, DISPUTED
from tests.annotate.corpus import SMALL
from tests.annotate.goldsets.acts import finish, with_manifest
from tests.annotate.goldsets.set_contents import card_of, everything_in, files, json_lines

pytestmark = pytest.mark.both_databases
ROOT = Path(__file__).resolve().parents[3]
OF_CHECKS = ("decided_by", "check_chance", "checked", "first_label")
COPIED = ("label", "stage", "stratum", "round", "candidates", "judgments", "transitions", *OF_CHECKS)


# --- the rows


def test_a_language_that_failed_its_audit_has_the_stratum_contested(make_task, person, out):
    task = make_task([AGREED] * 6, audit_least=2, audit_recheck=0, audit_limit=0.3)
    with_manifest()
    ann, ada = person("ann", "de"), person("ada", adjudicates=True)
    for _ in range(2):
        settle(ada, judge(ann, take(ann, task).pk, Answer("en")).unit_id, Answer("en", "I read it"))
    for _ in range(4):
        judge(ann, take(ann, task).pk, Answer("de"))
    manifest = export(task, out)
    rows = json_lines(out / "gold.jsonl")
    assert Counter((row["stratum"], row["agreed"], row["label"], row["audit_chance"]) for row in rows) == {
        ("audited", "de", "en", 2 / 6): 2,
        ("contested", "de", "de", 1.0): 4,
    }
    [row] = manifest["audit"]["languages"]
    assert (row["posts"], row["audited"], row["contested"]) == (6, 2, True)
    assert manifest["counts"]["by_stratum"] == {"audited": 2, "contested": 4}
    header, text = card_of(out)
    assert header["annotations_creators"] == ["expert-generated"]
    assert "people label all of it; this happened for `de`." in text


def test_copies_of_an_audited_text_are_contested_too_since_all_of_the_language_is_read(make_task, person, out):
    """Otherwise the others, all of them read, would stand for the copies, and a text that occurs often for little."""
    often = [{"key": f"copy-{n}", "text": "the same long text, over and over again", "votes": AGREED} for n in range(9)]
    task = make_task([*often, *[AGREED] * 3], audit_least=2, audit_recheck=0, audit_limit=0.3)
    with_manifest()
    ann, ada = person("ann", "de"), person("ada", adjudicates=True)
    while lease := take(ann, task):
        unit = Unit.objects.get(pk=judge(ann, lease.pk, Answer("en")).unit_id)
        if unit.stage == stages.ADJUDICATION:
            settle(ada, unit.pk, Answer("en", "I read it"))
    export(task, out)
    rows = json_lines(out / "gold.jsonl")
    assert Counter((row["stratum"], row["label"]) for row in rows) == {("audited", "en"): 2, ("contested", "en"): 10}
    assert {row["audit_chance"] for row in rows if row["stratum"] == "contested"} == {1}


def test_copies_of_an_audited_text_that_were_not_chosen_are_agreed_posts_with_the_label_of_people(
    make_task, person, out
):
    texts = ["the same long text, over and over again", "another long text, over and over again"]
    often = [{"key": f"{n}-{text}", "text": text, "votes": AGREED} for text in texts for n in range(4)]
    task = make_task(often, audit_least=1, audit_recheck=0, audit_limit=1)
    with_manifest()
    ann = person("ann", "de")
    judge(ann, take(ann, task).pk, Answer("de"))
    counts = export(task, out)["counts"]
    rows = json_lines(out / "gold.jsonl")
    assert Counter((row["stratum"], row["decided_by"]) for row in rows) == {
        ("audited", "one"): 1,
        ("agreed", "one"): 3,
        ("agreed", "detectors"): 4,
    }
    assert (counts["by_stratum"]["agreed"], counts["agreed_by"]) == (7, {"detectors": 4, "one": 3})
    _, text = card_of(out)
    assert (
        "the detectors' own**, but for 3 posts whose text was audited:\nthese have the label that people gave" in text
    )


def test_a_manager_who_moved_a_unit_is_called_so_and_chances_are_those_of_the_extended_draw(task, manager, out):
    assert extend_task(task, 63).task == task
    unit = task.units.filter(stage=stages.QUEUED).first()
    move(unit, "withdrawn", stages.DISCARDED, by=manager)
    close(task)
    export(task, out)
    left_out = json_lines(out / "left_out.unfinished.jsonl")
    rows = json_lines(out / "gold.unfinished.jsonl") + left_out
    assert (len(rows), {row["chance"] for row in rows}) == (63, {63 / manifest_of(SMALL).rows})
    [row] = [row for row in left_out if row["id"] == unit.item.key]
    assert (row["stage"], row["transitions"][-1]["by"]) == ("DISCARDED", "manager")


def test_a_copy_carries_the_label_of_the_post_it_was_judged_as(corpus, people, out):
    task = open_task("gold", corpus, 65, "7", least_level=3, audit_share=0, audit_least=0).task
    finish(task, people, cycle([Answer("und", "several")]))
    manifest = export(task, out)
    rows = {row["id"]: row for name in ("gold", "left_out") for row in json_lines(out / f"{name}.jsonl")}
    copies = {key: row for key, row in rows.items() if row["judged_as"]}
    assert len(copies) == manifest["counts"]["copies"] == Unit.objects.filter(stage=stages.COPIED).count() >= 1
    for key, copy in copies.items():
        original = rows[copy["judged_as"]]
        assert (original["judged_as"], original["text"]) == (None, copy["text"])
        for field in COPIED:
            assert copy[field] == original[field], (key, field)
    assert len({"twice-1", "twice-2"} & set(copies)) == 1
    assert any(copy["judgments"] for copy in copies.values())


# --- manifest and card


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_whatever_a_kind_says_of_its_sets_is_known(kind):
    assert set(kind.publication.columns) <= {*columns.COLUMNS, columns.FIELDS}
    assert set(kind.publication.tallies) <= set(TALLIES)
    assert set(kind.publication.sections) <= {
        *SECTIONS,
        "published",
        *(control.manifest_key for control in CONTROLS.values()),
    }
    assert set(kind.publication.formats) <= set(formats())
    assert (ROOT / "annotate" / "templates" / kind.publication.card).is_file()


def test_labels_are_counted_one_by_one_and_rows_by_themselves():
    several = SimpleNamespace(counted=str.split)
    tallies = {name: Counter() for name in ("left_out", "by_stage", "by_label")}
    counts = Counts(replace(KINDS["web_ranking"], form=several), has_masks=False, tallies=tallies)
    columns = {"label": ["Boats Lakes", "Boats", "Lakes"], "stage": ["LABELLED"] * 3, "judged_as": pa.nulls(3)}
    left_out = pa.array(["", "", "guidelines"])
    rows = pa.record_batch(columns)
    counts.add(SimpleNamespace(left_out=left_out, in_set=pc.equal(left_out, ""), judged=rows), rows)
    summary = counts.as_dict()
    assert summary["by_label"] == {"Boats": 2, "Lakes": 1}
    assert (summary["records"], summary["labelled"], summary["left_out"]) == (3, 2, {"guidelines": 1})


def test_the_card_names_the_licence_as_the_hub_does_or_as_it_is(task, out):
    for licence, expected in (
        ("cc0", {"license": "cc0-1.0"}),
        ("CC BY", {"license": "other", "license_name": "CC BY"}),  # the hub only knows its versions
        ('it\'s "ours": all', {"license": "other", "license_name": 'it\'s "ours": all'}),
    ):
        write_manifest(SMALL, replace(manifest_of(SMALL), licence=licence))
        export(task, out)
        header, text = card_of(out)
        assert {key: value for key, value in header.items() if key.startswith("license")} == expected
        assert f"Licence of the corpus: {licence}." in text


def test_an_unfinished_set_says_so_and_lists_waiting_posts_only_once_the_task_is_closed(task, people, out, capsys):
    """Annotators must not learn which posts are missing from the set."""
    [quick, *_], _ = people
    judge(quick, take(quick, task).pk, Answer("en"))
    call_command("export_gold", "gold", out=out)
    manifest = json.loads((out / "manifest.json").read_bytes())
    waiting = manifest["counts"]["unfinished"]
    assert f"unfinished: {waiting:,} posts still need answers" in capsys.readouterr().err
    assert manifest["finished"] is False
    marked = {f"gold.unfinished.{ending}" for ending in ("jsonl", "parquet", "digests.txt")}
    assert set(files(out)) == {"uniformly_sampled.unfinished.tsv", "manifest.json", "README.md", *STATEMENTS} | marked
    header, text = card_of(out)
    assert header["configs"][0]["data_files"][0]["path"] == "gold.unfinished.parquet"
    assert f"<summary>Unfinished: {waiting} of 60 posts still wait for people" in text
    assert "left_out" not in text
    keys = task.units.exclude(stage__in=stages.FINISHED).values_list("item__key", flat=True)
    content = everything_in(out)
    assert not [key for key in keys if f'"{key}"' in content]
    close(task)
    export(task, out)
    left_out = json_lines(out / "left_out.unfinished.jsonl")
    assert len(left_out) == waiting
    assert {row["stage"] for row in left_out} <= {"QUEUED", "ADJUDICATION"}


def test_a_set_in_which_nothing_has_a_label_yet_is_still_well_formed(corpus, out, monkeypatch):
    monkeypatch.setattr(language, "LEAST_LETTERS", 10**6)
    task = open_task("gold", corpus, 60, "7").task
    export(task, out)
    header, _ = card_of(out)
    assert "language" not in header
    [config] = header["configs"]
    assert config["data_files"] == [{"split": "test", "path": "gold.unfinished.parquet"}]
    # Without data_files in the card, the datasets library would read the manifest as a row.
    with pytest.raises(ValueError, match="corresponds to no data"):
        load_dataset(str(out), cache_dir=str(out.parent / "cache"))
    assert (out / "uniformly_sampled.unfinished.tsv").read_bytes() == b""
    assert pq.read_table(out / "gold.unfinished.parquet").num_rows == 0


def test_manifest_and_card_say_how_far_two_people_agree_and_on_which_labels_least(make_task, person, judged, out):
    task = make_task([DISPUTED] * 30, redundancy=3)
    with_manifest()
    people = [person(name, "de") for name in ("ann", "bob")]
    for number, unit in enumerate(task.units.all()):
        for annotator, label in zip(people, {3: ("en", "fr"), 4: ("en", "en")}.get(number, ("de", "de")), strict=True):
            judged(annotator, unit, label)
    whole = export(task, out)["agreement"]["all"]
    observed = whole["observed"]
    assert (observed["value"], observed["units"]) == (pytest.approx(29 / 30), 30)
    text = card_of(out)[1]
    assert f"| de | German | 30 | 0.967 [{observed['low']:.3f}, {observed['high']:.3f}]" in text
    assert f"| {whole['ac1']['value']:.3f} [" in text
    assert whole["few_others"] == {"label": "de", "others": 2}
    assert "2 have a label other than de, so alpha" in text
    by_label = text[text.index("Alpha of each label against all others:") :].splitlines()
    assert [line.split("|")[1].strip() for line in by_label[4:7]] == ["fr", "en", "de"]
