"""Questions, replies, notes and mail between annotators and managers, on their pages."""

import re
import smtplib

import pytest
from django.contrib.auth.models import User
from django.core import mail as outbox
from django.core.mail.backends.locmem import EmailBackend

from annotate.actions.registry import call_command
from annotate.actions.user_accounts import FAILED, REFUSED, SENT, mail_invitations
from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.models import Guidelines, Note, Unit
from annotate.work import accounts, flags
from annotate.work.permit import acting, permits
from annotate.work.queue import take
from tests.annotate.acts import signed_in as as_
from tests.annotate.conftest import DISPUTED

TEXT = "ein Satz, den niemand in einer Mail liest"


@pytest.fixture
def task(make_task):
    return make_task([{"votes": DISPUTED, "text": f"{TEXT} {n}"} for n in range(3)], title="Which language is it?")


def flag(annotator, task, kind="question", words="Is this German?"):
    lease = take(annotator, task)
    with acting(annotator.user, task.name) as permit:
        return flags.flag(permit, lease.pk, kind, words).flag


def do(desk, flag, deed, **fields):
    return desk.post(f"/manage/questions/{flag.pk}/", {"do": deed, **fields}, follow=True)


# --- questions and replies


def test_a_question_stands_before_the_manager_with_its_text_its_answers_and_where_to_look(desk, task, ann, person):
    question = flag(ann, task)
    page = desk.get("/manage/questions/").text
    for words in ("Is this German?", question.unit.item.text, "Nobody has answered it yet", "Which language is it?"):
        assert words in page
    assert "</a>: 1 open" in desk.get("/manage/").text
    assert '<a href="/manage/questions/?task=task">' in desk.get("/manage/tasks/task/comments/").text
    assert '<a href="/manage/tasks/task/comments/">' in desk.get("/manage/questions/?task=task").text
    for deed, fields in (("reply", {"reply": " "}), ("nonsense", {})):
        assert do(desk, question, deed, **fields).status_code == 400
    refused = do(desk, question, "reply", reply=" ").text
    assert "The reply is empty" in refused
    assert '/manage/questions/"' in refused
    assert desk.get("/manage/questions/").text.count("Show the text") == 0
    disturbing = flag(person("bea", "de"), task, "disturbing", "")
    page = desk.get("/manage/questions/").text  # its text is folded
    assert f'<details><summary>Show the text</summary><blockquote dir="auto"><p>{disturbing.unit.item.text}' in page
    assert "bea found it disturbing" in page


def test_the_list_shows_open_ones_of_every_kind_and_task_unless_it_is_asked_otherwise(
    desk, task, ann, make_task, manager
):
    first = flag(ann, task)
    second = flag(ann, task, "broken", "half of it is missing")
    other = flag(ann, make_task([DISPUTED], name="other"), "personal", "a name")
    flags.dismiss(first.pk, by=manager)

    def shown(query):
        page = desk.get(f"/manage/questions/{query}").text
        return {question.pk for question in (first, second, other) if f'id="flag-{question.pk}"' in page}

    assert shown("") == {second.pk, other.pk}
    assert shown("?all=1") == {first.pk, second.pk, other.pk}
    assert shown("?kind=broken") == {second.pk}
    assert shown("?task=other") == {other.pk}
    assert shown("?kind=nonsense&task=nonsense&page=nonsense") == {second.pk, other.pk}


def test_a_reply_stands_on_the_annotator_s_first_page_and_on_nobody_else_s_until_they_put_it_away(
    desk, task, ann, person
):
    bea, question = person("bea", "de"), flag(ann, task)
    assert "will see the reply" in do(desk, question, "reply", reply="Yes, as the word order shows.").text
    home = as_(ann).get("/").text
    assert "Yes, as the word order shows." in home
    assert "Is this German?" in home
    assert "word order" not in as_(bea).get("/").text
    assert as_(bea).post(f"/replies/{question.pk}/read/").status_code == 404
    assert as_(ann).post(f"/replies/{question.pk}/read/", follow=True).status_code == 200
    assert "word order" not in as_(ann).get("/").text


