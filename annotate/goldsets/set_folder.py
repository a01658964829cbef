"""A folder of results that takes its place as a whole: written beside it, synced, renamed.

An existing folder is replaced only if it is an earlier one of the same kind and name and holds nothing else. What a
command that was killed has left beside it is put away by the next one that writes there.
"""

import fcntl
import glob
import hashlib
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpora.core.language_codes import learn
from corpora.storage.layout import digest_of, sync
from corpora.system import VERSION, release

# --- manifest.json of a gold set: it is written with a digest of its contents, and read back only if the digest still
# fits.


FORMAT = 2
VERSIONS = {"assay": VERSION} | {package: version(package) for package in ("django", "pyarrow", "duckdb")}
# A file with the digests of others in and below its folder, as sha256sum writes and checks it: of thousands of files
# the manifest has this one digest.
SUMS = "SHA256SUMS"
RESTORE = "Restore it, or export or import the set again."
_KINDS: dict[Any, str] = {bool: "true or false", int: "a number", str: "a string", list: "a list", dict: "an object"}


class GoldSetError(Exception):
    """The gold set, or a list that goes with it, cannot be used; one sentence says why and what to do."""


def write_with_card(folder: Path, manifest: dict[str, Any], card: Callable[[], str]) -> None:
    """Write README.md and manifest.json beside a set's files. card: made once the manifest has their digests."""
    there = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    listed = set(summed(folder, there))
    manifest["files"] = {name: digest_of(folder / name) for name in there if name not in listed}
    (folder / "README.md").write_text(card(), encoding="utf-8")
    manifest["files"] = dict(sorted({**manifest["files"], "README.md": digest_of(folder / "README.md")}.items()))
    write_manifest(folder, manifest)


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Write manifest.json, and add a digest of all its other contents to the manifest."""
    manifest["digest"] = manifest_digest(manifest)
    text = json.dumps(manifest, ensure_ascii=False, indent=2) + "\n"
    (folder / "manifest.json").write_text(text, encoding="utf-8")


def summed(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The files that a set has beside these names, by the lists of digests among them: name -> SHA-256; of a list that
    is missing or cannot be read none."""
    found: dict[str, str] = {}
    for path in (PurePosixPath(name) for name in names):
        if path.name == SUMS:
            with suppress(OSError, ValueError):
                lines = (folder / path).read_text(encoding="utf-8").splitlines()
                found |= {f"{path.parent / name}": digest for digest, _, name in (x.partition("  ") for x in lines)}
    return found


