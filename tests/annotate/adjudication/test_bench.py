"""The adjudicator's bench: cases of one text beside each other, on a phone, and twenty cases by keys alone."""

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from annotate.core import stages
from annotate.kinds import Answer
from annotate.models import Judgment
from annotate.work.adjudication import discard, of_one_text, settle
from annotate.work.interventions import pause
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from tests.annotate.acts import NO_CHECKS
from tests.annotate.adjudication.acts import LIST, where
from tests.annotate.conftest import DISPUTED
from tests.annotate.hands import let_guard_pass
from tests.looks import sticks_out

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
    assert "1 copy gets the same label." in page
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


@pytest.mark.slow
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
    + [([*BY_FIRST_REASON, "KeyW", *letters, "Enter"], code) for letters, code in (("fre", "fr"), ("עבר", "he"))]
    + [([*BY_OWN_REASON, "Digit1"], "de")] * 3
)


@pytest.mark.slow
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
            elif key.isascii():
                page.keyboard.press(key)
            else:
                page.keyboard.insert_text(key)
            if key.startswith("Digit"):
                page.keyboard.up("Shift")
        with page.expect_navigation():
            page.keyboard.press(last)
        presses += len(keys)
    assert [where(unit)[1] for unit in units] == [label for _, label in TWENTY]
    reasons = list(Judgment.objects.decisions().filter(unit__in=units).order_by("pk").values_list("reason", flat=True))
    assert (reasons[14], set(reasons[-3:])) == ("Nothing found", {"A friend reads it"})
    assert presses == 69
    assert max(len(keys) for keys, _ in TWENTY) == 7
