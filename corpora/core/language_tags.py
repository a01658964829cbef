"""Language tags: their names and likely meaning, and which tags serve the readers of a language.

langcodes provides the tables: the IANA registry, which contains all languages of ISO 639-1, -2 and -3, and CLDR's
likely scripts and predominant varieties. This module knows nothing about labels, which are in languages.py.
"""

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

# Scopes of the registry that do not stand for a single language.
_NO_SCOPES = ("special", "collection", "private-use")
# Scripts of languages that CLDR does not contain. For such a language, langcodes returns the Latin script.
_SCRIPTS = {"azb": "Arab", "xal": "Cyrl"}


class Registry(NamedTuple):
    """The IANA registry of language subtags. Deprecated subtags are left out.

    languages, scripts, regions: the English name for each subtag
    macrolanguages: the macrolanguage that encompasses a language, such as ar for arz
    """

    languages: Mapping[str, str]
    scripts: Mapping[str, str]
    regions: Mapping[str, str]
    macrolanguages: Mapping[str, str]


@cache
def registry() -> Registry:
    """Return the registry. Reading it takes about 50 ms, so it is read only for codes that are not in our own table."""
    from langcodes.registry_parser import parse_registry

    names: dict[str, dict[str, str]] = {"language": {}, "script": {}, "region": {}}
    macrolanguages = {}
    entries: Iterable[dict[str, Any]] = parse_registry()  # type: ignore[no-untyped-call]
    for entry in entries:
        if entry["Type"] in names and "Deprecated" not in entry and entry.get("Scope") not in _NO_SCOPES:
            names[entry["Type"]][entry["Subtag"]] = entry["Description"][0]
            if "Macrolanguage" in entry:
                macrolanguages[entry["Subtag"]] = entry["Macrolanguage"]
    return Registry(names["language"], names["script"], names["region"], macrolanguages)


def cased(code: str) -> str:
    """Return a code with each subtag in the case that BCP 47 recommends, such as zh-Hans-CN."""
    first, *others = code.replace("_", "-").lower().split("-")
    cases = {2: str.upper, 4: str.capitalize}
    return "-".join([first, *(cases.get(len(other), str)(other) for other in others)])


def standard_name(tag: str) -> str:
    """Return the English name of a tag, such as `Uzbek (Cyrillic)`, or "" if the registry lacks its language.

    tag: a tag in its conventional case
    """
    names = registry()
    language, *others = tag.split("-")
    details = ", ".join(names.scripts.get(other) or names.regions.get(other) or other for other in others)
    name = names.languages.get(language, "")
    return f"{name} ({details})" if name and details else name


def is_registered(tag: str) -> bool:
    """Return whether all subtags of a language tag are in the registry, including deprecated and private ones."""
    import langcodes

    return langcodes.tag_is_valid(tag)


def usual_script(tag: str) -> str:
    """Return the ISO 15924 code of the script in which a language is usually written, by CLDR."""
    import langcodes

    return _SCRIPTS.get(tag) or langcodes.Language.get(tag).maximize().script or ""


def variety_of(language: str, macrolanguages: Iterable[str]) -> str:
    """Return the macrolanguage that encompasses a language if it is one of these, and otherwise the language."""
    macrolanguage = registry().macrolanguages.get(language, "")
    return macrolanguage if macrolanguage in macrolanguages else language


# --- Labels of a thesaurus that a reader of a language understands.
#
# The lookup follows BCP 47, but in both directions: a reader of en understands a label in en-GB, and readers of zh-CN
# and zh-Hans understand a label in zh. Tags are compared by their likely meaning, which langcodes takes from CLDR. For
# example, zh-TW implies Traditional script, iw means he, and eng means en.


# Macrolanguages whose readers read all of their varieties, although a text in a variety may have a separate label.
_READ_ALIKE = ("ar", "no", "zh")


class Meaning(NamedTuple):
    """The likely meaning of a language tag.

    language, script, region: the likely subtags; a variety such as nb has the language that represents it, such as no
    written: the language subtag as it appears in the tag
    is_bare: whether the tag has no other subtag
    """

    language: str
    script: str
    region: str
    written: str
    is_bare: bool


@cache
def meaning(tag: str) -> Meaning | None:
    """Return the likely meaning of a tag.

    Return None if the tag is empty, private or malformed, or if its language is und, mul, zxx or mis.
    """
    import langcodes

    try:
        parsed = langcodes.Language.get(tag)
    except ValueError:  # includes LanguageTagError
        return None
    if not parsed.language or parsed.language in ("und", "mul", "zxx", "mis"):
        return None
    likely = parsed.prefer_macrolanguage().maximize()
    language = variety_of(likely.language or parsed.language, _READ_ALIKE)
    bare = not (parsed.script or parsed.territory or parsed.variants or parsed.private)
    return Meaning(language, likely.script or "", likely.territory or "", parsed.language, bare)


def same_language(tag: str, other: str) -> bool:
    """Return whether two tags stand for languages with the same readers. Scripts and regions are ignored."""
    left, right = meaning(tag), meaning(other)
    return tag.casefold() == other.casefold() or (
        left is not None and right is not None and left.language == right.language
    )


@lru_cache(maxsize=4096)
def serving(tags: tuple[str, ...], language: str) -> tuple[str, ...]:
    """Return the tags that readers of a language understand, closest first.

    An identical tag comes first, then tags in the same script, then tags in other scripts. Within a script, a tag
    without a region precedes a tag with the language's likely region, which precedes tags with other regions.
    """
    return tuple(
        sorted((tag for tag in tags if same_language(tag, language)), key=lambda tag: _distance(tag, language))
    )


def closest(tags: Iterable[str], language: str) -> str:
    """Return the closest tag that readers of a language understand, or "" if there is none."""
    tags = tuple(tags)
    return language if language in tags else next(iter(serving(tags, language)), "")


def _distance(tag: str, language: str) -> tuple[bool | str, ...]:
    left, right = meaning(tag), meaning(language)
    if tag.casefold() == language.casefold() or left is None or right is None:
        return (False, tag)
    return (
        True,
        left.script != right.script,
        left.written != right.written and not (left.is_bare and left.written == left.language),
        not left.is_bare,
        left.region != right.region,
        tag,
    )


def in_languages(tags: Iterable[str], accepted: Iterable[str]) -> list[str]:
    """Return the tags that readers of at least one of the accepted languages understand, in their original order."""
    languages = list(accepted)
    return [tag for tag in tags if any(same_language(tag, language) for language in languages)]
