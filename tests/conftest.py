"""Fixtures and options for all tests: a data folder and a database file for each test, and a browser if needed.

    --part sqlite                        all tests but @postgres_only
    --part postgresql                    @both_databases and @postgres_only; in the slow tier also all other database
                                         tests, except those that are @on_sqlite, in a browser or of the program
    --tier quick | slow                  the tests of `make test`, or of `make test-slow`: @slow, and on PostgreSQL the
                                         tests that the quick tier runs only on SQLite
    @pytest.mark.postgres_only           the test needs row locks; on SQLite it is skipped
    @pytest.mark.sqlite_only             the reverse; `make test` runs both parts
    def test(page, live_server): ...     a page in Chromium; fails if the page logged an error
    @pytest.mark.page(viewport={"width": 375, "height": 667}, color_scheme="dark")      options of that page

ASSAY_REQUIRE_ALL=1 (set in CI) turns skips because of missing software into failures.
"""

import copy
import fcntl
import gc
import itertools
import os
import random
import re
import secrets
import shutil
import signal
import sqlite3
from collections import defaultdict
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import django
import duckdb
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

# The test database is created in addition to any other files in the data folder.
sqlite_base.makes_file = True
REQUIRE_ALL = os.environ.get("ASSAY_REQUIRE_ALL") == "1"
ON_POSTGRES = django_settings.DATABASES["default"]["ENGINE"].endswith("postgresql")
# Tests of the programs and their files. They run only on SQLite, because they do not depend on the database.
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
# Modules with few, long tests. They run first, so that the workers can share the remaining short tests.
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
# A clock that a test can advance (tests/annotate/hands.py).
CLOCK = """
window.skippedMs = 0;
const now = performance.now.bind(performance);
performance.now = () => now() + window.skippedMs;
"""
# A counter of clicks (tests/annotate/hands.py).
CLICKS = """
window.clicks = 0;
addEventListener("click", () => { window.clicks += 1; }, { capture: true });
"""


def pytest_addoption(parser):
    parser.addoption("--part", choices=PARTS, help="what `make test` runs on this database")
    parser.addoption("--tier", choices=TIERS, help="the tests of `make test`, or those of `make test-slow`")


def pytest_configure(config):
    # No deadlines, so that slow machines pass. In CI, every run has the same examples.
    same = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow], "derandomize": REQUIRE_ALL}
    hypothesis.settings.register_profile("ours", max_examples=40, **same)
    hypothesis.settings.load_profile("ours")
    # A shell ignores it for background jobs, and programs that tests start would inherit this.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name, reason in OTHER_DATABASE.items():
        config.addinivalue_line("markers", f"{name}: {reason}")
    for name, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


def pytest_report_header():
    if not ON_POSTGRES:
        return f"database: SQLite {sqlite3.sqlite_version}"
    # This does not use Django, which must not access a database outside of tests.
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        return f"database: PostgreSQL {connection.info.parameter_status('server_version')}"


def _tier_on(item, part):
    """Return the tier in which a part includes a test, or None."""
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
    # Pages and commands work in the same way on both databases. The quick tier tests one, the slow tier the other.
    if part == "postgresql":
        return "slow"
    return tier if tier == "quick" else None


SLOW_MODULE = re.compile(r"^pytestmark = .*\bmark\.slow\b", re.MULTILINE)


def pytest_ignore_collect(collection_path, config):
    """Do not import modules of slow tests in the quick tier."""
    if config.getoption("tier") == "quick" and collection_path.name.startswith("test_"):
        return bool(SLOW_MODULE.search(collection_path.read_text(encoding="utf-8"))) or None
    return None


def pytest_sessionstart(session):
    """If nothing is compiled yet, let each worker compile a share of the modules and read the others."""
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
    selected = [item for item in items if _tier_on(item, part) in ([tier] if tier else TIERS)]
    config.hook.pytest_deselected(items=list(set(items).difference(selected)))
    for item in selected:
        if item.get_closest_marker(name):
            item.add_marker(pytest.mark.skip(reason=OTHER_DATABASE[name]))
        if "crowd" in item.fixturenames:  # created only if a test needs it
            item.add_marker(pytest.mark.django_db)
    items[:] = sorted(selected, key=lambda item: not item.module.__name__.startswith(LONG))


