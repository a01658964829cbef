"""The exported set of a task of records that people have really worked on, as files."""

import csv
import json
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from shutil import copytree

import pyarrow.parquet as pq
import pytest
from datasets import load_dataset
from django.core.management import CommandError, call_command
from django.utils import timezone

from annotate.goldsets.writing import ExportError, export
from annotate.kinds import KINDS, Answer
from annotate.models import Judgment, Qualification, Trial
from annotate.quality import agreement as agreeing
from annotate.quality.gold_answers import GoldRow
from annotate.quality.guidelines import current
from annotate.work.adjudication import discard
from annotate.work.judging import judge, skip, undo
from annotate.work.pausing import void
from annotate.work.queue import take
from annotate.work.routing import decide
from corpora.manifest import manifest_of, write_manifest
from corpora.models import Corpus
from tests.annotate.acts import open_records
from tests.annotate.test_export import card_of, everything_in, files, json_lines, jsonlike
from tests.annotate.test_xglue import HARD, as_written, published_reader

LANGUAGES = ("en", "de", "fr")
EXAMPLE = {"query": "cheap *flights*", "title": "Flights for less", "description": "Book\nnow, fly later."}
# The label that a record's number gives, so that any reader of a test can tell it.
GRADES = ("4", "3", "2", "1", "0")
FIELDS = {
    "ad_relevance": ("query", "title", "description"),
    "qa_match": ("question", "passage"),
    "web_ranking": ("query", "title", "snippet"),
}
ROWS, HIDDEN = 20, 8


def record(task_type, language, number):
    """Two neighbours have an equal first field, and all the fields are hard on files now and then."""
    first, *others = FIELDS[task_type]
    hard = HARD[number % len(HARD)]
    values = {first: f"{HARD[number // 2 % len(HARD)]} {language} {number // 2}"}
    values |= {field: f"{hard if place else field} {language} {number} {hard}" for place, field in enumerate(others)}
    return {"id": f"{language}{number}", "language": language, **values}


@pytest.fixture
def corpus_of(tmp_path, db):
    """corpus_of("qa_match") has 20 records in each of three languages, and more with a known answer."""

    def make(task_type, *more, **options):
        rows = [record(task_type, language, number) for language in LANGUAGES for number in range(ROWS + 1 + HIDDEN)]
        path = tmp_path / f"{task_type}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, *more]), encoding="utf-8")
        options = {"licence": "CC BY 4.0", "source": "made for a test", "verbosity": 0} | options
        call_command("import_corpus", task_type, str(path), fields=" ".join(FIELDS[task_type]), **options)
        return Corpus.objects.get(name=task_type)

    return make


@pytest.fixture
def crowd(person):
    """Four people, whose names occur nowhere else."""
    return [person(f"labeler_qzx{number}", "en de fr") for number in range(4)]


@pytest.fixture
def opened(corpus_of):
    """opened("qa_match") is a task in which nobody has said anything yet."""

    def make(task_type, *more, languages=LANGUAGES, **knobs):
        corpus = corpus_of(task_type, *more)
        labels = KINDS[task_type].labels
        gold = [
            GoldRow(f"{language}{ROWS + place}", labels[place % 2], purpose, "A secret explanation.")
            for language in languages
            for place, purpose in enumerate(["practice"] + ["queue"] * HIDDEN)
        ]
        knobs = {"test_items": 0, "gold_share": 0} | knobs
        return open_records(task_type, corpus, task_type, languages, size=None, seed="7", gold=gold, **knobs).task

    return make


def number_of(unit):
    return int(unit.item.key[2:]) if unit.item.key[2:].isdigit() else 0


