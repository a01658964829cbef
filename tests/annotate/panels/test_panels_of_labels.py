"""Imported classifiers assign sets of concepts. Where the sets are equal, they are labels, and people audit a share."""

import json
from collections import Counter

import pytest
from django.core.management.base import CommandError

from annotate.actions.registry import call_command
from annotate.controls.audit_report import report
from annotate.core import stages
from annotate.models import Task
from tests.annotate.concepts.acts import command
from tests.annotate.panels.topics import answer_all

pytestmark = [pytest.mark.django_db, pytest.mark.on_sqlite]

KIND = """title = "Which concepts is this law about?"
form = "labels"

[vocabulary]
name = "law"
most = 3

[[layout]]
style = "document"
fields = ["body"]
"""
CONCEPTS = {
    "1": {"label": "trade"},
    "2": {"label": "civil law"},
    "3": {"label": "penal law"},
    "4": {"label": "tax law"},
}
TRUTH = {f"d{number}": ("2", "2 3", "4")[number % 3] for number in range(60)}
# The voters write the concepts of a set in any order. Every fourth document is disputed.
A = {key: " ".join(sorted(label.split(), reverse=True)) for key, label in TRUTH.items()}
B = {key: "2 4" if number % 4 == 0 else label for number, (key, label) in enumerate(TRUTH.items())}


@pytest.fixture
def laws(tmp_path, data_dir):
    rows = [{"id": key, "language": "en", "body": f"Law {key}."} for key in TRUTH]
    (tmp_path / "laws.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "law.json").write_text(json.dumps(CONCEPTS))
    (tmp_path / "laws.toml").write_text(KIND)
    command("import_vocabulary", "law", tmp_path / "law.json")
    options = {"fields": "body", "licence": "CC0-1.0", "text_may_leave": True, "source": "made"}
    command("import_corpus", "laws", tmp_path / "laws.jsonl", **options)
    return tmp_path


def voters(folder, **labels):
    for name, by_key in labels.items():
        file = folder / f"{name}.tsv"
        file.write_text("id\tlabel\n" + "".join(f"{key}\t{label}\n" for key, label in by_key.items()))
        call_command("import_predictions", "laws", str(file), name=name, version="1", verbosity=0)


def opened(folder, **options):
    usual = {"kind": str(folder / "laws.toml"), "corpus": "laws", "seed": "1", "redundancy": "1", "voters": "a b"}
    command("open_task", "laws", **usual | options)
    return Task.objects.get(name="laws")


def f1(gold, system):
    rows = json.loads(command("evaluate", system, gold=[str(gold)], json=True))["rows"]
    return next(row["value"] for row in rows if row["measure"] == "micro_f1")


def f1_of(labels):
    pairs = [(set(labels[key].split()), set(label.split())) for key, label in TRUTH.items()]
    hits, size = sum(len(a & b) for a, b in pairs), sum(len(a) + len(b) for a, b in pairs)
    return pytest.approx(2 * hits / size)


def test_equal_sets_are_labelled_and_audited_and_the_rest_is_read(laws, person, ada):
    voters(laws, a=A, b=B)
    task = opened(laws, audit_share="0.3")
    agreed = {key: label for key, label in TRUTH.items() if B[key] == label}
    assert dict(task.units.exclude(agreed_label="").values_list("item__key", "agreed_label")) == agreed
    audited = {*task.units.filter(audited=True).values_list("item__key", flat=True)}
    assert audited < agreed.keys()
    assert task.units.filter(stage=stages.QUEUED).count() == len(audited) + len(TRUTH) - len(agreed)
    answer_all(task, [person("reader", "en")], ada, TRUTH)
    results = report(Task.objects.get())
    assert {row["label"]: row["posts"] for row in results["languages"]} == Counter(agreed.values())
    assert sum(row["audited"] for row in results["languages"]) == len(audited)
    assert results["overall"]["value"] == 0
    command("export_gold", "laws", out=str(laws / "gold"), splits="test=1")
    rows = {row["id"]: row for row in map(json.loads, (laws / "gold" / "gold.jsonl").read_text().splitlines())}
    for key, row in rows.items():
        assert row["stratum"] == ("disputed" if key not in agreed else "audited" if key in audited else "agreed")
        assert (row["label"], row["concepts"]) == (TRUTH[key], TRUTH[key].split())
        assert row["agreed"] == agreed.get(key)
        assert {vote["detector"] for vote in row["votes"]} == {"a@1", "b@1"}
    assert rows.keys() == TRUTH.keys()
    card = (laws / "gold" / "README.md").read_text()
    assert f"{len(agreed) - len(audited)} that the voters agree on" in card
    with pytest.raises(CommandError, match=f"b@1 voted in the gold set laws, and {len(agreed) - len(audited)} of its"):
        command("evaluate", "b@1", gold=[str(laws / "gold")])
    assert f1(laws / "gold", str(laws / "b.tsv")) == f1_of(B)
    assert f"Nobody read {len(agreed) - len(audited)} of the documents" in command(
        "evaluate", str(laws / "b.tsv"), gold=[str(laws / "gold")]
    )


def test_a_voter_is_measured_where_people_read_every_set_on_which_voters_agree(laws, person, ada):
    voters(laws, a=A, b=B)
    answer_all(opened(laws, audit_share="1"), [person("reader", "en")], ada, TRUTH)
    command("export_gold", "laws", out=str(laws / "gold"), splits="test=1")
    assert (f1(laws / "gold", "a"), f1(laws / "gold", "b@1")) == (1, f1_of(B))


def test_the_forecast_of_a_panel_compares_sets_whatever_the_order_of_their_concepts(laws):
    voters(laws, a=A, b=B)
    (laws / "truth.tsv").write_text("id\tlabel\n" + "".join(f"{key}\t{label}\n" for key, label in TRUTH.items()))
    how = {"kind": str(laws / "laws.toml"), "truth": str(laws / "truth.tsv"), "voters": ["a b"], "json": True}
    [forecast] = json.loads(command("panel", "laws", **how))["panels"]
    equal = sum(set(A[key].split()) == set(B[key].split()) for key in TRUTH)
    assert (forecast["agreed"], forecast["wrong"], forecast["pairs"][0]["same"]) == (equal, 0, equal)
    assert [row["right"] for row in forecast["single"]] == [len(TRUTH), equal]


def test_sets_that_cannot_be_answers_are_read_by_people(laws):
    changed = {"d0": "1 2 3 4", "d1": "9", "d2": "und", "d3": "4 4"}
    voters(laws, a=A | changed, b=A | changed)
    task = opened(laws)
    keys = {*task.units.filter(agreed_label="").values_list("item__key", flat=True)}
    assert keys == changed.keys()


def test_a_ranked_voter_is_refused_because_it_states_no_set(laws):
    voters(laws, a=A)
    (laws / "run.trec").write_text("".join(f"{key} Q0 2 1 0.5 run\n" for key in TRUTH))
    call_command(
        "import_predictions", "laws", str(laws / "run.trec"), name="run", version="1", ranked=True, verbosity=0
    )
    with pytest.raises(CommandError, match="run@1 ranks labels, but answers are sets of labels"):
        opened(laws, voters="a run")
    assert not Task.objects.exists()
