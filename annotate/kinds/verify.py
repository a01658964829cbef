"""Is this post in that language? (Evaluating language identification performance, Twitter, 2015: recall, precision)

The labels of a unit that is asked about German are de, not-de and und.
"""

from pathlib import Path

from annotate.core.labels import negative
from annotate.core.refusals import InvalidAnswer
from annotate.kinds.kind import Answer, TaskType
from annotate.kinds.language import UNDEFINED_REASONS, UNLISTED, check_reason
from corpora.core.languages import ARTICLE_LABELS, UND

# A language that is on no list is some other language: No.
REASONS = {reason: words for reason, words in UNDEFINED_REASONS.items() if reason != UNLISTED}


def candidates(unit):
    return [unit.asked]


def agreed(item, task):
    return None  # what detectors say is what is being verified


def offered(unit):
    return [unit.asked, negative(unit.asked), UND]


def check(answer: Answer, unit) -> None:
    if answer.label not in offered(unit):
        raise InvalidAnswer(f"{answer.label!r} is no answer here; it is {', '.join(offered(unit)[:-1])} or {UND}.")
    check_reason(answer, REASONS)


TASK_TYPE = TaskType(
    slug="verify",
    title="Is this post in the language?",
    template="annotate/verify.html",
    sheet="annotate/sheet.html",
    guidelines={"en": Path(__file__).with_name("verify.md").read_text(encoding="utf-8")},
    labels=ARTICLE_LABELS,
    # One language is asked about, so there is one queue: a second reader of it rather than a second language.
    knobs={"rounds": 1, "skip_limit": 2},
    candidates=candidates,
    agreed=agreed,
    offered=offered,
    reasons=REASONS,
    check=check,
)
