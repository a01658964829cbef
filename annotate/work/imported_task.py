"""The closed task of items whose judgments come in a file. Only their ids are known, so these also serve as texts."""

from collections.abc import Mapping, Sequence
from typing import Any

from annotate.kinds import IMPORTED, IMPORTED_PAIRS
from annotate.kinds.forms.pair import check_system
from annotate.kinds.preferences import BETWEEN
from annotate.models import Comparison, Task
from annotate.work.entering import add_units
from annotate.work.new_task import TaskError, check_task, made_once, with_defaults
from corpora.core.languages import UND
from corpora.database.bulk_rows import insert
from corpora.models import Corpus, Draw, Item
from corpora.storage.layout import read_manifest


def systems_of(key: str) -> tuple[str, str]:
    """The two systems that an item MESSAGE|SYSTEM|SYSTEM compares, as they stand there. ValueError, a sentence, for
    another."""
    _, *systems = key.rsplit(BETWEEN, 2)
    if len(systems) < 2:
        raise ValueError(f"The task {key[:40]!r} does not name two systems; write it as MESSAGE|SYSTEM|SYSTEM.")
    first, second = systems
    for system in systems:
        check_system(system)
    if first == second:
        raise ValueError(f"The task {key[:40]!r} compares {first} with itself.")
    return first, second


def imported_task(
    name: str,
    items: Mapping[str, str],
    labels: Sequence[str],
    *,
    in_order: bool,
    source: str,
    digest: str,
    pairs: bool = False,
) -> Task:
    """items: id -> language, empty if it is not known. in_order: whether the labels stand as somebody has ordered them.
    source, digest: the file's. pairs: whether each item compares two systems. The caller has opened a transaction.

    TaskError if the name is taken or invalid.
    """
    kind = IMPORTED_PAIRS if pairs else IMPORTED
    task = Task(name=name, kind_slug=kind.slug, kind_file=kind.source, title=kind.title, is_open=False)
    task.labels, task.languages = list(labels), sorted(set(items.values()) - {""})
    task.options = with_defaults(kind, {})
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
    add_units(task, insert(made))
    if pairs:
        _compare(task)
    return task


def _compare(task: Task) -> None:
    """What the systems suggested is not in the file."""
    insert(
        Comparison(unit=unit, system_a=a, system_b=b)
        for unit in task.units.select_related("item").order_by("pk")
        for a, b in [systems_of(unit.item.key)]
    )


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
