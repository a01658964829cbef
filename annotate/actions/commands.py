"""The command line: argparse with our own help and error messages, and a command for each action.

Click would not make this module shorter: it has no options with several consecutive values, and its error messages
would need rewording too.
"""

import argparse
import json
import re
import sys
from argparse import ArgumentParser, _ArgumentGroup
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import takewhile
from typing import Any, NoReturn

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser, OutputWrapper
from tqdm import tqdm

from annotate.actions.action import Action, ActionError, Encoder, Progress
from annotate.actions.database import prepare
from annotate.core.option import (
    Option,
    OptionError,
    codes,
    days,
    flag,
    fraction,
    labels,
    points,
    share,
    whole_number,
    words,
)
from annotate.exit_status import USAGE_ERROR
from corpora.storage.layout import corpora_on_disk
from corpora.system import VERSION

# Headings of the first and the last group in the help.
NEEDED, OTHERS = "Required", "Options"
LISTS = ("CODES", "LABELS", "WORDS")  # metavars of options that expect a list as one argument
DELAY = 1e-9  # seconds; any delay keeps a progress bar from appearing before the first step
PAIR = "FIELD=COLUMN"  # metavar of options that map a column of a file to a field
# (pattern of argparse's message, our message). argparse writes `argument --k: ...`; our messages begin with the name of
# the option.
MESSAGES = (
    (r"the following arguments are required: (.+)", "Required arguments are missing: \\1."),
    (r"unrecognized arguments: (.+)", "Unknown arguments: \\1."),
    (r"argument ([^:]+): expected (?:one|at least one) argument", "\\1 requires a value."),
    (r"argument ([^:]+): not allowed with argument (.+)", "\\1 and \\2 cannot be used together."),
    (r"argument ([^:]+): ignored explicit argument (.+)", "\\1 does not accept a value, but \\2 was passed."),
    (r"ambiguous option: (\S+) could match (.+)", "\\1 is ambiguous. It could be \\2."),
)


def did_you_mean(arguments: Sequence[str], options: Collection[str]) -> str:
    """Return a "Did you mean" question for each unknown option that looks like an option of the command.

    arguments: command-line arguments
    options: the options of the command
    """
    questions = []
    for word in dict.fromkeys(word.partition("=")[0] for word in arguments if word.startswith("--")):
        if any(option.startswith(word) for option in options):
            continue  # the word is a known option or an abbreviation of one
        if matches := get_close_matches(word, options, n=1, cutoff=0.7):
            questions.append(f"Did you mean {matches[0]} instead of {word}? ")
    return "".join(questions)


def split_pair_hint(arguments: Sequence[str], options: Mapping[str, argparse.Action]) -> str:
    """Return a hint if the user wrote FIELD=COLUMN as two words, for example `--column id tweet_id`.

    Otherwise return an empty string.

    arguments: command-line arguments
    options: mapping from option to its argparse action
    """
    for option, value, other in zip(arguments, arguments[1:], arguments[2:], strict=False):
        if option in options and options[option].metavar == PAIR and "=" not in value:
            return f"{option} expects {PAIR} as one argument, such as {value}={other}. "
    return ""


def unquoted_hint(arguments: Sequence[str], options: Mapping[str, argparse.Action]) -> str:
    """Return a hint if the user wrote a list as several words without quotes, for example `--languages en de`.

    Otherwise return an empty string.

    arguments: command-line arguments
    options: mapping from option to its argparse action
    """
    for place, option in enumerate(arguments):
        if option in options and options[option].metavar in LISTS and options[option].nargs is None:
            values = list(takewhile(lambda word: not word.startswith("-"), arguments[place + 1 :]))
            if len(values) > 1:
                return f'{option} expects a list as one argument. Quote it: {option} "{" ".join(values)}". '
    return ""


def reword(message: str) -> str:
    for pattern, replacement in MESSAGES:
        if match := re.fullmatch(pattern, message, re.DOTALL):
            return match.expand(replacement)
    return f"{message[:1].upper()}{message[1:]}."


