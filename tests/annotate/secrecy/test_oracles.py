"""Returning units, letting leases expire, undoing answers and measuring costs do not reveal hidden units. The attacks
on many units are in the benchmark benchmarks/oracle.py.
"""

import secrets
from collections import defaultdict
from datetime import timedelta

import pytest
from django.utils import timezone

from annotate.core import pause_rule
from annotate.kinds import KINDS, Answer
from annotate.models import Annotator, Backlog, Task
from annotate.work.answer_changes import undo
from annotate.work.flags import set_takes_disturbing
from annotate.work.judgments import judge
from annotate.work.queue import open_lease, release, take
from tests.annotate import act_pairs, attacks, roc
from tests.annotate.acts import progress_of, work_through
from tests.annotate.conftest import AGREED, DISPUTED

pytestmark = pytest.mark.slow


POTS = ["1", "0"] * 40


@pytest.fixture
def crowd(make_records_task, person):
    """A task with gold answers and five people. Secret and pseudonyms are fixed, so that each run is the same."""

    def make(count=40, redundancy=1, share=0.5, kind="qa_match", pots=POTS, secret="0" * 64, **options):
        options = {"pause_below": 0.0, "redundancy": redundancy, "gold_share": share} | options
        task = make_records_task(kind, count, gold={"queue": pots}, **options)
        Task.objects.filter(pk=task.pk).update(secret=secret)
        task.refresh_from_db()
        names = ("ann", "bea", "cem", "dan", "eve")
        return task, [person(name, "en", pseudonym=f"annotator-{name}") for name in names]

    return make


def gold_or_work(task, ann, *, gold):
    """Return a lease of a gold answer or of work, after answering everything before it."""
    while (lease := take(ann, task)).unit.honeypot is not gold:
        judge(ann, lease.pk, Answer("1"))
    return lease


def answers_until(task, ann, unit):
    """Return the number of answers until a unit returns to the person, or None if it never does."""
    for number in range(200):
        lease = take(ann, task)
        if lease is None:
            return None
        if lease.unit_id == unit.pk:
            return number
        judge(ann, lease.pk, Answer("1"))
    return None


def attacked(name, task, ann, others, units, trick, labels=()):
    """Try one trick on this many units, and return the attempts. others: the other people at work, if any"""
    at_work = others and attacks.Others(others, task, "1")
    return attacks.Attacker(attacks.Way(name, ann, task, labels), at_work, {trick: 1}).work(units)


def let_run_out(ann, task, lease):
    attacks.run_out(lease)


def give_back(ann, task, lease):
    release(ann, lease.pk)


LET_GO = pytest.mark.parametrize("let_go", [give_back, let_run_out])
EITHER = pytest.mark.parametrize("gold", [True, False])


@LET_GO
@EITHER
def test_what_one_lets_go_comes_back_after_10_to_40_others_if_nobody_took_it(crowd, gold, let_go):
    task, (ann, *_) = crowd(count=80)
    lease = gold_or_work(task, ann, gold=gold)
    let_go(ann, task, lease)
    assert answers_until(task, ann, lease.unit) == lease.back_after
    assert 10 <= lease.back_after <= 40


@LET_GO
@EITHER
def test_it_never_comes_back_once_another_person_has_the_work_even_if_that_was_a_gold_answer(crowd, gold, let_go):
    task, (ann, bea, *_) = crowd(count=60)
    lease = gold_or_work(task, ann, gold=gold)
    let_go(ann, task, lease)
    while lease.work.stage == "QUEUED":
        judge(bea, take(bea, task).pk, Answer("1"))
        lease.work.refresh_from_db()
    assert answers_until(task, ann, lease.unit) is None


@EITHER
def test_where_nothing_else_is_left_what_was_given_back_comes_at_once(crowd, gold):
    task, (ann, *_) = crowd(count=6)
    lease = gold_or_work(task, ann, gold=gold)
    task.units.work().queued().exclude(pk=lease.work.pk).update(stage="DISCARDED")
    release(ann, lease.pk)
    assert take(ann, task).unit == lease.unit


@EITHER
def test_while_it_is_open_the_work_for_which_it_stands_is_nobody_else_s(crowd, gold):
    task, (ann, bea, *_) = crowd(count=6)
    lease = gold_or_work(task, ann, gold=gold)
    stood_for = set()
    while other := take(bea, task):
        stood_for.add(other.work.pk)
        judge(bea, other.pk, Answer("1"))
    assert stood_for
    assert lease.work.pk not in stood_for


