"""The digests by which a task is bound: of its secret from the start, and of what became of all drawn units from the
moment when it is closed. Once the secret is disclosed, a file shows what each lot was drawn from and what was drawn.

Annotators are pseudonyms there, and nothing says what the right answer to a gold answer is.
"""

import json
from collections.abc import Collection, Iterator
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any

from django.utils import timezone

from annotate.core.draws.committed_draws import (
    GOLD_PLACE,
    NOBODY,
    OF_UNITS,
    OUTCOME,
    SECOND,
    Line,
    fixed_digest,
    gold_order,
    outcome,
    outcome_digest,
)
from annotate.models import Annotator, Judgment, Lease, Lot, Task, Transition
from annotate.quality.familiar_texts import Seen
from corpora.database.bulk_rows import listed

FILE = "lots.jsonl"
_READ = 2_000


def section(task: Task, *, tell_secret: bool) -> dict[str, Any]:
    """secret: None until it is disclosed. file: what is needed to repeat the draws; None until then. outcomes: when the
    outcomes of the drawn units were fixed, and their digest; the last one holds.
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
    """Write down what became of the drawn units of a closed task, unless that is written down already. Returns its
    digest; empty where nothing was drawn by a secret.

    Later changes are fixed anew, and the earlier digest stays beside the new one. The caller has locked the task.
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
        before = _line(OUTCOME, last.of, last.how, last.frame, last.drawn)
        if fixed_digest(task.lots, before, others) == last.how["digest"]:
            return str(last.how["digest"])
    line = _line(OUTCOME, [], {"at": timezone.now().isoformat(timespec="seconds")}, frame, drawn)
    how = {**line["how"], "digest": fixed_digest(task.lots, line, others)}
    Lot.objects.create(task=task, purpose=OUTCOME, how=how, frame=frame, drawn=drawn)
    return str(how["digest"])


