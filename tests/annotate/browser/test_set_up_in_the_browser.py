"""From a file to a gold set in the browser alone, with the errors on the way."""

import json
import subprocess
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from datasets import load_dataset
from django.conf import settings as django_settings

from annotate.actions import job_worker
from annotate.core import stages
from annotate.kinds import Answer
from annotate.models import Annotator, Judgment, Task
from annotate.work.judgments import judge
from annotate.work.queue import release_all, take
from tests.annotate.api.test_http_load import database_url
from tests.annotate.hands import RUSSIAN, Hands

pytestmark = pytest.mark.slow


POSTS = django_settings.BASE_DIR / "fixtures" / "demo_posts.jsonl"
TRUTH = django_settings.BASE_DIR / "fixtures" / "demo_truth.tsv"
LANGUAGES = "de en fr nl es it pt"


@pytest.fixture
def at_work(transactional_db, data_dir, monkeypatch):
    """Run the jobs, as `assay serve` does."""
    monkeypatch.setenv("DATABASE_URL", database_url())
    (data_dir / "jobs").mkdir()
    with subprocess.Popen(
        job_worker.watcher_command("alone"), env=job_worker.environment(), stdin=subprocess.DEVNULL
    ) as watching:
        yield
        watching.terminate()


def renamed(path, rows):
    """The first posts of the fixture with other column names, a duplicate row and a row without text."""
    posts = [json.loads(line) for line in POSTS.read_text(encoding="utf-8").splitlines()[:rows]]
    lines = [{"tweet_id": post["id"], "body": post["text"], "user": post["author"]} for post in posts]
    lines += [lines[0], {"tweet_id": "1", "body": ""}]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def done(page):
    """Wait on a job's page until the job ends."""
    page.locator(".state b").wait_for()
    assert page.locator(".state.good").count() == 1, page.inner_text(".job")


def come_in(page, link):
    """Set a password with an invitation link, and start by pressing Enter."""
    page.goto(link)
    page.fill("[name=new_password1]", "quite a long one")
    page.fill("[name=new_password2]", "quite a long one")
    page.click("main button.primary")
    page.locator("button:focus", has_text="Start").wait_for()
    page.keyboard.press("Enter")
    page.locator("button.primary", has_text="Start").click()  # below the guidelines
    page.wait_for_selector("#post")
    return Hands(page, RUSSIAN)


class Hand:
    """A manager who counts their clicks."""

    def __init__(self, page):
        self.page, self.clicks = page, 0

    def click(self, selector):
        self.clicks += 1
        self.page.click(selector)

    def choose(self, selector, choose):
        self.clicks += 1
        choose(selector)


def current_step(page):
    return page.inner_text(".stepper [aria-current=step]")


def test_from_a_file_to_a_gold_set_without_a_shell_in_fourteen_clicks(at_work, new_page, manager, tmp_path, data_dir):
    page = new_page(user=manager)
    hand = Hand(page)
    page.goto("/")
    file = renamed(tmp_path / "july.jsonl", 200)
    hand.choose("[name=upload-file]", lambda field: page.set_input_files(field, file))
    hand.click("main button.primary")
    assert page.locator("[name=column-id]").input_value() == "tweet_id"
    assert page.locator("[name=column-text]").input_value() == "body"
    assert (page.input_value("[name=corpus]"), current_step(page)) == ("july", "Columns and rights")
    hand.click("[name=text_may_leave][value=yes]")
    page.fill("[name=licence]", "CC-BY-4.0")
    hand.click("main button.primary")
    assert current_step(page) in ("Columns and rights", "Detectors")  # depends on whether the corpus exists already
    page.wait_for_url("**/new-task/**")  # the job's page continues when the job ends
    assert "200 posts from 1 new file; 1 duplicate dropped, 1 row rejected." in page.inner_text(".notice")
    assert "200 posts have votes" in page.inner_text(".notice")
    with page.expect_download() as rejects:
        page.click(".stepper >> text=Detectors")
        page.click("text=Rejected rows")
    assert "text" in json.loads(Path(rejects.value.path()).read_text())["reason"]
    page.goto("/manage/")  # a person who left the set-up resumes it from the first page
    page.click("main a.primary:has-text('Choose a question')")

    hand.click("main h2:has-text('Uniform')")
    assert page.input_value("[name=size]") == "200"
    page.fill("[name=size]", "60")
    page.fill("[name=labels]", LANGUAGES)
    page.locator("[name=size]").press("Tab")
    page.wait_for_selector(".headline:has-text('of 60 posts; ')")
    page.click("summary:has-text('Advanced')")
    page.fill("[name=seed]", "2014")
    page.click("button:has-text('Preview the workload')")
    done(page)
    assert "Nothing was stored." in page.inner_text(".job")
    assert not Task.objects.exists()
    hand.click("button[name=for_good]")
    page.wait_for_url("**/accounts/new/**")
    task = Task.objects.get()
    assert (task.name, task.draw.size, task.draw.seed) == ("july-language", 60, "2014")

    assert current_step(page) == "People"
    page.fill("[name=people]", "ann, Ann Lee\nbea, Bea Ray")
    page.locator("[name=language]").first.fill(LANGUAGES.replace(" ", ", "))
    page.locator("[name=level]").first.select_option("5")
    hand.click("main button.primary")
    for number in (1, 2):
        hand.click(f"[data-copies=link-{number}]")
    for number in (1, 2):
        hands = come_in(new_page(), page.input_value(f"#link-{number}"))
        for _ in range(3):
            hands.press_and_wait("Digit1")
    assert Counter(Judgment.objects.values_list("annotator__user__username", flat=True)) == {"ann": 3, "bea": 3}

    # The rest of their work, done directly.
    reader = Annotator.objects.get(user__username="ann")
    truth = dict(line.split("\t") for line in TRUTH.read_text(encoding="utf-8").splitlines())
    while lease := take(reader, task):
        label = truth[lease.unit.item.key]
        judge(reader, lease.pk, Answer(label) if label in task.labels else Answer("und", "gibberish"))
    # The other person's open unit is returned.
    release_all(Annotator.objects.get(user__username="bea"), task)
    while lease := take(reader, task):
        judge(reader, lease.pk, Answer("und", "gibberish"))
    assert not task.units.filter(stage=stages.QUEUED).exists()

    hand.click("main button.primary")
    hand.click("main button.primary:has-text('Export')")
    done(page)
    with page.expect_download() as gold:
        hand.click("text=Download all")
    with zipfile.ZipFile(Path(gold.value.path())) as packed:
        packed.extractall(tmp_path / "gold")
    manifest = json.loads((tmp_path / "gold" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["counts"]["posts"] == 60
    [loaded] = load_dataset(str(tmp_path / "gold"), cache_dir=str(tmp_path / "cache")).values()
    assert len(loaded) == manifest["counts"]["labelled"]

    hand.click("text=Measure a classifier on this set")
    assert page.input_value("[name=predictions]") == "langid"
    hand.click("main button.primary")
    done(page)
    assert hand.clicks <= 14
    assert "langid" in page.inner_text(".job")
    assert page.locator(".job svg").count()
    every = page.locator("#errors tbody tr:visible").count()
    page.check("#errors input[value=pair-0]")
    assert page.locator("#errors tbody tr:visible").count() == page.locator("#errors tbody tr.pair-0").count() < every