@EITHER
def test_a_late_answer_is_refused_once_another_person_has_the_work(crowd, client, gold):
    task, (ann, bea, *_) = crowd(count=20)
    lease = gold_or_work(task, ann, gold=gold)
    attacks.run_out(lease)
    while (theirs := take(bea, task)).work != lease.work:
        judge(bea, theirs.pk, Answer("1"))
    way = attacks.Way("api", ann, task)
    assert way.answer(lease, "1").status == 409
    release(bea, theirs.pk)
    assert way.answer(lease, "1").status == 200


def test_the_first_answer_to_a_gold_answer_counts_though_it_was_taken_back(crowd, monkeypatch):
    monkeypatch.setattr(pause_rule, "LEAST", 3)
    monkeypatch.setattr(pause_rule, "CONFIDENCE", 0.5)
    task, (ann, *_) = crowd(count=20, pause_below=0.7)
    way = attacks.Way("api", ann, task)
    wrong = {"1": "0", "0": "1"}
    while lease := way.take()[1]:
        gold = lease.unit.known_answer
        way.answer(lease, wrong.get(gold, "1"))
        if gold and way.undo().status == 200:
            way.answer(open_lease(ann, task), gold)
    [pause] = task.pauses.all()
    assert (pause.right, pause.asked) == (0, 3)


# --- exact counts, and what a colleague is given


def counted_anew(person, task):
    """Return the number of waiting units, counted anew."""
    Backlog.objects.filter(annotator=person).update(counted_at=timezone.now() - timedelta(minutes=11))
    return progress_of(person, task)["waiting"]


@pytest.mark.parametrize("redundancy", [1, 3])
def test_an_exact_count_is_the_same_before_and_after_a_unit_is_taken_and_given_back(crowd, redundancy):
    task, (ann, bea, *_) = crowd(count=60, redundancy=redundancy, share=0.34)
    outcomes = {True: set(), False: set()}
    for _ in range(24):
        before = [counted_anew(annotator, task) for annotator in (ann, bea)]
        lease = take(ann, task)
        taken = [counted_anew(annotator, task) for annotator in (ann, bea)]
        release(ann, lease.pk)
        returned = [counted_anew(annotator, task) for annotator in (ann, bea)]
        outcomes[lease.unit.honeypot].add((before == taken, before == returned))
        judge(ann, take(ann, task).pk, Answer("1"))
    assert outcomes == {True: {(True, True)}, False: {(True, True)}}


@pytest.mark.parametrize("redundancy", [1, 3])
@EITHER
def test_what_one_gives_back_comes_to_a_colleague_and_counts_as_the_work_would(crowd, gold, redundancy):
    task, (ann, bea, *_) = crowd(count=40, redundancy=redundancy)
    lease = gold_or_work(task, ann, gold=gold)
    release(ann, lease.pk)
    waiting, came = [counted_anew(annotator, task) for annotator in (ann, bea)], []
    while not came or came[-1] != lease.unit:
        theirs = take(bea, task)
        came.append(theirs.unit)
        judge(bea, theirs.pk, Answer("1"))
    assert counted_anew(bea, task) == waiting[1] - len(came)
    assert (counted_anew(ann, task) == waiting[0]) is (redundancy == 3)


def test_a_person_cannot_have_what_waits_counted_anew(crowd):
    task, (ann, bea, *_) = crowd(count=30)
    first = progress_of(ann, task)["waiting"]
    judge(bea, take(bea, task).pk, Answer("1"))
    for takes in (True, False):
        set_takes_disturbing(ann, takes=takes)
        assert progress_of(ann, task)["waiting"] == first


# --- statements