def pytest_collection_finish():
    """Exclude imported modules and collected tests from garbage collections, and collect less often."""
    gc.freeze()
    gc.set_threshold(10_000)


def pytest_unconfigure():
    gc.unfreeze()


def pytest_make_parametrize_id(val, argname):
    """Give compressed bytes a fixed name, because they contain a time, and test names must be equal in all workers."""
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
def migrated():
    """A migrated SQLite file for the tests' database and for installations that tests create. Migrations take seconds,
    so the file stays for later runs, until a migration changes.
    """
    source = sha256(django.__version__.encode())
    for path in sorted(path for app in apps.get_app_configs() for path in Path(app.path).glob("migrations/0*.py")):
        source.update(path.read_bytes())
    folder = running.ROOT / ".pytest_cache"
    folder.mkdir(exist_ok=True)
    file = folder / f"migrated-{source.hexdigest()[:16]}.sqlite3"
    with open(folder / "migrated.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            for earlier in folder.glob("migrated-*"):
                earlier.unlink()
            with TemporaryDirectory(dir=folder) as place:
                done = running.assay(Path(place), "django", "migrate")
                assert done.returncode == 0, done.stderr
                os.replace(Path(place, running.DATA, running.DATABASE), file)
    return file


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings, tmp_path_factory, migrated):
    """Use a database file for this run, so that parallel runs do not share it and var/ is not changed."""
    if not ON_POSTGRES:
        path = tmp_path_factory.mktemp("database") / "test.sqlite3"
        shutil.copyfile(migrated, path)
        django_settings.DATABASES["default"]["TEST"]["NAME"] = str(path)


@pytest.fixture(scope="session")
def django_db_keepdb():
    """Keep the tables of the copied file."""
    return not ON_POSTGRES


@pytest.fixture(scope="session")
def _migrated(django_db_setup, django_db_blocker):
    """All tables, with the rows that the migrations insert. Django's own copy belongs to a connection, and a worker
    gets a new connection when its browser starts an event loop.
    """
    tables = {model._meta.db_table for model in apps.get_models(include_auto_created=True)}
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        return {table: cursor.execute(f"SELECT * FROM {table}").fetchall() for table in tables}


@pytest.fixture
def _ends_as_migrated(_migrated, monkeypatch):
    """After a test that commits, empty all tables and restore the rows of the migrations."""

    def empty_and_put_back(self):
        with transaction.atomic(), connection.cursor() as cursor:
            if ON_POSTGRES:  # it checks foreign keys for each row, but SQLite at the end of the transaction
                cursor.execute("SET LOCAL session_replication_role = replica")
            # TRUNCATE, which Django uses, is fifty times slower for small tables.
            for table in _migrated:
                cursor.execute(f"DELETE FROM {table}")
            for table, rows in _migrated.items():
                if rows:
                    cursor.executemany(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(rows[0]))})", rows)

    monkeypatch.setattr(TransactionTestCase, "_fixture_teardown", empty_and_put_back)


@pytest.fixture(autouse=True)
def _nothing_is_kept_of_primary_keys():
    """Clear the caches for vocabularies and accounts, because primary keys are reused after a rollback."""
    cache.clear()
    concept_index.vocabulary_of.cache_clear()
    concept_index.names_in.cache_clear()
    concept_index.tree_of.cache_clear()


@pytest.fixture(scope="module", autouse=True)
def _swept(django_db_blocker):
    """Vacuum PostgreSQL's tables, because later tests would have to skip the rows of earlier rollbacks."""
    if ON_POSTGRES and connection.connection is not None:
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            cursor.execute("VACUUM")


_chance = random.Random()


@pytest.fixture(scope="session", autouse=True)
def _chance_is_the_same_in_every_run():
    """Fix the secrets of tasks and the pseudonyms, on which random draws depend. The sequence restarts with each module
    and each test, independently of the folder."""
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
    """Use a temporary data folder for corpora and exports. It is created when a test writes to it."""
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
    """Find static files on demand. Otherwise, each test client would read all 200 of them before its first request."""
    settings.WHITENOISE_AUTOREFRESH = True


