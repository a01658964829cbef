"""How often the detectors name which languages first: what is known of a corpus's agreement before a draw."""

from collections.abc import Iterator
from typing import NamedTuple

from corpora.core import CorpusError
from corpora.core.languages import UND
from corpora.core.voting import DETECTOR_NAMES, Votes
from corpora.engines import asking, full_disk_explained
from corpora.storage.layout import check_posts, manifest_of


class Voted(NamedTuple):
    """Posts of which each detector names the same language first. votes: those first places alone, without scores;
    letters: 0 where the texts are shorter than was asked, else what was asked."""

    votes: Votes
    letters: int
    posts: int


def first_votes(corpus_name: str, least_letters: int) -> Iterator[Voted]:
    """All posts of a corpus. CorpusError if there are none, or they have no votes yet, or it holds records."""
    manifest = manifest_of(corpus_name)
    check_posts(corpus_name, manifest)
    if not manifest.rows:
        raise CorpusError(f"Corpus {corpus_name} holds no posts; add some with import_corpus.")
    if len(manifest.votes) < len(manifest.parts):
        raise CorpusError(f"Corpus {corpus_name} has posts without votes; run `assay prelabel {corpus_name}`.")
    with full_disk_explained("the votes were not counted"), asking(corpus_name, manifest=manifest) as store:
        store.first_votes()
        for row in store.found("first_votes_counted", least_letters):
            votes = {name: [(row[name], 1.0)] if row[name] != UND else [] for name in DETECTOR_NAMES}
            yield Voted(votes, least_letters if row["is_long"] else 0, row["posts"])
