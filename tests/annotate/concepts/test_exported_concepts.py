"""Exported sets of documents with several concepts: published folders, rows, buckets, refusals, and figures."""

import json
import shutil
import subprocess
from collections import Counter
from functools import partial
from statistics import fmean, median
from statistics import fmean as mean_of

import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError

from annotate.actions.registry import call_command
from annotate.core.draws.splits import SPLITS
from annotate.kinds import Answer
from annotate.models import Suggestion
from annotate.work import adjudication
from annotate.work.answer_changes import undo
from annotate.work.judgments import judge
from annotate.work.queue import take
from corpora.models import Item
from tests.annotate.concepts.acts import EUROVOC, ROOT, begun, choose, command, import_acts, suggesting, task_of
from tests.annotate.evaluation.figures import figures, rows_of, written
from tests.annotate.goldsets.set_contents import contents, json_lines, jsonlike

pytestmark = [pytest.mark.usefixtures("corpus"), pytest.mark.on_sqlite]
RENAMED = {"document_type": "type", "eurovoc_concepts": "concepts"}


@pytest.fixture
def out(tmp_path):
    return tmp_path / "gold"


BEGUN = partial(begun, "kept", reuse=True)


@pytest.fixture
def reuse_task(corpus):
    return corpus


def exported(task, out, **options):
    """Return the output of the command."""
    return command("export_gold", task.name, out=str(out), **options)


def manifest_in(out):
    return json.loads((out / "manifest.json").read_text(encoding="utf-8"))


def rows_in(out, name="gold.jsonl"):
    return {row["id"]: row for row in json_lines(out / name)}


def as_published(split):
    """Return the acts by id in EURLEX57K's format, from the current JSON-lines files."""
    lines = (ROOT / f"fixtures/eurlex/{split}.jsonl").read_text(encoding="utf-8").splitlines()
    acts = ({RENAMED.get(key, key): value for key, value in json.loads(line).items()} for line in lines)
    return {act["celex_id"]: act for act in acts}


def read_as_published(folder, split, descriptors):
    """Return the text and concepts of each act with the steps of the published reader (lmtc-eurlex57k)."""
    acts = {}
    for path in sorted((folder / split).glob("*.json")):
        # The reader specifies no encoding; ASCII can be read in any.
        data = json.loads(path.read_bytes().decode("ascii"))
        sections = [data["header"], data["recitals"], *data["main_body"], *data["attachments"]]
        terms = [descriptors[concept]["label"] for concept in data["concepts"]]
        assert terms
        assert all(terms)
        acts[path.stem] = ("\n".join(sections), data["concepts"])
    return acts


# --- the published folders


