"""The adjudicator's list: its filters and order, an adjudicator's own reasons, and bulk decisions."""

import re

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.urls import reverse

from annotate.core import stages
from annotate.core.refusals import InvalidAnswer
from annotate.kinds import Answer
from annotate.models import Annotator, Judgment
from annotate.pages import adjudicators, case_summary
from annotate.pages.case_summary import COMMON, usual_languages
from annotate.work import interventions
from annotate.work.adjudication import (
    AGREEING,
    BLIND,
    CASES,
    DIFFERING,
    UNANSWERED,
    agreed_labels,
    discard,
    own_reasons,
    settle,
    settle_together,
    to_adjudicate,
    unsettle,
)
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from tests.annotate.adjudication.conftest import LIST, positions, where
from tests.annotate.conftest import AGREED, DISPUTED
from tests.annotate.hands import let_guard_pass


def test_an_empty_list_leads_a_manager_on_to_the_task_and_its_export(two_say, ada, as_ada):
    two_say("de de")
    overview, export = reverse("manage-task", args=["task"]), reverse("manage-export", args=["task"])
    assert overview not in as_ada.get(LIST).text
    ada.user.is_staff = ada.user.is_superuser = True
    ada.user.save()
    page = as_ada.get(LIST).text
    assert f'href="{overview}"' in page
    assert f'action="{export}"' in page


def test_the_overview_of_a_task_offers_its_cases_to_its_adjudicator(two_say, ada, desk):
    task, manager = two_say("de en", "de -"), User.objects.get(is_staff=True)
    page = reverse("manage-task", args=[task.name])
    assert f'href="{LIST}"' not in desk.get(page).text
    Annotator.objects.create(user=manager, adjudicates=True)
    assert re.search(rf'href="{LIST}">.*?Adjudicate 2 items<', desk.get(page).text)


def test_blind_cases_offer_languages_on_which_detectors_often_agree_before_the_alphabet(make_task, ada):
    for posts, is_first in ((COMMON, True), (COMMON - 1, False)):
        task = make_task([AGREED] * posts, name=f"task-{posts}")
        task.units.update(agreed_label="fr")
        assert (usual_languages(task, ada)[0] == "fr") == is_first


def test_the_list_can_be_cut_to_what_people_answered(two_say, ada):
    task = two_say("de en", "de -", "- -", "fr en")
    cut = {case: positions(task, ada, "", case) for case in CASES}
    assert cut == {BLIND: [], UNANSWERED: [3], AGREEING: [2], DIFFERING: [1, 4]}
    assert positions(task, ada, "de", DIFFERING) == [1, 4]
    assert positions(task, ada, "fr", DIFFERING) == []


def test_the_page_offers_each_case_and_language_with_how_many_and_keeps_to_it(two_say, as_ada):
    two_say("de en", "de -", "- -", "fr en")
    for query in ("?case=seconded", "?case=doubted", "?case=%00", "?language=xx&case="):  # ignored filters
        assert as_ada.get(LIST + query).text.count('<td dir="auto" class="text">') == 4
    page = as_ada.get(LIST).text
    links = re.findall(r'<a href="(\?[^"]*)"[^>]*>([^<]*) <small>(\d+)</small>', page)
    assert links == [
        ("?", "all", "4"),
        ("?case=differing", "answers differ", "2"),
        ("?case=agreeing", "all answered the same", "1"),
        ("?case=unanswered", "skipped by all", "1"),
        ("?language=de", "German", "4"),
    ]
    page = as_ada.get(LIST + "?case=differing").text
    assert '<a href="?language=de&amp;case=differing">German <small>2</small></a>' in page
    first, second = re.findall(r'<td dir="auto" class="text"><a href="([^"]*)"', page)
    assert first.endswith("/?case=differing")
    answer = as_ada.post(first, {"label": "de", "reason": "I read it"})
    assert answer.url.startswith(f"{second}&decided=")
    assert "case 1 of 1" in as_ada.get(answer.url).text


def test_a_long_list_is_current_although_the_numbers_of_its_filters_are_kept(two_say, ada, as_ada, monkeypatch):
    monkeypatch.setattr(adjudicators, "LONG", 3)
    task = two_say("de en", "de -", "fr en")
    filters = lambda page: re.findall(r"<small>(\d+)</small></a>", page)  # noqa: E731
    numbers = filters(as_ada.get(LIST).text)
    settle(ada, task.units.get(position=1).pk, Answer("de", "I read it"))
    page = as_ada.get(LIST).text
    assert page.count('<td dir="auto" class="text"><a') == 3  # two cases and the decision
    assert filters(page) == numbers
    cache.clear()
    assert filters(as_ada.get(LIST).text)[0] == "2"


