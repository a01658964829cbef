"""Corpora that several servers share in object storage (the setting CORPORA).

    CORPORA/<name>.json         the manifest of a corpus, and the digest of each of its files
            <name>/<SHA-256>    the files

A corpus is published by writing its JSON object after all its files, so an interrupted upload is never visible. Files
are never overwritten with different content. Each server copies a corpus to its folder when it first opens it, and
keeps a copy of the JSON object in `published` as a record of the folder's content.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from corpora.core import CorpusError

PUBLISHED = "published"
_SUFFIX = ".json"


@cache
def _open_file_system(address: str, process: int) -> tuple[Any, str]:
    """Return the file system and the path for an address such as s3://bucket/prefix.

    process: id of this process; part of the cache key, because clients don't work in forked processes
    """
    from pyarrow import fs  # imported here because it takes 50 ms, and few installations use it

    file_system, path = fs.FileSystem.from_uri(address)
    return file_system, path.rstrip("/")


@contextmanager
def _explain_errors(doing: str) -> Iterator[tuple[Any, str]]:
    """Yield the file system and the path for the setting CORPORA. Convert errors to one-line CorpusErrors."""
    try:
        yield _open_file_system(settings.CORPORA, os.getpid())
    except (OSError, ValueError) as error:  # ArrowInvalid is a ValueError
        reason = str(error).split("\n")[0].rstrip(". ")
        raise CorpusError(
            f"Object storage failed while {doing}: {reason}. Check ASSAY_CORPORA, the credentials in the environment "
            "(AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY), the network and the free disk space."
        ) from error


def names() -> list[str]:
    """Return the names of the published corpora."""
    from pyarrow.fs import FileSelector

    with _explain_errors("listing corpora") as (store, root):
        entries = store.get_file_info(FileSelector(root, allow_not_found=True))
    return sorted(entry.base_name.removesuffix(_SUFFIX) for entry in entries if entry.base_name.endswith(_SUFFIX))


def _published(name: str) -> bytes | None:
    """Download the JSON object of a corpus. Return None if it is not published."""
    with _explain_errors(f"reading the manifest of corpus {name}") as (store, root):
        try:
            with store.open_input_stream(f"{root}/{name}{_SUFFIX}") as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None


def _local_copy(directory: Path) -> bytes | None:
    """Return the JSON object that was last published from a folder or fetched into it; None if there is none."""
    with suppress(FileNotFoundError):
        return (directory / PUBLISHED).read_bytes()
    return None


def _parse(name: str, content: bytes | None) -> tuple[dict[str, Any], dict[str, str]]:
    """Parse a corpus's JSON object. Return its manifest, and its files' digests by path in the corpus's folder."""
    if content is None:
        return {}, {}
    try:
        parsed = json.loads(content)
        manifest, files = parsed["manifest"], dict(parsed["files"])
        is_valid = all(re.fullmatch(r"[a-z_]+/\w[\w.-]*", path) for path in files)
    except (KeyError, TypeError, ValueError):
        is_valid = False
    if not is_valid:
        raise CorpusError(f"{name}{_SUFFIX} in object storage was changed. Restore it, or publish the corpus again.")
    return manifest, files


def manifest_bytes(name: str, directory: Path) -> bytes:
    """Return the published manifest of a corpus, or the manifest in its folder if it was never published.

    Raise FileNotFoundError if there is none.
    """
    if (content := _published(name)) is not None:
        return json.dumps(_parse(name, content)[0]).encode()
    if (directory / PUBLISHED).exists():
        raise FileNotFoundError(f"Corpus {name} was deleted on another server.")
    return (directory / "manifest.json").read_bytes()


def is_current(name: str, directory: Path) -> bool:
    """Return whether a corpus's folder is up to date with object storage."""
    return _published(name) == _local_copy(directory)


def fetch(name: str, directory: Path) -> None:
    """Copy the published files of a corpus to its folder. The caller must hold the folder's lock.

    Raise CorpusError if a file cannot be read or doesn't match its digest.
    """
    content = _published(name)
    if content is None and (directory / PUBLISHED).exists():  # another server deleted the corpus
        (directory / "manifest.json").unlink(missing_ok=True)
        (directory / PUBLISHED).unlink()
    if content is None or content == (local := _local_copy(directory)):
        return
    manifest, files = _parse(name, content)
    old = _parse(name, local)[1]
    for path, digest in files.items():
        if old.get(path) != digest:
            _download(name, digest, directory / path)
    _write(directory / "manifest.json", json.dumps(manifest, ensure_ascii=False, indent=1).encode() + b"\n")
    _write(directory / PUBLISHED, content)


def _download(name: str, digest: str, path: Path) -> None:
    from pyarrow.fs import LocalFileSystem, copy_files

    if path.exists() and _synced_digest(path) == digest:
        return
    path.parent.mkdir(exist_ok=True)
    draft = path.with_name(f".{path.name}.new")
    with _explain_errors(f"copying corpus {name}") as (store, root):
        copy_files(f"{root}/{name}/{digest}", str(draft), store, LocalFileSystem())
        if _synced_digest(draft) != digest:
            draft.unlink()
            raise CorpusError(
                f"{path.parent.name}/{path.name} of corpus {name} was changed in object storage ({name}/{digest}). "
                "Restore this object from a backup."
            )
        draft.replace(path)


def _synced_digest(path: Path) -> str:
    with path.open("rb") as file:
        os.fsync(file.fileno())
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(path: Path, content: bytes) -> None:
    draft = path.with_name("manifest.draft")
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def publish(name: str, directory: Path, manifest: dict[str, Any], paths: Iterable[str]) -> None:
    """Upload the new files of a corpus, and then its manifest. The caller must hold the folder's lock.

    paths: paths of the manifest's files in the corpus's folder

    Raise CorpusError if another server has published the corpus since it was fetched, or if the upload fails.
    """
    from pyarrow.fs import LocalFileSystem, copy_files

    local = _local_copy(directory)
    old = _parse(name, local)[1]
    files = {path: old.get(path) or _synced_digest(directory / path) for path in sorted(paths)}
    content = json.dumps({"manifest": manifest, "files": files}, ensure_ascii=False, indent=1).encode()
    with _explain_errors(f"publishing corpus {name}") as (store, root):
        for path, digest in files.items():
            if path not in old:
                copy_files(str(directory / path), f"{root}/{name}/{digest}", LocalFileSystem(), store)
        with _one_publisher():
            if _published(name) != local:
                raise CorpusError(f"Another server changed corpus {name} in the meantime. Run the command again.")
            with store.open_output_stream(f"{root}/{name}{_SUFFIX}") as file:
                file.write(content)
        _write(directory / PUBLISHED, content)
        with suppress(OSError):  # leftover objects only take up space
            for digest in {*old.values()}.difference(files.values()):
                store.delete_file(f"{root}/{name}/{digest}")


@contextmanager
def _one_publisher() -> Iterator[None]:
    """Lock the servers' PostgreSQL database, so that only one server at a time compares and writes a manifest."""
    if connection.vendor != "postgresql":
        yield
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('assay publishes a corpus'))")
        yield


def delete(name: str) -> None:
    """Delete a corpus from object storage, starting with its manifest. It may already be partly deleted."""
    with _explain_errors(f"deleting corpus {name}") as (store, root):
        with suppress(FileNotFoundError):
            store.delete_file(f"{root}/{name}{_SUFFIX}")
        with suppress(FileNotFoundError):
            store.delete_dir(f"{root}/{name}")
