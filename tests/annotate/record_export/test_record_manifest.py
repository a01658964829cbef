"""The manifest and the card of an exported set of records, and predictions measured on it."""

import json
import re
from hashlib import sha256

import pytest
from django.utils import timezone

from annotate.actions.commands import call_command
from annotate.goldsets.exporter import ExportError, export
from annotate.kinds import KINDS
from annotate.models import Qualification, Trial
from annotate.quality import agreement_statistics as agreeing
from annotate.quality.guideline_versions import current
from tests.annotate.goldsets.set_contents import card_of, json_lines
from tests.annotate.record_export.records import LANGUAGES, rows_of


def test_manifest_and_card_name_the_kind_and_say_how_people_were_chosen_and_how_far_they_agree(ads, out):
    manifest = export(ads, out)
    assert manifest["task"]["kind_sha256"] == sha256(KINDS["ad_relevance"].source.encode()).hexdigest()
    assert manifest["task"]["languages"] == sorted(LANGUAGES)
    assert (manifest["people"]["annotators"], manifest["people"]["answers"]) == (4, 180)
    assert manifest["design"] == "records"
    header, text = card_of(out)
    assert header["language"] == ["de", "en", "fr"]
    assert header["annotations_creators"] == ["crowdsourced"]
    for words in (
        "4 people who read the language gave 180 answers",
        "3 were asked of each record",
        "Nobody was tested before they began.",
        "| Good | Good |",
        "| all |",
    ):
        assert words in text
    report = agreeing.report(ads)
    for language, name in zip(LANGUAGES, ("English", "German", "French"), strict=True):
        alpha = report["languages"][language]["nominal"]
        assert manifest["agreement"]["languages"][language]["nominal"] == alpha
        assert f"| {language} | {name} | 20 | " in text
        assert f"{alpha['value']:.3f} [{alpha['low']:.3f}, {alpha['high']:.3f}]" in text


def test_where_others_are_asked_later_the_card_says_which_answers_agreement_is_of(opened, answered, out):
    task = answered(opened("ad_relevance", languages=["en"], stop_early=True))
    export(task, out)
    words = "For each record, the first 2 answers count here, since more are asked for only if these do not agree."
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


def test_a_field_named_like_a_column_is_refused(ads, out):
    ads.kind_file = ads.kind_file.replace('"description"]', '"description", "stage"]')
    assert ads.kind.fields == ("query", "title", "description", "stage")
    with pytest.raises(ExportError) as refused:
        export(ads, out)
    assert str(refused.value).startswith(
        "The records have a field named 'stage', but every export already has a column"
    )
    assert not out.exists()


def test_imported_judgments_are_exported_with_their_ids(db, tmp_path, out):
    path = tmp_path / "judgments.tsv"
    rows = ("task\tworker\tlabel", "1 ann yes", "1 bob yes", "1 cec no", "2 ann no", "2 bob yes")
    path.write_text("\n".join(rows).replace(" ", "\t"))
    call_command("import_judgments", "elsewhere", str(path))
    call_command("export_gold", "elsewhere", out=out)
    [row] = rows_of(out)
    assert (row["id"], row["label"], len(row["judgments"])) == ("1", "yes", 3)
    [other] = json_lines(out / "left_out.jsonl")
    assert (other["id"], other["left_out"]) == ("2", "no_majority")
    assert "ann" not in {judgment["annotator"] for judgment in row["judgments"]}
    header, card = card_of(out)
    assert header["license_name"] == "not stated"
    words = " ".join(card.split()).replace("The intervals (95%) are over records drawn anew.", "")
    assert "5 judgments made elsewhere by 3 people, 2 to 3 to an item. The label is the answer of more" in words
    untrue = "[Dd]rawn|who read the language|saw the others|tested|were asked|licence keeps"
    assert not re.search(untrue, words)


def test_predictions_for_the_exported_test_rows_are_measured(opened, answered, out, tmp_path, capsys):
    export(answered(opened("web_ranking")), out)
    folder = tmp_path / "perfect" / "WPR"
    folder.mkdir(parents=True)
    for path in out.glob("xglue.wpr.*.test.labels"):
        (folder / f"{path.name.split('.')[2]}.prediction").write_bytes(path.read_bytes())
    capsys.readouterr()
    call_command("evaluate", "--gold", str(out), str(folder.parent), "--json")
    rows = [row for row in json.loads(capsys.readouterr().out)["rows"] if "language" in row["of"]]
    assert [row["of"]["language"] for row in rows] == sorted(LANGUAGES)
    for row in rows:
        irrelevant = re.search(r"without a relevant page, counted as 0: (\d+)", row["note"])
        assert row["value"] == 1 - (int(irrelevant[1]) if irrelevant else 0) / row["units"]
