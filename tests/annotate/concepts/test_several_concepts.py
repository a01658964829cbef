"""Several concepts of a vocabulary to a document: three people, a concept stays that two chose."""

import json
import re

import pytest
from django.core.management import CommandError
from django.db import IntegrityError, transaction

from annotate.actions.decision_files import adjudicate_action
from annotate.core import stages
from annotate.core.refusals import InvalidAnswer
from annotate.kinds import Answer
from annotate.models import ChosenConcept, Task
from annotate.work import adjudication
from annotate.work.judgments import judge
from annotate.work.queue import take
from corpora.models import Concept, Vocabulary
from tests.annotate.concepts.acts import EUROVOC, ROOT, begun, choose, command, import_acts, opened, task_of

pytestmark = pytest.mark.usefixtures("corpus")


BEGUN = begun


def test_a_concept_stays_that_two_of_three_chose_and_else_an_adjudicator_settles_the_set(task, readers, person, plain):
    one, two, three, four = plain[:4]
    for reader, chosen in zip(readers, ([one, two], [two, three], [three, two, four]), strict=True):
        unit = choose(reader, task, *chosen).unit
    unit.refresh_from_db()
    assert (unit.stage, unit.label) == (stages.LABELLED, " ".join(sorted([two, three])))
    for reader, chosen in zip(readers, plain, strict=False):
        unit = choose(reader, task, chosen).unit
    unit.refresh_from_db()
    assert unit.stage == stages.ADJUDICATION
    ada = person("ada", "en", adjudicates=True)
    [(_, votes)] = adjudication.told(adjudication.to_adjudicate(task, ada), ada)
    assert all(task.kind.name(key) + " (1)" in votes[1] for key in plain[:3])
    decided = adjudication.settle(ada, unit.pk, Answer(" ".join(sorted(plain[:2])), reason="as titled"))
    unit.refresh_from_db()
    assert (unit.stage, unit.label) == (stages.LABELLED, " ".join(sorted(plain[:2])))
    assert {chosen.concept.key for chosen in decided.chosen.all()} == set(plain[:2])


def create_chosen(**fields):
    with transaction.atomic():
        ChosenConcept.objects.create(**fields)
        # Databases make sure of references at the end of a transaction, which a test never comes to.
        transaction.get_connection().check_constraints()


def test_the_database_refuses_a_concept_twice_one_that_is_unknown_and_a_rank_without_a_suggestion(task, readers, plain):
    judgment = choose(readers[0], task, plain[0])
    other = Concept.objects.get(key=plain[1]).pk
    for fields in (
        {"concept_id": judgment.chosen.get().concept_id},
        {"concept_id": other, "way": "searched", "rank": 1},
        {"concept_id": other, "way": "suggested"},
        {"concept_id": other, "way": "guessed"},
        {"concept_id": 10**9},
    ):
        with pytest.raises(IntegrityError):
            create_chosen(judgment=judgment, **fields)


def test_a_concept_beside_a_broader_one_is_taken_only_from_a_person_who_means_both(task, readers):
    narrower = Concept.objects.exclude(broader=None).first()
    broader = narrower.broader.first()
    lease = take(readers[0], task)
    both = " ".join(sorted([narrower.key, broader.key]))
    with pytest.raises(InvalidAnswer) as refused:
        judge(readers[0], lease.pk, Answer(both))
    names = [task.kind.name(concept.key) for concept in (broader, narrower)]
    assert str(refused.value).startswith(f"{names[0]} is broader than {names[1]}, and both are chosen")
    assert judge(readers[0], lease.pk, Answer(both, is_sure=True)).label == both
    with pytest.raises(InvalidAnswer, match=r"No concept was chosen\. Choose one or more, or skip\."):
        choose(readers[0], task)


def test_a_task_keeps_its_version_of_the_vocabulary(task, readers, tmp_path):
    changed = (EUROVOC / "concepts.json").read_text(encoding="utf-8").replace('"label": "', '"label": "new ', 1)
    (tmp_path / "concepts.json").write_text(changed, encoding="utf-8")
    command("import_vocabulary", "eurovoc", tmp_path / "concepts.json", schemes=str(EUROVOC / "schemes.json"))
    opened("later")
    assert Task.objects.get(name="acts").vocabulary.version == 1
    assert Task.objects.get(name="later").vocabulary.version == 2


