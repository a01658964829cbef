"""The pages before the work: reading, practising, failing and passing the test; and what they never tell."""

import re

import pytest

from annotate.models import Judgment, Qualification, TrialAnswer
from annotate.quality.guidelines import new_version
from annotate.quality.qualification import grant, next_question
from annotate.work.pausing import pause
from corpora.models import Item
from tests.annotate.acts import answer, begin, state
from tests.annotate.hands import FRENCH, GRACE, Hands, worst_contrast

HTMX = {"HX-Request": "true"}
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
GOLD = {"practice": ["1", "0"], "test": ["1", "0"] * 4}
OTHER = {"1": "0", "0": "1"}
PATH = "/tasks/crowd/qualification/en/"


@pytest.fixture
def make_tested(make_records_task):
    def make(*, gold=GOLD, **knobs):
        return make_records_task(gold=gold, **({"test_items": 4, "pass_mark": 0.75, "tries": 2} | knobs))

    return make


@pytest.fixture
def task(make_tested):
    return make_tested()


@pytest.fixture
def ann(person):
    return person("ann", "en")


@pytest.fixture
def as_ann(client, ann):
    client.force_login(ann.user)
    return client


def go_through(annotator, task, kind, *, wrong=0, language="en"):
    trial = begin(annotator, task, language, kind)
    number = 0
    while question := next_question(trial):
        right = question.gold_answer.label
        answer(annotator, question.pk, OTHER[right] if number < wrong else right)
        number += 1


def practised(annotator, task, language="en"):
    go_through(annotator, task, "practice", language=language)
    return begin(annotator, task, language, "test")


def words(html):
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", html))


def says(client, question, label, **headers):
    return client.post(f"{PATH}answer/", {"question": question.pk, "answer": label}, headers=headers)


# --- guidelines


def test_the_guidelines_come_in_each_of_their_languages_with_their_version(make_tested, as_ann):
    task = make_tested(languages=("en", "fr"))
    new_version(task, "fr", "Lisez d’abord.", major=False)
    new_version(task, "fr", "Lisez tout d’abord.", major=False)
    page = as_ann.get("/tasks/crowd/guidelines/?language=fr").text
    assert "Lisez tout d’abord." in page
    assert "Version 1.1" in page
    assert "version=1.0" not in page
    english = as_ann.get("/tasks/crowd/guidelines/").text
    assert re.findall(r'<a href="\?language=(\w+)" (aria-current="page")?', english) == [
        ("en", 'aria-current="page"'),
        ("fr", ""),
    ]
    assert "Version 1.0" in english


def test_earlier_versions_are_for_managers_alone(task, as_ann, client, manager):
    new_version(task, "en", "Read better.", major=True)
    for query in ("?language=en&version=1.0", "?language=xx&version=1.0", "?version=a%00b"):
        assert as_ann.get(f"/tasks/crowd/guidelines/{query}").status_code == 404
    client.force_login(manager)
    page = client.get("/tasks/crowd/guidelines/").text
    assert '<a href="?language=en&amp;version=1.0">1.0</a>' in page
    earlier = client.get("/tasks/crowd/guidelines/?language=en&version=1.0").text
    assert "Read." in earlier
    assert "Annotators are shown version 2.0." in earlier


def test_a_language_without_guidelines_is_shown_those_of_another(make_tested, person, client):
    make_tested(languages=("en", "de"))
    client.force_login(person("bea", "de").user)
    page = client.get("/tasks/crowd/qualification/de/").text
    assert "there are none in German" in page
    assert '<div lang="en" dir="auto"><p>Read.</p>' in page


# --- the way there


