"""Whom a token of the API belongs to."""

import binascii
import fcntl
import os
import time
from contextlib import suppress
from hashlib import sha256
from hmac import compare_digest
from ipaddress import ip_address, ip_network
from pathlib import Path

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import UpdateError
from django.contrib.sessions.models import Session
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.contrib.knox_auth_token import KnoxTokenScheme
from knox import auth
from knox.crypto import hash_token
from knox.models import AuthToken
from knox.settings import CONSTANTS
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.metadata import BaseMetadata
from rest_framework.throttling import BaseThrottle

from corpora.database.statements import prepared
from corpora.system import is_storage_fault


class TokenAuthentication(auth.TokenAuthentication):
    """Knox's, which fails on a token that is no UTF-8, and with every request looks for tokens that have expired."""

    def authenticate_credentials(self, token: bytes):
        if not token.isascii():
            raise AuthenticationFailed
        text = token.decode()
        for found in _tokens(text[: CONSTANTS.TOKEN_KEY_LENGTH], timezone.now()):
            with suppress(TypeError, binascii.Error):  # it is no token, which Knox says
                if compare_digest(hash_token(text), found.digest):
                    return self.validate_user(found)
        return super().authenticate_credentials(token)


@prepared
def _tokens(key, now) -> QuerySet[AuthToken]:
    return AuthToken.objects.filter(token_key=key, expiry__gt=now).select_related("user")


class TokenScheme(KnoxTokenScheme):
    """How the reference of the API tells of it."""

    target_class = TokenAuthentication


# --- The session and the account of a request, which every one asks for: Django's own, by statements built once.


class SessionStore(db.SessionStore):
    def _get_session_from_db(self) -> Session | None:
        found = _session(self.session_key, timezone.now())
        if not found:
            self._session_key = None
            return None
        return found[0]

    def save(self, must_create=False):
        try:
            super().save(must_create)
        except UpdateError as error:
            # Django takes it for a session that was ended meanwhile.
            fault = error.__context__
            if fault and is_storage_fault(fault):
                raise fault from fault.__cause__
            raise


class PasswordBackend(ModelBackend):
    def get_user(self, user_id) -> User | None:
        found = _user(user_id)
        return found[0] if found and self.user_can_authenticate(found[0]) else None


@prepared
def _session(key, now) -> QuerySet[Session]:
    return Session.objects.filter(session_key=key, expire_date__gt=now)


@prepared
def _user(key) -> QuerySet[User]:
    return User.objects.filter(pk=key)


# --- Answers to OPTIONS


class NoMetadata(BaseMetadata):
    """The header Allow says which methods an address takes; what it takes and gives is said once, in the schema."""

    def determine_metadata(self, request, view) -> None:
        return None


# --- Requests a minute that the API accepts from one person, or from one address without a login
#
# They are counted in files of the data folder. Memory belongs to one worker, so three workers would accept three times
# as many. A cache that is read and then written loses simultaneous requests, which are the ones to limit. A row of the
# database would add a commit to each request, and on SQLite the answers of others would wait for it.

NETWORK = 64  # bits: of IPv6, one customer has as many addresses as they like behind these


def address_of(request) -> str | None:
    """The address of the browser or program; of IPv6 its network. None where there is none, as behind a local socket.

    Behind proxies it is the one that the outermost of them was reached from (ASSAY_PROXIES in deploy/env.example).
    """
    try:
        address = ip_address(BaseThrottle().get_ident(request) or "")
    except ValueError:
        return None
    if address.version == 4:
        return str(address)
    return str(address.ipv4_mapped or ip_network((address, NETWORK), strict=False).network_address)


MINUTE = 60  # seconds
# A person has the place of their number. Addresses share these places, so that whoever has many fills no disk.
ADDRESSES = 1 << 16
# In a place: the minute, counted from the epoch, and the requests in it.
NUMBER = 4  # bytes of each


class PerMinute(BaseThrottle):
    """Refuses what is beyond ASSAY_API_RATE in the minute of the clock, or beyond ASSAY_API_RATE_UNKNOWN."""

    def allow_request(self, request, view) -> bool:
        if request.user.is_authenticated:
            return _allows(settings.API_RATE, "people", request.user.pk)
        address = sha256((address_of(request) or "").encode()).digest()
        return _allows(settings.API_RATE_UNKNOWN, "addresses", int.from_bytes(address[:8], "big") % ADDRESSES)

    def wait(self) -> float:
        return MINUTE - time.time() % MINUTE


def _allows(rate: int, name: str, place: int) -> bool:
    """rate: requests a minute; with 0 there is no limit."""
    try:
        return not rate or _count(settings.DATA_DIR / "requests" / name, place, int(time.time() // MINUTE)) <= rate
    except OSError:
        return True  # On a full disk the API is better without a limit than without answers.


def _count(path: Path, place: int, minute: int) -> int:
    """How many requests of the minute have come in a place of the file, with this one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        stored = os.pread(file, 2 * NUMBER, 2 * NUMBER * place)
        count = 1 + int.from_bytes(stored[NUMBER:]) * (int.from_bytes(stored[:NUMBER]) == minute)
        os.pwrite(file, minute.to_bytes(NUMBER) + count.to_bytes(NUMBER), 2 * NUMBER * place)
        return count
    finally:
        os.close(file)  # and with it goes the lock
