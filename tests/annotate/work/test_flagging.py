"""Flags on units: disturbing content, personal data, broken text, and questions."""

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from annotate.core import stages
from annotate.core.draws.committed_draws import GOLD_PLACE, verify
from annotate.core.refusals import AlreadyAnswered, InvalidAnswer, NotAllowed, NotFound, WrongStage
from annotate.figures.annotator_statistics import people
from annotate.figures.personal_progress import why_empty
from annotate.figures.queue_states import queue_states
from annotate.kinds import Answer
from annotate.models import Flag, Judgment, Lease
from annotate.quality import commitments
from annotate.quality.guideline_versions import current
from annotate.work import flags
from annotate.work.adjudication import settle, to_adjudicate, unsettle
from annotate.work.answer_changes import undo
from annotate.work.backlog import progress_of
from annotate.work.closure import delete_task
from annotate.work.judgments import judge, skip
from annotate.work.permit import acting, permit_of
from annotate.work.queue import take, take_sheet
from annotate.work.routing import reroute
from tests.annotate.conftest import DISPUTED
from tests.annotate.hands import let_guard_pass, posts_of

ANN_READS = "de en"


def flag(annotator, lease, kind="disturbing", words=""):
    with acting(annotator.user, lease.unit.task.name) as permit:
        return flags.flag(permit, lease.pk, kind, words)


def stage_of(unit):
    unit.refresh_from_db()
    return unit.stage


def waiting(annotator, task):
    return progress_of(permit_of(annotator, task)).waiting


# --- what is disturbing


def test_what_is_disturbing_waits_only_for_those_who_take_such_and_never_for_who_found_it_so(make_task, person):
    task = make_task([DISPUTED])
    ann, bea, cem = person("ann", "de"), person("bea", "de"), person("cem", "de", takes_disturbing=True)
    lease = take(ann, task)
    flag(ann, lease)
    assert [waiting(annotator, task) for annotator in (ann, bea, cem)] == [0, 0, 1]
    assert [take(annotator, task) for annotator in (ann, bea)] == [None, None]
    assert "become available" not in why_empty(permit_of(bea, task))
    assert take_sheet(bea, task) == []
    flags.set_takes_disturbing(bea, takes=True)
    assert waiting(bea, task) == 1
    theirs = take(bea, task)
    assert (theirs.unit, take(cem, task)) == (lease.unit, None)
    flags.set_takes_disturbing(bea, takes=False)
    assert Lease.objects.get(pk=theirs.pk).outcome == "released"
    assert take(bea, task) is None
    mine = take(cem, task)
    assert mine.unit == lease.unit
    flags.set_takes_disturbing(cem, takes=False)
    [queue] = queue_states(task)["queues"]
    assert (queue["stuck"], "does not accept disturbing" in queue["said"]) == (True, True)
    reroute(task)
    assert stage_of(lease.unit) == stages.ADJUDICATION


def test_it_counts_as_no_answer_and_no_skip_of_the_person_and_not_towards_the_limit_of_skips(make_task, person):
    task = make_task([DISPUTED] * 2, skip_limit=1)
    ann, _bea = person("ann", "de"), person("bea", "de", takes_disturbing=True)
    lease = take(ann, task)
    flag(ann, lease)
    assert (stage_of(lease.unit), lease.unit.round) == (stages.QUEUED, 1)
    [row] = people(task)
    assert (row["answers"], row["skips"]) == (0, 0)
    progress = progress_of(permit_of(ann, task))
    assert (progress.answered_today, progress.skipped_today, progress.waiting) == (0, 0, 1)
    closed = Lease.objects.get(pk=lease.pk)
    assert (closed.outcome, closed.place) == ("flagged", None)
    assert Judgment.objects.get().kind == Judgment.FLAG


