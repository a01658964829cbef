"""Languages from a file, for imports of texts or labels in languages that are not listed here."""

from pathlib import Path

from corpora.core.added_languages import add_names, read_added, read_toml
from corpora.core.errors import CorpusError


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
