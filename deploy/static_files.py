"""Serve static files from the packages, compressed and cached by browsers for a year. No build step is needed.

Each URL contains a hash of the file's content, so a changed file has a new URL. Files are compressed when they are
first requested. Comments and indentation are removed from this project's own style sheets and scripts.
"""

import gzip
import hashlib
import os
import re
from functools import lru_cache
from pathlib import Path, PurePosixPath

from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage, staticfiles_storage
from django.utils.cache import patch_vary_headers
from whitenoise.middleware import WhiteNoiseMiddleware

YEAR = "public, max-age=31536000, immutable"
COMPRESSED = {".css", ".js", ".json", ".map", ".svg", ".txt"}
OWN = Path(__file__).resolve().parent.parent / "annotate" / "static" / "annotate"
DIGITS = 12  # number of hex digits of the hash in a URL


@lru_cache(maxsize=1_000)
def _digest(path: str, changed: int) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:DIGITS]


# Comments and indentation are a quarter of the bytes. Our scripts have no multi-line strings and no "/*" outside of
# comments; a test checks this.
_COMMENTS = re.compile(rb"/\*.*?\*/|^\s*//[^\n]*", re.DOTALL | re.MULTILINE)
_INDENTATION = re.compile(rb"^\s+", re.MULTILINE)


@lru_cache(maxsize=1_000)
def compressed(path: str, changed: int) -> bytes:
    content = Path(path).read_bytes()
    if Path(path).parent == OWN and Path(path).suffix in (".css", ".js"):
        content = _INDENTATION.sub(b"", _COMMENTS.sub(b"", content))
    return gzip.compress(content, mtime=0)


_find = lru_cache(maxsize=1_000)(finders.find)


class Storage(StaticFilesStorage):
    """A storage whose URLs contain a hash of the file's content, such as annotate/assay.1a2b3c4d5e6f.css."""

    def url(self, name: str) -> str:
        if path := _find(name):
            pure = PurePosixPath(name)
            digest = _digest(path, os.stat(path).st_mtime_ns)
            name = str(pure.with_name(f"{pure.stem}.{digest}{pure.suffix}"))
        return super().url(name)


class Middleware(WhiteNoiseMiddleware):
    def __call__(self, request):
        address = request.path_info
        if not address.startswith(self.static_prefix):
            return self.get_response(request)
        plain = self._without_hash(address)
        file = self.find_file(plain) if self.autorefresh else self.files.get(plain)
        if file is None:
            return self.get_response(request)
        response = self._serve(file, request, _find(plain.removeprefix(self.static_prefix)))
        if plain != address:
            response.headers["Cache-Control"] = YEAR
        return response

    def _without_hash(self, address: str) -> str:
        """Return the URL without its hash. If the hash does not match the file's content, return the URL unchanged."""
        pure = PurePosixPath(address)
        stem, _, digest = pure.stem.rpartition(".")
        if not stem or len(digest) != DIGITS:
            return address
        plain = str(pure.with_name(stem + pure.suffix))
        return plain if staticfiles_storage.url(plain.removeprefix(self.static_prefix)) == address else address

    def _serve(self, file, request, path):
        response = self.serve(file, request)
        if not path or Path(path).suffix not in COMPRESSED:
            return response
        patch_vary_headers(response, ["Accept-Encoding"])
        # A range request refers to the uncompressed file, so don't compress its response.
        if response.status_code != 200 or "gzip" not in request.headers.get("Accept-Encoding", ""):
            return response
        smaller = compressed(path, os.stat(path).st_mtime_ns)
        if request.method != "HEAD":
            response.streaming_content = [smaller]
        response.headers["Content-Encoding"] = "gzip"
        response.headers["Content-Length"] = str(len(smaller))
        # The ETag identifies the uncompressed file.
        response.headers.pop("ETag", None)
        return response
