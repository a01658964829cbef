"""Answers that arrive late, twice or from a second tab, and the comments typed with them."""

import re

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from annotate.controls.qualification import grant
from annotate.core import stages
from annotate.kinds import Answer
from annotate.models import Guidelines, Judgment, Lease
from annotate.work.closure import close
from annotate.work.interventions import pause
from annotate.work.judgments import judge
from annotate.work.permit import PAUSED
from annotate.work.queue import take
from tests.annotate.acts import signed_in
from tests.annotate.hands import answers_of, let_guard_pass, lose_reply

ANN_READS = "en"
HTMX = {"HX-Request": "true"}
COMMENT = 'a comment with <marks> & "quotes"'


@pytest.fixture
def others(person):
    return [person(name, "en") for name in ("bea", "cem", "dan")]


def run_out(annotator):
    Lease.objects.filter(annotator=annotator, closed_at=None).update(
        opened_at=timezone.now() - timezone.timedelta(hours=2), expires_at=timezone.now() - timezone.timedelta(hours=1)
    )


def send(client, lease, **fields):
    return client.post("/tasks/crowd/judge/", {"lease": lease.pk, "comment": COMMENT, **fields}, headers=HTMX)


# --- late


def test_without_htmx_the_page_of_the_refusal_shows_the_comment_again(make_records_task, ann, others, manager):
    task = make_records_task("qa_match", 3)
    lease = take(ann, task)
    run_out(ann)
    for other in others:
        judge(other, take(other, task).pk, Answer("1"))
    client = signed_in(ann)
    fields = {"lease": lease.pk, "answer": "0"}
    page = client.post("/tasks/crowd/judge/", {**fields, "comment": COMMENT}).text
    assert "What you wrote was not saved. Copy it" in page
    assert "a comment with &lt;marks&gt; &amp; &quot;quotes&quot;</textarea>" in page
    assert "What you wrote" not in client.post("/tasks/crowd/judge/", fields).text
    # Nor do people lose it who are paused in the meantime.
    fields["lease"] = take(ann, task).pk
    pause(ann, task, by=manager, reason="too hasty")
    refused = send(client, Lease.objects.get(pk=fields["lease"]), answer="0")
    assert (refused.status_code, PAUSED in refused.text) == (403, True)
    assert "You can still copy it below" in refused.text
    assert "&lt;marks&gt;" in client.post("/tasks/crowd/judge/", {**fields, "comment": COMMENT}).text


def test_an_answer_that_is_refused_as_it_is_keeps_record_and_comment_though_the_lease_has_run_out(
    make_records_task, ann
):
    lease, client = take(ann, make_records_task("qa_match", 1)), signed_in(ann)
    run_out(ann)
    refused = send(client, lease, answer="9")
    assert refused.status_code == 400
    for text in (lease.unit.item.fields["passage"], "&lt;marks&gt;", f'name="lease" value="{lease.pk}"'):
        assert text in refused.text
    # As long as the box allows, although browsers send longer line ends.
    comment = "\r\n".join(["word"] * 400) + "!"
    assert len(comment) > 2000 >= len(comment.replace("\r\n", "\n"))
    assert send(client, lease, answer="1", comment=comment).status_code == 200


def test_an_adjudicator_who_was_too_late_keeps_reason_and_comment(make_records_task, ann, person):
    task = make_records_task("qa_match", 1, on_conflict="ADJUDICATION", redundancy=1, skip_limit=1)
    send(signed_in(ann), take(ann, task), skip="1")
    unit = task.units.get()
    assert unit.stage == stages.ADJUDICATION
    path = f"/tasks/crowd/adjudication/{unit.pk}/"
    signed_in(person("eve", adjudicates=True)).post(path, {"label": "1", "reason": "Web search"})
    decision = {"label": "0", "reason": "I know", "comment": "what I typed"}
    refused = signed_in(person("ada", adjudicates=True)).post(path, decision)
    assert refused.status_code == 409
    assert re.search(r"<textarea[^>]*>I know\nwhat I typed</textarea>", refused.text)


# --- by whom, and until when


def withdraw_language(ann, task):
    ann.languages.all().delete()


def new_major_version(ann, task):
    Guidelines.objects.create(task=task, language="en", major=2, text="Read otherwise.")


def nothing(ann, task):
    """Keep the right to answer."""


# The event, minutes from the lease's end to the answer (None: before the end), status and message.
AGAIN = "You must pass the test in English again"
REFUSED = [
    (withdraw_language, None, 403, "You can no longer work in English"),
    (withdraw_language, 1, 403, "You can no longer work in English"),
    (lambda ann, task: ann.qualifications.all().delete(), 1, 403, AGAIN),
    (new_major_version, None, 403, AGAIN),
    (lambda ann, task: close(task), 1, 409, "The task was closed before you answered"),
    (nothing, 121, 409, "which is too long ago"),
]
COUNTED = [(nothing, 119), (lambda ann, task: close(task), None)]


