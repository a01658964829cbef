"""The adjudicator's list: what it may be cut to, in which order it stands, and one's own reasons."""

import re

from django.contrib.auth.models import User
from django.core.cache import cache
from django.urls import reverse

from annotate.kinds import Answer
from annotate.models import Annotator
from annotate.pages import adjudicators
from annotate.pages.case_summary import COMMON, usual_languages
from annotate.work.adjudication import (
    AGREEING,
    BLIND,
    CASES,
    DIFFERING,
    UNANSWERED,
    own_reasons,
    settle,
    to_adjudicate,
    unsettle,
)
from annotate.work.judgments import skip
from annotate.work.queue import take
from tests.annotate.adjudication.acts import LIST, positions
from tests.annotate.conftest import AGREED, DISPUTED
from tests.annotate.hands import let_guard_pass

# --- what the list may be cut to


def test_the_list_says_why_cases_are_checked_blind(checked, eve, client):
    client.force_login(eve.user)
    assert "a second look at random, so that the error rate is known" in client.get(LIST).text


def test_an_empty_list_leads_a_manager_on_to_the_task_and_its_export(two_say, ada, client):
    two_say("de de")
    overview, export = reverse("manage-task", args=["task"]), reverse("manage-export", args=["task"])
    client.force_login(ada.user)
    assert overview not in client.get(LIST).text
    ada.user.is_staff = ada.user.is_superuser = True
    ada.user.save()
    page = client.get(LIST).text
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


def test_the_page_offers_each_case_and_language_with_how_many_and_keeps_to_it(two_say, ada, client):
    two_say("de en", "de -", "- -", "fr en")
    client.force_login(ada.user)
    for query in ("?case=seconded", "?case=doubted", "?case=%00", "?language=xx&case="):  # cut nothing
        assert client.get(LIST + query).text.count('<td dir="auto" class="text">') == 4
    page = client.get(LIST).text
    found = re.findall(r'<a href="(\?[^"]*)"[^>]*>([^<]*) <small>(\d+)</small>', page)
    assert found == [
        ("?", "all", "4"),
        ("?case=differing", "answers differ", "2"),
        ("?case=agreeing", "all answered the same", "1"),
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


def test_a_long_list_is_current_although_the_numbers_of_its_filters_are_kept(two_say, ada, client, monkeypatch):
    monkeypatch.setattr(adjudicators, "LONG", 3)
    task = two_say("de en", "de -", "fr en")
    client.force_login(ada.user)
    filters = lambda page: re.findall(r"<small>(\d+)</small></a>", page)  # noqa: E731
    numbers = filters(client.get(LIST).text)
    settle(ada, task.units.get(position=1).pk, Answer("de", "I read it"))
    page = client.get(LIST).text
    assert page.count('<td dir="auto" class="text"><a') == 3  # two cases and the decision
    assert filters(page) == numbers
    cache.clear()
    assert filters(client.get(LIST).text)[0] == "2"


def test_no_cut_order_or_row_tells_blind_cases_of_one_origin_from_those_of_another(checked, eve, client):
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
    # They stand in the order of the draw, however long they wait.
    assert [unit.pk for unit in everything][: len(blind)] == [
        unit.pk for unit in task.units.filter(pk__in=blind).order_by("position")
    ]
    client.force_login(eve.user)
    page = client.get(LIST + "?case=blind").text
    rows = re.findall(r"<tr>\s*<td dir=\"auto\" class=\"text\">.*?</tr>", page, re.DOTALL)
    units = list(to_adjudicate(task, eve, "", BLIND))
    assert len(rows) == len(units) > 4
    plain = {
        re.sub(rf"/{unit.pk}/", "/N/", row).replace(unit.item.text, "…") for unit, row in zip(units, rows, strict=True)
    }
    assert len(plain) == 1
    assert 'name="case"' not in page  # none can be marked, to be settled with others
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
