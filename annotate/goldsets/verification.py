"""Verification of an exported set's random draws. Only the set's folder is needed."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from operator import itemgetter
from pathlib import Path
from typing import Any

from annotate.core.draws import committed_draws
from annotate.core.draws.committed_draws import (
    AUDIT,
    BLIND,
    CHECK,
    GOLD_PLACE,
    OF_UNITS,
    OUTCOME,
    PURPOSES,
    RECHECK,
    SIDE,
    Checked,
    Line,
)
from annotate.core.draws.hash_order import Lots, by_secret, is_drawn
from annotate.goldsets.gold_set import objects_in
from annotate.goldsets.set_folder import RESTORE, GoldSetError, find_changes, get, manifest_of, pairs_of
from annotate.kinds.designs import DESIGNS
from annotate.models import Judgment

Rows = list[dict[str, Any]]


def verify(folder: Path, published: Sequence[str] = ()) -> dict[str, Any]:
    """Repeat a set's random draws, and compare the outcomes of drawn units with the digests that the task recorded.

    folder: folder of a set that discloses its secret.
    published: digests that were published earlier.

    Return a dict with `folder`, `task`, `secret_fits`, `digests`, `unknown`, `lots` and `differ`. `lots` lists a dict
    for each purpose of a draw, with `lot`, `draws`, `checked`, `differ` and `first`.

    secret_fits: whether the secret has the SHA-256 digest in the manifest; if not, no draw is repeated.
    digests: digest of the secret, and last digest of the outcomes, to be compared with published digests.
    unknown: digests in `published` that the set does not have.
    checked: number of decisions made by the draws.
    differ: number of decisions that differ from the repeated draws; at the top level, the total over all purposes, plus
        1 if the secret does not fit.
    first: the first decision that differs, or None.

    Raise GoldSetError if the folder is not a gold set, if the set was modified, or if it does not contain its secret.
    """
    try:
        return _verify(folder, published)
    except OSError as error:
        raise GoldSetError(f"{error.filename or folder} cannot be read: {error.strerror}.") from error


def _verify(folder: Path, published: Sequence[str]) -> dict[str, Any]:
    manifest, place = manifest_of(folder), folder / "manifest.json"
    if "lots" not in manifest:
        raise GoldSetError(f"{place} has no random draws to verify, because the set was imported.")
    lots, task = get(place, manifest, "lots", dict), get(place, manifest, "task", dict)
    name = get(place, task, "name", str)
    if lots.get("secret") is None:
        raise GoldSetError(
            f"{folder} does not contain the secret of its random draws yet. Ask the task's manager to close "
            "the task and export it with --tell-secret."
        )
    secret, digest = get(place, lots, "secret", str), get(place, lots, "secret_sha256", str)
    changed, missing = find_changes(folder, get(place, manifest, "files", dict))
    if changed or missing:
        raise GoldSetError(f"{folder / [*changed, *missing][0]} is missing or was changed after the export. {RESTORE}")
    _check_files(folder, manifest)
    fits = sha256(secret.encode()).hexdigest() == digest
    purposes = _count_by_purpose(_repeat_draws(folder, lots, by_secret(secret), task)) if fits else []
    outcomes = lots.get("outcomes") or []
    digests = {digest, *(outcome["digest"] for outcome in outcomes)}
    return {
        "folder": str(folder),
        "task": name,
        "secret_fits": fits,
        "digests": {"secret": digest, "outcomes": outcomes[-1] if outcomes else None},
        "unknown": [digest for digest in published if digest not in digests],
        "lots": purposes,
        "differ": sum(row["differ"] for row in purposes) + (not fits),
    }


def _check_files(folder: Path, manifest: dict[str, Any]) -> None:
    """Raise GoldSetError if the Parquet files, the published files or the counts do not match gold.jsonl."""
    mark = "" if manifest.get("finished") else ".unfinished"
    jsonl = folder / f"gold{mark}.jsonl"
    rows = list(_lines(jsonl))
    pairs = Counter((row["label"], row["id"]) for row in rows)
    counts = get(folder / "manifest.json", manifest, "counts", dict)
    strata = Counter(row["stratum"] for row in rows if row.get("stratum"))
    if counts.get("labelled") != len(rows) or counts.get("by_stratum", strata) != strata:
        raise GoldSetError(f"The counts in {folder / 'manifest.json'} do not match the rows of {jsonl.name}. {RESTORE}")
    parquet = [pairs_of(path) or Counter() for path in sorted(folder.glob("gold*.parquet"))]
    if parquet and sum(parquet, Counter()) != pairs:
        raise GoldSetError(f"The Parquet files in {folder} do not contain the rows of {jsonl.name}. {RESTORE}")
    for path in (folder / f"{design.sets.stem}{mark}.tsv" for design in DESIGNS.values() if design.sets.stem):
        if path.exists() and pairs_of(path) != pairs:
            raise GoldSetError(f"{path} does not contain the rows of {jsonl.name}. {RESTORE}")


def _count_by_purpose(draws: Iterable[tuple[str, int, Iterator[Checked]]]) -> list[dict[str, Any]]:
    """Count draws and decisions by purpose, for `lots` in the report.

    draws: (purpose, number of draws, decisions made by these draws) tuples.
    """
    rows = {purpose: {"lot": purpose, "draws": 0, "checked": 0, "differ": 0, "first": None} for purpose in PURPOSES}
    for purpose, number, decisions in draws:
        row: dict[str, Any] = rows[purpose]
        row["draws"] += number
        for decision in decisions:
            row["checked"] += 1
            row["differ"] += decision.differs
            if decision.differs and row["first"] is None:
                row["first"] = decision.what
    return [row for row in rows.values() if row["checked"]]


def _repeat_draws(
    folder: Path, section: dict[str, Any], by: Lots, task: dict[str, Any]
) -> Iterator[tuple[str, int, Iterator[Checked]]]:
    lines: list[Line] = []
    file = folder / get(folder / "manifest.json", section, "file", str)
    for number, line in enumerate(_lines(file), 1):
        try:
            decisions = [] if line["lot"] == OUTCOME else list(committed_draws.verify(by, line))
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise GoldSetError(f"{file}, line {number:,} does not describe a random draw. {RESTORE}") from error
        lines.append(line)
        yield line["lot"], int(line["lot"] != OUTCOME), iter(decisions)
    rows = [row for path in sorted(folder.glob("*.jsonl")) if path != file for row in _lines(path)]
    try:
        yield from _compare_rows(rows, lines)
        yield OUTCOME, 0, _check_outcomes(rows, lines, by, section)
        yield GOLD_PLACE, 0, _check_annotators(rows, [line for line in lines if line["lot"] == GOLD_PLACE])
        yield BLIND, 0, _check_blinding(rows, by, task)
        yield SIDE, 0, _check_sides(rows, by)
    except (KeyError, TypeError, ValueError) as error:
        raise GoldSetError(f"The rows in {folder} lack values that their draws depend on. {RESTORE}") from error


def _compare_rows(rows: Rows, lines: list[Line]) -> Iterator[tuple[str, int, Iterator[Checked]]]:
    """Yield rows that contradict the draws, duplicate rows and missing rows, each as a decision that differs."""
    drawn: dict[str, set[str]] = {}
    for line in lines:
        if line["lot"] in OF_UNITS:
            drawn.setdefault(line["lot"], set()).update(line["drawn"])
    audited, checked = drawn.get(AUDIT, set()), drawn.get(CHECK, set()) | drawn.get(RECHECK, set())
    by_agreement = [row for row in rows if row.get("agreed") and "stratum" in row]
    contradicting = [row["id"] for row in by_agreement if (row["stratum"] == "audited") != (row["id"] in audited)]
    yield AUDIT, 0, (Checked(key, True) for key in contradicting)
    judged = ((row.get("judged_as") or row["id"], row) for row in rows if row.get("checked"))
    yield CHECK, 0, (Checked(row["id"], True) for key, row in judged if key not in checked)
    numbers = Counter((row["id"], row.get("asked")) for row in rows)
    yield OUTCOME, 0, (Checked(f"a second row of {key}", True) for (key, _), number in numbers.items() if number > 1)
    for key, lot in _missing(rows, lines).items():
        yield lot, 0, iter([Checked(f"the row of {key}, which is missing", True)])


def _missing(rows: Rows, lines: list[Line]) -> dict[str, str]:
    """Return the ids of drawn units that have no row, mapped to the purpose of the first draw that contains each."""
    row_ids = {row["id"] for row in rows}
    missing: dict[str, str] = {}
    for line in lines:
        if line["lot"] in OF_UNITS:
            for key in (*line["frame"], *line["drawn"]):
                if key not in row_ids:
                    missing.setdefault(key, line["lot"])
    return missing


def _check_outcomes(rows: Rows, lines: list[Line], by: Lots, section: dict[str, Any]) -> Iterator[Checked]:
    """Compare each drawn unit's outcome with the digest that was recorded when the task was closed."""
    fixed, others = ([line for line in lines if (line["lot"] == OUTCOME) is kind] for kind in (True, False))
    if not fixed:
        if lines or section.get("outcomes"):
            yield Checked("the outcomes of drawn units, which were not recorded", True)
        return
    last = fixed[-1]
    published = [{"at": line["how"]["at"], "digest": line["how"]["digest"]} for line in fixed]
    digest = committed_draws.fixed_digest(by, last, others)
    differs = section.get("outcomes") != published or digest != last["how"]["digest"]
    yield Checked(f"the digest of {last['how']['at']}", differs)
    originals = {(row["id"], row.get("asked") or ""): row for row in rows if not row.get("judged_as")}
    reported = _missing(rows, lines)
    for (key, language), digest in zip(last["frame"], last["drawn"], strict=True):
        row = originals.get((key, language))
        if row is None and key not in reported:
            yield Checked(f"the row of {key}, which is missing", True)
        # Skip gold answers and examples, because the set contains only their ids.
        elif row and "stage" in row:
            values = itemgetter("annotator", "kind", "label", "queue", "round")
            judgments = [(*values(judgment), bool(judgment["voided_at"])) for judgment in row["judgments"]]
            text = committed_draws.outcome(key, language, row["stage"], row["label"], judgments)
            yield Checked(key, committed_draws.outcome_digest(by, text) != digest or not _is_consistent(row))


