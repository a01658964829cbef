"""Atomic replacement of a results folder, and integrity checks for a gold set's files.

A new folder is written next to the target, synced and renamed. An existing folder is replaced only if it is an earlier
result of the same kind and name, and contains no other files. If a command is killed, the next command that writes to
the same target removes its leftovers.
"""

import fcntl
import glob
import hashlib
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa

from corpora.core.arrow import pq
from corpora.core.languages import learn
from corpora.storage.layout import digest_of, sync
from corpora.system import VERSION, release

# --- manifest.json of a gold set. It contains a digest of its own content, and is accepted only if the digest matches.


FORMAT = 2
VERSIONS = {"assay": VERSION} | {package: version(package) for package in ("django", "pyarrow", "duckdb")}
# A file with the digests of other files in and below its folder, in the format of sha256sum. The manifest then lists
# one digest instead of thousands.
SUMS = "SHA256SUMS"
RESTORE = "Restore it, or export or import the set again."
_KINDS: dict[Any, str] = {bool: "true or false", int: "a number", str: "a string", list: "a list", dict: "an object"}


class GoldSetError(Exception):
    """Raised if a gold set, or a list of ids for it, cannot be used. The message states the reason and what to do."""


def write_with_card(folder: Path, manifest: dict[str, Any], documents: Callable[[], Mapping[str, str]]) -> None:
    """Write README.md, other documents and manifest.json next to a set's files.

    documents: function that returns the text of each document by file name; it is called when the manifest has the
        digests of all other files.
    """
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    listed = set(listed_digests(folder, names))
    manifest["files"] = {name: digest_of(folder / name) for name in names if name not in listed}
    for name, text in documents().items():
        (folder / name).write_text(text, encoding="utf-8")
        manifest["files"][name] = digest_of(folder / name)
    manifest["files"] = dict(sorted(manifest["files"].items()))
    write_manifest(folder, manifest)


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Write manifest.json and add a digest of its content to the manifest."""
    manifest["digest"] = manifest_digest(manifest)
    text = json.dumps(manifest, ensure_ascii=False, indent=2) + "\n"
    (folder / "manifest.json").write_text(text, encoding="utf-8")


def listed_digests(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the digests listed in SHA256SUMS files, as a mapping from file to SHA-256.

    names: files in the folder; only those named SHA256SUMS are read.

    Unreadable SHA256SUMS files are skipped.
    """
    digests: dict[str, str] = {}
    for path in (PurePosixPath(name) for name in names):
        if path.name == SUMS:
            with suppress(OSError, ValueError):
                for line in (folder / path).read_text(encoding="utf-8").splitlines():
                    digest, _, name = line.partition("  ")
                    digests[f"{path.parent / name}"] = digest
    return digests


