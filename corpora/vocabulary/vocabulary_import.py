"""From files to a version of a vocabulary: taken as a whole or not at all, and never put over an earlier one."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.db import IntegrityError, transaction

from corpora.database.bulk_rows import insert
from corpora.models import Broader, Concept, Label, LabelWord, Related, Scheme, Vocabulary
from corpora.sources.compression import Progress
from corpora.vocabulary.thesaurus import (
    Changes,
    Labels,
    Oddities,
    Term,
    Thesaurus,
    VocabularyError,
    changes,
    oddities,
    words_of,
)
from corpora.vocabulary.vocabulary_files import read_thesaurus


@dataclass(frozen=True)
class Imported:
    """What became of the files. version: the one that they are, or would be; before: the newest there was, None for
    the first; changes: since then; already: whether they were that version before, so that nothing was done.
    """

    version: int
    before: int | None
    concepts: int
    labels: int
    schemes: int
    languages: list[str]
    changes: Changes
    oddities: Oddities
    already: bool = False


def import_vocabulary(
    name: str,
    files: Sequence[Path],
    *,
    schemes: Path | None = None,
    format: str | None = None,
    language: str = "en",
    dry_run: bool = False,
    progress: Progress = lambda count: None,
) -> Imported:
    """Register what the files say as the next version of the vocabulary; nothing changes if one version says the same.

    schemes: a file of schemes and domains. language: the one that concepts should have a label in. `progress` is told
    of bytes read. VocabularyError, or CorpusError for a file that cannot be read; then nothing of it is kept.
    """
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise VocabularyError(
            f"{name!r} cannot be a vocabulary's name; use 1 to 64 letters, digits, hyphens or underscores."
        )
    thesaurus = read_thesaurus(files, schemes, format, progress)
    with transaction.atomic():
        versions = Vocabulary.objects.filter(name=name).order_by("version")
        same, newest = versions.filter(sha256=thesaurus.digest).first(), versions.last()
        if not (same or dry_run):
            source = ", ".join(path.name for path in [*files, *([schemes] if schemes else [])])
            _store(name, newest.version + 1 if newest else 1, source, thesaurus)
        before = _preferred(newest) if newest and not same else {}
    now = {key: term.preferred for key, term in thesaurus.terms.items()}
    return Imported(
        version=same.version if same else newest.version + 1 if newest else 1,
        before=newest.version if newest else None,
        concepts=len(now),
        labels=sum(len(term.preferred) + sum(map(len, term.other.values())) for term in thesaurus.terms.values()),
        schemes=len(thesaurus.groups),
        languages=thesaurus.languages,
        changes=changes(before, now, language) if before else Changes({}, {}, {}),
        oddities=oddities(thesaurus, language),
        already=same is not None,
    )


def _preferred(vocabulary: Vocabulary) -> dict[str, Labels]:
    found: dict[str, Labels] = {key: {} for key in vocabulary.concepts.values_list("key", flat=True)}
    labels = Label.objects.filter(concept__vocabulary=vocabulary, is_preferred=True)
    for key, language, text in labels.values_list("concept__key", "language", "text"):
        found[key][language] = text
    return found


def _store(name: str, version: int, source: str, thesaurus: Thesaurus) -> None:
    try:
        with transaction.atomic():
            vocabulary = Vocabulary.objects.create(
                name=name,
                version=version,
                source=source if len(source) <= 200 else f"{source[:199]}…",
                sha256=thesaurus.digest,
                languages=thesaurus.languages,
            )
    except IntegrityError:
        raise VocabularyError(f"Somebody else has just imported into {name}; run the command again.") from None
    schemes = _stored_schemes(vocabulary, thesaurus)
    terms = sorted(thesaurus.terms.items())
    rows = (
        Concept(
            vocabulary=vocabulary,
            key=key,
            is_deprecated=term.is_deprecated,
            replaced_by=" ".join(sorted(term.replaced_by)),
        )
        for key, term in terms
    )
    concepts = {concept.key: concept for concept in insert(rows)}
    insert(Broader(concept=concepts[key], broader=concepts[to]) for key, term in terms for to in sorted(term.broader))
    insert(Related(concept=concepts[key], related=concepts[to]) for key, term in terms for to in sorted(term.related))
    insert(
        Concept.schemes.through(concept=concepts[key], scheme=schemes[to])
        for key, term in terms
        for to in sorted(term.schemes)
    )
    labels = insert(label for key, term in terms for label in _labels(concepts[key], term))
    insert(
        LabelWord(vocabulary=vocabulary, label=label, word=word)
        for label in labels
        if not label.concept.is_deprecated  # no search finds it
        for word in sorted(set(label.plain.split()))
    )


def _labels(concept: Concept, term: Term) -> Iterator[Label]:
    """The preferred labels, then the others, each by language and text."""
    texts = [(language, text, True) for language, text in sorted(term.preferred.items())]
    texts += [(language, text, False) for language, others in sorted(term.other.items()) for text in sorted(others)]
    for language, text, is_preferred in texts:
        plain = " ".join(words_of(text)).encode()
        yield Label(concept=concept, language=language, text=text, is_preferred=is_preferred, plain=plain)


def _stored_schemes(vocabulary: Vocabulary, thesaurus: Thesaurus) -> dict[str, Scheme]:
    stored: dict[str, Scheme] = {}
    # Domains first, since their parts name them.
    groups = sorted(thesaurus.groups.items(), key=lambda item: (bool(item[1].within), item[0]))
    for part in (False, True):
        rows = [
            Scheme(vocabulary=vocabulary, key=key, labels=group.labels, domain=stored.get(group.within))
            for key, group in groups
            if bool(group.within) is part
        ]
        stored |= {row.key: row for row in insert(rows)}
    return stored
