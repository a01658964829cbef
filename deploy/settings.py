"""Settings, the same file everywhere; differences between installations come from the environment.

Every variable is listed with its meaning in deploy/env.example. If none is set, this is a safe single-machine
installation: debug off, SQLite, all state in one folder, answering on localhost only.
"""

import os
import secrets
import zoneinfo
from pathlib import Path
from urllib.parse import quote

import dj_database_url
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from corpora.checkout import IN_CHECKOUT
from corpora.version import VERSION

BASE_DIR = Path(__file__).resolve().parent.parent


def data_dir() -> Path:
    """Where corpora, the embedded database and the installation's keys are.

    A checkout has a folder of its own. What pip installed keeps its data where programs keep a user's: so every command
    finds them, whichever folder it is run in.
    """
    if chosen := os.environ.get("ASSAY_DATA_DIR"):
        return Path(chosen).resolve()
    if IN_CHECKOUT:
        return BASE_DIR / "var"
    try:
        return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser().resolve() / "assay"
    except RuntimeError as error:
        raise ImproperlyConfigured("There is no home directory for the data. Set ASSAY_DATA_DIR.") from error


DATA_DIR = data_dir()


def installation_key(name: str) -> str:
    """The environment's NAME, else a key that is made once and kept in the data directory, readable only by
    its owner.
    """
    if value := os.environ.get(f"ASSAY_{name}"):
        return value
    path = DATA_DIR / name.lower()
    try:
        return _kept_key(path)
    except OSError as error:
        raise ImproperlyConfigured(
            f"The data directory {DATA_DIR} cannot be used: {error.strerror}. Set ASSAY_DATA_DIR to a usable directory."
        ) from error


def _kept_key(path: Path) -> str:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        # Written beside and linked into place: if two processes start together, one wins and both read its key.
        draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(50))
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text()


def flag(name: str) -> bool:
    value = os.environ.get(name, "").lower()
    if value not in ("", "0", "1", "true", "false"):
        raise ImproperlyConfigured(f"{name} is {value!r}; set it to 1 or 0.")
    return value in ("1", "true")


SECRET_KEY = installation_key("SECRET_KEY")
# Author ids are hashed with this key, so that they cannot be found by hashing every known account.
AUTHOR_KEY = installation_key("AUTHOR_KEY")

DEBUG = flag("ASSAY_DEBUG")
HOSTS_ASSUMED = "ASSAY_HOSTS" not in os.environ
ALLOWED_HOSTS = os.environ.get("ASSAY_HOSTS", "localhost,127.0.0.1,[::1]").replace(",", " ").split()
HTTPS = flag("ASSAY_HTTPS")
# The address of the site, for what is printed outside any request.
SITE = os.environ.get("ASSAY_SITE", "").rstrip("/")
SITE_ASSUMED = not (SITE or HTTPS)
SITE = SITE or (f"https://{ALLOWED_HOSTS[0]}" if HTTPS else "http://localhost:8000")
if not SITE.startswith(("https://", "http://")):
    raise ImproperlyConfigured(f"ASSAY_SITE is {SITE!r}; begin it with https:// or http://.")

INSTALLED_APPS = [
    "knox",
    "corpora",
    "annotate",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "csp",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "annotate.pages.middleware.RefusalMiddleware",
]

ROOT_URLCONF = "deploy.urls"
WSGI_APPLICATION = "deploy.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]


def database() -> dict:
    url = os.environ.get("DATABASE_URL") or f"sqlite:///{quote(str(DATA_DIR / 'assay.sqlite3'))}"
    schemes = ("sqlite:///", "postgres://", "postgresql://")
    if not url.startswith(schemes):
        raise ImproperlyConfigured(
            "DATABASE_URL must begin with postgresql:// or sqlite:/// "
            "(for example postgresql://user:password@localhost/assay)."
        )
    try:
        config = dj_database_url.parse(url, conn_max_age=60, conn_health_checks=True)
    except (ValueError, dj_database_url.ParseError) as error:
        raise ImproperlyConfigured(f"DATABASE_URL cannot be read: {error}.") from error
    if url.startswith("sqlite"):
        # Writers queue on one file lock (deploy/sqlite/base.py says why); readers are never held up (WAL).
        config["ENGINE"] = "deploy.sqlite"
        config["OPTIONS"] = {
            "transaction_mode": "IMMEDIATE",
            "timeout": 30,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
        }
        # A file, as in real use: a test's threads share it as workers do.
        config["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}
    return config


DATABASES = {"default": database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"
CSRF_FAILURE_VIEW = "annotate.pages.middleware.csrf_failure"

TIME_ZONE = os.environ.get("ASSAY_TIME_ZONE", "UTC")
if TIME_ZONE not in zoneinfo.available_timezones():
    raise ImproperlyConfigured(
        f"ASSAY_TIME_ZONE is {TIME_ZONE!r}, which is not the name of a time zone such as Europe/Berlin."
    )

STATIC_URL = "static/"
# Static files are served from the packages themselves, so that no collectstatic step can be forgotten.
WHITENOISE_USE_FINDERS = True

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = 31536000 if HTTPS else 0
if HTTPS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "knox.auth.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "annotate.pages.errors.api_exception_handler",
}
REST_KNOX = {"TOKEN_TTL": None, "AUTH_HEADER_PREFIX": "Token"}
SPECTACULAR_SETTINGS = {
    "TITLE": "Assay",
    "DESCRIPTION": "The annotator's queue: take a unit, judge or skip it, undo, and see how far the queue is. And the "
    "adjudicator's list: what waits, one unit with what is known of it, and the decision.",
    "VERSION": VERSION,
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
}
