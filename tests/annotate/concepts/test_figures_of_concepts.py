"""Managers' figures for tasks with several concepts: agreement, and the most used concepts by name."""

import json

import pytest
from django.core.management import CommandError

from annotate.figures import annotator_statistics
from annotate.kinds import Answer
from annotate.manager_pages.task_items import Filter, composition, page_of
from annotate.quality import agreement_statistics
from annotate.quality.agreement_report import doubts
from annotate.quality.agreement_statistics import MOST_LABELS, report
from annotate.quality.answer_models import fit_answers, label_posteriors
from annotate.work.judgments import judge
from annotate.work.queue import take
from corpora.models import Concept
from tests.annotate.concepts.acts import begun, choose, command

pytestmark = [pytest.mark.usefixtures("corpus"), pytest.mark.on_sqlite]


# Two coders on ten units, for which NLTK gives an alpha of .5136 with MASI, and of .5794 with Jaccard's distance.
CODERS = [
    *(("l1 l2", "l1"), ("l1 l2", "l1 l2"), ("l1", "l1"), ("l3", "l3"), ("l3", "l1 l3"), ("l4", "l4"), ("l2", "l4")),
    *(("l1 l2", "l1"), ("l1 l2", "l1 l2 l3"), ("l1", "l1")),
]
BEGUN = begun


@pytest.fixture
def keys():
    """Return ids of concepts for l1 to l4, none of which is broader than another."""
    plain = Concept.objects.filter(broader=None, narrower=None).order_by("key")[:4]
    return {f"l{number}": concept.key for number, concept in enumerate(plain, 1)}


@pytest.fixture
def coded(task, keys, readers):
    """The two coders' answers on the first ten documents, and the items in order."""
    units = list(task.units.order_by("position")[: len(CODERS)])
    answers = dict(zip((unit.pk for unit in units), CODERS, strict=True))
    for place, reader in enumerate(readers[:2]):
        for _ in units:
            lease = take(reader, task)
            judge(reader, lease.pk, Answer(text(keys, answers[lease.unit_id][place])))
    return [unit.item.key for unit in units]


def text(keys, labels):
    return " ".join(sorted(keys[label] for label in labels.split()))


def test_alpha_of_two_coders_is_that_of_nltk_and_command_and_page_name_distances_and_concepts(
    task, coded, keys, client, manager
):
    result = report(task)
    whole = result["all"]
    assert [round(whole[name]["value"], 4) for name in ("masi", "jaccard")] == [0.5136, 0.5794]
    assert all(whole[name]["low"] < whole[name]["value"] < whole[name]["high"] for name in ("masi", "jaccard"))
    assert whole["observed"]["value"] == 0.5
    assert (whole["units_of_two"], whole["judgments"], whole["annotators"]) == (10, 20, 2)
    assert (result["by"], result["labels"], list(result["languages"])) == ("masi", [], ["en"])
    # The mean F1 with the rest: 2/3 three times, of l1 and l1 l2, and of l3 and l1 l3; 1 five times; 0 once; and 4/5.
    for row in whole["against_rest"]:
        assert row["agreement"]["value"] == pytest.approx((3 * 2 / 3 + 5 + 0 + 4 / 5) / 10)
        assert row["agreement"]["low"] < row["agreement"]["value"] < row["agreement"]["high"]
    # Each concept has the alpha of whether it was chosen, under its name.
    rows = {row["label"]: row for row in whole["by_label"]}
    units = {keys[label]: number for label, number in (("l1", 7), ("l2", 5), ("l3", 3), ("l4", 2))}
    assert {key: row["units"] for key, row in rows.items()} == units
    assert all(row["name"] == task.kind.name(key) != key for key, row in rows.items())
    assert max(rows.values(), key=lambda row: row["alpha"]["value"])["label"] == keys["l1"]
    # Models of a single true label do not apply to sets.
    assert [whole[key] for key in ("dawid_skene", "ac1", "few_others", "gold")] == [None] * 4
    assert not label_posteriors(fit_answers(task), [unit.pk for unit in task.units.all()]).any()
    output = command("agreement", task.name)
    assert all(words in output for words in ("MASI alpha", "Jaccard alpha", "alpha is 0.5136"))
    assert all(task.kind.name(key) in output for key in keys.values())
    assert not any(words in output for words in ("AC1", "Dawid", text(keys, "l1 l2")))
    client.force_login(manager)
    page = client.get(f"/manage/tasks/{task.name}/agreement/?show=1").text
    assert "Krippendorff’s alpha (MASI)" in page
    assert "the mean F1 with the others’ answers" in page
    assert "Dawid and Skene’s model" not in page
    assert page.count("<section") == page.count("</section>")


