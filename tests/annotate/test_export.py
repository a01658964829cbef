"""The gold set of a task that people have really worked on, as files."""

import errno
import hashlib
import json
import os
import resource
import shutil
import stat
import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
import yaml
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import override_settings

from annotate.core import stages
from annotate.goldsets import columns, snapshot, writing
from annotate.goldsets import export as exporting
from annotate.goldsets import rows as row_making
from annotate.goldsets.counting import TALLIES, Counts
from annotate.goldsets.formats import FORMATS
from annotate.goldsets.manifest_sections import SECTIONS
from annotate.goldsets.writing import ExportError, export
from annotate.kinds import KINDS, Answer
from annotate.models import Judgment, Task, Unit
from annotate.quality import audits
from annotate.work.adjudication import discard, settle, to_adjudicate, unsettle
from annotate.work.judging import judge, skip, undo
from annotate.work.opening import extend_task
from annotate.work.queue import take
from corpora.folders import corpora_dir
from corpora.manifest import Manifest, Part, manifest_of, write_manifest
from corpora.models import Corpus
from tests.annotate.acts import open_task
from tests.annotate.conftest import AGREED, DISPUTED
from tests.annotate.corpus import POSTS

ROOT = Path(__file__).resolve().parents[2]
NAME = "small"
SOURCE = "lingua-py; “quoted”, and 'so'"
TITLE = """What's "this": a test?"""
# Texts that are hard on file formats; the first is there twice, and people judge it.
HARD = [
    ("twice-1", "haha ok\tlol\nsecond line"),
    ("twice-2", "haha ok\tlol\nsecond line"),
    ("rtl", "שלום עולם, \u202eזה טקסט עם כיוון הפוך"),
    ("emoji", "👩‍👩‍👧 \u2028 \u0085 \x0b ünï"),
    ("=cmd()", '"quoted", \\backslash\\, {{ template }}, <b>&amp;'),
]


@pytest.fixture(scope="session")
def small(django_db_setup, django_db_blocker, tmp_path_factory):
    """A data folder with a corpus of some sixty posts and the real detectors' votes."""
    folder = tmp_path_factory.mktemp("small")
    posts = folder / "posts.jsonl"
    with open(POSTS, encoding="utf-8") as source:
        lines = [next(source) for _ in range(60)]
    hard = [
        {"id": key, "text": text, "author": "somebody_q", "url": f"https://example.org/{n}"}
        for n, (key, text) in enumerate(HARD)
    ]
    posts.write_text("".join(lines) + "".join(json.dumps(post) + "\n" for post in hard), encoding="utf-8")
    data = folder / "var"
    with override_settings(DATA_DIR=data), django_db_blocker.unblock():
        call_command("import_corpus", NAME, str(posts), licence="CC BY 4.0", source=SOURCE)
        call_command("prelabel", NAME, processes=1)
        Corpus.objects.all().delete()
    return data


@pytest.fixture
def corpus(small, data_dir, db):
    shutil.copytree(small, data_dir, dirs_exist_ok=True)
    return Corpus.objects.create(name=NAME)


@pytest.fixture
def people(person):
    """Three readers of nearly everything and two adjudicators, whose names occur nowhere else."""
    made = []
    for number, (first, last) in enumerate([("Quirina", "Zxu"), ("Xerxqes", "Vaq"), ("Wqillow", "Kqx")]):
        annotator = person(f"reader_qzx{number}", "en de fr es ru it pt nl pl tr ar")
        made.append(annotator)
        annotator.user.first_name, annotator.user.last_name = first, last
        annotator.user.save()
    return made, [person("judge_qzx1", adjudicates=True), person("judge_qzx2", adjudicates=True)]


@pytest.fixture
def task(corpus):
    """The whole corpus but five posts, a part of its agreement to be audited; opened and not yet worked on."""
    audit = {"audit_share": 0.3, "audit_least": 1, "audit_recheck": 0.5, "audit_limit": 1}
    return open_task("gold", corpus, 60, "7", title=TITLE, least_level=3, **audit).task


def work(task, readers, answers):
    """The readers take turns until nothing is left for them; answers: an iterable of labels, None for a skip."""
    answers = iter(answers)
    busy = True
    while busy:
        busy = False
        for reader in readers:
            if lease := take(reader, task):
                busy = True
                if answer := next(answers):
                    judge(reader, lease.pk, answer, 1.5)
                else:
                    skip(reader, lease.pk, 0.25)


