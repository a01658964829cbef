"""Commands made of actions: the options as arguments, a bar while somebody looks, the outcome in print."""

import json
import shlex
from argparse import ArgumentParser, _ArgumentGroup
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from annotate.actions.action import Action, ActionError, Progress, Values
from annotate.core.option import Option, flag, written

PROGRAM = "python manage.py"


def command_line(action: Action, given: Values) -> str:
    """The shell command that does the same. ActionError where it cannot be done."""
    values = action.read(given)
    told = [(option, values[option.name]) for option in action.options if values[option.name] != option.default]
    arguments = [text for option, value in told if option.argument for text in _texts(option, value)]
    options = [word for option, value in told if not option.argument for word in _spelled(option, value)]
    return f"{PROGRAM} {shlex.join([action.name, *arguments, *options])}"


def _texts(option: Option, value: Any) -> list[str]:
    return [written(each) for each in (value if option.several else [value])]


def _spelled(option: Option, value: Any) -> list[str]:
    if option.read is flag:
        return [option.spelled if value else f"--{option.opposite[0]}"]
    words = []
    for text in _texts(option, value):
        # What begins with a hyphen would be taken for another option.
        words += [f"{option.spelled}={text}"] if text.startswith("-") else [option.spelled, text]
    return words


class ActionCommand(BaseCommand):
    """The base of a command; what it does is its action's matter."""

    action: Action

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        self.help = self.action.does
        # Django's own --version gives way to a predictor's.
        return super().create_parser(prog_name, subcommand, conflict_handler="resolve", **kwargs)

    def add_arguments(self, parser: ArgumentParser) -> None:
        groups: dict[str, ArgumentParser | _ArgumentGroup] = {"": parser}
        for option in self.action.options:
            if option.group not in groups:
                groups[option.group] = parser.add_argument_group(option.group)
            _add(groups[option.group], option)
        if self.action.tells_data:
            parser.add_argument("--json", action="store_true", help="print all of it as JSON, not as tables")

    def handle(self, *args: Any, **options: Any) -> None:
        given = {option.name: options[option.name] for option in self.action.options}
        try:
            with _Bar(self) as progress:
                outcome = self.action.perform(given, progress)
        except ActionError as error:
            raise CommandError(str(error)) from error
        for sentence in outcome.warned:
            self.stderr.write(sentence)
        if options.get("json"):
            self.stdout.write(json.dumps(outcome.data, indent=2, ensure_ascii=False))
            return
        for sentence in outcome.said:
            self.stdout.write(sentence)


def _add(parser: ArgumentParser | _ArgumentGroup, option: Option) -> None:
    """An option as argparse wants it, which only takes the text apart: the action reads it, for pages too."""
    told = option.told().replace("%", "%%")
    if option.read is flag:
        either = parser.add_mutually_exclusive_group() if option.opposite else parser
        either.add_argument(option.spelled, dest=option.name, action="store_const", const=True, help=told)
        if option.opposite:
            name, other = option.opposite
            either.add_argument(f"--{name}", dest=option.name, action="store_const", const=False, help=other)
        return
    choices = f"{{{','.join(option.choices)}}}" if option.choices else None
    how: dict[str, Any] = {"help": told, "metavar": option.shown or choices}
    if option.argument:
        nargs = "+" if option.several else None if option.required else "?"
        parser.add_argument(option.name, nargs=nargs, **how)
        return
    how |= {"dest": option.name, "required": option.required}
    if option.several:
        how |= {"action": "extend", "nargs": "+"} if option.in_a_row else {"action": "append"}
    parser.add_argument(option.spelled, **how)


class _Bar(Progress):
    """A bar on a terminal; in a file or a pipe it would be noise."""

    def __init__(self, command: ActionCommand) -> None:
        self._out, self._err, self._name = command.stdout, command.stderr, command.action.name
        self._bar = tqdm(disable=True)

    def __enter__(self) -> "_Bar":
        return self

    def __exit__(self, *exc: object) -> None:
        self._bar.close()

    def begin(self, total: int | None, unit: str) -> None:
        is_seen = self._err.isatty()
        shown = {"desc": self._name, "file": self._err, "leave": False, "disable": not is_seen}
        self._bar = tqdm(total=total, unit=unit, unit_scale=True, **shown)

    def advance(self, count: int = 0) -> None:
        self._bar.update(count)

    def say(self, sentence: str) -> None:
        self._bar.clear()
        self._out.write(sentence)
