"""The rows of an exported set of records, and what is left out of it."""

import json
from collections import Counter
from itertools import combinations

import pyarrow.parquet as pq
import pytest
from datasets import load_dataset

from annotate.actions.registry import call_command
from annotate.goldsets.exporter import export
from annotate.goldsets.set_documents import STATEMENTS
from annotate.kinds import Answer
from annotate.models import Judgment
from annotate.quality import agreement_statistics as agreeing
from annotate.quality import answer_models
from annotate.quality.guideline_versions import current
from annotate.work.adjudication import discard
from annotate.work.answer_changes import undo
from annotate.work.interventions import void
from annotate.work.judgments import judge
from annotate.work.moves import decide
from annotate.work.queue import take
from corpora.models import Corpus
from tests.annotate.acts import open_records
from tests.annotate.goldsets.set_contents import card_of, everything_in, files, json_lines, jsonlike
from tests.annotate.record_export.records import (
    EXAMPLE,
    FIELDS,
    GRADES,
    ROWS,
    label_of,
    number_of,
    record,
    rows_of,
    work,
)

# --- rows


def test_a_row_has_the_record_the_label_of_most_the_vote_shares_the_posteriors_and_the_agreement(ads, crowd, out):
    manifest = export(ads, out)
    rows = rows_of(out)
    assert len(rows) == 3 * ROWS == manifest["counts"]["labelled"] == manifest["counts"]["records"]
    assert list(rows[0])[:3] == ["id", "language", "split"]
    units = {unit.item.key: unit for unit in ads.units.select_related("item", "task")}
    fit = answer_models.fit_answers(ads)
    for row in rows:
        unit = units[row["id"]]
        assert {field: row[field] for field in FIELDS["ad_relevance"]} == unit.item.fields
        assert row["label"] == unit.label == label_of(unit)
        assert (row["language"], row["stage"]) == (unit.item.language, "LABELLED")
        answers = [judgment["label"] for judgment in row["judgments"] if judgment["kind"] == "answer"]
        assert sorted(answers) == sorted(unit.judgments.values_list("label", flat=True))
        assert len(answers) == 3
        soft = {one["label"]: one for one in row["soft_labels"]}
        assert list(soft) == [label for label in ads.labels if label in soft]
        assert {label: one["votes"] for label, one in soft.items() if one["votes"]} == pytest.approx(
            {label: number / 3 for label, number in Counter(answers).items()}, abs=1e-6
        )
        posterior = dict(zip(fit.labels, *answer_models.label_posteriors(fit, [unit.pk]), strict=True))
        assert {label: one["posterior"] for label, one in soft.items()} == pytest.approx(posterior, abs=1e-6)
        assert row["posterior"] == pytest.approx(max(posterior.values()), abs=1e-6)
        assert posterior[row["dawid_skene"]] == max(posterior.values())
        same = [one == other for one, other in combinations(answers, 2)]
        assert row["agreement"] == pytest.approx(sum(same) / len(same), abs=1e-6)
    assert len({row["agreement"] for row in rows}) > 1
    observed = agreeing.report(ads)["all"]["observed"]["value"]
    assert sum(row["agreement"] for row in rows) / len(rows) == pytest.approx(observed, abs=1e-6)
    content = everything_in(out)
    assert "qzx" not in content  # nobody's name
    assert crowd[0].pseudonym in content


def test_parquet_has_the_same_rows_a_file_a_split(exported):
    out, _ = exported
    stored = {}
    for split in ("train", "dev", "test"):
        for row in pq.read_table(out / f"gold.{split}.parquet").to_pylist():
            assert row["split"] == split
            stored[row["id"]] = jsonlike(row)
    assert stored == {row["id"]: row for row in rows_of(out)}


def test_a_set_without_a_train_split_loads_as_one_of_dev_and_test(opened, answered, out, tmp_path):
    export(answered(opened("ad_relevance", languages=["de"])), out)
    loaded = load_dataset(str(out), cache_dir=str(tmp_path / "cache"))
    assert {split: len(rows) for split, rows in loaded.items()} == {"validation": 10, "test": 10}
    assert not (out / "gold.train.parquet").exists()
    assert "gold.train.parquet" not in card_of(out)[1]


def test_answers_that_a_manager_voided_are_there_and_marked_unlike_those_taken_back(opened, crowd, manager, out):
    task = opened("ad_relevance", languages=["en"])
    judge(crowd[0], take(crowd[0], task).pk, Answer("Bad"))
    undo(crowd[0], task)
    work(task, crowd)
    void(crowd[3], task, by=manager, reason="sleeps")
    work(task, crowd[:3])
    manifest = export(task, out)
    voided = Judgment.objects.filter(voided_by=manager).count()
    judgments = [judgment for row in rows_of(out) for judgment in row["judgments"]]
    assert manifest["finished"]
    assert [judgment["voided_by"] for judgment in judgments].count("manager") == voided > 10
    assert [judgment["voided_by"] for judgment in judgments if judgment["voided_at"]].count(None) == 1
    assert manifest["people"]["voided_by_manager"] == voided
    assert all(sum(j["voided_at"] is None for j in row["judgments"]) == 3 for row in rows_of(out))
    assert f"{voided} answers that a manager voided are in the files" in card_of(out)[1]