def label_of(unit):
    labels = unit.task.labels
    return labels[number_of(unit) // 3 % len(labels)]


def most_agree(person, unit):
    """The last of the four is at odds with the others on every fifth record."""
    label, labels = label_of(unit), unit.task.labels
    return labels[labels.index(label) - 1] if person == 3 and number_of(unit) % 5 == 0 else label


def work(task, people, says=most_agree):
    """The people take turns until nothing is left for them; says(place of one, unit): a label, None for a skip."""
    busy = True
    while busy:
        busy = False
        for place, person in enumerate(people):
            if lease := take(person, task):
                busy = True
                if label := says(place, lease.unit):
                    judge(person, lease.pk, Answer(label, comment="a comment\twith a tab"), 1.5)
                else:
                    skip(person, lease.pk, 0.5)


@pytest.fixture
def answered(judged, crowd):
    """answered(task, says) has three of the people answer each unit, past the queue, which takes its time."""

    def make(task, says=most_agree):
        for unit in task.units.filter(honeypot=False, copy_of=None).select_related("item", "task"):
            places = [(number_of(unit) + turn) % 4 for turn in range(3)]
            for place in places:
                judged(crowd[place], unit, says(place, unit), comment="a comment\twith a tab")
            decide(unit, [says(place, unit) for place in places])
        return task

    return make


@pytest.fixture
def ads(opened, answered):
    return answered(opened("ad_relevance"))


@pytest.fixture(scope="module")
def once():
    return {}


@pytest.fixture
def exported(once, request, tmp_path_factory):
    """The folder and the manifest of `ads`, exported once for all tests that only read them."""
    if not once:
        out = tmp_path_factory.mktemp("exports") / "gold"
        once["ads"] = out, export(request.getfixturevalue("ads"), out)
    return once["ads"]


@pytest.fixture
def out(tmp_path):
    return tmp_path / "exports" / "gold"


def rows_of(out, mark=""):
    return json_lines(out / f"gold{mark}.jsonl")


# --- rows


def test_every_record_has_its_fields_by_name_with_the_label_that_most_gave(ads, out):
    manifest = export(ads, out)
    rows = rows_of(out)
    assert len(rows) == 3 * ROWS == manifest["counts"]["labelled"] == manifest["counts"]["records"]
    units = {unit.item.key: unit for unit in ads.units.select_related("item", "task")}
    for row in rows:
        unit = units[row["id"]]
        assert {field: row[field] for field in FIELDS["ad_relevance"]} == unit.item.fields
        assert row["label"] == unit.label == label_of(unit)
        assert (row["language"], row["stage"]) == (unit.item.language, "LABELLED")
        said = [judgment["label"] for judgment in row["judgments"] if judgment["kind"] == "answer"]
        assert sorted(said) == sorted(unit.judgments.values_list("label", flat=True))
        assert len(said) == 3
    assert list(rows[0])[:3] == ["id", "language", "split"]


def test_beside_the_label_stands_what_the_model_of_dawid_and_skene_says(ads, out):
    export(ads, out)
    opinions = agreeing.second_opinions(agreeing.fitted(ads))
    units = {unit.item.key: unit.pk for unit in ads.units.select_related("item")}
    for row in rows_of(out):
        posterior = opinions[units[row["id"]]]
        assert row["posterior"] == pytest.approx(max(posterior.values()), abs=1e-6)
        assert posterior[row["dawid_skene"]] == max(posterior.values())


def test_parquet_has_the_same_rows_a_file_a_split(exported):
    out, _ = exported
    stored = {}
    for split in ("train", "dev", "test"):
        for row in pq.read_table(out / f"gold.{split}.parquet").to_pylist():
            assert row["split"] == split
            stored[row["id"]] = jsonlike(row)
    assert stored == {row["id"]: row for row in rows_of(out)}


def test_the_card_says_which_file_is_which_split(exported, tmp_path):
    out, _ = exported
    found = load_dataset(str(out), cache_dir=str(tmp_path / "cache"))
    counts = Counter(row["split"] for row in rows_of(out))
    assert {split: len(rows) for split, rows in found.items()} == {
        "train": counts["train"],
        "validation": counts["dev"],
        "test": counts["test"],
    }


def test_a_set_without_a_train_split_loads_as_one_of_dev_and_test(opened, answered, out, tmp_path):
    export(answered(opened("ad_relevance", languages=["de"])), out)
    found = load_dataset(str(out), cache_dir=str(tmp_path / "cache"))
    assert {split: len(rows) for split, rows in found.items()} == {"validation": 10, "test": 10}
    assert not (out / "gold.train.parquet").exists()
    assert "gold.train.parquet" not in card_of(out)[1]


def test_answers_that_a_manager_voided_are_there_and_marked(opened, crowd, manager, out):
    task = opened("ad_relevance", languages=["en"])
    work(task, crowd)
    void(crowd[3], task, by=manager, reason="sleeps")
    work(task, crowd[:3])
    manifest = export(task, out)
    voided = Judgment.objects.filter(voided_by=manager).count()
    told = [judgment for row in rows_of(out) for judgment in row["judgments"]]
    assert manifest["finished"]
    assert [judgment["voided_by"] for judgment in told].count("manager") == voided > 10
    assert manifest["people"]["voided_by_manager"] == voided
    assert all(sum(j["voided_at"] is None for j in row["judgments"]) == 3 for row in rows_of(out))
    assert f"{voided} answers were voided by a manager" in card_of(out)[1]


def test_what_somebody_took_back_is_marked_without_a_manager(opened, crowd, out):
    task = opened("ad_relevance", languages=["en"])
    judge(crowd[0], take(crowd[0], task).pk, Answer("Bad"))
    undo(crowd[0], task)
    work(task, crowd)
    export(task, out)
    [taken_back] = [j for row in rows_of(out) for j in row["judgments"] if j["voided_at"]]
    assert taken_back["voided_by"] is None


def test_hidden_gold_answers_and_what_was_said_of_them_are_in_no_file(opened, crowd, out):
    task = opened("ad_relevance", languages=["en"], gold_share=0.5)
    work(task, crowd)
    pots = task.units.filter(honeypot=True)
    assert Judgment.objects.filter(unit__in=pots).count() > 10
    manifest = export(task, out)
    told = everything_in(out)
    for answer in task.gold_answers.select_related("item"):
        assert f'"{answer.item.key}"' not in told
        assert json.dumps(answer.item.fields["title"], ensure_ascii=False)[1:-1] not in told
    assert "A secret explanation." not in told
    assert manifest["honeypots"]["asked"] == Judgment.objects.filter(unit__in=pots, kind="answer").count()
    assert manifest["gold_answers"] == {"practice": 1, "test": 0, "queue": 8}
    assert sum(len(row["judgments"]) for row in rows_of(out)) == Judgment.objects.exclude(unit__in=pots).count()


def test_voided_answers_to_hidden_gold_answers_do_not_count_in_the_accuracy(opened, judged, crowd, manager, out):
    task = opened("ad_relevance", languages=["en"], gold_share=0.5)
    pots = list(task.units.filter(honeypot=True))
    for pot in pots:
        judged(crowd[0], pot, pot.known_answer)
        judged(crowd[3], pot, "Good" if pot.known_answer == "Bad" else "Bad")
    assert export(task, out)["honeypots"]["accuracy"]["value"] == 0.5
    void(crowd[3], task, by=manager, reason="sleeps")
    found = export(task, out)["honeypots"]
    assert (found["asked"], found["right"]) == (len(pots), len(pots))


def test_nobodys_name_is_in_any_file(ads, crowd, manager, out):
    export(ads, out)
    told = everything_in(out)
    assert "qzx" not in told
    assert crowd[0].pseudonym in told


def test_copies_have_the_label_of_the_record_that_people_judged(opened, answered, out):
    task = answered(opened("ad_relevance", record("ad_relevance", "en", 3) | {"id": "twin"}))
    manifest = export(task, out)
    rows = {row["id"]: row for row in rows_of(out)}
    one, other = rows["twin"], rows["en3"]
    assert {one["judged_as"], other["judged_as"]} == {None, "twin" if one["judged_as"] is None else "en3"}
    for key in ("label", "split", "judgments", "dawid_skene", "posterior"):
        assert one[key] == other[key]
    assert manifest["counts"]["copies"] == 1


# --- what is left out


def test_what_has_no_label_is_in_a_file_of_its_own_with_the_reason(opened, crowd, out):
    task = opened("web_ranking", languages=["en"], on_conflict="DISCARDED", skip_limit=2)

    def says(place, unit):
        if number_of(unit) == 4:
            return None
        return GRADES[place] if number_of(unit) in (8, 9) else label_of(unit)

    work(task, crowd, says)
    manifest = export(task, out)
    left_out = {row["id"]: row for row in json_lines(out / "left_out.jsonl")}
    assert {key: row["left_out"] for key, row in left_out.items()} == {
        "en4": "skipped",
        "en8": "no_majority",
        "en9": "no_majority",
    }
    assert {row["split"] for row in left_out.values()} == {row["label"] for row in left_out.values()} == {None}
    assert manifest["counts"]["left_out"] == {"no_majority": 2, "skipped": 1}
    assert "left_out" not in rows_of(out)[0]
    assert "| the answers give no label | 2 |" in card_of(out)[1]
    assert "| too many people could not tell | 1 |" in card_of(out)[1]


def test_what_an_adjudicator_discarded_is_there_with_the_words(opened, answered, person, out):
    task = opened("web_ranking", on_conflict="ADJUDICATION")
    answered(task, lambda place, unit: GRADES[place] if unit.item.key == "en8" else label_of(unit))
    unit = task.units.get(item__key="en8")
    assert rows_left_out(task, out) == [("en8", "unfinished", None)]
    discard(person("judge", "en", adjudicates=True), unit.pk, "no page at all")
    assert rows_left_out(task, out) == [("en8", "adjudicator", "no page at all")]


def rows_left_out(task, out):
    mark = "" if export(task, out)["finished"] else ".unfinished"
    rows = json_lines(out / f"left_out{mark}.jsonl")
    return [(row["id"], row["left_out"], row.get("left_out_why")) for row in rows]


def test_the_examples_of_guidelines_are_left_out_however_they_are_set_there(opened, answered, out):
    example = {"id": "example", "language": "en", **EXAMPLE}
    near = example | {"id": "near", "description": "Book now, or never."}
    task = answered(opened("ad_relevance", example, near))
    export(task, out)
    assert {"example", "near"} <= {row["id"] for row in rows_of(out)}
    text = "> **Query:** cheap \\*Flights\\*\n>\n> _Flights for less_ | Book now,\n> fly later.\n\nThat is `Good`."
    task.guidelines.create(language="fr", major=1, minor=1, text=text)
    assert current(task, "fr").text == text
    assert rows_left_out(task, out) == [("example", "guidelines", None)]
    assert "near" in {row["id"] for row in rows_of(out)}


def test_a_short_record_or_one_that_ends_within_a_word_of_the_guidelines_is_no_example(opened, answered, out):
    short = {"id": "short", "language": "en", "query": "art", "title": "Fine art", "description": "of art"}
    within = {"id": "within", "language": "en", "query": "the art", "title": "of selling flowers", "description": "on"}
    chinese = {
        "id": "chinese",
        "language": "en",
        "query": "便宜的机票",
        "title": "廉价航班现在就预订稍后再",
        "description": "飞行吧",
    }
    task = answered(opened("ad_relevance", short, within, chinese, languages=["en"]))
    text = "The art of selling flowersonline is fine art.\n\n> 搜索便宜的机票:廉价航班,现在就预订,稍后再飞行吧。"
    task.guidelines.create(language="en", major=1, minor=1, text=text)
    assert rows_left_out(task, out) == [("chinese", "guidelines", None)]


def test_of_a_record_that_says_the_same_as_a_gold_answer_only_the_id_is_told_though_it_was_labelled(ads, out):
    unit = ads.units.get(item__key="fr3")
    ads.gold_answers.create(item=unit.item, label="Good", purpose="practice", explanation="So.")
    manifest = export(ads, out)
    assert json_lines(out / "left_out.jsonl") == [{"id": "fr3", "left_out": "gold_answer"}]
    assert '"fr3"' not in (out / "gold.jsonl").read_text()
    agreement = manifest["agreement"]
    assert (agreement["all"]["units"], agreement["languages"]["fr"]["units"]) == (3 * ROWS - 1, ROWS - 1)


def test_an_unfinished_set_says_so_in_names_manifest_and_card(opened, crowd, out, capsys):
    task = opened("qa_match")
    judge(crowd[0], take(crowd[0], task).pk, Answer("1"))
    capsys.readouterr()
    call_command("export_gold", "qa_match", out=out)
    told = capsys.readouterr()
    assert "Unfinished: 60 records still wait for people." in told.err
    assert told.out == f"0 of 60 records written to {out}, in 0 labels.\n"
    assert set(files(out)) == {
        "gold.unfinished.jsonl",
        "left_out.unfinished.jsonl",
        "manifest.json",
        "README.md",
    }
    assert "**Unfinished.** 60 of 60 records still wait for people" in card_of(out)[1]
    for unit in task.units.filter(honeypot=False, item__language="en")[:15]:
        decide(unit, ["1", "1", "0"])
    assert set(export(task, out)["published"]["files"]) >= {
        "xglue.qam.en.unfinished.train",
        "xglue.qg.en.unfinished.src.train",
    }


# --- splits


def test_splits_follow_the_shares_and_tear_no_query_apart(ads, out):
    manifest = export(ads, out, splits="train=0.5,dev=0.1,test=0.4", seed="42")
    counts = Counter((row["language"], row["split"]) for row in rows_of(out))
    assert counts == {
        ("en", "train"): 10, ("en", "dev"): 2, ("en", "test"): 8,
        ("de", "dev"): 4, ("de", "test"): 16, ("fr", "dev"): 4, ("fr", "test"): 16,
    }  # fmt: skip
    splits = {}
    for row in rows_of(out):
        assert splits.setdefault(row["query"], row["split"]) == row["split"]
    assert manifest["splits"] == {"seed": "42", "shares": "train=0.5,dev=0.1,test=0.4", "off": {}}
    assert manifest["counts"]["by_split"] == {
        f"{language}.{split}": n for (language, split), n in sorted(counts.items())
    }
    assert "| en | English | 10 | 2 | 8 |" in card_of(out)[1]


def test_a_split_far_from_its_share_is_told_of_with_the_reason(opened, answered, out, capsys):
    shared = [
        record("ad_relevance", language, number) | {"id": f"{language}{number}", "query": f"query {number}"}
        for language in ("en", "de")
        for number in range(100, 130)
    ]
    answered(opened("ad_relevance", *shared, languages=["de", "en"]))
    call_command("export_gold", "ad_relevance", out=out)
    told = capsys.readouterr().err
    assert "Note: In English, train has " in told
    assert " of the records and not 80.0%, " in told
    sentence = "30 of 50 belong together with records in other languages, and only en is trained on."
    assert told.endswith(f"{sentence}\n")
    assert sentence in card_of(out)[1]
    manifest = json.loads((out / "manifest.json").read_text())
    assert list(manifest["splits"]["off"]) == ["en"]


def test_the_same_seed_gives_the_same_bytes_and_another_other_splits(ads, tmp_path):
    for name, seed in (("one", ""), ("two", ""), ("other", "8")):
        export(ads, tmp_path / name, seed=seed)
    assert files(tmp_path / "one") == files(tmp_path / "two")
    assert files(tmp_path / "one")["gold.jsonl"] != files(tmp_path / "other")["gold.jsonl"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--splits", "train=0.8"], "The shares in 'train=0.8' make 0.8 together; they must make 1."),
        (
            ["--splits", "train=1"],
            "Only en has a train split, so nothing is left for the rows in de; give dev or test a share.",
        ),
    ],
)
def test_shares_that_cannot_be_are_refused_with_a_sentence(ads, out, options, sentence):
    with pytest.raises(CommandError) as refused:
        call_command("export_gold", "ad_relevance", "--out", str(out), *options)
    assert str(refused.value) == sentence
    assert not out.exists()


