"""The manager's pages: content for every kind of task, actions, and their look in a real browser."""

import re
from datetime import timedelta
from xml.etree import ElementTree

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotate.core import pause_rule
from annotate.kinds import KINDS, Answer
from annotate.models import Judgment, Pause, Task, Unit
from annotate.work.judgments import judge
from annotate.work.permit import current_pause
from annotate.work.queue import take
from corpora.core.languages import LANGUAGES
from tests.annotate.acts import signed_in, words
from tests.annotate.conftest import AGREED, DISPUTED
from tests.looks import A4, lay_on_paper, too_wide

SVG = "{http://www.w3.org/2000/svg}"
PAGES = (
    *("", "items/", "people/", "quality/", "agreement/", "agreement/?show=1"),
    *("tests/", "pace/", "comments/", "rule/"),
)


@pytest.fixture
def crowd(make_records_task, person, judged, monkeypatch, tried):
    """A half-finished task in two languages with three people, one of whom is always wrong and was paused."""
    monkeypatch.setattr(pause_rule, "LEAST", 3)
    gold = {"queue": ["1", "0"] * 3, "test": ["1", "0"] * 3}
    task = make_records_task(count=10, languages=("en", "de"), gold=gold, gold_share=0.25, test_items=5)
    people = [person(name, "en de") for name in ("ann", "bea", "max")]
    for annotator in people:
        annotator.user.first_name = annotator.user.username.capitalize()
        annotator.user.save()
        for language in task.languages:
            tried(annotator, task, language, right=4)
    for number, unit in enumerate(task.units.all()):
        truth = unit.known_answer or "10"[unit.pk % 2]
        # In each language, some units have three answers, some two, and some none.
        for annotator in people[: (3, 2, 3, 0)[number % 4]]:
            label = ("0" if truth == "1" else "1") if annotator == people[2] else truth
            judgment = judged(annotator, unit, label, active_seconds=3.0 + number % 5)
            at = timezone.now() - timedelta(hours=2 * number)
            Judgment.objects.filter(pk=judgment.pk).update(answered_at=at)
        if not unit.honeypot and number % 2 == 0:
            Unit.objects.filter(pk=unit.pk).update(stage="LABELLED", label=truth)
    Pause.objects.create(annotator=people[2], task=task, right=0, asked=6, at=timezone.now())
    return task


@pytest.fixture
def max_(crowd):
    return Pause.objects.get().annotator


def address(task, page=""):
    return f"/manage/tasks/{task.name}/{page}"


# --- every kind of task


def test_every_page_shows_a_crowd_task_by_few_queries_with_sound_plots_and_no_markup_of_others(
    crowd, desk, django_assert_max_num_queries, data_dir
):
    User.objects.filter(username="ann").update(first_name='<b onload="x">')
    desk.get("/docs/")  # the manager's page settings are read once
    plots = []
    for page in PAGES:
        # The first page of a task forecasts its end, which asks about people and their days, and shows controls.
        with django_assert_max_num_queries(32 if page else 47):
            reply = desk.get(address(crowd, page))
        assert (reply.status_code, "<b onload" in reply.text) == (200, False), page
        plots += re.findall(r"<svg xmlns.*?</svg>\n", reply.text, re.DOTALL)
    titles = {ElementTree.fromstring(plot).find(f"{SVG}title").text for plot in plots}
    assert titles == {
        "Items by state",
        "Answers per hour",
        "Items by language and state",
        "Answers per hour in the last 24 hours",
        "Answers per hour since the beginning",
        "Seconds per answer, by language",
        "Seconds per answer, by annotator",
        "Accuracy on gold answers",
        "Krippendorff’s alpha (nominal)",
        "Each annotator against the others",
    }
    assert reply.text.count("<small>this task</small>") == 4
    assert "the 20th is an annotator’s 80th item" in words(reply)


