"""Gold answers in comparisons of two systems: practice, test, and hidden in the queue, with pages and the API."""

import json
import re

import pytest
from django.core.management import CommandError

from annotate.actions.registry import call_command
from annotate.controls import honeypots
from annotate.controls.pair_order import sides_of, sides_of_question
from annotate.controls.qualification import next_question
from annotate.core.refusals import AlreadyAnswered, InvalidAnswer
from annotate.kinds import Answer
from annotate.models import Judgment, Side, Task, TrialAnswer
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate import attacks
from tests.annotate.acts import answer, begin
from tests.annotate.preferences.comparing import CORPUS, MARKS, records, with_secret, write_corpus, write_system
from tests.annotate.programs import Program

pytestmark = pytest.mark.django_db

PURPOSES = ["practice"] * 4 + ["test"] * 12 + ["queue"] * 12
WRONG = {"first": "second", "second": "tie", "tie": "first"}


def gold_file(folder, label=lambda number: ("mt5", "bert", "tie")[number % 3]):
    rows = [
        {"id": f"en-{n}", "label": label(n), "purpose": purpose, "explanation": "They suit the message."}
        for n, purpose in enumerate(PURPOSES)
    ]
    path = folder / "gold.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def world(tmp_path):
    """A corpus of 40 messages; open_tested("mt5", "bert", gold_share=0.25) opens a task with known answers for 28.

    rows: for how many of the messages, from the last, the last system has replies.
    """
    messages = records(40)
    write_corpus(tmp_path, messages)

    def open_tested(*systems, gold=None, rows=40, **options):
        *others, last = systems or ("mt5", "bert")
        files = [str(write_system(tmp_path, name, messages)) for name in others]
        files.append(str(write_system(tmp_path, last, messages[-rows:])))
        how = {"corpus": CORPUS, "kind": "better_replies", "seed": "1", "gold": [str(gold or gold_file(tmp_path))]}
        call_command("open_task", "talk", systems=files, verbosity=0, **(how | {"test_items": 8} | options))
        return with_secret("talk")

    open_tested.folder = tmp_path
    return open_tested


def right_side(question) -> str:
    return sides_of_question(question).side_of(question.gold_answer.label)


def go_through(annotator, task, kind, wrong=0):
    trial = begin(annotator, task, "en", kind)
    while question := next_question(trial):
        side = right_side(question)
        answer(annotator, question.pk, WRONG[side] if wrong else side)
        wrong -= bool(wrong)
    trial.refresh_from_db()
    return trial


def test_a_person_passes_who_prefers_the_right_systems_wherever_they_stand(world, person):
    task = world(gold_share=0.25)
    assert task.gold_answers.count() == 28
    # Items with gold answers are never work.
    assert [task.units.filter(honeypot=hidden).count() for hidden in (True, False)] == [12, 12]
    assert all(unit.comparison.systems == ("bert", "mt5") for unit in task.units.all())
    practised = task.gold_answers.exclude(purpose="queue")
    assert all(gold.comparison.replies_a[0].startswith("Pear") for gold in practised)
    for name, wrong, passed in (("ann", 0, True), ("bea", 3, False)):
        annotator = person(name, "en")
        assert go_through(annotator, task, "practice").passed
        test = go_through(annotator, task, "test", wrong=wrong)
        assert (test.passed, test.right) == (passed, 8 - wrong)
        assert bool(take(annotator, task)) is passed
    assert set(TrialAnswer.objects.values_list("label", flat=True)) == {"mt5", "bert", "tie"}
    assert set(TrialAnswer.objects.values_list("first", flat=True)) == {"mt5", "bert"}


def test_a_question_stands_the_same_until_it_is_answered_and_cannot_be_answered_otherwise_later(world, ann):
    task = world()
    trial = begin(ann, task, "en", "practice")
    question = next_question(trial)
    assert begin(ann, task, "en", "practice") == trial
    assert sides_of_question(next_question(trial)) == sides_of_question(question)
    with pytest.raises(InvalidAnswer, match=r"'mt5' is not a valid answer\. Valid answers: first, second, tie"):
        answer(ann, question.pk, "mt5")
    answer(ann, question.pk, "second")
    assert answer(ann, question.pk, "second").label == sides_of_question(question).second
    with pytest.raises(AlreadyAnswered, match="already answered Set 2 here"):
        answer(ann, question.pk, "first")


