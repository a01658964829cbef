"""The gold set, as files, of a task on which people have really worked."""

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

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml
from django.core.management import CommandError, call_command
from django.db import connection

from annotate.core import stages
from annotate.goldsets import columns, snapshot
from annotate.goldsets import rows as row_making
from annotate.goldsets.counting import TALLIES, Counts
from annotate.goldsets.formats import FORMATS
from annotate.goldsets.manifest_sections import SECTIONS
from annotate.goldsets.rows import Rows
from annotate.goldsets.writing import ExportError, export
from annotate.kinds import KINDS, Answer
from annotate.models import Judgment, Task, Unit
from annotate.work.adjudication import discard, settle, to_adjudicate, unsettle
from annotate.work.closing import close
from annotate.work.judging import judge, skip
from annotate.work.moving import move
from annotate.work.opening import extend_task
from annotate.work.queue import take
from corpora.folders import corpora_dir
from corpora.manifest import Manifest, Part, manifest_of, write_manifest
from corpora.models import Corpus
from tests.annotate.acts import open_task
from tests.annotate.conftest import AGREED, DISPUTED, make_person
from tests.annotate.corpus import SMALL
from tests.together import HANGS

ROOT = Path(__file__).resolve().parents[2]
TITLE = """What's "this": a test?"""


@pytest.fixture
def corpus(small, data_dir, db):
    shutil.copytree(small, data_dir, dirs_exist_ok=True)
    return Corpus.objects.create(name=SMALL)


def make_people():
    """Three readers of nearly everything and two adjudicators, whose names occur nowhere else."""
    made = []
    for number, (first, last) in enumerate([("Quirina", "Zxu"), ("Xerxqes", "Vaq"), ("Wqillow", "Kqx")]):
        annotator = make_person(f"reader_qzx{number}", "en de fr es ru it pt nl pl tr ar")
        made.append(annotator)
        annotator.user.first_name, annotator.user.last_name = first, last
        annotator.user.save()
    return made, [make_person("judge_qzx1", adjudicates=True), make_person("judge_qzx2", adjudicates=True)]


@pytest.fixture
def people(db):
    return make_people()


def open_small(corpus):
    """The whole corpus but five posts, a part of its agreement to be audited; opened and not yet worked on."""
    audit = {"audit_share": 0.3, "audit_least": 1, "audit_recheck": 0.5, "audit_limit": 1}
    return open_task("gold", corpus, 60, "7", title=TITLE, least_level=3, **audit).task


@pytest.fixture
def task(corpus):
    return open_small(corpus)


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
    """People do all the work; units that nobody reads go to the next language, then to the adjudicators."""
    readers, adjudicators = people
    work(task, readers, answers)
    call_command("reroute", task.name)
    work(task, readers, answers)
    adjudicate(task, adjudicators)
    assert not task.units.exclude(stage__in=stages.FINISHED).exists()


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
    # Compressed bytes say nothing, and hold any three letters by chance.
    plain = (content for name, content in files(folder).items() if not name.endswith(".parquet"))
    told = [content.decode("utf-8", "replace") for content in plain]
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
    assert "people label all of it; this happened for `de`." in text


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


def test_copies_of_an_audited_text_that_were_not_chosen_are_agreed_posts_with_the_label_of_people(
    make_task, person, out
):
    often = [{"key": f"copy-{n}", "text": "the same long text, over and over again", "votes": AGREED} for n in range(4)]
    task = make_task([*often, AGREED], audit_least=1, audit_recheck=0, audit_limit=1)
    with_manifest()
    assert task.units.get(audited=True).item.key.startswith("copy-")
    ann = person("ann", "de")
    judge(ann, take(ann, task).pk, Answer("de"))
    counts = export(task, out)["counts"]
    rows = json_lines(out / "gold.jsonl")
    assert Counter((row["stratum"], row["decided_by"]) for row in rows) == {
        ("audited", "one"): 1,
        ("agreed", "one"): 3,
        ("agreed", "detectors"): 1,
    }
    assert (counts["by_stratum"]["agreed"], counts["agreed_by"]) == (4, {"detectors": 1, "one": 3})
    _, text = card_of(out)
    assert (
        "the detectors' own**, but for 3 posts whose text was audited:\nthese have the label that people gave" in text
    )


def test_the_chance_is_that_of_the_extended_draw(task, out):
    assert extend_task(task, 63).task == task
    close(task)
    export(task, out)
    frame = manifest_of(SMALL).rows
    told = json_lines(out / "gold.unfinished.jsonl") + json_lines(out / "left_out.unfinished.jsonl")
    assert len(told) == 63
    assert {row["chance"] for row in told} == {63 / frame}


def test_a_manager_who_moved_a_unit_is_called_so(task, manager, out):
    unit = task.units.filter(stage=stages.QUEUED).first()
    move(unit, "withdrawn", stages.DISCARDED, by=manager)
    close(task)
    export(task, out)
    [row] = [row for row in json_lines(out / "left_out.unfinished.jsonl") if row["id"] == unit.item.key]
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
        for field in ("label", "stage", "stratum", "round", "candidates", "judgments", "transitions"):
            assert copy[field] == original[field], (key, field)
    assert len({"twice-1", "twice-2"} & set(copies)) == 1
    assert any(copy["judgments"] for copy in copies.values())