def adjudicate(task, adjudicators):
    """Settles one, discards the next, and so on; the first decision is taken back once."""
    first, _ = adjudicators
    for number, unit in enumerate(list(to_adjudicate(task, first))):
        adjudicator = adjudicators[number % 2]
        if number % 2:
            discard(adjudicator, unit.pk, "names only")
        else:
            settle(adjudicator, unit.pk, Answer("en", "looked it up", "a comment,\twith a tab"))
        if number == 0:
            unsettle(adjudicator, unit.pk)
            settle(adjudicator, unit.pk, Answer("de", "looked again"))


def finish(task, people, answers):
    """People do all there is; what nobody reads goes to the next language, then to the adjudicators."""
    readers, adjudicators = people
    work(task, readers, answers)
    call_command("reroute", task.name)
    work(task, readers, answers)
    adjudicate(task, adjudicators)
    assert not task.units.exclude(stage__in=stages.FINISHED).exists()


@pytest.fixture
def finished(task, people):
    """Everything answered, skipped, settled or discarded by people; one answer was taken back."""
    quick = people[0][0]
    judge(quick, take(quick, task).pk, Answer("fr"), 2)
    undo(quick, task)
    said = [Answer("en"), Answer("de"), None, Answer("und", "mixed"), Answer("und", "unlisted", "Swahili, or Zulu?")]
    finish(task, people, cycle(said))
    return task


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def json_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def jsonlike(value):
    """A value that came out of Parquet as it stands in JSON."""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, dict):
        return {key: jsonlike(of) for key, of in value.items()}
    return [jsonlike(of) for of in value] if isinstance(value, list) else value


def everything_in(folder):
    """All that the files say, Parquet unpacked, as one text."""
    told = [content.decode("utf-8", "replace") for content in files(folder).values()]
    for path in folder.glob("*.parquet"):
        told.append(json.dumps(jsonlike(pq.read_table(path).to_pylist()), ensure_ascii=False))
        told.append(str(pq.read_schema(path)))
    return "\n".join(told)


def card_of(folder):
    _, header, text = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(header), text


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
    assert {(row["label"], row["stage"]) for row in left_out} == {(None, "DISCARDED")}
    assert list(rows[0]) == list(left_out[0]) == list(finished.kind.columns)


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
    frame = manifest_of(NAME).rows
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


def test_a_language_that_failed_its_audit_has_the_stratum_contested(make_task, person, out):
    task = make_task([AGREED] * 6, audit_least=2, audit_recheck=0, audit_limit=0.5)
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
    assert "people label all of it: so for `de`." in text


def test_copies_of_an_audited_text_are_contested_too_since_all_of_the_language_is_read(make_task, person, out):
    """Otherwise the others, all of them read, would stand for the copies, and a text that occurs often for little."""
    often = [{"key": f"copy-{n}", "text": "the same long text, over and over again", "votes": AGREED} for n in range(9)]
    task = make_task([*often, *[AGREED] * 3], audit_least=2, audit_recheck=0, audit_limit=0.5)
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


def test_the_chance_is_that_of_the_extended_draw(task, out):
    assert extend_task(task, 63).task == task
    export(task, out)
    frame = manifest_of(NAME).rows
    told = json_lines(out / "gold.unfinished.jsonl") + json_lines(out / "left_out.unfinished.jsonl")
    assert len(told) == 63
    assert {row["chance"] for row in told} == {63 / frame}


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


def test_a_manager_who_moved_a_unit_is_called_so(task, manager, out):
    from annotate.work.routing import reroute

    reroute(task, by=manager)
    export(task, out)
    rows = json_lines(out / "left_out.unfinished.jsonl")
    assert {row["transitions"][-1]["by"] for row in rows if row["stage"] == "ADJUDICATION"} == {"manager"}


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
        for field in ("label", "stage", "stratum", "round", "candidates", "judgments", "transitions"):
            assert copy[field] == original[field], (key, field)
    assert len({"twice-1", "twice-2"} & set(copies)) == 1
    assert any(copy["judgments"] for copy in copies.values())


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
    assert manifest["audit"] == audits.report(finished)
    assert manifest["corpus"] == {"name": NAME, "source": SOURCE, "licence": "CC BY 4.0", "text_may_leave": True}
    [versions] = manifest["detectors"]
    assert set(versions) == {"langid", "cld2", "fasttext"}


