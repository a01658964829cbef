"""The home page and a task's first page: the question, the remaining work, and no links that would be refused."""

import re

import pytest

from annotate.controls.qualification import next_question
from annotate.kinds import Answer
from annotate.pages import start_page
from annotate.work.interventions import pause
from annotate.work.judgments import judge, skip
from annotate.work.permit import PAUSED
from annotate.work.queue import release_all, take
from tests.annotate.acts import answer, begin, signed_in, words
from tests.annotate.conftest import DISPUTED


@pytest.fixture
def ann(person):
    return person("ann", "en de")


GOLD = {"practice": ["1", "0"], "test": ["1", "0"] * 4}


# --- what is asked

QUESTION = "Does the passage answer the question?"


def question_in(html):
    return re.findall('<p class="asked" id="asked">([^<]*)</p>', without_bdi(html))


def without_bdi(html):
    return re.sub("</?bdi>", "", html)


def test_every_page_of_a_task_asks_its_question_once_whatever_the_task_is_called(
    make_records_task, make_task, as_ann, person
):
    task = make_records_task(title="Answers of July")
    for address in ("/", "/tasks/crowd/"):
        page = words(as_ann.get(address))
        assert ("Answers of July" in page, page.count(QUESTION)) == (True, 1)
    page = as_ann.post("/tasks/crowd/start/", {"read": 1}, follow=True).text
    assert question_in(page) == [QUESTION]
    assert "<title>Answers of July · Assay</title>" in page
    unit = task.units.first()
    task.units.filter(pk=unit.pk).update(stage="ADJUDICATION")
    adjudicator = signed_in(person("ada", adjudicates=True))
    assert question_in(adjudicator.get(f"/tasks/crowd/adjudication/{unit.pk}/").text) == [QUESTION]
    task.title = QUESTION
    task.save()
    assert words(as_ann.get("/")).count(QUESTION) == 1
    make_task([DISPUTED])
    assert words(as_ann.get("/")).count("Which language?") == 1
    make_records_task(gold=GOLD, test_items=4, title="Tested", name="tested")
    assert QUESTION in as_ann.get("/tasks/tested/qualification/en/").text
    assert question_in(as_ann.post("/tasks/tested/qualification/en/practice/", follow=True).text) == [QUESTION]


def test_guidelines_come_before_the_first_item_and_before_the_first_of_a_new_major_version(
    make_records_task, as_ann, ann
):
    task = make_records_task(count=3)

    def started(**fields):
        page = as_ann.post("/tasks/crowd/start/", fields, follow=True).text
        return "guidelines" if 'name="read"' in page else "item" if 'name="lease"' in page else page

    assert [started(), started(), started(read=1)] == ["guidelines", "guidelines", "item"]
    judge(ann, take(ann, task).pk, Answer("1"))
    assert started() == "item"
    latest = task.guidelines.get(language="en")
    release_all(ann, task)
    task.guidelines.create(language="en", major=latest.major, minor=latest.minor + 1, text="Better words")
    assert started() == "item"
    release_all(ann, task)
    task.guidelines.create(language="en", major=latest.major + 1, text="Another rule")
    assert [started(), started(read=1)] == ["guidelines", "item"]


# --- paused, and closed


def offered(html):
    """The addresses of a page's forms and buttons, except those to log out and to stop."""
    forms = re.findall('<form[^>]*action="([^"]*)"', html)
    links = re.findall('class="(?:primary|button)" href="([^"]*)"', html)
    return [address for address in forms + links if not re.search("/(logout|pause)/$", address)]


def test_who_is_paused_is_told_everywhere_and_offered_nothing_but_the_other_tasks(
    make_records_task, as_ann, ann, manager
):
    task = make_records_task(count=3)
    judge(ann, take(ann, task).pk, Answer("1"))
    pause(ann, task, by=manager, reason="too quick")
    for address in ("/", "/tasks/crowd/", "/tasks/crowd/answers/"):
        page = as_ann.get(address)
        assert (PAUSED in words(page), offered(page.text)) == (True, []), address
    refused = as_ann.post("/tasks/crowd/undo/", headers={"HX-Request": "true"})
    assert refused.status_code == 403
    assert (PAUSED in refused.text, offered(refused.text)) == (True, [])
    assert "See all tasks" in refused.text


