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
def asked(tmp_path):
    """asked("tasks") is what the command writes as JSON; asked.names are the commands that were run; asked.file writes
    a file for one.
    """

    def ask(command, *arguments, **options):
        ask.names.add(command)
        out, err = io.StringIO(), io.StringIO()
        call_command(command, *map(str, arguments), json=True, stdout=out, stderr=err, **options)
        ask.err = err.getvalue()
        return json.loads(out.getvalue())

    def file(name, *lines):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return tmp_path / name

    ask.names, ask.file = set(), file
    return ask


def values(told, *names):
    return tuple(told[name] for name in names)


@pytest.mark.slow
def test_every_command_tells_all_that_came_of_it_as_one_document(asked, demo_corpus, tmp_path, settings):
    header, ann, ben = "username,name,languages,adjudicates", "ann,Ann,de:5 en:5,no", "ben,Ben,de:4,yes"
    people = asked.file("people.csv", header, ann, ben)
    told = asked("add_annotators", people)
    assert (sorted(told["links"]), told["updated"]) == (["ann", "ben"], [])
    assert asked("add_annotators", people) == {"links": {}, "updated": ["ann", "ben"], "mailed": {}}
    # A warning stands beside the document, not in it.
    assert asked.err == (
        "Names and languages updated: ann, ben.\n"
        "Adjudicators among the updated annotators: ben.\n"
        "No password yet: ann, ben. To print new links, use --again.\n"
    )

    posts = settings.BASE_DIR / "fixtures/demo_posts.jsonl"
    told = asked("import_corpus", NAME, posts, licence="CC-BY-4.0")
    assert values(told, "corpus", "accepted", "rejects") == (NAME, 0, 0)
    assert [values(file, "name", "already", "rejects_file") for file in told["files"]] == [(posts.name, True, None)]
    # Reported as it went on, and so beside the document.
    assert asked.err == "demo_posts.jsonl: already imported.\n"
    assert asked("prelabel", NAME) == {"corpus": NAME, "posts": 1525, "agreed": 1268}
    ids = [json.loads(line)["id"] for line in posts.read_text(encoding="utf-8").splitlines()]
    labels = asked.file("labels.tsv", *(f"{key}\tde" for key in [*ids, "unknown"]))
    told = asked("import_predictions", NAME, labels, name="mine", version="1")
    assert told == {"corpus": NAME, "predictor": "mine@1", "posts": 1525, "left_out": 1, "already": False}

    told = asked("plan", NAME, languages="de", measure=["accuracy"])
    assert values(told, "corpus", "posts") == (NAME, 1525)
    assert [row["measure"] for row in told["rows"]] == ["accuracy"]
    told = asked("open_task", "t", corpus=NAME, size=100, seed="7", audit_least=2, audit_limit=1.0)
    assert (told["task"], sum(told["stages"].values())) == ("t", 100)
    assert told["draws"] == [{"language": "", "asked": 100, "drawn": 100, "frame": 1525}]
    told = asked("extend_task", "t", size=110, dry_run=True)
    assert (told["task"], sum(told["stages"].values())) == ("t", 10)
    annotator, task = Annotator.objects.get(user__username="ann"), Task.objects.get()
    judge(annotator, take(annotator, task).pk, Answer("de"))

    told = asked("members", "t", add=["ann"], quota="20")
    assert (told["open_to"], [row["quota"] for row in told["members"]]) == ("everybody", [20])
    told = asked("status")
    assert told["installation"]["data_folder"] == str(settings.DATA_DIR)
    assert told["people"] == {"annotators": 2, "adjudicators": 1, "invited": 2, "managers": 0}
    assert told["next"][0] == "Create an account for a manager: `assay add_manager NAME`."
    assert [row["corpus"] for row in asked("corpora")["corpora"]] == [NAME]
    [row] = asked("tasks")["tasks"]
    assert values(row, "name", "units", "answers_today") == ("t", 100, 1)
    assert [row["tasks"] for row in asked("draws", "t")["draws"]] == [["t"]]
    predictors = [row["predictor"] for row in asked("predictors", NAME)["predictors"]]
    assert predictors == ["langid", "cld2", "fasttext", "majority", "mine@1"]

    told = asked("audit", "t")
    assert values(told, "task", "limit") == ("t", 1.0)
    assert told["languages"]
    assert asked("audit", "t", contest=True) == {"task": "t", "contested": {}}
    assert asked("agreement", "t")["all"]["judgments"] == 0  # nothing that two people have read
    columns = "task\tworker\tlabel"
    compared = asked.file("compared.tsv", columns, "1|a|b\tcal\tA", "1|a|b\tdan\ttie")
    assert asked("import_judgments", "pairs", compared, pairs=True)["judgments"] == 2
    assert asked("preferences", "pairs")["all"]["pairs"][0]["counts"] == {"a": 1, "b": 0, "tie": 1}
    told = asked("reroute", "t")
    assert told["task"] == "t"
    assert told["queues"] + told["adjudication"] > 0
    told = asked("adjudicate", "t", list=True, **{"as": "ben"})
    assert len(told["waiting"]) == Unit.objects.filter(stage="ADJUDICATION").count() > 0
    assert asked("close", "t")["is_open"] is False
    assert asked("reopen", "t")["is_open"] is True

    told = asked("export_gold", "t", out=tmp_path / "gold")
    assert told["counts"]["posts"] == 100
    assert told == json.loads((tmp_path / "gold/manifest.json").read_text(encoding="utf-8"))
    asked("close", "t")
    asked("export_gold", "t", out=tmp_path / "told", tell_secret=True)
    assert values(asked("verify_lots", tmp_path / "told"), "task", "secret_fits", "differ") == ("t", True, 0)
    told = asked("publish", tmp_path / "told", archive=tmp_path / "told.zip")
    assert values(told, "name", "archive") == ("t", str(tmp_path / "told.zip"))
    told = asked("evaluate", "mine@1", gold=[tmp_path / "gold"], unfinished=True, out=tmp_path / "report")
    told.pop("errors")
    assert told == json.loads((tmp_path / "report/report.json").read_text(encoding="utf-8"))
    told = asked("baseline", tmp_path / "gold", unfinished=True)
    manifest = json.loads((tmp_path / "gold/manifest.json").read_text(encoding="utf-8"))
    assert told["systems"] == manifest["baselines"]["systems"]
    assert [system["name"] for system in told["systems"]] == ["majority", "frequency", "tfidf", *DEFAULT.voters]
    gold = asked.file("published.tsv", "de\t1", "en\t2")
    assert asked("import_gold", gold, out=tmp_path / "other", design="uniform", name="x")["counts"]["labelled"] == 2
    assert asked("hydrate", tmp_path / "other", out=tmp_path / "ids")["posts"] == {"de": 1, "en": 1}
    told = asked("import_judgments", "crowd", asked.file("j.tsv", columns, "a\tcal\tx", "a\tdan\tx", "a\tdan\ty"))
    assert values(told, "task", "judgments", "rejects") == ("crowd", 2, 1)
    assert told["rejects_file"].endswith(".rejects.jsonl")

    law = asked.file("law.json", '{"1": {"label": "law"}, "2": {"label": "civil law", "parents": ["1"]}}')
    assert values(asked("import_vocabulary", "law", law), "vocabulary", "version", "concepts") == ("law", 1, 2)
    assert [row["vocabulary"] for row in asked("vocabularies")["vocabularies"]] == ["law"]
    acts = asked.file("acts.jsonl", '{"id": "1", "language": "en", "title": "A law on fish", "concept": ["1"]}')
    asked("import_corpus", "acts", acts, licence="CC0-1.0", fields="title", labels="concept")
    told = asked("suggest", "acts", vocabulary="law")
    records = [(row["predictor"].split("@")[0], row["records"]) for row in told["predictors"]]
    assert records == [("label-match", 1), ("nearest", 0)]
    assert values(told, "learned", "left_out", "already") == (1, {}, False)
    run = asked.file("mine.run", "1 Q0 2 1 0.5 mine")
    told = asked("import_predictions", "acts", run, name="mine", version="1", ranked=True)
    assert values(told, "predictor", "posts", "without", "left_out") == ("mine@1", 1, 0, 0)

    with serving(lambda prompt, attempt: "fish") as server:
        options = {"labels": "fish meat", "prompt": asked.file("prompt.txt", "{title}: {labels}?"), "model": MODEL}
        told = asked("vote", "acts", **options, endpoint=server.url)
    assert values(told, "posts", "new_answers", "rejects", "rejects_file", "already") == (1, 1, 0, None, False)
    assert values(told, "tokens", "models") == (server.used, [f"{MODEL}-0613"])

    told = asked("panel", NAME, voters=["cld2 fasttext"])
    assert [panel["voters"] for panel in told["panels"]] == [["cld2", "fasttext"]]
    export = asked.file("doccano.jsonl", '{"id": 1, "text": "Bake it for an hour", "label": ["food", "sport"]}')
    told = asked("import", "dishes", export, licence="CC0-1.0", language="en")
    assert values(told, "tool", "items", "answers", "lost") == ("doccano", 1, 1, {})
    assert values(asked("project", creators="Ann"), "stated", "missing")[0] == {"creators": "Ann"}

    told = asked("import_threads", "talk", asked.file("talk.jsonl", TALK.strip()), licence="CC0-1.0")
    assert values(told, "pairs", "messages", "left_out", "already") == (1, 2, {}, False)
    told = asked("import_scores", "talk", asked.file("s.tsv", "a\t0.1", "b\t0.2"), name="s", threshold="0.5")
    assert values(told, "name", "kept", "dropped", "lacking") == ("s", 1, 0, 0)
    told = asked("export_corpus", "talk", out=tmp_path / "talk")
    assert told["copy"]["rows"] == 1
    told = asked("export_pairs", "talk", out=tmp_path / "pairs", seed="1")
    assert told == json.loads((tmp_path / "pairs/manifest.json").read_text(encoding="utf-8"))

    kind = settings.BASE_DIR / "annotate/kinds/qa_match.toml"
    told = asked("check_kind", kind, out=tmp_path / "page.html")
    assert values(told, "kind", "page") == ("qa_match", str(tmp_path / "page.html"))
    assert asked("create_token", "ann")["username"] == "ann"
    assert asked("unlock", "ann") == {"name": "ann", "wrong_passwords": 0}
    assert asked("add_manager", "mia")["name"] == "mia"
    told = asked("delete", corpus=NAME, predictor="mine@1", yes=True)
    assert told == {"corpus": NAME, "predictor": "mine@1", "posts": 1525}
    assert asked.names == COMMANDS


@pytest.mark.django_db
def test_a_refusal_is_a_sentence_and_no_document(data_dir):
    out = io.StringIO()
    with pytest.raises(CommandError, match=r"^There is no task 'none'; available: none\.$"):
        call_command("audit", "none", json=True, stdout=out)
    assert out.getvalue() == ""
    assert not User.objects.exists()
