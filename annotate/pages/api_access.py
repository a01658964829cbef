"""Access to the API: its tokens, its rate limit, and its responses to OPTIONS."""

# Django REST framework has no types.
# mypy: disallow-subclassing-any=False

import binascii
import fcntl
import os
import time
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from hmac import compare_digest
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from drf_spectacular.contrib.knox_auth_token import KnoxTokenScheme
from knox import auth
from knox.crypto import hash_token
from knox.models import AuthToken
from knox.settings import CONSTANTS
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.metadata import BaseMetadata
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from corpora.database.statements import prepared


class TokenAuthentication(auth.TokenAuthentication):
    """Knox's authentication with two changes.

    Tokens that aren't ASCII are rejected, because Knox would raise an error. Expired tokens are looked up only if no
    valid token matches.
    """

    def authenticate_credentials(self, token: bytes) -> Any:
        if not token.isascii():
            raise AuthenticationFailed
        text = token.decode()
        for valid in _tokens(text[: CONSTANTS.TOKEN_KEY_LENGTH], timezone.now()):
            with suppress(TypeError, binascii.Error):  # not a token; Knox reports this below
                if compare_digest(hash_token(text), valid.digest):
                    return self.validate_user(valid)
        return super().authenticate_credentials(token)


@prepared
def _tokens(key: str, now: datetime) -> QuerySet[AuthToken]:
    valid: QuerySet[AuthToken] = AuthToken.objects.filter(token_key=key, expiry__gt=now)
    return valid.select_related("user")


class TokenScheme(KnoxTokenScheme):  # type: ignore[no-untyped-call] # its __init_subclass__ has no annotations
    """The authentication scheme in the OpenAPI schema."""

    target_class = f"{__name__}.{TokenAuthentication.__name__}"


# --- Responses to OPTIONS


class NoMetadata(BaseMetadata):
    """Leave the body of responses to OPTIONS empty.

    The Allow header already lists the methods, and the schema describes requests and responses.
    """

    def determine_metadata(self, request: Request, view: object) -> None:
        return None


# --- Rate limit of the API: requests per minute for each user or, without a login, for each IP address
#
# The counts are stored in files in the data folder. If they were in memory, each worker would count separately, so that
# three workers would accept three times the limit. A cache that is read and then written would miss simultaneous
# requests, which matter most. A database row would add a commit to each request and, on SQLite, delay answers.

NETWORK = 64  # length of an IPv6 prefix in bits; one customer usually controls all addresses with the same prefix


def address_of(request: HttpRequest) -> str | None:
    """Return the client's IP address or, for IPv6, the address of the client's network.

    If the site runs behind proxies, the address is the one that the outermost proxy saw (ASSAY_PROXIES in
    deploy/env.example). Return None if there is no address, for example behind a local socket.
    """
    try:
        address = ip_address(BaseThrottle().get_ident(request) or "")
    except ValueError:
        return None
    if address.version == 4:
        return str(address)
    return str(address.ipv4_mapped or ip_network((address, NETWORK), strict=False).network_address)


MINUTE = 60  # seconds
# A user's slot number is the user's primary key. All addresses share a fixed number of slots. Otherwise, requests from
# many addresses could fill the disk.
ADDRESSES = 1 << 16
# A slot contains two numbers: the minutes since the epoch, and the number of requests in that minute.
NUMBER = 4  # size of each number, in bytes


def allows_visitor(request: HttpRequest) -> bool:
    """Count a request without a login. Return whether the client's address is within ASSAY_API_RATE_UNKNOWN."""
    address = sha256((address_of(request) or "").encode()).digest()
    return _allows(settings.API_RATE_UNKNOWN, "addresses", int.from_bytes(address[:8], "big") % ADDRESSES)


class PerMinute(BaseThrottle):
    """A throttle that limits the requests in each clock minute.

    A user can send ASSAY_API_RATE requests per minute. Without a login, an address can send ASSAY_API_RATE_UNKNOWN.
    """

    def allow_request(self, request: Request, view: object) -> bool:
        if request.user.is_authenticated:
            return _allows(settings.API_RATE, "people", request.user.pk)
        return allows_visitor(request)

    def wait(self) -> float:
        return MINUTE - time.time() % MINUTE


def _allows(rate: int, name: str, slot: int) -> bool:
    """Count a request. Return whether it is within the limit.

    rate: maximum number of requests per minute; 0 for no limit
    name: name of the file with the counts
    slot: number of the slot in the file
    """
    try:
        return not rate or _count(settings.DATA_DIR / "requests" / name, slot, int(time.time() // MINUTE)) <= rate
    except OSError:
        return True  # On a full disk, the API works without a limit.


def _count(path: Path, slot: int, minute: int) -> int:
    """Count a request in a slot of the file. Return the number of requests in this minute."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        stored = os.pread(file, 2 * NUMBER, 2 * NUMBER * slot)
        count = 1 + int.from_bytes(stored[NUMBER:]) * (int.from_bytes(stored[:NUMBER]) == minute)
        os.pwrite(file, minute.to_bytes(NUMBER) + count.to_bytes(NUMBER), 2 * NUMBER * slot)
        return count
    finally:
        os.close(file)  # closing releases the lock
