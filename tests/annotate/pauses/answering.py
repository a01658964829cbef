"""Functions that answer correctly, incorrectly or in another way, and that read the stored answers."""

from annotate.kinds import Answer
from annotate.models import Judgment
from annotate.work.judgments import judge
from annotate.work.queue import take

WATCHED = {"gold_share": 0.5, "redundancy": 3}
KNOWN = {"queue": ["1", "0"] * 4}
YES, NO = Answer("1"), Answer("0")


def known(unit):
    return Answer(unit.known_answer) if unit.honeypot else YES


def wrong(unit):
    return Answer("0" if known(unit).label == "1" else "1")


def work(annotator, task, say=known, units=1000):
    """Answer up to this many units, and return the judgments."""
    made = []
    while len(made) < units and (lease := take(annotator, task)):
        made.append(judge(annotator, lease.pk, say(lease.unit)))
    return made


def asked(judgments):
    return sum(judgment.unit.honeypot for judgment in judgments)


def live(annotator):
    return Judgment.objects.filter(annotator=annotator, voided_at=None)
