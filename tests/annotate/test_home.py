"""What a person finds at / and on a task's first page: what is asked, what waits, and nothing that would be refused."""

import re

import pytest

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
    return re.findall('<p class="asked" id="asked">([^<]*)</p>', html)


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
