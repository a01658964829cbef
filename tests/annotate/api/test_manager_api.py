"""Managers' actions through the API, from the upload of a file to the download of a gold set."""

import io
import json
import zipfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from annotate.actions import job_worker
from annotate.actions.open_task import extend_task_action
from annotate.manager_pages import inbox
from annotate.manager_pages.action_forms import JOB_FORMS
from annotate.models import Job, Membership, Task
from annotate.work import job_store
from corpora.storage.layout import manifest_of
from tests.annotate.api.test_api import PAGE, lines_of, runner
from tests.annotate.conftest import DISPUTED
from tests.annotate.programs import Program

ROWS = "".join(json.dumps({"id": str(number), "text": f"Guten Morgen {number}"}) + "\n" for number in range(6))
RECORDS = {"licence": "CC0-1.0", "fields": "body", "column": ["body=text"], "language": "de"}

KIND = '''
title = {en = "Which mood?"}
form = "choice"
fields = {body = {en = "text"}}
layout = [{style = "document", fields = ["body"]}]
answers = [{code = "glad", name = {en = "Glad"}}, {code = "sad", name = {en = "Sad"}}]
[guidelines]
en = """
Choose the mood.
"""
'''


@pytest.fixture
def program(client, manager):
    return Program(client, manager)


def finish(response):
    """Run the job that a response describes, and return its number."""
    assert response.status_code == 202, response.text
    return run_next().pk


def run_next():
    """Run the waiting job in this process."""
    job, lock = job_store.claim()
    with lock:
        job_worker.run(job.pk)
    job_store.record_outcomes()
    job.refresh_from_db()
    assert job.state == Job.DONE, job.warned
    return job


def refusal(response):
    document = response.json()
    assert set(document) == {"code", "detail"}
    return response.status_code, document["code"], document["detail"]


def upload(program, name, content):
    return program.client.post(
        f"/api/v1/manage/files/{name}/", content, content_type="application/octet-stream", headers=program.headers
    )


def test_a_corpus_is_uploaded_labelled_and_downloaded(program, person):
    sent = upload(program, "july.jsonl", ROWS)
    assert (sent.status_code, sent.json()) == (201, {"name": "july.jsonl", "size": len(ROWS)})
    job = finish(program.post("manage/actions/import_corpus/", corpus="july", files=["july.jsonl"], **RECORDS))
    details = program.get(f"manage/jobs/{job}/").json()
    assert (details["state"], details["data"]["accepted"], details["options"]["files"]) == ("done", 6, ["july.jsonl"])
    (corpus,) = program.get("manage/corpora/").json()
    assert (corpus["name"], corpus["rows"], corpus["fault"]) == ("july", 6, "")

    assert upload(program, "mood.toml", KIND).status_code == 201
    options = {"kind": "mood.toml", "redundancy": 1, "test_items": 0, "gold_share": 0}
    finish(program.post("manage/actions/open_task/", name="mood", corpus="july", size=2, seed=1, **options))
    (task,) = program.get("manage/tasks/").json()
    assert (task["name"], task["units"], task["done"]) == ("mood", 2, 0)
    ann = Program(Client(), person("ann", "de"))
    while lease := ann.post("tasks/mood/next/").json()["lease"]:
        assert ann.post(f"leases/{lease['id']}/judge/", label="glad").status_code == 200
    assert program.get("manage/tasks/mood/").json()["done"] == 2

    job = finish(program.post("manage/tasks/mood/actions/export_gold/"))
    (details,) = program.get("manage/tasks/mood/jobs/").json()[:1]
    assert (details["id"], details["task"], details["state"]) == (job, "mood", "done")
    assert "gold.jsonl" in [file["path"] for file in details["files"]]
    rows = program.get(f"manage/jobs/{job}/files/gold.jsonl/")
    assert [json.loads(line)["label"] for line in b"".join(rows).splitlines()] == ["glad", "glad"]
    archive = zipfile.ZipFile(io.BytesIO(b"".join(program.get(f"manage/jobs/{job}/packed/"))))
    assert {file["path"] for file in details["files"]} == set(archive.namelist()) - {""}
    assert program.get("manage/jobs/?task=mood").json()[0] == details


def test_one_request_uploads_a_file_and_imports_it(program):
    file = SimpleUploadedFile("august.jsonl", ROWS.encode())
    body = {"corpus": "august", "files": file, "text_may_leave": "yes", **RECORDS}
    finish(program.client.post("/api/v1/manage/actions/import_corpus/", body, headers=program.headers))
    assert manifest_of("august").rows == 6
    assert (inbox.folder() / "august.jsonl").read_text() == ROWS


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "corpus is required."),
        ({"corpus": "july", "files": ["/etc/passwd"]}, "files: '/etc/passwd' does not exist. Available: july.jsonl."),
        ({"corpus": "july", "coprus": "july"}, "import_corpus has no option 'coprus'. Options: corpus, files"),
        ({"corpus": {"name": "july"}}, "corpus: The value must be a text, a number, true, false, or a list of these."),
        ({"corpus": "july", "files": ["july.jsonl"], "max_rejects": "many", "licence": "CC"}, "“max_rejects”: 'many'"),
    ],
)
def test_wrong_options_are_refused_before_anything_runs(program, options, sentence):
    upload(program, "july.jsonl", ROWS)
    status, code, detail = refusal(program.post("manage/actions/import_corpus/", **options))
    assert (status, code, detail[: len(sentence)]) == (400, "invalid_answer", sentence)
    assert not Job.objects.exists()


