"""open_task --suggest: the suggestions of ranked predictors are stored with the drawn documents."""

import json

import pytest
from django.core.management import CommandError

from annotate.actions.registry import call_command
from annotate.models import Judgment, Suggestion, Task
from annotate.work.task_creation import DEPTH
from corpora.models import Concept
from corpora.predictions.rankings import load_rankings
from tests.annotate.concepts.acts import command, opened, task_of
from tests.annotate.programs import Program
from tests.corpora.on_disk import posts

pytestmark = [pytest.mark.usefixtures("corpus"), pytest.mark.on_sqlite]


def import_run(tmp_path, scores, name="mine"):
    """scores: (document, label, score)."""
    path = tmp_path / f"{name}.run"
    path.write_text("".join(f"{key} Q0 {label} 1 {score} {name}\n" for key, label, score in scores))
    call_command("import_predictions", "acts", str(path), name=name, version="1", ranked=True)


def test_the_lists_of_each_system_are_stored_for_every_document_that_people_may_be_asked_about():
    command("suggest", "acts", vocabulary="eurovoc", learn_from="split=train")
    task = task_of(size=30, suggest=["nearest", "label-match"])
    keys = set(task.units.filter(copy_of=None).values_list("item__key", flat=True))
    for name in ("nearest", "label-match"):
        ranked = {key: labels for key, labels in load_rankings("acts", name, keys).items() if labels}
        rows = Suggestion.objects.filter(unit__task=task, system__startswith=f"{name}@")
        assert {row.unit.item.key: row.ranked for row in rows.select_related("unit__item")} == ranked
        assert ranked


def test_twenty_labels_of_a_system_are_kept_and_a_hidden_gold_answer_has_suggestions_like_any_document(tmp_path):
    concepts = list(Concept.objects.order_by("key").values_list("key", flat=True)[: DEPTH + 5])
    *documents, last = documents_there()
    import_run(tmp_path, [(key, label, -rank) for key in documents for rank, label in enumerate(concepts)])
    gold = tmp_path / "gold.tsv"
    rows = [f"{key}\t{concept}\tqueue\n" for key, concept in zip(documents[:8], concepts, strict=False)]
    gold.write_text("".join(["id\tlabel\tpurpose\n", *rows]))
    task = task_of(suggest=["mine@1"], gold=[str(gold)], gold_share=0.1)
    assert task.units.filter(honeypot=True).count() == 8
    for unit in task.units.filter(copy_of=None).select_related("item"):
        # The system has no suggestions for the last document.
        lists = [suggestion.ranked for suggestion in unit.suggestions.all()]
        assert lists == ([] if unit.item.key == last else [concepts[:DEPTH]])


def documents_there():
    return sorted(row["id"] for row in posts("acts"))


def test_suggestions_that_cannot_be_made_are_refused_and_no_task_is_made(tmp_path):
    first, *_ = documents_there()
    language = {"kind": "language", "size": 2}
    unknown = (
        f"mine@1 suggests 'unheard-of' for document {first}, but eurovoc, version 1 does not contain this concept. "
        "Remove such labels from the run and import it as another --version."
    )
    for options, sentence in (
        ({"suggest": ["mine"]}, "Corpus acts has no predictor 'mine'"),
        ({"suggest": ["mine"]}, unknown),
        ({"suggest": ["mine", "mine"]}, "--suggest contains mine twice. List each predictor once."),
        (
            {"suggest": ["mine"]} | language,
            "--suggest is not an option of language tasks drawn by the uniform desi",
        ),
    ):
        with pytest.raises(CommandError) as refused:
            opened("acts", **options)
        assert str(refused.value).startswith(sentence)
        if "has no predictor" in sentence:
            import_run(tmp_path, [(first, "unheard-of", 1)])
    assert not Task.objects.exists()


def test_a_program_reads_what_the_pages_would_suggest_and_an_export_has_to_whom(tmp_path, client, readers):
    concepts = list(Concept.objects.filter(broader=None).order_by("key").values_list("key", flat=True)[:3])
    import_run(tmp_path, [(key, label, -rank) for key in documents_there() for rank, label in enumerate(concepts)])
    task = task_of(suggest=["mine"], blind_share=0.5, redundancy=1)
    program, shown = Program(client, readers[0]), {}
    for _ in range(12):
        lease = program.post(f"tasks/{task.name}/next/").json()["lease"]
        judged = program.post(f"leases/{lease['id']}/judge/", label=concepts[0])
        assert judged.status_code == 200, judged.content
        shown[Judgment.objects.last().unit.item.key] = lease["suggestions"]
    assert {tuple(labels) for labels in shown.values()} == {(), tuple(concepts)}
    command("export_gold", task.name, out=str(tmp_path / "gold"))
    rows = [json.loads(line) for line in (tmp_path / "gold/gold.unfinished.jsonl").read_text().splitlines()]
    assert {row["id"]: row["judgments"][0]["suggestions_shown"] for row in rows} == {
        key: bool(labels) for key, labels in shown.items()
    }
    assert {tuple(row["suggested"]) for row in rows} == {tuple(concepts)}
