"""Practice and a test with gold answers of spans: near marks count, and corrections name the marked words."""

import pytest
from django.urls import reverse

from annotate.controls import qualification
from annotate.controls.qualification import next_question
from annotate.models import Trial, TrialAnswer
from tests.annotate.acts import answer, begin, state
from tests.annotate.hands import let_guard_pass

# Each text is "the sentence of en-1", so the last word is at 16.
GOLD = {"practice": ["16:20:PER"], "test": ["16:20:PER", "4:12:ORG 16:20:PER"]}
ADDRESS = "/tasks/crowd/qualification/en/"


@pytest.fixture
def tested(make_records_task):
    return make_records_task("ner", gold=GOLD, test_items=2, pass_mark=0.5, tries=1)


def test_practice_names_the_words_that_are_marked_and_those_that_should_be(tested, person, client):
    ann = person("ann", "en")
    question = next_question(begin(ann, tested, "en", Trial.PRACTICE))
    client.force_login(ann.user)
    assert 'id="spans"' in client.get(ADDRESS).text
    form = {"question": question.pk, "answer": "4:12:PER"}
    page = client.post(reverse("qualification-answer", args=["crowd", "en"]), form, follow=True).text
    assert "“sentence”\u2069 \u2068Person" in page
    assert "“en-1”\u2069 \u2068Person" in page
    assert "16–20" not in page
    assert "Because of 16:20:PER." in page  # the explanation, as its author wrote it


def test_practice_is_marked_by_keys_as_the_work_is(tested, person, new_page):
    ann = person("ann", "en")
    begin(ann, tested, "en", Trial.PRACTICE)
    page = new_page(user=ann.user)
    page.goto(ADDRESS)
    let_guard_pass(page)
    for key in ("ArrowRight", "Digit1", "Enter"):
        page.keyboard.press(key)
    page.wait_for_selector(".explained")
    assert TrialAnswer.objects.get(answered_at__isnull=False).label == "0:3:PER"


def test_marks_that_are_near_enough_pass_and_others_do_not(tested, person):
    labels = {"16:20:PER": ("16:19:PER", "4:12:PER"), "4:12:ORG 16:20:PER": ("4:12:ORG 16:20:PER", "none")}
    for number, name in enumerate(("ann", "bea")):
        reader = person(name, "en")
        answer(reader, next_question(begin(reader, tested, "en", Trial.PRACTICE)).pk, "16:20:PER")
        trial = begin(reader, tested, "en", Trial.TEST)
        while question := next_question(trial):
            answer(reader, question.pk, labels[question.gold_answer.label][number])
        assert state(reader, tested, "en").step == (qualification.FAILED if number else qualification.PASSED)