def test_the_home_page_and_the_queue_lead_to_each_test(make_tested, person, client):
    task = make_tested(languages=("en", "de", "fr"), tries=1)
    bea = person("bea", "en de fr")
    client.force_login(bea.user)
    for address in ("/", "/tasks/crowd/"):
        page = client.get(address).text
        links = re.findall(r'href="/tasks/crowd/qualification/(\w+)/">([^<]*)<', page)
        assert links == [(code, f"Take the test in {name}") for code, name in
                         (("de", "German"), ("en", "English"), ("fr", "French"))]  # fmt: skip
        assert "Start</button>" not in page
        assert "Look again" not in page
    practised(bea, task, "de")
    go_through(bea, task, "practice", language="fr")
    go_through(bea, task, "test", language="fr", wrong=4)
    go_through(bea, task, "practice")
    go_through(bea, task, "test")
    page = client.get("/").text
    links = re.findall(r'href="/tasks/crowd/qualification/(\w+)/">([^<]*)<', page)
    assert links == [("de", "Go on with the test in German"), ("fr", "Test in French: not passed, no tries left")]
    assert "Start</button>" in page


def test_the_queue_says_why_it_is_empty(task, ann, as_ann):
    def why():
        return re.search("<h1>(.*?)</h1>", as_ann.get("/tasks/crowd/").text)[1]

    assert why() == "Before you begin, there is a short test. Read the guidelines and take it."
    go_through(ann, task, "practice")
    go_through(ann, task, "test", wrong=4)
    go_through(ann, task, "test", wrong=4)
    assert why() == "You have not passed the test, and have no tries left. The manager can still let you in."
    new_version(task, "en", "Otherwise.", major=True)
    assert why() == "The guidelines have changed, and with them what is right. Read them and take the new test."


def test_a_task_without_a_test_shows_its_guidelines_and_begins(make_tested, as_ann):
    make_tested(test_items=0)
    page = as_ann.get(PATH).text
    assert "No test is asked for." in page
    assert '<form class="onwards" method="post" action="/tasks/crowd/start/">' in page
    assert "qualification" not in as_ann.get("/").text


def test_who_does_not_read_the_language_is_told_so(task, person, client):
    client.force_login(person("bea", "fr").user)
    assert client.get(PATH).status_code == 403
    assert client.get("/tasks/crowd/qualification/fr/").status_code == 404
    assert client.get("/tasks/crowd/qualification/x%00/").status_code == 404


# --- practice


def test_practice_is_explained_item_by_item(task, ann, as_ann):
    as_ann.post(f"{PATH}practice/")
    first = next_question(ann.trials.get())
    page = as_ann.get(PATH).text
    assert first.gold_answer.item.fields["passage"] in page
    assert "Because" not in page
    shown = says(as_ann, first, "0", **HTMX).text
    assert "It is Yes You said No. Because of 1." in words(shown)
    assert first.gold_answer.item.fields["passage"] in shown
    assert "<html" not in shown
    second = next_question(ann.trials.get())
    after = as_ann.get(PATH, headers=HTMX).text
    assert second.gold_answer.item.fields["passage"] in after
    shown = says(as_ann, second, "0", **HTMX).text
    assert "Right: No Because of 0." in words(shown)
    assert "On to the test" in shown
    assert "Begin the test" in as_ann.get(PATH).text


def test_without_htmx_an_answer_leads_to_its_explanation(task, ann, as_ann):
    as_ann.post(f"{PATH}practice/")
    first = next_question(ann.trials.get())
    after = says(as_ann, first, "0")
    assert after.url == f"{PATH}?answered={first.pk}"
    assert "It is Yes You said No. Because of 1." in words(as_ann.get(after.url).text)


def test_an_explanation_is_of_ones_own_answered_practice_alone(task, ann, as_ann, person):
    bea = person("bea", "en")
    go_through(bea, task, "practice")
    others = TrialAnswer.objects.first()
    begin(ann, task, "en", "practice")
    open_one = next_question(ann.trials.get())
    for pk in (others.pk, open_one.pk, 10**18, "x", "-1"):
        page = as_ann.get(f"{PATH}?answered={pk}").text
        assert "Because" not in page
        assert open_one.gold_answer.item.fields["passage"] in page


