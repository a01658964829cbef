"""The program `assay` and its commands, listed in the order in which users need them.

The module of an action is imported only when the action is needed.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from difflib import get_close_matches
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING

import django
from django.core.management import ManagementUtility, get_commands
from django.core.management.base import CommandError

from annotate import exit_status
from corpora.system import IN_CHECKOUT, VERSION, private

if TYPE_CHECKING:
    from annotate.actions.action import Action

# Group -> command -> (module of its action, one-line description). Modules in actions/ are named without their package.
# A command without a module is in management/commands/.
COMMANDS = {
    "Set up": {
        "serve": ("", "Prepare the database and serve the pages; --demo sets up small tasks first."),
        "work": ("", "Run the jobs that managers start in the browser, where `serve` does not."),
        "add_manager": ("user_accounts", "Make an account for a manager, and print its password."),
        "create_token": ("user_accounts", "Make a token for the API."),
        "status": ("status", "Show the status of the installation, and what to do next."),
    },
    "Corpora": {
        "import_corpus": ("import_corpus", "Import files of posts or records into a corpus."),
        "import_threads": ("message_pairs", "Make a corpus of pairs of message and reply."),
        "import_scores": ("message_pairs", "Import a scorer's scores for a corpus of pairs."),
        "prelabel": ("predictors", "Have the detectors name the language of every post."),
        "import_predictions": ("predictors", "Import a classifier's predictions for a corpus."),
        "import_vocabulary": ("import_vocabulary", "Import a thesaurus whose concepts can be labels."),
        "suggest": ("predictors", "Rank labels of a vocabulary for the records of a corpus."),
        "corpora": ("status", "List the corpora."),
        "predictors": ("status", "List the predictors of each corpus."),
        "vocabularies": ("status", "List the vocabularies and their versions."),
    },
    "Tasks": {
        "plan": ("plan", "Show how much to draw and read for intervals of a given width."),
        "open_task": ("open_task", "Draw from a corpus and ask people about what was drawn."),
        "extend_task": ("open_task", "Draw more units for a task."),
        "tasks": ("status", "List the tasks with their progress."),
        "draws": ("status", "List the draws."),
        "close": ("task_lifecycle", "Close a task: nobody receives its units any more."),
        "reopen": ("task_lifecycle", "Reopen a closed task."),
        "delete": ("task_lifecycle", "Delete an unused task, corpus or predictor."),
        "check_kind": (
            "annotate.management.kind_check",
            "Show what people will see of your own kind of question.",
        ),
        "import_judgments": ("judgment_files", "Import judgments that people made elsewhere."),
    },
    "People": {
        "add_annotators": ("user_accounts", "Make annotators from a table, each with a login link."),
        "unlock": ("user_accounts", "Let somebody log in again after too many wrong passwords."),
        "reroute": ("task_lifecycle", "Send units of queues with too few readers on."),
        "adjudicate": ("decision_files", "Import an adjudicator's decisions from a file, or list what waits."),
        "audit": ("audit", "Show the results of audits, checks and decoys, or add more."),
        "agreement": ("annotator_agreement", "Show how far the annotators of a task agree."),
        "preferences": ("annotator_agreement", "Show which of two systems the people of a task prefer."),
    },
    "Results": {
        "export_gold": ("gold_sets", "Write a task's gold set."),
        "export_pairs": (
            "message_pairs",
            "Write pairs of message and reply in splits, with a set of frequent replies.",
        ),
        "import_gold": ("gold_sets", "Import a gold set that was published elsewhere."),
        "evaluate": ("evaluate", "Measure a classifier on gold sets."),
        "verify_lots": (
            "gold_sets",
            "Repeat the random draws of a gold set, and report differences.",
        ),
    },
}
# These commands change files of the source code, so only a checkout has them.
if IN_CHECKOUT:
    COMMANDS["For developers"] = {
        "write_docs": ("", "Regenerate the generated parts of the documentation."),
        "write_catalogs": ("", "Regenerate and compile the catalogs of translations."),
    }
MODULES = {name: module for commands in COMMANDS.values() for name, (module, _) in commands.items()}


@cache
def action_named(name: str) -> Action:
    """Return the action of a command. Raise KeyError if the command has none."""
    if not (module := MODULES[name]):
        raise KeyError(name)
    loaded = import_module(module if "." in module else f"annotate.actions.{module}")
    action: Action = next(
        each for each in vars(loaded).values() if getattr(each, "name", "") == name and hasattr(each, "perform")
    )
    return action


@cache
def by_name() -> dict[str, Action]:
    return {name: action_named(name) for name, module in MODULES.items() if module}


# --- The program `assay`, which is also `python manage.py`; Django's own commands run as `assay django COMMAND`.

HELP = {"help", "-h", "--help"}
# Threshold of the garbage collector. Commands create and keep hundreds of thousands of rows. At Python's default
# threshold of 700, the collector scans them again and again, which took a third of the time for opening a task.
COLLECTED_EVERY = 50_000


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.settings")
    words = sys.argv[1:]
    gc.set_threshold(COLLECTED_EVERY)
    # Django's commands handle Ctrl-C themselves: a shell continues, whereas a server exits.
    with private():
        status = exit_status.run(partial(run, words), listens=words[:1] != ["django"])
    # The work is finished, so ignore signals that arrive now.
    for number in exit_status.STOPS:
        signal.signal(number, signal.SIG_IGN)
    sys.exit(status)


def run(words: list[str]) -> None:
    match words or ["help"]:
        case [word, name, *_] if word in HELP and name not in HELP:
            run([name, "--help"])
        case [word, *_] if word in HELP:
            print(overview())
        case ["version" | "--version"]:
            print(f"Assay {VERSION}")
        case ["django", *rest]:
            ManagementUtility(["assay django", *rest]).execute()
        case [name, *rest] if name in MODULES:
            django.setup()
            import_module("annotate.actions.commands").command_named(name).run_from_argv(["assay", name, *rest])
        case [name, *_]:
            raise CommandError(unknown(name), returncode=exit_status.CALLED_WRONGLY)


def overview() -> str:
    width = max(map(len, MODULES))
    groups = [
        "\n".join([f"{group}:", *(f"  {name:{width}}  {does}" for name, (_, does) in commands.items())])
        for group, commands in COMMANDS.items()
    ]
    return "\n\n".join(
        [
            f"Assay {VERSION} builds gold sets for multilingual text.",
            "Usage: assay COMMAND [options]; `assay COMMAND --help` says what its options are.",
            *groups,
            "Django's own commands, such as migrate and shell: assay django COMMAND.",
        ]
    )


def unknown(name: str) -> str:
    django.setup()
    spelled = {each: f"assay django {each}" for each in get_commands()} | {each: f"assay {each}" for each in MODULES}
    near = [f"`{spelled[each]}`" for each in get_close_matches(name, spelled, n=2)]
    meant = f"Did you mean {' or '.join(near)}? " if near else ""
    return f"There is no command {name!r}. {meant}`assay --help` lists all."
