"""Labels from one reader or one adjudicator, and how checks of them change the figures."""

from dataclasses import replace
from math import hypot, sqrt

import numpy as np
import pytest

from annotate.controls import audit_report
from annotate.core.estimation.label_errors import slips_of
from annotate.core.estimation.proportions import CHECKS, DRAW, RECHECKS, SECONDS, UNREAD, Estimate
from annotate.evaluation.joined_sets import missing_check_options, unchecked_warnings
from annotate.evaluation.metrics import accuracy, precision, recall, share
from annotate.evaluation.uniform import Cell, Uniform
from annotate.kinds import Answer
from annotate.reports.report_renderer import as_text
from annotate.work.adjudication import settle, to_adjudicate
from annotate.work.judgments import judge
from annotate.work.queue import take
from benchmarks.made_posts import World, draw, populate
from tests.annotate.conftest import AGREED, DISPUTED
from tests.annotate.evaluation.figures import accuracy as accuracy_in
from tests.annotate.evaluation.figures import run

pytestmark = pytest.mark.slow


EXACTLY = Estimate(0.01, 0.01, 0.01, 1.0, 100.0)


def read_by_one(*table, chance=0.2):
    """table: rows of (posts, label, the predictor's label, the reader's label if it was checked)."""
    posts = {}
    for number, truth, label, first in table:
        cell = Cell("", "", True, truth, label, source="unaudited", first_label=first, chance=chance)
        posts |= {f"{len(posts) + n}": cell for n in range(number)}
    return posts


def checked(*, wrong, source="unaudited"):
    """A thousand labels, of which a fifth was checked; the predictor is right in all of these."""
    table = [(800, "de", "de", ""), (200 - wrong, "de", "de", "de"), (wrong, "de", "de", "nl")]
    return {key: cell._replace(source=source) for key, cell in read_by_one(*table).items()}


def test_a_label_that_a_check_found_wrong_stands_for_as_many_as_its_chance_says():
    error = Uniform(checked(wrong=4)).error_rates(None)["unaudited"]
    assert error.gained.value == pytest.approx(4 / 200)
    rare = {
        key: cell._replace(chance=1.0 if cell.first_label == "nl" else 0.2) for key, cell in checked(wrong=4).items()
    }
    assert Uniform(rare).error_rates(None)["unaudited"].gained.value == pytest.approx(4 / (4 + 5 * 196))
    assert error.lost.value == 0
    assert Uniform(read_by_one((10, "de", "de", ""))).error_rates(None) == {}


def test_a_predictor_is_not_blamed_for_what_readers_got_wrong_and_is_lowered_where_it_repeats_it():
    """It is right on all posts; the reader slips in every tenth, and one in five labels was checked."""
    table = [(720, "de", "de", ""), (80, "nl", "de", ""), (180, "de", "de", "de"), (20, "de", "de", "nl")]
    posts = read_by_one(*table)
    uniform = Uniform(posts)
    naive = Uniform({key: cell._replace(source="", first_label="") for key, cell in posts.items()})
    assert accuracy(naive, with_und=True).estimate.high < 0.95
    estimate = accuracy(uniform, with_und=True).estimate
    assert estimate.value == pytest.approx(1, abs=0.001)
    assert estimate.low < 0.99
    assert precision("de", uniform, {}, with_und=True).estimate.value == pytest.approx(1, abs=0.001)
    repeats = Uniform(read_by_one((800, "nl", "nl", ""), (180, "nl", "nl", "nl"), (20, "de", "nl", "nl")))
    assert accuracy(repeats, with_und=True).estimate.value == pytest.approx(0.9, abs=0.001)
    assert recall("nl", repeats, {}).estimate.value == 1  # what is no Dutch is not missed


def test_few_checks_that_find_nothing_leave_room_for_slips():
    surer, unsure = (
        accuracy(Uniform(read_by_one((1000 - n, "de", "de", ""), (n, "de", "de", "de"))), with_und=True)
        for n in (400, 20)
    )
    assert unsure.estimate.value == surer.estimate.value == 1
    assert unsure.estimate.low < 0.92 < 0.98 < surer.estimate.low


def test_what_adjudicators_found_by_mistake_is_no_error_of_readers():
    plain, less = (Uniform(checked(wrong=2)).error_rates(slips)["unaudited"].gained for slips in (None, EXACTLY))
    assert less.value == pytest.approx(plain.value - 0.01 * 2 / 200, rel=1e-3)  # only there could a mistake raise it
    unsure = accuracy(Uniform(checked(wrong=0), slips=slips_of(20, 1)), with_und=True)
    assert unsure.estimate.value == 1