def test_the_manifest_tells_of_the_task_each_option_that_its_kind_has(finished, out):
    told = export(finished, out)["task"]
    known = ("name", "title", "type", "kind_sha256", "labels", "languages", "added_languages")
    assert tuple(told) == (*known, *finished.kind.options)
    assert {name: told[name] for name in finished.kind.options} == finished.options
    assert (told["type"], told["kind_sha256"], told["languages"]) == ("language", None, [])
    assert told["added_languages"] == {}


def test_progress_is_told_to_the_last_row(finished, out, monkeypatch):
    monkeypatch.setattr(writing, "STEP", 25)
    told = []
    export(finished, out, progress=told.append)
    assert told == [25, 50, 60]


def test_what_only_other_kinds_of_rows_need_is_not_read(finished, out, monkeypatch):
    def unwanted(*arguments, **options):
        raise AssertionError

    for name in ("split_set", "ratios"):
        monkeypatch.setattr(exporting, name, unwanted)
    monkeypatch.setattr(exporting.agreement, "second_opinions", unwanted)
    assert export(finished, out)["finished"]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_whatever_a_kind_says_of_its_sets_is_known(kind):
    assert set(kind.columns) <= {*columns.COLUMNS, columns.FIELDS}
    assert set(kind.tallies) <= set(TALLIES)
    assert set(kind.sections) <= set(SECTIONS)
    assert set(kind.formats) <= set(FORMATS)
    assert (ROOT / "annotate" / "templates" / kind.card).is_file()


def test_labels_are_counted_by_their_facets_and_rows_by_themselves():
    several = SimpleNamespace(facets=str.split)
    counts = Counts(replace(KINDS["web_ranking"], form=several, tallies=()))
    row = {"stage": "LABELLED", "judged_as": None}
    counts.take(row | {"label": "Boats Lakes"}, "")
    counts.take(row | {"label": "Boats"}, "")
    counts.take(row | {"label": "Lakes"}, "guidelines")
    told = counts.as_dict()
    assert told["by_label"] == {"Boats": 2, "Lakes": 1}
    assert (told["records"], told["labelled"], told["left_out"]) == (3, 2, {"guidelines": 1})


def test_the_card_is_one_that_a_hub_can_read(finished, out):
    manifest = export(finished, out)
    header, text = card_of(out)
    assert header["pretty_name"] == TITLE
    assert header["license"] == "cc-by-4.0"
    assert "license_name" not in header
    labels = set(manifest["counts"]["by_label"])
    assert header["language"] == sorted({code.split("-")[0] for code in labels - {"und"}})
    assert header["configs"] == [
        {"config_name": "default", "data_files": [{"split": "test", "path": "gold.parquet"}]},
    ]
    assert header["size_categories"] == ["n<1K"]
    for name in manifest["files"]:
        assert f"`{name}`" in text or name == "README.md"
    assert SOURCE in text
    assert "do not measure one of these three detectors" in text.lower()
    assert "Unfinished" not in text
    for label, count in manifest["counts"]["by_label"].items():
        assert f"| {label} | " in text
        assert f" | {count} |" in text


@pytest.mark.parametrize(
    ("licence", "told"),
    [
        ("CC0-1.0", {"license": "cc0-1.0"}),
        ("cc0", {"license": "cc0-1.0"}),
        ("Apache 2.0", {"license": "apache-2.0"}),
        ("CC BY", {"license": "other", "license_name": "CC BY"}),  # the hub knows it by versions only
        ('it\'s "ours": all', {"license": "other", "license_name": 'it\'s "ours": all'}),
    ],
)
def test_the_card_names_the_licence_as_the_hub_does_or_as_it_is(task, out, licence, told):
    write_manifest(NAME, replace(manifest_of(NAME), licence=licence))
    export(task, out)
    header, text = card_of(out)
    assert {key: value for key, value in header.items() if key.startswith("license")} == told
    assert f"Licence of the corpus: {licence}." in text


