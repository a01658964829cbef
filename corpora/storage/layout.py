"""A corpus's files on disk, its manifest, and the lock that a command must hold to change it.

    DATA_DIR/corpora/<name>/manifest.json       describes the corpus; files that are not listed in it are leftovers
                            parts/000001.parquet    posts or records, in import order
                            votes/000001.parquet    the detectors' votes on the posts in parts/000001.parquet
                            voting/                 votes on a part in progress (votes/vote_run.py)
                            predictions/000001.parquet    an imported classifier's labels for all posts
                            scores/000001.parquet    an imported scorer's scores for all pairs
                            left_out/000001.parquet    replies that did not become pairs of the corpus, with reasons
                            rejects/000001.jsonl    rejected rows of the first source: file, line, reason
                            answers/                answers of language models (predictions/model_answers.py)

Parts are immutable. The files are written by the importers and votes/vote_run.py. If the setting CORPORA names object
storage, the folder is a copy of the published corpus (bucket.py).
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

from django.conf import settings

from corpora.core import CorpusError, TooManyRejected
from corpora.core.voters import DEFAULT
from corpora.sources.text import TextFormat
from corpora.storage import bucket
from corpora.system import VERSION, release


def corpora_dir() -> Path:
    return Path(settings.DATA_DIR) / "corpora"


def corpora_on_disk() -> list[str]:
    """Return the names of all corpora with a manifest on disk or in object storage, sorted."""
    folders = [path.parent for path in corpora_dir().glob("*/manifest.json")]
    if settings.CORPORA:
        unpublished = {folder.name for folder in folders if not (folder / bucket.PUBLISHED).exists()}
        return sorted(unpublished.union(bucket.names()))
    return sorted(folder.name for folder in folders)


def corpus_dir(name: str) -> Path:
    """Return the directory of a corpus, which need not exist. Raise CorpusError if the name is invalid."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise CorpusError(
            f"{name!r} is not a valid corpus name. Use 1 to 64 letters, digits, hyphens or underscores.", "corpus"
        )
    return corpora_dir() / name


def check_spelling(noun: str, property: str, value: str) -> None:
    """Raise CorpusError if the name or version of a predictor or scorer is invalid.

    noun: `predictor` or `scorer`, for the error message
    property: `name` or `version`
    """
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", value):
        raise CorpusError(
            f"{value!r} is not a valid {noun} {property}. Use 1 to 64 letters, digits, dots, hyphens or underscores.",
            property,
        )


def part_name(number: int) -> str:
    return f"{number:06}.parquet"


def reject_name(number: int) -> str:
    return f"{number:06}.jsonl"


def sync(path: Path) -> None:
    """Flush a file or directory to disk, which must happen before a manifest refers to it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_atomically(path: Path, text: str) -> None:
    """Write a file outside the data folder atomically. If writing fails, the old content is kept.

    Raise OSError if the file cannot be written.
    """
    draft = path.with_name(f".{path.name}.new")
    try:
        draft.write_text(text, encoding="utf-8", newline="")
        release(draft)
        sync(draft)
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
    sync(path.parent)


def files_in(folder: Path) -> list[Path]:
    """Return the paths of the non-hidden files and folders in a folder, sorted by name."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def name_of(path: Path) -> str:
    """Return the name of a file or folder, even for the path `.`. Links are not resolved."""
    return os.path.basename(os.path.abspath(path))