def test_a_set_of_posts_has_no_splits(make_task, out):
    make_task([("de", "de", "de")])
    with pytest.raises(CommandError) as refused:
        call_command("export_gold", "task", "--out", str(out), "--seed", "1")
    assert str(refused.value) == "--splits and --seed are for sets of records; one of posts is all for measuring."


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


def test_pages_of_one_query_stand_together_in_every_file(opened, answered, out):
    task = answered(opened("web_ranking"))
    export(task, out)
    for path in [*out.glob("xglue.wpr.*.dev"), *out.glob("xglue.wpr.*.test"), *out.glob("xglue.wpr.en.train")]:
        queries = [cells[0] for cells in published_reader(path)]
        stretches = [query for query, before in zip(queries, [None, *queries], strict=False) if query != before]
        assert len(stretches) == len(set(queries))
        assert len(queries) == 2 * len(stretches)


def test_questions_to_be_generated_come_from_confirmed_pairs(opened, answered, out):
    task = answered(opened("qa_match"))
    export(task, out)
    confirmed = [row for row in rows_of(out) if row["label"] == "1"]
    assert 20 < len(confirmed) < 40
    pairs = []
    for path in out.glob("xglue.qg.*.src.*"):
        target = out / path.name.replace(".src.", ".tgt.")
        with path.open(encoding="utf-8-sig") as src, target.open(encoding="utf-8-sig") as tgt:
            pairs += zip(src.read().split("\n")[:-1], tgt.read().split("\n")[:-1], strict=True)
    assert sorted(pairs) == sorted((as_written(row["passage"]), as_written(row["question"])) for row in confirmed)
    assert (out / "xglue.qg.en.tgt.test").exists()


