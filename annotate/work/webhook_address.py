"""Connections to the addresses of webhooks.

A site's managers must not be able to reach machines behind its firewall. Notifications are therefore sent to public IP
addresses only, unless ASSAY_WEBHOOK_HOSTS names the host. The host name is resolved once, and the connection is made to
an address that was checked, so a name server can't return a different address in between. Redirects aren't followed.
"""

import socket
import ssl
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ipaddress import IPv6Address, ip_address
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from annotate.core.refusals import InvalidAnswer

TIMEOUT = 10.0  # for connecting and for each read of the response, in seconds
LONGEST_REPLY = 4096  # maximum number of bytes read from a response
PORTS = {"https": 443, "http": 80}


class NoReply(Exception):
    """Raised if a notification could not be sent."""


def check_address(url: str) -> None:
    """Raise InvalidAnswer if it isn't allowed to send notifications to a URL."""
    try:
        _resolve_host(_split_url(url))
    except NoReply as error:
        raise InvalidAnswer(f"{error} Enter another URL.") from error


def post(url: str, body: bytes, headers: Mapping[str, str]) -> int:
    """Send a POST request and return the response's status code. Raise NoReply if there is no response."""
    parts = _split_url(url)
    connection = _open_connection(parts, _resolve_host(parts))
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


def _split_url(url: str) -> SplitResult:
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


def _resolve_host(parts: SplitResult) -> tuple[str, int]:
    """Resolve the host to the IP address and port to connect to. Raise NoReply if nothing may be sent there."""
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


def _open_connection(parts: SplitResult, address: tuple[str, int]) -> HTTPConnection:
    """Return a connection to the address that uses the host name for the Host header and the certificate."""
    connection_class = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = connection_class(parts.hostname or "", parts.port, timeout=TIMEOUT)
    connection._create_connection = lambda _, *options: socket.create_connection(address, *options)  # type: ignore[attr-defined]
    return connection
