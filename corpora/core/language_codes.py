"""Codes of languages: of other standards, of labels in a thesaurus, and of languages that an installation adds.

A code of another standard has a meaning here: iw is he, eng is en, pt_BR is pt, zh-Hans is zh-CN. ISO 639-1, -2 and -3,
old codes, scripts, regions and macrolanguages are told apart by the library langcodes, which has the tables of CLDR and
IANA. Which codes there are is decided in languages.py.
"""

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from corpora.core import CorpusError
from corpora.core.languages import LANGUAGES, LISTED, UND, Language, cased, in_its_case

# --- Which labels of a thesaurus serve a reader of a language: BCP 47 lookup, both ways.
#
# A label in en-GB serves a reader of en, and one in zh serves readers of zh-CN and zh-Hans. Tags are compared by what
# they most likely mean (CLDR, by the library langcodes): zh-TW is in Traditional letters, iw is he, eng is en.


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


# --- What a language code of another standard means here.


FASTTEXT_PREFIX = "__label__"
# Where the labels here differ from CLDR, or CLDR keeps apart what they do not.
_HERE = VARIETIES | {"fil": "tl", "hbs": "sh", "azj": "az", "bih": "bho", "bh": "bho"}
# Codes of which two standards make two languages: the codes to write instead.
_AMBIGUOUS = {"als": ("sq (Albanian)", "gsw (Swiss German)")}
# Codes of what is no language, which LANGUAGES has one label for.
_NO_LANGUAGE = {"mul", "zxx", "mis", "unk"}
# Languages that people write in two scripts. In any other, a script that is not the usual one is another label.
_TWO_SCRIPTS = frozenset(["sr", "bs", "az", "uz", "kk", "tk", "mn", "ku", "ms", "tt", "ky"])
_TRADITIONAL = {"Hant": "zh-TW", "Hans": "zh-CN"}


def code_of(written: str) -> str:
    """The code of LANGUAGES that a code stands for, in its case; "" where it stands for none, or for more than one."""
    code = written.removeprefix(FASTTEXT_PREFIX).replace("_", "-")
    return in_its_case(code, LANGUAGES) or _read(code, tuple(LANGUAGES))


@lru_cache(maxsize=4096)
def _read(code: str, known: tuple[str, ...]) -> str:
    """known: the codes of LANGUAGES, which added ones may join."""
    import langcodes

    lowered = code.lower()
    if lowered in _AMBIGUOUS or lowered in _NO_LANGUAGE:
        return ""
    if _HERE.get(lowered) in known:
        return _HERE[lowered]
    try:
        tag = langcodes.Language.get(langcodes.standardize_tag(code, macro=True))
    except ValueError:  # a malformed tag
        return ""
    language = _HERE.get(tag.language or "", tag.language or "")
    if language == "zh":
        return _TRADITIONAL[tag.maximize().script or "Hans"] if tag.script or tag.territory else "zh"
    usual = langcodes.Language.get(language).maximize().script if language else None
    if tag.script and tag.script != usual and language not in _TWO_SCRIPTS:
        return ""
    with_region = f"{language}-{tag.territory}"
    return next((each for each in (with_region, language) if each in known), "")


def hint(given: str) -> str:
    """What to write in place of a word that is no code here, as in `did you mean sv (Swedish)?`: the word may be a
    code of another standard or, nearly, a name. "" if nothing is near."""
    code = given.removeprefix(FASTTEXT_PREFIX)
    if both := _AMBIGUOUS.get(code.lower()):
        return f"write {' or '.join(both)}"
    if code.lower() in _NO_LANGUAGE:
        return f"it names no one language, for which the label is {UND}"
    found = LANGUAGES.get(code_of(code)) or LANGUAGES.get(_by_name(code.casefold(), LANGUAGES))
    if found:
        return f"did you mean {found.code} ({found.name})?"
    return _of_another_script(code)


def _by_name(word: str, known: Mapping[str, Language]) -> str:
    if len(word) < 4:  # near to a word of three letters are too many
        return ""
    names = {name.casefold(): code for code, each in known.items() for name in (each.autonym, each.name)}
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.8)
    return names[near[0]] if near else ""


def _of_another_script(code: str) -> str:
    bare = code.replace("_", "-").split("-")[0]
    found = LANGUAGES.get(code_of(bare)) if bare != code else None
    return f"{found.code} is {found.name} in its usual script" if found else ""


# --- Languages that are not listed in languages.py: tables of them, and what makes them known in this process.


MAX_CODE = 16  # characters, as many as the database keeps of a language

# The parts of BCP 47 that tell languages and their varieties apart: language, script, region, variants; each in its
# usual case, so that one language has one code.
_CODE = re.compile(
    r"[a-z]{2,3}(-[A-Z][a-z]{3})?(-(?:[A-Z]{2}|[0-9]{3}))?(-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*", re.ASCII
)
# A key of more parts than any table here has. tomllib keeps all beginnings of a key, so 20,000 parts take 1.5 GB.
_MOST_PARTS = 10
_PART = r"""(?:[A-Za-z0-9_-]++|"(?:\\.|[^"\\\n])*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?m)(?:^|[\[{{,])[ \t]*+{_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{_MOST_PARTS}}}")
_adding = Lock()
ADDED_KEYS = ("name", "autonym", "script", "under")


def read_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text. TOMLDecodeError, with the line, where a key has more parts than any of ours."""
    if found := _LONG_KEY.search(text):
        line = 1 + text.count("\n", 0, found.start())
        raise tomllib.TOMLDecodeError(f"A key has more than {_MOST_PARTS} parts (at line {line}, column 1)")
    return tomllib.loads(text)


