"""Stories of Reuters' corpora: an XML file a story, alone or in an archive, with ids as in the published lists."""

import pytest
from django.core.management import CommandError

from tests.corpora.on_disk import posts, rejects, zipped

STORY = """<?xml version="1.0" encoding="iso-8859-1" ?>
<newsitem itemid="39373" id="root" date="1996-08-20" xml:lang="de">
<title>GERMANY: Aktien.</title><headline>Aktien in Frankfurt &amp; anderswo</headline>
<text><p>Die B\xf6rse  schlie\xdft.</p>
<p>Morgen <b>mehr</b>.</p></text>
<metadata><codes class="bip:countries:1.0"><code code="GFR"/></codes>
<codes class="bip:topics:1.0"><code code="C15"><editdetail/></code><code code="CCAT"/></codes></metadata></newsitem>
""".encode("latin-1")
IN_UTF_16 = '<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE a [<!ENTITY b "c">]><newsitem/>'
OTHER = STORY.replace(b"CCAT", b"ECAT")


@pytest.fixture
def archive(tmp_path):
    """archive({"1.xml": STORY}, "FDCH5") is a ZIP file of these."""

    def make(files, name="FDCH5"):
        path = tmp_path / f"{name}.zip"
        path.write_bytes(zipped(files))
        return path

    return make


def imported(import_corpus, *files, **options):
    fixed = {"fields": "headline body", "labels": "topics", "format": "rcv"}
    return import_corpus("reuters", *files, **fixed | options)


def test_a_story_has_headline_paragraphs_topics_language_date_and_the_id_of_the_lists(archive, import_corpus, tmp_path):
    output = imported(import_corpus, archive({"39373.xml": STORY, "39374newsML.xml": OTHER, "notes.txt": b"x"}))
    first, second = posts("reuters")
    assert (first["id"], second["id"]) == ("FDCH5-39373", "FDCH5-39374newsML")
    assert first["language"] == "de"
    assert first["headline"] == "Aktien in Frankfurt & anderswo"
    assert first["body"] == "Die Börse schließt.\nMorgen mehr."
    assert (first["declared"], second["declared"]) == (["C15", "CCAT"], ["C15", "ECAT"])
    assert first["posted_at"].isoformat() == "1996-08-20T00:00:00+00:00"
    assert "with several labels: 2" in output
    # A file alone has the id of its folder, and one in a folder of an archive too.
    folder = tmp_path / "19970308"
    folder.mkdir()
    (folder / "428849newsML.xml").write_bytes(STORY)
    imported(import_corpus, folder / "428849newsML.xml", archive({"19970309/1.xml": OTHER}, "all"))
    assert [row["id"] for row in posts("reuters")][2:] == ["19970308-428849newsML", "19970309-1"]


NO_STORIES = [
    (STORY[:200], "FDCH5-{}: Line "),
    (b"<html></html>", "FDCH5-{}: The root element is <html>, but <newsitem> is required."),
    (STORY.replace(b"text>", b"words>"), "FDCH5-{}: The story has no <text> element."),
    (b'<!DOCTYPE a [<!ENTITY b "c">]>' + STORY, "FDCH5-{}: Line 1: the document has a DOCTYPE"),
    (IN_UTF_16.encode("utf-16"), "FDCH5-{}: Line 1: the document has a DOCTYPE"),
    (STORY.replace(b"headline>", b"line>"), "The headline is missing."),
    (STORY.replace(b' xml:lang="de"', b""), "The language is missing."),
    (STORY.replace(b'"de"', b'"tlh"'), "The language 'tlh' is not a known code"),
    (STORY + b" " * 2000, "The story FDCH5-{} is longer than 2,000 bytes."),
]


def test_what_is_no_story_is_a_reject(archive, import_corpus):
    files = {"01.xml": STORY} | {f"{n:02}.xml": content for n, (content, _) in enumerate(NO_STORIES, 2)}
    imported(import_corpus, archive(files), longest_line=2000)
    for line, (reject, (_, reason)) in enumerate(zip(rejects("reuters"), NO_STORIES, strict=True), 2):
        assert reject["line"] == line
        assert reject["reason"].startswith(reason.format(f"{line:02}"))
    assert len(posts("reuters")) == 1


def test_what_cannot_be_read_as_stories_is_refused(archive, import_corpus, write):
    inner = archive({"1.xml": STORY}, "19970308").read_bytes()
    damaged = bytearray(archive({"1.xml": STORY * 50}, "damaged").read_bytes())
    damaged[60:90] = b"\0" * 30
    for path, options, sentence in (
        (write("a.txt", STORY), {}, r"neither an XML file nor a ZIP file"),
        (
            archive({"notes.txt": b"x"}),
            {},
            r"FDCH5\.zip contains no XML file\. Each document must be a separate XML file",
        ),
        (archive({"19970308.zip": inner}, "cd1"), {}, r"cd1\.zip contains ZIP files such as 19970308\.zip\. Unpack it"),
        (archive({"1.xml": STORY}, "other"), {"labels": "subject"}, "has no column subject"),
        (write("damaged.zip", bytes(damaged)), {}, "truncated, damaged or encrypted"),
    ):
        with pytest.raises(CommandError, match=sentence):
            imported(import_corpus, path, **options)
