"""The manifest of a corpus: what is in it, from which files, under which licence.

The manifest is the commit point: it is written beside and renamed, once everything that it names is safely on disk.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from corpora.core.errors import CorpusError
from corpora.folders import corpus_dir, sync
from corpora.system import VERSION


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
    """What became of the messages of the files that a corpus of pairs was made of (import_threads.py).

    messages: each once; replies: those with a parent; left_out: reason of core/pairs.py -> replies. declared: (language
    that the files name, language that was found, pairs of the corpus), the files' in order. file: where each reply that
    was left out is listed.
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
    """What a scorer from elsewhere says of the pairs of a corpus (scores.py). A pair is dropped where its score is
    above the threshold.

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
        return _manifest(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CorpusError(f"{path} cannot be read: {error}. Restore it, or the right to read it.") from error
    except (AttributeError, KeyError, TypeError) as error:
        raise CorpusError(f"{path} is not the manifest of a corpus, or not all of it. Restore it.") from error


def _manifest(raw: dict[str, Any]) -> Manifest:
    raw.pop("versions", None)
    raw["sources"] = tuple(Source(**source) for source in raw["sources"])
    raw["parts"] = tuple(Part(**part) for part in raw["parts"])
    raw["votes"] = tuple(VotesPart(**votes) for votes in raw["votes"])
    # An older manifest, from before there were any, does not name them.
    raw["predictions"] = tuple(_predictions(predictions) for predictions in raw.get("predictions", ()))
    raw["fields"] = tuple(raw.get("fields", ()))
    if threads := raw.get("threads"):
        raw["threads"] = Threads(**threads | {"declared": tuple(tuple(row) for row in threads["declared"])})
    raw["scores"] = tuple(Scores(**scores) for scores in raw.get("scores", ()))
    return Manifest(**raw)


def _predictions(raw: dict[str, Any]) -> Predictions:
    mapping = {label: tuple(targets) for label, targets in raw.pop("mapping").items()}
    return Predictions(mapping=mapping, **raw)


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


def check_posts(corpus_name: str, manifest: Manifest) -> None:
    """CorpusError if the corpus holds records."""
    if manifest.fields:
        raise CorpusError(
            f"Corpus {corpus_name} holds records of {' '.join(manifest.fields)}, whose language is declared; this "
            "needs a corpus of posts."
        )
