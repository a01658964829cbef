"""The adjudicator's bench: what its list may be cut to and in which order it stands, one's own reasons, cases that are
settled together, cases of one text, and all of it by keys.
"""

import re

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from annotate.core import stages
from annotate.core.refusals import InvalidAnswer
from annotate.kinds import Answer
from annotate.models import Judgment
from annotate.work import consenting
from annotate.work.adjudication import (
    AGREEING,
    BLIND,
    CASES,
    DIFFERING,
    UNANSWERED,
    discard,
    own_reasons,
    settle,
    to_adjudicate,
    unsettle,
)
from annotate.work.judging import judge, skip
from annotate.work.pausing import pause
from annotate.work.queue import release, take
from annotate.work.together import agreed, of_one_text, settle_together
from tests.annotate.acts import NO_CHECKS
from tests.annotate.conftest import AGREED, DISPUTED
from tests.annotate.hands import let_guard_pass
from tests.looks import sticks_out

LIST = "/tasks/task/adjudication/"


@pytest.fixture
def ada(person):
    return person("ada", adjudicates=True)


@pytest.fixture
def two_say(make_task, person):
    """two_say("de de", "de en", "de -", "- -") is a task with a unit for each, of which two readers said this; "-" is a
    skip. All wait for an adjudicator but those of which both said the same.
    """

    def make(*said, name="task", **knobs):
        task = make_task([DISPUTED] * len(said), name=name, redundancy=2, rounds=1, skip_limit=1, **knobs)
        readers = [person(f"{name}-{number}", "de") for number in range(2)]
        for unit, words in zip(task.units.order_by("position"), said, strict=True):
            for reader, word in zip(readers, words.split(), strict=True):
                say(reader, task, unit, word)
        return task

    return make


def say(reader, task, unit, word):
    lease = take(reader, task)
    if lease is None or lease.unit_id != unit.pk:  # the other's skip has sent it to the adjudicator already
        if lease:
            release(reader, lease.pk)
        return
    if word == "-":
        skip(reader, lease.pk)
    else:
        judge(reader, lease.pk, Answer(word))


def where(unit):
    unit.refresh_from_db()
    return unit.stage, unit.label


def positions(task, annotator, *cut):
    return [unit.position for unit in to_adjudicate(task, annotator, *cut)]


# --- what the list may be cut to


def test_the_list_can_be_cut_to_what_people_answered(two_say, ada):
    task = two_say("de en", "de -", "- -", "fr en")
    cut = {case: positions(task, ada, "", case) for case in CASES}
    assert cut == {BLIND: [], UNANSWERED: [3], AGREEING: [2], DIFFERING: [1, 4]}
    assert positions(task, ada, "de", DIFFERING) == [1, 4]
    assert positions(task, ada, "fr", DIFFERING) == []


def test_the_page_offers_each_case_and_language_with_how_many_and_keeps_to_it(two_say, ada, client):
    two_say("de en", "de -", "- -", "fr en")
    client.force_login(ada.user)
    page = client.get(LIST).text
    found = re.findall(r'<a href="(\?[^"]*)"[^>]*>([^<]*) <small>(\d+)</small>', page)
    assert found == [
        ("?", "all", "4"),
        ("?case=differing", "answers differ", "2"),
        ("?case=agreeing", "all answered alike", "1"),
        ("?case=unanswered", "skipped by all", "1"),
        ("?language=de", "German", "4"),
    ]
    page = client.get(LIST + "?case=differing").text
    assert '<a href="?language=de&amp;case=differing">German <small>2</small></a>' in page
    first, second = re.findall(r'<td dir="auto" class="text"><a href="([^"]*)"', page)
    assert first.endswith("/?case=differing")
    answer = client.post(first, {"label": "de", "reason": "I read it"})
    assert answer.url.startswith(f"{second}&decided=")
    assert "case 1 of 1" in client.get(answer.url).text


@pytest.mark.parametrize("query", ["?case=seconded", "?case=doubted", "?case=%00", "?language=xx&case="])
def test_what_is_no_case_cuts_nothing(two_say, ada, client, query):
    two_say("de en", "- -")
    client.force_login(ada.user)
    assert client.get(LIST + query).text.count('<td dir="auto" class="text">') == 2


