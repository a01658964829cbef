"""Which language is this post in? (Evaluating language identification performance, Twitter, 2015)"""

from pathlib import Path

from annotate.core.aggregation import majority
from annotate.errors import InvalidAnswer
from annotate.task_types.task_type import Answer, TaskType
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


def candidates(item, task):
    """Languages by the detectors' summed reciprocal rank, kept where the task has a label for them."""
    offered = set(task.labels)
    return [
        code for code in rank_candidates(item.votes) if code in offered or offered.intersection(LANGUAGES[code].labels)
    ] or [UND]


def agreed(item, task):
    return agreed_label(
        item.votes,
        item.letters,
        labels=task.labels,
        never_agree=task.never_agree,
        least_letters=task.least_letters,
    )


def check(answer: Answer, task) -> None:
    if answer.label != UND and answer.label not in task.labels:
        raise InvalidAnswer(f"{answer.label!r} is not on this task's list of languages.")
    if answer.reason and answer.label != UND:
        raise InvalidAnswer("A reason goes with Undefined only.")
    if answer.reason and answer.reason not in UNDEFINED_REASONS:
        raise InvalidAnswer(f"{answer.reason!r} is not one of the reasons: {', '.join(UNDEFINED_REASONS)}.")
    if answer.reason == UNLISTED and not answer.comment.strip():
        raise InvalidAnswer("Write in the comment which language it is, since it is not on the list.")


TASK_TYPE = TaskType(
    slug="language",
    title="Which language is this post in?",
    template="annotate/language.html",
    guidelines=Path(__file__).with_name("language.md").read_text(encoding="utf-8"),
    labels=ARTICLE_LABELS,
    candidates=candidates,
    agreed=agreed,
    check=check,
    aggregate=majority,
)