def test_where_nobody_takes_such_it_goes_to_another_adjudicator_until_the_flag_is_taken_back(make_task, person):
    task = make_task([DISPUTED])
    ann, ada = person("ann", "de", adjudicates=True), person("ada", adjudicates=True)
    bea = person("bea", "de")
    lease = take(ann, task)
    flag(ann, lease)
    assert stage_of(lease.unit) == stages.ADJUDICATION
    assert [[*to_adjudicate(task, adjudicator)] for adjudicator in (ada, ann)] == [[lease.unit], []]
    again = undo(ann, task)
    assert (again.unit, stage_of(lease.unit)) == (lease.unit, stages.QUEUED)
    assert not lease.unit.disturbing
    assert not Flag.objects.active().exists()
    judge(ann, again.pk, Answer("de"))
    assert (stage_of(lease.unit), take(bea, task)) == (stages.LABELLED, None)


def test_so_does_a_record_although_records_wait_for_readers_else_and_the_task_drops_what_has_none(
    make_records_task, person
):
    task = make_records_task(count=1, redundancy=2, on_conflict=stages.DISCARDED)
    ann, _bea = person("ann", "en"), person("bea", "en", takes_disturbing=True)
    lease = take(ann, task)
    flag(ann, lease)
    assert stage_of(lease.unit) == stages.ADJUDICATION


def test_answers_that_it_has_or_that_are_open_count_and_only_those_that_are_missing_need_takers(make_task, person):
    task = make_task([DISPUTED], redundancy=3)
    ann, bea, cem = person("ann", "de"), person("bea", "de"), person("cem", "de")
    dan, _eve = (person(name, "de", takes_disturbing=True) for name in ("dan", "eve"))
    judge(bea, take(bea, task).pk, Answer("de"))
    open_with_cem, lease = take(cem, task), take(ann, task)
    flag(ann, lease)
    assert judge(cem, open_with_cem.pk, Answer("de")).label == "de"
    assert stage_of(lease.unit) == stages.QUEUED
    judge(dan, take(dan, task).pk, Answer("de"))
    assert stage_of(lease.unit) == stages.LABELLED


def test_it_stays_disturbing_while_somebody_else_has_found_it_so(make_task, person):
    task = make_task([DISPUTED], redundancy=2)
    ann = person("ann", "de")
    bea, *_ = (person(name, "de", takes_disturbing=True) for name in ("bea", "cem", "dan"))
    lease, theirs = take(ann, task), take(bea, task)
    flag(ann, lease)
    flag(bea, theirs)
    undo(bea, task)
    lease.unit.refresh_from_db()
    assert lease.unit.disturbing


def test_flagging_twice_changes_nothing_and_flagging_what_was_answered_is_refused(make_task, person):
    task, ann = make_task([DISPUTED] * 2), person("ann", "de")
    lease = take(ann, task)
    assert flag(ann, lease).flag == flag(ann, lease).flag
    assert Judgment.objects.count() == 1
    second = take(ann, task)
    judge(ann, second.pk, Answer("de"))
    with pytest.raises(AlreadyAnswered, match="already answered German"):
        flag(ann, second)
    with pytest.raises(AlreadyAnswered, match="already flagged"):
        skip(ann, lease.pk)


# --- a hidden gold answer


@pytest.mark.parametrize("takes", [False, True])
def test_a_gold_answer_is_handed_on_as_work_is_and_others_meet_it_only_if_they_take_such(
    make_records_task, person, takes
):
    task = make_records_task(count=12, gold={"queue": ["1", "0"] * 3}, gold_share=0.5, redundancy=2, pause_below=0.0)
    ann, bea = person("ann", "en"), person("bea", "en", takes_disturbing=takes)
    person("cem", "en", takes_disturbing=True)
    flagged = {}
    while len(flagged) < 2:
        lease = take(ann, task)
        if lease.unit.honeypot in flagged:
            judge(ann, lease.pk, Answer("1"))
        else:
            flag(ann, lease)
            flagged[lease.unit.honeypot] = lease.unit
    met = {ann: set(), bea: set()}
    for annotator, units in met.items():
        while lease := take(annotator, task):
            units.add(lease.unit)
            judge(annotator, lease.pk, Answer("1"))
    both = set(flagged.values())
    assert not met[ann] & both
    assert met[bea] & both == (both if takes else set())
    assert stage_of(flagged[True]) == stages.QUEUED


def take_gold(annotator, task):
    while not (lease := take(annotator, task)).unit.honeypot:
        judge(annotator, lease.pk, Answer("1"))
    return lease


