"""The files of a corpus on disk, and its manifest.

    DATA_DIR/corpora/<name>/manifest.json       the corpus's content; files that it does not name are leftovers
                            parts/000001.parquet    posts or records, in the order of import
                            votes/000001.parquet    the detectors' votes on that part
                            voting/                 votes on a part in progress (votes/vote_run.py)
                            predictions/000001.parquet    an imported classifier's labels for all posts
                            scores/000001.parquet    an imported scorer's scores for all pairs
                            left_out/000001.parquet    replies that are not pairs of the corpus, with reasons
                            rejects/000001.jsonl    rejected rows of the first source: file, line, reason

Parts are immutable. The importers and votes/vote_run.py write them.
"""

import hashlib
import json
import os
import re
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from django.conf import settings

from corpora.core import CorpusError
from corpora.core.voters import VOTERS
from corpora.system import VERSION, release


def corpora_dir() -> Path:
    return Path(settings.DATA_DIR) / "corpora"


def corpora_on_disk() -> list[str]:
    """Return the sorted names of the folders that have a manifest."""
    return sorted(path.parent.name for path in corpora_dir().glob("*/manifest.json"))


def corpus_dir(name: str) -> Path:
    """Return the directory of a corpus, which may not exist.

    CorpusError: the name is invalid
    """
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise CorpusError(f"{name!r} cannot be a corpus's name; use 1 to 64 letters, digits, hyphens or underscores.")
    return corpora_dir() / name


def check_spelling(of: str, what: str, value: str) -> None:
    """Check the name or version of a predictor or scorer.

    CorpusError: it is invalid
    """
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", value):
        raise CorpusError(
            f"{value!r} cannot be a {of}'s {what}; use 1 to 64 letters, digits, dots, hyphens or underscores."
        )


def part_name(number: int) -> str:
    return f"{number:06}.parquet"


def reject_name(number: int) -> str:
    return f"{number:06}.jsonl"


def sync(path: Path) -> None:
    """Flush a file or directory to disk before anything refers to it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: Path, text: str) -> None:
    """Write a file outside the data folder atomically: if writing fails, the old content stays.

    OSError: the file cannot be written
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
    """Return the paths in a folder, sorted by name, including folders but not hidden files."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def name_of(path: Path) -> str:
    """Return the name of a file or folder, even for `.`; a link keeps its own name."""
    return os.path.basename(os.path.abspath(path))


def size_of(path: Path) -> int:
    """Return the size of a file, or of all files in a folder; 0 for anything else (bytes)."""
    files = files_in(path) if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file as hex; for a folder, of the sorted lines `<SHA-256> <name>` of its files."""
    if path.is_dir():
        lines = (f"{digest_of(file)} {file.name}\n" for file in files_in(path) if file.is_file())
        return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- The manifest of a corpus: its content, source files and licence.
#
# Writing the manifest commits a change. A draft is renamed once all the files that it names are synced to disk.


@dataclass(frozen=True)
class Source:
    """An imported file and the number of rows by outcome."""

    name: str
    sha256: str
    bytes: int
    format: str
    columns: dict[str, str]  # the file's column by our field
    rows: int
    accepted: int
    duplicates: int
    rejects: int
    language: str = ""  # declared for the whole file; "" for posts


def source_of(path: Path, sha256: str, format: str, columns: dict[str, str], **counts: Any) -> Source:
    """Return the manifest entry for an imported file.

    counts: fields of Source, including `language` if one is declared
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
    """The votes on the part with the same number."""

    name: str
    rows: int
    unanimous: int
    sha256: str
    k: int
    versions: dict[str, str]  # corpora.core.voters.voter_versions() at the time of voting


@dataclass(frozen=True)
class Predictions:
    """A classifier's labels for every post at the time of import, or, if ranked, ranked labels for some records."""

    name: str
    version: str
    file: str
    rows: int
    sha256: str
    posts_sha256: str  # Manifest.posts_sha256 of the posts that the predictions cover
    mapping: dict[str, tuple[str, ...]]  # labels by the coarse class that stands for them
    source: str
    ranked: bool = False

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


@dataclass(frozen=True)
class Threads:
    """The messages from which a corpus of pairs was made (corpora/threads/thread_import.py).

    messages: number of distinct messages
    replies: number of messages with a parent
    left_out: number of replies by reason
    declared: (language in the files, detected language, number of pairs), sorted by the files' language
    file: file that lists the replies left out
    """

    messages: int
    replies: int
    left_out: dict[str, int]
    least_certainty: float
    detector: str
    declared: tuple[tuple[str, str, int], ...]
    file: str
    sha256: str


@dataclass(frozen=True)
class Scores:
    """A scorer's scores for the pairs of a corpus (corpora/threads/scorers.py).

    of: whether messages or pairs were scored
    threshold: pairs with a higher score are dropped
    rows: number of rows in the file that count
    lacking: number of pairs with a missing score
    dropped: number of pairs that the scorer drops
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
    fields: tuple[str, ...] = ()  # fields of records, in display order; empty for posts
    declared: bool = False  # whether labels came with the records
    threads: Threads | None = None  # for a corpus of pairs of message and reply
    scores: tuple[Scores, ...] = ()

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @property
    def posts_sha256(self) -> str:
        """SHA-256 over the hex digests of the parts, one per line."""
        return hashlib.sha256("\n".join(part.sha256 for part in self.parts).encode()).hexdigest()

    def predictions_of(self, name: str, version: str) -> Predictions | None:
        """Return a predictor's entry, or None."""
        return next((known for known in self.predictions if (known.name, known.version) == (name, version)), None)


