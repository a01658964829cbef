"""What was done to the files of a gold set since it was written.

Rows that are merely gone are told apart from rows that were changed. A post that has vanished from its source, or that
somebody wants erased, may be taken out of the files by hand, and the rest of the set stays good; a changed label makes
it worthless. gold.digests.txt, which holds no ids and no text, tells the two apart.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from annotate.goldsets.manifest import RESTORE, GoldSetError, summed
from corpora.storage.layout import digest_of

DIGESTS = ".digests.txt"  # of gold.jsonl or gold.unfinished.jsonl, in place of .jsonl
NAMED = 5  # lines that an error names


def line_digest(line: bytes | str) -> str:
    """What gold.digests.txt has for a line of gold.jsonl: 16 hex digits of the line's SHA-256, without its newline."""
    return digests_of([line.encode() if isinstance(line, str) else line]).hex()


def digests_of(lines: Iterable[bytes]) -> bytes:
    """The same of many lines, 8 bytes of each: a set may have millions, and only these are in memory."""
    return b"".join(hashlib.sha256(line.removesuffix(b"\n")).digest()[:8] for line in lines)


def write_digests(digests: bytes, out: Path) -> None:
    """Write the digests of the lines of a gold.jsonl, sorted, so that they tell nothing of a line to people who do not
    have it.
    """
    told = np.sort(np.frombuffer(digests, ">u8")).tobytes().hex("\n", 8)
    out.write_text(f"{told}\n" if told else "", encoding="ascii", newline="\n")


def differing(folder: Path, files: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The names of the files that are not as they were written, and of those that are missing."""
    changed, missing = [], []
    for name, digest in {**files, **summed(folder, files)}.items():
        if not name.isprintable() or Path(name).is_absolute() or {"", ".", ".."} & set(name.split("/")):
            raise GoldSetError(f"{folder / 'manifest.json'} names {name!r}, which is not a file of the folder.")
        try:
            if digest_of(folder / name) != digest:
                changed.append(name)
        except FileNotFoundError:
            missing.append(name)
    return changed, missing


def gone_from(jsonl: Path, files: dict[str, Any], changed: list[str], missing: list[str], allow_erased: bool) -> int:
    """How many rows are gone from gold.jsonl since it was written. GoldSetError where more was done to it."""
    digests = jsonl.with_suffix(DIGESTS).name
    for name in (jsonl.name, digests):
        if name in missing:
            raise GoldSetError(f"{jsonl.parent / name} is missing. {RESTORE}")
    if jsonl.name not in changed:
        return 0
    if digests in changed or digests not in files:
        raise GoldSetError(
            f"{jsonl} was changed since it was written, and {digests}, which would tell its lines, is not as it was "
            f"written either. {RESTORE}"
        )
    altered, gone = _compared(jsonl, Counter((jsonl.parent / digests).read_text(encoding="ascii").split()))
    if altered:
        raise GoldSetError(
            f"{jsonl} was edited by hand: {_numbered(altered)} altered or added since the set was written. {RESTORE}"
        )
    if not gone:
        raise GoldSetError(
            f"{jsonl} was edited by hand: its lines are those that were written, but their order or the empty lines "
            f"between them are not. {RESTORE}"
        )
    if not allow_erased:
        erased = "1 row was" if gone == 1 else f"{gone:,} rows were"
        raise GoldSetError(
            f"{erased} erased from {jsonl} since it was written; the others are unchanged. "
            "Pass --allow-erased to go on without them, counted by label."
        )
    return gone


def _compared(jsonl: Path, expected: Counter[str]) -> tuple[list[int], int]:
    """The lines that match none of the expected digests, and how many digests match no line."""
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
    return altered, expected.total()


def _numbered(lines: list[int]) -> str:
    if len(lines) == 1:
        return f"line {lines[0]:,} was"
    named = ", ".join(f"{number:,}" for number in lines[:NAMED])
    more = f" and {len(lines) - NAMED:,} more" if len(lines) > NAMED else ""
    return f"lines {named}{more} were"


def check_others(
    jsonl: Path, changed: list[str], missing: list[str], pairs: Counter[tuple[str, str]], gone: int
) -> None:
    """GoldSetError if another file is not as it was written. pairs: (label, id) of the rows that are there.

    A person who erases rows must erase them in the other files too, or remove the files that cannot be edited.
    """
    folder = jsonl.parent
    for name in changed:
        path = folder / name
        if name != jsonl.name and not (gone and pairs_of(path) == pairs):
            raise GoldSetError(
                f"{path} is not as it was written: its digest is not the one in manifest.json. {RESTORE}"
            )
    if missing and not gone:
        raise GoldSetError(f"{folder / missing[0]} is missing. {RESTORE}")


def pairs_of(path: Path) -> Counter[tuple[str, str]] | None:
    """(label, id) of each row of the published file or of the Parquet one; None if it is neither."""
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