# --- the test


def test_nothing_on_a_page_tells_what_is_right_before_the_end_of_the_test(make_tested, ann, as_ann):
    """Two tests that differ in what is right alone, with the same answers, are the same pages."""
    seen = []
    for label in ("1", "0"):
        task = make_tested(name=f"crowd{label}", gold={"test": [label] * 8})
        path = f"/tasks/{task.name}/qualification/en/"
        begin(ann, task, "en", "practice")
        begin(ann, task, "en", "test")
        pages = []
        for _ in range(3):
            question = next_question(ann.trials.filter(task=task).last())
            fields = {"question": question.pk, "answer": "1"}
            pages += [
                as_ann.get(path).text,
                as_ann.post(f"{path}answer/", fields, headers=HTMX).text,
                as_ann.post(f"{path}answer/", fields, headers=HTMX).text,
                as_ann.get(f"{path}?answered={question.pk}").text,
                as_ann.get("/tasks/crowd1/").text if label == "1" else as_ann.get("/tasks/crowd0/").text,
            ]
        html = "\n".join(pages)
        html = re.sub(r'(name="csrfmiddlewaretoken" value=")\w+|(name="question" value=")\d+', r"\1\2", html)
        seen.append(re.sub(r"crowd\d|en-\d+", "…", html))
    assert seen[0] == seen[1]
    assert "Because" not in seen[0]
    assert 'class="explained' not in seen[0]


def test_a_test_looks_like_work_and_has_no_way_to_skip(task, ann, as_ann):
    practised(ann, task)
    page = as_ann.get(PATH).text
    assert re.findall(r'<button name="answer" value="(\d)" data-key="(\w+)"', page) == [
        ("1", "Digit1"),
        ("0", "Digit2"),
    ]
    assert 'name="skip"' not in page
    assert "Test, question 1 of 4" in words(page)


def test_the_end_of_a_test_tells_the_score_the_mark_and_what_was_missed(task, ann, as_ann):
    practised(ann, task)
    go_through(ann, task, "test", wrong=2)
    page = as_ann.get(PATH).text
    told = words(page)
    assert "Not passed: 2 of 4 right" in told
    assert "3 would have passed. You may take the test once more" in told
    assert "The 2 that you missed" in told
    missed = [each for each in TrialAnswer.objects.filter(trial__kind="test") if each.label != each.gold_answer.label]
    assert all(each.gold_answer.item.fields["passage"] in page for each in missed)
    assert page.count("Because of") == 2
    as_ann.post(f"{PATH}test/")
    assert "Because of" not in as_ann.get(PATH).text
    go_through(ann, task, "test", wrong=1)
    told = words(as_ann.get(PATH).text)
    assert "Passed: 3 of 4 right" in told
    assert "The one that you missed" in told
    assert "Start work" in told


def test_who_has_no_tries_left_is_refused_in_a_sentence(task, ann, as_ann):
    go_through(ann, task, "practice")
    for _ in range(2):
        go_through(ann, task, "test", wrong=4)
    page = as_ann.get(PATH).text
    assert "You have no tries left. The manager can still let you work in English" in words(page)
    assert "<button" not in page.partition('id="work"')[2].partition("</section>")[0]
    refused = as_ann.post(f"{PATH}test/")
    assert refused.status_code == 403
    assert "used all your tries" in refused.text
    assert f'href="{PATH}"' in refused.text


def test_who_was_let_in_by_the_manager_is_told_so(task, ann, as_ann, manager):
    go_through(ann, task, "practice")
    go_through(ann, task, "test", wrong=4)
    grant(ann, task, "en", by=manager)
    assert "The manager has let you in without the test." in as_ann.get(PATH).text