def size_of(path: Path) -> int:
    """Return a file's size, or the total size of the files directly in a folder (bytes). Return 0 for other paths."""
    files = files_in(path) if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file or folder as hex digits.

    The digest of a folder is the SHA-256 of the lines `<SHA-256> <name>` for its files, sorted by name.
    """
    if path.is_dir():
        lines = (f"{digest_of(file)} {file.name}\n" for file in files_in(path) if file.is_file())
        return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- The manifest of a corpus, which describes its content, source files and licence.
#
# Changes to a corpus are committed by writing the manifest. It is written to a draft, which is renamed once all the
# files listed in the manifest have been synced to disk.


@dataclass(frozen=True)
class Source:
    """An imported file, with its counts of accepted, duplicate and rejected rows."""

    name: str
    sha256: str
    bytes: int
    format: str
    columns: dict[str, str]  # the file's column names, by our field names
    rows: int
    accepted: int
    duplicates: int
    rejects: int
    language: str = ""  # language declared for the whole file; "" if there is none
    encoding: str = ""  # encoding; "" if the file is not a text file
    delimiter: str = ""  # name of the delimiter; "" if the file is not CSV

    @property
    def text_format(self) -> TextFormat:
        return TextFormat(self.encoding, self.delimiter)


def source_of(path: Path, sha256: str, format: str, columns: dict[str, str], **counts: Any) -> Source:
    """Return the manifest's entry for an imported file.

    counts: all other fields of Source
    """
    return Source(name_of(path), sha256, size_of(path), format, columns, **counts)


@dataclass(frozen=True)
class Part:
    """A file of posts or records.

    sha256: digest of the file
    content_sha256: digest of all columns except the author, which each installation hashes with its own key
    """

    name: str
    rows: int
    sha256: str
    content_sha256: str = ""


@dataclass(frozen=True)
class VotesPart:
    """The file of votes on a part. It has the same index in the manifest as the part."""

    name: str
    rows: int
    unanimous: int
    sha256: str
    k: int
    versions: dict[str, str]  # the voters' versions, from corpora.core.voters.voter_versions()


@dataclass(frozen=True)
class Asked:
    """The provenance of a language model's predictions (corpora/predictions/model_votes.py).

    model: name of the model in requests
    reported: names of the model in replies
    hosts: hosts of the endpoints
    began, ended: times of the first and the last answer (ISO 8601, UTC)
    answers: number of answers; items with the same prompt share an answer
    tokens: number of tokens used; where the endpoint reports none, their upper bound
    tokens_reported: number of tokens reported by the endpoint
    rejected: number of items without a valid answer, whose label is `und`
    """

    model: str
    reported: tuple[str, ...]
    hosts: tuple[str, ...]
    prompt: str
    prompt_sha256: str
    labels: tuple[str, ...]
    answer_tokens: int
    began: str
    ended: str
    answers: int
    tokens: int
    tokens_reported: int
    rejected: int


@dataclass(frozen=True)
class Predictions:
    """Imported predictions: a classifier's labels for all posts in the corpus, or ranked labels for some records."""

    name: str
    version: str
    file: str
    rows: int
    sha256: str
    posts_sha256: str  # value of Manifest.posts_sha256 at the time of the import
    mapping: dict[str, tuple[str, ...]]  # the labels in each coarse class
    source: str
    ranked: bool = False
    asked: Asked | None = None  # only for a language model's answers

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


@dataclass(frozen=True)
class Threads:
    """The messages that a corpus of pairs was created from (corpora/threads/thread_import.py).

    messages: number of distinct messages
    replies: number of messages with a parent
    left_out: number of replies that did not become pairs, by reason
    declared: (language in the files, detected language, number of pairs) tuples, sorted by the language in the files
    dates: the requested dates of replies, as in corpora/threads/messages.py
    unescaped: whether HTML entities in the texts were decoded
    file: file that lists the replies that did not become pairs
    """

    messages: int
    replies: int
    left_out: dict[str, int]
    least_certainty: float
    detector: str
    declared: tuple[tuple[str, str, int], ...]
    file: str
    sha256: str
    dates: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    unescaped: bool = False


# A value of `Scores.of`: replies were scored by their texts.
RESPONSE = "response"


@dataclass(frozen=True)
class Scores:
    """A scorer's scores for the pairs of a corpus, or for replies of its response set (corpora/threads/scorers.py).

    of: what was scored: messages, pairs, or replies of the response set (RESPONSE)
    threshold: pairs or replies with a higher score are dropped
    rows: number of scores in the file whose ids are in the corpus
    lacking: number of pairs with a missing score
    dropped: number of pairs or replies dropped by the scorer
    sha256: digest of `file`
    source: name of the imported file
    """

    name: str
    of: str
    threshold: float
    file: str
    rows: int
    lacking: int
    dropped: int
    sha256: str
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
    fields: tuple[str, ...] = ()  # the records' fields in display order; empty for posts
    declared: bool = False  # whether the records have declared labels
    threads: Threads | None = None  # only if the corpus contains pairs of a message and a reply
    scores: tuple[Scores, ...] = ()

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @property
    def voters(self) -> tuple[str, ...]:
        """The detectors that voted on the posts."""
        return tuple(self.votes[0].versions) if self.votes else DEFAULT.voters

    @property
    def pair_scores(self) -> tuple[Scores, ...]:
        """The scores that determine which pairs are kept."""
        return tuple(scores for scores in self.scores if scores.of != RESPONSE)

    @property
    def posts_sha256(self) -> str:
        """A SHA-256 that identifies the posts. It is computed from the hex digests of the parts, one per line."""
        return hashlib.sha256("\n".join(part.sha256 for part in self.parts).encode()).hexdigest()

    def predictions_of(self, name: str, version: str) -> Predictions | None:
        """Return a predictor's entry, or None if there is no such predictor."""
        return next((entry for entry in self.predictions if (entry.name, entry.version) == (name, version)), None)


