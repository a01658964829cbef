"""Digests of the content of an installation, for comparisons: of files, of exact tables, and of tables by meaning.

Django must be set up for the tables.
"""

import hashlib
import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from django.apps import apps
from django.db import connection, models

# Values that differ between runs: Django's secrets, and times.
OF_THE_RUN = {("auth.User", "password"), ("annotate.Invite", "digest"), ("knox.AuthToken", "*")}
# Locks and journals do not describe the content.
SQLITE = "assay.sqlite3"
PASSING = ("lock", "migrating.lock", "assay.sqlite3-shm", "assay.sqlite3-wal", "assay.sqlite3.writers")


def files(folder: Path, but: Iterable[str] = ()) -> dict[str, str]:
    """Return the SHA-256 of each file by path. but: names to ignore in addition to locks."""
    left_out = {*PASSING, *but}
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in left_out
    }


def tables() -> dict[str, str]:
    """Return a digest of all columns of each table's rows, by table."""
    with connection.cursor() as cursor:
        digests = {}
        for table in connection.introspection.table_names(cursor):
            rows = cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}").fetchall()
            digests[table] = _digest(sorted(map(repr, rows)))
    return digests


def meaning() -> dict[str, str]:
    """Return the number of rows of each model, and their digest without primary keys, times and random values. A
    reference to another row is replaced with the digest of that row."""
    classes = [model for model in apps.get_models(include_auto_created=True) if model._meta.app_label != "sessions"]
    rows = {model: {row["pk"]: row for row in _rows(model)} for model in classes}
    digests: dict[tuple[type[models.Model], Any], str] = {}

    def digest_of(model: type[models.Model], pk: Any) -> str:
        if (model, pk) not in digests:
            values = [_value(model, field, rows[model][pk][field.attname]) for field in _fields(model)]
            digests[model, pk] = _digest(values)
        return digests[model, pk]

    def _value(model: type[models.Model], field: models.Field, value: Any) -> str:
        if isinstance(field, models.ForeignKey) and value is not None and field.related_model in rows:
            return digest_of(field.related_model, value)
        if isinstance(value, datetime):
            return "a moment"
        if isinstance(value, dict) and {"at", "digest"} <= value.keys():
            return "a moment"  # the digest of a closed task's outcomes contains the time
        return json.dumps(value, sort_keys=True, default=str)

    summary = {}
    for model, of in rows.items():
        if of:
            summary[model._meta.label] = f"{len(of)} {_digest(sorted(digest_of(model, pk) for pk in of))}"
    return summary


def _rows(model: type[models.Model]) -> Iterable[dict[str, Any]]:
    return model._base_manager.values("pk", *(field.attname for field in _fields(model)))


def _fields(model: type[models.Model]) -> list[models.Field]:
    label = model._meta.label
    return [
        field
        for field in model._meta.concrete_fields
        if not field.primary_key and not OF_THE_RUN.intersection({(label, field.name), (label, "*")})
    ]


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def main() -> None:
    """Print the digests of the installation in ASSAY_DATA_DIR as JSON."""
    import django

    django.setup()
    from django.conf import settings

    print(json.dumps([tables(), files(settings.DATA_DIR, [SQLITE])]))


if __name__ == "__main__":
    main()