def test_the_work_for_which_a_flagged_gold_answer_stood_is_given_to_the_person_and_is_as_it_was(
    make_records_task, person
):
    task = make_records_task(count=6, gold={"queue": ["1", "0"] * 3}, gold_share=0.5, pause_below=0.0)
    ann = person("ann", "en")
    lease = take_gold(ann, task)
    flag(ann, lease)
    assert (stage_of(lease.work), lease.work.disturbing) == (stages.QUEUED, False)
    # Not at once, or the next unit would always be in its language.
    while (theirs := take(ann, task)).unit != lease.work:
        judge(ann, theirs.pk, Answer("1"))


def test_the_lots_of_gold_answers_can_be_verified_though_some_were_passed_over(make_records_task, person):
    task = make_records_task(count=30, gold={"queue": ["1", "0"] * 5}, gold_share=0.34, redundancy=3, pause_below=0.0)
    ann, bea, cem = person("ann", "en"), person("bea", "en"), person("cem", "en", takes_disturbing=True)
    person("dan", "en", takes_disturbing=True)
    flagged = None
    while lease := take(ann, task):
        if lease.unit.honeypot and flagged is None:
            flag(ann, lease)
            flagged = lease.unit
        else:
            judge(ann, lease.pk, Answer("1"))
    for annotator in (bea, cem):
        while lease := take(annotator, task):
            judge(annotator, lease.pk, Answer("1"))
    lines = [line for line in commitments.lines(task) if line["lot"] == GOLD_PLACE]
    assert [line["how"]["disturbing"] for line in lines] == [[flagged.item.key]] * 3
    drawn = [check for line in lines for check in verify(task.lots, line)]
    assert len(drawn) > 60
    assert [check for check in drawn if check.differs] == []
    met = {line["of"][0]: flagged.item.key in str(line["drawn"]) for line in lines}
    assert met == {ann.pseudonym: True, bea.pseudonym: False, cem.pseudonym: True}


# --- what stays on the screen


@pytest.mark.parametrize("kind", ["personal", "broken", "question"])
def test_personal_data_broken_text_and_questions_leave_the_unit_with_the_person(make_task, person, kind):
    task, ann = make_task([DISPUTED]), person("ann", "de")
    lease = take(ann, task)
    flag(ann, lease, kind, "What is meant?")
    assert take(ann, task) == lease
    assert not Judgment.objects.exists()
    assert judge(ann, lease.pk, Answer("de")).label == "de"
    assert [(flag.kind, flag.words) for flag in Flag.objects.open()] == [(kind, "What is meant?")]


def test_a_question_needs_words_and_none_is_too_long_or_of_a_kind_that_there_is_not(make_task, person):
    task, ann, bea = make_task([DISPUTED]), person("ann", "de"), person("bea", "de")
    lease = take(ann, task)
    for kind, words in (("question", " "), ("broken", "x" * 2001), ("broken", "\x00"), ("bad", "")):
        with pytest.raises(InvalidAnswer):
            flag(ann, lease, kind, words)
    with pytest.raises(NotFound):
        flag(bea, lease, "broken")
    flag(ann, lease, "question", "Why?")
    flag(ann, lease, "question", "Why? ")
    with pytest.raises(AlreadyAnswered):
        flag(ann, lease, "question", "Why not?")
    assert Flag.objects.count() == 1


# --- what a manager does


@pytest.fixture
def question(make_task, person):
    """Ann's question about a unit that she has open."""
    task, ann = make_task([{"votes": DISPUTED, "text": "- one *two*\n<b> 3. three"}]), person("ann", "de")
    return flag(ann, take(ann, task), "question", "Is _this_ German?").flag


def test_one_reply_settles_a_question_and_is_shown_until_the_person_dismisses_it(question, manager, person):
    with pytest.raises(InvalidAnswer):
        flags.reply(question.pk, "  ", by=manager)
    with pytest.raises(NotFound):
        flags.reply(0, "No.", by=manager)
    for _ in range(2):
        flags.reply(question.pk, " Yes, since … ", by=manager)
    with pytest.raises(AlreadyAnswered, match="manager has already replied"):
        flags.reply(question.pk, "No.", by=manager)
    assert not Flag.objects.open().exists()
    assert [answered.reply for answered in flags.replies(question.annotator)] == ["Yes, since …"]
    with pytest.raises(NotFound):
        flags.dismiss_reply(person("bea"), question.pk)
    flags.dismiss_reply(question.annotator, question.pk)
    assert not flags.replies(question.annotator).exists()


