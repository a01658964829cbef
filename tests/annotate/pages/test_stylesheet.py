"""The stylesheet: one set of tokens, legible in light and dark, and what the page of the design shows of it."""

import re

import pytest

from annotate.manual.pages import source
from annotate.manual.views import COLOURS, ICONS
from tests.annotate.reports.test_plots import contrast
from tests.running import ROOT

STATIC = ROOT / "annotate" / "static" / "annotate"
TEMPLATES = STATIC.parents[1] / "templates"
STYLES = "".join((STATIC / name).read_text(encoding="utf-8") for name in ("assay.css", "manage.css", "docs.css"))
TOKENS, RULES = STYLES.split("/* # Elements */")
HEX = r"#[0-9a-f]{3,8}\b"
GROUNDS = ("paper", "raised", "hover")
# Letters -> grounds on which they are set.
PAIRS = {
    "ink": (*GROUNDS, "notice", "good", "bad"),
    "quiet": GROUNDS,
    "accent": GROUNDS,
    "gold": (*GROUNDS, "notice"),
    "right": (*GROUNDS, "good"),
    "danger": (*GROUNDS, "bad"),
    "on-accent": ("accent",),
    "paper": ("ink",),
}


def colours(mode):
    both = re.findall(r"--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", TOKENS)
    return {name: [int(modes[mode][n : n + 2], 16) / 255 for n in (1, 3, 5)] for name, *modes in both}


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("letters", PAIRS)
def test_letters_have_the_contrast_of_level_aa_on_their_grounds(letters, mode):
    of = colours(mode)
    assert {ground: contrast(of[letters], of[ground]) >= 4.5 for ground in PAIRS[letters]} == dict.fromkeys(
        PAIRS[letters], True
    )


def test_only_tokens_hold_colours():
    [paper] = re.findall(r":root, :root\[data-theme\] \{[^}]*\}", RULES)
    screen = RULES.replace(paper, "").replace("#answers", "").replace("#flag", "")
    assert re.findall(HEX, re.sub(r"/\*.*?\*/", "", screen)) == []
    assert {*re.findall(HEX, paper)} == {"#ffffff", "#000000", "#4a4741"}


def test_type_and_spacing_are_those_of_the_scales():
    sizes = re.findall(r"font-size: ([^;}]+)", RULES)
    fluid = r"clamp\(var\(--t20\), [^,]+, var\(--t28\)\)"
    assert [size for size in sizes if re.search(r"\d(rem|px)", size) and not re.fullmatch(fluid, size)] == []
    spaced = re.findall(r"(?:[{;] ?|^ *)(?:padding|margin|gap)[a-z-]*: ([^;}]*\d(?:rem|px)[^;}]*)", RULES, re.MULTILINE)
    # Room for the panel of guidelines and for the drawn glass of a search.
    allowed = r"-?1px|clamp\(.*\)|\.2rem .*|30rem|3rem var\(--s24\)"
    assert [each for each in spaced if not re.fullmatch(allowed, each)] == []


def classes_of(css):
    return {*re.findall(r"\.([a-z][a-z0-9-]*)", css)}


def test_every_used_token_is_there():
    named = {*re.findall(r"--([a-z0-9-]+):", TOKENS)} | {"from-above", "from-below", "from-left", "most"}
    assert {*re.findall(r"var\(--([a-z0-9-]+)", STYLES)} <= named


def test_the_page_of_the_design_shows_what_the_stylesheet_has(client):
    page = client.get("/docs/design/").text
    shown = page.partition('id="components"')[2].partition('class="turn"')[0]
    assert {*" ".join(re.findall(r'class="([^"]+)"', shown)).split()} <= classes_of(STYLES)
    assert {*re.findall(r"\.([a-z-]+)", " ".join(re.findall(r"<dt><code>(.*?)</code>", shown)))} <= classes_of(STYLES)
    assert {*colours(0)} == {*COLOURS} - {"shade"}
    assert [*ICONS] == re.findall(r'symbol id="([a-z0-9-]+)"', (STATIC / "icons.svg").read_text(encoding="utf-8"))
    for token in re.findall(r"--(t\d+|s\d+)", TOKENS):
        assert f"--{token}" in shown or f"--{token}" in source("design")


def test_icons_in_templates_are_in_the_sprite():
    used = {name for path in TEMPLATES.rglob("*.html") for name in re.findall(r'{% icon "([^"]+)"', path.read_text())}
    assert used <= {*ICONS}
