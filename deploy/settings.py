"""Django settings. Installations differ only in environment variables, which are documented in deploy/env.example.

Without any variables, the settings are safe defaults for a single machine: debug mode is off, the database is SQLite,
all data is in one folder, and only requests to localhost are accepted.
"""

import os
import secrets
import zoneinfo
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

from corpora.system import FOLDER, IN_CHECKOUT, VERSION

BASE_DIR = Path(__file__).resolve().parent.parent


def data_dir() -> Path:
    """Return the data folder, which contains the corpora, the SQLite database and the installation's keys.

    In a checkout, it is inside the checkout. If Assay was installed with pip, it is in the user's data directory, so
    that commands find it from any working directory.
    """
    if chosen := os.environ.get("ASSAY_DATA_DIR"):
        return Path(chosen).resolve()
    if IN_CHECKOUT:
        return BASE_DIR / "var"
    try:
        return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser().resolve() / "assay"
    except RuntimeError as error:
        raise ImproperlyConfigured(
            "The home directory for the data cannot be determined. Set ASSAY_DATA_DIR."
        ) from error


DATA_DIR = data_dir()


def installation_key(name: str) -> str:
    """Return a key from the environment or the data folder, or generate one and store it there (mode 0600)."""
    if value := os.environ.get(f"ASSAY_{name}"):
        return value
    path = DATA_DIR / name.lower()
    try:
        return _stored_key(path)
    except OSError as error:
        raise ImproperlyConfigured(
            f"The data folder {DATA_DIR} cannot be used: {error.strerror}. Set ASSAY_DATA_DIR to another folder."
        ) from error


def _stored_key(path: Path) -> str:
    if not path.exists():
        path.parent.mkdir(FOLDER, parents=True, exist_ok=True)
        # Write a draft and link it into place, so that two processes that start at the same time get the same key.
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


def served_address() -> str:
    """Return the URL where `assay serve` last listened, as stored in the data folder."""
    try:
        return (DATA_DIR / "address").read_text()
    except OSError:
        return "http://localhost:8000"


def flag(name: str) -> bool:
    value = os.environ.get(name, "").lower()
    if value not in ("", "0", "1", "true", "false"):
        raise ImproperlyConfigured(f"{name} is {value!r}. It must be 1 or 0.")
    return value in ("1", "true")


def whole_number(name: str, default: int = 0) -> int:
    value = os.environ.get(name) or str(default)
    if not (value.isascii() and value.isdigit()):
        raise ImproperlyConfigured(f"{name} is {value!r}. It must be a whole number, such as 1.")
    return int(value)


SECRET_KEY = installation_key("SECRET_KEY")
# Author ids are hashed with this key, so that nobody without it can identify authors by hashing the ids of known
# accounts.
AUTHOR_KEY = installation_key("AUTHOR_KEY")

# The engine that runs queries on corpora (corpora/engines): DuckDB on this machine, or Spark.
ENGINE = os.environ.get("ASSAY_ENGINE") or "duckdb"
if ENGINE not in ("duckdb", "spark"):
    raise ImproperlyConfigured(f"ASSAY_ENGINE is {ENGINE!r}. It must be duckdb or spark.")
SPARK_MASTER = os.environ.get("ASSAY_SPARK_MASTER", "")
# Object storage in which several servers share corpora (corpora/storage/bucket.py).
CORPORA = os.environ.get("ASSAY_CORPORA", "").rstrip("/")
# The endpoint of `vote`, and its key, which is never stored.
ENDPOINT = os.environ.get("ASSAY_ENDPOINT", "")
ENDPOINT_KEY = os.environ.get("ASSAY_ENDPOINT_KEY", "").strip()

# Webhook hosts that may be in a private network or without HTTPS.
WEBHOOK_HOSTS = [host for host in os.environ.get("ASSAY_WEBHOOK_HOSTS", "").replace(" ", "").lower().split(",") if host]

DEBUG = flag("ASSAY_DEBUG")
HOSTS_ASSUMED = "ASSAY_HOSTS" not in os.environ
ALLOWED_HOSTS = os.environ.get("ASSAY_HOSTS", "localhost,127.0.0.1,[::1]").replace(",", " ").split()
HTTPS = flag("ASSAY_HTTPS")
# The number of proxies. Each of them appends its client's address to X-Forwarded-For. All earlier addresses in this
# header may be forged.
PROXIES = whole_number("ASSAY_PROXIES")
# The site's URL, for links that are created outside of requests.
SITE = os.environ.get("ASSAY_SITE", "").rstrip("/")
SITE_ASSUMED = not (SITE or HTTPS)
SITE = SITE or (f"https://{ALLOWED_HOSTS[0]}" if HTTPS else served_address())
if not SITE.startswith(("https://", "http://")):
    raise ImproperlyConfigured(f"ASSAY_SITE is {SITE!r}. It must begin with https:// or http://.")

