"""Requests to an OpenAI-compatible endpoint (chat completions).

Texts are sent only to the host that the user specified, because the client doesn't follow redirects or use a proxy. The
API key is read from ASSAY_ENDPOINT_KEY. It isn't stored in any object here, and is redacted from responses.
"""

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from ipaddress import ip_address
from socket import gaierror
from typing import Any
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from corpora.core import CorpusError

OLLAMA = "http://127.0.0.1:11434/v1"
LONGEST_REPLY = 1 << 20  # maximum size of a reply (bytes)
LONGEST_QUOTE = 200  # maximum length of an endpoint's error message that our messages quote (characters)
KEY_VARIABLE = "ASSAY_ENDPOINT_KEY"

Token = tuple[str, float]  # a token's text and log-probability


@dataclass(frozen=True)
class Reply:
    """The reply to a successful request, which may lack a usable answer.

    text: the model's answer
    fault: why there is no usable answer; "" if there is one
    tokens: the answer's tokens with their log-probabilities; empty if the endpoint returns none
    used: number of tokens that the request cost; None if the endpoint does not report it
    model: name of the model as reported by the endpoint
    """

    text: str = ""
    fault: str = ""
    tokens: tuple[Token, ...] = ()
    used: int | None = None
    model: str = ""


class NoReply(Exception):
    """Raised if a request failed.

    is_free: whether the request certainly wasn't processed, and so cost nothing
    is_final: whether the same request would fail again
    retry_after: waiting time requested by the endpoint (seconds), 0 if none
    """

    def __init__(self, why: str, *, is_free: bool = False, is_final: bool = False, retry_after: float = 0) -> None:
        super().__init__(why)
        self.is_free, self.is_final, self.retry_after = is_free, is_final, retry_after


class NoLogProbabilities(Exception):
    """Raised if the endpoint refuses to return log-probabilities."""