def test_practice_explains_by_sides_on_the_page(world, as_ann):
    world()
    address = "/tasks/talk/qualification/en/"
    as_ann.post(f"{address}practice/")
    page = as_ann.get(address).text
    question = TrialAnswer.objects.get(pk=re.search(r'name="question" value="(\d+)"', page)[1])
    shown = re.findall(r"<li dir=\"auto\">(\w+)", page)
    assert shown == [MARKS[question.first]] * 3 + [MARKS["bert" if question.first == "mt5" else "mt5"]] * 3
    sent = {"question": question.pk, "answer": "first"}
    reply = as_ann.post(f"{address}answer/", sent, headers={"HX-Request": "true"}).text
    name = {"first": "Set 1", "second": "Set 2", "tie": "No difference"}
    side = right_side(question)
    assert ("Right: Set 1" if side == "first" else f"Correct: {name[side]} <small>Your answer: Set 1") in reply
    assert not re.search("mt5|bert", page + reply)


def test_a_test_shows_what_was_missed_by_sides_by_the_api_and_on_the_page(world, ann, client):
    task = world(tries=1)
    go_through(ann, task, "practice")
    program = Program(client, ann)
    answered = {"result": None}
    while not answered["result"]:
        question = program.post("tasks/talk/qualification/en/test/").json()["question"]
        assert [len(replies) for replies in question["sets"]] == [3, 3]
        stored = TrialAnswer.objects.get(pk=question["id"])
        assert question["sets"] == list(sides_of_question(stored).sets)
        answered = program.post(f"qualification/answers/{question['id']}/", label=WRONG[right_side(stored)]).json()
    missed = answered["result"]["missed"]
    assert len(missed) == 8
    for shown, stored in zip(missed, TrialAnswer.objects.filter(trial__kind="test"), strict=True):
        assert shown["label"] == right_side(stored)
        assert shown["said"] == sides_of_question(stored).side_of(stored.label) != shown["label"]
        assert shown["sets"] == list(sides_of_question(stored).sets)
    client.force_login(ann.user)
    page = client.get("/tasks/talk/qualification/en/").text
    assert page.count('class="sets"') == 8
    assert not re.search("mt5|bert", json.dumps(answered) + page)


def test_hidden_answers_look_like_work_and_count_by_system(world, ann):
    task = world(test_items=0, gold_share=0.5)
    for _ in range(16):
        lease = take(ann, task)
        gold = lease.unit.known_answer
        judge(ann, lease.pk, Answer(sides_of(ann, lease.unit).side_of(gold) if gold else "first"))
    counts = honeypots.by_annotator(task)[ann.pk]
    assert counts["asked"] == counts["right"] > 4
    assert Side.objects.count() == Judgment.objects.count() == 16


def test_a_hidden_answer_whose_two_sets_are_equal_is_asked_all_the_same(world, ann):
    folder, rows = world.folder, records(40)
    files = [str(write_system(folder, name, rows, lambda row: ["Yes"])) for name in ("mt5", "bert")]
    gold = gold_file(folder, lambda number: "tie" if number % 2 else "mt5")
    how = {"corpus": CORPUS, "kind": "better_replies", "seed": "1", "gold": [str(gold)], "gold_share": 0.5}
    call_command("open_task", "equal", systems=files, verbosity=0, **how)
    units = Task.objects.get(name="equal").units
    assert set(units.filter(honeypot=True).values_list("stage", flat=True)) == {"QUEUED"}
    assert set(units.filter(honeypot=False).values_list("stage", flat=True)) == {"AGREED"}


def test_known_answers_that_cannot_be_used_are_refused(world):
    for systems, gold, rows, sentence in (
        (("mt5", "bert", "seq2seq"), None, 40, "names the better of two systems, but the task has more than two"),
        (("mt5", "bert"), lambda number: "gpt", 40, "of en-0: 'gpt' is not a valid answer"),
        (("mt5", "bert"), None, 37, "Not both systems suggest a reply to the message of the gold answer en-0"),
    ):
        file = gold_file(world.folder, gold) if gold else gold_file(world.folder)
        with pytest.raises(CommandError, match=sentence):
            world(*systems, gold=file, rows=rows)
    assert not Task.objects.exists()


@pytest.mark.parametrize("name", ["page", "api"])
def test_a_hidden_comparison_runs_the_same_statements_as_work(world, ann, name):
    task = world(gold_share=0.5, test_items=0)
    way = attacks.Way(name, ann, task, labels=["first", "second", "tie"])
    attacks.assert_same_statements(attacks.Attacker(way, None, {"taken back": 1}).work(5), attacks.is_gold)
