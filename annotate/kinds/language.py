"""Which language is this post in? (Evaluating language identification performance, Twitter, 2015)"""

from pathlib import Path

from annotate.core.refusals import InvalidAnswer
from annotate.kinds.kind import Answer, TaskType
from corpora.core.languages import ARTICLE_LABELS, LANGUAGES, UND
from corpora.core.voting import agreed_label, rank_candidates

# Why a post has no one language: the four cases of the article's instructions, and the words on their buttons.
UNLISTED = "unlisted"
UNDEFINED_REASONS = {
    "several": "fits several languages",
    "mixed": "mixes languages",
    "gibberish": "no language",
    UNLISTED: "not on the list",
}


def candidates(unit):
    """Languages by the detectors' summed reciprocal rank, kept where the task has a label for them."""
    listed = set(unit.task.labels)
    ranked = rank_candidates(unit.item.votes)
    return [code for code in ranked if code in listed or listed.intersection(LANGUAGES[code].labels)] or [UND]


def agreed(item, task):
    return agreed_label(
        item.votes,
        item.letters,
        labels=task.labels,
        never_agree=task.never_agree,
        least_letters=task.least_letters,
    )


def offered(unit):
    return [*unit.task.labels, UND]


def check_reason(answer: Answer, reasons) -> None:
    if answer.reason and answer.label != UND:
        raise InvalidAnswer("A reason goes with Undefined only.")
    if answer.reason and answer.reason not in reasons:
        raise InvalidAnswer(f"{answer.reason!r} is not one of the reasons: {', '.join(reasons)}.")


def check(answer: Answer, unit) -> None:
    if answer.label != UND and answer.label not in unit.task.labels:
        raise InvalidAnswer(f"{answer.label!r} is not on this task's list of languages.")
    check_reason(answer, UNDEFINED_REASONS)
    if answer.reason == UNLISTED and not answer.comment.strip():
        raise InvalidAnswer("Write in the comment which language it is, since it is not on the list.")


TASK_TYPE = TaskType(
    slug="language",
    title="Which language is this post in?",
    template="annotate/language.html",
    sheet="",
    guidelines={"en": Path(__file__).with_name("language.md").read_text(encoding="utf-8")},
    labels=ARTICLE_LABELS,
    knobs={},
    candidates=candidates,
    agreed=agreed,
    offered=offered,
    reasons=UNDEFINED_REASONS,
    check=check,
)
