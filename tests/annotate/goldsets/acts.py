"""A task on which people do all the work, so that it can be exported."""

import resource
from contextlib import contextmanager

from annotate.actions.commands import call_command
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
    """Three readers of nearly everything and two adjudicators, whose names occur nowhere else."""
    made = []
    for number, (first, last) in enumerate([("Quirina", "Zxu"), ("Xerxqes", "Vaq"), ("Wqillow", "Kqx")]):
        annotator = make_person(f"reader_qzx{number}", "en de fr es ru it pt nl pl tr ar")
        made.append(annotator)
        annotator.user.first_name, annotator.user.last_name = first, last
        annotator.user.save()
    return made, [make_person("judge_qzx1", adjudicates=True), make_person("judge_qzx2", adjudicates=True)]


def open_small(corpus):
    """The whole corpus but five posts, a part of its agreement to be audited; opened and not yet worked on."""
    audit = {"audit_share": 0.3, "audit_least": 1, "audit_recheck": 0.5, "audit_limit": 1}
    return open_task("gold", corpus, 60, "7", title=TITLE, least_level=3, **audit).task


def work(task, readers, answers):
    """The readers take turns until nothing is left for them; answers: an iterable of labels, None for a skip."""
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
    """Settles one, discards the next, and so on; the first decision is taken back once."""
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
    """People do all the work; units that nobody reads go to the next language, then to the adjudicators."""
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
    """The system refuses to write more to any file, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
