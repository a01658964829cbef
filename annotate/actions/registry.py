"""The program `assay` and its commands, listed in the order that users need them.

An action's module is imported only when the action is needed.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from difflib import get_close_matches
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import django
from django.core import management
from django.core.management import ManagementUtility, get_commands, load_command_class
from django.core.management.base import BaseCommand, CommandError

from annotate import exit_status
from corpora.system import IN_CHECKOUT, VERSION, private

if TYPE_CHECKING:
    from annotate.actions.action import Action

# Group -> command -> (module of the action, one-line description). Modules without a package are in actions/. Commands
# without a module are in management/commands/.
COMMANDS = {
    "Set up": {
        "serve": ("", "Prepare the database and serve the pages; --demo also creates small tasks."),
        "work": ("", "Run the jobs that managers start in the browser, if `serve` does not run them."),
        "add_manager": ("user_accounts", "Create an account for a manager, and print its password."),
        "create_token": ("user_accounts", "Create a token for the API."),
        "status": ("status", "Show the status of the installation, and what to do next."),
    },
    "Corpora": {
        "import_corpus": ("corpus_files", "Import files of posts or records into a corpus."),
        "import": ("import_project", "Import a project of another annotation tool, with its answers."),
        "import_threads": ("message_pairs", "Create a corpus of message-reply pairs."),
        "import_scores": ("message_pairs", "Import a scorer's scores for a corpus of message-reply pairs."),
        "prelabel": ("label_sources", "Have the detectors label the language of each post."),
        "import_predictions": ("label_sources", "Import a classifier's predictions for a corpus."),
        "vote": ("vote", "Ask a language model for the label of each item of a corpus."),
        "import_vocabulary": ("label_sources", "Import a thesaurus whose concepts can be labels."),
        "suggest": ("label_sources", "Suggest ranked labels of a vocabulary for records."),
        "export_corpus": ("corpus_files", "Write a corpus as files that can be imported again."),
        "corpora": ("status", "List the corpora."),
        "predictors": ("status", "List the predictors of each corpus."),
        "vocabularies": ("status", "List the vocabularies and their versions."),
    },
    "Tasks": {
        "plan": ("plan", "Show how many posts to draw and label for a given interval width."),
        "panel": ("plan", "Show how often panels of voters agree and err, and what is left to annotators."),
        "open_task": ("open_task", "Draw items from a corpus and open a task for annotators."),
        "extend_task": ("open_task", "Draw more items for a task."),
        "tasks": ("status", "List the tasks with their progress."),
        "draws": ("status", "List the draws."),
        "close": ("task_management", "Close a task, so that annotators no longer receive its items."),
        "reopen": ("task_management", "Reopen a closed task."),
        "delete": ("task_management", "Delete an unused task, corpus or predictor."),
        "check_kind": ("annotate.pages.kind_preview", "Preview your own kind of question as annotators will see it."),
        "import_judgments": ("judgment_files", "Import judgments that were made outside Assay."),
    },
    "People": {
        "add_annotators": ("user_accounts", "Create annotators from a table, and print their login links."),
        "members": ("task_management", "Show or change who works on a task, in which role, and how much."),
        "unlock": ("user_accounts", "Unlock an account after too many wrong passwords."),
        "reroute": ("task_management", "Move items from queues with too few readers to the next queue."),
        "adjudicate": ("decision_files", "Import an adjudicator's decisions, or list the items to decide."),
        "audit": ("quality_reports", "Show the results of audits, checks and decoys, or add more."),
        "agreement": ("quality_reports", "Show how much the annotators of a task agree."),
        "preferences": ("quality_reports", "Show which of two systems annotators prefer."),
    },
    "Results": {
        "export_gold": ("gold_sets", "Write a task's gold set."),
        "export_pairs": ("message_pairs", "Write message-reply pairs in splits, with a set of frequent replies."),
        "project": ("gold_sets", "State who publishes a project's gold sets, and for what."),
        "publish": ("gold_sets", "Send a gold set to the Hugging Face Hub, or pack it into an archive."),
        "import_gold": ("gold_sets", "Import a published gold set."),
        "hydrate": ("gold_sets", "Write the ids of a published set, or join it with downloaded texts."),
        "evaluate": ("evaluate", "Measure a classifier on gold sets."),
        "baseline": ("evaluate", "Measure simple baselines on a gold set, and add them to its card."),
        "verify_lots": ("gold_sets", "Repeat the random draws of a gold set, and report differences."),
    },
}
# These commands change source files, so they are available only in a checkout.
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
        value for value in vars(loaded).values() if getattr(value, "name", "") == name and hasattr(value, "perform")
    )
    return action


@cache
def by_name() -> dict[str, Action]:
    return {name: action_named(name) for name, module in MODULES.items() if module}


def command_named(name: str) -> BaseCommand:
    """Return a command by name. It may run an action, be in management/commands/, or be one of Django's.

    Raise CommandError if there is no such command.
    """
    if MODULES.get(name):
        command: BaseCommand = import_module("annotate.actions.commands").ActionCommand(action_named(name))
        return command
    if name not in get_commands():
        raise CommandError(f"There is no command {name!r}.")
    return load_command_class(get_commands()[name], name)


def call_command(name: str, /, *words: Any, **options: Any) -> Any:
    """Call a command by name. The arguments and the result are as in Django's `call_command`."""
    return management.call_command(command_named(name), *words, **options)