def test_the_manager_leaves_a_unit_out_or_says_that_nothing_is_to_be_done(desk, task, ann):
    first = flag(ann, task, "personal", "")
    do(desk, first, "discard")
    assert Unit.objects.get(pk=first.unit_id).stage == "DISCARDED"
    second = flag(ann, task, "broken", "")
    do(desk, second, "dismiss")
    assert Unit.objects.get(pk=second.unit_id).stage == "QUEUED"
    assert "No open questions or flags" in desk.get("/manage/questions/").text


def test_a_question_becomes_an_example_that_annotators_read_in_the_guidelines(desk, task, ann):
    question = flag(ann, task)
    assert "Add to the guidelines" not in desk.get("/manage/questions/").text
    do(desk, question, "reply", reply="Yes.")
    assert "Add to the guidelines" in desk.get("/manage/questions/?all=1").text
    assert "in version 1.1 (en)" in do(desk, question, "example").text
    page = as_(ann).get("/tasks/task/guidelines/").text
    for words in (question.unit.item.text, "Is this German?", "Yes."):
        assert words in page
    assert "Add to the guidelines" not in desk.get("/manage/questions/?all=1").text
    assert Guidelines.objects.count() == 2


# --- notes


def test_a_note_stands_on_the_first_page_and_above_the_queue_of_whom_it_is_for_until_they_put_it_away(
    desk, task, ann, person
):
    bea = person("bea", "fr")
    desk.post("/manage/tasks/task/notes/write/", {"text": "To all.", "language": ""})
    desk.post("/manage/tasks/task/notes/write/", {"text": "To those who read German.", "language": "de"})

    def seen(annotator, address):
        page = as_(annotator).get(address).text
        return [words for words in ("To all.", "To those who read German.") if words in page]

    assert seen(ann, "/") == seen(ann, "/tasks/task/") == ["To all.", "To those who read German."]
    assert seen(bea, "/") == seen(bea, "/tasks/task/") == ["To all."]
    assert "Note to readers of German in Which language is it?" in as_(ann).get("/").text
    german, everybody = Note.objects.order_by("-pk")
    assert as_(bea).post(f"/notes/{german.pk}/read/").status_code == 404
    back = as_(ann).post(f"/notes/{german.pk}/read/", {"queue": "1"})
    assert back.url == "/tasks/task/"
    assert seen(ann, "/") == ["To all."]
    assert "1 person has dismissed it" in desk.get("/manage/tasks/task/notes/").text
    desk.post("/manage/tasks/task/notes/write/", {"withdraw": everybody.pk})
    assert seen(ann, "/") == seen(bea, "/") == []


def test_a_note_says_something_is_for_somebody_and_is_not_repeated_with_each_answer(
    task, ann, manager, make_task, person
):
    for text, language in ((" ", ""), ("x" * 2001, ""), ("x", "nl")):
        with pytest.raises(InvalidAnswer):
            flags.write_note(task, text, by=manager, language=language)
    other = flags.write_note(make_task([DISPUTED], name="other"), "x", by=manager)
    with pytest.raises(NotFound):
        flags.withdraw_note(task, other.pk)
    flags.write_note(task, "To all.", by=manager)
    assert "To all." not in as_(ann).post("/tasks/task/start/", headers={"HX-Request": "true"}).text
    # An adjudicator who reads no language of the task sees only notes for everybody.
    for annotator, texts in ((person("ada", adjudicates=True), ["To all."]), (person("bea", "nl"), [])):
        assert [str(note.text) for note in flags.notes_to_read(permits(annotator, [task]))] == texts


# --- work that disturbs


def test_a_person_asks_on_their_account_s_page_for_what_others_found_disturbing(ann):
    client = as_(ann)
    assert "Send me items that others found disturbing" in client.get("/account/").text
    page = client.post("/account/disturbing/", {"takes": "yes"}, follow=True).text
    assert "From now on, you may receive" in page
    ann.refresh_from_db()
    assert ann.takes_disturbing
    client.post("/account/disturbing/", {"takes": ["no"]})
    ann.refresh_from_db()
    assert not ann.takes_disturbing


def test_an_adjudicator_sees_what_disturbed_only_when_they_ask_for_it(task, ann, person):
    ada = as_(person("ada", adjudicates=True))
    flagged = flag(ann, task, "disturbing", "")
    listed = ada.get("/tasks/task/adjudication/").text
    assert '<details class="veiled"><summary>Show the text</summary>' in listed
    assert f">{flagged.unit.item.text}</a>" not in listed
    assert '<details class="veil" id="veil"' in ada.get(f"/tasks/task/adjudication/{flagged.unit_id}/").text


