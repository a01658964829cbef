"""The page that asks "Is this German?" about single posts, and the adjudicator's view of such posts and of audits."""

import re

import pytest

from annotate.controls import agreement_audit as contesting
from annotate.core import stages
from annotate.kinds import Answer
from annotate.models import Annotator, Task, Unit
from annotate.work import moves
from annotate.work.judgments import judge, skip
from annotate.work.queue import open_lease, take
from annotate.work.unit_entry import add_units
from corpora.models import Item
from tests.annotate.acts import work_through
from tests.annotate.conftest import AGREED, DISPUTED, LONG, votes
from tests.annotate.hands import (
    answers_of,
    let_guard_pass,
    move_clock,
    sent,
    stop_clock,
    worst_contrast,
)

HTMX = {"HX-Request": "true"}
ANN_READS = "de sv"
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.fixture
def two_languages(make_task):
    """A task that asks of two posts whether they are German, then of one whether it is Swedish."""
    task = make_task([DISPUTED] * 2, asked="de", labels=["de", "sv"])
    item = Item.objects.create(
        corpus=task.draw.corpus, key="sv", text=LONG.format("sv"), letters=40, votes=votes(*DISPUTED)
    )
    add_units(task, [item], asked="sv")
    return task


def buttons(html):
    return re.findall(
        r'<button name="(?:answer|reason|label|skip|discard)" value="([^"]*)"', html.replace('class="danger" ', "")
    )


def start(client, task="task"):
    return client.post(f"/tasks/{task}/start/", headers=HTMX).text


def send(client, annotator, answer, task="task"):
    lease = open_lease(annotator, Task.objects.get(name=task))
    return client.post(f"/tasks/{task}/judge/", {"lease": lease.pk, **sent(answer)}, headers=HTMX)


# --- the page


def test_the_page_asks_about_one_language_and_takes_three_answers(make_task, as_ann, ann):
    make_task([DISPUTED] * 4, asked="de", labels=["de", "sv"])
    page = start(as_ann)
    assert re.search(r"Is this <b>German</b>\?</span> <small lang=\"de\">Deutsch</small>", page)
    assert buttons(page) == ["de", "not-de", "und", "several", "mixed", "gibberish", "1"]
    assert ("Another language" in page, "changed" in page) == (False, False)
    text = re.search(r"<p dir=\"auto\">(.*)</p>", page)[1]
    for answer in ("sv", "not-sv", "not-", "not-und", "und unlisted", "not-de mixed"):
        refused = send(as_ann, ann, answer)
        assert (refused.status_code, text in refused.text) == (400, True), answer
    assert answers_of(ann) == []
    for answer, shown in (("de", "Last: German"), ("not-de", "Last: Not German"), ("und mixed", "Last: Undefined")):
        assert shown in send(as_ann, ann, answer).text
    assert answers_of(ann) == [("answer", "de", ""), ("answer", "not-de", ""), ("answer", "und", "mixed")]


def test_a_change_of_the_language_is_said_aloud_once_and_today_s_answers_say_what_was_asked(two_languages, as_ann, ann):
    pages = [start(as_ann), send(as_ann, ann, "und").text, send(as_ann, ann, "not-de").text]
    assert ["New language" in page for page in pages] == [False, False, True]
    assert "Is this <b>Swedish</b>" in pages[2]
    assert "New language" in as_ann.get("/tasks/task/").text  # and still is after a reload
    assert "All done" in send(as_ann, ann, "sv").text
    page = as_ann.get("/tasks/task/answers/").text
    rows = re.findall(r"Is this (\w+)\?</span><br><b>([\w ]+)</b>", page)
    assert rows == [("Swedish", "Swedish"), ("German", "Not German"), ("German", "Undefined")]


# --- its adjudication


