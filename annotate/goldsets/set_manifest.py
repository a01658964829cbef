"""The manifest of an exported set: the task, the draws, the counts, and what else it says, section by section.

A kind of question names the sections of its sets (`Publication.sections`). No section tells anything that identifies a
person.
"""

from collections.abc import Callable, Mapping
from typing import Any

from django.db.models import Count, Max, Min

from annotate.controls import concept_suggestions, filter_precision
from annotate.controls.replenishment import standing
from annotate.core.estimation.proportions import proportion
from annotate.goldsets import form_extras
from annotate.goldsets.export import Export
from annotate.goldsets.set_folder import FORMAT, versions
from annotate.goldsets.table import Counts
from annotate.kinds.balanced_draw import IDS, JOINT
from annotate.kinds.control import QualityControl
from annotate.models import GoldAnswer, Judgment, Task, Trial
from annotate.quality import agreement, commitments, honeypots, preferences
from annotate.quality.guideline_versions import qualified
from annotate.reports.markdown import parts
from corpora.core.language_codes import tables_of
from corpora.draws import part_draws
from corpora.draws.part_draws import SIDES
from corpora.models import Draw

# What the report of quality/preferences.py has of one person, and of all has nothing to say.
OF_ONE = ("annotator", "pseudonym", "p")
# What is published of the report of quality/agreement.py: nothing about single people.
AGREEMENT = (
    "units",
    "units_of_two",
    "annotators",
    "judgments",
    "observed",
    "masi",
    "jaccard",
    "nominal",
    "ordinal",
    "ac1",
    "few_others",
    "by_label",
)
# Documents that a balanced draw never takes: of none of the classes, of several, equal to another, or equal to one of
# another class.
LEFT_OUT_OF_FRAME = ("no_class", "several", "equal", "differing")
# Format -> what its module returned of its files.
Published = Mapping[str, Any]


# The fields of a draw that say how it came about.
DRAW = (
    *("design", "language", "predictor", "seed", "size", "asked", "frame_size", "frame_digest", "chance"),
    "parameters",
)


def manifest_of_set(export: Export, counts: Counts, published: Mapping[str, Any]) -> dict[str, Any]:
    draws = export.task.draws.order_by("language", "pk")
    return {
        "format": FORMAT,
        "design": export.design.name,
        "finished": not export.mark,
        "task": _task(export.task),
        "draws": [_draw(draw) for draw in draws],
        "corpus": export.corpus,
        "detectors": export.draw.detectors,
        "lots": commitments.section(export.task, tell_secret=export.tell_secret),
        **sections_of(export, published),
        "counts": counts.as_dict(),
        "versions": versions(),
        "files": {},
    }


def _draw(draw: Draw) -> dict[str, Any]:
    """Without the ids, which the rows have."""
    told = {field: getattr(draw, field) for field in DRAW}
    ids = (IDS, JOINT, part_draws.IDS)
    return told | {"parameters": {name: value for name, value in draw.parameters.items() if name not in ids}}


def _task(task: Task) -> dict[str, Any]:
    """What decided how the labels came about. kind_sha256: that of the kind's file; None if the kind is a module. form:
    what an answer is, a module of kinds/forms; together: the field by whose value records were drawn together.

    added_languages: those of its labels and records that are not on the list here; readers learn their names from this.
    """
    return {
        "name": task.name,
        "title": task.title,
        "type": task.kind_slug,
        "kind_sha256": task.kind.digest or None,
        "form": task.kind.form.slug,
        "together": task.kind.records.together,
        "labels": task.labels,
        "languages": task.languages,
        "added_languages": tables_of(task.kind.languages.values()),
        **task.policy,
        **task.kind.publication.constants,
    }


def sections_of(export: Export, published: Published) -> dict[str, Any]:
    """Those that the kind names, in its order, and after them those of controls from outside; None of a control that
    the kind has not.
    """
    controls = {control.manifest_key: control for control in export.kind.quality_controls if control.manifest_key}
    names = dict.fromkeys((*export.kind.publication.sections, *controls))
    return {name: _section(name, controls.get(name), export, published) for name in names}


def _section(name: str, control: QualityControl | None, export: Export, published: Published) -> Any:
    if control:
        return control.section(export.task)
    return SECTIONS[name](export, published) if name in SECTIONS else None


def _splits(export: Export, published: Published) -> dict:
    if not export.split_shares:
        return {"field": export.kind.records.split, "off": {}}
    return {"seed": export.seed, "shares": export.split_shares, "off": dict(export.splitting.off)}


def _sets(export: Export, published: Published) -> dict:
    """Of each language what was drawn: set -> documents; what was left out of the frame; and what is short."""
    draws = export.task.draws.order_by("language", "pk")
    return {
        "seed": export.draw.seed,
        **{name: export.draw.parameters[name] for name in ("classes", "apart")},
        "languages": {
            draw.language: {
                "sets": {name: len(ids) for name, ids in export.sets[draw.language].items()},
                **{name: draw.parameters[name] for name in LEFT_OUT_OF_FRAME},
                "short": export.balancing.short[draw.language],
                "taken_out": export.balancing.taken_out[draw.language],
                **{name: draw.parameters[name] for name in ("published", "faults")},
            }
            for draw in draws
        },
        # Where people decide the classes: how far each is.
        "standing": standing(export.task) if export.balancing.by_people else [],
    }