# --- The program `assay`, which is also `python manage.py`; Django's own commands run as `assay django COMMAND`.

HELP = {"help", "-h", "--help"}
# Commands create and keep hundreds of thousands of rows. At Python's default threshold of 700, the garbage collector's
# repeated scans of these rows took up a third of the time that it takes to open a task.
GC_THRESHOLD = 50_000


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.settings")
    arguments = sys.argv[1:]
    gc.set_threshold(GC_THRESHOLD)
    # Django's commands handle Ctrl-C themselves: a shell continues, whereas a server exits.
    with private():
        status = exit_status.run(partial(run, arguments), listens=arguments[:1] != ["django"])
    # The work is finished, so ignore signals that arrive now.
    for number in exit_status.STOPS:
        signal.signal(number, signal.SIG_IGN)
    sys.exit(status)


def run(arguments: list[str]) -> None:
    match arguments or ["help"]:
        case [word, name, *_] if word in HELP and name not in HELP:
            run([name, "--help"])
        case [word, *_] if word in HELP:
            print(help_text())
        case ["version" | "--version"]:
            print(f"Assay {VERSION}")
        case ["django", *rest]:
            ManagementUtility(["assay django", *rest]).execute()
        case [name, *rest] if name in MODULES:
            gc.disable()
            django.setup()
            command = command_named(name)
            gc.freeze()  # exempt the loaded modules, which stay in use, from garbage collection
            gc.enable()
            command.run_from_argv(["assay", name, *rest])
        case [name, *_]:
            raise CommandError(unknown_command(name), returncode=exit_status.USAGE_ERROR)


def help_text() -> str:
    width = max(map(len, MODULES))
    groups = [
        "\n".join([f"{group}:", *(f"  {name:{width}}  {summary}" for name, (_, summary) in commands.items())])
        for group, commands in COMMANDS.items()
    ]
    return "\n\n".join(
        [
            f"Assay {VERSION} builds gold sets for multilingual text.",
            "Usage: assay COMMAND [options]. `assay COMMAND --help` describes the options.",
            *groups,
            "Django's own commands, such as migrate and shell: assay django COMMAND.",
        ]
    )


def unknown_command(name: str) -> str:
    django.setup()
    spellings = {command: f"assay django {command}" for command in get_commands()} | {
        command: f"assay {command}" for command in MODULES
    }
    near = [] if name.startswith("-") else get_close_matches(name, spellings, n=2)
    matches = [f"`{spellings[command]}`" for command in near]
    hint = f"Did you mean {' or '.join(matches)}? " if matches else ""
    return f"There is no command {name!r}. {hint}See `assay --help`."
