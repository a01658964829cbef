"""Gold sets that the evaluation tests share."""

import json
from pathlib import Path

import pytest

from annotate.actions.registry import call_command
from annotate.kinds import Answer
from annotate.models import Task
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate.evaluation.figures import KIND, VOTER, written
from tests.annotate.gold_folders import World

CROWD = Path(__file__).parents[3] / "fixtures" / "crowd" / "zencrowd_in.labels.tsv"


@pytest.fixture
def world(make_task, tmp_path):
    return World(make_task, tmp_path)


@pytest.fixture
def stream(world):
    folder, _ = world.uniform(VOTER)
    return folder


@pytest.fixture
def run(capsys):
    """Return a function: run("--gold", folder, …) returns the report of `evaluate`."""

    def run(*arguments):
        capsys.readouterr()
        call_command("evaluate", *map(str, arguments), "--json")
        return json.loads(capsys.readouterr().out)

    return run


@pytest.fixture(scope="module")
def made():
    """Sets that are exported once for all tests, which only read them."""
    return {}


@pytest.fixture
def crowd(made, tmp_path_factory):
    """A gold set of imported judgments: some hundred units with two labels."""
    if not made:
        made["crowd"] = tmp_path_factory.mktemp("crowd") / "goldzc"
        some = tmp_path_factory.mktemp("judgments") / "some.tsv"
        some.write_text("".join(CROWD.read_text(encoding="utf-8").splitlines(keepends=True)[:2_000]), encoding="utf-8")
        call_command("import_judgments", "zc", some, verbosity=0)
        call_command("export_gold", "zc", out=made["crowd"], verbosity=0)
    return made["crowd"]


@pytest.fixture
def reviews(person, tmp_path):
    """Return a function: reviews(60, answer, size=30) opens and exports a task of a custom kind with 30 of 60 records.

    answer: function that returns the answer from a person's name and a record's id
    read: the number of records with a single reader, by language; by default, people read all records
    """

    def make(number, answer, people=("ann",), size=None, read=None, **options):
        (tmp_path / "mood.toml").write_text(KIND)
        rows = [(f"r{n}", "en" if n % 2 else "de", f"Review {n} of it.") for n in range(number)]
        made = written(tmp_path / "reviews.csv", [("id", "language", "review"), *rows])
        call_command("import_corpus", "reviews", made, fields="review", licence="CC0-1.0", source="made", verbosity=0)
        how = {"kind": str(tmp_path / "mood.toml"), "corpus": "reviews", "languages": "en de", "seed": "1", **options}
        size = {"size": str(size)} if size else {}
        call_command("open_task", "mood", **how, **size, test_items="0", gold_share="0", verbosity=0)
        task = Task.objects.get()
        readers = [(name, "en:5 de:5", number) for name in people]
        if read:
            readers = [(f"reader-{code}", f"{code}:5", count) for code, count in read.items()]
        for name, languages, count in readers:
            reader = person(name, languages)
            while count and (lease := take(reader, task)):
                judge(reader, lease.pk, Answer(answer(name, lease.unit.item.key)))
                count -= 1
        call_command("export_gold", "mood", out=tmp_path / "gold", verbosity=0)
        return tmp_path / "gold"

    return make
