"""The command `assay`, which is also `python manage.py`. actions/registry.py lists the commands; Django's own run as
`assay django COMMAND`.
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

from annotate import exit_status
from annotate.actions.registry import COMMANDS, MODULES
from corpora.system import VERSION, private

HELP = {"help", "-h", "--help"}
# Commands make and keep rows by the 100,000. By Python's own threshold, 700, all of these are looked through for
# garbage again and again, which took a third of the time that a task takes to open.
COLLECTED_EVERY = 50_000


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.settings")
    words = sys.argv[1:]
    gc.set_threshold(COLLECTED_EVERY)
    # Django's commands deal with Ctrl-C themselves: a shell goes on, a server ends.
    with private():
        status = exit_status.run(partial(run, words), listens=words[:1] != ["django"])
    # All is done and said; whoever wants to stop it now comes too late.
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
            from annotate.actions.commands import command_named

            command_named(name).run_from_argv(["assay", name, *rest])
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