@pytest.fixture
def checked(make_task, person, ada):
    """A task with blind cases of each origin (doubted audits, rechecked audits, checks of readers, second opinions) and
    with cases that are not blind; and another adjudicator, whom second opinions come to.
    """
    entries = [DISPUTED, AGREED] * 12
    task = make_task(entries, audit_least=10, audit_recheck=0.5, check_share=0.4, second_share=0.5, rounds=1)
    ann, eve = person("ann", "de"), person("eve", adjudicates=True)
    number = 0
    while lease := take(ann, task):
        number += 1
        if number % 4 == 0:
            skip(ann, lease.pk)
        else:
            judge(ann, lease.pk, Answer("fr" if number % 3 == 0 else "de"))
    for unit in list(to_adjudicate(task, ada, "", UNANSWERED))[:4]:
        settle(ada, unit.pk, Answer("de", "I read it"))
    return task, eve


def test_no_cut_and_no_order_tells_blind_cases_of_one_origin_from_those_of_another(checked):
    task, eve = checked
    everything = list(to_adjudicate(task, eve))
    blind = {unit.pk for unit in everything if unit.blind}
    events = {
        unit.pk: set(unit.transitions.values_list("event", flat=True)) & {"doubted", "checked", "seconded"}
        for unit in everything
        if unit.blind
    }
    assert {"doubted", "checked", "seconded"} <= set().union(*events.values())
    languages = ["", "de", "en", "fr"]
    for cut in [(language, case) for language in languages for case in ("", *CASES)]:
        listed = {unit.pk for unit in to_adjudicate(task, eve, *cut)} & blind
        assert listed in (set(), blind), cut
    # They stand in the order of the draw, however long they wait.
    assert [unit.pk for unit in everything][: len(blind)] == [
        unit.pk for unit in task.units.filter(pk__in=blind).order_by("position")
    ]


def test_the_page_says_the_same_of_each_blind_case(checked, client):
    task, eve = checked
    client.force_login(eve.user)
    page = client.get(LIST + "?case=blind").text
    rows = re.findall(r"<tr>\s*<td dir=\"auto\" class=\"text\">.*?</tr>", page, re.DOTALL)
    units = list(to_adjudicate(task, eve, "", BLIND))
    assert len(rows) == len(units) > 4
    plain = {
        re.sub(rf"/{unit.pk}/", "/N/", row).replace(unit.item.text, "…") for unit, row in zip(units, rows, strict=True)
    }
    assert len(plain) == 1


def test_after_what_is_blind_comes_what_has_waited_longest(make_task, person, ada):
    task = make_task([DISPUTED] * 3, rounds=1)
    ann, bea = person("ann", "de"), person("bea", "de")
    first, second = take(ann, task), take(bea, task)
    skip(bea, second.pk)
    skip(bea, take(bea, task).pk)
    skip(ann, first.pk)
    assert positions(task, ada) == [2, 3, 1]
    settle(ada, second.unit_id, Answer("de", "I read it"))
    unsettle(ada, second.unit_id)
    assert positions(task, ada) == [2, 3, 1]


# --- one's own reasons


def test_ones_own_reasons_of_this_task_are_offered_again_the_most_used_first(two_say, ada, person):
    task, other = two_say(*["- -"] * 5), two_say("- -", name="other")
    eve = person("eve", adjudicates=True)
    units = list(task.units.order_by("position"))
    for unit, who, reason in zip(
        units, (ada, ada, ada, eve, ada), ("Bible", "Slang", "Slang", "Hers", "Gone"), strict=True
    ):
        settle(who, unit.pk, Answer("de", reason))
    settle(ada, other.units.get().pk, Answer("de", "Elsewhere"))
    unsettle(ada, units[4].pk)
    assert own_reasons(ada, task) == ["Slang", "Bible"]


def test_no_more_of_ones_own_reasons_are_offered_than_there_are_keys(two_say, ada, new_page):
    task = two_say(*["- -"] * 13)
    *units, last = task.units.order_by("position")
    for number, unit in enumerate(units):
        settle(ada, unit.pk, Answer("de", f"reason {number}" if number else "Dictionary"))
    assert len(own_reasons(ada, task)) == 9
    page = new_page(user=ada.user)
    page.goto(f"{LIST}{last.pk}/")
    offered = page.locator(".reasons button").all_inner_texts()
    assert len(offered) == len(set(offered)) == 9
    let_guard_pass(page)
    page.keyboard.press("Shift+Digit7")
    assert page.input_value("[name=reason]") == "reason 11"


