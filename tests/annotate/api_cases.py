"""Test cases that schemathesis generates from the API's description: valid and invalid requests by several
people, for tasks, units, leases, questions and answers that exist or do not exist.

Each case starts in the same world. The status, type and schema of each response must match the description.
"""

import copy
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, transaction
from django.urls import resolve
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from knox.models import AuthToken
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.annotate.access.world import World

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
# The people who send the requests: mostly those who are allowed to, and some others.
OTHERS = ("nobody", "guest", "bea", "manager")
# Valid values for the world's questions, in addition to generated ones, by part of the body or the query.
REAL = {
    "label": ["de", "en", "und", "1"],
    "reason": ["", "several", "I read the language"],
    "typed": ["env", "law pol"],
    "language": ["de", "en"],
}
JSON = "application/json"
# URLs for which the world of the access matrix names an object that does not exist.
OF_CONCEPTS = {"api-concepts": ["acts"]}


@dataclass
class Answered:
    """The responses to the cases of an operation."""

    operation: str
    statuses: Counter[int] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def between(self, low: int, high: int) -> int:
        return sum(count for status, count in self.statuses.items() if low <= status < high)


def with_real_values(described: dict) -> dict:
    """Return the API's description, changed so that half of the generated values of some fields exist in the world."""
    description = copy.deepcopy(described)
    operations = [operation for way in description["paths"].values() for operation in way.values()]
    for parameter in (parameter for operation in operations for parameter in operation.get("parameters", ())):
        if parameter["in"] == "query" and parameter["name"] in REAL:
            parameter["schema"] = {"anyOf": [{"enum": REAL[parameter["name"]]}, parameter["schema"]]}
    contents = (operation.get("requestBody", {}).get("content", {}) for operation in operations)
    schemas = [body["schema"] for content in contents for body in content.values()]
    taken = {schema["$ref"].rpartition("/")[2] for schema in schemas if "$ref" in schema}
    for name in taken:
        properties = description["components"]["schemas"][name]["properties"]
        for key in REAL.keys() & properties.keys():
            properties[key] = {"anyOf": [{"enum": REAL[key]}, properties[key]]}
    return description


@contextmanager
def one_connection() -> Iterator[None]:
    """Make the server use the connection whose transaction contains the world, as Django's test client does."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    try:
        yield
    finally:
        for signal in signals:
            signal.connect(close_old_connections)


def run(world: World, cases: int) -> Iterator[Answered]:
    """Yield the responses of each API operation to this many cases, or to fewer if there are no more distinct ones."""
    schema = schemathesis.openapi.from_dict(with_real_values(SchemaGenerator().get_schema(request=None, public=True)))
    schema.app = _closing(get_wsgi_application())
    tokens = {who: AuthToken.objects.create(user)[1] for who, user in world.who.items() if user}
    for result in schema.get_all_operations():
        operation = result.ok()
        answered = Answered(operation.label)
        world.as_if_just_made()
        with one_connection():
            _try(world, operation, cases, _asking(answered, tokens))
        yield answered


def _closing(app: Callable) -> Callable:
    """Return the application, changed so that it reads and closes each response, as servers do."""

    def answer(environ, start_response):
        with closing(app(environ, start_response)) as response:
            return [b"".join(response)]

    return answer


def _try(world: World, operation, cases: int, ask: Callable) -> None:
    acts = "manager" if "/manage/" in operation.path else "ada" if "/adjudication/" in operation.path else "ann"
    people = st.one_of(st.just(acts), st.just(acts), st.just(acts), st.sampled_from(OTHERS))
    made = st.one_of(*_requests(world, operation))
    quiet = {"phases": [Phase.generate], "database": None, "suppress_health_check": [*HealthCheck], "deadline": None}
    # Every run has the same cases.
    settings(max_examples=cases, derandomize=True, **quiet)(given(made, people)(ask))()


def _requests(world: World, operation) -> Iterator[st.SearchStrategy]:
    """Yield strategies for valid and invalid requests to existing objects, and for requests to missing ones."""
    name, there = _there(world, operation)
    for _ in range(2):
        yield operation.as_strategy(path_parameters=there)
        if operation.body:
            json = JSON in [body.media_type for body in operation.body]
            body = world.fields.get(name, {}) if json else b'{"id": "1", "text": "Guten Tag"}'
            media_type = JSON if json else operation.body[0].media_type
            yield operation.as_strategy(path_parameters=there, body=body, media_type=media_type)
    if operation.body or operation.query:
        yield operation.as_strategy(GenerationMode.NEGATIVE, path_parameters=there)
    if there:
        yield operation.as_strategy()
        yield operation.as_strategy(GenerationMode.NEGATIVE)


def _there(world: World, operation) -> tuple[str, dict]:
    """Return the name of the operation's URL, and the world's arguments for it."""
    names = [parameter.name for parameter in operation.path_parameters]
    match = resolve(operation.path.format(**dict.fromkeys(names, "1")))
    name = match.url_name
    arguments = zip(match.kwargs, OF_CONCEPTS.get(name) or world.arguments.get(name, []), strict=True)
    # The name of an action is a part of the address rather than a parameter.
    return name, {parameter: value for parameter, value in arguments if parameter in names}


def _asking(answered: Answered, tokens: dict[str, str]) -> Callable:
    def ask(case, who):
        headers = {"Authorization": f"Token {tokens[who]}"} if who in tokens else {}
        with transaction.atomic():
            response = case.call(headers=headers)
            transaction.set_rollback(True)
        answered.statuses[response.status_code] += 1
        try:
            case.validate_response(response, checks=CHECKS)
        except FailureGroup as faults:
            answered.faults.append(f"{who}: {case.as_curl_command()}: {response.status_code}: {faults}")

    return ask
