"""What people say of a task with one unit, and where that goes."""

from annotate.kinds import Answer
from annotate.work.judgments import judge, skip
from annotate.work.queue import take

GERMAN, ENGLISH, FRENCH = Answer("de"), Answer("en"), Answer("fr")


def answer(annotator, task, said=GERMAN):
    return judge(annotator, take(annotator, task).pk, said)


def pass_on(annotator, task):
    return skip(annotator, take(annotator, task).pk)


def where(task):
    unit = task.units.get()
    return unit.stage, unit.label


def history(task):
    return [(t.event, t.to_stage, t.round, t.language) for t in task.units.get().transitions.all()]
