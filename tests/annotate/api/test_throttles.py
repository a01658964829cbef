"""Limits on API requests per minute, by person and by address."""

import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import django
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from annotate.models import Judgment
from annotate.pages import api_access
from tests.annotate.acts import signed_in
from tests.annotate.conftest import DISPUTED
from tests.annotate.programs import Program

BEGUN = 60 * 30_000_000.0  # seconds: a minute begins


@pytest.fixture
def clock(monkeypatch):
    """A clock stopped at second ten of a minute, which tests move on."""
    moved = SimpleNamespace(now=BEGUN + 10)
    monkeypatch.setattr(api_access, "time", SimpleNamespace(time=lambda: moved.now))
    return moved


@pytest.fixture
def rates(settings):
    def take(person, address):
        settings.API_RATE, settings.API_RATE_UNKNOWN = person, address

    take(3, 3)
    return take


@pytest.fixture
def ann(person):
    return Program(Client(), person("ann", "de"))


def unknown(path="/api/v1/tasks/", address="192.0.2.1", **headers):
    return Client(REMOTE_ADDR=address).get(path, headers=headers)


def statuses(ask, times):
    return [ask().status_code for _ in range(times)]


def test_what_a_person_sends_beyond_the_rate_is_refused_until_the_next_minute(ann, rates, clock):
    assert statuses(partial(ann.get, "tasks/"), 5) == [200] * 3 + [429] * 2
    refused = ann.get("tasks/")
    assert (refused.json()["code"], refused["Retry-After"]) == ("throttled", "50")
    assert refused.json()["detail"].startswith("The account (or the IP address, if there is no token) has exceeded")
    assert "Retry-After" in refused.json()["detail"]
    clock.now = BEGUN + 59.9
    assert ann.get("tasks/")["Retry-After"] == "1"
    clock.now = BEGUN + 60
    assert statuses(partial(ann.get, "tasks/"), 4) == [200] * 3 + [429]


def test_an_answer_that_is_refused_for_the_rate_can_be_sent_again(ann, rates, clock, make_task):
    make_task([DISPUTED])
    lease = ann.post("tasks/task/next/").json()["lease"]["id"]
    statuses(partial(ann.get, "tasks/"), 2)
    assert ann.post(f"leases/{lease}/judge/", label="de").status_code == 429
    assert not Judgment.objects.exists()
    clock.now += 50
    assert ann.post(f"leases/{lease}/judge/", label="de").status_code == 200


def test_each_person_is_counted_alone_whatever_they_come_by_and_pages_are_not_counted(ann, rates, clock, person):
    bea = person("bea", "de")
    by_session, by_token = signed_in(bea), Program(Client(), bea)
    assert statuses(partial(ann.get, "tasks/"), 4) == [200] * 3 + [429]
    assert statuses(partial(by_session.get, "/api/v1/tasks/"), 2) == [200] * 2
    assert statuses(partial(by_token.get, "tasks/"), 2) == [200, 429]
    assert statuses(partial(by_session.get, "/account/"), 5) == [200] * 5


@pytest.mark.parametrize(
    ("path", "headers", "answer"),
    [
        ("/api/v1/tasks/", {}, 401),
        ("/api/v1/tasks/", {"Authorization": "Token 0000"}, 401),
        ("/api/v1/schema/", {}, 200),
        ("/api/v1/", {}, 200),
    ],
)
def test_whoever_has_no_token_is_counted_by_address(ann, rates, clock, path, headers, answer):
    assert statuses(partial(unknown, path, **headers), 5) == [answer] * 3 + [429] * 2
    assert unknown(path, **headers)["Retry-After"] == "50"
    assert unknown(path, address="192.0.2.2", **headers).status_code == answer
    # A person with a token is not blocked by others' requests from the same address.
    ann.client = Client(REMOTE_ADDR="192.0.2.1")
    assert ann.get("tasks/").status_code == 200


def test_a_rate_of_0_is_no_limit_and_what_cannot_be_counted_is_let_through(ann, rates, clock, data_dir):
    rates(0, 0)
    assert statuses(partial(ann.get, "tasks/"), 9) == [200] * 9
    assert statuses(unknown, 9) == [401] * 9
    rates(3, 3)
    (data_dir / "requests").write_text("in the place of the folder")
    assert statuses(partial(ann.get, "tasks/"), 5) == [200] * 5


def test_counting_costs_no_statement(ann, rates, make_task):
    make_task([DISPUTED] * 3)
    counts = []
    for rate in (0, 1000):
        rates(rate, rate)
        with CaptureQueriesContext(connection) as run:
            lease = ann.post("tasks/task/next/").json()["lease"]["id"]
            assert ann.post(f"leases/{lease}/judge/", label="de").status_code == 200
        counts.append(len(run.captured_queries))
    assert counts[0] == counts[1]


def count_many(path, times):
    return [api_access._count(path, 7, 1) for _ in range(times)]


def test_requests_at_once_in_several_threads_are_all_counted(tmp_path, monkeypatch):
    read = os.pread

    def read_and_wait(*of):
        try:
            return read(*of)
        finally:
            time.sleep(0.001)  # another thread would read the same, if the file were not locked

    monkeypatch.setattr(api_access.os, "pread", read_and_wait)
    with ThreadPoolExecutor(4) as threads:
        runs = list(threads.map(partial(count_many, tmp_path / "requests" / "people"), [10] * 4))
    assert sorted(number for run in runs for number in run) == list(range(1, 41))


@pytest.mark.slow
def test_requests_at_once_in_several_workers_are_all_counted(tmp_path):
    path, rounds = tmp_path / "requests" / "people", 200
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, spawn, django.setup) as workers, ThreadPoolExecutor(4) as threads:
        runs = [workers.submit(count_many, path, rounds) for _ in range(2)]
        runs += [threads.submit(count_many, path, rounds) for _ in range(4)]
        numbers = sorted(number for run in runs for number in run.result())
    assert numbers == list(range(1, 6 * rounds + 1))


def test_however_many_addresses_come_the_file_stays_small(rates, clock, settings):
    for number in range(40):
        assert unknown(address=f"2001:db8:{number:x}::1").status_code == 401
    assert (settings.DATA_DIR / "requests" / "addresses").stat().st_size <= 512 * 1024
