"""Keyboard shortcuts. Pages show them if `?` is pressed, and annotate/docs/reference/keys.md lists them."""

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _lazy

from annotate.kinds.language_questions import has_all_buttons
from annotate.models import Task
from annotate.work.permit import Permit

Keys = list[tuple[object, object]]  # (labels of the keys, action)

_CTRL_ENTER = format_lazy("{} ↵", _lazy("Ctrl"))
_EVERYWHERE: Keys = [
    ("G", _lazy("guidelines")),
    (_lazy("Esc"), _lazy("close the open dialog")),
    ("?", _lazy("show these shortcuts")),
]
_ON_A_SHEET: Keys = [
    ("↑ ↓, J K", _lazy("move between posts")),
    ("N", _lazy("mark No")),
    ("U", _lazy("mark Undefined")),
    ("S", _lazy("skip the post")),
    ("Y", _lazy("remove a mark")),
    (_CTRL_ENTER, _lazy("submit the sheet")),
]
_OF_CONCEPTS: Keys = [
    ("F", _lazy("search by beginnings of words")),
    ("S B", _lazy("show suggestions, or browse the vocabulary")),
    ("1 – 9", _lazy("choose or remove a listed concept")),
    ("↑ ↓", _lazy("move through the list")),
    ("→ ←", _lazy("open a concept, and go back up")),
    ("X", _lazy("remove the last chosen concept")),
    ("M", _lazy("confirm a concept together with a broader one")),
    (_CTRL_ENTER, _lazy("finish, from anywhere on the page")),
]
_UNDEFINED: Keys = [("Q", _lazy("undefined, then a reason"))]
_OTHER_LANGUAGES: Keys = [("W", _lazy("any other language, by name"))]
_ADJUDICATION_KEYS: Keys = [
    ("⇧ 1 – 9", _lazy("choose a reason on the page")),
    ("1 – 9", _lazy("choose one of the first answers")),
    ("0", _lazy("discard the case")),
    (",  .", _lazy("previous or next case, without a decision")),
    ("T", _lazy("another case with the same text, if any")),
    ("Z", _lazy("undo the last decision")),
    ("C", _lazy("comment")),
]


def queue_keys(permit: Permit, *, on_sheet: bool = False, is_guided: bool = True) -> Keys:
    """Return the shortcuts of the queue or of a sheet.

    is_guided: whether the page contains guidelines
    """
    task, everywhere = permit.task, _EVERYWHERE if is_guided else _EVERYWHERE[1:]
    if on_sheet:
        return [*_ON_A_SHEET, *everywhere]
    undo = [
        ("Z", _lazy("undo the last answer")),
        ("C", _lazy("comment")),
        ("↵", _lazy("start, or check again for items")),
    ]
    flag = (
        "⇧ F" if task.kind.flag_needs_shift else "F",
        _lazy("flag the item for the manager; then choose the kind of flag with a digit"),
    )
    return [*_answers(permit), flag, (_lazy(task.kind.skip_key.cap), _lazy("skip")), *undo, *everywhere]


def test_keys(permit: Permit) -> Keys:
    """Return the shortcuts of practice and tests. Items cannot be skipped and answers cannot be undone there."""
    return [*_answers(permit), ("↵", _lazy("continue")), *_EVERYWHERE]


def adjudication_keys(task: Task) -> Keys:
    """Return the shortcuts of the adjudication view."""
    return [
        *_ADJUDICATION_KEYS,
        *_language_keys(task, searches=True),
        *([("V", _lazy("show who chose what"))] if task.vocabulary_id else []),
        *_EVERYWHERE[1:],
    ]


def _answers(permit: Permit) -> Keys:
    if permit.task.vocabulary_id:
        return _OF_CONCEPTS
    if keys := permit.task.kind.form.keys:
        return list(keys)
    return [
        ("1 – 9", _lazy("choose an answer by its number")),
        *_language_keys(permit.task, searches=not has_all_buttons(permit)),
    ]


def _language_keys(task: Task, *, searches: bool) -> Keys:
    if not task.kind.routing.is_routed:
        return []
    return [*_UNDEFINED, *(_OTHER_LANGUAGES if searches and task.kind.pages.searches_languages else [])]
