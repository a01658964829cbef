"""Query plans of answers and of pages without stored figures: no statement scans a table that grows with the work."""

import io
import re

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from annotate.actions.database import harmful_settings
from annotate.actions.registry import call_command
from annotate.controls import honeypots
from annotate.figures.annotator_statistics import comments
from annotate.models import Judgment, LanguageRoute, Lease, Task, Transition, Unit
from annotate.work.adjudication import with_same_text
from annotate.work.queue import open_lease
from corpora.database.bulk_rows import insert
from corpora.models import Item
from deploy.settings import database
from tests.annotate.conftest import AGREED, DISPUTED

HTMX = {"HX-Request": "true"}
# In SQLite's plan: full scans of stored tables. The language routes are few.
SCAN = re.compile(r"SCAN ((?:annotate|corpora|auth|django)_\w+|unit|lease|judgment|own|said|U\d+|T\d+)\b")
FEW = {LanguageRoute._meta.db_table, Task._meta.db_table}
LARGE = [model._meta.db_table for model in (Item, Judgment, Lease, Transition, Unit)]
MANY = 6_000
CONTROL = ("BEGIN", "SAVEPOINT", "RELEASE")


@pytest.fixture
def statements(make_task, person, client):
    """Return the statements, with parameters, of one answer on the page, in a task whose agreement was contested."""
    task, ann = make_task([DISPUTED, AGREED] * 8, audit_least=4), person("ann", "de en fr")
    read_before(task, ann)
    client.force_login(ann.user)
    client.post(f"/tasks/{task.name}/start/", headers=HTMX)
    queries = []

    def keep(execute, sql, params, many, context):
        queries.append((sql, params))
        return execute(sql, params, many, context)

    form = {"lease": open_lease(ann, task).pk, "answer": "de"}
    with connection.execute_wrapper(keep):
        reply = client.post(f"/tasks/{task.name}/judge/", form, headers=HTMX)
    assert 'name="lease"' in reply.text
    assert len(queries) > 15
    return [(sql, params) for sql, params in queries if not sql.startswith(CONTROL)]


def read_before(task, ann):
    """Create many finished units in a language whose audit failed after the detectors had agreed."""
    at = timezone.now()
    corpus = task.draws.get().corpus
    items = insert(Item(corpus=corpus, key=f"more-{n}", text=f"more {n}", votes={}, letters=4) for n in range(MANY))
    units = insert(
        Unit(task=task, item=item, position=100 + n, stage="LABELLED", label="de", agreed_label="de", redundancy=1)
        for n, item in enumerate(items)
    )
    moved = {"event": "answered", "from_stage": "QUEUED", "to_stage": "LABELLED", "round": 1, "at": at}
    insert(Transition(unit=unit, **moved) for unit in units)
    lease = {"annotator": ann, "place": 1, "round": 1, "queue": "de", "outcome": "answered"}
    times = {"opened_at": at, "expires_at": at, "closed_at": at}
    leases = insert(Lease(unit=unit, **lease, **times) for unit in units)
    fields = {"annotator": ann, "kind": "answer", "label": "de", "answered_at": at, "active_seconds": 1}
    insert(Judgment(unit=lease.unit, lease=lease, **fields) for lease in leases)


@pytest.mark.sqlite_only
def test_an_answer_scans_no_table(statements):
    with connection.cursor() as cursor:
        for sql, params in statements:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}", params)
            scanned = {name for row in cursor.fetchall() for name in SCAN.findall(row[-1])}
            # The routes are also read in a subquery.
            routes = {"U0"} if f'"{LanguageRoute._meta.db_table}" U0' in sql else set()
            assert scanned <= FEW | routes, sql


