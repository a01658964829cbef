"""What every test stands on: its own data folder and database file, and a browser where one is asked for.

    --part sqlite                        all tests but @postgres_only
    --part postgresql                    @both_databases and @postgres_only; in the slow tier also all others of the
                                         database, but those that are @on_sqlite, in a browser or of the program
    --tier quick | slow                  what `make test` runs, and what `make test-slow` runs: @slow, and on PostgreSQL
                                         what the quick tier runs on SQLite alone
    @pytest.mark.postgres_only           the test needs row locks; on SQLite it is skipped
    @pytest.mark.sqlite_only             the mirror; `make test` runs both parts
    def test(page, live_server): ...     a page in Chromium; fails if the page logged an error
    @pytest.mark.page(viewport={"width": 375, "height": 667}, color_scheme="dark")      how that page looks

ASSAY_REQUIRE_ALL=1 (set in CI) turns every skip that comes from the machine into a failure.
"""

import copy
import itertools
import os
import random
import re
import secrets
import shutil
import signal
import sqlite3
from collections import defaultdict
from contextlib import ExitStack, closing, contextmanager
from importlib import import_module

import hypothesis
import psycopg
import pytest
from django.apps import apps
from django.conf import settings as django_settings
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.cache import cache
from django.db import connection, transaction
from django.test import Client, TransactionTestCase, override_settings

from annotate.kinds import kind_of
from corpora.core.languages import LANGUAGES
from corpora.vocabulary import concept_index
from deploy.sqlite import base as sqlite_base
from tests import running
from tests.browsers import BROWSER_ARGUMENTS, BROWSERS
from tests.together import HANGS

# The database of the tests is made anew beside whatever else the data folder holds.
sqlite_base.makes_file = True
REQUIRE_ALL = os.environ.get("ASSAY_REQUIRE_ALL") == "1"
ON_POSTGRES = django_settings.DATABASES["default"]["ENGINE"].endswith("postgresql")
# Of the programs and their files: on SQLite alone, since the database is not the matter there.
OF_THE_PROGRAM = (
    "tests.annotate.evaluation.",
    "tests.annotate.record_export.",
    "tests.corpora.",
    "tests.docs.",
    "tests.inputs.",
    "tests.test_server_runs",
    "tests.test_notebook",
    "tests.test_package",
)
# Their tests are few and long. They come first, so that to the end there is work to share among the workers.
LONG = ("tests.test_", "tests.docs.test_tutorial", "tests.docs.test_how_to", "tests.inputs.test_signals")
PARTS, TIERS = ("sqlite", "postgresql"), ("quick", "slow")
MARKERS = {
    "slow": "a sweep over pages, looks or attacks, a whole run in other processes, an installed package, Spark, a "
    "simulation, a crash or a restore; quicker tests cover the same rules one by one",
    "both_databases": "constraints, locks, the queue, judging, import, export, and a run from end to end",
    "on_sqlite": "the database is not the matter: files, who may open which page, figures, the program as it is called",
    "page(**options)": "options of the browser context behind `page`",
}
OTHER_DATABASE = {
    "postgres_only": "needs PostgreSQL: row locks",
    "sqlite_only": "needs SQLite: its queue of writers",
}
# A clock that a test can move on: tests/annotate/hands.py.
CLOCK = """
window.skippedMs = 0;
const now = performance.now.bind(performance);
performance.now = () => now() + window.skippedMs;
"""
# How many clicks have arrived: tests/annotate/hands.py.
CLICKS = """
window.clicks = 0;
addEventListener("click", () => { window.clicks += 1; }, { capture: true });
"""


def pytest_addoption(parser):
    parser.addoption("--part", choices=PARTS, help="what `make test` runs on this database")
    parser.addoption("--tier", choices=TIERS, help="the tests of `make test`, or those of `make test-slow`")


def pytest_configure(config):
    # No machine is too slow; and where all must pass, every run tries the same examples.
    slow = [hypothesis.HealthCheck.too_slow]
    hypothesis.settings.register_profile("ours", deadline=None, suppress_health_check=slow, derandomize=REQUIRE_ALL)
    hypothesis.settings.load_profile("ours")
    # In the background of a shell it is ignored, and what tests start would ignore it too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name, reason in OTHER_DATABASE.items():
        config.addinivalue_line("markers", f"{name}: {reason}")
    for name, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


