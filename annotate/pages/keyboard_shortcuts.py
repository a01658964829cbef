"""Keyboard shortcuts. Pages show them when `?` is pressed, and annotate/docs/reference/keys.md lists them."""

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _lazy

from annotate.kinds.kind import Shortcuts
from annotate.models import Task
from annotate.work.permit import Permit

_CTRL_ENTER = format_lazy("{} ↵", _lazy("Ctrl"))
_EVERYWHERE: Shortcuts = [
    ("G", _lazy("guidelines")),
    (_lazy("Esc"), _lazy("close the open dialog")),
    ("?", _lazy("show these shortcuts")),
]
_ON_A_SHEET: Shortcuts = [
    ("↑ ↓, J K", _lazy("move between posts")),
    ("N", _lazy("mark No")),
    ("U", _lazy("mark Undefined")),
    ("S", _lazy("skip the post")),
    ("Y", _lazy("remove a mark")),
    (_CTRL_ENTER, _lazy("submit the sheet")),
]
_ADJUDICATION_KEYS: Shortcuts = [
    ("⇧ 1 – 9", _lazy("choose a reason on the page")),
    ("1 – 9", _lazy("choose one of the first answers")),
    ("0", _lazy("discard the case")),
    (",  .", _lazy("previous or next case, without a decision")),
    ("T", _lazy("another case with the same text, if any")),
    ("Z", _lazy("undo the last decision")),
    ("C", _lazy("comment")),
]


def queue_keys(permit: Permit, *, on_sheet: bool = False, is_guided: bool = True) -> Shortcuts:
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


def test_keys(permit: Permit) -> Shortcuts:
    """Return the shortcuts of practice rounds and tests, where items can't be skipped and answers can't be undone."""
    return [*_answers(permit), ("↵", _lazy("continue")), *_EVERYWHERE]


def adjudication_keys(task: Task) -> Shortcuts:
    """Return the shortcuts of the adjudication view."""
    return [*_ADJUDICATION_KEYS, *task.kind.pages.keys(None), *task.kind.form.bench_keys, *_EVERYWHERE[1:]]


def _answers(permit: Permit) -> Shortcuts:
    if keys := permit.task.kind.form.keys:
        return keys
    return [("1 – 9", _lazy("choose an answer by its number")), *permit.task.kind.pages.keys(permit)]
