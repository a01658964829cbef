"""The inbox: a folder in the data folder for the input files of jobs. Managers upload the files or copy them there.

An upload gets its final name only after the whole request has been read. Therefore, no file is left behind if the
manager closes the tab or the file is too large.
"""

import os
import time
from contextlib import suppress
from itertools import count
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, StopUpload
from django.http import HttpRequest, QueryDict

from annotate.actions.action import ActionError
from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.pages.access import PageRequest
from annotate.work.accounts import is_manager
from corpora.sources.compression import BINARY, PACKED, SPREADSHEETS, format_of, is_packed, looks_like_utf16
from corpora.storage.layout import digest_of
from corpora.system import FOLDER

if TYPE_CHECKING:
    _UploadedFile = UploadedFile[bytes]
else:
    _UploadedFile = UploadedFile

# Option -> required file extension.
ENDINGS = {"guidelines": ".md", "languages": ".toml", "prompt": ".md"}
ARRIVING = ".arriving-"
START = 1024  # number of bytes that are read to recognize a file's content
STALE = 24 * 3600  # unfinished uploads, which a server crash can leave behind, are removed at this age (seconds)
LONGEST = 120  # maximum length of a file name, in characters


def folder() -> Path:
    inbox = Path(settings.DATA_DIR) / "inbox"
    inbox.mkdir(FOLDER, parents=True, exist_ok=True)
    return inbox


def files() -> list[Path]:
    """Return the files in the inbox, newest first."""
    paths = [path for path in folder().iterdir() if path.is_file() and not path.name.startswith(".")]
    return sorted(paths, key=lambda path: -path.stat().st_mtime)


def find_file(name: str) -> Path:
    """Return the inbox file with this name. Raise NotFound if it does not exist."""
    match = next((path for path in files() if path.name == name), None)
    if match is None:
        raise NotFound(f"The inbox does not contain the file {name!r}. It may have been deleted; upload it again.")
    return match


class IncomingFile(_UploadedFile):
    """A file that is being uploaded to the inbox. Closing it discards it, unless `save_upload` has saved it."""

    def __init__(self, name: str, content_type: str, charset: str | None) -> None:
        # The request closes the file.
        file = NamedTemporaryFile(prefix=ARRIVING, dir=folder())  # noqa: SIM115
        super().__init__(file, name, content_type, 0, charset)


class InboxUploadHandler(FileUploadHandler):
    """An upload handler that accepts files up to ASSAY_UPLOAD_MOST, and only from managers."""

    request: PageRequest

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        if not is_manager(self.request.user):
            raise StopUpload(connection_reset=False)
        self.file = IncomingFile(self.file_name or "", self.content_type or "", self.charset)

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        if start + len(raw_data) > settings.UPLOAD_MOST:
            self.request.too_large = self.file_name or ""
            self.file.close()
            # Read and discard the rest. If the connection were closed, the browser would show its own error.
            raise StopUpload(connection_reset=False)
        self.file.write(raw_data)

    def file_complete(self, file_size: int) -> IncomingFile:
        self.file.seek(0)
        self.file.size = file_size
        return self.file

    def upload_interrupted(self) -> None:
        if hasattr(self, "file"):
            self.file.close()


def check_size(request: HttpRequest) -> None:
    """Raise InvalidAnswer if an uploaded file was too large."""
    _ = request.FILES  # reads the request's body if it has not been read yet
    if name := getattr(request, "too_large", ""):
        raise InvalidAnswer(
            f"{name} is larger than {settings.UPLOAD_MOST >> 20:,} MB, the maximum for uploads. Copy it into the "
            f"folder {folder()} on the server and select it here, or increase ASSAY_UPLOAD_MOST."
        )


def with_uploads(request: HttpRequest) -> QueryDict:
    """Move a form's uploaded files into the inbox. Return the form's values.

    The path of a file that was uploaded as upload-NAME becomes a value of the field NAME. Raise InvalidAnswer if a file
    is too large, is empty or has an invalid name, and ActionError if it is unsuitable for the field.
    """
    check_size(request)
    posted = request.POST.copy()
    for field in request.FILES:
        name = field.removeprefix("upload-")
        for upload in request.FILES.getlist(field):
            check_kind(upload, ENDINGS.get(name, ""), name)
            posted.appendlist(name, str(save_upload(request, upload)))
    return posted


