"""The closed task of items whose judgments come in a file. Only their ids are known, so these also serve as texts."""

from collections.abc import Mapping, Sequence
from typing import Any

from annotate.kinds import IMPORTED
from annotate.models import Task
from annotate.work.entering import add_units
from annotate.work.moving import BATCH
from annotate.work.new_task import TaskError, check_task, made_once, with_defaults
from corpora.core.languages import UND
from corpora.manifest import read_manifest
from corpora.models import Corpus, Draw, Item


def imported_task(
    name: str, items: Mapping[str, str], labels: Sequence[str], *, in_order: bool, source: str, digest: str
) -> Task:
    """items: id -> language, empty if it is not known. in_order: whether the labels stand as somebody has ordered them.
    source, digest: the file's. The caller has opened a transaction.

    TaskError if the name is taken or invalid.
    """
    task = Task(name=name, kind_slug=IMPORTED.slug, kind_file=IMPORTED.source, title=IMPORTED.title, is_open=False)
    task.labels, task.languages = list(labels), sorted(set(items.values()) - {""})
    task.options = with_defaults(IMPORTED, {})
    check_task(task)
    if Corpus.objects.filter(name=name).exists() or read_manifest(name):
        raise TaskError(
            f"There is a corpus {name!r}, and a task of imported judgments makes a corpus of its own name. Choose "
            "another name."
        )
    with made_once(name):
        task.save()
        corpus = Corpus.objects.create(name=name)
    parameters = {"imported": source, "labels_in_order": in_order}
    task.draws.add(_draw(corpus, len(items), parameters, digest))
    made = [
        Item(corpus=corpus, key=key, text=key, language=code or UND, votes={}, letters=0) for key, code in items.items()
    ]
    add_units(task, Item.objects.bulk_create(made, batch_size=BATCH))
    return task


def _draw(corpus: Corpus, size: int, parameters: Mapping[str, Any], digest: str) -> Draw:
    """The record of a draw that took everything."""
    return Draw.objects.create(
        corpus=corpus,
        design="records",
        parameters=parameters,
        seed="imported",
        asked=size,
        size=size,
        parts=0,
        frame_size=size,
        frame_digest=digest,
    )
