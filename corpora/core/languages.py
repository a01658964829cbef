"""Languages: their label codes and names, the detectors' codes for them, and codes and tags from other standards.

The table of languages is in languages.toml. An installation can add languages from a file. Annotators and files may use
the added languages, but detectors cannot return them.
"""

import difflib
import re
import tomllib
from collections import UserDict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from corpora.core import CorpusError

UND = "und"  # The label of a text that has no language, or more than one. No detector returns it.


@dataclass(frozen=True)
class Language:
    """A language, or a coarse code that covers several labels (listed in `labels`)."""

    code: str
    name: str  # English name
    autonym: str  # the language's own name for itself
    langid: str = ""  # this detector's codes for the language, separated by spaces; "" if it has none
    cld2: str = ""
    fasttext: str = ""
    labels: tuple[str, ...] = ()
    script: str = ""  # ISO 15924 code, if the script matters
    under: str = ""  # the listed code that covers this added language


def _listed(code: str, name: str, autonym: str, langid: str, cld2: str, fasttext: str, *labels: str) -> Language:
    return Language(code, name, autonym, langid, cld2, fasttext, labels)


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
# A mapping from code to language. The listed languages come first, then those added by add_names in this process.
# Adding a language replaces `data` instead of modifying it, so that a thread can iterate while another adds languages.
LANGUAGES: UserDict[str, Language] = UserDict(
    {code: _listed(code, *cells) for code, cells in _TABLE["languages"].items()}
)
LISTED = frozenset(LANGUAGES)
# The 70 labels of the 2015 article. They are the default labels of a task.
ARTICLE_LABELS: tuple[str, ...] = tuple(_TABLE["article"].split())
# Groups of labels that people and detectors confuse. A label may belong to several groups.
CONFUSABLE = tuple(tuple(group.split()) for group in _TABLE["confusable"])
# The (detector, code) pairs that do not count as votes, each with the reason.
NO_VOTE: dict[tuple[str, str], str] = {
    (detector, code): reason for detector, codes in _TABLE["no_vote"].items() for code, reason in codes.items()
}
DETECTORS = ("langid", "cld2", "fasttext")
_LABELS: dict[tuple[str, str], str] = {
    (detector, detector_code): code
    for code, language in LANGUAGES.items()
    for detector in DETECTORS
    for detector_code in getattr(language, detector).split()
}
# The label codes that each detector can return.
COVERAGE: dict[str, frozenset[str]] = {
    detector: frozenset(code for (by, _), code in _LABELS.items() if by == detector) for detector in DETECTORS
}


def normalise(detector: str, code: str) -> str | None:
    """Return the label code for a detector's code, or None if the detector's code does not count as a vote.

    Raise KeyError if the code is neither in LANGUAGES nor in NO_VOTE.
    """
    if detector == "cld2" and code.startswith("xx-"):
        code = "xx-*"
    if (detector, code) in NO_VOTE:
        return None
    return _LABELS[detector, code]


@cache
def confusable_with(code: str) -> frozenset[str]:
    """Return the labels that are easily confused with a label, without the label itself."""
    return frozenset(chain.from_iterable(group for group in CONFUSABLE if code in group)) - {code}


def finer(code: str) -> tuple[str, ...]:
    """Return the labels that a coarse code covers: its listed labels, then those added under it in this process."""
    listed = LANGUAGES[code].labels if code in LANGUAGES else ()
    return (*listed, *(added.code for added in LANGUAGES.data.values() if added.under == code))


def in_its_case(written: str, codes: Container[str]) -> str:
    """Return the known code that differs from the given one only in case or separators, or "" if there is none."""
    code = cased(written)
    return code if code in codes else ""


def cased(code: str) -> str:
    """Return a code with each subtag in the case that BCP 47 recommends, such as zh-Hans-CN."""
    first, *others = code.replace("_", "-").lower().split("-")
    cases = {2: str.upper, 4: str.capitalize}
    return "-".join([first, *(cases.get(len(other), str)(other) for other in others)])


