"""--json: whatever a command does, its output is one JSON document, and a refusal stays a sentence."""

import io
import json

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError

from annotate.actions.registry import by_name, call_command
from annotate.kinds import Answer
from annotate.models import Annotator, Task, Unit
from annotate.work.judgments import judge
from annotate.work.queue import take
from corpora.core.voters import DEFAULT
from tests.annotate.corpus import NAME
from tests.chat_server import MODEL, serving
from tests.inputs.conftest import TALK

pytestmark = pytest.mark.on_sqlite


COMMANDS = set(by_name())


@pytest.fixture
def run(tmp_path):
    """run("tasks") returns the JSON that the command writes; run.names are the commands run so far; run.file writes
    an input file.
    """

    def run(command, *arguments, **options):
        run.names.add(command)
        out, err = io.StringIO(), io.StringIO()
        call_command(command, *map(str, arguments), json=True, stdout=out, stderr=err, **options)
        run.err = err.getvalue()
        return json.loads(out.getvalue())

    def file(name, *lines):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return tmp_path / name

    run.names, run.file = set(), file
    return run


def values(output, *names):
    return tuple(output[name] for name in names)


@pytest.mark.slow
def test_every_command_tells_all_that_came_of_it_as_one_document(run, demo_corpus, tmp_path, settings):
    header, ann, ben = "username,name,languages,adjudicates", "ann,Ann,de:5 en:5,no", "ben,Ben,de:4,yes"
    people = run.file("people.csv", header, ann, ben)
    output = run("add_annotators", people)
    assert (sorted(output["links"]), output["updated"]) == (["ann", "ben"], [])
    assert run("add_annotators", people) == {"links": {}, "updated": ["ann", "ben"], "mailed": {}}
    # Warnings go to stderr, not into the document.
    assert run.err == (
        "Names and languages updated: ann, ben.\n"
        "Adjudicators among the updated annotators: ben.\n"
        "No password yet: ann, ben. To print new links, use --again.\n"
    )

    posts = settings.BASE_DIR / "fixtures/demo_posts.jsonl"
    output = run("import_corpus", NAME, posts, licence="CC-BY-4.0")
    assert values(output, "corpus", "accepted", "rejects") == (NAME, 0, 0)
    assert [values(file, "name", "already", "rejects_file") for file in output["files"]] == [(posts.name, True, None)]
    # Progress goes to stderr, too.
    assert run.err == "demo_posts.jsonl: already imported.\n"
    assert run("prelabel", NAME) == {"corpus": NAME, "posts": 1525, "agreed": 1268}
    ids = [json.loads(line)["id"] for line in posts.read_text(encoding="utf-8").splitlines()]
    labels = run.file("labels.tsv", *(f"{key}\tde" for key in [*ids, "unknown"]))
    output = run("import_predictions", NAME, labels, name="mine", version="1")
    assert output == {"corpus": NAME, "predictor": "mine@1", "posts": 1525, "left_out": 1, "already": False}

    output = run("plan", NAME, languages="de", measure=["accuracy"])
    assert values(output, "corpus", "posts") == (NAME, 1525)
    assert [row["measure"] for row in output["rows"]] == ["accuracy"]
    output = run("open_task", "t", corpus=NAME, size=100, seed="7", audit_least=2, audit_limit=1.0)
    assert (output["task"], sum(output["stages"].values())) == ("t", 100)
    assert output["draws"] == [{"language": "", "asked": 100, "drawn": 100, "frame": 1525}]
    output = run("extend_task", "t", size=110, dry_run=True)
    assert (output["task"], sum(output["stages"].values())) == ("t", 10)
    annotator, task = Annotator.objects.get(user__username="ann"), Task.objects.get()
    judge(annotator, take(annotator, task).pk, Answer("de"))

    output = run("members", "t", add=["ann"], quota="20")
    assert (output["open_to"], [row["quota"] for row in output["members"]]) == ("everybody", [20])
    output = run("status")
    assert output["installation"]["data_folder"] == str(settings.DATA_DIR)
    assert output["people"] == {"annotators": 2, "adjudicators": 1, "invited": 2, "managers": 0}
    assert output["next"][0] == "Create an account for a manager: `assay add_manager NAME`."
    assert [row["corpus"] for row in run("corpora")["corpora"]] == [NAME]
    [row] = run("tasks")["tasks"]
    assert values(row, "name", "units", "answers_today") == ("t", 100, 1)
    assert [row["tasks"] for row in run("draws", "t")["draws"]] == [["t"]]
    predictors = [row["predictor"] for row in run("predictors", NAME)["predictors"]]
    assert predictors == ["langid", "cld2", "fasttext", "majority", "mine@1"]

    output = run("audit", "t")
    assert values(output, "task", "limit") == ("t", 1.0)
    assert output["languages"]
    assert run("audit", "t", contest=True) == {"task": "t", "contested": {}}
    assert run("agreement", "t")["all"]["judgments"] == 0  # nothing that two people have read
    columns = "task\tworker\tlabel"
    compared = run.file("compared.tsv", columns, "1|a|b\tcal\tA", "1|a|b\tdan\ttie")
    assert run("import_judgments", "pairs", compared, pairs=True)["judgments"] == 2
    assert run("preferences", "pairs")["all"]["pairs"][0]["counts"] == {"a": 1, "b": 0, "tie": 1}
    output = run("reroute", "t")
    assert output["task"] == "t"
    assert output["queues"] + output["adjudication"] > 0
    output = run("adjudicate", "t", list=True, **{"as": "ben"})
    assert len(output["waiting"]) == Unit.objects.filter(stage="ADJUDICATION").count() > 0
    assert run("close", "t")["is_open"] is False
    assert run("reopen", "t")["is_open"] is True

    output = run("export_gold", "t", out=tmp_path / "gold")
    assert output["counts"]["posts"] == 100
    assert output == json.loads((tmp_path / "gold/manifest.json").read_text(encoding="utf-8"))
    run("close", "t")
    run("export_gold", "t", out=tmp_path / "told", tell_secret=True)
    assert values(run("verify_lots", tmp_path / "told"), "task", "secret_fits", "differ") == ("t", True, 0)
    output = run("publish", tmp_path / "told", archive=tmp_path / "told.zip")
    assert values(output, "name", "archive") == ("t", str(tmp_path / "told.zip"))
    output = run("evaluate", "mine@1", gold=[tmp_path / "gold"], unfinished=True, out=tmp_path / "report")
    output.pop("errors")
    assert output == json.loads((tmp_path / "report/report.json").read_text(encoding="utf-8"))
    output = run("baseline", tmp_path / "gold", unfinished=True)
    manifest = json.loads((tmp_path / "gold/manifest.json").read_text(encoding="utf-8"))
    assert output["systems"] == manifest["baselines"]["systems"]
    assert [system["name"] for system in output["systems"]] == ["majority", "frequency", "tfidf", *DEFAULT.voters]
    gold = run.file("published.tsv", "de\t1", "en\t2")
    assert run("import_gold", gold, out=tmp_path / "other", design="uniform", name="x")["counts"]["labelled"] == 2
    assert run("hydrate", tmp_path / "other", out=tmp_path / "ids")["posts"] == {"de": 1, "en": 1}
    output = run("import_judgments", "crowd", run.file("j.tsv", columns, "a\tcal\tx", "a\tdan\tx", "a\tdan\ty"))
    assert values(output, "task", "judgments", "rejects") == ("crowd", 2, 1)
    assert output["rejects_file"].endswith(".rejects.jsonl")

    law = run.file("law.json", '{"1": {"label": "law"}, "2": {"label": "civil law", "parents": ["1"]}}')
    assert values(run("import_vocabulary", "law", law), "vocabulary", "version", "concepts") == ("law", 1, 2)
    assert [row["vocabulary"] for row in run("vocabularies")["vocabularies"]] == ["law"]
    acts = run.file("acts.jsonl", '{"id": "1", "language": "en", "title": "A law on fish", "concept": ["1"]}')
    run("import_corpus", "acts", acts, licence="CC0-1.0", fields="title", labels="concept")
    output = run("suggest", "acts", vocabulary="law")
    records = [(row["predictor"].split("@")[0], row["records"]) for row in output["predictors"]]
    assert records == [("label-match", 1), ("nearest", 0)]
    assert values(output, "learned", "left_out", "already") == (1, {}, False)
    ranking = run.file("mine.run", "1 Q0 2 1 0.5 mine")
    output = run("import_predictions", "acts", ranking, name="mine", version="1", ranked=True)
    assert values(output, "predictor", "posts", "without", "left_out") == ("mine@1", 1, 0, 0)

    with serving(lambda prompt, attempt: "fish") as server:
        options = {"labels": "fish meat", "prompt": run.file("prompt.txt", "{title}: {labels}?"), "model": MODEL}
        output = run("vote", "acts", **options, endpoint=server.url)
    assert values(output, "posts", "new_answers", "rejects", "rejects_file", "already") == (1, 1, 0, None, False)
    assert values(output, "tokens", "models") == (server.used, [f"{MODEL}-0613"])

    output = run("panel", NAME, voters=["cld2 fasttext"])
    assert [panel["voters"] for panel in output["panels"]] == [["cld2", "fasttext"]]
    export = run.file("doccano.jsonl", '{"id": 1, "text": "Bake it for an hour", "label": ["food", "sport"]}')
    output = run("import", "dishes", export, licence="CC0-1.0", language="en")
    assert values(output, "tool", "items", "answers", "lost") == ("doccano", 1, 1, {})
    assert values(run("project", creators="Ann"), "stated", "missing")[0] == {"creators": "Ann"}

    output = run("import_threads", "talk", run.file("talk.jsonl", TALK.strip()), licence="CC0-1.0")
    assert values(output, "pairs", "messages", "left_out", "already") == (1, 2, {}, False)
    output = run("import_scores", "talk", run.file("s.tsv", "a\t0.1", "b\t0.2"), name="s", threshold="0.5")
    assert values(output, "name", "kept", "dropped", "lacking") == ("s", 1, 0, 0)
    output = run("export_corpus", "talk", out=tmp_path / "talk")
    assert output["copy"]["rows"] == 1
    output = run("export_pairs", "talk", out=tmp_path / "pairs", seed="1")
    assert output == json.loads((tmp_path / "pairs/manifest.json").read_text(encoding="utf-8"))

    kind = settings.BASE_DIR / "annotate/kinds/qa_match.toml"
    output = run("check_kind", kind, out=tmp_path / "page.html")
    assert values(output, "kind", "page") == ("qa_match", str(tmp_path / "page.html"))
    assert run("create_token", "ann")["username"] == "ann"
    assert run("unlock", "ann") == {"name": "ann", "wrong_passwords": 0}
    assert run("add_manager", "mia")["name"] == "mia"
    output = run("delete", corpus=NAME, predictor="mine@1", yes=True)
    assert output == {"corpus": NAME, "predictor": "mine@1", "posts": 1525}
    assert run.names == COMMANDS


@pytest.mark.django_db
def test_a_refusal_is_a_sentence_and_no_document(data_dir):
    out = io.StringIO()
    with pytest.raises(CommandError, match=r"^There is no task 'none'; available: none\.$"):
        call_command("audit", "none", json=True, stdout=out)
    assert out.getvalue() == ""
    assert not User.objects.exists()