def check_kind(upload: _UploadedFile, ending: str = "", option: str = "") -> None:
    """Raise ActionError if an uploaded file is unsuitable for a form field.

    ending: the extension that the file must have; "" if the file must contain rows
    option: name of the option that requires the file
    """
    name = Path(upload.name or "")
    if ending and name.suffix != ending:
        raise ActionError(f"{name} was not saved. Upload a file with the extension {ending}.", option=option)
    if name.suffix.lower() in SPREADSHEETS:
        raise ActionError(f"{name} is a spreadsheet. Save it as .xlsx or as CSV, and upload that file.", option=option)
    start = upload.read(START)
    upload.seek(0)
    if not ending and not _may_hold_rows(name, start):
        reason = "it is not text" if format_of(name) else "it does not contain rows"
        if _is_heading_alone(name, start):
            raise ActionError(f"{name} was not saved: it has a heading but no rows. Add the rows.", option=option)
        raise ActionError(
            f"{name} was not saved, because {reason}. Upload JSONL, CSV, TSV, Excel (.xlsx), Parquet or Arrow.",
            option=option,
        )


def holds_rows(path: Path) -> bool:
    """Return whether the name and the first bytes of a file suggest that it contains rows."""
    with path.open("rb") as file:
        return _may_hold_rows(path, file.read(START))


def _may_hold_rows(name: Path, start: bytes) -> bool:
    if name.suffix.lower() in (*SPREADSHEETS, *ENDINGS.values()) or _is_heading_alone(name, start):
        return False
    if format_of(name) in BINARY or name.suffix.lower() in PACKED:
        return True
    is_binary = start.startswith(b"%PDF") or (b"\0" in start and not looks_like_utf16(start))
    return not is_binary or (bool(format_of(name)) and is_packed(start))


def _is_heading_alone(name: Path, start: bytes) -> bool:
    """Return whether a CSV or TSV file has only a line of column names. TSV files need not have such a line."""
    if len(start) == START or (format := format_of(name)) not in ("csv", "tsv") or is_packed(start):
        return False
    text = start.decode("utf-16" if looks_like_utf16(start) else "utf-8-sig", errors="replace").strip()
    return len(text.splitlines()) == 1 and (format == "csv" or "id" in text.lower().split("\t"))


def check_name(name: str) -> None:
    """Raise InvalidAnswer if this name is not allowed for a file in the inbox."""
    if not name or name.startswith(".") or len(name) > LONGEST or not name.isprintable():
        raise InvalidAnswer(f"The file name {name[:40]!r} is not allowed. Rename the file and upload it again.")


def save_upload(request: HttpRequest, upload: _UploadedFile) -> Path:
    """Move an uploaded file into the inbox and return its path.

    If the inbox already has a file with the same name and content, return that file's path. If it has a different file
    with the same name, append a number to the name and show a message. Raise InvalidAnswer if the uploaded file is
    empty or has an invalid name.
    """
    name = Path(upload.name or "").name
    check_name(name)
    if not upload.size:
        raise InvalidAnswer(f"{name} is empty. Choose another file.")
    assert upload.file is not None
    upload.flush()
    os.fsync(upload.fileno())
    _remove_stale_uploads()
    stem, dot, endings = name.partition(".")
    for number in count(1):
        path = folder() / (name if number == 1 else f"{stem} ({number}){dot}{endings}")
        with suppress(FileExistsError):
            os.link(upload.file.name, path)
            if number > 1:
                sentence = f"The inbox already has another file named {name}, so yours was saved as {path.name}."
                messages.info(request, sentence)
            return path
        if path.stat().st_size == upload.size and digest_of(path) == digest_of(Path(upload.file.name)):
            return path
    raise AssertionError("No file name is available.")


def write(name: str, text: str) -> Path:
    """Write a file to the inbox and return its path. An existing file with this name is replaced."""
    with NamedTemporaryFile("w", prefix=ARRIVING, dir=folder(), encoding="utf-8", newline="", delete=False) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    return Path(file.name).replace(folder() / name)


def _remove_stale_uploads() -> None:
    for path in folder().glob(f"{ARRIVING}*"):
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > STALE:
                path.unlink()
