"""Answer forms and detectors that are defined only in this folder work like the built-in ones."""

import json
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.conf import settings
from django.core.management.base import CommandError
from django.urls import reverse

from annotate.actions.registry import call_command
from annotate.controls.checks import Checks
from annotate.core import stages
from annotate.kinds import Answer
from annotate.kinds.forms import FORMS, register
from annotate.kinds.forms.choice import Grades
from annotate.kinds.forms.form import load
from annotate.models import Task, Unit
from annotate.work.judgments import judge
from annotate.work.queue import take
from corpora.core import CorpusError, voters
from corpora.core.detectors import ranked
from corpora.core.voters import DEFAULT, VOTERS
from corpora.draws.samples import sample_uniform
from corpora.engines import votes_in
from corpora.models import Corpus
from corpora.predictions.panels import panel_named
from corpora.predictions.predictor_labels import find_predictor, triggers
from corpora.storage.layout import corpus_dir, manifest_of
from corpora.votes.vote_worker import vote_on
from tests.annotate.acts import say
from tests.annotate.conftest import DISPUTED
from tests.annotate.corpus import POSTS
from tests.annotate.evaluation.figures import figures, rows_of, written
from tests.annotate.plugins.common_words import CommonWords
from tests.annotate.plugins.rating import Rating
from tests.annotate.programs import Program

HERE = Path(__file__).parent


@pytest.fixture
def rating():
    register(form := Rating())
    yield form
    del FORMS["rating"]


@pytest.fixture
def task(rating, db, tmp_path):
    rows = [(f"j{n}", "en", f"Joke {n}.") for n in range(6)]
    file = written(tmp_path / "jokes.csv", [("id", "language", "joke"), *rows])
    call_command("import_corpus", "jokes", file, fields="joke", licence="CC0-1.0", source="made", verbosity=0)
    how = {"kind": str(HERE / "funny.toml"), "corpus": "jokes", "languages": "en", "seed": "1", "size": "6"}
    call_command("open_task", "funny", **how, verbosity=0)
    return Task.objects.get()


def rating_of(unit):
    return 10 * int(unit.item.key[1:])


def test_a_form_from_outside_is_answered_adjudicated_exported_and_evaluated(task, person, client, tmp_path):
    ann, bea = person("ann", "en"), person("bea", "en", adjudicates=True)
    client.force_login(ann.user)
    while lease := take(ann, task):
        page = client.get(reverse("queue", args=["funny"])).text
        assert '<input type="number" name="answer" min="0" max="100">' in page
        sent = {"lease": lease.pk, "answer": f"0{rating_of(lease.unit)}"}
        assert client.post(reverse("judge", args=["funny"]), sent).status_code == 302
    assert set(task.units.values_list("judgments__label", flat=True)) == {"0", "10", "20", "30", "40", "50"}

    program = Program(client, person("cem", "en"))
    assert program.get("tasks/funny/").json()["answers"][100]["label"] == "100"
    while lease := program.post("tasks/funny/next/").json()["lease"]:
        number = int(lease["fields"]["joke"][5:-1])
        refused = program.post(f"leases/{lease['id']}/judge/", label="101")
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid_answer")
        response = program.post(f"leases/{lease['id']}/judge/", label=str(10 * number + (20 if number == 5 else 4)))
        assert response.status_code == 200
    assert sorted(task.units.values_list("stage", "label")) == [
        (stages.ADJUDICATION, ""),
        *((stages.LABELLED, label) for label in ("14", "24", "34", "4", "44")),
    ]

    [unit] = task.units.filter(stage=stages.ADJUDICATION)
    client.force_login(bea.user)
    bench = reverse("adjudicate", args=["funny", unit.pk])
    assert '<input type="number" name="answer" min="0">' in client.get(bench).text
    client.post(bench, {"answer": "60", "reason": "I laughed"})
    unit.refresh_from_db()
    assert (unit.stage, unit.label) == (stages.LABELLED, "60")

    gold = tmp_path / "gold"
    call_command("export_gold", "funny", out=gold, verbosity=0)
    assert json.loads((gold / "manifest.json").read_text())["task"]["form"] == "rating"
    truth = {row["id"]: int(row["label"]) for row in rows_of(gold)}
    predictions = [(key, label + (7 if label < 40 else -30)) for key, label in truth.items()]
    system = written(tmp_path / "system.tsv", predictions)
    call_command("evaluate", str(system), "--gold", str(gold), "--out", str(tmp_path / "r"))
    report = json.loads((tmp_path / "r" / "report.json").read_text())
    assert report["form"] == "rating"
    assert figures(report, "near")["value"] == pytest.approx(4 / 6)
    assert "within 10" in (tmp_path / "r" / "report.md").read_text()
    assert "A rating is near if it is at most 10 from the gold rating." in (tmp_path / "r" / "report.md").read_text()


