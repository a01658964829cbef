"""The action `project`: state what the program cannot know about a project, for the documents of its gold sets."""

from annotate.actions.action import Outcome, Progress, Values, action
from annotate.core.option import Option
from annotate.goldsets.statements import PERSONAL, PROJECT, read_project, write_project


@action(
    "project",
    "State what the program cannot know about a project. Exported sets then contain it in croissant.json (Croissant "
    "with the Responsible-AI fields), DATA_STATEMENT.md and METHODS.tex. What is not stated is marked as missing. "
    f"The statements are stored in {PROJECT} in the data folder. Options that are not given stay as they are.",
    *(Option(name, default="", help=question) for name, question in PERSONAL.items()),
    on_files=True,
)
def project_action(values: Values, progress: Progress) -> Outcome:
    stated = read_project() | {name: values[name].strip() for name in PERSONAL if values[name].strip()}
    write_project(stated)
    missing = [name for name in PERSONAL if name not in stated]
    lines = [f"{name}: {text}" for name, text in stated.items()]
    lines.append(f"Not stated: {', '.join(missing)}." if missing else "Everything is stated.")
    return Outcome(lines, data={"stated": stated, "missing": missing})