def test_no_cut_order_or_row_tells_blind_cases_of_one_origin_from_those_of_another(checked, eve, as_eve):
    task, everything = checked, list(to_adjudicate(checked, eve))
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
    # They are in the order of the draw, however long they wait.
    assert [unit.pk for unit in everything][: len(blind)] == [
        unit.pk for unit in task.units.filter(pk__in=blind).order_by("position")
    ]
    assert "a second look at random, so that the error rate is known" in as_eve.get(LIST).text
    page = as_eve.get(LIST + "?case=blind").text
    rows = re.findall(r"<tr>\s*<td dir=\"auto\" class=\"text\">.*?</tr>", page, re.DOTALL)
    units = list(to_adjudicate(task, eve, "", BLIND))
    assert len(rows) == len(units) > 4
    plain = {
        re.sub(rf"/{unit.pk}/", "/N/", row).replace(unit.item.text, "…") for unit, row in zip(units, rows, strict=True)
    }
    assert len(plain) == 1
    assert 'name="case"' not in page  # none can be selected for a bulk decision
    assert "<td></td>" not in page  # a list of blind cases alone has no columns for what they hide


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


def test_ones_own_reasons_of_this_task_are_offered_again_the_most_used_first(two_say, ada, eve):
    task, other = two_say(*["- -"] * 5), two_say("- -", name="other")
    units = list(task.units.order_by("position"))
    for unit, reason in zip(units, ("Bible", "Slang", "Slang", "Hers", "Gone"), strict=True):
        settle(eve if reason == "Hers" else ada, unit.pk, Answer("de", reason))
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


# --- the order that a process keeps


@pytest.fixture
def lists(monkeypatch):
    monkeypatch.setattr(case_summary, "LONG", 1)
    case_summary._cached_orders.clear()
    yield case_summary._cached_orders
    case_summary._cached_orders.clear()


def orders(task, *people):
    for person in people:
        listed = [key for _, key in case_summary.order(task, person)]
        assert listed == [unit.pk for unit in to_adjudicate(task, person)]
    return len(listed)


def test_it_follows_decisions_second_opinions_and_cases_that_are_taken_back(checked, ada, eve, lists):
    before = orders(checked, ada, eve)
    for unit in list(to_adjudicate(checked, ada))[:3]:
        settle(ada, unit.pk, Answer("de", "I read it"))
        orders(checked, ada, eve)
    last = to_adjudicate(checked, eve).last()
    discard(eve, last.pk, "nobody can tell")
    assert orders(checked, ada, eve) < before
    unsettle(eve, last.pk)
    orders(checked, ada, eve)
    assert set(lists) == {(checked.pk, ada.pk), (checked.pk, eve.pk)}


def test_a_list_that_lost_count_is_read_again(two_say, ada, lists):
    task = two_say("de en", "- -", "de fr")
    assert orders(task, ada) == 3
    [(key, (last, cases))] = lists.items()
    lists[key] = last, cases[1:]
    assert orders(task, ada) == 3


def test_only_the_lists_that_were_used_last_are_kept(two_say, ada, lists, monkeypatch, as_ada):
    monkeypatch.setattr(case_summary, "KEPT", 1)
    tasks = [two_say("de en", name=name) for name in ("task", "other")]
    for task in tasks:
        assert as_ada.get(LIST.replace("/task/", f"/{task.name}/")).status_code == 200
    assert [*lists] == [(tasks[1].pk, ada.pk)]


# --- cases that are settled together


def test_cases_of_which_all_said_the_same_are_settled_in_one_act_each_with_its_own_label(two_say, ada):
    task = two_say("de -", "fr -", "de en", "- -")
    waiting = list(to_adjudicate(task, ada))
    chosen = agreed_labels(waiting, ada)
    assert sorted(chosen.values()) == ["de", "fr"]
    outcome = settle_together(ada, task, chosen, " Their readers agree ")
    assert (len(outcome.settled), outcome.refused) == (2, [])
    waits = (stages.ADJUDICATION, "")
    came_to = [(stages.LABELLED, "de"), (stages.LABELLED, "fr"), waits, waits]
    assert list(map(where, task.units.order_by("position"))) == came_to
    reasons = Judgment.objects.decisions().values_list("kind", "reason", "annotator")
    assert set(reasons) == {("settle", "Their readers agree", ada.pk)}
    # A retry is no second decision.
    again = settle_together(ada, task, chosen, "Their readers agree")
    assert (again.settled, again.refused) == (outcome.settled, [])


def test_cases_that_have_changed_are_reported_and_the_others_are_settled(two_say, ada, eve):
    task = two_say("de -", "fr -", "en -", "de -", "de en")
    units = list(task.units.order_by("position"))
    chosen = agreed_labels(to_adjudicate(task, ada), ada)
    settle(eve, units[0].pk, Answer("de", "I read it"))
    Judgment.objects.answers().filter(unit=units[1]).update(label="he")
    chosen |= {units[4].pk: "de", 10**9: "de"}
    outcome = settle_together(ada, task, chosen, "Their readers agree")
    assert [where(unit) for unit in units[2:4]] == [(stages.LABELLED, "en"), (stages.LABELLED, "de")]
    assert len(outcome.settled) == 2
    reasons = {unit and unit.pk: str(why) for unit, why in outcome.refused}
    assert "Another adjudicator may have decided it" in reasons[units[0].pk]
    assert "no longer be decided together" in reasons[units[1].pk]
    assert "no longer be decided together" in reasons[units[4].pk]
    assert "no longer waiting" in reasons[None]


