"""The description of each action in the OpenAPI schema, made from the declarations of the action's options."""

from functools import cache
from typing import Any

from annotate.actions.action import Action, task_named
from annotate.actions.registry import by_name
from annotate.core.option import LARGEST, Option, flag, whole_number
from annotate.manager_pages.action_forms import ALSO_FILES, DEEDS, NEEDED, as_on_page

SURE = "sure"
CONFIRMS = "true confirms the consequences. Without it, the request is refused if the action has any, and lists them"
ACTION = "{action}"  # part of an address
IN_A_TASK = "/manage/tasks/"


@cache
def actions_of_tasks() -> frozenset[str]:
    """Return the names of the actions that work on an existing task, which is part of their address."""
    return frozenset(name for name in DEEDS if task_option(name))


@cache
def task_option(name: str) -> str:
    """Return the name of the option with the task on which an action works, or "" if there is no such option."""
    options = by_name()[name].options
    return next((option.name for option in options if option.read is task_named and option.required), "")


def describe_actions(result: dict[str, Any], **context: Any) -> dict[str, Any]:
    """Replace each address with {action} by the addresses of its actions. drf-spectacular calls this on the schema."""
    paths: dict[str, Any] = {}
    for path, methods in result["paths"].items():
        if ACTION not in path:
            paths[path] = methods
            continue
        in_task = IN_A_TASK in path
        for name in DEEDS:
            if (name in actions_of_tasks()) == in_task:
                paths[path.replace(ACTION, name)] = {"post": _operation(methods["post"], name)}
    return result | {"paths": dict(sorted(paths.items()))}


def _operation(general: dict[str, Any], name: str) -> dict[str, Any]:
    action = by_name()[name]
    body = {"application/json": {"schema": _body(action, name)}}
    if any(_is_file(name, option) for option in _options(action, name)):
        body["multipart/form-data"] = {"schema": _body(action, name, uploads=True)}
    return general | {
        "operationId": f"manage_{name}",
        "summary": action.does.partition(". ")[0].rstrip("."),
        "description": general.get("description", ""),
        "parameters": [each for each in general.get("parameters", ()) if each["name"] != "action"],
        "requestBody": {"content": body},
    }


def _options(action: Action, name: str) -> list[Option]:
    omitted = (*DEEDS[name].hidden, task_option(name))
    return [option for option in action.options if option.name not in omitted]


def _is_file(name: str, option: Option) -> bool:
    return option.is_file or (name, option.name) in ALSO_FILES


def _body(action: Action, name: str, *, uploads: bool = False) -> dict[str, Any]:
    options = _options(action, name)
    properties = {option.name: _described(action, name, option, uploads) for option in options}
    if action.asks:
        properties[SURE] = {"type": "boolean", "default": False, "description": CONFIRMS}
    required = [option.name for option in options if option.required or (name, option.name) == NEEDED]
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | ({"required": required} if required else {})


def _described(action: Action, name: str, option: Option, uploads: bool) -> dict[str, Any]:
    if uploads and _is_file(name, option):
        schema: dict[str, Any] = {"type": "string", "format": "binary"}
    elif option.read is flag:
        schema = {"type": "boolean"}
    elif option.read is whole_number:
        least, most = option.least or 0, LARGEST if option.most is None else option.most
        schema = {"type": "integer", "minimum": int(least), "maximum": int(most)}
    elif option.choices:
        schema = {"type": "string", "enum": list(option.choices)}
    else:
        schema = {"type": "string"}
    if option.several:
        schema = {"type": "array", "items": schema}
    text = as_on_page(option.help_text(), action.options, lambda other: other.name)
    return schema | {"description": f"{text}; the name of a file in the inbox" if _is_file(name, option) else text}
