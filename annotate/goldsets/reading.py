"""Gold sets on disk, as export_gold and import_gold write them: read to be evaluated against, and checked for edits.

Rows that are merely gone are told apart from rows that were changed. A post that has vanished from its source, or
that somebody wants erased, may be taken out of the files by hand, and the set stays good for the rest; a changed
label makes it worthless. gold.digests.txt, which holds no ids and no text, makes the difference.
"""

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from corpora import store

DESIGNS = ("uniform", "recall", "precision")
RECORDS = "records"
FORMAT = 2
DIGESTS = ".digests.txt"  # of gold.jsonl or gold.unfinished.jsonl, in place of .jsonl
# How a post of a uniform set came to its label, and whether the detectors agreed on one.
STRATA = {"agreed": True, "audited": True, "contested": True, "disputed": False}
NAMED = 5  # lines that an error names

_RESTORE = "Restore it, or export or import the set again."
_KINDS: dict[Any, str] = {bool: "true or false", int: "a number", str: "a string", list: "a list", dict: "an object"}


class GoldSetError(Exception):
    """The gold set, or a list that goes with it, cannot be used; one sentence that says why and what to do."""


@dataclass(frozen=True, slots=True)
class GoldRow:
    """A post and its true label. asked: the X of "Is this X?"; "" where there is none, as for stratum and agreed."""

    id: str
    label: str
    asked: str
    stratum: str
    agreed: str


@dataclass(frozen=True)
class GoldSet:
    folder: Path
    name: str
    design: str
    finished: bool
    predictors: dict[str, str]  # language -> the predictor its posts were drawn by; empty for uniform and imported sets
    voted: frozenset[str]  # the detectors whose agreement is a label here, and their majority
    corpus: str  # "" where the set was imported
    frame_size: int | None  # posts that a uniform set was drawn from, where it is known
    audit: dict[str, Any] | None
    digest: str  # SHA-256 of gold.jsonl as it was written
    rows: list[GoldRow]
    erased: Counter[str]  # label -> rows that are gone since


def line_digest(line: bytes | str) -> str:
    """What gold.digests.txt has for a line of gold.jsonl: 16 hex digits of the SHA-256 of it without its newline."""
    content = line.encode() if isinstance(line, str) else line
    return hashlib.sha256(content.removesuffix(b"\n")).hexdigest()[:16]