def test_where_the_text_may_not_leave_ids_and_labels_are_written_and_no_published_files(ads, out, capsys):
    write_manifest("ad_relevance", replace(manifest_of("ad_relevance"), text_may_leave=False))
    call_command("export_gold", "ad_relevance", out=out)
    told = capsys.readouterr().err
    refusal = "XGLUE's files are the texts of the records, which the licence keeps here, so they are not written."
    assert refusal in told
    assert refusal in card_of(out)[1]
    assert not list(out.glob("xglue.*"))
    assert len(rows_of(out)) == 60
    said = everything_in(out)
    for unit in ads.units.select_related("item"):
        for value in unit.item.fields.values():
            assert json.dumps(value, ensure_ascii=False)[1:-1] not in said
    assert "a comment" not in said
    for field in (*FIELDS["ad_relevance"], "author", "url"):
        assert field not in rows_of(out)[0]
        assert field not in pq.read_schema(out / "gold.test.parquet").names
    assert {"id", "language", "split", "label"} <= set(rows_of(out)[0])


def test_a_record_too_long_for_the_published_readers_is_told_and_all_else_is_written(opened, answered, out, capsys):
    answered(opened("qa_match", {"id": "long", "language": "en", "question": "how long?", "passage": "so " * 50_000}))
    call_command("export_gold", "qa_match", out=out)
    assert "XGLUE's files are not written: xglue.qam.en." in capsys.readouterr().err
    assert not list(out.glob("xglue.*"))
    assert len(rows_of(out)) == 61
    csv.field_size_limit(131_072)


