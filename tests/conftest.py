"""What every test stands on: its own data folder and database file, and a browser where one is asked for.

    @pytest.mark.postgres_only           the test needs row locks; on SQLite it is skipped
    @pytest.mark.sqlite_only             the mirror; `make test` runs both
    def test(page, live_server): ...     a page in Chromium; fails if the page logged an error
    @pytest.mark.page(viewport={"width": 375, "height": 667}, color_scheme="dark")      how that page looks

ASSAY_REQUIRE_ALL=1 (set in CI) turns every skip that comes from the machine into a failure.
"""

import os
import shutil
import sqlite3
from contextlib import ExitStack

import psycopg
import pytest
from django.conf import settings as django_settings
from django.test import Client

from corpora.core.languages import LANGUAGES

REQUIRE_ALL = os.environ.get("ASSAY_REQUIRE_ALL") == "1"
ON_POSTGRES = django_settings.DATABASES["default"]["ENGINE"].endswith("postgresql")
OTHER_DATABASE = {
    "postgres_only": "needs PostgreSQL: row locks",
    "sqlite_only": "needs SQLite: its queue of writers",
}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
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


def pytest_configure(config):
    for name, reason in OTHER_DATABASE.items():
        config.addinivalue_line("markers", f"{name}: {reason}")
    config.addinivalue_line("markers", "page(**options): options of the browser context behind `page`")


def pytest_report_header():
    if not ON_POSTGRES:
        return f"database: SQLite {sqlite3.sqlite_version}"
    # Past Django, which is not to touch a database outside of a test.
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        return f"database: PostgreSQL {connection.info.parameter_status('server_version')}"


def pytest_collection_modifyitems(items):
    name = "sqlite_only" if ON_POSTGRES else "postgres_only"
    for item in items:
        if item.get_closest_marker(name):
            item.add_marker(pytest.mark.skip(reason=OTHER_DATABASE[name]))
    # Browser tests last: while Playwright runs, Django's guard against the event loop is off (see `browser`).
    items.sort(key=lambda item: "browser" in item.fixturenames)


def _refuse_skip(report):
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if reason.removeprefix("Skipped: ") not in OTHER_DATABASE.values():
        report.outcome = "failed"
        report.longrepr = f"{reason} (a failure, since ASSAY_REQUIRE_ALL=1)"


if REQUIRE_ALL:

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(item, call):
        report = yield
        _refuse_skip(report)
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(collector):
        report = yield
        _refuse_skip(report)
        return report


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings, tmp_path_factory):
    """The test database is a file of this run: two runs at once do not meet, and var/ stays clean."""
    if not ON_POSTGRES:
        path = tmp_path_factory.mktemp("database") / "test.sqlite3"
        django_settings.DATABASES["default"]["TEST"]["NAME"] = str(path)


@pytest.fixture(autouse=True)
def data_dir(settings, tmp_path):
    """Corpora and exports of a test go where nobody looks."""
    settings.DATA_DIR = tmp_path / "var"
    settings.DATA_DIR.mkdir()
    return settings.DATA_DIR


@pytest.fixture(autouse=True)
def _no_language_stays_added(monkeypatch):
    monkeypatch.setattr(LANGUAGES, "known", LANGUAGES.known)


@pytest.fixture(autouse=True)
def quick_passwords(settings):
    """The real hasher takes a fifth of a second a person, which is its purpose, but not a test's."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("no browser was found; install the Debian package chromium")
    arguments = [*BROWSER_ARGUMENTS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with ExitStack() as stack:
        try:
            playwright = stack.enter_context(sync_playwright())
        except Exception as error:  # noqa: BLE001 - it raises nothing narrower
            pytest.skip(f"the browser's driver does not start ({error}); on Debian it needs the package libatomic1")
        # Playwright keeps an event loop in this thread, and Django refuses its ORM to such a thread. The loop
        # stands still while a test runs, so here the guard guards nothing.
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def console_errors():
    """What the pages complained of. A test that provokes a complaint looks at it and clears the list."""
    return []


@pytest.fixture
def new_page(browser, live_server, console_errors):
    """Makes pages, each in its own context: `new_page(user=ann, color_scheme="dark")` is signed in as ann.

    Errors of scripts, refusals by the content security policy and failed requests all reach the console; at
    the end of the test there must be none.
    """
    contexts = []

    def note(message):
        if message.type == "error":
            console_errors.append(f"{message.text} ({message.location['url']})")

    def make(user=None, **options):
        context = browser.new_context(base_url=live_server.url, **options)
        contexts.append(context)
        if user is not None:
            client = Client()
            client.force_login(user)
            name = django_settings.SESSION_COOKIE_NAME
            context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": live_server.url}])
        page = context.new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: console_errors.append(str(error)))
        return page

    yield make
    for context in contexts:
        context.close()
    assert console_errors == []


@pytest.fixture
def page(request, new_page):
    """One page, nobody signed in; the marker `page` gives the options of its context."""
    marker = request.node.get_closest_marker("page")
    return new_page(**(marker.kwargs if marker else {}))
