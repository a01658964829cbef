"""Selection of the installation for a notebook, and setup of Django for it.

This module must not import modules that require Django to be set up.
"""

import os
import secrets
from importlib import import_module
from pathlib import Path

import django
from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from corpora.core import CorpusError

KEYS = ("ASSAY_SECRET_KEY", "ASSAY_AUTHOR_KEY")


class AssayError(Exception):
    """The request failed. The message states what is wrong, where, and what to do."""


def use(folder: str | os.PathLike[str]) -> None:
    """Select an installation by its data folder. The folder takes precedence over ASSAY_DATA_DIR.

    Call this before anything else. If DATABASE_URL is set, it still selects the database.

    Raise AssayError if the folder does not exist, or if a different installation is already in use.
    """
    path = Path(folder).expanduser().resolve()
    if not path.is_dir():
        raise AssayError(f"The folder {path} does not exist. Specify the data folder of an installation.")
    if apps.ready and path != settings.DATA_DIR:
        raise AssayError(
            f"{settings.DATA_DIR} is already in use. Restart the kernel and call assay.use before any other function."
        )
    os.environ["ASSAY_DATA_DIR"] = str(path)


def set_up_django() -> None:
    """Set up Django if necessary, without writing anything to disk."""
    if apps.ready:
        return
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.settings")
    # Without keys, the settings would create a data folder with new keys. Gold sets can be read without an
    # installation, so use temporary keys here. Code that needs the installation's keys calls `load_keys`.
    missing = [key for key in KEYS if not os.environ.get(key)]
    os.environ |= {key: secrets.token_urlsafe(50) for key in missing}
    try:
        django.setup()
    except ImproperlyConfigured as error:
        raise AssayError(f"The settings are not valid: {error}") from error
    except CorpusError as error:
        raise AssayError(str(error)) from error
    finally:
        for key in missing:
            del os.environ[key]


def load_keys() -> None:
    """Load the installation's keys, as commands do. Call this before code that needs the keys."""
    deployed = import_module(os.environ["DJANGO_SETTINGS_MODULE"])
    for key in KEYS:
        name = key.removeprefix("ASSAY_")
        setattr(settings, name, deployed.installation_key(name))


def check_installed() -> None:
    """Raise AssayError if the SQLite database does not exist. Connecting to it would create an empty database."""
    database = settings.DATABASES["default"]
    if database["ENGINE"].endswith(".sqlite") and not Path(database["NAME"]).exists():
        from corpora.system import DatabaseAway, check_not_away

        try:
            check_not_away(str(database["NAME"]))
        except DatabaseAway as error:
            raise AssayError(str(error)) from None
        raise AssayError(
            f"{settings.DATA_DIR} contains no installation. Select another folder with assay.use(folder) or "
            "ASSAY_DATA_DIR, or create an installation with `assay serve`."
        )
