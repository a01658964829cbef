"""The part of S3's interface that pyarrow's file system uses, on loopback."""

import hashlib
import re
from contextlib import contextmanager
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from tests import together

BUCKET = "bucket"


class Bucket:
    """The objects of a bucket.

    objects: key -> content
    uploads: id of an unfinished upload -> its parts by number
    forbids: HTTP methods that are answered with 403
    steps: the method and key of each request
    on_step: called with each step before it is carried out
    """

    def __init__(self):
        self.objects, self.uploads, self.forbids, self.steps = {}, {}, set(), []
        self.on_step = lambda method, key: None

    def put(self, key, query, body):
        if "uploadId" in query:
            self.uploads[query["uploadId"][0]][int(query["partNumber"][0])] = body
        else:
            self.objects[key] = body
        return 200, b"", {"ETag": etag(body)}

    def post(self, key, query, body):
        if "uploads" in query:
            number = str(len(self.uploads) + 1)
            self.uploads[number] = {}
            return 200, xml("InitiateMultipartUploadResult", Bucket=BUCKET, Key=key, UploadId=number), {}
        if "delete" in query:
            for deleted in re.findall(rb"<Key>(.*?)</Key>", body):
                self.objects.pop(deleted.decode(), None)
            return 200, xml("DeleteResult"), {}
        parts = self.uploads.pop(query["uploadId"][0])
        self.objects[key] = b"".join(parts[number] for number in sorted(parts))
        return 200, xml("CompleteMultipartUploadResult", Key=key, ETag=etag(self.objects[key])), {}

    def get(self, key, query, _, bounds=None):
        if not key:
            return 200, self.listing(query.get("prefix", [""])[0], query.get("delimiter", [""])[0]), {}
        if key not in self.objects:
            return 404, xml("Error", Code="NoSuchKey"), {}
        content = self.objects[key]
        if bounds:
            first, last = int(bounds[1]), min(int(bounds[2]), len(content) - 1)
            return 206, content[first : last + 1], {"Content-Range": f"bytes {first}-{last}/{len(content)}"}
        return 200, content, {"ETag": etag(content)}

    def delete(self, key, query, _):
        if "uploadId" in query:
            self.uploads.pop(query["uploadId"][0], None)
        else:
            self.objects.pop(key, None)
        return 204, b"", {}

    def listing(self, prefix, delimiter):
        keys, folders = [], set()
        for key in sorted(key for key in self.objects if key.startswith(prefix)):
            head, separator, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
            folders |= {f"{prefix}{head}{delimiter}"} if separator else set()
            keys += [] if separator else [key]
        entries = [
            f"<Contents><Key>{escape(key)}</Key><Size>{len(self.objects[key])}</Size>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            for key in keys
        ]
        entries += [f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in sorted(folders)]
        counts = f"<IsTruncated>false</IsTruncated><KeyCount>{len(entries)}</KeyCount>"
        return f"<ListBucketResult>{counts}{''.join(entries)}</ListBucketResult>".encode()


def etag(content):
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


def xml(name, **values):
    return f"<{name}>{''.join(f'<{key}>{escape(value)}</{key}>' for key, value in values.items())}</{name}>".encode()


def unchunked(body):
    """Return the content of a body in S3's chunks, which are followed by checksums."""
    content = b""
    while True:
        head, _, body = body.partition(b"\r\n")
        size = int(head.partition(b";")[0], 16)
        if not size:
            return content
        content, body = content + body[:size], body[size + 2 :]


@contextmanager
def serving():
    bucket = Bucket()

    class Handler(together.Handler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            body = self.read_body()
            address = urlsplit(self.path)
            key = unquote(address.path).removeprefix(f"/{BUCKET}").lstrip("/")
            query = parse_qs(address.query, keep_blank_values=True)
            bucket.steps.append((self.command, key))
            bucket.on_step(self.command, key)
            status, content, headers = 403, b"", {}
            if self.command not in bucket.forbids:
                step = {"HEAD": bucket.get}.get(self.command) or getattr(bucket, self.command.lower())
                bounds = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"] or "")
                status, content, headers = step(key, query, body, *([bounds] if bounds else []))
            self.reply(status, headers, content)

        do_HEAD = do_PUT = do_POST = do_DELETE = do_GET

        def read_body(self):
            if self.headers["Transfer-Encoding"] == "chunked":
                body = b""
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
            else:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            return unchunked(body) if "aws-chunked" in (self.headers["Content-Encoding"] or "") else body

    with together.listening(Handler) as bucket.port:
        yield bucket
