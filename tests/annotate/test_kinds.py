"""A kind of question is one file: this adds one in its own folder, and touches nothing else."""

import hashlib
import json

import pytest
from django.core.management import CommandError

from annotate.actions.commands import call_command
from annotate.core import stages
from annotate.kinds import KINDS
from annotate.models import Task
from tests.annotate.hands import FRENCH, said


def test_later_edits_of_the_file_change_nothing_in_a_task(ads, tmp_path):
    (tmp_path / "ad_fit.toml").write_text(AD_FIT.replace('"It fits"', '"Yes"'), encoding="utf-8")
    task = Task.objects.get()
    assert task.kind.name("fits") == "It fits"
    assert task.kind_file == AD_FIT


def test_labels_are_called_by_their_names():
    for slug, names in (
        ("web_ranking", {"4": "Perfect", "3": "Excellent", "2": "Good", "1": "Fair", "0": "Bad"}),
        ("qa_match", {"1": "Yes", "0": "No"}),
        ("ad_relevance", {"Good": "Good", "Bad": "Bad"}),
        ("language", {"de": "German", "und": "Undefined"}),
        ("verify", {"de": "German", "not-de": "Not German", "und": "Undefined"}),
        # as they came, though they may look like languages
        ("imported", {"de": "de", "und": "und", "7": "7"}),
    ):
        assert {label: KINDS[slug].name(label) for label in names} == names


# --- a kind from a file alone: a browser, the API, an export, a measure

AD_FIT = """
title = "Would they click?"
form = "choice"
apart = ["query"]

[[layout]]
style = "typed"
fields = ["query"]

[[layout]]
style = "found ad"
fields = ["title", "description"]

[[answers]]
code = "fits"
name = { en = "It fits", fr = "Oui" }
meaning = { en = "they could want it", fr = "ils pourraient le vouloir" }
key = "a"

[[answers]]
code = "not"
name = { en = "It does not", fr = "Non" }
key = "l"

[options]
test_items = 0
gold_share = 0
stop_early = true

[guidelines]
en = '''
# Ads

Read the **query** first.
'''

[publishes]
xglue = "qadsm"
"""
ADS = [
    {"id": f"{language}{n}", "language": language, "query": f"query {n}", "title": f"ad {n}", "description": "Buy."}
    for language in ("en", "fr")
    for n in range(1, 5)
]


@pytest.fixture
def ads(db, tmp_path):
    """A task opened with a file that nothing else knows."""
    kind, rows = tmp_path / "ad_fit.toml", tmp_path / "ads.jsonl"
    kind.write_text(AD_FIT, encoding="utf-8")
    rows.write_text("".join(json.dumps(row) + "\n" for row in ADS), encoding="utf-8")
    options = {"fields": "query title description", "licence": "CC0-1.0", "text_may_leave": True, "verbosity": 0}
    call_command("import_corpus", "ads", str(rows), **options)
    call_command("open_task", "fit", "--kind", str(kind), "--corpus", "ads", "--seed", "1", verbosity=0)
    return Task.objects.get(name="fit")


def expected(key):
    return "not" if key.endswith("3") else "fits"


def label_by_api(client, annotator, task):
    client.force_login(annotator.user)
    answers = client.get(f"/api/v1/tasks/{task.name}/").json()["answers"]
    assert {answer["label"]: (answer["names"], answer["autonym"]) for answer in answers} == {
        "fits": ({"fr": "Oui", "en": "It fits"}, ""),
        "not": ({"fr": "Non", "en": "It does not"}, ""),
    }
    while lease := client.post(f"/api/v1/tasks/{task.name}/next/").json()["lease"]:
        label = expected(lease["fields"]["query"])
        sent = client.post(f"/api/v1/leases/{lease['id']}/judge/", {"label": label}, content_type="application/json")
        assert sent.status_code == 200


