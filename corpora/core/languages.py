"""Languages: their label codes and names, the detectors' codes for them, and codes from other standards.

Listed languages are those in languages.toml. Any other language in the IANA registry (language_tags.py) can be used by
its code, and an installation can add codes from a file. Annotators and files may use all of these languages, but
detectors return only listed ones.
"""

import difflib
import re
import tomllib
from collections import UserDict
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any

from corpora.core import CorpusError
from corpora.core.language_tags import cased, registry, standard_name, usual_script, variety_of
from corpora.core.values import MISSING

UND = "und"  # The label of a text that has no language, or more than one. No detector returns it.


@dataclass(frozen=True)
class Language:
    """A language, or a coarse code that covers several labels (listed in `labels`)."""

    code: str
    name: str  # English name
    autonym: str  # the language's own name for itself
    langid: str = ""  # the detector's own codes for the language, separated by spaces; "" if it has none
    cld2: str = ""
    fasttext: str = ""
    labels: tuple[str, ...] = ()
    script: str = ""  # ISO 15924 code, if the script matters
    under: str = ""  # listed code that covers this language, for an added language


def _listed(code: str, name: str, autonym: str, langid: str, cld2: str, fasttext: str, *labels: str) -> Language:
    return Language(code, name, autonym, langid, cld2, fasttext, labels)


class _Languages(UserDict[str, Language]):
    """A mapping from code to language.

    Iteration yields the listed languages, then languages added by add_names in this process. All other languages in the
    registry are also members and can be looked up, but are not iterated over.

    Adding a language replaces `data` instead of modifying it. One thread can therefore iterate while another adds.
    """

    def __contains__(self, code: object) -> bool:
        return code in self.data or (isinstance(code, str) and _unlisted(code) is not None)

    def __missing__(self, code: str) -> Language:
        if language := _unlisted(code):
            return language
        raise KeyError(code)


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
LANGUAGES = _Languages({code: _listed(code, *cells) for code, cells in _TABLE["languages"].items()})
LISTED = frozenset(LANGUAGES)
# The 70 labels of the 2015 article. They are the default labels of a task.
ARTICLE_LABELS: tuple[str, ...] = tuple(_TABLE["article"].split())
# Groups of labels that annotators and detectors confuse. A label may belong to several groups.
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
    """Return the labels covered by a coarse code: its listed labels, then labels added under it in this process."""
    listed = LANGUAGES[code].labels if code in LANGUAGES else ()
    return (*listed, *(added.code for added in LANGUAGES.data.values() if added.under == code))


def in_its_case(written: str, codes: Container[str]) -> str:
    """Return the code in `codes` that differs from `written` only in case or separators, or "" if there is none."""
    code = cased(written)
    return code if code in codes else ""


def published_code(language: str, languages: Iterable[str]) -> str:
    """Return the code for a language in the names of published files. The region is dropped: zh-CN becomes zh.

    languages: all languages of the set; if two of them differ only in the region, both keep the region
    """
    base, _, region = language.partition("-")
    is_region = (len(region) == 2 and region.isalpha()) or (len(region) == 3 and region.isdigit())
    alike = {code for code in languages if code.partition("-")[0] == base}
    return base if is_region and alike <= {language} else language


# --- Codes from other standards.


FASTTEXT_PREFIX = "__label__"
# Macrolanguages with a single label for all of their varieties. To distinguish varieties, add them from a file.
_ONE_LABEL = ("ar", "no")
# CLDR's code -> our label code, where they differ.
_OWN_CODES = {"fil": "tl", "hbs": "sh", "bih": "bho"}
# Codes that stand for different languages in different standards, with the codes to write instead.
_AMBIGUOUS = {"als": ("sq (Albanian)", "gsw (Swiss German)")}
# Codes for text that has no language, or more than one. We label all of them UND.
_NO_LANGUAGE = {"mul", "zxx", "mis", "unk"}
# Languages commonly written in two scripts. For any other language, text in an unusual script has a separate label.
_TWO_SCRIPTS = frozenset(["sr", "bs", "az", "uz", "kk", "tk", "mn", "ku", "ms", "tt", "ky"])
_CHINESE = {"Hant": "zh-TW", "Hans": "zh-CN", "Hani": "zh"}


