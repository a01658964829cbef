"""The browsers in which tests and benchmarks look at pages, and how these are started."""

# The first has no windows, and makes a page in a third of the time that the others take.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
BROWSER_ARGUMENTS = [
    "--headless=new",
    "--disable-gpu",
    # The browser is to talk to the live server alone.
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
