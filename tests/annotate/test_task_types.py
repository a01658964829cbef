"""A kind of question is one module, one template, one test and one line in the registry: this adds one."""

import importlib.util
import json
import pkgutil
from importlib import import_module

import pytest
from django.core.management import call_command
from django.template.loader import get_template

from annotate import kinds as task_types
from annotate.kinds import TASK_TYPES, name_of
from annotate.kinds.kind import TaskType
from annotate.management.commands import open_task
from annotate.models import Task
from annotate.work.queue import open_lease
from tests.annotate.hands import said

MODULE = """
from annotate.kinds.records import record_type

TASK_TYPE = record_type(
    slug="review_mood",
    title="How content is the reviewer?",
    fields=("product", "review"),
    answers={
        "+": ("Content", "would buy it again"),
        "0": ("Neither", "says good and bad"),
        "-": ("Annoyed", "would not"),
    },
    template="annotate/review_mood.html",
    ordered=True,
    apart=("product",),
)
"""
TEMPLATE = """{# A product, and what somebody wrote of it. #}
<dl class="question">{% include "annotate/_field.html" with field=fields.product %}</dl>
<dl class="passage">{% include "annotate/_field.html" with field=fields.review %}</dl>
"""
REVIEWS = [
    {"id": "r1", "language": "en", "product": "A kettle", "review": 'Boils\tfast, "looks" good 👍\nand is quiet.'},
    {"id": "r2", "language": "en", "product": "A lamp", "review": "Broke after a week."},
    {"id": "r3", "language": "ar", "product": "مصباح", "review": "جيد"},
]


@pytest.fixture
def review_mood(tmp_path, monkeypatch, settings):
    """The module and the template on disk, and the line in the registry."""
    module = tmp_path / "review_mood.py"
    module.write_text(MODULE, encoding="utf-8")
    template = tmp_path / "templates" / "annotate" / "review_mood.html"
    template.parent.mkdir(parents=True)
    template.write_text(TEMPLATE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("review_mood", module)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    monkeypatch.setitem(TASK_TYPES, "review_mood", loaded.TASK_TYPE)
    # The command read the registry when it was imported.
    monkeypatch.setattr(open_task, "RECORD_TYPES", [*open_task.RECORD_TYPES, "review_mood"])
    settings.TEMPLATES = [{**settings.TEMPLATES[0], "DIRS": [tmp_path / "templates"]}]
    return loaded.TASK_TYPE


@pytest.fixture
def task(review_mood, db, tmp_path):
    file = tmp_path / "reviews.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in REVIEWS), encoding="utf-8")
    options = {"fields": "product review", "licence": "CC0-1.0", "text_may_leave": True, "verbosity": 0}
    call_command("import_corpus", "reviews", str(file), **options)
    more = ["--languages", "en", "--seed", "1", "--test-items", "0", "--gold-share", "0"]
    call_command("open_task", "moods", "--type", "review_mood", "--corpus", "reviews", *more)
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
    for annotator in others:
        client.force_login(annotator.user)
        while lease := client.post("/api/v1/tasks/moods/next/").json()["lease"]:
            row = next(row for row in REVIEWS if row["product"] == lease["fields"]["product"])
            assert list(lease["fields"].items()) == [("product", row["product"]), ("review", row["review"])]
            assert lease["language"] == "en"
            assert lease["answers"] == ["+", "0", "-"]
            assert lease["names"] == {"+": "Content", "0": "Neither", "-": "Annoyed"}
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


def test_every_module_with_a_kind_of_question_is_in_the_registry_and_has_its_template():
    modules = [
        import_module(f"{task_types.__name__}.{found.name}") for found in pkgutil.iter_modules(task_types.__path__)
    ]
    kinds = [module.TASK_TYPE for module in modules if isinstance(getattr(module, "TASK_TYPE", None), TaskType)]
    assert {kind.slug: kind for kind in kinds} == TASK_TYPES
    for kind in kinds:
        if kind.template:
            get_template(kind.template)


def test_labels_are_called_by_their_names():
    def called(slug, *labels):
        return [name_of(label, Task(task_type=slug)) for label in labels]

    assert called("web_ranking", "4", "3", "2", "1", "0") == ["Perfect", "Excellent", "Good", "Fair", "Bad"]
    assert called("qa_match", "1", "0") == ["Yes", "No"]
    assert called("ad_relevance", "Good", "Bad") == ["Good", "Bad"]
    assert called("language", "de", "und") == ["German", "Undefined"]
    assert called("verify", "de", "not-de", "und") == ["German", "Not German", "Undefined"]
    # as they came, though they may look like languages
    assert called("imported", "de", "und", "7") == ["de", "und", "7"]