# --- manifest and card


def test_manifest_and_card_say_how_people_were_chosen_and_how_far_they_agree(ads, out):
    manifest = export(ads, out)
    report = agreeing.report(ads)
    assert manifest["people"]["annotators"] == 4
    assert manifest["people"]["answers"] == 180
    assert manifest["design"] == "records"
    for language in LANGUAGES:
        assert manifest["agreement"]["languages"][language]["nominal"] == report["languages"][language]["nominal"]
    header, text = card_of(out)
    assert header["language"] == ["de", "en", "fr"]
    assert header["annotations_creators"] == ["crowdsourced"]
    assert "4 people who read the language gave 180 answers" in text
    assert "3 were asked of each record" in text
    assert "Nobody was tested before they began." in text
    assert "| Good | Good |" in text
    for language, name in zip(LANGUAGES, ("English", "German", "French"), strict=True):
        alpha = report["languages"][language]["nominal"]
        assert f"| {language} | {name} | 20 | " in text
        assert f"{alpha['value']:.3f} [{alpha['low']:.3f}, {alpha['high']:.3f}]" in text
    assert "| all |" in text


def test_the_manifest_has_the_digest_of_the_file_that_the_kind_was_made_of(exported):
    _, manifest = exported
    assert manifest["task"]["kind_sha256"] == sha256(KINDS["ad_relevance"].source.encode()).hexdigest()
    assert manifest["task"]["languages"] == sorted(LANGUAGES)


