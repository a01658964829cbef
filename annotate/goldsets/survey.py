"""What is particular to the exported set of a task of records: its rows, their splits, and what is told of the people.

A row has the label that most gave, and beside it what Dawid and Skene's model says. Which split it is in is drawn over
the rows that are kept. gold_files.py writes the rows, xglue.py the published files.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from django.db.models import Count, F, Max, Min

from annotate.core import stages
from annotate.core.answers import SLACK
from annotate.core.estimation import proportion
from annotate.core.splits import FAR, TRAINED_IN, Miss, Row, misses, split
from annotate.goldsets import rows as gold
from annotate.goldsets.formats import xglue
from annotate.kinds import TASK_TYPES
from annotate.models import GoldAnswer, Judgment, Task, Trial, Unit
from annotate.quality import agreement, honeypots
from annotate.reports.numbers import percent
from annotate.reports.predictor_report import name_of
from annotate.work.routing import qualified, same
from corpora.core.languages import UND
from corpora.models import Item

# Why a record is not in the set.
EXAMPLE, GOLD_ANSWER, UNFINISHED = "guidelines", "gold_answer", "unfinished"
REASONS = {
    "no_majority": "the answers give no label",
    "skipped": "too many people could not tell",
    "adjudicator": "an adjudicator could not tell either",
    GOLD_ANSWER: "says the same as a gold answer of the task",
    EXAMPLE: "is an example of the guidelines",
    UNFINISHED: "waits for people",
}
# The move by which a unit was discarded -> why.
DISCARDED_BY = {"conflicted": "no_majority", "exhausted": "skipped", "discarded": "adjudicator"}
# Letters and digits that a record has at least, if it is to be known again in guidelines, which may well say "cheap
# flights" without quoting a record.
LEAST_LETTERS = 20
# Thai and Lao, Myanmar, Khmer, Kana, Han: written without spaces between words.
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
# Of what agreeing.py reports, what is published: nothing about single people.
AGREEMENT = ("units", "units_of_two", "annotators", "judgments", "observed", "nominal", "ordinal")


@dataclass(frozen=True)
class Survey:
    """What is read of a task before its rows are written.

    known: unit -> why it is left out, whatever people said of it; splits: id -> split, of the records in the set;
    off: language -> which of its splits are far from their share, and why, in a sentence; answers: those that count,
    none on what is known.
    """

    known: Mapping[int, str]
    splits: Mapping[str, str]
    off: Mapping[str, str]
    answers: agreement.Fitted


def survey(task: Task, shares: Mapping, seed: str) -> Survey:
    """shares, seed: of the splits."""
    reason_of, known, kept = _known(task), {}, []
    apart = TASK_TYPES[task.task_type].apart
    for unit in gold.work_of(task).select_related("item", "copy_of").iterator(chunk_size=gold.CHUNK):
        if reason := reason_of(unit.item):
            known[unit.pk] = reason
        elif (unit.copy_of or unit).label:
            kept.append(Row(unit.item.key, unit.item.language, [unit.item.fields[field] for field in apart]))
    splits = split(kept, shares, seed=seed)
    off = {
        language: _off(language, list(found))
        for language, found in groupby(misses(kept, shares, splits), attrgetter("language"))
    }
    return Survey(known, splits, off, agreement.fitted(task, without=known))


def _off(language: str, found: list[Miss]) -> str:
    """In English, train has 40% of the records and not 80%, …: 600 of 1,000 …"""
    told = ", ".join(
        f"{miss.split} has {percent(miss.got)} {'' if place else 'of the records '}and not {percent(miss.wanted)}"
        for place, miss in enumerate(found)
    )
    first, why = found[0], []
    if first.bound:
        untrained = f", and only {TRAINED_IN} is trained on" if language == TRAINED_IN else ""
        why.append(f"{first.bound:,} of {first.rows:,} belong together with records in other languages{untrained}")
    if first.largest > max(1, FAR * first.rows):
        why.append(f"{first.largest:,} of {first.rows:,} belong together, and are in one split")
    words = "; ".join(why) or f"the set has only {first.rows:,} there"
    where = "Without a language" if language == UND else f"In {name_of(language)}"
    return f"{where}, {told}: {words}."


def rows(task: Task, fields: tuple[str, ...], found: Survey, *, with_text: bool) -> Iterator[dict]:
    """One row a record, in the order of the draw. left_out: why it is not in the set; without the key if it is.

    A copy has the label and the judgments of the unit that says the same, which `judged_as` names. Without the right to
    the text there are neither the fields nor what leads to them, nor what may quote them. Hidden gold answers are not
    there, nor is anything that was answered to one.
    """
    opinions = agreement.second_opinions(found.answers)
    chances = {draw.language: draw.chance for draw in task.draws.all()}
    units = gold.work_of(task).select_related("item", "copy_of__item")
    for unit in gold.with_history(units).iterator(chunk_size=gold.CHUNK):
        judged, item = unit.copy_of or unit, unit.item
        left_out = found.known.get(unit.pk) or _left_out(judged)
        row = {
            "id": item.key,
            "language": item.language or None,
            "split": None if left_out else found.splits[item.key],
            **({field: item.fields[field] for field in fields} if with_text else {}),
            "label": judged.label or None,
            **_opinion(opinions.get(judged.pk)),
            "stage": judged.stage,
            "chance": chances.get(item.language) or chances.get(""),
            "judged_as": judged.item.key if unit.copy_of else None,
            "posted_at": item.posted_at,
            "author": item.author or None,
            "url": item.url or None,
            **gold.history(judged, with_text),
        }
        if not with_text:
            del row["author"], row["url"]
        yield row | ({"left_out": left_out, "left_out_why": _why(judged, with_text)} if left_out else {})


def _opinion(posterior: Mapping[str, float] | None) -> dict:
    """The model's label, None where it is undecided, and the posterior of what it finds the likeliest."""
    if not posterior:
        return {"dawid_skene": None, "posterior": None}
    best = max(posterior.values())
    likeliest = [label for label, share in posterior.items() if share >= best - SLACK]
    # Sums of floats may differ in the last digits on another machine.
    return {"dawid_skene": likeliest[0] if len(likeliest) == 1 else None, "posterior": round(best, 6)}