def test_a_package_names_its_forms_by_an_entry_point_and_two_forms_cannot_have_one_name(installed_package):
    installed_package("forms", "rating", "tests.annotate.plugins.rating:Rating")
    load()
    try:
        assert isinstance(FORMS["rating"], Rating)
        with pytest.raises(ValueError, match="A form of answers named 'rating' already exists"):
            register(Rating())
    finally:
        del FORMS["rating"]


def test_the_documentation_shows_these_files():
    page = (settings.BASE_DIR / "annotate/docs/how-to/develop.md").read_text(encoding="utf-8")
    templates = HERE.glob("templates/rating/*.html")
    for file in (HERE / "rating.py", HERE / "funny.toml", HERE / "common_words.py", *templates):
        assert file.read_text(encoding="utf-8") in page, file


# --- what an installed package returns is checked where it enters, and a control that fails hides no other's result


@pytest.mark.parametrize(
    ("returned", "why"),
    [
        (3, "returned 3 for .* It must be a text or None"),
        ("", "returned '' for "),
        ("excellent", "returned 'excellent' for .*'excellent' is not a valid answer"),
    ],
)
def test_the_result_of_an_aggregation_must_be_an_answer_of_the_task(
    make_records_task, person, monkeypatch, installed_package, returned, why
):
    installed_package("forms", "laughs", "annotate.kinds.forms:choice")
    monkeypatch.setattr(Grades, "aggregations", {"majority": lambda answers, order, asked: returned})
    task = make_records_task("web_ranking", 1, redundancy=2)
    ann, bea = person("ann", "en"), person("bea", "en")
    judge(ann, take(ann, task).pk, Answer("1"))
    with pytest.raises(CorpusError, match=f"The package laughs cannot be used: its aggregation majority .* {why}"):
        judge(bea, take(bea, task).pk, Answer("2"))
    assert Unit.objects.get().stage == stages.QUEUED


@pytest.mark.parametrize(
    ("votes", "why"),
    [
        ([[("xx", 0.5)]], "'xx', which is not the code of a listed language"),
        ([[("de", 1.5)]], "score 1.5"),
        ([[("de", float("nan"))]], "score nan"),
        ([], "It has 0 rankings for 1 texts"),
        ([["de"]], ""),
        (None, "not iterable"),
    ],
)
def test_the_result_of_a_detector_is_checked_and_its_package_is_named(installed_package, votes, why):
    installed_package("voters", "common", "tests.annotate.plugins.common_words:CommonWords")
    voter = type("Faulty", (CommonWords,), {"vote": lambda self, texts, k: votes, "__module__": "tests.faulty"})()
    posts = pa.record_batch({"id": ["1"], "text": ["der Hund ist da"]})
    with pytest.raises(CorpusError, match=f"The package common cannot be used: .* detector common is not valid.*{why}"):
        vote_on(3, [voter], posts)


def test_a_control_whose_panel_fails_says_so_and_the_page_shows_the_others(make_task, desk, monkeypatch, caplog):
    make_task([DISPUTED])

    def fail(self, task, results):
        raise ZeroDivisionError("no answers")

    monkeypatch.setattr(Checks, "panel", fail)
    page = desk.get("/manage/tasks/task/quality/")
    assert page.status_code == 200
    assert "These results could not be computed." in page.text
    assert "Audit of the detectors" in page.text
    [record] = [record for record in caplog.records if record.name == "annotate.kinds.control"]
    assert record.exc_info[0] is ZeroDivisionError
    assert "the panel of the quality control 'checks' failed" in record.getMessage()


def test_a_control_can_ask_one_more_person_for_a_unit(make_task, person, monkeypatch):
    monkeypatch.setattr(Checks, "decided", lambda self, unit, answers, label: 2)
    task = make_task([DISPUTED])
    first = say(person("ann", "de"), task, "de")
    assert (first.stage, first.redundancy) == (stages.QUEUED, 2)
    second = say(person("bea", "de"), task, "de")
    assert (second.stage, second.label) == (stages.LABELLED, "de")


@pytest.fixture
def common():
    voters.register(voter := CommonWords())
    yield voter
    VOTERS.pop("common", None)


@pytest.fixture
def corpus(db, tmp_path):
    with open(POSTS, encoding="utf-8") as file:
        (tmp_path / "posts.jsonl").write_text("".join(islice(file, 80)), encoding="utf-8")
    call_command("import_corpus", "posts", str(tmp_path / "posts.jsonl"), licence="CC0-1.0", source="demo", verbosity=0)
    return Corpus.objects.get()


FOUR = "langid cld2 fasttext common"


