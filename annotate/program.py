"""The command `assay`, which is also `python manage.py`: which commands there are, in the order of the work.

What a command does stands in actions/. Django's own commands run as `assay django COMMAND`.
"""

import gc
import os
import signal
import sys
from difflib import get_close_matches
from functools import partial

import django
from django.core.management import ManagementUtility, get_commands
from django.core.management.base import CommandError

from annotate import endings
from annotate.actions.calling import STATUS
from corpora.system import IN_CHECKOUT, VERSION, private

# Group -> command -> what it does, in a line.
COMMANDS = {
    "Set up": {
        "serve": "Prepare the database and serve the pages; --demo sets up small tasks first.",
        "work": "Do what managers begin in the browser, where `serve` does not.",
        "add_manager": "Make an account for a manager, and print its password.",
        "create_token": "Make a token with which somebody can use the API.",
        "status": "Show what stands, and what to do next.",
    },
    "Corpora": {
        "import_corpus": "Take files of posts or records into a corpus.",
        "import_threads": "Make a corpus of pairs of message and reply.",
        "import_scores": "Take in what a scorer says of a corpus's pairs.",
        "prelabel": "Have three detectors name the language of every post.",
        "import_predictions": "Take in what a classifier says of a corpus's posts.",
        "import_vocabulary": "Take in a thesaurus whose concepts can be labels.",
        "suggest": "Rank labels of a vocabulary for the records of a corpus.",
        "corpora": "List the corpora.",
        "predictors": "List the predictors of each corpus.",
        "vocabularies": "List the vocabularies and their versions.",
    },
    "Tasks": {
        "plan": "Say how much must be drawn and read for intervals of a wished width.",
        "open_task": "Draw from a corpus and ask people about what was drawn.",
        "tasks": "List the tasks, and how far each is.",
        "draws": "List what was drawn, and how.",
        "close": "Close a task: nobody is given its units any more.",
        "reopen": "Open a closed task again.",
        "delete": "Delete a task or a corpus that nothing rests on.",
        "check_kind": "Show what people will see of a kind of question of your own.",
        "import_judgments": "Take in judgments that people made elsewhere.",
    },
    "People": {
        "add_annotators": "Make annotators from a table, each with a link to log in by.",
        "unlock": "Let somebody log in at once who typed too many wrong passwords.",
        "reroute": "Send on units of queues that too few people read.",
        "adjudicate": "Take in an adjudicator's decisions from a file, or list what waits.",
        "audit": "Show what people found where the detectors agreed.",
        "agreement": "Show how far the annotators of a task agree.",
        "preferences": "Show which of two systems the people of a task prefer.",
    },
    "Results": {
        "export_gold": "Write a task's gold set.",
        "export_pairs": "Write pairs of message and reply in splits, with a set of frequent replies.",
        "import_gold": "Take in a gold set that was published elsewhere.",
        "evaluate": "Measure a classifier on gold sets.",
        "verify_lots": "Draw the lots of a gold set again, and say whether they are as they should be.",
    },
}
# They change the source.
if IN_CHECKOUT:
    COMMANDS["For developers"] = {
        "write_docs": "Write what is generated in the documentation anew.",
        "write_catalogs": "Write the catalogs of translations anew, and compile them.",
    }
HELP = {"help", "-h", "--help"}
# Commands make and keep rows by the 100,000. By Python's own threshold, 700, all of these are looked through for
# garbage again and again, which took a third of the time that a task takes to open.
COLLECTED_EVERY = 50_000
NAMES = {name for commands in COMMANDS.values() for name in commands}


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.settings")
    words = sys.argv[1:]
    gc.set_threshold(COLLECTED_EVERY)
    # Django's commands deal with Ctrl-C themselves: a shell goes on, a server ends.
    with private():
        status = endings.run(partial(run, words), listens=words[:1] != ["django"])
    # All is done and said; whoever wants to stop it now comes too late.
    for number in endings.STOPS:
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
        case [name, *rest] if name in NAMES:
            django.setup()
            from annotate.actions.commands import command_named

            command_named(name).run_from_argv(["assay", name, *rest])
        case [name, *_]:
            raise CommandError(unknown(name), returncode=STATUS)


def overview() -> str:
    width = max(map(len, NAMES))
    groups = [
        "\n".join([f"{group}:", *(f"  {name:{width}}  {does}" for name, does in commands.items())])
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
    spelled = {each: f"assay django {each}" for each in get_commands()} | {each: f"assay {each}" for each in NAMES}
    near = [f"`{spelled[each]}`" for each in get_close_matches(name, spelled, n=2)]
    meant = f"Did you mean {' or '.join(near)}? " if near else ""
    return f"There is no command {name!r}. {meant}`assay --help` lists all."