# --- what is left out


def told_of_left_out(row: dict) -> dict:
    """What the file of those that are left out says of a row: of one with a known answer nothing that tells it."""
    if row["left_out"] in (GOLD_ANSWER, EXAMPLE):
        return {key: row[key] for key in ("id", "left_out")}
    return row


def _left_out(judged: Unit) -> str:
    """Why a unit is not in the set by what people did; empty where it is."""
    if judged.label:
        return ""
    if judged.stage != stages.DISCARDED:
        return UNFINISHED
    *_, last = judged.transitions.all()
    return DISCARDED_BY[last.event]


def _why(judged: Unit, with_text: bool) -> str | None:
    """An adjudicator's words, which may quote the record."""
    said = [j.reason for j in judged.judgments.all() if j.kind == Judgment.DISCARD and j.voided_at is None]
    return said[-1] if said and with_text else None


def _known(task: Task) -> Callable[[Item], str]:
    """Whether an item's label was told to somebody: which of the reasons, or none.

    The opening of a task takes care of its gold answers; these may have been added since, and guidelines change.
    """
    answers = {same(answer.item) for answer in task.gold_answers.select_related("item")}
    texts = [f" {_words(text)} " for text in task.guidelines.order_by("pk").values_list("text", flat=True)]

    def reason(item: Item) -> str:
        if same(item) in answers:
            return GOLD_ANSWER
        values = list(filter(None, map(_words, item.fields.values() or [item.text])))
        long_enough = sum(map(len, values)) - sum(value.count(" ") for value in values) >= LEAST_LETTERS
        told = long_enough and any(all(f" {value} " in text for value in values) for text in texts)
        return EXAMPLE if told else ""

    return reason


