"""The folder inbox of the data folder: files that managers upload, or that somebody lays there, to be read by jobs.

An upload goes straight into it, and has no name there until the whole request has been read: of a tab that was closed,
or a file that is too large, nothing stays.
"""

import os
import time
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, StopUpload
from django.http import QueryDict

from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.work.accounts import is_manager
from corpora.storage.layout import digest_of
from corpora.system import FOLDER

ARRIVING = ".arriving-"
STALE = 24 * 3600  # seconds after which what a killed server had begun to take in is removed
LONGEST = 120  # letters of a name


def folder() -> Path:
    found = Path(settings.DATA_DIR) / "inbox"
    found.mkdir(FOLDER, parents=True, exist_ok=True)
    return found


def files() -> list[Path]:
    """What lies there, the newest first."""
    listed = [path for path in folder().iterdir() if path.is_file() and not path.name.startswith(".")]
    return sorted(listed, key=lambda path: -path.stat().st_mtime)


def named(name: str) -> Path:
    """The file of a name. NotFound where there is none."""
    found = next((path for path in files() if path.name == name), None)
    if found is None:
        raise NotFound(f"There is no file {name!r} in the inbox. It may have been deleted meanwhile; upload it again.")
    return found


def delete(name: str) -> None:
    named(name).unlink(missing_ok=True)


class Arriving(UploadedFile):
    """A file on its way into the inbox; closed before it was kept, it is gone."""

    def __init__(self, name: str, content_type: str, charset: str | None) -> None:
        # Closed with the request.
        file = NamedTemporaryFile(prefix=ARRIVING, dir=folder())  # noqa: SIM115
        super().__init__(file, name, content_type, 0, charset)


class ToInbox(FileUploadHandler):
    """Takes in files of managers, and nobody else's, up to the size that the installation allows."""

    refused = ""

    def new_file(self, *args, **kwargs) -> None:
        super().new_file(*args, **kwargs)
        if not is_manager(self.request.user):
            raise StopUpload(connection_reset=False)
        self.file = Arriving(self.file_name or "", self.content_type or "", self.charset)

    def receive_data_chunk(self, raw_data, start) -> None:
        if start + len(raw_data) > settings.UPLOAD_MOST:
            self.request.too_large = self.file_name
            self.file.close()
            # The rest is read and thrown away: a browser that is cut off shows an error of its own.
            raise StopUpload(connection_reset=False)
        self.file.write(raw_data)

    def file_complete(self, file_size) -> Arriving:
        self.file.seek(0)
        self.file.size = file_size
        return self.file

    def upload_interrupted(self) -> None:
        if hasattr(self, "file"):
            self.file.close()


def check_size(request) -> None:
    """InvalidAnswer where a file of the request was larger than may be."""
    _ = request.FILES  # reads the request, if nobody has
    if name := getattr(request, "too_large", ""):
        raise InvalidAnswer(
            f"{name} is larger than {settings.UPLOAD_MOST >> 20:,} MB, which is as much as may be uploaded. Lay it "
            f"into the folder {folder()} of the server, and choose it here; or have ASSAY_UPLOAD_MOST raised."
        )


def with_uploads(request) -> QueryDict:
    """What a form says, with the files that came with it, upload-NAME, among the choices for NAME."""
    posted = request.POST.copy()
    for name in request.FILES:
        for arrived in request.FILES.getlist(name):
            posted.appendlist(name.removeprefix("upload-"), str(keep(arrived)))
    return posted


def keep(arrived: UploadedFile) -> Path:
    """Give a file that has arrived its name in the inbox; one that lies there already stays the only one.

    InvalidAnswer where it has no usable name, or nothing in it.
    """
    name = Path(arrived.name or "").name
    if not name or name.startswith(".") or len(name) > LONGEST or not name.isprintable():
        raise InvalidAnswer(f"A file cannot be kept under the name {name[:40]!r}; rename it and upload it again.")
    if not arrived.size:
        raise InvalidAnswer(f"{name} is empty; choose another file.")
    arrived.flush()
    os.fsync(arrived.fileno())
    _sweep()
    for path in _names(name):
        with suppress(FileExistsError):
            os.link(arrived.file.name, path)
            return path
        if path.stat().st_size == arrived.size and digest_of(path) == digest_of(Path(arrived.file.name)):
            return path
    raise AssertionError("there is always another number")


def _names(name: str):
    """It, and with a number before its endings."""
    stem, dot, endings = name.partition(".")
    yield folder() / name
    number = 2
    while True:
        yield folder() / f"{stem} ({number}){dot}{endings}"
        number += 1


def _sweep() -> None:
    for path in folder().glob(f"{ARRIVING}*"):
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > STALE:
                path.unlink()
