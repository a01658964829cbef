"""Corpora in a notebook: which there are, and their posts, votes and predictions, read from disk as they are asked."""

from dataclasses import dataclass

from annotate.notebook.asking import told
from annotate.notebook.rows import Rows, of_dicts, of_files
from corpora.core import CorpusError
from corpora.storage.layout import Manifest, corpora_dir, corpora_on_disk, corpus_dir, manifest_of, read_manifest
from corpora.storage.schemas import PREDICTIONS_SCHEMA, RANKED_SCHEMA, VOTES_SCHEMA, schema_of

COLUMNS = ("name", "rows", "fields", "licence", "voted", "agreed", "predictors")


def corpora() -> Rows:
    """The corpora, a row each: name, rows (posts or records), fields (of records), licence, voted and agreed (posts
    that the detectors have read, and on which all name one language), predictors (imported ones, as name@version).
    """
    with told(str(corpora_dir())):
        rows = [_row(name, manifest) for name in corpora_on_disk() if (manifest := read_manifest(name))]
    return of_dicts(rows, COLUMNS, "corpora")


def _row(name: str, manifest: Manifest) -> dict[str, object]:
    return {
        "name": name,
        "rows": manifest.rows,
        "fields": " ".join(manifest.fields),
        "licence": manifest.licence,
        "voted": sum(part.rows for part in manifest.votes),
        "agreed": sum(part.unanimous for part in manifest.votes),
        "predictors": " ".join(map(str, manifest.predictions)),
    }


def corpus(name: str) -> "Corpus":
    """The corpus of a name. AssayError where there is none."""
    found = Corpus(name)
    assert found.manifest
    return found


@dataclass(frozen=True, repr=False)
class Corpus:
    """A corpus on disk. What it has is looked up whenever it is asked, so that what was imported since is seen."""

    name: str

    @property
    def manifest(self) -> Manifest:
        """What is in it: licence, sources with their digests, parts, votes, predictions, fields."""
        with told():
            return manifest_of(self.name)

    def posts(self) -> Rows:
        """The posts or records in the order in which they were imported: id, text (as people see it), author (a hash),
        posted_at (UTC, may be null), url; of records also language and each field.
        """
        manifest = self.manifest
        files = [corpus_dir(self.name) / "parts" / part.name for part in manifest.parts]
        return of_files(files, schema_of(manifest.fields), f"posts of {self.name}")

    def votes(self) -> Rows:
        """What the detectors say of each post that they have read, in the order of posts(): id, letters, and for each
        detector its languages, the best first, as dicts with language and score (between 0 and 1).
        """
        files = [corpus_dir(self.name) / "votes" / part.name for part in self.manifest.votes]
        return of_files(files, VOTES_SCHEMA, f"votes of {self.name}")

    def predictions(self, spelled: str) -> Rows:
        """What an imported predictor says, by its name@version: id, label, score (may be null); of one that ranks
        labels: id, labels and scores, the best first. AssayError where there is none of that name.
        """
        name, _, version = spelled.partition("@")
        with told():
            found = self.manifest.predictions_of(name, version)
            if found is None:
                there = ", ".join(map(str, self.manifest.predictions)) or "none"
                raise CorpusError(f"Corpus {self.name} has no predictions of {spelled!r}; it has: {there}.")
        schema = RANKED_SCHEMA if found.ranked else PREDICTIONS_SCHEMA
        return of_files([corpus_dir(self.name) / "predictions" / found.file], schema, f"what {spelled} says")

    def __repr__(self) -> str:
        manifest = self.manifest
        holds = f"records of {' '.join(manifest.fields)}" if manifest.fields else "posts"
        return f"Corpus {self.name}: {manifest.rows:,} {holds}, {manifest.licence}"
