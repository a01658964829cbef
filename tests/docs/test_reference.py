"""The reference is complete and has nothing else, and every command in the documentation can be parsed."""

import ast
import errno
import itertools
import re
import shlex
from argparse import SUPPRESS

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, get_commands
from django.core.management.base import BaseCommand
from django.test import Client
from django.urls import URLResolver
from knox.models import AuthToken

from annotate.actions.action import task_named
from annotate.actions.commands import ActionCommand
from annotate.actions.registry import COMMANDS, call_command, command_named
from annotate.actions.registry import MODULES as NAMES
from annotate.api import annotation_api
from annotate.core.option import OptionError
from annotate.goldsets.columns import COLUMNS, LEFT_OUT
from annotate.kinds import KINDS
from annotate.kinds.concept_kind import VOCABULARY_KEYS
from annotate.kinds.file_sections import ANSWER_KEYS
from annotate.kinds.files import BLOCK_KEYS, KEYS, KEYS_WITH_BASE, SENSITIVE_KEYS
from annotate.kinds.forms import FORMS
from annotate.kinds.kind import STYLES
from annotate.kinds.text_kind import TEXT_KEYS
from annotate.management.reference import GENERATED, PARTS, regenerate, schema
from annotate.models import Annotator
from annotate.pages.error_responses import OTHER_CODES
from tests.docs.markdown import DOCUMENTS, PAGES, ROOT, cells, inline, names, page_text, sections, text_of

# --- what is generated


@pytest.mark.parametrize("page", PAGES)
def test_what_is_generated_is_as_the_code_has_it(page):
    text = page_text(page)
    assert regenerate(text) == text, "The code has changed since: run `assay django write_docs` (manage.py write_docs)."


def test_every_part_is_placed_on_a_page():
    placed = {place["name"] for page in PAGES for place in GENERATED.finditer(page_text(page))}
    assert placed == set(PARTS)


def test_a_change_of_the_code_is_written_where_its_place_is(tmp_path, monkeypatch, capsys):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- generated: moves -->\nold\n<!-- end of generated -->\nafter\n", encoding="utf-8")
    monkeypatch.setattr("annotate.management.commands.write_docs.DOCS", tmp_path)
    call_command("write_docs")
    assert capsys.readouterr().out == "Regenerated: page.md.\n"
    begin, end = "<!-- generated: moves -->", "<!-- end of generated -->"
    assert text_of(page) == f"before\n{begin}\n{PARTS['moves']()}\n{end}\nafter\n"
    call_command("write_docs")
    assert capsys.readouterr().out == "Everything is up to date.\n"


BEGIN, END = "<!-- generated: moves -->\n", "<!-- end of generated -->\n"
BROKEN = r"page\.md contains an incomplete marker: expected <!-- generated: NAME -->"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            BEGIN.replace("moves", "nothing") + END,
            r"page\.md contains a marker for the part 'nothing', which does not exist",
        ),
        (f"{BEGIN}old\n", BROKEN),
        (f"{BEGIN}old\n{BEGIN}old\n{END}", BROKEN),
        (f"{BEGIN}old\n{END}{END}", BROKEN),
        (f"{BEGIN.replace('moves', 'no such')}old\n{END}", BROKEN),
    ],
)
def test_a_place_that_cannot_be_filled_is_refused_and_the_page_stays(tmp_path, monkeypatch, content, sentence):
    page = tmp_path / "page.md"
    page.write_text(content, encoding="utf-8")
    monkeypatch.setattr("annotate.management.commands.write_docs.DOCS", tmp_path)
    with pytest.raises(CommandError, match=sentence):
        call_command("write_docs")
    assert text_of(page) == content


# --- what the code has


def parser_of(name):
    return command_named(name).create_parser("assay", name)


def taken_by(name):
    """Return the spellings of all arguments of a command, according to its parser."""
    common = {(action.dest, type(action)) for action in BaseCommand().create_parser("", "")._actions}
    for action in parser_of(name)._actions:
        if (action.dest, type(action)) not in common and action.help != SUPPRESS:
            yield from action.option_strings or [action.dest.upper()]


def test_the_reference_has_every_command_and_lists_them_in_the_order_of_the_work():
    text = page_text("reference/commands")
    names = [name for name in sections(text) if name in NAMES]
    assert set(names) == set(NAMES)
    assert re.findall(r"^- \[(\w+)\]\(#\1\): .+\.$", text, re.MULTILINE) == names
    assert re.findall(r"^\*\*(.+)\*\*$", text, re.MULTILINE) == list(COMMANDS)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_the_reference_has_every_option_and_no_other(name):
    options = re.findall(r"^- `([^ `]+)[^`]*`(?: \*.+\*)?\\\n  [^a-z].*[^.][.?]$", options_of(name), re.MULTILINE)
    assert sorted(options) == sorted(taken_by(name))


