"""Functions that look up cases."""

from annotate.work.adjudication import to_adjudicate

LIST = "/tasks/task/adjudication/"


def where(unit):
    unit.refresh_from_db()
    return unit.stage, unit.label


def positions(task, annotator, *cut):
    return [unit.position for unit in to_adjudicate(task, annotator, *cut)]
