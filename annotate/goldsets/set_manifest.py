"""The manifest of an exported set.

Each kind of question names the sections of its manifests (`Publication.sections`). No section identifies a person.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from hashlib import sha256
from typing import Any

from django.db.models import Avg, Count, Max, Min

from annotate.controls import honeypots
from annotate.controls.replenishment import class_progress
from annotate.core.estimation.proportions import proportion
from annotate.goldsets import form_extras
from annotate.goldsets.export import Export
from annotate.goldsets.set_folder import FORMAT, VERSIONS
from annotate.kinds.balanced_draw import IDS, JOINT
from annotate.models import Annotator, AnnotatorLanguage, GoldAnswer, Judgment, Trial
from annotate.quality import agreement_statistics, commitments, preference_statistics
from annotate.quality.guideline_versions import qualified
from corpora.core.languages import tables_of
from corpora.draws import part_draws

# Keys in the report of quality/preference_statistics.py that describe individual annotators.
INDIVIDUAL_KEYS = ("annotator", "pseudonym", "p")
# Keys in the report of quality/agreement_statistics.py that are published. No key describes an individual annotator.
AGREEMENT = (
    *("units", "units_of_two", "annotators", "judgments", "observed", "masi", "jaccard", "unitizing"),
    *("nominal", "ordinal", "ac1", "few_others", "by_label"),
)
# Counts of documents that a balanced draw excludes. They have no class, several classes, the same text as another
# document in their class, or the same text as a document in a different class.
LEFT_OUT_OF_FRAME = ("no_class", "several", "equal", "differing")

# DRAW: fields that describe a draw. ROW_ID_PARAMETERS: parameters of a draw that contain rows' ids.
DRAW = ("design", "language", "predictor", "seed", "size", "asked", "frame_size", "frame_digest", "chance")
ROW_ID_PARAMETERS = (IDS, JOINT, part_draws.IDS)


def manifest_of_set(export: Export, counts: Mapping[str, Any], published: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest of a set.

    counts: number of rows, as returned by `exporter.Counts.as_dict`.
    published: manifest entries by format, as returned by each format's `write` function.

    The sections that the kind names come first, in the kind's order, followed by the sections of other quality
    controls. The section `published` describes the files that predictions are made for and evaluated on. It is None if
    the kind has no published format.

    kind_sha256: SHA-256 of the kind's file; None if the kind is a module.
    together: record field. Records that share a value in this field were drawn together.
    added_languages: languages that are not built in, because readers of the set need their names.
    """
    task, kind = export.task, export.kind
    controls = {control.manifest_key: control for control in kind.quality_controls if control.manifest_key}
    sections = {name: control.section(task) for name, control in controls.items()}
    # A section that the kind names is None if its control has no results.
    names = dict.fromkeys((*kind.publication.sections, *(name for name in controls if sections[name] is not None)))
    sections["published"] = next(iter(published.values()), None)
    sections |= {name: SECTIONS[name](export) for name in names if name in SECTIONS and name not in controls}
    draws = []
    for draw in task.draws.order_by("language", "pk"):
        # Omit the ids, because the rows have them.
        parameters = {name: value for name, value in draw.parameters.items() if name not in ROW_ID_PARAMETERS}
        draws.append({field: getattr(draw, field) for field in DRAW} | {"parameters": parameters})
    return {
        "format": FORMAT,
        "design": export.design.name,
        "finished": not export.mark,
        "task": {
            **{"name": task.name, "title": task.title, "type": task.kind_slug},
            "kind_sha256": sha256(kind.source.encode()).hexdigest() if kind.source else None,
            **{"form": kind.form.slug, "together": kind.records.together},
            **{"labels": task.labels, "languages": task.languages},
            "added_languages": tables_of(kind.languages.values()),
            **task.policy,
            **kind.publication.constants,
        },
        "draws": draws,
        "corpus": export.corpus,
        "detectors": export.draw.detectors,
        "lots": commitments.section(task, tell_secret=export.tell_secret),
        **{name: sections.get(name) for name in names},
        "counts": counts,
        "versions": VERSIONS,
        "files": {},
    }


def _splits(export: Export) -> dict[str, Any]:
    if not export.split_shares:
        return {"field": export.kind.records.split, "off": {}}
    return {"seed": export.seed, "shares": export.split_shares, "off": dict(export.splitting.deviations)}


def _sets(export: Export) -> dict[str, Any]:
    """Describe each language's balanced draw: set sizes, excluded documents, and sets that are too small."""
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
        # Progress of each language if annotators decide the classes.
        "standing": class_progress(export.task) if export.balancing.by_people else [],
    }