def write_digests(jsonl: Path, out: Path) -> None:
    """The digests of the lines of a gold.jsonl, sorted: nothing is told of a line to those who do not have it."""
    with jsonl.open("rb") as lines:
        digests = sorted(map(line_digest, lines))
    with out.open("w", encoding="ascii", newline="\n") as file:
        file.writelines(f"{digest}\n" for digest in digests)


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Write manifest.json, with a digest of all else that it says added to the manifest."""
    manifest["digest"] = manifest_digest(manifest)
    text = json.dumps(manifest, ensure_ascii=False, indent=2) + "\n"
    (folder / "manifest.json").write_text(text, encoding="utf-8")


def manifest_digest(manifest: dict[str, Any]) -> str:
    """SHA-256 of a manifest without its digest, as JSON in ASCII with sorted keys and no spaces."""
    rest = {key: value for key, value in manifest.items() if key != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def read_gold_set(folder: Path, *, allow_erased: bool = False) -> GoldSet:
    """The gold set in a folder. Rows erased since it was written are counted where allowed.

    GoldSetError where it is none, or is not as it was written: a file that is changed or missing, counts that do not
    fit, and, unless they are allowed, erased rows.
    """
    try:
        return _read(folder, allow_erased)
    except OSError as error:
        raise GoldSetError(f"{error.filename or folder} cannot be read: {error.strerror}.") from error


def _read(folder: Path, allow_erased: bool) -> GoldSet:
    manifest = manifest_of(folder)
    place = folder / "manifest.json"
    finished = _get(place, manifest, "finished", bool)
    design = _get(place, manifest, "design", str)
    if design == RECORDS:
        raise GoldSetError(
            f"{folder} is a set of records, which predictions are measured on that are in XGLUE's files; name their "
            "folder with --predictions, and no predictor."
        )
    if design not in DESIGNS:
        raise GoldSetError(f"{place} has the design {design!r}, which is none of {', '.join(DESIGNS)}.")
    files = _get(place, manifest, "files", dict)
    jsonl = folder / ("gold.jsonl" if finished else "gold.unfinished.jsonl")
    if jsonl.name not in files:
        raise GoldSetError(f"{place} names no {jsonl.name} among its files. {_RESTORE}")
    changed, missing = differing(folder, files)
    gone = _gone(jsonl, files, changed, missing, allow_erased)
    rows = list(_rows(jsonl))
    _check_others(jsonl, changed, missing, rows, gone)
    draws = _get(place, manifest, "draws", list)
    imported = manifest.get("imported") is not None
    corpus = None if imported or manifest.get("corpus") is None else _get(place, manifest, "corpus", dict)
    return GoldSet(
        folder=folder,
        name=_get(place, _get(place, manifest, "imported" if imported else "task", dict), "name", str),
        design=design,
        finished=finished,
        predictors={
            _get(place, draw, "language", str): _get(place, draw, "predictor", str)
            for draw in draws
            if design != "uniform"
        },
        voted=_voted(place, _get(place, manifest, "detectors", list)),
        corpus=_get(place, corpus, "name", str) if corpus is not None else "",
        frame_size=_get(place, draws[0], "frame_size", int) if design == "uniform" and len(draws) == 1 else None,
        audit=None if manifest.get("audit") is None else _get(place, manifest, "audit", dict),
        digest=files[jsonl.name],
        rows=rows,
        erased=_erased(jsonl, _get(place, _get(place, manifest, "counts", dict), "by_label", dict), rows, gone),
    )


def manifest_of(folder: Path) -> dict[str, Any]:
    """manifest.json of a folder, as it was written. GoldSetError where it is none, or was changed."""
    if not folder.is_dir():
        raise GoldSetError(f"There is no folder {folder}; name one that export_gold or import_gold has written.")
    path = folder / "manifest.json"
    try:
        manifest = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise GoldSetError(
            f"{folder} is no gold set, since it has no manifest.json; name a folder that export_gold or import_gold "
            "has written."
        ) from None
    except (ValueError, RecursionError) as error:
        raise GoldSetError(f"{path} is not JSON. {_RESTORE}") from error
    found = _get(path, manifest, "format", int)
    if found < FORMAT:
        raise GoldSetError(f"{path} is of format {found}, which an earlier version wrote; export the set again.")
    if found > FORMAT:
        raise GoldSetError(f"{path} is of format {found}; this version reads format {FORMAT}.")
    if manifest.get("digest") != manifest_digest(manifest):
        raise GoldSetError(
            f"{path} was edited by hand, or is of an earlier version: it does not have the digest of what it says. "
            f"{_RESTORE}"
        )
    return manifest


def _get(place: Path | str, holder: Any, key: str, kind: type) -> Any:
    """A value of an object in a file, known to be of a kind. GoldSetError with the place where it is not."""
    if not isinstance(holder, dict):
        raise GoldSetError(f"{place}: where {key!r} is looked for there is no object. {_RESTORE}")
    if key not in holder:
        raise GoldSetError(f"{place} has no key {key!r}. {_RESTORE}")
    value = holder[key]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)) or not _is_text(value):
        raise GoldSetError(f"{place}: {key!r} is not {_KINDS[kind]}. {_RESTORE}")
    return value


def _is_text(value: Any) -> bool:
    """False for half of a surrogate pair, which JSON can hold and no report can be written with."""
    return not isinstance(value, str) or not any("\ud800" <= letter <= "\udfff" for letter in value)


def _voted(place: Path, detectors: list[Any]) -> frozenset[str]:
    if not all(isinstance(versions, dict) for versions in detectors):
        raise GoldSetError(f"{place}: 'detectors' is not a list of objects. {_RESTORE}")
    voted = {detector for versions in detectors for detector in versions}
    return frozenset(voted | {"majority"} if voted else ())


# --- what was changed since the set was written


def differing(folder: Path, files: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The names of the files that are not as they were written, and of those that are not there."""
    changed, missing = [], []
    for name, digest in files.items():
        if Path(name).name != name or not name.isprintable():
            raise GoldSetError(f"{folder / 'manifest.json'} names {name!r}, which is no file of the folder.")
        try:
            if store.digest_of(folder / name) != digest:
                changed.append(name)
        except FileNotFoundError:
            missing.append(name)
    return changed, missing


def _gone(jsonl: Path, files: dict[str, Any], changed: list[str], missing: list[str], allow_erased: bool) -> int:
    """How many rows are gone from gold.jsonl since it was written. GoldSetError where more was done to it."""
    digests = jsonl.with_suffix(DIGESTS).name
    for name in (jsonl.name, digests):
        if name in missing:
            raise GoldSetError(f"{jsonl.parent / name} is missing. {_RESTORE}")
    if jsonl.name not in changed:
        return 0
    if digests in changed or digests not in files:
        raise GoldSetError(
            f"{jsonl} was changed since it was written, and {digests}, which would tell its lines, is not as it was "
            f"written either. {_RESTORE}"
        )
    expected = Counter((jsonl.parent / digests).read_text(encoding="ascii").split())
    altered = []
    with jsonl.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            # An editor may leave the line of an erased row empty.
            if line.isspace():
                continue
            digest = line_digest(line)
            if expected[digest]:
                expected[digest] -= 1
            else:
                altered.append(number)
    if altered:
        raise GoldSetError(
            f"{jsonl} was edited by hand: {_numbered(altered)} altered or added since the set was written. {_RESTORE}"
        )
    gone = expected.total()
    if not gone:
        raise GoldSetError(
            f"{jsonl} was edited by hand: its lines are those that were written, but their order or the empty lines "
            f"between them are not. {_RESTORE}"
        )
    if not allow_erased:
        erased = "1 row was" if gone == 1 else f"{gone:,} rows were"
        raise GoldSetError(
            f"{erased} erased from {jsonl} since it was written; the others are unchanged. "
            "Pass --allow-erased to go on without, counted by label."
        )
    return gone