def test_an_unfinished_set_says_so_in_names_manifest_and_card(task, people, out, capsys):
    [quick, *_], _ = people
    judge(quick, take(quick, task).pk, Answer("en"))
    call_command("export_gold", "gold", out=out)
    told = capsys.readouterr()
    manifest = json.loads((out / "manifest.json").read_bytes())
    waiting = manifest["counts"]["unfinished"]
    assert f"Unfinished: {waiting:,} posts still wait" in told.err
    assert manifest["finished"] is False
    assert set(files(out)) == {
        "uniformly_sampled.unfinished.tsv",
        "gold.unfinished.jsonl",
        "gold.unfinished.parquet",
        "gold.unfinished.digests.txt",
        "left_out.unfinished.jsonl",
        "manifest.json",
        "README.md",
    }
    header, text = card_of(out)
    assert header["configs"][0]["data_files"][0]["path"] == "gold.unfinished.parquet"
    assert f"**Unfinished.** {waiting} of 60 posts still wait for people" in text
    left_out = json_lines(out / "left_out.unfinished.jsonl")
    assert len(left_out) == waiting
    assert {row["stage"] for row in left_out} <= {"QUEUED", "ADJUDICATION"}


def test_a_set_in_which_nothing_has_a_label_yet_is_still_well_formed(corpus, out):
    task = open_task("gold", corpus, 60, "7", least_letters=10**6).task
    export(task, out)
    header, _ = card_of(out)
    assert not {"language", "configs"} & set(header)
    assert (out / "uniformly_sampled.unfinished.tsv").read_bytes() == b""
    assert not list(out.glob("*.parquet"))


def test_the_command_counts_what_it_wrote(finished, out, capsys):
    call_command("export_gold", "gold", out=out)
    told = capsys.readouterr()
    labels = {row["label"] for row in json_lines(out / "gold.jsonl")}
    count = len(json_lines(out / "gold.jsonl"))
    assert told.out == f"{count} of 60 posts written to {out}, in {len(labels)} labels.\n"
    assert told.err == ""


# --- what may not leave


def test_where_the_text_may_not_leave_no_file_holds_it_or_what_leads_to_it(finished, out, capsys):
    write_manifest(NAME, replace(manifest_of(NAME), text_may_leave=False))
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


# --- the folder


def test_the_same_database_gives_the_same_bytes(finished, tmp_path):
    for name in ("one", "two"):
        export(finished, tmp_path / name)
    assert files(tmp_path / "one") == files(tmp_path / "two")


def test_an_export_does_not_sweep_away_what_people_have_put_beside_the_earlier_one(task, people, out):
    export(task, out)
    (out / "notes").mkdir()
    (out / "analysis.py").write_text("mine")
    before = {path.name for path in out.iterdir()}
    with pytest.raises(ExportError, match=r"holds what is no part of the export: analysis\.py, notes\."):
        export(task, out)
    assert {path.name for path in out.iterdir()} == before
    assert (out / "analysis.py").read_text() == "mine"


def test_an_export_over_an_earlier_one_replaces_it(task, people, out):
    export(task, out)
    earlier = set(files(out))
    finish(task, people, cycle([Answer("en")]))
    export(task, out)
    assert "gold.unfinished.parquet" in earlier
    assert "gold.parquet" in files(out)
    assert not [name for name in files(out) if "unfinished" in name]
    assert [path.name for path in out.parent.iterdir()] == ["gold"]
    assert stat.S_IMODE(out.stat().st_mode) == 0o755


def test_an_empty_folder_is_taken_and_a_link_to_a_folder_stays_one(task, tmp_path):
    empty, link = tmp_path / "empty", tmp_path / "link"
    empty.mkdir()
    link.symlink_to(empty)
    export(task, link)
    assert link.is_symlink()
    assert "manifest.json" in files(empty)


@pytest.mark.parametrize("content", [None, "{}", "[]", "no json", '{"task": {"name": "other"}}', '{"task": "gold"}'])
def test_a_folder_with_something_else_in_it_is_refused_and_left_alone(task, tmp_path, content):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.txt").write_text("three years of work")
    if content is not None:
        (folder / "manifest.json").write_text(content)
    before = files(folder)
    with pytest.raises(CommandError, match="holds something else than an export of gold; choose another folder"):
        call_command("export_gold", "gold", out=folder)
    assert files(folder) == before
    assert "mine" in os.listdir(tmp_path)
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".mine")]


