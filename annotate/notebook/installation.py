"""Which installation a notebook is about, and Django set up for it. Imports nothing that needs Django."""

import os
import secrets
from importlib import import_module
from pathlib import Path

import django
from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

KEYS = ("ASSAY_SECRET_KEY", "ASSAY_AUTHOR_KEY")


class AssayError(Exception):
    """What was asked cannot be done; str() is a sentence that says what is wrong, where, and what to do."""


def use(folder: str | os.PathLike[str]) -> None:
    """Ask the installation whose data folder this is, instead of that of ASSAY_DATA_DIR.

    Before anything else is asked: AssayError once another is in use, or where there is no such folder. Where
    DATABASE_URL is set, the database is the one that it names.
    """
    path = Path(folder).expanduser().resolve()
    if not path.is_dir():
        raise AssayError(f"There is no folder {path}; name the data folder of an installation.")
    if apps.ready and path != settings.DATA_DIR:
        raise AssayError(
            f"{settings.DATA_DIR} is in use already; call assay.use first of all, in a kernel that was just started."
        )
    os.environ["ASSAY_DATA_DIR"] = str(path)


def begin() -> None:
    """Set Django up, if nobody has. Nothing is written."""
    if apps.ready:
        return
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.settings")
    # Where there are no keys the settings would make some, and keep them in a new data folder: a gold set can be read
    # without an installation. What needs the real ones asks `own_keys`.
    lacking = [key for key in KEYS if not os.environ.get(key)]
    os.environ |= {key: secrets.token_urlsafe(50) for key in lacking}
    try:
        django.setup()
    except ImproperlyConfigured as error:
        raise AssayError(f"Wrong settings: {error}") from error
    finally:
        for key in lacking:
            del os.environ[key]


def own_keys() -> None:
    """Take the installation's own keys, as a command does, before anything is done that needs them."""
    deployed = import_module(os.environ["DJANGO_SETTINGS_MODULE"])
    for key in KEYS:
        name = key.removeprefix("ASSAY_")
        setattr(settings, name, deployed.installation_key(name))


def check_installed() -> None:
    """AssayError where the database is a file that is not there: asking it would make an empty one."""
    database = settings.DATABASES["default"]
    if database["ENGINE"].endswith(".sqlite") and not Path(database["NAME"]).exists():
        from corpora.system import DatabaseAway, check_not_away

        try:
            check_not_away(str(database["NAME"]))
        except DatabaseAway as error:
            raise AssayError(str(error)) from None
        raise AssayError(
            f"There is no installation in {settings.DATA_DIR}; say where there is one with assay.use(folder) or "
            "ASSAY_DATA_DIR, or make one: assay serve."
        )
