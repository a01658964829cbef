"""Clients of the crowd: each takes the test and then works through the API. Only HTTP is used."""

import json
import random
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from benchmarks.clients import ApiClient, Log, Shift
from benchmarks.crowd_world import LANGUAGE, Labeler, World
from benchmarks.place import BenchmarkFailed

# The share of answers that are sent again, as if the reply was lost, and of units opened in a second tab.
AGAIN = 0.02
# The share of units after which a client reconnects. Otherwise those on a server process with few clients stay fast.
RECONNECTS = 0.1


@dataclass
class Replies:
    """The answers that the server acknowledged, and those that it rejected. Threads share this object."""

    # (name, question, kind, label)
    judgments: list[tuple[str, str, str, str]] = field(default_factory=list)
    # name -> right answers in each test taken, and whether the last one was passed
    tests: dict[str, list[int]] = field(default_factory=dict)
    passed: dict[str, bool] = field(default_factory=dict)
    # name -> judgments made before the pause was reported
    paused: dict[str, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class CrowdClient(ApiClient):
    """The program of one labeler."""

    def __init__(self, address: str, log: Log, token: str, task: str, labeler: Labeler, world: World) -> None:
        super().__init__(address, log, token)
        self.task, self.labeler, self.world = task, labeler, world
        self.chance = random.Random(f"{world.seed} {task} {labeler.name}")

    def try_post(self, path: str, **body: object) -> tuple[int, dict]:
        status, _, text = self.ask("POST", f"/api/v1/{path}", json.dumps(body), self.headers)
        return status, json.loads(text) if text else {}

    def next(self) -> dict:
        reply = self.post(f"tasks/{self.task}/next/")
        if reply["lease"] and self.chance.random() < AGAIN:
            again = self.post(f"tasks/{self.task}/next/")
            if not again["lease"] or again["lease"]["id"] != reply["lease"]["id"]:
                raise BenchmarkFailed(f"{self.labeler.name} received a different unit in a second tab.")
        return reply

    def judge(self, lease: dict, label: str) -> dict:
        path, body = f"leases/{lease['id']}/judge/", {"label": label, "active_seconds": 3.5}
        judgment = self.post(path, **body)
        if self.chance.random() < AGAIN and self.post(path, **body)["id"] != judgment["id"]:
            raise BenchmarkFailed(f"An answer of {self.labeler.name} was counted twice after it was sent twice.")
        return judgment

    def answer_all(self, path: str) -> dict:
        """Answer a practice or a test to its end, and return the result."""
        trial = self.post(path)
        while question := trial["question"]:
            label = self.world.answer(self.labeler, question_of(question))
            answer, body = f"qualification/answers/{question['id']}/", {"label": label}
            result = self.post(answer, **body)["result"]
            if self.chance.random() < AGAIN:
                self.post(answer, **body)
            if result:
                return result
            trial = self.post(path)
        return trial["result"]


def question_of(shown: Mapping) -> str:
    """Return the question of a unit or of the test."""
    return shown["fields"]["question"]


def take_test(client: CrowdClient, replies: Replies) -> None:
    """Practise, and take the test until it is passed or no attempts are left."""
    path, rights, passed = f"tasks/{client.task}/qualification/{LANGUAGE}", [], False
    client.answer_all(f"{path}/practice/")
    # People who have failed request work nevertheless, and the server must refuse it.
    while not passed:
        status, trial = client.try_post(f"{path}/test/")
        if status == 403 and trial["code"] == "not_qualified":
            break
        if status != 200:
            raise BenchmarkFailed(f"{client.labeler.name} could not take the test: {trial}.")
        result = client.answer_all(f"{path}/test/")
        rights.append(result["right"])
        passed = result["passed"]
    with replies.lock:
        replies.tests[client.labeler.name], replies.passed[client.labeler.name] = rights, passed


def work_on(client: CrowdClient, replies: Replies, shift: Shift, pause: float) -> None:
    """Take units, and answer or skip them, until none are left."""
    labeler, world, made = client.labeler, client.world, 0
    while not shift.over:
        seen = shift.calls
        reply = client.next()
        lease = reply["lease"]
        if lease is None:
            if "paused" in reply["why"]:
                with replies.lock:
                    replies.paused.setdefault(labeler.name, made)
            if shift.wait(seen):
                time.sleep(pause)
            continue
        question = question_of(lease)
        if world.skips(labeler, question):
            judgment = client.post(f"leases/{lease['id']}/skip/", active_seconds=1.5)
        else:
            judgment = client.judge(lease, world.answer(labeler, question))
        shift.answered(skipped=judgment["kind"] == "skip")
        made += 1
        if client.chance.random() < RECONNECTS:
            client.close()
        with replies.lock:
            replies.judgments.append((labeler.name, question, judgment["kind"], judgment["label"]))


def let_loose(
    address: str,
    task: str,
    tokens: Mapping[Labeler, str],
    world: World,
    replies: Replies,
    log: Log,
    *,
    tested: bool = False,
    pause: float = 0.5,
) -> None:
    """Run all clients at the same time, each with a connection and token, until no units are left.

    tested: whether each first takes the test as often as allowed; all request work afterwards, even if they failed
    """
    shift = Shift(len(tokens))

    def live(labeler: Labeler, token: str) -> None:
        client = CrowdClient(address, log, token, task, labeler, world)
        try:
            if tested and labeler.name not in replies.passed:
                take_test(client, replies)
            work_on(client, replies, shift, pause)
        except BaseException:
            shift.stop()
            raise
        finally:
            client.close()

    start = time.monotonic()
    with ThreadPoolExecutor(len(tokens)) as pool:
        done = [pool.submit(live, labeler, token) for labeler, token in tokens.items()]
    log.seconds += time.monotonic() - start
    for future in done:
        future.result()