def _outcomes(task: Task, keys: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Id, language asked about, and outcome of each exported unit of these items, in the order of the draw."""
    if not keys:
        return
    units = task.units.exported().filter(copy_of=None, item__key__in=listed(sorted(keys))).order_by("position")
    by_unit: dict[int, list[tuple[Any, ...]]] = {}
    judgments = Judgment.objects.filter(unit__in=units.order_by().values("pk")).order_by("unit", "pk")
    fields = ("annotator__pseudonym", "kind", "label", "lease__queue", "lease__round", "voided_at")
    for unit, pseudonym, kind, label, queue, round, voided in judgments.values_list("unit", *fields).iterator(_READ):
        said = (pseudonym, kind, label or None, queue, round, voided is not None)
        by_unit.setdefault(unit, []).append(said)
    for pk, key, asked, stage, label in units.values_list("pk", "item__key", "asked", "stage", "label").iterator(_READ):
        yield key, asked, outcome(key, asked, stage, label or None, by_unit.get(pk, ()))


def lines(task: Task) -> Iterator[Line]:
    """What committed_draws.py draws again. Left out is what the rows of the set show: sides, and hidden suggestions."""
    for lot in Lot.objects.filter(task=task).exclude(purpose=NOBODY).iterator(chunk_size=100):
        yield _line(lot.purpose, lot.of, lot.how, lot.frame, lot.drawn)
    if task.check_share:
        yield from _seconds(task)
    if task.gold_share:
        yield from _gold_places(task)


def _line(purpose: str, of: list[str], how: dict[str, Any], frame: list[Any], drawn: list[Any]) -> Line:
    return {"lot": purpose, "of": of, "how": how, "frame": frame, "drawn": drawn}


def _seconds(task: Task) -> Iterator[Line]:
    """Of what adjudicators settled, what another was asked too."""
    keys = task.units.order_by("position").values_list("item__key", flat=True)
    settled = Judgment.objects.filter(unit__task=task, kind=Judgment.SETTLE).values("unit")
    asked = Transition.objects.filter(unit__task=task, event="seconded").values("unit")
    in_vain = [key for frame in _frames(task, NOBODY) for key in frame]
    frame = list(dict.fromkeys(keys.filter(pk__in=settled)))
    if frame:
        how = {"share": task.check_share, "in_vain": list(dict.fromkeys(in_vain))}
        yield _line(SECOND, [], how, frame, list(dict.fromkeys(keys.filter(pk__in=asked))))


def _frames(task: Task, purpose: str) -> Iterator[list[Any]]:
    yield from Lot.objects.filter(task=task, purpose=purpose).values_list("frame", flat=True)


def _gold_places(task: Task) -> Iterator[Line]:
    """Of each person in each language, what they were given in its order."""
    pools: dict[str, list[str]] = {}
    for language, key in task.units.filter(honeypot=True).order_by("pk").values_list("language", "item__key"):
        pools.setdefault(language, []).append(key)
    flagged = Judgment.objects.filter(unit__task=task, unit__honeypot=True, kind=Judgment.FLAG).order_by("unit")
    disturbing = list(flagged.values_list("unit__item__key", flat=True).distinct())
    by_person = ("annotator__pseudonym", "queue")
    leases = Lease.objects.filter(unit__task=task).order_by(*by_person, "pk")
    rows = leases.values_list(*by_person, "turn", "in_place", "unit__honeypot", "unit__item__key")
    for (person, language), given in groupby(rows.iterator(_READ), key=lambda row: row[:2]):
        entries = _entries((turn, in_place, key if honeypot else "") for *_, turn, in_place, honeypot, key in given)
        if entries and language in pools:
            own = [key for key in disturbing if key in pools[language]]
            how = {"disturbing": own} if own else {}
            if seen := [key for key in _seen_elsewhere(task, person) if key in pools[language]]:
                how["seen_elsewhere"] = seen
            if passed_over := _passed_over(gold_order(task.lots, person, pools[language]), entries, [*own, *seen]):
                how["passed_over"] = passed_over
            yield _line(GOLD_PLACE, [person, language], how, pools[language], entries)


def _seen_elsewhere(task: Task, person: str) -> list[str]:
    """The gold answers whose texts a person was shown as other units."""
    annotator = Annotator.objects.values_list("pk", flat=True).get(pseudonym=person)
    seen = task.units.hidden().filter(Seen("pk", annotator)).order_by("pk")
    return list(seen.values_list("item__key", flat=True))


def _passed_over(order: list[str], entries: list[Any], never: list[str]) -> list[str]:
    """The gold answers that stand before one that came earlier: somebody else had met them, and not that one. never:
    those that the person may never be given.
    """
    met, found = set(never), dict[str, None]()
    for entry in entries:
        key = entry if isinstance(entry, str) else entry[3]
        if isinstance(key, str):
            found |= dict.fromkeys(each for each in order[: order.index(key)] if each not in met and key is not entry)
            met.add(key)
    return list(found)


def _entries(given) -> list[Any]:
    """given: where the lot stood, whether a gold answer took the place of work, and the id of a gold answer, empty for
    work. Work that was given one after the other is one entry. A gold answer that took the place of work is an entry
    of its own, and counts as work for the lot. Where no lot decided, only a gold answer that is new to the person is
    listed.
    """
    found: list[Any] = []
    met: set[str] = set()
    for turn, in_place, key in given:
        if turn is None or in_place:
            found += [key] if key and key not in met else []
        if turn is None:
            pass
        elif key and not in_place:
            found.append([*turn, key])
        elif found and _goes_on(found[-1], turn):
            found[-1][3] += 1
        else:
            found.append([*turn, 1])
        met.add(key)
    return found


def _goes_on(entry: Any, turn: list[int]) -> bool:
    """Whether a unit of work comes just after those of an entry."""
    if isinstance(entry, str) or isinstance(entry[3], str):
        return False
    given, known, size, number = entry
    return [given + number, known, size] == turn