def code_of(written: str) -> str:
    """Return the label code for a language code or name from a file, or "" if it is unknown or ambiguous.

    Codes can be those of ISO 639-1, -2 and -3, with or without script and region. Names can be the English names or
    autonyms of the languages in LANGUAGES.
    """
    if written in LANGUAGES.data:
        return written
    code = written.removeprefix(FASTTEXT_PREFIX).replace("_", "-")
    codes = LANGUAGES.data
    return in_its_case(code, codes) or _read(code, tuple(codes)) or _names(tuple(codes)).get(written.casefold(), "")


def meant(written: Iterable[str], is_known: Callable[[str], bool]) -> list[str]:
    """Replace codes of other standards with the equivalent known codes. Other strings are returned unchanged."""
    return [code if is_known(code) or not is_known(read := code_of(code)) else read for code in written]


@lru_cache(maxsize=8)
def _names(codes: tuple[str, ...]) -> dict[str, str]:
    """Map English names and autonyms, in lower case, to codes. English names take precedence."""
    languages = [language for code in codes if (language := LANGUAGES.data.get(code))]
    autonyms = {language.autonym.casefold(): language.code for language in languages}
    return autonyms | {language.name.casefold(): language.code for language in languages}


@lru_cache(maxsize=4096)
def _read(code: str, codes: tuple[str, ...]) -> str:
    """Resolve a code that is spelled differently in LANGUAGES. Return "" if it does not stand for a single language.

    codes: listed and added codes, which take precedence over the registry
    """
    import langcodes

    if code.lower() in _AMBIGUOUS or code.lower() in _NO_LANGUAGE:
        return ""
    if _OWN_CODES.get(code.lower()) in codes:
        return _OWN_CODES[code.lower()]
    try:
        tag = langcodes.Language.get(langcodes.standardize_tag(code, macro=True))
    except ValueError:  # malformed tag
        return ""
    language = variety_of(_OWN_CODES.get(tag.language or "", tag.language or ""), _ONE_LABEL)
    written = langcodes.Language.get(code, normalize=False)
    if written.language in codes and not written.extlangs:  # a listed variety is not replaced by its macrolanguage
        language = written.language
    script = tag.script or ""
    if language == "zh":
        implied = script or (tag.maximize().script if tag.territory else "") or "Hani"
        return _CHINESE.get(implied, f"zh-{implied}")
    candidates = [f"{language}-{script}"] if script else []
    if not script or language in _TWO_SCRIPTS or _is_usual(script, language):
        candidates += [f"{language}-{tag.territory}", language]
    best = next((candidate for candidate in candidates if candidate in codes), candidates[-1])
    return best if best in codes or (language in registry().languages and best not in MISSING) else ""


def _is_usual(script: str, language: str) -> bool:
    """Return whether a language is usually written in a script. Hani stands for Chinese characters of either kind."""
    usual = usual_script(language)
    return script == usual or (script == "Hani" and usual in ("Hans", "Hant"))


def is_standard(code: str) -> bool:
    """Return whether a code is listed or is in the registry. Added codes do not count."""
    return code in LISTED or _unlisted(code) is not None


@lru_cache(maxsize=4096)
def _unlisted(code: str) -> Language | None:
    """Return the language for a code in the registry, or None if the code is unknown or another code is preferred."""
    if not _CODE.fullmatch(code) or len(code) > MAX_CODE or _read(code, tuple(LISTED)) != code:
        return None
    name = standard_name(code)
    return Language(code, name, name, script=usual_script(code))


def unknown_code(written: str) -> str:
    """Return the end of an error message about a code that code_of cannot resolve, with advice on what to write.

    For example: `is not a known language code; did you mean sv (Swedish)?`
    """
    return f"is not a known language code; {hint(written) or 'write a code such as de or zh-CN.'}"