def manifest_digest(manifest: dict[str, Any]) -> str:
    """Return the SHA-256 digest of a manifest.

    The manifest is hashed without its key `digest`, as ASCII JSON with sorted keys and no spaces.
    """
    content = {key: value for key, value in manifest.items() if key != "digest"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def manifest_of(folder: Path) -> dict[str, Any]:
    """Read the manifest in a folder.

    If the set's task added languages to the built-in languages, they are registered in the running process. Raise
    GoldSetError if the manifest is missing or invalid, or if it was modified.
    """
    if not folder.is_dir():
        raise GoldSetError(
            f"The folder {folder} does not exist. Choose one that export_gold or import_gold has written."
        )
    path = folder / "manifest.json"
    try:
        manifest: dict[str, Any] = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise GoldSetError(
            f"{folder} is not a gold set, because it has no manifest.json. Choose a folder that export_gold or "
            "import_gold has written."
        ) from None
    except (ValueError, RecursionError) as error:
        raise GoldSetError(f"{path} is not JSON. {RESTORE}") from error
    number = get(path, manifest, "format", int)
    if number < FORMAT:
        raise GoldSetError(f"{path} has format {number}, which an earlier version wrote. Export the set again.")
    if number > FORMAT:
        raise GoldSetError(f"{path} has format {number}, but this version reads format {FORMAT}.")
    if manifest.get("digest") != manifest_digest(manifest):
        raise GoldSetError(
            f"{path} was edited, or an earlier version wrote it: its digest does not match its contents. {RESTORE}"
        )
    task = manifest.get("task")
    added = task.get("added_languages") if isinstance(task, dict) else None
    if added and isinstance(added, dict):
        try:
            learn(added)
        except ValueError as error:
            raise GoldSetError(f"The languages that {path} adds cannot be read: {error} {RESTORE}") from error
    return manifest


def original_digest(manifest: Mapping[str, Any]) -> str:
    """Return the manifest's digest before baselines were added to the set.

    It seeds the resampling in evaluations, so predictions get the same intervals with and without baselines.
    """
    return str((manifest.get("baselines") or {}).get("measured_on") or manifest["digest"])


def get(place: Path | str, holder: Any, key: str, kind: type) -> Any:
    """Return a value from an object in a JSON file.

    place: location that error messages name.

    Raise GoldSetError if the key is missing or the value is not of the type `kind`.
    """
    if not isinstance(holder, dict):
        raise GoldSetError(f"{place} is not an object, so it cannot have the key {key!r}. {RESTORE}")
    if key not in holder:
        raise GoldSetError(f"{place} has no key {key!r}. {RESTORE}")
    value = holder[key]
    is_right = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
    # JSON can hold half of a surrogate pair, but such a string cannot be written to a report.
    is_text = kind is str and is_right and not value.isascii()
    if not is_right or (is_text and any("\ud800" <= letter <= "\udfff" for letter in value)):
        raise GoldSetError(f"{place}: {key!r} is not {_KINDS[kind]}. {RESTORE}")
    return value


# Kind of folder -> section of manifest.json with the name of the folder's owner, such as a task or a corpus.
SECTIONS = {
    **{"export": "task", "export of pairs": "pairs", "import": "imported", "evaluation": "evaluated"},
    "copy": "copy",
}


class ExportError(Exception):
    """Raised if a folder cannot be written. The folder is unchanged, and the message states the reason."""


# Names in the temporary folder: the new folder, and the folder that it replaces.
NEW, OLD = "new", "old"


@contextmanager
def replacing(out: Path, kind: str, name: str) -> Iterator[Path]:
    """Yield a new folder that replaces `out` if the block succeeds. If it fails, the new folder is deleted.

    kind: one of SECTIONS.
    name: the owner's name in the manifest.

    Raise ExportError if `out` cannot be written, or if it contains anything but an earlier result of this kind and
    name.
    """
    prefix = f".{out.name}.assay-"
    try:
        _sweep(out, prefix)
        if out.exists():
            _check_replaceable(out, kind, name)
        out.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            temporary = Path(tempfile.mkdtemp(prefix=prefix, dir=out.parent))
            stack.callback(shutil.rmtree, temporary, ignore_errors=True)
            # Continue if the file system has no locks. There, `_sweep` doesn't remove leftover folders.
            with suppress(OSError):
                stack.enter_context(_locked(temporary))
            new, old = temporary / NEW, temporary / OLD
            new.mkdir()
            yield new
            for path in (*new.rglob("*"), new):
                release(path)
                sync(path)
            if out.exists():
                os.replace(out, old)
            try:
                os.replace(new, out)
            except OSError:
                if old.exists():
                    os.replace(old, out)
                raise
        sync(out.parent)
    except OSError as error:
        raise ExportError(
            f"{error.filename or out} cannot be written: {error.strerror}. Nothing was changed."
        ) from error


def _sweep(out: Path, prefix: str) -> None:
    """Remove folders left behind by killed commands. Restore the target if such a command had moved it."""
    for leftover in out.parent.glob(f"{glob.escape(prefix)}*"):
        # Skip the folder if another command is using it, or has just finished.
        with suppress(OSError), _locked(leftover):
            if (leftover / OLD).exists() and not out.exists():
                os.replace(leftover / OLD, out)
            shutil.rmtree(leftover)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder. Raise OSError if another process has the lock, or if the file system has no locks."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _check_replaceable(out: Path, kind: str, name: str) -> None:
    if not out.is_dir():
        raise ExportError(f"{out} is a file. Set --out to a folder.")
    if not any(out.iterdir()):
        return
    try:
        earlier = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
        owner = earlier[SECTIONS[kind]]["name"]
        files = {"manifest.json", *earlier["files"], *listed_digests(out, earlier["files"])}
    except (OSError, ValueError, KeyError, TypeError):
        owner, files = None, set()
    if owner != name:
        raise ExportError(
            f"The folder {out} is not empty and does not contain the {kind} of {name}. Choose another folder."
        )
    # The folder is replaced as a whole, so files that are not part of the earlier result would be lost.
    expected = {PurePosixPath(file) for file in files}
    expected |= {parent for file in expected for parent in file.parents}
    present = {PurePosixPath(path.relative_to(out).as_posix()) for path in out.rglob("*")}
    if unexpected := sorted(str(path) for path in present - expected if path.parent in expected):
        names = ", ".join(unexpected)
        raise ExportError(
            f"{out} contains files that are not part of the {kind}: {names}. Move them, or choose another folder."
        )


# --- Modifications to the files of a gold set since it was written
#
# The checks distinguish erased rows from changed rows. If a post has vanished from its source, or somebody requests its
# erasure, it may be removed from the files by hand, and the rest of the set stays valid. If a label was changed,
# however, the set is worthless. gold.digests.txt, which contains no ids or texts, makes the distinction possible.


DIGESTS = ".digests.txt"  # replaces .jsonl in gold.jsonl or gold.unfinished.jsonl
NAMED = 5  # lines listed in an error


def line_digest(line: bytes) -> str:
    """Return the entry in gold.digests.txt for a line of gold.jsonl.

    The entry is the first 16 hex digits of the SHA-256 of the line without its newline.
    """
    return hashlib.sha256(line.removesuffix(b"\n")).hexdigest()[:16]


def write_digests(jsonl: Path) -> None:
    """Write the digests of the lines of gold.jsonl.

    The digests are sorted, so their order reveals nothing to a person without gold.jsonl. They are kept in memory as
    bytes, because a set may have millions of rows.
    """
    with jsonl.open("rb") as lines:
        digests = b"".join(hashlib.sha256(line.removesuffix(b"\n")).digest()[:8] for line in lines)
    text = np.sort(np.frombuffer(digests, ">u8")).tobytes().hex("\n", 8)
    jsonl.with_suffix(DIGESTS).write_text(f"{text}\n" if text else "", encoding="ascii", newline="\n")


def find_changes(folder: Path, files: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the names of the changed files and the names of the missing files.

    Raise GoldSetError if the manifest lists a path that cannot be a file in the folder.
    """
    changed, missing = [], []
    for name, digest in {**files, **listed_digests(folder, files)}.items():
        if not name.isprintable() or Path(name).is_absolute() or {"", ".", ".."} & set(name.split("/")):
            raise GoldSetError(f"{folder / 'manifest.json'} lists {name!r}, which is not a file in the folder.")
        try:
            if digest_of(folder / name) != digest:
                changed.append(name)
        except FileNotFoundError:
            missing.append(name)
    return changed, missing


def count_erased(jsonl: Path, files: dict[str, Any], changed: list[str], missing: list[str], allow_erased: bool) -> int:
    """Return the number of rows that were erased from gold.jsonl.

    Raise GoldSetError if the file was changed in any other way, if it or its digests are missing, or if rows were
    erased and `allow_erased` is false.
    """
    digests = jsonl.with_suffix(DIGESTS).name
    for name in (jsonl.name, digests):
        if name in missing:
            raise GoldSetError(f"{jsonl.parent / name} is missing. {RESTORE}")
    if jsonl.name not in changed:
        return 0
    if digests in changed or digests not in files:
        raise GoldSetError(
            f"{jsonl} and {digests}, which has a digest of each line, were both changed after the export. {RESTORE}"
        )
    altered, gone = _compare_lines(jsonl, Counter((jsonl.parent / digests).read_text(encoding="ascii").split()))
    if altered:
        raise GoldSetError(f"{jsonl} was edited: {_quote_lines(altered)} altered or added after the export. {RESTORE}")
    if not gone:
        raise GoldSetError(
            f"{jsonl} was edited: its lines are unchanged, but their order or the empty lines between them are not. "
            f"{RESTORE}"
        )
    if not allow_erased:
        erased = "1 row was" if gone == 1 else f"{gone:,} rows were"
        raise GoldSetError(
            f"{erased} erased from {jsonl} after the export. The other rows are unchanged. Add --allow-erased to "
            "continue without the erased rows; the result states their number by label."
        )
    return gone


def _compare_lines(jsonl: Path, expected: Counter[str]) -> tuple[list[int], int]:
    """Return the line numbers of altered or added lines, and the number of lines that are missing.

    expected: digests of the lines as they were written.
    """
    altered = []
    with jsonl.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            # An erased row may have left an empty line.
            if line.isspace():
                continue
            digest = line_digest(line)
            if expected[digest]:
                expected[digest] -= 1
            else:
                altered.append(number)
    return altered, expected.total()


def _quote_lines(lines: list[int]) -> str:
    if len(lines) == 1:
        return f"line {lines[0]:,} was"
    numbers = ", ".join(f"{number:,}" for number in lines[:NAMED])
    others = f" and {len(lines) - NAMED:,} more" if len(lines) > NAMED else ""
    return f"lines {numbers}{others} were"


def check_other_files(
    jsonl: Path, changed: list[str], missing: list[str], pairs: Counter[tuple[str, str]], gone: int
) -> None:
    """Check that the set's other files are unchanged or consistent with gold.jsonl.

    If rows were erased from gold.jsonl, the other files must lack the same rows, or be deleted.

    changed, missing: names of changed and missing files.
    pairs: (label, id) pairs of the rows that are present.
    gone: number of erased rows.

    Raise GoldSetError if a file fails these checks.
    """
    folder = jsonl.parent
    for name in changed:
        path = folder / name
        if name != jsonl.name and not (gone and pairs_of(path) == pairs):
            raise GoldSetError(
                f"{path} was changed after the export: its digest differs from the one in manifest.json. {RESTORE}"
            )
    if missing and not gone:
        raise GoldSetError(f"{folder / missing[0]} is missing. {RESTORE}")


def pairs_of(path: Path) -> Counter[tuple[str, str]] | None:
    """Return the (label, id) pairs of a .tsv or Parquet file, or None if the file has a different format."""
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