def test_the_published_reader_loads_every_act_and_a_set_with_a_changed_or_another_file_is_refused(
    reuse_task, out, tmp_path
):
    exported(reuse_task, out)
    folder = out / "EURLEX57K"
    descriptors = json.loads((folder / "EURLEX57K.json").read_bytes().decode("ascii"))
    for split in SPLITS:
        acts = as_published(split)
        read = read_as_published(folder, split, descriptors)
        assert {key: concepts for key, (_, concepts) in read.items()} == {
            key: act["concepts"] for key, act in acts.items()
        }
        assert all(acts[key]["recitals"] in text for key, (text, _) in read.items())
        for key, act in acts.items():
            written = json.loads((folder / split / f"{key}.json").read_bytes())
            assert (written, list(written)) == (act, list(act))
    schemes = str(EUROVOC / "schemes.json")
    output = command("import_vocabulary", "eurovoc", folder / "EURLEX57K.json", schemes=schemes)
    assert "the files are equal to version 1, so nothing was changed." in output
    # After another import and export, the folders are identical byte for byte; so is a repeated export.
    import_acts("again", [folder / split for split in SPLITS])
    exported(task_of("again", corpus="again", reuse=True), tmp_path / "again")
    first = contents(out)
    assert len(contents(folder)) == 60 + 2
    assert contents(tmp_path / "again/EURLEX57K") == contents(folder)
    exported(reuse_task, out)
    assert contents(out) == first
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, check=True, capture_output=True)
    files = [name for name in manifest_in(out)["files"] if name.startswith("EURLEX57K/")]
    assert files == ["EURLEX57K/EURLEX57K.json", "EURLEX57K/SHA256SUMS"]
    (folder / "train/mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(CommandError, match=r"contains files that are not part of the export: EURLEX57K/train/mine"):
        exported(reuse_task, out)
    act = next((folder / "test").iterdir())
    act.write_bytes(act.read_bytes().replace(b"the", b"teh", 1))
    with pytest.raises(CommandError, match=rf"EURLEX57K/test/{act.name} has changed since it was written"):
        command("evaluate", gold=[str(out)], predictions=str(out))


def test_where_the_licence_keeps_the_texts_there_are_descriptors_and_no_acts(out):
    import_acts("closed", licence="proprietary", text_may_leave=False)
    output = exported(task_of("closed", corpus="closed", reuse=True), out)
    assert "EURLEX57K's acts contain texts that must not be published, so only the descrip" in output
    assert sorted(path.name for path in (out / "EURLEX57K").iterdir()) == ["EURLEX57K.json"]
    row = next(iter(rows_in(out).values()))
    assert row["concepts"] == row["declared"]
    assert not {"title", "main_body", "type", "url"} & row.keys()


def test_ids_that_cannot_be_names_of_files_have_no_acts(reuse_task, out):
    key = min(as_published("train"))
    Item.objects.filter(key=key).update(key=f"../{key}")
    output = exported(reuse_task, out)
    assert f"'../{key}' cannot be a file name, so no acts are written." in output
    assert [path.name for path in (out / "EURLEX57K").iterdir()] == ["EURLEX57K.json"]


# --- splits, buckets and counts


def test_documents_are_in_the_split_that_was_published_and_by_lot_where_shares_are_given(reuse_task, out):
    exported(reuse_task, out)
    assert {key: row["split"] for key, row in rows_in(out).items()} == {
        key: split for split in SPLITS for key in as_published(split)
    }
    assert manifest_in(out)["splits"] == {"field": "split", "off": {}}
    exported(reuse_task, out, splits="train=0.5,dev=0.2,test=0.3", seed="3")
    assert Counter(row["split"] for row in rows_in(out).values()) == {"train": 30, "dev": 12, "test": 18}
    assert manifest_in(out)["splits"]["seed"] == "3"


def test_a_seed_without_shares_and_a_document_without_a_split_are_refused_in_a_sentence(reuse_task, out, tmp_path):
    with pytest.raises(
        CommandError, match="The splits are read from the field split of the records, so no seed is needed"
    ):
        exported(reuse_task, out, seed="3")
    shutil.copy(ROOT / "fixtures/eurlex/train.jsonl", tmp_path / "acts.jsonl")
    import_acts("unsplit", [tmp_path / "acts.jsonl"])
    task = task_of("unsplit", corpus="unsplit", reuse=True)
    with pytest.raises(CommandError, match=r"The field split of \S+ is empty\. It must be train, dev or test\. Import"):
        exported(task, out)
    assert not out.exists()
    exported(task, out, splits="train=1")
    assert Counter(row["split"] for row in rows_in(out).values()) == {"train": 20}


def test_labels_are_frequent_few_shot_or_zero_shot_by_the_documents_of_train(reuse_task, out):
    exported(reuse_task, out, frequent_over=2)
    acts = {split: as_published(split).values() for split in SPLITS}
    counts = {split: Counter(key for act in acts[split] for key in act["concepts"]) for split in SPLITS}
    published = manifest_in(out)["published"]
    used = set().union(*counts.values())
    train = counts["train"]
    assert published["frequent_over"] == 2
    assert published["buckets"] == {
        "frequent": sorted(key for key in used if train[key] > 2),
        "few": sorted(key for key in used if 1 <= train[key] <= 2),
        "zero": sorted(key for key in used if not train[key]),
    }
    assert all(published["buckets"].values())
    assert published["splits"] == {"train": 20, "dev": 20, "test": 20}
    assert published["files"] == {"EURLEX57K/EURLEX57K.json": 549, "EURLEX57K/SHA256SUMS": 60}
    vocabulary = {"name": "eurovoc", "version": 1, "sha256": reuse_task.vocabulary.sha256, "concepts": 549}
    assert published["vocabulary"] == vocabulary
    heads, *lines = (line.split("\t") for line in (out / "labels.tsv").read_text(encoding="utf-8").splitlines())
    assert heads == ["id", "label", "train", "dev", "test", "bucket"]
    assert {key: tuple(map(int, numbers)) for key, _, *numbers, _ in lines} == {
        key: tuple(counts[split][key] for split in SPLITS) for key in used
    }
    assert all(key in published["buckets"][bucket] for key, *_, bucket in lines)
    descriptors = json.loads((EUROVOC / "concepts.json").read_text(encoding="utf-8"))
    assert all(label == descriptors[key]["label"].strip() for key, label, *_ in lines)
    # The card counts labels by split and bucket, and names only the most frequent.
    card = (out / "README.md").read_text(encoding="utf-8")
    concepts = manifest_in(out)["concepts"]
    mean = sum(len(act["concepts"]) for act in acts["train"]) / 20
    assert f"| train | 20 | {len(train)} | {mean:.2f} | 100.0% |" in card
    # Words are counted by zone, as the published reader joins the zones.
    texts = [
        [act["header"], act["recitals"], "\n".join(act["main_body"]), act["attachments"]]
        for acts in map(as_published, SPLITS)
        for act in acts.values()
    ]
    words = [[len(text.split()) for text in zones] for zones in texts]
    assert list(concepts["words"]) == ["header", "recitals", "main_body", "attachments", "all"]
    assert concepts["words"]["main_body"]["mean"] == pytest.approx(mean_of(zones[2] for zones in words))
    assert concepts["words"]["all"]["median"] == median(map(sum, words))
    assert f"| all | {mean_of(map(sum, words)):.0f} | " in card
    assert f"| zero | in none of them, and in dev or test | {concepts['buckets']['zero']} |" in card
    assert [pair["splits"] for pair in concepts["apart"]] == [["train", "dev"], ["train", "test"], ["dev", "test"]]
    assert all(0 < pair["low"] < pair["high"] < 1 and 0 < pair["value"] < 1 for pair in concepts["apart"])
    assert f"| train and dev | {concepts['apart'][0]['value']:.3f} | {concepts['apart'][0]['low']:.3f} to " in card
    assert card.split("These are the most frequent labels")[1].split("\n## ")[0].count("\n| ") == 1 + 20
    assert len(card) < 6000
    # JSON lines and Parquet have the same lists.
    parquet = [row for split in SPLITS for row in pq.read_table(out / f"gold.{split}.parquet").to_pylist()]
    assert {row["id"]: jsonlike(row) for row in parquet} == rows_in(out)
    assert all(isinstance(row["concepts"], list) and row["concepts"] for row in rows_in(out).values())


# --- what people chose


def test_rows_have_who_chose_which_concept_and_what_led_to_it(readers, person, plain, out):
    one, two, three, four = plain[:4]
    task = task_of()
    suggesting(task, 0.0)
    lease = take(readers[0], task)
    Suggestion.objects.create(unit=lease.unit, system="a@1", ranked=[four, two])
    ways = {one: "searched", two: "suggested"}
    judge(readers[0], lease.pk, Answer(" ".join(sorted([one, two, three])), ways=ways))
    choose(readers[1], task, one, two)
    choose(readers[2], task, two, four)
    undone = take(readers[0], task)
    undo(readers[0], task, judge(readers[0], undone.pk, Answer(one)).pk)
    for reader, key in zip(readers, plain, strict=False):
        disputed = choose(reader, task, key).unit
    ada = person("ada", "en", adjudicates=True)
    adjudication.settle(ada, disputed.pk, Answer(" ".join(sorted([three, four])), reason="as titled"))
    assert "58 documents still need answers or decisions" in exported(task, out)
    rows = rows_in(out, "gold.unfinished.jsonl")
    row = rows[lease.unit.item.key]
    assert row["concepts"] == sorted([one, two])
    votes = {two: 3, one: 2} | dict.fromkeys(sorted([three, four]), 1)
    assert row["support"] == [{"concept": key, "votes": number, "asked": 3} for key, number in votes.items()]
    assert row["declared"] == lease.unit.item.declared
    expected = {one: ("searched", None), two: ("suggested", 2), three: (None, None)}
    chosen = row["judgments"][0]["concepts"]
    assert {choice["concept"]: (choice["way"], choice["rank"]) for choice in chosen} == expected
    settled = rows[disputed.item.key]
    assert settled["concepts"] == sorted([three, four])
    support = {(row["concept"], row["votes"], row["asked"]) for row in settled["support"]}
    assert support == {(key, 1, 3) for key in plain[:3]}
    assert not {"dawid_skene", "posterior", "soft_labels"} & row.keys()
    counts = manifest_in(out)["counts"]
    assert counts["by_source"] == {"adjudicator": 1, "people": 1}
    assert counts["by_votes"] == {"2 of 3": 1, "3 of 3": 1}
    assert counts["left_out"] == {"unfinished": 58}
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "| 3 of 3 | 1 |\n| 2 of 3 | 1 |" in card
    assert "People gave the labels of 1 document so, and adjudicators those of 1." in card
    # Acts of an unfinished set are not taken for those of a finished one.
    folders = {path.name for path in (out / "EURLEX57K").iterdir() if path.is_dir()}
    assert folders == {f"{row['split']}.unfinished" for row in rows.values()}


LAWS = """title = "Which concepts is this law about?"
form = "labels"

[vocabulary]
name = "law"
most = 3

[[layout]]
style = "document"
fields = ["body"]
"""


@pytest.fixture
def laws(tmp_path):
    """The exported set of a custom kind, and its rows: forty laws with declared concepts."""
    names = {"1": {"label": "law"}, "2": {"label": "civil law", "parents": ["1"]}, "3": {"label": "penal law"}}
    laws = [
        {"id": f"d{n}", "language": "en", "body": f"Law {n}.", "topics": ["2", "3"][: 1 + n % 2]} for n in range(40)
    ]
    (tmp_path / "laws.jsonl").write_text("".join(json.dumps(law) + "\n" for law in laws))
    (tmp_path / "law.json").write_text(json.dumps(names))
    (tmp_path / "laws.toml").write_text(LAWS)
    command("import_vocabulary", "law", tmp_path / "law.json")
    options = {"fields": "body", "labels": "topics", "licence": "CC0-1.0", "source": "made"}
    command("import_corpus", "laws", tmp_path / "laws.jsonl", **options)
    command("open_task", "laws", kind=str(tmp_path / "laws.toml"), corpus="laws", seed="1", reuse=True)
    command("export_gold", "laws", out=str(tmp_path / "laws"), splits="train=0.2,dev=0.1,test=0.7")
    return tmp_path / "laws", rows_of(tmp_path / "laws")


def measured(folder, path, **options):
    return json.loads(command("evaluate", path, gold=[folder], json=True, **options))


@pytest.mark.slow
def test_labels_of_a_kind_of_ones_own_are_measured_in_every_layout(laws, tmp_path):
    folder, rows = laws
    assert (folder / "concepts.json").is_file()
    answers = {row["id"]: ["3", "2"] if n % 4 == 0 else ["2"] for n, row in enumerate(rows)}
    cells = written(tmp_path / "cells.tsv", [("id", "label"), *((key, " ".join(of)) for key, of in answers.items())])
    bare = written(tmp_path / "bare.tsv", [(key, " ".join(of)) for key, of in answers.items()])
    single = ((key, label) for key, of in answers.items() for label in of)
    lines = written(tmp_path / "rows.tsv", [("doc", "label"), *single])
    lists = tmp_path / "lists.jsonl"
    lists.write_text("".join(json.dumps({"id": key, "label": of}) + "\n" for key, of in answers.items()))
    report = measured(folder, cells)
    tested = [row for row in rows if row["split"] == "test"]
    hits = sum(len(set(answers[row["id"]]) & set(row["concepts"])) for row in tested)
    size, gold = sum(len(answers[row["id"]]) for row in tested), sum(len(row["concepts"]) for row in tested)
    assert figures(report, "micro_f1", answers="plain")["value"] == pytest.approx(2 * hits / (size + gold))
    first = fmean(answers[row["id"]][0] in row["concepts"] for row in tested)
    assert figures(report, "P", labels="all", k="1")["value"] == pytest.approx(first)
    for path, options in ((bare, {}), (lists, {}), (lines, {"column": ["id=doc"]})):
        assert measured(folder, path, **options)["rows"] == report["rows"]
    places = ((key, label, 1 / place) for key, of in answers.items() for place, label in enumerate(of, 1))
    scored = written(tmp_path / "scored.tsv", [("id", "label", "score"), *places])
    against = measured(folder, scored, against=str(cells))
    assert against["rows"] == report["rows"]
    assert against["comparison"]["rows"][0]["value"] == 0
    run = written(tmp_path / "mine.tsv", [(row["id"], "Q0", "2", 1, 0.5, "mine") for row in rows])
    call_command("import_predictions", "laws", run, name="mine", version="1", ranked=True, verbosity=0)
    assert measured(folder, "mine@1")["rows"] == measured(folder, run)["rows"]
    with pytest.raises(CommandError, match="--threshold requires scores, but the labels of mine@1 have none"):
        command("evaluate", "mine@1", gold=[folder], threshold="0.5")
    key = tested[0]["id"]
    scores = ("id", "label", "score")
    for lines, sentence in (
        ([("id", "label"), (key, "2 22")], "line 2: '22' is not one of the 3 labels. .* Did you mean '2'"),
        ([("id", "label"), (key, "2"), (key, "2")], f"line 3: {key} has the label 2 twice. Remove one of them."),
        ([scores, (key, "2 3", ".5")], "line 2: there is only one score for 2 labels"),
        ([scores, (key, "2", ".5"), (key, "3", "")], "line 3: some labels have scores and others"),
        ([("id", "label"), ("x", "2")], "contains none of the "),
        ([("id", "lable"), (key, "2")], "has the column 'lable', which is not one of the 3 labels"),
    ):
        with pytest.raises(CommandError, match=sentence):
            command("evaluate", written(tmp_path / "wrong.tsv", lines), gold=[folder])
