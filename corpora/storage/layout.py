"""Where a corpus lives on disk, what its files are called, and its manifest.

    DATA_DIR/corpora/<name>/manifest.json       what is in the corpus; a file that it does not name is a leftover
                            parts/000001.parquet    posts or records, in the order in which they were imported
                            votes/000001.parquet    the detectors' votes on that part
                            voting/                 votes on a part that is not done yet (votes/vote_run.py)
                            predictions/000001.parquet    what an imported classifier says of all posts
                            scores/000001.parquet    what an imported scorer says of all pairs
                            left_out/000001.parquet    the replies of threads that are no pairs of the corpus, and why
                            rejects/000001.jsonl    what was refused of the first source: file, line, reason

Parts never change. The importers and votes/vote_run.py write them.
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
    """The names of the folders that have a manifest, in order."""
    return sorted(path.parent.name for path in corpora_dir().glob("*/manifest.json"))


def corpus_dir(name: str) -> Path:
    """The corpus's directory, whether it exists or not. CorpusError for an invalid corpus name."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise CorpusError(f"{name!r} cannot be a corpus's name; use 1 to 64 letters, digits, hyphens or underscores.")
    return corpora_dir() / name


def check_spelling(of: str, what: str, value: str) -> None:
    """CorpusError for a name or version that a predictor or scorer cannot have."""
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", value):
        raise CorpusError(
            f"{value!r} cannot be a {of}'s {what}; use 1 to 64 letters, digits, dots, hyphens or underscores."
        )


def part_name(number: int) -> str:
    return f"{number:06}.parquet"


def reject_name(number: int) -> str:
    return f"{number:06}.jsonl"