def test_a_flag_that_needs_nothing_is_dismissed(question, manager):
    flags.dismiss(question.pk, by=manager)
    assert not Flag.objects.open().exists()
    assert not flags.replies(question.annotator).exists()
    # A task with a flag, settled or not, is not deleted.
    Lease.objects.update(closed_at=timezone.now(), outcome="released", place=None)
    with pytest.raises(WrongStage, match="flagged its items \\(1 time\\)"):
        delete_task(question.unit.task)


def test_a_manager_leaves_a_unit_out_and_nothing_that_people_do_brings_it_back(make_task, person, manager):
    task = make_task([DISPUTED] * 2)
    ann, ada = person("ann", "de"), person("ada", adjudicates=True)
    first = take(ann, task)
    flag(ann, first, "personal")
    judge(ann, first.pk, Answer("de"))
    flags.discard(Flag.objects.get().pk, by=manager)
    assert stage_of(first.unit) == stages.DISCARDED
    judge(ann, undo(ann, task).pk, Answer("en"))
    assert stage_of(first.unit) == stages.DISCARDED
    second = take(ann, task)
    flag(ann, second)  # nobody else reads it
    settle(ada, second.unit.pk, Answer("de", "I read it"))
    flags.discard(Flag.objects.get(kind="disturbing").pk, by=manager)
    with pytest.raises(WrongStage, match="manager has excluded this case"):
        unsettle(ada, second.unit.pk)
    flags.discard(Flag.objects.get(kind="disturbing").pk, by=manager)
    assert [move.event for move in second.unit.transitions.all()].count("withdrawn") == 1


def test_what_people_had_given_up_stays_left_out_when_one_of_them_takes_their_answer_back(make_task, person, manager):
    task = make_task([DISPUTED], redundancy=2, on_conflict=stages.DISCARDED)
    ann, bea = person("ann", "de"), person("bea", "de")
    lease = take(ann, task)
    flag(ann, lease, "broken")
    judge(ann, lease.pk, Answer("de"))
    judge(bea, take(bea, task).pk, Answer("en"))
    assert stage_of(lease.unit) == stages.DISCARDED
    flags.discard(Flag.objects.get().pk, by=manager)
    undo(bea, task)
    assert stage_of(lease.unit) == stages.DISCARDED


def test_a_hidden_gold_answer_is_neither_left_out_nor_made_an_example(make_records_task, person, manager):
    task = make_records_task(count=6, gold={"queue": ["1", "0"] * 3}, gold_share=0.5)
    ann = person("ann", "en")
    question = flag(ann, take_gold(ann, task), "question", "Why?").flag
    with pytest.raises(NotAllowed, match="hidden gold answer"):
        flags.discard(question.pk, by=manager)
    assert Flag.objects.open().exists()
    flags.reply(question.pk, "Since …", by=manager)
    with pytest.raises(NotAllowed, match="reveal the answer"):
        flags.make_example(question.pk, by=manager)


def test_question_and_reply_become_an_example_once_as_a_new_minor_version_in_which_nothing_is_markup(question, manager):
    with pytest.raises(WrongStage, match="Reply first"):
        flags.make_example(question.pk, by=manager)
    flags.reply(question.pk, "# Yes", by=manager)
    guideline = flags.make_example(question.pk, by=manager)
    assert flags.make_example(question.pk, by=manager) == guideline == current(question.unit.task)
    assert (guideline.language, guideline.version) == ("en", "1.1")
    assert guideline.text == ("Read.\n\n> \\- one \\*two\\*\n> \\<b\\> 3. three\n\n*Is \\_this\\_ German?*\n\n\\# Yes")


