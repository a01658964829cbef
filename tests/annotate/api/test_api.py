import json
import os
import re
import subprocess

import pytest
from django.conf import settings
from knox.models import AuthToken

from annotate.actions.registry import call_command
from annotate.core import stages
from annotate.models import Judgment
from tests.annotate.conftest import AGREED, DISPUTED
from tests.annotate.programs import Program


class Worker(Program):
    def next(self):
        return self.post("tasks/task/next/").json()["lease"]


@pytest.fixture
def program(client, ann):
    return Worker(client, ann)


def refusal(response):
    assert set(response.json()) == {"code", "detail"}
    return response.status_code, response.json()["code"]


def test_the_whole_way(make_task, program):
    task = make_task([*[DISPUTED] * 4, AGREED])
    (row,) = program.get("tasks/").json()
    assert (row["name"], row["progress"]["waiting"]) == ("task", 4)

    lease = program.next()
    assert lease["text"] == task.units.get(position=1).item.text
    assert program.next() == lease
    response = program.post(f"leases/{lease['id']}/judge/", label="de", comment="plain", active_seconds=0.001)
    assert response.status_code == 200
    expected = {"kind": "answer", "label": "de", "reason": "", "comment": "plain"}
    assert response.json() | expected == response.json()
    assert 0 < response.json()["active_seconds"] <= 0.001

    skipped = program.post(f"leases/{program.next()['id']}/skip/").json()
    assert (skipped["kind"], skipped["label"], skipped["active_seconds"]) == ("skip", "", None)
    assert program.get("tasks/task/progress/").json() == {"answered_today": 1, "skipped_today": 1, "waiting": 2}

    reopened = program.post("tasks/task/undo/").json()
    assert reopened["why"] == ""
    assert program.next() == reopened["lease"]
    undefined = {"label": "und", "reason": "unlisted", "comment": "Frisian"}
    assert program.post(f"leases/{reopened['lease']['id']}/judge/", **undefined).json()["reason"] == "unlisted"

    third = program.next()
    assert program.post(f"leases/{third['id']}/release/").status_code == 204
    for _ in range(2):
        program.post(f"leases/{program.next()['id']}/judge/", label="de")
    done = "All done. All items of this task have been read."
    assert program.post("tasks/task/next/").json() == {"lease": None, "why": done}
    assert list(task.units.values_list("stage", "label")) == [
        *((stages.LABELLED, label) for label in ("de", "und", "de", "de")),
        (stages.AGREED, "de"),
    ]


def answers_to(task, lease):
    """The possible answers to a unit, as documented."""
    return [answer["label"] for answer in task["answers"] if answer["asked"] == lease["asked"]]


def test_an_answer_or_a_skip_brings_the_next_unit_where_that_is_asked_for(make_task, program):
    task = make_task([DISPUTED] * 3)
    texts = [unit.item.text for unit in task.units.order_by("position")]
    first = program.next()
    answered = program.post(f"leases/{first['id']}/judge/", label="de", take_next=True).json()
    second = answered.pop("next")
    assert (second["lease"]["text"], second["why"]) == (texts[1], "")
    assert program.next() == second["lease"]
    # as after a reply that was lost
    again = program.post(f"leases/{first['id']}/judge/", label="de", take_next=True).json()
    assert (again.pop("next"), again) == (second, answered)

    refused = program.post(f"leases/{second['lease']['id']}/judge/", label="nonsense", take_next=True)
    assert refusal(refused) == (400, "invalid_answer")
    third = program.post(f"leases/{second['lease']['id']}/skip/", take_next=True).json()["next"]["lease"]
    assert third["text"] == texts[2]
    last = program.post(f"leases/{third['id']}/judge/", label="de").json()
    assert last["next"] is None
    none = program.post(f"leases/{third['id']}/judge/", label="de", take_next=True).json()["next"]
    assert (none["lease"], none["why"]) == (None, program.post("tasks/task/next/").json()["why"])