def test_a_case_that_has_become_blind_is_not_settled_in_bulk_and_the_reason_is_not_revealed(two_say, ada, eve):
    task = two_say("de -", check_share=1.0)
    unit = task.units.get()
    chosen = agreed_labels(to_adjudicate(task, ada), ada)
    assert chosen == {unit.pk: "de"}
    settle(eve, unit.pk, Answer("fr", "I read it"))
    assert agreed_labels(to_adjudicate(task, ada), ada) == {}
    outcome = settle_together(ada, task, chosen, "Their readers agree")
    [(_, why)] = outcome.refused
    assert str(why) == "This case can no longer be decided together with others. Decide it separately."
    assert not ada.judgments.exists()


def test_what_readers_still_have_is_neither_settled_nor_told_of(make_task, as_ada):
    unit = make_task([DISPUTED]).units.get()
    sent = {"case": [f"{unit.pk} de", "999999 de", "x"], "reason": "I read it"}
    answer = as_ada.post(LIST + "together/", sent)
    sentence = "One of the cases is no longer waiting for an adjudicator."
    assert (answer.status_code, answer.text.count(sentence), unit.item.text in answer.text) == (409, 2, False)
    assert where(unit)[0] == stages.QUEUED


def test_marks_and_reason_stay_where_something_lacks_and_nothing_is_settled(two_say, ada, as_ada):
    task = two_say("de -")
    unit = task.units.get()
    for reason, marked, sentence in (
        ("I read it", False, "Select the cases"),
        (" ", True, "Enter a short reason"),
        ("x" * 201, True, "longer than 200 characters"),
        ("a\x00b", True, "NUL"),
    ):
        with pytest.raises(InvalidAnswer, match=sentence):
            settle_together(ada, task, {unit.pk: "de"} if marked else {}, reason)
        sent = {"reason": reason} | ({"case": f"{unit.pk} de"} if marked else {})
        answer = as_ada.post(LIST + "together/", sent)
        assert answer.status_code == 400
        assert sentence in answer.text
        assert (f'value="{unit.pk} de" checked' in answer.text) == marked
    assert where(unit)[0] == stages.ADJUDICATION


def test_work_that_may_hurt_is_looked_at_one_by_one(make_records_task, person, ada):
    task = make_records_task("toxic_pairs", 1, skip_limit=1, on_conflict="ADJUDICATION")
    ann, bea = person("ann", "en"), person("bea", "en")
    for someone in (ann, bea, ada):
        interventions.agree(someone, task.name)
    judge(ann, take(ann, task).pk, Answer("toxic"))
    skip(bea, take(bea, task).pk)
    assert positions(task, ada, "", AGREEING) == [1]
    assert agreed_labels(to_adjudicate(task, ada), ada) == {}


@pytest.mark.slow
def test_without_javascript_cases_are_settled_together_and_every_language_can_be_chosen(two_say, ada, new_page):
    task = two_say("de -", "de en", "fr -")
    units = list(task.units.order_by("position"))
    page = new_page(user=ada.user, java_script_enabled=False)
    page.goto(LIST)
    for box in page.locator("[name=case]").all():
        box.check()
    page.fill("[name=reason]", "Both say so")
    page.click("text=Decide on the selected")
    assert page.inner_text("[role=status]") == "2 cases have been decided."
    assert [where(unit)[1] for unit in units] == ["de", "", "fr"]
    page.goto(f"{LIST}{units[1].pk}/")
    page.fill("[name=reason]", "Dictionary")
    page.click("summary:has-text('Another language')")
    page.click("button:has-text('Hebrew')")
    assert where(units[1]) == (stages.LABELLED, "he")


def test_cases_are_settled_together_by_keys_alone(two_say, ada, new_page):
    task = two_say("de -", "fr -", "en -", "de en")
    first, second, *_ = task.units.order_by("position")
    page = new_page(user=ada.user)
    # Enter on a checkbox opens its case, and elsewhere the first case.
    for focused, unit in (("[name=case] >> nth=1", second), (None, first)):
        page.goto(LIST)
        if focused:
            page.focus(focused)
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert page.url.endswith(f"/{unit.pk}/")
    page.goto(LIST)
    for key in ("j", "x", "j", "j", "x", "k", "x", "x", "Shift+Digit1"):
        page.keyboard.press(key)
    with page.expect_navigation():
        page.keyboard.press("Control+Enter")
    assert page.inner_text("[role=status]") == "2 cases have been decided."
    assert [where(unit)[1] for unit in task.units.order_by("position")] == ["de", "", "en", ""]
    page.keyboard.press("a")
    assert page.locator("[name=case]:checked").count() == 1
    page.keyboard.press("a")
    assert page.locator("[name=case]:checked").count() == 0