class Command(BaseCommand):
    """The base class of all our commands.

    It hides Django's own options from the help. It doesn't handle errors: annotate/exit_status.py prints them and
    determines the exit status.
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
    # System checks inspect only the code, so the tests run them instead.
    requires_system_checks = []
    name = ""  # if empty, the command has the name of its module
    options: Sequence[Option] = ()

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        subcommand = self.name or subcommand
        # `conflict_handler` lets a command replace Django's --version with its own option.
        parser = super().create_parser(prog_name, subcommand, conflict_handler="resolve", **kwargs)
        parser._positionals.title, parser._optionals.title = NEEDED, OTHERS
        # In the help, list options without a group after the groups.
        parser._action_groups.remove(parser._optionals)
        parser._action_groups.append(parser._optionals)

        arguments = list[str]()

        def remember(args: Any = None, namespace: Any = None) -> Any:
            arguments[:] = map(str, args or ())
            parsed, leftover = parser.parse_known_args(args, namespace)
            # parse_intermixed_args also accepts files after options. Use it only if arguments are left over, because
            # it doesn't report all missing arguments together.
            return parser.parse_intermixed_args(args, namespace) if leftover else parsed

        def refuse(message: str) -> NoReturn:
            options = parser._option_string_actions
            hints = split_pair_hint(arguments, options) + unquoted_hint(arguments, options)
            hints += did_you_mean(arguments, options)
            sentence = f"{reword(message)} {hints}See `assay {subcommand} --help`."
            raise CommandError(sentence, returncode=USAGE_ERROR)

        # If arguments are missing, argparse reports only that, even if the user misspelled an option. `remember` keeps
        # the command-line arguments, so that `refuse` can look for such mistakes.
        parser.parse_args = remember  # type: ignore[method-assign]
        parser.error = refuse  # type: ignore[method-assign]
        # Otherwise, Django would catch a CommandError and print it with the name of its class.
        parser.set_defaults(traceback=True)
        return parser

    def add_arguments(self, parser: ArgumentParser) -> None:
        # The help lists optional positional arguments among the options.
        groups, usage = {NEEDED: parser._positionals, "": parser._optionals}, ["%(prog)s"]
        for option in sorted(self.options, key=lambda option: not option.required):
            heading = NEEDED if option.required else option.group
            if heading not in groups:
                groups[heading] = parser.add_argument_group(heading)
            usage.append(_add(groups[heading], option))
        parser.usage = " ".join(filter(None, [*usage, "[options]"]))

    def values(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of the options. Raise CommandError if one is invalid."""
        try:
            return {option.name: option.value(inputs[option.name]) for option in self.options}
        except OptionError as error:
            raise CommandError(str(error)) from error

    def get_version(self) -> str:
        return VERSION


# --- Commands of actions

PROGRAM = "assay"
# Function that parses an option's value -> placeholder for the value in the help.
PLACEHOLDERS: Mapping[Callable[[str], Any], str] = {
    **{whole_number: "N", share: "SHARE", fraction: "SHARE", points: "POINTS"},
    **{codes: "CODES", days: "DAYS", words: "WORDS", labels: "LABELS"},
}


YES = Option("yes", flag, False, help="do not ask for confirmation")
JSON = Option("json", flag, False, help="print one JSON document instead of text")