def manifest_digest(manifest: dict[str, Any]) -> str:
    """SHA-256 of a manifest without its digest, as JSON in ASCII with sorted keys and no spaces."""
    rest = {key: value for key, value in manifest.items() if key != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def manifest_of(folder: Path) -> dict[str, Any]:
    """manifest.json of a folder, as it was written. GoldSetError if it is not a manifest, or was changed.

    From then on, the languages that its task had added have names in this process.
    """
    if not folder.is_dir():
        raise GoldSetError(f"There is no folder {folder}; name one that export_gold or import_gold has written.")
    path = folder / "manifest.json"
    try:
        manifest = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise GoldSetError(
            f"{folder} is not a gold set, since it has no manifest.json; name a folder that export_gold or import_gold "
            "has written."
        ) from None
    except (ValueError, RecursionError) as error:
        raise GoldSetError(f"{path} is not JSON. {RESTORE}") from error
    found = get(path, manifest, "format", int)
    if found < FORMAT:
        raise GoldSetError(f"{path} is of format {found}, which an earlier version wrote; export the set again.")
    if found > FORMAT:
        raise GoldSetError(f"{path} is of format {found}; this version reads format {FORMAT}.")
    if manifest.get("digest") != manifest_digest(manifest):
        raise GoldSetError(
            f"{path} was edited by hand, or is of an earlier version: its digest does not fit its contents. {RESTORE}"
        )
    task = manifest.get("task")
    added = task.get("added_languages") if isinstance(task, dict) else None
    if added and isinstance(added, dict):
        try:
            learn(added)
        except ValueError as error:
            raise GoldSetError(f"{path} adds languages that cannot be read: {error} {RESTORE}") from error
    return manifest


def get(place: Path | str, holder: Any, key: str, kind: type) -> Any:
    """A value of an object in a file, checked to be of a kind. Otherwise GoldSetError with the place."""
    if not isinstance(holder, dict):
        raise GoldSetError(f"{place}: there is no object that could have the key {key!r}. {RESTORE}")
    if key not in holder:
        raise GoldSetError(f"{place} has no key {key!r}. {RESTORE}")
    value = holder[key]
    is_right = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
    # Half of a surrogate pair can stand in JSON, but no report can be written with it.
    is_text = kind is str and is_right and not value.isascii()
    if not is_right or (is_text and any("\ud800" <= letter <= "\udfff" for letter in value)):
        raise GoldSetError(f"{place}: {key!r} is not {_KINDS[kind]}. {RESTORE}")
    return value


# Kind of folder -> the section of its manifest.json that says whose it is.
SECTIONS = {"export": "task", "export of pairs": "pairs", "import": "imported", "evaluation": "evaluated"}


class ExportError(Exception):
    """The folder cannot be written; the sentence says why. It is as it was."""


# In the folder beside: what is written, and what it takes the place of.
NEW, OLD = "new", "old"


@contextmanager
def replacing(out: Path, kind: str, name: str) -> Iterator[Path]:
    """A new folder to write into, which becomes `out` if the block ends well; otherwise nothing is left of it.

    ExportError if `out` holds something other than an earlier one of that kind and name, or cannot be written.
    """
    prefix = f".{out.name}.assay-"
    try:
        _sweep(out, prefix)
        if out.exists():
            _check_replaceable(out, kind, name)
        out.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            ours = Path(tempfile.mkdtemp(prefix=prefix, dir=out.parent))
            stack.callback(shutil.rmtree, ours, ignore_errors=True)
            # Where there are no locks, what is left is not put away either.
            with suppress(OSError):
                stack.enter_context(_locked(ours))
            partial = ours / NEW
            partial.mkdir()
            yield partial
            for path in (*partial.rglob("*"), partial):
                release(path)
                sync(path)
            is_there = out.exists()
            if is_there:
                os.replace(out, ours / OLD)
            try:
                os.replace(partial, out)
            except OSError:
                if is_there:
                    os.replace(ours / OLD, out)
                raise
        sync(out.parent)
    except OSError as error:
        raise ExportError(
            f"{error.filename or out} cannot be written: {error.strerror}. Nothing was changed."
        ) from error


def _sweep(out: Path, prefix: str) -> None:
    """Remove what a command that was killed has left; what it had put aside without anything in its place goes back."""
    for left in out.parent.glob(f"{glob.escape(prefix)}*"):
        # Not while another command is at work there, or has just ended.
        with suppress(OSError), _locked(left):
            if (left / OLD).exists() and not out.exists():
                os.replace(left / OLD, out)
            shutil.rmtree(left)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """OSError if somebody else has it, or the file system knows no locks."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _check_replaceable(out: Path, kind: str, name: str) -> None:
    if not out.is_dir():
        raise ExportError(f"{out} is a file; --out must name a folder.")
    if not any(out.iterdir()):
        return
    try:
        earlier = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
        whose = earlier[SECTIONS[kind]]["name"]
        files = {"manifest.json", *earlier["files"], *summed(out, earlier["files"])}
    except (OSError, ValueError, KeyError, TypeError):
        whose, files = None, set()
    if whose != name:
        raise ExportError(f"{out} holds something other than an {kind} of {name}; choose another folder.")
    # The folder is replaced as a whole, and anything that people have put beside its files would be lost.
    known = {PurePosixPath(file) for file in files}
    known |= {parent for file in known for parent in file.parents}
    there = {PurePosixPath(path.relative_to(out).as_posix()) for path in out.rglob("*")}
    if strangers := sorted(str(path) for path in there - known if path.parent in known):
        named = ", ".join(strangers)
        raise ExportError(
            f"{out} holds files that are not part of the {kind}: {named}. Move it away, or choose another folder."
        )


# --- What was done to the files of a gold set since it was written.
#
# Rows that are merely gone are told apart from rows that were changed. A post that has vanished from its source, or
# that somebody wants erased, may be taken out of the files by hand, and the rest of the set stays good; a changed
# label makes it worthless. gold.digests.txt, which holds no ids and no text, tells the two apart.


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
