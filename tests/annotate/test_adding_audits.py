"""Posts that a manager adds to the audit of the detectors' agreement: how many by language, which, and what follows."""

import io
from dataclasses import replace

import pytest
from django.core.management import CommandError
from hypothesis import assume, given
from hypothesis import strategies as st

from annotate.actions.commands import call_command
from annotate.controls import agreement_audit as contesting
from annotate.controls import audit_report
from annotate.controls.agreement_audit import add_audits
from annotate.core import stages
from annotate.core.draws import hash_order
from annotate.core.estimation.detector_error import allotted
from annotate.core.refusals import NotFound, WrongStage
from annotate.goldsets.columns import columns_of
from annotate.goldsets.export import Export
from annotate.goldsets.exporter import rows
from annotate.kinds import Answer
from annotate.models import Judgment, Transition
from annotate.work import moves
from annotate.work.closure import close, tell_secret
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate.acts import say, settle
from tests.annotate.conftest import AGREED, DISPUTED, LONG
from tests.annotate.exporting.acts import with_manifest
from tests.annotate.test_audit_errors import audited
from tests.annotate.test_audit_errors import audits as any_audit
from tests.together import at_once, until_others_wait_or_end

FRENCH = ("fr", "fr", "fr")
COPY = {"text": LONG.format("of a copy"), "votes": AGREED}


@pytest.fixture
def ann(person):
    return person("ann", "de fr")


def read_all(annotator, task, label=""):
    while lease := take(annotator, task):
        judge(annotator, lease.pk, Answer(label or lease.unit.agreed_label))


def chosen(task, **fields):
    return set(task.units.filter(audited=True, **fields).values_list("item__key", flat=True))


def exported(task, *columns):
    """The rows that an export of the task has."""
    columns = columns or ("id", "stratum", "agreed", "chance", "audit_chance")
    made = rows(Export(task, "", ""), columns_of(task, with_text=False))
    return [row for some in made for row in some.columns.select(columns).to_pylist()]


# --- how many by language

LANGUAGES = st.dictionaries(
    st.sampled_from("abcdefgh"), st.tuples(st.integers(0, 5000), any_audit()), min_size=1, max_size=6
)


@given(st.integers(1, 20_000), LANGUAGES)
def test_as_many_are_allotted_as_are_asked_for_or_all_there_are_and_to_no_language_more_than_it_has(number, languages):
    found = allotted(number, languages)
    assert sum(found.values()) == min(number, sum(posts for posts, _ in languages.values()))
    assert all(0 < posts <= languages[label][0] for label, posts in found.items())


@given(st.integers(1, 20_000), LANGUAGES, st.integers(1, 3000))
def test_a_language_with_more_posts_is_allotted_no_fewer(number, languages, more):
    label = min(languages)
    posts, audit = languages[label]
    larger = allotted(number, languages | {label: (posts + more, audit)})
    assert larger.get(label, 0) >= allotted(number, languages).get(label, 0)


@given(st.integers(1, 20_000), LANGUAGES)
def test_a_language_with_more_errors_is_allotted_no_fewer_until_half_of_it_is_wrong(number, languages):
    label = min(languages)
    posts, audit = languages[label]
    assume(audit.doubted_wrong < audit.doubted and audit.wrong + 1 <= audit.resolved / 2)
    worse = replace(audit, doubted_wrong=audit.doubted_wrong + 1)
    found = allotted(number, languages | {label: (posts, worse)})
    assert found.get(label, 0) >= allotted(number, languages).get(label, 0)


def test_posts_are_allotted_by_size_and_by_the_deviation_of_what_the_audit_found():
    # sqrt(p (1 - p)) is 0.5 where half of 30 were wrong, and 0.1260 where none was: (1/2) / 31.
    languages = {"de": (1000, audited(wrong=15)), "en": (1000, audited()), "fr": (3000, audited())}
    assert allotted(1000, languages) == {"de": 498, "en": 126, "fr": 376}
    # German has no more than 1,000; of what is left French has three quarters.
    assert allotted(2600, languages) == {"de": 1000, "en": 400, "fr": 1200}
    # A remainder that is as large goes to the first label.
    assert allotted(3, {"fr": (50, audited()), "de": (50, audited())}) == {"de": 2, "fr": 1}


