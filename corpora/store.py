"""Where a corpus lives on disk, and how it is asked: manifest, Parquet parts, votes, predictions, rejects, DuckDB.

    DATA_DIR/corpora/<name>/manifest.json       what is in the corpus; whatever it does not name is a leftover
                            parts/000001.parquet    posts or records, in the order in which they were imported
                            votes/000001.parquet    the detectors' votes on that part
                            predictions/000001.parquet    what a classifier from outside says of all posts
                            rejects/000001.jsonl    what was refused of the first source: file, line, reason

The manifest is the commit point: it is written aside and renamed, after all that it names is safely on disk.
Parts never change. What goes into them is the matter of ingest.py, prelabel.py and predictions.py.
"""

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TextIO

import duckdb
import pyarrow as pa
from django.conf import settings
from duckdb import ColumnExpression, FunctionExpression, StarExpression

from corpora.errors import CorpusError
from corpora.voter import VOTES_SCHEMA

POST_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("author", pa.string(), nullable=False),
        pa.field("posted_at", pa.timestamp("us", tz="UTC")),
        pa.field("url", pa.string(), nullable=False),
    ]
)


def schema_of(fields: tuple[str, ...]) -> pa.schema:
    """The columns of a corpus's parts: of posts, and for records also the language and each field."""
    names = ("language", *fields) if fields else ()
    return pa.schema([*POST_SCHEMA, *(pa.field(name, pa.string(), nullable=False) for name in names)])


PREDICTIONS_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("label", pa.string(), nullable=False),
        pa.field("score", pa.float64()),
    ]
)
_FOLDERS = ("parts", "votes", "predictions", "rejects")
# DuckDB sorts and joins on disk beyond this.
MEMORY_LIMIT = "1GB"


@dataclass(frozen=True)
class Source:
    """One imported file and what became of its rows."""

    name: str
    sha256: str
    bytes: int
    format: str
    columns: dict[str, str]  # our field -> the file's column
    rows: int
    accepted: int
    duplicates: int
    rejects: int
    language: str = ""  # declared for the whole file; of posts none is


@dataclass(frozen=True)
class Part:
    name: str
    rows: int
    sha256: str


@dataclass(frozen=True)
class VotesPart:
    """The votes on the part of the same number."""

    name: str
    rows: int
    unanimous: int
    sha256: str
    k: int
    versions: dict[str, str]  # corpora.core.detectors.detector_versions() when they were made


@dataclass(frozen=True)
class Predictions:
    """What a classifier from outside says of every post that the corpus had when they were imported."""

    name: str
    version: str
    file: str
    rows: int
    sha256: str
    posts_sha256: str  # Manifest.posts_sha256 of the posts that they are about
    mapping: dict[str, tuple[str, ...]]  # coarse class -> the labels that it stands for
    source: str


@dataclass(frozen=True)
class Manifest:
    licence: str
    text_may_leave: bool
    source: str
    sources: tuple[Source, ...] = ()
    parts: tuple[Part, ...] = ()
    votes: tuple[VotesPart, ...] = ()
    predictions: tuple[Predictions, ...] = ()
    fields: tuple[str, ...] = ()  # of records, in the order in which people see them; none: these are posts

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @property
    def posts_sha256(self) -> str:
        """SHA-256 over the digests of the parts, as lines of hex."""
        return hashlib.sha256("\n".join(part.sha256 for part in self.parts).encode()).hexdigest()


def corpora_dir() -> Path:
    return Path(settings.DATA_DIR) / "corpora"