# --- cases that are settled together


def test_cases_of_which_all_said_the_same_are_settled_in_one_act_each_with_its_own_label(two_say, ada):
    task = two_say("de -", "fr -", "de en", "- -")
    waiting = list(to_adjudicate(task, ada))
    chosen = agreed(waiting, ada)
    assert sorted(chosen.values()) == ["de", "fr"]
    found = settle_together(ada, task, chosen, " Their readers agree ")
    assert (len(found.settled), found.refused) == (2, [])
    for unit, came_to in zip(
        task.units.order_by("position"),
        [(stages.LABELLED, "de"), (stages.LABELLED, "fr"), (stages.ADJUDICATION, ""), (stages.ADJUDICATION, "")],
        strict=True,
    ):
        assert where(unit) == came_to
    reasons = Judgment.objects.decisions().values_list("kind", "reason", "annotator")
    assert set(reasons) == {("settle", "Their readers agree", ada.pk)}
    # A retry is no second decision.
    again = settle_together(ada, task, chosen, "Their readers agree")
    assert (again.settled, again.refused) == (found.settled, [])


def test_what_has_changed_meanwhile_is_told_and_the_others_are_settled(two_say, ada, person):
    task = two_say("de -", "fr -", "en -", "de -", "de en")
    eve = person("eve", adjudicates=True)
    units = list(task.units.order_by("position"))
    chosen = agreed(to_adjudicate(task, ada), ada)
    settle(eve, units[0].pk, Answer("de", "I read it"))
    Judgment.objects.answers().filter(unit=units[1]).update(label="he")
    chosen |= {units[4].pk: "de", 10**9: "de"}
    found = settle_together(ada, task, chosen, "Their readers agree")
    assert [where(unit) for unit in units[2:4]] == [(stages.LABELLED, "en"), (stages.LABELLED, "de")]
    assert len(found.settled) == 2
    told = {unit and unit.pk: str(why) for unit, why in found.refused}
    assert "somebody may have decided it meanwhile" in told[units[0].pk]
    assert "no longer be settled together" in told[units[1].pk]
    assert "no longer be settled together" in told[units[4].pk]
    assert "no longer waits" in told[None]


def test_a_case_that_has_become_blind_meanwhile_is_not_settled_with_others_and_nobody_is_told_why(two_say, ada, person):
    task = two_say("de -", **{**NO_CHECKS, "second_share": 1.0})
    eve, unit = person("eve", adjudicates=True), task.units.get()
    chosen = agreed(to_adjudicate(task, ada), ada)
    assert chosen == {unit.pk: "de"}
    settle(eve, unit.pk, Answer("fr", "I read it"))
    assert agreed(to_adjudicate(task, ada), ada) == {}
    found = settle_together(ada, task, chosen, "Their readers agree")
    [(_, why)] = found.refused
    assert str(why) == "It can no longer be settled together with others. Please decide it by itself."
    assert not ada.judgments.exists()


def test_what_readers_still_have_is_neither_settled_nor_told_of(make_task, ada, client):
    unit = make_task([DISPUTED]).units.get()
    client.force_login(ada.user)
    sent = {"case": [f"{unit.pk} de", "999999 de", "x"], "reason": "I read it"}
    answer = client.post(LIST + "together/", sent)
    assert answer.status_code == 409
    assert unit.item.text not in answer.text
    assert answer.text.count("One of them no longer waits for an adjudicator.") == 2
    assert where(unit)[0] == stages.QUEUED


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ({"reason": "I read it"}, "Mark the cases first"),
        ({"reason": " "}, "Say in a few words how you know"),
        ({"reason": "x" * 201}, "longer than 200 characters"),
        ({"reason": "a\x00b"}, "NUL"),
    ],
)
def test_marks_and_reason_stay_where_something_lacks(two_say, ada, client, sent, sentence):
    unit = two_say("de -").units.get()
    client.force_login(ada.user)
    mark = {} if "Mark" in sentence else {"case": f"{unit.pk} de"}
    answer = client.post(LIST + "together/", sent | mark)
    assert answer.status_code == 400
    assert sentence in answer.text
    assert (f'value="{unit.pk} de" checked' in answer.text) == bool(mark)
    assert where(unit)[0] == stages.ADJUDICATION


