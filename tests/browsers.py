"""The browsers in which tests and benchmarks open pages, and the options with which they are started."""

# The first one is headless and opens a page in a third of the time that the others need.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
BROWSER_ARGUMENTS = [
    "--headless=new",
    "--disable-gpu",
    # The browser must connect only to the live server.
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