def test_a_second_tab_that_says_otherwise_is_told_and_shown_the_way_on(task, ann, as_ann):
    question = next_question(practised(ann, task))
    says(as_ann, question, "1")
    refused = says(as_ann, question, "0", **HTMX)
    assert (refused.status_code, refused["HX-Retarget"]) == (409, "#notice")
    assert "You have already answered Yes here" in refused.text
    assert f'<a data-key="Enter" href="{PATH}">Go on <kbd>↵</kbd></a>' in refused.text
    assert TrialAnswer.objects.get(pk=question.pk).label == "1"


@pytest.mark.parametrize(
    ("fields", "status"),
    [({}, 400), ({"question": "x"}, 400), ({"question": "0", "answer": "1"}, 404), ({"question": "999999"}, 404)],
)
def test_a_form_that_names_no_question_is_refused(task, ann, as_ann, fields, status):
    practised(ann, task)
    assert as_ann.post(f"{PATH}answer/", fields).status_code == status


def test_an_answer_that_the_task_does_not_take_is_refused(task, ann, as_ann):
    question = next_question(practised(ann, task))
    for label in ("2", "", "und"):
        assert says(as_ann, question, label).status_code == 400
    assert state(ann, task, "en").step == "test"


def test_an_answer_to_a_question_of_another_task_is_refused(make_tested, task, ann, as_ann):
    other = next_question(practised(ann, make_tested(name="other")))
    assert says(as_ann, other, "1").status_code == 404


def test_who_is_paused_is_told_so(task, ann, as_ann, manager):
    practised(ann, task)
    pause(ann, task, by=manager, reason="a question")
    refused = as_ann.post(f"{PATH}test/")
    assert refused.status_code == 403
    assert "paused" in refused.text


# --- in a browser

in_browser = pytest.mark.django_db(transaction=True, serialized_rollback=True)


def right_key(annotator, *, right=True):
    """The key of the right answer, or of the wrong one, to the question on the screen."""
    label = next_question(annotator.trials.filter(finished_at=None).get()).gold_answer.label
    return {"1": "Digit1", "0": "Digit2"}[label if right else OTHER[label]]


def heading(page):
    return page.inner_text("#work h1")


@in_browser
def test_by_keyboard_one_reads_practises_fails_passes_and_works(new_page, task, ann):
    page = new_page(user=ann.user)
    hands = Hands(page, FRENCH)
    page.goto("/")
    page.click("text=Take the test in English")
    assert "version 1.0" in page.inner_text("#work")
    page.wait_for_timeout(GRACE)
    hands.press("Enter")  # I have read them
    page.wait_for_selector("#answers")
    for right, said in ((False, "It is Yes"), (True, "Right: No")):
        hands.press_and_wait(right_key(ann, right=right))
        assert said in page.inner_text(".explained")
        hands.press_and_wait("Enter")
    assert heading(page) == "The test in English"
    for right, result in ((False, "Not passed: 0 of 4 right"), (True, "Passed: 4 of 4 right")):
        page.wait_for_timeout(GRACE)
        hands.press("Enter")  # Begin the test; Take the test again
        page.wait_for_selector("#answers")
        for _ in range(4):
            hands.press_and_wait(right_key(ann, right=right))
        assert heading(page) == result
    page.wait_for_timeout(GRACE)
    hands.press("Enter")  # Start work
    page.wait_for_selector("button:has-text('Skip')")
    hands.press_and_wait("Digit1")
    assert Judgment.objects.get().label == "1"


@in_browser
def test_after_the_last_try_there_is_no_way_on(new_page, make_tested, ann):
    task = make_tested(tries=1)
    practised(ann, task)
    page = new_page(user=ann.user)
    page.goto(PATH)
    hands = Hands(page, FRENCH)
    for _ in range(4):
        hands.press_and_wait(right_key(ann, right=False))
    assert heading(page) == "Not passed: 0 of 4 right"
    assert "no tries left" in page.inner_text("#work")
    page.wait_for_timeout(GRACE)
    hands.press("Enter")
    page.goto("/tasks/crowd/")
    assert "no tries left" in page.inner_text("#work")
    assert page.locator("button:has-text('Start')").count() == 0
    assert ann.trials.filter(kind="test").count() == 1