def test_an_adjudicator_is_asked_the_same_question(make_task, ann, ada, client, person):
    task, bea = make_task([DISPUTED] * 4, asked="de", redundancy=2), person("bea", "de")
    for annotator, label in ((ann, "de"), (bea, "not-de")):
        work_through(annotator, task, label)
    client.force_login(ada.user)
    decisions = [{"label": "de"}, {"label": "not-de"}, {"label": "und"}, {"discard": "1"}]
    for unit, decision in zip(task.units.all(), decisions, strict=True):
        path = f"/tasks/task/adjudication/{unit.pk}/"
        page = client.get(path).text
        assert "Is this <b>German</b>" in page
        assert buttons(page) == ["de", "not-de", "und", "1"]
        assert "<select" not in page
        assert ("langid" in page, "<b>Not German</b>" in page) == (True, True)
        refused = client.post(path, {"label": "sv", "reason": "I read it"})
        assert (refused.status_code, Unit.objects.get(pk=unit.pk).stage) == (400, stages.ADJUDICATION)
        client.post(path, {"reason": "I read it", **decision})
    labels = list(task.units.values_list("stage", "label"))
    assert labels == [
        (stages.LABELLED, "de"),
        (stages.LABELLED, "not-de"),
        (stages.LABELLED, "und"),
        (stages.DISCARDED, ""),
    ]
    assert "Decided: Not German." in client.get(f"/tasks/task/adjudication/?decided={task.units.all()[1].pk}").text


# --- audits, blind


@pytest.fixture
def doubted(make_task, person):
    """doubted("de", "fr") returns an audited unit on which the detectors agreed on de and a reader answered fr."""

    def make(agreed, label, name="task", **fields):
        entry = {"votes": (agreed,) * 3, "key": name, "text": f"the same text of {name}", "letters": 40}
        task = make_task([entry, *fields.pop("others", [])], name=name, audit_least=1, audit_recheck=1, **fields)
        reader = Annotator.objects.filter(user__username="reader").first() or person("reader", "de fr")
        unit = task.units.get(audited=True)
        while lease := take(reader, task):
            if lease.unit_id == unit.pk:
                judge(reader, lease.pk, Answer(label, comment="a comment of the reader's"))
            else:
                skip(reader, lease.pk)
        unit.refresh_from_db()
        assert unit.stage == stages.ADJUDICATION
        assert moves.is_audit(unit)
        return unit

    return make


def dossier(client, unit):
    """Return the adjudicator's page of a unit, without the parts that identify the unit."""
    page = client.get(f"/tasks/{unit.task.name}/adjudication/{unit.pk}/").text
    page = re.sub(r'(csrfmiddlewaretoken" value="|X-CSRFToken": ")\w+', r"\1", page)
    page = page.replace(f"/{unit.task.name}/", "/task/").replace(f"/{unit.pk}/", "/unit/")
    return re.sub(f"the([ +])same([ +])text[ +]of[ +]{unit.task.name}", r"the\1same\2text", page)


TOLD = (
    *("langid", "cld2", "fasttext", "reader<", "a comment of", "Votes", "Judgments", "History"),
    *("QUEUED", "doubted", "waiting for readers", "does not confirm"),
)


def offered(page):
    """Return the languages that have a key, in the order of their keys."""
    return re.findall(r'<button name="label" value="([\w-]+)" data-key="Digit\d">', page)


def test_an_audit_is_decided_blind_with_languages_of_its_adjudicator_and_of_most_readers_whatever_was_said(
    doubted, person, client
):
    answers = [("de", "fr"), ("fr", "de"), ("de", "de"), ("fr", "und")]
    cases = [doubted(*case, name=f"task{n}") for n, case in enumerate(answers)]
    eve, kim = person("eve", "he:5 fr:4", adjudicates=True), person("kim", adjudicates=True)
    for annotator, first in ((eve, ["he", "fr", "de"]), (kim, ["fr", "de", "he"])):
        client.force_login(annotator.user)
        pages = [dossier(client, unit) for unit in cases]
        assert pages == [pages[0]] * 4
        assert "Blind check" in pages[0]
        assert [word for word in TOLD if word in pages[0]] == []
        assert [value for value in buttons(pages[0]) if len(value) == 1 or value == "und"] == ["und", "1"]
        assert offered(pages[0])[:3] == first
        assert len(offered(pages[0])) == 9
    # The outcome of one case does not change the choices in the others.
    client.post(f"/tasks/task0/adjudication/{cases[0].pk}/", {"label": "ar", "reason": "I read it"})
    assert [dossier(client, unit) for unit in cases[1:]] == pages[1:]


