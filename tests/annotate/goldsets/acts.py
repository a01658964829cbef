"""Functions that open a task and complete it, so that it can be exported."""

import resource
from contextlib import contextmanager

from annotate.actions.registry import call_command
from annotate.core import stages
from annotate.kinds import Answer
from annotate.work.adjudication import discard, settle, to_adjudicate, unsettle
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from corpora.storage.layout import Manifest, Part, corpora_dir, write_manifest
from tests.annotate.acts import open_task
from tests.annotate.conftest import make_person

TITLE = """What's "this": a test?"""


def make_people():
    """Return three readers of almost all languages and two adjudicators, with unique names."""
    readers = []
    for number, (first, last) in enumerate([("Quirina", "Zxu"), ("Xerxqes", "Vaq"), ("Wqillow", "Kqx")]):
        annotator = make_person(f"reader_qzx{number}", "en de fr es ru it pt nl pl tr ar")
        readers.append(annotator)
        annotator.user.first_name, annotator.user.last_name = first, last
        annotator.user.save()
    return readers, [make_person("judge_qzx1", adjudicates=True), make_person("judge_qzx2", adjudicates=True)]


def open_small(corpus):
    """Open a task with all but five posts of the corpus and with audits. Nobody has worked on it yet."""
    audit = {"audit_share": 0.3, "audit_least": 1, "audit_recheck": 0.5, "audit_limit": 1}
    return open_task("gold", corpus, 60, "7", title=TITLE, least_level=3, **audit).task


def work(task, readers, answers):
    """Have the readers work in turn until no units are left. answers: labels, or None for a skip."""
    answers = iter(answers)
    busy = True
    while busy:
        busy = False
        for reader in readers:
            if lease := take(reader, task):
                busy = True
                if answer := next(answers):
                    judge(reader, lease.pk, answer, 1.5)
                else:
                    skip(reader, lease.pk, 0.25)


def adjudicate(task, adjudicators):
    """Alternately settle and discard cases. The first decision is undone once."""
    first, _ = adjudicators
    for number, unit in enumerate(list(to_adjudicate(task, first))):
        adjudicator = adjudicators[number % 2]
        if number % 2:
            discard(adjudicator, unit.pk, "names only")
        else:
            settle(adjudicator, unit.pk, Answer("en", "looked it up", "a comment,\twith a tab"))
        if number == 0:
            unsettle(adjudicator, unit.pk)
            settle(adjudicator, unit.pk, Answer("de", "looked again"))


def finish(task, people, answers):
    """Complete a task. Units that nobody can read go to the next language and then to the adjudicators."""
    readers, adjudicators = people
    work(task, readers, answers)
    call_command("reroute", task.name)
    work(task, readers, answers)
    adjudicate(task, adjudicators)
    assert not task.units.exclude(stage__in=stages.FINISHED).exists()


def with_manifest(corpus="corpus"):
    (corpora_dir() / corpus).mkdir(parents=True)
    write_manifest(corpus, Manifest("CC0-1.0", True, "", parts=(Part("x", 8, "0"),)))


@contextmanager
def no_file_longer_than(size):
    """Limit the size of all files, which has the effect of a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