INSTALLED_APPS = [
    "knox",
    "corpora",
    "annotate",
    "django.contrib.admin.apps.SimpleAdminConfig",
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
    "axes",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "deploy.static_files.Middleware",
    "annotate.pages.middleware.HeadersMiddleware",
    "annotate.pages.middleware.InTurnMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "annotate.pages.middleware.LogInMiddleware",
    "annotate.pages.middleware.PreferencesMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "annotate.pages.middleware.RefusalMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "annotate.urls"
WSGI_APPLICATION = "deploy.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "OPTIONS": {
            "loaders": [
                (
                    "django.template.loaders.cached.Loader",
                    ["django.template.loaders.app_directories.Loader", "annotate.templatetags.assay_tags.FormLoader"],
                )
            ],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]


def database() -> dict[str, Any]:
    url = os.environ.get("DATABASE_URL") or f"sqlite:///{quote(str(DATA_DIR / 'assay.sqlite3'))}"
    schemes = ("sqlite:///", "postgres://", "postgresql://")
    if not url.startswith(schemes):
        raise ImproperlyConfigured(
            "DATABASE_URL must begin with postgresql:// or sqlite:///, "
            "for example postgresql://user:password@localhost/assay."
        )
    try:
        config: dict[str, Any] = {**dj_database_url.parse(url, conn_max_age=60, conn_health_checks=True)}
    except (ValueError, dj_database_url.ParseError) as error:
        raise ImproperlyConfigured(f"DATABASE_URL cannot be read: {error}.") from error
    if not url.startswith("sqlite"):
        options = config.setdefault("OPTIONS", {})
        # Allow prepared statements, which Django disables by default (corpora/database/statements.py).
        options.setdefault("prepare_threshold", 5)
        # PostgreSQL's JIT compiler takes seconds for statements that it expects to be expensive, although saving an
        # answer takes only milliseconds. Options from the URL come last, so they take precedence.
        options["options"] = f"-c jit=off {options.get('options', '')}".strip()
    if url.startswith("sqlite"):
        # Writers queue for a file lock (deploy/sqlite/base.py). In WAL mode, readers never wait.
        config["ENGINE"] = "deploy.sqlite"
        config["OPTIONS"] = {
            "transaction_mode": "IMMEDIATE",
            "timeout": 30,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
        }
        # Tests use a database file, as production does, so that the threads of a test can share it.
        config["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}
    return config


DATABASES = {"default": database()}
# The cache `figures` holds figures of large tasks. All processes of the server share it
# (annotate/figures/figure_cache.py).
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    "figures": {"BACKEND": "django.core.cache.backends.filebased.FileBasedCache", "LOCATION": DATA_DIR / "figures"},
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# The pages, the admin and `assay django changepassword` use these validators. The last of them accepts every password,
# but revokes the account's API tokens and invitations when the password changes.
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
    {"NAME": "annotate.work.accounts.RevokeOnPasswordChange"},
]
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "annotate.pages.access.PasswordBackend"]
SESSION_ENGINE = "annotate.pages.access"
# After failed attempts, a username is locked out only at the attempts' address, so that an attacker can't lock out a
# user at a different address.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=30)
# Further attempts don't extend the lockout, because the page states how long it lasts.
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_RESET_ON_SUCCESS = True
AXES_CLIENT_IP_CALLABLE = "annotate.pages.api_access.address_of"
AXES_LOCKOUT_CALLABLE = "annotate.pages.account.locked_out"
# For privacy, failed attempts are deleted after half an hour. The submitted passwords are never stored, because they
# may be valid on other sites.
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False
AXES_SENSITIVE_PARAMETERS = [
    *("username", "ip_address", "csrfmiddlewaretoken"),
    *("password", "old_password", "new_password1", "new_password2"),
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"
PASSWORD_RESET_TIMEOUT = 3600  # validity of a password-reset link, in seconds
CSRF_FAILURE_VIEW = "annotate.pages.error_responses.csrf_failure"

# Scheme of ASSAY_MAIL -> (default port, whether to use TLS, whether to use STARTTLS).
MAIL_SCHEMES = {"smtps": (465, True, False), "smtp+starttls": (587, False, True), "smtp": (25, False, False)}


def mail_server(address: str) -> tuple[str, int, str, str, bool, bool]:
    """Parse a mail URL. Return the host, port, user, password, whether to use TLS, and whether to use STARTTLS.

    Raise ImproperlyConfigured if the URL is invalid.
    """
    try:
        url = urlsplit(address)
        port, tls, starttls = MAIL_SCHEMES[url.scheme]
        if url.hostname and not url.path.strip("/"):
            user, password = unquote(url.username or ""), unquote(url.password or "")
            return url.hostname, url.port or port, user, password, tls, starttls
    except (KeyError, ValueError):
        pass
    # Don't repeat the value in the message, because it may contain a password.
    raise ImproperlyConfigured(
        "ASSAY_MAIL is not valid. Expected a URL such as smtp+starttls://user:password@mail.example.org:587 that "
        f"begins with one of {', '.join(f'{scheme}://' for scheme in MAIL_SCHEMES)}. Characters such as / and @ in the "
        "password must be percent-encoded."
    )


MAIL = bool(os.environ.get("ASSAY_MAIL"))
if MAIL:
    EMAIL_HOST, EMAIL_PORT, EMAIL_HOST_USER, EMAIL_HOST_PASSWORD, EMAIL_USE_SSL, EMAIL_USE_TLS = mail_server(
        os.environ["ASSAY_MAIL"]
    )
EMAIL_TIMEOUT = 30  # seconds
DEFAULT_FROM_EMAIL = os.environ.get("ASSAY_MAIL_FROM") or f"assay@{urlsplit(SITE).hostname}"

# The languages of the annotators' pages. The translations are in annotate/locale/.
LANGUAGE_CODE = "en"
LANGUAGES = [
    ("en", "English"),
    ("de", "German"),
    ("fr", "French"),
    ("es", "Spanish"),
    ("ar", "Arabic"),
    ("he", "Hebrew"),
]
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600  # seconds
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SAMESITE = "Lax"

TIME_ZONE = os.environ.get("ASSAY_TIME_ZONE", "UTC")
try:
    zoneinfo.ZoneInfo(TIME_ZONE)
except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
    raise ImproperlyConfigured(
        f"ASSAY_TIME_ZONE is {TIME_ZONE!r}. It must be the name of a time zone, such as Europe/Berlin."
    ) from error

# Managers' uploads go directly to the data folder.
FILE_UPLOAD_HANDLERS = ["annotate.manager_pages.inbox.InboxUploadHandler"]
UPLOAD_MOST = whole_number("ASSAY_UPLOAD_MOST", 2048) << 20  # maximum size of a file (bytes)

STATIC_URL = "static/"
# Serve static files directly from the packages, so that nobody needs to run collectstatic.
WHITENOISE_USE_FINDERS = True
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "deploy.static_files.Storage"},
}

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = 31536000 if HTTPS else 0
if HTTPS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