def test_the_list_of_tasks_takes_as_many_queries_for_four_of_them_as_for_one(
    crowd, desk, make_records_task, make_task, person
):
    page = "/manage/"
    desk.get(page)
    with CaptureQueriesContext(connection) as alone:
        assert desk.get(page).status_code == 200
    make_records_task(name="fresh", languages=("en", "fr"), gold={"test": ["1"] * 5}, test_items=5)
    make_task([DISPUTED, AGREED], name="posts")
    make_task([DISPUTED], name="asking", asked="de")
    with CaptureQueriesContext(connection) as all_four:
        shown = desk.get(page).text
    assert all(name in shown for name in ("crowd", "fresh", "posts", "asking"))
    assert len(all_four) == len(alone) <= 38


def test_a_persons_page_takes_as_many_statements_however_many_people_there_are(
    crowd, max_, desk, person, judged, tried
):
    at = address(crowd, f"people/{max_.pk}/")
    desk.get(at)
    with CaptureQueriesContext(connection) as few:
        before = words(desk.get(at))
    for name in ("cem", "dan", "eva"):
        other = person(name, "en de")
        tried(other, crowd, "en", right=4)
        Pause.objects.create(annotator=other, task=crowd, right=0, asked=6, at=timezone.now())
    with CaptureQueriesContext(connection) as many:
        assert words(desk.get(at)).count("0 of 6") == before.count("0 of 6")
    assert len(many) == len(few) <= 31


@pytest.mark.slow
def test_a_task_that_has_just_been_opened_has_pages_too(make_records_task, make_task, desk):
    imported = make_records_task(name="imported")
    tasks = [
        make_records_task(count=0, name="empty"),
        make_records_task(name="fresh", gold={"test": ["1"] * 5, "queue": ["1"]}, test_items=5, gold_share=0.1),
        make_task([DISPUTED], name="posts"),
        make_task([DISPUTED], name="asking", asked="de"),
        make_task([], name="none"),
        imported,
    ]
    assert "Pause rule" in desk.get(address(imported, "quality/")).text
    Task.objects.filter(pk=imported.pk).update(kind_slug="imported", kind_file=KINDS["imported"].source)
    for task in tasks:
        for page in PAGES:
            reply = desk.get(address(task, page))
            assert reply.status_code == 200, (task.name, page)
            # They have no test and no pauses.
            assert task.name in ("empty", "fresh") or ">Pause rule</a>" not in reply.text, (task.name, page)


def test_tasks_of_posts_have_no_pages_for_tests_and_pauses(make_task, person, desk):
    task, single = make_task([DISPUTED, DISPUTED, AGREED], redundancy=2), make_task([DISPUTED], name="single")
    ann, bea = person("ann", "de"), person("bea", "de")
    for annotator in (ann, bea):
        while lease := take(annotator, task):
            judge(annotator, lease.pk, Answer("de"), active_seconds=0.0)
    assert "auto-labelled" in desk.get(address(task)).text
    quality = desk.get(address(task, "quality/")).text
    assert not [words_of_tab for words_of_tab in ("Test and gold answers", "Pause rule") if words_of_tab in quality]
    people = words(desk.get(address(task, "people/")))
    assert ("gold answers" in people, "de" in people) == (False, True)
    assert "1.00" in words(desk.get(address(task, "agreement/?show=1")))
    judge(ann, take(ann, single).pk, Answer("de"))
    assert "--redundancy 1.1" in desk.get(address(single, "agreement/?show=1")).text


def test_agreement_is_computed_when_it_is_asked_for(crowd, desk, monkeypatch):
    from annotate.quality import agreement_statistics

    calls, report = [], agreement_statistics.report
    monkeypatch.setattr(
        agreement_statistics, "report", lambda *arguments, **named: calls.append(named) or report(*arguments, **named)
    )
    assert "Compute agreement" in desk.get(address(crowd, "agreement/")).text
    assert calls == []
    page = desk.get(address(crowd, "agreement/?show=1"))
    assert "Krippendorff" in page.text
    desk.get(address(crowd, "agreement/?show=1&sort=rest.-kappa"))
    assert calls == [{"replicates": 200}]
    Judgment.objects.filter(voided_at=None).first().delete()
    desk.get(address(crowd, "agreement/?show=1"))
    assert len(calls) == 2