def read_manifest(name: str) -> Manifest | None:
    """Return the manifest of a corpus, or None if there is no such corpus.

    CorpusError: it cannot be read
    """
    path = corpus_dir(name) / "manifest.json"
    try:
        raw = json.loads(path.read_bytes())
        raw.pop("versions", None)
        raw["sources"] = tuple(Source(**source) for source in raw["sources"])
        raw["parts"] = tuple(Part(**part) for part in raw["parts"])
        raw["votes"] = tuple(VotesPart(**votes) for votes in raw["votes"])
        # Older manifests lack these keys.
        for of in (predictions := raw.get("predictions", ())):
            of["mapping"] = {label: tuple(targets) for label, targets in of["mapping"].items()}
        raw["predictions"] = tuple(Predictions(**of) for of in predictions)
        raw["fields"] = tuple(raw.get("fields", ()))
        if threads := raw.get("threads"):
            raw["threads"] = Threads(**threads | {"declared": tuple(tuple(row) for row in threads["declared"])})
        raw["scores"] = tuple(Scores(**scores) for scores in raw.get("scores", ()))
        return Manifest(**raw)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CorpusError(f"{path} cannot be read: {error}. Restore it, or the right to read it.") from error
    except (AttributeError, KeyError, TypeError) as error:
        raise CorpusError(f"{path} is not the manifest of a corpus, or not all of it. Restore it.") from error


def manifest_of(name: str) -> Manifest:
    """Return the manifest of a corpus.

    CorpusError: there is no such corpus
    """
    manifest = read_manifest(name)
    if manifest is None:
        raise CorpusError(
            f"There is no corpus {name!r}; make one with `assay import_corpus {name} FILE --licence LICENCE`, or one "
            "of pairs of message and reply with import_threads."
        )
    return manifest


def write_manifest(name: str, manifest: Manifest) -> None:
    """Write a manifest atomically, which commits the change."""
    path = corpus_dir(name) / "manifest.json"
    draft = path.with_suffix(".draft")
    with draft.open("w", encoding="utf-8") as file:
        json.dump(_written(manifest), file, ensure_ascii=False, indent=1)
        file.write("\n")
    sync(draft)
    draft.rename(path)
    sync(path.parent)


def _written(manifest: Manifest) -> dict[str, Any]:
    """Return a manifest as JSON values, with the program's version and without keys that do not apply."""
    raw = {"versions": {"assay": VERSION}} | asdict(manifest)
    for of in (raw, *raw["sources"], *raw["predictions"]):
        for name in ("fields", "language", "declared", "ranked", "threads", "scores"):
            if name in of and not of[name]:
                del of[name]
    return raw


def with_source(manifest: Manifest, source: Source, parts: list[Part]) -> Manifest:
    return replace(manifest, sources=(*manifest.sources, source), parts=(*manifest.parts, *parts))


def with_predictions(
    manifest: Manifest, file: Path, *, name: str, version: str, **terms: Any
) -> tuple[Manifest, Predictions]:
    """Return the manifest with predictions from a new file, and their entry.

    They replace predictions of the same name and version.

    terms: rows, mapping, source and ranked, as in Predictions
    """
    digests = {"sha256": digest_of(file), "posts_sha256": manifest.posts_sha256}
    predictions = Predictions(name=name, version=version, file=file.name, **digests, **terms)
    before = manifest.predictions_of(name, version)
    others = (known for known in manifest.predictions if known != before)
    return replace(manifest, predictions=(*others, predictions)), predictions


def check_records(corpus_name: str, manifest: Manifest) -> None:
    """Check that the corpus holds records.

    CorpusError: it holds posts
    """
    if not manifest.fields:
        raise CorpusError(
            f"Corpus {corpus_name} holds posts, not records of several fields; import records into a corpus of their "
            "own, with import_corpus --fields."
        )


def check_pairs(corpus_name: str, manifest: Manifest) -> Threads:
    """Return the manifest's entry for threads.

    CorpusError: the corpus does not hold pairs of message and reply
    """
    if manifest.threads is None:
        raise CorpusError(
            f"Corpus {corpus_name} was not made of threads; this needs pairs of message and reply. Make a corpus of "
            "them with import_threads."
        )
    return manifest.threads


def check_votes(name: str, manifest: Manifest, parts: int | None = None) -> None:
    """Check that the posts of the first `parts` parts have votes by the current detectors.

    CorpusError: they do not
    """
    if len(manifest.votes) < len(manifest.parts[:parts]):
        raise CorpusError(f"Corpus {name} has posts without votes; run `assay prelabel {name}`.")
    if other := next((votes for votes in manifest.votes[:parts] if votes.versions.keys() != VOTERS.keys()), None):
        raise CorpusError(
            f"The detectors {', '.join(other.versions)} voted on corpus {name}, and now there are {', '.join(VOTERS)}; "
            f"run `assay prelabel {name} --again`."
        )


def check_posts(corpus_name: str, manifest: Manifest) -> None:
    """Check that the corpus holds posts.

    CorpusError: it holds records
    """
    if manifest.fields:
        raise CorpusError(
            f"Corpus {corpus_name} holds records of {' '.join(manifest.fields)}, whose language is declared; this "
            "needs a corpus of posts."
        )