CONTENT_SECURITY_POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "annotate.pages.api_access.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_THROTTLE_CLASSES": ["annotate.pages.api_access.PerMinute"],
    "DEFAULT_METADATA_CLASS": "annotate.pages.api_access.NoMetadata",
    "EXCEPTION_HANDLER": "annotate.pages.error_responses.api_exception_handler",
    "NUM_PROXIES": PROXIES,
}
# The maximum number of requests per minute. A client that answers one unit at a time stays below it: in tests, a
# request took 24 ms, so such a client can make 2,500 requests per minute.
API_RATE = whole_number("ASSAY_API_RATE", 6000)
API_RATE_UNKNOWN = whole_number("ASSAY_API_RATE_UNKNOWN", 300)
REST_KNOX = {"TOKEN_TTL": timedelta(days=90), "AUTH_HEADER_PREFIX": "Token"}
SPECTACULAR_SETTINGS = {
    "TITLE": "Assay",
    "DESCRIPTION": "For annotators: request a unit, answer or skip it, undo, and read the progress. For adjudicators: "
    "list the pending units, read a unit with its votes and judgments, and decide it. For managers: upload files, "
    "start actions as jobs, follow the jobs, and download what they wrote.",
    "VERSION": VERSION,
    "SERVE_INCLUDE_SCHEMA": False,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "annotate.api.manager_api.describe_actions",
    ],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    # Two models have a field `kind`, so each of the two enumerations needs a name.
    "ENUM_NAME_OVERRIDES": {
        "KindEnum": "annotate.models.work.Judgment.KINDS",
        "FlagKindEnum": "annotate.models.quality.Flag.KINDS",
    },
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"masked": {"()": "deploy.MaskingFormatter"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "masked"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
}