def test_hidden_gold_answers_and_what_was_said_of_them_are_in_no_file(opened, crowd, out):
    task = opened("ad_relevance", languages=["en"], gold_share=0.5)
    work(task, crowd)
    pots = task.units.filter(honeypot=True)
    assert Judgment.objects.filter(unit__in=pots).count() > 10
    manifest = export(task, out)
    text = everything_in(out)
    for answer in task.gold_answers.select_related("item"):
        assert f'"{answer.item.key}"' not in text
        assert json.dumps(answer.item.fields["title"], ensure_ascii=False)[1:-1] not in text
    assert "A secret explanation." not in text
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
    counts = export(task, out)["honeypots"]
    assert (counts["asked"], counts["right"]) == (len(pots), len(pots))


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
    assert "| annotators did not agree on a label | 2 |" in card_of(out)[1]
    assert "| too many annotators skipped it | 1 |" in card_of(out)[1]


def test_what_an_adjudicator_discarded_is_there_with_the_words(opened, answered, person, out):
    task = opened("web_ranking", on_conflict="ADJUDICATION")
    answered(task, lambda place, unit: GRADES[place] if unit.item.key == "en8" else label_of(unit))
    unit = task.units.get(item__key="en8")
    # Nobody is notified while it waits.
    assert (rows_left_out(task, out), export(task, out)["counts"]["left_out"]) == ([], {"unfinished": 1})
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
    records = [
        dict(zip(("id", "language", "query", "title", "description"), values, strict=True))
        for values in (
            ("short", "en", "art", "Fine art", "of art"),
            ("within", "en", "the art", "of selling flowers", "on"),
            ("chinese", "en", "便宜的机票", "廉价航班现在就预订稍后再", "飞行吧"),
        )
    ]
    task = answered(opened("ad_relevance", *records, languages=["en"]))
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


def test_an_unfinished_set_says_so_in_names_manifest_and_card(opened, out, capsys):
    task = opened("qa_match")
    capsys.readouterr()
    call_command("export_gold", "qa_match", out=out)
    printed = capsys.readouterr()
    assert "unfinished: 60 records still need answers or decisions." in printed.err
    assert printed.out == f"0 of 60 records written to {out}.\n"
    parquet = "gold.train.unfinished.parquet"
    assert set(files(out)) == {"gold.unfinished.jsonl", parquet, "manifest.json", "README.md", *STATEMENTS}
    header, text = card_of(out)
    assert "<summary>Unfinished: 60 of 60 records still wait for people" in text
    assert "No record has two answers" in text
    assert header["configs"][0]["data_files"] == [{"split": "train", "path": parquet}]
    for unit in task.units.filter(honeypot=False, item__language="en")[:15]:
        decide(unit, [Judgment(label=label) for label in ("1", "1", "0")])
    published = export(task, out)["published"]["files"]
    assert {"xglue.qam.en.unfinished.train", "xglue.qg.en.unfinished.src.train"} <= set(published)


def test_records_of_no_known_language_are_answered_by_readers_of_their_queue_and_exported(
    tmp_path, person, client, manager, out
):
    path = tmp_path / "notes.jsonl"
    rows = [{"id": str(number), "query": f"??? {number}", "title": "!", "description": "ok"} for number in range(2)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    texts = {"licence": "CC BY 4.0", "source": "made for a test", "verbosity": 0}
    call_command("import_corpus", "notes", str(path), fields="query title description", language="und", **texts)
    task = open_records(
        "notes",
        Corpus.objects.get(),
        "ad_relevance",
        ["und"],
        size=None,
        seed="7",
        test_items=0,
        redundancy=1,
        gold_share=0,
        gold=(),
    ).task
    reader, other = person("ann", "en"), person("bea", "de")
    client.force_login(other.user)
    assert task.title not in client.get("/").text
    client.force_login(reader.user)
    assert task.title in client.get("/").text
    page = client.post("/tasks/notes/start/", {"read": "yes"}, follow=True)
    for _ in rows:
        assert "??? " in page.text
        lease = reader.leases.get(closed_at=None)
        page = client.post("/tasks/notes/judge/", {"lease": lease.pk, "answer": "Good"}, follow=True)
    client.force_login(manager)
    for page in ("", "items/", "people/", "quality/", "agreement/?show=1", "guidelines/", "settings/"):
        assert client.get(f"/manage/tasks/notes/{page}").status_code == 200
    manifest = export(task, out)
    assert manifest["counts"]["labelled"] == 2
    assert [(row["language"], row["label"]) for row in rows_of(out)] == [("und", "Good")] * 2
    assert len(load_dataset(str(out), cache_dir=str(tmp_path / "cache"))) > 0
