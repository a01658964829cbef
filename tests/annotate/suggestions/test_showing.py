"""open_task --suggest: who sees a machine's label beside the answers, and by which addresses."""

import re

import pytest
from django.core.management import CommandError
from django.test import Client

from annotate.actions.commands import call_command
from annotate.controls.suggestions import is_blind
from annotate.kinds import Answer
from annotate.models import Suggestion, Task
from annotate.work.answer_changes import undo
from annotate.work.judgments import judge
from annotate.work.queue import open_lease
from tests.annotate import attacks
from tests.annotate.preferences.comparing import open_comparison
from tests.annotate.suggestions.moods import LABELS, import_diary, open_moods, predict, prediction, true_label, write

pytestmark = [pytest.mark.django_db, pytest.mark.on_sqlite]

MARK = "Suggested by a machine"


@pytest.fixture
def diary(tmp_path, db):
    import_diary(tmp_path, 40)
    return tmp_path


@pytest.fixture
def ann(person):
    return person("ann", "en")


def marked(html):
    """The values of the buttons that are marked as suggested."""
    buttons = re.findall(r'<button name="answer" value="(\w+)".*?</button>', html, re.DOTALL)
    found = re.findall(rf'<button name="answer" value="(\w+)"(?:(?!</button>).)*{MARK}', html, re.DOTALL)
    assert not buttons or tuple(buttons) == LABELS, "the order of the buttons depends on nothing"
    return found


def test_the_suggested_answer_is_marked_on_the_page_and_in_the_api_unless_the_draw_hides_it(diary, ann):
    task, seen = open_moods(diary, blind_share="0.5"), {}
    client = Client()
    client.force_login(ann.user)
    for _ in range(12):
        page = client.post("/tasks/moods/start/", headers={"HX-Request": "true"}).text
        unit = open_lease(ann, task).unit
        key, blind = unit.item.key, is_blind(ann.pseudonym, task, unit.item.key)
        expected = [] if blind else [prediction(key)]
        lease = client.post("/api/v1/tasks/moods/next/").json()["lease"]
        whole = client.get("/tasks/moods/").text
        assert (marked(page), marked(whole), lease["suggestions"]) == (expected, expected, expected)
        assert ("checked" in page, "aria-pressed" in page) == (False, False)
        judge(ann, lease["id"], Answer("calm"))
        again = undo(ann, task)
        assert marked(client.get("/tasks/moods/").text) == expected
        judge(ann, again.pk, Answer("calm"))
        seen[key] = blind
    assert set(seen.values()) == {True, False}


def test_a_hidden_suggestion_leaves_the_page_as_in_a_task_without_suggestions_and_can_be_read_nowhere(diary, ann):
    open_moods(diary, "zebra", blind_share="1")
    open_moods(diary, "quagga", suggest=())
    client = Client()
    client.force_login(ann.user)
    pages = {}
    for name in ("quagga", "zebra"):
        address = f"/tasks/{name}"
        told = [client.post(f"{address}/start/", headers={"HX-Request": "true"}).text]
        told += [client.get(f"{address}{page}").text for page in ("/", "/answers/")]
        lease = client.post(f"/api/v1{address}/next/").json()["lease"]
        told.append(str({key: value for key, value in lease.items() if key not in ("id", "expires_at")}))
        told.append(client.get(f"/api/v1{address}/").text)
        done = judge(ann, lease["id"], Answer("calm"))
        told += [client.get(f"{address}/answers/{page}").text for page in ("", f"{done.pk}/")]
        told = [re.sub(r'(value=|: )"\w{64}"|\d\d:\d\d:\d\d|"\d+"|answers/\d+', "", page) for page in told]
        pages[name] = [re.sub(rf"\b{name}\b", "task", page) for page in told]
    for page, other in zip(pages["zebra"], pages["quagga"], strict=True):
        assert page.splitlines() == other.splitlines()
    assert "mine" not in "".join(pages["zebra"])


@pytest.mark.slow
def test_gold_answers_have_suggestions_and_run_the_same_statements_as_work(diary, ann):
    gold = write(diary / "gold.tsv", [(f"d{n}", LABELS[n % 3], "queue") for n in range(8)])
    task = open_moods(diary, gold=[str(gold)], gold_share="0.5", blind_share="0", redundancy="1")
    asked = task.units.filter(copy_of=None)
    assert Suggestion.objects.filter(unit__in=asked).count() == asked.count() == 40
    way = attacks.Way("page", ann, task, labels=LABELS)
    attacks.assert_same_statements(attacks.Attacker(way, None, {"taken back": 1}).work(8), attacks.is_gold)


def test_a_task_without_suggestions_runs_no_statement_for_them(diary, ann):
    task = open_moods(diary, suggest=())
    assert "suggest" not in task.options
    assert not any(control.name == "suggestions" for controls in task.hooks.values() for control in controls)
    way = attacks.Way("page", ann, task, labels=LABELS)
    _, lease = way.take()
    assert not any("suggestion" in statement for statement in way.answer(lease, "calm").statements)


def test_a_side_is_suggested_in_a_comparison_and_the_system_stays_unnamed(tmp_path, ann):
    open_comparison(tmp_path, name="first")
    path = write(tmp_path / "judge.tsv", [(f"en-{n}", "bert") for n in range(4)], "id\tlabel")
    call_command("import_predictions", "talk", path, name="judge", version="1", verbosity=0)
    task = open_comparison(tmp_path, name="second", suggest=["judge"], blind_share="0")
    client = Client()
    client.force_login(ann.user)
    sides = set()
    for _ in range(4):
        page = client.post("/tasks/second/start/", headers={"HX-Request": "true"}).text
        [side] = re.findall(rf'value="(\w+)"(?:(?!</button>).)*{MARK}', page, re.DOTALL)
        lease = client.post("/api/v1/tasks/second/next/").json()["lease"]
        assert lease["suggestions"] == [side]
        assert "Pear" in lease["sets"][("first", "second").index(side)][0], "bert's replies contain Pear"
        sides.add(side)
        assert "bert" not in page
        judge(ann, lease["id"], Answer("tie"))
    assert sides <= {"first", "second"}
    assert task.suggest == ["judge@1"]


def test_suggestions_that_would_bias_or_reveal_something_are_refused(diary):
    predict(diary, lambda key: "merry", "merry", 40)
    predict(diary, true_label, "other", 40)
    for options, sentence in (
        ({"suggest": ["mine", "mine"]}, "--suggest contains mine twice."),
        ({"suggest": ["mine", "mine@1"]}, "Only tasks about concepts combine several predictors."),
        ({"suggest": ["unknown"]}, "Corpus diary has no predictor 'unknown'"),
        ({"voters": "mine@1 other@1"}, "Machines vote in this task"),
        ({"suggest": (), "blind_share": "0.5"}, "--blind-share has no effect without suggestions."),
        ({"suggest": ["merry"]}, "merry@1 suggests 'merry' for document d"),
    ):
        with pytest.raises(CommandError) as refused:
            open_moods(diary, **options)
        assert str(refused.value).startswith(sentence)
    assert not Task.objects.exists()
