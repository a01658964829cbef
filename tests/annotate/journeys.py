"""Journeys of a unit: the actions of people on it, and the state after each action."""

import ast
import inspect

import pytest
from django.contrib.auth.models import User

from annotate.kinds import Answer
from annotate.work.adjudication import discard, settle, unsettle
from annotate.work.answer_changes import change, undo
from annotate.work.interventions import void
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from annotate.work.routing import reroute
from tests.annotate.conftest import DISPUTED, make_manager, make_person

GERMAN, ENGLISH, FRENCH = Answer("de"), Answer("en"), Answer("fr")


def answer(annotator, task, label=GERMAN):
    return judge(annotator, take(annotator, task).pk, label)


def pass_on(annotator, task):
    return skip(annotator, take(annotator, task).pk)


def the_unit(task):
    return task.units.get(honeypot=False)


def where(task):
    unit = the_unit(task)
    return unit.stage, unit.label


def history(task):
    return [(t.event, t.to_stage, t.round, t.language) for t in the_unit(task).transitions.all()]


def journeys(table):
    """Parametrize a test with the arguments `post`, `options`, `people` and `steps` with the journeys of a table.

    A journey is a line with its rule, and indented lines such as "redundancy=2 ann:de both:de+en | bea:de = ann fr >
    named QUEUED fr 2; both skip": options of the task, then people with their languages, then steps.

    post: an option that states the unit: votes, or the kind of a record; disputed by default
    people: people without languages are adjudicators; those after the bar join with the step "bea joins"
    steps: actions, with the last event if it matters, and the resulting stage, queue, round and label
    """
    rows = []
    for line in inspect.cleandoc(table).splitlines():
        if line.startswith(" "):
            rows[-1].append(line.strip())
        else:
            rows.append([line])
    return pytest.mark.parametrize(("post", "options", "people", "steps"), [_row(*row) for row in rows])


def _row(rule, *lines):
    before, _, steps = " ".join(lines).partition(" = ")
    words = before.split()
    options = {"post": DISPUTED} | dict(_option(*word.split("=")) for word in words if "=" in word)
    people = " ".join(word for word in words if "=" not in word)
    return pytest.param(options.pop("post"), options, people, steps, id=rule)


def _option(name, value):
    if "," in value:
        values = [part.replace("+", " ") for part in value.split(",")]
        return name, tuple(values) if name == "post" else values
    try:
        return name, ast.literal_eval(value)
    except ValueError:
        return name, value


def follow(task, people, steps):
    """Run the steps of a journey, check the state after each of them, and return the people by name."""
    present, _, later = people.partition("|")
    by_name, leases = dict(map(_make, present.split())), {}
    for step in steps.split(";"):
        act, _, expected = step.strip().partition(" > ")
        name, *words = act.split()
        if words == ["joins"]:
            by_name |= [_make(next(word for word in later.split() if word.startswith(f"{name}:")))]
        else:
            _act(task, by_name.get(name), leases, *words)
        if expected:
            unit = the_unit(task)
            reached = f"{unit.stage} {unit.language} {unit.round} {unit.label}".rstrip()
            if expected[0].islower():
                reached = f"{history(task)[-1][0]} {reached}"
            assert reached == expected, f"{reached} after {step}"
    return by_name


def _make(word):
    name, languages = word.split(":")
    return name, make_person(name, languages.replace("+", " "), adjudicates=not languages)


def _act(task, annotator, leases, act, label=None):
    """Run one action. leases: the open lease of each person"""
    if act == "nothing":
        assert take(annotator, task) is None, f"{annotator} is given something"
    elif act == "takes":
        leases[annotator] = take(annotator, task)
    elif act == "undo":
        leases[annotator] = undo(annotator, task)
    elif act == "changes":
        change(annotator, task, annotator.judgments.live().get(unit__task=task).pk, Answer(label))
    elif act == "leaves":
        annotator.user.is_active = False
        annotator.user.save()
    elif act == "voided":
        void(annotator, task, by=User.objects.filter(is_superuser=True).first() or make_manager(), reason="guessed")
    elif act == "settles":
        settle(annotator, the_unit(task).pk, Answer(label, "I read it"))
    elif act == "discards":
        discard(annotator, the_unit(task).pk, "nobody can tell")
    elif act == "unsettles":
        unsettle(annotator, the_unit(task).pk)
    elif act == "rerouted":
        reroute(task)
    else:
        lease = leases.pop(annotator, None) or take(annotator, task)
        skip(annotator, lease.pk) if act == "skip" else judge(annotator, lease.pk, Answer(act))
