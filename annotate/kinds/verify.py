"""The kind `verify`, which asks whether a post is in a certain language.

It is used for recall- and precision-oriented sets (Evaluating language identification performance, 2015). For example,
a unit that asks about German can have the labels de, not-de and und.
"""

from pathlib import Path

from django.utils.translation import gettext as _

from annotate.kinds import language_questions
from annotate.kinds.control import Unit
from annotate.kinds.interface_language import negative, question_about
from annotate.kinds.kind import Answer, Undefined, Wording
from annotate.kinds.language_questions import UNDEFINED_REASONS, UNLISTED
from annotate.kinds.options import ASKED, OF_CHECKS
from corpora.core.languages import UND

# The reason UNLISTED is missing, because the answer about an unlisted language is No.
REASONS = {reason: text for reason, text in UNDEFINED_REASONS.items() if reason != UNLISTED}
# The categories by which agreement is measured. They are the same for all languages that questions name.
YES, NO = "yes", "no"


def offered(unit: Unit) -> list[str]:
    return [unit.asked, negative(unit.asked), UND]


def check(answer: Answer, unit: Unit) -> None:
    if not answer.label:
        raise ValueError(_("No answer was chosen. Choose Yes, No or Undefined."))
    if answer.label not in offered(unit):
        *first_answers, last = offered(unit)
        values = {"answer": repr(answer.label), "answers": ", ".join(first_answers), "last": last}
        raise ValueError(_("%(answer)s is not a valid answer. Valid answers: %(answers)s and %(last)s.") % values)
    if answer.reason:
        language_questions.check_reason(answer, REASONS)


def compared_as(language: str, label: str) -> str:
    return label if label == UND else YES if label == language else NO


KIND = language_questions.about_languages(
    slug="verify",
    title="Is this post in the language?",
    wording=Wording(titled_by_task=True, about=question_about),
    undefined=Undefined(UND, REASONS),
    guidelines={"en": Path(__file__).with_name("verify.md").read_text(encoding="utf-8")},
    options=(*ASKED, "decoy_share", *OF_CHECKS),
    # Each unit asks about one language and so has one queue. If a reader skips it, a second reader of the language is
    # asked.
    defaults={"rounds": 1, "skip_limit": 2},
    designs=("recall", "precision", "triggers"),
    controls=("checks", "decoys"),
    routing={
        "candidates": lambda item, asked, routes: routes.with_extras([asked]),
        # The detectors' agreement does not count, because people verify the detectors' labels.
        "agreed": lambda item, task: None,
    },
    rules={
        "offered": offered,
        "check": check,
        "refuses_imports": "asks about one language at a time, but a file of judgments does not state which. Import "
        "the judgments as a new task.",
    },
    pages={
        "ask": lambda unit, permit: {**language_questions.undefined(REASONS), **language_questions.about(unit.asked)},
        "advise": lambda unit, usual: {
            **language_questions.advise(unit, usual),
            **language_questions.about(unit.asked),
        },
        "question": "annotate/verify.html",
        "sheet": "annotate/sheet.html",
        "adjudication": "annotate/bench_verify.html",
        "keys": lambda permit: language_questions.UNDEFINED_KEYS,
    },
    statistics={
        "compared": lambda task: [YES, NO, UND],
        "compared_as": compared_as,
        "language_paths": ("asked",),
    },
    publication={"card": "annotate/card_verify.md"},
)
