"""Records of a task's random draws, and the published digests that commit the task to them.

The digest of the secret is published from the start, and that of the outcomes of all drawn units when the task is
closed. Once the secret is published, a file lists what was drawn and from what. In this file, annotators are
pseudonyms, and the right answers of gold answers are not included. core/draws/committed_draws.py makes the draws.
"""

import json
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from annotate.core.draws import hash_order
from annotate.core.draws.committed_draws import NOBODY, OF_UNITS, OUTCOME, Line, fixed_digest, outcome, outcome_digest
from annotate.models import Judgment, Lot, Task, Unit
from corpora.database.bulk_rows import listed

READ = 2_000
FILE = "lots.jsonl"

# --- Draws. Callers have opened a transaction.


def drawn_each(task: Task, purpose: str, keys: Iterable[str], share: float) -> set[str]:
    """Draw each id independently with probability `share`, and record the draw unless the share is 0."""
    listed = list(dict.fromkeys(keys))
    if not share or not listed:
        return set()
    by = task.lots
    found = [key for key in listed if hash_order.hit(share, lots=by, purpose=purpose, key=key)]
    keep(task, purpose, (), {"share": share}, listed, found)
    return set(found)


def drawn(task: Task, purpose: str, of: Sequence[str], keys: Iterable[str], count: int) -> list[str]:
    """Draw ids with hash_order.drawn, and record the draw.

    of: stratum, queue or language of the draw.
    """
    listed = list(keys)
    found = hash_order.drawn(listed, count, lots=task.lots, purpose=purpose)
    keep(task, purpose, of, {"count": count}, listed, found)
    return found


def drawn_units(
    task: Task, purpose: str, units: QuerySet[Unit], paths: Sequence[str], counts: Mapping[tuple[str, ...], int]
) -> list[int]:
    """Draw units in each stratum, and record the draws.

    There may be many units, so only the ids of one stratum are in memory at a time.

    paths: fields whose values define a stratum.
    counts: number of units to draw, by stratum.

    Return the keys of the drawn units.
    """
    found: list[int] = []
    rows = units.order_by(*paths, "pk").values_list(*paths, "item__key", "pk").iterator(READ)
    for of, group in groupby(rows, key=lambda row: row[:-2]):
        ids, keys = [], array("q")
        for *_, id, key in group:
            ids.append(id)
            keys.append(key)
        chosen = set(drawn(task, purpose, of, ids, counts.get(of, 0)))
        found += [key for id, key in zip(ids, keys, strict=True) if id in chosen]
    return found


def keep(
    task: Task, purpose: str, of: Sequence[str], how: dict[str, Any], frame: Sequence[Any], drawn: Sequence[Any]
) -> None:
    Lot.objects.create(task=task, purpose=purpose, of=list(of), how=how, frame=list(frame), drawn=list(drawn))


# --- Publication


def section(task: Task, *, tell_secret: bool) -> dict[str, Any]:
    """Return the digests and, if it is published, the secret.

    secret: None until it is published.
    file: the file needed to repeat the draws; None until then.
    outcomes: when the outcomes of the drawn units were fixed, and their digest; the last entry counts.
    """
    fixed = Lot.objects.filter(task=task, purpose=OUTCOME).order_by("pk").values_list("how", flat=True)
    return {
        "secret_sha256": sha256(task.secret.encode()).hexdigest(),
        "secret": task.secret if tell_secret else None,
        "file": FILE if tell_secret else None,
        "outcomes": [{"at": how["at"], "digest": how["digest"]} for how in fixed],
    }


def write_lots(path: Path, task: Task) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines(task))


def fix(task: Task) -> str:
    """Record the outcomes of a closed task's drawn units, unless they are recorded already.

    Later changes are recorded anew, and the earlier digest is kept. The caller has locked the task.

    Return the digest; empty if nothing was drawn with the secret.
    """
    others = [line for line in lines(task) if line["lot"] != OUTCOME]
    if not others:
        return ""
    frame, drawn = [], []
    for key, asked, text in _outcomes(
        task, {key for line in others if line["lot"] in OF_UNITS for key in line["drawn"]}
    ):
        frame.append([key, asked])
        drawn.append(outcome_digest(task.lots, text))
    last = Lot.objects.filter(task=task, purpose=OUTCOME).order_by("-pk").first()
    if last and (last.frame, last.drawn) == (frame, drawn):
        before = draw_line(OUTCOME, last.of, last.how, last.frame, last.drawn)
        if fixed_digest(task.lots, before, others) == last.how["digest"]:
            return str(last.how["digest"])
    line = draw_line(OUTCOME, [], {"at": timezone.now().isoformat(timespec="seconds")}, frame, drawn)
    how = {**line["how"], "digest": fixed_digest(task.lots, line, others)}
    Lot.objects.create(task=task, purpose=OUTCOME, how=how, frame=frame, drawn=drawn)
    return str(how["digest"])


def _outcomes(task: Task, keys: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Yield id, language asked about and outcome of each exported unit of these items, in the order of the draw."""
    if not keys:
        return
    units = task.units.exported().filter(copy_of=None, item__key__in=listed(sorted(keys))).order_by("position")
    by_unit: dict[int, list[tuple[Any, ...]]] = {}
    judgments = Judgment.objects.filter(unit__in=units.order_by().values("pk")).order_by("unit", "pk")
    fields = ("annotator__pseudonym", "kind", "label", "lease__queue", "lease__round", "voided_at")
    for unit, pseudonym, kind, label, queue, round, voided in judgments.values_list("unit", *fields).iterator(READ):
        said = (pseudonym, kind, label or None, queue, round, voided is not None)
        by_unit.setdefault(unit, []).append(said)
    for pk, key, asked, stage, label in units.values_list("pk", "item__key", "asked", "stage", "label").iterator(READ):
        yield key, asked, outcome(key, asked, stage, label or None, by_unit.get(pk, ()))


def lines(task: Task) -> Iterator[Line]:
    """Yield the records that committed_draws.py verifies.

    Sides and hidden suggestions are left out, because the rows of an exported set show them.
    """
    for lot in Lot.objects.filter(task=task).exclude(purpose=NOBODY).iterator(chunk_size=100):
        yield draw_line(lot.purpose, lot.of, lot.how, lot.frame, lot.drawn)
    for control in task.kind.quality_controls:
        yield from control.draws(task)


def draw_line(purpose: str, of: list[str], how: dict[str, Any], frame: list[Any], drawn: list[Any]) -> Line:
    return {"lot": purpose, "of": of, "how": how, "frame": frame, "drawn": drawn}