def test_who_is_paused_is_asked_for_no_test_and_offered_no_sheet(make_records_task, make_task, as_ann, ann, manager):
    pause(ann, make_records_task(gold=GOLD, test_items=4), by=manager, reason="too quick")
    for address in ("/", "/tasks/crowd/", "/tasks/crowd/qualification/en/"):
        page = as_ann.get(address).text
        assert (PAUSED in words(page), offered(page)) == (True, []), address
        assert not re.search("Take the test|I have read them", page)
    task = make_task([DISPUTED], asked="de")
    assert "Start a sheet" in as_ann.get("/").text
    pause(ann, task, by=manager, reason="too quick")
    for address in ("/", "/tasks/task/sheet/"):
        assert offered(as_ann.get(address).text) == []


def test_a_closed_task_says_so_and_offers_neither_to_look_again_nor_to_undo(make_records_task, as_ann, ann):
    task = make_records_task()
    judge(ann, take(ann, task).pk, Answer("1"))
    task.is_open = False
    task.save()
    page = as_ann.get("/tasks/crowd/").text
    assert "This task is closed." in page
    assert offered(page) == []
    assert offered(as_ann.get("/tasks/crowd/answers/").text) == []


# --- before the test


@pytest.fixture
def tested(make_records_task):
    return make_records_task(count=3, gold=GOLD, test_items=4, tries=3, languages=("en", "de"))


def take_test(ann, task, kind="test", right=False):
    trial = begin(ann, task, "en", kind)
    while question := next_question(trial):
        label = question.gold_answer.label
        answer(ann, question.pk, label if right else {"1": "0", "0": "1"}[label])


BEHIND_ENGLISH, BEHIND_GERMAN = (f"3 in {name} after the test" for name in ("English", "German"))


def test_what_waits_behind_each_test_is_told_and_how_many_tries_are_left(tested, as_ann, ann):
    def shows(*sentences):
        return [[sentence in words(as_ann.get(page)) for sentence in sentences] for page in ("/", "/tasks/crowd/")]

    assert shows(BEHIND_ENGLISH, BEHIND_GERMAN, "left") == [[True, True, False]] * 2
    take_test(ann, tested, "practice")
    for left in ("you have 2 tries left.", "you have 1 try left.", "not passed, no tries left"):
        take_test(ann, tested)
        assert shows(left, BEHIND_ENGLISH) == [[True, "no tries" not in left]] * 2
    assert shows(BEHIND_GERMAN) == [[True]] * 2


def test_what_is_behind_a_test_is_told_no_more_once_it_is_passed(tested, as_ann, ann):
    assert BEHIND_ENGLISH in words(as_ann.get("/"))  # counted again, although just shown
    take_test(ann, tested, "practice")
    take_test(ann, tested, right=True)
    page = words(as_ann.get("/"))
    assert "3 waiting in your languages" in page
    assert ("in English after" in page, BEHIND_GERMAN in page) == (False, True)


# --- an adjudicator's


def test_tasks_with_work_come_first_and_those_of_one_title_are_told_apart_by_name(make_task, person):
    tasks = [make_task([DISPUTED], name=name) for name in ("first", "second", "third")]
    ann = person("ann", "de")
    page = without_bdi(signed_in(ann).get("/").text)
    assert re.findall(r"<h[23]>(.*?)</h[23]>", page) == [
        f"Which language? <small>{task.name}</small>" for task in reversed(tasks)
    ]
    assert "<bdi>Which language?</bdi> · <bdi>first</bdi> · " in signed_in(ann).get("/tasks/first/answers/").text
    assert str(tasks[0]) == "Which language? (first)"
    # A unit that its only reader skips goes to an adjudicator.
    skip(ann, take(ann, tasks[1]).pk)
    page = signed_in(person("ada", adjudicates=True)).get("/").text
    assert re.findall("<small>([a-z]+)</small></h[23]>", page)[0] == "second"
    assert re.findall('<a class="primary" href="([^"]*)"', page) == ["/tasks/second/adjudication/"]
    assert '<button class="primary">Start' not in page