def test_it_stays_blind_once_it_is_decided(doubted, ada, client, person):
    first, second = doubted("de", "fr", name="one"), doubted("fr", "de", name="two")
    client.force_login(ada.user)
    for unit in (first, second):
        client.post(f"/tasks/{unit.task.name}/adjudication/{unit.pk}/", {"label": "en", "reason": "I read it"})
        unit.refresh_from_db()
        assert (unit.stage, unit.label) == (stages.LABELLED, "en")
    ada_page = dossier(client, first)
    assert ada_page == dossier(client, second)
    assert "You said: <b>English</b> (I read it)." in ada_page
    client.force_login(person("eve", adjudicates=True).user)
    eve_page = dossier(client, first)
    for page in (ada_page, eve_page):
        assert [word for word in (*TOLD, "LABELLED", "labelled by people") if word in page] == []
    assert "I read it" not in eve_page
    assert "<b>en" not in eve_page


def test_the_list_shows_an_audit_without_its_queue_and_no_language_finds_it(doubted, ada, client):
    unit = doubted("de", "fr", others=[("fr en", "en fr", "fr")], rounds=1)
    client.force_login(ada.user)
    page = client.get("/tasks/task/adjudication/").text
    audit, other = re.findall(r"<tr>\s*<td dir=\"auto\" class=\"text\">.*?</tr>", page, re.DOTALL)
    assert "the same text" in audit
    assert "checked blind" in audit
    assert set(re.findall(r"<td>([^<]*)</td>", audit)) == {""}
    assert re.findall(r"<td>([^<]*)</td>", other) == ["French, English", "French"]
    assert "?language=fr" in page
    assert "?language=de" not in page
    assert 'href="?case=blind">checked blind <small>1</small>' in page
    assert "the same text" not in client.get("/tasks/task/adjudication/?language=de").text
    # a reader of the French list does not get there
    disputed = unit.task.units.exclude(pk=unit.pk).get()
    after = client.post(
        f"/tasks/task/adjudication/{disputed.pk}/?language=fr", {"label": "fr", "reason": "I read the language"}
    )
    assert after.url == f"/tasks/task/adjudication/?language=fr&decided={disputed.pk}"


def test_what_is_not_an_audit_is_shown_with_all_that_is_known(make_task, ann, ada, client):
    task = make_task([DISPUTED, AGREED], rounds=1)
    assert contesting.contest(task, "de") == 1
    while lease := take(ann, task):
        skip(ann, lease.pk)
    client.force_login(ada.user)
    for unit in task.units.all():
        page = dossier(client, unit)
        assert "checked blind" not in page
        assert all(word in page for word in ("langid", "Votes", "Judgments", "History"))
        # The history uses words, not the database's codes.
        assert "sent to readers of German, round 1" in page
        assert f"<bdi>No reader left.</bdi> <bdi>Skipped by {ann.pseudonym} (German).</bdi>" in page
        assert not any(word in page for word in ("QUEUED", "ADJUDICATION", "exhausted"))


# --- in a browser


def test_a_press_meant_for_the_language_before_does_not_answer_for_the_next(at_work, two_languages, ann):
    hands = at_work(two_languages, ann)
    page = hands.page

    def assert_contrast():
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert worst_contrast(page) >= 4.5, scheme

    assert_contrast()
    hands.press_and_wait("Digit1")
    let_guard_pass(page)
    stop_clock(page)
    hands.press_and_wait("Digit1")
    page.wait_for_selector("#asked.changed:has-text('Is this Swedish?')")
    assert_contrast()
    move_clock(page, 990)
    hands.press("Digit1")
    page.click("[data-key=Digit1]")
    hands.press_and_wait("Digit2", after=20)
    assert answers_of(ann)[2:] == [("answer", "not-sv", "")]


@pytest.mark.slow
@pytest.mark.parametrize(("options", "widths"), [(PHONE, [390, 360]), ({}, [1280, 360])], ids=["phone", "desk"])
def test_the_question_and_its_buttons_fit_the_screen(at_work, make_task, ann, options, widths):
    text = "مرحبا بالعالم " + "Donaudampfschifffahrtsgesellschaft" * 20
    page = at_work(make_task([{"votes": DISPUTED, "text": text}], asked="de"), ann, **options).page
    assert page.locator("#post p").evaluate("node => getComputedStyle(node).direction") == "rtl"
    height = page.viewport_size["height"]
    for width in widths:
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        # however long the post is, the question and the answers are visible
        for name in ("#asked", "[value=de]", "[value=not-de]", "#undefined"):
            box = page.locator(name).bounding_box()
            assert box["y"] >= 0
            assert box["y"] + box["height"] <= height
