"""open_task --suggest-from: what ranked predictors suggest is stored with the documents that were drawn."""

import json

import pytest
from django.core.management import CommandError

from annotate.actions.commands import call_command
from annotate.controls import concept_suggestions
from annotate.controls.concept_suggestions import suggested
from annotate.models import Judgment, Suggestion, Task
from annotate.work.task_creation import DEPTH
from corpora.models import Concept
from corpora.predictions.rankings import ranked_for
from tests.annotate.labelling.acts import command, opened, task_of
from tests.corpora.on_disk import posts

pytestmark = [pytest.mark.usefixtures("corpus"), pytest.mark.on_sqlite]


def import_run(tmp_path, scores, name="mine"):
    """scores: (document, label, score)."""
    path = tmp_path / f"{name}.run"
    path.write_text("".join(f"{key} Q0 {label} 1 {score} {name}\n" for key, label, score in scores))
    call_command("import_predictions", "acts", str(path), name=name, version="1", ranked=True)


def test_the_lists_of_each_system_are_stored_for_every_document_that_people_may_be_asked_about():
    command("suggest", "acts", vocabulary="eurovoc", learn_from="split=train")
    task = task_of(size=30, suggest_from=["nearest", "label-match"])
    keys = set(task.units.filter(copy_of=None).values_list("item__key", flat=True))
    for name in ("nearest", "label-match"):
        ranked = {key: labels for key, labels in ranked_for("acts", name, keys).items() if labels}
        rows = Suggestion.objects.filter(unit__task=task, system__startswith=f"{name}@")
        assert {row.unit.item.key: row.ranked for row in rows.select_related("unit__item")} == ranked
        assert ranked


def test_twenty_labels_of_a_system_are_kept_and_a_hidden_gold_answer_has_suggestions_like_any_document(tmp_path):
    concepts = list(Concept.objects.order_by("key").values_list("key", flat=True)[: DEPTH + 5])
    documents = list(documents_there())
    import_run(tmp_path, [(key, label, -rank) for key in documents for rank, label in enumerate(concepts)])
    gold = tmp_path / "gold.tsv"
    gold.write_text(
        "".join(f"{key}\t{concept}\tqueue\n" for key, concept in zip(documents[:8], concepts, strict=False))
    )
    gold.write_text("id\tlabel\tpurpose\n" + gold.read_text())
    task = task_of(suggest_from=["mine"], gold=[str(gold)], gold_share=0.1)
    hidden = task.units.filter(honeypot=True)
    assert hidden.count() == 8
    for unit in [*hidden, *task.units.filter(honeypot=False, copy_of=None)]:
        assert unit.suggestions.get().ranked == concepts[:DEPTH]


def documents_there():
    return sorted(row["id"] for row in posts("acts"))


def test_a_document_of_which_a_system_says_nothing_has_no_suggestions_of_it(tmp_path):
    first, *_ = documents_there()
    concept = Concept.objects.order_by("key").first().key
    import_run(tmp_path, [(first, concept, 1)])
    task = task_of(suggest_from=["mine@1"])
    assert {unit.item.key: suggested(unit) for unit in task.units.all() if suggested(unit)} == {first: [concept]}


def test_a_label_that_the_vocabulary_of_the_task_has_not_is_refused_and_no_task_is_made(tmp_path):
    first, *_ = documents_there()
    import_run(tmp_path, [(first, "unheard-of", 1)])
    with pytest.raises(CommandError) as refused:
        opened("acts", suggest_from=["mine"])
    assert str(refused.value) == (
        f"mine@1 suggests 'unheard-of' for document {first}, and eurovoc, version 1 has no such concept; make its run "
        "without such labels and import it as another --version."
    )
    assert not Task.objects.exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"suggest_from": ["mine"]}, "There is no predictor 'mine' for corpus acts"),
        (
            {"suggest_from": ["mine"], "kind": "topic", "labels": "a b", "sets": "test 2"},
            "--suggest-from: not an option of topic tasks drawn by the balanced design",
        ),
    ],
)
def test_suggestions_of_nobody_and_for_answers_that_are_no_concepts_are_refused(options, sentence):
    with pytest.raises(CommandError, match=sentence):
        opened("acts", **options)


def test_a_predictor_that_is_given_twice_is_refused(tmp_path):
    import_run(tmp_path, [(documents_there()[0], Concept.objects.first().key, 1)])
    with pytest.raises(CommandError, match=r"--suggest-from mine is given twice; name each once\."):
        opened("acts", suggest_from=["mine", "mine"])


def test_a_program_is_told_what_the_pages_would_suggest_and_an_export_says_to_whom(
    tmp_path, client, readers, monkeypatch
):
    monkeypatch.setattr(concept_suggestions, "BLIND_SHARE", 0.5)
    concepts = list(Concept.objects.filter(broader=None).order_by("key").values_list("key", flat=True)[:3])
    import_run(tmp_path, [(key, label, -rank) for key in documents_there() for rank, label in enumerate(concepts)])
    task = task_of(suggest_from=["mine"], redundancy=1)
    client.force_login(readers[0].user)
    told = {}
    for _ in range(12):
        lease = client.post(f"/api/v1/tasks/{task.name}/next/", content_type="application/json").json()["lease"]
        judged = client.post(
            f"/api/v1/leases/{lease['id']}/judge/", {"label": concepts[0]}, content_type="application/json"
        )
        assert judged.status_code == 200, judged.content
        told[Judgment.objects.last().unit.item.key] = lease["suggestions"]
    assert {tuple(each) for each in told.values()} == {(), tuple(concepts)}
    command("export_gold", task.name, out=str(tmp_path / "gold"))
    rows = [json.loads(line) for line in (tmp_path / "gold/gold.unfinished.jsonl").read_text().splitlines()]
    assert {row["id"]: row["judgments"][0]["suggestions_shown"] for row in rows} == {
        key: bool(shown) for key, shown in told.items()
    }
    assert {tuple(row["suggested"]) for row in rows} == {tuple(concepts)}
