"""Publication of a gold set's folder, as a dataset on the Hugging Face Hub or as an archive.

Only files listed in the manifest are published, and only if they are unchanged since the export. On the Hub, they are
published in a single commit, so a repository never contains part of a set.
"""

import gzip
import os
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from annotate.core.measures.generated_texts import MissingExtra
from annotate.goldsets.set_folder import RESTORE, SECTIONS, find_changes, listed_digests, manifest_of
from corpora.core.values import is_free

MANIFEST = "manifest.json"
SUFFIXES = (".zip", ".tar.gz")
# Values of a licence field that mean that the licence is unknown.
UNKNOWN = ("", "unknown", "not stated", "none", "other", "n/a", "?")
TOKEN = "HF_TOKEN"  # noqa: S105 - the name of an environment variable
AT_ONCE = 50  # number of files to upload at a time


class PublishError(Exception):
    """Raised if a set must not or cannot be published. The message states why and what to do."""


@dataclass(frozen=True)
class Parcel:
    """The files of a set to publish.

    name: the set's name
    files: size of each file (bytes), by name
    others: files in the folder that are not part of the set, and are not published
    notes: warnings for the publisher, as sentences
    is_secret: whether the set reveals answers of a task that annotators are still working on
    """

    folder: Path
    name: str
    files: Mapping[str, int]
    others: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_secret: bool = False

    @property
    def size(self) -> int:
        return sum(self.files.values())


def parcel_of(folder: Path) -> Parcel:
    """Collect the files of a gold set to publish.

    Raise GoldSetError if the folder is not a gold set, and PublishError if files were changed or the licence does not
    permit publication.
    """
    manifest = manifest_of(folder)
    section = next((section for section in SECTIONS.values() if section in manifest), "")
    if section not in ("task", "pairs", "imported"):
        raise PublishError(f"{folder} is not the folder of a gold set. Name one that export_gold has written.")
    notes = _check_rights(folder, manifest)
    listed = manifest["files"]
    for what, names in zip(("was changed after", "is missing since"), find_changes(folder, listed), strict=True):
        if names:
            raise PublishError(f"{folder / names[0]} {what} the export, so nothing is published. {RESTORE}")
    names = sorted({MANIFEST, *listed, *listed_digests(folder, listed)})
    present = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    is_secret = manifest.get("finished") is False
    if is_secret:
        notes.append("The set is unfinished. It reveals annotators’ answers, and which items are not labelled yet.")
    return Parcel(
        folder=folder,
        name=manifest[section]["name"],
        files={name: (folder / name).stat().st_size for name in names},
        others=[name for name in present if name not in names],
        notes=notes,
        is_secret=is_secret,
    )