@pytest.mark.parametrize(
    ("name", "trick", "options"),
    [
        ("page", "answered", {}),
        ("page", "answered", {"redundancy": 3, "pause_below": 0.01}),
        ("api", "answered", {"pause_below": 0.01}),
        ("api", "answered", {"redundancy": 3}),
        ("page", "answered", {"kind": "ad_relevance"}),
        ("api", "answered", {"kind": "web_ranking"}),
        ("page", "taken back", {}),
        ("api", "taken back", {"redundancy": 2}),
        ("page", "skip taken back", {"redundancy": 2}),
        ("api", "skip taken back", {}),
        # With and without people who accept disturbing work; without any, the work goes to an adjudicator.
        ("page", "handed on", {"takers": 0}),
        ("api", "handed on", {"takers": 5}),
        ("page", "handing on taken back", {"takers": 5}),
        ("api", "handing on taken back", {"takers": 0}),
        ("page", "asked about", {"takers": 5}),
        ("api", "asked about", {"takers": 0}),
        ("page", "answered late", {}),
        ("page", "answered late", {"redundancy": 3}),
        ("api", "answered late", {"redundancy": 3}),
    ],
)
def test_a_gold_answer_runs_the_same_statements_as_work_and_says_the_same(crowd, name, trick, options):
    """This holds whatever happened to the unit of work in the meantime."""
    options = {"redundancy": 2 if "takers" in options else 1} | options
    takers = options.pop("takers", 0)
    if "kind" in options:
        labels = list(KINDS[options["kind"]].labels)
        options["pots"] = [labels[0], labels[-1]] * 10
    alone = trick in ("answered", "answered late")
    task, (ann, *others) = crowd(count=40 if alone else 120, **options)
    Annotator.objects.filter(pk__in=[other.pk for other in others[:takers]]).update(takes_disturbing=True)
    attempts = attacked(name, task, ann, None if alone else others, 14, trick)
    attacks.assert_same_statements(attempts, attacks.is_gold)
    statuses = {value for attempt in attempts for score, value in attempt.scores.items() if score.endswith("status")}
    assert statuses == {200.0}


SOME_AUDITED = [DISPUTED, AGREED, AGREED, DISPUTED] * 9
# Answers with the queue's language or no language, and answers that another person must confirm.
OWN, OTHERS = ("de", "und"), ("en", "fr")


# An answer must be given before it can be undone.
@pytest.mark.parametrize(
    ("name", "trick"), [("page", "taken back"), ("api", "taken back"), ("page", "skip taken back")]
)
@pytest.mark.parametrize(
    ("posts", "fields", "hidden", "labels"),
    [
        # Enough units that some are left, although each undone answer returns another unit. They do not alternate,
        # because the returned ones would all be of one sort.
        (SOME_AUDITED, {"audit_least": 16, "audit_recheck": 0.5}, attacks.is_audited, OWN),
        (SOME_AUDITED, {"audit_least": 16, "audit_recheck": 0.5}, attacks.is_audited, OTHERS),
        ([DISPUTED] * 30, {"check_share": 0.4}, lambda unit: unit.recheck, OWN),
        ([DISPUTED] * 30, {"check_share": 0.4}, lambda unit: unit.recheck, OTHERS),
        ([DISPUTED] * 30, {"asked": "de", "decoys": 25}, lambda unit: bool(unit.known_answer), ()),
        ([DISPUTED] * 30, {"redundancy": 1.5}, lambda unit: unit.redundancy > 1, OWN),
        ([DISPUTED] * 30, {"redundancy": 1.5}, lambda unit: unit.redundancy > 1, OTHERS),
    ],
    ids=[
        *("audited", "audited and another language named", "checked", "checked and another language named"),
        *("decoy", "read by two", "read by two and another language named"),
    ],
)
def test_audited_checked_and_doubly_read_units_and_decoys_run_the_same_statements_as_others(
    make_task, person, name, trick, posts, fields, hidden, labels
):
    task = make_task(posts, **fields)
    person("bea", "de")
    attacks.assert_same_statements(attacked(name, task, person("ann", "de"), None, 10, trick, labels), hidden)


@pytest.mark.parametrize(
    ("name", "trick"), [("page", "taken back"), ("api", "taken back"), ("page", "skip taken back")]
)
@pytest.mark.parametrize("redundancy", [1, 2])
def test_audited_records_of_a_panel_run_the_same_statements_as_disputed_ones(
    make_records_task, person, name, trick, redundancy
):
    votes = ["1 1 0", "1 1 1", "1 1 1", "0 1 1"] * 9
    knobs = {"audit_least": 16, "audit_recheck": 0.5, "redundancy": redundancy, "on_conflict": "ADJUDICATION"}
    task = make_records_task(languages=["de"], panel=votes, **knobs)
    person("bea", "de")
    attacks.assert_same_statements(attacked(name, task, person("ann", "de"), None, 10, trick), attacks.is_audited)