# --- which posts


def test_the_lot_goes_on_where_that_of_the_audit_has_ended(make_task):
    task = make_task([AGREED] * 30, audit_least=5)
    before = chosen(task)
    assert add_audits(task, 4) == {"de": 4}
    keys = task.units.values_list("item__key", flat=True)
    assert before == set(hash_order.drawn(keys, 5, lots=task.lots, purpose="audit"))
    assert chosen(task) == set(hash_order.drawn(keys, 9, lots=task.lots, purpose="audit"))
    assert chosen(task, stage=stages.QUEUED) == chosen(task)
    assert Transition.objects.filter(event="audited").count() == 9


def test_what_is_added_is_read_and_checked_by_lot_like_the_rest_of_the_audit(make_task, ann):
    task = make_task([AGREED] * 30, audit_least=2, audit_recheck=0.5, audit_limit=1)
    add_audits(task, 28)
    checked = {key for key in chosen(task) if hash_order.hit(0.5, lots=task.lots, purpose="recheck", key=key)}
    assert chosen(task, recheck=True) == checked
    read_all(ann, task)
    assert chosen(task, stage=stages.ADJUDICATION) == checked


def test_the_languages_that_are_asked_for_get_all_of_it(make_task):
    task = make_task([AGREED] * 20 + [FRENCH] * 20, audit_least=2)
    assert add_audits(task, 7, ["fr"]) == {"fr": 7}
    assert add_audits(task, 4) == {"de": 2, "fr": 2}


def test_a_copy_is_chosen_as_a_post_and_its_text_is_read_once(make_task, ann):
    task = make_task([{**COPY, "key": f"copy {n}"} for n in range(3)] + [DISPUTED], audit_limit=1)
    assert add_audits(task, 1) == {"de": 1}
    original = task.units.get(copy_of=None, item__text=COPY["text"])
    assert original.stage == stages.QUEUED
    # The two others are left, whether the one that was chosen is the original or not.
    assert add_audits(task, 5) == {"de": 2}
    assert Transition.objects.filter(event="audited").count() == 1
    read_all(ann, task, "de")
    assert audit_report.audits(task)["de"].confirmed == 3


def test_the_unread_are_those_that_an_export_says_are_agreed(make_task, ann):
    task = make_task(
        [AGREED] * 6 + [{**COPY, "key": f"copy {n}"} for n in range(6)] + [FRENCH] * 6,
        audit_least=2,
        audit_recheck=0,
        audit_limit=1,
    )
    with_manifest()
    for label in ("", "fr"):
        contesting.contest(task, label)
        add_audits(task, 3)
        agreed = {row["id"] for row in exported(task) if row["stratum"] == "agreed"}
        assert set(moves.unread(task).values_list("item__key", flat=True)) == agreed


def test_an_export_says_the_chance_that_posts_have_since_some_were_added(make_task, ann):
    task = make_task([AGREED] * 20 + [FRENCH] * 10, audit_least=2, audit_limit=1, audit_recheck=0)
    add_audits(task, 6, ["de"])
    read_all(ann, task)
    with_manifest()
    found = {(row["agreed"], row["audit_chance"]) for row in exported(task)}
    assert found == {("de", 8 / 20), ("fr", 2 / 10)}


# --- what follows


def test_a_language_is_contested_only_once_what_was_added_to_its_audit_is_read(make_task, ann, person):
    task = make_task([AGREED] * 20, audit_least=2, audit_recheck=0, audit_limit=0.01)
    settle(person("ada", adjudicates=True), say(ann, task, "fr"), "fr")
    add_audits(task, 3)
    for number in range(4):
        assert task.units.filter(stage=stages.AGREED).count() == 15
        assert audit_report.report(task)["languages"][0]["waiting"]
        assert contesting.contest_all(task) == {}, number
        judge(ann, take(ann, task).pk, Answer("de"))
    assert not task.units.filter(stage=stages.AGREED).exists()
    assert Transition.objects.filter(event="contested").count() == 15


def test_adding_asks_the_database_no_more_often_for_more_posts(make_task, django_assert_max_num_queries):
    task = make_task([AGREED] * 150)
    with django_assert_max_num_queries(30):
        add_audits(task, 120)


