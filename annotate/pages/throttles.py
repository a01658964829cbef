"""How many requests the API takes in a minute from one person, and from one address where nobody is logged in.

They are counted in files of the data folder, which all workers share: memory is each worker's own, so that three
workers would take three times as many; a cache that is read and then written loses what comes at once, which a program
that is to be held back sends; and a row of the database would be one more commit for each request, for which the
answers of others wait on SQLite. No request costs a statement of the database.
"""

import fcntl
import os
import time
from hashlib import sha256
from ipaddress import ip_address, ip_network
from pathlib import Path

from django.conf import settings
from rest_framework.throttling import BaseThrottle

# --- From which address somebody comes.


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