class ActionCommand(Command):
    """The command that runs an action."""

    _called_from_command_line: bool  # Django sets it

    def __init__(self, action: Action) -> None:
        super().__init__()
        self.action, self.name, self.help = action, action.name, action.description
        options = action.options
        if action.completes:  # the action can derive the other options from the first argument
            options = (options[0], *(replace(option, required=False) for option in options[1:]))
        self.options = (*options, *([YES] if action.asks else []), JSON)

    def handle(self, *args: Any, **options: Any) -> None:
        if self._called_from_command_line and not self.action.on_files and prepare(only_new=True):
            # The message helps users who mistyped the data folder or the database.
            with_corpora = f"Created a new, empty database. The files in {settings.DATA_DIR} are unchanged."
            without_corpora = f"Created a new data folder: {settings.DATA_DIR}."
            self.stderr.write(with_corpora if corpora_on_disk() else without_corpora)
        inputs = {option.name: options[option.name] for option in self.action.options}
        as_json = bool(options["json"])
        # With --json, write everything except the JSON document to stderr.
        progress = _Bar(self, self.stderr if as_json else self.stdout)
        try:
            if self.action.completes:
                inputs = self._complete(inputs, progress)
            if self.action.asks and not options["yes"] and (consequences := self.action.describe_consequences(inputs)):
                self._confirm(consequences)
            outcome = self.action.perform(inputs, progress)
        except ActionError as error:
            raise CommandError(str(error), returncode=error.status) from error
        finally:
            progress.bar.close()
        for sentence in outcome.warned:
            self.stderr.write(sentence)
        if as_json:
            self.stdout.write(json.dumps(outcome.complete().data, indent=2, ensure_ascii=False, cls=Encoder))
        for sentence in () if as_json else outcome.said:
            self.stdout.write(sentence)
        if outcome.status:
            raise CommandError("", returncode=outcome.status)  # the outcome has already been printed

    def _complete(self, inputs: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Fill in missing inputs. Raise CommandError if required options are still missing."""
        assert self.action.completes
        inputs, notes = self.action.completes(inputs)
        for sentence in notes:
            progress.say(sentence)
        needed = [option for option in self.action.options if option.required and inputs[option.name] in (None, [], ())]
        if missing := [placeholder(option) if option.argument else option.spelled for option in needed]:
            raise CommandError(
                f"Required arguments are missing: {', '.join(missing)}. See `assay {self.name} --help`.",
                returncode=USAGE_ERROR,
            )
        return inputs

    def _confirm(self, consequences: list[str]) -> None:
        """Ask the user for confirmation. Raise CommandError if the answer is no, or if stdin is not a terminal.

        consequences: sentences about what the action would do
        """
        if not sys.stdin.isatty():
            raise CommandError(
                f"{' '.join(consequences)} {self.action.name} requires confirmation, but stdin is not a terminal. Add "
                "--yes to confirm."
            )
        for sentence in consequences:
            self.stderr.write(sentence)
        self.stderr.write("Continue? Type yes: ", ending="")
        self.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise CommandError("Cancelled. Nothing was changed.")


def placeholder(option: Option) -> str:
    """Return the placeholder for an option's value in the help."""
    choices = f"{{{','.join(option.choices)}}}" if option.choices else ""
    return option.shown or choices or PLACEHOLDERS.get(option.read, option.name.upper())


def _add(parser: ArgumentParser | _ArgumentGroup, option: Option) -> str:
    """Add an option to an argparse parser. argparse only splits the command line; the action parses the values.

    Return the option as it appears in the usage line; "" if it is omitted there.
    """
    description, value = option.help_text().replace("%", "%%") or argparse.SUPPRESS, placeholder(option)
    if option.read is flag:
        either = parser.add_mutually_exclusive_group() if option.opposite else parser
        either.add_argument(option.spelled, dest=option.name, action="store_const", const=True, help=description)
        if option.opposite:
            name, other = option.opposite
            either.add_argument(f"--{name}", dest=option.name, action="store_const", const=False, help=other)
        return ""
    if option.argument:
        nargs = ("+" if option.required else "*") if option.several else None if option.required else "?"
        parser.add_argument(option.name, nargs=nargs, help=description, metavar=value)
        value = f"{value} ..." if option.several else value
        return value if option.required else f"[{value}]"
    several: dict[str, Any] = {"action": "extend", "nargs": "+"} if option.in_a_row else {"action": "append"}
    parser.add_argument(
        option.spelled,
        dest=option.name,
        required=option.required,
        help=description,
        metavar=value,
        **(several if option.several else {}),
    )
    return f"{option.spelled} {value}" if option.required else ""


class _Bar(Progress):
    """A progress bar that appears when the work begins, if stderr is a terminal."""

    def __init__(self, command: ActionCommand, out: OutputWrapper) -> None:
        self._out, self._err, self._name = out, command.stderr, command.action.name
        self.bar = tqdm(disable=True)

    def begin(self, total: int | None, unit: str) -> None:
        if self._err.isatty():
            self.bar.close()
            shown: dict[str, Any] = {"desc": self._name, "file": self._err, "leave": False, "unit_scale": True}
            # The delay hides the bar until the first step, because the action may still be refused.
            self.bar = tqdm(total=total, unit=unit, delay=DELAY, **shown)

    def advance(self, count: int = 0) -> None:
        if not self.bar.n:
            self.bar.refresh()
        self.bar.update(count)

    def say(self, sentence: str) -> None:
        self.bar.clear()
        self._out.write(sentence)
