"""Settings of the benchmark of databases: as installed, or with Django's own SQLite backend.

BENCH_SQLITE_TIMEOUT: seconds for which that backend tries to write; without it, SQLite is as installed.
"""

import os

from deploy.settings import *  # noqa: F403
from deploy.settings import DATABASES

if timeout := os.environ.get("BENCH_SQLITE_TIMEOUT"):
    DATABASES["default"]["ENGINE"] = "django.db.backends.sqlite3"
    DATABASES["default"]["OPTIONS"]["timeout"] = float(timeout)
