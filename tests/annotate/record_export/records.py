"""Records that are difficult for file formats, and people who answer them."""

from annotate.kinds import Answer
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from tests.annotate.goldsets.set_contents import json_lines
from tests.annotate.goldsets.test_xglue import HARD

LANGUAGES = ("en", "de", "fr")
EXAMPLE = {"query": "cheap *flights*", "title": "Flights for less", "description": "Book\nnow, fly later."}
# The label depends only on the record's number, so that tests are easy to follow.
GRADES = ("4", "3", "2", "1", "0")
FIELDS = {
    "ad_relevance": ("query", "title", "description"),
    "qa_match": ("question", "passage"),
    "web_ranking": ("query", "title", "snippet"),
}
ROWS, HIDDEN = 20, 8


def record(task_type, language, number):
    """Return a record. Two consecutive records share the first field, and some fields are difficult for files."""
    first, *others = FIELDS[task_type]
    hard = HARD[number % len(HARD)]
    values = {first: f"{HARD[number // 2 % len(HARD)]} {language} {number // 2}"}
    values |= {field: f"{hard if place else field} {language} {number} {hard}" for place, field in enumerate(others)}
    return {"id": f"{language}{number}", "language": language, **values}


def number_of(unit):
    return int(unit.item.key[2:]) if unit.item.key[2:].isdigit() else 0


def label_of(unit):
    labels = unit.task.labels
    return labels[number_of(unit) // 3 % len(labels)]


def most_agree(person, unit):
    """Answer like the others, except that the last of four people differs on every fifth record."""
    label, labels = label_of(unit), unit.task.labels
    return labels[labels.index(label) - 1] if person == 3 and number_of(unit) % 5 == 0 else label


def work(task, people, says=most_agree):
    """Have the people work in turn until no units are left. says: function of (index of the person, unit) that returns
    a label, or None for a skip.
    """
    busy = True
    while busy:
        busy = False
        for place, person in enumerate(people):
            if lease := take(person, task):
                busy = True
                if label := says(place, lease.unit):
                    judge(person, lease.pk, Answer(label, comment="a comment\twith a tab"), 1.5)
                else:
                    skip(person, lease.pk, 0.5)


def rows_of(out, mark=""):
    return json_lines(out / f"gold{mark}.jsonl")
