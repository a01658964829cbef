"""Languages from a file, for whoever imports texts or labels in languages that are listed nowhere here."""

import tomllib
from pathlib import Path

from corpora.core.errors import CorpusError
from corpora.core.languages import add_names, read_added


def add_languages(path: Path) -> None:
    """Make the languages of a TOML file known, each a table [languages.CODE]; its other tables are left alone.

    For this process only: what is imported keeps the codes. CorpusError where the file cannot be read or one of them
    cannot be added; then none is.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("languages")
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