def test_where_others_are_asked_later_the_card_says_which_answers_agreement_is_of(opened, answered, out):
    task = answered(opened("ad_relevance", languages=["en"], stop_early=True))
    export(task, out)
    words = "Of each record the first 2 answers count here, since more are asked for only where these do not agree."
    assert words in card_of(out)[1]
    task.stop_early = False
    task.save()
    export(task, out)
    assert words[:15] not in card_of(out)[1]


def test_the_card_says_how_many_passed_the_test_and_how_many_were_let_in(ads, crowd, manager, out):
    ads.test_items = 8
    ads.save()
    now, text = timezone.now(), current(ads, "en")
    for person in crowd[:2]:
        for language in ("en", "de"):
            times = {"started_at": now, "finished_at": now, "right": 8, "passed": True}
            fields = {"task": ads, "language": language, "annotator": person}
            trial = Trial.objects.create(kind="test", number=1, guidelines=text, **times, **fields)
            Qualification.objects.create(trial=trial, major=text.major, at=now, **fields)
    for person in crowd[1:]:
        Qualification.objects.create(
            annotator=person, task=ads, language="fr", major=text.major, at=now, granted_by=manager
        )
    assert export(ads, out)["people"]["qualified"] == {"by_test": 2, "let_in": 2}
    words = " ".join(card_of(out)[1].split())
    assert (
        "4 tests were taken and 4 passed: 2 people qualified by the test, and a manager let in 2 without it." in words
    )