def pytest_report_header():
    if not ON_POSTGRES:
        return f"database: SQLite {sqlite3.sqlite_version}"
    # Past Django, which is not to touch a database outside of a test.
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        return f"database: PostgreSQL {connection.info.parameter_status('server_version')}"


def _tier_on(item, part):
    """The tier in which a part has a test, or None."""
    marked = item.get_closest_marker
    tier = "slow" if marked("slow") else "quick"
    if not part:
        return tier
    is_of_database = marked("django_db") or "_django_db_helper" in item.fixturenames
    is_of_database = is_of_database and "browser" not in item.fixturenames
    is_of_program = marked("on_sqlite") or item.module.__name__.startswith(OF_THE_PROGRAM)
    if marked("postgres_only") or marked("sqlite_only"):
        return tier if bool(marked("sqlite_only")) == (part == "sqlite") else None
    if is_of_database and marked("both_databases"):
        return tier
    if is_of_program or not is_of_database:
        return tier if part == "sqlite" else None
    # Page and command logic is the same on both databases. The quick tier proves it on one, the slow tier on the other.
    if part == "postgresql":
        return "slow"
    return tier if tier == "quick" else None


SLOW_MODULE = re.compile(r"^pytestmark = .*\bmark\.slow\b", re.MULTILINE)


def pytest_ignore_collect(collection_path, config):
    """In the quick tier a module of slow tests is not even imported."""
    if config.getoption("tier") == "quick" and collection_path.name.startswith("test_"):
        return bool(SLOW_MODULE.search(collection_path.read_text(encoding="utf-8"))) or None
    return None


def pytest_sessionstart(session):
    """Where nothing is compiled yet, each worker begins with a share of the modules, and reads the others compiled."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None or session.config.args != session.config.getini("testpaths"):
        return
    modules = sorted(path.relative_to(running.ROOT) for path in (running.ROOT / "tests").rglob("test_*.py"))
    modules = [path for path in modules if not pytest_ignore_collect(running.ROOT / path, session.config)]
    share = int(worker["workerid"].removeprefix("gw")) * len(modules) // worker["workercount"]
    for path in modules[share:]:
        import_module(".".join(path.with_suffix("").parts))


def _commits(item):
    marker = item.get_closest_marker("django_db")
    is_marked = marker is not None and marker.kwargs.get("transaction")
    return is_marked or {"live_server", "transactional_db"}.intersection(item.fixturenames)


def pytest_collection_modifyitems(config, items):
    for item in filter(_commits, items):
        item.fixturenames.insert(0, "_ends_as_migrated")
    name = "sqlite_only" if ON_POSTGRES else "postgres_only"
    part, tier = config.getoption("part"), config.getoption("tier")
    kept = [item for item in items if _tier_on(item, part) in ([tier] if tier else TIERS)]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    for item in kept:
        if item.get_closest_marker(name):
            item.add_marker(pytest.mark.skip(reason=OTHER_DATABASE[name]))
        if not {"migrated", "crowd"}.isdisjoint(item.fixturenames):  # made only where a test is marked to need it
            item.add_marker(pytest.mark.django_db)
    items[:] = sorted(kept, key=lambda item: not item.module.__name__.startswith(LONG))


def pytest_make_parametrize_id(val, argname):
    """Packed bytes hold the second at which they were packed, and every worker must give a test the same name."""
    return argname if isinstance(val, bytes) and not val.isascii() else None


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


@pytest.fixture(scope="session")
def _migrated(django_db_setup, django_db_blocker):
    """Each table, with the rows that the migrations put into it. Django's own copy belongs to a connection, and a
    worker has another one as soon as its browser has begun an event loop.
    """
    tables = {model._meta.db_table for model in apps.get_models(include_auto_created=True)}
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        return {table: cursor.execute(f"SELECT * FROM {table}").fetchall() for table in tables}


@pytest.fixture(scope="session")
def migrated(django_db_setup, tmp_path_factory):
    """An SQLite file as the migrations leave it, for an installation of a test's own: to migrate one takes seconds."""
    folder = tmp_path_factory.mktemp("migrated")
    if ON_POSTGRES:
        assert running.assay(folder, "django", "migrate").returncode == 0
        return folder / running.DATA / running.DATABASE
    with closing(sqlite3.connect(django_settings.DATABASES["default"]["NAME"])) as database:
        database.execute("VACUUM INTO ?", [str(folder / running.DATABASE)])
    return folder / running.DATABASE


