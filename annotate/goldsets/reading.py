"""Gold sets on disk, as export_gold and import_gold write them, read to be evaluated against."""

import json
import sys
import unicodedata
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotate.core.audits import slips_of
from annotate.core.estimation import Estimate
from annotate.goldsets.edits import check_others, differing, gone_from
from annotate.goldsets.manifest import RESTORE, GoldSetError, get, manifest_of
from annotate.kinds.designs import DESIGNS, Design

UNCONFIRMED = "unconfirmed"
# How a post of a uniform set came to its label -> whether the detectors agreed on one; None where either may be.
STRATA = {"agreed": True, "audited": True, "contested": True, "disputed": False, UNCONFIRMED: None}
# The designs of sets of posts.
OF_POSTS = [name for name, design in DESIGNS.items() if design.sets.measures]


@dataclass(frozen=True, slots=True)
class GoldRow:
    """A post and its true label. asked: the X of "Is this X?"; "" if there is none, as for stratum and agreed.

    decided_by: detectors, one, several or adjudicator. checked: an adjudicator gave the label, by lot with the chance
    check_chance, after one reader had said first_label. Sets that were imported, or written before there were checks,
    have none of these.
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
    finished: bool
    of: str  # the uniform task whose posts these are, which nobody had read; "" in sets of other designs
    predictors: dict[str, str]  # language -> the predictor its posts were drawn by; empty in uniform and imported sets
    frames: dict[str, dict[str, Any]]  # language -> its draw's parameters and frame digest; likewise
    voted: frozenset[str]  # the detectors whose agreement is a label here, and their majority
    corpus: str  # "" if the set was imported
    frame_size: int | None  # posts that a uniform set was drawn from, if it is known
    unresolved: dict[str, int]  # label on which the detectors agree -> audited posts that nobody could label
    unresolved_ids: dict[str, str]  # id -> that label, of those of these posts that the set names
    # Language -> answers to decoys, of which Yes; posts found to be in it, and not to be: empty where none were asked.
    decoys: dict[str, tuple[int, int, int, int]]
    digest: str  # SHA-256 of gold.jsonl as it was written
    rows: list[GoldRow]
    erased: Counter[str]  # label -> rows that are gone since
    slips: Estimate | None = None  # how often adjudicators slip; None if that is not known

    def written(self, ids: Container[str]) -> Iterator[dict[str, Any]]:
        """The whole rows of some posts, read anew."""
        with (self.folder / ("gold.jsonl" if self.finished else "gold.unfinished.jsonl")).open("rb") as lines:
            for line in lines:
                row = json.loads(line)
                if row["id"] in ids:
                    yield row

    def described(self) -> dict[str, Any]:
        """What a report says of it."""
        return {
            "name": self.name,
            "design": self.design,
            "folder_name": self.folder.resolve().name,
            "rows": len(self.rows),
            "frame": self.frame_size,
            "finished": self.finished,
            "predictor": ", ".join(sorted(set(self.predictors.values()))),
            "digest": self.digest,
        }


def read_gold_set(folder: Path, *, allow_erased: bool = False) -> GoldSet:
    """The gold set in a folder. Rows erased since it was written are counted, if that is allowed.

    GoldSetError if it is not one, or is not as it was written: a file that is changed or missing, counts that do not
    fit, and, unless they are allowed, erased rows.
    """
    try:
        return _read(folder, allow_erased)
    except OSError as error:
        raise GoldSetError(f"{error.filename or folder} cannot be read: {error.strerror}.") from error


def _read(folder: Path, allow_erased: bool) -> GoldSet:
    manifest, place = manifest_of(folder), folder / "manifest.json"
    design, finished = _design(place, manifest), get(place, manifest, "finished", bool)
    files, draws = get(place, manifest, "files", dict), get(place, manifest, "draws", list)
    jsonl = folder / ("gold.jsonl" if finished else "gold.unfinished.jsonl")
    if jsonl.name not in files:
        raise GoldSetError(f"{place} names no {jsonl.name} among its files. {RESTORE}")
    rows, gone = _checked(jsonl, files, allow_erased)
    imported = manifest.get("imported") is not None
    unresolved = _unresolved(place, manifest) if manifest.get("audit") is not None else {}
    corpus = None if imported or manifest.get("corpus") is None else get(place, manifest, "corpus", dict)
    return GoldSet(
        folder=folder,
        name=get(place, get(place, manifest, "imported" if imported else "task", dict), "name", str),
        design=design.name,
        finished=finished,
        predictors={
            get(place, draw, "language", str): get(place, draw, "predictor", str) for draw in draws if design.asks_each
        },
        frames={
            get(place, draw, "language", str): get(place, draw, "parameters", dict)
            | {"frame_digest": get(place, draw, "frame_digest", str)}
            for draw in draws
            if design.by_author
        },
        of=_of(place, draws) if design.of_uniform else "",
        voted=_voted(place, get(place, manifest, "detectors", list)),
        corpus=get(place, corpus, "name", str) if corpus is not None else "",
        frame_size=get(place, draws[0], "frame_size", int) if design.of_stream and len(draws) == 1 else None,
        unresolved=unresolved,
        unresolved_ids=dict(_unresolved_ids(jsonl)) if unresolved else {},
        decoys=_decoys(place, manifest) if manifest.get("decoys") is not None else {},
        digest=files[jsonl.name],
        rows=rows,
        slips=_slips(place, manifest) if manifest.get("checks") is not None else None,
        erased=_erased(jsonl, get(place, get(place, manifest, "counts", dict), "by_label", dict), rows, gone),
    )


def _design(place: Path, manifest: dict[str, Any]) -> Design:
    name = get(place, manifest, "design", str)
    if name not in DESIGNS:
        raise GoldSetError(f"{place} has the design {name!r}, which is not one of {', '.join(OF_POSTS)}.")
    if not DESIGNS[name].sets.measures:
        raise GoldSetError(
            f"{place.parent} is not a set of posts, and predictions of posts are measured on sets of posts alone; "
            "measure on it by itself."
        )
    return DESIGNS[name]


def _checked(jsonl: Path, files: dict[str, Any], allow_erased: bool) -> tuple[list[GoldRow], int]:
    """The rows, and how many are gone since the set was written. GoldSetError if more was done to its files."""
    changed, missing = differing(jsonl.parent, files)
    is_as_written = not changed and not missing
    gone = 0 if is_as_written else gone_from(jsonl, files, changed, missing, allow_erased)
    rows = [_row(place, raw) for place, raw in _objects(jsonl)]
    if not is_as_written:
        check_others(jsonl, changed, missing, Counter((row.label, row.id) for row in rows), gone)
    return rows, gone


def _of(place: Path, draws: list[Any]) -> str:
    first = draws[0] if draws else {}
    return get(place, get(place, first, "parameters", dict), "of", str)


def _voted(place: Path, detectors: list[Any]) -> frozenset[str]:
    if not all(isinstance(versions, dict) for versions in detectors):
        raise GoldSetError(f"{place}: 'detectors' is not a list of objects. {RESTORE}")
    voted = {detector for versions in detectors for detector in versions}
    return frozenset(voted | {"majority"} if voted else ())


def _unresolved(place: Path, manifest: dict[str, Any]) -> dict[str, int]:
    rows = get(place, get(place, manifest, "audit", dict), "languages", list)
    if not all(isinstance(row, dict) for row in rows):
        raise GoldSetError(f"{place}: the languages of its audit are not a list of objects. {RESTORE}")
    found = {get(place, row, "language", str): get(place, row, "unresolved", int) for row in rows}
    return {label: posts for label, posts in found.items() if posts}


def _slips(place: Path, manifest: dict[str, Any]) -> Estimate | None:
    found = get(place, get(place, manifest, "checks", dict), "adjudicators", dict)
    seconded, differed = (get(place, found, key, int) for key in ("seconded", "differed"))
    return slips_of(seconded, differed) if seconded else None


def _decoys(place: Path, manifest: dict[str, Any]) -> dict[str, tuple[int, int, int, int]]:
    found = {}
    for row in get(place, get(place, manifest, "decoys", dict), "languages", list):
        labelled = get(place, row, "labelled", dict)
        counts = [
            get(place, holder, key, int)
            for holder, keys in ((row, ("answers", "yes")), (labelled, ("yes", "no")))
            for key in keys
        ]
        found[get(place, row, "language", str)] = (counts[0], counts[1], counts[2], counts[3])
    return found


def _erased(jsonl: Path, by_label: dict[str, Any], rows: list[GoldRow], gone: int) -> Counter[str]:
    """Label -> rows that are gone: those that the manifest counts but the file does not have."""
    counted = Counter({label: get(jsonl.parent / "manifest.json", by_label, label, int) for label in by_label})
    present = Counter(row.label for row in rows)
    if present - counted or (counted - present).total() != gone:
        raise GoldSetError(
            f"The counts by label in {jsonl.parent / 'manifest.json'} are not those of {jsonl.name}. {RESTORE}"
        )
    return counted - present


# --- rows and lists


def _objects(jsonl: Path) -> Iterator[tuple[str, Any]]:
    """What stands on each line, and where that is."""
    with jsonl.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.isspace():
                continue
            place = f"{jsonl}, line {number:,}"
            try:
                raw = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise GoldSetError(f"{place} is not JSON. {RESTORE}") from error
            yield place, raw


def _row(place: str, raw: Any) -> GoldRow:
    key, label = get(place, raw, "id", str), get(place, raw, "label", str)
    asked, stratum, agreed = (
        "" if raw.get(field) is None and field in raw else get(place, raw, field, str)
        for field in ("asked", "stratum", "agreed")
    )
    if not key or not label:
        raise GoldSetError(f"{place} has an empty id or label. {RESTORE}")
    if stratum and STRATA.get(stratum, "unknown") not in (bool(agreed), None):
        raise GoldSetError(
            f"{place} has the stratum {stratum!r} with the detectors' label {agreed!r}, which do not fit together. "
            f"{RESTORE}"
        )
    decided_by, first_label = (
        "" if raw.get(field) is None else get(place, raw, field, str) for field in ("decided_by", "first_label")
    )
    checked = raw.get("checked") is not None and get(place, raw, "checked", bool)
    if checked is not bool(first_label):
        raise GoldSetError(
            f"{place} says that it was {'' if checked else 'not '}checked, with the first label {first_label!r}, which "
            f"do not fit together. {RESTORE}"
        )
    chance = raw.get("check_chance")
    if checked and not (isinstance(chance, (int, float)) and 0 < chance <= 1):
        raise GoldSetError(
            f"{place} was checked with the chance {chance!r}, which is not above 0 and at most 1. {RESTORE}"
        )
    words = map(sys.intern, (label, asked, stratum, agreed, decided_by, first_label))
    label, asked, stratum, agreed, decided_by, first_label = words
    return GoldRow(
        key, label, asked, stratum, agreed, decided_by, checked, first_label, float(chance) if checked else 1.0
    )


def _unresolved_ids(jsonl: Path) -> Iterator[tuple[str, str]]:
    """The audited posts without a label, with the label on which the detectors agree, from the file of what was left
    out; none where there is no such file."""
    path = jsonl.with_name(jsonl.name.replace("gold", "left_out", 1))
    if not path.exists():
        return
    for place, raw in _objects(path):
        if raw.get("stratum") == "audited":
            yield get(place, raw, "id", str), get(place, raw, "agreed", str)


def read_ids(path: Path) -> set[str]:
    """A list of ids, for example of vanished posts: one on each line, without blank lines; a # is part of an id.

    GoldSetError if it cannot be read as such a list.
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
            raise GoldSetError(f"{path}, line {number:,} is not UTF-8; save the list as UTF-8.") from None
        if not key.isprintable():
            raise GoldSetError(
                f"{path}, line {number:,} holds a tab, a NUL or another character that cannot be seen; the list has "
                "one id on each line and nothing else."
            )
        ids.add(key)
    return ids - {""}