def _is_consistent(row: dict[str, Any]) -> bool:
    """Return whether a row's label follows from its judgments.

    It must match the last decision of an adjudicator. Without a decision, the label of a single annotator must match
    that annotator's answer.
    """
    valid = [judgment for judgment in row["judgments"] if not judgment["voided_at"]]
    decisions = [judgment for judgment in valid if judgment["kind"] in (Judgment.SETTLE, Judgment.DISCARD)]
    if decisions:
        return bool(row["label"] == decisions[-1]["label"])
    return row.get("decided_by") != "one" or row["label"] in [judgment["label"] for judgment in valid]


def _check_annotators(rows: Rows, lines: list[Line]) -> Iterator[Checked]:
    """Verify each annotator's gold answers and number of units.

    Yield a failure in each of these cases:

    - In a language with gold answers, an annotator answered more units than were drawn for this annotator.
    - An annotator's gold answers were drawn from a different frame than the first annotator's in this language.
    - An annotator was passed over for a gold answer that nobody else received.
    """
    frames: dict[str, set[str]] = {}
    work = Counter[tuple[str, str]]()
    recipients = Counter(key for line in lines for key in {*_gold_ids(line)})
    for line in lines:
        person, language = line["of"]
        if frames.setdefault(language, {*line["frame"]}) != {*line["frame"]}:
            yield Checked(f"the gold answers of {person} in {language}", True)
        for key in line["how"].get("passed_over", ()):
            if recipients[key] <= (key in _gold_ids(line)):
                yield Checked(f"{key}, for which {person} was skipped in {language}", True)
        work[person, language] += sum(entry[3] for entry in line["drawn"] if isinstance(entry[-1], int))
    judged: dict[tuple[str, str], set[str]] = {}
    for row, judgment in _judgments(rows):
        if judgment["queue"] in frames and judgment["kind"] in ("answer", "skip"):
            judged.setdefault((judgment["annotator"], judgment["queue"]), set()).add(row["id"])
    for (person, language), keys in judged.items():
        if len(keys) > work[person, language]:
            yield Checked(f"the work of {person} in {language}", True)


