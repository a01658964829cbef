"""Which labels of a thesaurus serve a reader of a language: BCP 47 lookup, both ways.

A label in en-GB serves a reader of en, and one in zh serves readers of zh-CN and zh-Hans. Tags are compared by what
they most likely mean (CLDR, by the library langcodes): zh-TW is in Traditional letters, iw is he, eng is en.
"""

from collections.abc import Iterable
from functools import cache, lru_cache
from typing import NamedTuple

# Written standards and spoken varieties, and the language that stands for them here. CLDR keeps them apart.
VARIETIES = {
    "nb": "no", "nn": "no",
    "arb": "ar", "arz": "ar", "ary": "ar", "arq": "ar", "aeb": "ar", "apc": "ar", "ajp": "ar", "acm": "ar", "ars": "ar",
    "afb": "ar",
}  # fmt: skip
# Their readers read the language on the right too, but a text in them may have a label of its own.
_READ_AS = VARIETIES | dict.fromkeys(["cmn", "yue", "wuu", "hak", "nan"], "zh")


class Meaning(NamedTuple):
    """What a tag most likely means. written: the language as the tag has it; is_bare: the tag has nothing else."""

    language: str
    script: str
    region: str
    written: str
    is_bare: bool


@cache
def meaning(tag: str) -> Meaning | None:
    """None for a tag that names no language: an empty one, und, mul, zxx, a private one, or one that is malformed."""
    import langcodes

    try:
        found = langcodes.Language.get(tag)
    except ValueError:  # a LanguageTagError is one
        return None
    if not found.language or found.language in ("und", "mul", "zxx", "mis"):
        return None
    likely = found.prefer_macrolanguage().maximize()
    language = likely.language or found.language
    bare = not (found.script or found.territory or found.variants or found.private)
    return Meaning(_READ_AS.get(language, language), likely.script or "", likely.territory or "", found.language, bare)


def same_language(tag: str, other: str) -> bool:
    """Whether readers of one read the other, in whatever script."""
    one, two = meaning(tag), meaning(other)
    return tag.casefold() == other.casefold() or (one is not None and two is not None and one.language == two.language)


@lru_cache(maxsize=4096)
def serving(tags: tuple[str, ...], wanted: str) -> tuple[str, ...]:
    """Those of the tags that are in the language wanted, the closest first: the same tag; then the same script, the
    language alone before its likely region before other regions; then other scripts."""
    return tuple(sorted((tag for tag in tags if same_language(tag, wanted)), key=lambda tag: _distance(tag, wanted)))


def _distance(tag: str, wanted: str) -> tuple[bool | str, ...]:
    one, two = meaning(tag), meaning(wanted)
    if tag.casefold() == wanted.casefold() or one is None or two is None:
        return (False, tag)
    return (
        True,
        one.script != two.script,
        one.written != two.written and not (one.is_bare and one.written == one.language),
        not one.is_bare,
        one.region != two.region,
        tag,
    )


def in_languages(tags: Iterable[str], wanted: Iterable[str]) -> list[str]:
    """Those of the tags that are in one of the languages wanted, in their order."""
    languages = list(wanted)
    return [tag for tag in tags if any(same_language(tag, each) for each in languages)]