def test_an_option_says_its_value_its_bounds_and_its_default_once():
    kinds = ", ".join(slug for slug, kind in KINDS.items() if kind.answered_here and slug != "language")
    assert f"- `--rounds N` *whole number, 1 to 99 · default 2; {kinds}, a kind of your own: 1*\\\n" in options_of(
        "open_task"
    )
    assert "- `--design` *one of `uniform`, `recall`," in options_of("open_task")
    assert "- `--port N` *whole number, 0 to 65535 · default 8000*\\\n  The port of the" in options_of("serve")
    assert "- `--json`\\\n" in options_of("status")
    assert "(default " not in page_text("reference/commands")


def options_of(name):
    return sections(page_text("reference/commands"))[name]


def no_room(*of):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_program_gets_each_of_the_other_codes(db, monkeypatch, settings):
    ann = Annotator.objects.create(user=User.objects.create_user("ann")).user
    token = {"Authorization": f"Token {AuthToken.objects.create(ann)[1]}"}
    tasks, undo = "/api/v1/tasks/", "/api/v1/tasks/july/undo/"
    json = {"content_type": "application/json"}
    session = Client(enforce_csrf_checks=True)
    session.force_login(ann)
    answers = []
    for fault in (lambda *of: 1 / 0, no_room):
        with monkeypatch.context() as broken:
            broken.setattr("annotate.pages.access.check_right", fault)
            answers.append(Client(raise_request_exception=False).get(tasks, headers=token))
    with monkeypatch.context() as full:
        full.setattr("annotate.pages.middleware.AT_ONCE", 0)
        answers.append(Client().post(undo, headers=token, **json))
    answers += [
        Client().post("/api/v1/leases/1/judge/", "{", headers=token, **json),
        Client().get(tasks, headers={"Authorization": "Token nothing"}),
        Client().get(tasks),
        session.post(undo, **json),
        Client().delete(tasks, headers=token),
        Client().post("/api/v1/leases/1/judge/", "label=de", content_type="text/plain", headers=token),
        Client().get(tasks, headers=token | {"Accept": "text/csv"}),
    ]
    settings.API_RATE = 1
    requests = (Client().get(tasks, headers=token) for _ in itertools.count())
    # A new minute may just have begun.
    answers.append(next(answer for answer in requests if answer.status_code == 429))
    assert {answer.json()["code"]: answer.status_code for answer in answers} == {
        code: status for code, (status, _, _) in OTHER_CODES.items()
    }


def read_from_the_environment():
    """Yield the names of the environment variables that the settings in deploy/ read."""
    for path in (ROOT / "deploy").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                function, name = ast.unparse(node.func), node.args[0].value
                if function in ("os.environ.get", "flag", "whole_number"):
                    yield name
                elif function == "installation_key":
                    yield f"ASSAY_{name}"
    yield from re.findall(r"\$\{([A-Z_]+)", text_of(ROOT / "deploy" / "compose.yaml"))


def test_the_reference_has_every_setting():
    text = page_text("reference/settings")
    read = set(read_from_the_environment())
    assert len(read) > 8
    assert set(cells(text)) <= read
    assert {name for name in read if not re.search(rf"\b{name}\b", text)} == set()


def test_the_reference_has_every_column_of_a_gold_set():
    text = page_text("reference/columns")
    assert all(f"`{name}`" in text for name in (*COLUMNS, *LEFT_OUT))


def test_the_reference_has_every_key_of_a_kinds_file():
    text = page_text("reference/kind-files")
    assert {*KEYS, *KEYS_WITH_BASE, *ANSWER_KEYS, *STYLES} <= set(cells(text))
    named = {*BLOCK_KEYS, *VOCABULARY_KEYS, *TEXT_KEYS, *SENSITIVE_KEYS, *FORMS}
    assert [key for key in named if not re.search(rf"[`\[( ]{key}[\].`,) ]", text)] == []


def addresses(patterns):
    """Yield each route as it is written, with the routes of included modules."""
    for pattern in patterns:
        inside = addresses(pattern.url_patterns) if isinstance(pattern, URLResolver) else [""]
        yield from (f"{pattern.pattern}{rest}" for rest in inside)


