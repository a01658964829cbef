"""The tutorial works, with people at a real server."""

import csv
import re

import pytest

from benchmarks.clients import Answer, Browser, Log, adjudicate, key_of, let_read
from benchmarks.place import new_place
from benchmarks.world import Reader
from tests.docs.newcomer import DOCS, Newcomer, matches

pytestmark = pytest.mark.slow


TASK = "language-small"
# Anna's answers to the posts, in the order of the file; None is a skip.
ANNA = [*["en"] * 6, *["de"] * 6, *["es"] * 6, "en", "und", "und", "de", "und", "und", None, "de"]


def truth(newcomer):
    with open(newcomer.folder / "posts.csv", encoding="utf-8", newline="") as file:
        return dict(zip((key_of(row["text"]) for row in csv.DictReader(file)), ANNA, strict=True))


def set_passwords(newcomer):
    links = re.findall(r"^(\w+)\s.*(/invite/\S+)$", "".join(newcomer.printed), re.MULTILINE)
    assert [name for name, _ in links] == ["anna", "ada"]
    for name, link in links:
        browser = Browser(newcomer.address, Log())
        browser.accept_invite(link, f"{name} has a long password")
        browser.close()


def read(newcomer):
    labels, log = truth(newcomer), Log()
    token = newcomer.shell("assay create_token anna").split()[-1]
    anna = Reader("anna", ("en", "de", "es"))
    let_read(newcomer.address, TASK, {anna: token}, lambda _, key: Answer(labels[key]), log, pause=0.1)
    assert log.kinds() == {"answer": 25, "skip": 1}


def decide(newcomer):
    labels, log = truth(newcomer), Log()
    browser = Browser(newcomer.address, log)
    adjudicate(browser, TASK, "ada", lambda _, key, offered: Answer(labels[key] or "und", "I read the language"))
    browser.close()
    assert log.acknowledged


DEEDS = {"Set the passwords": set_passwords, "Read the posts as Anna": read, "Decide as Ada": decide}


def test_the_tutorial_leads_from_nothing_to_a_measured_classifier():
    with new_place(sqlite=True) as place:
        newcomer = Newcomer(place)
        newcomer.follow(DOCS / "tutorial.md", DEEDS)
        for folder in ("report", "comparison"):
            assert "<h1>words@1" in (newcomer.folder / folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("printed", "same"), [("3 posts in gold", True), ("3 posts in silver", False), ("", False)])
def test_a_shown_output_is_held_to_what_was_printed(printed, same):
    assert matches("… posts in gold\n", printed) == same