def test_where_nothing_waits_the_home_page_urges_nobody(make_task, person):
    task, both, ann = make_task([DISPUTED], rounds=1), person("both", "en", adjudicates=True), person("ann", "de")
    adjudicator = signed_in(both)
    home = adjudicator.get("/").text
    assert "<button>Start</button>" in home
    assert 'class="button"' not in home
    assert '<a href="/tasks/task/adjudication/">Nothing to adjudicate</a>' in home
    skip(ann, take(ann, task).pk)
    home = adjudicator.get("/").text
    assert '<a class="primary" href="/tasks/task/adjudication/" autofocus>Adjudicate 1</a>' in home
    assert "Nothing to adjudicate" not in home
    make_task([DISPUTED], name="more")
    home = signed_in(ann).get("/").text
    assert len(re.findall('<button class="primary" autofocus>Start', home)) == 1
    assert "djudicat" not in home


# --- in the order of use


def test_what_one_did_last_comes_first_and_continue_there_has_the_focus(make_task, ann, as_ann):
    tasks = [make_task([DISPUTED] * 3, name=name, title=f"Posts of {name}?") for name in ("may", "june", "july")]
    for task in (tasks[0], tasks[1]):
        judge(ann, take(ann, task).pk, Answer("de"))
    page = without_bdi(as_ann.get("/").text)
    assert re.findall("<h[23]>(.*?)</h[23]>", page) == ["Posts of june?", "Posts of may?", "Posts of july?"]
    first = page[page.index('<article class="task first"') :]
    assert re.search(r'action="/tasks/june/start/".*?<button class="primary" autofocus>Continue', first, re.S)
    assert (page.count("autofocus"), page.count("Continue"), "<small>" in page) == (1, 1, False)


def test_a_language_task_lists_further_languages_only_if_some_have_no_button(make_task, person):
    task = make_task([DISPUTED] * 4, labels=["de", "en", "nl"])
    for name, languages, is_listed in (("all", "de en nl", False), ("some", "de en", True)):
        reader = person(name, languages)
        judge(reader, take(reader, task).pk, Answer("de"))  # the guidelines come before the first item
        page = signed_in(reader).post("/tasks/task/start/", follow=True).text
        assert 'id="choices"' in page
        assert ('id="picker"' in page) is is_listed


def test_what_has_nothing_for_one_is_folded_and_tests_come_before_it(make_task, make_records_task, as_ann):
    make_task([DISPUTED] * 3, name="work")
    make_task([DISPUTED] * 3, name="more", title="More")
    make_task([], name="empty", title="Empty")
    gold = {"practice": ["1"], "test": ["1"] * 2}
    make_records_task(gold=gold, test_items=2, title="To be tested", languages=["de"])
    page = without_bdi(as_ann.get("/").text)
    assert re.findall("<h[23]>(.*?)</h[23]>", page) == ["More", "Which language?", "To be tested", "Empty"]
    assert page.index("To be tested") < page.index('<details class="idle">') < page.index("<h3>Empty")
    assert "1 task with nothing waiting for you" in page


def test_an_adjudicator_who_reads_nothing_is_offered_no_start_and_told_nothing_of_reading(make_task, person):
    make_task([DISPUTED], asked="de")
    page = signed_in(person("ada", adjudicates=True)).get("/").text
    assert (offered(page), "Nothing to adjudicate" in page) == ([], True)
    assert not re.search("reader|answered today|waiting", words(page))


def test_a_manager_who_logs_in_lands_on_the_managers_pages(client, manager):
    form = {"username": "manager", "password": "a long password"}
    assert client.post("/login/", form, follow=True).redirect_chain[-1] == ("/manage/", 302)
    assert client.get("/", follow=True).redirect_chain == [("/manage/", 302)]


def test_of_many_tasks_the_first_are_shown_and_all_on_request(make_task, as_ann, ann, monkeypatch):
    monkeypatch.setattr(start_page, "LISTED", 2)
    for number in range(4):
        make_task([DISPUTED], name=f"task-{number}")
    shown, everything = as_ann.get("/").text, as_ann.get("/?all=1").text
    assert (shown.count("<article"), everything.count("<article")) == (3, 4)
    assert ("Show all tasks" in shown, "Show all tasks" in everything) == (True, False)