def _people(export: Export, published: Published) -> dict:
    """How many people labelled, how many answers count, and how many people were let in, tested and paused."""
    task = export.task
    answered = Judgment.objects.answers().filter(unit__in=task.units.exported().order_by())
    # Answers that a manager voided are left out: this tells of the answers that count.
    live = answered.live()
    each = live.values("unit").annotate(answers=Count("pk"))
    tests = Trial.objects.filter(task=task, kind=Trial.TEST, finished_at__isnull=False)
    return {
        "annotators": live.values("annotator").distinct().count(),
        "answers": live.count(),
        "answers_each": each.aggregate(least=Min("answers"), most=Max("answers")),
        "voided_by_manager": answered.filter(voided_by__isnull=False).count(),
        "qualified": _qualified(task),
        "tests": {"taken": tests.count(), "passed": tests.filter(passed=True).count()},
        "paused": task.pauses.values("annotator").distinct().count(),
    }


def _qualified(task: Task) -> dict[str, int]:
    held = qualified(task).values("annotator").distinct()
    by_test = held.filter(trial__isnull=False)
    return {
        "by_test": by_test.count(),
        "let_in": held.exclude(annotator__in=by_test.values("annotator")).count(),
    }


def _gold_answers(export: Export, published: Published) -> dict[str, int]:
    """Purpose -> how many records with a known label served it."""
    pools = dict.fromkeys((GoldAnswer.PRACTICE, GoldAnswer.TEST, GoldAnswer.QUEUE), 0)
    for purpose in export.task.gold_answers.values_list("purpose", flat=True):
        pools[purpose] += 1
    return pools


def _honeypots(export: Export, published: Published) -> dict:
    """How often people were right when the answer was known, without people whose answers were voided."""
    rows = honeypots.answers(export.task).filter(voided_by=None).order_by().values_list("label", "unit__known_answer")
    counts = list(rows.annotate(Count("pk")))
    asked = sum(number for *_, number in counts)
    right = sum(number for said, known, number in counts if export.kind.rules.agrees(said, known))
    return {"asked": asked, "right": right, "accuracy": proportion(right, asked).as_dict()}


def _agreement(export: Export, published: Published) -> dict | None:
    """How far people agree, by language; None if nothing was answered by two people."""
    if not export.answers.said:
        return None
    found = agreement.report(export.task, found=export.answers, of_people=False)
    if not found["all"]["units_of_two"]:
        return None

    def told(section: dict) -> dict:
        model = section["dawid_skene"]
        found = {key: section[key] for key in AGREEMENT if key in section}
        return found | {"differs": len(model["differs"]) if model else None}

    return {
        "ordered": found["ordered"],
        "placed": found["placed"],
        "all": told(found["all"]),
        "languages": {code: told(section) for code, section in found["languages"].items()},
    }


def _preferences(export: Export, published: Published) -> dict | None:
    """Which system people prefer, with nothing about single people; None if nobody has answered."""
    found = preferences.report(export.task, without=export.left_out.known)
    if not found["all"]["judgments"]:
        return None
    sides = {key: value for key, value in found["all"]["sides"].items() if key not in ("people", *OF_ONE)}
    out_of_line = sum(each["out_of_line"] for each in found["all"]["sides"]["people"])
    return found | {"all": found["all"] | {"sides": sides | {"out_of_line": out_of_line}}}


SECTIONS: Mapping[str, Callable[[Export, Published], Any]] = {
    "splits": _splits,
    "sets": _sets,
    "systems": lambda export, published: form_extras.section(export),
    "concepts": lambda export, published: form_extras.summary(export),
    "suggestions": lambda export, published: concept_suggestions.report(export.task),
    "people": _people,
    "gold_answers": _gold_answers,
    "honeypots": _honeypots,
    "agreement": _agreement,
    "preferences": _preferences,
    # The files that predictions are made for and measured on; None if the kind has none.
    "published": lambda export, published: next(iter(published.values()), None),
}


def pair_sections(corpus_name: str) -> dict[str, Any]:
    """What the manifest of message-reply pairs says besides: what people found of the filter, in each task that was
    drawn from both of its sides and in which they read.
    """
    tasks = Task.objects.filter(draws__corpus__name=corpus_name, draws__design="filtered").distinct().order_by("pk")
    reports = {task.name: filter_precision.report(task) for task in tasks}
    audits = {name: audit for name, audit in reports.items() if audit and any(audit[side]["read"] for side in SIDES)}
    if not audits:
        return {}
    told = [
        {
            "words": f"Task {name}: {' '.join(filter_precision.filter_words(audit))}",
            "table": parts(filter_precision.figures_table(audit)),
        }
        for name, audit in audits.items()
    ]
    return {"filter_audits": {"heading": "What people found of the filter", "told": told, "audits": audits}}