# --- what waits for the manager


def test_the_badge_counts_the_entries_of_the_dashboard_on_every_page_of_staff_and_of_nobody_else(crowd, max_, desk):
    def entries_now():
        return desk.get("/manage/").text.partition('class="wants"')[2].partition("</section>")[0].count("<li>")

    entries = entries_now()
    assert entries >= 1
    for at in ("/account/", "/manage/", address(crowd)):
        assert f'<b class="badge" title="needs attention">{entries}<' in desk.get(at).text, at
    assert "1 annotator newly paused" in words(desk.get("/manage/"))
    assert "badge" not in signed_in(User.objects.get(username="ann")).get("/").text
    assert "needs attention" not in signed_in(max_).get("/").text
    desk.post(address(crowd, f"people/{max_.pk}/lift/"))
    assert "needs attention" not in desk.get("/account/").text
    assert entries_now() == 0


def test_queues_that_stand_still_are_told_of_a_few_of_each_task(make_records_task, desk):
    languages = ("de", "en", "es", "fr", "it", "nl", "pl")
    make_records_task(count=1, languages=languages)
    page = words(desk.get("/manage/"))
    assert page.count("No active annotator reads") == 5
    assert "2 more stalled queues" in page


def test_many_entries_are_listed_in_pages_and_all_counted_in_the_badge(make_records_task, desk):
    for number in range(4):
        make_records_task(count=1, languages=("de", "en", "es", "fr", "it", "nl"), name=f"records-{number}")

    def entries_of(page):
        return page.partition('class="wants"')[2].partition("</section>")[0]

    first, second = (entries_of(desk.get("/manage/", {"entries": number}).text) for number in (1, 2))
    assert (first.count("<li>"), second.count("<li>")) == (15, 9)
    assert ("1–15 of 24" in first, "16–24 of 24" in second) == (True, True)
    assert 'href="?entries=2#wants"' in first
    assert '<b class="badge" title="needs attention">24<' in desk.get("/account/").text
    newest, oldest = (f"/manage/tasks/records-{number}/" for number in (3, 0))
    assert (newest in first, oldest in first, newest in second, oldest in second) == (True, False, False, True)


def test_letting_go_on_is_said_and_done_once(crowd, max_, desk):
    assert 'href="/manage/"' in desk.get("/admin/").text
    assert f'href="{address(crowd, "settings/")}"' in desk.get(address(crowd)).text
    act(desk, crowd, max_, "pause", reason="talked to him")  # a person who stays paused is no longer news
    assert "newly paused" not in words(desk.get("/manage/"))
    assert "talked to him" in desk.get(address(crowd, "people/")).text
    assert "Max can continue." in words(act(desk, crowd, max_, "lift"))
    assert current_pause(max_, crowd) is None
    again = words(act(desk, crowd, max_, "lift"))
    assert "Max is not paused, so nothing was changed." in again
    assert "Max can continue." not in again


# --- what a manager does


def act(desk, task, annotator, action, **fields):
    return desk.post(f"/manage/tasks/{task.name}/people/{annotator.pk}/{action}/", fields, follow=True)


def test_voiding_says_first_what_it_would_do_and_then_what_it_did(crowd, max_, desk):
    judgments = Judgment.objects.filter(annotator=max_, voided_at=None)
    count, units = judgments.count(), Unit.objects.filter(pk__in=judgments.values("unit"), honeypot=False)
    to_reopen = units.exclude(stage="QUEUED").count()
    pages = [address(crowd, "people/"), address(crowd, f"people/{max_.pk}/")]
    assert ["Void their answers" in desk.get(at).text for at in pages] == [True, True]
    at = f"{pages[1]}void/"
    assert f"Void {count} answers" in words(desk.get(at))
    assert judgments.count() == count
    refused = desk.post(at, {"reason": ""})
    assert (refused.status_code, "Enter a short reason" in refused.text) == (400, True)
    done = words(act(desk, crowd, max_, "void", reason="random"))
    units = "1 item was" if to_reopen == 1 else f"{to_reopen} items were"
    assert f"Voided {count} answers of Max; {units} returned to the queue." in done
    assert "has no answers in this task that count" in words(desk.get(at))
    assert ["Void their answers" in desk.get(at).text for at in pages] == [False, False]
    for at in ("tasks/other/", "tasks/crowd/people/0/", "tasks/crowd/people/0/void/"):
        assert desk.get(f"/manage/{at}").status_code == 404