def test_what_cannot_be_undone_must_be_confirmed(program, make_task):
    make_task([DISPUTED])
    status, code, detail = refusal(program.post("manage/actions/delete/", task="task"))
    assert (status, code) == (400, "invalid_answer")
    assert detail.endswith("Send sure: true to confirm.")
    finish(program.post("manage/actions/delete/", task="task", sure=True))
    assert not Task.objects.exists()


def test_what_does_not_exist_is_reported(program, make_task):
    make_task([DISPUTED])
    for path in ("manage/actions/serve/", "manage/actions/export_gold/", "manage/tasks/task/actions/open_task/"):
        assert refusal(program.post(path))[:2] == (404, "not_found"), path
    for path in ("manage/jobs/1/", "manage/tasks/none/", "manage/nothing/"):
        assert refusal(program.get(path))[:2] == (404, "not_found"), path
    assert "manage/tasks/" in program.get("manage/jobs/1/").json()["detail"]


def test_a_file_that_is_too_large_is_not_kept(program, settings):
    settings.UPLOAD_MOST = 20
    assert refusal(upload(program, "..", ROWS))[2].startswith("The file name '..' is not allowed.")
    assert "larger than" in refusal(upload(program, "large.jsonl", ROWS))[2]
    assert refusal(upload(program, "empty.jsonl", ""))[2].startswith("empty.jsonl is empty.")
    assert [path.name for path in inbox.folder().iterdir()] == []


def test_a_waiting_job_is_cancelled(program, make_task):
    make_task([DISPUTED])
    job = program.post("manage/tasks/task/actions/close/").json()["id"]
    assert program.post(f"manage/jobs/{job}/cancel/").json()["state"] == "cancelled"
    assert refusal(program.post(f"manage/jobs/{job}/cancel/"))[0] == 409


def test_a_manager_of_one_task_exports_closes_and_reopens_it_and_nothing_else(program, make_task, person):
    task, _ = make_task([DISPUTED]), make_task([DISPUTED], name="other")
    mia = person("mia", "de")
    task.memberships.create(annotator=mia, role=Membership.MANAGER)
    as_mia = Program(Client(), mia)
    assert as_mia.get("manage/tasks/task/").json()["name"] == "task"
    job = as_mia.post("manage/tasks/task/actions/close/")
    assert job.status_code == 202
    assert as_mia.get(f"manage/jobs/{job.json()['id']}/").status_code == 200
    assert as_mia.get("manage/tasks/task/jobs/").status_code == 200
    foreign = program.post("manage/tasks/other/actions/close/").json()["id"]
    refused = (
        *(as_mia.post(f"manage/tasks/task/actions/{name}/") for name in ("extend_task", "reroute", "audit")),
        *(as_mia.post(path) for path in ("manage/actions/import_corpus/", "manage/tasks/other/actions/export_gold/")),
        *(as_mia.get(path) for path in ("manage/tasks/", "manage/corpora/", "manage/jobs/", f"manage/jobs/{foreign}/")),
        as_mia.post(f"manage/jobs/{job.json()['id']}/cancel/"),
        upload(as_mia, "mine.jsonl", ROWS),
    )
    assert [response.status_code for response in refused] == [403] * len(refused)
    assert not list(inbox.folder().iterdir())


@pytest.mark.slow
def test_the_lines_of_the_how_to_page_do_what_they_say_at_a_server(manager, live_server, tmp_path):
    lines = lines_of(PAGE.partition("## Manage")[2].partition("\n## ")[0])
    (tmp_path / "july.jsonl").write_text(ROWS)
    run, number = runner(manager, live_server, tmp_path), ""
    for line in lines:
        if run(line.replace("ID", number)).get("state") == Job.WAITING:
            number = str(run_next().pk)
    assert len(lines) == 5
    assert "gold.unfinished.jsonl" in zipfile.ZipFile(tmp_path / "july.zip").namelist()


def test_the_schema_describes_the_options_of_every_action(client):
    paths = client.get("/api/v1/schema/?format=json").json()["paths"]
    actions = {path.split("/")[-2]: methods["post"] for path, methods in paths.items() if "/actions/" in path}
    assert actions.keys() == JOB_FORMS.keys()
    body = actions["extend_task"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["required"] == ["size"]
    assert body["properties"]["size"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 2**31 - 1,
        "description": next(option.help for option in extend_task_action.options if option.name == "size"),
    }
    assert set(actions["import_corpus"]["requestBody"]["content"]) == {"application/json", "multipart/form-data"}