@dataclass(frozen=True)
class Endpoint:
    """An endpoint's address.

    timeout: maximum waiting time for a reply (seconds)
    """

    address: SplitResult
    timeout: float

    @property
    def hostname(self) -> str:
        return self.address.hostname or ""

    @property
    def is_local(self) -> bool:
        """Whether the endpoint is on this machine."""
        try:
            return ip_address(self.hostname).is_loopback
        except ValueError:
            return self.hostname == "localhost"

    def ask(self, request: Mapping[str, Any]) -> Reply:
        """Send a request once.

        Raise NoReply if the request failed, NoLogProbabilities if it must be repeated without log-probabilities, and
        CorpusError if no request can succeed.
        """
        try:
            status, headers, body = self._post(json.dumps(request).encode())
        except ssl.SSLCertVerificationError as error:
            raise CorpusError(f"The certificate of {self.hostname} is not valid: {error.verify_message}.") from error
        except (ConnectionRefusedError, gaierror) as error:
            raise NoReply(f"cannot connect to {self.address.netloc}: {error.strerror}", is_free=True) from error
        except TimeoutError as error:
            raise NoReply(f"no reply within {self.timeout:g} seconds") from error
        except (OSError, HTTPException) as error:
            raise NoReply(f"the connection failed: {type(error).__name__}") from error
        text = without_key(body.decode(errors="replace"))
        if status == 200:
            return _reply(text, too_long=len(body) > LONGEST_REPLY)
        raise self._refusal(status, headers, text, "logprobs" in request)

    def _post(self, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        connection_class = HTTPSConnection if self.address.scheme == "https" else HTTPConnection
        connection = connection_class(self.hostname, self.address.port, timeout=self.timeout)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if settings.ENDPOINT_KEY:
            headers["Authorization"] = f"Bearer {settings.ENDPOINT_KEY}"
        try:
            connection.request("POST", f"{self.address.path.rstrip('/')}/chat/completions", body, headers)
            response: HTTPResponse = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read(LONGEST_REPLY + 1)
        finally:
            connection.close()

    def _refusal(self, status: int, headers: Mapping[str, str], text: str, with_tokens: bool) -> Exception:
        """Return the exception to raise for an error response."""
        why = f"status {status}: {_error_message(text)}".rstrip(": ")
        if status in (408, 409, 425, 429) or status >= 500:
            return NoReply(why, is_free=status == 429, retry_after=_retry_after(headers))
        if status in (401, 403):
            # Omit the endpoint's message, because it may quote a part of the key.
            return CorpusError(f"The endpoint refused the key (status {status}). Set {KEY_VARIABLE} to a valid key.")
        if status < 400 or status in (404, 405):
            return CorpusError(
                f"The endpoint {self.address.geturl()} does not answer chat completions of this model ({why}). Check "
                "--endpoint and --model."
            )
        if with_tokens and "logprobs" in text:
            return NoLogProbabilities()
        return NoReply(why, is_free=True, is_final=True)


def endpoint_at(url: str, timeout: float) -> Endpoint:
    """Return the endpoint at a base URL such as http://127.0.0.1:11434/v1.

    Raise CorpusError if the URL is not valid or contains credentials, or if the key is not valid.
    """
    try:
        address = urlsplit(url.strip())
        is_valid = address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or not _is_plain(url.strip()):
        raise CorpusError(f"--endpoint is not a valid URL. Write the base URL, such as {OLLAMA}.", "endpoint")
    if address.username or address.password or address.query or address.fragment:
        raise CorpusError(
            f"--endpoint must have no user name, password, query or fragment. Set {KEY_VARIABLE} to the key.",
            "endpoint",
        )
    if not _is_plain(settings.ENDPOINT_KEY):
        raise CorpusError(f"{KEY_VARIABLE} must consist of ASCII characters without spaces.")
    return Endpoint(address, timeout)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text


def without_key(text: str) -> str:
    """Redact the key from text returned by an endpoint."""
    return text.replace(settings.ENDPOINT_KEY, "[key]") if settings.ENDPOINT_KEY else text


def _reply(text: str, *, too_long: bool) -> Reply:
    if too_long:
        return Reply(fault=f"The reply is longer than {LONGEST_REPLY:,} bytes.")
    try:
        reply = json.loads(text)
    except (ValueError, RecursionError):
        return Reply(fault="The reply is not JSON.")
    used, model = _number(reply, "usage", "total_tokens"), _get(reply, "model")
    common: dict[str, Any] = {"used": used, "model": model[:200] if isinstance(model, str) else ""}
    choice = _get(reply, "choices", 0)
    if not isinstance(choice, dict):
        return Reply(fault="The reply has no choices.", **common)
    answer = _get(choice, "message", "content")
    if not isinstance(answer, str) or not answer.strip():
        return Reply(fault="The answer is empty.", **common)
    return Reply(answer, tokens=_tokens(_get(choice, "logprobs", "content")), **common)


def _get(value: Any, *path: str | int) -> Any:
    """Return the value at a path in nested JSON, or None if it is missing."""
    for step in path:
        try:
            value = value[step]
        except (TypeError, KeyError, IndexError):
            return None
    return value


def _number(value: Any, *path: str) -> int | None:
    number = _get(value, *path)
    return number if isinstance(number, int) and number >= 0 else None


def _tokens(content: Any) -> tuple[Token, ...]:
    """Return the tokens with their log-probabilities, or an empty tuple if one of them is not valid."""
    tokens: list[Token] = []
    for entry in content if isinstance(content, list) else []:
        token, value = _get(entry, "token"), _get(entry, "logprob")
        if not isinstance(token, str) or not isinstance(value, int | float) or not -1e6 < value <= 0:
            return ()
        tokens.append((token, float(value)))
    return tuple(tokens)


def _error_message(text: str) -> str:
    try:
        message = _get(json.loads(text), "error", "message")
    except (ValueError, RecursionError):
        message = None
    return " ".join((message if isinstance(message, str) else text).split())[:LONGEST_QUOTE]


def _retry_after(headers: Mapping[str, str]) -> float:
    """Parse the header Retry-After, which contains seconds or a date. Return seconds, or 0 if it is missing."""
    value = next((value for name, value in headers.items() if name.lower() == "retry-after"), "")
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return 0