@pytest.mark.parametrize("name", ["page", "api"])
def test_what_adjudicators_see_and_decide_runs_the_same_statements_for_audited_and_checked_posts(
    make_task, person, client, name, monkeypatch
):
    monkeypatch.setattr("annotate.controls.checks.is_seconded", lambda task, key: False)
    task = make_task([DISPUTED, AGREED] * 10, audit_least=9, audit_recheck=0.6, check_share=0.6)
    ann, ada = person("ann", "de"), person("ada", adjudicates=True)
    work_through(ann, task)
    client.force_login(ada.user)
    client.get("/docs/")  # the first page of a session reads what the person has set
    address, sent = "/tasks/task/adjudication/{}/", {"answer": "de", "reason": "I read it"}
    how = {}
    if name == "api":
        address, sent = "/api/v1/tasks/task/adjudication/{}/settle/", {"label": "de", "reason": "I read it"}
        how = {"content_type": "application/json"}
    *units, _ = task.units.filter(stage="ADJUDICATION")  # nothing follows the last one
    # The last audited unit ends the audit, and all its errors are reviewed.
    units.remove([unit for unit in units if attacks.is_audited(unit)][-1])
    seen = {True: set(), False: set()}
    for unit in units:
        with attacks.statements() as ran:
            shown = client.get(address.format(unit.pk).removesuffix("settle/"))
            response = client.post(address.format(unit.pk), sent, **how)
        assert (shown.status_code, response.status_code) == (200, 302 if name == "page" else 200)
        seen[attacks.is_audited(unit)].add(tuple(ran))
    assert seen[True] == seen[False]
    assert len(seen[True]) == 1


# --- how well they can be told


@pytest.mark.parametrize("trick", ["given back", "run out", "taken back, given back"])
def test_with_five_at_work_what_comes_back_tells_nothing(crowd, trick):
    task, (ann, *others) = crowd(count=300, redundancy=2, pots=POTS * 2, secret="1" * 64)
    scores = attacks.by_score(attacked("api", task, ann, others, 90, trick), attacks.is_gold)
    gold, work = scores[f"{trick}: comes back"]
    assert min(len(gold), len(work)) >= 40
    low, high = roc.interval(gold, work)
    assert low <= 0.5 <= high


def test_two_who_take_back_the_last_gold_answer_each_have_it_open(crowd):
    task, (ann, bea, *_) = crowd(count=3, redundancy=2)
    for person in (ann, bea):
        lease = gold_or_work(task, person, gold=True)
        judge(person, lease.pk, Answer("1"))
    task.units.work().update(stage="DISCARDED")
    leases = [undo(person, task) for person in (ann, bea)]
    assert [lease.unit.honeypot for lease in leases] == [True, True]
    assert [judge(lease.annotator, lease.pk, Answer("1")).label for lease in leases] == ["1", "1"]


# --- pairs of acts. Pair by pair, on more units, it is the benchmark benchmarks/oracle_pairs.py.

UNITS = 56
# The number of pages to read around a unit.
VIEWS = 3
FEWEST = 7
# The tests compare some thousand features.
SURE = 0.9999


@pytest.fixture
def one_secret(monkeypatch):
    """Make each run the same, so that none fails by chance."""
    monkeypatch.setattr(secrets, "token_hex", lambda size: f"{7:0{2 * size}x}")


@pytest.mark.usefixtures("one_secret")
@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("gold, one reader", "api"),
        ("gold, three readers", "page"),
        ("gold with suggestions", "page"),
        ("posts", "api"),
        ("posts", "page"),
        ("decoys", "page"),
    ],
)
def test_no_pair_of_acts_tells_a_hidden_unit_from_others(db, name, way):
    population = act_pairs.POPULATIONS[name](UNITS, way, views=VIEWS)
    attempts = act_pairs.all_tried(population.person, UNITS, population.pairs)
    features = defaultdict(lambda: ([], []))
    for kind, hidden, scores in population.features(attempts):
        for feature, value in scores:
            features[kind, feature][not hidden].append(value)
    enough = {key: values for key, values in features.items() if min(map(len, values)) >= FEWEST}
    assert {kind for kind, _ in enough} == {kind for kinds in population.kinds.values() for kind in kinds}
    intervals = {key: roc.interval(*values, SURE) for key, values in enough.items() if not key[1].endswith("seconds 0")}
    assert {key: (low, high) for key, (low, high) in intervals.items() if not low <= 0.5 <= high} == {}
