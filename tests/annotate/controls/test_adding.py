"""Posts that a manager adds to the audit of the detectors' agreement or to the checks of readers who decide alone: how
many by language, which, and what follows.
"""

import io
from dataclasses import replace

import pytest
from django.core.management import CommandError
from hypothesis import assume, given
from hypothesis import strategies as st

from annotate.actions.registry import call_command
from annotate.controls import agreement_audit as contesting
from annotate.controls import audit_report, check_report, checks
from annotate.controls.audited_units import add_audits
from annotate.controls.checks import add_checks
from annotate.core import stages
from annotate.core.draws import hash_order
from annotate.core.estimation.label_errors import neyman_allocation
from annotate.core.refusals import NotFound, WrongStage
from annotate.goldsets.columns import columns_of
from annotate.goldsets.export import Export
from annotate.goldsets.exporter import Counts, batches
from annotate.kinds import Answer
from annotate.models import Judgment, Transition
from annotate.quality import agreement_strata
from annotate.work import adjudication
from annotate.work.answer_changes import undo
from annotate.work.closure import close, mark_secret_published
from annotate.work.judgments import judge
from annotate.work.queue import take
from annotate.work.unit_entry import add_units
from corpora.models import Item
from tests.annotate.acts import said_by, say, settle, work_through
from tests.annotate.conftest import AGREED, DISPUTED, LONG, votes
from tests.annotate.core.test_audit_errors import audited
from tests.annotate.core.test_audit_errors import audits as any_audit
from tests.annotate.goldsets.acts import with_manifest
from tests.together import at_once, until_others_wait_or_end

ANN_READS = "de fr"
FRENCH, FRENCH_DISPUTED = ("fr", "fr", "fr"), ("fr en", "en fr", "fr")
COPY = {"text": LONG.format("of a copy"), "votes": AGREED}
# A share so small that only the minimum of each language is checked.
FEW = 1e-9
# For each: the control, its German and French posts, and the command's option.
ADDED = {"audit": (add_audits, AGREED, FRENCH, []), "checks": (add_checks, DISPUTED, FRENCH_DISPUTED, ["--checks"])}
TO_EACH = pytest.mark.parametrize("to", ADDED)


def chosen(task, **fields):
    return set(task.units.filter(**{"audited": True} | fields).values_list("item__key", flat=True))


def checked(task, **fields):
    return set(task.units.filter(recheck=True, **fields).values_list("item__key", flat=True))


def drawn(task, number, purpose):
    """Return the ids that the task's random draw puts first."""
    keys = task.units.values_list("item__key", flat=True)
    return set(hash_order.draw_sample(keys, number, lots=task.lots, purpose=purpose))


def exported(task, *columns):
    """Return the rows of an export of the task."""
    counts = Counts(task.kind, has_masks=False, tallies={})
    record_batches = batches(Export(task, "", ""), columns_of(task, with_text=False), counts)
    return [row for _, rows in record_batches for row in rows.select(columns).to_pylist()]


# --- how many by language

LANGUAGES = st.dictionaries(
    st.sampled_from("abcdefgh"), st.tuples(st.integers(0, 5000), any_audit()), min_size=1, max_size=6
)


@given(st.integers(1, 20_000), LANGUAGES, st.integers(1, 3000))
def test_all_that_is_asked_for_or_there_is_is_allotted_and_larger_or_worse_languages_get_no_fewer(
    number, languages, more
):
    allotment = neyman_allocation(number, languages)
    assert sum(allotment.values()) == min(number, sum(posts for posts, _ in languages.values()))
    assert all(0 < posts <= languages[label][0] for label, posts in allotment.items())
    label = min(languages)
    posts, audit = languages[label]
    larger = neyman_allocation(number, languages | {label: (posts + more, audit)})
    assert larger.get(label, 0) >= allotment.get(label, 0)
    # Until half of a language is wrong.
    assume(audit.doubted_wrong < audit.doubted and audit.wrong + 1 <= audit.resolved / 2)
    worse = neyman_allocation(
        number, languages | {label: (posts, replace(audit, doubted_wrong=audit.doubted_wrong + 1))}
    )
    assert worse.get(label, 0) >= allotment.get(label, 0)