@pytest.mark.postgres_only
def test_an_answer_scans_no_table_by_the_plans_that_the_server_keeps_for_any_values(statements):
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        for n, (sql, params) in enumerate(statements):
            places = [f"${place}" for place in range(1, len(params or ()) + 1)]
            cursor.execute(f"PREPARE asked_{n} AS " + sql.replace("%s", "{}").format(*places))
            cursor.execute(f"EXPLAIN EXECUTE asked_{n}" + (f" ({', '.join('NULL' for _ in places)})" if places else ""))
            plan = "\n".join(row[0] for row in cursor.fetchall())
            assert not re.search("Seq Scan on (" + "|".join(LARGE) + ")", plan), f"{sql}\n{plan}"
            cursor.execute(f"DEALLOCATE asked_{n}")


# --- pages


@pytest.fixture
def planned(django_assert_max_num_queries):
    """planned(act) returns SQLite's plan of all statements that the action runs."""

    def plan(act):
        with django_assert_max_num_queries(100) as queries:
            act()
        with connection.cursor() as cursor:
            lines = []
            for query in queries.captured_queries:
                cursor.execute(f"EXPLAIN QUERY PLAN {query['sql']}")
                lines += [row[-1] for row in cursor.fetchall()]
        return "\n".join(lines)

    return plan


@pytest.mark.sqlite_only
def test_comments_hidden_gold_answers_and_cases_of_one_text_are_read_by_their_index(make_task, planned, ada):
    task = make_task([DISPUTED])
    assert "SCAN annotate_judgment USING INDEX commented" in planned(lambda: comments(task))
    assert "USING INDEX honeypots (task_id=?" in planned(lambda: list(honeypots.answers(task)))
    plan = planned(lambda: with_same_text(task.units.get(), ada))
    assert set(SCAN.findall(plan)) <= FEW, plan


# --- postgreSQL settings that slow Assay down or put answers at risk


postgres_only = pytest.mark.postgres_only


def output_of(name, *arguments, **options):
    out = io.StringIO()
    call_command(name, *arguments, stdout=out, stderr=out, **options)
    return out.getvalue()


@postgres_only
@pytest.mark.django_db
def test_our_connections_compile_no_statements_on_a_server_that_does_so_by_default():
    params = connection.get_connection_params()
    with psycopg.connect(**{name: params[name] for name in ("host", "user", "dbname")}) as plain:
        assert plain.execute("SHOW jit").fetchone() == ("on",)
    with connection.cursor() as cursor:
        assert cursor.execute("SHOW jit").fetchone() == ("off",)
    assert "jit" not in " ".join(harmful_settings())


def test_what_the_url_says_of_the_connection_is_kept_and_wins(monkeypatch):
    for query, expected in (
        ("", "-c jit=off"),
        ("?options=-c%20lock_timeout%3D5000", "-c jit=off -c lock_timeout=5000"),
        ("?options=-c%20jit%3Don", "-c jit=off -c jit=on"),
        ("?sslmode=require", "-c jit=off"),
    ):
        monkeypatch.setenv("DATABASE_URL", f"postgresql://assay:secret@db.example.org/assay{query}")
        options = database()["OPTIONS"]
        assert (options["options"], options["prepare_threshold"]) == (expected, 5)
        assert options.get("sslmode") == ("require" if "sslmode" in query else None)


@postgres_only
@pytest.mark.django_db
def test_a_setting_that_does_harm_is_named_by_status_and_check(data_dir):
    call_command("check", databases=["default"])
    for name, value, sentence in (
        ("jit", "on", "PostgreSQL's jit is on: each answer takes seconds"),
        ("synchronous_commit", "off", "PostgreSQL's synchronous_commit is off: a crash loses answers"),
        ("enable_indexscan", "off", "PostgreSQL's enable_indexscan is off, so"),
        ("enable_nestloop", "off", "PostgreSQL's enable_nestloop is off, so"),
    ):
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL synchronous_commit = on")
            assert sentence not in output_of("status")
            cursor.execute(f"SET LOCAL {name} = {value}")
            status = output_of("status")
            assert sentence in status
            assert f"Set {name} = o" in status
            assert sentence in output_of("check", databases=["default"])


@pytest.mark.sqlite_only
@pytest.mark.django_db
def test_sqlite_has_no_such_settings():
    assert harmful_settings() == []
