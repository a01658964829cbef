"""Documents with gold concepts: from a file, in practice, in the test, hidden in the queue, and corrected."""

import json

import pytest
from django.core.management import CommandError

from annotate.controls import honeypots
from annotate.controls.qualification import next_question
from annotate.kinds import Answer
from annotate.models import GoldAnswer, Task
from annotate.work.judgments import judge
from annotate.work.permit import current_pause
from annotate.work.queue import take
from tests.annotate import attacks
from tests.annotate.acts import begin, words
from tests.annotate.concepts.acts import ROOT, opened, suggesting, task_of

pytestmark = pytest.mark.usefixtures("corpus")
ANN_READS = "en"
ACTS = [json.loads(line) for line in (ROOT / "fixtures/eurlex/test.jsonl").read_text(encoding="utf-8").splitlines()]
PURPOSES = ["practice"] * 2 + ["test"] * 3 + ["queue"] * 8
TESTED = {"test_items": "2", "pass_mark": "50%", "tries": "2", "gold_share": "50%"}


@pytest.fixture
def gold_file(tmp_path):
    """write([["a", "b"], ...]) writes a JSONL file of gold answers for the first acts."""

    def write(labels):
        rows = [
            {"id": act["celex_id"], "label": label, "purpose": purpose, "explanation": "As the title says."}
            for act, label, purpose in zip(ACTS, labels, PURPOSES, strict=False)
        ]
        path = tmp_path / "gold.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return [str(path)]

    return write


@pytest.fixture
def four(plain):
    """The right answer to every gold answer."""
    return plain[3::-1]


@pytest.fixture
def gold_answers(plain, four):
    """The gold answers for all purposes. Half of those in the queue differ, so that one answer cannot pass them all."""
    return [four] * 9 + [plain[4:8]] * 4


@pytest.fixture
def task(gold_file, gold_answers):
    return task_of(gold=gold_file(gold_answers), **TESTED)


def answered(client, trial, keys):
    """Return the page after this answer to the next question."""
    answer = {"question": next_question(trial).pk, "answer": keys}
    return client.post("/tasks/acts/qualification/en/answer/", answer, follow=trial.kind == "practice")


def go_through(client, ann, task, kind, keys):
    trial = begin(ann, task, "en", kind)
    while next_question(trial):
        answered(client, trial, keys)
    trial.refresh_from_db()
    return trial


def test_what_a_file_gives_becomes_the_canonical_text(gold_file, four, gold_answers):
    task = task_of(gold=gold_file([four, f" {four[3]}  {four[0]} ", *map(" ".join, gold_answers[2:])]), **TESTED)
    first, second, *others = task.gold_answers.values_list("label", flat=True)
    assert first == " ".join(sorted(four))
    assert second == " ".join(sorted([four[0], four[3]]))
    assert others == [" ".join(sorted(keys)) for keys in gold_answers[2:]]
    hidden = task.units.filter(honeypot=True)
    assert set(hidden.values_list("known_answer", flat=True)) == set(others[-8:])


def test_a_gold_answer_that_nobody_could_give_is_refused_with_its_document(gold_file, plain, four):
    with pytest.raises(CommandError, match=f"^The gold answer of {ACTS[0]['celex_id']}: 'unheard-of' is not a concept"):
        opened("acts", gold=gold_file([["unheard-of"]]), **TESTED)
    # Different hidden gold answers are refused too, if a single answer would pass them all.
    near = [[*four[:3], other] for other in plain[10:18]]
    with pytest.raises(CommandError, match=r"In en, 8 of the 8 .* or similar enough to be right, so a person who"):
        opened("acts", gold=gold_file([four] * 5 + near), **TESTED)
    assert not Task.objects.exists()


def test_practice_shows_by_name_what_was_right_missed_and_too_much(task, ann, client, plain, four):
    client.force_login(ann.user)
    trial = begin(ann, task, "en", "practice")
    name = task.kind.name
    page = words(answered(client, trial, [four[0], plain[10]]))
    assert "Not close enough" in page
    missed = sorted(name(key) for key in four[1:])
    assert f"Chosen and correct: {name(four[0])} Missed: {missed[0]} ; {missed[1]} ; {missed[2]}" in page
    assert f"Wrongly chosen: {name(plain[10])} As the title says." in page
    # Two of four are an F1 of 2/3.
    page = words(answered(client, trial, four[:2]))
    assert "Close enough" in page
    assert "Missed" in page
    assert "Too much" not in page


