"""What a person finds at / and on a task's first page: what is asked, what waits, and nothing that would be refused."""

import re

import pytest

from annotate.controls.qualification import next_question
from annotate.kinds import Answer
from annotate.models import Task
from annotate.work.interventions import pause
from annotate.work.judgments import judge, skip
from annotate.work.permit import PAUSED
from annotate.work.queue import take
from tests.annotate.acts import answer, begin
from tests.annotate.conftest import DISPUTED


@pytest.fixture
def ann(person):
    return person("ann", "en de")


@pytest.fixture
def as_ann(client, ann):
    client.force_login(ann.user)
    return client


def words(html):
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", html))


# --- what is asked

QUESTION = "Does the passage answer the question?"


def asked(html):
    return re.findall('<p class="asked" id="asked">([^<]*)</p>', without_bdi(html))


def without_bdi(html):
    return re.sub("</?bdi>", "", html)


def test_the_question_of_the_type_stands_beside_the_answers_whatever_the_task_is_called(make_records_task, as_ann):
    make_records_task(title="Answers of July")
    page = as_ann.post("/tasks/crowd/start/", follow=True).text
    assert asked(page) == [QUESTION]
    assert "<title>Answers of July · Assay</title>" in page


def test_home_and_the_task_s_first_page_say_what_is_asked_where_the_title_does_not(make_records_task, as_ann):
    task = make_records_task(title="Answers of July")
    for address in ("/", "/tasks/crowd/"):
        page = words(as_ann.get(address).text)
        assert "Answers of July" in page
        assert page.count(QUESTION) == 1
    task.title = QUESTION
    task.save()
    for address in ("/", "/tasks/crowd/"):
        assert words(as_ann.get(address).text).count(QUESTION) == (1 if address == "/" else 2)  # its <title>


def test_the_question_stands_in_the_test_and_before_an_adjudicator_too(make_records_task, as_ann, client, person):
    gold = {"practice": ["1", "0"], "test": ["1", "0"] * 4}
    task = make_records_task(gold=gold, test_items=4, title="Answers of July")
    assert QUESTION in as_ann.get("/tasks/crowd/qualification/en/").text
    assert asked(as_ann.post("/tasks/crowd/qualification/en/practice/", follow=True).text) == [QUESTION]
    unit = task.units.first()
    task.units.filter(pk=unit.pk).update(stage="ADJUDICATION")
    client.force_login(person("ada", adjudicates=True).user)
    assert asked(client.get(f"/tasks/crowd/adjudication/{unit.pk}/").text) == [QUESTION]


def test_a_task_about_posts_is_asked_by_its_title(make_task, as_ann):
    make_task([DISPUTED])
    assert words(as_ann.get("/").text).count("Which language?") == 1


# --- paused, and closed


def offered(html):
    """The addresses of a page's forms and buttons, except those to log out and to stop."""
    forms = re.findall('<form[^>]*action="([^"]*)"', html)
    links = re.findall('class="(?:primary|button)" href="([^"]*)"', html)
    return [address for address in forms + links if not re.search("/(logout|pause)/$", address)]


@pytest.fixture
def paused(make_records_task, ann, manager):
    task = make_records_task(count=3)
    judge(ann, take(ann, task).pk, Answer("1"))
    pause(ann, task, by=manager, reason="too quick")
    return task


@pytest.mark.parametrize("address", ["/", "/tasks/crowd/", "/tasks/crowd/answers/"])
def test_who_is_paused_is_told_everywhere_and_offered_nothing(paused, as_ann, address):
    page = as_ann.get(address).text
    assert PAUSED in words(page)
    assert offered(page) == []


def test_who_is_paused_before_the_test_is_not_asked_to_read_or_to_take_it(make_records_task, as_ann, ann, manager):
    gold = {"practice": ["1", "0"], "test": ["1", "0"] * 4}
    task = make_records_task(gold=gold, test_items=4)
    pause(ann, task, by=manager, reason="too quick")
    for address in ("/", "/tasks/crowd/", "/tasks/crowd/qualification/en/"):
        page = as_ann.get(address).text
        assert PAUSED in words(page)
        assert offered(page) == []
        assert "Take the test" not in page
        assert "I have read them" not in page


def test_a_refusal_because_of_a_pause_leads_to_the_other_tasks(paused, as_ann):
    refused = as_ann.post("/tasks/crowd/undo/", headers={"HX-Request": "true"})
    assert refused.status_code == 403
    assert PAUSED in refused.text
    assert offered(refused.text) == []
    assert "See all tasks" in refused.text


def test_sheets_are_not_offered_to_who_is_paused(make_task, as_ann, ann, manager):
    task = make_task([DISPUTED], asked="de")
    assert "Start a sheet" in as_ann.get("/").text
    pause(ann, task, by=manager, reason="too quick")
    assert offered(as_ann.get("/").text) == []
    assert offered(as_ann.get("/tasks/task/sheet/").text) == []


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
    gold = {"practice": ["1", "0"], "test": ["1", "0"] * 4}
    return make_records_task(count=3, gold=gold, test_items=4, tries=3, languages=("en", "de"))


def fail(ann, task, kind="test", language="en"):
    trial = begin(ann, task, language, kind)
    while question := next_question(trial):
        answer(ann, question.pk, {"1": "0", "0": "1"}[question.gold_answer.label])


