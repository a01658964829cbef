"""Records of a task's random draws, and the published digests that let others verify the draws.

The draws depend on a secret of the task. A digest of the secret is published from the start, so the secret cannot be
changed later. When the task is closed, a digest of all drawn units' outcomes is published too. The secret itself
can then be published, with a file that lists each draw and its candidate ids. The file identifies annotators by their
pseudonyms, and does not contain the labels of gold answers. core/draws/committed_draws.py makes the draws.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from annotate.core.draws import hash_order
from annotate.core.draws.committed_draws import NOBODY, OF_UNITS, OUTCOME, Line, fixed_digest, outcome, outcome_digest
from annotate.models import Judgment, Lot, Task, Unit
from corpora.database.bulk_rows import listed

READ = 2_000  # number of rows to read from the database at a time
FILE = "lots.jsonl"

# --- Draws. Callers must have opened a transaction.


def draw_independently(task: Task, purpose: str, keys: Iterable[str], share: float) -> set[str]:
    """Draw each id independently with the probability `share`, and record the draw. Do nothing if the share is 0."""
    listed = list(dict.fromkeys(keys))
    if not share or not listed:
        return set()
    lots = task.lots
    drawn_keys = [key for key in listed if hash_order.is_drawn(share, lots=lots, purpose=purpose, key=key)]
    record_draw(task, purpose, (), {"share": share}, listed, drawn_keys)
    return set(drawn_keys)


def draw_ids(task: Task, purpose: str, of: Sequence[str], keys: Iterable[str], count: int) -> list[str]:
    """Draw a number of ids, and record the draw.

    of: stratum, queue or language that the draw is for.
    keys: ids to draw from.
    count: number of ids to draw.
    """
    listed = list(keys)
    drawn_keys = hash_order.draw_sample(listed, count, lots=task.lots, purpose=purpose)
    record_draw(task, purpose, of, {"count": count}, listed, drawn_keys)
    return drawn_keys


def draw_units(
    task: Task, purpose: str, units: QuerySet[Unit], paths: Sequence[str], counts: Mapping[tuple[str, ...], int]
) -> list[int]:
    """Draw units from each stratum, and record the draws.

    There can be many units, so only one stratum's ids are in memory at a time. They are all read before the draw is
    stored. Otherwise, SQLite would refuse to store it if another write happened during the query.

    paths: field paths whose values define a unit's stratum.
    counts: number of units to draw, by stratum.

    Return the keys of the drawn units.
    """
    unit_keys: list[int] = []
    for stratum in list(units.order_by(*paths).values_list(*paths).distinct()):
        of_stratum = units.filter(**dict(zip(paths, stratum, strict=True))).order_by("pk")
        rows = list(of_stratum.values_list("item__key", "pk"))
        drawn_ids = set(draw_ids(task, purpose, stratum, [id for id, _ in rows], counts.get(stratum, 0)))
        unit_keys += [key for id, key in rows if id in drawn_ids]
    return unit_keys


def record_draw(
    task: Task, purpose: str, of: Sequence[str], how: dict[str, Any], frame: Sequence[Any], drawn: Sequence[Any]
) -> None:
    Lot.objects.create(task=task, purpose=purpose, of=list(of), how=how, frame=list(frame), drawn=list(drawn))


# --- Publication


def section(task: Task, *, tell_secret: bool) -> dict[str, Any]:
    """Return the manifest's section on the draws: the published digests, and the secret if `tell_secret` is set.

    secret: the secret; None if it is not published yet.
    file: name of the file needed to repeat the draws; None if the secret is not published yet.
    outcomes: times at which the drawn units' outcomes were recorded, with their digests. Only the last entry counts.
    """
    records = Lot.objects.filter(task=task, purpose=OUTCOME).order_by("pk").values_list("how", flat=True)
    return {
        "secret_sha256": sha256(task.secret.encode()).hexdigest(),
        "secret": task.secret if tell_secret else None,
        "file": FILE if tell_secret else None,
        "outcomes": [{"at": parameters["at"], "digest": parameters["digest"]} for parameters in records],
    }


def write_lots(path: Path, task: Task) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines(task))


def record_outcomes(task: Task) -> str:
    """Record the outcomes of a closed task's drawn units, and return their digest; "" if nothing was drawn.

    If the last record has the same outcomes, none is added. Otherwise, a record is added to the earlier ones. Callers
    must have locked the task.
    """
    other_lines = [line for line in lines(task) if line["lot"] != OUTCOME]
    if not other_lines:
        return ""
    frame, drawn = [], []
    for key, language, text in _outcomes(
        task, {key for line in other_lines if line["lot"] in OF_UNITS for key in line["drawn"]}
    ):
        frame.append([key, language])
        drawn.append(outcome_digest(task.lots, text))
    last = Lot.objects.filter(task=task, purpose=OUTCOME).order_by("-pk").first()
    if last and (last.frame, last.drawn) == (frame, drawn):
        last_line = draw_line(OUTCOME, last.of, last.how, last.frame, last.drawn)
        if fixed_digest(task.lots, last_line, other_lines) == last.how["digest"]:
            return str(last.how["digest"])
    line = draw_line(OUTCOME, [], {"at": timezone.now().isoformat(timespec="seconds")}, frame, drawn)
    parameters = {**line["how"], "digest": fixed_digest(task.lots, line, other_lines)}
    Lot.objects.create(task=task, purpose=OUTCOME, how=parameters, frame=frame, drawn=drawn)
    return str(parameters["digest"])


def _outcomes(task: Task, keys: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the id, question language and outcome of each exported unit of these items, in draw order.

    keys: ids of the items.
    """
    if not keys:
        return
    units = task.units.exported().filter(copy_of=None, item__key__in=listed(sorted(keys))).order_by("position")
    by_unit: dict[int, list[tuple[Any, ...]]] = {}
    judgments = Judgment.objects.filter(unit__in=units.order_by().values("pk")).order_by("unit", "pk")
    fields = ("annotator__pseudonym", "kind", "label", "lease__queue", "lease__round", "voided_at")
    for unit, pseudonym, kind, label, queue, round, voided in judgments.values_list("unit", *fields).iterator(READ):
        row = (pseudonym, kind, label or None, queue, round, voided is not None)
        by_unit.setdefault(unit, []).append(row)
    for pk, key, language, stage, label in units.values_list("pk", "item__key", "asked", "stage", "label").iterator(
        READ
    ):
        yield key, language, outcome(key, language, stage, label or None, by_unit.get(pk, ()))


def lines(task: Task) -> Iterator[Line]:
    """Yield the records that committed_draws.py needs to verify the draws.

    Draws of sides and of hidden suggestions are left out, because exported rows contain their results.
    """
    for lot in Lot.objects.filter(task=task).exclude(purpose=NOBODY).iterator(chunk_size=100):
        yield draw_line(lot.purpose, lot.of, lot.how, lot.frame, lot.drawn)
    for control in task.kind.hooks["draws"]:
        yield from control.draws(task)


def draw_line(purpose: str, of: list[str], how: dict[str, Any], frame: list[Any], drawn: list[Any]) -> Line:
    return {"lot": purpose, "of": of, "how": how, "frame": frame, "drawn": drawn}