def test_a_task_says_what_may_be_answered_and_its_units_do_not_repeat_it(make_task, program):
    which = make_task([DISPUTED])
    task, lease = program.get("tasks/task/").json(), program.next()
    assert (lease["asked"], answers_to(task, lease)) == ("", [*which.labels, "und"])
    german = {"label": "de", "asked": "", "name": "German", "names": {}, "autonym": "Deutsch"}
    assert task["answers"][0] == german
    make_task([DISPUTED] * 3, name="asking", asked="de", decoys=1, labels=["de", "en"])
    task = program.get("tasks/asking/").json()
    assert {answer["asked"] for answer in task["answers"]} == {"de", "en"}
    for answer in ("de", "not-de", "und"):
        lease = program.post("tasks/asking/next/").json()["lease"]
        assert (lease["asked"], answers_to(task, lease)) == ("de", ["de", "not-de", "und"])
        judged = program.post(f"leases/{lease['id']}/judge/", label=answer)
        assert judged.json()["label"] == answer
        keys = {"id", "text", "language", "fields", "asked", "sets", "written", "suggestions", "expires_at"}
        assert set(lease) == keys
    assert program.post("tasks/asking/next/").json()["why"].startswith("All done.")


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"label": "ja"}, "'ja' is not on this task's list of languages."),
        ({}, "label: This field is required."),
        ({"label": ""}, "label: This field may not be blank."),
        ({"label": "de", "comment": "x" * 2001}, "comment: Ensure this field has no more than 2000 characters."),
        ({"label": "de", "comment": "a\x00"}, "comment: Null characters are not allowed."),
        ({"label": "de", "comment": "\ud800"}, "comment: "),
        ({"label": "de", "active_seconds": -1}, "active_seconds: Ensure this value is greater than or equal to 0."),
        ({"label": "de", "active_seconds": "soon"}, "active_seconds: A valid number is required."),
        ({"label": "de", "active_seconds": "nan"}, "active_seconds: "),
    ],
)
def test_an_answer_that_cannot_be_taken_is_refused_with_a_sentence(make_task, program, fields, sentence):
    make_task([DISPUTED])
    answer = program.post(f"leases/{program.next()['id']}/judge/", **fields)
    assert refusal(answer) == (400, "invalid_answer")
    assert answer.json()["detail"].startswith(sentence)
    assert not Judgment.objects.exists()


def test_what_is_not_there_is_reported_in_our_words(make_task, program, client):
    make_task([DISPUTED])
    for path in ("tasks/other/next/", "tasks/other/undo/", "leases/0/judge/", f"leases/{10**30}/skip/"):
        assert refusal(program.post(path, label="de")) == (404, "not_found")
    for path in ("tasks/other/", "tasks/other/progress/"):
        response = program.get(path)
        assert refusal(response) == (404, "not_found")
        assert "task or item does not exist" in response.json()["detail"]
    assert "this page" not in program.get("tasks/task/adjudication/").json()["detail"]
    assert program.get("tasks/task/?format=json").json()["name"] == "task"
    other = program.get("tasks/task/?format=xml")
    assert refusal(other) == (404, "not_found")
    assert other.json()["detail"] == "The format 'xml' does not exist. Remove ?format= from the address."
    for address in ("/api/", "/api/v1/nothing/", "/api/v2/tasks/"):
        response = client.get(address)
        assert response.status_code == 404
        assert response.json() == {"code": "not_found", "detail": "This address does not exist."}
    assert "<h1>Page not found</h1>" in client.get("/apis/").text


PAGE = (settings.BASE_DIR / "annotate" / "docs" / "how-to" / "api.md").read_text(encoding="utf-8")


def lines_of(section):
    return re.findall(r"^curl (?:.*\\\n)*.*$", section, re.MULTILINE)