def published_code(language: str, languages: Iterable[str]) -> str:
    """Return the code for a language in the names of published files. It has no region: zh for zh-CN, pt for pt-BR.

    languages: all languages of the set; if two of them differ only in the region, both keep the region
    """
    base, _, region = language.partition("-")
    is_region = (len(region) == 2 and region.isalpha()) or (len(region) == 3 and region.isdigit())
    alike = {code for code in languages if code.partition("-")[0] == base}
    return base if is_region and alike <= {language} else language


# --- Thesaurus labels that a reader of a language understands.
#
# The lookup follows BCP 47, but in both directions: a reader of en understands a label in en-GB, and readers of zh-CN
# and zh-Hans understand a label in zh. Tags are compared by their likely meaning, which langcodes takes from CLDR. For
# example, zh-TW implies Traditional script, iw means he, and eng means en.


# Written standards and spoken varieties that CLDR keeps distinct, mapped to the language that represents them here.
VARIETIES = {
    "nb": "no", "nn": "no",
    "arb": "ar", "arz": "ar", "ary": "ar", "arq": "ar", "aeb": "ar", "apc": "ar", "ajp": "ar", "acm": "ar", "ars": "ar",
    "afb": "ar",
}  # fmt: skip
# Readers of the Chinese varieties read Chinese (zh) too, although a text in one of them may have a separate label.
_READ_AS = VARIETIES | dict.fromkeys(["cmn", "yue", "wuu", "hak", "nan"], "zh")


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
    language = likely.language or parsed.language
    bare = not (parsed.script or parsed.territory or parsed.variants or parsed.private)
    return Meaning(_READ_AS.get(language, language), likely.script or "", likely.territory or "", parsed.language, bare)


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


# --- Codes from other standards.


FASTTEXT_PREFIX = "__label__"
# Exceptions where our labels differ from CLDR's codes, or where one label covers several of them.
_HERE = VARIETIES | {"fil": "tl", "hbs": "sh", "azj": "az", "bih": "bho", "bh": "bho"}
# Codes that stand for different languages in different standards, with the codes to write instead.
_AMBIGUOUS = {"als": ("sq (Albanian)", "gsw (Swiss German)")}
# Codes for text that has no language, or more than one. Here they all have the label UND.
_NO_LANGUAGE = {"mul", "zxx", "mis", "unk"}
# Languages commonly written in two scripts. A code of any other language must not name an unusual script, because text
# in that script would need a separate label.
_TWO_SCRIPTS = frozenset(["sr", "bs", "az", "uz", "kk", "tk", "mn", "ku", "ms", "tt", "ky"])
_TRADITIONAL = {"Hant": "zh-TW", "Hans": "zh-CN"}


def code_of(written: str) -> str:
    """Return the code in LANGUAGES for a code from a file. Return "" if the code is unknown or ambiguous."""
    code = written.removeprefix(FASTTEXT_PREFIX).replace("_", "-")
    return in_its_case(code, LANGUAGES) or _read(code, tuple(LANGUAGES))


@lru_cache(maxsize=4096)
def _read(code: str, codes: tuple[str, ...]) -> str:
    """Resolve a code that is spelled differently in LANGUAGES. Return "" if it does not stand for any known code.

    codes: the codes of LANGUAGES; the argument is part of the cache key, because languages can be added
    """
    import langcodes

    lowered = code.lower()
    if lowered in _AMBIGUOUS or lowered in _NO_LANGUAGE:
        return ""
    if _HERE.get(lowered) in codes:
        return _HERE[lowered]
    try:
        tag = langcodes.Language.get(langcodes.standardize_tag(code, macro=True))
    except ValueError:  # malformed tag
        return ""
    language = _HERE.get(tag.language or "", tag.language or "")
    if language == "zh":
        return _TRADITIONAL[tag.maximize().script or "Hans"] if tag.script or tag.territory else "zh"
    usual = langcodes.Language.get(language).maximize().script if language else None
    if tag.script and tag.script != usual and language not in _TWO_SCRIPTS:
        return ""
    with_region = f"{language}-{tag.territory}"
    return next((candidate for candidate in (with_region, language) if candidate in codes), "")


