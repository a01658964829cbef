"""How the database finds what an answer asks: no statement reads through a table that grows with the work."""

import re

import pytest
from django.db import connection

from annotate.models import LanguageRoute
from annotate.work.queue import open_lease
from tests.annotate.conftest import AGREED, DISPUTED

HTMX = {"HX-Request": "true"}
# Of SQLite's plan: what is read whole, of what the database stores. The routes of languages are few.
SCAN = re.compile(r"SCAN ((?:annotate|corpora|auth|django)_\w+|unit|lease|judgment|own|said|U\d+|T\d+)\b")
FEW = {LanguageRoute._meta.db_table}


@pytest.mark.sqlite_only
def test_an_answer_scans_no_table(make_task, person, client):
    task, ann = make_task([DISPUTED, AGREED] * 8, audit_least=4), person("ann", "de en fr")
    client.force_login(ann.user)
    client.post(f"/tasks/{task.name}/start/", headers=HTMX)
    asked = []

    def keep(execute, sql, params, many, context):
        asked.append((sql, params))
        return execute(sql, params, many, context)

    form = {"lease": open_lease(ann, task).pk, "answer": "de"}
    with connection.execute_wrapper(keep):
        reply = client.post(f"/tasks/{task.name}/judge/", form, headers=HTMX)
    assert 'name="lease"' in reply.text
    assert len(asked) > 15
    with connection.cursor() as cursor:
        for sql, params in asked:
            if not sql.startswith("BEGIN"):
                cursor.execute(f"EXPLAIN QUERY PLAN {sql}", params)
                found = {name for row in cursor.fetchall() for name in SCAN.findall(row[-1])}
                assert found <= FEW, sql
