"""Functions for browser tests of accessibility and of unusual screens and colour schemes."""

from axe_playwright_python.base import AXE_SCRIPT

A4 = {"width": 680, "height": 1000}  # pixels of 1/96 inch, excluding margins of 15 mm
# The maximum share of the window's height that fixed elements can cover.
MOST_COVERED = 0.46


def faults(page, *, but=()):
    """Return the faults that axe-core finds on a page, one per line. axe-core is loaded once per page.

    but: rules that do not apply to the page
    """
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(AXE_SCRIPT)
    violations = page.evaluate(
        """but => axe.run(document, {
            resultTypes: ["violations"], rules: Object.fromEntries(but.map(rule => [rule, {enabled: false}])),
        }).then(results => results.violations)""",
        list(but),
    )
    return [
        f"{violation['id']}: {node['target']} {node['html'][:120]}"
        for violation in violations
        for node in violation["nodes"]
    ]


def set_look(page, look):
    """Set the window size (CSS pixels), the colour scheme, and whether forced colours are active."""
    (width, height), scheme, forced = look
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme=scheme, forced_colors=forced)
    # Wait until colour transitions have ended.
    page.evaluate("Promise.allSettled(document.getAnimations().map(each => each.finished))")


def sticks_out(page):
    """Return whether a page is wider than the window."""
    return page.evaluate("document.documentElement.scrollWidth > innerWidth")


def covered(page):
    """Return the share of the window's height that fixed elements cover in the middle of the page."""
    return page.evaluate(
        """() => {
            const read = document.querySelector("#post, .posts");
            if (!read) return 0;
            const box = read.getBoundingClientRect();
            const x = box.left + box.width / 2;
            const fixed = [...document.querySelectorAll("body *")].filter((each) =>
                ["sticky", "fixed"].includes(getComputedStyle(each).position) && each.checkVisibility());
            const boxes = fixed.map((each) => each.getBoundingClientRect());
            const over = boxes.filter((each) => each.left <= x && x <= each.right);
            let covered = 0;
            for (let y = 0.5; y < innerHeight; y += 1) {
                covered += over.some((each) => each.top <= y && y <= each.bottom);
            }
            return covered / innerHeight;
        }"""
    )


def under(page, selector):
    """Return the words that fixed elements cover at the top, in the middle and at the end of a page."""
    return page.evaluate(
        """(selector) => {
            const [over, found, before] = [document.querySelector(selector), new Set(), scrollY];
            if (!over || !over.checkVisibility()) return [];
            for (const share of [0, 0.5, 1]) {
                scrollTo(0, share * (document.documentElement.scrollHeight - innerHeight));
                const { left, top, right, bottom } = over.getBoundingClientRect();
                const meets = (box) =>
                    box.width > 1 && box.left < right && left < box.right && box.top < bottom && top < box.bottom;
                for (const each of document.querySelectorAll("body *")) {
                    const isField = each.matches("input, textarea, select");
                    const has = isField || [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
                    const isApart = !over.contains(each) && !each.contains(over);
                    if (!has || !isApart || !each.checkVisibility({ visibilityProperty: true })) continue;
                    const range = document.createRange();
                    range.selectNodeContents(each);
                    const boxes = [...(isField ? each : range).getClientRects()];
                    if (boxes.some(meets)) found.add((each.innerText || each.name).slice(0, 80));
                }
            }
            scrollTo(0, before);
            return [...found];
        }""",
        selector,
    )


def lay_on_paper(page):
    page.emulate_media(media="print")
    page.evaluate(
        """new Promise(laid => {
            const paper = matchMedia("print");
            if (paper.matches) laid(); else paper.onchange = laid;
        })"""
    )


def too_wide(page, selector):
    """Return the first words of elements that are wider than the available space."""
    wide = "all => all.filter(each => each.scrollWidth > each.clientWidth).map(each => each.innerText.slice(0, 80))"
    return page.locator(selector).evaluate_all(wide)