def test_nothing_is_settled_without_a_case_or_a_reason(two_say, ada):
    task = two_say("de -")
    for chosen, reason in (({}, "I read it"), (agreed(to_adjudicate(task, ada), ada), " ")):
        with pytest.raises(InvalidAnswer):
            settle_together(ada, task, chosen, reason)


def test_what_is_checked_blind_cannot_be_marked(checked, ada, client):
    task, eve = checked
    client.force_login(eve.user)
    assert to_adjudicate(task, eve, "", BLIND).exists()
    assert 'name="case"' not in client.get(LIST + "?case=blind").text


def test_work_that_may_hurt_is_looked_at_one_by_one(make_records_task, person, ada):
    task = make_records_task("toxic_pairs", 1, skip_limit=1, on_conflict="ADJUDICATION")
    ann, bea = person("ann", "en"), person("bea", "en")
    for someone in (ann, bea, ada):
        consenting.agree(someone, task.name)
    judge(ann, take(ann, task).pk, Answer("toxic"))
    skip(bea, take(bea, task).pk)
    assert positions(task, ada, "", AGREEING) == [1]
    assert agreed(to_adjudicate(task, ada), ada) == {}


def test_without_javascript_cases_are_settled_together(two_say, ada, new_page):
    task = two_say("de -", "de en", "fr -")
    page = new_page(user=ada.user, java_script_enabled=False)
    page.goto(LIST)
    for box in page.locator("[name=case]").all():
        box.check()
    page.fill("[name=reason]", "Both say so")
    page.click("text=Settle what is marked")
    assert page.inner_text("[role=status]") == "2 cases are settled."
    assert [where(unit)[1] for unit in task.units.order_by("position")] == ["de", "", "fr"]


def test_cases_are_settled_together_by_keys_alone(two_say, ada, new_page):
    task = two_say("de -", "fr -", "en -", "de en")
    page = new_page(user=ada.user)
    page.goto(LIST)
    for key in ("j", "x", "j", "j", "x", "k", "x", "x", "Shift+Digit1"):
        page.keyboard.press(key)
    with page.expect_navigation():
        page.keyboard.press("Control+Enter")
    assert page.inner_text("[role=status]") == "2 cases are settled."
    assert [where(unit)[1] for unit in task.units.order_by("position")] == ["de", "", "en", ""]
    page.keyboard.press("a")
    assert page.locator("[name=case]:checked").count() == 1
    page.keyboard.press("a")
    assert page.locator("[name=case]:checked").count() == 0


def test_enter_on_a_mark_opens_its_case_and_elsewhere_begins_with_the_first(two_say, ada, new_page):
    task = two_say("de -", "fr -")
    first, second = task.units.order_by("position")
    page = new_page(user=ada.user)
    for focused, unit in (("[name=case] >> nth=1", second), (None, first)):
        page.goto(LIST)
        if focused:
            page.focus(focused)
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert page.url.endswith(f"/{unit.pk}/")


# --- cases of one text


def test_cases_of_one_text_stand_beside_each_other_and_copies_are_counted(two_say, make_task, person, ada, client):
    same = {"text": "the very same text of a post, long enough", "votes": DISPUTED}
    task = make_task([{**same, "key": "a"}, {**same, "key": "b"}, DISPUTED], rounds=1)
    original = task.units.exclude(stage=stages.COPIED).order_by("position").first()
    # The same post is asked about elsewhere too.
    other = make_task([DISPUTED], name="other", rounds=1)
    twin = other.units.get()
    twin.item = task.units.get(stage=stages.COPIED).item
    twin.save()
    ann = person("ann", "de")
    for each in (task, other):
        while lease := take(ann, each):
            skip(ann, lease.pk)
    assert [unit for unit, _ in of_one_text(original, ada)] == [twin]
    client.force_login(ada.user)
    page = client.get(reverse("adjudicate", args=[task.name, original.pk])).text
    assert "1 copy takes the label that this one is given." in page
    assert f'href="/tasks/other/adjudication/{twin.pk}/"' in page
    discard(ada, twin.pk, "Nothing found")
    assert of_one_text(original, ada) == []


