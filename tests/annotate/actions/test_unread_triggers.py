"""Unread triggers from end to end: drawn from a uniform task, read, exported and evaluated; and refusals.

How they count is held to tables in evaluation/test_unread_triggers_sets.py.
"""

import json
import shutil

import pytest
from django.core.management import CommandError
from django.test import override_settings

from annotate.actions.registry import call_command
from annotate.core import stages
from annotate.core.estimation.proportions import proportion
from annotate.kinds import Answer
from annotate.models import Task
from annotate.quality import agreement_strata
from annotate.work import adjudication
from annotate.work.judgments import judge
from annotate.work.queue import take
from corpora.core.languages import ARTICLE_LABELS
from corpora.models import Corpus
from tests.annotate.acts import NO_CHECKS
from tests.annotate.corpus import POSTS
from tests.annotate.evaluation.figures import accuracy, by_label
from tests.annotate.goldsets.set_contents import card_of

pytestmark = pytest.mark.slow


NAME = "few"
SCRIPTS = ("th", "ru", "ko", "el", "ja", "he")  # on which the detectors agree nearly always
TRUTH = dict(line.split("\t")[:2] for line in POSTS.with_name("demo_truth.tsv").read_text().splitlines())
KEYS = sorted(key for key, label in TRUTH.items() if label in SCRIPTS)
# The labels of mine@1: it labels every sixth post Dutch or Basque. People confirm half of the Dutch ones.
PREDICTED = {key: TRUTH[key] if n % 6 else ("nl", "eu")[n % 12 // 6] for n, key in enumerate(KEYS)}
ANSWERS = {key: TRUTH[key] if n % 24 else "nl" for n, key in enumerate(KEYS)}
UNREAD = ("--design", "triggers", "--of", "stream", "--predictor", "mine@1")


@pytest.fixture(scope="module")
def few(django_db_setup, django_db_blocker, tmp_path_factory):
    """The data folder of an installation with the corpus, its votes and the predictor; not to be written to."""
    folder = tmp_path_factory.mktemp("few")
    posts, predictions = folder / "posts.jsonl", folder / "mine.tsv"
    lines = POSTS.read_text(encoding="utf-8").splitlines()
    posts.write_text("\n".join(line for line in lines if json.loads(line)["id"] in PREDICTED), encoding="utf-8")
    predictions.write_text("".join(f"{key}\t{label}\n" for key, label in PREDICTED.items()))
    data = folder / "var"
    with override_settings(DATA_DIR=data), django_db_blocker.unblock():
        call_command("import_corpus", NAME, str(posts), licence="CC0-1.0", text_may_leave=True)
        call_command("prelabel", NAME, processes=1)
        call_command("import_predictions", NAME, str(predictions), name="mine", version="1")
        Corpus.objects.all().delete()
    return data


@pytest.fixture
def stream(few, data_dir, db):
    """A uniform task with all posts of the corpus, eight audits per language, and no reader checks."""
    shutil.copytree(few, data_dir, dirs_exist_ok=True)
    Corpus.objects.create(name=NAME)
    options = {"audit_least": 8, "audit_limit": 1, "audit_recheck": 0, **NO_CHECKS}
    call_command("open_task", "stream", corpus=NAME, size=len(KEYS), seed="3", **options)
    return Task.objects.get()


@pytest.fixture
def people(person):
    return person("ann", " ".join(ARTICLE_LABELS)), person("ada", adjudicates=True)


@pytest.fixture
def run(capsys):
    """Return the report of `evaluate mine@1` on these sets."""

    def run(*sets):
        capsys.readouterr()
        call_command("evaluate", "mine@1", "--json", *(f"--gold={folder}" for folder in sets))
        return json.loads(capsys.readouterr().out)

    return run


def read(task, people, folder):
    """Answer all units correctly as reader and adjudicator, and export the set."""
    reader, adjudicator = people

    def label_of(unit):
        label = ANSWERS[unit.item.key]
        return label if unit.asked in ("", label) else f"not-{unit.asked}"

    while lease := take(reader, task):
        judge(reader, lease.pk, Answer(label_of(lease.unit)))
    for unit in task.units.filter(stage=stages.ADJUDICATION):
        adjudication.settle(adjudicator, unit.pk, Answer(label_of(unit), reason="I know"))
    call_command("export_gold", task.name, out=folder / task.name)
    return folder / task.name


def opened(*options, languages="nl eu", name="asked", **settings):
    call_command("open_task", name, *UNREAD, *options, corpus=NAME, seed="5", languages=languages, **settings)
    return Task.objects.get(name=name)


def unread(language):
    agreed = agreement_strata.unread(Task.objects.get(name="stream")).values_list("item__key", flat=True)
    return {key for key in agreed if PREDICTED[key] == language}


def width(estimate):
    return 1 if estimate["low"] is None else estimate["high"] - estimate["low"]


def test_precision_is_known_once_the_unread_triggers_are_read(stream, people, run, tmp_path):
    task = opened()
    assert (task.kind_slug, task.labels, task.title) == ("verify", ["eu", "nl"], "Is this post in Basque or Dutch?")
    for draw in task.draws.all():
        keys = set(task.units.filter(asked=draw.language).values_list("item__key", flat=True))
        assert keys == unread(draw.language)
        assert draw.size == draw.frame_size == len(keys) > 5
        assert (draw.predictor, draw.parameters, draw.chance) == ("mine@1", {"of": "stream"}, 1)
    whole, rest = read(stream, people, tmp_path), read(task, people, tmp_path)
    assert "It completes the uniform set `stream`" in card_of(rest)[1]
    alone, both = run(whole), run(rest, whole)
    assert both["warnings"] == alone["warnings"]
    assert both["words"]["precision"][0].startswith("Measured on the triggers set and uniform set")
    assert width(accuracy(both)) < width(accuracy(alone))
    for language in ("eu", "nl"):
        before, after = (by_label(report, "precision")[language] for report in (alone, both))
        positives = [key for key in KEYS if PREDICTED[key] == language]
        assert width(before) > 0.2
        assert after["units"] == before["units"] + len(unread(language)) == len(positives)
        # The detectors agree on neither language, so all its triggers were read and are simply counted.
        counted = proportion(sum(ANSWERS[key] == language for key in positives), len(positives))
        ends = counted.low, counted.value, counted.high
        assert (after["low"], after["value"], after["high"]) == pytest.approx(ends)
    assert by_label(both, "recall")["nl"]["units"] > by_label(alone, "recall")["nl"]["units"]


def test_some_by_lot_are_as_many_as_are_asked_for_in_each_language(stream, people, run, tmp_path):
    task = opened(size=4)
    drawn = {draw.language: (draw.size, draw.frame_size) for draw in task.draws.all()}
    assert drawn == {language: (4, len(unread(language))) for language in ("eu", "nl")}
    whole, some = read(stream, people, tmp_path), read(task, people, tmp_path)
    alone, both = run(whole), run(whole, some)
    for language in ("eu", "nl"):
        before, after = (by_label(report, "precision")[language] for report in (alone, both))
        assert after["units"] == before["units"] + 4
        assert width(after) < width(before)
    larger = opened("--reuse", name="larger")
    assert larger.units.filter(stage=stages.LABELLED).count() == 8
    with pytest.raises(CommandError, match="unread-triggers design"):
        call_command("extend_task", "larger", size=100)


def test_what_was_read_since_is_not_asked_again_and_where_nothing_is_left_it_is_said(stream, capsys):
    assert opened(languages="nl sw").labels == ["nl"]
    assert "Note: the design finds no post for: sw." in capsys.readouterr().err
    call_command("audit", "stream", add=len(KEYS))
    with pytest.raises(CommandError, match="People have already read every post that the predictor labels"):
        opened(name="again")


def test_what_cannot_be_asked_is_refused_in_a_sentence(stream, make_task):
    make_task([("de", "de", "de")], name="other")
    opened()
    options = {"design": "triggers", "of": "stream", "predictor": "mine@1", "languages": "nl", "seed": "5"}
    for name, value, why in (
        ("predictor", None, r"--predictor is needed to open a task by the unread-triggers design\."),
        ("of", None, r"--of is needed to open a task by the unread-triggers design\."),
        ("of", "none", r"There is no task 'none'\. Specify a uniform task from few\."),
        (
            "of",
            "asked",
            r"Annotators label all posts of asked, .* unread-triggers design\. Specify",
        ),
        ("of", "other", r"other is drawn from corpus corpus, not few\. Specify a uniform task from it\."),
        ("predictor", "cld2", "cld2 voted in the task stream, so it has the same label as the other voters where they"),
        ("languages", "sw", r"No post of corpus few fits .* any of the languages. People have already read every post"),
        ("window", "2014-07-01..2014-07-02", r"--window is not an option of verify tasks drawn by the unread-trig"),
    ):
        changed = {key: setting for key, setting in (options | {name: value}).items() if setting}
        with pytest.raises(CommandError, match=why):
            call_command("open_task", "t", corpus=NAME, **changed)
        assert not Task.objects.filter(name="t").exists()