@pytest.mark.parametrize("address", ["/", "/tasks/crowd/"])
def test_what_waits_behind_each_test_is_told_and_how_many_tries_are_left(tested, as_ann, ann, address):
    page = words(as_ann.get(address).text)
    assert "3 wait in English once you have passed." in page
    assert "3 wait in German once you have passed." in page
    assert "left" not in page
    fail(ann, tested, "practice")
    for left in ("you have 2 tries left.", "you have 1 try left.", "not passed, no tries left"):
        fail(ann, tested)
        page = words(as_ann.get(address).text)
        assert left in page
        assert ("in English once" in page) == ("no tries" not in left)
    assert "3 wait in German once you have passed." in page


def test_what_is_behind_a_test_is_told_no_more_once_it_is_passed(tested, as_ann, ann):
    fail(ann, tested, "practice")
    trial = begin(ann, tested, "en", "test")
    while question := next_question(trial):
        answer(ann, question.pk, question.gold_answer.label)
    page = words(as_ann.get("/").text)
    assert "3 waiting in your languages" in page
    assert "in English once" not in page
    assert "3 wait in German once you have passed." in page


# --- an adjudicator's


def test_tasks_with_work_come_first_and_the_button_that_has_work_is_the_primary_one(make_task, person, client):
    tasks = [make_task([DISPUTED], name=name) for name in ("first", "second", "third")]
    ann, ada = person("ann", "de"), person("ada", adjudicates=True)
    # What its one reader skips goes to an adjudicator.
    skip(ann, take(ann, tasks[1]).pk)
    client.force_login(ada.user)
    page = client.get("/").text
    assert re.findall("<small>([a-z]+)</small></h2>", page)[0] == "second"
    assert re.findall('<a class="primary" href="([^"]*)"', page) == ["/tasks/second/adjudication/"]
    assert '<button class="primary">Start' not in page


def test_tasks_of_the_same_title_are_told_apart_by_their_names(make_task, person, client):
    for name in ("july", "august"):
        make_task([DISPUTED], name=name)
    client.force_login(person("ann", "de").user)
    home = client.get("/").text
    assert re.findall(r"<h2>(.*?)</h2>", without_bdi(home)) == [
        f"Which language? <small>{name}</small>" for name in Task.objects.values_list("name", flat=True)
    ]
    assert "<bdi>Which language?</bdi> · <bdi>july</bdi> · " in client.get("/tasks/july/answers/").text
    assert {str(task) for task in Task.objects.all()} == {"Which language? (july)", "Which language? (august)"}


def test_where_nothing_waits_the_home_page_urges_nobody(make_task, person, client):
    task, both, ann = make_task([DISPUTED], rounds=1), person("both", "en", adjudicates=True), person("ann", "de")
    client.force_login(both.user)
    home = client.get("/").text
    assert "<button>Start</button>" in home
    assert 'class="button"' not in home
    assert '<a href="/tasks/task/adjudication/">Nothing to adjudicate</a>' in home
    skip(ann, take(ann, task).pk)
    home = client.get("/").text
    assert '<a class="primary" href="/tasks/task/adjudication/" autofocus>Adjudicate 1</a>' in home
    assert "Nothing to adjudicate" not in home
    make_task([DISPUTED], name="more")
    client.force_login(ann.user)
    home = client.get("/").text
    assert len(re.findall('<button class="primary" autofocus>Continue', home)) == 1
    assert "djudicat" not in home


# --- in the order of use


def titles(client):
    return re.findall("<h2>(.*?)</h2>", without_bdi(client.get("/").text))


def test_what_one_did_last_comes_first_and_no_task_is_told_by_its_name_in_commands(make_task, person, client):
    ann = person("ann", "de")
    tasks = [make_task([DISPUTED] * 3, name=name, title=f"Posts of {name}?") for name in ("may", "june", "july")]
    client.force_login(ann.user)
    assert sorted(titles(client)) == ["Posts of july?", "Posts of june?", "Posts of may?"]
    for task in (tasks[0], tasks[1]):
        judge(ann, take(ann, task).pk, Answer("de"))
    assert titles(client) == ["Posts of june?", "Posts of may?", "Posts of july?"]


@pytest.mark.parametrize(
    ("languages", "told"),
    [
        ("ja", "You are not down as a reader of any language of this task."),
        ("de:3", "This task asks for readers of level 4 or more, and you are down with less in German."),
    ],
)
def test_who_cannot_read_a_task_is_told_so_and_offered_no_start(make_task, person, client, languages, told):
    make_task([DISPUTED])
    client.force_login(person("ann", languages).user)
    for address in ("/", "/tasks/task/"):
        page = client.get(address).text
        assert told in words(page)
        assert offered(page) == []


def test_an_adjudicator_who_reads_nothing_is_offered_no_start_and_told_nothing_of_reading(make_task, person, client):
    make_task([DISPUTED], asked="de")
    client.force_login(person("ada", adjudicates=True).user)
    page = client.get("/").text
    assert offered(page) == []
    assert "Nothing to adjudicate" in page
    assert not re.search("reader|answered today|waiting", words(page))


def test_a_manager_who_logs_in_lands_on_the_managers_pages(client, manager):
    form = {"username": "manager", "password": "a long password"}
    assert client.post("/login/", form, follow=True).redirect_chain[-1] == ("/manage/", 302)
    assert client.get("/", follow=True).redirect_chain == [("/manage/", 302)]