def test_declared_concepts_are_kept_and_documents_without_one_or_with_an_unknown_one_go_to_people(tmp_path):
    lines = (ROOT / "fixtures/eurlex/train.jsonl").read_text(encoding="utf-8").splitlines()
    acts = [json.loads(line) for line in lines]
    acts[0]["eurovoc_concepts"].append("c_unheard")
    acts[1]["eurovoc_concepts"] = []
    acts[2]["eurovoc_concepts"] = []
    (tmp_path / "train.jsonl").write_text("".join(f"{json.dumps(act)}\n" for act in acts), encoding="utf-8")
    import_acts("changed", [tmp_path / "train.jsonl"])
    output = opened("changed", corpus="changed", reuse=True)
    strange, *bare = (act["celex_id"] for act in acts[:3])
    for sentence in (
        "Task changed: 3 documents queued (en 20), each for 3 people; 17 keep their declared labels; ",
        "Note: 1 document has a concept that eurovoc, version 1 does not contain, such as c_unheard in "
        f"{strange}. People label it.",
    ):
        assert sentence in output
    pattern = rf"Note: 2 documents have no concept, such as ({'|'.join(bare)})\. People label them\."
    assert re.search(pattern, output)
    task = Task.objects.get(name="changed")
    assert set(task.units.queued().values_list("item__key", flat=True)) == {strange, *bare}
    for unit in task.units.filter(stage=stages.AGREED).select_related("item"):
        assert unit.label == " ".join(sorted(unit.item.declared))
    whole = task_of("kept", reuse=True)
    assert set(whole.units.values_list("stage", flat=True)) == {stages.AGREED}
    assert not whole.is_open, "its annotators have no questions to answer"


def test_a_task_of_a_vocabulary_that_is_not_there_is_refused():
    command("delete", "acts", yes=True)
    Vocabulary.objects.all().delete()
    with pytest.raises(CommandError, match=r"Available vocabularies: none\. Import it with import_vocabulary"):
        opened("acts")


def test_a_file_of_decisions_has_a_column_for_a_concept_and_a_broader_one_that_are_both_meant(
    task, readers, person, plain, tmp_path
):
    for reader, chosen in zip(readers, plain, strict=False):
        unit = choose(reader, task, chosen).unit
    person("ada", "en", adjudicates=True)
    narrower = Concept.objects.exclude(broader=None).order_by("key").first()
    both = " ".join(sorted([narrower.key, narrower.broader.order_by("key").first().key]))
    waiting, decided = tmp_path / "waiting.tsv", tmp_path / "decided.tsv"
    command("adjudicate", task.name, **{"as": "ada", "out": str(waiting)})
    assert waiting.read_text().splitlines()[0].endswith("label\treason\tcomment\tsure")

    def rejected(sure):
        decided.write_text(f"id\tlabel\treason\tsure\n{unit.item.key}\t{both}\tas titled\t{sure}\n")
        outcome = adjudicate_action.perform({"task": task.name, "as": "ada", "file": decided})
        return [row["reason"] for row in outcome.data["rejects"]]

    assert "or confirm that you mean both. In the file, write yes in the column sure." in rejected("")[0]
    assert rejected("perhaps") == ["The column sure contains 'perhaps'. It must be yes or no."]
    assert rejected("yes") == []
    unit.refresh_from_db()
    assert unit.label == both


def test_a_deprecated_concept_is_refused_with_what_replaces_it(task, readers, plain):
    old, new, other = plain[:3]
    Concept.objects.filter(key=old).update(is_deprecated=True, replaced_by=new)
    Concept.objects.filter(key=other).update(is_deprecated=True)
    name = task.kind.name
    with pytest.raises(InvalidAnswer, match=rf"\({old}\) is deprecated. Choose {name(new)} \({new}\) instead"):
        choose(readers[0], task, old)
    with pytest.raises(InvalidAnswer, match=rf"\({other}\) is deprecated. Choose another concept"):
        choose(readers[0], task, other)