def read_manifest(name: str) -> Manifest | None:
    """Return the manifest of a corpus, or None if there is no such corpus.

    The files of a corpus in object storage may not be in its folder yet; `manifest_of` fetches them.

    Raise CorpusError if the manifest cannot be read.
    """
    path = corpus_dir(name) / "manifest.json"
    try:
        raw = json.loads(bucket.manifest_bytes(name, path.parent) if settings.CORPORA else path.read_bytes())
        raw.pop("versions", None)
        raw["sources"] = tuple(Source(**source) for source in raw["sources"])
        raw["parts"] = tuple(Part(**part) for part in raw["parts"])
        raw["votes"] = tuple(VotesPart(**votes) for votes in raw["votes"])
        # The following keys are optional.
        for entry in (predictions := raw.get("predictions", ())):
            entry["mapping"] = {label: tuple(targets) for label, targets in entry["mapping"].items()}
            if source := entry.get("asked"):
                lists = {name: tuple(source[name]) for name in ("reported", "hosts", "labels")}
                entry["asked"] = Asked(**source | lists)
        raw["predictions"] = tuple(Predictions(**entry) for entry in predictions)
        raw["fields"] = tuple(raw.get("fields", ()))
        if threads := raw.get("threads"):
            raw["threads"] = Threads(**threads | {"declared": tuple(tuple(row) for row in threads["declared"])})
        raw["scores"] = tuple(Scores(**scores) for scores in raw.get("scores", ()))
        return Manifest(**raw)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CorpusError(f"{path} cannot be read: {error}. Restore the file or its permissions.") from error
    except (AttributeError, KeyError, TypeError) as error:
        raise CorpusError(f"{path} is not a complete corpus manifest. Restore the file.") from error


def manifest_of(name: str) -> Manifest:
    """Return the manifest of a corpus, after fetching its files to its folder if necessary.

    Raise CorpusError if there is no such corpus, or if its files cannot be fetched.
    """
    manifest = fetch_manifest(name)
    if manifest is None:
        raise CorpusError(
            f"The corpus {name!r} does not exist. Create it with `assay import_corpus {name} FILE --licence LICENCE`, "
            "or with import_threads for pairs of a message and a reply."
        )
    return manifest


def fetch_manifest(name: str) -> Manifest | None:
    """Like `manifest_of`, but return None if there is no such corpus."""
    manifest, directory = read_manifest(name), corpus_dir(name)
    if settings.CORPORA and manifest and not bucket.is_current(name, directory):
        directory.mkdir(parents=True, exist_ok=True)
        waiting = Path(settings.DATA_DIR) / "tmp" / f"fetch-{name}.lock"
        waiting.parent.mkdir(exist_ok=True)
        with waiting.open("a") as others, (directory / "lock").open("a") as lock:
            fcntl.flock(others, fcntl.LOCK_EX)  # wait for other fetches, but not for commands
            _acquire(lock, name)
            bucket.fetch(name, directory)
            manifest = read_manifest(name)
    return manifest


def write_manifest(name: str, manifest: Manifest) -> None:
    """Write a manifest atomically, which commits the changes to the corpus."""
    path = corpus_dir(name) / "manifest.json"
    if settings.CORPORA:
        bucket.publish(name, path.parent, _to_json(manifest), _files_of(path.parent, manifest))
    draft = path.with_suffix(".draft")
    with draft.open("w", encoding="utf-8") as file:
        json.dump(_to_json(manifest), file, ensure_ascii=False, indent=1)
        file.write("\n")
    sync(draft)
    draft.rename(path)
    sync(path.parent)


