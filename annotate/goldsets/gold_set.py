"""Reading gold sets that export_gold or import_gold has written, to evaluate predictions on them."""

import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import compress, repeat
from pathlib import Path
from typing import Any, NamedTuple

from annotate.core.estimation.label_errors import slips_of
from annotate.core.estimation.proportions import Estimate
from annotate.goldsets.set_folder import (
    RESTORE,
    GoldSetError,
    check_other_files,
    count_erased,
    find_changes,
    get,
    manifest_of,
)
from annotate.kinds.designs import AUTHORS, DESIGNS, STREAM
from annotate.reports.tables import lines

UNCONFIRMED = "unconfirmed"
# Stratum of a uniform set -> whether the detectors agreed on its posts. None: they may have agreed on some of them.
STRATA = {"agreed": True, "audited": True, "contested": True, "disputed": False, UNCONFIRMED: None}
# The designs whose sets consist of posts.
POST_DESIGNS = [name for name, design in DESIGNS.items() if design.sets.measures]


class GoldRow(NamedTuple):
    """A post and its true label. Columns without a value are empty strings.

    asked: language X if the question was "Is this X?".
    stratum: stratum in a uniform set.
    agreed: label the detectors agreed on.
    decided_by: source of the label: `detectors`, `one` (annotator), `several` (annotators) or `adjudicator`.
    checked: whether an adjudicator labelled the unit because it was randomly selected for a check.
    first_label: single annotator's label before the check.
    check_chance: probability that the unit was selected for a check.

    In imported sets, the last four columns have their defaults.
    """

    id: str
    label: str
    asked: str
    stratum: str
    agreed: str
    decided_by: str = ""
    checked: bool = False
    first_label: str = ""
    check_chance: float = 1.0


@dataclass(frozen=True)
class GoldSet:
    folder: Path
    name: str
    design: str
    population: str  # the population the set was sampled from
    finished: bool
    parent: str  # the uniform task whose auto-labelled posts the set was drawn from, or ""
    predictors: dict[str, str]  # the draw's predictor by language; empty in uniform and imported sets
    # The draw's parameters and frame digest, by language. Empty unless the population is authors.
    frames: dict[str, dict[str, Any]]
    voted: frozenset[str]  # the detectors that voted on the posts, and "majority"; empty without detectors
    corpus: str  # "" for an imported set
    frame_size: int | None  # number of posts a uniform set was drawn from, if known
    unresolved: dict[str, int]  # number of audited posts that got no label, by the detectors' label
    unresolved_ids: dict[str, str]  # the detectors' label by post id, for posts in `unresolved`, if listed
    # Language -> four counts: answers to decoys, Yes answers among them, posts labelled Yes, and posts labelled No.
    # Empty if the set has no decoys.
    decoys: dict[str, tuple[int, int, int, int]]
    jsonl: Path  # gold.jsonl or gold.unfinished.jsonl
    digest: str  # SHA-256 of `jsonl` when it was written
    rows: list[GoldRow]
    erased: Counter[str]  # number of rows that were erased after the set was written, by label
    slips: Estimate | None = None  # adjudicators' error rate; None if unknown


def read_gold_set(folder: Path, *, allow_erased: bool = False) -> GoldSet:
    """Read the gold set in a folder.

    allow_erased: whether to accept a set with rows erased after the export; `GoldSet.erased` counts them.

    Raise GoldSetError if the folder is not a gold set, if a file is changed or missing, if the counts in the manifest
    do not match the rows, or if rows were erased and `allow_erased` is false.
    """
    place = folder / "manifest.json"
    try:
        manifest = manifest_of(folder)
        drawn, finished = _draw_fields(place, manifest), get(place, manifest, "finished", bool)
        files, imported = get(place, manifest, "files", dict), manifest.get("imported") is not None
        jsonl = folder / ("gold.jsonl" if finished else "gold.unfinished.jsonl")
        if jsonl.name not in files:
            raise GoldSetError(f"{place} does not list {jsonl.name} among its files. {RESTORE}")
        rows, erased = _load_rows(jsonl, manifest, allow_erased)
        unresolved = _unresolved(place, manifest) if manifest.get("audit") is not None else {}
        corpus = None if imported or manifest.get("corpus") is None else get(place, manifest, "corpus", dict)
        return GoldSet(
            folder=folder,
            name=get(place, get(place, manifest, "imported" if imported else "task", dict), "name", str),
            finished=finished,
            **drawn,
            corpus=get(place, corpus, "name", str) if corpus is not None else "",
            unresolved=unresolved,
            unresolved_ids=dict(_unresolved_ids(jsonl)) if unresolved else {},
            decoys=_decoys(place, manifest) if manifest.get("decoys") is not None else {},
            jsonl=jsonl,
            digest=files[jsonl.name],
            rows=rows,
            slips=_slips(place, manifest) if manifest.get("checks") is not None else None,
            erased=erased,
        )
    except OSError as error:
        raise GoldSetError(f"{error.filename or folder} cannot be read: {error.strerror}.") from error