@in_browser
def test_guidelines_that_change_in_the_middle_of_a_test_are_read_and_the_test_is_taken_anew(
    new_page, task, ann, console_errors
):
    practised(ann, task)
    page = new_page(user=ann.user)
    page.goto(PATH)
    hands = Hands(page, FRENCH)
    hands.press_and_wait("Digit1")
    new_version(task, "en", "Now otherwise.", major=True)
    page.wait_for_timeout(GRACE)
    hands.press("Digit1")
    page.wait_for_selector("text=The guidelines have changed since you began")
    console_errors.clear()  # the refusal
    page.click("text=Go on")
    assert "used up none of your tries" in page.inner_text("#work")
    assert "Now otherwise." in page.inner_text("#work")
    page.click("text=I have read them")
    page.wait_for_selector("#answers")
    for _ in range(2):
        hands.press_and_wait("Digit1")
        hands.press_and_wait("Enter")
    assert "You may take it twice" in page.inner_text("#work")


@in_browser
def test_an_answer_whose_reply_was_lost_is_counted_once(new_page, task, ann, console_errors):
    practised(ann, task)
    page = new_page(user=ann.user)
    page.goto(PATH)
    hands = Hands(page, FRENCH)

    def lose(route):
        route.fetch()
        route.abort()

    page.route("**/answer/", lose, times=1)
    page.wait_for_timeout(GRACE)
    hands.press("Digit1")
    page.wait_for_selector("text=There is no connection")
    console_errors.clear()  # the lost reply
    hands.press_and_wait("Digit1")
    assert "question 2 of 4" in page.inner_text(".progress")
    assert TrialAnswer.objects.filter(trial__kind="test").exclude(label="").count() == 1


@in_browser
def test_an_answer_in_a_second_tab_that_is_behind_is_told_in_its_place_and_enter_goes_on(
    new_page, task, ann, console_errors
):
    question = next_question(practised(ann, task))
    page = new_page(user=ann.user)
    page.goto(PATH)
    answer(ann, question.pk, "1")
    page.wait_for_timeout(GRACE)
    hands = Hands(page, FRENCH)
    hands.press("Digit2")
    page.wait_for_selector("#notice .notice")
    assert "You have already answered Yes here, and that stands." in page.inner_text("#notice")
    assert "question 1 of 4" in page.inner_text(".progress")
    console_errors.clear()  # the refusal
    with page.expect_navigation():
        hands.press("Enter")
    assert "question 2 of 4" in page.inner_text(".progress")


@in_browser
def test_everything_works_without_javascript(new_page, task, ann):
    page = new_page(user=ann.user, java_script_enabled=False)
    page.goto("/")
    page.click("text=Take the test in English")
    page.click("text=I have read them")
    for _ in range(2):
        page.click("button:has-text('Yes')")
        page.click("text=/Next|On to the test/")
    for right, result in ((False, "Not passed"), (True, "Passed")):
        page.click("text=/Begin the test|Take the test again/")
        for _ in range(4):
            page.click(f"button[data-key={right_key(ann, right=right)}]")
        assert result in page.inner_text("h1")
    page.click("text=Start work")
    page.click("button:has-text('Yes')")
    assert Qualification.objects.count() == Judgment.objects.count() == 1


RIGHT_TO_LEFT = {
    "he": ("כמה מיתרים יש לכינור?", "לכינור ארבעה מיתרים. number 4", "המספר נאמר: ארבעה."),
    "ar": ("كم عدد أوتار الكمان؟", "للكمان أربعة أوتار. number 4", "العدد مذكور: أربعة."),
}