def _numbered(lines: list[int]) -> str:
    if len(lines) == 1:
        return f"line {lines[0]:,} was"
    named = ", ".join(f"{number:,}" for number in lines[:NAMED])
    more = f" and {len(lines) - NAMED:,} more" if len(lines) > NAMED else ""
    return f"lines {named}{more} were"


def _check_others(jsonl: Path, changed: list[str], missing: list[str], rows: list[GoldRow], gone: int) -> None:
    """GoldSetError where another file is not as it was written.

    Whoever erases rows does so in the other files too, or removes those that cannot be edited.
    """
    folder, pairs = jsonl.parent, Counter((row.label, row.id) for row in rows)
    for name in changed:
        path = folder / name
        if name != jsonl.name and not (gone and _pairs(path) == pairs):
            raise GoldSetError(
                f"{path} is not as it was written: its digest is not the one in manifest.json. {_RESTORE}"
            )
    if missing and not gone:
        raise GoldSetError(f"{folder / missing[0]} is missing. {_RESTORE}")


def _pairs(path: Path) -> Counter[tuple[str, str]] | None:
    """(label, id) of each row of the published file or of the Parquet one; None where it is neither."""
    try:
        if path.suffix == ".tsv":
            lines = path.read_text(encoding="utf-8").split("\n")
            return Counter((line.partition("\t")[0], line.partition("\t")[2]) for line in lines if line)
        if path.suffix == ".parquet":
            table = pq.read_table(path, columns=["label", "id"])
            return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))
    except (ValueError, pa.ArrowException):
        return None
    return None


def _erased(jsonl: Path, by_label: dict[str, Any], rows: list[GoldRow], gone: int) -> Counter[str]:
    """Label -> rows that are gone: what the manifest counts and the file does not have."""
    counted = Counter({label: _get(jsonl.parent / "manifest.json", by_label, label, int) for label in by_label})
    present = Counter(row.label for row in rows)
    if present - counted or (counted - present).total() != gone:
        raise GoldSetError(
            f"The counts by label in {jsonl.parent / 'manifest.json'} are not those of {jsonl.name}. {_RESTORE}"
        )
    return counted - present


# --- rows and lists


def _rows(jsonl: Path) -> Iterator[GoldRow]:
    with jsonl.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.isspace():
                continue
            place = f"{jsonl}, line {number:,}"
            try:
                raw = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise GoldSetError(f"{place} is not JSON. {_RESTORE}") from error
            yield _row(place, raw)


def _row(place: str, raw: Any) -> GoldRow:
    key, label = _get(place, raw, "id", str), _get(place, raw, "label", str)
    asked, stratum, agreed = (
        "" if raw.get(field) is None and field in raw else _get(place, raw, field, str)
        for field in ("asked", "stratum", "agreed")
    )
    if not key or not label:
        raise GoldSetError(f"{place} has an empty id or label. {_RESTORE}")
    if stratum and STRATA.get(stratum) is not bool(agreed):
        raise GoldSetError(
            f"{place} has the stratum {stratum!r} with the detectors' label {agreed!r}, which do not go together. "
            f"{_RESTORE}"
        )
    return GoldRow(key, *map(sys.intern, (label, asked, stratum, agreed)))


def read_ids(path: Path) -> set[str]:
    """A list of ids, such as of vanished posts: one a line, blank lines aside; a # is part of an id.

    GoldSetError where it cannot be read as such.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise GoldSetError(f"{path} cannot be read: {error.strerror}.") from error
    ids = set()
    for number, line in enumerate(content.split(b"\n"), 1):
        try:
            key = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError:
            raise GoldSetError(f"{path}, line {number:,} is not UTF-8; save the list as UTF-8.") from None
        if not key.isprintable():
            raise GoldSetError(
                f"{path}, line {number:,} holds a tab, a NUL or another character that cannot be seen; the list has "
                "one id a line and nothing else."
            )
        ids.add(key)
    return ids - {""}
