"""Sensitive work: only for people who consented, limited per day, and with hidden texts."""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotate.controls import qualification
from annotate.core import stages
from annotate.core.refusals import EnoughToday, NotAgreed
from annotate.kinds import Answer
from annotate.models import Consent, GoldAnswer, Judgment, Lease, Trial
from annotate.work import interventions
from annotate.work.adjudication import discard, settle
from annotate.work.answer_changes import undo
from annotate.work.judgments import judge, skip
from annotate.work.permit import acting, permit_of
from annotate.work.queue import take
from tests.annotate.acts import signed_in
from tests.annotate.programs import Program

pytestmark = pytest.mark.django_db

TOXIC, NOT = Answer("toxic"), Answer("not-toxic")


@pytest.fixture
def hurting(make_records_task):
    """hurting(4, a_day=2) opens a task with four pairs, of which a person gets two a day."""

    def make(count=4, *, a_day=50, **options):
        task = make_records_task("toxic_pairs", count, **options)
        text = task.kind.source.replace("a_day = 50", f"a_day = {a_day}")
        task.kind_file, task.title = text, "Toxic pairs"
        task.save()
        return task

    return make


@pytest.fixture
def agreed(person):
    def make(name, task, *languages, **values):
        someone = person(name, *(languages or ["en"]), **values)
        interventions.agree(someone, task.name)
        return someone

    return make


def answered(annotator, task, answer=NOT):
    return judge(annotator, take(annotator, task).pk, answer)


def shown(client, task, page="answers/", **fields):
    """Return the text of a task's page, or of the reply to these fields."""
    address = f"/tasks/{task.name}/{page}"
    return (client.post(address, fields, follow=True) if fields else client.get(address)).text


TEXT = "the message of"


# --- agreeing


def test_nobody_gets_a_unit_before_they_agreed_on_a_page_that_says_what_may_hurt(hurting, person):
    task, ann = hurting(), person("ann", "en")
    client, address = signed_in(ann), f"/tasks/{task.name}/consent/"
    page = client.post(f"/tasks/{task.name}/start/", {"read": 1}, follow=True).text
    assert "only people who have agreed to it receive items" in page
    assert (address in page, TEXT in page) == (True, False)
    assert client.post(address, {"do": "decline"}).url == "/"
    assert client.post(address, {"do": "perhaps"}).status_code == 400
    assert (take(ann, task), Consent.objects.exists(), Lease.objects.exists()) == (None, False, False)
    page = shown(client, task, "consent/")
    assert "insult, threaten or despise" in page
    assert "at most 50 a day" in page
    before = timezone.now()
    assert client.post(address, {"do": "agree"}).url == f"/tasks/{task.name}/"
    consent = Consent.objects.get()
    assert (consent.annotator, consent.task, consent.withdrawn_at) == (ann, task, None)
    assert before <= consent.at <= timezone.now()
    interventions.agree(ann, task.name)
    assert Consent.objects.get().at == consent.at
    assert "You agreed on" in shown(client, task, "consent/")
    assert take(ann, task)


def test_the_warning_is_in_the_language_that_a_person_reads_best_and_has_one(hurting, person):
    task = hurting()
    for name, languages, words in (("ann", "sw:5 de:5 en:4", "Manche dieser"), ("bea", "sw", "Some of these")):
        assert words in shown(signed_in(person(name, languages)), task, "consent/")


def test_managers_see_who_has_agreed_who_took_it_back_and_how_much_is_given_on_a_day(hurting, person, manager):
    task, ann = hurting(a_day=7, redundancy=1), person("ann", "en")
    bea, client, page = person("bea", "en"), signed_in(manager), "/manage/tasks/crowd/"
    assert "2 people read English, but nobody has agreed to work with distressing content." in client.get(page).text
    assert "Nobody has agreed yet." in client.get(f"{page}people/").text
    interventions.agree(ann, task.name)
    overview = client.get(page).text
    assert "1 person can work on 4 items. Answers needed: 4. Each of them receives at most 7 items per day." in overview
    people = client.get(f"{page}people/").text
    assert "Not agreed: bea." in people
    assert "at most 7 items a day" in people
    interventions.agree(bea, task.name)
    interventions.withdraw(bea, task.name)
    people = client.get(f"{page}people/").text
    rows = people[people.index("Consent to upsetting content") :]
    assert rows.index(">bea<") < rows.index(">ann<")
    assert rows.count(f"{timezone.localdate():%Y-%m-%d}") >= 3


