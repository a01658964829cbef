"""Static files: names with a hash, cached for a year, compressed if the client accepts it."""

import gzip
import re

import pytest
from django.contrib.staticfiles import finders
from django.templatetags.static import static

from deploy import static_files

YEAR = "public, max-age=31536000, immutable"


@pytest.fixture(params=[True, False], ids=["looked for at each request", "known from the start"])
def client(request, settings, client):
    settings.WHITENOISE_AUTOREFRESH = request.param
    return client


def contents(name):
    with open(finders.find(name), "rb") as file:
        return file.read()


def body(response):
    return response.getvalue()


def squeezed(content, name):
    """Return a file without comments and spaces if it is a style sheet of this project."""
    return re.sub(rb"/\*.*?\*/|\s", b"", content, flags=re.DOTALL) if name.startswith("annotate/") else content


@pytest.mark.parametrize(
    "name", ["annotate/assay.css", "django_htmx/htmx-2.min.js", "annotate/icon.svg", "admin/css/base.css"]
)
def test_a_file_is_sent_compressed_under_a_name_of_its_own_and_kept_for_a_year(client, name):
    address = static(name)
    assert re.fullmatch(r"/static/.+\.[0-9a-f]{12}\.\w+", address)
    answer = client.get(address, headers={"Accept-Encoding": "gzip, deflate, br"})
    assert (answer.status_code, answer["Content-Encoding"], answer["Cache-Control"]) == (200, "gzip", YEAR)
    assert "Accept-Encoding" in answer["Vary"]
    assert "Set-Cookie" not in answer.headers
    sent = body(answer)
    assert squeezed(gzip.decompress(sent), name) == squeezed(contents(name), name)
    assert len(sent) == int(answer["Content-Length"])
    head = client.head(address, headers={"Accept-Encoding": "gzip"})
    assert (body(head), head["Content-Length"]) == (b"", str(len(sent)))


def test_a_client_without_gzip_gets_the_file_as_it_is_and_the_plain_name_is_served_too(client):
    answer = client.get(static("annotate/assay.css"))
    assert body(answer) == contents("annotate/assay.css")
    assert (answer["Cache-Control"], "Content-Encoding" in answer.headers) == (YEAR, False)
    part = client.get(static("annotate/assay.css"), headers={"Accept-Encoding": "gzip", "Range": "bytes=0-9"})
    assert (part.status_code, body(part)) == (206, contents("annotate/assay.css")[:10])
    plain = client.get("/static/annotate/assay.css", headers={"Accept-Encoding": "gzip"})
    assert gzip.decompress(body(plain)) == gzip.decompress(
        static_files.compressed(finders.find("annotate/assay.css"), 0)
    )
    assert plain["Cache-Control"] != YEAR


MISSING = ["annotate/assay.0123456789ab.css", "annotate/none.css", "annotate/none.0123456789ab.css", ""]


@pytest.mark.django_db
@pytest.mark.parametrize("name", [*MISSING, "../deploy/settings.py", "0123456789ab.css"])
def test_a_name_that_no_file_has_is_not_found(client, name):
    assert client.get(f"/static/{name}").status_code in (302, 404)


@pytest.mark.django_db
def test_all_that_the_log_in_page_loads_has_such_names(client):
    addresses = re.findall(r'(?:href|src)="(/static/[^"]+)"', client.get("/login/").text)
    assert len(addresses) >= 2
    assert all(re.search(r"\.[0-9a-f]{12}\.\w+$", address) for address in addresses), addresses


def test_a_changed_file_has_another_name(tmp_path, monkeypatch):
    path = tmp_path / "changing.css"
    monkeypatch.setattr(static_files, "_find", lambda name: str(path))
    names = []
    for words in ("a {}", "b {}"):
        path.write_text(words)
        names.append(static_files.Storage().url("changing.css"))
    assert len(set(names)) == 2


@pytest.mark.parametrize("path", sorted(path for path in static_files.OWN.iterdir() if path.suffix in (".css", ".js")))
def test_styles_and_scripts_are_sent_without_comments_and_nothing_else_is_lost(path):
    sent = gzip.decompress(static_files.compressed(str(path), 0)).decode()
    assert not re.search(r"/\*|^\s|^//", sent, re.MULTILINE)
    # Cases that would be cut wrongly: a string of several lines, and a string with the start of a comment.
    whole = path.read_text(encoding="utf-8")
    assert not [line for line in whole.splitlines() if line.count("`") % 2]
    assert not re.search(r"""(["'`])(?:(?!\1).)*/\*""", re.sub(r"/\*.*?\*/", "", whole, flags=re.DOTALL))
    lines = [line.strip() for line in whole.splitlines() if not re.match(r"\s*(//|/\*|$)", line)]
    assert all(line in sent for line in lines if "/*" not in line and "*/" not in line)
