"""Several sets by several seeds: a task each, all of them or none."""

import io
import json

import pytest
from django.core.management import CommandError

from annotate.actions import open_task
from annotate.actions.action import ActionError, Progress
from annotate.actions.commands import call_command
from annotate.models import Task
from tests.annotate.balancing.acts import SIZES, TOPICS, exported, import_documents, lists, opened

pytestmark = pytest.mark.django_db


def of_task(name):
    """The ids of its documents."""
    return set(Task.objects.get(name=name).units.values_list("item__key", flat=True))


def test_replicates_are_tasks_by_seeds_of_their_own_each_as_if_it_were_opened_alone(sentences, kind, tmp_path):
    said = opened("topics", kind, replicates=10, seed="news", languages="de en", **SIZES)
    names = list(Task.objects.order_by("name").values_list("name", flat=True))
    assert names == [f"topics-{number:02}" for number in range(1, 11)]
    for name in names:
        assert f"Task {name}: 238 documents drawn in 2 languages, in each: test 35" in said
    assert said.count("Never drawn: 0 with none of the classes") == 1
    assert len({frozenset(of_task(name)) for name in names}) == 10
    exported("topics-07", tmp_path / "seventh")
    manifest = json.loads((tmp_path / "seventh/manifest.json").read_text())
    assert manifest["sets"]["seed"] == "news-07"
    assert {draw["seed"] for draw in manifest["draws"]} == {"news-07"}
    opened("alone", kind, seed="news-07", languages="de en", **SIZES)
    exported("alone", tmp_path / "alone")
    for spelled in ("german", "english"):
        assert lists(tmp_path / "alone", spelled) == lists(tmp_path / "seventh", spelled)


def test_the_tasks_of_replicates_are_told_in_json_and_a_dry_run_keeps_none(sentences, kind):
    def told(**options):
        out = io.StringIO()
        fixed = {"kind": kind, "corpus": "sib", "classes": TOPICS, "seed": "1", "test": 35}
        call_command("open_task", "topics", json=True, replicates=3, stdout=out, **fixed, **options)
        return json.loads(out.getvalue())

    foretold = told(dry_run=True)
    assert not Task.objects.exists()
    assert "nothing was kept" in opened("topics", kind, replicates=3, dry_run=True, test=35)
    assert not Task.objects.exists()
    real = told()
    assert (foretold["dry_run"], real["dry_run"]) == (True, False)
    assert [task.pop("task") for task in real["tasks"]] == ["topics-01", "topics-02", "topics-03"]
    assert [draw["drawn"] for draw in real["tasks"][2]["draws"]] == [35] * 4


def test_where_one_of_the_replicates_cannot_be_made_none_is_and_it_is_named(sentences, kind):
    opened("topics-02", kind, test=7)
    why = "topics-02, by the seed 1-02: There is already a task 'topics-02'.* So none of the 3 tasks was made"
    with pytest.raises(CommandError, match=why):
        opened("topics", kind, replicates=3, test=7)
    assert [task.name for task in Task.objects.all()] == ["topics-02"]


def test_a_replicate_that_somebody_else_makes_meanwhile_undoes_those_before_it(sentences, kind, monkeypatch):
    class Meanwhile(Progress):
        """Somebody opens the third task when the first has its units."""

        def advance(self, count=0):
            if count and not Task.objects.filter(name="topics-03").exists():
                assert Task.objects.filter(name="topics-01").exists()
                Task.objects.create(name="topics-03", title="Another", kind_slug="topic", labels=["a"])

    values = {"name": "topics", "kind": kind, "corpus": "sib", "classes": TOPICS, "seed": "1", "test": 7}
    with pytest.raises(ActionError, match="topics-03, by the seed 1-03: Somebody else has just made a task"):
        open_task.ACTION.perform(values | {"replicates": 3}, Meanwhile())
    assert not Task.objects.exists()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"replicates": 1}, r"--replicates is 1; it must be 2 to 100"),
        ({"replicates": 1000}, r"--replicates is 1000; it must be 2 to 100"),
        ({"replicates": 3, "from_indices": "lists"}, "Published lists make the same sets by any seed"),
        ({"replicates": 3, "test": 147}, r"topics-01, by the seed 1-01: Too few .* So none of the 3 tasks was made\."),
        ({"replicates": 3, "extend": True, "size": 10}, "There is no task 'topics' to extend"),
    ],
)
def test_replicates_that_make_no_sense_are_refused(sentences, kind, options, why):
    with pytest.raises(CommandError, match=why):
        opened("topics", kind, **{"test": 7} | options)
    assert not Task.objects.exists()


def test_replicates_say_once_what_is_short_in_all_of_them_and_of_which_what_is_not_in_all(sentences, kind, tmp_path):
    said = opened("topics", kind, replicates=2, classes="sports health", test=10, train="10 60", short="fill")
    assert said.count("Note: de, train.60: of sports there are 15 documents and not 30.") == 1
    write_groups(tmp_path / "groups.jsonl")
    import_documents("groups", tmp_path / "groups.jsonl", fields="body group", labels="topic", licence="CC0-1.0")
    sizes = {"test": 4, "train": "12", "apart": "group", "short": "fill"}
    said = opened("groups", kind, corpus="groups", classes="a b", replicates=2, **sizes).splitlines()
    assert "Note: en, train.12: of a there are 5 documents and not 6." in said
    assert "groups-02: Note: en, train.12: of b there are 5 documents and not 6." in said


def write_groups(path):
    """Documents of two classes in five groups, of which the one seed fills the sets better than the other."""
    documents = [
        {"id": f"{topic}{n}", "language": "en", "body": f"{topic} {n}", "topic": topic, "group": group}
        for topic, groups in (("a", "24213210"), ("b", "30430403"))
        for n, group in enumerate(groups)
    ]
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))


@pytest.mark.parametrize("kind", ["language", "qa_match"])
def test_other_designs_have_no_replicates(sentences, kind):
    with pytest.raises(CommandError, match=f"--replicates: not an option of {kind} tasks"):
        call_command("open_task", "t", kind=kind, corpus="sib", seed="1", size=10, replicates=3)