def test_a_kind_of_a_file_is_labelled_by_keys_and_by_api_exported_and_measured(
    ads, at_work, person, client, tmp_path, capsys
):
    ann, bea = person("ann", "fr"), person("bea", "en fr")
    cem = person("cem", "en")
    hands = at_work(ads, ann, FRENCH)
    assert hands.page.inner_text("#asked") == "Would they click?"
    # the words of the record's language, and what this keyboard prints on the keys
    buttons = hands.page.locator(".options button")
    assert [text.split("\n") for text in buttons.all_inner_texts()] == [
        ["A", "Oui", "ils pourraient le vouloir"],
        ["L", "Non"],
    ]
    assert buttons.first.get_attribute("lang") == "fr"
    for _ in range(4):
        hands.press_and_wait("KeyL" if hands.page.inner_text(".typed dd").endswith("3") else "KeyA")
    assert sorted(said(ann)) == [("answer", "fits", "")] * 3 + [("answer", "not", "")]
    assert hands.page.inner_text(".last") in ("Last: Oui", "Last: Non")

    label_by_api(client, bea, ads)
    label_by_api(client, cem, ads)
    assert dict(ads.units.values_list("item__key", "label")) == {row["id"]: expected(row["id"]) for row in ADS}
    assert set(ads.units.values_list("stage", flat=True)) == {stages.LABELLED}

    out = tmp_path / "out"
    call_command("export_gold", "fit", out=out, splits="test=1", verbosity=0)
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["task"]["kind_sha256"] == hashlib.sha256(AD_FIT.encode()).hexdigest()
    assert "It fits" in (out / "README.md").read_text(encoding="utf-8")
    assert (out / "xglue.qadsm.fr.test").read_text(encoding="utf-8").startswith("query ")

    truth = tmp_path / "truth.csv"
    known = {row["id"]: expected(row["id"]) for row in ADS} | {"en1": "not"}
    truth.write_text("task,label\n" + "".join(f"{key},{label}\n" for key, label in known.items()), encoding="utf-8")
    capsys.readouterr()
    call_command("agreement", "fit", gold=truth, json=True)
    whole = json.loads(capsys.readouterr().out)["all"]
    assert (whole["units_of_two"], whole["nominal"]["value"]) == (8, 1.0)
    assert whole["gold"]["majority"]["value"] == 7 / 8

    guessed = tmp_path / "mine" / "QADSM"
    guessed.mkdir(parents=True)
    for language in ("en", "fr"):
        rows = (out / f"xglue.qadsm.{language}.test").read_text(encoding="utf-8").splitlines()
        (guessed / f"{language}.prediction").write_text("fits\n" * len(rows), encoding="utf-8")
    call_command("evaluate", guessed.parent, gold=[out], out=tmp_path / "report", verbosity=0)
    report = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    assert [row["value"] for row in report["rows"] if row["measure"] == "accuracy"] == [0.75, 0.75, 0.75]


def test_a_wrong_file_opens_no_task_and_is_told_in_one_sentence(tmp_path, db):
    path = tmp_path / "ad_fit.toml"
    for text, sentence in (
        (AD_FIT.replace("style", "stile", 1), f"{path}, line 7: 'stile' is not a key of [[layout]]; the nearest is s"),
        ('title = "Made elsewhere"\nform = "choice"\n', f"{path} has no [[layout]], so nobody can be asked"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(CommandError) as refused:
            call_command("open_task", "t", "--kind", path, "--corpus", "ads", "--seed", "1")
        assert str(refused.value).startswith(sentence)
    assert not Task.objects.exists()


@pytest.mark.parametrize(
    ("kind", "share", "applies"), [("topic", 0.0, False), ("topic", 0.1, True), ("language", 0.0, True)]
)
def test_an_audit_of_declared_labels_applies_where_some_are_chosen_and_that_of_agreement_always(kind, share, applies):
    task = Task(kind_slug=kind, options={"audit_share": share, "audit_least": 0})
    assert any(control.look_at == "audit" for control in task.controls) is applies