# --- what the database refuses


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "other"},
        {"kind": "question", "words": ""},
        {"kind": "disturbing"},
        {"reply": "a reply without its time"},
        {"settled_at": "2026-01-01T00:00Z"},
    ],
    ids=str,
)
def test_the_database_refuses_a_flag_of_no_kind_without_words_or_half_settled(question, wrong):
    with pytest.raises(IntegrityError), transaction.atomic():
        Flag.objects.filter(pk=question.pk).update(**wrong)


# --- by keys, by mouse and without JavaScript


def stored():
    return list(Flag.objects.order_by("pk").values_list("kind", "words"))


def test_what_is_disturbing_is_hidden_at_once_and_handed_on_by_two_keys(at_work, make_task, ann, console_errors):
    hands = at_work(make_task([DISPUTED] * 3), ann)
    page, before = hands.page, hands.post
    let_guard_pass(page)
    page.context.set_offline(True)
    hands.press("KeyF")
    hands.press("Digit1")
    assert page.locator("#post").is_hidden()
    page.wait_for_selector("text=There is no connection")
    assert page.locator("#post").is_hidden()
    page.context.set_offline(False)
    hands.press("KeyF")
    hands.press_and_wait("Digit1")
    assert (page.locator("#post").is_visible(), hands.post != before) == (True, True)
    assert before not in page.content()
    assert stored() == [("disturbing", "")]
    assert "0 answered and 0 skipped today" in page.inner_text("footer.tally")
    assert "Flagged as disturbing" in page.inner_text("footer.tally")
    console_errors.clear()  # of the line
    # While the flags are shown, digits choose one, and Escape closes them.
    let_guard_pass(page)
    posted = posts_of(page)
    for key in ("KeyF", "Digit9", "Escape"):
        hands.press(key)
    assert page.locator("#flag[open]").count() == 0
    hands.press_and_wait("Digit1")
    assert [address.rpartition("/tasks/")[2] for address in posted] == ["task/judge/"]


def test_a_question_is_asked_by_keys_alone_and_the_unit_and_its_comment_stay(at_work, make_task, ann):
    hands = at_work(make_task([DISPUTED] * 2), ann)
    page = hands.page
    before = hands.post
    page.fill("[name=comment]", "a comment")
    page.locator("#post").focus()
    let_guard_pass(page)
    hands.press("KeyF")
    hands.press("Digit4")
    page.wait_for_selector("#flag textarea:focus")
    page.keyboard.type("Is this 1 language?")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=The manager has received your flag")
    assert (hands.post, page.input_value("[name=comment]")) == (before, "a comment")
    assert stored() == [("question", "Is this 1 language?")]
    assert page.locator("#flag[open]").count() == 0
    hands.press_and_wait("Digit1")
    assert Judgment.objects.get().comment == "a comment"
    assert page.locator("#flagged").inner_text() == ""
    hands.press("KeyF")
    assert page.input_value("#flag textarea") == ""


@pytest.mark.slow
def test_without_javascript_the_same_buttons_do_the_same(new_page, make_task, ann, console_errors):
    make_task([DISPUTED] * 2)
    page = new_page(user=ann.user, java_script_enabled=False)
    page.goto("/tasks/task/")
    page.click("button:has-text('Start')")
    before = page.inner_text("#post")
    page.fill("[name=comment]", "a comment")
    page.click("#flag > summary")
    page.click("#flag [value=question]")  # without words, which is refused
    assert page.locator("#notice").inner_text().strip()
    assert (page.inner_text("#post"), page.input_value("[name=comment]")) == (before, "a comment")
    console_errors.clear()  # of the refusal
    page.click("#flag > summary")
    page.fill("#flag textarea", "Why?")
    page.click("#flag [value=question]")
    assert "The manager has received your flag" in page.inner_text("#flagged")
    assert (page.inner_text("#post"), page.input_value("[name=comment]")) == (before, "a comment")
    page.click("#flag > summary")
    page.click("#flag [value=disturbing]")
    assert page.inner_text("#post") != before
    assert stored() == [("question", "Why?"), ("disturbing", "")]
    assert Lease.objects.filter(outcome="flagged").count() == 1
    page.goto("/tasks/task/answers/")
    assert "hidden because you found it disturbing" in page.inner_text("main")
    assert before not in page.content()