def hint(written: str) -> str:
    """Return advice for an unknown code, such as `did you mean sv (Swedish)?`, or "" if nothing similar is known.

    written: a code from another standard, or a misspelled language name
    """
    code = written.removeprefix(FASTTEXT_PREFIX)
    if codes := _AMBIGUOUS.get(code.lower()):
        return f"write {' or '.join(codes)}"
    if code.lower() in _NO_LANGUAGE:
        return f"it does not stand for a single language, so write {UND}"
    if "," in code and all(part.strip() in LANGUAGES for part in code.split(",")):
        return f"there are several languages, so write {UND}"
    language = LANGUAGES.get(code_of(code)) or LANGUAGES.get(_by_name(code.casefold(), LANGUAGES))
    if language:
        return f"did you mean {language.code} ({language.name})?"
    return _of_another_script(code)


def _by_name(word: str, languages: Mapping[str, Language]) -> str:
    if len(word) < 4:  # A word of three letters is similar to too many names.
        return ""
    names = {name.casefold(): code for code, entry in languages.items() for name in (entry.autonym, entry.name)}
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.8)
    return names[near[0]] if near else ""


def _of_another_script(code: str) -> str:
    bare = code.replace("_", "-").split("-")[0]
    language = LANGUAGES.get(code_of(bare)) if bare != code else None
    return f"{language.code} stands for {language.name} in its usual script" if language else ""


# --- Added languages: reading their tables and registering them in this process.


MAX_CODE = 16  # maximum length of a code (characters), as in the database columns for languages

