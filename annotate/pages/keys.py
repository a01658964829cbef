"""The keys of a page, which `?` shows. annotate/docs/reference/keys.md has the same for reading."""

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from annotate.models import Task

Keys = list[tuple[object, object]]  # what is printed on the keys, and what they do

_CTRL_ENTER = format_lazy("{} ↵", _("Ctrl"))
_EVERYWHERE: Keys = [("G", _("guidelines")), (_("Esc"), _("closes what is open")), ("?", _("these keys"))]
_ON_A_SHEET: Keys = [
    ("↑ ↓, J K", _("go from post to post")),
    ("N", _("marks No")),
    ("U", _("marks Undefined")),
    ("S", _("skips the post")),
    ("Y", _("takes a mark back")),
    (_CTRL_ENTER, _("submits the sheet")),
]
_OF_CONCEPTS: Keys = [
    ("F", _("search, by beginnings of words")),
    ("S B", _("suggestions, or browse the vocabulary")),
    ("1 – 9", _("choose one that is shown, or take it away")),
    ("↑ ↓", _("go through the list")),
    ("→ ←", _("open a concept, and go back up")),
    ("X", _("takes the last one away")),
    ("M", _("a concept and a broader one are both meant")),
    (_CTRL_ENTER, _("done, from anywhere")),
]
_OF_LANGUAGES: Keys = [("Q", _("undefined; then why")), ("W", _("any other language, by its name"))]
_AT_THE_BENCH: Keys = [
    ("⇧ 1 – 9", _("how you know, by a reason on the page")),
    ("1 – 9", _("settle it with one of the first answers")),
    ("0", _("discards it")),
    (",  .", _("the one before and the one after, without deciding")),
    ("T", _("another case of the same text, if there is one")),
    ("Z", _("takes the last decision back")),
    ("C", _("comment")),
]


def of_queue(task: Task, *, on_sheet: bool = False) -> Keys:
    """Of the queue, one by one or as a sheet."""
    if on_sheet:
        return [*_ON_A_SHEET, *_EVERYWHERE]
    undo = [("Z", _("takes the last answer back")), ("C", _("comment")), ("↵", _("starts, and looks again"))]
    flag = ("⇧ F" if task.kind.flag_needs_shift else "F", _("tells the manager of it; then a digit says what it is"))
    return [*_answers(task), flag, (_(task.kind.skip_key.cap), _("skips")), *undo, *_EVERYWHERE]


def of_test(task: Task) -> Keys:
    """Of practice and test, where nothing is skipped or taken back."""
    return [*_answers(task), ("↵", _("goes on")), *_EVERYWHERE]


def of_bench(task: Task) -> Keys:
    """Of the adjudicator's page of one unit."""
    own = _OF_LANGUAGES if task.kind.is_routed else []
    return [*_AT_THE_BENCH, *own, *([("V", _("who chose which"))] if task.vocabulary_id else []), *_EVERYWHERE[1:]]


def _answers(task: Task) -> Keys:
    if task.vocabulary_id:
        return _OF_CONCEPTS
    return [("1 – 9", _("the answers, as their buttons say")), *(_OF_LANGUAGES if task.kind.is_routed else [])]
