"""A share of the people and documents gets no suggestions, so that answers with and without can be compared."""

from itertools import combinations

import pytest

from annotate.controls.suggestions import is_blind, shown_to
from annotate.core.estimation.proportions import proportion
from annotate.kinds import Answer
from annotate.kinds.options import BLIND_SHARE
from annotate.models import Annotator, Suggestion
from annotate.work.answer_changes import undo
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate.concepts.acts import begun, suggesting
from tests.annotate.goldsets.set_contents import json_lines
from tests.annotate.told_sets import of_lots, rewrite, tell, verified

pytestmark = [pytest.mark.usefixtures("corpus"), pytest.mark.on_sqlite]

PEOPLE, DOCUMENTS = 20, 50
A_CONCEPT = "1004"


def BEGUN():
    task = begun()
    suggesting(task, BLIND_SHARE)
    return task


@pytest.fixture
def lots(task):
    """Return whether each of 20 people is blind on each of 50 documents: 1,000 pairs."""
    task.secret = "secret 3"
    units = task.units.select_related("item").order_by("position")[:DOCUMENTS]
    # Pseudonyms are random; with these, the draws are the same in every run.
    people = [Annotator(pseudonym=f"person-{number}") for number in range(PEOPLE)]
    return [[is_blind(annotator.pseudonym, task, unit.item.key) for unit in units] for annotator in people]


def holds(hits, total, share):
    interval = proportion(hits, total)
    return interval.low <= share <= interval.high


@pytest.mark.slow
def test_over_1000_pairs_of_person_and_document_the_share_is_within_its_interval(task, lots):
    assert len(lots) * len(lots[0]) == 1000
    assert holds(sum(map(sum, lots)), 1000, BLIND_SHARE)
    # No person or document is always or never blind, and people are blind independently of each other.
    for row in (*lots, *zip(*lots, strict=True)):
        assert 0 < sum(row) < len(row)
    both = sum(sum(map(min, first, second)) for first, second in combinations(lots, 2))
    pairs = PEOPLE * (PEOPLE - 1) // 2 * DOCUMENTS
    # Each draw is in 19 pairs, so the pairs are worth no more than the 1,000 draws.
    assert holds(both / pairs * 1000, 1000, 0.2**2)
    for share, blind in ((0.0, False), (1.0, True)):
        task.blind_share = share
        assert {is_blind(f"person-{number}", task, "a") for number in range(9)} == {blind}


def test_a_document_that_is_opened_again_shows_what_it_showed(task, readers):
    ann = readers[0]
    ann.pseudonym = "person-1"
    ann.save()
    seen = []
    for _ in range(12):
        lease = take(ann, task)
        Suggestion.objects.create(unit=lease.unit, system="a@1", ranked=[A_CONCEPT])
        first = shown_to(ann, lease.unit)
        judge(ann, lease.pk, Answer(A_CONCEPT))
        again = undo(ann, task)
        assert (again.unit_id, shown_to(ann, again.unit)) == (lease.unit_id, first)
        judge(ann, again.pk, Answer(A_CONCEPT))
        seen.append(tuple(first))
    assert set(seen) == {(), (A_CONCEPT,)}


def test_from_whom_suggestions_were_kept_is_verified_from_the_folder(task, readers, tmp_path):
    for reader in readers:
        for _ in range(12):
            lease = take(reader, task)
            Suggestion.objects.get_or_create(unit=lease.unit, system="a@1", ranked=[A_CONCEPT])
            judge(reader, lease.pk, Answer(A_CONCEPT))
    folder = tmp_path / "gold"
    tell(task, folder)
    status, outcome = verified(folder)
    assert (status, of_lots(outcome)) == (0, {"blind": (36, 0)})

    def change(rows):
        judgment = next(row for row in rows if row["judgments"])["judgments"][0]
        judgment["suggestions_shown"] = not judgment["suggestions_shown"]

    files = [path for path in sorted(folder.glob("*.jsonl")) if path.name != "lots.jsonl"]
    rewrite(folder, next(path.name for path in files if any(row["judgments"] for row in json_lines(path))), change)
    status, outcome = verified(folder)
    assert (status, of_lots(outcome)) == (1, {"blind": (36, 1)})