@pytest.fixture
def _ends_as_migrated(_migrated, monkeypatch):
    """A test that commits empties all tables at its end, and puts back at once what any test may begin with."""

    def empty_and_put_back(self):
        with transaction.atomic(), connection.cursor() as cursor:
            if ON_POSTGRES:  # which would look after foreign keys; on SQLite it looks at the end of the transaction
                cursor.execute("SET LOCAL session_replication_role = replica")
            # TRUNCATE, which Django takes, is fifty times slower where a table is small.
            for table in _migrated:
                cursor.execute(f"DELETE FROM {table}")
            for table, rows in _migrated.items():
                if rows:
                    cursor.executemany(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(rows[0]))})", rows)

    monkeypatch.setattr(TransactionTestCase, "_fixture_teardown", empty_and_put_back)


@pytest.fixture(autouse=True)
def _nothing_is_kept_of_primary_keys():
    """What a process keeps of vocabularies and accounts: where a test rolls back, primary keys are used again."""
    cache.clear()
    concept_index.vocabulary_of.cache_clear()
    concept_index.names_in.cache_clear()
    concept_index.tree_of.cache_clear()


@pytest.fixture(scope="module", autouse=True)
def _swept(django_db_blocker):
    """What tests rolled back still lies in PostgreSQL's tables, and every later test would read past it."""
    if ON_POSTGRES and connection.connection is not None:
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            cursor.execute("VACUUM")


_chance = random.Random()


@pytest.fixture(scope="session", autouse=True)
def _chance_is_the_same_in_every_run():
    """The secrets of tasks and the pseudonyms, which decide what lots draw. Each module and each test begins anew, in
    whatever folder it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "token_hex", lambda size=32: _chance.randbytes(size).hex())
        yield


@pytest.fixture(scope="module", autouse=True)
def _chance_of_a_module(request):
    _chance.seed(request.module.__name__.rpartition(".")[2])


@pytest.fixture(autouse=True)
def _chance_of_a_test(request):
    _chance.seed(request.node.nodeid.rpartition("/")[2])


@pytest.fixture(scope="session")
def _data_dirs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def _own_data(settings, _data_dirs):
    """Corpora and exports of a test go where nobody looks; the folder is made when it is written to."""
    settings.DATA_DIR = next(_data_dirs)


@pytest.fixture
def data_dir(settings):
    settings.DATA_DIR.mkdir(exist_ok=True)
    return settings.DATA_DIR


@pytest.fixture(autouse=True)
def _no_language_stays_added(monkeypatch):
    before = LANGUAGES.data
    monkeypatch.setattr(LANGUAGES, "data", before)
    yield
    if LANGUAGES.data is not before:
        kind_of.cache_clear()


@pytest.fixture(autouse=True)
def _static_files_are_found_when_asked_for(settings):
    """Otherwise each of a test's clients would read all 200 of them before its first request."""
    settings.WHITENOISE_AUTOREFRESH = True