def test_an_agreement_is_taken_back_at_any_time_and_what_is_open_goes_back(hurting, agreed):
    task = hurting()
    ann = agreed("ann", task)
    answered(ann, task)
    lease, client = take(ann, task), signed_in(ann)
    page = shown(client, task)
    assert page.index('<details class="veiled"') < page.index(TEXT)
    shown(client, task, "consent/", do="decline")
    page = shown(client, task)
    assert (TEXT in page, "not shown because you have not agreed to read it" in page) == (False, True)
    lease.refresh_from_db()
    assert (lease.outcome, take(ann, task)) == ("released", None)
    with pytest.raises(NotAgreed):
        judge(ann, lease.pk, NOT)
    with pytest.raises(NotAgreed):
        undo(ann, task)
    assert Judgment.objects.live().count() == 1
    interventions.agree(ann, task.name)
    assert Consent.objects.count() == 2
    assert take(ann, task)


def test_an_agreement_is_to_one_task_by_one_person(hurting, agreed, person, make_records_task):
    one, other = hurting(name="one"), hurting(name="other")
    ann = agreed("ann", one)
    assert take(ann, other) is None
    assert take(person("bea", "en"), one) is None
    assert take(ann, one)
    make_records_task(name="harmless")
    for reply in (signed_in(ann).get("/tasks/harmless/consent/"), signed_in(ann).post("/tasks/harmless/consent/")):
        assert reply.status_code == 404
    assert Consent.objects.count() == 1


def test_questions_of_practice_and_test_are_such_work_too(hurting, person):
    gold = {GoldAnswer.PRACTICE: ["toxic"], GoldAnswer.TEST: ["toxic", "not-toxic"]}
    task, ann = hurting(gold=gold, test_items=2), person("ann", "en")
    with pytest.raises(NotAgreed), acting(ann.user, task.name) as permit:
        qualification.begin(permit, "en", Trial.PRACTICE)
    interventions.agree(ann, task.name)
    with acting(ann.user, task.name) as permit:
        assert qualification.begin(permit, "en", Trial.PRACTICE)


# --- so many a day


def test_after_so_many_in_a_day_the_page_says_kindly_that_it_is_enough(hurting, agreed):
    task = hurting(4, a_day=2)
    client = signed_in(agreed("ann", task))
    shown(client, task, "start/", read=1)
    for number in (1, 2):
        lease = Lease.objects.get(closed_at=None)
        page = shown(client, task, "judge/", lease=lease.pk, answer="not-toxic")
        assert ("That is enough for today: you have read 2 of these" in page) == (number == 2)
    assert "Check again" not in page
    assert "That is enough for today" in client.get("/").text
    assert not Lease.objects.filter(closed_at=None).exists()


def test_what_was_skipped_was_read_and_what_was_taken_back_is_read_again(hurting, agreed):
    task = hurting(4, a_day=2)
    ann = agreed("ann", task)
    skip(ann, take(ann, task).pk)
    answered(ann, task)
    assert take(ann, task) is None
    lease = undo(ann, task)
    assert permit_of(ann, task).read_today == 1
    assert take(ann, task) == lease
    judge(ann, lease.pk, TOXIC)
    assert take(ann, task) is None


def test_a_day_ends_at_midnight_and_is_each_persons_own(hurting, agreed):
    task = hurting(4, a_day=1)
    ann, bea = agreed("ann", task), agreed("bea", task)
    lease = take(ann, task)
    assert judge(ann, lease.pk, NOT) == judge(ann, lease.pk, NOT)
    assert take(ann, task) is None
    assert take(bea, task)
    Judgment.objects.update(answered_at=timezone.now() - timedelta(days=1), shown_at=None)
    assert take(ann, task)