@pytest.fixture
def held(make_records_task, ann, manager):
    """A unit leased to Ann, work or a gold answer, in a task whose test she has passed."""

    def make(gold, happens, minutes):
        pots = {"queue": ["1", "0"] * 4, "test": ["1"]}
        task = make_records_task("qa_match", 9, gold=pots, gold_share=0.5, pause_below=0.0, test_items=1)
        grant(ann, task, "en", by=manager)
        while (lease := take(ann, task)).unit.honeypot is not gold:
            judge(ann, lease.pk, Answer("1"))
        Judgment.objects.all().delete()
        if minutes is not None:
            then = timezone.now() - timezone.timedelta(minutes=minutes)
            Lease.objects.filter(pk=lease.pk).update(opened_at=then - timezone.timedelta(minutes=10), expires_at=then)
        happens(ann, task)
        return lease

    return make


@pytest.mark.parametrize("gold", [False, True])
@pytest.mark.parametrize("fields", [{"answer": "1"}, {"skip": "1"}])
@pytest.mark.parametrize(("happens", "minutes", "status", "why"), REFUSED)
def test_nobody_answers_or_skips_who_could_not_be_given_the_unit_now(
    held, as_ann, gold, fields, happens, minutes, status, why
):
    lease = held(gold, happens, minutes)
    refused = send(as_ann, lease, **fields)
    assert (refused.status_code, why in refused.text) == (status, True)
    assert "What you wrote was not saved. You can still copy it below" in refused.text
    address = f"/api/v1/leases/{lease.pk}/" + ("skip/" if "skip" in fields else "judge/")
    refused = as_ann.post(address, {"label": "1"}, content_type="application/json")
    assert (refused.status_code, why in refused.json()["detail"]) == (status, True)
    assert not Judgment.objects.exists()


@pytest.mark.parametrize("gold", [False, True])
@pytest.mark.parametrize("fields", [{"answer": "1"}, {"skip": "1"}])
@pytest.mark.parametrize(("happens", "minutes"), COUNTED)
def test_who_still_could_answers_in_time_and_for_a_while_after(held, as_ann, gold, fields, happens, minutes):
    lease = held(gold, happens, minutes)
    assert send(as_ann, lease, **fields).status_code == 200
    assert Judgment.objects.get().lease == lease


# --- in a browser


def test_a_comment_stands_in_its_box_until_one_goes_on(at_work, make_records_task, ann, others, console_errors):
    task = make_records_task("qa_match", 2)
    hands = at_work(task, ann)
    page, before = hands.page, hands.post
    page.fill("[name=comment]", COMMENT)
    page.locator("#post").focus()
    run_out(ann)
    for other in others:
        judge(other, take(other, task).pk, Answer("1"))
    let_guard_pass(page)
    hands.press("Digit2")
    page.wait_for_selector("#notice:has-text('no longer needs your answer')")
    assert (hands.post, page.input_value("[name=comment]")) == (before, COMMENT)
    assert "You can still copy it below" in page.inner_text("#notice")
    hands.press_and_wait("Enter")
    assert hands.post != before
    assert page.input_value("[name=comment]") == ""
    hands.press_and_wait("Digit2")
    assert answers_of(ann) == [("answer", "0", "")]
    console_errors.clear()  # the refusal


def test_an_answer_whose_reply_was_lost_counts_once_with_its_comment(at_work, make_records_task, ann, console_errors):
    hands = at_work(make_records_task("web_ranking", 2), ann)
    page, before = hands.page, hands.post
    lose_reply(page, "/judge/")
    page.fill("[name=comment]", COMMENT)
    page.locator("#post").focus()
    let_guard_pass(page)
    hands.press("Digit3")
    page.wait_for_selector("text=There is no connection")
    assert (hands.post, page.input_value("[name=comment]")) == (before, COMMENT)
    assert answers_of(ann) == [("answer", "2", "")]
    hands.press_and_wait("Digit3")
    assert hands.post != before
    assert answers_of(ann) == [("answer", "2", "")]
    assert Judgment.objects.get().comment == COMMENT
    console_errors.clear()  # the lost reply


def test_a_comment_outlives_a_reload_and_the_log_in_after_a_session_that_ended(at_work, make_records_task, ann):
    hands = at_work(make_records_task("qa_match", 2), ann)
    page, before = hands.page, hands.post
    page.fill("[name=comment]", COMMENT)
    page.reload()
    expect(page.locator("[name=comment]")).to_have_value(COMMENT)
    page.click("#flag > summary")
    page.fill("#flag textarea", "a question that is not to be asked yet")
    page.keyboard.press("Escape")
    page.context.clear_cookies(name="sessionid")
    let_guard_pass(page)
    page.locator("#post").focus()
    hands.press("Digit1")
    page.wait_for_url("**/login/**")
    page.fill("[name=username]", "ann")
    page.fill("[name=password]", "a long password")
    page.click("button:has-text('Log in')")
    unsent = page.locator("[role=alert]", has_text="so this has not been sent yet")
    expect(unsent).to_be_visible()
    expect(page.locator("[name=comment]")).to_have_value(COMMENT)
    # A question that was typed but not sent stays folded.
    assert (hands.post, page.locator("#flag[open]").count()) == (before, 0)
    hands.press_and_wait("Digit1")
    expect(unsent).to_have_count(0)
    assert Judgment.objects.get().comment == COMMENT
    assert page.input_value("[name=comment]") == ""
