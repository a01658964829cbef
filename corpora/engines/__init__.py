"""How a corpus is queried. Callers import from here and name no engine.

DuckDB (duckdb.py) asks on one machine, Spark (spark.py) on one or many; the setting ENGINE says which. Each is a module
with a Store of the same verbs, and both run the same sql/.
"""

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
from django.conf import settings

from corpora.core import CorpusError
from corpora.storage.layout import Manifest, corpus_dir, manifest_of, read_manifest
from corpora.storage.schemas import schema_of, votes_schema

if TYPE_CHECKING:
    from corpora.engines import duckdb, spark

Store: TypeAlias = "duckdb.Store | spark.Store"


def _engine(name: str) -> ModuleType:
    """The module of an engine, which is loaded when a corpus is first asked: the server's pages rarely ask one.
    CorpusError if it is not installed.
    """
    try:
        return import_module(f"corpora.engines.{name}")
    except ImportError as error:
        raise CorpusError(
            f"ASSAY_ENGINE is {name}, and {error.name} is not installed. Install Assay with its extra, as in "
            f"`pip install '.[{name}]'`, or set ASSAY_ENGINE=duckdb."
        ) from error


@contextmanager
def full_disk_explained(what: str) -> Iterator[None]:
    """Turn a full disk, as the system or the engine reports it, into a sentence."""
    try:
        yield
    except CorpusError:
        raise
    except Exception as error:
        full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        text = str(error)
        if full or "No space left" in text or "max_temp_directory_size" in text:
            raise CorpusError(
                f"The disk is full: {what}. What was there before stays. "
                f"Free space in {settings.DATA_DIR} and run the command again."
            ) from error
        raise


@contextmanager
def asking(name: str, parts: int | None = None, manifest: Manifest | None = None) -> Iterator[Store]:
    """A store over the first `parts` parts of a corpus and the votes on them; all of both by default.

    `manifest` is the one that the caller has read, if it wants no later one; without it the one on disk is read.
    """
    with _over(_engine(settings.ENGINE), name, parts, manifest) as store:
        yield store


@contextmanager
def _over(engine: ModuleType, name: str, parts: int | None, manifest: Manifest | None) -> Iterator[Store]:
    manifest, directory = manifest or read_manifest(name), corpus_dir(name)
    with engine.opened() as store:
        posts = [directory / "parts" / part.name for part in manifest.parts] if manifest else []
        votes = [directory / "votes" / part.name for part in manifest.votes] if manifest else []
        fields = manifest.fields if manifest else ()
        store.view("posts", posts[:parts], schema_of(fields, bool(manifest and manifest.declared)), fields)
        store.view("votes", votes[:parts], votes_schema())
        yield store


def spread() -> Callable[..., Iterator[pa.Table]] | None:
    """How a function is applied to files on all machines of the engine (spark.mapped); None if it has but this one."""
    return None if settings.ENGINE == "duckdb" else _engine(settings.ENGINE).mapped


def votes_in(texts: pa.Array) -> pa.Array:
    """Votes as items have them, in JSON, each as a list of (detector, rank, language, score), in the order of the
    detectors. DuckDB unpacks them, whichever engine is set: no object is made of a vote.
    """
    return _engine("duckdb").votes_in(texts)


def posts_by_author(corpus_name: str, author: str, limit: int) -> list[dict[str, Any]]:
    """Up to `limit` posts of one (hashed) author, the latest first: id, text, posted_at (UTC or None), url.

    A page waits for them, so DuckDB is asked, whichever engine is set. CorpusError if they cannot be read, for whatever
    reason.
    """
    if not author:
        return []
    engine = _engine("duckdb")
    try:
        with _over(engine, corpus_name, None, manifest_of(corpus_name)) as store:
            posts = store.found("posts_by_author", author, limit)
    except (CorpusError, OSError, ValueError, engine.Error, pa.ArrowException) as error:
        reason = str(error).split("\n")[0].rstrip(".")
        raise CorpusError(
            f"The posts of corpus {corpus_name} cannot be read: {reason}. "
            f"Check {corpus_dir(corpus_name)} and the room in {engine.spill_dir()}."
        ) from error
    return posts
