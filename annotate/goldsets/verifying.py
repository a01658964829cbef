"""The lots of an exported set, drawn again from the folder alone."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from annotate.core import lots
from annotate.core.lots import AUDIT, BLIND, CHECK, GOLD_PLACE, PURPOSES, RECHECK, SIDE, Checked, Line
from annotate.core.lottery import Lots, by_secret, hit
from annotate.goldsets.edits import differing
from annotate.goldsets.manifest import RESTORE, GoldSetError, get, manifest_of

Rows = list[dict[str, Any]]


def verify(folder: Path) -> dict[str, Any]:
    """{"folder", "task", "secret_fits", "lots": [{"lot", "draws", "checked", "differ", "first"}, ...], "differ"}.

    secret_fits: whether the secret is that whose SHA-256 was published from the start; if not, nothing is drawn by it.
    draws: how often lots were drawn; checked: the decisions that these made; differ: of these, those that the lots did
    not make; first: the first of them, None if there is none. The last `differ` is that of all, with the secret.
    GoldSetError if the folder is no set, was changed since it was written, or does not have its secret.
    """
    try:
        return _verify(folder)
    except OSError as error:
        raise GoldSetError(f"{error.filename or folder} cannot be read: {error.strerror}.") from error


def _verify(folder: Path) -> dict[str, Any]:
    manifest, place = manifest_of(folder), folder / "manifest.json"
    if "lots" not in manifest:
        raise GoldSetError(f"{place} says nothing of lots: the set was imported, or an earlier version wrote it.")
    told, task = get(place, manifest, "lots", dict), get(place, manifest, "task", dict)
    name = get(place, task, "name", str)
    if not told.get("secret_sha256"):
        raise GoldSetError(
            f"The task {name} was opened when lots were drawn by the seed, which {place} has; there is no secret by "
            "which they could be drawn again."
        )
    if told.get("secret") is None:
        raise GoldSetError(
            f"{folder} does not have the secret of its lots yet. Whoever runs the task can close it and export it "
            "with --tell-secret."
        )
    secret, digest = get(place, told, "secret", str), get(place, told, "secret_sha256", str)
    changed, missing = differing(folder, get(place, manifest, "files", dict))
    if changed or missing:
        raise GoldSetError(f"{folder / [*changed, *missing][0]} is not as it was written. {RESTORE}")
    fits = sha256(secret.encode()).hexdigest() == digest
    found = _told(_drawn_again(folder, told.get("file"), by_secret(secret), task)) if fits else []
    return {
        "folder": str(folder),
        "task": name,
        "secret_fits": fits,
        "lots": found,
        "differ": sum(row["differ"] for row in found) + (not fits),
    }


def _told(found: Iterable[tuple[str, int, Iterator[Checked]]]) -> list[dict[str, Any]]:
    """found: purpose, draws, and the decisions that they made."""
    draws, counts, differ, first = Counter[str](), Counter[str](), Counter[str](), {}
    for purpose, number, decisions in found:
        draws[purpose] += number
        for each in decisions:
            counts[purpose] += 1
            if each.differs:
                differ[purpose] += 1
                first.setdefault(purpose, each.what)
    return [
        {
            "lot": purpose,
            "draws": draws[purpose],
            "checked": counts[purpose],
            "differ": differ[purpose],
            "first": first.get(purpose),
        }
        for purpose in PURPOSES
        if counts[purpose]
    ]


def _drawn_again(
    folder: Path, file: Any, by: Lots, task: dict[str, Any]
) -> Iterator[tuple[str, int, Iterator[Checked]]]:
    drawn: dict[str, set[str]] = {}
    given: list[Line] = []
    if isinstance(file, str):
        for number, line in enumerate(_lines(folder / file), 1):
            try:
                decisions = list(lots.checked(by, line))
                drawn.setdefault(line["lot"], set()).update(each for each in line["drawn"] if isinstance(each, str))
                given += [line] if line["lot"] == GOLD_PLACE else []
            except (KeyError, TypeError, ValueError, ArithmeticError) as error:
                raise GoldSetError(f"{folder / file}, line {number:,} is no lot. {RESTORE}") from error
            yield line["lot"], 1, iter(decisions)
    rows = [row for path in sorted(folder.glob("*.jsonl")) if path.name != file for row in _lines(path)]
    try:
        if isinstance(file, str):
            yield from _fitting(rows, drawn)
            yield GOLD_PLACE, 0, _of_people(rows, given)
            yield BLIND, 0, _blind(rows, by, task)
        yield SIDE, 0, _sides(rows, by)
    except (KeyError, TypeError, ValueError) as error:
        raise GoldSetError(f"The rows in {folder} lack what their lots are drawn from. {RESTORE}") from error


def _fitting(rows: Rows, drawn: dict[str, set[str]]) -> Iterator[tuple[str, int, Iterator[Checked]]]:
    """Rows that say otherwise than the lots whether they were audited or checked; no more is told of those that fit."""
    audited, checked = drawn.get(AUDIT, set()), drawn.get(CHECK, set()) | drawn.get(RECHECK, set())
    by_agreement = [row for row in rows if row.get("agreed") and "stratum" in row]
    told = (Checked(row["id"], True) for row in by_agreement if (row["stratum"] == "audited") != (row["id"] in audited))
    yield AUDIT, 0, told
    own = ((row.get("judged_as") or row["id"], row) for row in rows if row.get("checked"))
    yield CHECK, 0, (Checked(row["id"], True) for key, row in own if key not in checked)


def _of_people(rows: Rows, given: list[Line]) -> Iterator[Checked]:
    """People who have judged more, as the rows say, than lots gave them in a language where there are gold answers; and
    those whose gold answers are not those of the others. No more is told of those that fit.
    """
    frames: dict[str, set[str]] = {}
    work = Counter[tuple[str, str]]()
    for line in given:
        person, language = line["of"]
        if frames.setdefault(language, {*line["frame"]}) != {*line["frame"]}:
            yield Checked(f"the gold answers of {person} in {language}", True)
        work[person, language] += sum(entry[3] for entry in line["drawn"] if isinstance(entry[-1], int))
    judged: dict[tuple[str, str], set[str]] = {}
    for _, key, said in _judgments(rows):
        if said["queue"] in frames and said["kind"] in ("answer", "skip"):
            judged.setdefault((said["annotator"], said["queue"]), set()).add(key)
    for (person, language), keys in judged.items():
        if len(keys) > work[person, language]:
            yield Checked(f"the work of {person} in {language}", True)


def _blind(rows: Rows, by: Lots, task: dict[str, Any]) -> Iterator[Checked]:
    """Whether suggestions were kept from those who answered, as the rows say."""
    for row, key, said in _judgments(rows):
        if said.get("suggestions_shown") is not None:
            person = said["annotator"]
            blind = hit(task["blind_share"], lots=by, purpose=BLIND, key=f"{person} {key}")
            yield Checked(f"{row['id']} for {person}", blind is said["suggestions_shown"])


def _sides(rows: Rows, by: Lots) -> Iterator[Checked]:
    """Which system stood first for those who answered, as the rows say."""
    for row, key, said in _judgments(rows):
        if said.get("first"):
            person, systems = said["annotator"], row["systems"]
            first = lots.first_of_two(by, key, systems, person)
            yield Checked(f"{' and '.join(systems)} of {row['id']} for {person}", first != said["first"])


def _judgments(rows: Rows) -> Iterator[tuple[dict[str, Any], str, dict[str, Any]]]:
    """Row, the id under which it was answered, and each judgment. What a copy has was said of another."""
    for row in rows:
        if not row.get("judged_as"):
            yield from ((row, row["id"], said) for said in row.get("judgments") or ())


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                found = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise GoldSetError(f"{path}, line {number:,} is not JSON. {RESTORE}") from error
            if not isinstance(found, dict):
                raise GoldSetError(f"{path}, line {number:,} is not an object. {RESTORE}")
            yield found