def corpus_dir(name: str) -> Path:
    """The corpus's directory, existing or not. CorpusError for what cannot be a corpus's name."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise CorpusError(f"{name!r} cannot be a corpus's name; use 1 to 64 letters, digits, hyphens or underscores.")
    return corpora_dir() / name


def read_manifest(name: str) -> Manifest | None:
    """The manifest of a corpus, None where there is no such corpus yet. CorpusError where it cannot be read."""
    path = corpus_dir(name) / "manifest.json"
    try:
        raw = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CorpusError(f"{path} cannot be read: {error}. Restore it, or the right to read it.") from error
    raw["sources"] = tuple(Source(**source) for source in raw["sources"])
    raw["parts"] = tuple(Part(**part) for part in raw["parts"])
    raw["votes"] = tuple(VotesPart(**votes) for votes in raw["votes"])
    # A manifest from before there were any does not name them.
    raw["predictions"] = tuple(_predictions(predictions) for predictions in raw.get("predictions", ()))
    raw["fields"] = tuple(raw.get("fields", ()))
    return Manifest(**raw)


def _predictions(raw: dict[str, Any]) -> Predictions:
    mapping = {label: tuple(targets) for label, targets in raw.pop("mapping").items()}
    return Predictions(mapping=mapping, **raw)


def manifest_of(name: str) -> Manifest:
    """The manifest of a corpus. CorpusError where there is no such corpus."""
    manifest = read_manifest(name)
    if manifest is None:
        raise CorpusError(f"There is no corpus {name!r}; make one with import_corpus {name} FILE.")
    return manifest


def write_manifest(name: str, manifest: Manifest) -> None:
    """Commit: from here on the corpus is what this manifest says; before, what the last one said."""
    path = corpus_dir(name) / "manifest.json"
    draft = path.with_suffix(".draft")
    with draft.open("w", encoding="utf-8") as file:
        json.dump(_written(manifest), file, ensure_ascii=False, indent=1)
        file.write("\n")
    sync(draft)
    draft.rename(path)
    sync(path.parent)


def _written(manifest: Manifest) -> dict[str, Any]:
    """What only records have is not named where there are none: a manifest of posts stays, to the byte, what it was."""
    raw = asdict(manifest)
    for of in (raw, *raw["sources"]):
        for name in ("fields", "language"):
            if name in of and not of[name]:
                del of[name]
    return raw


def sync(path: Path) -> None:
    """Have the disk hold a file or a directory before anything refers to it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def changing(name: str) -> Iterator[Path]:
    """The corpus's directory, for one process at a time to change, rid of what a crash left in it.

    CorpusError where another process has it, or it cannot be written to. Where no corpus came of it, what was made
    for it is removed.
    """
    directory = corpus_dir(name)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / "lock").open("a")
    except OSError as error:
        raise _unwritable(directory, error) from error
    with lock:
        _take(lock, name)
        try:
            for folder in _FOLDERS:
                (directory / folder).mkdir(exist_ok=True)
            _sweep(directory, read_manifest(name), _FOLDERS)
            yield directory
        except OSError as error:
            if str(directory) in str(error):
                raise _unwritable(directory, error) from error
            raise
        finally:
            # What cannot be swept now is swept by the next command, and must not hide why this one failed.
            with suppress(OSError, CorpusError):
                # A list of rejects stays, for whoever is to read why a file was refused.
                manifest = read_manifest(name)
                _sweep(directory, manifest, ("parts", "votes", "predictions"))
                if manifest is None:
                    _remove_empty(directory)


def _take(lock: TextIO, name: str) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another command may have removed the file, and its corpus that came to nothing, since it was opened.
        free = os.path.samestat(os.fstat(lock.fileno()), os.stat(lock.name))
    except (BlockingIOError, FileNotFoundError):
        free = False
    except OSError as error:
        raise _unwritable(Path(lock.name).parent, error) from error
    if not free:
        raise CorpusError(f"Another command is changing corpus {name} just now; wait until it has ended.")


def _unwritable(directory: Path, error: OSError) -> CorpusError:
    return CorpusError(
        f"{directory} cannot be written: {error.strerror or error}. What was there before stays. See to it that you "
        "may write there and that the disk has room, then run the command again."
    )


def _remove_empty(directory: Path) -> None:
    for path in (directory / "rejects").iterdir():
        if not path.stat().st_size:
            path.unlink()
    for folder in _FOLDERS:
        (directory / folder).rmdir()
    (directory / "lock").unlink()
    directory.rmdir()


def _sweep(directory: Path, manifest: Manifest | None, folders: tuple[str, ...]) -> None:
    named: set[str] = set()
    if manifest:
        named |= {f"parts/{part.name}" for part in manifest.parts}
        named |= {f"votes/{votes.name}" for votes in manifest.votes}
        named |= {f"predictions/{predictions.file}" for predictions in manifest.predictions}
        named |= {f"rejects/{reject_name(n)}" for n in range(1, len(manifest.sources) + 1)}
    for folder in folders:
        for path in (directory / folder).iterdir():
            if f"{folder}/{path.name}" not in named:
                path.unlink()
    (directory / "manifest.draft").unlink(missing_ok=True)
    shutil.rmtree(directory / "staging", ignore_errors=True)


