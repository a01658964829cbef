"""What a manager is told of people who choose several concepts: the most used by name, in few statements."""

import pytest

from annotate.figures import annotator_statistics
from annotate.figures.annotator_statistics import MOST_LABELS
from annotate.manager_pages.task_items import Filter, composition, page_of
from corpora.models import Concept
from tests.annotate.concepts.acts import begun, choose

pytestmark = pytest.mark.usefixtures("corpus")


BEGUN = begun


@pytest.fixture
def concepts(corpus):
    """Ids of concepts."""
    return [concept.key for concept in Concept.objects.order_by("key")[:40]]


def labels_of(person, task):
    return annotator_statistics.person(task, person, annotator_statistics.label_counts(task))["labels"]


def test_a_person_is_described_by_the_share_of_answers_that_have_a_concept(task, readers, concepts):
    for reader, sets in zip(readers, ([concepts[:2], concepts[:1]], [concepts[1:2], concepts[:1]]), strict=False):
        for keys in sets:
            choose(reader, task, *keys)
    shares = {row["label"]: (row["own"], row["all"]) for row in labels_of(readers[0], task)}
    assert shares == {concepts[0]: (1.0, 0.75), concepts[1]: (0.5, 0.5)}


def test_of_many_concepts_the_most_used_are_shown_by_name(task, readers, concepts, client, manager):
    for start in (0, 10, 20):
        choose(readers[0], task, *concepts[start : start + 20], is_sure=True)
    labels = [row["label"] for row in labels_of(readers[0], task)]
    assert labels == sorted(concepts[10:30])[:MOST_LABELS]
    client.force_login(manager)
    page = client.get(f"/manage/tasks/acts/people/{readers[0].pk}/").text
    assert all(task.kind.name(key) in page for key in labels)


def test_items_are_counted_and_found_by_each_of_their_concepts(task, readers, concepts, client, manager):
    for reader in readers:
        choose(reader, task, *concepts[:2])
    unit = task.units.get(stage="LABELLED")
    assert composition(task)["labels"] == {concepts[0]: 1, concepts[1]: 1}
    for concept, units in ((concepts[0], [unit]), (concepts[1], [unit]), (concepts[2], [])):
        assert [found for found, _ in page_of(task, Filter(label=concept), None)[0]] == units
    client.force_login(manager)
    assert task.kind.name(concepts[0]) in client.get("/manage/tasks/acts/items/").text


@pytest.mark.slow
def test_the_pages_of_a_task_take_as_many_statements_however_many_concepts_were_chosen(
    task, readers, concepts, client, manager, django_assert_max_num_queries
):
    client.force_login(manager)
    paths = ["", "items/", "quality/", "people/", f"people/{readers[0].pk}/", "agreement/?show=1", "tests/"]
    choose(readers[0], task, concepts[0])

    def statements():
        counts = []
        for path in paths:
            with django_assert_max_num_queries(100) as found:
                assert client.get(f"/manage/tasks/acts/{path}").status_code == 200
            counts.append(len(found))
        return counts

    statements()  # reads the names of concepts, once in a process
    choose(readers[1], task, concepts[0])  # the report of agreement is kept until the next answer
    few = statements()
    for start in range(5):
        for reader in readers[:2]:
            choose(reader, task, *concepts[start : start + 20], is_sure=True)
    assert statements() == few