def _files_of(directory: Path, manifest: Manifest) -> set[str]:
    """Return the paths of the files listed in a manifest, relative to the corpus's folder."""
    files = {f"parts/{part.name}" for part in manifest.parts}
    files |= {f"votes/{votes.name}" for votes in manifest.votes}
    files |= {f"predictions/{predictions.file}" for predictions in manifest.predictions}
    files |= {f"scores/{scores.file}" for scores in manifest.scores}
    files |= {f"left_out/{manifest.threads.file}"} if manifest.threads else set()
    lists = (f"rejects/{reject_name(n)}" for n in range(1, len(manifest.sources) + 1))
    return files.union(path for path in lists if (directory / path).exists())


def _to_json(manifest: Manifest) -> dict[str, Any]:
    """Convert a manifest to JSON values. Add the program's version, and omit optional keys without a value."""
    raw = {"versions": {"assay": VERSION}} | asdict(manifest)
    for entry in (raw, *raw["sources"], *raw["predictions"]):
        for name in ("fields", "language", "encoding", "delimiter", "declared", "ranked", "asked", "threads", "scores"):
            if name in entry and not entry[name]:
                del entry[name]
    return raw


def with_predictions(
    manifest: Manifest, file: Path, *, name: str, version: str, **terms: Any
) -> tuple[Manifest, Predictions]:
    """Add predictions from a new file to a manifest. Return the new manifest and the predictions' entry.

    They replace existing predictions with the same name and version.

    terms: rows, mapping, source, ranked and asked, as in Predictions
    """
    digest, of_posts = digest_of(file), manifest.posts_sha256
    predictions = Predictions(name, version, file.name, sha256=digest, posts_sha256=of_posts, **terms)
    previous = manifest.predictions_of(name, version)
    remaining = (entry for entry in manifest.predictions if entry != previous)
    return replace(manifest, predictions=(*remaining, predictions)), predictions


def check_records(corpus_name: str, manifest: Manifest) -> None:
    """Raise CorpusError if the corpus contains posts rather than records."""
    if not manifest.fields:
        raise CorpusError(
            f"Corpus {corpus_name} contains posts, but records with several fields are required. Import records into "
            "another corpus with import_corpus --fields.",
            "corpus",
        )


def check_fields(corpus_name: str, manifest: Manifest, fields: Iterable[str]) -> None:
    """Raise CorpusError unless the corpus contains records with these fields."""
    check_records(corpus_name, manifest)
    if missing := [field for field in fields if field not in manifest.fields]:
        raise CorpusError(
            f"Corpus {corpus_name} has no field {missing[0]!r}. Its fields are: {', '.join(manifest.fields)}."
        )


def check_pairs(corpus_name: str, manifest: Manifest) -> Threads:
    """Return the manifest's entry for threads.

    Raise CorpusError if the corpus does not contain pairs of a message and a reply.
    """
    if manifest.threads is None:
        raise CorpusError(
            f"Corpus {corpus_name} was not imported from threads, but pairs of a message and a reply are required. "
            "Create such a corpus with import_threads.",
            "corpus",
        )
    return manifest.threads


def check_votes(
    name: str, manifest: Manifest, parts: int | None = None, voters: Iterable[str] = DEFAULT.voters
) -> None:
    """Raise CorpusError unless the detectors have voted on all posts.

    parts: number of parts to check, starting with the first; None for all
    voters: names of the detectors
    """
    if len(manifest.votes) < len(manifest.parts[:parts]):
        raise CorpusError(f"Some posts in corpus {name} have no votes. Run `assay prelabel {name}`.")
    voted = [votes.versions for votes in manifest.votes[:parts]]
    if missing := [voter for voter in voters if any(voter not in versions for versions in voted)]:
        wanted = " ".join(dict.fromkeys((*manifest.voters, *voters)))
        raise CorpusError(
            f"{missing[0]} has not voted on all posts of corpus {name}. Run `assay prelabel {name} --voters "
            f'"{wanted}" --again`.'
        )