def test_adjudicators_labels_are_wrong_as_often_as_they_slip():
    """Where the predictor says otherwise than they do, it is right as often as it is in all."""
    posts = {key: cell._replace(source="adjudicated", first_label="") for key, cell in checked(wrong=0).items()}
    missed = posts | {f"missed {n}": Cell("", "", True, "nl", "de", source="adjudicated") for n in range(50)}
    plain, exact = (accuracy(Uniform(missed, slips=slips), with_und=True).estimate for slips in (None, EXACTLY))
    assert exact.value == pytest.approx((1000 + 0.01 * 1000) / 1050)
    assert exact.low - plain.low == pytest.approx(exact.value - plain.value, abs=0.002)
    perhaps = replace(EXACTLY, value=0.0, low=0.0)
    unsure = accuracy(Uniform(missed, slips=perhaps), with_und=True).estimate
    assert (unsure.value, unsure.low) == (plain.value, pytest.approx(plain.low, abs=1e-4))
    assert plain.high < unsure.high < exact.high


def test_accuracy_is_covered_where_adjudicators_slip():
    """60 draws of a voter, whose accuracy mistaken checks lower: before, 78% covered, 1.5 points too low."""
    world = World(labels=10, drawn=6_000, slips=0.03, confirmed=0.03, adjudicators=0.03, posts=300_000)
    chance = np.random.default_rng(33)
    population = populate(world, chance)
    true = (population.first == population.truth).mean()
    drawn = (draw(population, world, chance).both for _ in range(60))
    estimates = [
        accuracy(uniform.map_cells(lambda _, cell: cell._replace(other="")), with_und=True).estimate
        for uniform in drawn
    ]
    assert np.mean([estimate.low <= true <= estimate.high for estimate in estimates]) >= 0.93
    assert abs(np.mean([estimate.value for estimate in estimates]) - true) < 0.009


def test_the_width_is_that_of_its_sources():
    """Their squared distances add up to that of the end, so each shows what removing it is worth."""
    world = World(labels=10, drawn=6_000, wrong=0.03, slips=0.03, confirmed=0.03, adjudicators=0.02, posts=100_000)
    chance = np.random.default_rng(5)
    both = draw(populate(world, chance), world, chance).both
    for uniform in (both, both.swapped):
        for estimate in (
            accuracy(uniform, with_und=True).estimate,
            recall("1", uniform, {}).estimate,
            precision("1", uniform, {}, with_und=True).estimate,
        ):
            assert [part.source for part in estimate.parts] == [DRAW, UNREAD, RECHECKS, CHECKS, SECONDS]
            assert hypot(*(part.down for part in estimate.parts)) == pytest.approx(estimate.value - estimate.low)
            assert hypot(*(part.up for part in estimate.parts)) == pytest.approx(estimate.high - estimate.value)
            assert sum(estimate.sources.values()) == pytest.approx(1)
            assert all(share > 0 for share in estimate.sources.values())
    exactly = accuracy(
        replace(both, slips=replace(both.slips, low=both.slips.value, high=both.slips.value)), with_und=True
    )
    unsure = accuracy(both, with_und=True).estimate
    narrower = (exactly.estimate.high - exactly.estimate.low) / (unsure.high - unsure.low)
    assert narrower == pytest.approx(sqrt(1 - unsure.sources[SECONDS]), rel=0.05)


def read_and_settled(make_task, person, votes, **options):
    """A task whose posts one reader and then one adjudicator call German."""
    entries = [{"votes": labels, "key": f"post-{n}"} for n, labels in enumerate(votes)]
    task = make_task(entries, audit_least=0, audit_limit=1.0, **options)
    ann, ada = person("ann", "de"), person("ada", adjudicates=True)
    while lease := take(ann, task):
        judge(ann, lease.pk, Answer("de"))
    for unit in list(to_adjudicate(task, ada)):
        settle(ada, unit.pk, Answer("de", "I read it"))
    return task


def test_checks_of_confirmed_audits_have_a_remedy_of_their_own(world, make_task, person):
    """No check can be added to them, so a report names what widens their part less: audits."""
    task = read_and_settled(make_task, person, [AGREED] * 60, audit_share=0.5, audit_recheck=0.3)
    world.predictions |= {f"post-{n}": "nl" if n % 10 == 0 else "de" for n in range(60)}
    report = run(world.subject(), world.export(task))
    notes = {row["of"]["source"]: row["note"] for row in report["rows"] if row["measure"] == "width_share"}
    assert notes.keys() == {DRAW, UNREAD, RECHECKS}
    assert notes[RECHECKS] == "narrower with more audited posts, some of them checked"
    [commands] = [words for words in report["words"]["commands"] if words.startswith("Work that narrows")]
    assert commands.endswith("more audited posts, some of them checked: `assay audit TASK --add N`.")