def _load_rows(jsonl: Path, manifest: dict[str, Any], allow_erased: bool) -> tuple[list[GoldRow], Counter[str]]:
    """Return the rows, and the number of erased rows by label.

    The manifest still counts rows that were erased from the file. Raise GoldSetError if the set was modified in any
    other way.
    """
    place, files = jsonl.parent / "manifest.json", manifest["files"]
    changed, missing = find_changes(jsonl.parent, files)
    gone = count_erased(jsonl, files, changed, missing, allow_erased) if changed or missing else 0
    rows = list(_rows(jsonl))
    if changed or missing:
        check_other_files(jsonl, changed, missing, Counter((row.label, row.id) for row in rows), gone)
    by_label = get(place, get(place, manifest, "counts", dict), "by_label", dict)
    counted = Counter({label: get(place, by_label, label, int) for label in by_label})
    present = Counter(row.label for row in rows)
    if present - counted or (counted - present).total() != gone:
        raise GoldSetError(f"The label counts in {place} do not match the rows of {jsonl.name}. {RESTORE}")
    return rows, counted - present


def _draw_fields(place: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a GoldSet that describe the draw and the detectors."""
    name = get(place, manifest, "design", str)
    if name not in DESIGNS:
        raise GoldSetError(f"{place} has the design {name!r}. It must be one of {', '.join(POST_DESIGNS)}.")
    if not (design := DESIGNS[name]).sets.measures:
        raise GoldSetError(
            f"{place.parent} is not a set of posts, so predictions of posts cannot be measured on it together with the "
            "other sets. Evaluate it by itself."
        )
    draws, detectors = get(place, manifest, "draws", list), get(place, manifest, "detectors", list)
    if not all(isinstance(versions, dict) for versions in detectors):
        raise GoldSetError(f"{place}: 'detectors' is not a list of objects. {RESTORE}")
    voted = {detector for versions in detectors for detector in versions}
    predictors: dict[str, str] = {}
    frames: dict[str, dict[str, Any]] = {}
    for draw in draws if "languages" in design.needs else ():
        predictors[get(place, draw, "language", str)] = get(place, draw, "predictor", str)
    for draw in draws if design.population == AUTHORS else ():
        frame = {"frame_digest": get(place, draw, "frame_digest", str)}
        frames[get(place, draw, "language", str)] = get(place, draw, "parameters", dict) | frame
    first = draws[0] if draws else {}
    return {
        "design": name,
        "population": design.population,
        "predictors": predictors,
        "frames": frames,
        "parent": get(place, get(place, first, "parameters", dict), "of", str) if "of" in design.needs else "",
        "voted": frozenset(voted | {"majority"} if voted else ()),
        "frame_size": get(place, first, "frame_size", int) if design.population == STREAM and len(draws) == 1 else None,
    }


def _unresolved(place: Path, manifest: dict[str, Any]) -> dict[str, int]:
    rows = get(place, get(place, manifest, "audit", dict), "languages", list)
    if not all(isinstance(row, dict) for row in rows):
        raise GoldSetError(f"{place}: the languages of the audit are not a list of objects. {RESTORE}")
    unresolved = {get(place, row, "language", str): get(place, row, "unresolved", int) for row in rows}
    return {label: posts for label, posts in unresolved.items() if posts}


def _slips(place: Path, manifest: dict[str, Any]) -> Estimate | None:
    adjudicators = get(place, get(place, manifest, "checks", dict), "adjudicators", dict)
    seconded, differed = (get(place, adjudicators, key, int) for key in ("seconded", "differed"))
    return slips_of(seconded, differed) if seconded else None


def _decoys(place: Path, manifest: dict[str, Any]) -> dict[str, tuple[int, int, int, int]]:
    decoys = {}
    for row in get(place, get(place, manifest, "decoys", dict), "languages", list):
        answers, yes = (get(place, row, key, int) for key in ("answers", "yes"))
        labelled = get(place, row, "labelled", dict)
        labelled_yes, labelled_no = (get(place, labelled, key, int) for key in ("yes", "no"))
        decoys[get(place, row, "language", str)] = (answers, yes, labelled_yes, labelled_no)
    return decoys


# --- Rows and lists


# In an exported row, the label, its origin and the text come before this column. Most of the bytes come after it.
ROUND = b', "round": '


def objects_in(jsonl: Path, wanted: Iterable[bool] = repeat(True), *, end: bytes = b"") -> Iterator[tuple[str, Any]]:
    """Yield the location and the parsed content of each line that is not blank.

    wanted: whether to read each of these lines.
    end: marker such as ROUND. Each line is cut off before the marker to save parsing.

    Raise GoldSetError if a line is not JSON.
    """
    with jsonl.open("rb") as lines:
        numbered = ((number, line) for number, line in enumerate(lines, 1) if not line.isspace())
        for number, line in compress(numbered, wanted):
            place = f"{jsonl}, line {number:,}"
            if end and end in line:
                line = line[: line.index(end)] + b"}"
            try:
                raw = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise GoldSetError(f"{place} is not JSON. {RESTORE}") from error
            yield place, raw


def spreadsheet(jsonl: Path) -> Iterator[str]:
    """Convert a JSONL file to CSV that is safe to open in a spreadsheet, and yield its lines.

    Lists of strings are joined. Columns with nested values, such as the judgments, are omitted.
    """
    columns: dict[str, bool] = {}
    for _, row in objects_in(jsonl):
        for name, value in row.items():
            parts = value if isinstance(value, list) else [value]
            columns[name] = columns.get(name, True) and not any(isinstance(part, dict | list) for part in parts)
    flat = [name for name, is_flat in columns.items() if is_flat]
    rows = (row for _, row in objects_in(jsonl))
    yield from lines(flat, ([_cell(row.get(name)) for name in flat] for row in rows))


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return "; ".join(map(str, value))
    return json.dumps(value) if isinstance(value, bool) else value


def _rows(jsonl: Path) -> Iterator[GoldRow]:
    """Yield the rows. Most of them differ only in the id, so each combination of the other columns is checked once."""
    checked_rows: dict[str, GoldRow] = {}
    for place, raw in objects_in(jsonl, end=ROUND):
        key = get(place, raw, "id", str)
        columns = repr([raw.get(name, ...) for name in GoldRow._fields[1:]])
        if not key or columns not in checked_rows:
            checked_rows[columns] = _row(place, raw)
        yield GoldRow(key, *checked_rows[columns][1:])


def _row(place: str, raw: Any) -> GoldRow:
    key, label = get(place, raw, "id", str), get(place, raw, "label", str)
    language, stratum, agreed = (
        "" if raw.get(field) is None and field in raw else get(place, raw, field, str)
        for field in ("asked", "stratum", "agreed")
    )
    if not key or not label:
        raise GoldSetError(f"{place} has an empty id or label. {RESTORE}")
    if stratum and STRATA.get(stratum, "unknown") not in (bool(agreed), None):
        raise GoldSetError(
            f"{place} has the stratum {stratum!r}, which is impossible with the detectors' label {agreed!r}. {RESTORE}"
        )
    decided_by, first_label = (
        "" if raw.get(field) is None else get(place, raw, field, str) for field in ("decided_by", "first_label")
    )
    checked = raw.get("checked") is not None and get(place, raw, "checked", bool)
    if checked is not bool(first_label):
        raise GoldSetError(
            f"{place} states that it was {'' if checked else 'not '}checked, which is impossible with the first label "
            f"{first_label!r}. {RESTORE}"
        )
    chance = raw.get("check_chance")
    if checked and not (isinstance(chance, (int, float)) and 0 < chance <= 1):
        raise GoldSetError(
            f"{place} has the check probability {chance!r}. It must be greater than 0 and at most 1. {RESTORE}"
        )
    chance = float(chance) if checked else 1.0
    return GoldRow(key, label, language, stratum, agreed, decided_by, checked, first_label, chance)


def _unresolved_ids(jsonl: Path) -> Iterator[tuple[str, str]]:
    """Yield the id and the detectors' label of each audited post that got no label.

    These posts are in the file of rows left out of the set. Without such a file, nothing is yielded.
    """
    path = jsonl.with_name(jsonl.name.replace("gold", "left_out", 1))
    if not path.exists():
        return
    for place, raw in objects_in(path):
        if raw.get("stratum") == "audited":
            yield get(place, raw, "id", str), get(place, raw, "agreed", str)


def read_ids(path: Path) -> set[str]:
    """Read a list of ids, one per line. Blank lines are skipped. There are no comments: a # is part of the id.

    Raise GoldSetError if the file cannot be read, is not UTF-8, or has invisible characters in a line.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise GoldSetError(f"{path} cannot be read: {error.strerror}.") from error
    ids = set()
    for number, line in enumerate(content.split(b"\n"), 1):
        try:
            key = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            key = unicodedata.normalize("NFC", key)
        except UnicodeDecodeError:
            raise GoldSetError(f"{path}, line {number:,} is not UTF-8. Save the list as UTF-8.") from None
        if not key.isprintable():
            raise GoldSetError(
                f"Line {number:,} of {path} contains a tab, a NUL or another invisible character. The file must "
                "contain one id per line."
            )
        ids.add(key)
    return ids - {""}
