"""The part of the Hugging Face Hub's interface that an upload uses, on loopback."""

import base64
import hashlib
import json
import re
from contextlib import contextmanager

from tests import together

TOKEN = "hf_of_a_test"


class Hub:
    """The repositories of a Hub.

    repos: name -> whether it is private
    commits: name -> the files of each commit, by name
    stored: large files that were uploaded, by their SHA-256
    fails: name of a step -> what happens there: an HTTP status, or "away" for a lost connection
    """

    def __init__(self):
        self.repos, self.commits, self.stored, self.fails = {}, {}, {}, {}
        self.steps = []

    def repo(self, name, *, private=False):
        self.repos[name], self.commits[name] = private, []

    def files(self, name):
        return {path: content for commit in self.commits[name] for path, content in commit.items()}

    def info(self, name):
        siblings = [{"rfilename": path} for path in (".gitattributes", *self.files(name))]
        return {"id": name, "sha": self.head(name), "private": self.repos[name], "siblings": siblings, "tags": []}

    def head(self, name):
        return hashlib.sha1(f"{name} {len(self.commits[name])}".encode(), usedforsecurity=False).hexdigest()

    # --- The steps of an upload. Each returns an HTTP status and a body.

    def create(self, body):
        name = f"{body['organization']}/{body['name']}"
        self.repo(name, private=body.get("visibility") == "private" or body.get("private") is True)
        return 200, {"url": f"{self.url}/datasets/{name}"}

    def preupload(self, body):
        modes = {True: "lfs", False: "regular"}
        files = [
            {"path": file["path"], "uploadMode": modes[file["path"].endswith(".parquet")], "shouldIgnore": False}
            for file in body["files"]
        ]
        return 200, {"files": files}

    def batch(self, body):
        objects = [
            entry | {"actions": {"upload": {"href": f"{self.url}/upload/{entry['oid']}"}}} for entry in body["objects"]
        ]
        return 200, {"transfer": "basic", "objects": objects}

    def upload(self, oid, content):
        assert hashlib.sha256(content).hexdigest() == oid
        self.stored[oid] = content
        return 200, {}

    def commit(self, name, lines):
        head, *entries = (json.loads(line) for line in lines.splitlines())
        if head["value"]["parentCommit"] != self.head(name):
            return 412, {"error": "A commit has happened since"}
        files = {}
        for entry in entries:
            value = entry["value"]
            is_large = entry["key"] == "lfsFile"
            files[value["path"]] = self.stored[value["oid"]] if is_large else base64.b64decode(value["content"])
        self.commits[name].append(files)
        oid = self.head(name)
        return 200, {"commitUrl": f"{self.url}/datasets/{name}/commit/{oid}", "commitOid": oid}

    def answer(self, method, path, content):
        """Return the step of a request, and a function that performs it."""
        if path == "/api/validate-yaml":
            return "validate", lambda: (200, {})
        if path == "/api/repos/create":
            return "create", lambda: self.create(json.loads(content))
        if match := re.fullmatch(r"/upload/(\w+)", path):
            return "upload", lambda: self.upload(match[1], content)
        if match := re.fullmatch(r"/datasets/(.+?)\.git/info/lfs/objects/batch", path):
            return "batch", lambda: self.batch(json.loads(content))
        match = re.fullmatch(r"/api/datasets/([^/]+/[^/]+)(/\w+)?(/main)?", path)
        if match and match[1] not in self.repos:
            return "info", lambda: (404, {"error": "Repository not found"})
        if match and method == "GET":
            return "info", lambda: (200, self.info(match[1]))
        if match and match[2] == "/preupload":
            return "preupload", lambda: self.preupload(json.loads(content))
        if match and match[2] == "/commit":
            return "commit", lambda: self.commit(match[1], content)
        raise AssertionError(f"{method} {path}")


@contextmanager
def serving():
    hub = Hub()

    class Handler(together.Handler):
        def do_GET(self):
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            step, perform = hub.answer(self.command, self.path.partition("?")[0], content)
            hub.steps.append(step)
            if hub.fails.get(step) == "away":
                self.close_connection = True
                return
            status, body = perform() if step not in hub.fails else (hub.fails[step], {"error": "It is not allowed"})
            if step != "upload" and self.headers["Authorization"] != f"Bearer {TOKEN}":
                status, body = 401, {"error": "Invalid token"}
            headers = {"X-Error-Code": "RepoNotFound"} if status == 404 else {}
            self.reply(status, headers | {"Content-Type": "application/json"}, json.dumps(body).encode())

        do_POST = do_PUT = do_GET

    with together.listening(Handler) as port:
        hub.url = f"http://127.0.0.1:{port}"
        yield hub