def test_posts_are_allotted_by_size_and_by_the_deviation_of_what_the_audit_found():
    # sqrt(p (1 - p)) is 0.5 if half of 30 were wrong, and 0.1260 if none was: p = (1/2) / 31.
    languages = {"de": (1000, audited(wrong=15)), "en": (1000, audited()), "fr": (3000, audited())}
    assert neyman_allocation(1000, languages) == {"de": 498, "en": 126, "fr": 376}
    # German has no more than 1,000; of what is left French has three quarters.
    assert neyman_allocation(2600, languages) == {"de": 1000, "en": 400, "fr": 1200}
    # Of equal remainders, the first label gets the post.
    assert neyman_allocation(3, {"fr": (50, audited()), "de": (50, audited())}) == {"de": 2, "fr": 1}


# --- to either


@TO_EACH
def test_the_lot_goes_on_where_it_ended_and_the_languages_that_are_asked_for_get_all_of_it(
    make_task, to, monkeypatch, django_assert_max_num_queries
):
    monkeypatch.setattr(checks, "CHECK_LEAST", 5)
    add, german, french, _ = ADDED[to]
    fields, purpose, among = ({}, "audit", chosen) if to == "audit" else ({"check_share": FEW}, "check", checked)
    task = make_task([german] * 160, audit_least=5, **fields)
    assert among(task) == drawn(task, 5, purpose)
    with django_assert_max_num_queries(35):  # however many are added
        assert add(task, 124) == {"de": 124}
    assert among(task) == among(task, stage=stages.QUEUED) == drawn(task, 129, purpose)
    both = make_task([german] * 20 + [french] * 20, name="both", audit_least=2, **fields)
    assert add(both, 7, ["fr"]) == {"fr": 7}


@TO_EACH
def test_an_extended_task_keeps_what_was_chosen_and_chooses_among_what_is_added(make_task, to, monkeypatch):
    monkeypatch.setattr(checks, "CHECK_LEAST", 8)
    option, among, least = ("audit_share", chosen, 4) if to == "audit" else ("check_share", checked, 8)
    task = make_task([ADDED[to][1]] * 20, **{option: 0.2})
    before, texts = among(task), [LONG.format(f"new {n}") for n in range(30)]
    posts = {"corpus": task.draw.corpus, "letters": 40, "votes": votes(*ADDED[to][1])}
    add_units(task, Item.objects.bulk_create(Item(key=text, text=text, **posts) for text in texts))
    assert (len(before), len(among(task)), before < among(task)) == (least, 10, True)


@TO_EACH
def test_nothing_is_added_where_nothing_is_left_or_people_are_not_asked(make_task, to):
    add, german, french, _ = ADDED[to]
    task = make_task([german] * 5 + [french] * 3)
    add(task, 10, ["fr"])
    none, exhausted = {
        "audit": (
            "on no post of task task in en. Available languages: de, fr.",
            "task task, because people read every post in fr",
        ),
        "checks": (
            "decide no item of task task in en. Available languages: de, fr.",
            "every item in fr that a single reader",
        ),
    }[to]
    with pytest.raises(NotFound, match=none):
        add(task, 1, ["en"])
    with pytest.raises(WrongStage, match=exhausted):
        add(task, 1, ["fr"])
    close(task)
    with pytest.raises(WrongStage, match=r"To reopen it, run `assay reopen task`\."):
        add(task, 1)


@TO_EACH
def test_the_command_says_how_many_it_adds_by_language_and_who_is_lacking(make_task, person, capsys, to):
    _, german, french, option = ADDED[to]
    task = make_task([german] * 20 + [french] * 10)
    person("ann", "de")
    call_command("audit", "task", "--add", "9", "--dry-run", *option)
    shown = capsys.readouterr()
    assert shown.out == (
        f"Drawn at random and added to the {to}: 9 posts: 6 of de, 3 of fr.\n"
        "This was a dry run: nothing was stored. Run the command without --dry-run to do the same.\n"
    )
    if to == "audit":
        assert "lack readers: fr (3). Invite some, or reroute the items to other queues." in shown.err
    assert not chosen(task) | checked(task)
    call_command("audit", "task", "--add", "25", "--languages", "de", *option)
    sentence = "20 posts: 20 of de. No more are available, although 25 were requested.\n"
    assert capsys.readouterr().out == f"Drawn at random and added to the {to}: {sentence}"
    assert len(chosen(task) | checked(task)) == 20