def read_added(tables: Mapping[str, object]) -> dict[str, Language]:
    """Languages that are not listed here, from code -> a table of name and, if needed, autonym, script and under.

    The name also serves as the autonym if none is given. ValueError with a sentence on the first thing that is wrong.
    """
    return {code: _added(code, table) for code, table in tables.items()}


def add_names(languages: Mapping[str, Language]) -> None:
    """Add languages to LANGUAGES, so that they have names and files may use them; in this process only.

    No detector can name them, and no listed code stands for them: what languages.py decides stays. ValueError, and
    nothing is added, if a code is listed or was added before under other names.
    """
    with _adding:
        for code, language in languages.items():
            _check_code(code)
            known = LANGUAGES.get(code, language)
            if (known.name, known.autonym) != (language.name, language.autonym):
                raise ValueError(
                    f"The language {code} was added before as {_named(known)}, but is {_named(language)} here; write "
                    "the same name and autonym."
                )
        new = {
            code: replace(language, code=code, langid="", cld2="", fasttext="", labels=())
            for code, language in languages.items()
            if code not in LANGUAGES
        }
        LANGUAGES.known = LANGUAGES.known | new


def _named(language: Language) -> str:
    same = language.autonym == language.name
    return f"{language.name!r}" if same else f"{language.name!r} ({language.autonym!r})"


def _check_code(code: str) -> None:
    if code in LISTED:
        raise ValueError(f"The language {code} is listed already as {LANGUAGES[code].name}; leave it out.")
    if code == UND:
        raise ValueError(f"{UND} is the label of a text that is in no one language; no language can have that code.")
    if not _CODE.fullmatch(code):
        meant = cased(code)
        hint = f"write {meant}" if _CODE.fullmatch(meant) else "write it as BCP 47 does, such as pcm, pt-BR or sr-Latn"
        raise ValueError(f"{code!r} cannot be the code of a language; {hint}.")
    if len(code) > MAX_CODE:
        raise ValueError(f"The language code {code} has {len(code)} characters; {MAX_CODE} are the most.")


def _added(code: str, table: object) -> Language:
    _check_code(code)
    if not isinstance(table, Mapping):
        raise ValueError(f"The language {code} is not a table; write [languages.{code}] and its name below.")
    for key in table:
        if key not in ADDED_KEYS:
            near = difflib.get_close_matches(str(key), ADDED_KEYS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there is {', '.join(ADDED_KEYS)}."
            raise ValueError(f"The language {code} has the unknown key {key!r}; {hint}")
    name = _words(code, "name", table.get("name"))
    script, under = table.get("script", ""), table.get("under", "")
    if "script" in table and not (isinstance(script, str) and re.fullmatch("[A-Za-z]{4}", script)):
        raise ValueError(f"The script of the language {code} is {script!r}; write its four letters, such as Latn.")
    if "under" in table and not (isinstance(under, str) and under in LISTED):
        raise ValueError(
            f"The language {code} stands under {under!r}, which is not a listed code; write one such as pt, or leave "
            "it out."
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
        raise ValueError(f'The language {code} has no {key}; add one, such as {key} = "Nigerian Pidgin".')
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ValueError(f"The {key} of the language {code} is {value!r}; write a word or a few, on one line.")
    return value.strip()


def learn(tables: Mapping[str, object]) -> None:
    """Give names to languages that were added elsewhere, as tables_of wrote them; known languages keep their names.

    ValueError if one cannot be read.
    """
    add_names(read_added({code: table for code, table in tables.items() if code not in LANGUAGES}))


def tables_of(languages: Iterable[Language]) -> dict[str, dict[str, str]]:
    """Added languages as read_added reads them: code -> name, autonym, script and under, without what is empty."""
    return {each.code: {key: value for key in ADDED_KEYS if (value := getattr(each, key))} for each in languages}


# --- Languages from a file, for imports of texts or labels in languages that are not listed here.


def add_languages(path: Path) -> None:
    """Make the languages of a TOML file known, each a table [languages.CODE]; its other tables are left alone.

    This lasts for this process only, but what is imported keeps the codes. CorpusError if the file cannot be read or a
    language cannot be added; then none is added.
    """
    try:
        tables = read_toml(path.read_text(encoding="utf-8")).get("languages")
    except OSError as error:
        raise CorpusError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise CorpusError(f"{path} cannot be read as TOML: {error}.") from error
    if not isinstance(tables, dict) or not tables:
        raise CorpusError(f"{path} has no table [languages.CODE], such as [languages.pcm].")
    try:
        add_names(read_added(tables))
    except ValueError as error:
        raise CorpusError(f"{path}: {error}") from error