@in_browser
@pytest.mark.parametrize("language", RIGHT_TO_LEFT)
def test_records_and_explanations_from_right_to_left(new_page, make_tested, person, language):
    task, bea = make_tested(languages=(language,)), person("bea", language)
    question, passage, why = RIGHT_TO_LEFT[language]
    Item.objects.update(fields={"question": question, "passage": passage})
    task.gold_answers.update(explanation=why)
    begin(bea, task, language, "practice")
    page = new_page(user=bea.user)
    page.goto(f"/tasks/crowd/qualification/{language}/")

    def directions(selector):
        return page.locator(selector).evaluate_all("nodes => nodes.map(node => getComputedStyle(node).direction)")

    assert directions("#post dd p") == ["rtl", "rtl"]
    Hands(page, FRENCH).press_and_wait("Digit2")
    assert directions("#post dd p") == ["rtl", "rtl"]
    assert directions(".explained p") == ["rtl"]
    # What we say ourselves stays in its order.
    said = page.locator(".explained h2 bdi")
    assert said.evaluate("node => getComputedStyle(node).unicodeBidi") == "isolate"
    left = said.evaluate(
        """node => {
          const range = document.createRange();
          return [...node.childNodes].map(child => (range.selectNode(child), range.getBoundingClientRect().left));
        }"""
    )
    assert left == sorted(left)
    go_through(bea, task, "practice", language=language)
    go_through(bea, task, "test", language=language, wrong=4)
    page.goto(f"/tasks/crowd/qualification/{language}/")
    assert set(directions(".missed dd p") + directions(".missed .explained p")) == {"rtl"}


LONG = "Donaudampfschifffahrtsgesellschaft" * 6


def every_step(page, task, annotator):
    """Take a page through every step; yields the name of each as it is shown."""
    page.goto("/")
    yield "home"
    page.goto("/tasks/crowd/")
    yield "queue"
    page.goto(PATH)
    yield "guidelines"
    page.click("text=I have read them")
    page.wait_for_selector("#answers")
    yield "practice"
    page.wait_for_timeout(GRACE)
    page.click("#answers button[value='1']")
    page.wait_for_selector(".explained.right")
    yield "right"
    page.click("text=Next")
    page.wait_for_selector("#answers")
    page.wait_for_timeout(GRACE)
    page.click("#answers button[value='1']")
    page.wait_for_selector(".explained:not(.right)")
    yield "wrong"
    page.click("text=On to the test")
    page.wait_for_selector("text=Begin the test")
    yield "test"
    page.click("text=Begin the test")
    page.wait_for_selector("#answers")
    yield "question"
    for wrong in (2, 1):
        go_through(annotator, task, "test", wrong=wrong)
        page.goto(PATH)
        yield f"{wrong} missed"
    new_version(task, "en", "Otherwise.", major=True)
    page.goto(PATH)
    yield "new guidelines"
    page.goto("/tasks/crowd/guidelines/")
    yield "guidelines alone"


DESK = {"viewport": {"width": 1280, "height": 740}}


@in_browser
@pytest.mark.parametrize(("options", "scheme"), [(PHONE, "dark"), (DESK, "light")], ids=["phone", "desk"])
def test_at_every_step_nothing_sticks_out_all_is_legible_and_buttons_fit_a_thumb(new_page, task, ann, options, scheme):
    Item.objects.update(fields={"question": LONG, "passage": LONG})
    task.gold_answers.update(explanation=LONG)
    new_version(task, "en", f"# {LONG}\n\n| a | b |\n|---|---|\n| {LONG} | {LONG} |", major=False)
    page = new_page(user=ann.user, color_scheme=scheme, **options)
    for step in every_step(page, task, ann):
        assert page.evaluate("document.documentElement.scrollWidth") <= options["viewport"]["width"], step
        assert worst_contrast(page) >= 4.5, step
        heights = page.locator("#work button:not(.plain):visible, #work a.primary:visible").evaluate_all(
            "nodes => nodes.map(node => node.getBoundingClientRect().height)"
        )
        assert min(heights, default=44) >= 44, step