def _people(export: Export) -> dict[str, Any]:
    """Count annotators, valid answers, qualified annotators, tests and pauses."""
    task = export.task
    answered = Judgment.objects.answers().filter(unit__task=task, unit__known_answer="").order_by()
    # Count only valid answers, not answers that a manager voided.
    live = answered.live()
    by_unit = live.values("unit").annotate(answers=Count("pk"))
    by_person = live.values_list("annotator").annotate(Count("pk"), Min("answered_at"), Max("answered_at"))
    annotators, numbers, first, last = zip(*by_person, strict=True) if by_person else ((), (), (), ())
    imported = Annotator.objects.filter(pk__in=annotators, user__username__startswith="imported:")
    qualifications = qualified(task).values("annotator").distinct()
    by_test = qualifications.filter(trial__isnull=False)
    tests = Trial.objects.filter(task=task, kind=Trial.TEST, finished_at__isnull=False)
    return {
        "annotators": len(annotators),
        "answers": sum(numbers),
        "answers_each": by_unit.aggregate(least=Min("answers"), most=Max("answers"), mean=Avg("answers")),
        # The first and the last day of the answers; empty if there are none.
        "answered": [end.date().isoformat() for end in (*sorted(first)[:1], *sorted(last)[-1:])],
        "levels": _levels(annotators),
        "imported": imported.count(),
        "voided_by_manager": answered.filter(voided_by__isnull=False).count(),
        "qualified": {
            "by_test": by_test.count(),
            "let_in": qualifications.exclude(annotator__in=by_test.values("annotator")).count(),
        },
        "tests": {"taken": tests.count(), "passed": tests.filter(passed=True).count()},
        "paused": task.pauses.values("annotator").distinct().count(),
    }


def _levels(annotators: Collection[int]) -> dict[str, dict[str, int]]:
    """Count annotators by language and level of proficiency."""
    levels: dict[str, dict[str, int]] = {}
    languages = AnnotatorLanguage.objects.filter(annotator__in=annotators, level__gt=0).order_by("language", "-level")
    for language, level, number in languages.values_list("language", "level").annotate(Count("pk")):
        levels.setdefault(language, {})[str(level)] = number
    return levels


def _gold_answers(export: Export) -> dict[str, int]:
    """Count the gold answers by purpose."""
    purposes = Counter(export.task.gold_answers.values_list("purpose", flat=True))
    return {purpose: purposes[purpose] for purpose in (GoldAnswer.PRACTICE, GoldAnswer.TEST, GoldAnswer.QUEUE)}


def _honeypots(export: Export) -> dict[str, Any]:
    """Measure annotators' accuracy on hidden gold answers. Voided answers are not counted."""
    rows = honeypots.answers(export.task).filter(voided_by=None).order_by().values_list("label", "unit__known_answer")
    counts = list(rows.annotate(Count("pk")))
    total = sum(number for *_, number in counts)
    right = sum(number for label, correct, number in counts if export.kind.rules.agrees(label, correct))
    return {"asked": total, "right": right, "accuracy": proportion(right, total).as_dict()}


def _agreement(export: Export) -> dict[str, Any] | None:
    """Describe the agreement between annotators, overall and by language.

    Return None if no unit has answers from two annotators.
    """
    # Don't fit a model unless some unit has two answers.
    answered = Judgment.objects.live().answers().filter(unit__task=export.task).order_by().values("unit")
    if not (answered.annotate(answers=Count("pk")).filter(answers__gt=1).exists() and export.answers.responses):
        return None
    report = agreement_statistics.report(export.task, fit=export.answers, per_annotator=False)
    if not report["all"]["units_of_two"]:
        return None

    def figures_of(results: Mapping[str, Any]) -> dict[str, Any]:
        model = results["dawid_skene"]
        figures = {key: results[key] for key in AGREEMENT if key in results}
        return figures | {"differs": len(model["differs"]) if model else None}

    return {
        "ordered": report["ordered"],
        "placed": report["placed"],
        "all": figures_of(report["all"]),
        "languages": {language: figures_of(results) for language, results in report["languages"].items()},
    }


def _preferences(export: Export) -> dict[str, Any] | None:
    """Describe which system annotators prefer, without results for individuals. Return None if there are no answers."""
    report = preference_statistics.report(export.task, without=export.excluded)
    if not report["all"]["judgments"]:
        return None
    sides = {key: value for key, value in report["all"]["sides"].items() if key not in ("people", *INDIVIDUAL_KEYS)}
    out_of_line = sum(person["out_of_line"] for person in report["all"]["sides"]["people"])
    return report | {"all": report["all"] | {"sides": sides | {"out_of_line": out_of_line}}}


SECTIONS: Mapping[str, Callable[[Export], Any]] = {
    "splits": _splits,
    "sets": _sets,
    "systems": form_extras.section,
    "concepts": form_extras.summary,
    "people": _people,
    "gold_answers": _gold_answers,
    "honeypots": _honeypots,
    "agreement": _agreement,
    "preferences": _preferences,
}