def test_a_file_as_out_is_refused(task, tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(CommandError, match="is a file; --out must name a folder"):
        call_command("export_gold", "gold", out=file)
    with pytest.raises(CommandError, match=r"cannot be written: .*\. Nothing was changed\."):
        call_command("export_gold", "gold", out=file / "gold")
    assert file.read_text() == "x"


def test_an_unknown_task_or_a_lost_corpus_is_one_sentence(task, data_dir, out):
    with pytest.raises(CommandError, match="There is no task 'none'; there is: gold"):
        call_command("export_gold", "none", out=out)
    shutil.rmtree(data_dir / "corpora" / NAME)
    with pytest.raises(CommandError, match="There is no corpus 'small'"):
        call_command("export_gold", "gold", out=out)
    assert not out.exists()
    assert list(out.parent.iterdir()) == []


@contextmanager
def no_file_longer_than(size):
    """The system refuses to write more to any file, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


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

    monkeypatch.setattr(writing, "render_to_string", stop)
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


# --- one moment


def in_another_connection(operation):
    """Runs operation in a thread with a connection of its own; whether it was done within ten seconds."""
    failed = []

    def run():
        try:
            operation()
        except BaseException as error:
            failed.append(error)
            raise
        finally:
            connection.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(10)
    return not thread.is_alive() and not failed


def with_manifest():
    (corpora_dir() / "corpus").mkdir(parents=True)
    write_manifest("corpus", Manifest("CC0-1.0", True, "", parts=(Part("x", 8, "0"),)))


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_an_export_is_of_one_moment_while_people_go_on_working(make_task, person, out, monkeypatch):
    task = make_task([DISPUTED, AGREED, DISPUTED, DISPUTED])
    with_manifest()
    ann = person("ann", "de")
    judge(ann, take(ann, task).pk, Answer("en"))
    export(task, out)
    before = files(out)
    real, worked = row_making.rows, []

    def work_on():
        judge(ann, take(ann, task).pk, Answer("de"))

    def slow(*arguments, **options):
        worked.append(in_another_connection(work_on))
        for number, row in enumerate(real(*arguments, **options)):
            if number == 0:
                worked.append(in_another_connection(work_on))
            yield row

    monkeypatch.setattr(row_making, "CHUNK", 1)  # else the first read would have it all
    monkeypatch.setattr(row_making, "rows", slow)
    export(task, out)
    assert worked == [True, True]
    assert Judgment.objects.count() == 3
    assert files(out) == before
    monkeypatch.setattr(row_making, "rows", real)
    assert export(task, out)["counts"]["labelled"] == 4


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_after_an_export_that_failed_the_connection_works_as_before(make_task, person, out):
    task = make_task([DISPUTED])
    with_manifest()
    with pytest.raises(ExportError), no_file_longer_than(0):
        export(task, out)
    assert not connection.in_atomic_block
    ann = person("ann", "de")
    judge(ann, take(ann, task).pk, Answer("de"))
    assert export(Task.objects.get(), out)["finished"]


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
@pytest.mark.postgres_only
def test_an_export_cannot_write(make_task):
    from django.db import InternalError

    task = make_task([AGREED])
    with pytest.raises(InternalError, match="read-only"), snapshot.one_moment():
        Task.objects.filter(pk=task.pk).update(title="x")


def test_where_two_people_read_posts_manifest_and_card_say_how_far_they_agree(make_task, person, judged, out):
    task = make_task([DISPUTED] * 30, redundancy=3)
    with_manifest()
    people = [person(name, "de") for name in ("ann", "bob")]
    for number, unit in enumerate(task.units.all()):
        for place, annotator in enumerate(people):
            judged(annotator, unit, "en" if place and number % 3 == 0 else "de")
    manifest = export(task, out)
    observed = manifest["agreement"]["all"]["observed"]
    assert (observed["value"], observed["units"]) == (pytest.approx(2 / 3), 30)
    assert f"| de | German | 30 | 0.667 [{observed['low']:.3f}, {observed['high']:.3f}]" in card_of(out)[1]


def test_where_one_person_reads_each_post_nothing_is_said_of_agreement(finished, out):
    assert export(finished, out)["agreement"] is None
    assert "How far people agree" not in card_of(out)[1]