def test_the_command_refuses_what_makes_no_sense(make_task, make_records_task, capsys):
    make_task([AGREED] * 5)
    make_task([DISPUTED], name="verify", asked="de")
    make_records_task(gold=[])
    for words, why in (
        ("task --add 0", r"--add is 0\. It must be 1 or more\."),
        ("task --languages de", r"--languages requires --add\. Specify with --add how many items to add\."),
        ("task --dry-run", r"--dry-run requires --add"),
        ("task --checks", r"--checks requires --add\."),
        ("task --add 3 --contest", r"--add and --contest cannot be used together"),
        ("verify --add 1", "Cannot add audits to task verify: none of its labels come from voters"),
        ("crowd --add 1 --checks", "Cannot add checks to task crowd: only questions about the language of posts"),
    ):
        with pytest.raises(CommandError, match=why):
            call_command("audit", *words.split())
    call_command("audit", "crowd")
    assert capsys.readouterr().out == (
        "Task crowd: its kind of question has no audits, decoys or checks, so there is nothing to show.\n"
    )


def test_nobody_is_advised_to_reopen_a_task_whose_secret_was_told(make_task):
    task = make_task([AGREED] * 5 + [DISPUTED])
    close(task)
    mark_secret_published(task)
    task.refresh_from_db()
    with pytest.raises(WrongStage, match=r"cannot be reopened, .* Open a new task for the rest\."):
        add_audits(task, 1)
    call_command("tasks", stdout=(out := io.StringIO()))
    assert "assay reopen" not in out.getvalue()


# --- to the audit


def test_added_items_are_read_and_randomly_checked_like_the_rest_of_the_audit(make_task, ann):
    task = make_task([AGREED] * 30, audit_least=2, audit_recheck=0.5, audit_limit=1)
    add_audits(task, 28)
    lot = {key for key in chosen(task) if hash_order.is_drawn(0.5, lots=task.lots, purpose="recheck", key=key)}
    assert chosen(task, recheck=True) == lot
    work_through(ann, task)
    assert chosen(task, stage=stages.ADJUDICATION) == lot


def test_a_copy_is_chosen_as_a_post_and_its_text_is_read_once(make_task, ann):
    task = make_task([{**COPY, "key": f"copy {n}"} for n in range(3)] + [DISPUTED], audit_limit=1, audit_recheck=0)
    assert add_audits(task, 1) == {"de": 1}
    assert task.units.get(copy_of=None, item__text=COPY["text"]).stage == stages.QUEUED
    # The two others are left, whether the one that was chosen is the original or not.
    assert add_audits(task, 5) == {"de": 2}
    assert Transition.objects.filter(event="audited").count() == 1
    work_through(ann, task)
    assert audit_report.audits(task)["de"].confirmed == 3


def test_an_export_says_what_is_unread_and_the_chance_of_posts_since_some_were_added(make_task, ann):
    posts = [AGREED] * 20 + [{**COPY, "key": f"copy {n}"} for n in range(6)] + [FRENCH] * 10
    task = make_task(posts, audit_least=2, audit_limit=1, audit_recheck=0)
    with_manifest()
    add_audits(task, 6, ["de"])
    work_through(ann, task, lambda lease: lease.unit.agreed_label)
    chances = {(row["agreed"], row["audit_chance"]) for row in exported(task, "agreed", "audit_chance")}
    assert chances == {("de", 8 / 26), ("fr", 2 / 10)}
    for label in ("", "fr"):
        contesting.contest(task, label)
        agreed = {row["id"] for row in exported(task, "id", "stratum") if row["stratum"] == "agreed"}
        assert set(agreement_strata.unread(task).values_list("item__key", flat=True)) == agreed
        assert agreed


