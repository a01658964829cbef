"""Code generated from the API schema: a client for a whole campaign, and requests of every kind."""

import importlib
import io
import json
import os
import subprocess
import sys
import zipfile
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from knox.models import AuthToken

from annotate.actions.registry import call_command
from tests.annotate import api_cases
from tests.annotate.access.world import World
from tests.annotate.api.test_manager_api import KIND, ROWS, run_next

pytestmark = pytest.mark.slow


@pytest.fixture
def generated(tmp_path, monkeypatch):
    """The functions and models of a generated package, by name."""
    pytest.importorskip("openapi_python_client")
    schema, package = tmp_path / "schema.json", tmp_path / "assay_client"
    call_command("spectacular", "--validate", "--fail-on-warn", "--format", "openapi-json", "--file", str(schema))
    words = ["generate", "--path", str(schema), "--output-path", str(package), "--meta", "none", "--fail-on-warning"]
    # The generator calls ruff, which is in Python's folder.
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", *words],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    monkeypatch.syspath_prepend(tmp_path)
    calls = {}
    for file in package.glob("api/*/*.py"):
        if file.stem != "__init__":
            calls[file.stem] = importlib.import_module(f"assay_client.api.{file.parent.name}.{file.stem}").sync_detailed
    yield SimpleNamespace(
        **calls,
        models=importlib.import_module("assay_client.models"),
        types=importlib.import_module("assay_client.types"),
        client=importlib.import_module("assay_client").AuthenticatedClient,
    )
    for name in [name for name in sys.modules if name.startswith("assay_client")]:
        del sys.modules[name]


@pytest.fixture
def closing():
    with ExitStack() as stack:
        yield stack


def test_a_generated_client_uploads_opens_answers_exports_and_downloads(
    generated, manager, person, live_server, closing
):
    def client_of(user):
        token = AuthToken.objects.create(user)[1]
        options = {"trust_env": False}  # no proxy
        client = generated.client(base_url=live_server.url, token=token, prefix="Token", httpx_args=options)
        return closing.enter_context(client)

    mine, models = client_of(manager), generated.models

    def upload(name, content):
        file = generated.types.File(payload=io.BytesIO(content.encode()))
        return generated.manage_upload(name, client=mine, body=file).parsed.name

    def finished(response):
        assert response.status_code == 202, response.content
        run_next()
        job = generated.manage_job(response.parsed.id, client=mine).parsed
        assert job.state == "done", job.warned
        return job

    options = {"corpus": "july", "files": [upload("july.jsonl", ROWS)], "licence": "CC0-1.0", "language": "de"}
    options |= {"fields": "body", "column": ["body=text"]}
    body = models.ManageImportCorpusJsonBody.from_dict(options)
    finished(generated.manage_import_corpus(client=mine, body=body))
    assert [corpus.rows for corpus in generated.manage_corpora(client=mine).parsed] == [6]
    options = {"name": "mood", "corpus": "july", "kind": upload("mood.toml", KIND), "size": 2, "seed": "1"}
    options |= {"redundancy": "1", "test_items": 0, "gold_share": "0"}
    body = models.ManageOpenTaskJsonBody.from_dict(options)
    finished(generated.manage_open_task(client=mine, body=body))

    hers = client_of(person("ann", "de").user)
    while lease := generated.tasks_next_create("mood", client=hers).parsed.lease:
        answer = models.Answer(label="glad")
        assert generated.leases_judge_create(lease.id, client=hers, body=answer).parsed.label == "glad"
    assert generated.manage_task("mood", client=mine).parsed.done == 2
    assert generated.manage_tasks(client=hers).parsed.code == "not_allowed"

    job = finished(generated.manage_export_gold("mood", client=mine, body=models.ManageExportGoldBody()))
    archive = zipfile.ZipFile(generated.manage_job_archive(job.id, client=mine).parsed.payload)
    rows = [json.loads(line) for line in archive.read("gold.jsonl").splitlines()]
    assert [row["label"] for row in rows] == ["glad", "glad"]
    file = generated.manage_job_file(job.id, "manifest.json", client=mine).parsed.payload
    assert json.load(file)["task"]["name"] == "mood"


def test_every_operation_answers_made_up_requests_as_it_is_described_and_most_of_them_past_404(db, data_dir):
    cases = list(api_cases.run(World(), 20))
    assert [fault for case in cases for fault in case.faults] == []
    # Of the actions, only one has valid options in this world.
    tried = [case for case in cases if "/actions/" not in case.operation or "/import_corpus/" in case.operation]
    assert [case.operation for case in tried if not case.between(200, 300)] == []
    assert sum(case.statuses[404] for case in cases) < sum(case.statuses.total() for case in cases) / 3