def hint(written: str) -> str:
    """Return advice for an unknown code, such as `did you mean sv (Swedish)?`, or "" if nothing similar is known.

    written: a code from another standard, or a misspelled language name
    """
    code = written.removeprefix(FASTTEXT_PREFIX)
    if codes := _AMBIGUOUS.get(code.lower()):
        return f"write {' or '.join(codes)}."
    if code.lower() in _NO_LANGUAGE:
        return f"it does not stand for a single language, so write {UND}."
    if "," in code and all(part.strip() in LANGUAGES for part in code.split(",")):
        return f"there are several languages, so write {UND}."
    near = code_of(code) or _by_name(code)
    return f"did you mean {near} ({LANGUAGES[near].name})?" if near else ""


def code_named(name: str) -> str:
    """Return the code for an English language name in the registry, or "" if there is none."""
    languages = registry().languages.items()
    return next((code_of(code) for code, english in languages if english.casefold() == name.casefold()), "")


def _by_name(word: str) -> str:
    """Return the code of the language with the most similar name, or "" if there is none."""
    if len(word) < 4:  # shorter words resemble too many names
        return ""
    names = _names(tuple(LANGUAGES.data))
    if near := difflib.get_close_matches(word.casefold(), names, n=1, cutoff=0.8):
        return names[near[0]]
    return code_named(word) if word[0].isupper() else ""  # `label` and `even` are also names of languages


# --- Added languages: reading their tables and registering them in this process.


MAX_CODE = 16  # maximum length of a code (characters), as in the database columns for languages

# The subtags of BCP 47 that distinguish languages and varieties: language, script, region and variants. Each subtag
# must be in its conventional case, so that a language cannot have two codes.
_CODE = re.compile(
    r"[a-z]{2,3}(-[A-Z][a-z]{3})?(-(?:[A-Z]{2}|[0-9]{3}))?(-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*", re.ASCII
)
# Maximum number of parts in a dotted key, far more than our tables need. tomllib stores every prefix of a key, so a key
# with 20,000 parts would take 1.5 GB.
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
    """Parse added languages from TOML tables keyed by code.

    Keys: `name`, `autonym`, `script` and `under`. `name` is required only if the language is not in the registry.
    `autonym` defaults to the name.

    Raise ValueError with a message about the first fault.
    """
    return {code: _added(code, table) for code, table in tables.items()}


def add_names(languages: Mapping[str, Language]) -> None:
    """Add languages to LANGUAGES in this process, so that their names are shown and their codes accepted in files.

    Detectors cannot return added languages, and no listed code maps to them.

    Raise ValueError and add nothing if a code is invalid or listed, or was already added under a different name.
    """
    with _adding:
        for code, language in languages.items():
            _check_code(code)
            existing = LANGUAGES.data.get(code, language)
            if (existing.name, existing.autonym) != (language.name, language.autonym):
                raise ValueError(
                    f"The language {code} was already added as {_quoted_names(existing)}, but is "
                    f"{_quoted_names(language)} here. Use the same name and autonym."
                )
        new = {
            code: replace(language, code=code, langid="", cld2="", fasttext="", labels=())
            for code, language in languages.items()
            if code not in LANGUAGES.data
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
    name = _words(code, "name", table.get("name") or standard_name(code) or None)
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
    """Add languages that were added in another process. A language that is already known keeps its name.

    tables: the result of tables_of in the other process

    Raise ValueError if a table is invalid.
    """
    add_names(read_added({code: table for code, table in tables.items() if code not in LANGUAGES.data}))


def tables_of(languages: Iterable[Language]) -> dict[str, dict[str, str]]:
    """Convert added languages to tables that read_added can parse. Keys without a value are omitted."""
    return {entry.code: {key: value for key in ADDED_KEYS if (value := getattr(entry, key))} for entry in languages}


# --- Languages added from a file, for imports in languages that are not listed.


def add_languages(path: Path) -> None:
    """Add the languages in a TOML file to this process.

    Each language has a table [languages.CODE]; all other tables are ignored. Records imported in these languages keep
    their codes after the process ends.

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
