"""The `import` action: import a project of another annotation tool, with its items, question and answers."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.conf import settings
from django.db import transaction

from annotate.actions.action import (
    LICENCE,
    MAX_REJECTS,
    SOURCE,
    TEXT_MAY_LEAVE,
    ActionError,
    Outcome,
    Progress,
    Values,
    action,
)
from annotate.actions.registry import action_named
from annotate.core.option import Option, whole_number
from annotate.exchange import export_files
from annotate.exchange.export_files import CONCEPTS, JUDGMENTS, RECORDS, TOOLS, read_config
from annotate.exchange.items import ProjectError
from annotate.exchange.project import Project, describe_losses, project_of
from annotate.models import Task
from annotate.reports.tables import many
from corpora.storage import bucket
from corpora.storage.intake import too_many
from corpora.storage.layout import check_spelling, corpus_dir, read_manifest

_TOO_MANY = "{} cannot be read, which exceeds --max-rejects {}. Correct the file, or set a higher share."


def _check(values: Values) -> None:
    name = values["name"]
    check_spelling("corpus", "name", name)
    if Task.objects.filter(name=name).exists() or read_manifest(name):
        raise ProjectError(f"There is already a task or corpus {name!r}. Choose another name.")


@action(
    "import",
    "Import a gold set of Assay, or an export of another annotation tool: "
    f"{', '.join(tool.name for tool in TOOLS[1:])}. The tool is recognized. The items become a corpus and the question "
    "a kind. Annotators' answers and models' predictions are kept, and anything that cannot be kept is listed. The new "
    "task is open, so that annotators can continue the work.",
    Option("name", required=True, argument=True, help="the name of the new corpus and task"),
    Option("files", Path, required=True, argument=True, several=True, shown="FILE", help="the files of the export"),
    LICENCE,
    TEXT_MAY_LEAVE,
    SOURCE,
    Option("question", default="", help="the question to import, if the project has several"),
    Option("language", default="", shown="CODE", help="the language of the items, if the export does not state it"),
    Option(
        "config",
        Path,
        shown="FILE",
        help="the configuration of the project's labels, which adds labels that nobody has chosen, names and "
        "guidelines: the labeling interface of Label Studio (XML), label_config.json of doccano, or settings.json of "
        "Argilla",
    ),
    Option(
        "redundancy",
        whole_number,
        least=1,
        help="the number of answers that each item needs; by default the largest number that an item has",
    ),
    MAX_REJECTS,
    checks=_check,
)
def import_project_action(values: Values, progress: Progress) -> Outcome:
    name = values["name"]
    faults: list[str] = []
    tool, objects = export_files.recognize_tool(values["files"], faults)
    configs = read_config(values["config"]) if values["config"] else []
    options = {option: values[option] for option in ("question", "language")}
    try:
        project = project_of(tool, objects, **options, configs=configs)
    except ProjectError as error:
        if not faults:
            raise
        raise ProjectError(f"{error} Unreadable lines: {len(faults):,}, the first: {faults[0]}") from error
    if too_many(len(faults), len(project.records) + len(faults), values["max_rejects"]):
        raise ProjectError(f"{faults[0]} {_TOO_MANY.format(many(len(faults), 'line'), values['max_rejects'])}")
    project.not_kept[f"unreadable lines, the first: {faults[0] if faults else ''}"] = len(faults)
    outcomes = _import(project, name, values, progress)
    for reason in _rejection_reasons(outcomes[-1].data.get("rejects_file")):
        is_copy = "has the same text as another item" in reason
        project.not_kept["answers to an item with the same text as another" if is_copy else f"answers: {reason}"] += 1
    sentences = [f"{project.tool}: {many(len(project.records), 'item')}, {many(len(project.judgments), 'answer')}."]
    sentences += [sentence for outcome in outcomes for sentence in outcome.said]
    if lost := {what: count for what, count in project.not_kept.items() if count}:
        sentences.append(describe_losses(lost))
    warned = [sentence for outcome in outcomes for sentence in outcome.warned]
    counts = {"items": len(project.records), "answers": len(project.judgments), "lost": lost}
    return Outcome(sentences, warned, {"tool": project.tool, "task": name, "form": project.form, **counts})


def _rejection_reasons(rejects_file: Path | None) -> list[str]:
    """Return the reason for each rejected answer, without its period.

    rejects_file: list of rejected answers; None if there are none
    """
    lines = rejects_file.read_text(encoding="utf-8").splitlines() if rejects_file else ()
    return [json.loads(line)["reason"].rstrip(".") for line in lines]


def _import(project: Project, name: str, values: Values, progress: Progress) -> list[Outcome]:
    """Write the project as files and import them. If the import fails, keep only the list of rejected rows."""
    rejects = settings.DATA_DIR / "exchange" / name
    shutil.rmtree(rejects, ignore_errors=True)
    (settings.DATA_DIR / "tmp").mkdir(exist_ok=True)
    with TemporaryDirectory(dir=settings.DATA_DIR / "tmp") as written:
        folder = Path(written)
        export_files.write(project, folder, name)
        try:
            with transaction.atomic():
                return [
                    action_named(action).perform(inputs, progress)
                    for action, inputs in _steps(project, folder, name, values)
                ]
        except BaseException as error:
            # The corpus's files are written before the task is opened, so delete them if it isn't.
            listed = corpus_dir(name) / "rejects"
            if listed.is_dir():
                shutil.copytree(listed, rejects)
            shutil.rmtree(corpus_dir(name), ignore_errors=True)
            if settings.CORPORA:
                bucket.delete(name)
            if isinstance(error, ActionError):
                sentence = str(error).replace(f"{folder}/", "").replace(str(listed), str(rejects))
                raise ProjectError(f"The project, converted to files of Assay, was refused: {sentence}") from error
            raise


def _steps(project: Project, folder: Path, name: str, values: Values) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the names of the actions that import the files, each with its inputs."""
    terms = {option: values[option] for option in ("licence", "text_may_leave", "source", "max_rejects")}
    terms["source"] = terms["source"] or f"a project of {project.tool}"
    fields = {"fields": list(project.fields), "files": [folder / RECORDS]}
    steps: list[tuple[str, Mapping[str, Any]]] = [("import_corpus", {"corpus": name, **fields, **terms})]
    if project.form == "labels":
        steps.append(("import_vocabulary", {"name": name, "files": [folder / CONCEPTS]}))
    for model in map(export_files.predictor_name, project.predictions):
        steps.append(
            ("import_predictions", {"corpus": name, "file": folder / f"{model}.jsonl", "name": model, "version": "1"})
        )
    kind = {"kind": str(folder / f"{name}.toml"), "design": "records", "languages": "all", "seed": name}
    steps.append(("open_task", {"name": name, "corpus": name, **kind, "redundancy": values["redundancy"]}))
    if project.judgments:
        # Items with the same text share one label, so the answers to all but one of them are rejected.
        steps.append(("import_judgments", {"task": name, "file": folder / JUDGMENTS, "max_rejects": "100%"}))
    return steps
