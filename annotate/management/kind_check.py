"""The action `check_kind`: describe the kind that a file defines, and write the page that annotators will see.

This module is not in actions/, because it renders a page and actions must not import from the higher layer pages/.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from annotate.actions.action import ActionError, Outcome, action
from annotate.core.option import Option
from annotate.kinds.files import KindError, read_kind
from annotate.kinds.kind_summary import summary_of
from annotate.pages.kind_preview import languages_of, preview, usual_language
from corpora.storage.layout import write_whole

# The template of the page contains this mark. Only files that contain it are overwritten.
MARK = '<meta name="generator" content="check_kind">'


@action(
    "check_kind",
    "Describe the kind that a TOML file defines, and write the page that annotators will see with an example record.",
    Option("file", Path, required=True, argument=True, help="the TOML file of the kind, such as my_kind.toml"),
    Option("out", Path, shown="PAGE", help="the file to write the page to (default: FILE with the suffix .html)"),
    Option("language", shown="CODE", help="the language of the example record or of the question"),
    refuses=(KindError,),
    on_files=True,
)
def check_kind_action(values: Mapping[str, Any], progress: object) -> Outcome:
    file, language = values["file"], values["language"]
    kind = read_kind(file)
    data = {"kind": kind.slug, "told": summary_of(kind), "page": None}
    if not kind.answered_here:
        return Outcome([summary_of(kind)], data=data)
    available = languages_of(kind)
    if language and language not in available:
        raise ActionError(f"This kind does not support --language {language}. Valid languages: {', '.join(available)}.")
    path = values["out"] or file.with_suffix(".html")
    try:
        if path.exists() and MARK not in path.read_text(encoding="utf-8", errors="replace"):
            raise ActionError(f"{path} was not written by check_kind. Move it, or choose another file with --out.")
        write_whole(path, preview(kind, language or usual_language(kind)))
    except OSError as error:
        raise ActionError(f"{path} cannot be written: {error.strerror}.") from error
    return Outcome([summary_of(kind), f"The page is in {path}."], data=data | {"page": path})
