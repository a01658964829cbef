"""PostgreSQL settings that slow Assay down or put answers at risk: our connections avoid them, or they are reported."""

import io

import psycopg
import pytest
from django.db import connection

from annotate.actions.commands import call_command
from annotate.actions.database import harmful_settings
from deploy.settings import database

postgres_only = pytest.mark.postgres_only


def told(name, *arguments, **options):
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
            assert sentence not in told("status")
            cursor.execute(f"SET LOCAL {name} = {value}")
            status = told("status")
            assert sentence in status
            assert f"Set {name} = o" in status
            assert sentence in told("check", databases=["default"])


@pytest.mark.sqlite_only
@pytest.mark.django_db
def test_sqlite_has_no_such_settings():
    assert harmful_settings() == []