def test_of_many_concepts_the_most_frequent_are_reported(task, readers):
    chosen = [concept.key for concept in Concept.objects.order_by("key")[: MOST_LABELS + 5]]
    for reader in readers[:2]:
        for keys in (chosen[:20], chosen[5 : MOST_LABELS + 5]):
            judge(reader, take(reader, task).pk, Answer(" ".join(sorted(keys)), is_sure=True))
    rows = report(task, replicates=10)["all"]["by_label"]
    assert sorted(row["label"] for row in rows) == sorted([*chosen[5:20], *chosen[:5]])


def test_true_sets_measure_what_most_people_chose_by_its_mean_f1(task, coded, keys, tmp_path):
    file = tmp_path / "gold.jsonl"
    # Both chose only l1 for the first; on the seventh, no concept has two votes.
    true = {coded[0]: ["l1", "l2"], coded[1]: ["l2", "l1"], coded[6]: ["l2"], "elsewhere": ["l1"]}
    rows = [{"task": item, "label": [keys[label] for label in labels]} for item, labels in true.items()]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    output = command("agreement", task.name, gold=file)
    assert "On 3 items with true labels, the majority’s labels have a mean F1 of 55.56%" in output
    assert "1 true label belongs to no item here." in output
    for labels, sentence in (
        ("unheard-of", "A true label of {} is 'unheard-of', which is not a concept of eurovoc, version 1."),
        ("1 1", "The true labels of {}: 1 was sent twice. Send each label once."),
    ):
        (tmp_path / "gold.tsv").write_text(f"task\tlabel\n{coded[0]}\t{labels}\n")
        with pytest.raises(CommandError) as refused:
            command("agreement", task.name, gold=tmp_path / "gold.tsv")
        assert str(refused.value) == sentence.format(coded[0])


def test_of_more_units_than_can_be_measured_some_are_drawn_by_lot_which_is_reported(task, coded, monkeypatch):
    monkeypatch.setattr(agreement_statistics, "MOST_UNITS", 8)
    result = report(task, replicates=10)
    assert (result["all"]["units"], result["all"]["units_of_two"], result["all"]["masi"]["units"]) == (10, 10, 8)
    assert report(task, replicates=10) == result
    assert doubts(result) == ["Of 10 items with two or more answers, a random sample of 8 is measured."]


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
    assert labels == sorted(concepts[10:30])[: annotator_statistics.MOST_LABELS]
    client.force_login(manager)
    page = client.get(f"/manage/tasks/acts/people/{readers[0].pk}/").text
    assert all(task.kind.name(key) in page for key in labels)


def test_items_are_counted_and_found_by_each_of_their_concepts(task, readers, concepts, client, manager):
    for reader in readers:
        choose(reader, task, *concepts[:2])
    unit = task.units.get(stage="LABELLED")
    assert composition(task)["labels"] == {concepts[0]: 1, concepts[1]: 1}
    for concept, units in ((concepts[0], [unit]), (concepts[1], [unit]), (concepts[2], [])):
        assert [unit for unit, _ in page_of(task, Filter(label=concept), None)[0]] == units
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
            with django_assert_max_num_queries(100) as queries:
                assert client.get(f"/manage/tasks/acts/{path}").status_code == 200
            counts.append(len(queries))
        return counts

    statements()  # reads the names of concepts, once in a process
    choose(readers[1], task, concepts[0])  # the agreement report is cached until the next answer
    few = statements()
    for start in range(5):
        for reader in readers[:2]:
            choose(reader, task, *concepts[start : start + 20], is_sure=True)
    assert statements() == few