def test_accuracy_counts_the_checks_of_confirmations_by_two_readers(world, make_task, person):
    """Each wrong check represents other confirmations, as in the report of the audit."""
    options = {"audit_share": 0.5, "audit_recheck": 0.3, "audit_least": 0, "audit_limit": 1.0, "redundancy": 2}
    task = make_task([{"votes": AGREED, "key": f"post-{n}"} for n in range(60)], **options)
    for reader in (person("ann", "de"), person("bob", "de")):
        while lease := take(reader, task):
            judge(reader, lease.pk, Answer("de"))
    ada = person("ada", adjudicates=True)
    for number, unit in enumerate(list(to_adjudicate(task, ada))):
        settle(ada, unit.pk, Answer("en" if number % 2 else "de", "I read it"))
    world.predictions |= {f"post-{n}": "de" for n in range(60)}
    error = audit_report.report(task)["overall"]["value"]
    assert error > 0.3
    assert accuracy_in(run(world.subject(), world.export(task)))["value"] == pytest.approx(1 - error, abs=0.01)


def test_posts_that_are_counted_elsewhere_are_not_corrected_here():
    posts = read_by_one((300, "de", "de", ""), (60, "de", "de", "de"), (300, "de", "de", ""))
    elsewhere = list(posts)[:300]
    rest = {key: cell for key, cell in posts.items() if key not in elsewhere}

    def of_german(uniform, apart=()):
        return share(uniform, lambda cell: cell.predicted == "de", lambda cell: cell.truth == "de", apart)

    assert of_german(Uniform(posts), elsewhere) == of_german(Uniform(rest))


def test_labels_of_one_reader_that_nobody_checked_are_counted():
    [sentence] = unchecked_warnings("gold", Uniform(read_by_one((10, "de", "de", ""))))
    assert sentence.startswith("10 labels of the gold set gold come from a single reader")
    assert "--" not in sentence
    assert missing_check_options(Uniform(read_by_one((10, "de", "de", "")))) == ["--check-share"]
    assert not any("one reader" in words for words in unchecked_warnings("gold", Uniform(checked(wrong=1))))
    assert unchecked_warnings("gold", Uniform({"a": Cell("", "", True, "de", "de")})) == []


@pytest.mark.parametrize(
    ("audit_recheck", "check_share", "options"),
    [
        # The only adjudicator made the checks, and nobody checked the adjudicator.
        (0.0, 1.0, "`--audit-recheck` and `--check-share`"),
        (1.0, 0.0, "`--check-share`"),
        (0.0, 0.0, "`--audit-recheck` and `--check-share`"),
    ],
)
def test_the_options_are_named_by_which_such_labels_would_be_checked(
    world, make_task, person, audit_recheck, check_share, options
):
    checks = {"audit_share": 1.0, "audit_recheck": audit_recheck, "check_share": check_share}
    task = read_and_settled(make_task, person, [AGREED, DISPUTED] * 5, **checks)
    world.predictions |= {f"post-{n}": "de" for n in range(10)}
    report = run(world.subject(), world.export(task))
    assert [warning for warning in report["warnings"] if "single reader" in warning and "--" not in warning]
    assert any(f"open the next task with {options}, and name" in note for note in report["words"]["commands"])


def test_a_report_warns_of_labels_that_nobody_checked_and_carries_the_checks_that_there_are(world, make_task, person):
    ann, ada, eve = person("ann", "de"), person("ada", adjudicates=True), person("eve", adjudicates=True)

    def report(name, **options):
        task = make_task([{"votes": DISPUTED, "key": f"{name}-{n}"} for n in range(40)], name=name, **options)
        while lease := take(ann, task):
            judge(ann, lease.pk, Answer("de"))
        for adjudicator in (ada, eve):
            for unit in list(to_adjudicate(task, adjudicator)):
                settle(adjudicator, unit.pk, Answer("de", "I read it"))
        world.predictions |= {f"{name}-{n}": "nl" if n == 0 else "de" for n in range(40)}
        return run(world.subject(), world.export(task))

    unsure = report("unchecked", check_share=0.0)
    assert unsure["warnings"][0].startswith("40 labels of the gold set unchecked come from a single reader")
    assert "accuracy could be 1 point lower or higher" in unsure["warnings"][0]
    checked = report("checked", check_share=0.5)
    assert checked["warnings"] == []
    assert accuracy_in(checked)["low"] < accuracy_in(unsure)["low"]
    # All 40 posts were read, so nothing of the width is that of unread ones.
    assert not [row for row in unsure["rows"] if row["measure"] == "width_share"]
    sources = {row["of"]["source"]: row["value"] for row in checked["rows"] if row["measure"] == "width_share"}
    assert sources.keys() - {"second opinions"} == {"draw", "checks of disputed posts"}
    assert sum(sources.values()) == pytest.approx(1)
    assert accuracy_in(checked)["width_sources"] == sources
    assert "more checks: `assay audit TASK --add N --checks`" in " ".join(as_text(checked).split())
    assert "each kind of further work, run `assay audit checked`" in checked["words"]["commands"][1]
