"""--json: whatever a command does, its output is one JSON document, and a refusal stays a sentence."""

import io
import json

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError

from annotate.actions.commands import call_command
from annotate.actions.registry import by_name
from annotate.kinds import Answer
from annotate.models import Annotator, Task, Unit
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate.corpus import NAME
from tests.inputs.conftest import TALK

pytestmark = pytest.mark.on_sqlite


COMMANDS = set(by_name())


@pytest.fixture
def asked():
    """asked("tasks") is what the command tells as JSON; asked.names are the commands that were run."""

    def ask(command, *arguments, **options):
        ask.names.add(command)
        out, err = io.StringIO(), io.StringIO()
        call_command(command, *map(str, arguments), json=True, stdout=out, stderr=err, **options)
        ask.err = err.getvalue()
        return json.loads(out.getvalue())

    ask.names = set()
    return ask


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_every_command_tells_all_that_came_of_it_as_one_document(asked, demo_corpus, tmp_path, settings):
    people = written(
        tmp_path / "people.csv", "username,name,languages,adjudicates\nann,Ann,de:5 en:5,no\nben,Ben,de:4,yes\n"
    )
    told = asked("add_annotators", people)
    assert sorted(told["links"]) == ["ann", "ben"]
    assert told["updated"] == []
    told = asked("add_annotators", people)
    assert told == {"links": {}, "updated": ["ann", "ben"], "mailed": {}}
    # A warning stands beside the document, not in it.
    assert asked.err == (
        "Updated, as the file has them now (names, languages): ann, ben.\n"
        "Adjudicators among them: ben.\n"
        "No password set yet: ann, ben; --again prints new links for them.\n"
    )

    posts = settings.BASE_DIR / "fixtures/demo_posts.jsonl"
    told = asked("import_corpus", NAME, posts, licence="CC-BY-4.0")
    assert (told["corpus"], told["accepted"], told["rejects"]) == (NAME, 0, 0)
    assert [(file["name"], file["already"], file["rejects_file"]) for file in told["files"]] == [
        ("demo_posts.jsonl", True, None)
    ]
    # Told as it went on, and so beside the document.
    assert asked.err == "demo_posts.jsonl: already imported.\n"
    assert asked("prelabel", NAME) == {"corpus": NAME, "posts": 1525, "agreed": 1279}
    ids = [json.loads(line)["id"] for line in posts.read_text(encoding="utf-8").splitlines()]
    labels = written(tmp_path / "labels.tsv", "".join(f"{key}\tde\n" for key in [*ids, "unknown"]))
    told = asked("import_predictions", NAME, labels, name="mine", version="1")
    assert told == {"corpus": NAME, "predictor": "mine@1", "posts": 1525, "left_out": 1, "already": False}

    told = asked("plan", NAME, languages="de", measure=["accuracy"])
    assert (told["corpus"], told["posts"], [row["measure"] for row in told["rows"]]) == (NAME, 1525, ["accuracy"])
    told = asked("open_task", "t", corpus=NAME, size=100, seed="7", audit_least=2, audit_limit=1.0)
    assert (told["task"], sum(told["stages"].values())) == ("t", 100)
    assert told["draws"] == [{"language": "", "asked": 100, "drawn": 100, "frame": 1525}]
    ann, task = Annotator.objects.get(user__username="ann"), Task.objects.get()
    judge(ann, take(ann, task).pk, Answer("de"))

    told = asked("status")
    assert told["installation"]["data_folder"] == str(settings.DATA_DIR)
    assert told["people"] == {"annotators": 2, "adjudicators": 1, "invited": 2, "managers": 0}
    assert told["next"][0] == "Make an account for the manager: `assay add_manager NAME`."
    assert [row["corpus"] for row in asked("corpora")["corpora"]] == [NAME]
    [row] = asked("tasks")["tasks"]
    assert (row["name"], row["units"], row["answers_today"]) == ("t", 100, 1)
    assert [row["tasks"] for row in asked("draws", "t")["draws"]] == [["t"]]
    assert [row["predictor"] for row in asked("predictors", NAME)["predictors"]] == [
        "langid",
        "cld2",
        "fasttext",
        "majority",
        "mine@1",
    ]

    told = asked("audit", "t")
    assert (told["task"], told["limit"]) == ("t", 1.0)
    assert told["languages"]
    assert asked("audit", "t", contest=True) == {"task": "t", "contested": {}}
    assert asked("agreement", "t")["all"]["judgments"] == 0  # nothing that two people have read
    compared = written(tmp_path / "compared.tsv", "task\tworker\tlabel\n1|a|b\tcal\tA\n1|a|b\tdan\ttie\n")
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
    told = asked("verify_lots", tmp_path / "told")
    assert (told["task"], told["secret_fits"], told["differ"]) == ("t", True, 0)
    told = asked("evaluate", "mine@1", gold=[tmp_path / "gold"], unfinished=True, out=tmp_path / "report")
    kept = {key: told[key] for key in told if key != "errors"}
    assert kept == json.loads((tmp_path / "report/report.json").read_text(encoding="utf-8"))
    gold = written(tmp_path / "published.tsv", "de\t1\nen\t2\n")
    assert asked("import_gold", gold, out=tmp_path / "other", design="uniform", name="x")["counts"]["labelled"] == 2
    judgments = written(tmp_path / "judgments.tsv", "task\tworker\tlabel\na\tcal\tx\na\tdan\tx\na\tdan\ty\n")
    told = asked("import_judgments", "crowd", judgments)
    assert (told["task"], told["judgments"], told["rejects"]) == ("crowd", 2, 1)
    assert told["rejects_file"].endswith(".rejects.jsonl")

    law = written(tmp_path / "law.json", '{"1": {"label": "law"}, "2": {"label": "civil law", "parents": ["1"]}}')
    told = asked("import_vocabulary", "law", law)
    assert (told["vocabulary"], told["version"], told["concepts"]) == ("law", 1, 2)
    assert [row["vocabulary"] for row in asked("vocabularies")["vocabularies"]] == ["law"]
    acts = written(
        tmp_path / "acts.jsonl", '{"id": "1", "language": "en", "title": "A law on fish", "concept": ["1"]}\n'
    )
    asked("import_corpus", "acts", acts, licence="CC0-1.0", fields="title", labels="concept")
    told = asked("suggest", "acts", vocabulary="law")
    assert [(row["predictor"].split("@")[0], row["records"]) for row in told["predictors"]] == [
        ("label-match", 1),
        ("nearest", 0),
    ]
    assert (told["learned"], told["left_out"], told["already"]) == (1, {}, False)
    run = written(tmp_path / "mine.run", "1 Q0 2 1 0.5 mine\n")
    told = asked("import_predictions", "acts", run, name="mine", version="1", ranked=True)
    assert (told["predictor"], told["posts"], told["without"], told["left_out"]) == ("mine@1", 1, 0, 0)

    talk = written(tmp_path / "talk.jsonl", TALK)
    told = asked("import_threads", "talk", talk, licence="CC0-1.0")
    assert (told["pairs"], told["messages"], told["left_out"], told["already"]) == (1, 2, {}, False)
    told = asked("import_scores", "talk", written(tmp_path / "s.tsv", "a\t0.1\nb\t0.2\n"), name="s", threshold="0.5")
    assert (told["name"], told["kept"], told["dropped"], told["lacking"]) == ("s", 1, 0, 0)
    told = asked("export_pairs", "talk", out=tmp_path / "pairs", seed="1")
    assert told == json.loads((tmp_path / "pairs/manifest.json").read_text(encoding="utf-8"))

    kind = settings.BASE_DIR / "annotate/kinds/qa_match.toml"
    told = asked("check_kind", kind, out=tmp_path / "page.html")
    assert (told["kind"], told["page"]) == ("qa_match", str(tmp_path / "page.html"))
    assert asked("create_token", "ann")["username"] == "ann"
    assert asked("unlock", "ann") == {"name": "ann", "wrong_passwords": 0}
    assert asked("add_manager", "mia")["name"] == "mia"
    told = asked("delete", corpus=NAME, predictor="mine@1", yes=True)
    assert told == {"corpus": NAME, "predictor": "mine@1", "posts": 1525}
    assert asked.names == COMMANDS


@pytest.mark.django_db
def test_a_refusal_is_a_sentence_and_no_document(data_dir):
    out = io.StringIO()
    with pytest.raises(CommandError, match=r"^There is no task 'none'; there is: none\.$"):
        call_command("audit", "none", json=True, stdout=out)
    assert out.getvalue() == ""
    assert not User.objects.exists()
