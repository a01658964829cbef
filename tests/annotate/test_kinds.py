"""A kind of question is one file: this adds one in its own folder, and touches nothing else."""

import hashlib
import json

import pytest
from django.core.management import CommandError

from annotate.actions.commands import call_command
from annotate.core import stages
from annotate.kinds import KINDS
from annotate.models import Task
from annotate.work.queue import open_lease
from tests.annotate.hands import FRENCH, said

REVIEW_MOOD = """
title = "How content is the reviewer?"
form = "grades"
apart = ["product"]

[[layout]]
style = "question"
fields = ["product"]

[[layout]]
style = "passage"
fields = ["review"]

[[answers]]
code = "+"
name = "Content"
meaning = "would buy it again"

[[answers]]
code = "0"
name = "Neither"
meaning = "says good and bad"

[[answers]]
code = "-"
name = "Annoyed"
meaning = "would not"

[options]
test_items = 0
gold_share = 0

[guidelines]
en = "review_mood.en.md"
"""
REVIEWS = [
    {"id": "r1", "language": "en", "product": "A kettle", "review": 'Boils\tfast, "looks" good 👍\nand is quiet.'},
    {"id": "r2", "language": "en", "product": "A lamp", "review": "Broke after a week."},
    {"id": "r3", "language": "ar", "product": "مصباح", "review": "جيد"},
]


@pytest.fixture
def review_mood(tmp_path):
    """The file of the kind, with its guidelines beside it."""
    path = tmp_path / "review_mood.toml"
    path.write_text(REVIEW_MOOD, encoding="utf-8")
    path.with_name("review_mood.en.md").write_text("Read the review.", encoding="utf-8")
    return path


@pytest.fixture
def task(review_mood, db, tmp_path):
    file = tmp_path / "reviews.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in REVIEWS), encoding="utf-8")
    options = {"fields": "product review", "licence": "CC0-1.0", "text_may_leave": True, "verbosity": 0}
    call_command("import_corpus", "reviews", str(file), **options)
    more = ["--corpus", "reviews", "--languages", "en", "--seed", "1"]
    call_command("open_task", "moods", "--kind", str(review_mood), *more)
    return Task.objects.get(name="moods")


def test_it_is_labelled_by_page_and_by_api_and_exported_with_each_field_named(task, person, client, tmp_path):
    people = [person(name, "en") for name in ("ann", "bea", "cem")]
    ann, *others = people
    client.force_login(ann.user)
    page = client.post("/tasks/moods/start/", headers={"HX-Request": "true"}).text
    for shown in (
        "How content is the reviewer?",
        "<dt>Product</dt>",
        "<b>Content</b><small>would buy it again</small>",
    ):
        assert shown in page
    for _ in range(2):
        client.post("/tasks/moods/judge/", {"lease": open_lease(ann, task).pk, "answer": "+"})
    assert "<b>Content</b>" in client.get("/tasks/moods/answers/").text
    assert said(ann) == [("answer", "+", "")] * 2
    answers = client.get("/api/v1/tasks/moods/").json()["answers"]
    assert {answer["label"]: answer["name"] for answer in answers} == {"+": "Content", "0": "Neither", "-": "Annoyed"}
    for annotator in others:
        client.force_login(annotator.user)
        while lease := client.post("/api/v1/tasks/moods/next/").json()["lease"]:
            row = next(row for row in REVIEWS if row["product"] == lease["fields"]["product"])
            assert list(lease["fields"].items()) == [("product", row["product"]), ("review", row["review"])]
            assert lease["language"] == "en"
            label = "+" if row["id"] == "r1" else "-"
            judged = client.post(
                f"/api/v1/leases/{lease['id']}/judge/", {"label": label}, content_type="application/json"
            )
            assert judged.status_code == 200
    assert dict(task.units.values_list("item__key", "label")) == {"r1": "+", "r2": "-"}

    call_command("export_gold", "moods", out=tmp_path / "out", verbosity=0)
    lines = (tmp_path / "out" / "gold.jsonl").read_text(encoding="utf-8").splitlines()
    exported = {row["id"]: row for row in map(json.loads, lines)}
    assert {key: row["label"] for key, row in exported.items()} == {"r1": "+", "r2": "-"}
    for row in REVIEWS[:2]:
        assert {name: exported[row["id"]][name] for name in row} == row
    assert [len(row["judgments"]) for row in exported.values()] == [3, 3]


def test_later_edits_of_the_file_change_nothing_in_a_task(task, review_mood):
    review_mood.write_text(REVIEW_MOOD.replace('"Content"', '"Happy"'), encoding="utf-8")
    assert Task.objects.get().kind.name("+") == "Content"
    assert task.kind_file == REVIEW_MOOD


def test_labels_are_called_by_their_names():
    def called(slug, *labels):
        return [KINDS[slug].name(label) for label in labels]

    assert called("web_ranking", "4", "3", "2", "1", "0") == ["Perfect", "Excellent", "Good", "Fair", "Bad"]
    assert called("qa_match", "1", "0") == ["Yes", "No"]
    assert called("ad_relevance", "Good", "Bad") == ["Good", "Bad"]
    assert called("language", "de", "und") == ["German", "Undefined"]
    assert called("verify", "de", "not-de", "und") == ["German", "Not German", "Undefined"]
    # as they came, though they may look like languages
    assert called("imported", "de", "und", "7") == ["de", "und", "7"]


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


def test_a_kind_that_nobody_can_be_asked_opens_no_task(tmp_path, db):
    path = tmp_path / "elsewhere.toml"
    path.write_text('title = "Made elsewhere"\nform = "choice"\n', encoding="utf-8")
    with pytest.raises(CommandError, match=r"has no \[\[layout\]\], so nobody can be asked"):
        call_command("open_task", "t", "--kind", str(path), "--corpus", "none", "--seed", "1")


def test_a_wrong_file_opens_no_task_and_is_told_in_one_sentence(tmp_path, db):
    path = tmp_path / "ad_fit.toml"
    path.write_text(AD_FIT.replace("style", "stile", 1), encoding="utf-8")
    with pytest.raises(CommandError) as refused:
        call_command("open_task", "t", "--kind", str(path), "--corpus", "ads", "--seed", "1")
    assert str(refused.value) == f"{path}, line 7: 'stile' is not a key of [[layout]]; the nearest is style."
    assert not Task.objects.exists()


@pytest.mark.parametrize(
    ("kind", "share", "applies"), [("topic", 0.0, False), ("topic", 0.1, True), ("language", 0.0, True)]
)
def test_an_audit_of_declared_labels_applies_where_some_are_chosen_and_that_of_agreement_always(kind, share, applies):
    task = Task(kind_slug=kind, options={"audit_share": share, "audit_least": 0})
    assert any(control.look_at == "audit" for control in task.controls) is applies