@pytest.fixture(scope="session", autouse=True)
def _static_files_are_served_as_in_real_use():
    """The live server's own handler knows no names with a hash in them, and leaves them to our middleware."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StaticFilesHandler, "_should_handle", lambda self, path: False)
        yield


# The real hasher takes a fifth of a second a person, which is its purpose, but not a test's.
QUICK_PASSWORDS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def quick_passwords(settings):
    settings.PASSWORD_HASHERS = QUICK_PASSWORDS


@pytest.fixture(scope="module")
def make_world(django_db_setup, django_db_blocker, tmp_path_factory):
    """make_world(make, *arguments) makes what all tests of a module begin with, once, and returns a function that gives
    each test its own: the data folder copied, what `make` returned copied, the database rolled back after the test.

    A module whose tests commit, as those in a browser do, can have none.
    """
    with ExitStack() as stack:

        def make_once(make, *arguments):
            folder = tmp_path_factory.mktemp("world")
            with django_db_blocker.unblock():
                stack.enter_context(_rolled_back(django_db_blocker))
                with override_settings(DATA_DIR=folder, PASSWORD_HASHERS=QUICK_PASSWORDS):
                    made = make(*arguments)
                    # Else PostgreSQL would look after all foreign keys of what was made at the end of each test anew.
                    connection.check_constraints()

            def begin(data_dir):
                shutil.copytree(folder, data_dir, dirs_exist_ok=True)
                return copy.deepcopy(made)

            return begin

        yield make_once


@contextmanager
def _rolled_back(blocker):
    atomic = transaction.atomic()
    atomic.__enter__()
    yield
    with blocker.unblock():
        transaction.set_rollback(True)
        atomic.__exit__(None, None, None)


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=HANGS * 1000)
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("no browser was found; install the Debian package chromium-headless-shell")
    # A page that has scrolled by a key is there at once, instead of after a third of a second.
    arguments = [*BROWSER_ARGUMENTS, "--disable-smooth-scrolling", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with ExitStack() as stack:
        try:
            playwright = stack.enter_context(sync_playwright())
        except Exception as error:  # noqa: BLE001 - it raises nothing narrower
            pytest.skip(f"the browser's driver does not start ({error}); on Debian it needs the package libatomic1")
        # Playwright keeps an event loop in this thread, and Django refuses its ORM to such a thread. The loop
        # stands still while a test runs, so here the guard guards nothing.
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        browser = playwright.chromium.launch(executable_path=path, args=arguments, timeout=HANGS * 1000)
        yield browser
        browser.close()


@pytest.fixture
def console_errors():
    """What the pages complained of. A test that provokes a complaint looks at it and clears the list."""
    return []


@pytest.fixture(scope="session")
def _idle_contexts():
    """By their options, contexts of tests that are over: they still have what is the same for all, styles and scripts,
    and nothing else."""
    return defaultdict(list)


@pytest.fixture
def new_page(browser, live_server, console_errors, _idle_contexts):
    """Makes pages, each in its own context: `new_page(user=ann, color_scheme="dark")` is signed in as ann.

    A click that leads to another page returns once that has loaded, and not already once it has begun: what a test
    counts or measures next is of the whole page.

    Errors of scripts, refusals by the content security policy and failed requests all reach the console; at
    the end of the test there must be none.
    """
    taken = []

    def note(message):
        # A poll that the browser drops, since the page goes on, is an error to htmx alone. Of a request that fails, the
        # browser itself complains too.
        if message.type == "error" and not message.text.startswith(("htmx:afterRequest", "htmx:sendError")):
            console_errors.append(f"{message.text} ({message.location['url']})")

    def make(user=None, **options):
        idle = _idle_contexts[repr(sorted(options.items()))]
        if idle:
            context = idle.pop()
        else:
            context = browser.new_context(base_url=live_server.url, **options)
            context.set_default_timeout(HANGS * 1000)
            context.add_init_script(CLOCK + CLICKS)
        taken.append((context, idle))
        if user is not None:
            client = Client()
            client.force_login(user)
            name = django_settings.SESSION_COOKIE_NAME
            context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": live_server.url}])
        page = context.new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: console_errors.append(str(error)))
        click = page.click

        def click_and_load(*arguments, **options):
            click(*arguments, **options)
            page.wait_for_load_state()

        page.click = click_and_load
        return page

    yield make
    for context, idle in taken:
        for page in context.pages:
            page.close()  # and with it what it keeps for its session
        context.clear_cookies()
        context.set_offline(False)
        idle.append(context)
    assert console_errors == []


@pytest.fixture
def page(request, new_page):
    """One page, nobody signed in; the marker `page` gives the options of its context."""
    marker = request.node.get_closest_marker("page")
    return new_page(**(marker.kwargs if marker else {}))