def test_the_reference_has_every_address_of_the_api_with_what_is_sent_and_got():
    text = page_text("reference/api")
    paths = {request.partition(" ")[2] for request in cells(text) if request.startswith(("GET ", "POST "))}
    paths = {re.sub(r"actions/\w+/$", "actions/{action}/", address) for address in paths}  # one row for each action
    hidden = {"", "schema/"}
    routes = {re.sub(r"<\w+:(\w+)>", r"{\1}", route) for route in addresses(annotation_api.urlpatterns)}
    assert hidden < routes
    assert paths == {f"/api/v1/{route}" for route in routes - hidden}
    assert all(f"`/api/v1/{route}`" in text for route in hidden)
    tables = sections(text, level=3)
    for name, component in schema()["components"]["schemas"].items():
        if "properties" in component:
            assert cells(tables[name]) == list(component["properties"])


def test_the_reference_has_every_key_of_the_pages():
    templates = "".join(text_of(path) for path in (ROOT / "annotate" / "templates").rglob("*.html"))
    script = text_of(ROOT / "annotate" / "static" / "annotate" / "queue.js")
    pressed = {*re.findall(r'data-key="(\w+)"', templates), *re.findall(r'\bcode === "(\w+)"', script)}
    caps = {"Period": ".", "Comma": ","}
    shown = {caps.get(code, code.removeprefix("Key")) for code in pressed if not code.startswith("Digit")}
    keys = {code for key in cells(page_text("reference/keys")) for code in key.split(" to ")}
    assert {"Q", "Z", "Space", "Enter", "Escape"} <= shown
    assert shown <= keys


# --- commands that are shown


def shell_lines(path):
    """Return the lines of shell fences that call `assay`, with continued lines joined and pipes cut off."""
    for fence in re.findall(r"^ *```(?:sh|bash|console)[^\n]*\n(.*?)^ *```", text_of(path), re.DOTALL | re.MULTILINE):
        fence = re.sub(r"<<'?(\w+)'?[^\n]*\n.*?^\1$", "", fence, flags=re.DOTALL | re.MULTILINE)
        lines = re.sub(r"\\\n\s*", " ", fence).splitlines()
        for line in lines:
            yield from re.findall(r"(?:^\s*\$?\s*|\$\(|&& )(assay .*?)(?:\)|\s[|>&;]|$)", line)


SHOWN = [(path, line) for path in DOCUMENTS for line in shell_lines(path)]


def parse(line):
    """Parse a command line without looking up the task that it names. Raise CommandError or OptionError if it would be
    refused.
    """
    name, *rest = shlex.split(line, comments=True)[1:]
    if name == "django":
        name, *rest = rest
    if name in ("--help", "help", "--version", "version") or "--help" in rest:
        return
    command = command_named(name)
    parser = command.create_parser("assay", name)
    values = vars(parser.parse_args(rest))
    if isinstance(command, ActionCommand):
        for option in command.action.options:
            if option.read is not task_named:
                option.value(values[option.name])


@pytest.mark.parametrize("path", DOCUMENTS, ids=names(DOCUMENTS))
def test_every_command_line_that_is_shown_can_be_run(path):
    assert len(SHOWN) > 10
    for line in shell_lines(path):
        try:
            parse(line)
        except (CommandError, ValueError) as error:
            pytest.fail(f"{path.relative_to(ROOT)}: {line}: {error}")
    for line in ["assay open_tsak july", "assay audit --cntest t", "assay prelabel c --k 0"]:
        with pytest.raises((CommandError, OptionError)):
            parse(line)


# Options that a page tells its reader to add, as an example: page, option.
INVENTED = {("develop.md", "--only")}
# The page on design names the properties of the stylesheet, such as --t12.
OF_OPTIONS = [path for path in DOCUMENTS if path.name != "design.md"]


@pytest.mark.parametrize("path", OF_OPTIONS, ids=names(OF_OPTIONS))
def test_every_command_and_option_that_is_named_exists(path):
    every = {spelled for name in NAMES for spelled in taken_by(name)} | {
        "--help",
        "--traceback",
    }
    for token in inline(path):
        if token.type != "code_inline" or (path.name, token.content) in INVENTED:
            continue
        words = token.content.split()
        name = words[1] if words[0] == "assay" and len(words) > 1 else words[0]
        if words[0] == "assay" != name and name.islower() and name.isidentifier():
            assert name in (*NAMES, *get_commands(), "django", "help", "version"), token.content
        options = {word.split("=")[0] for word in words if re.match(r"--[a-z]", word)}
        if name in NAMES:
            assert options <= {*taken_by(name), "--help"}, token.content
        elif words[0].startswith("--"):
            assert options <= every, token.content