def sync(path: Path) -> None:
    """Make sure that a file or directory is on disk before anything refers to it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: Path, text: str) -> None:
    """Write a file outside of the data folder that takes its place as a whole: whatever ends the program meanwhile,
    what was there before stays.
    OSError if it cannot be written.
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
    """All that a folder holds, by name, but what is hidden; folders in it too."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def name_of(path: Path) -> str:
    """What a file or folder is called, also where it was given as `.`; a link is called what it is called."""
    return os.path.basename(os.path.abspath(path))


def size_of(path: Path) -> int:
    """The bytes of a file, or of all files in a folder; 0 of anything else."""
    files = files_in(path) if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def digest_of(path: Path) -> str:
    """The SHA-256 of a file, as hex; of a folder that of the lines `<SHA-256> <name>` of its files, by name."""
    if path.is_dir():
        lines = (f"{digest_of(file)} {file.name}\n" for file in files_in(path) if file.is_file())
        return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- The manifest of a corpus: what is in it, from which files, under which licence.
#
# The manifest is the commit point: it is written beside and renamed, once everything that it names is safely on disk.


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
    language: str = ""  # declared for the whole file; empty for posts


def source_of(path: Path, sha256: str, format: str, columns: dict[str, str], **counts: Any) -> Source:
    """The entry of an imported file. counts: as Source has them, and language where one is declared."""
    return Source(name_of(path), sha256, size_of(path), format, columns, **counts)


@dataclass(frozen=True)
class Part:
    """sha256: of the file; content_sha256: of all columns but the author, which each installation hashes with its own
    key."""

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
    versions: dict[str, str]  # corpora.core.detectors.detector_versions() when they were made


@dataclass(frozen=True)
class Predictions:
    """What a classifier says of every post that the corpus had at the time of the import; or, if it is ranked, the
    labels that a system ranks for some of its records."""

    name: str
    version: str
    file: str
    rows: int
    sha256: str
    posts_sha256: str  # Manifest.posts_sha256 of the posts that the predictions cover
    mapping: dict[str, tuple[str, ...]]  # coarse class -> the labels that it stands for
    source: str
    ranked: bool = False

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


@dataclass(frozen=True)
class Threads:
    """What became of the messages of the files that a corpus of pairs was made of (threads/thread_import.py).

    messages: each once; replies: those with a parent; left_out: reason -> replies. declared: (language in the files,
    language that was found, pairs of the corpus), the files' in order. file: where each reply that was left out is
    listed.
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
    """What a scorer from elsewhere says of the pairs of a corpus (scorers.py). A pair is dropped where its score
    is above the threshold.

    of: whether the file scored messages or pairs; rows: those of the file that count; lacking, dropped: pairs of which
    a score is missing, and that the scorer drops; sha256: of `file`; source: the name of the file that was imported.
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
    fields: tuple[str, ...] = ()  # of records, in the order in which people see them; empty for posts
    declared: bool = False  # whether labels came with the records
    threads: Threads | None = None  # of a corpus of pairs of message and reply
    scores: tuple[Scores, ...] = ()

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @property
    def posts_sha256(self) -> str:
        """SHA-256 over the digests of the parts, as lines of hex."""
        return hashlib.sha256("\n".join(part.sha256 for part in self.parts).encode()).hexdigest()

    def predictions_of(self, name: str, version: str) -> Predictions | None:
        """What a predictor says of the posts, by its name and version; None if nothing was imported of it."""
        return next((known for known in self.predictions if (known.name, known.version) == (name, version)), None)


def read_manifest(name: str) -> Manifest | None:
    """The manifest of a corpus, None if there is no such corpus yet. CorpusError if it cannot be read."""
    path = corpus_dir(name) / "manifest.json"
    try:
        raw = json.loads(path.read_bytes())
        raw.pop("versions", None)
        raw["sources"] = tuple(Source(**source) for source in raw["sources"])
        raw["parts"] = tuple(Part(**part) for part in raw["parts"])
        raw["votes"] = tuple(VotesPart(**votes) for votes in raw["votes"])
        # An older manifest, from before there were any, does not name them.
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
    """The manifest of a corpus. CorpusError if there is no such corpus."""
    manifest = read_manifest(name)
    if manifest is None:
        raise CorpusError(
            f"There is no corpus {name!r}; make one with `assay import_corpus {name} FILE --licence LICENCE`, or one "
            "of pairs of message and reply with import_threads."
        )
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
    """It names the version that wrote it. A manifest leaves out what only other corpora have."""
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
    """The manifest with the predictions in a new file, in place of those of that name and version; and its entry.
    terms: rows, mapping, source and ranked, as Predictions has them."""
    digests = {"sha256": digest_of(file), "posts_sha256": manifest.posts_sha256}
    predictions = Predictions(name=name, version=version, file=file.name, **digests, **terms)
    before = manifest.predictions_of(name, version)
    others = (known for known in manifest.predictions if known != before)
    return replace(manifest, predictions=(*others, predictions)), predictions


def check_records(corpus_name: str, manifest: Manifest) -> None:
    """CorpusError if the corpus holds posts."""
    if not manifest.fields:
        raise CorpusError(
            f"Corpus {corpus_name} holds posts, not records of several fields; import records into a corpus of their "
            "own, with import_corpus --fields."
        )


def check_pairs(corpus_name: str, manifest: Manifest) -> Threads:
    """What the corpus was made of. CorpusError if it holds no pairs of message and reply."""
    if manifest.threads is None:
        raise CorpusError(
            f"Corpus {corpus_name} was not made of threads; this needs pairs of message and reply. Make a corpus of "
            "them with import_threads."
        )
    return manifest.threads


def check_votes(name: str, manifest: Manifest, parts: int | None = None) -> None:
    """CorpusError if posts of the first parts have no votes, or votes of other detectors than those that there are."""
    if len(manifest.votes) < len(manifest.parts[:parts]):
        raise CorpusError(f"Corpus {name} has posts without votes; run `assay prelabel {name}`.")
    if other := next((votes for votes in manifest.votes[:parts] if votes.versions.keys() != VOTERS.keys()), None):
        raise CorpusError(
            f"The detectors {', '.join(other.versions)} voted on corpus {name}, and now there are {', '.join(VOTERS)}; "
            f"run `assay prelabel {name} --again`."
        )


def check_posts(corpus_name: str, manifest: Manifest) -> None:
    """CorpusError if the corpus holds records."""
    if manifest.fields:
        raise CorpusError(
            f"Corpus {corpus_name} holds records of {' '.join(manifest.fields)}, whose language is declared; this "
            "needs a corpus of posts."
        )
