"""The kinds about posts' languages. `language` asks which one it is, and `verify` asks "Is this German?".

Both follow Evaluating language identification performance (2015).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotate.kinds import language_questions
from annotate.kinds.control import Permit, Routes, Task, Unit
from annotate.kinds.interface_language import negative, question_about
from annotate.kinds.kind import Answer, Shortcuts, Undefined, Wording
from annotate.kinds.language_questions import UNDEFINED_REASONS, UNLISTED
from annotate.kinds.options import ASKED, OF_AUDIT, OF_CHECKS
from corpora.core.languages import UND
from corpora.core.voters import agreed_label, ballots, rank_candidates
from corpora.models import Item, agreed_on, votes_of

# Annotators label every text with fewer letters than this, because detectors are often wrong about short texts.
LEAST_LETTERS = 20


def candidates(item: Item, language: str, routes: Routes) -> list[str]:
    """Return the languages that the item may be in, most likely first.

    They are ranked by the votes of the task's panel (summed reciprocal ranks). Languages without a label in the task
    are left out. If no language is left, the result starts with UND. The table of routes can add languages.
    """
    task = routes.task
    listed = set(task.labels)
    ranked = rank_candidates(ballots(votes_of(item), task.panel))
    listed_codes = [code for code in ranked if code in listed or listed.intersection(task.kind.finer(code))]
    return list(routes.with_extras(listed_codes or [UND]))


def agreed(item: Item, task: Task) -> str | None:
    label = agreed_label(
        agreed_on(item, task.panel),
        item.letters,
        labels=task.labels,
        never_agree=task.never_agree,
        least_letters=LEAST_LETTERS,
        panel=task.panel,
    )
    # A coarse label such as pt doesn't count if the task also has a finer label, such as pt-BR. No detector supports
    # pt-BR, so the detectors can return pt for both.
    return None if label and any(code in task.labels for code in task.kind.finer(label)) else label


def offered(unit: Unit) -> list[str]:
    return [*unit.task.labels, UND]


def check(answer: Answer, unit: Unit) -> None:
    if not answer.label:
        raise ValueError(_("No language was chosen. Choose one, or Undefined."))
    if answer.label != UND and answer.label not in unit.task.labels:
        raise ValueError(_("%(answer)s is not on this task's list of languages.") % {"answer": repr(answer.label)})
    if answer.reason:
        language_questions.check_reason(answer, UNDEFINED_REASONS)
    if answer.reason == UNLISTED and not answer.comment.strip():
        raise ValueError(_("The language is not on the list. Write in the comment which one it is."))


_UNDEFINED = language_questions.undefined_context(UNDEFINED_REASONS)


def ask(unit: Unit, permit: Permit) -> dict[str, Any]:
    return {**_UNDEFINED, **language_questions.buttons(permit)}


def advise(unit: Unit, usual: Sequence[str] | None) -> dict[str, Any]:
    labels = unit.task.labels
    choices = _likely_labels(unit) if usual is None else usual
    other_labels = language_questions.sort_by_name(code for code in labels if code not in choices)
    return {
        **language_questions.advise(unit, usual),
        "choices": language_questions.with_keys(tuple(choices)),
        "others": other_labels,
    }


def keys(permit: Permit | None) -> Shortcuts:
    is_searched = permit is None or not language_questions.has_all_buttons(permit)
    other_languages = [("W", gettext_lazy("any other language, by name"))] if is_searched else []
    return [*language_questions.UNDEFINED_KEYS, *other_languages]


def _likely_labels(unit: Unit) -> list[str]:
    """Return the task's labels for the languages that the unit may be in, most likely first."""
    likely: dict[str, None] = {}
    for code in unit.candidates:
        labels = unit.task.kind.finer(code) or (code,)
        likely.update(dict.fromkeys(label for label in labels if label in unit.task.labels))
    return list(likely)