def test_staff_without_the_permission_look_and_are_offered_nothing(crowd, max_):
    User.objects.filter(pk=max_.user_id).update(email="max@example.org")
    client = signed_in(User.objects.create_user("staff", is_staff=True))
    offers = (
        'method="post"',
        "<textarea",
        "Invite people",
        "New manager",
        "New route",
        "Void their answers",
        "max@example",
    )
    for at, shown in (
        *((path, "Max") for path in ("/manage/people/", f"/manage/accounts/{max_.pk}/")),
        ("/manage/routes/", "hi-Latn"),
        *((address(crowd, path), "Max") for path in ("people/", f"people/{max_.pk}/")),
        (address(crowd, "guidelines/"), "<p>Read.</p>"),
        (address(crowd, "settings/"), "Answers per item"),
    ):
        page = client.get(at).text.split("<main")[1].split("</main>")[0]
        assert (shown in page, [offer for offer in offers if offer in page]) == (True, []), at


# --- tables and plots of the pages


@pytest.mark.slow
def test_the_tables_of_every_page_are_sorted_by_their_headings(crowd, max_, desk):
    for page in (*PAGES, f"people/{max_.pk}/"):
        shown = desk.get(address(crowd, page)).text
        links = set(re.findall(r'<th scope="col"[^>]*><a href="[^"?]*(\?[^"#]*)#', shown))
        assert links or page in ("items/", "quality/", "agreement/", "pace/", "comments/")
        for link in sorted(links)[::3]:
            answer = desk.get(address(crowd, page.partition("?")[0]) + link.replace("&amp;", "&"))
            assert answer.status_code == 200, link
            assert "aria-sort" in answer.text, link


def test_a_language_whose_code_is_part_of_a_word_that_is_marked_is_not_marked(make_records_task, desk):
    task = make_records_task(languages=("ne", "de"))
    page = desk.get(address(task)).text
    assert "<small>ne</small>" in page
    assert '<small class="mark">ne' not in page


@pytest.fixture
def wide(make_task):
    """A task with a long progress table."""
    languages = [code for code, language in LANGUAGES.items() if not language.labels][:31]
    return make_task([(code, code, code) for code in languages], labels=languages)


@pytest.mark.slow
def test_a_long_table_has_a_page_of_its_own_and_of_its_languages_a_few_are_plotted(wide, make_task, desk):
    page = desk.get(address(wide)).text
    assert ('id="progress"' in page, "The 12 languages with the most items, of 31" in page) == (False, True)
    assert 'href="/manage/tasks/task/?table=progress"' in page
    assert len(page) < 25_000
    alone = desk.get(address(wide), {"table": "progress", "sort": "progress.-units"}).text
    assert (alone.count("<tr"), "<svg xmlns" in alone, "aria-sort" in alone) == (33, False, True)
    assert desk.get(address(wide), {"table": "nothing"}).status_code == 404
    assert 'id="progress"' in desk.get(address(make_task([AGREED], name="short"))).text


@pytest.mark.slow
def test_a_long_table_is_loaded_when_it_is_opened(new_page, wide, manager):
    page = new_page(user=manager)
    page.goto(address(wide))
    page.get_by_text("Table: Progress by language").click()
    assert page.locator("#progress tbody tr").nth(31).inner_text().startswith("all languages")


# --- in a browser

DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}


