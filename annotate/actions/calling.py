"""How our commands are called: what their help tells, in which order, and what is wrong with a call, in our words."""

import re
from argparse import Action
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandError, CommandParser

from corpora.system import VERSION

# Headings of a help: the first, and the last.
NEEDED, OTHERS = "Required", "Options"
PAIR = "FIELD=COLUMN"  # stands for a value that says which column of a file is which field
STATUS = 2  # of a command that was called wrongly
# What argparse says -> what we say. For an option, argparse says `argument --k: ...`; we name the option first.
WORDS = (
    (r"the following arguments are required: (.+)", r"Something is missing: \1."),
    (r"one of the arguments (.+) is required", r"One of these is needed: \1."),
    (r"unrecognized arguments: (.+)", r"This command does not know: \1."),
    (r"argument ([^:]+): expected (?:one|at least one) argument", r"\1 needs a value after it."),
    (r"argument ([^:]+): expected (\d+) arguments", r"\1 needs \2 values after it."),
    (r"argument ([^:]+): not allowed with argument (.+)", r"\1 and \2 exclude each other; give one of them."),
    (r"argument ([^:]+): ignored explicit argument (.+)", r"\1 takes no value, and \2 was given."),
    (r"argument ([^:]+): invalid choice: (.+) \(choose from (.+)\)", r"\1 cannot be \2; it is one of \3."),
    (r"argument ([^:]+): invalid \w+ value: (.+)", r"\1 cannot be \2."),
    (r"ambiguous option: (\S+) could match (.+)", r"\1 may mean any of \2; write it in full."),
)


def meant(words: Sequence[str], options: Collection[str]) -> str:
    """For each unknown option a question that names the known one it may mean; empty if no known one comes near."""
    told = []
    for word in dict.fromkeys(word.partition("=")[0] for word in words if word.startswith("--")):
        if any(option.startswith(word) for option in options):
            continue  # known, or short for one
        if near := get_close_matches(word, options, n=1, cutoff=0.7):
            told.append(f"Did you mean {near[0]} by {word}? ")
    return "".join(told)


def apart(words: Sequence[str], options: Mapping[str, Action]) -> str:
    """What is to be said where FIELD=COLUMN was given as two words, `--column id tweet_id`."""
    for option, value, other in zip(words, words[1:], words[2:], strict=False):
        if option in options and options[option].metavar == PAIR and "=" not in value:
            return f"{option} takes {PAIR} in one word, such as {value}={other}. "
    return ""


def in_our_words(message: str) -> str:
    for pattern, ours in WORDS:
        if found := re.fullmatch(pattern, message, re.DOTALL):
            return found.expand(ours)
    return f"{message[:1].upper()}{message[1:]}."


class Command(BaseCommand):
    """The base of all our commands. Django's own options work, but their help is about ours; what is wrong is raised,
    and annotate/endings.py says how the program ends.
    """

    suppressed_base_arguments = {
        "--version",
        "--verbosity",
        "--settings",
        "--pythonpath",
        "--traceback",
        "--no-color",
        "--force-color",
    }
    # System checks look at the code, and the tests run them.
    requires_system_checks = []

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        # Django's own --version gives way to a predictor's.
        parser = super().create_parser(prog_name, subcommand, conflict_handler="resolve", **kwargs)
        parser._positionals.title, parser._optionals.title = NEEDED, OTHERS
        # What stands in no group comes after the groups.
        parser._action_groups.remove(parser._optionals)
        parser._action_groups.append(parser._optionals)

        given = list[str]()

        def remember(args: Any = None, namespace: Any = None) -> Any:
            given[:] = map(str, args or ())
            known, others = parser.parse_known_args(args, namespace)
            # Files may stand after an option, too; read so, argparse would not tell at once all that is missing.
            return parser.parse_intermixed_args(args, namespace) if others else known

        def refuse(message: str) -> NoReturn:
            options = parser._option_string_actions
            near = f"{apart(given, options)}{meant(given, options)}"
            said = f"{in_our_words(message)} {near}`assay {subcommand} --help` says more."
            raise CommandError(said, returncode=STATUS)

        # argparse says what is missing first, and not what was given in its place.
        parser.parse_args = remember  # type: ignore[method-assign]
        parser.error = refuse  # type: ignore[method-assign]
        # Otherwise Django prints what a command raises, under the name of its class.
        parser.set_defaults(traceback=True)
        return parser

    def get_version(self) -> str:
        return VERSION
