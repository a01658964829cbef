#!/usr/bin/env python
"""Assay's command line: `python manage.py help` lists the commands."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import OperationalError

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.settings")
    try:
        execute_from_command_line(sys.argv)
    except (ImproperlyConfigured, OperationalError) as error:
        # A wrong setting, or a database that is not there: a sentence is enough, unless one asks for more.
        if "--traceback" in sys.argv:
            raise
        said = " ".join(str(error).split())
        if isinstance(error, ImproperlyConfigured):
            sys.exit(f"Wrong settings: {said}")
        sys.exit(f"The database cannot be used: {said} (See DATABASE_URL; and has `migrate` been run?)")