def part_name(number: int) -> str:
    return f"{number:06}.parquet"


def reject_name(number: int) -> str:
    return f"{number:06}.jsonl"


@contextmanager
def full_disk_explained(what: str) -> Iterator[None]:
    """Turn a disk that is full, as the system or DuckDB reports it, into a sentence."""
    try:
        yield
    except (OSError, duckdb.Error) as error:
        full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
        text = str(error)
        if full or "No space left" in text or "max_temp_directory_size" in text:
            raise CorpusError(
                f"The disk is full: {what}. What was there before stays. "
                f"Free space in {settings.DATA_DIR} and run the command again."
            ) from error
        raise


class Store:
    """A DuckDB connection on one corpus, with the views `posts` and `votes`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection

    def view(self, name: str, files: list[Path], schema: pa.Schema, fields: tuple[str, ...] = ()) -> None:
        """A view over Parquet files, with the schema's columns even where there are no files.

        fields: columns that are also given as one, `fields`, so that a query need not know their names.
        """
        if files:
            relation = self.connection.read_parquet([str(file) for file in files])
        else:
            relation = self.connection.from_arrow(schema.empty_table())
        if fields:
            packed = FunctionExpression("struct_pack", *(ColumnExpression(field).alias(field) for field in fields))
            relation = relation.select(StarExpression(), packed.alias("fields"))
        if files:
            relation.create_view(name)
        else:
            relation.create(name)

    def rows(self, name: str, table: pa.Table) -> None:
        """A table of rows that are given."""
        self.connection.from_arrow(table).create(name)

    def relation(self, name: str, *parameters: object) -> duckdb.DuckDBPyRelation:
        """corpora/sql/<name>.sql, its `?` being the parameters in order."""
        sql = (Path(__file__).parent / "sql" / f"{name}.sql").read_text(encoding="utf-8")
        return self.connection.sql(sql, params=list(parameters) or None)

    def query(self, name: str, *parameters: object) -> pa.RecordBatchReader:
        """The rows of corpora/sql/<name>.sql, its `?` being the parameters in order."""
        return self.relation(name, *parameters).to_arrow_reader(10_000)


def _spill_dir() -> Path:
    return Path(settings.DATA_DIR) / "tmp"


@contextmanager
def asking(name: str, parts: int | None = None, manifest: Manifest | None = None) -> Iterator[Store]:
    """A store over the first `parts` parts of a corpus and the votes on them; all of both by default.

    `manifest` is the caller's, who has read it and wants no later one; without it the one on disk is read.
    """
    manifest, directory = manifest or read_manifest(name), corpus_dir(name)
    spill = _spill_dir()
    spill.mkdir(parents=True, exist_ok=True)
    config: dict[str, Any] = {
        "memory_limit": MEMORY_LIMIT,
        "temp_directory": str(spill),
        "autoinstall_known_extensions": False,  # nothing is fetched from anywhere
    }
    with duckdb.connect(config=config) as connection:
        store = Store(connection)
        posts = [directory / "parts" / part.name for part in manifest.parts] if manifest else []
        votes = [directory / "votes" / part.name for part in manifest.votes] if manifest else []
        fields = manifest.fields if manifest else ()
        store.view("posts", posts[:parts], schema_of(fields), fields)
        store.view("votes", votes[:parts], VOTES_SCHEMA)
        yield store


def posts_by_author(corpus_name: str, author: str, limit: int) -> list[dict[str, Any]]:
    """Up to `limit` posts of one (hashed) author, the latest first: id, text, posted_at (UTC or None), url.

    CorpusError where they cannot be read, for whatever reason.
    """
    if not author:
        return []
    try:
        with asking(corpus_name, manifest=manifest_of(corpus_name)) as store:
            posts: list[dict[str, Any]] = store.query("posts_by_author", author, limit).read_all().to_pylist()
    except (OSError, ValueError, duckdb.Error, pa.ArrowException) as error:
        reason = str(error).split("\n")[0].rstrip(".")
        raise CorpusError(
            f"The posts of corpus {corpus_name} cannot be read: {reason}. "
            f"Check {corpus_dir(corpus_name)} and the room in {_spill_dir()}."
        ) from error
    return posts


def with_source(manifest: Manifest, source: Source, parts: list[Part]) -> Manifest:
    return replace(manifest, sources=(*manifest.sources, source), parts=(*manifest.parts, *parts))
