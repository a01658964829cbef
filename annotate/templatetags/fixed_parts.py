"""Template tags that cache rendered parts of a page."""

import re

from django import template
from django.template import Context
from django.template.base import FilterExpression, Parser, Token
from django.utils.translation import get_language

register = template.Library()
MOST_RENDERED = 1_000  # maximum number of renderings that each `fixed` tag caches
_INDENTED = re.compile(r"\s*\n\s*")
VARYING, HOLE = "_varying", "\0"  # context variable that collects the contents of `varies`; placeholder for them


class FixedNode(template.Node):
    def __init__(self, values: list[FilterExpression], content: template.NodeList) -> None:
        self.values, self.nodelist = values, content
        self.rendered: dict[tuple[object, ...], list[str | template.NodeList]] = {}

    def render(self, context: Context) -> str:
        if VARYING in context:  # an outer `fixed` caches the content
            return self.nodelist.render(context)
        key = get_language(), *[value.resolve(context) for value in self.values]
        parts = self.rendered.get(key)
        if parts is None:
            if len(self.rendered) >= MOST_RENDERED:
                self.rendered.clear()
            parts = self.rendered[key] = self._parts(context)
        return "".join([part if isinstance(part, str) else part.render(context) for part in parts])

    def _parts(self, context: Context) -> list[str | template.NodeList]:
        """Render the content, except inside `varies`. Return fixed texts and unrendered `varies` contents in turn."""
        varying: list[template.NodeList] = []
        with context.push(**{VARYING: varying}):
            texts = _INDENTED.sub("\n", self.nodelist.render(context)).split(HOLE)
        parts: list[str | template.NodeList] = [texts[0]]
        for content, text in zip(varying, texts[1:], strict=True):
            parts += [content, text]
        return parts


class VaryingNode(template.Node):
    def __init__(self, content: template.NodeList) -> None:
        self.nodelist = content

    def render(self, context: Context) -> str:
        varying = context.get(VARYING)
        if varying is None:
            return self.nodelist.render(context)
        varying.append(self.nodelist)
        return HOLE


@register.tag
def varies(parser: Parser, token: Token) -> VaryingNode:
    """Exclude the content up to `endvaries` from the cache of the enclosing `fixed` tag.

    The content may use the view's context, but no variables that an enclosing tag has set.
    """
    content = parser.parse(("endvaries",))
    parser.delete_first_token()
    return VaryingNode(content)


@register.tag
def fixed(parser: Parser, token: Token) -> FixedNode:
    """Cache the rendered content up to `endfixed`, by interface language and by the values of the tag's arguments.

    Except inside `varies`, the content must depend only on these arguments, which must not be secret or personal.
    """
    values = [parser.compile_filter(value) for value in token.split_contents()[1:]]
    content = parser.parse(("endfixed",))
    parser.delete_first_token()
    return FixedNode(values, content)