# --- mail


@pytest.fixture
def with_mail(settings):
    settings.MAIL, settings.SITE = True, "https://assay.example.org"
    return settings


def address(annotator, email="ann@example.org"):
    User.objects.filter(pk=annotator.user.pk).update(email=email)
    annotator.user.refresh_from_db()


class Broken(EmailBackend):
    """A mail server that refuses every mail."""

    def send_messages(self, messages):
        raise smtplib.SMTPServerDisconnected("gone")


def test_word_of_a_reply_goes_by_mail_without_the_reply_or_any_text_of_the_item(desk, task, ann, with_mail):
    address(ann)
    do(desk, flag(ann, task), "reply", reply=f"Yes: {TEXT}")
    [sent] = outbox.outbox
    assert (sent.to, sent.subject) == (["ann@example.org"], "You have a reply in Assay")
    assert "https://assay.example.org/" in sent.body
    assert "Which language is it?" in sent.body
    assert TEXT not in sent.body


@pytest.mark.parametrize("trouble", ["no server", "a server that takes nothing", "an address that cannot be written"])
def test_a_reply_stands_although_no_mail_goes_and_the_page_says_where_one_failed(desk, task, ann, with_mail, trouble):
    address(ann)
    if trouble == "no server":
        with_mail.MAIL = False
    elif trouble == "a server that takes nothing":
        with_mail.EMAIL_BACKEND = f"{__name__}.Broken"
    else:
        address(ann, f"a@{'ä' * 60}.org")
    page = do(desk, flag(ann, task), "reply", reply="Yes.").text
    assert ("but the mail about it could not be sent" in page) == (trouble != "no server")
    assert "Yes." in as_(ann).get("/").text
    assert outbox.outbox == []


def invited(desk, *annotators):
    pages = [
        desk.post(f"/manage/accounts/{annotator.pk}/do/", {"do": "link"}, follow=True).text for annotator in annotators
    ]
    return "".join(pages)


def test_an_invitation_goes_by_mail_with_a_link_that_works(desk, ann, person, with_mail):
    address(ann)
    page = invited(desk, ann, person("bea"))
    assert "Sent by mail to ann." in page
    [sent] = outbox.outbox
    token = sent.body.split("https://assay.example.org/invite/")[1].split("/")[0]
    assert accounts.find_invite(token).annotator == ann
    assert "user name is ann" in sent.body


def test_links_are_shown_although_their_mails_could_not_be_sent_and_no_other_is_tried(desk, ann, person, with_mail):
    with_mail.EMAIL_BACKEND = f"{__name__}.Broken"
    bea = person("bea")
    for annotator in (ann, bea):
        address(annotator)
    page = invited(desk, ann, bea)
    assert "could not be sent. Their links are valid" in page
    assert len(set(re.findall(r"/invite/[\w-]+", page))) == 2
    assert mail_invitations([(ann.user, "link"), (bea.user, "link")]) == {"ann": FAILED, "bea": FAILED}


@pytest.mark.parametrize("email", [f"a@{'ä' * 60}.org", "a@b..org", f"a@{'x' * 70}.ä", "a@x.org\nBcc: b@x.org"])
def test_an_address_that_cannot_be_written_costs_nobody_their_link(desk, ann, person, with_mail, email):
    bea = person("bea")
    address(ann, email)
    address(bea, "bea@example.org")
    page = invited(desk, ann, bea)
    assert page.count("/invite/") >= 2
    assert "Sent by mail to bea." in page
    sent = mail_invitations([(ann.user, "link"), (bea.user, "link")])
    assert sent["bea"] == SENT
    if sent["ann"] == REFUSED:
        assert "The mail server rejected the addresses of ann" in page


def test_the_command_that_adds_people_mails_them_too(tmp_path, with_mail, db):
    file = tmp_path / "people.csv"
    file.write_text("username,name,languages,email\nmia,Mia,de:5,mia@example.org\nned,Ned,de:5,\n")
    call_command("add_annotators", str(file))
    assert [sent.to for sent in outbox.outbox] == [["mia@example.org"]]
