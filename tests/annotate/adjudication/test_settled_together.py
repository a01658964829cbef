"""Cases of which all said the same, settled in one act."""

import pytest

from annotate.core import stages
from annotate.core.refusals import InvalidAnswer
from annotate.kinds import Answer
from annotate.models import Judgment
from annotate.work import interventions
from annotate.work.adjudication import AGREEING, agreed, settle, settle_together, to_adjudicate
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from tests.annotate.adjudication.acts import LIST, positions, where
from tests.annotate.conftest import DISPUTED

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


def test_what_has_changed_meanwhile_is_told_and_the_others_are_settled(two_say, ada, eve):
    task = two_say("de -", "fr -", "en -", "de -", "de en")
    units = list(task.units.order_by("position"))
    chosen = agreed(to_adjudicate(task, ada), ada)
    settle(eve, units[0].pk, Answer("de", "I read it"))
    Judgment.objects.answers().filter(unit=units[1]).update(label="he")
    chosen |= {units[4].pk: "de", 10**9: "de"}
    found = settle_together(ada, task, chosen, "Their readers agree")
    assert [where(unit) for unit in units[2:4]] == [(stages.LABELLED, "en"), (stages.LABELLED, "de")]
    assert len(found.settled) == 2
    told = {unit and unit.pk: str(why) for unit, why in found.refused}
    assert "Another adjudicator may have decided it" in told[units[0].pk]
    assert "no longer be decided together" in told[units[1].pk]
    assert "no longer be decided together" in told[units[4].pk]
    assert "no longer waiting" in told[None]


def test_a_case_that_has_become_blind_meanwhile_is_not_settled_with_others_and_nobody_is_told_why(two_say, ada, eve):
    task = two_say("de -", check_share=1.0)
    unit = task.units.get()
    chosen = agreed(to_adjudicate(task, ada), ada)
    assert chosen == {unit.pk: "de"}
    settle(eve, unit.pk, Answer("fr", "I read it"))
    assert agreed(to_adjudicate(task, ada), ada) == {}
    found = settle_together(ada, task, chosen, "Their readers agree")
    [(_, why)] = found.refused
    assert str(why) == "This case can no longer be decided together with others. Decide it separately."
    assert not ada.judgments.exists()


def test_what_readers_still_have_is_neither_settled_nor_told_of(make_task, ada, client):
    unit = make_task([DISPUTED]).units.get()
    client.force_login(ada.user)
    sent = {"case": [f"{unit.pk} de", "999999 de", "x"], "reason": "I read it"}
    answer = client.post(LIST + "together/", sent)
    assert answer.status_code == 409
    assert unit.item.text not in answer.text
    assert answer.text.count("One of the cases is no longer waiting for an adjudicator.") == 2
    assert where(unit)[0] == stages.QUEUED


def test_marks_and_reason_stay_where_something_lacks_and_nothing_is_settled(two_say, ada, client):
    task = two_say("de -")
    unit = task.units.get()
    client.force_login(ada.user)
    for reason, marked, sentence in (
        ("I read it", False, "Select the cases"),
        (" ", True, "Enter a short reason"),
        ("x" * 201, True, "longer than 200 characters"),
        ("a\x00b", True, "NUL"),
    ):
        with pytest.raises(InvalidAnswer, match=sentence):
            settle_together(ada, task, {unit.pk: "de"} if marked else {}, reason)
        sent = {"reason": reason} | ({"case": f"{unit.pk} de"} if marked else {})
        answer = client.post(LIST + "together/", sent)
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
    assert agreed(to_adjudicate(task, ada), ada) == {}


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
    # Enter on a mark opens its case, and elsewhere the first.
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