def _words(text: str) -> str:
    """Letters and digits alone: Markdown marks, quotes and breaks of lines are no part of an example.

    Words stand between single spaces; where a script has no spaces, so does every character.
    """
    return " ".join(re.sub(r"[\W_]+", " ", UNSPACED.sub(r" \g<0> ", text.casefold())).split())


# --- for the manifest


def about(task: Task, found: Survey) -> dict:
    """Who labelled, how they were chosen and watched, and how far they agree; nothing by which one could be known."""
    answered = Judgment.objects.filter(unit__in=gold.work_of(task).order_by(), kind=Judgment.ANSWER)
    pools = dict.fromkeys((GoldAnswer.PRACTICE, GoldAnswer.TEST, GoldAnswer.QUEUE), 0)
    for purpose in task.gold_answers.values_list("purpose", flat=True):
        pools[purpose] += 1
    # Not those that a manager voided: the others count, and it is them that this tells of.
    asked = honeypots.answers(task).filter(voided_at=None)
    right, of = asked.filter(label=F("unit__gold_answer")).count(), asked.count()
    each = answered.filter(voided_at=None).values("unit").annotate(answers=Count("pk"))
    held = qualified(task).values("annotator").distinct()
    by_test = held.filter(trial__isnull=False)
    tests = Trial.objects.filter(task=task, kind=Trial.TEST, finished_at__isnull=False)
    return {
        "people": {
            "annotators": answered.filter(voided_at=None).values("annotator").distinct().count(),
            "answers": answered.filter(voided_at=None).count(),
            "answers_each": each.aggregate(least=Min("answers"), most=Max("answers")),
            "voided_by_manager": answered.filter(voided_by__isnull=False).count(),
            "qualified": {
                "by_test": by_test.count(),
                "let_in": held.exclude(annotator__in=by_test.values("annotator")).count(),
            },
            "tests": {"taken": tests.count(), "passed": tests.filter(passed=True).count()},
            "paused": task.pauses.values("annotator").distinct().count(),
        },
        "gold_answers": pools,
        "honeypots": {"asked": of, "right": right, "accuracy": proportion(right, of).as_dict()},
        "agreement": agreement_of(task, found.answers),
    }


def agreement_of(task: Task, answers: agreement.Fitted) -> dict | None:
    """How far people agree, by language; None where nothing was answered by two. Of posts too."""
    if not answers.said:
        return None
    found = agreement.report(task, found=answers)
    if not found["all"]["units_of_two"]:
        return None

    def published(section: dict) -> dict:
        return {key: section[key] for key in AGREEMENT} | {"differs": len(section["dawid_skene"]["differs"])}

    return {
        "ordered": found["ordered"],
        "all": published(found["all"]),
        "languages": {code: published(section) for code, section in found["languages"].items()},
    }


# --- the published files


def publish(folder: Path, task: Task, kept: list[dict], *, with_text: bool, mark: str) -> dict | None:
    """Write XGLUE's files, and say for the manifest which and of what; None of a task type that has none.

    refused: why there are no files, in a sentence.
    """
    name = TASK_TYPES[task.task_type].published
    if not name:
        return None
    found = {"format": "XGLUE", "tasks": list(xglue.forms_of(name)), "files": {}, "refused": ""}
    if not with_text:
        found["refused"] = (
            "XGLUE's files are the texts of the records, which the licence keeps here, so they are not written."
        )
        return found
    try:
        found["files"] = xglue.write(folder, name, kept, mark=mark)
    except xglue.XglueError as error:
        found["refused"] = f"XGLUE's files are not written: {error}"
    return found


def remembered(row: dict, fields: tuple[str, ...]) -> dict:
    """What publish() needs of a row."""
    return {key: row[key] for key in ("language", "split", "label", *fields) if key in row}


def split_name(row: dict) -> str:
    return f"{row['language']}.{row['split']}"
