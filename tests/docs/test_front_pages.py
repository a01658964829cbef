"""The pages that a code host shows first: short enough, with links that lead somewhere, and one version."""

import re

import pytest
from markdown_it import MarkdownIt

from benchmarks.place import ROOT
from corpora.system import VERSION

FRONT = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "RELEASING.md", "deploy/README.md")


def links(path):
    for token in MarkdownIt("commonmark").enable("table").parse(path.read_text(encoding="utf-8")):
        for child in token.children or []:
            yield from (str(child.attrs[name]) for name in ("href", "src") if name in child.attrs)


def test_the_readme_is_a_screen_and_a_half_and_its_picture_is_light():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 700
    pictures = re.findall(r"!\[.+?\]\((\S+)\)", text)
    assert len(pictures) == 1
    assert [name for name in pictures if (ROOT / name).stat().st_size > 150_000] == []


@pytest.mark.parametrize("page", FRONT)
def test_the_links_of_a_front_page_lead_to_files_that_are_there(page):
    path = ROOT / page
    own = [link.partition("#")[0] for link in links(path) if not link.startswith(("http://", "https://"))]
    assert [link for link in own if not (path.parent / link).exists()] == []


def test_the_changelog_and_the_citation_are_of_this_version():
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[(\d\S*)\]", changes, re.MULTILINE)[0] == VERSION
    assert f"\nversion: {VERSION}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
