"""All commands of `assay`, in the order of the work. Actions are imported when they are asked for, not before."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from corpora.system import IN_CHECKOUT

if TYPE_CHECKING:
    from annotate.actions.action import Action

# Group -> command -> the module of its action, and what it does in a line. A module in actions/ is named without its
# package; commands without a module are in management/commands/.
COMMANDS = {
    "Set up": {
        "serve": ("", "Prepare the database and serve the pages; --demo sets up small tasks first."),
        "work": ("", "Do what managers begin in the browser, where `serve` does not."),
        "add_manager": ("user_accounts", "Make an account for a manager, and print its password."),
        "create_token": ("user_accounts", "Make a token with which somebody can use the API."),
        "status": ("status", "Show what stands, and what to do next."),
    },
    "Corpora": {
        "import_corpus": ("import_corpus", "Take files of posts or records into a corpus."),
        "import_threads": ("import_threads", "Make a corpus of pairs of message and reply."),
        "import_scores": ("import_scores", "Take in what a scorer says of a corpus's pairs."),
        "prelabel": ("machine_labels", "Have the detectors name the language of every post."),
        "import_predictions": ("import_predictions", "Take in what a classifier says of a corpus's posts."),
        "import_vocabulary": ("import_vocabulary", "Take in a thesaurus whose concepts can be labels."),
        "suggest": ("machine_labels", "Rank labels of a vocabulary for the records of a corpus."),
        "corpora": ("listings", "List the corpora."),
        "predictors": ("listings", "List the predictors of each corpus."),
        "vocabularies": ("listings", "List the vocabularies and their versions."),
    },
    "Tasks": {
        "plan": ("plan", "Say how much must be drawn and read for intervals of a wished width."),
        "open_task": ("open_task", "Draw from a corpus and ask people about what was drawn."),
        "tasks": ("listings", "List the tasks, and how far each is."),
        "draws": ("listings", "List what was drawn, and how."),
        "close": ("task_lifecycle", "Close a task: nobody is given its units any more."),
        "reopen": ("task_lifecycle", "Open a closed task again."),
        "delete": ("task_lifecycle", "Delete a task or a corpus that nothing rests on."),
        "check_kind": (
            "annotate.management.kind_check",
            "Show what people will see of a kind of question of your own.",
        ),
        "import_judgments": ("import_judgments", "Take in judgments that people made elsewhere."),
    },
    "People": {
        "add_annotators": ("user_accounts", "Make annotators from a table, each with a link to log in by."),
        "unlock": ("user_accounts", "Let somebody log in at once who typed too many wrong passwords."),
        "reroute": ("task_lifecycle", "Send on units of queues that too few people read."),
        "adjudicate": ("decision_files", "Take in an adjudicator's decisions from a file, or list what waits."),
        "audit": ("audit", "Show what people found where the detectors agreed."),
        "agreement": ("annotator_agreement", "Show how far the annotators of a task agree."),
        "preferences": ("annotator_agreement", "Show which of two systems the people of a task prefer."),
    },
    "Results": {
        "export_gold": ("export_gold", "Write a task's gold set."),
        "export_pairs": ("export_pairs", "Write pairs of message and reply in splits, with a set of frequent replies."),
        "import_gold": ("import_gold", "Take in a gold set that was published elsewhere."),
        "evaluate": ("evaluate", "Measure a classifier on gold sets."),
        "verify_lots": (
            "verify_lots",
            "Draw the lots of a gold set again, and say whether they are as they should be.",
        ),
    },
}
# They change the source.
if IN_CHECKOUT:
    COMMANDS["For developers"] = {
        "write_docs": ("", "Write what is generated in the documentation anew."),
        "write_catalogs": ("", "Write the catalogs of translations anew, and compile them."),
    }
MODULES = {name: module for commands in COMMANDS.values() for name, (module, _) in commands.items()}


@cache
def action_named(name: str) -> Action:
    """The action of a command. KeyError if the command has none."""
    if not (module := MODULES[name]):
        raise KeyError(name)
    loaded = import_module(module if "." in module else f"annotate.actions.{module}")
    return next(
        each for each in vars(loaded).values() if getattr(each, "name", "") == name and hasattr(each, "perform")
    )


@cache
def by_name() -> dict[str, Action]:
    return {name: action_named(name) for name, module in MODULES.items() if module}
