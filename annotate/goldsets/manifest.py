"""manifest.json of a gold set: it is written with a digest of its contents, and read back only if the digest
still fits.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from corpora.core.language_codes import learn
from corpora.storage.layout import digest_of

FORMAT = 2
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