def runner(user, server, folder):
    """Return a function that runs a line of the page against a server, as this user, and returns what it prints."""
    env = {"PATH": os.environ["PATH"], "TOKEN": AuthToken.objects.create(user)[1], "SITE": f"{server.url}/api/v1"}

    def run(line):
        command = line.replace("curl", "curl --silent --show-error --fail-with-body --noproxy '*'", 1)
        done = subprocess.run(["bash", "-c", command], env=env, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        return json.loads(done.stdout) if done.stdout else {}

    return run


def test_the_lines_of_the_how_to_page_do_what_they_say_at_a_server(make_task, ann, live_server, tmp_path):
    task, run = make_task([DISPUTED] * 4, name="demo"), runner(ann.user, live_server, tmp_path)
    lines = lines_of(PAGE.partition("## Manage")[0])
    assert len(lines) == 7
    (take_next,) = (line for line in lines if "/next/" in line)
    replies = [run(line.replace("ID", str(run(take_next)["lease"]["id"]))) for line in lines]
    assert replies[0][0]["name"] == replies[1]["name"] == task.name
    assert (replies[3]["kind"], replies[3]["label"]) == ("answer", "de")
    assert (replies[4]["kind"], replies[5]["kind"]) == ("answer", "skip")
    assert replies[6]["lease"]["text"]


def test_a_request_of_the_wrong_form_is_refused_with_what_to_send(make_task, program):
    make_task([DISPUTED])
    path = f"/api/v1/leases/{program.next()['id']}/judge/"

    def send(body, **how):
        response = program.client.post(path, body, headers=program.headers, **how)
        return refusal(response), response.json()["detail"]

    def send_json(body):
        return send(body, content_type="application/json")

    assert send_json("{")[0] == (400, "parse_error")
    assert send_json("[" * 100_000)[1] == "The JSON is nested too deeply."
    refused, detail = send({"label": "de"})
    assert refused == (415, "unsupported_media_type")
    assert "Content-Type: application/json" in detail
    refused, detail = send_json("[]")
    assert refused == (400, "invalid_answer")
    assert "non_field" not in detail
    assert send_json(json.dumps({"label": "de", "comment": "x" * 3_000_000})) == (
        (400, "invalid_answer"),
        "The request body is too large, so nothing was saved. Send less data.",
    )
    assert "Use a method" in program.get("tasks/task/next/").json()["detail"]


def test_without_a_token_nothing_is_told(client, make_task):
    make_task([DISPUTED])
    assert refusal(client.get("/api/v1/tasks/")) == (401, "not_authenticated")
    for token in ("Token 0000", b"Token \xff".decode("latin-1")):
        wrong = client.get("/api/v1/tasks/", headers={"Authorization": token})
        assert refusal(wrong) == (401, "authentication_failed")
    bearer = client.get("/api/v1/tasks/", headers={"Authorization": "Bearer 0000"})
    assert refusal(bearer) == (401, "not_authenticated")
    assert "Authorization: Token" in bearer.json()["detail"]
    assert "Bearer" in bearer.json()["detail"]


def test_a_closed_task_is_not_listed_and_says_so(make_task, program):
    make_task([DISPUTED], is_open=False)
    assert program.get("tasks/").json() == []
    assert program.post("tasks/task/next/").json() == {"lease": None, "why": "This task is closed."}


def test_the_schema_is_valid_and_whole(tmp_path):
    path = tmp_path / "schema.json"
    call_command("spectacular", "--validate", "--fail-on-warn", "--format", "openapi-json", "--file", str(path))
    paths = json.loads(path.read_text())["paths"]
    described = {path: methods for path, methods in paths.items() if "/manage/" not in path}
    unit, read = "{task}/adjudication/{unit}/", ("", "adjudication/", "concepts/", "progress/", "qualification/")
    wanted = {
        "GET": ["tasks/", f"tasks/{unit}", *(f"tasks/{{task}}/{path}" for path in read)],
        "POST": [
            *(f"tasks/{unit}{act}/" for act in ("settle", "discard", "unsettle")),
            *(f"tasks/{{task}}/{act}/" for act in ("next", "undo")),
            *(f"leases/{{lease}}/{act}/" for act in ("judge", "skip", "flag", "release")),
            *(f"tasks/{{task}}/qualification/{{language}}/{act}/" for act in ("practice", "test")),
            "qualification/answers/{question}/",
        ],
    }
    assert {(method.upper(), path) for path, methods in described.items() for method in methods} == {
        (method, f"/api/v1/{path}") for method, paths in wanted.items() for path in paths
    }


def test_the_documentation_needs_no_other_host(as_ann):
    page = as_ann.get("/api/v1/")
    loaded = re.findall(r"(?:src|href)=\"([^\"]+)\"", page.text)
    assert loaded
    script = as_ann.get("/api/v1/?script=")
    assert re.findall(r"https?://(?!testserver)[^\"'\s]+", page.text + script.text) == []
    for address in loaded:
        response = as_ann.get(address)
        assert response.status_code == 200, address
        assert b"".join(response)


def test_an_error_of_the_server_is_told_in_json_too(client, person, monkeypatch):
    client.force_login(person("eve", "de").user)
    client.raise_request_exception = False
    monkeypatch.setattr("annotate.api.annotation_api.open_permits", None)
    answer = client.get("/api/v1/tasks/")
    assert answer.status_code == 500
    assert answer.json()["code"] == "server_error"
    assert answer.json()["detail"].startswith("Something went wrong on the server.")


def test_a_unit_is_flagged_and_only_what_is_disturbing_goes_on_to_another_person(make_task, program, ann):
    make_task([DISPUTED] * 2)
    first = program.post("tasks/task/next/").json()["lease"]
    question = program.post(f"leases/{first['id']}/flag/", kind="question", words="Why?", take_next=True).json()
    assert (question["kind"], question["words"], question["next"]) == ("question", "Why?", None)
    assert program.post("tasks/task/next/").json()["lease"]["id"] == first["id"]
    handed_on = program.post(f"leases/{first['id']}/flag/", kind="disturbing", take_next=True).json()
    assert handed_on["next"]["lease"]["text"] != first["text"]
    assert program.post(f"leases/{first['id']}/flag/", kind="question").json()["code"] == "invalid_answer"
