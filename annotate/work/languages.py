"""The languages that tasks' files add to the list: known in this process once they have been looked for.

A process learns those of a task when it touches the task's kind. Code that meets a language earlier,
for example when people or routes are entered, asks here.
"""

from annotate.kinds import kind_of
from annotate.models import Task
from corpora.core.language_codes import code_of, hint
from corpora.core.languages import LANGUAGES


def learn_languages() -> None:
    """Give the languages of all tasks' files their names, in one statement."""
    files = Task.objects.filter(kind_file__contains="languages").order_by("pk")
    for slug, text in files.values_list("kind_slug", "kind_file").distinct():
        kind_of(slug, text)


def is_language(code: str) -> bool:
    """Whether a code is on the list or was added by a task's file. The tasks are asked only where it is not known."""
    if code not in LANGUAGES:
        learn_languages()
    return code in LANGUAGES


def language_named(code: str) -> str:
    """The code of the language that a code of any standard stands for; the code itself where it stands for none."""
    return code if is_language(code) else code_of(code) or code


def unknown_code(code: str) -> str:
    """What to say of a code that is no language's."""
    near = hint(code) or "write a code such as de or zh-CN"
    stop = "" if near.endswith("?") else "."
    return (
        f"{code!r} is not a language code known here; {near}{stop} A language that is not on the list is added by a "
        "file with a table [languages.CODE]: give it to add_annotators as --languages, or to open_task as --kind."
    )
