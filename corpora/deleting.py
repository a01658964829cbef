"""Deleting what nothing rests on: a corpus that was never drawn from, the predictions of one that was.

A corpus goes from the database first, and then its manifest, which is what makes it one: whatever is left of it after
that is swept like any leftover. Broken off in between, the deletion is run again and goes on.
"""

from dataclasses import replace
from typing import Any

from django.db import transaction

from corpora.core.errors import CorpusError
from corpora.folders import corpora_dir, corpus_dir, sync
from corpora.locks import changing
from corpora.manifest import manifest_of, read_manifest, write_manifest
from corpora.models import Corpus, Draw
from corpora.predictors import BUILT_IN, find_imported


def corpus_to_delete(name: str) -> dict[str, Any]:
    """{"corpus", "rows", "files", "predictors"} of one that may be deleted. CorpusError where it may not be."""
    corpus = Corpus.objects.filter(name=name).first()
    if corpus is None and not corpus_dir(name).exists():
        known = Corpus.objects.order_by("name").values_list("name", flat=True)
        raise CorpusError(f"There is no corpus {name!r}; there is: {', '.join(known) or 'none'}.")
    if corpus and (draws := corpus.draws.count()):
        raise CorpusError(
            f"Corpus {name} cannot be deleted, since posts or records were drawn from it (draws: {draws:,}). "
            f"`assay draws {name}` lists them with the tasks that ask about them; without those tasks it can be."
        )
    manifest = read_manifest(name)
    return {
        "corpus": name,
        "rows": manifest.rows if manifest else 0,
        "files": len(manifest.sources) if manifest else 0,
        "predictors": [str(each) for each in manifest.predictions] if manifest else [],
    }


def delete_corpus(name: str) -> dict[str, Any]:
    """Delete its files and its row; returns what that was."""
    corpus_to_delete(name)  # refuses before anything is made on disk
    with changing(name) as directory:
        with transaction.atomic():
            # Locked, so that whoever draws from it at the same time waits.
            found = list(Corpus.objects.select_for_update().filter(name=name))
            gone = corpus_to_delete(name)
            for corpus in found:
                corpus.items.all().delete()
                corpus.delete()
        (directory / "manifest.json").unlink(missing_ok=True)
        sync(directory)
        for path in (directory / "rejects").iterdir():
            path.unlink()
    if directory.exists():
        raise CorpusError(f"Corpus {name} is deleted, but for what could not be removed of {directory}; remove it.")
    sync(corpora_dir())
    return gone


def predictions_to_delete(name: str, spelled: str) -> dict[str, Any]:
    """{"corpus", "predictor", "posts"} of predictions that may be deleted. CorpusError where they may not be."""
    if spelled in BUILT_IN:
        raise CorpusError(f"{spelled} is made of the detectors' votes, and posts are drawn with these: it stays.")
    predictor = find_imported(name, spelled)
    if draws := Draw.objects.filter(corpus__name=name, predictor=str(predictor)).count():
        raise CorpusError(
            f"{predictor} cannot be deleted, since posts of corpus {name} were drawn by it (draws: {draws:,}), and "
            "what is measured on them needs its labels."
        )
    return {"corpus": name, "predictor": str(predictor), "posts": predictor.rows}


def delete_predictions(name: str, spelled: str) -> dict[str, Any]:
    """Take a predictor out of the corpus's manifest, and so its file from the disk; returns what that was."""
    manifest_of(name)
    with changing(name):
        gone = predictions_to_delete(name, spelled)
        manifest = manifest_of(name)
        kept = tuple(each for each in manifest.predictions if str(each) != gone["predictor"])
        write_manifest(name, replace(manifest, predictions=kept))
    return gone
