"""What a language code of another standard means here: iw is he, eng is en, pt_BR is pt, zh-Hans is zh-CN.

ISO 639-1, -2 and -3, old codes, scripts, regions and macrolanguages are told apart by the library langcodes, which has
the tables of CLDR and IANA. Which codes there are is decided in languages.py.
"""

import difflib
from collections.abc import Mapping
from functools import lru_cache

from corpora.core.language_tags import VARIETIES
from corpora.core.languages import LANGUAGES, UND, Language, in_its_case

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
