"""What readers say before an adjudicator's work, and where it stands."""

from annotate.kinds import Answer
from annotate.work.adjudication import to_adjudicate
from annotate.work.judgments import judge, skip
from annotate.work.queue import release, take

LIST = "/tasks/task/adjudication/"


def say(reader, task, unit, word):
    lease = take(reader, task)
    if lease is None or lease.unit_id != unit.pk:  # the other's skip has sent it to the adjudicator already
        if lease:
            release(reader, lease.pk)
        return
    if word == "-":
        skip(reader, lease.pk)
    else:
        judge(reader, lease.pk, Answer(word))


def where(unit):
    unit.refresh_from_db()
    return unit.stage, unit.label


def positions(task, annotator, *cut):
    return [unit.position for unit in to_adjudicate(task, annotator, *cut)]