def test_an_answer_beyond_the_days_limit_is_refused(hurting, agreed):
    task = hurting(4, a_day=1)
    ann, bea = agreed("ann", task), agreed("bea", task)
    late = take(ann, task)
    # An expired lease can be answered while its place is free, but not beyond the day's limit.
    Lease.objects.filter(pk=late.pk).update(expires_at=timezone.now() - timedelta(minutes=1))
    late.unit.leases.exclude(pk=late.pk).delete()
    task.units.filter(pk=late.unit_id).update(position=99)
    other = take(ann, task)
    assert other.unit_id != late.unit_id
    judge(ann, other.pk, NOT)
    with pytest.raises(EnoughToday):
        judge(ann, late.pk, NOT)
    assert answered(bea, task)


# --- the API


def test_the_api_refuses_with_the_sentences_of_the_pages(hurting, person, client):
    task, ann = hurting(2, a_day=1), person("ann", "en")
    api = Program(client, ann)
    reply = api.post(f"tasks/{task.name}/next/")
    assert (reply.status_code, reply.json()["code"]) == (403, "not_agreed")
    assert reply.json()["detail"] == str(permit_of(ann, task).stopped)
    interventions.agree(ann, task.name)
    lease = api.post(f"tasks/{task.name}/next/").json()["lease"]["id"]
    assert api.post(f"leases/{lease}/judge/", label="not-toxic").status_code == 200
    reply = api.post(f"tasks/{task.name}/next/")
    assert (reply.status_code, reply.json()["code"]) == (403, "enough_today")
    assert reply.json()["detail"] == str(permit_of(ann, task).stopped)


# --- adjudicators, and lists


@pytest.fixture
def disputed(hurting, agreed):
    """A task whose units wait for an adjudicator."""
    task = hurting(3, a_day=2, on_conflict=stages.ADJUDICATION, skip_limit=1)
    ann = agreed("ann", task)
    skip(ann, take(ann, task).pk)
    skip(ann, take(ann, task).pk)
    return task


def test_an_adjudicator_agrees_too_and_even_then_texts_are_veiled(disputed, person):
    ada = person("ada", adjudicates=True)
    unit = disputed.units.filter(stage=stages.ADJUDICATION).first()
    pages = [f"/tasks/{disputed.name}/adjudication/", f"/tasks/{disputed.name}/adjudication/{unit.pk}/"]
    client = signed_in(ada)
    for page in pages:
        reply = client.get(page)
        assert (reply.status_code, TEXT in reply.text) == (403, False)
        assert f"/tasks/{disputed.name}/consent/" in reply.text
        assert Program(client, ada).get(page[1:]).json()["code"] == "not_agreed"
    with pytest.raises(NotAgreed):
        settle(ada, unit.pk, Answer("toxic", "I read it"))
    assert client.post(f"/tasks/{disputed.name}/consent/", {"do": "agree"}).url == "/"
    assert client.get(pages[0]).text.count('<details class="veiled"') == 2
    assert '<details class="veil" id="veil"' in client.get(pages[1]).text


def test_an_adjudicators_decisions_count_for_the_day(disputed, agreed):
    ada = agreed("ada", disputed, "sw", adjudicates=True)
    first, second = disputed.units.filter(stage=stages.ADJUDICATION)
    settle(ada, first.pk, Answer("toxic", "I read it"))
    Judgment.objects.filter(annotator=ada).update(answered_at=timezone.now())
    disputed.kind_file = disputed.kind_file.replace("a_day = 2", "a_day = 1")
    disputed.save()
    with pytest.raises(EnoughToday):
        discard(ada, second.pk, "nobody can tell")
    pages = [signed_in(ada).get(f"/tasks/{disputed.name}/adjudication/{unit.pk}/") for unit in (first, second)]
    assert [page.status_code for page in pages] == [200, 403]


# --- what it costs


def test_the_permit_of_such_work_takes_one_statement_more(
    hurting, make_records_task, agreed, django_assert_num_queries
):
    task, other = hurting(name="hurting"), make_records_task(name="other")
    ann = agreed("ann", task)
    with django_assert_num_queries(1):
        permit_of(ann, other)
    with django_assert_num_queries(2):
        permit_of(ann, task)