# The subtags of BCP 47 that distinguish languages and varieties: language, script, region and variants. Each subtag
# must be in its conventional case, so that a language cannot have two codes.
_CODE = re.compile(
    r"[a-z]{2,3}(-[A-Z][a-z]{3})?(-(?:[A-Z]{2}|[0-9]{3}))?(-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*", re.ASCII
)
# The maximum number of parts in a key. Our tables need far fewer. tomllib stores every prefix of a key, so a key with
# 20,000 parts would take 1.5 GB.
_MOST_PARTS = 10
_PART = r"""(?:[A-Za-z0-9_-]++|"(?:\\.|[^"\\\n])*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?m)(?:^|[\[{{,])[ \t]*+{_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{_MOST_PARTS}}}")
_adding = Lock()
ADDED_KEYS = ("name", "autonym", "script", "under")


def read_toml(text: str) -> dict[str, Any]:
    """Parse a TOML text.

    Raise TOMLDecodeError if the text is malformed, or if a key has more than _MOST_PARTS parts.
    """
    if match := _LONG_KEY.search(text):
        line = 1 + text.count("\n", 0, match.start())
        raise tomllib.TOMLDecodeError(f"A key has more than {_MOST_PARTS} parts (at line {line}, column 1)")
    return tomllib.loads(text)


def read_added(tables: Mapping[str, object]) -> dict[str, Language]:
    """Return the added languages from a mapping of codes to tables.

    A table may have the keys name, autonym, script and under. Only the name is required; the autonym defaults to it.

    Raise ValueError with a message about the first fault.
    """
    return {code: _added(code, table) for code, table in tables.items()}


def add_names(languages: Mapping[str, Language]) -> None:
    """Add languages to LANGUAGES in this process, so that their names can be shown and files may use their codes.

    Detectors cannot return added languages, and no listed code maps to them.

    Raise ValueError and add nothing if a code is invalid or already listed, or was added before under a different name.
    """
    with _adding:
        for code, language in languages.items():
            _check_code(code)
            existing = LANGUAGES.get(code, language)
            if (existing.name, existing.autonym) != (language.name, language.autonym):
                raise ValueError(
                    f"The language {code} was already added as {_quoted_names(existing)}, but is "
                    f"{_quoted_names(language)} here. Use the same name and autonym."
                )
        new = {
            code: replace(language, code=code, langid="", cld2="", fasttext="", labels=())
            for code, language in languages.items()
            if code not in LANGUAGES
        }
        LANGUAGES.data = LANGUAGES.data | new


def _quoted_names(language: Language) -> str:
    is_same = language.autonym == language.name
    return f"{language.name!r}" if is_same else f"{language.name!r} ({language.autonym!r})"


def _check_code(code: str) -> None:
    if code in LISTED:
        raise ValueError(f"The language {code} is built in as {LANGUAGES[code].name}. Remove it.")
    if code == UND:
        raise ValueError(f"{UND} is reserved for texts with no language, or more than one. Choose another code.")
    if not _CODE.fullmatch(code):
        usual = cased(code)
        hint = f"Write {usual}" if _CODE.fullmatch(usual) else "Use a BCP 47 code such as pcm, pt-BR or sr-Latn"
        raise ValueError(f"{code!r} is not a valid language code. {hint}.")
    if len(code) > MAX_CODE:
        raise ValueError(f"The language code {code} has {len(code)} characters. The limit is {MAX_CODE}.")


def _added(code: str, table: object) -> Language:
    _check_code(code)
    if not isinstance(table, Mapping):
        raise ValueError(f"The language {code} must be a table. Write [languages.{code}], and the name below it.")
    for key in table:
        if key not in ADDED_KEYS:
            near = difflib.get_close_matches(str(key), ADDED_KEYS, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"Valid keys are: {', '.join(ADDED_KEYS)}."
            raise ValueError(f"The language {code} has the unknown key {key!r}. {hint}")
    name = _words(code, "name", table.get("name"))
    script, under = table.get("script", ""), table.get("under", "")
    if "script" in table and not (isinstance(script, str) and re.fullmatch("[A-Za-z]{4}", script)):
        raise ValueError(f"The script of the language {code} is {script!r}. It must have four letters, such as Latn.")
    if "under" in table and not (isinstance(under, str) and under in LISTED):
        raise ValueError(
            f"The value of under for the language {code} is {under!r}, which is not a built-in code. Use a code such "
            "as pt, or remove it."
        )
    return Language(
        code=code,
        name=name,
        autonym=_words(code, "autonym", table["autonym"]) if "autonym" in table else name,
        script=str(script).capitalize(),
        under=str(under),
    )


def _words(code: str, key: str, value: object) -> str:
    if value is None:
        raise ValueError(f'The language {code} has no {key}. Add one, such as {key} = "Nigerian Pidgin".')
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ValueError(f"The {key} of the language {code} is {value!r}. It must be a short text on one line.")
    return value.strip()


def learn(tables: Mapping[str, object]) -> None:
    """Add languages that another process has added. A language that is already known keeps its name.

    tables: the tables that tables_of returned in that process

    Raise ValueError if a table cannot be read.
    """
    add_names(read_added({code: table for code, table in tables.items() if code not in LANGUAGES}))


def tables_of(languages: Iterable[Language]) -> dict[str, dict[str, str]]:
    """Return added languages as tables that read_added can read. Keys without a value are omitted."""
    return {entry.code: {key: value for key in ADDED_KEYS if (value := getattr(entry, key))} for entry in languages}


# --- Languages from a file. They are needed for imports in languages that are not listed.


def add_languages(path: Path) -> None:
    """Add the languages in a TOML file to this process.

    Each has a table [languages.CODE]; all other tables are ignored.

    Records that are imported in these languages keep their codes after the process ends.

    Raise CorpusError and add nothing if the file cannot be read or one of the languages cannot be added.
    """
    try:
        tables = read_toml(path.read_text(encoding="utf-8")).get("languages")
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise CorpusError(f"{path} cannot be read as TOML: {error}.") from error
    if not isinstance(tables, dict) or not tables:
        raise CorpusError(f"{path} contains no table [languages.CODE], such as [languages.pcm].")
    try:
        add_names(read_added(tables))
    except ValueError as error:
        raise CorpusError(f"{path}: {error}") from error
