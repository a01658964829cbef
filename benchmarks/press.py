"""The time from a key press to the next unit in the browser, with 1, 8 and 32 annotators, and the bytes sent.

No data are needed. Server, database and browser share this machine. Each annotator presses a key after every pause; the
first pauses differ, as people do not begin together. The time ends with the frame that shows the next unit.
"""

from pathlib import Path
from statistics import median

from benchmarks.place import BenchmarkFailed, new_place, serving
from benchmarks.tables import show
from tests.browsers import BROWSER_ARGUMENTS, BROWSERS

PEOPLE = (1, 8, 32)
MEDIAN_MOST, HIGH_MOST = 50, 150  # milliseconds: the median and the 99th percentile of the presses
PAGE_MOST, ANSWER_MOST = 20_000, 3_000  # bytes
# Presses the key of the first answer this many times, with a pause before each (milliseconds).
PRESS = """
([times, pause]) => {
  window.took = [];
  const press = () => {
    const button = document.querySelector("#answers [data-key]");
    if (!button || window.took.length >= times) { window.done = true; return; }
    const began = performance.now();
    const shown = () => requestAnimationFrame(() => {
      window.took.push(performance.now() - began);
      setTimeout(press, pause);
    });
    document.addEventListener("htmx:afterSettle", shown, { once: true });
    const at = { code: button.dataset.key, key: button.dataset.key.slice(-1), bubbles: true };
    document.body.dispatchEvent(new KeyboardEvent("keydown", at));
  };
  setTimeout(press, Math.random() * pause);
}
"""


def add_options(parser) -> None:
    parser.add_argument("--presses", type=int, default=60, help="of each annotator (default %(default)s)")
    parser.add_argument(
        "--press-pause", type=float, default=10.0, help="seconds between presses, as of a reader (default %(default)s)"
    )


def run(folder: Path, options) -> None:
    """FOLDER is not read."""
    import shutil

    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        raise BenchmarkFailed("No browser was found. Install chromium-headless-shell.")
    rows, over = [], []
    with new_place() as place, sync_playwright() as playwright:
        place.manage("django", "migrate", "--verbosity=0")
        place.env |= {"DJANGO_SETTINGS_MODULE": "deploy.settings"}
        units = str(2 * sum(PEOPLE) * options.presses)
        lines = place.run("-m", "benchmarks.load_work", "open", units, str(max(PEOPLE))).splitlines()
        browser = playwright.chromium.launch(executable_path=program, args=[*BROWSER_ARGUMENTS, "--no-sandbox"])
        with serving(place, workers=2, threads=4) as address:
            for people in PEOPLE:
                took, page_bytes, answer_bytes = _at_work(
                    browser, address, lines[:people], [options.presses, 1000 * options.press_pause]
                )
                high = sorted(took)[int(0.99 * len(took))]
                rows.append([people, len(took), median(took), high, page_bytes, answer_bytes])
                if (
                    median(took) > MEDIAN_MOST
                    or high > HIGH_MOST
                    or page_bytes > PAGE_MOST
                    or answer_bytes > ANSWER_MOST
                ):
                    over.append(str(people))
        browser.close()
    head = ["annotators", "presses", "median ms", "99% ms", "page bytes", "answer bytes"]
    show(f"From the press to the next unit, {place.database}", head, rows)
    limits = f"Asked: {MEDIAN_MOST} and {HIGH_MOST} ms, {PAGE_MOST:,} and {ANSWER_MOST:,} bytes."
    print(f"{limits} {'Beyond that with ' + ', '.join(over) if over else 'All within'}.\n")


def _at_work(browser, address: str, lines: list[str], how: list[float]) -> tuple[list[float], int, int]:
    """Return the milliseconds of all presses, and the bytes sent of the largest page and the largest response."""
    pages, sizes = [], {"page": 0, "answer": 0}

    def weigh(response) -> None:
        if "/judge/" in response.url:
            sizes["answer"] = max(sizes["answer"], int(response.headers.get("content-length", 0)))
        elif response.request.resource_type == "document":
            sizes["page"] = max(sizes["page"], int(response.headers.get("content-length", 0)))

    for line in lines:
        name, _, password = line.split(maxsplit=2)
        page = browser.new_context(base_url=address).new_page()
        page.goto("/login/")
        page.fill("[name=username]", name)
        page.fill("[name=password]", password)
        page.press("[name=password]", "Enter")
        page.wait_for_url(lambda url: "login" not in url)
        page.goto("/tasks/load/")
        # People of the round before have a unit open.
        if not page.locator("#answers").count():
            page.locator("form[action$='/start/'] button").first.click()
        page.locator("#answers").wait_for()
        page.on("response", weigh)
        page.reload()
        page.locator("#answers").wait_for()
        pages.append(page)
    for page in pages:
        page.evaluate(PRESS, how)
    for page in pages:
        # The content security policy forbids wait_for_function.
        while not page.evaluate("() => window.done"):
            page.wait_for_timeout(200)
    took = [milliseconds for page in pages for milliseconds in page.evaluate("() => window.took")]
    for page in pages:
        page.context.close()  # what it has open would slow down the next round
    if len(took) < len(lines) * how[0]:
        raise BenchmarkFailed(f"Only {len(took)} of {len(lines) * how[0]} presses led to another unit.")
    return took, sizes["page"], sizes["answer"]