def _check_rights(folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Check the licence. Return warnings about it, or raise PublishError if it does not permit publication."""
    if imported := manifest.get("imported"):
        if not is_free(imported["licence"]):
            raise PublishError(
                f"{folder} was imported from {imported['file']}, whose licence ({imported['licence'] or 'not stated'}) "
                "is not known to permit publication. If it does, repeat import_gold with that --licence."
            )
        return []
    corpus = manifest["corpus"]
    licence = corpus["licence"].strip()
    is_unknown = licence.casefold() in UNKNOWN
    if corpus["text_may_leave"]:
        if is_unknown:
            raise PublishError(
                f"The licence of the texts in {folder} is unknown ({licence or 'not stated'}), so they are not "
                "published. Import the corpus under another name with its licence, or with --text-stays, which leaves "
                "the texts out, and export the set again."
            )
        return []
    if is_unknown:
        return ["The judgments come from a file whose licence is not stated. Publish them only if they are yours."]
    return [f"The set has no texts, because their licence ({licence}) does not permit publication."]


# --- An archive


def write_archive(parcel: Parcel, path: Path) -> None:
    """Write the files to a .zip or .tar.gz archive. The same files always produce the same bytes.

    An earlier archive is replaced once the new one is complete. Raise PublishError if the archive cannot be written.
    """
    pack = {".zip": _zip, ".tar.gz": _tar}[suffix_of(path)]
    try:
        with _replace_file(path) as file:
            pack(parcel, file)
    except OSError as error:
        raise PublishError(f"{error.filename or path} cannot be written: {error.strerror}.") from error


def suffix_of(path: Path) -> str:
    """Return the suffix of an archive. Raise PublishError if it is not one of SUFFIXES."""
    for suffix in SUFFIXES:
        if path.name.endswith(suffix) and path.name != suffix:
            return suffix
    raise PublishError(f"--archive {path.name}: name a file that ends in {' or '.join(SUFFIXES)}.")


@contextmanager
def _replace_file(path: Path) -> Iterator[IO[bytes]]:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
        Path(temporary).chmod(0o644)
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _zip(parcel: Parcel, file: IO[bytes]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in parcel.files:
            entry = zipfile.ZipInfo(f"{parcel.name}/{name}")  # always dated 1980
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
            with (parcel.folder / name).open("rb") as source, archive.open(entry, "w") as target:
                while block := source.read(1 << 20):
                    target.write(block)


def _tar(parcel: Parcel, file: IO[bytes]) -> None:
    with (
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, size in parcel.files.items():
            entry = tarfile.TarInfo(f"{parcel.name}/{name}")
            entry.size = size
            with (parcel.folder / name).open("rb") as source:
                archive.addfile(entry, source)


# --- The Hugging Face Hub


def check_installed() -> None:
    """Raise MissingExtra if huggingface_hub is not installed, and PublishError if there is no token."""
    if find_spec("huggingface_hub") is None:
        raise MissingExtra("Sending a set to the Hugging Face Hub", "huggingface_hub", "hub")
    if not os.environ.get(TOKEN):
        raise PublishError(f"Set {TOKEN} in the environment to a token of your account that may write repositories.")


def send(parcel: Parcel, repo: str, *, private: bool, advance: Callable[[int], None]) -> dict[str, Any]:
    """Upload the files to a dataset repository in one commit. Create the repository if it does not exist.

    repo: id of the repository, such as user/name
    private: whether the repository must be private
    advance: callback that receives the number of bytes uploaded since its last call

    Return a dict with the dataset's URL, the commit's id, and `left`: the repository's files outside this set. Raise
    PublishError if the upload fails; the message states whether anything was published.
    """
    from huggingface_hub import CommitOperationAdd, HfApi
    from huggingface_hub.utils import disable_progress_bars

    disable_progress_bars()
    api = HfApi(endpoint=os.environ.get("HF_ENDPOINT"), token=os.environ[TOKEN])
    additions = [CommitOperationAdd(name, str(parcel.folder / name)) for name in parcel.files]
    url = f"{api.endpoint}/datasets/{repo}"
    with _convert_errors(repo):
        info = _repository(api, repo, private=private, is_secret=parcel.is_secret)
        for start in range(0, len(additions), AT_ONCE):
            part = additions[start : start + AT_ONCE]
            api.preupload_lfs_files(repo, additions=part, repo_type="dataset", free_memory=False)
            advance(sum(parcel.files[addition.path_in_repo] for addition in part))
    message = f"Publish {parcel.name}"
    with _convert_errors(repo, url):
        commit = api.create_commit(repo, additions, commit_message=message, repo_type="dataset", parent_commit=info.sha)
    earlier = [sibling.rfilename for sibling in info.siblings or ()]
    left = [name for name in earlier if name not in parcel.files and name != ".gitattributes"]
    return {"url": url, "commit": commit.oid, "left": left}


def _repository(api: Any, repo: str, *, private: bool, is_secret: bool) -> Any:
    """Return the Hub's information about a dataset repository. Create the repository if it does not exist.

    private: whether the repository must be private
    is_secret: whether to refuse a public repository, because the set must not be seen
    """
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        info = api.dataset_info(repo)
    except RepositoryNotFoundError:
        info = None
    if is_secret and not (info.private if info else private):
        raise PublishError(
            "The set is unfinished, so annotators who are still working on the task could see each other’s answers in "
            "it. Close the task and export it again, or upload it to a private repository with --private."
        )
    if info and private and not info.private:
        raise PublishError(f"The repository {repo} is public. Make it private on its page, or omit --private.")
    if not info:
        api.create_repo(repo, repo_type="dataset", private=private)
        info = api.dataset_info(repo)
    return info


@contextmanager
def _convert_errors(repo: str, url: str = "") -> Iterator[None]:
    """Convert errors of the Hub and of the connection to PublishError.

    url: the dataset's URL in the last step, which publishes it; otherwise empty
    """
    try:
        yield
    except PublishError:
        raise
    except Exception as error:  # The libraries that huggingface_hub uses have no common exception class.
        causes = [" ".join(str(cause).split()) for cause in (error, error.__cause__) if cause]
        reason = ": ".join(filter(None, causes)) or type(error).__name__
        status = getattr(getattr(error, "response", None), "status_code", 500)
        is_unclear = url and status >= 500
        advice = f"Check whether the set is at {url}. If not, run" if is_unclear else "Nothing was published. Run"
        raise PublishError(f"The upload to {repo} failed ({reason}). {advice} the command again.") from error
