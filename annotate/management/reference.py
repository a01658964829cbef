"""Generate parts of the documentation from declarations in the code.

In a Markdown file, a generated part is enclosed in `<!-- generated: NAME -->` and `<!-- end of generated -->`. The
command write_docs updates these parts, and a test checks that they are up to date.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from django.conf import settings
from drf_spectacular.generators import SchemaGenerator

from annotate.actions.action import address, task_named
from annotate.actions.commands import placeholder
from annotate.actions.registry import COMMANDS, command_named
from annotate.controls.chosen_concepts import CHOSEN
from annotate.core import refusals
from annotate.core.option import (
    Option,
    codes,
    days,
    flag,
    fraction,
    labels,
    named_file,
    number,
    people,
    points,
    sets,
    share,
    sizes,
    whole_number,
    words,
)
from annotate.core.stages import FINISHED, MOVES, STAGES, WITH_LABEL, arrows
from annotate.goldsets.columns import COLUMNS, JUDGMENT, SOFT_LABEL, TRANSITION, VOTE
from annotate.goldsets.form_extras import PREFERRED, REPLIES, SUPPORT
from annotate.kinds import KINDS, concept_kind, file_sections, files, span_kind, text_kind
from annotate.kinds.kind import STYLES
from annotate.pages.access import status_of
from annotate.pages.error_responses import OTHER_CODES

BEGINS, ENDS = "<!-- generated: ", "<!-- end of generated -->"
GENERATED = re.compile(rf"(?P<begin>{BEGINS}(?P<name>\w+) -->\n)(?:(?!{BEGINS}).)*?(?P<end>{ENDS})", re.DOTALL)
# Function that parses a value -> description of the value's type.
TYPES: Mapping[Callable[[str], Any], str] = {
    whole_number: "whole number",
    people: "number of people",
    share: "share",
    fraction: "share",
    points: "percentage points",
    number: "number",
    codes: "codes",
    words: "words",
    labels: "labels, separated by spaces or by semicolons",
    sets: "sets with their sizes",
    sizes: "whole numbers, separated by spaces",
    days: "days, such as `2014-07-01..2014-08-01`",
    flag: "",
    Path: "file",
    named_file: "file, or name and file",
    address: "address",
    str: "text",
    task_named: "text",
}


def regenerate(text: str) -> str:
    """Return the text of a Markdown file with its generated parts updated.

    Raise KeyError if a part is unknown, and ValueError if a part's beginning or end is missing.
    """
    if not text.count(BEGINS) == text.count(ENDS) == len(GENERATED.findall(text)):
        raise ValueError(f"expected {BEGINS}NAME --> on a separate line, followed by {ENDS}")
    return GENERATED.sub(lambda match: f"{match['begin']}{PARTS[match['name']]()}\n{match['end']}", text)


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(plain, line))} |" for line in lines)


def plain(text: str) -> str:
    """Return the text on a single line, escaped so that it can't form HTML or end a table cell."""
    return re.sub(r"([<|])", r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    return f"`{text}`"


# --- Commands


@cache
def our_commands() -> dict[str, Any]:
    """Return a mapping from name to command, in the order that users need the commands."""
    return {name: command_named(name) for group in COMMANDS.values() for name in group}


def _value_type(option: Option) -> str:
    if option.choices:
        return f"one of {', '.join(map(code, option.choices))}"
    description = TYPES[option.read]
    if option.read in (whole_number, people, share, fraction, points):
        minimum = f"{option.least or 0:g}"
        description += f", {minimum} or more" if option.most is None and option.read is whole_number else ""
        maximum = 1 if option.most is None else option.most
        description += f", {minimum} to {maximum:g}" if "or more" not in description else ""
    return description


def _command(name: str) -> str:
    command = our_commands()[name]
    options = [option for option in command.options if option.help]
    arguments = [option for option in options if option.argument]
    others = [option for option in options if not option.argument]
    usage = [_spelled(option) if option.required else f"[{_spelled(option)}]" for option in arguments]
    usage += [f"{option.spelled} …" for option in others if option.required]
    usage += [] if all(option.required for option in others) else ["[options]"]
    parts = [f"## {name}", plain(command.help), f"```text\n{' '.join(['assay', name, *usage])}\n```"]
    for group in dict.fromkeys(option.group for option in options):
        # Options without a group need a heading only if they follow a group with a heading.
        if group or len(parts) > 3:
            parts.append(f"### {name}: {group or 'Other options'}")
        parts.append("\n".join(entry for option in options if option.group == group for entry in _entries(option)))
    return "\n\n".join(parts)


def _spelled(option: Option) -> str:
    return f"{option.name.upper()}{' …' if option.several else ''}" if option.argument else option.spelled


def _entries(option: Option) -> Iterator[str]:
    """Yield an option's list entry, then the entry of the opposite option if there is one."""
    match = re.fullmatch(r"(?P<help>.*?)(?: \((?P<default>default .*)\))?", option.help_text(), re.DOTALL)
    assert match
    is_plain = option.argument or option.choices or option.read is flag
    spelled = _spelled(option) if is_plain else f"{_spelled(option)} {placeholder(option)}"
    repeated = "may be repeated" if option.several else ""
    required = "required" if option.required else ""
    yield _entry(spelled, match["help"], required, _value_type(option), repeated, match["default"])
    if option.opposite:
        name, help = option.opposite
        yield _entry(f"--{name}", help)


def _entry(spelled: str, help: str, *notes: str | None) -> str:
    """Return a list entry with an option and notes on the first line, and the help text below."""
    joined_notes = " · ".join(filter(None, notes))
    line = " ".join(filter(None, (code(spelled), joined_notes and f"*{plain(joined_notes)}*")))
    help_text = plain(help)
    return f"- {line}\\\n  {help_text[:1].upper()}{help_text[1:]}{'' if help_text.endswith(('.', '?')) else '.'}"


def command_list() -> str:
    lists = (
        (f"**{group}**", "\n".join(f"- [{name}](#{name}): {summary}" for name, (_, summary) in commands.items()))
        for group, commands in COMMANDS.items()
    )
    return "\n\n".join(part for lines in lists for part in lines)


# --- Stages and refusals


def stages() -> str:
    edges = [f"    {start} --> {end}: {', '.join(events)}" for (start, end), events in arrows().items()]
    diagram = "\n".join(["```mermaid", "stateDiagram-v2", f"    [*] --> {next(iter(STAGES))}", *edges, "```"])
    rows = (
        (
            code(stage),
            meaning,
            "yes" if stage in WITH_LABEL else "that of the original" if stage == "COPIED" else "no",
            "as for the original" if stage == "COPIED" else "yes" if stage in FINISHED else "no",
        )
        for stage, meaning in STAGES.items()
    )
    return f"{diagram}\n\n{table(('stage', 'meaning', 'has a label', 'finished'), rows)}"


def refusal_sections() -> str:
    """Return a section for each error code of the API, with the error's cause, what to do, and the HTTP status."""
    described = {}
    for kind in vars(refusals).values():
        if isinstance(kind, type) and issubclass(kind, refusals.Refusal) and kind is not refusals.Refusal:
            condition, advice = (" ".join(part.split()) for part in (kind.__doc__ or "").split("\n\n"))
            described[kind.code] = (status_of(kind()), condition, advice)
    sections = (
        f"## {name}\n\n{condition}\n\nWhat to do: {advice} (HTTP {status})"
        for name, (status, condition, advice) in sorted((described | OTHER_CODES).items())
    )
    return "\n\n".join(sections)


# --- Settings


def settings_table() -> str:
    """Return a table of the environment variables, made from the comments in deploy/env.example."""
    rows, comment = dict[str, tuple[str, str, str]](), list[str]()
    for line in (Path(settings.BASE_DIR) / "deploy" / "env.example").read_text(encoding="utf-8").splitlines():
        if variable := re.fullmatch(r"#?([A-Z_]+)=(.*)", line):
            rows[variable[1]] = (code(variable[1]), " ".join(comment), code(variable[2]) if variable[2] else "")
            comment = []
        else:
            comment = [*comment, line.removeprefix("#").strip()] if line else []
    return table(("variable", "meaning", "example"), rows.values())


# --- Dependencies

_DEPENDENCY = r'    "(?P<name>[\w.-]+).*",  # (?P<size>[\d.]+ MB), (?P<licence>.+), (?P<released>\d{4}-\d\d)'


def dependencies() -> str:
    """Return a table of the packages that an installation needs, made from the comments in pyproject.toml."""
    rows, extra, comment = [], "", ""
    for line in (Path(settings.BASE_DIR) / "pyproject.toml").read_text(encoding="utf-8").splitlines():
        if group := re.fullmatch(r"([\w-]+) = \[", line):
            extra = "" if group[1] == "dependencies" else code(group[1])
        elif package := re.fullmatch(_DEPENDENCY, line):
            rows.append((package["name"], extra, comment, *package.group("size", "licence", "released")))
        elif line.lstrip().startswith("#"):
            comment = line.strip("# ")
    return table(("package", "extra", "needed for", "size", "licence", "last release"), rows)


# --- Files of gold sets


def columns() -> str:
    kinds = {slug: kind.publication.columns for slug, kind in KINDS.items()}
    rows = []
    for name, column in COLUMNS.items():
        users = [slug for slug, names in kinds.items() if name in names]
        kind_list = "all" if len(users) == len(kinds) else ", ".join(map(code, users))
        rows.append((code(name), column.about, _type(column.type), kind_list))
    return table(("column", "meaning", "type", "kinds"), rows)


def nested_columns() -> str:
    nested = {
        "judgments": JUDGMENT,
        "preferred": PREFERRED,
        "replies": REPLIES,
        "soft_labels": SOFT_LABEL,
        "support": SUPPORT,
        "transitions": TRANSITION,
        "votes": VOTE,
    }
    fields = {name: ", ".join(code(field.name) for field in struct) for name, struct in nested.items()}
    concept_fields = ", ".join(code(field.name) for field in CHOSEN)
    fields["judgments"] += f"; if the answers are concepts, also {code('concepts')}, a list with {concept_fields}"
    fields["judgments"] += (
        f"; if labels are suggested, also {code('suggestions_shown')}; null if there was no suggestion"
    )
    fields["judgments"] += f"; if two systems are compared, also {code('first')}, the system that was shown first"
    rows = ((code(name), names) for name, names in fields.items())
    return table(("column", "fields of each entry"), rows)


def _type(type: pa.DataType) -> str:
    if pa.types.is_list(type):
        return "list of structs" if pa.types.is_struct(type.value_type) else f"list of {type.value_type}s"
    return "timestamp, UTC" if pa.types.is_timestamp(type) else str(type)


# --- Files of kinds


def keys_table(keys: Mapping[str, str]) -> str:
    return table(("key", "meaning"), ((code(key), about) for key, about in keys.items()))


# --- The API


def schema() -> dict[str, Any]:
    generator: Any = SchemaGenerator
    generated: dict[str, Any] = generator().get_schema(request=None, public=True)
    return generated


def api() -> str:
    document = schema()
    rows = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            status, answer = next(iter(operation["responses"].items()))
            purpose = ". ".join(filter(None, (operation["summary"], operation.get("description", ""))))
            command = path.rstrip("/").rpartition("/actions/")[2] if "/actions/" in path else ""
            options = f"[options](commands.md#{command})" if command else ""
            request = options or _body_type(operation.get("requestBody", {})) or "nothing"
            response = _body_type(answer) or f"nothing ({status})"
            rows.append((code(f"{method.upper()} {path}"), purpose, request, response))
    parts = [table(("request", "purpose", "request body", "response"), rows)]
    for name, definition in document["components"]["schemas"].items():
        if "properties" in definition:
            # Omit the list of values that the schema appends to the description of an enumeration.
            fields = (
                (code(field), property.get("description", "").partition("\n\n* ")[0], _json_type(property))
                for field, property in definition["properties"].items()
            )
            parts += [f"### {name}", table(("field", "meaning", "type"), fields)]
    return "\n\n".join(parts)


def _body_type(body: Mapping[str, Any]) -> str:
    """Return a link to the table that describes the body of a request or response; "" if there is no body."""
    content = body.get("content", {})
    definition = content.get("application/json", {}).get("schema", {})
    return _json_type(definition) if definition else "a file" if content else ""


def _json_type(definition: Mapping[str, Any]) -> str:
    if "$ref" in definition:
        name = definition["$ref"].rpartition("/")[2]
        target = schema_named(name)
        return (
            f"[{name}](#{name.lower()})" if "properties" in target else f"one of {', '.join(map(code, target['enum']))}"
        )
    if inside := definition.get("allOf") or definition.get("oneOf"):
        return " or ".join(dict.fromkeys(_json_type(option) for option in inside))
    if definition.get("type") == "array":
        return f"list of {_json_type(definition['items'])}"
    return f"{definition.get('type', 'any')}{', or null' if definition.get('nullable') else ''}"


@cache
def schema_named(name: str) -> Mapping[str, Any]:
    definition: Mapping[str, Any] = schema()["components"]["schemas"][name]
    return definition


PARTS: Mapping[str, Callable[[], str]] = {
    "command_list": command_list,
    "commands": lambda: "\n\n".join(map(_command, our_commands())),
    "stages": stages,
    "moves": lambda: table(
        ("from", "event", "to", "meaning"),
        ((code(start), code(event), code(end), what) for start, event, end, what in MOVES),
    ),
    "refusals": refusal_sections,
    "settings": settings_table,
    "dependencies": dependencies,
    "columns": columns,
    "nested_columns": nested_columns,
    "kind_keys": lambda: keys_table({key: files.KEY_HELP[key] for key in (*files.KEYS, *files.KEYS_WITH_BASE)}),
    "vocabulary_keys": lambda: keys_table(concept_kind.VOCABULARY_KEYS),
    "spans_keys": lambda: keys_table(span_kind.SPANS_KEYS),
    "text_keys": lambda: keys_table(text_kind.TEXT_KEYS),
    "sensitive_keys": lambda: keys_table(files.SENSITIVE_KEYS),
    "answer_keys": lambda: keys_table(file_sections.ANSWER_KEYS),
    "styles": lambda: table(("style", "for"), ((code(style), purpose) for style, purpose in STYLES.items())),
    "api": api,
}