def test_a_language_is_contested_only_once_what_was_added_to_its_audit_is_read(make_task, ann, ada):
    task = make_task([AGREED] * 20, audit_least=2, audit_recheck=0, audit_limit=0.01)
    settle(ada, say(ann, task, "fr"), "fr")
    add_audits(task, 3)
    for number in range(4):
        assert task.units.filter(stage=stages.AGREED).count() == 15
        assert audit_report.report(task)["languages"][0]["waiting"]
        assert contesting.contest_all(task) == {}, number
        judge(ann, take(ann, task).pk, Answer("de"))
    assert not task.units.filter(stage=stages.AGREED).exists()
    assert Transition.objects.filter(event="contested").count() == 15


# --- to the checks


def test_an_answered_unit_that_is_added_goes_to_an_adjudicator_who_is_told_nothing(make_task, ann, ada):
    task = make_task([DISPUTED] * 6)
    for _ in range(3):
        say(ann, task, "de")
    assert add_checks(task, 10) == {"de": 6}
    assert task.units.filter(recheck=True).count() == 6
    listed = list(adjudication.to_adjudicate(task, ada))
    assert len(listed) == 3
    assert all(unit.blind and unit.transitions.last().event == "checked" for unit in listed)
    settle(ada, listed[0], "fr")
    settle(ada, listed[1], "de")
    [row] = check_report.report(task)["languages"]
    assert (row["checked"], row["otherwise"], row["waiting"], row["alone"]) == (2, 1, 4, 0)
    undo(ann, task)  # the reader can take the answer back as before
    assert (listed[2].pk in said_by(ann), task.units.get(pk=listed[2].pk).stage) == (False, stages.QUEUED)
    assert say(ann, task, "de").stage == stages.ADJUDICATION


def test_what_somebody_else_has_decided_is_drawn_in_its_turn_and_does_not_count(make_task, ann):
    """All units of a queue then have the same chance of a check, and exports state it."""
    task = make_task([DISPUTED] * 20)
    order = hash_order.draw_sample(task.units.values_list("item__key", flat=True), 20, lots=task.lots, purpose="check")
    for unit in task.units.filter(item__key__in=order[:3]):
        unit.stage = stages.DISCARDED
        unit.save()
    assert add_checks(task, 5) == {"de": 5}
    assert checked(task) == set(order[:8])
    with_manifest()
    work_through(ann, task)
    columns = {(row["check_chance"], row["checked"]) for row in exported(task, "check_chance", "checked", "stage")}
    assert (8 / 20, False) in columns


def test_queues_share_added_checks_by_size_and_by_how_often_readers_were_wrong(make_task, ann, ada, monkeypatch):
    monkeypatch.setattr(checks, "CHECK_LEAST", 4)
    task = make_task([DISPUTED] * 20 + [FRENCH_DISPUTED] * 20, check_share=FEW)
    work_through(ann, task, lambda lease: lease.queue)
    french = task.units.filter(language="fr", stage=stages.ADJUDICATION)
    for unit, label in zip(list(french), ("de", "fr", "de", "fr"), strict=True):
        settle(ada, unit, label)
    for unit in task.units.filter(stage=stages.ADJUDICATION):
        settle(ada, unit, "de")
    added = add_checks(task, 12)
    assert sum(added.values()) == 12
    assert added["fr"] > added["de"]
    assert add_checks(task, 40, ["de"]) == {"de": 16 - added["de"]}


# --- at once


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
@TO_EACH
def test_an_answer_and_an_addition_that_chooses_its_very_unit_do_not_wait_for_each_other(
    make_task, person, monkeypatch, to
):
    posts = [*({**COPY, "key": f"copy {n}"} for n in range(8)), AGREED] if to == "audit" else [DISPUTED]
    task, ann = make_task(posts, audit_least=1, audit_recheck=0, audit_limit=1), person("ann", "de")
    assert not task.units.get(stage=stages.QUEUED).audited  # a copy of it was chosen
    lease, real = take(ann, task), contesting.check_limit

    def check(unit):
        until_others_wait_or_end()  # the answer has its unit locked
        real(unit)

    monkeypatch.setattr("annotate.controls.agreement_audit.check_limit", check)
    judgment, added = at_once(lambda: judge(ann, lease.pk, Answer("de")), lambda: ADDED[to][0](task, 8))
    assert isinstance(judgment, Judgment), judgment
    assert added == {"de": 8 if to == "audit" else 1}, added
    if to == "checks":
        assert task.units.get().stage == stages.ADJUDICATION
