"""Corpora that several servers share in object storage (the setting CORPORA), beside the folder of each server.

    CORPORA/<name>.json         the manifest of a corpus, and the digest of each of its files
            <name>/<SHA-256>    the files

A corpus is published by writing its JSON object after all its files, so that a kill leaves nothing half-visible.
Objects are never overwritten with other content. Each server copies a corpus to its folder when it first opens it, and
keeps the published JSON in `published`, from which it knows what the folder contains.
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
def _opened(address: str, process: int) -> tuple[Any, str]:
    """Return the file system of an address such as s3://bucket/prefix, and the path in it.

    process: id of this process, because a client does not work in a process that was forked from its own
    """
    from pyarrow import fs  # imported here because it takes 50 ms, and few installations use it

    file_system, path = fs.FileSystem.from_uri(address)
    return file_system, path.rstrip("/")


@contextmanager
def _explained(doing: str) -> Iterator[tuple[Any, str]]:
    """Yield the file system and the path of the setting. Errors become a CorpusError in one line."""
    try:
        yield _opened(settings.CORPORA, os.getpid())
    except (OSError, ValueError) as error:  # ArrowInvalid is a ValueError
        reason = str(error).split("\n")[0].rstrip(". ")
        raise CorpusError(
            f"Object storage failed while {doing}: {reason}. Check ASSAY_CORPORA, the credentials in the environment "
            "(AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY), the network and the free disk space."
        ) from error


def names() -> list[str]:
    """Return the names of the published corpora."""
    from pyarrow.fs import FileSelector

    with _explained("listing corpora") as (store, root):
        entries = store.get_file_info(FileSelector(root, allow_not_found=True))
    return sorted(entry.base_name.removesuffix(_SUFFIX) for entry in entries if entry.base_name.endswith(_SUFFIX))


def _published(name: str) -> bytes | None:
    """Return the JSON object of a corpus, or None if it is not published."""
    with _explained(f"reading the manifest of corpus {name}") as (store, root):
        try:
            with store.open_input_stream(f"{root}/{name}{_SUFFIX}") as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None


def _local_copy(directory: Path) -> bytes | None:
    """Return the JSON object that was last published from, or fetched into, a folder; None if there is none."""
    with suppress(FileNotFoundError):
        return (directory / PUBLISHED).read_bytes()
    return None


def _parsed(name: str, content: bytes | None) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the manifest in a JSON object, and the digests of the files by their paths in the folder of the corpus."""
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
    """Return the published manifest of a corpus, or the one in its folder if the corpus was never published.

    Raise FileNotFoundError if there is none.
    """
    if (content := _published(name)) is not None:
        return json.dumps(_parsed(name, content)[0]).encode()
    if (directory / PUBLISHED).exists():
        raise FileNotFoundError(f"Corpus {name} was deleted on another server.")
    return (directory / "manifest.json").read_bytes()


def is_current(name: str, directory: Path) -> bool:
    """Return whether the folder of a corpus contains what is published."""
    return _published(name) == _local_copy(directory)


def fetch(name: str, directory: Path) -> None:
    """Copy the published files of a corpus to its folder, whose lock the caller holds.

    Raise CorpusError if a file cannot be read, or differs from its digest.
    """
    content = _published(name)
    if content is None and (directory / PUBLISHED).exists():  # another server deleted the corpus
        (directory / "manifest.json").unlink(missing_ok=True)
        (directory / PUBLISHED).unlink()
    if content is None or content == (local := _local_copy(directory)):
        return
    manifest, files = _parsed(name, content)
    old = _parsed(name, local)[1]
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
    with _explained(f"copying corpus {name}") as (store, root):
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
    """Upload the new files of a corpus, and then its manifest. The caller holds the folder's lock.

    paths: the files that the manifest names, in the folder of the corpus

    Raise CorpusError if another server has published the corpus since it was fetched, or if the upload fails.
    """
    from pyarrow.fs import LocalFileSystem, copy_files

    local = _local_copy(directory)
    old = _parsed(name, local)[1]
    files = {path: old.get(path) or _synced_digest(directory / path) for path in sorted(paths)}
    content = json.dumps({"manifest": manifest, "files": files}, ensure_ascii=False, indent=1).encode()
    with _explained(f"publishing corpus {name}") as (store, root):
        for path, digest in files.items():
            if path not in old:
                copy_files(str(directory / path), f"{root}/{name}/{digest}", LocalFileSystem(), store)
        with _one_publisher():
            if _published(name) != local:
                raise CorpusError(f"Another server changed corpus {name} in the meantime. Run the command again.")
            with store.open_output_stream(f"{root}/{name}{_SUFFIX}") as file:
                file.write(content)
        _write(directory / PUBLISHED, content)
        with suppress(OSError):  # These objects only take up space.
            for digest in {*old.values()}.difference(files.values()):
                store.delete_file(f"{root}/{name}/{digest}")


@contextmanager
def _one_publisher() -> Iterator[None]:
    """Let only one of several servers compare and write a manifest at a time. Several servers share a PostgreSQL."""
    if connection.vendor != "postgresql":
        yield
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('assay publishes a corpus'))")
        yield


def delete(name: str) -> None:
    """Delete a corpus from object storage, its manifest first. It may be deleted in part already."""
    with _explained(f"deleting corpus {name}") as (store, root):
        with suppress(FileNotFoundError):
            store.delete_file(f"{root}/{name}{_SUFFIX}")
        with suppress(FileNotFoundError):
            store.delete_dir(f"{root}/{name}")
