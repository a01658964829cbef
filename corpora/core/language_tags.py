"""Language tags: their names, their likely meaning, and which tags a speaker of a language can read.

langcodes provides the data: the IANA registry, which contains all languages of ISO 639-1, -2 and -3, and CLDR's likely
scripts and predominant varieties. The label codes are in languages.py, and this module doesn't depend on them.
"""

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

# Scopes in the registry whose subtags don't stand for a single language.
_NO_SCOPES = ("special", "collection", "private-use")
# Scripts of languages that are missing from CLDR. For these, langcodes would return the Latin script.
_SCRIPTS = {"azb": "Arab", "xal": "Cyrl"}


class Registry(NamedTuple):
    """The IANA registry of language subtags, without deprecated subtags.

    languages, scripts, regions: English name by subtag
    macrolanguages: macrolanguage by language subtag, such as ar for arz
    """

    languages: Mapping[str, str]
    scripts: Mapping[str, str]
    regions: Mapping[str, str]
    macrolanguages: Mapping[str, str]


@cache
def registry() -> Registry:
    """Load the registry. This takes about 50 ms, so callers look up codes in our own table first."""
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
    """Return a code with each subtag in the case recommended by BCP 47, such as zh-Hans-CN."""
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
    """Return the ISO 15924 code of a language's usual script according to CLDR, or "" if unknown."""
    import langcodes

    return _SCRIPTS.get(tag) or langcodes.Language.get(tag).maximize().script or ""


def variety_of(language: str, macrolanguages: Iterable[str]) -> str:
    """Return the language's macrolanguage if it is one of `macrolanguages`; otherwise return the language itself."""
    macrolanguage = registry().macrolanguages.get(language, "")
    return macrolanguage if macrolanguage in macrolanguages else language


# --- Matching the language tags of a thesaurus's labels with the language of an annotator.
#
# The lookup follows BCP 47, but in both directions: a reader of en understands a label in en-GB, and readers of zh-CN
# and zh-Hans understand a label in zh. Tags are compared by their likely meaning, which langcodes takes from CLDR. For
# example, zh-TW implies Traditional script, iw means he, and eng means en.


# Macrolanguages whose readers understand every variety, even where our label codes distinguish the varieties.
_READ_ALIKE = ("ar", "no", "zh")


class Meaning(NamedTuple):
    """The likely meaning of a language tag.

    language, script, region: likely subtags; for a variety such as `nb`, the language is the macrolanguage (`no`)
    written: language subtag as it appears in the tag
    is_bare: whether the tag consists of a language subtag only
    """

    language: str
    script: str
    region: str
    written: str
    is_bare: bool


@cache
def meaning(tag: str) -> Meaning | None:
    """Return the likely meaning of a tag.

    Return None if the tag is empty, private or malformed, or if its language is `und`, `mul`, `zxx` or `mis`.
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
    """Return whether readers of one tag's language understand the other's. Scripts and regions are ignored."""
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
    """Return the tag closest to a language among those that its readers understand, or "" if there is none."""
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
