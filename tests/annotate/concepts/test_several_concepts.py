"""Several concepts per document: a concept that two of three people chose stays. Later changes."""

import json
import re
from datetime import timedelta
from html import unescape

import pytest
from django.core.management import CommandError
from django.db import IntegrityError, transaction
from django.utils import timezone

from annotate.actions.decision_files import adjudicate_action
from annotate.core import stages
from annotate.core.refusals import InvalidAnswer
from annotate.kinds import Answer
from annotate.models import Change, ChosenConcept, Judgment, Task
from annotate.work import adjudication
from annotate.work.answer_changes import change
from corpora.models import Concept, Vocabulary
from tests.annotate.concepts.acts import EUROVOC, ROOT, begun, choose, command, import_acts, opened, task_of, values_of

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
    [(_, votes)] = adjudication.rows(adjudication.to_adjudicate(task, ada), ada)
    assert all(task.kind.name(key) + " (1)" in votes[1] for key in plain[:3])
    decided = adjudication.settle(ada, unit.pk, Answer(" ".join(sorted(plain[:2])), reason="as titled"))
    unit.refresh_from_db()
    assert (unit.stage, unit.label) == (stages.LABELLED, " ".join(sorted(plain[:2])))
    assert {chosen.concept.key for chosen in decided.chosen.all()} == set(plain[:2])


def create_chosen(**fields):
    with transaction.atomic():
        ChosenConcept.objects.create(**fields)
        # Databases check references at the end of a transaction, which a test never reaches.
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
        f"{strange}. Annotators label it.",
    ):
        assert sentence in output
    pattern = rf"Note: 2 documents have no concept, such as ({'|'.join(bare)})\. Annotators label them\."
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
    with pytest.raises(InvalidAnswer, match=r"No concept was chosen\. Choose one or more, or skip\."):
        choose(readers[0], task)


@pytest.fixture
def ann(readers, client):
    client.force_login(readers[0].user)
    return readers[0]


def chosen(judgment):
    return dict(judgment.chosen.order_by("concept__key").values_list("concept__key", "way"))


def test_the_page_begins_with_what_was_chosen_and_what_is_sent_stands_with_what_led_to_it(
    task, ann, client, readers, plain
):
    one, two, three = plain[:3]
    first = choose(ann, task, one, two, ways={one: "browsed"})
    days_ago = timezone.now() - timedelta(days=3)
    Judgment.objects.update(shown_at=days_ago, answered_at=days_ago)
    address = f"/tasks/acts/answers/{first.pk}/"
    assert address in client.get("/tasks/acts/answers/").text
    form = client.get(address).text
    assert (values_of(form, "answer"), values_of(form, "way")) == ([one, two], [f"{one} browsed", f"{two} "])
    # A change without effect stays on the page.
    refused = client.post(address, {"answer": [one, two], "comment": "still"})
    assert (refused.status_code, values_of(refused.text, "answer")) == (400, [one, two])
    assert "still" in refused.text
    state = {"answer": [one, two], "way": [f"{one} browsed", f"{two} "]}
    for do in (f"drop {two}", f"add {three} searched"):
        step = client.post(address, {**state, "do": do, "comment": "as I think now"}).text
        state = {name: values_of(step, name) for name in ("answer", "way")}
    assert "as I think now" in step
    part = client.post(address, {"do": f"add {plain[3]} browsed"}, headers={"HX-Request": "true"}).text
    assert (values_of(part, "answer"), "<html" in part) == ([plain[3]], False)
    assert not Change.objects.exists()
    assert client.post(address, state | {"comment": "now"}).status_code == 302
    [stands] = Judgment.objects.live()
    assert chosen(stands) == {one: "browsed", three: "searched"}
    assert stands.label == " ".join(sorted([one, three]))
    assert values_of(client.get(f"/tasks/acts/answers/{first.pk}/").text, "answer") == sorted([one, three])
    client.force_login(readers[1].user)
    assert client.post(address, {"do": f"add {plain[3]} browsed"}).status_code == 404


def test_where_others_have_gone_on_the_adjudicator_sees_the_concepts_by_name(ann, client, plain, person):
    task = task_of("once", redundancy="1")
    first = choose(ann, task, plain[0])
    change(ann, task, first.pk, Answer(plain[1]))
    first.refresh_from_db()
    assert (first.label, chosen(first), first.unit.stage) == (plain[0], {plain[0]: ""}, stages.ADJUDICATION)
    assert values_of(client.get(f"/tasks/once/answers/{first.pk}/").text, "answer") == [plain[1]]
    client.force_login(person("ada", adjudicates=True).user)
    page = unescape(client.get(f"/tasks/once/adjudication/{first.unit_id}/").text)
    assert f"{ann.pseudonym} would now answer {task.kind.name(plain[1])}." in page