@pytest.fixture(scope="session", autouse=True)
def _static_files_are_served_as_in_real_use():
    """Serve static files with our middleware, because the live server's handler does not support names with hashes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StaticFilesHandler, "_should_handle", lambda self, path: False)
        yield


@pytest.fixture(scope="session", autouse=True)
def _duckdb_starts_once():
    """Make each DuckDB store a database of its own in one instance, because an instance takes 16 ms to start."""
    connect, numbers, instances = duckdb.connect, itertools.count(), {}

    @contextmanager
    def attached(limit):
        name = f"store_{next(numbers)}"
        with instances[limit].cursor() as connection:
            connection.execute(f"ATTACH ':memory:' AS {name}; USE {name}")
            yield connection
            connection.execute(f"USE memory; DETACH {name}")

    def connect_or_attach(*arguments, config=None, **options):
        if not config or "memory_limit" not in config:
            return connect(*arguments, config=config or {}, **options)
        limit = config["memory_limit"]
        instances[limit] = instances.get(limit) or connect(config=config)
        return attached(limit)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb, "connect", connect_or_attach)
        yield


# The real password hasher is deliberately slow (0.2 s per person), which tests do not need.
QUICK_PASSWORDS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def quick_passwords(settings):
    settings.PASSWORD_HASHERS = QUICK_PASSWORDS


@pytest.fixture(scope="module")
def make_world(django_db_setup, django_db_blocker, tmp_path_factory):
    """make_world(make, *arguments) creates the initial state of all tests in a module once, and returns a function that
    gives each test a copy of the data folder and of the result of `make`. The database is rolled back after each test.

    Modules with tests that commit, such as browser tests, cannot use it.
    """
    with ExitStack() as stack:

        def make_once(make, *arguments):
            folder = tmp_path_factory.mktemp("world")
            with django_db_blocker.unblock():
                stack.enter_context(_rolled_back(django_db_blocker))
                with override_settings(DATA_DIR=folder, PASSWORD_HASHERS=QUICK_PASSWORDS):
                    made = make(*arguments)
                    # Otherwise, PostgreSQL would check all foreign keys of the state again at the end of each test.
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
    # Key presses scroll pages immediately instead of within a third of a second.
    arguments = [*BROWSER_ARGUMENTS, "--disable-smooth-scrolling", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with ExitStack() as stack:
        try:
            playwright = stack.enter_context(sync_playwright())
        except Exception as error:  # noqa: BLE001 - it raises nothing narrower
            pytest.skip(f"the browser's driver does not start ({error}); on Debian it needs the package libatomic1")
        # Playwright runs an event loop in this thread, and Django blocks its ORM in such threads. The loop does not
        # run during a test, so the check is not needed here.
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        browser = playwright.chromium.launch(executable_path=path, args=arguments, timeout=HANGS * 1000)
        yield browser
        browser.close()


@pytest.fixture
def console_errors():
    """The errors in the consoles of pages. A test that causes an error checks it and clears the list."""
    return []


@pytest.fixture(scope="session")
def _idle_contexts():
    """Contexts of finished tests, by their options. They only keep cached styles and scripts, which all tests share."""
    return defaultdict(list)


@pytest.fixture
def new_page(browser, live_server, console_errors, _idle_contexts):
    """Return a function that opens pages in separate contexts: `new_page(user=ann, color_scheme="dark")` logs Ann in.

    A click on a link returns after the new page has loaded, so that tests count or measure the complete page.

    Script errors, violations of the content security policy and failed requests are logged to the console. At the
    end of the test, there must be none.
    """
    taken = []

    def note(message):
        # If a new page interrupts a poll, only htmx reports an error. If a request fails, the browser reports one too.
        if message.type == "error" and not message.text.startswith(("htmx:afterRequest", "htmx:send")):
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
            page.close()  # this also clears its session storage
        context.clear_cookies()
        context.set_offline(False)
        idle.append(context)
    assert console_errors == []


@pytest.fixture
def page(request, new_page):
    """A page without a login. The marker `page` sets the options of its context."""
    marker = request.node.get_closest_marker("page")
    return new_page(**(marker.kwargs if marker else {}))
