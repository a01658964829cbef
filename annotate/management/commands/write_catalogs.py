"""Collect the translatable strings and rewrite the catalogs in annotate/locale/.

Django's parser reads the templates, Python's parser reads the modules, and polib writes the catalogs, so developers
don't need GNU gettext. The compiled .mo files are under version control, because neither a checkout nor a package has a
build step that could compile them.
"""

import ast
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.template.base import Node, Template
from django.template.engine import Engine
from django.templatetags.i18n import BlockTranslateNode, TranslateNode
from django.utils.translation import trim_whitespace

from annotate.actions.commands import Command as Base
from annotate.core import stages
from annotate.kinds import KINDS
from annotate.kinds.kind import SPACE, ZERO
from annotate.pages.concept_picker import VIEWS
from corpora.core.languages import LANGUAGES, LISTED

HOME = Path(__file__).resolve().parents[2]
LOCALE = HOME / "locale"
# Name of a function that marks strings -> positions of the context, the message and the plural among its arguments. A
# position is None if the function has no such argument.
MARKERS = {
    **dict.fromkeys(("_", "_lazy", "gettext", "gettext_lazy", "gettext_noop"), (None, 0, None)),
    "ngettext": (None, 0, 1),
    "Wrong": (None, 0, 1),
    "pgettext": (0, 1, None),
}


class Message(NamedTuple):
    """A translatable string and the key of its translation.

    context: distinguishes equal strings that have different translations; may be empty
    words: the English string
    plural: the plural of the string; may be empty
    """

    context: str
    words: str
    plural: str = ""


def messages() -> dict[Message, list[str]]:
    """Return a mapping from message to the locations where it occurs, mostly as paths relative to annotate/."""
    locations_by_message: dict[Message, list[str]] = {}
    for location, message in chain(_table_messages(), _template_messages(), _module_messages()):
        locations = locations_by_message.setdefault(message, [])
        if location not in locations:
            locations.append(location)
    return locations_by_message


def _table_messages() -> Iterator[tuple[str, Message]]:
    """Yield strings that aren't marked in the code. Pages translate these strings when they show them.

    The strings can't be marked because their modules don't import Django or because they are also used as keys.
    """
    kinds = [kind for kind in KINDS.values() if not kind.source]
    tables = {
        "core/stages.py": [*stages.STAGES.values(), *(text for *_, text in stages.MOVES if text != "as above")],
        "kinds/language_questions.py": [
            text for kind in kinds for text in (*kind.undefined.reasons.values(), kind.title)
        ],
        "kinds/": [head for kind in KINDS.values() for head in kind.pages.list_heads],
        "kinds/kind.py": [SPACE.cap, ZERO.cap],
        "pages/concept_picker.py": [*VIEWS, "broader", "related"],
        "the list of languages": [LANGUAGES[code].name for code in sorted(LISTED)],
    }
    for location, texts in tables.items():
        yield from ((location, Message("", text)) for text in texts)


def _template_messages() -> Iterator[tuple[str, Message]]:
    for path in sorted((HOME / "templates").rglob("*")):
        if path.suffix in (".html", ".txt"):
            template = Template(path.read_text(encoding="utf-8"), engine=Engine.get_default())
            for node in template.nodelist.get_nodes_by_type(Node):
                if isinstance(node, TranslateNode | BlockTranslateNode) and (message := _node_message(node)):
                    yield path.relative_to(HOME).as_posix(), message


def _node_message(node: TranslateNode | BlockTranslateNode) -> Message | None:
    """Return the message of a template tag, or None if the tag translates a variable."""
    context = node.message_context.var if node.message_context else ""
    if isinstance(node, TranslateNode):
        text = node.filter_expression.var.literal
        return Message(context, text) if isinstance(text, str) else None
    text, plural = (node.render_token_list(tokens)[0] if tokens else "" for tokens in (node.singular, node.plural))
    # Trim the strings as Django does before it looks up the translation.
    trim = trim_whitespace if node.trimmed else str
    return Message(context, trim(text), trim(plural))


def _module_messages() -> Iterator[tuple[str, Message]]:
    """Yield strings that are marked in Python modules, except in the `admin` package, which is not translated."""
    for path in sorted(HOME.rglob("*.py")):
        if "admin" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MARKERS:
                context, text, plural = (_argument(node, position) for position in MARKERS[node.func.id])
                if text:
                    yield path.relative_to(HOME).as_posix(), Message(context, text, plural)


def _argument(call: ast.Call, position: int | None) -> str:
    if position is None or position >= len(call.args):
        return ""
    value = call.args[position]
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def languages() -> list[str]:
    """Return the interface languages that have a catalog: all but English, the language of the strings."""
    return [code for code, _name in settings.LANGUAGES if code != "en"]


def folder(code: str) -> Path:
    return LOCALE / code / "LC_MESSAGES"


def write(code: str) -> list[str]:
    """Rewrite a language's catalogs. Return the strings that have no translation.

    New strings are added without a translation. Strings that are no longer used are removed.
    """
    import polib

    path = folder(code) / "django.po"
    old = polib.pofile(str(path))
    old_entries = {Message(entry.msgctxt or "", entry.msgid, entry.msgid_plural): entry for entry in old}
    forms = int(old.metadata["Plural-Forms"].split("nplurals=")[1].split(";")[0])
    new = polib.POFile(wrapwidth=118)
    new.header, new.metadata = old.header, old.metadata
    untranslated = []
    for message, locations in messages().items():
        entry = old_entries.get(message) or polib.POEntry(
            msgctxt=message.context or None,
            msgid=message.words,
            msgid_plural=message.plural,
            msgstr_plural=dict.fromkeys(range(forms), "") if message.plural else {},
        )
        entry.occurrences = [(location, "") for location in locations]
        entry.flags = ["python-format"] if "%(" in message.words else []
        new.append(entry)
        if not entry.translated():
            untranslated.append(message.words)
    new.save(str(path))
    new.save_as_mofile(str(path.with_suffix(".mo")))
    return untranslated


class Command(Base):
    help = "Regenerate and compile the translation catalogs after a change to translatable text."

    def handle(self, **options: Any) -> None:
        for code in languages():
            untranslated = write(code)
            self.stdout.write(
                f"{code}: {len(untranslated)} untranslated messages." if untranslated else f"{code}: complete."
            )
            for text in untranslated:
                self.stdout.write(f"  {text}")
