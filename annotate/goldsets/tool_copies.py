"""Copies of an exported set for other annotation tools (`export_gold --as`), each in a folder of its own."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from annotate.exchange.tool_files import WRITERS, GoldSet
from annotate.goldsets.export import Export
from annotate.goldsets.set_folder import ExportError
from annotate.kinds.forms import FORMS
from annotate.kinds.interface_language import ENGLISH, label_name
from annotate.models import Task
from annotate.quality.answer_models import values_of
from corpora.storage.layout import manifest_of


def check_copies(task: Task, tools: Sequence[str]) -> None:
    """Raise ExportError if a set cannot be written for these tools."""
    if unknown := [tool for tool in tools if tool not in WRITERS]:
        raise ExportError(f"--as {unknown[0]}: write some of {', '.join(WRITERS)}.")
    if tools and not task.kind.form.fits_tools:
        forms = ", ".join(slug for slug, form in FORMS.items() if form.fits_tools)
        raise ExportError(
            f"--as writes answers of the forms {forms}, and {task.name} asks for another form. Omit --as."
        )
    if tools and (task.draw.parameters.get("imported") or not manifest_of(task.draw.corpus.name).text_may_leave):
        raise ExportError("The texts of this task must not be published, so --as cannot write them. Omit --as.")


def write_copies(folder: Path, export: Export, tools: Sequence[str]) -> dict[str, dict[str, str]]:
    """Write the copies of a written set. Return a mapping from tool to a description of each of its files."""
    task, kind = export.task, export.kind
    fields = kind.fields or ("text",)
    read = partial(export.written_rows, folder, ("id", "language", "label", "judgments", *fields))

    def rows() -> Iterator[dict[str, Any]]:
        """Yield the rows. If the question is about the language, they have no other language than their label."""
        return ({"language": row["label"], **row} for row in read())

    gold = GoldSet(
        title=task.title or str(kind.title),
        several=kind.form.several,
        fields=fields,
        marked=kind.publication.marked,
        answers=_answers(task, rows()),
        rows=rows,
    )
    copies: dict[str, dict[str, Any]] = {}
    for tool in tools:
        place = folder / f"{tool}{export.mark}"
        place.mkdir()
        copies[tool] = {f"{place.name}/{name}": about for name, about in WRITERS[tool](place, gold).items()}
    return copies


def _answers(task: Task, rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the code and the English name of each answer. Labels of an open list are those in the set."""
    if task.kind.answers:
        return {code: named.names[ENGLISH] for code, named in task.kind.answers.items()}
    if not task.kind.form.several:
        return {value: label_name(value) for value in values_of(task)}
    codes = {code for row in rows for code in (row["label"] or "").split()}
    return {code: code for code in sorted(codes)}