KIND = language_questions.about_languages(
    slug="language",
    title="Which language is this post in?",
    wording=Wording(titled_by_task=True),
    undefined=Undefined(UND, UNDEFINED_REASONS),
    guidelines={"en": Path(__file__).with_name("language.md").read_text(encoding="utf-8")},
    options=(*ASKED, *OF_AUDIT, *OF_CHECKS),
    designs=("uniform", "compare"),
    controls=("checks", "audit"),
    routing={"candidates": candidates, "agreed": agreed, "named": lambda label: "" if label == UND else label},
    rules={"offered": offered, "check": check},
    pages={
        "ask": ask,
        "advise": advise,
        "question": "annotate/language.html",
        "adjudication": "annotate/bench_language.html",
        "keys": keys,
    },
    statistics={
        "compared": lambda task: [*task.labels, UND],
        "compared_as": lambda language, label: label,
        "language_paths": ("language", "agreed_label", "copy_of__language", "copy_of__agreed_label"),
    },
    publication={"card": "annotate/card_language.md", "constants": {"least_letters": LEAST_LETTERS}},
)


# --- The `verify` kind is used for recall- and precision-oriented sets. For example, a unit that asks about German
# can have the labels `de`, `not-de` and `und`.


# Without UNLISTED, because a post in an unlisted language gets the answer No.
REASONS = {reason: text for reason, text in UNDEFINED_REASONS.items() if reason != UNLISTED}
# The categories for measuring agreement. They are the same for every language in the question.
YES, NO = "yes", "no"


def verify_offered(unit: Unit) -> list[str]:
    return [unit.asked, negative(unit.asked), UND]


def check_verified(answer: Answer, unit: Unit) -> None:
    if not answer.label:
        raise ValueError(_("No answer was chosen. Choose Yes, No or Undefined."))
    if answer.label not in verify_offered(unit):
        *first_answers, last = verify_offered(unit)
        values = {"answer": repr(answer.label), "answers": ", ".join(first_answers), "last": last}
        raise ValueError(_("%(answer)s is not a valid answer. Valid answers: %(answers)s and %(last)s.") % values)
    if answer.reason:
        language_questions.check_reason(answer, REASONS)


def verify_compared_as(language: str, label: str) -> str:
    return label if label == UND else YES if label == language else NO


VERIFY = language_questions.about_languages(
    slug="verify",
    title="Is this post in the language?",
    wording=Wording(titled_by_task=True, about=question_about),
    undefined=Undefined(UND, REASONS),
    guidelines={"en": Path(__file__).with_name("verify.md").read_text(encoding="utf-8")},
    options=(*ASKED, "decoy_share", *OF_CHECKS),
    # Each unit asks about one language, so it has only one queue. If one reader skips it, a second reader is asked.
    defaults={"rounds": 1, "skip_limit": 2},
    designs=("recall", "precision", "triggers"),
    controls=("checks", "decoys"),
    routing={
        "candidates": lambda item, language, routes: routes.with_extras([language]),
        # The detectors' agreement doesn't count, because annotators verify the detectors' labels.
        "agreed": lambda item, task: None,
    },
    rules={
        "offered": verify_offered,
        "check": check_verified,
        "refuses_imports": "asks about one language at a time, but a file of judgments does not state which. Import "
        "the judgments as a new task.",
    },
    pages={
        "ask": lambda unit, permit: {
            **language_questions.undefined_context(REASONS),
            **language_questions.question_context(unit.asked),
        },
        "advise": lambda unit, usual: {
            **language_questions.advise(unit, usual),
            **language_questions.question_context(unit.asked),
        },
        "question": "annotate/verify.html",
        "sheet": "annotate/sheet.html",
        "adjudication": "annotate/bench_verify.html",
        "keys": lambda permit: language_questions.UNDEFINED_KEYS,
    },
    statistics={
        "compared": lambda task: [YES, NO, UND],
        "compared_as": verify_compared_as,
        "language_paths": ("asked",),
    },
    publication={"card": "annotate/card_verify.md"},
)
