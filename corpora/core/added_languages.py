"""Languages that are not listed in languages.py: tables of them, and what makes them known in this process."""

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from threading import Lock
from typing import Any

from corpora.core.languages import LANGUAGES, LISTED, UND, Language, cased

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