def _gold_ids(line: Line) -> list[str]:
    """Return the ids of the gold answers in an annotator's draw."""
    ids = (entry if isinstance(entry, str) else entry[-1] for entry in line["drawn"])
    return [key for key in ids if isinstance(key, str)]


def _check_blinding(rows: Rows, by: Lots, task: dict[str, Any]) -> Iterator[Checked]:
    """Verify for each answer that suggestions were shown or hidden as drawn."""
    for row, judgment in _judgments(rows):
        if judgment.get("suggestions_shown") is not None:
            person = judgment["annotator"]
            blind = is_drawn(task["blind_share"], lots=by, purpose=BLIND, key=f"{person} {row['id']}")
            yield Checked(f"{row['id']} for {person}", blind is judgment["suggestions_shown"])


def _check_sides(rows: Rows, by: Lots) -> Iterator[Checked]:
    """Verify for each answer that the system shown first is the one drawn."""
    for row, judgment in _judgments(rows):
        if judgment.get("first"):
            person, systems = judgment["annotator"], row["systems"]
            first = committed_draws.first_of_two(by, row["id"], systems, person)
            yield Checked(f"{' and '.join(systems)} of {row['id']} for {person}", first != judgment["first"])


def _judgments(rows: Rows) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each judgment with its row. Skip copies, because they repeat the judgments of their original."""
    for row in rows:
        if not row.get("judged_as"):
            yield from ((row, judgment) for judgment in row.get("judgments") or ())


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for place, line in objects_in(path):
        if not isinstance(line, dict):
            raise GoldSetError(f"{place} is not an object. {RESTORE}")
        yield line
