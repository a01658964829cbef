"""Connections to the addresses of webhooks.

A manager of the site must not be able to reach the machines behind its firewall. A notification is therefore sent only
to public IP addresses, unless ASSAY_WEBHOOK_HOSTS names the host. The name is looked up once, and the connection goes
to an address that was checked, so a name server cannot give another address in between. Redirects are not followed.
"""

import socket
import ssl
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ipaddress import IPv6Address, ip_address
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from annotate.core.refusals import InvalidAnswer

TIMEOUT = 10.0  # maximum waiting time for a connection and for a response, in seconds
LONGEST_REPLY = 4096  # number of bytes of a response that are read
PORTS = {"https": 443, "http": 80}


class NoReply(Exception):
    """Raised if a notification could not be sent."""


def check_address(url: str) -> None:
    """Raise InvalidAnswer if nothing may be sent to a URL."""
    try:
        _checked(_parts(url))
    except NoReply as error:
        raise InvalidAnswer(f"{error} Enter another URL.") from error


def post(url: str, body: bytes, headers: Mapping[str, str]) -> int:
    """Send a POST request and return the status of the response. Raise NoReply if there is none."""
    parts = _parts(url)
    connection = _connection(parts, _checked(parts))
    try:
        connection.request("POST", f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}", body, dict(headers))
        response = connection.getresponse()
        response.read(LONGEST_REPLY)
        return response.status
    except TimeoutError as error:
        raise NoReply(f"No response within {TIMEOUT:g} seconds.") from error
    except ssl.SSLCertVerificationError as error:
        raise NoReply(f"The certificate is not valid: {error.verify_message}.") from error
    except (OSError, HTTPException, ValueError) as error:
        raise NoReply(f"The connection failed: {getattr(error, 'strerror', '') or type(error).__name__}.") from error
    finally:
        connection.close()


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in PORTS or not host or not url.isascii() or not url.isprintable() or " " in url:
        raise NoReply(f"{url[:60]!r} is not a URL that begins with https://.")
    if parts.username is not None:
        raise NoReply("The URL contains a user name, which would be stored.")
    if parts.scheme == "http" and host not in settings.WEBHOOK_HOSTS:
        raise NoReply("Notifications are sent by HTTPS only, unless ASSAY_WEBHOOK_HOSTS names the host.")
    return parts


def _checked(parts: SplitResult) -> tuple[str, int]:
    """Return the IP address and port to connect to. Raise NoReply if nothing may be sent there."""
    host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
    try:
        addresses = [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError) as error:
        raise NoReply(f"The host {host} cannot be found.") from error
    if host not in settings.WEBHOOK_HOSTS and not all(map(_is_public, addresses)):
        raise NoReply(f"The host {host} is in a private network, and ASSAY_WEBHOOK_HOSTS does not name it.")
    return addresses[0], port


def _is_public(text: str) -> bool:
    address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return address.is_global and not address.is_multicast


def _connection(parts: SplitResult, address: tuple[str, int]) -> HTTPConnection:
    """Return a connection to the address, with the name of the host for the header Host and the certificate."""
    connection_class = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = connection_class(parts.hostname or "", parts.port, timeout=TIMEOUT)
    connection._create_connection = lambda _, *options: socket.create_connection(address, *options)  # type: ignore[attr-defined]
    return connection