def test_a_set_in_which_nobody_has_said_anything_is_well_formed(opened, out):
    manifest = export(opened("ad_relevance"), out)
    assert manifest["agreement"] is None
    assert manifest["counts"]["labelled"] == 0
    header, text = card_of(out)
    assert "configs" not in header
    assert "No record has two answers" in text


def test_a_field_named_like_a_column_is_refused(ads, out):
    ads.kind_file = ads.kind_file.replace('"description"]', '"description", "stage"]')
    assert ads.kind.fields == ("query", "title", "description", "stage")
    with pytest.raises(ExportError) as refused:
        export(ads, out)
    assert str(refused.value) == (
        "A field of the records is called 'stage', as is a column of every export; give it another name in the kind "
        "ad_relevance and its corpus."
    )
    assert not out.exists()


def test_imported_judgments_are_exported_with_their_ids(db, tmp_path, out):
    rows = [("1", "ann", "yes"), ("1", "bob", "yes"), ("1", "cec", "no"), ("2", "ann", "no"), ("2", "bob", "yes")]
    path = tmp_path / "judgments.tsv"
    path.write_text("task\tworker\tlabel\n" + "".join("\t".join(row) + "\n" for row in rows))
    call_command("import_judgments", "elsewhere", str(path))
    call_command("export_gold", "elsewhere", out=out)
    [row] = rows_of(out)
    assert (row["id"], row["label"], len(row["judgments"])) == ("1", "yes", 3)
    [other] = json_lines(out / "left_out.jsonl")
    assert (other["id"], other["left_out"]) == ("2", "no_majority")
    assert "ann" not in {judgment["annotator"] for judgment in row["judgments"]}
    header, card = card_of(out)
    assert header["license_name"] == "not stated"
    words = " ".join(card.split())
    assert "5 judgments made elsewhere by 3 people, 2 to 3 to an item; the label is what more than half gave." in words
    words = words.replace("The intervals (95%) are over records drawn anew.", "")
    for untrue in (
        "drawn",
        "Drawn",
        "who read the language",
        "none of them seeing",
        "tested",
        "were asked",
        "licence keeps",
    ):
        assert untrue not in words


def test_predictions_for_the_exported_test_rows_are_measured(opened, answered, out, tmp_path, capsys):
    export(answered(opened("web_ranking")), out)
    folder = tmp_path / "perfect" / "WPR"
    folder.mkdir(parents=True)
    for path in out.glob("xglue.wpr.*.test.labels"):
        (folder / f"{path.name.split('.')[2]}.prediction").write_bytes(path.read_bytes())
    capsys.readouterr()
    call_command("evaluate", "--gold", str(out), "--predictions", str(folder.parent), "--json")
    found = json.loads(capsys.readouterr().out)["wpr"]
    assert [row["language"] for row in found["languages"]] == sorted(LANGUAGES)
    for row in found["languages"]:
        assert row["estimate"]["value"] == 1 - row["irrelevant"] / row["queries"]


def test_an_exported_set_in_which_any_file_was_edited_is_not_measured(exported, out, tmp_path):
    copytree(exported[0], out)
    folder = tmp_path / "mine" / "QADSM"
    folder.mkdir(parents=True)
    for path in out.glob("xglue.qadsm.*.test.labels"):
        (folder / f"{path.name.split('.')[2]}.prediction").write_bytes(path.read_bytes())
    arguments = ("evaluate", "--gold", str(out), "--predictions", str(folder.parent), "--json")
    call_command(*arguments)
    gold = out / "gold.jsonl"
    gold.write_text(gold.read_text().replace('"label": "Good"', '"label": "Bad"', 1))
    with pytest.raises(CommandError) as refused:
        call_command(*arguments)
    assert str(refused.value) == f"{gold} is not as it was written. Restore it, or export the set again."