@pytest.fixture
def twins(make_task, person):
    """Two cases of one post, in two tasks. knobs: of the second, in which a reader has answered."""

    def make(**knobs):
        first, second = make_task([DISPUTED], rounds=1), make_task([DISPUTED], name="second", rounds=1, **knobs)
        second.units.update(item=first.units.get().item)
        ann, bea = person("ann", "de"), person("bea", "de")
        skip(ann, take(ann, first).pk)
        judge(ann, take(ann, second).pk, Answer("de"))
        if lease := take(bea, second):
            skip(bea, lease.pk)
        return first.units.get(), second.units.get()

    return make


def test_a_case_that_is_checked_blind_stands_beside_no_other_and_no_other_beside_it(twins, ada, client):
    plain, blind = twins(**NO_CHECKS | {"check_share": 1.0})
    assert (where(plain)[0], where(blind)[0]) == (stages.ADJUDICATION, stages.ADJUDICATION)
    client.force_login(ada.user)
    assert of_one_text(plain, ada) == []
    for unit in (plain, blind):
        page = client.get(reverse("adjudicate", args=[unit.task.name, unit.pk])).text
        assert "The same text" not in page


def test_a_task_in_which_an_adjudicator_is_paused_is_not_led_to(twins, ada, manager):
    plain, other = twins(redundancy=2, skip_limit=1)
    assert [unit for unit, _ in of_one_text(plain, ada)] == [other]
    pause(ada, other.task, by=manager, reason="asleep")
    assert of_one_text(plain, ada) == []


# --- on a phone, and by keys alone


def test_nothing_sticks_out_of_a_phone_however_long_names_are(two_say, ada, new_page):
    task = two_say("de en", "de -")
    User.objects.update(first_name="Bartholomäus Maximilian", last_name="Wolkenstein-Trostburg")
    page = new_page(user=ada.user, viewport={"width": 320, "height": 568})
    for address in (LIST, *(f"{LIST}{unit.pk}/" for unit in task.units.all())):
        page.goto(address)
        assert not sticks_out(page), address


# Of each of twenty cases: the keys pressed, Shift counted too, and what they come to.
BY_FIRST_REASON, BY_OWN_REASON = ["Shift", "Digit1"], ["Shift", "Digit7"]
TWENTY = (
    [([*BY_FIRST_REASON, "Digit1"], "de")] * 10
    + [([*BY_FIRST_REASON, "Digit2"], "en")] * 3
    + [(["Shift", "Digit5", "KeyQ"], "und"), (["Shift", "Digit6", "Digit0"], "")]
    + [([*BY_FIRST_REASON, "KeyW", *"fre", "Enter"], "fr")] * 2
    + [([*BY_OWN_REASON, "Digit1"], "de")] * 3
)


def test_twenty_adjudications_by_keys_alone(two_say, ada, new_page):
    """Enter begins with the first case. A reason and a label are two presses with Shift held down, three keys in all; a
    language that is not among the first is found by as many letters as tell it from others.

    Twenty cases take 69 keys. On the page before they took 668: 23 Tabs and Enter to the first case, and for each 10
    Tabs to the field of the reason, the reason letter by letter ("I read the language" has 19), and a Tab and Enter for
    the first label, 5 Tabs for Undefined, 6 for Discard, and 7, the letters and 2 for another language in a list.
    """
    task = two_say(*["- -"] * 21)
    first, *units = task.units.order_by("position")
    settle(ada, first.pk, Answer("de", "A friend reads it"))
    page = new_page(user=ada.user)
    page.goto(LIST)
    presses = 1
    with page.expect_navigation():
        page.keyboard.press("Enter")
    for keys, _ in TWENTY:
        let_guard_pass(page)
        *before, last = keys
        for key in before:
            if key == "Shift":
                page.keyboard.down(key)
            else:
                page.keyboard.press(key)
            if key.startswith("Digit"):
                page.keyboard.up("Shift")
        with page.expect_navigation():
            page.keyboard.press(last)
        presses += len(keys)
    assert [where(unit)[1] for unit in units] == [label for _, label in TWENTY]
    said = Judgment.objects.decisions().filter(unit__in=units).order_by("pk")
    assert {judgment.reason for judgment in list(said)[-3:]} == {"A friend reads it"}
    assert presses == 69
    assert max(len(keys) for keys, _ in TWENTY) == 7