def test_a_detector_from_outside_votes_and_is_one_of_a_panel(common, corpus, tmp_path, capsys):
    call_command("prelabel", "posts", processes=1, voters=FOUR)
    assert "all four detectors agree on the language" in capsys.readouterr().out
    [part] = manifest_of("posts").votes
    rows = pq.read_table(corpus_dir("posts") / "votes" / part.name).to_pylist()
    by_id = {row["id"]: row["common"][0]["language"] for row in rows if row["common"]}
    assert set(by_id.values()) == {"de", "en", "fr"}
    assert part.versions["common"] == "1, text in NFKC"
    unanimous = {
        row["id"]
        for row in rows
        if len({tuple(vote["language"] for vote in row[name][:1]) for name in FOUR.split()}) == 1
    } - {row["id"] for row in rows if not row["common"]}
    assert part.unanimous == len(unanimous) > 0

    counts = triggers("posts", find_predictor("posts", "common"))
    assert counts["de"] == list(by_id.values()).count("de")
    assert sum(triggers("posts", find_predictor("posts", "majority")).values()) == len(rows)

    how = {"kind": "language", "corpus": "posts", "size": "40", "seed": "1", "audit_share": "0"}
    call_command("open_task", "lang", **how, voters=FOUR, verbosity=0)
    task = Task.objects.get()
    for unit in task.units.select_related("item"):
        assert unit.item.votes.keys() == {*FOUR.split()}
        assert unit.agreed_label in ("", by_id.get(unit.item.key))
    assert {"en"} <= set(task.units.values_list("agreed_label", flat=True)) <= {"", "de", "en", "fr"}

    call_command("export_gold", "lang", out=tmp_path / "gold", verbosity=0)
    manifest = json.loads((tmp_path / "gold" / "manifest.json").read_text())
    assert {*manifest["detectors"][0]} == {"langid", "cld2", "fasttext", "common"}
    card = (tmp_path / "gold" / "README.md").read_text()
    assert "Four detectors (langid.py, CLD2, fastText, common words) labelled every post. If all four agree" in card
    [read] = votes_in(pa.array([json.dumps({"langid": [], "common": [["de", 0.5]]})]), ["langid", "common"]).to_pylist()
    assert read == [{"detector": "common", "rank": 1, "language": "de", "score": 0.5}]


def test_a_registered_voter_changes_neither_the_default_panel_nor_what_is_stored(corpus, common):
    call_command("prelabel", "posts", processes=1, verbosity=0)
    [part] = manifest_of("posts").votes
    assert tuple(part.versions) == DEFAULT.voters
    names = pq.read_schema(corpus_dir("posts") / "votes" / part.name).names
    assert names == ["id", "letters", *DEFAULT.voters]
    sample = sample_uniform(corpus, size=3, seed="1")
    assert [json.loads(row["votes"]).keys() for row in sample.rows] == [{*DEFAULT.voters}] * 3
    with pytest.raises(
        CorpusError, match=r"common has not voted on all posts of corpus posts. Run `assay prelabel posts"
    ):
        sample_uniform(corpus, size=3, seed="1", panel=panel_named("posts", FOUR.split()))
    call_command("prelabel", "posts", processes=1, voters=FOUR, again=True, verbosity=0)
    assert [*sample_uniform(corpus, size=3, seed="1").rows] == [*sample.rows]
    call_command("prelabel", "posts", processes=1, verbosity=0)  # the same voters as before
    del VOTERS["common"]
    assert [*sample_uniform(corpus, size=3, seed="1").rows] == [*sample.rows]
    with pytest.raises(CommandError, match="The detector common is not installed"):
        call_command("prelabel", "posts", processes=1, again=True, verbosity=0)


def test_a_package_names_its_voters_by_an_entry_point_and_two_voters_cannot_have_one_name(installed_package):
    installed_package("voters", "common", "tests.annotate.plugins.common_words:CommonWords")
    voters.load()
    try:
        assert isinstance(VOTERS["common"], CommonWords)
        with pytest.raises(ValueError, match="'common' is already used"):
            voters.register(CommonWords())
    finally:
        del VOTERS["common"]


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("tests.annotate.plugins.common_words:Missing", r"AttributeError: .*Missing"),
        ("nowhere_to_be_found:Voter", "ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
    ],
)
def test_a_package_that_cannot_be_loaded_is_named(installed_package, what, why):
    installed_package("voters", "common", what)
    with pytest.raises(CorpusError, match=rf"The package common cannot be loaded: its entry point common = .*\({why}"):
        voters.load()


@pytest.mark.parametrize("name", ["text", "majority", "two words"])
def test_a_voter_cannot_be_named_like_a_column(name):
    with pytest.raises(ValueError, match="is not a valid column name"):
        voters.register(type("Taken", (CommonWords,), {"name": name})())


def test_votes_are_put_into_order_and_a_language_counts_once():
    assert [*ranked([[("de", 0.1), ("en", 0.6), ("de", 0.3)]], 3)] == [[("en", 0.6), ("de", 0.3)]]