def test_a_test_is_passed_by_near_enough_answers_and_its_end_shows_what_was_missed(task, ann, client, plain, four):
    client.force_login(ann.user)
    go_through(client, ann, task, "practice", four)
    failed = go_through(client, ann, task, "test", [four[0], *plain[10:13]])
    assert (failed.right, failed.passed) == (0, False)
    page = words(client.get("/tasks/acts/qualification/en/"))
    assert page.count("Chosen and correct:") == page.count("Missed:") == page.count("Wrongly chosen:") == 2
    # An F1 of .5 is right.
    passed = go_through(client, ann, task, "test", [*four[:2], *plain[10:12]])
    assert (passed.right, passed.passed) == (2, True)


def test_a_gold_answer_is_corrected_by_its_ids_and_what_was_answered_counts_by_them(
    task, ann, client, manager, plain, four
):
    client.force_login(ann.user)
    go_through(client, ann, task, "practice", four)
    gold = go_through(client, ann, task, "test", [four[0], *plain[10:13]]).answers.first().gold_answer
    client.force_login(manager)
    path = f"/admin/annotate/goldanswer/{gold.pk}/change/"
    assert task.kind.name(four[0]) in words(client.get(path))
    change = {"label": f"{plain[11]}\n{plain[10]} {four[0]}", "explanation": "Looked up."}
    page = client.post(path, change, follow=True)
    gold.refresh_from_db()
    assert gold.label == " ".join(sorted([plain[10], plain[11], four[0]]))
    assert "1 of the existing answers are now right and 0 are wrong" in words(page)
    refused = client.post(path, {**change, "label": "unheard-of"})
    assert "is not a concept of eurovoc, version 1" in refused.text
    assert GoldAnswer.objects.get(pk=gold.pk).label == gold.label


def work(ann, task, right, of_work):
    """Answer until nothing is left: hidden gold answers with this many of their four concepts and wrong ones instead of
    the others, and work with other concepts.
    """
    while lease := take(ann, task):
        gold = lease.unit.known_answer.split()
        keys = [*gold[:right], *of_work[: 4 - right]] if gold else of_work[:1]
        judge(ann, lease.pk, Answer(" ".join(sorted(keys))))


@pytest.mark.parametrize(("right", "pauses"), [(2, False), (1, True)])
def test_hidden_gold_answers_pause_who_is_too_far_from_them(gold_file, gold_answers, plain, ann, right, pauses):
    task = task_of(gold=gold_file(gold_answers), **TESTED | {"test_items": "0"})
    work(ann, task, right, plain[10:])
    assert (current_pause(ann, task) is not None) == pauses
    counts = honeypots.by_annotator(task)[ann.pk]
    assert (counts["asked"], counts["right"]) == (8, 0 if pauses else 8)


@pytest.mark.parametrize("name", ["page", pytest.param("api", marks=pytest.mark.slow)])
def test_a_hidden_document_runs_the_same_statements_as_work(gold_file, gold_answers, plain, ann, name):
    # Nobody is blind, because blind people would see no suggestions on any document.
    task = task_of(gold=gold_file(gold_answers), gold_share="50%", test_items="0")
    suggesting(task, 0.0)
    way = attacks.Way(name, ann, task, labels=plain[:3])
    attacks.assert_same_statements(attacks.Attacker(way, None, {"taken back": 1}).work(8), attacks.is_gold)


@pytest.mark.slow
def test_a_changed_hidden_document_runs_the_same_statements_as_work(gold_file, gold_answers, plain, ann, client):
    task = task_of(gold=gold_file(gold_answers), gold_share="50%", test_items="0", redundancy="3")
    suggesting(task, 0.0)
    client.force_login(ann.user)
    client.get("/docs/")  # the first page of a session reads the person's settings
    seen = {True: set(), False: set()}
    for _ in range(8):
        lease = take(ann, task)
        first = judge(ann, lease.pk, Answer(plain[0]))
        with attacks.statements() as ran:
            assert client.post(f"/tasks/acts/answers/{first.pk}/", {"answer": plain[1:3]}).status_code == 302
        seen[lease.unit.honeypot].add(tuple(ran))
    assert (len(seen[True]), seen[True]) == (1, seen[False])