# --- manifest and card


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_whatever_a_kind_says_of_its_sets_is_known(kind):
    assert set(kind.columns) <= {*columns.COLUMNS, columns.FIELDS}
    assert set(kind.tallies) <= set(TALLIES)
    assert set(kind.sections) <= set(SECTIONS)
    assert set(kind.formats) <= set(FORMATS)
    assert (ROOT / "annotate" / "templates" / kind.card).is_file()


def test_labels_are_counted_by_their_facets_and_rows_by_themselves():
    several = SimpleNamespace(facets=str.split)
    counts = Counts(replace(KINDS["web_ranking"], form=several, tallies=()), with_text=True)
    columns = {"label": ["Boats Lakes", "Boats", "Lakes"], "stage": ["LABELLED"] * 3, "judged_as": pa.nulls(3)}
    left_out = pa.array(["", "", "guidelines"])
    counts.taken(Rows(SimpleNamespace(left_out=left_out, in_set=pc.equal(left_out, "")), pa.record_batch(columns)))
    told = counts.as_dict()
    assert told["by_label"] == {"Boats": 2, "Lakes": 1}
    assert (told["records"], told["labelled"], told["left_out"]) == (3, 2, {"guidelines": 1})


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
    write_manifest(SMALL, replace(manifest_of(SMALL), licence=licence))
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


def test_what_waits_is_told_once_the_task_is_closed_so_that_nobody_at_work_finds_what_is_not_in_the_set(
    task, people, out
):
    [quick, *_], _ = people
    judge(quick, take(quick, task).pk, Answer("en"))
    waiting = export(task, out)["counts"]["unfinished"]
    assert json_lines(out / "left_out.unfinished.jsonl") == []
    waits = task.units.exclude(stage__in=stages.FINISHED).values_list("item__key", flat=True)
    told = "".join(path.read_text(encoding="utf-8") for path in out.iterdir() if path.suffix != ".parquet")
    assert not [key for key in waits if f'"{key}"' in told]
    close(task)
    export(task, out)
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


# --- the folder


def test_an_export_does_not_sweep_away_what_people_have_put_beside_the_earlier_one(task, people, out):
    export(task, out)
    (out / "notes").mkdir()
    (out / "analysis.py").write_text("mine")
    before = {path.name for path in out.iterdir()}
    with pytest.raises(ExportError, match=r"holds files that are not part of the export: analysis\.py, notes\."):
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


def test_a_finished_set_is_not_replaced_by_an_unfinished_one(task, people, out):
    finish(task, people, cycle([Answer("en")]))
    export(task, out)
    before = files(out)
    task.units.filter(pk=task.units.first().pk).update(stage=stages.QUEUED, label="")
    with pytest.raises(ExportError, match=r"gold holds the finished set of .*, and by now units of the task wait"):
        export(task, out)
    assert files(out) == before
    assert [path.name for path in out.parent.iterdir()] == ["gold"]


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
    with pytest.raises(CommandError, match="holds something other than an export of gold; choose another folder"):
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
    shutil.rmtree(data_dir / "corpora" / SMALL)
    with pytest.raises(CommandError, match="There is no corpus 'small'"):
        call_command("export_gold", "gold", out=out)
    assert not out.exists()
    assert list(out.parent.iterdir()) == []


# --- one moment


@contextmanager
def no_file_longer_than(size):
    """The system refuses to write more to any file, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def in_another_connection(operation):
    """Runs operation in a thread with its own connection; returns whether it was done."""
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
    thread.join(HANGS)
    return not thread.is_alive() and not failed


def with_manifest():
    (corpora_dir() / "corpus").mkdir(parents=True)
    write_manifest("corpus", Manifest("CC0-1.0", True, "", parts=(Part("x", 8, "0"),)))


@pytest.mark.django_db(transaction=True)
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


@pytest.mark.django_db(transaction=True)
def test_after_an_export_that_failed_the_connection_works_as_before(make_task, person, out):
    task = make_task([DISPUTED])
    with_manifest()
    with pytest.raises(ExportError), no_file_longer_than(0):
        export(task, out)
    assert not connection.in_atomic_block
    ann = person("ann", "de")
    judge(ann, take(ann, task).pk, Answer("de"))
    assert export(Task.objects.get(), out)["finished"]


@pytest.mark.django_db(transaction=True)
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
    text = card_of(out)[1]
    assert f"| de | German | 30 | 0.667 [{observed['low']:.3f}, {observed['high']:.3f}]" in text
    assert f"| {manifest['agreement']['all']['ac1']['value']:.3f} [" in text
    assert "Alpha of each label" not in text


def test_the_card_says_which_labels_people_agree_on_least_and_where_alpha_says_little(make_task, person, judged, out):
    task = make_task([DISPUTED] * 30, redundancy=3)
    with_manifest()
    people = [person(name, "de") for name in ("ann", "bob")]
    for number, unit in enumerate(task.units.all()):
        for annotator, label in zip(people, {3: ("en", "fr"), 4: ("en", "en")}.get(number, ("de", "de")), strict=True):
            judged(annotator, unit, label)
    manifest = export(task, out)
    text = card_of(out)[1]
    assert manifest["agreement"]["all"]["few_others"] == {"label": "de", "others": 2}
    assert "2 have any other label than de, so alpha" in text
    by_label = text[text.index("Alpha of each label against all others:") :].splitlines()
    assert [line.split("|")[1].strip() for line in by_label[4:7]] == ["fr", "en", "de"]