@pytest.mark.slow
def test_every_page_has_plots_that_fit_it_and_is_light_and_whole_on_paper(new_page, crowd, max_, manager):
    page, of_max = new_page(user=manager, color_scheme="dark"), f"people/{max_.pk}/"
    for at in ("/manage/", "/manage/people/", *(address(crowd, part) for part in (*PAGES, of_max, f"{of_max}void/"))):
        page.set_viewport_size(DESK)
        page.goto(at)
        if at == address(crowd, "pace/"):
            plots = page.locator("svg.plot")
            sizes = plots.evaluate_all("plots => plots.map(plot => plot.getBoundingClientRect().height)")
            assert (len(sizes), min(sizes) > 40) == (3, True)
            fills = plots.locator("text").evaluate_all("all => [...new Set(all.map(t => getComputedStyle(t).fill))]")
            assert len(fills) <= 2
        page.set_viewport_size(PHONE)
        assert page.evaluate("[...document.querySelectorAll('.plot-wide')].every(e => !e.checkVisibility())"), at
        page.set_viewport_size(A4)
        lay_on_paper(page)
        assert too_wide(page, "body, .manage .scroll") == [], at
        # A form is not for printing.
        if not at.endswith("void/"):
            assert not page.locator("button, .tabs, .top, input, .of-table").filter(visible=True).count(), at
        assert page.locator("html").evaluate("each => getComputedStyle(each).backgroundColor") == "rgb(255, 255, 255)"
        page.emulate_media(media="screen")


# --- what people wrote, and grades in words


def test_what_people_wrote_is_listed_by_task_and_by_person(make_records_task, person, desk):
    task, other = make_records_task(count=3), make_records_task(count=1, name="other")
    ann, bea = person("ann", "en"), person("bea", "en")
    page = "/manage/tasks/crowd/comments/"
    assert "No comments yet." in words(desk.get(page))
    judge(ann, take(ann, task).pk, Answer("1", comment="odd, <b>very</b>"))
    judge(ann, take(ann, task).pk, Answer("0"))
    judge(bea, take(bea, task).pk, Answer("0", comment="a dialect"))
    judge(bea, take(bea, other).pk, Answer("1", comment="elsewhere"))
    reply = desk.get(page)
    shown = words(reply)
    assert "odd, &lt;b&gt;very&lt;/b&gt;" in reply.text
    assert shown.index("a dialect") < shown.index("odd, ")  # the newest first
    assert "elsewhere" not in shown
    assert re.search(r"ann odd, .*? Yes the question of en-1", shown)
    unit = Judgment.objects.get(comment="a dialect").unit_id
    assert f'href="/manage/tasks/crowd/items/{unit}/"' in reply.text
    assert "a dialect" not in words(desk.get(f"/manage/tasks/crowd/people/{ann.pk}/"))
    assert "a dialect" in words(desk.get(f"/manage/tasks/crowd/people/{bea.pk}/"))


def test_the_page_tells_agreement_by_label_and_why_alpha_may_say_little(make_records_task, person, judged, desk):
    task = make_records_task("web_ranking", 30)
    readers = [person(name, "en") for name in ("ann", "bea")]
    for unit in task.units.all():
        for annotator, label in zip(readers, {3: "12", 4: "11"}.get(unit.position, "00"), strict=True):
            judged(annotator, unit, label)
    shown = words(desk.get(address(task, "agreement/?show=1")))
    assert "Agreement by label" in shown
    assert "2 have a label other than 0, so alpha, which is" in shown
    assert "AC1" in shown
    assert desk.get(address(task, "agreement/?show=1&sort=labels.-units")).status_code == 200


def test_grades_are_told_to_managers_in_words(make_records_task, person, judged, desk):
    task = make_records_task("web_ranking", 2, gold={"queue": ["4"]})
    people = [person(name, "en") for name in ("ann", "bea", "cem")]
    for unit in task.units.all():
        for annotator, label in zip(people, "410", strict=True):
            judged(annotator, unit, label)
    agreement = words(desk.get("/manage/tasks/crowd/agreement/?show=1"))
    labels = agreement[agreement.index("Agreement by label") :]
    assert [grade in labels for grade in ("Perfect 2", "Fair 2", "Bad 2")] == [True] * 3
    assert "Perfect Fair no" in words(desk.get(f"/manage/tasks/crowd/people/{people[1].pk}/"))