@pytest.mark.parametrize(
    ("languages", "refused", "why"),
    [
        (["en"], NotFound, "on no post of task task in en; they do in: de, fr."),
        (["fr"], WrongStage, "Nothing can be added to the audit of task task: people read every post in fr"),
    ],
)
def test_nothing_is_added_where_nothing_is_left_or_nothing_was_agreed_on(make_task, languages, refused, why):
    task = make_task([AGREED] * 5 + [FRENCH] * 3)
    add_audits(task, 10, ["fr"])
    with pytest.raises(refused, match=why):
        add_audits(task, 1, languages)
    assert not chosen(task, agreed_label="de")


def test_nothing_is_added_to_a_closed_task(make_task):
    task = make_task([AGREED] * 5)
    close(task)
    with pytest.raises(WrongStage, match=r"would read them\. Open it again with `assay reopen task`\."):
        add_audits(task, 1)


def test_nobody_is_advised_to_reopen_a_task_whose_secret_was_told(make_task):
    task = make_task([AGREED] * 5 + [DISPUTED])
    close(task)
    tell_secret(task)
    task.refresh_from_db()
    with pytest.raises(WrongStage, match=r"cannot be opened again, .* open a new task for the rest\."):
        add_audits(task, 1)
    said = io.StringIO()
    call_command("tasks", stdout=said)
    assert "reopen" not in said.getvalue()


# --- the command


def test_the_command_says_how_many_it_adds_by_language_and_who_is_lacking(make_task, person, capsys):
    task = make_task([AGREED] * 20 + [FRENCH] * 10)
    person("ann", "de")
    call_command("audit", "task", add=9, dry_run=True)
    told = capsys.readouterr()
    assert told.out == (
        "Added to the audit by lot: 9 posts: 6 of de, 3 of fr.\n"
        "This was a dry run: nothing was kept of it. Without --dry-run the same is done.\n"
    )
    assert "lack readers: fr (3)" in told.err
    assert not chosen(task)
    call_command("audit", "task", "--add", "25", "--languages", "de")
    said = "Added to the audit by lot: 20 posts: 20 of de. These are all there are, and not 25.\n"
    assert capsys.readouterr().out == said
    assert len(chosen(task)) == 20


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"add": 0}, r"--add is 0; it must be 1 or more\."),
        ({"languages": "de"}, r"--languages: an option of --add, which is not given\. Say with it how many to add\."),
        ({"dry_run": True}, r"--dry-run: an option of --add"),
        ({"add": 3, "contest": True}, r"--add and --contest are two steps"),
    ],
)
def test_the_command_refuses_what_makes_no_sense(make_task, options, why):
    make_task([AGREED] * 5)
    with pytest.raises(CommandError, match=why):
        call_command("audit", "task", **options)


def test_the_command_refuses_a_task_that_has_no_audit(make_task):
    make_task([DISPUTED], asked="de")
    with pytest.raises(CommandError, match="task has no audit to add to: none of its labels is the detectors'"):
        call_command("audit", "task", add=1)


def test_audit_says_where_a_kind_has_nothing_that_it_tells_of(make_records_task, capsys):
    make_records_task(gold=[])
    call_command("audit", "crowd")
    assert capsys.readouterr().out == (
        "Task crowd: its kind of question has no audit, no decoys and no checks, so there is nothing to tell of them.\n"
    )


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
def test_an_answer_and_an_addition_that_chooses_its_very_unit_do_not_wait_for_each_other(
    make_task, person, monkeypatch
):
    entries = [*({**COPY, "key": f"copy {n}"} for n in range(8)), AGREED]
    task = make_task(entries, audit_least=1, audit_recheck=0, audit_limit=1)
    assert not task.units.get(stage=stages.QUEUED).audited  # a copy of it was chosen
    ann = person("ann", "de")
    lease = take(ann, task)
    real = contesting.check_limit

    def check(unit):
        until_others_wait_or_end()  # the answer has its unit locked
        real(unit)

    monkeypatch.setattr("annotate.controls.agreement_audit.check_limit", check)
    said = at_once(lambda: judge(ann, lease.pk, Answer("de")), lambda: add_audits(task, 8))
    assert isinstance(said[0], Judgment), said
    assert said[1] == {"de": 8}, said