def check_posts(corpus_name: str, manifest: Manifest, advice: str = "") -> None:
    """Raise CorpusError if the corpus contains records rather than posts.

    advice: for the message, what to do instead with a corpus of records
    """
    if manifest.fields:
        raise CorpusError(
            f"Corpus {corpus_name} contains records (fields: {' '.join(manifest.fields)}) with declared languages, but "
            f"a corpus of posts is required. {advice}".rstrip()
        )


# --- The lock that a command must hold to change a corpus, and the removal of leftover files after a crash.


_FOLDERS = ("parts", "votes", "predictions", "scores", "left_out", "rejects")


@contextmanager
def lock_corpus(name: str, *, fetches: bool = True) -> Iterator[Path]:
    """Lock a corpus, remove leftover files, and yield its directory.

    If the corpus still has no manifest at the end of the block, everything created for it is removed.

    fetches: whether to fetch a corpus from object storage first

    Raise CorpusError if another process holds the lock, or if the directory cannot be written.
    """
    directory = corpus_dir(name)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / "lock").open("a")
    except OSError as error:
        raise _unwritable(directory, error) from error
    with lock:
        _acquire(lock, name)
        try:
            for folder in _FOLDERS:
                (directory / folder).mkdir(exist_ok=True)
            if settings.CORPORA and fetches:
                _fetch_or_publish(name, directory)
            _sweep(directory, read_manifest(name))
            yield directory
        except OSError as error:
            if str(directory) in str(error):
                raise _unwritable(directory, error) from error
            raise
        finally:
            # Suppress errors, which would hide an error raised in the block. The next command will try again to remove
            # the files.
            with suppress(OSError, CorpusError):
                # Keep the log of rejected rows for the user, unless a different CorpusError was raised.
                raised = sys.exception()
                keep_lists = isinstance(raised, TooManyRejected) or not isinstance(raised, CorpusError)
                manifest = read_manifest(name)
                _sweep(directory, manifest, lists_stay=keep_lists)
                if manifest is None:
                    _remove_empty(directory)


def _fetch_or_publish(name: str, directory: Path) -> None:
    """Fetch a corpus from object storage. If it was imported before the setting CORPORA, publish it."""
    bucket.fetch(name, directory)
    manifest = read_manifest(name)
    if manifest and not (directory / bucket.PUBLISHED).exists():
        write_manifest(name, manifest)


def _acquire(lock: TextIO, name: str) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another command may have deleted the lock file, with an empty corpus, since this command opened it.
        free = os.path.samestat(os.fstat(lock.fileno()), os.stat(lock.name))
    except (BlockingIOError, FileNotFoundError):
        free = False
    except OSError as error:
        raise _unwritable(Path(lock.name).parent, error) from error
    if not free:
        raise CorpusError(f"Another command is changing the corpus {name}. Wait until it has finished.")


def _unwritable(directory: Path, error: OSError) -> CorpusError:
    return CorpusError(
        f"Cannot write to {directory}: {error.strerror or error}. The existing files are unchanged. Check the folder's "
        "permissions and the free disk space, and run the command again."
    )


def _remove_empty(directory: Path) -> None:
    for path in (directory / "rejects").iterdir():
        if not path.stat().st_size:
            path.unlink()
    for folder in _FOLDERS:
        (directory / folder).rmdir()
    (directory / "lock").unlink()
    directory.rmdir()


def _sweep(directory: Path, manifest: Manifest | None, *, lists_stay: bool = False) -> None:
    """Remove files that are not listed in the manifest.

    lists_stay: whether to keep non-empty logs of rejected rows
    """
    listed = _files_of(directory, manifest) if manifest else set()
    for folder in _FOLDERS:
        for path in (directory / folder).iterdir():
            stays = lists_stay and folder == "rejects" and path.stat().st_size
            if f"{folder}/{path.name}" not in listed and not stays:
                path.unlink()
    if manifest is None:  # the corpus was deleted, so its unfinished votes and its answers are no longer needed
        for unlisted in ("voting", "answers"):
            shutil.rmtree(directory / unlisted, ignore_errors=True)
        (directory / bucket.PUBLISHED).unlink(missing_ok=True)
    (directory / "manifest.draft").unlink(missing_ok=True)
    shutil.rmtree(directory / "staging", ignore_errors=True)
